"""How does a compressor, transformer or chain of someone else take part in a pipeline of ours?

It gets a run of its own, and what it forgets, ids and earlier scores, is put back.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from langchain_core.documents import (
    BaseDocumentCompressor,
    BaseDocumentTransformer,
    Document,
)
from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from typing_extensions import override

from cormorant.errors import ConfigError, UsageError
from cormorant.langchain.calls.blocking import aside, only_sync
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.provenance import Answer, Provenance, attach, journeyed, of
from cormorant.langchain.retrievers.document_compressors.compressor import Call, Compressor
from cormorant.langchain.retrievers.document_compressors.wrapped import Wrapped, compressors_in
from cormorant.langchain.scopes.children import innermost
from cormorant.model import Step

__all__ = ["Foreign", "as_compressor"]


def as_compressor(stage: object) -> Compressor:
    """Anything that makes documents of documents, as a Compressor.

    Raises:
        UsageError: If it is a retriever or a model, or neither a compressor,
            nor a transformer, nor a Runnable.
    """
    if isinstance(stage, Compressor):
        return stage
    if compressors_in(stage):
        return Wrapped(stage=stage, name=_name(stage))
    inner = innermost(stage) if isinstance(stage, Runnable) else stage
    if isinstance(inner, (BaseRetriever, BaseLanguageModel)):
        kind = "retriever" if isinstance(inner, BaseRetriever) else "language model"
        raise ConfigError(
            "A stage must be a document compressor, a document transformer, or a Runnable that "
            f"takes {{'query', 'documents'}}; got a {kind}, {type(inner).__name__}. Are the "
            "arguments in another order?"
        )
    if isinstance(stage, (BaseDocumentCompressor, BaseDocumentTransformer, Runnable)):
        return Foreign(stage=stage, name=_name(stage))
    raise UsageError(
        "A stage must be a document compressor, a document transformer, or a Runnable that takes "
        f"{{'query', 'documents'}}; got {stage!r}."
    )


class Foreign(Compressor):
    """A stage that is not ours.

    Args:
        stage: A BaseDocumentCompressor, a BaseDocumentTransformer, or a Runnable on
            ``{"query", "documents"}``.
    """

    stage: Any

    @override
    def _compress(self, call: Call) -> Answer:
        documents = list(call.answer)
        if isinstance(self.stage, BaseDocumentCompressor):
            keywords = _callbacks(self.stage.compress_documents, call)
            found: Any = self.stage.compress_documents(documents, call.query, **keywords)
        elif isinstance(self.stage, BaseDocumentTransformer):
            found = self.stage.transform_documents(documents)
        else:
            found = self.stage.invoke({"query": call.query, "documents": documents}, call.config)
        return self._reconciled(call, found)

    @override
    async def _acompress(self, call: Call) -> Answer:
        if _only_sync(self.stage):
            return await to_thread(self.stage, self._compress, call)
        documents = list(call.answer)
        if isinstance(self.stage, BaseDocumentCompressor):
            keywords = _callbacks(self.stage.acompress_documents, call)
            found: Any = await self.stage.acompress_documents(documents, call.query, **keywords)
        elif isinstance(self.stage, BaseDocumentTransformer):
            found = await self.stage.atransform_documents(documents)
        else:
            input = {"query": call.query, "documents": documents}
            found = await self.stage.ainvoke(input, call.config)
        return await aside(found, self._reconciled, call, found)

    def _reconciled(self, call: Call, found: Any) -> Answer:
        if not isinstance(found, Sequence) or not all(isinstance(doc, Document) for doc in found):
            raise UsageError(
                f"{self.get_name()} must return a list of Documents; it returned "
                f"{type(found).__name__}."
            )
        taken = Answer.taken(found)
        documents = list(_with_origins(call.answer, taken, self.get_name()))
        return taken.of(documents) if isinstance(found, Answer) else call.answer.of(documents)


def _name(stage: object) -> str:
    return stage.get_name() if isinstance(stage, Runnable) else type(stage).__name__


def _only_sync(stage: object) -> bool:
    """Whether its async method is LangChain's own, which only waits for a thread."""
    if isinstance(stage, BaseDocumentCompressor):
        return type(stage).acompress_documents is BaseDocumentCompressor.acompress_documents
    if isinstance(stage, BaseDocumentTransformer):
        return type(stage).atransform_documents is BaseDocumentTransformer.atransform_documents
    return isinstance(stage, Runnable) and only_sync(stage)


