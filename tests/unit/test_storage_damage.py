"""Damage to SQLite's file, and hostile contents with right checksums: errors of ours, always."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cormorant.errors import CorruptionError, StoreError
from cormorant.storage import Head, NewDocument, NewRecord, Reader, Storage, Writer
from cormorant.storage.head import head_crc, log_crc

PAGE = 4096


def records(*ids: str) -> list[NewRecord]:
    return [NewRecord(id, f"text of {id}", "{}") for id in ids]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with something in every table."""
    folder = tmp_path_factory.mktemp("damage") / "kb"
    storage = Storage.open(folder, config={"x": 1})
    with storage.write() as writer:
        writer.commit(
            records=records(*(f"r{i}" for i in range(100))),
            vectors=np.ones((100, 2), np.float32),
            documents=[NewDocument("d", "a document", "{}")],
        )
        writer.save_checkpoint({"base": {"x": np.arange(9)}}, writer.head.lsn)
        writer.commit(records=records("late"))
    storage.close()
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "kb")
    return tmp_path / "kb"


def reading(work: Callable[[Reader], object]) -> Callable[[Storage], object]:
    def call(storage: Storage) -> object:
        with storage.read() as reader:
            return work(reader)

    return call


def writing(work: Callable[[Writer], object]) -> Callable[[Storage], object]:
    def call(storage: Storage) -> object:
        with storage.write() as writer:
            return work(writer)

    return call


def compacted(storage: Storage) -> None:
    with storage.read() as reader:
        new = storage.new_generation(reader, np.arange(min(reader.head.n, 200)))
    with new:
        new.seal({"base": {}})
        with storage.write() as writer:
            writer.switch_generation(new)
            writer.reclaim()


def calls(target: Path) -> Iterator[Callable[[Storage], object]]:
    """Everything that can be done with a store."""
    yield reading(lambda reader: reader.config)
    yield reading(lambda reader: list(reader.scan()))
    yield reading(lambda reader: reader.records([1, 2]))
    yield reading(lambda reader: reader.rows_of(["r7"]))
    yield reading(lambda reader: reader.documents(["d"]))
    yield reading(lambda reader: reader.document_ids())
    yield reading(lambda reader: reader.deltas(0))
    yield reading(lambda reader: reader.slot_map())
    yield reading(lambda reader: reader.live_rows())
    yield Storage.verify
    yield lambda storage: storage.backup(target)
    yield writing(lambda writer: writer.commit(records=records("new"), dead_rows=[3]))
    yield writing(lambda writer: writer.commit(documents=[NewDocument("e", "", "{}")]))
    yield writing(lambda writer: writer.save_checkpoint({"base": {}}, writer.head.lsn))
    yield compacted


def attempt(folder: Path, target: Path) -> list[str]:
    """What each call says of a damaged store; anything but a StoreError fails the test."""
    said = []
    for call in calls(target):
        storage = None
        try:
            storage = Storage.open(folder, create=False)
            call(storage)
        except StoreError as error:
            said.append(str(error))
        finally:
            if storage is not None:
                storage.close()
    return said


