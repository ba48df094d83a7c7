"""In which order do these documents answer the question, says a language model?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLanguageModel, LanguageModelLike
from langchain_core.messages import BaseMessage
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSerializable,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import override

from cormorant import defaults
from cormorant.langchain.calls.blocking import only_sync
from cormorant.langchain.calls.time_limit import time_left, to_thread
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.answers import text_of
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain, model_of
from cormorant.langchain.retrievers.asking.rewriting import unthought
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.document_compressors.compressor import (
    Call,
    Compressor,
    RerankError,
)
from cormorant.langchain.retrievers.document_compressors.ranking import placed
from cormorant.ranges import check_whole

__all__ = ["LLMListwiseRerank", "RankDocuments"]

_PROMPT: Final = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            """{context}

Put the ids of all documents in the order in which the documents help to answer the query, the \
most helpful first. Each id once.""",
        ),
        ("human", "{query}"),
    ]
)
_DIGITS: Final = 18
_AS_TEXT: Final = "\n\nWrite the ids in square brackets and nothing else, such as: [1] > [0]"


class RankDocuments(BaseModel):
    """The order in which the documents answer the query."""

    ranked_document_ids: list[int] = Field(
        description="The documents' ids, whole numbers, the most relevant document's first."
    )


class LLMListwiseRerank(Compressor):
    """Shows a language model the documents together, and takes over the order it gives.

    Ids that are unknown or come twice are ignored, documents it leaves out follow in their earlier
    order, and ``degraded`` says so. No document is lost but by ``top_n``. An order has no scores:
    the hits have none either. A long list is ordered in overlapping windows, from its end.

    Args:
        reranker: ``{"query", "documents"}`` to the same documents, best first.
        top_n: Documents to keep; None: all. A call's ``top_n`` comes before it.
        window: Documents the model sees at once; None: all.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Source:
        Ma et al., Zero-Shot Listwise Document Reranking with a Large Language Model, 2023,
        arXiv:2305.02156; windows of 20 that advance by half, and the repair of incomplete
        orders: Sun et al., Is ChatGPT Good at Search?, EMNLP 2023, arXiv:2304.09542.
    """

    reranker: Runnable[Any, Any]
    top_n: int | None = defaults.RERANK_TOP_N
    window: int | None = defaults.LISTWISE_WINDOW

    call_arguments: ClassVar[tuple[str, ...]] = ("top_n",)

    def __init__(self, **values: Any) -> None:
        check_chain(values.get("reranker"), "reranker")
        if values.get("top_n") is not None:
            check_k(values["top_n"], "top_n")
        window = values.get("window", defaults.LISTWISE_WINDOW)
        if window is not None:
            check_whole("window", window, 2)  # documents to compare
        super().__init__(**values)

    @classmethod
    def from_llm(
        cls,
        llm: LanguageModelLike,
        *,
        prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> LLMListwiseRerank:
        """Make one from a language model.

        Args:
            llm: The model, or any Runnable from a prompt to text. A model that calls tools gives
                a list of ids, also behind ``bind``, ``with_retry`` and ``with_fallbacks``;
                another is asked for text like ``[2] > [0] > [1]``.
            prompt: Over ``context`` (the documents and their ids) and ``query``.
            **kwargs: The class's other arguments.

        Raises:
            ConfigError: If there is no model, or the prompt has other variables.
        """
        call = f"{cls.__name__}.from_llm(llm)"
        model = model_of(llm, call)
        structured = _structured(model)
        chain = chain_of(
            _PROMPT if prompt is None else prompt,
            model if structured is None else structured,
            RunnableLambda(_ids).with_config(run_name="read_ids"),
            call=call,
            gives=("context", "query"),
        )
        return cls(reranker=Ordering(ids=chain, as_text=structured is None), **kwargs)

    @override
    def _compress(self, call: Call) -> Answer:
        order, notes = list(range(len(call.answer))), dict[str, None]()
        for start, end in self._windows(len(order)):
            seen = [call.answer[position] for position in order[start:end]]
            found = self.reranker.invoke({"query": call.query, "documents": seen}, call.config)
            self._reordered(order, start, seen, found, notes)
        return self._placed(call, order, notes)

    @override
    async def _acompress(self, call: Call) -> Answer:
        if only_sync(self.reranker) and time_left() is not None:
            return await to_thread(self, self._compress, call)
        order, notes = list(range(len(call.answer))), dict[str, None]()
        for start, end in self._windows(len(order)):
            seen = [call.answer[position] for position in order[start:end]]
            input = {"query": call.query, "documents": seen}
            found = await self.reranker.ainvoke(input, call.config)
            self._reordered(order, start, seen, found, notes)
        return self._placed(call, order, notes)

    def _windows(self, count: int) -> list[tuple[int, int]]:
        """From the end, so that a good document can rise through all of them."""
        if self.window is None or count <= self.window:
            return [(0, count)]
        step = self.window // 2
        starts = [*range(count - self.window, 0, -step), 0]
        return [(start, start + self.window) for start in starts]

    def _reordered(
        self,
        order: list[int],
        start: int,
        seen: Sequence[Document],
        found: Any,
        notes: dict[str, None],
    ) -> None:
        """Put the window's documents into the order that was found."""
        places = self._places(seen, found)
        if isinstance(found, Answer):
            notes.update(dict.fromkeys(found.degraded))
        left = [place for place in range(len(seen)) if place not in places]
        if left:
            notes[
                f"{self.get_name()}: {len(left)} of {len(seen)} documents were left out of the "
                "order; they follow in their earlier one."
            ] = None
        before = order[start : start + len(seen)]
        order[start : start + len(seen)] = [before[place] for place in (*places, *left)]

    def _places(self, seen: Sequence[Document], found: Any) -> list[int]:
        if not isinstance(found, Sequence) or not all(isinstance(doc, Document) for doc in found):
            raise RerankError(
                f"{self.get_name()} needs a list of Documents from its reranker; got {found!r}."
            )
        places: list[int] = []
        for document in found:
            place = next((p for p, one in enumerate(seen) if one is document), None)
            if place is None:  # a copy
                free = (p for p, one in enumerate(seen) if one == document and p not in places)
                place = next(free, None)
            if place is None:
                raise RerankError(
                    f"{self.get_name()} got a document back that it did not give: {document!r}."
                )
            if place not in places:
                places.append(place)
        return places

    def _placed(self, call: Call, order: Sequence[int], notes: Mapping[str, None]) -> Answer:
        top_n = self.top_n if call.top_n is None else call.top_n
        return placed(call.answer, order, who=self.get_name(), top_n=top_n).degrading(*notes)


