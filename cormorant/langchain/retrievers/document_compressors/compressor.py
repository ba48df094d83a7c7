"""What do all our compressors do alike? Input, runs, scores, copies.

A compressor says what it keeps in ``_compress`` and ``_acompress``; everything around that is
here, once. It is LangChain's BaseDocumentCompressor and a Runnable at the same time, so it has a
run of its own wherever it stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict
from typing_extensions import override

from cormorant import trace
from cormorant.errors import QueryError, RerankError, UsageError
from cormorant.langchain import provenance
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.configured import Configured
from cormorant.langchain.provenance import Answer
from cormorant.langchain.request import check_text, refuse_unknown
from cormorant.langchain.retrievers.base import check_k
from cormorant.model import Stage

__all__ = ["Call", "Compressor", "RerankError"]


@dataclass(frozen=True, slots=True)
class Call:
    """What one call is about.

    Attributes:
        answer: The documents, best first: copies, with the scores they have so far. Not empty.
        query: The question; empty where the class needs none.
        config: For whatever is called from here: its runs become children of this one.
        top_n: How many documents the caller wants, if the caller said so.
    """

    answer: Answer
    query: str
    config: RunnableConfig
    top_n: int | None = None


class Compressor(
    Configured, BaseDocumentCompressor, RunnableSerializable[dict[str, Any], list[Document]]
):
    """Question and documents to documents.

    As a Runnable it takes ``{"query": …, "documents": […]}``. To make one, write ``_compress``
    (and ``_acompress``, unless a thread will do).

    Args:
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: On an argument nobody reads.
    """

    with_scores: bool = False

    call_arguments: ClassVar[tuple[str, ...]] = ()
    """What ``invoke`` takes besides input and config."""

    needs_query: ClassVar[bool] = True

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    # To be written

    def _compress(self, call: Call) -> Iterable[Document]:
        """The documents to keep, best first; an Answer if there is more to say."""
        raise NotImplementedError

    async def _acompress(self, call: Call) -> Iterable[Document]:
        """Like :meth:`_compress`; by default that, in a thread."""
        return await to_thread(self, self._compress, call)

    @property
    def arranges(self) -> bool:
        """Whether what comes out is no longer in the order of rank."""
        return False

    def room_for(self, k: int) -> int:
        """What ``top_n`` a call for k documents gives this one, where it takes any."""
        own = getattr(self, "top_n", None)
        return k if own is None else max(k, own)

    # What callers use

    @override
    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Keep what is worth keeping.

        Args:
            input: ``{"query": the question, "documents": best first}``.
            config: LangChain's.
            **kwargs: ``call_arguments`` of the class.

        Returns:
            Documents, best first: copies, with their ids and earlier scores.

        Raises:
            UsageError: On input of another shape, or an argument nobody reads.
            RerankError: If a model answered something unusable.
        """
        refuse_unknown(kwargs, self.call_arguments, f"{self.get_name()}.invoke")
        return self._call_with_config(self._run, input, config, **kwargs)  # type: ignore[arg-type]

    @override
    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Like :meth:`invoke`, without holding the event loop."""
        refuse_unknown(kwargs, self.call_arguments, f"{self.get_name()}.ainvoke")
        return await self._acall_with_config(self._arun, input, config, **kwargs)  # type: ignore[arg-type]

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Like :meth:`invoke`, as LangChain's retrievers call it."""
        return self.invoke({"query": query, "documents": documents}, {"callbacks": callbacks})

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Like :meth:`ainvoke`, as LangChain's retrievers call it."""
        input = {"query": query, "documents": documents}
        return await self.ainvoke(input, {"callbacks": callbacks})

    # What happens around _compress

    def _run(self, input: dict[str, Any], config: RunnableConfig, **asked: Any) -> list[Document]:
        began = time.perf_counter()
        with trace.span("compress", compressor=type(self).__name__) as span:
            call = self._call(input, config, asked)
            found = self._compress(call) if call.answer else ()
            kept = self._told(call, found, time.perf_counter() - began)
            span.note(given=len(call.answer), kept=len(kept))
            return kept

    async def _arun(
        self, input: dict[str, Any], config: RunnableConfig, **asked: Any
    ) -> list[Document]:
        began = time.perf_counter()
        given = input.get("documents") if isinstance(input, Mapping) else None
        with trace.span("compress", compressor=type(self).__name__) as span:
            call = await aside(given, self._call, input, config, asked)
            found = await self._acompress(call) if call.answer else ()
            kept = await aside(given, self._told, call, found, time.perf_counter() - began)
            span.note(given=len(call.answer), kept=len(kept))
            return kept

    def _call(self, input: Any, config: RunnableConfig, asked: dict[str, Any]) -> Call:
        given = {name: value for name, value in asked.items() if value is not None}
        if "top_n" in given:
            check_k(given["top_n"], "top_n")
        query, documents = self._split(input)
        return Call(Answer.taken(documents), query, config, **given)

    def _split(self, input: Any) -> tuple[str, Sequence[Document]]:
        """The question and the documents."""
        if not isinstance(input, Mapping):
            raise UsageError(
                f"{self.get_name()} takes {{'query': …, 'documents': […]}}; got a "
                f"{type(input).__name__}. Put RunnablePassthrough.assign(documents=…) before it."
            )
        wanted = {"query", "documents"} if self.needs_query else {"documents"}
        missing = sorted(wanted - set(input))
        if missing:
            raise UsageError(
                f"{self.get_name()} takes {{'query': …, 'documents': […]}}; without "
                f"{' and '.join(missing)} it got the keys {', '.join(map(repr, input))}."
            )
        query = input.get("query", "")
        if self.needs_query:
            query = check_text(query)
        elif not isinstance(query, str):
            raise QueryError(f"The query must be a string; got {type(query).__name__}.")
        documents = input["documents"]
        if not isinstance(documents, Sequence) or isinstance(documents, (str, bytes)):
            raise UsageError(
                f"documents must be a list of Documents; got a {type(documents).__name__}."
            )
        for position, document in enumerate(documents):
            if not isinstance(document, Document):
                raise UsageError(
                    f"documents must be Documents; number {position} is a "
                    f"{type(document).__name__}."
                )
        return query, documents

    def _told(self, call: Call, found: Iterable[Document], seconds: float) -> Answer:
        answer = found if isinstance(found, Answer) else call.answer.of(found)
        counters = {"documents_in": len(call.answer), "documents_out": len(answer)}
        told = answer.of(answer)
        told.stages = (*answer.stages, Stage(self.get_name(), seconds, counters))
        return provenance.with_scores(told) if self.with_scores else told
