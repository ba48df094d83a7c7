"""Damage anywhere is found, named, and told apart: what can be rebuilt and what cannot."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import NewRecord, Storage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed store with a base, ranges, dead slots, a checkpoint and a log."""
    storage = Storage.open(tmp_path / "kb", config={"x": 1})
    for first in (0, 20):
        with storage.write() as writer:
            writer.commit(
                records=[
                    NewRecord(f"{first + i}", f"text {i} " * 20, '{"k":1}') for i in range(20)
                ],
                vectors=np.arange(1 + first, 61 + first, dtype=np.float32).reshape(20, 3),
                postings=b"p" * 300,
            )
    with storage.write() as writer:
        writer.commit(dead_rows=[3, 4])
    with storage.read() as reader:
        keep = np.flatnonzero(np.isin(reader.slot_map().rows, reader.live_rows()))
        new = storage.new_generation(reader, keep)
    with new:
        new.seal({"base": {"rows": new.rows}})
        with storage.write() as writer:
            writer.switch_generation(new)
    with storage.write() as writer:
        writer.commit(
            records=[NewRecord("new", "text", "{}"), NewRecord("bare", "text", "{}")],
            vectors=np.full((2, 3), 7, np.float32),
            has_vector=np.array([True, False]),
            postings=b"q" * 300,
            columns=b"r" * 300,
        )
        writer.commit(records=[NewRecord("last", "text", "{}")])
    assert storage.verify() == []
    storage.close()
    return tmp_path / "kb"


def problems(folder: Path) -> list[tuple[str, bool]]:
    storage = Storage.open(folder)
    try:
        return [(problem.what, problem.repairable) for problem in storage.verify()]
    finally:
        storage.close()


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("offset", "says"),
    [
        (0, "slots 0 to 37, 38 of them with a vector, do not match"),
        (38 * 12 - 1, "slots 0 to 37, 38 of them"),
        (38 * 12, "slots 38 to 39, 1 of them with a vector"),
        (40 * 12, "slots 40 to 40, 0 of them with a vector"),
    ],
)
def test_a_flipped_bit_in_the_vectors(folder: Path, offset: int, says: str) -> None:
    flip(folder / "vectors" / "2.f32", offset)
    ((what, repairable),) = problems(folder)
    assert says in what
    assert str(folder / "vectors" / "2.f32") in what
    assert not repairable


def test_a_flipped_bit_in_the_row_numbers(folder: Path) -> None:
    path = folder / "vectors" / "2.rows"
    data = path.read_bytes()
    flip(path, data.index(np.array([1, 2, 5], "<i8").tobytes()) + 17)
    found = problems(folder)
    assert any("array base/rows has crc32" in what and not repairable for what, repairable in found)


def test_a_flipped_bit_in_the_checkpoint(folder: Path) -> None:
    path = folder / "derived" / "g2.bin"
    flip(path, path.stat().st_size - 40)
    ((what, repairable),) = problems(folder)
    assert "array base/rows has crc32" in what
    assert repairable


@pytest.mark.parametrize("blob", [b"q" * 300, b"r" * 300])
def test_a_changed_byte_in_the_log(folder: Path, blob: bytes) -> None:
    path = folder / "cormorant.sqlite"
    flip(path, path.read_bytes().index(blob))
    ((what, repairable),) = problems(folder)
    assert "does not match its checksum" in what
    assert repairable


@pytest.mark.parametrize("needle", [b"text 7 text", b'{"k":1}'])
def test_a_changed_byte_in_a_record(folder: Path, needle: bytes) -> None:
    path = folder / "cormorant.sqlite"
    flip(path, path.read_bytes().index(needle))
    ((what, repairable),) = problems(folder)
    assert what.startswith("Record ")
    assert "does not match its checksum" in what
    assert not repairable