class Ordering(RunnableSerializable[dict[str, Any], list[Document]]):
    """``{"query", "documents"}`` to the documents in the order a chain gives their ids."""

    ids: Runnable[Any, list[int]]
    as_text: bool

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def asks(self) -> list[Runnable[Any, Any]]:
        """What it waits for."""
        return [self.ids]

    @override
    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        return self._call_with_config(self._order, input, config, **kwargs)  # type: ignore[arg-type]

    @override
    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        return await self._acall_with_config(self._aorder, input, config, **kwargs)  # type: ignore[arg-type]

    def _order(self, input: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return _by_ids(input["documents"], self.ids.invoke(self._shown(input), config))

    async def _aorder(self, input: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return _by_ids(input["documents"], await self.ids.ainvoke(self._shown(input), config))

    def _shown(self, input: Mapping[str, Any]) -> dict[str, Any]:
        """The documents with their ids, counted from 0, as a prompt's variables."""
        shown = [
            f"<document id={number}>\n{document.page_content}\n</document>"
            for number, document in enumerate(input["documents"])
        ]
        query = input["query"] + (_AS_TEXT if self.as_text else "")
        return {"query": query, "context": "\n\n".join(shown)}


def _structured(llm: Runnable[Any, Any]) -> Runnable[Any, Any] | None:
    """The model, made to give a RankDocuments; None if it can only be asked for text.

    What was bound to a model, its retries and its fallbacks stay around it.
    """
    if isinstance(llm, RunnableBindingBase):
        bound = _structured(llm.bound)
        return None if bound is None else llm.model_copy(update={"bound": bound})
    if isinstance(llm, RunnableWithFallbacks):
        first, *others = [_structured(each) for each in llm.runnables]
        if first is None or None in others:
            return None  # they share one prompt
        return llm.model_copy(update={"runnable": first, "fallbacks": others})
    if not isinstance(llm, BaseLanguageModel):
        return None
    kind = type(llm)
    own = kind.with_structured_output not in {
        BaseLanguageModel.with_structured_output,
        BaseChatModel.with_structured_output,
    }
    binds = isinstance(llm, BaseChatModel) and type(llm).bind_tools is not BaseChatModel.bind_tools
    return llm.with_structured_output(RankDocuments) if own or binds else None


def _by_ids(documents: Sequence[Document], ids: Sequence[int]) -> Answer:
    """The documents in the order of the ids, and what was wrong with these."""
    known = [number for number in dict.fromkeys(ids) if 0 <= number < len(documents)]
    if not known:
        raise RerankError(
            f"The model must give ids from 0 to {len(documents) - 1}; it gave {ids or 'none'}."
        )
    answer = Answer(documents[number] for number in known)
    unknown = sorted({number for number in ids if number not in known})
    notes = []
    if unknown:
        notes.append(f"LLMListwiseRerank: the model made up ids, which were ignored: {unknown}.")
    if len(ids) > len(set(ids)):
        notes.append("LLMListwiseRerank: the model gave ids twice; the first place counts.")
    return answer.degrading(*notes)


def _ids(ranking: Any) -> list[int]:
    """The ids in what a model gave: a RankDocuments, its fields, a list of ids, or text.

    Raises:
        RerankError: If it is something else.
    """
    if isinstance(ranking, (BaseMessage, str)):
        return _ids_in(unthought(text_of(ranking, "LLMListwiseRerank", RerankError)))
    if isinstance(ranking, RankDocuments):
        return ranking.ranked_document_ids
    given = ranking
    if isinstance(ranking, Mapping):
        if isinstance(ranking.get("text"), str):
            return _ids_in(ranking["text"])  # an LLMChain of old
        given = ranking.get("ranked_document_ids")
    try:
        return RankDocuments.model_validate({"ranked_document_ids": given}).ranked_document_ids
    except ValidationError as error:
        raise RerankError(
            f"The model must give a list of ids; it gave {ranking!r:.200}. Text such as [2] > [0] "
            "is taken too, and a dict with ranked_document_ids."
        ) from error


def _ids_in(text: str) -> list[int]:
    inside = " ".join(re.findall(r"\[([\d\s,]*)\]", text))
    if not inside and not re.sub(r"[\d\s,;>]", "", text):
        inside = text  # numbers and nothing else
    # A longer one is no document's id, and Python may refuse to read it.
    return [int(number[:_DIGITS]) for number in re.findall(r"\d+", inside)]
