"""Checkpoints and compaction: what readers see before, during and after."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import Delta, NewRecord, StaleGeneration, Storage, Writer

SECRET = "a-secret-that-must-go"


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    where = ":memory:" if request.param == "memory" else tmp_path / "kb"
    storage = Storage.open(where, lock_timeout_s=1)
    yield storage
    assert storage.verify() == []
    storage.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kb"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def add(storage: Storage, *ids: str, replace: bool = False) -> Delta:
    """Records whose vector is their id's number; those that begin with t have none."""
    vectors = np.array([[int(id[1:]), 1] for id in ids], np.float32)
    has = np.array([not id.startswith("t") for id in ids])
    with storage.write() as writer:
        dead = list(writer.rows_of(ids).values()) if replace else []
        return writer.commit(
            records=[NewRecord(id, SECRET if id == "v666" else id, "{}") for id in ids],
            vectors=vectors,
            has_vector=has,
            dead_rows=dead,
            postings=id_list(ids),
        )


def id_list(ids: tuple[str, ...]) -> bytes:
    return " ".join(ids).encode()


def drop(storage: Storage, *ids: str) -> None:
    with storage.write() as writer:
        writer.commit(dead_rows=list(writer.rows_of(ids).values()))


def seen(storage: Storage) -> dict[str, float]:
    """Each record's id and the first number of the vector in its slot, as a reader sees them."""
    with storage.read() as reader:
        slots = reader.slot_map()
        records = [record for batch in reader.scan() for record in batch]
        vectors = reader.vectors()
        at = np.searchsorted(slots.rows, [record.row for record in records])
        assert [slots.rows[i] for i in at] == [record.row for record in records]
        return {
            record.id: float(vectors[i, 0]) if slots.has_vector[i] and vectors is not None else -1.0
            for record, i in zip(records, at, strict=True)
        }


def compact(storage: Storage, meanwhile: Callable[[], None] = lambda: None) -> None:
    with storage.read() as reader:
        live = reader.live_rows()
        keep = np.flatnonzero(np.isin(reader.slot_map().rows, live))
        new = storage.new_generation(reader, keep)
    with new:
        new.seal({"base": {"rows": new.rows}})
        meanwhile()
        with storage.write() as writer:
            writer.switch_generation(new)


def test_a_checkpoint_trims_the_log(storage: Storage) -> None:
    add(storage, "v1")
    add(storage, "v2")
    add(storage, "v3")
    with storage.write() as writer:
        assert writer.save_checkpoint({"base": {"n": np.arange(2)}, "text": {}}, 2)
        assert writer.checkpoint()["base"]["n"].tolist() == [0, 1]
    with storage.read() as reader:
        assert (reader.head.checkpoint_lsn, reader.head.checkpoint_n) == (2, 2)
        assert {k: dict(v) for k, v in reader.checkpoint().items()}["text"] == {}
        assert reader.deltas(0) is None
        assert reader.deltas(1) is None
        assert [d.lsn for d in reader.deltas(2) or []] == [3]
        assert reader.deltas(3) == []


def test_an_older_checkpoint_does_not_replace_a_newer_one(storage: Storage) -> None:
    add(storage, "v1")
    add(storage, "v2")
    with storage.write() as writer:
        assert writer.save_checkpoint({"base": {"n": np.arange(2)}}, 2)
        assert not writer.save_checkpoint({"base": {"n": np.arange(1)}}, 1)
        assert not writer.save_checkpoint({"base": {"n": np.arange(9)}}, 3)
        assert writer.save_checkpoint({"base": {"n": np.arange(7)}}, 2)  # a repair
    with storage.read() as reader:
        assert len(reader.checkpoint()["base"]["n"]) == 7


def test_mapped_checkpoints_stay_with_their_readers(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "v1")
    with storage.write() as writer:
        writer.save_checkpoint({"base": {"n": np.arange(1000)}}, 1)
    with storage.read() as reader:
        old = reader.checkpoint()["base"]["n"]
    with storage.write() as writer:
        writer.save_checkpoint({"base": {"n": np.arange(5)}}, 1)
    assert len(names(folder / "derived")) == 1
    assert old.sum() == 499_500
    storage.close()


def test_compaction_squeezes_slots_and_keeps_rows(storage: Storage) -> None:
    add(storage, "v1", "v2", "t3", "v4")
    add(storage, "v5")
    drop(storage, "v2", "v4")
    add(storage, "v1", replace=True)
    before = seen(storage)
    with storage.read() as reader:
        rows = reader.rows_of(list(before))
    compact(storage)
    assert seen(storage) == before == {"v1": 1, "t3": -1, "v5": 5}
    with storage.read() as reader:
        assert reader.rows_of(list(before)) == rows
        assert reader.slot_map().rows.tolist() == [3, 5, 6]
        assert reader.head.generation == 2
        assert reader.head.n == 3
        assert reader.head.next_row == 7
        assert reader.checkpoint()["base"]["rows"].tolist() == [3, 5, 6]
    assert add(storage, "v7").first_row == 7
    assert seen(storage) == before | {"v7": 7}