def _callbacks(method: Callable[..., Any], call: Call) -> dict[str, Any]:
    """LangChain's own compressors take callbacks; some of others' do not."""
    if "callbacks" not in inspect.signature(method).parameters:
        return {}
    return {"callbacks": call.config.get("callbacks")}


def _with_origins(before: Answer, after: Answer, who: str) -> Iterable[Document]:
    """Each document with the id and the scores of the one it was made of."""
    origins = _origins(before, after)
    claims = Counter(origins.values())
    for place, document in enumerate(after):
        if place not in origins:
            yield document  # new: a summary, say
            continue
        position = origins[place]
        origin = before[position]
        known = of(document)
        if known == Provenance():
            known = of(origin)
        # The pieces of a document that was split are not that document.
        id = document.id or (origin.id if claims[position] == 1 else None)
        says = f"{who}: rank {position + 1} → {place + 1} of {len(before)}."
        detail = {"by": who, "before": position + 1, "after": place + 1, "of": len(before)}
        score = _told_score(document, origin)
        changes: dict[str, Any] = {}
        if score is not None:
            changes = {"score": score, "rerank_score": score, "method": "rerank"}
        step = Step("compress", kept=True, says=says, value=score, detail=detail)
        bare = document.model_copy(update={"id": id})
        yield journeyed(attach(bare, known), step, **changes)


def _origins(before: Answer, after: Answer) -> dict[int, int]:
    """Place of a document in ``after`` to the position of the one in ``before`` it was made of."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    alike = _Alike(before)
    for place, document in enumerate(after):
        position = next((p for p in alike.of(document, taken) if _is(document, before[p])), None)
        if position is not None:
            found[place] = position
            taken.add(position)
    rest = [position for position in range(len(before)) if position not in taken]
    if len(found) < len(after) and rest:
        parts = _Parts([before[position].page_content for position in rest])
        for place, document in enumerate(after):
            if place not in found:
                inside = (rest[number] for number in parts.holding(document.page_content))
                position = next((p for p in inside if _is_part(document, before[p])), None)
                if position is not None:
                    found[place] = position
    return found


class _Alike:
    """Which documents may another one be? Those of its id, and those of its text."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._by_id: dict[str, deque[int]] = {}
        self._by_text: dict[str, deque[int]] = {}
        for position, document in enumerate(documents):
            self._by_text.setdefault(document.page_content, deque()).append(position)
            if document.id is not None:
                self._by_id.setdefault(document.id, deque()).append(position)

    def of(self, document: Document, taken: AbstractSet[int]) -> Iterator[int]:
        """Positions, ascending, of those that are not taken."""
        ids = deque() if document.id is None else self._by_id.get(document.id, deque())
        texts = self._by_text.get(document.page_content, deque())
        for positions in (ids, texts):
            while positions and positions[0] in taken:
                positions.popleft()
        both = heapq.merge(ids, texts)
        return (position for position in both if position not in taken)


class _Parts:
    """Which texts hold another one? All are searched at once, as one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole = "\0".join(texts)
        self._starts = list(itertools.accumulate((len(text) + 1 for text in texts), initial=0))

    def holding(self, part: str) -> Iterator[int]:
        """Numbers of texts, ascending; where the part has a NUL, some that do not hold it."""
        at = self._whole.find(part) if part else -1
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            # A part with a NUL may have been found across two texts, and be in this one later.
            at = self._whole.find(part, at + 1 if "\0" in part else self._starts[number + 1])


def _is(document: Document, origin: Document) -> bool:
    if document.id is not None and origin.id is not None:
        return document.id == origin.id
    same = document.page_content == origin.page_content
    return same and origin.metadata.items() <= document.metadata.items()


def _is_part(document: Document, origin: Document) -> bool:
    if document.id is not None and document.id != origin.id:
        return False
    part = bool(document.page_content) and document.page_content in origin.page_content
    return part and origin.metadata.items() <= document.metadata.items()


def _told_score(document: Document, origin: Document) -> float | None:
    """Hosted rerankers' LangChain classes write their score into the metadata."""
    score = document.metadata.get("relevance_score")
    if isinstance(score, (int, float)) and origin.metadata.get("relevance_score") != score:
        return float(score)
    return None
