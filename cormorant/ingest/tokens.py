"""How many tokens will the embedder count in a text?

By its own tokenizer, if it has one at hand; else by an estimate that says it is one. Nothing is
downloaded to find out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.embeddings import Embeddings

from cormorant.errors import EmbeddingError
from cormorant.langchain.embeddings.naming import uncached
from cormorant.langchain.retrievers.document_compressors.token_budget import estimate_tokens

__all__ = ["ESTIMATE", "NamedEmbeddings", "TokenCount", "token_count"]

ESTIMATE: Final = "an estimate by script"
_PROBE: Final = "tides turn"


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A way to count tokens.

    Attributes:
        count: Tokens of a text.
        says: What counts, for reports.
        exact: Whether it is the embedder's own tokenizer.
    """

    count: Callable[[str], int]
    says: str
    exact: bool


def token_count(embedder: object) -> TokenCount:
    """The embedder's own tokenizer, or the estimate.

    Looked for are ``get_num_tokens(text)`` and, on the embedder or its client, a ``tokenizer``
    with ``encode(text)`` (Hugging Face's, sentence-transformers', tiktoken's). One that does not
    answer a probe with whole numbers is passed over.

    Args:
        embedder: A LangChain ``Embeddings``, or None.
    """
    inner = uncached(embedder)
    for counter, says in _candidates(inner):
        try:
            answered = counter(_PROBE)
        except Exception:  # noqa: BLE001, S112 - somebody else's, and not what was looked for
            continue
        if isinstance(answered, int) and answered > 0:
            return TokenCount(counter, says, exact=True)
    return TokenCount(estimate_tokens, ESTIMATE, exact=False)


def _candidates(inner: Any) -> list[tuple[Callable[[str], int], str]]:
    found: list[tuple[Callable[[str], int], str]] = []
    own = getattr(inner, "get_num_tokens", None)
    if callable(own):
        found.append((own, f"{type(inner).__name__}.get_num_tokens"))
    for owner in (inner, *(getattr(inner, name, None) for name in ("_client", "client"))):
        encode = getattr(getattr(owner, "tokenizer", None), "encode", None)
        if callable(encode):
            found.append((_lengths(encode), f"the tokenizer of {type(inner).__name__}"))
    return found


def _lengths(encode: Callable[[str], Any]) -> Callable[[str], int]:
    return lambda text: len(encode(text))


class NamedEmbeddings(Embeddings):
    """An embedder of which only the name is known: enough to reckon, not to embed.

    Args:
        model_name: Its specification or name.
    """

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Refused.

        Raises:
            EmbeddingError: Always.
        """
        raise EmbeddingError(
            f"{self.model_name!r} is only a name here, for reckoning {len(texts)} texts; it embeds "
            "nothing.",
            model=self.model_name,
        )

    def embed_query(self, text: str) -> list[float]:
        """Refused, as :meth:`embed_documents`."""
        return self.embed_documents([text])[0]
