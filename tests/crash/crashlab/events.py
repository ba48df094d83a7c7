"""What did a process do to the disk, in which order?

Files and directories are *nodes*, numbered as inodes are: a file renamed or unlinked while open
stays the same node. Node 0 is the recorded folder itself, which is taken to be durable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = [
    "ROOT",
    "Ack",
    "Event",
    "Link",
    "Live",
    "Move",
    "Recording",
    "Resize",
    "Sync",
    "Tree",
    "Unlink",
    "Write",
]

ROOT = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A name was made for a new node."""

    parent: int
    name: str
    node: int
    directory: bool


@dataclass(frozen=True, slots=True)
class Unlink:
    """A name was removed."""

    parent: int
    name: str


@dataclass(frozen=True, slots=True)
class Move:
    """A name was moved, over another one if there was one: atomic."""

    parent: int
    name: str
    to_parent: int
    to_name: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes were handed to the kernel."""

    node: int
    offset: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Resize:
    """A file was cut, or lengthened with zeros."""

    node: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """fsync or fdatasync returned: what was done to the node before event ``since`` is durable.

    ``failed``: it returned an error, and the kernel forgot the dirty pages of the file it could
    not write (as Linux does): no later sync brings them back. A directory's names are not
    forgotten: they go through a journal, and a file system that cannot write that stops.
    """

    node: int
    since: int
    path: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """The process told its parent something."""

    text: str


Event: TypeAlias = Link | Unlink | Move | Write | Resize | Sync | Ack


@dataclass(slots=True)
class Tree:
    """A folder in memory: names, directories and contents."""

    names: dict[tuple[int, str], int] = field(default_factory=dict)
    directories: set[int] = field(default_factory=lambda: {ROOT})
    contents: dict[int, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Path → content of what can be reached from the root."""
        found: dict[str, bytes] = {}
        self._walk(ROOT, "", found, set())
        return found

    def _walk(self, node: int, prefix: str, found: dict[str, bytes], seen: set[int]) -> None:
        seen.add(node)
        for (parent, name), child in self.names.items():
            if parent != node:
                continue
            if child in self.directories:
                if child not in seen:
                    found[f"{prefix}{name}/"] = b""
                    self._walk(child, f"{prefix}{name}/", found, seen)
            else:
                found[prefix + name] = self.contents.get(child, b"")

    def write_to(self, folder: Path) -> None:
        """Make the folder on the real disk."""
        folder.mkdir(parents=True)
        for path, content in self.files().items():
            if path.endswith("/"):
                (folder / path).mkdir(parents=True, exist_ok=True)
            else:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)


@dataclass(slots=True)
class Live:
    """The folder as it really is just now.

    Attributes:
        names: (folder node, name) → node.
        directories: Which nodes are folders.
        nodes: (device, inode) → node.
        next: Number of the next node.
    """

    names: dict[tuple[int, str], int] = field(default_factory=dict)
    directories: set[int] = field(default_factory=lambda: {ROOT})
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)
    next: int = ROOT + 1


@dataclass(slots=True)
class Recording:
    """All a process did below one folder.

    Attributes:
        start: The folder before; taken to be durable.
        events: In order.
        calls: Calls that change the disk, ``(syscall, path)``, in order: faults strike these.
        unrecorded: Ways to change a file that the recorder cannot follow; must be empty.
        struck: Which calls got a fault.
        status: The process's exit status (negative: the signal that ended it).
        output: What it wrote to stderr.
        live: The folder after, as the recorder knows it; to record the next process with.
    """

    start: Tree
    events: list[Event] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    struck: list[tuple[str, str]] = field(default_factory=list)
    status: int = 0
    output: str = ""
    live: Live = field(default_factory=Live)

    def acks(self, cut: int | None = None) -> list[str]:
        """What had been acknowledged before event ``cut``."""
        return [e.text for e in self.events[:cut] if isinstance(e, Ack)]

    def counts(self) -> Counter[str]:
        """How many events of each kind."""
        return Counter(type(e).__name__ for e in self.events)
