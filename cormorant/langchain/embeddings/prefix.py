"""Which instruction does the model want in front of a query, and of a document?"""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from cormorant.errors import ConfigError
from cormorant.langchain.embeddings.naming import identity, model_name, uncached

__all__ = ["PrefixEmbeddings"]


class PrefixEmbeddings(Embeddings):
    """Puts an instruction in front of each text, another one on each side.

    E5 models were trained on ``query: `` and ``passage: ``, others on sentences; without
    them they rank visibly worse, and nothing says so. Queries go to the inner embedder's
    ``embed_query`` and documents to its ``embed_documents``, so a provider that knows the
    two roles itself (``input_type``) keeps them.

    Args:
        inner: The embedder that gets the prefixed texts.
        query_prefix: Put in front of queries, as it stands: mind the space at its end.
        document_prefix: Put in front of documents, as it stands.

    Raises:
        ConfigError: If ``inner`` is no ``Embeddings``, or a prefix no string.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> inner = DeterministicFakeEmbedding(size=3)
        >>> embeddings = PrefixEmbeddings(inner)
        >>> embeddings.embed_query("tide") == inner.embed_query("query: tide")
        True
    """

    def __init__(
        self,
        inner: Embeddings,
        query_prefix: str = "query: ",
        document_prefix: str = "passage: ",
    ) -> None:
        if not isinstance(inner, Embeddings):
            raise ConfigError(f"inner must be a LangChain Embeddings; got {type(inner).__name__}.")
        for name, prefix in (("query_prefix", query_prefix), ("document_prefix", document_prefix)):
            if not isinstance(prefix, str):
                raise ConfigError(
                    f"{name} must be a string, which may be empty; got {type(prefix).__name__}."
                )
        self.inner = inner
        self.query_prefix = query_prefix
        self.document_prefix = document_prefix

    @property
    def model_name(self) -> str | None:
        """The inner model's name."""
        return model_name(self.inner)

    @property
    def embedding_identity(self) -> str:
        """The inner embedder's identity, with the prefixes: they change the vectors."""
        return (
            f"{identity(self.inner)}"
            f"{{query_prefix={self.query_prefix!r},document_prefix={self.document_prefix!r}}}"
        )

    @property
    def uncached(self) -> PrefixEmbeddings:
        """The same prefixes over the inner embedder without caches."""
        return PrefixEmbeddings(uncached(self.inner), self.query_prefix, self.document_prefix)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The inner embedder's document vectors of the prefixed texts."""
        return self.inner.embed_documents([self.document_prefix + text for text in texts])

    def embed_query(self, text: str) -> list[float]:
        """The inner embedder's query vector of the prefixed text."""
        return self.inner.embed_query(self.query_prefix + text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents`, awaiting the inner embedder's own async method."""
        return await self.inner.aembed_documents([self.document_prefix + text for text in texts])

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query`, awaiting the inner embedder's own async method."""
        return await self.inner.aembed_query(self.query_prefix + text)
