"""How does a LangChain retriever or chain become a system that can be judged?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from cormorant.errors import UsageError
from cormorant.evaluate import Reply
from cormorant.langchain import provenance
from cormorant.langchain.evaluation.described import described
from cormorant.langchain.evaluation.usage import Usage
from cormorant.model import Hit

__all__ = ["LangChainSystem", "Price", "as_system"]

_DOCUMENTS: Final = ("context", "documents", "source_documents")


class Price(NamedTuple):
    """What a model costs, in US dollars for a million tokens read, and written."""

    read: float
    written: float


class LangChainSystem:
    """A Runnable as a callable from text to Reply; made by :func:`as_system`."""

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        *,
        id_key: str | None,
        input_key: str | None,
        documents: str | Callable[[Any], Sequence[Document]] | None,
        config: RunnableConfig | None,
        prices: Mapping[str, Price],
    ) -> None:
        self._runnable = runnable
        self._id_key = id_key
        self._input_key = input_key
        self._documents = documents
        self._config = config
        self._prices = dict(prices)
        self.__name__ = runnable.get_name()

    def __call__(self, text: str) -> Reply:
        """The documents that came back, what models read and wrote, and what was degraded."""
        usage = Usage()
        config = merge_configs(self._config, {"callbacks": [usage]})
        asked = text if self._input_key is None else {self._input_key: text}
        answer = provenance.Answer.taken(self._found(self._runnable.invoke(asked, config)))
        hits = [self._hit(document, rank) for rank, document in enumerate(answer, start=1)]
        return Reply(hits, tokens=usage.tokens, usd=self._cost(usage), degraded=answer.degraded)

    @property
    def config(self) -> dict[str, Any]:
        """What is known to change its rankings, JSON values, without keys and passwords."""
        return {"runnable": described(self._runnable)}

    def _found(self, returned: Any) -> Sequence[Document]:
        found = returned
        if callable(self._documents):
            found = self._documents(returned)
        elif self._documents is not None:
            found = returned.get(self._documents) if isinstance(returned, Mapping) else None
        elif isinstance(returned, Mapping):
            found = next((returned[key] for key in _DOCUMENTS if key in returned), None)
        if not isinstance(found, list | tuple) or not all(isinstance(d, Document) for d in found):
            keys = f" with the keys {list(returned)}" if isinstance(returned, Mapping) else ""
            raise UsageError(
                f"{self.__name__} returned no list of Documents, but "
                f"{type(returned).__name__}{keys}. Say where they are: documents='context', or a "
                "function of what it returns."
            )
        return found

    def _hit(self, document: Document, rank: int) -> Hit:
        hit = provenance.hit(document, rank)
        id = hit.id if self._id_key is None else document.metadata.get(self._id_key)
        if not id:
            lacks = "no id" if self._id_key is None else f"no {self._id_key!r} in its metadata"
            raise UsageError(
                f"A document has {lacks}, so it cannot be judged: {document.page_content[:60]!r}. "
                "Say which metadata field names it: id_key='source'."
            )
        return replace(hit, id=str(id))

    def _cost(self, usage: Usage) -> float:
        spent = 0.0
        for model, (read, written) in usage.by_model.items():
            if model in self._prices:
                price = self._prices[model]
                spent += (price.read * read + price.written * written) / 1e6
        return spent


def as_system(
    runnable: Runnable[Any, Any],
    *,
    id_key: str | None = None,
    input_key: str | None = None,
    documents: str | Callable[[Any], Sequence[Document]] | None = None,
    config: RunnableConfig | None = None,
    prices: Mapping[str, Price] | None = None,
) -> LangChainSystem:
    """A LangChain retriever or chain as a system for ``cormorant.evaluate.run_system``.

    Args:
        runnable: A retriever, or a chain that returns its documents.
        id_key: The metadata field that is judged; None for ``Document.id``.
        input_key: The key under which a chain takes the question; None if it takes the text.
        documents: Where a chain's documents are: a key of the dict it returns, or a function of
            what it returns. None takes a list as it is, and of a dict the first of
            ``context``, ``documents``, ``source_documents``.
        config: Passed to ``invoke``: a scope, tags, callbacks.
        prices: Model name, as its messages say it, to its :class:`Price`; models that are not
            named cost nothing.

    Returns:
        A callable. Scores are those the last stage gave, where it is one of this package's and
        they fall; else 1 / rank.

    Example:
        >>> from cormorant.evaluate import judge, run_system
        >>> from cormorant.langchain import Cormorant
        >>> vs = Cormorant.from_texts(["a fish", "a bird"], None, ids=["1", "2"])
        >>> retriever = vs.as_retriever(search_type="text")
        >>> run = run_system(as_system(retriever), {"q": "bird"})
        >>> judge(run, {"q": {"2": 1}}, "mrr").means
        {'mrr': 1.0}
    """
    if not isinstance(runnable, Runnable):
        raise UsageError(
            f"as_system takes a LangChain Runnable; got {type(runnable).__name__}. A function from "
            "text to hits goes to run_system as it is."
        )
    return LangChainSystem(
        runnable,
        id_key=id_key,
        input_key=input_key,
        documents=documents,
        config=config,
        prices=prices or {},
    )
