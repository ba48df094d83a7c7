"""What a commit stores, what a snapshot sees of it, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cormorant.errors import (
    ConfigError,
    CorruptionError,
    DimensionError,
    RecordError,
    StoreClosed,
    StoreError,
)
from cormorant.storage import NewRecord, Storage


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    where = ":memory:" if request.param == "memory" else tmp_path / "kb"
    storage = Storage.open(where, config={"dim": None, "metric": "dot"}, lock_timeout_s=1)
    yield storage
    storage.close()


def new(*ids: str) -> list[NewRecord]:
    return [NewRecord(id, f"text of {id}", f'{{"id":"{id}"}}') for id in ids]


def vectors(*firsts: float, dim: int = 3) -> np.ndarray:
    return np.array([[first, *range(1, dim)] for first in firsts], np.float32)


def commit(storage: Storage, *args: Any, **kwargs: Any) -> Any:
    with storage.write() as writer:
        return writer.commit(*args, **kwargs)


def test_a_new_store_is_empty(storage: Storage) -> None:
    with storage.read() as reader:
        assert reader.head[:5] == (0, 1, 0, 1, None)
        assert dict(reader.config) == {"metric": "dot", "dim": None}
        assert reader.deltas(0) == []
        assert reader.checkpoint() == {}
        assert reader.vectors() is None
        assert reader.rows_of(["a"]) == {}
        assert reader.records([1]) == {}
        assert list(reader.scan()) == []
        assert len(reader.slot_map().rows) == 0
        assert reader.isolated


def test_a_commit_is_seen_whole_by_the_next_snapshot(storage: Storage) -> None:
    given = vectors(7, 8)
    delta = commit(storage, records=new("a", "b"), vectors=given, postings=b"p", columns=b"c")
    assert (delta.lsn, delta.lo, delta.hi, delta.first_row) == (1, 0, 2, 1)
    with storage.read() as reader:
        assert reader.head.lsn == 1
        assert reader.head.n == 2
        assert reader.head.next_row == 3
        assert reader.config["dim"] == 3
        assert reader.rows_of(["b", "nobody", "a"]) == {"a": 1, "b": 2}
        found = reader.records([2, 99, 1])
        assert {row: (r.id, r.text, r.metadata) for row, r in found.items()} == {
            1: ("a", "text of a", {"id": "a"}),
            2: ("b", "text of b", {"id": "b"}),
        }
        held = reader.vectors()
        assert held is not None
        assert np.array_equal(held, given)
        assert not held.flags.writeable
        (seen,) = reader.deltas(0) or []
        assert (seen.lsn, seen.generation, seen.postings, seen.columns) == (1, 1, b"p", b"c")
        assert seen.rows.tolist() == [1, 2]
        assert seen.has_vector.tolist() == [True, True]
        assert seen.dead_rows.tolist() == []


def test_an_update_is_a_death_and_a_new_row(storage: Storage) -> None:
    commit(storage, records=new("a", "b"))
    delta = commit(storage, records=[NewRecord("a", "new", "{}")], dead_rows=[1])
    assert delta.dead_rows.tolist() == [1]
    assert delta.first_row == 3
    with storage.read() as reader:
        assert reader.rows_of(["a", "b"]) == {"a": 3, "b": 2}
        assert reader.records([1, 2, 3])[3].text == "new"
        assert reader.live_rows().tolist() == [2, 3]
        assert reader.slot_map().rows.tolist() == [1, 2, 3]
        assert reader.head.n == 3


def test_rows_are_never_given_out_twice(storage: Storage) -> None:
    commit(storage, records=new("a", "b"))
    commit(storage, dead_rows=[1, 2])
    assert commit(storage, records=new("a")).first_row == 3


def test_several_commits_in_one_write_are_several_transactions(storage: Storage) -> None:
    with storage.write() as writer:
        writer.commit(records=new("a"))
        assert writer.rows_of(["a"]) == {"a": 1}
        writer.commit(records=new("b"), dead_rows=writer.live_rows())
        assert writer.head.lsn == 2
        with pytest.raises(RecordError):
            writer.commit(records=new("b"))
        writer.commit(records=new("c"))
        assert [r.id for batch in writer.scan() for r in batch] == ["b", "c"]
    with storage.read() as reader:
        assert [d.lsn for d in reader.deltas(0) or []] == [1, 2, 3]


def test_slots_without_a_vector_are_zeros(storage: Storage) -> None:
    has = np.array([True, False, True])
    given = vectors(5, 99, 6)
    commit(storage, records=new("a", "b", "c"), vectors=given, has_vector=has)
    commit(storage, records=new("d"))
    commit(storage, records=new("e"), vectors=vectors(7))
    with storage.read() as reader:
        held = reader.vectors()
        assert held is not None
        assert held[:, 0].tolist() == [5, 0, 6, 0, 7]
        assert held[1].tolist() == [0, 0, 0]
        assert reader.slot_map().has_vector.tolist() == [True, False, True, False, True]
        flags = [d.has_vector.tolist() for d in reader.deltas(0) or []]
        assert flags == [[True, False, True], [False], [True]]
    assert storage.verify() == []


def test_the_first_vector_decides_the_dimension(storage: Storage) -> None:
    commit(storage, records=new("a", "b"))
    with storage.read() as reader:
        assert reader.vectors() is None
    commit(storage, records=new("c"), vectors=vectors(4, dim=5))
    with storage.read() as reader:
        held = reader.vectors()
        assert held is not None
        assert held.shape == (3, 5)
        assert held[:, 0].tolist() == [0, 0, 4]
        assert reader.config["dim"] == 5
    assert storage.verify() == []
    with pytest.raises(DimensionError, match=r"shape \(1, 5\); got \(1, 3\)"):
        commit(storage, records=new("d"), vectors=vectors(1))


def test_the_dimension_can_be_set_by_configuration(storage: Storage) -> None:
    commit(storage, records=new("a"))
    commit(storage, config={"dim": 4})
    with storage.read() as reader:
        held = reader.vectors()
        assert held is not None
        assert held.tolist() == [[0, 0, 0, 0]]
    with pytest.raises(ConfigError, match="have 4 numbers; dim=5 came"):
        commit(storage, config={"dim": 5})
    commit(storage, config={"dim": None, "x": 1})
    with storage.read() as reader:
        assert reader.config["dim"] == 4
    assert storage.verify() == []


def test_settings_are_added_to(storage: Storage) -> None:
    delta = commit(storage, config={"embedder": "m", "probes": [[1.5]]})
    assert delta.lo == delta.hi
    with storage.read() as reader:
        first = reader.config
        assert dict(first) == {"metric": "dot", "embedder": "m", "probes": [[1.5]], "dim": None}
        assert reader.head.config_lsn == 1
    commit(storage, records=new("a"))
    with storage.read() as reader:
        assert reader.config is first  # unchanged, so nothing is parsed again
    commit(storage, config={"embedder": None})
    with storage.read() as reader:
        assert reader.config["embedder"] is None
        assert reader.config["probes"] == [[1.5]]
    with pytest.raises(ConfigError, match="must be JSON"):
        commit(storage, config={"bad": {1, 2}})
    with pytest.raises(TypeError):
        first["metric"] = "cosine"  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"records": new("z", "a")}, RecordError, "stored already, or twice"),
        ({"records": new("y", "y")}, RecordError, "stored already, or twice"),
        ({"records": [NewRecord("y", "\ud800", "{}")]}, RecordError, "lone surrogate"),
        ({"records": [NewRecord("\udfff", "", "{}")]}, RecordError, "lone surrogate"),
        ({"dead_rows": [1, 77]}, RecordError, "names 2 rows, of which 1 are stored"),
        ({"dead_rows": [1, 1]}, RecordError, "names 2 rows, of which 1 are stored"),
        (
            {"records": new("y"), "vectors": vectors(1, 2)},
            DimensionError,
            r"shape \(1, 3\); got \(2, 3\)",
        ),
        ({"records": new("y"), "has_vector": np.array([True])}, DimensionError, "none came"),
        (
            {"records": new("y"), "vectors": vectors(1), "has_vector": np.array([1])},
            DimensionError,
            "must be bool",
        ),
    ],
)
def test_a_refused_commit_changes_nothing(
    storage: Storage, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    commit(storage, records=new("a", "b"), vectors=vectors(1, 2))
    with storage.read() as reader:
        before = reader.head
    with pytest.raises(error, match=says):
        commit(storage, **arguments)
    with storage.read() as reader:
        assert reader.head == before
        assert reader.live_rows().tolist() == [1, 2]
    assert storage.verify() == []
    commit(storage, records=new("c"), vectors=vectors(3))
    assert storage.verify() == []


def test_what_a_refused_commit_wrote_does_not_show_up_as_zeros(storage: Storage) -> None:
    """Its vectors lie past the committed length, where the next slots without one will be."""
    commit(storage, records=new("a"), vectors=vectors(1))
    with storage.write() as writer:
        with pytest.raises(RecordError):
            writer.commit(records=new("b", "a"), vectors=vectors(8, 9))
        writer.commit(records=new("c", "d"))
    with storage.read() as reader:
        held = reader.vectors()
        assert held is not None
        assert held[1:].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert storage.verify() == []


@pytest.mark.parametrize(("first", "second"), [(7, 2), (2, 7)])
def test_a_refused_first_vector_does_not_decide_the_dimension(
    storage: Storage, first: int, second: int
) -> None:
    commit(storage, records=new("a"))
    with storage.write() as writer:
        with pytest.raises(RecordError):
            writer.commit(records=new("a"), vectors=vectors(9, dim=first))
        writer.commit(records=new("b"), vectors=vectors(5, dim=second))
    with storage.read() as reader:
        held = reader.vectors()
        assert held is not None
        assert held.tolist() == [[0] * second, [5, *range(1, second)]]
    assert storage.verify() == []


def test_a_snapshot_does_not_change(storage: Storage) -> None:
    commit(storage, records=new("a"), vectors=vectors(1))
    if storage.in_memory:
        pytest.skip("in memory a commit waits for snapshots; see test_storage_memory.py")
    with storage.read() as reader:
        assert reader.head.lsn == 1
        commit(storage, records=new("b"), vectors=vectors(2), dead_rows=[1], config={"x": 1})
        assert reader.rows_of(["a", "b"]) == {"a": 1}
        assert reader.records([1])[1].id == "a"
        assert len(reader.vectors()) == 1  # type: ignore[arg-type]
        assert "x" not in reader.config
        assert [r.id for batch in reader.scan() for r in batch] == ["a"]
        assert reader.deltas(1) == []
    with storage.read() as reader:
        assert reader.rows_of(["a", "b"]) == {"b": 2}
        assert reader.config["x"] == 1


def test_scan_comes_in_batches_from_any_row(storage: Storage) -> None:
    commit(storage, records=new(*"abcdefg"))
    commit(storage, dead_rows=[4])
    with storage.read() as reader:
        batches = [[r.row for r in batch] for batch in reader.scan(after_row=1, batch=2)]
    assert batches == [[2, 3], [5, 6], [7]]


def test_many_ids_and_rows_at_once(storage: Storage) -> None:
    ids = [f"id{i}" for i in range(1500)]
    commit(storage, records=new(*ids))
    with storage.read() as reader:
        assert reader.rows_of(ids) == {id: i + 1 for i, id in enumerate(ids)}
        assert len(reader.records(range(1, 1501))) == 1500


def test_small_commits_share_a_range(storage: Storage) -> None:
    for i in range(20):
        commit(storage, records=new(f"v{i}"), vectors=vectors(i))
    for i in range(5):
        commit(storage, records=new(f"t{i}"))
    with storage.read() as reader:
        assert [(r.lo, r.hi, r.vectors) for r in reader.ranges()] == [(0, 20, 20), (20, 25, 0)]
        assert reader.slot_map().rows.tolist() == list(range(1, 26))
    assert storage.verify() == []


def test_text_may_hold_anything_that_is_unicode(storage: Storage) -> None:
    texts = [
        "\0 zero \0",
        "鸬鹚",
        "\U0001f426",
        "",
        "'; DROP TABLE records; --",
        "\ufeff\u2028\r\n",
    ]
    commit(storage, records=[NewRecord(f"{t}!", t, "{}") for t in texts])
    with storage.read() as reader:
        assert [r.text for r in reader.records(range(1, 7)).values()] == texts
        assert reader.rows_of([f"{texts[0]}!"]) == {f"{texts[0]}!": 1}


def test_a_reader_is_used_in_its_block_alone(storage: Storage) -> None:
    reader = storage.read()
    with pytest.raises(StoreClosed, match="has not begun"):
        _ = reader.head
    with reader:
        pass
    with pytest.raises(StoreClosed, match="has ended"):
        reader.rows_of(["a"])
    writer = storage.write()
    with writer:
        pass
    with pytest.raises(StoreClosed, match="has ended"):
        writer.commit(records=new("a"))


def test_a_closed_storage_says_so(storage: Storage) -> None:
    commit(storage, records=new("a"), vectors=vectors(3))
    with storage.read() as reader:
        held = reader.vectors()
    storage.close()
    storage.close()
    for use in (storage.read, storage.write):
        with pytest.raises(StoreClosed, match="Open it again"), use():
            pass
    with pytest.raises(StoreClosed):
        storage.verify()
    assert held is not None
    assert held[0, 0] == 3  # arrays outlive the store


def test_closing_lets_open_snapshots_end(storage: Storage) -> None:
    commit(storage, records=new("a"))
    with storage.read() as reader:
        storage.close()
        assert reader.rows_of(["a"]) == {"a": 1}


def test_a_thread_cannot_wait_for_itself(storage: Storage) -> None:
    with storage.write(), pytest.raises(StoreError, match="writing already"), storage.write():
        pass
    commit(storage, records=new("a"))


def test_a_damaged_record_is_not_handed_out(tmp_path: Path) -> None:
    with_secret = Storage.open(tmp_path / "kb")
    commit(with_secret, records=[NewRecord("a", "the quick brown fox", '{"a":"x"}')])
    with_secret.close()
    file = tmp_path / "kb" / "cormorant.sqlite"
    file.write_bytes(file.read_bytes().replace(b"quick brown", b"quiet brown"))
    storage = Storage.open(tmp_path / "kb")
    with storage.read() as reader, pytest.raises(CorruptionError, match="does not match its check"):
        reader.records([1])
    with storage.read() as reader, pytest.raises(CorruptionError, match="'a' \\(row 1\\)"):
        list(reader.scan())
    (problem,) = storage.verify()
    assert "Record 'a' (row 1)" in problem.what
    assert not problem.repairable
    storage.close()


def test_a_writer_whose_block_has_ended_touches_no_vectors(storage: Storage) -> None:
    with storage.write() as writer:
        writer.commit(records=new("a"), vectors=vectors(1))
    commit(storage, records=new("b"), vectors=vectors(2))
    for work in (
        lambda: writer.commit(records=new("c"), vectors=vectors(9)),
        lambda: writer.save_checkpoint({}, 1),
        writer.reclaim,
    ):
        with pytest.raises(StoreClosed, match="has ended"):
            work()
    with storage.read() as reader:
        held = reader.vectors()
    assert held is not None
    assert held[:, 0].tolist() == [1, 2]
