"""A TextIndex against a list of lists: batches, deletes, compaction, files, in any order."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cormorant.index.text import TextIndex, index, levels, lookup, segment

TERMS = st.sampled_from(["a", "b", "c", "dd", "一", "二三", "", "e\n", "\ud800", "x" * 300])
DOCUMENT = st.lists(TERMS, max_size=12)


def weak_hash(term: bytes) -> int:
    """Nearly every pair of terms collides."""
    return len(term) % 2


class TextIndexMachine(RuleBasedStateMachine):
    """Small tails and fan-outs, so that a few records pass through every stage."""

    hash_term = staticmethod(segment.hash_term)

    def __init__(self):
        super().__init__()
        self.patches = [
            mock.patch.object(index, "TAIL_POSTINGS", 8),
            mock.patch.object(levels, "TAIL_POSTINGS", 8),
            mock.patch.object(levels, "FAN_OUT", 2),
            mock.patch.object(segment, "hash_term", self.hash_term),
            mock.patch.object(lookup, "hash_term", self.hash_term),
        ]
        for patch in self.patches:
            patch.start()
        self.documents: list[list[str]] = []
        self.alive: list[bool] = []
        self.index = TextIndex.empty()
        self.older: list[tuple[TextIndex, list[list[str]]]] = []

    def teardown(self):
        for old, documents in self.older:
            assert_same(old, documents, [True] * len(documents))
        for patch in self.patches:
            patch.stop()

    @rule(batch=st.lists(DOCUMENT, min_size=1, max_size=6))
    def append(self, batch):
        self.older.append((self.index, list(self.documents)))
        self.index = self.index.append(TextIndex.encode(batch))
        self.documents += batch
        self.alive += [True] * len(batch)

    @rule(batch=st.lists(DOCUMENT, min_size=1, max_size=3), data=st.data())
    def fork(self, batch, data):
        """Appending to an older index leaves the newer ones alone."""
        if self.older:
            old, documents = data.draw(st.sampled_from(self.older))
            self.older.append((old.append(TextIndex.encode(batch)), documents + batch))

    @rule(data=st.data())
    def delete(self, data):
        if self.alive:
            self.alive[data.draw(st.integers(0, len(self.alive) - 1))] = False

    @rule()
    def compact(self):
        keep = np.flatnonzero(self.alive)
        self.index = self.index.take(keep)
        self.documents = [self.documents[slot] for slot in keep]
        self.alive = [True] * len(keep)
        self.older = []

    @rule()
    def through_a_file(self):
        arrays = {}
        for name, array in self.index.to_arrays().items():
            arrays[name] = np.frombuffer(array.tobytes(), array.dtype)  # read-only, as mapped
        self.index = TextIndex.from_arrays(arrays)

    @invariant()
    def holds(self):
        assert_same(self.index, self.documents, self.alive)


def assert_same(text_index, documents, alive):
    assert text_index.n == len(documents)
    assert text_index.problems() == []
    alive_mask = np.array(alive, bool)
    vocabulary = [*sorted({term for terms in documents for term in terms}), "absent"]
    live = [terms for terms, lives in zip(documents, alive, strict=True) if lives]
    for term in vocabulary:
        df = sum(term in terms for terms in live)
        result = text_index.ask([term], alive=alive_mask).search(k=1000, mask=alive_mask)
        assert result.matched == len(result.slots) == df
        for slot in result.slots.tolist():
            (match,) = text_index.ask([term], alive=alive_mask).matches(slot)
            assert (match.term, match.df, match.tf) == (term, df, documents[slot].count(term))
        assert text_index.contains_all([term]).tolist() == [term in terms for terms in documents]
    for slot, terms in enumerate(documents):
        if alive[slot] and terms:
            query = [*terms, "absent"]
            (score,) = text_index.ask(query, alive=alive_mask).score(np.array([slot]))
            parts = text_index.ask(query, alive=alive_mask).matches(slot)
            assert {part.term: part.count for part in parts} == Counter(terms)
            np.testing.assert_allclose(sum(part.score for part in parts), score, rtol=1e-5)
            assert 0 < score < text_index.ask(query, alive=alive_mask).bound
            everything = text_index.ask(query, alive=alive_mask).search(k=1000, mask=alive_mask)
            at = everything.slots.tolist().index(slot)
            assert everything.scores[at].tobytes() == score.tobytes()
            assert text_index.contains_all(terms)[slot]
    assert not text_index.contains_all([]).any()


class CollidingMachine(TextIndexMachine):
    hash_term = staticmethod(weak_hash)


TestTextIndex = TextIndexMachine.TestCase
TestTextIndex.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestCollisions = CollidingMachine.TestCase
TestCollisions.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


@settings(max_examples=60, deadline=None)
@given(st.lists(DOCUMENT, max_size=8))
def test_a_batch_survives_its_bytes(documents):
    from cormorant.index.text.batch import decode, encode, encode_term

    batch = decode(encode(documents))
    assert batch.lengths.tolist() == list(map(len, documents))
    at = 0
    for terms, count in zip(documents, batch.counts.tolist(), strict=True):
        ids = batch.ids[at : at + count].tolist()
        tf = batch.tf[at : at + count].tolist()
        got = {batch.terms[i]: n for i, n in zip(ids, tf, strict=True)}
        assert got == {encode_term(term): n for term, n in Counter(terms).items()}
        at += count
    assert at == len(batch.ids)
