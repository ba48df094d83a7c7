"""Storage against a dict: whatever is stored, replaced, folded, compacted, copied or reopened.

Two stores look at one folder: one writes, the other only reads, and replays the log as a
reader's indexes would. What it makes of the log must be what the records say.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cormorant.storage import (
    Delta,
    NewRecord,
    Reader,
    StaleGeneration,
    Storage,
    encode_metadata,
)

DIM = 2
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a sync costs nothing there

ids = st.sampled_from([f"id{i}" for i in range(8)] + ["é", "日本"])
values = st.one_of(st.none(), st.integers(1, 9))  # None: no vector
batches = st.lists(st.tuples(ids, values), max_size=5, unique_by=lambda pair: pair[0])


class Follower:
    """What a reader's indexes hold: the id of each slot, from postings blobs alone."""

    def __init__(self) -> None:
        self.generation, self.lsn = 1, 0
        self.rows: list[int] = []
        self.ids: list[str] = []
        self.flags: list[bool] = []
        self.dead: set[int] = set()
        self.reloads = 0

    def follow(self, reader: Reader) -> None:
        """Catch up, by the log if it reaches back far enough, else from the checkpoint."""
        head = reader.head
        deltas = reader.deltas(self.lsn) if self.generation == head.generation else None
        if deltas is None:
            self.reloads += 1
            base = reader.checkpoint().get("base", {})
            self.generation, self.lsn = head.generation, head.checkpoint_lsn
            self.rows = list(base["rows"].tolist()) if base else []
            self.ids = [str(id) for id in base["ids"]] if base else []
            self.flags = list(base["flags"].tolist()) if base else []
            self.dead = set(base["dead"].tolist()) if base else set()
            deltas = reader.deltas(self.lsn)
            assert deltas is not None
        for delta in deltas:
            self.apply(delta)
        assert (self.lsn, len(self.rows)) == (head.lsn, head.n)

    def apply(self, delta: Delta) -> None:
        assert (delta.lsn, delta.lo) == (self.lsn + 1, len(self.rows))
        self.lsn = delta.lsn
        self.rows += delta.rows.tolist()
        self.flags += delta.has_vector.tolist()
        self.ids += delta.postings.decode().split("|") if delta.hi > delta.lo else []
        self.dead |= set(delta.dead_rows.tolist())

    def arrays(self, keep: list[int] | None = None) -> dict[str, dict[str, np.ndarray]]:
        """What a checkpoint keeps, of all slots or of some."""
        at = range(len(self.rows)) if keep is None else keep
        return {
            "base": {
                "rows": np.array([self.rows[i] for i in at], np.int64),
                "ids": np.array([self.ids[i] for i in at], "U8"),
                "flags": np.array([self.flags[i] for i in at], np.bool_),
                "dead": np.array(sorted(self.dead) if keep is None else [], np.int64),
            }
        }

    def live(self) -> dict[str, int]:
        return {
            id: row for id, row in zip(self.ids, self.rows, strict=True) if row not in self.dead
        }


