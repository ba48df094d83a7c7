"""The statistics' sample: carried along by writes, it is the one that would be drawn anew."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cormorant
from cormorant import Query, defaults
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex
from cormorant.storage import Delta
from cormorant.store.sample import Sample
from cormorant.store.state import State


def written(state: State, count: int, without: set[int], dead: list[int]) -> State:
    """The state after ``count`` records and some deaths, given as slots."""
    has = np.array([i not in without for i in range(count)], np.bool_)
    rows = state.rows.view
    return state.apply(
        Delta(
            lsn=state.lsn + 1,
            generation=1,
            lo=state.n,
            hi=state.n + count,
            first_row=int(rows[-1]) + 3 if len(rows) else 5,
            dead_rows=rows[dead],
            has_vector=has,
            postings=TextIndex.encode([["w"]] * count),
            columns=Columns.encode([{}] * count),
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_carried_sample_is_the_drawn_one(data: st.DataObject) -> None:
    with mock.patch.object(defaults, "STATISTICS_SAMPLE", 8):
        state = State.empty(1)
        for _ in range(data.draw(st.integers(1, 8))):
            count = data.draw(st.integers(0, 12))
            without = data.draw(st.sets(st.integers(0, 11), max_size=4))
            live = np.flatnonzero(state.alive.view).tolist()
            dead = data.draw(st.lists(st.sampled_from(live), unique=True)) if live else []
            if data.draw(st.booleans()):
                assert len(state.sample.slots) <= 8
            state = written(state, count, without, sorted(dead))
            eligible = np.flatnonzero(state.alive.view & state.has_vector.view)
            anew = Sample.draw(eligible, state.rows.view[eligible])
            assert state.sample.slots.tolist() == anew.slots.tolist()
            assert len(state.sample.slots) == min(8, len(eligible))
            assert state.with_vector == len(eligible)
            rows = np.random.default_rng(0).random((state.n, 2)).astype(np.float32)
            assert (state.sample.vectors(rows) == rows[state.sample.slots]).all()


def test_an_append_does_not_look_at_every_record_again() -> None:
    with mock.patch.object(defaults, "STATISTICS_SAMPLE", 8):
        state = written(State.empty(1), 100, set(), [])
        first = state.sample
        copy = first.vectors(np.ones((100, 2), np.float32))
        dead = [slot for slot in range(100) if slot not in first.slots][:5]
        with mock.patch.object(Sample, "draw", side_effect=AssertionError("drawn again")):
            after = written(state, 1, {0}, [*dead, int(first.slots[0])])
            assert len(after.sample.slots) == 8
            same = written(state, 1, {0}, dead).sample
        assert same.vectors(np.zeros((101, 2), np.float32)) is copy
        assert replace(state, lsn=9).sample is first


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_statistics_do_not_depend_on_when_the_sample_was_drawn(tmp_path, metric) -> None:
    rng = np.random.default_rng(3)
    asked = Query(text="fish", vector=rng.standard_normal(4))

    def standards(store):
        return [hit.legs["vector"].standard for hit in store.search(asked)]

    with mock.patch.object(defaults, "STATISTICS_SAMPLE", 16):
        with cormorant.open(tmp_path / "kb", metric=metric) as store:
            for batch in range(12):
                store.add(
                    {"id": f"{batch}-{i}", "text": "fish", "vector": rng.standard_normal(4)}
                    for i in range(5)
                )
                store.delete([f"{batch - 2}-1"])
                carried = standards(store)
        with cormorant.open(tmp_path / "kb") as store:
            assert standards(store) == carried
