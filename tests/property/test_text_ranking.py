"""What is left unread changes nothing: the ranking is that of every posting summed, to the bit."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.index.text import TextIndex, index, kernels, levels, rank, tally
from cormorant.index.text.tally import Tally

VOCABULARY = 40


def collection(seed, count, *, repeated):
    """Frequencies of all sizes; repeated records tie."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** 1.3
    weights /= weights.sum()
    documents = [
        [f"w{i}" for i in rng.choice(VOCABULARY, rng.integers(0, 15), p=weights)]
        for _ in range(count)
    ]
    return (documents * 3)[: 2 * count] if repeated else documents


def built(documents, batch):
    with (
        mock.patch.object(index, "TAIL_POSTINGS", 400),
        mock.patch.object(levels, "TAIL_POSTINGS", 400),
    ):
        made = TextIndex.empty()
        for at in range(0, len(documents), batch):
            made = made.append(TextIndex.encode(documents[at : at + batch]))
    return made


def everyone(asked, n):
    """Every record's score: all postings summed, rarest terms first."""
    return asked.score(np.arange(n))


def plainly(scores, k, mask):
    allowed = scores > 0 if mask is None else (scores > 0) & mask
    slots = np.flatnonzero(allowed)
    order = np.lexsort((slots, -scores[slots]))[:k]
    return slots[order], scores[slots[order]]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 30),
    count=st.sampled_from([30, 300, 900]),
    repeated=st.booleans(),
    batch=st.sampled_from([37, 10_000]),
    query=st.lists(st.integers(0, VOCABULARY + 2), min_size=1, max_size=9),
    k=st.sampled_from([1, 2, 10, 50, 2000]),
    share=st.sampled_from([None, 0.9, 0.5, 0.2, 0.02, 0.0]),
    dead=st.sampled_from([0.0, 0.2]),
    long=st.sampled_from([1, 20, 200]),
    probed=st.sampled_from([1, 30]),
    sparse=st.sampled_from([0, 2, 10**6]),
    together=st.sampled_from([1, 50, 65_536]),
    margin=st.sampled_from([0.2, 0.6, 1.0]),
    looked_up=st.sampled_from([0, 1, 24]),
)
def test_equals_every_posting_summed(
    seed,
    count,
    repeated,
    batch,
    query,
    k,
    share,
    dead,
    long,
    probed,
    sparse,
    together,
    margin,
    looked_up,
):
    documents = collection(seed, count, repeated=repeated)
    text_index = built(documents, batch)
    rng = np.random.default_rng(seed + 1)
    n = len(documents)
    alive = rng.random(n) >= dead if dead else None
    mask = alive if share is None else rng.random(n) < share
    if mask is not None and alive is not None:
        mask = mask & alive
    terms = [f"w{i}" for i in query]
    slots, scores = plainly(everyone(text_index.ask(terms, alive=alive), n), k, mask)
    with (
        mock.patch.object(kernels, "_chosen", [kernels.current()._replace(long=long)]),
        mock.patch.object(rank, "_PROBED", probed),
        mock.patch.object(rank, "_MARGIN", margin),
        mock.patch.object(rank, "_LOOKED_UP", looked_up),
        mock.patch.object(tally, "_SPARSE", sparse),
        mock.patch.object(tally, "_TOGETHER", together),
    ):
        asked = text_index.ask(terms, alive=alive)
        first = asked.search(k=k, mask=mask)
        whole = asked.score(np.arange(n))
        again = asked.search(k=k, mask=mask)
    assert first.slots.tolist() == slots.tolist()
    assert first.scores.tobytes() == scores.tobytes()
    assert again.slots.tolist() == slots.tolist()
    assert whole.tobytes() == everyone(text_index.ask(terms, alive=alive), n).tobytes()
    assert first.matched <= np.count_nonzero(whole)
    if len(first.slots) == k and mask is None:
        assert (first.matched > k) == (np.count_nonzero(whole) > k)
    assert asked.spread() == text_index.ask(terms, alive=alive).spread()


def test_long_lists_are_left_unread_and_that_is_said():
    rng = np.random.default_rng(0)
    documents = [
        ["common", "usual"] + ["rare"] * (i % 400 == 0) + ["pad"] * int(p)
        for i, p in enumerate(rng.integers(0, 9, 40_000))
    ]
    text_index = TextIndex.empty().append(TextIndex.encode(documents))
    result = text_index.ask(["rare", "common", "usual"]).search(k=10)
    assert result.counters["postings"] == 80_100
    assert result.counters["postings_read"] == 100
    assert result.says.startswith("text: BM25 over 100 of 80,100 postings of 3 of 3 terms")
    assert result.exact
    assert result.matched == 40_000
    slots, _ = plainly(everyone(text_index.ask(["rare", "common", "usual"]), 40_000), 10, None)
    assert result.slots.tolist() == slots.tolist()


def test_a_record_scores_the_same_whoever_is_asked_first():
    documents = collection(3, 900, repeated=True)
    text_index = built(documents, 10_000)
    terms = ["w0", "w5", "w30", "w39"]
    weights = text_index.ask(terms)
    tallied = Tally(weights._found, weights._formula, len(documents))
    for upto in range(len(tallied.terms) + 1):
        tallied.add(upto)
    assert tallied.scores.tobytes() == everyone(weights, len(documents)).tobytes()
