"""Many documents that nothing reranked are remarked on: in the plan, and once in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from cormorant import defaults
from cormorant.langchain import Cormorant, large_k
from cormorant.langchain.document_transformers import LongContextReorder
from cormorant.langchain.retrievers import (
    BM25Retriever,
    ContextualCompressionRetriever,
    MergerRetriever,
    with_deadline,
)
from cormorant.langchain.retrievers.document_compressors import CrossEncoderReranker

MANY = defaults.LARGE_K + 1


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    large_k._log_once.cache_clear()
    with Cormorant.from_texts([f"fish {n}" for n in range(30)], None) as store:
        yield store


class ByLength(BaseCrossEncoder):
    def score(self, text_pairs: Any) -> list[float]:
        return [float(len(passage)) for _, passage in text_pairs]


def remarks(result: Any) -> list[str]:
    assert result.degraded == (), "nothing was left out"
    return [says for says in result.plan if says.startswith("large k")]


@pytest.mark.parametrize("sync", [True, False])
async def test_a_large_k_is_remarked_on(
    vs: Cormorant, caplog: pytest.LogCaptureFixture, sync: bool
) -> None:
    words = vs.as_retriever(search_type="text")
    for retriever in (words, BM25Retriever(vectorstore=vs), MergerRetriever(retrievers=[words])):
        caplog.clear()
        for _ in range(3):
            if sync:
                result = retriever.retrieve("fish", k=MANY)
            else:
                result = await retriever.aretrieve("fish", k=MANY)
            assert len(remarks(result)) == 1
            assert f"{MANY} documents" in remarks(result)[0]
        said = [each for each in caplog.records if each.levelno == logging.WARNING]
        assert len(said) == 1, "once, however often it is asked"


def test_a_small_one_is_not(vs: Cormorant) -> None:
    assert remarks(vs.as_retriever(search_type="text").retrieve("fish", k=MANY - 1)) == []


def test_candidates_for_a_stage_that_keeps_few_are_not(
    vs: Cormorant, caplog: pytest.LogCaptureFixture
) -> None:
    words = vs.as_retriever(search_type="text", k=MANY)
    for legs in ([words, words], [words.with_retry(), with_deadline(words, 20)]):
        assert remarks(MergerRetriever(retrievers=legs).retrieve("fish", k=3)) == []
    assert caplog.records == []


@pytest.mark.parametrize(
    "stage", [CrossEncoderReranker(model=ByLength(), top_n=MANY), LongContextReorder()]
)
def test_what_was_reranked_or_reordered_is_not(vs: Cormorant, stage: Any) -> None:
    words = vs.as_retriever(search_type="text", k=MANY)
    retriever = ContextualCompressionRetriever(base_compressor=stage, base_retriever=words)
    result = retriever.retrieve("fish")
    assert len(result) == MANY
    assert remarks(result) == []