@pytest.mark.parametrize(
    ("statement", "says", "repairable"),
    [
        ("DELETE FROM log WHERE lsn = (SELECT max(lsn) FROM log)", "1 of the 2 changes", True),
        ("UPDATE ranges SET lo = lo + 1, hi = hi + 1", "account for 38 of 41 slots", False),
        (
            "DELETE FROM ranges WHERE first_row = (SELECT max(first_row) FROM ranges)",
            "40 of 41",
            False,
        ),
        ("UPDATE ranges SET first_row = 99 WHERE vectors = 0", "out of order", False),
        ("UPDATE ranges SET vectors = 9", "a range of slots is", False),
        ("UPDATE ranges SET has_vector = x'0000'", "2 bytes for 2 flags", False),
        ("UPDATE ranges SET crc = 0 WHERE vectors > 0", "do not match", False),
        ("UPDATE ranges SET has_vector = x'02' WHERE vectors = 1", "do not match", False),
        (
            "UPDATE log SET hi = hi + 1 WHERE lsn = (SELECT max(lsn) FROM log)",
            "do not join up",
            True,
        ),
        ("UPDATE log SET lo = lo + 1, hi = hi + 1", "do not join up", True),
        ("UPDATE log SET first_row = first_row + 1", "match its checksum", True),
        ("UPDATE log SET dead = 'text'", "is damaged: change", True),
        ("UPDATE config SET value = '2'", "setting 'x'", False),
        ("UPDATE records SET \"row\" = 3 WHERE id = 'new'", "1 records have no slot", False),
        (
            "UPDATE records SET metadata = '{' WHERE id = 'new'",
            "does not match its checksum",
            False,
        ),
        (
            "UPDATE records SET text = x'00ff' WHERE id = 'new'",
            "does not match its checksum",
            False,
        ),
        ("DELETE FROM head", "it has 0 heads", False),
    ],
)
def test_tables_that_do_not_fit_together(
    folder: Path, statement: str, says: str, repairable: bool
) -> None:
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    connection.execute(statement)
    connection.commit()
    connection.close()
    try:
        found = problems(folder)
    except StoreError as error:
        found = [(str(error), False)]
    assert [repairs for what, repairs in found if says in what] == [repairable], found


def test_metadata_that_matches_its_checksum_and_is_none(folder: Path) -> None:
    storage = Storage.open(folder)
    with storage.write() as writer:
        writer.commit(records=[NewRecord("bad", "", "{]")])
    assert ["metadata is damaged" in p.what for p in storage.verify()] == [True]
    storage.close()


def test_random_flips_are_found_or_harmless(folder: Path, tmp_path: Path) -> None:
    """Whatever byte is hit: what is read afterwards is right, or the damage is said."""

    def everything(storage: Storage) -> object:
        with storage.read() as reader:
            vectors, slots = reader.vectors(), reader.slot_map()
            assert vectors is not None
            return (
                [record for batch in reader.scan() for record in batch],
                vectors.tobytes(),
                slots.rows.tolist(),
                slots.has_vector.tolist(),
                dict(reader.config),
                reader.checkpoint()["base"]["rows"].tolist(),
                [(d.postings, d.columns) for d in reader.deltas(reader.head.checkpoint_lsn) or []],
            )

    storage = Storage.open(folder)
    whole = everything(storage)
    storage.close()
    rng = random.Random(7)
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "lock"]
    found = 0
    for number in range(60):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(folder, copy)
        path = copy / rng.choice(files).relative_to(folder)
        flip(path, rng.randrange(path.stat().st_size))
        try:
            storage = Storage.open(copy)
        except StoreError:
            found += 1
            continue
        try:
            if storage.verify():
                found += 1
            else:
                assert everything(storage) == whole, path
        except StoreError:
            found += 1
        storage.close()
        shutil.rmtree(copy)
    assert found > 20


def test_a_good_store_in_memory() -> None:
    storage = Storage.open(":memory:")
    works: list[Callable[[], object]] = [storage.verify]
    with storage.write() as writer:
        writer.commit(records=[NewRecord("a", "", "{}")], vectors=np.ones((1, 2), np.float32))
    assert [work() for work in works] == [[]]
    storage.close()


@pytest.mark.parametrize(
    ("name", "offset", "then"),
    [("derived/g2.bin", 40, "check(repair=True)"), ("vectors/2.rows", 64, "from a backup")],
)
def test_a_flipped_bit_in_arrays_is_said_when_they_are_first_read(
    folder: Path, name: str, offset: int, then: str
) -> None:
    flip(folder / name, (folder / name).stat().st_size - offset)
    storage = Storage.open(folder)
    for _ in range(2):
        with storage.read() as reader:
            with pytest.raises(CorruptionError, match="has crc32") as caught:
                reader.checkpoint() if name.startswith("derived") else reader.slot_map()
            assert then in str(caught.value)
            assert ("backup" in str(caught.value)) == (then == "from a backup")
            assert caught.value.path == str(folder / name)
            assert reader.records([1])  # the rest can be read
    storage.close()


@pytest.mark.parametrize(
    ("name", "then"),
    [("derived/g2.bin", "check(repair=True)"), ("vectors/2.rows", "from a backup")],
)
def test_a_damaged_header_says_what_helps(folder: Path, name: str, then: str) -> None:
    flip(folder / name, 40)
    ((what, _),) = [found for found in problems(folder) if "header" in found[0]][:1]
    assert then in what
    assert ("backup" in what) == (then == "from a backup")