def test_a_compaction_of_everything_and_of_nothing(storage: Storage) -> None:
    compact(storage)
    add(storage, "v1", "v2")
    drop(storage, "v1", "v2")
    compact(storage)
    assert seen(storage) == {}
    add(storage, "v3")
    assert seen(storage) == {"v3": 3}
    compact(storage)
    assert seen(storage) == {"v3": 3}


def test_what_happens_meanwhile_is_carried_over(storage: Storage) -> None:
    add(storage, "v1", "v2")
    add(storage, "v3")
    drop(storage, "v1")

    def meanwhile() -> None:
        add(storage, "v4", "t5")  # this extends a range that was there before
        add(storage, "v2", replace=True)
        drop(storage, "v3")
        add(storage, "v6")

    compact(storage, meanwhile)
    assert seen(storage) == {"v2": 2, "v4": 4, "t5": -1, "v6": 6}
    with storage.read() as reader:
        head = reader.head
        deltas = reader.deltas(head.checkpoint_lsn)
        assert deltas is not None
        assert [d.postings for d in deltas] == [b"v4 t5", b"v2", b"", b"v6"]
        # They follow the carried slots, and name the same rows as before.
        assert [(d.lo, d.hi, d.first_row) for d in deltas] == [
            (2, 4, 4),
            (4, 5, 6),
            (5, 5, 7),
            (5, 6, 7),
        ]
        assert [d.dead_rows.tolist() for d in deltas] == [[], [2], [3], []]
        assert {d.generation for d in deltas} == {2}
        assert [d.lsn for d in deltas] == list(range(head.checkpoint_lsn + 1, head.lsn + 1))
        assert reader.slot_map().rows.tolist() == [2, 3, 4, 5, 6, 7]


def test_a_range_that_grew_over_the_snapshots_end_is_cut_there(storage: Storage) -> None:
    for i in range(1, 6):
        add(storage, f"v{i}")
    compact(storage, lambda: [add(storage, f"v{i}") for i in range(6, 9)] and None)
    with storage.read() as reader:
        assert [(r.first_row, r.lo, r.hi) for r in reader.ranges()] == [(6, 5, 8)]
        assert reader.head.base_n == 5
    assert seen(storage) == {f"v{i}": i for i in range(1, 9)}


def test_the_first_vector_may_come_during_a_compaction(storage: Storage) -> None:
    with storage.write() as writer:
        writer.commit(records=[NewRecord("t1", "", "{}"), NewRecord("t2", "", "{}")])
        writer.commit(dead_rows=[1])
    compact(storage, lambda: add(storage, "v3") and None)
    assert seen(storage) == {"t2": -1, "v3": 3}


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_readers_of_the_old_generation_start_again(storage: Storage, before: int) -> None:
    """Wherever they stood: no change of the new numbering can be taken for one of the old."""
    add(storage, "v1")
    add(storage, "v2")
    compact(storage, lambda: add(storage, "v3") and None)
    with storage.read() as reader:
        assert reader.head.lsn > 4
        assert reader.deltas(before) is None


def test_a_second_compaction_that_is_overtaken_starts_again(storage: Storage) -> None:
    add(storage, "v1", "v2")
    drop(storage, "v1")
    with pytest.raises(StaleGeneration):
        compact(storage, lambda: compact(storage))
    assert seen(storage) == {"v2": 2}
    compact(storage)
    assert seen(storage) == {"v2": 2}


def test_a_checkpoint_during_a_compaction_keeps_the_log_it_needs(storage: Storage) -> None:
    add(storage, "v1", "v2")
    drop(storage, "v1")

    def meanwhile() -> None:
        add(storage, "v3")
        with storage.write() as writer:
            writer.save_checkpoint({"base": {"n": np.arange(3)}}, writer.head.lsn)
        add(storage, "v4")

    compact(storage, meanwhile)
    assert seen(storage) == {"v2": 2, "v3": 3, "v4": 4}
    with storage.read() as reader:
        deltas = reader.deltas(reader.head.checkpoint_lsn)
        assert [d.postings for d in deltas or []] == [b"v3", b"v4"]


def test_another_process_checkpoint_during_a_compaction_starts_it_again(folder: Path) -> None:
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "v1")

    def meanwhile() -> None:
        add(other, "v2")
        with other.write() as writer:
            writer.save_checkpoint({"base": {"n": np.arange(2)}}, writer.head.lsn)

    with pytest.raises(StaleGeneration):
        compact(storage, meanwhile)
    compact(storage)
    assert seen(other) == {"v1": 1, "v2": 2}
    assert names(folder / "vectors") == ["2.f32", "2.rows"]
    storage.close()
    other.close()


