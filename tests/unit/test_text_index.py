"""TextIndex at its edges; what it ranks is in tests/reference/test_bm25.py."""

from __future__ import annotations

import threading
from unittest import mock

import numpy as np
import pytest

from cormorant.errors import CorruptionError, UsageError
from cormorant.index.text import TextIndex, index, levels

DOCUMENTS = [["a", "b"], [], ["b", "b", "c"], ["a"], ["c", "a", "b", "d"]]


@pytest.fixture
def small():
    return TextIndex.empty().append(TextIndex.encode(DOCUMENTS))


def none_of(result):
    return len(result.slots) == len(result.scores) == result.matched == 0 and result.exact


def test_an_empty_index_answers():
    empty = TextIndex.empty()
    assert empty.n == 0
    assert none_of(empty.ask(["a"]).search(k=3))
    assert none_of(
        TextIndex.from_arrays(empty.to_arrays()).ask(["a"], alive=np.ones(0, bool)).search(k=3)
    )
    assert empty.ask(["a"]).score(np.empty(0, np.int64)).shape == (0,)
    assert empty.contains_all(["a"]).shape == (0,)
    assert empty.take(np.empty(0, np.int64)).n == 0
    assert empty.problems() == []


def test_records_without_text_count_and_are_never_found():
    blank = TextIndex.empty().append(TextIndex.encode([[], [], []]))
    assert blank.n == 3
    assert none_of(blank.ask(["a"]).search(k=3))
    again = TextIndex.from_arrays(blank.to_arrays())
    assert again.n == 3
    assert again.append(TextIndex.encode([["a"]])).ask(["a"]).search(k=3).slots.tolist() == [3]


def test_no_terms_no_hits(small):
    assert none_of(small.ask([]).search(k=3))
    assert small.ask([]).spread() == (0.0, 0.0, 0.0)
    assert small.ask([]).bound == 0
    assert not small.contains_all([]).any()


def test_nothing_alive(small):
    dead = np.zeros(5, bool)
    assert none_of(small.ask(["a"], alive=dead).search(k=3, mask=dead))
    assert small.ask(["a"], alive=dead).bound > 0


@pytest.mark.parametrize("share", [0.02, 0.2, 0.9])
def test_the_dead_are_not_found_whatever_the_mask_says(share):
    rng = np.random.default_rng(4)
    one = TextIndex.empty().append(TextIndex.encode([["x", f"w{i % 9}"] for i in range(500)]))
    alive, mask = rng.random(500) < 0.7, rng.random(500) < share
    asked = one.ask(["x", "w3"], alive=alive)
    assert (
        sorted(asked.search(k=500, mask=mask).slots.tolist())
        == np.flatnonzero(alive & mask).tolist()
    )
    dead = int(np.flatnonzero(~alive)[0])
    assert asked.matches(dead) == ()
    assert asked.score(np.array([dead])).tolist() == [0.0]


def test_absent_terms_only_raise_the_bound(small):
    with_absent = small.ask(["a", "nowhere"]).search(k=3)
    assert with_absent.scores.tobytes() == small.ask(["a"]).search(k=3).scores.tobytes()
    assert with_absent.counters["terms"] == 1
    asked = small.ask(["a", "nowhere", "nowhere"])
    assert asked.unseen > 0
    assert asked.bound == pytest.approx(small.ask(["a"]).bound + asked.unseen)
    assert small.ask(["a"]).unseen == 0


def test_repeats_in_the_query_count(small):
    once, twice = small.ask(["a"]).search(k=3), small.ask(["a", "a"]).search(k=3)
    np.testing.assert_allclose(twice.scores, 2 * once.scores, rtol=1e-6)
    assert small.ask(["a", "a"]).matches(0)[0].count == 2
    assert small.ask(["a", "a"]).bound == 2 * small.ask(["a"]).bound


def test_equal_scores_go_by_slot():
    same = TextIndex.empty().append(TextIndex.encode([["x"]] * 40 + [["y"]] * 40))
    result = same.ask(["x"]).search(k=7)
    assert result.slots.tolist() == list(range(7))
    assert len(set(result.scores.tolist())) == 1
    masked = same.ask(["x", "y"]).search(k=5, mask=np.arange(80) >= 30)
    assert masked.slots.tolist() == [30, 31, 32, 33, 34]


def test_a_score_everyone_has_does_not_deviate():
    same = TextIndex.empty().append(TextIndex.encode([["x", "y", "z"]] * 1000))
    asked = same.ask(["x", "y"])
    best = float(asked.search(k=3).scores[0])
    assert asked.spread() == (pytest.approx(best, rel=1e-6), 0.0, best)


def test_k_hits_come_back_if_k_exist():
    rng = np.random.default_rng(1)
    documents = [
        ["common"] + ["rare"] * (i % 50 == 0) + ["pad"] * int(p)
        for i, p in enumerate(rng.integers(0, 30, 2000))
    ]
    many = TextIndex.empty().append(TextIndex.encode(documents))
    for share in (0.5, 0.01, 0.002):
        mask = rng.random(2000) < share
        result = many.ask(["rare", "common"]).search(k=10, mask=mask)
        assert len(result.slots) == min(10, int(mask.sum()))
        assert mask[result.slots].all()
    assert len(many.ask(["rare", "common"]).search(k=5000).slots) == 2000


