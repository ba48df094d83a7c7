"""Damage to SQLite's file, and hostile contents with right checksums: errors of ours, always."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cormorant.errors import StoreError
from cormorant.storage import NewDocument, NewRecord, Reader, Storage, Writer

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
        new = storage.new_generation(reader, np.arange(reader.head.n))
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
