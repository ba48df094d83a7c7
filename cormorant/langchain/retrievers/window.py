"""What stands around the passage that was found?"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import ScopeError, UsageError
from cormorant.langchain.calls import steps as stepping
from cormorant.langchain.calls.steps import Call, Steps, in_thread, on
from cormorant.langchain.provenance import Answer, journeyed, of
from cormorant.langchain.retrievers.asking.chain import check_retriever
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of, takes
from cormorant.langchain.retrievers.parent_document_retriever import ParentDocumentRetriever
from cormorant.langchain.retrievers.parents.families import Families, Found, adopted
from cormorant.langchain.retrievers.parents.kin import plain
from cormorant.langchain.retrievers.sentences import SentenceSplitter, sentence_spans
from cormorant.langchain.scopes.children import judge
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Step
from cormorant.ranges import check_whole

__all__ = ["PreviousNextRetriever", "SentenceWindowRetriever"]

_NUMBERED: Final = re.compile(r"(.+)#(\d+)", re.DOTALL | re.ASCII)
_START: Final = "start_index"  # LangChain's name for where a chunk begins


_UNJUDGED: Final = (
    "Chunks before and after were not joined: it cannot be told whether the filter {!r} admits "
    "them. Use a filter on metadata, without $text."
)


class _Window(NamedTuple):
    """From where to where, and what was found in it: (place, child), best first."""

    start: int
    end: int
    hits: list[tuple[int, Document]]


class SentenceWindowRetriever(ParentDocumentRetriever):
    """Searches sentences, returns each with the sentences around it, cut from its document.

    ``k`` counts windows. Windows of one document that touch become one.

    Args:
        window: Sentences before and after the one that was found.
        child_splitter: Makes what is searched; :class:`SentenceSplitter` by default.
        **values: Those of :class:`ParentDocumentRetriever`.

    Raises:
        UsageError: On an argument nobody reads, or stores that do not fit.
        QueryError: On a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> vs = Cormorant(DeterministicFakeEmbedding(size=8))
        >>> retriever = SentenceWindowRetriever(vectorstore=vs, window=1, search_type="text")
        >>> _ = retriever.add_documents([Document("It rained. Birds fish. They dry. We left.")])
        >>> [found.page_content for found in retriever.invoke("fishing")]
        ['It rained. Birds fish. They dry.']
        >>> vs.close()
    """

    window: int = defaults.SENTENCE_WINDOW

    def __init__(self, **values: Any) -> None:
        _check_count("window", values.get("window", defaults.SENTENCE_WINDOW))
        values.setdefault("child_splitter", SentenceSplitter())
        super().__init__(**values)

    @override
    def _chosen(self, families: Families, wanted: int) -> Steps[list[Document]]:
        """Windows around the best children, no more of them than ``wanted`` windows need."""
        # Beside the event loop always: a single document may be a long book.
        chosen: list[Document] = yield in_thread(lambda: self._around(list(families), wanted))
        return chosen

    def _around(self, found: Sequence[Found], wanted: int) -> list[Document]:
        spans = [(number, s) for number, family in enumerate(found) for s in self._spans(family)]
        spans.sort(key=lambda pair: pair[1].hits[0][0])
        windows: list[list[_Window]] = [[] for _ in found]
        done = 0
        while done < len(spans) and (lacking := wanted - sum(map(len, windows))):
            # A span makes one window at most: so many can all be taken before counting again.
            more: dict[int, list[_Window]] = {}
            for number, span in spans[done : done + lacking]:
                more.setdefault(number, []).append(span)
            for number, some in more.items():
                windows[number] = _joined([*windows[number], *some])
            done += lacking
        chosen: list[tuple[int, Document]] = []
        for family, some in zip(found, windows, strict=True):
            chosen.extend(self._windows(family, some))
        return [document for _, document in sorted(chosen, key=lambda pair: pair[0])]

    @override
    def _leaves_out(self, child: BaseRetriever) -> bool:
        return False  # a document may have many windows

    def _spans(self, family: Found) -> Iterable[_Window]:
        """For each child where its window lies."""
        text = "" if family.parent is None else family.parent.page_content
        sentences = sentence_spans(text)
        starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
        for place, child in family.children:
            span = _span(child, text)
            if span is None:  # not word for word in the document: a summary, a question
                yield _Window(0, len(text), [(place, child)])
                continue
            first = max(0, bisect_right(ends, span[0]) - self.window)
            last = min(len(sentences), bisect_left(starts, span[1]) + self.window) - 1
            yield _Window(sentences[first][0], sentences[last][1], [(place, child)])

    def _windows(self, family: Found, windows: Iterable[_Window]) -> Iterable[tuple[int, Document]]:
        if family.parent is None:
            yield family.place, family.told()
            return
        parent = plain(str(family.key), family.parent)
        text = parent.page_content
        for start, end, children in windows:
            cut = parent.model_copy(
                update={
                    "id": f"{family.key}[{start}:{end}]",
                    "page_content": text[start:end],
                    "metadata": {**parent.metadata, _START: start},
                }
            )
            what = f"Characters {start} to {end} of {family.key!r}, around"
            yield children[0][0], adopted(cut, children, what)


class PreviousNextRetriever(Retriever):
    """Returns the chunks another retriever finds, each with those before and after it.

    Chunks are numbered by their ids: ``report#4`` stands between ``report#3`` and ``report#5``,
    as the command line, :class:`ParentDocumentRetriever` and the documents you number yourself
    have it. A chunk with another id is returned as it is. Chunks that touch become one.

    The scope and a call's filter hold for neighbours too: one they exclude ends the row. Where it
    cannot be told whether a filter admits them (``$text``, another store's language), none are
    joined, and ``degraded`` says so. A filter the retriever itself was made with is about what is
    found, and does not reach neighbours.

    Args:
        retriever: Finds chunks.
        vectorstore: Where their neighbours are looked up, by ``get_by_ids``.
        before, after: How many neighbours, 1 each by default.
        k: Chunks wanted, before they are joined; by default what the retriever brings.
        separator: Put between chunks, unless both say where in the document they begin
            (``start_index``): then what they share is there once.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: On an argument nobody reads.
        QueryError: On a value outside its range.
    """

    retriever: RetrieverLike
    vectorstore: VectorStore
    before: int = defaults.NEIGHBOURS
    after: int = defaults.NEIGHBOURS
    separator: str = "\n"
    k: int | None = None

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    def __init__(self, **values: Any) -> None:
        for name in ("before", "after"):
            _check_count(name, values.get(name, defaults.NEIGHBOURS))
        if values.get("k") is not None:
            check_k(values["k"])
        if isinstance(values.get("retriever"), Runnable):  # what is none, the field's type refuses
            check_retriever(values["retriever"])
        super().__init__(**values)

    @override
    def accepts(self, name: str) -> bool:
        """``k`` and ``filter`` reach the retriever; ``k`` counts chunks before they are joined."""
        return super().accepts(name) and (name == "with_scores" or takes(self.retriever, name))

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        return stepping.run(self._search(query, run, asked))

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Iterable[Document]:
        return await stepping.arun(self._search(query, run, asked))

    def _search(self, query: str, run: Run, asked: Mapping[str, Any]) -> Steps[Answer]:
        asked = {"k": self.k, **asked}
        answer: Answer = yield Call(
            lambda: run.call(self.retriever, query, tag="chunks", **asked),
            lambda: run.acall(self.retriever, query, tag="chunks", **asked),
        )
        found = [(place, chunk, _number(chunk)) for place, chunk in enumerate(answer, start=1)]
        known = {chunk.id: chunk for _, chunk, number in found if number is not None}
        around = [
            f"{source}#{number}"
            for _, _, (source, at) in ((p, c, n) for p, c, n in found if n is not None)
            for number in range(max(0, at - self.before), at + self.after + 1)
        ]
        missing = [id for id in dict.fromkeys(around) if id not in known]
        if missing:
            neighbours = yield on(self._view(run), "get_by_ids", missing)
            filter = asked.get("filter")
            if filter is not None:
                admits = judge(filter)
                if admits is None and neighbours:
                    answer = answer.degrading(_UNJUDGED.format(filter))
                # A filter may be a function of the caller's: not on the event loop.
                neighbours = yield in_thread(partial(_admitted, neighbours, admits))
            known.update({each.id: each for each in neighbours})
        chosen: list[tuple[int, Document]] = [(p, c) for p, c, number in found if number is None]
        chosen.extend(self._runs(found, known))
        return answer.of(document for _, document in sorted(chosen, key=lambda pair: pair[0]))

    def _view(self, run: Run) -> VectorStore:
        scope = scope_of(run.config)
        if not scope:
            return self.vectorstore
        if not isinstance(self.vectorstore, Cormorant):
            raise ScopeError(
                f"The request has a scope, and {type(self.vectorstore).__name__} cannot see it, so "
                "neighbours from outside would be returned. Use a Cormorant."
            )
        return self.vectorstore.scope(**scope)

    def _runs(
        self,
        found: Sequence[tuple[int, Document, tuple[str, int] | None]],
        known: Mapping[str | None, Document],
    ) -> Iterable[tuple[int, Document]]:
        """The chunks in unbroken rows, each row one document."""
        spans: dict[str, list[_Window]] = {}
        for place, chunk, number in found:
            if number is None:
                continue
            source, at = number
            first = last = at
            while at - first < self.before and f"{source}#{first - 1}" in known:
                first -= 1
            while last - at < self.after and f"{source}#{last + 1}" in known:
                last += 1
            spans.setdefault(source, []).append(_Window(first, last + 1, [(place, chunk)]))
        for source, some in spans.items():
            for first, end, hits in _joined(some):
                chunks = [known[f"{source}#{number}"] for number in range(first, end)]
                place, best = hits[0]
                if len(chunks) == 1:
                    yield place, best
                    continue
                yield place, self._as_one(source, first, end - 1, chunks, best)

    def _as_one(
        self, source: str, first: int, last: int, chunks: Sequence[Document], best: Document
    ) -> Document:
        text = chunks[0].page_content
        for before, chunk in itertools.pairwise(chunks):
            text += _what_follows(before, chunk, self.separator)
        metadata = dict(best.metadata)
        if _START in chunks[0].metadata:
            metadata[_START] = chunks[0].metadata[_START]
        whole = best.model_copy(
            update={"id": f"{source}#{first}-{last}", "page_content": text, "metadata": metadata}
        )
        says = f"{best.id} with its neighbours from {first} to {last}."
        return journeyed(whole, Step("neighbours", kept=True, says=says, value=of(best).score))


def _admitted(
    neighbours: Iterable[Document], admits: Callable[[Document], bool] | None
) -> list[Document]:
    return [each for each in neighbours if admits is not None and admits(each)]


def _what_follows(before: Document, chunk: Document, separator: str) -> str:
    """What a chunk adds to the one before it."""
    start, next_start = before.metadata.get(_START), chunk.metadata.get(_START)
    if isinstance(start, int) and isinstance(next_start, int):
        shared = start + len(before.page_content) - next_start
        same = 0 < shared <= min(len(before.page_content), len(chunk.page_content))
        if same and before.page_content.endswith(chunk.page_content[:shared]):
            return chunk.page_content[shared:]
    return separator + chunk.page_content


def _number(chunk: Document) -> tuple[str, int] | None:
    """The document and place that a chunk's id names."""
    match = _NUMBERED.fullmatch(chunk.id or "")
    if match is None or str(int(match[2])) != match[2]:
        return None
    return match[1], int(match[2])


def _span(child: Document, text: str) -> tuple[int, int] | None:
    """Where a child stands in its document."""
    content = child.page_content
    start = child.metadata.get(_START)
    if not isinstance(start, int) or start < 0 or not text.startswith(content, start):
        start = text.find(content)
    return None if start < 0 or not content.strip() else (start, start + len(content))


def _joined(windows: Iterable[_Window]) -> list[_Window]:
    """Windows that touch as one, in order."""
    joined: list[_Window] = []
    for window in sorted(windows, key=lambda window: window[:2]):
        last = joined[-1] if joined else None
        if last is not None and window.start <= last.end:
            hits = sorted([*last.hits, *window.hits], key=lambda hit: hit[0])
            joined[-1] = _Window(last.start, max(last.end, window.end), hits)
        else:
            joined.append(window)
    return joined


def _check_count(name: str, value: object) -> None:
    check_whole(name, value, 0)
    if value > 1000:  # type: ignore[operator]
        raise UsageError(f"{name} is {value}; more than 1000 is no window. Take the parents.")
