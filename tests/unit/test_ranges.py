"""Is this value a number, and in its range? The same answer at every door."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from cormorant import Query
from cormorant.errors import ConfigError, QueryError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import BM25Retriever, EnsembleRetriever
from cormorant.ranges import check_number, check_whole, is_number, is_whole

NO_NUMBERS = [True, None, "1", math.nan, math.inf, -math.inf, 10**400, 1j, np.bool_(True), [1]]


@pytest.mark.parametrize("value", [1, 0, 0.5, np.int64(1), np.float32(0.5), 10**300])
def test_numbers(value):
    assert is_number(value, 0)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
def test_what_is_no_number(value):
    assert not is_number(value)


@pytest.mark.parametrize("value", [*NO_NUMBERS[:6], 1.0, np.float64(1), 0], ids=str)
def test_what_is_no_whole_number_of_at_least_1(value):
    assert not is_whole(value, 1)


def test_the_error_says_what_is_accepted():
    with pytest.raises(
        QueryError, match=re.escape("k must be a whole number of at least 1; got 0.")
    ):
        check_whole("k", 0)
    with pytest.raises(ConfigError, match=re.escape("b must be a number from 0 to 1; got 1.5.")):
        check_number("b", 1.5, 0, 1, error=ConfigError)
    with pytest.raises(QueryError, match=re.escape("c must be a number of at least 0; got nan.")):
        check_number("c", math.nan, 0)


def test_numpy_numbers_are_taken_by_the_engine_and_by_every_retriever():
    assert Query(text="fish", top_k=np.int64(1)).top_k == 1
    with Cormorant(None) as vs:
        vs.add_texts(["a fish", "two fish"])
        words = BM25Retriever(vectorstore=vs)
        assert len(words.invoke("fish", k=np.int64(1))) == 1
        both = EnsembleRetriever(
            retrievers=[words, words],
            weights=list(np.array([0.5, 0.5], dtype=np.float32)),
            c=np.int64(60),
        )
        assert len(both.invoke("fish", k=np.int64(1))) == 1


@pytest.mark.parametrize("weights", [[10**400, 1], [math.inf, 1]], ids=["huge", "inf"])
def test_a_weight_beyond_every_float_is_refused(weights):
    words = BM25Retriever.from_texts(["a fish"])
    with pytest.raises(QueryError, match="weights must be numbers of at least 0"):
        EnsembleRetriever(retrievers=[words, words], weights=weights)
