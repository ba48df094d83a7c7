"""Which merges wait, and what happens when they are done aside."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from cormorant.index.text import TextIndex, index, levels

WORDS = [f"w{i}" for i in range(50)]


@pytest.fixture
def small_sizes():
    with (
        mock.patch.object(index, "TAIL_POSTINGS", 64),
        mock.patch.object(levels, "TAIL_POSTINGS", 64),
        mock.patch.object(levels, "AT_ONCE", 1200),
    ):
        yield


def grown(text_index, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        documents = [[WORDS[i] for i in rng.integers(0, 50, 8)] for _ in range(10)]
        text_index = text_index.append(TextIndex.encode(documents))
    return text_index


def with_a_merge_due():
    text_index = TextIndex.empty()
    while text_index.due() is None:
        text_index = grown(text_index, 1, text_index.n)
    return text_index


def sizes(text_index):
    return [len(segment.slots) for segment in text_index._segments]


def everything(text_index):
    result = text_index.ask(WORDS[:9]).search(k=10_000)
    return result.slots.tolist(), result.scores.tobytes()


def test_no_merge_in_an_append_is_long(small_sizes):
    text_index = TextIndex.empty()
    longest = 0
    for step in range(400):
        with mock.patch.object(levels, "merge", wraps=levels.merge) as merged:
            text_index = grown(text_index, 1, step)
        longest = max([longest, *(sum(len(s.slots) for s in c.args[0]) for c in merged.mock_calls)])
        while (merge := text_index.due()) is not None:
            text_index = text_index.adopt(merge.run())
    assert 0 < longest <= 1200
    assert len(sizes(text_index)) <= 3 * 4  # some of each size
    assert text_index.problems() == []


def test_without_a_background_segments_stay_bounded(small_sizes):
    text_index, most = TextIndex.empty(), 0
    for step in range(600):
        text_index = grown(text_index, 1, step)
        most = max(most, len(sizes(text_index)))
    assert levels.OVERDUE < most <= 3 * levels.OVERDUE
    assert text_index.problems() == []


def test_a_merge_done_aside_changes_no_score(small_sizes):
    text_index = with_a_merge_due()
    merge = text_index.due()
    assert merge.postings == sum(len(part.slots) for part in merge.parts) > 1200
    merged = merge.run()
    later = grown(text_index, 7, seed=1)  # what was appended meanwhile stays
    adopted = later.adopt(merged)
    assert len(sizes(adopted)) == len(sizes(later)) - len(merge.parts) + 1
    assert sum(sizes(adopted)) == sum(sizes(later))
    assert adopted.n == later.n
    assert adopted.problems() == []
    assert everything(adopted) == everything(later)
    assert everything(text_index) == everything(text_index.adopt(merged))


def test_what_was_merged_by_others_is_left_alone(small_sizes):
    text_index = with_a_merge_due()
    merged = text_index.due().run()
    once = text_index.adopt(merged)
    assert once.adopt(merged) is once
    compacted = text_index.take(np.arange(5))
    assert compacted.adopt(merged) is compacted
    rebuilt = TextIndex.from_arrays(text_index.to_arrays())
    assert rebuilt.adopt(merged) is rebuilt
    assert TextIndex.empty().adopt(merged).n == 0


def test_nothing_is_due_where_nothing_is_gained(small_sizes):
    assert TextIndex.empty().due() is None
    assert grown(TextIndex.empty(), 3).due() is None
    text_index = grown(TextIndex.empty(), 300)
    while (merge := text_index.due()) is not None:
        before = len(sizes(text_index))
        text_index = text_index.adopt(merge.run())
        assert len(sizes(text_index)) < before
    assert len(sizes(text_index)) < 3 * levels.FAN_OUT