class StorageMachine(RuleBasedStateMachine):
    @initialize(memory=st.booleans(), known=st.booleans())
    def open(self, memory: bool, known: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=FAST))
        self.memory = memory
        self.config: dict[str, Any] = {"dim": DIM if known else None, "n": 0}
        where = ":memory:" if memory else self.folder / "kb"
        self.storage = Storage.open(where, config=self.config, lock_timeout_s=5)
        self.other = self.storage if memory else Storage.open(where, read_only=True)
        self.model: dict[str, tuple[str, int | None]] = {}
        self.count = 0
        self.follower, self.mirror = Follower(), Follower()
        self.pinned: list[tuple[Any, dict[str, Any]]] = []
        self.copies = 0

    def commit(self, batch: list[tuple[str, int | None]], drop: list[str]) -> None:
        self.count += 1
        text = f"text {self.count}"
        vectors = np.array([[v or 0, self.count] for _, v in batch], np.float32).reshape(-1, DIM)
        has = np.array([v is not None for _, v in batch], np.bool_)
        with self.storage.write() as writer:
            gone = writer.rows_of(sorted({id for id, _ in batch} | set(drop)))
            delta = writer.commit(
                records=[NewRecord(id, text, encode_metadata({"v": value})) for id, value in batch],
                vectors=vectors if has.any() else None,
                has_vector=has,
                dead_rows=list(gone.values()),
                postings="|".join(id for id, _ in batch).encode(),
            )
            assert delta.lsn == writer.head.lsn
        for id in gone:
            del self.model[id]
        self.model.update({id: (text, value) for id, value in batch})

    @rule(batch=batches)
    def add(self, batch: list[tuple[str, int | None]]) -> None:
        self.commit(batch, [])

    @rule(batch=batches, drop=st.lists(ids, max_size=3))
    def add_and_delete(self, batch: list[tuple[str, int | None]], drop: list[str]) -> None:
        self.commit(batch, drop)

    @rule(drop=st.lists(ids, max_size=6))
    def delete(self, drop: list[str]) -> None:
        self.commit([], drop)

    @rule(number=st.integers(0, 3))
    def configure(self, number: int) -> None:
        with self.storage.write() as writer:
            writer.commit(config={"n": number})
        self.config["n"] = number

    @rule(behind=st.booleans())
    def checkpoint(self, behind: bool) -> None:
        with self.storage.read() as reader:
            self.follower.follow(reader)
        arrays, lsn = self.follower.arrays(), self.follower.lsn
        if behind:
            self.commit([("id0", 3)], [])
        with self.storage.write() as writer:
            assert writer.save_checkpoint(arrays, lsn)

    @rule(batch=batches, drop=st.lists(ids, max_size=3), twice=st.booleans(), give_up=st.booleans())
    def compact(
        self, batch: list[tuple[str, int | None]], drop: list[str], twice: bool, give_up: bool
    ) -> None:
        with self.storage.read() as reader:
            self.follower.follow(reader)
            rows = np.array(self.follower.rows, np.int64)
            keep = np.flatnonzero(~np.isin(rows, sorted(self.follower.dead)))
            new = self.storage.new_generation(reader, keep)
        with new:
            new.seal(self.follower.arrays(keep.tolist()))
            self.commit(batch, drop)
            if twice:
                self.compact_at_once()
            if give_up:
                return
            with self.storage.write() as writer:
                try:
                    head = writer.switch_generation(new)
                except StaleGeneration:
                    assert twice
                    return
                assert not twice
                assert head.n == len(keep) + len(batch)
                writer.reclaim()

    def compact_at_once(self) -> None:
        with self.storage.read() as reader:
            self.follower.follow(reader)
            live = set(self.follower.live().values())
            keep = [i for i, row in enumerate(self.follower.rows) if row in live]
            new = self.storage.new_generation(reader, np.array(keep, np.int64))
        with new:
            new.seal(self.follower.arrays(keep))
            with self.storage.write() as writer:
                assert writer.switch_generation(new).n == len(keep)

    @precondition(lambda self: not self.memory)
    @rule()
    def reopen(self) -> None:
        self.storage.close()
        self.storage = Storage.open(self.folder / "kb", create=False, lock_timeout_s=5)
        self.follower = Follower()

    @precondition(lambda self: not self.memory and len(self.pinned) < 2)
    @rule()
    def pin_a_snapshot(self) -> None:
        reader = self.other.read().__enter__()
        self.pinned.append((reader, self.seen(reader)))

    @precondition(lambda self: self.pinned)
    @rule()
    def let_go_of_a_snapshot(self) -> None:
        reader, before = self.pinned.pop()
        assert self.seen(reader) == before
        reader.__exit__(None, None, None)

    @precondition(lambda self: self.copies < 2)
    @rule()
    def backup(self) -> None:
        self.copies += 1
        copy = self.folder / f"copy{self.copies}"
        self.storage.backup(copy)
        other = Storage.open(copy, create=False)
        with other.read() as reader:
            assert self.seen(reader) == self.wanted()
            Follower().follow(reader)
        assert other.verify() == []
        other.close()

    @rule()
    def verify(self) -> None:
        assert self.storage.verify() == []

    def wanted(self) -> dict[str, Any]:
        return {
            id: (text, {"v": value}, None if value is None else float(value))
            for id, (text, value) in self.model.items()
        }

    def seen(self, reader: Reader) -> dict[str, Any]:
        """All records, each with the first number of its slot's vector."""
        slots, vectors = reader.slot_map(), reader.vectors()
        records = [record for batch in reader.scan(batch=3) for record in batch]
        at = np.searchsorted(slots.rows, [record.row for record in records])
        found = {}
        for record, slot in zip(records, at.tolist(), strict=True):
            assert slots.rows[slot] == record.row
            first = None
            if slots.has_vector[slot]:
                assert vectors is not None
                first = float(vectors[slot, 0])
            found[record.id] = (record.text, record.metadata, first)
        assert reader.rows_of(list(found)) == {record.id: record.row for record in records}
        return found

    @invariant()
    def everything_agrees(self) -> None:
        if not hasattr(self, "storage"):
            return
        for storage, follower in ((self.storage, self.follower), (self.other, self.mirror)):
            with storage.read() as reader:
                assert self.seen(reader) == self.wanted()
                assert reader.config["n"] == self.config["n"]
                follower.follow(reader)
                assert follower.live() == reader.rows_of(list(self.model))
                assert follower.flags == reader.slot_map().has_vector.tolist()

    def teardown(self) -> None:
        if not hasattr(self, "storage"):
            return
        for reader, before in self.pinned:
            assert self.seen(reader) == before
            reader.__exit__(None, None, None)
        assert self.storage.verify() == []
        self.storage.close()
        self.other.close()
        shutil.rmtree(self.folder)


StorageMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestStorage = StorageMachine.TestCase
