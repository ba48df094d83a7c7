"""Whatever legs do, a composite returns documents of the scope, ranked, and names what is missing.

Or it raises an error of the package. Legs fail, are late, and return rubbish, in any combination.
"""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import run_in_executor

from cormorant.errors import CormorantError
from cormorant.langchain import provenance
from cormorant.langchain.provenance import Answer, Provenance, attach
from cormorant.langchain.retrievers import (
    ContextualCompressionRetriever,
    DecompositionRetriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    with_deadline,
)
from cormorant.model import Leg, Result

SCOPE: Any = {"configurable": {"scope": {"tenant": "acme"}}}

_scores = st.one_of(st.floats(), st.none(), st.integers(), st.text(max_size=2), st.booleans())
_written = st.recursive(
    st.one_of(_scores, st.just({})),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    "score",
                    "relevance",
                    "legs",
                    "contributions",
                    "journey",
                    "degraded",
                    "rank",
                    "retrieval_method",
                    "fusion_score",
                    "stage",
                    "says",
                    "kept",
                    "vector",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    metadata: dict[str, Any] = {"tenant": "acme"}
    if draw(st.integers(0, 9)) == 0:
        metadata = draw(st.sampled_from([{"tenant": "rival"}, {}, {"tenant": None}]))
    if draw(st.booleans()):
        metadata = {**metadata, "_cormorant": draw(_written)}
    id = draw(st.one_of(st.none(), st.sampled_from("abc")))
    document = Document(
        id=id, page_content=draw(st.sampled_from(["x", "y", ""])), metadata=metadata
    )
    if draw(st.booleans()):
        score = draw(st.sampled_from([math.nan, math.inf, -math.inf, 0.5, None]))
        seen = {"text": Leg(score=math.nan, rank=None)} if draw(st.booleans()) else {}
        document = attach(document, Provenance(score=score, relevance=score, legs=seen))
    return document


# An executor makes a RuntimeError of StopIteration.
RAISED = (ValueError, KeyError, TimeoutError, ConnectionError, StopIteration, RuntimeError)
_faults = st.sampled_from([kind("bad") for kind in RAISED])
_rubbish: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=3),
    st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
    st.lists(st.one_of(st.none(), st.integers(), documents()), min_size=1, max_size=3).filter(
        lambda drawn: not all(isinstance(each, Document) for each in drawn)  # that would be sound
    ),
    st.builds(Answer, st.lists(st.just("no document"), min_size=1, max_size=2)),
    st.tuples(documents()),
)
_sound = st.lists(documents(), max_size=4)
_legs = st.lists(
    st.one_of(
        st.tuples(st.just("sound"), _sound),
        st.tuples(st.just("sound"), _sound),
        st.tuples(st.just("rubbish"), _rubbish),
        st.tuples(st.just("fails"), _faults),
        st.tuples(st.just("late"), st.none()),
        st.tuples(st.just("cancels"), st.none()),
    ),
    min_size=2,
    max_size=3,
)


class Legs:
    """Runnables that do what was drawn."""

    def __init__(self, drawn: list[tuple[str, Any]]) -> None:
        self.let_go = threading.Event()
        self.made = [self._made(kind, what) for kind, what in drawn]

    def _made(self, kind: str, what: Any) -> Any:
        def answer(query: str) -> Any:
            if kind == "fails":
                raise what
            if kind == "late":
                self.let_go.wait(20)
            if kind == "cancels":
                raise asyncio.CancelledError
            return what

        async def aanswer(query: str) -> Any:
            if kind == "late":
                await asyncio.sleep(20)
            return answer(query)

        leg: Any = RunnableLambda(answer, aanswer)
        return with_deadline(leg, 0.02) if kind == "late" else leg


def composites(legs: list[Any], how: Any) -> list[Any]:
    several = [kind(retrievers=legs, on_error=how) for kind in (EnsembleRetriever, MergerRetriever)]
    hybrid = HybridRetriever(vector_retriever=legs[0], keyword_retriever=legs[1], on_error=how)
    questions = RunnableLambda(lambda asked: ["one?", "two?"])
    multi = MultiQueryRetriever(retriever=legs[0], llm_chain=questions, on_error=how)
    rewriting = DecompositionRetriever(retriever=legs[1], llm_chain=legs[0], on_error=how)
    reranking = ContextualCompressionRetriever(
        base_compressor=legs[0], base_retriever=legs[1], on_error=how
    )
    return [*several, hybrid, multi, rewriting, reranking]


class Hearing(BaseCallbackHandler):
    def __init__(self) -> None:
        self.said: list[str] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.said.extend(data)


def judged(result: Result, legs: list[tuple[str, Any]], of_all: int, said: list[str]) -> None:
    assert [hit.rank for hit in result] == list(range(1, len(result) + 1))
    assert all(hit.metadata.get("tenant") == "acme" for hit in result)
    assert all("_cormorant" not in hit.metadata for hit in result)
    ids = [hit.id for hit in result if hit.id]
    assert len(ids) == len(set(ids)), "each document once"
    scores = [hit.score for hit in result if not math.isnan(hit.score)]
    assert scores == sorted(scores, reverse=True)
    missing = [kind for kind, _ in legs[:of_all] if kind != "sound"]
    named = [says for says in result.degraded if "was left out" in says]
    assert len(named) == len(missing)
    assert result.complete or missing
    assert set(named) <= set(said)


async def asked(retriever: Any, *, sync: bool, config: Any) -> Result:
    if sync:
        # Not asyncio's to_thread: before Python 3.12 a StopIteration in it is never heard of.
        found: Result = await run_in_executor(None, retriever.retrieve, "q", config=config)
        return found
    return await retriever.aretrieve("q", config=config)


@pytest.mark.parametrize("sync", [True, False])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(legs=_legs)
@example(legs=[("late", None), ("sound", [Document("x", metadata={"tenant": "acme"})])])
@example(legs=[("cancels", None), ("sound", [])])
def test_documents_of_the_scope_ranked_and_what_is_missing_named(
    sync: bool, legs: list[tuple[str, Any]]
) -> None:
    async def run() -> None:
        drawn = Legs(legs)
        try:
            for number, composite in enumerate(composites(drawn.made, "degrade")):
                hearing = Hearing()
                config = {**SCOPE, "callbacks": [hearing]}
                try:
                    result = await asked(composite, sync=sync, config=config)
                except CormorantError:
                    continue  # all legs failed, or one would have left the scope
                except RAISED:
                    failing = [kind for kind, _ in legs if kind == "fails"]
                    if not failing:
                        raise
                    continue  # the error of the last one standing, as it is
                if number < 3:
                    judged(result, legs, (3, 3, 2)[number], hearing.said)
                assert all(hit.metadata.get("tenant") == "acme" for hit in result)
        finally:
            drawn.let_go.set()

    asyncio.run(run())


@settings(max_examples=150, deadline=None)
@given(written=_written)
def test_what_metadata_claims_is_read_or_ignored(written: Any) -> None:
    answer = Answer.taken([Document("x", metadata={"_cormorant": written})])
    (hit,) = provenance.result(provenance.with_scores(answer))
    assert isinstance(hit.score, float)
    assert answer[0].metadata == {}
    assert all(isinstance(says, str) for says in answer.degraded)
