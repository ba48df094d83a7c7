"""What may the disk hold after a power loss at this point?

Durable is what a sync of its node covered: a file's sync covers its bytes and size, a directory's
sync covers names made, moved and removed in it. All else may be there or not, whole or in part:

- a write in units of 512-byte sectors, each on its own, in no order;
- a file's new size without its bytes: zeros, or what lay on those sectors before (noise);
- names in the order they were made (journalling file systems) or each on its own (the rest).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from crashlab.events import (
    Event,
    Link,
    Move,
    Recording,
    Resize,
    Sync,
    Tree,
    Unlink,
    Write,
)

__all__ = ["MODES", "SECTOR", "cut_points", "durable", "image"]

SECTOR: Final = 512
MODES: Final = ("dropped", "kept", "names", "data", "prefix", "torn", "zeros", "noise")
"""Ways to decide about what is not durable.

``dropped`` all of it · ``kept`` all of it (as after kill -9) · ``names`` kept, bytes dropped ·
``data`` kept, names dropped · ``prefix``: the first so many events of each node, the last torn ·
``torn``: every sector and name on its own · ``zeros``, ``noise``: as torn, with dropped bytes past
the old end read as zeros or as noise.
"""

Parts: TypeAlias = list[tuple[int, bytes]]


def durable(recording: Recording, cut: int) -> set[int]:
    """Indexes of the events before ``cut`` that no power loss at ``cut`` can undo."""
    kept: set[int] = set()
    directories = set(recording.start.directories)
    pending: dict[int, list[int]] = {}  # node → events not yet covered
    for index, event in enumerate(recording.events[:cut]):
        if isinstance(event, Link) and event.directory:
            directories.add(event.node)
        if isinstance(event, Sync):
            if event.failed and event.node in directories:
                continue
            waiting = pending.get(event.node, [])
            covered = [i for i in waiting if i < event.since]
            pending[event.node] = [i for i in waiting if i >= event.since]
            if not event.failed:
                kept.update(covered)
        else:
            node = holder(event)
            if node is not None:
                pending.setdefault(node, []).append(index)
    return kept


def cut_points(recording: Recording) -> list[int]:
    """Every point that differs for a power loss: before each event, and after the last."""
    return list(range(len(recording.events) + 1))


def image(recording: Recording, cut: int, mode: str, rng: random.Random) -> Tree:
    """One disk that a power loss just before event ``cut`` may leave.

    Args:
        recording: What was done.
        cut: From 0 (nothing was done) to ``len(recording.events)``.
        mode: One of :data:`MODES`.
        rng: Decides what a mode leaves open.
    """
    safe = durable(recording, cut)
    choose = _Choice(mode, rng, recording.events[:cut], safe)
    names = dict(recording.start.names)
    live = dict(names)  # as the process saw them: what a surviving rename points to
    directories = set(recording.start.directories)
    contents = {node: bytearray(data) for node, data in recording.start.contents.items()}
    for index, event in enumerate(recording.events[:cut]):
        if isinstance(event, Link):
            # The node exists whether or not its name survives: a later rename may name it.
            if event.directory:
                directories.add(event.node)
            else:
                contents.setdefault(event.node, bytearray())
        if isinstance(event, Link | Unlink | Move):
            if index in safe or choose.keeps_name(index):
                _rename(names, event, live)
            _rename(live, event, live)
        elif isinstance(event, Write):
            content = contents[event.node]
            if index in safe:
                _put(content, event.offset, event.data)
            else:
                choose.write(content, index, event)
        elif isinstance(event, Resize) and (index in safe or choose.keeps_size(index, event)):
            _resize(contents[event.node], event.size)
    return Tree(names, directories, {node: bytes(data) for node, data in contents.items()})


def holder(event: Event) -> int | None:
    """Which node's sync makes this event durable? None for a sync or an acknowledgement."""
    if isinstance(event, Write | Resize):
        return event.node
    if isinstance(event, Link | Unlink):
        return event.parent
    if isinstance(event, Move):
        return event.to_parent
    return None


def _rename(
    names: dict[tuple[int, str], int],
    event: Link | Unlink | Move,
    live: dict[tuple[int, str], int],
) -> None:
    if isinstance(event, Link):
        names[event.parent, event.name] = event.node
    elif isinstance(event, Unlink):
        names.pop((event.parent, event.name), None)
    else:
        node = live[event.parent, event.name]
        names.pop((event.parent, event.name), None)
        names[event.to_parent, event.to_name] = node


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _sectors(event: Write) -> Parts:
    """A write cut at the disk's sector boundaries."""
    parts: Parts = []
    done = 0
    while done < len(event.data):
        step = SECTOR - (event.offset + done) % SECTOR
        parts.append((event.offset + done, event.data[done : done + step]))
        done += step
    return parts


class _Choice:
    """Decides, consistently for one image, what becomes of each event that is not durable."""

    def __init__(
        self, mode: str, rng: random.Random, events: Sequence[Event], safe: set[int]
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}; got {mode!r}")
        self._mode = mode
        self._rng = rng
        # A bias per image: with many pending events a fair coin never keeps nearly all of them.
        self._bias = rng.choice((0.1, 0.5, 0.9))
        pending = {i: holder(e) for i, e in enumerate(events) if i not in safe}
        names = [i for i in pending if isinstance(events[i], Link | Unlink | Move)]
        in_order = mode == "prefix" or rng.random() < 0.5
        kept = rng.randint(0, len(names))
        self._names = {
            i: place < kept if in_order else self._coin() for place, i in enumerate(names)
        }
        changes: dict[int, list[int]] = {}
        for i, node in pending.items():
            if node is not None and i not in self._names:
                changes.setdefault(node, []).append(i)
        # Under ``prefix``: the first event of each node that did not (wholly) reach the disk.
        self._ends = {node: rng.choice([*which, len(events)]) for node, which in changes.items()}

    def _coin(self) -> bool:
        return self._rng.random() < self._bias

    def keeps_name(self, index: int) -> bool:
        """Is this name made, moved or removed?"""
        if self._mode in ("dropped", "data"):
            return False
        return self._mode in ("kept", "names") or self._names[index]

    def keeps_size(self, index: int, event: Resize) -> bool:
        """Is this change of size there?"""
        if self._mode in ("dropped", "names"):
            return False
        if self._mode in ("kept", "data"):
            return True
        return index < self._ends[event.node] if self._mode == "prefix" else self._coin()

    def write(self, content: bytearray, index: int, event: Write) -> None:
        """Put what survives of a write."""
        if self._mode in ("dropped", "names"):
            return
        if self._mode in ("kept", "data"):
            _put(content, event.offset, event.data)
            return
        parts = _sectors(event)
        if self._mode == "prefix":
            end = self._ends[event.node]
            survivors = len(parts) if index < end else 0
            if index == end:
                survivors = self._rng.randint(0, len(parts))
            for offset, data in parts[:survivors]:
                _put(content, offset, data)
            return
        fill = _FILLS[self._mode]
        for offset, data in parts:
            if self._coin():
                _put(content, offset, data)
            elif fill is not None and offset + len(data) > len(content):
                start = max(offset, len(content))
                _put(content, start, fill(self._rng, offset + len(data) - start))


_FILLS: Final[dict[str, Callable[[random.Random, int], bytes] | None]] = {
    "torn": None,
    "zeros": lambda rng, size: bytes(size),
    "noise": lambda rng, size: rng.randbytes(size),
}
