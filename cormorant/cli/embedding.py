"""Which embedder serves this store, and what is lost without one?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cormorant.errors import MissingDependency, QueryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cormorant.langchain.embedder import Embedder
    from cormorant.model import Record
    from cormorant.store import Store

__all__ = ["NO_EMBEDDER", "Choice", "for_adding", "for_asking"]

NO_EMBEDDER = "none"
"""The specification that asks for no embedder."""

_PIP = "pip install 'cormorant[local]'"


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder to use, if any, and what the answer lacks without one.

    Attributes:
        spec: The embedder's specification; None for text only.
        embedder: The embedder, checked against the store's fingerprint.
        degraded: A sentence for each thing that is left out.
    """

    spec: str | None = None
    embedder: Embedder | None = None
    degraded: tuple[str, ...] = ()

    def embedded(self, records: Sequence[Record]) -> list[Record]:
        """The records, with a vector each where they have a text and brought none."""
        bare = [i for i, r in enumerate(records) if r.vector is None and r.text.strip()]
        if self.embedder is None or not bare:
            return list(records)
        returned = self.embedder.embed_documents([records[i].text for i in bare])
        vectors = self.embedder.matrix(returned, len(bare))
        out = list(records)
        for i, vector in zip(bare, vectors, strict=True):
            out[i] = replace(out[i], vector=vector)
        return out

    def embedded_query(self, text: str) -> NDArray[np.float32] | None:
        """The question's vector: float32, shape (dim,); None without an embedder."""
        if self.embedder is None:
            return None
        return self.embedder.vector(self.embedder.embed_query(text))


def for_adding(
    store: Store, asked: str | None, *, trusted: bool, brings_vectors: bool = False
) -> Choice:
    """The embedder for records to come; the store remembers it.

    Args:
        store: Open for writing.
        asked: What the user asked for; None takes the store's own, or for a store that is
            still empty the default.
        trusted: Whether ``asked`` is the user's own word; see ``Settings.trusted``.
        brings_vectors: Whether the records to come have vectors of their own.

    Raises:
        MissingDependency: If the embedder is not installed: records without a vector would
            be missed by later searches, and nobody would notice.
        EmbeddingMismatch: If the store's vectors are of another one.
    """
    spec = asked or store.embedder
    if spec is None:
        if brings_vectors or store.dim is not None:
            return Choice()
        if store.stats().records:
            return Choice(
                degraded=("the store is text only; to embed what is added: --embedder local",)
            )
        from cormorant.langchain.embeddings import default_spec

        spec = default_spec()
        if spec == NO_EMBEDDER:
            return Choice(degraded=(f"text only: no embedder is installed; {_PIP} brings one",))
    if spec == NO_EMBEDDER:
        if store.embedder is None and store.dim is None:
            store.set_embedder(NO_EMBEDDER)
        return Choice()
    return Choice(spec, _checked(store, spec, trusted=trusted and asked is not None, remember=True))


def for_asking(store: Store, asked: str | None, *, trusted: bool, mode: str | None) -> Choice:
    """The embedder for a question.

    Args:
        store: Open for reading at least.
        asked: What the user asked for; None takes the store's own.
        trusted: Whether ``asked`` is the user's own word.
        mode: The mode asked for; None searches by text alone where there is no embedder.

    Raises:
        QueryError: If a mode with vectors was asked for and cannot be had.
        MissingDependency: The same, with the pip line, where only the package is missing.
        EmbeddingMismatch: If the store's vectors are of another embedder.
    """
    spec = asked or store.embedder
    if store.dim is None:
        lacks = "the store has no vectors"
    elif spec is None:
        lacks = "the store does not know its vectors' embedder; name it with --embedder"
    elif spec == NO_EMBEDDER:
        lacks = "the embedder is 'none'"
    else:
        try:
            embedder = _checked(store, spec, trusted=trusted and asked is not None, remember=False)
        except MissingDependency as error:
            if mode is not None or asked is not None:
                raise
            return Choice(degraded=(f"searched by text alone: {error}",))
        return Choice(spec, embedder)
    if mode is not None:
        raise QueryError(
            f"--mode {mode} cannot be run: {lacks}. Use --mode text; or, for a store with vectors, "
            f"{_PIP} and add the files to a new store with --embedder local."
        )
    # Who asked for 'none' got what was asked for.
    degraded = () if spec == NO_EMBEDDER else (f"searched by text alone: {lacks}",)
    return Choice(degraded=degraded)


def _checked(store: Store, spec: str, *, trusted: bool, remember: bool) -> Embedder:
    from cormorant.langchain.embedder import Embedder
    from cormorant.langchain.embeddings import resolve
    from cormorant.langchain.guard import Guard

    resolved = resolve(spec, trusted=trusted)
    if resolved is None:
        raise QueryError(f"The embedder {spec!r} makes no vectors.")
    embedder = Embedder(resolved, lambda: store.executor)
    guard = Guard(store, embedder, enabled=True, accept_variant=False)
    if not remember:
        guard.verify()
        return embedder
    guard.register()
    if store.embedder != spec:
        store.set_embedder(spec)
    return embedder