def test_large_frequencies_are_exact():
    counts = [1, 254, 255, 256, 70_000]
    documents = [["t"] * count + ["u"] for count in counts]
    with mock.patch.object(index, "TAIL_POSTINGS", 2), mock.patch.object(levels, "FAN_OUT", 2):
        one = TextIndex.empty()
        for document in documents:
            one = one.append(TextIndex.encode([document]))
    for held in (one, TextIndex.from_arrays(one.to_arrays())):
        got = [held.ask(["t"]).matches(slot)[0].tf for slot in range(5)]
        assert got == counts
        assert held.problems() == []
    kept = one.take(np.array([1, 3, 4]))
    assert [kept.ask(["t"]).matches(slot)[0].tf for slot in range(3)] == [254, 256, 70_000]
    assert kept.problems() == []


def test_scores_come_in_the_order_asked(small):
    order = np.array([4, 1, 0, 3])
    scores = small.ask(["a", "b"]).score(order)
    assert scores.dtype == np.float32
    assert scores[1] == 0
    assert [float(small.ask(["a", "b"]).score(np.array([s]))[0]) for s in order] == scores.tolist()


def test_explanations_add_up(small):
    parts = small.ask(["a", "b", "nowhere"]).matches(4)
    assert {part.term for part in parts} == {"a", "b"}
    assert [part.score for part in parts] == sorted((p.score for p in parts), reverse=True)
    assert small.ask(["a"]).matches(2) == ()


def test_appending_changes_no_older_index(small):
    before = small.ask(["a"]).search(k=9)
    one = small.append(TextIndex.encode([["a"]]))
    two = small.append(TextIndex.encode([["z"]] * 3))
    assert small.n == 5
    assert small.ask(["a"]).search(k=9).scores.tobytes() == before.scores.tobytes()
    assert one.ask(["z"]).search(k=9).matched == 0
    assert two.ask(["z"]).search(k=9).slots.tolist() == [5, 6, 7]
    assert one.contains_all(["a"]).sum() == two.contains_all(["a"]).sum() + 1


def test_a_blob_lands_wherever_it_is_appended(small):
    blob = TextIndex.encode([["q"], ["r", "q"]])
    assert small.append(blob).ask(["q"]).search(k=5).slots.tolist() == [5, 6]
    assert TextIndex.empty().append(blob).ask(["q"]).search(k=5).slots.tolist() == [0, 1]


def test_many_small_appends_stay_few_segments():
    one = TextIndex.empty()
    blob = TextIndex.encode([[f"w{i}" for i in range(40)]])
    for _ in range(6000):
        one = one.append(blob)
    result = one.ask(["w7"]).search(k=3)
    assert result.matched == 6000
    assert result.counters["segments"] <= 8
    assert one.problems() == []


def test_take_wants_ascending_slots_that_exist(small):
    for keep in ([1, 0], [0, 0], [-1], [5]):
        with pytest.raises(UsageError, match="ascending"):
            small.take(np.array(keep))


def test_threads_append_to_one_index_apart(small):
    grown = {}

    def work(name):
        one = small
        for i in range(200):
            one = one.append(TextIndex.encode([[name, f"{name}{i % 7}"]]))
        grown[name] = one

    threads = [threading.Thread(target=work, args=(name,)) for name in "pqrs"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, one in grown.items():
        assert one.ask([name]).search(k=500).slots.tolist() == list(range(5, 205))
        assert sum(one.ask([other]).search(k=500).matched for other in "pqrs") == 200
        assert one.problems() == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: b"",
        lambda blob: blob[:20],
        lambda blob: blob[:-1],
        lambda blob: b"XXXX" + blob[4:],
        lambda blob: blob[:40] + bytes([blob[40] ^ 1]) + blob[41:],
    ],
)
def test_damaged_batches_are_refused(damage):
    with pytest.raises(CorruptionError, match="batch of postings"):
        TextIndex.empty().append(damage(TextIndex.encode(DOCUMENTS)))


def test_arrays_that_do_not_fit_are_refused(small):
    arrays = dict(small.to_arrays())
    for name, array in arrays.items():
        missing = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(CorruptionError, match=name):
            TextIndex.from_arrays(missing)
        with pytest.raises(CorruptionError, match=name):
            TextIndex.from_arrays({**arrays, name: array.astype(np.float64)})
    for name in ("hashes", "offsets", "slots", "tf", "lengths", "term_bytes", "term_offsets"):
        with pytest.raises(CorruptionError, match="fit together"):
            TextIndex.from_arrays({**arrays, name: arrays[name][:-1]})


@pytest.mark.parametrize(
    ("name", "at", "value", "says"),
    [
        ("hashes", 0, 2**64 - 1, "out of order"),
        ("offsets", 1, 0, "'offsets'"),
        ("term_offsets", 1, 99, "'term_offsets'"),
        ("slots", 0, 99, "outside"),
        ("tf", 0, 9, "sums"),
        ("tf", 0, 255, "Large"),
        ("lengths", 0, 9, "disagree"),
        ("record_lengths", 1, 1, "sums"),
    ],
)
def test_a_full_read_finds_damage(small, name, at, value, says):
    arrays = {key: array.copy() for key, array in small.to_arrays().items()}
    arrays[name][at] = value
    found = TextIndex.from_arrays(arrays).problems()
    assert any(says in problem for problem in found), found


def test_the_order_of_the_question_changes_no_bit():
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(30)]
    documents = [[words[i] for i in rng.integers(0, 30, 12)] for _ in range(200)]
    one = TextIndex.empty().append(TextIndex.encode(documents))
    for _ in range(20):
        query = [words[i] for i in rng.integers(0, 30, 9)]
        forwards, backwards = one.ask(query).search(k=50), one.ask(query[::-1]).search(k=50)
        assert forwards.scores.tobytes() == backwards.scores.tobytes()
        assert forwards.slots.tolist() == backwards.slots.tolist()
