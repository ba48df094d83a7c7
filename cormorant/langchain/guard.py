"""Is this the embedder the store's vectors were made with?

Asked before the first add and before the first query that is embedded, of every store.
Another model of the same size passes every other check and turns results to noise.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from cormorant.errors import DimensionError
from cormorant.langchain.embedder import Embedder
from cormorant.langchain.probed import aprobed, probed
from cormorant.store.door import Door
from cormorant.store.fingerprint import Fingerprint, compare, require_same

__all__ = ["Guard"]

logger = logging.getLogger(__name__)


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
        self._agreed: Fingerprint | None = None

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
        asked = self._asked()
        if asked is not None and asked[1] is not None:
            self._compare(asked[1], probed(asked[0]))

    async def averify(self) -> None:
        """Like :meth:`verify`, awaiting the embedder."""
        asked = self._asked()
        if asked is not None and asked[1] is not None:
            self._compare(asked[1], await aprobed(asked[0]))

    def register(self) -> None:
        """Before an add: remember the embedder, or refuse another than the stored one.

        Raises:
            EmbeddingMismatch: If the store holds vectors of another embedder.
            DimensionError: If the store was made for vectors of another size.
            EmbeddingError: If the embedder fails on the probes.
        """
        asked = self._asked()
        if asked is not None:
            self._remember(asked[1], probed(asked[0]))

    async def aregister(self, run: Callable[..., Awaitable[None]]) -> None:
        """Like :meth:`register`, awaiting the embedder; ``run`` does the writing elsewhere."""
        asked = self._asked()
        if asked is not None:
            await run(self._remember, asked[1], await aprobed(asked[0]))

    def _asked(self) -> tuple[Embedder, Fingerprint | None] | None:
        """The embedder and what the store remembers; None if there is nothing left to ask."""
        if self._embedder is None or not self._enabled:
            return None
        stored = self._door.fingerprint
        if stored is not None and stored is self._agreed:
            return None
        return self._embedder, stored

    def _compare(self, stored: Fingerprint, fresh: Fingerprint) -> None:
        verdict = require_same(stored, fresh, accept_variant=self._accept_variant)
        if verdict.kind == "variant":
            logger.warning("Accepted: %s", verdict.says)
        elif verdict.kind != "same":
            logger.info("Accepted: %s", verdict.says)
        self._agreed = stored

    def _remember(self, stored: Fingerprint | None, fresh: Fingerprint) -> None:
        dim = self._door.dim
        if stored is None and dim is not None and dim != fresh.dim:
            raise DimensionError(
                f"The embedder {fresh.name!r} makes vectors of {fresh.dim} numbers; this store "
                f"holds vectors of {dim}. Use the embedder it was built with, or a new store."
            )
        if stored is None or not self._agrees(stored, fresh):
            # Refuses, unless the store holds no vectors (any more).
            self._door.set_embedder(self._door.embedder, fresh)
            self._agreed = self._door.fingerprint
        else:
            self._compare(stored, fresh)

    def _agrees(self, stored: Fingerprint, fresh: Fingerprint) -> bool:
        verdict = compare(stored, fresh)
        return verdict.same or (self._accept_variant and verdict.kind == "variant")
