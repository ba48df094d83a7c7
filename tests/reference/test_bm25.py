"""TextIndex against BM25 written down in plain Python, on random collections."""

from __future__ import annotations

import math
import random
from collections import Counter
from unittest import mock

import numpy as np
import pytest

from cormorant.index.text import TextIndex, index, levels


def plain_bm25(documents, alive, query, k1=1.2, b=0.75):
    """Lucene's BM25, one record and one term at a time, in float64."""
    live = [terms for terms, lives in zip(documents, alive, strict=True) if lives]
    records = len(live)
    average = sum(map(len, live)) / records if records else 0.0
    scores = []
    frequencies = {term: sum(term in other for other in live) for term in query}
    for terms in documents:
        score = 0.0
        for term, count in Counter(query).items():
            df = frequencies[term]
            tf = terms.count(term)
            if tf and df:
                idf = math.log(1 + (records - df + 0.5) / (df + 0.5))
                norm = k1 * (1 - b + b * len(terms) / average)
                score += count * idf * tf / (tf + norm)
        scores.append(score)
    return scores


def check_search(text_index, documents, alive, query, *, k, mask=None, k1=1.2, b=0.75):
    expected = plain_bm25(documents, alive, query, k1, b)
    none_dead = all(alive)
    alive_mask = None if none_dead else np.array(alive)
    asked = text_index.ask(query, alive=alive_mask, k1=k1, b=b)
    result, spread = asked.search(k=k, mask=mask), asked.spread()
    allowed = alive if mask is None else [a and m for a, m in zip(alive, mask, strict=True)]
    ranked = sorted(
        (slot for slot, score in enumerate(expected) if score > 0 and allowed[slot]),
        key=lambda slot: (-expected[slot], slot),
    )
    assert len(result.slots) == min(k, len(ranked))
    np.testing.assert_allclose(
        result.scores, [expected[slot] for slot in ranked[:k]], rtol=2e-6, err_msg="top scores"
    )
    np.testing.assert_allclose(
        result.scores, [expected[slot] for slot in result.slots], rtol=2e-6, err_msg="own scores"
    )
    assert all(allowed[slot] for slot in result.slots)
    order = list(zip((-result.scores).tolist(), result.slots.tolist(), strict=True))
    assert order == sorted(order), "ties go to the lower slot"
    live = np.array([s for s, lives in zip(expected, alive, strict=True) if lives] or [0.0])
    assert spread.mean == pytest.approx(live.mean(), rel=1e-5, abs=1e-9)
    assert spread.std == pytest.approx(live.std(), rel=1e-4, abs=1e-6)
    assert result.matched == np.count_nonzero(live)
    assert result.exact
    again = text_index.ask(query, alive=alive_mask, k1=k1, b=b).score(result.slots)
    assert again.tobytes() == result.scores.tobytes(), "looked up = ranked, to the last bit"
    return result


def random_documents(rng, count, vocabulary, longest):
    words = [f"w{i}" for i in range(vocabulary)]
    weights = [1 / (i + 1) for i in range(vocabulary)]
    return [rng.choices(words, weights, k=rng.randint(0, longest)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(24))
def test_equals_plain_bm25(seed):
    rng = random.Random(seed)
    documents = random_documents(rng, rng.choice([1, 7, 60, 120]), rng.choice([3, 40]), 30)
    dead_share = rng.choice([0.0, 0.0, 0.3, 1.0])
    with (
        mock.patch.object(index, "TAIL_POSTINGS", rng.choice([1, 50, 10**6])),
        mock.patch.object(levels, "TAIL_POSTINGS", 50),
        mock.patch.object(levels, "FAN_OUT", rng.choice([2, 3])),
    ):
        text_index, start = TextIndex.empty(), 0
        while start < len(documents):
            size = rng.choice([1, 2, 13])
            text_index = text_index.append(TextIndex.encode(documents[start : start + size]))
            start += size
    alive = [rng.random() >= dead_share for _ in documents]
    for _ in range(12):
        query = rng.choices([f"w{i}" for i in range(45)], k=rng.randint(1, 8))
        k1, b = rng.choice([(1.2, 0.75), (0.0, 0.5), (2.0, 0.0), (0.9, 1.0)])
        k = rng.choice([1, 3, 10, 500])
        mask = rng.choice(
            [None, np.array([a and rng.random() < 0.3 for a in alive]), np.zeros(len(alive), bool)]
        )
        check_search(text_index, documents, alive, query, k=k, mask=mask, k1=k1, b=b)


def test_a_large_collection_takes_the_threshold_path():
    rng = random.Random(99)
    documents = random_documents(rng, 3000, 60, 12)
    text_index = TextIndex.empty().append(TextIndex.encode(documents))
    alive = [True] * len(documents)
    mask = np.array([rng.random() < 0.5 for _ in documents])
    for query in (["w0"], ["w0", "w1", "w59"], ["w3", "w3", "w30"], ["w58", "w2"]):
        result = check_search(text_index, documents, alive, query, k=10)
        assert result.counters["candidates"] < result.matched
        check_search(text_index, documents, alive, query, k=10, mask=mask)


def test_known_value():
    """By hand: N 2, df 1, tf 2, length 4, average 3: ln 2 · 2 / (2 + 1.2 · (.25 + .75 · 4/3))."""
    text_index = TextIndex.empty().append(TextIndex.encode([["a", "a", "b", "c"], ["b", "c"]]))
    result = text_index.ask(["a"]).search(k=5)
    assert result.slots.tolist() == [0]
    assert result.scores[0] == pytest.approx(math.log(2) * 2 / 3.5, rel=1e-6)


def test_removing_dead_records_changes_no_bit():
    rng = random.Random(5)
    documents = random_documents(rng, 400, 50, 25)
    text_index = TextIndex.empty().append(TextIndex.encode(documents))
    alive = np.array([rng.random() < 0.7 for _ in documents])
    keep = np.flatnonzero(alive)
    compacted = text_index.take(keep)
    for _ in range(30):
        query = rng.choices([f"w{i}" for i in range(50)], k=4)
        in_full, in_small = text_index.ask(query, alive=alive), compacted.ask(query)
        before, after = in_full.search(k=20, mask=alive), in_small.search(k=20)
        assert keep[after.slots].tolist() == before.slots.tolist()
        assert after.scores.tobytes() == before.scores.tobytes()
        mean, std, largest = in_small.spread()
        assert (mean, largest) == (in_full.spread().mean, in_full.spread().largest)
        assert std == pytest.approx(in_full.spread().std, rel=1e-6)  # summed in blocks of slots
        assert in_full.bound == in_small.bound
