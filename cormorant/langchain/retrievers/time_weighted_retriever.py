"""What is relevant, and was thought of lately?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import CormorantError, RecordError, UsageError
from cormorant.langchain.documents import listed_documents
from cormorant.langchain.filtering import both
from cormorant.langchain.provenance import Answer, journeyed, of
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, scope_of
from cormorant.langchain.retrievers.rescoring.accesses import Accesses
from cormorant.langchain.retrievers.rescoring.memories import (
    ACCESSED,
    CREATED,
    INDEX,
    Memories,
    Salient,
    index_of,
    judge,
)
from cormorant.langchain.retrievers.rescoring.moments import moment
from cormorant.langchain.retrievers.rescoring.relevance import StoreRelevance, afound, found
from cormorant.langchain.retrievers.vectorstores import check_vectorstore
from cormorant.langchain.vectorstore import Cormorant
from cormorant.model import Step
from cormorant.ranges import check_number, is_number
from cormorant.store.intake import check_ids

__all__ = ["TimeWeightedVectorStoreRetriever"]

logger = logging.getLogger(__name__)

_HOUR_S: Final = 3600


def local_now() -> datetime:
    """Now, without an offset: what langchain-classic's memories carry."""
    return datetime.now()  # noqa: DTZ005


def _get_hours_passed(time: datetime, ref_time: datetime) -> float:
    """Hours from ``ref_time`` to ``time``; one without an offset is local time."""
    return (time.astimezone(UTC) - ref_time.astimezone(UTC)).total_seconds() / _HOUR_S


