"""What does the writer do, and what must the store hold afterwards?

A plan follows from its seed alone, so the writer process and the judge agree on it without a word.
Every record tells by itself which batch, version and place it belongs to, three times over: in its
text, its vector and its metadata.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from unittest import mock

import numpy as np

from cormorant import defaults
from cormorant.index.vector import learning
from cormorant.model import Record
from cormorant.store import Store

__all__ = [
    "DIM",
    "EVERYWHERE",
    "Model",
    "Op",
    "backup_folder",
    "document",
    "in_the_background",
    "item",
    "make_plan",
    "open_store",
    "perform",
    "states",
    "word",
]

DIM: Final = 8
EVERYWHERE: Final = "cormorant"
"""A word that every text holds."""

_BESIDE: dict[str, Any] = {"background": False}

Kind: TypeAlias = Literal["add", "delete", "optimize", "compact", "backup", "reopen"]
Model: TypeAlias = Mapping[str, Record]
"""Id → record: what a store holds."""


@dataclass(frozen=True, slots=True)
class Op:
    """One call on the store.

    Attributes:
        kind: Which.
        batch: What an ``add`` puts in or replaces; what a ``delete`` takes away.
        version: Of an added batch, from 0.
        size: Records of an added batch.
        ids: What a ``delete`` by ids takes away; empty for a delete by filter.
        place: Position in the plan.
    """

    kind: Kind
    batch: int = 0
    version: int = 0
    size: int = 0
    ids: tuple[str, ...] = ()
    place: int = 0

    def records(self) -> list[Record]:
        """What an ``add`` adds."""
        return [item(self.batch, self.version, i, self.size) for i in range(self.size)]


def word(kind: str, number: int) -> str:
    """A term that no stemmer changes and no other number shares: consonants alone."""
    digits = "".join("bcdfghjkmp"[int(d)] for d in str(number))
    return f"{kind}q{digits}"


@functools.lru_cache(maxsize=4096)
def item(batch: int, version: int, place: int, size: int) -> Record:
    """The record at one place of one version of a batch."""
    rng = random.Random(batch * 1_000_003 + version * 1009 + place)
    words = [EVERYWHERE, word("x", batch), word("z", version), word("w", place)]
    # Now and then a text of several pages, so that a commit is more than one frame.
    filler = rng.choice((4, 4, 20, 900))
    words += rng.choices(("rock", "dives", "fish", "鸬鹚", "潜水"), k=filler)
    vector = None
    if place % 5 != 4:
        rest = [rng.uniform(-1, 1) for _ in range(DIM - 3)]
        vector = np.array([batch, version, place, *rest], dtype=np.float32)
    metadata = {"batch": batch, "version": version, "place": place, "size": size}
    return Record(f"b{batch}-{place}", " ".join(words), vector, metadata)


def document(batch: int, version: int) -> Record:
    """What a batch was cut from: it comes with the batch, in the same call."""
    pages = random.Random(batch).choice((1, 1, 3000))
    return Record(f"d{batch}", f"{version} " * pages, metadata={"version": version})


def make_plan(seed: int, length: int, *, whole: bool = False, start: int = 0) -> list[Op]:
    """A list of calls.

    Args:
        seed: Decides everything.
        length: How many.
        whole: Change whole batches alone, so that a reader may check a batch by itself.
        start: Number of the first call, and so of the first batch: for a store that already
            holds what an earlier plan put there.
    """
    rng = random.Random(seed)
    live: dict[int, tuple[int, int]] = {}  # batch → version, size
    ops: list[Op] = []
    kinds = ("add", "update", "delete", "optimize", "compact", "backup", "reopen")
    weights = (10, 4, 3, 1.5, 1.5, 0.0 if whole else 0.7, 1.5)
    for place in range(start, start + length):
        kind = rng.choices(kinds, weights)[0]
        if kind in ("update", "delete") and not live:
            kind = "add"
        if kind == "add":
            batch, version, size = place, 0, rng.choice((1, 2, 7, 30))
            live[batch] = version, size
            ops.append(Op("add", batch, version, size, place=place))
        elif kind == "update":
            batch = rng.choice(sorted(live))
            version, size = live[batch][0] + 1, live[batch][1]
            live[batch] = version, size
            ops.append(Op("add", batch, version, size, place=place))
        elif kind == "delete":
            batch = rng.choice(sorted(live))
            if whole or rng.random() < 0.5:
                del live[batch]
                ops.append(Op("delete", batch, place=place))
            else:
                some = rng.sample(range(live[batch][1]), k=(live[batch][1] + 1) // 2)
                ids = tuple(f"b{batch}-{i}" for i in some)
                ops.append(Op("delete", batch, ids=ids, place=place))
        else:
            ops.append(Op(kind, place=place))  # type: ignore[arg-type]
    return ops


def states(ops: Sequence[Op], base: Model | None = None) -> list[Model]:
    """What the store holds before each call, and after the last, if it held ``base`` at first."""
    found: list[Model] = [base or {}]
    for op in ops:
        now = dict(found[-1])
        if op.kind == "add":
            now.update({record.id: record for record in op.records()})
        elif op.kind == "delete" and op.ids:
            for key in op.ids:
                now.pop(key, None)
        elif op.kind == "delete":
            now = {k: r for k, r in now.items() if r.metadata["batch"] != op.batch}
        found.append(now)
    return found


def open_store(folder: Path, **settings: Any) -> Store:
    """The store under test: the inner product keeps every vector as it was given.

    Without a thread beside the calls, unless :func:`in_the_background` was called: it would make
    a recording differ from the next.
    """
    return Store.open(folder, **{"dim": DIM, "metric": "dot", **_BESIDE, **settings})


def in_the_background() -> None:
    """From now on stores fold and make codes in their thread, as small as they are."""
    _BESIDE["background"] = True
    for module, name in (
        (defaults, "INDEX_MIN_ROWS"),
        (defaults, "CHECKPOINT_MIN_ROWS"),
        (learning, "FEWEST"),
    ):
        setattr(module, name, 20)


def perform(store: Store, op: Op, folder: Path) -> Store:
    """Do one call; returns the store to go on with."""
    if op.kind == "add":
        store.add(op.records(), documents=[document(op.batch, op.version)])
    elif op.kind == "delete" and op.ids:
        store.delete(op.ids)
    elif op.kind == "delete":
        store.delete(filter={"batch": op.batch})
    elif op.kind == "optimize":
        # Stores as small as these would get no codes: here they do, at any recall.
        with (
            mock.patch.object(defaults, "INDEX_MIN_ROWS", 40),
            mock.patch.object(learning, "FEWEST", 40),
        ):
            store.optimize(recall=0.01)
    elif op.kind == "compact":
        store.compact()
    elif op.kind == "backup":
        store.backup(backup_folder(folder, op))
    else:
        store.close()
        return open_store(folder)
    return store


def backup_folder(folder: Path, op: Op) -> Path:
    """Where a ``backup`` goes: beside the store, in the watched folder."""
    return folder.with_name(f"backup-{op.place}")