def test_compaction_does_not_make_damage_look_whole(folder: Path) -> None:
    """Neither what was there before, nor what came meanwhile, gets a fresh checksum unseen."""
    storage = Storage.open(folder)
    add(storage, "v1", "v2")
    with storage.write() as writer:
        writer.commit(records=[NewRecord("t3", "", "{}")])
    add(storage, "v4")
    file = folder / "vectors" / "1.f32"

    def flip(offset: int) -> None:
        data = bytearray(file.read_bytes())
        data[offset] ^= 1
        with file.open("r+b") as opened:
            opened.write(data)

    flip(0)
    with pytest.raises(CorruptionError, match=r"slots 0 to 1 do not match.*not copied"):
        compact(storage)
    assert names(folder / "vectors") == ["1.f32"]
    drop(storage, "v1", "v2")
    compact(storage)  # what is damaged is dead
    assert seen(storage) == {"t3": -1, "v4": 4}
    file = folder / "vectors" / "2.f32"

    def meanwhile() -> None:
        add(storage, "v5")
        flip(8 + 8)

    def meanwhile_once_more() -> None:
        add(storage, "v7")
        flip(8 + 8)

    with pytest.raises(CorruptionError, match="slots 2 to 2 do not match"):
        compact(storage, meanwhile)
    flip(8 + 8)
    storage.close()
    storage = Storage.open(folder)
    add(storage, "v6")
    with pytest.raises(CorruptionError, match="slots 2 to 4 do not match"):
        compact(storage, meanwhile_once_more)
    storage.close()


def test_an_abandoned_compaction_leaves_nothing(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "v1")
    with storage.read() as reader:
        new = storage.new_generation(reader, np.array([0]))
    with new:
        new.seal({"base": {}})
        assert names(folder / "vectors") == ["1.f32", "2.f32", "2.rows"]
        assert names(folder / "derived") == ["g2.bin"]
    assert names(folder / "vectors") == ["1.f32"]
    assert names(folder / "derived") == []
    with storage.write() as writer, pytest.raises(StoreError, match="let go of already"):
        writer.switch_generation(new)
    storage.close()


def test_an_unsealed_generation_is_refused(storage: Storage) -> None:
    add(storage, "v1")
    with storage.read() as reader:
        new = storage.new_generation(reader, np.array([0]))
    with new, storage.write() as writer, pytest.raises(StoreError, match="must be sealed"):
        writer.switch_generation(new)
    assert seen(storage) == {"v1": 1}


def test_a_writer_leaves_a_compaction_at_work_alone(folder: Path) -> None:
    """Nothing names its files yet, so they look like what a dead writer left."""
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "v1")
    with storage.read() as reader:
        new = storage.new_generation(reader, np.array([0]))
    with new:
        new.seal({"base": {}})
        add(other, "v2")
        assert names(folder / "vectors") == ["1.f32", "2.f32", "2.rows"]
        assert names(folder / "derived") == ["g2.bin"]
        with storage.write() as writer:
            writer.switch_generation(new)
    assert seen(other) == {"v1": 1, "v2": 2}
    storage.close()
    other.close()


def test_what_a_dead_writer_left_is_swept(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "v1")
    orphans = [
        folder / "vectors" / "7.f32",
        folder / "vectors" / "7.rows",
        folder / "derived" / "g7.bin",
        folder / "derived" / "3-1.bin",
        folder / "cormorant.sqlite.new-wal",
    ]
    mine = [folder / "vectors" / "notes.txt", folder / "derived" / "x.bin", folder / "readme"]
    for path in orphans + mine:
        path.write_bytes(b"x")
    with (folder / "vectors" / "1.f32").open("ab") as file:
        file.write(b"half a vector")
    storage.close()
    storage = Storage.open(folder)
    with storage.read():
        assert all(path.exists() for path in orphans)  # only a writer may do it
    with storage.write():
        pass
    assert not [path for path in orphans if path.exists()]
    assert all(path.exists() for path in mine)
    assert (folder / "vectors" / "1.f32").stat().st_size == 8
    assert seen(storage) == {"v1": 1}
    storage.close()


def test_two_builders_get_two_numbers(folder: Path) -> None:
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "v1")
    with storage.read() as one, other.read() as two:
        first, second = (
            storage.new_generation(one, np.array([0])),
            other.new_generation(two, np.array([0])),
        )
    with first, second:
        assert (first.generation, second.generation) == (2, 3)
        second.seal({"base": {"n": np.arange(3)}})
        with other.write() as writer:
            writer.switch_generation(second)
    assert names(folder / "vectors") == ["3.f32", "3.rows"]
    compact(storage)
    assert seen(other) == {"v1": 1}
    storage.close()
    other.close()