class TimeWeightedVectorStoreRetriever(Retriever):
    """Ranks memories by relevance + (1 − decay_rate)^hours since they were last returned.

    Add documents through it. Besides what the store finds, the ones added last are candidates;
    what is returned counts as accessed now.

    Over a Cormorant the memories are the store's documents, and access times are kept in it, per
    scope: all of it is there after a restart and in other processes. Over another store
    ``memory_stream`` holds them, as in langchain-classic; a memory that it does not know, after a
    restart, is taken as the store returns it.

    Args:
        vectorstore: Any vector store.
        search_kwargs: Of its search; 100 candidates by default.
        memory_stream: Documents, the last added last; over stores other than Cormorant.
        decay_rate: What of its recency a memory loses in an hour, in [0, 1].
        k: Documents wanted, 4 by default.
        other_score_keys: Metadata fields with numbers that are added, such as ``importance``.
        default_salience: Relevance of the memories that the store did not find; None: 0.
        recent: How many of the memories added last are candidates whatever the question is;
            None: ``k``.
        touch: Whether what is returned counts as accessed. Over a Cormorant that is a write.
        clock: Gives the time now.

    A call takes ``k`` and ``filter``, which hold for the memories added last too.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from cormorant.langchain import Cormorant
        >>> with Cormorant(DeterministicFakeEmbedding(size=8)) as vs:
        ...     retriever = TimeWeightedVectorStoreRetriever(vectorstore=vs, k=1)
        ...     _ = retriever.add_documents([Document(page_content="a fish")])
        ...     [doc.page_content for doc in retriever.invoke("a fish")]
        ['a fish']
    """

    vectorstore: VectorStore
    search_kwargs: dict[str, Any] = Field(
        default_factory=lambda: {"k": defaults.TIME_WEIGHTED_CANDIDATES}
    )
    memory_stream: list[Document] = Field(default_factory=list)
    decay_rate: float = defaults.DECAY_RATE
    k: int = defaults.LANGCHAIN_K
    other_score_keys: list[str] = Field(default_factory=list)
    default_salience: float | None = None
    recent: int | None = None
    touch: bool = True
    clock: Callable[[], datetime] = local_now

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")

    def __init__(self, **values: Any) -> None:
        store = check_vectorstore(values.get("vectorstore"))
        check_k(values.get("k", defaults.LANGCHAIN_K))
        if values.get("recent") is not None and values["recent"] != 0:
            check_k(values["recent"], "recent")
        check_number("decay_rate", values.get("decay_rate", defaults.DECAY_RATE), 0, 1)
        if values.get("memory_stream") and isinstance(store, Cormorant):
            raise UsageError(
                "Over a Cormorant the store keeps the memories; add them with add_documents "
                "instead of giving a memory_stream."
            )
        super().__init__(**values)

    # Adding and deleting

    def add_documents(self, documents: Iterable[Document], **kwargs: Any) -> list[str]:
        """Add memories.

        Args:
            documents: Copied; what they say of ``created_at`` and ``last_accessed_at`` stays.
            **kwargs: ``current_time``, and those of the store's ``add_documents``.

        Returns:
            Their ids.
        """
        memories, kwargs = self._memories(documents, kwargs)
        return self._added(
            memories, self.vectorstore.add_documents(self._stored(memories), **kwargs)
        )

    async def aadd_documents(self, documents: Iterable[Document], **kwargs: Any) -> list[str]:
        """Like :meth:`add_documents`, without holding the event loop."""
        memories, kwargs = await run_in_executor(None, self._memories, documents, kwargs)
        ids = await self.vectorstore.aadd_documents(self._stored(memories), **kwargs)
        return self._added(memories, ids)

    def delete(self, ids: Iterable[str]) -> bool | None:
        """Delete memories, and when they were accessed.

        Over a Cormorant the times that its scope sees go too: those of the whole store if it has
        none. Deleting from the store itself leaves them, without a word of the memory in them.

        Returns:
            What the store's ``delete`` does.
        """
        wanted = check_ids(ids)
        return self._deleted(wanted, self.vectorstore.delete(wanted))

    async def adelete(self, ids: Iterable[str]) -> bool | None:
        """Like :meth:`delete`, without holding the event loop."""
        wanted = check_ids(ids)
        done = await self.vectorstore.adelete(wanted)
        return await run_in_executor(None, self._deleted, wanted, done)

    def _deleted(self, ids: Sequence[str], done: bool | None) -> bool | None:  # noqa: FBT001 - handed on
        if isinstance(self.vectorstore, Cormorant):
            Accesses(self.vectorstore.store, INDEX).forget(ids)
        self.memory_stream = Memories(self.memory_stream).without(ids)
        return done

    def _memories(
        self, documents: Iterable[Document], kwargs: Mapping[str, Any]
    ) -> tuple[list[Document], dict[str, Any]]:
        rest = {name: value for name, value in kwargs.items() if name != "current_time"}
        now = kwargs.get("current_time") or self.clock()
        first = self._next_index()
        memories = [deepcopy(document) for document in listed_documents(documents)]
        for number, memory in enumerate(memories, start=first):
            for name in (ACCESSED, CREATED):
                memory.metadata.setdefault(name, now)
            memory.metadata[INDEX] = number
        return memories, rest

    def _next_index(self) -> int:
        if isinstance(self.vectorstore, Cormorant):
            return Accesses(self.vectorstore.store, INDEX).next_index()
        return Memories(self.memory_stream).next_index()

    def _stored(self, memories: Sequence[Document]) -> list[Document]:
        """As the store takes them: moments with their offset, or seconds where there is no type."""
        stored = []
        for memory in memories:
            metadata = dict(memory.metadata)
            for name in (ACCESSED, CREATED):
                at = metadata[name]
                if isinstance(at, datetime):
                    try:
                        aware = at.astimezone(UTC)
                    except (ValueError, OverflowError) as error:  # the first day of the year 1
                        raise RecordError(
                            f"{name} must be a moment that UTC has a year for; got {at!r}."
                        ) from error
                    kept = isinstance(self.vectorstore, Cormorant)
                    metadata[name] = aware if kept else aware.timestamp()
            stored.append(memory.model_copy(update={"metadata": metadata}))
        return stored

    def _added(self, memories: Sequence[Document], ids: list[str]) -> list[str]:
        """Remembered only once the store has them."""
        if not isinstance(self.vectorstore, Cormorant):
            for memory, id in zip(memories, ids, strict=False):
                memory.id = id
            kept = Memories(self.memory_stream).without(ids)
            self.memory_stream = [*kept, *memories]
        return ids

    # Scoring

    def _document_get_date(self, field: str, document: Document) -> datetime:
        """The moment under a field; now, if there is none."""
        at = document.metadata.get(field)
        if isinstance(at, datetime):
            return at.astimezone(UTC)  # without an offset it is local, as datetime.now() gives it
        return moment(at) or self.clock().astimezone(UTC)

    def _get_combined_score(
        self, document: Document, vector_relevance: float | None, current_time: datetime
    ) -> float:
        """Recency, the other score keys and relevance, added up."""
        accessed = self._document_get_date(ACCESSED, document)
        hours = max(0.0, _get_hours_passed(current_time, accessed))
        score = float((1.0 - self.decay_rate) ** hours)
        for name in self.other_score_keys:
            value = document.metadata.get(name)
            if value is None:
                continue
            if not is_number(value):
                raise UsageError(
                    f"other_score_keys names {name!r}, and a document has {value!r} there; "
                    "it must be a number."
                )
            score += value
        return score + (vector_relevance or 0.0)

    def get_salient_docs(self, query: str) -> dict[int, tuple[Document, float]]:
        """What the store finds, by the number each memory has: the memory and its relevance."""
        scored, _ = found(self.vectorstore, query, self.search_kwargs)
        return self._by_index(scored)

    async def aget_salient_docs(self, query: str) -> dict[int, tuple[Document, float]]:
        """Like :meth:`get_salient_docs`, without holding the event loop."""
        scored, _ = await afound(self.vectorstore, query, self.search_kwargs)
        return self._by_index(scored)

    def _by_index(
        self, scored: Sequence[tuple[Document, float]]
    ) -> dict[int, tuple[Document, float]]:
        memories = Memories(self.memory_stream)
        return {
            index_of(each): (memories.memory_of(each), relevance)
            for each, relevance in scored
            if index_of(each) >= 0
        }

    # Finding

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        child = self._child()
        answer = run.call(child, query, tag="vectorstore", filter=asked.get("filter"))
        return self._found(answer, run, asked)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        child = self._child()
        answer = await run.acall(child, query, tag="vectorstore", filter=asked.get("filter"))
        return await run_in_executor(None, self._found, answer, run, asked)

    def _child(self) -> RetrieverLike:
        if isinstance(self.vectorstore, Cormorant):
            return self.vectorstore.as_retriever(search_kwargs=dict(self.search_kwargs))
        return StoreRelevance(vectorstore=self.vectorstore, search_kwargs=dict(self.search_kwargs))

    def _found(self, answer: Answer, run: Run, asked: Mapping[str, Any]) -> Answer:
        k = asked.get("k", self.k)
        recent = k if self.recent is None else self.recent
        if not isinstance(self.vectorstore, Cormorant):
            memories, says = self._listed(answer, recent, run, asked.get("filter"))
            ranked, now = self._ranked(memories, k)
            if self.touch:
                Memories(self.memory_stream).touch([document for _, document in ranked], now)
            return self._told(answer, ranked, now, says)
        scope = scope_of(run.config)
        store = self.vectorstore.scope(**scope) if scope else self.vectorstore
        accesses = Accesses(store.store, INDEX)
        ranked, now = self._ranked(self._kept(answer, recent, accesses, asked.get("filter")), k)
        says = []
        if self.touch and ranked:
            try:
                accesses.touch([document for _, document in ranked], now)
            except CormorantError as error:  # read-only, locked: what was found is as good
                says.append(f"That these were accessed was not kept: {error}")
                logger.warning(says[-1])
        return self._told(answer, ranked, now, says)

    def _kept(self, answer: Answer, recent: int, accesses: Accesses, filter: Any) -> Salient:
        """The store's memories, with the times they were accessed."""
        candidates = {each.id: (each, of(each).relevance) for each in answer}
        fixed = self.search_kwargs.get("filter")
        for each in accesses.latest(recent, _both(fixed, filter)):
            candidates.setdefault(each.id, (each, self.default_salience))
        times = accesses.times([str(id) for id in candidates])
        for id, (each, _) in candidates.items():
            created = moment(each.metadata.get(CREATED))
            at = times.get(str(id))
            if at is None or (created is not None and at < created):
                # Never asked for; or an earlier memory of this id was, which is gone.
                at = moment(each.metadata.get(ACCESSED)) or created
            if at is not None:
                each.metadata[ACCESSED] = at
        return list(candidates.values())

    def _listed(
        self, answer: Answer, recent: int, run: Run, filter: Any
    ) -> tuple[Salient, list[str]]:
        """The memories of ``memory_stream``, those added last that the store still has too."""
        candidates, strange = Memories(self.memory_stream).candidates(
            answer,
            recent,
            self.vectorstore,
            judge(_both(self.search_kwargs.get("filter"), filter), scope_of(run.config)),
            self.default_salience,
        )
        says = []
        if strange:
            says.append(f"{strange} documents were not added through the retriever: left out.")
        return candidates, says

    def _ranked(self, memories: Salient, k: int) -> tuple[list[tuple[float, Document]], datetime]:
        now = self.clock()
        scored = []
        for document, relevance in memories:
            score = self._get_combined_score(document, relevance, now)
            age = _get_hours_passed(now, self._document_get_date(ACCESSED, document))
            says = (
                f"Relevance {relevance or 0:.4f}, last accessed {max(0.0, age):.1f} hours ago: "
                f"score {score:.4f}."
            )
            step = Step("time", kept=True, says=says, value=score)
            told = journeyed(document, step, score=score, relevance=relevance, method="time")
            scored.append((score, told))
        scored.sort(key=lambda each: -each[0])
        return scored[:k], now.astimezone(UTC) if isinstance(self.vectorstore, Cormorant) else now

    def _told(
        self,
        answer: Answer,
        ranked: Sequence[tuple[float, Document]],
        now: datetime,
        says: Sequence[str],
    ) -> Answer:
        if self.touch:
            for _, document in ranked:
                document.metadata[ACCESSED] = now
        told = answer.of(document for _, document in ranked).degrading(*says)
        told.exact = False
        return told


def _both(first: Any, second: Any) -> Any:
    return both(first, second) if first is not None and second is not None else first or second
