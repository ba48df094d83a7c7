"""What does this embedder make of the probe texts?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cormorant.langchain.embeddings.naming import identity, uncached
from cormorant.langchain.embeddings.vectors import as_matrix, as_vector
from cormorant.store.fingerprint import PROBES, Fingerprint

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

__all__ = ["afingerprint", "fingerprint"]


def fingerprint(embeddings: Embeddings) -> Fingerprint:
    """Embed the probes: eight as documents, the first as a query too.

    Costs two calls of the embedder, about 1,000 tokens. Caches around it are passed by.

    Args:
        embeddings: Any LangChain ``Embeddings``.

    Returns:
        What :func:`cormorant.store.fingerprint.require_same` compares.

    Raises:
        EmbeddingError: If the embedder returns no usable vectors for the probes.
    """
    model: Embeddings = uncached(embeddings)
    name = identity(model)
    documents = as_matrix(model.embed_documents(list(PROBES)), len(PROBES), model=name)
    query = as_vector(model.embed_query(PROBES[0]), model=name)
    return Fingerprint(name=name, dim=documents.shape[1], vectors=documents, query=query)


async def afingerprint(embeddings: Embeddings) -> Fingerprint:
    """:func:`fingerprint`, awaiting the embedder's own async methods."""
    model: Embeddings = uncached(embeddings)
    name = identity(model)
    documents = as_matrix(await model.aembed_documents(list(PROBES)), len(PROBES), model=name)
    query = as_vector(await model.aembed_query(PROBES[0]), model=name)
    return Fingerprint(name=name, dim=documents.shape[1], vectors=documents, query=query)