def test_damage_in_any_page_is_an_error_of_ours(whole: Path, tmp_path: Path) -> None:
    good = (whole / "cormorant.sqlite").read_bytes()
    for page in range(len(good) // PAGE):
        data = bytearray(good)
        at = page * PAGE + (100 if page == 0 else 0)
        data[at : at + 16] = b"\xff" * 16
        folder = tmp_path / f"kb{page}"
        shutil.copytree(whole, folder)
        (folder / "cormorant.sqlite").write_bytes(data)
        said = attempt(folder, tmp_path / f"copy{page}")
        assert any("is damaged" in text for text in said), page


def change(folder: Path, *statements: str, **head: object) -> None:
    """Change tables as a hostile hand would; the head's and the log's checksums are right."""
    connection = sqlite3.connect(folder / "cormorant.sqlite")
    for statement in statements:
        connection.execute(statement)
    values = Head(*connection.execute(f"SELECT {', '.join(COLUMNS)} FROM head").fetchone())
    values = values._replace(**head)
    names = ", ".join(f"{name} = ?" for name in (*COLUMNS, "crc"))
    connection.execute(f"UPDATE head SET {names}", (*values, head_crc(values)))
    connection.commit()
    connection.close()


COLUMNS = [name.replace("checkpoint_name", "checkpoint") for name in Head._fields]
HUGE_RANGE = f"UPDATE ranges SET hi = {2**50}, vectors = 0, crc = NULL WHERE lo = 0"


@pytest.mark.parametrize(
    ("statements", "head", "says"),
    [
        ([], {"n": 2**61, "next_row": 2**61 + 1}, "account for"),
        ([], {"n": 2**31, "next_row": 2**61}, "account for"),
        ([], {"n": 2**31, "next_row": 2**61, "dim": 2**31}, "its head is"),
        (["DELETE FROM ranges WHERE lo > 0", HUGE_RANGE], {"n": 2**50, "next_row": 2**60}, "damag"),
        ([], {"next_row": 2**63 - 1}, "its head is"),
        ([], {"next_row": 2**62}, "its head is"),
        ([], {"lsn": 2**63 - 1}, "its head is"),
        ([], {"checkpoint_name": None}, "its head is"),
        (["INSERT INTO ranges VALUES (50000, 101, 150, 0, NULL, NULL)"], {}, "account for"),
        (["INSERT INTO ranges VALUES (50000, 60000, 60001, 0, NULL, NULL)"], {}, "account for"),
        (["UPDATE ranges SET first_row = -5 WHERE lo = 0"], {}, "a range of slots is"),
        (["UPDATE ranges SET crc = 'x'"], {}, "a range of slots is"),
        (["UPDATE ranges SET crc = NULL"], {}, "a range of slots is"),
        (["UPDATE ranges SET hi = 'x'"], {}, "a range of slots is"),
        (["UPDATE ranges SET has_vector = 'text'"], {}, "a range of slots is"),
        (["UPDATE ranges SET has_vector = x'00000000000000000000000000'"], {}, "vectors"),
        ([], {"dim": None}, "has no dimension"),
        (["UPDATE log SET hi = hi + 1"], {}, "do not join up"),
        ([f"UPDATE log SET hi = {2**60}"], {}, "do not join up"),
        ([f"UPDATE log SET lo = {-(2**60)}"], {}, "do not join up"),
        (["UPDATE log SET vectors = 1"], {}, "says otherwise"),
        (["UPDATE log SET vectors = -1"], {}, "is damaged"),
        (["UPDATE log SET has_vector = 'x'"], {}, "is damaged"),
    ],
)
def test_hostile_contents_with_right_checksums(
    folder: Path, tmp_path: Path, statements: list[str], head: dict[str, Any], says: str
) -> None:
    change(folder, *statements, **head)
    try:
        storage = Storage.open(folder)
    except CorruptionError as error:
        said = [str(error)]
    else:
        said = [problem.what for problem in storage.verify()]
        storage.close()
    attempt(folder, tmp_path / "copy")
    assert any(says in text for text in said), said


@pytest.mark.parametrize("first_row", [-(2**62), 0, 1, 55, 2**62])
def test_a_change_with_other_rows_is_found(folder: Path, first_row: int) -> None:
    with sqlite3.connect(folder / "cormorant.sqlite") as connection:
        parts = "lsn, dead, has_vector, postings, columns"
        lsn, *blobs = connection.execute(f"SELECT {parts} FROM log").fetchall()[-1]
        crc = log_crc(first_row, *blobs)
        connection.execute(
            "UPDATE log SET first_row = ?, crc = ? WHERE lsn = ?", (first_row, crc, lsn)
        )
    connection.close()
    storage = Storage.open(folder)
    (problem,) = storage.verify()
    assert problem.repairable
    assert "change 2" in problem.what
    storage.close()


def test_numbers_never_grow_beyond_what_can_be_read(folder: Path) -> None:
    change(folder, next_row=2**62 - 2)
    storage = Storage.open(folder)
    for name in ("one", "two"):
        with contextlib.suppress(StoreError), storage.write() as writer:
            writer.commit(records=records(name))
    storage.close()
    again = Storage.open(folder)
    with again.read() as reader:
        assert list(reader.rows_of(["one", "two"])) == ["one"]
    again.close()