def test_compaction_makes_deleted_bytes_go(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, *(f"v{i}" for i in range(600, 700)))
    vector = np.array([666, 1], "<f4").tobytes()
    drop(storage, "v666", *(f"v{i}" for i in range(670, 700)))
    assert holds(folder, SECRET.encode())
    compact(storage)
    with storage.write() as writer:
        done = writer.reclaim()
    assert not done.pending_readers
    assert done.left == ()
    assert not holds(folder, SECRET.encode())
    assert not holds(folder, vector)
    assert (folder / "cormorant.sqlite-wal").stat().st_size == 0
    storage.close()


def test_compaction_gives_space_back(folder: Path) -> None:
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord(f"{i}", "x" * 2000, "{}") for i in range(500)],
            vectors=np.ones((500, 64), np.float32),
        )
        writer.commit(dead_rows=range(1, 451))
    compact(storage)
    with storage.write() as writer:
        done = writer.reclaim()
    assert done.before_bytes > 1_000_000
    assert done.after_bytes < done.before_bytes / 5
    assert done.after_bytes == storage.size_bytes()
    storage.close()


def test_an_open_reader_keeps_bytes_and_is_reported(folder: Path) -> None:
    storage, other = Storage.open(folder), Storage.open(folder)
    add(storage, "v666", "v1")
    with other.read() as reader:
        drop(storage, "v666")
        compact(storage)
        with storage.write() as writer:
            assert writer.reclaim().pending_readers
        assert holds(folder, SECRET.encode())
        assert reader.records([1])[1].text == SECRET
        vectors = reader.vectors()
        assert vectors is not None
        assert vectors[0, 0] == 666
    add(storage, "v2")  # the next write after the reader has gone cuts the log
    assert not holds(folder, SECRET.encode())
    assert seen(other) == {"v1": 1, "v2": 2}
    storage.close()
    other.close()


def test_readers_go_on_while_writers_and_compactions_do(folder: Path) -> None:
    """Each snapshot is one state of the store: its records carry one number, in ascending steps."""
    storage = Storage.open(folder, lock_timeout_s=60)
    stop = threading.Event()
    faults: list[Any] = []

    def write(writer: Writer, number: int) -> None:
        writer.commit(
            records=[NewRecord(f"r{i}", str(number), "{}") for i in range(3)],
            vectors=np.full((3, 2), number, np.float32),
            dead_rows=writer.live_rows(),
        )

    def read(reading: Storage) -> None:
        last = 0
        try:
            while not stop.is_set():
                with reading.read() as reader:
                    texts = [record.text for batch in reader.scan() for record in batch]
                    vectors, slots = reader.vectors(), reader.slot_map()
                    assert vectors is not None
                    at = np.searchsorted(slots.rows, reader.live_rows())
                    assert len(set(texts)) == 1, texts
                    assert vectors[at].tolist() == [[float(texts[0])] * 2] * 3
                    assert int(texts[0]) >= last
                    last = int(texts[0])
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            faults.append(error)

    with storage.write() as writer:
        write(writer, 1)
    others = [storage, Storage.open(folder, read_only=True)]
    threads = [threading.Thread(target=read, args=(other,), daemon=True) for other in others]
    for thread in threads:
        thread.start()
    for number in range(2, 60):
        with storage.write() as writer:
            write(writer, number)
        if number % 6 == 0:
            compact(storage)
    stop.set()
    for thread in threads:
        thread.join()
    assert not faults
    assert storage.verify() == []
    for other in others:
        other.close()


def test_missing_files_are_said_when_they_are_needed(folder: Path) -> None:
    storage = Storage.open(folder)
    add(storage, "v1", "v2")
    drop(storage, "v1")
    compact(storage)
    storage.close()
    for name, use in {
        "derived/g2.bin": lambda reader: reader.checkpoint(),
        "vectors/2.rows": lambda reader: reader.slot_map(),
        "vectors/2.f32": lambda reader: reader.vectors(),
    }.items():
        (folder / name).rename(folder / "away")
        storage = Storage.open(folder)
        with storage.read() as reader:
            assert reader.rows_of(["v2"]) == {"v2": 2}
            with pytest.raises(CorruptionError, match=f"{name} is missing"):
                use(reader)
        assert [p.what for p in storage.verify() if "is missing" in p.what]
        storage.close()
        (folder / "away").rename(folder / name)


def holds(folder: Path, needle: bytes) -> bool:
    return any(needle in path.read_bytes() for path in folder.rglob("*") if path.is_file())
