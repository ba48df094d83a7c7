"""Is this the embedder the store's vectors were made with?

Asked before the first add and before the first query that is embedded, of every store.
Another model of the same size passes every other check and turns results to noise.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from cormorant.errors import DimensionError, EmbeddingError
from cormorant.langchain.embedder import Embedder
from cormorant.langchain.probed import aprobed, probed
from cormorant.store.door import Door
from cormorant.store.fingerprint import Fingerprint, compare, require_same

__all__ = ["Guard"]

logger = logging.getLogger(__name__)

Stored: TypeAlias = Mapping[str, Any]
"""A fingerprint as the store keeps it."""


class Guard:
    """Compares one embedder with what one store remembers of its own.

    Args:
        door: The store.
        embedder: The embedder at hand.
        enabled: False compares nothing and remembers nothing.
        accept_variant: Take a variant of the stored model too.
    """

    def __init__(
        self, door: Door, embedder: Embedder | None, *, enabled: bool, accept_variant: bool
    ) -> None:
        self._door = door
        self._embedder = embedder
        self._enabled = enabled
        self._accept_variant = accept_variant
        self._agreed: object = None  # the stored fingerprint this embedder was found to fit

    def over(self, door: Door) -> Guard:
        """The same guard for a view of the store."""
        guard = Guard(
            door,
            self._embedder,
            enabled=self._enabled,
            accept_variant=self._accept_variant,
        )
        guard._agreed = self._agreed
        return guard

    def verify(self) -> None:
        """Before a query: refuse another embedder than the stored one.

        A store that remembers none has nothing to compare, and costs no probing.

        Raises:
            EmbeddingMismatch: Saying what was stored, what came, and what to do.
            EmbeddingError: If the embedder fails on the probes.
        """
        stored = self._stored()
        if self._embedder is not None and stored is not None and self._open(stored):
            with _probing():
                fresh = probed(self._embedder)
            self._compare(stored, fresh)

    async def averify(self) -> None:
        """Like :meth:`verify`, awaiting the embedder."""
        stored = self._stored()
        if self._embedder is not None and stored is not None and self._open(stored):
            with _probing():
                fresh = await aprobed(self._embedder)
            self._compare(stored, fresh)

    def register(self) -> None:
        """Before an add: remember the embedder, or refuse another than the stored one.

        Raises:
            EmbeddingMismatch: If the store holds vectors of another embedder.
            DimensionError: If the store was made for vectors of another size.
            EmbeddingError: If the embedder fails on the probes.
        """
        stored = self._stored()
        if self._embedder is not None and self._open(stored):
            with _probing():
                fresh = probed(self._embedder)
            self._remember(stored, fresh)

    async def aregister(self, run: Callable[..., Awaitable[None]]) -> None:
        """Like :meth:`register`, awaiting the embedder; ``run`` does the writing elsewhere."""
        stored = self._stored()
        if self._embedder is not None and self._open(stored):
            with _probing():
                fresh = await aprobed(self._embedder)
            await run(self._remember, stored, fresh)

    def _stored(self) -> Stored | None:
        """What the store remembers, as it was last read: the same object while it is the same."""
        return self._door.config.fingerprint

    def _open(self, stored: Stored | None) -> bool:
        """Whether there is still something to ask."""
        return self._enabled and (stored is None or stored is not self._agreed)

    def _compare(self, stored: Stored, fresh: Fingerprint) -> None:
        verdict = require_same(
            Fingerprint.from_json(stored), fresh, accept_variant=self._accept_variant
        )
        if verdict.kind == "variant":
            logger.warning("Accepted: %s", verdict.says)
        elif verdict.kind != "same":
            logger.info("Accepted: %s", verdict.says)
        self._agreed = stored

    def _remember(self, stored: Stored | None, fresh: Fingerprint) -> None:
        dim = self._door.dim
        if stored is None and dim is not None and dim != fresh.dim:
            raise DimensionError(
                f"The embedder {fresh.name!r} makes vectors of {fresh.dim} numbers; this store "
                f"holds vectors of {dim}. Use the embedder it was built with, or a new store."
            )
        if stored is not None and self._fits(stored, fresh):
            self._compare(stored, fresh)
            return
        # Refuses, unless the store holds no vectors (any more).
        self._door.remember_fingerprint(fresh)
        self._agreed = self._stored()

    def _fits(self, stored: Stored, fresh: Fingerprint) -> bool:
        verdict = compare(Fingerprint.from_json(stored), fresh)
        return verdict.same or (self._accept_variant and verdict.kind == "variant")


@contextmanager
def _probing() -> Iterator[None]:
    """Say what was being embedded, since it was none of the caller's texts."""
    try:
        yield
    except EmbeddingError as error:
        raise EmbeddingError(
            f"{error} That was on the probe texts, by which a store knows its embedder; one of "
            "them has over 600 words. If it refuses long texts, have it truncate them, or pass "
            "check_embedder=False.",
            model=error.model,
            retryable=error.retryable,
        ) from error
