# ruff: noqa: PTH115, PTH116, PTH117, PTH118, PTH123
"""Which events are a child's syscalls, below one folder?

The recorder follows the live name tree, so that an event names nodes and not paths. What it cannot
follow (a shared writable mapping, say) it notes in ``Recording.unrecorded`` instead of losing it.
Paths are strings here: they belong to another process, or to ``/proc``.
"""

from __future__ import annotations

import copy
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from crashlab import ptrace
from crashlab.events import (
    ROOT,
    Ack,
    Link,
    Live,
    Move,
    Recording,
    Resize,
    Sync,
    Tree,
    Unlink,
    Write,
)

__all__ = ["CALLS", "MUTATING", "Call", "Recorder"]

CALLS: Final = {
    1: "write", 2: "open", 9: "mmap", 18: "pwrite64", 20: "writev", 40: "sendfile",
    74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir",
    84: "rmdir", 85: "creat", 86: "link", 87: "unlink", 88: "symlink", 162: "sync",
    257: "openat", 258: "mkdirat", 263: "unlinkat", 264: "renameat", 265: "linkat",
    266: "symlinkat", 275: "splice", 285: "fallocate", 296: "pwritev", 306: "syncfs",
    316: "renameat2", 326: "copy_file_range", 328: "pwritev2", 437: "openat2",
}  # fmt: skip
"""x86-64 numbers of all calls that can change a file or a directory."""

WRITES: Final = ("write", "pwrite64")
COPIES: Final = ("sendfile", "copy_file_range")
SYNCS: Final = ("fsync", "fdatasync")
OPENS: Final = ("open", "openat", "creat")
RENAMES: Final = ("rename", "renameat", "renameat2")
REMOVES: Final = ("unlink", "unlinkat", "rmdir")
MKDIRS: Final = ("mkdir", "mkdirat")
UNFOLLOWED: Final = (
    "writev", "pwritev", "pwritev2", "splice", "link", "linkat", "symlink", "symlinkat",
    "openat2", "sync", "syncfs",
)  # fmt: skip
MUTATING: Final = (
    *WRITES, *COPIES, *SYNCS, *RENAMES, *REMOVES, *MKDIRS, "ftruncate", "truncate", "fallocate",
    *OPENS,
)  # fmt: skip
"""Calls a fault can strike; an open counts only where it makes or empties a file."""

PATH_ARGS: Final[dict[str, tuple[tuple[int | None, int], ...]]] = {
    **dict.fromkeys(("open", "creat", "truncate", "unlink", "rmdir", "mkdir"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "unlinkat", "mkdirat"), ((0, 1),)),
    **dict.fromkeys(("rename", "link", "symlink"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlinkat": ((1, 2),),
}
"""Which arguments hold a path, each with the folder descriptor it is relative to."""
FD_ARG: Final = {"mmap": 4, "splice": 2, "copy_file_range": 2}
"""Which argument is the file that is changed; the first of all other calls."""

AT_FDCWD: Final = -100
O_CREAT, O_TRUNC = os.O_CREAT, os.O_TRUNC
VOLATILE: Final = "-shm"  # SQLite's shared memory: rebuilt after a crash, never durable


@dataclass(slots=True)
class Call:
    """A syscall between entry and exit.

    Attributes:
        name: Of the syscall.
        args: Its six arguments.
        path: What it changes, absolute; empty if it is none of ours.
        target: A rename's new path.
        since: Number of events at its entry.
        result: Set by a fault: what the caller shall see.
        info: What was noted at its entry: whether the name ``existed``, the file's ``size``, …
    """

    name: str
    args: tuple[int, ...]
    path: str = ""
    target: str = ""
    since: int = 0
    result: int | None = None
    info: dict[str, int] = field(default_factory=dict)


class Recorder:
    """Turns one child's syscalls into a :class:`Recording`.

    Args:
        root: The folder to watch.
        pid: The child.
        after: What an earlier process did to the same folder; what it did not sync is not yet
            durable. None: what is in the folder now is.
        ack_fd: The child's descriptor that acknowledgements go to.
    """

    def __init__(
        self, root: Path, pid: int, *, after: Recording | None = None, ack_fd: int = 1
    ) -> None:
        self.root = os.path.realpath(root)
        self.pid = pid
        self.ack_fd = ack_fd
        self._partial = b""
        if after is None:
            self.recording = Recording(Tree())
            self._live.nodes[self._identity(os.stat(self.root))] = ROOT
            self._survey(self.root, ROOT)
            self.recording.start.names.update(self._live.names)
            self.recording.start.directories.update(self._live.directories)
        else:
            self.recording = replace(
                after,
                events=list(after.events),
                live=copy.deepcopy(after.live),
                struck=[],
                calls=[],
            )
        self._handlers: dict[str, Callable[[Call, int], None]] = {
            **dict.fromkeys(WRITES, self._write),
            **dict.fromkeys(COPIES, self._copy),
            **dict.fromkeys(OPENS, self._open),
            **dict.fromkeys(RENAMES, self._rename),
            **dict.fromkeys(REMOVES, self._remove),
            **dict.fromkeys(MKDIRS, self._mkdir),
            **dict.fromkeys(("truncate", "ftruncate"), self._truncate),
            "fallocate": self._fallocate,
        }

    @property
    def _live(self) -> Live:
        return self.recording.live

    def enter(self, number: int, args: tuple[int, ...]) -> Call | None:
        """A call is about to be done; None if it is none of our business."""
        name = CALLS.get(number)
        if name is None:
            return None
        call = Call(name, args, since=len(self.recording.events))
        if name in WRITES and args[0] == self.ack_fd:
            return call
        call.path, call.target = self._paths(name, args)
        if not self._ours(call.path) and not self._ours(call.target):
            return None
        if name in OPENS and not self._changes(call):
            return None
        if name == "mmap" and not self._maps_writable(args):
            return None
        if name == "fallocate":
            call.info["size"] = os.stat(f"/proc/{self.pid}/fd/{args[0]}").st_size
        if name in MUTATING:
            self.recording.calls.append((name, self.short(call.path)))
        return call

    def leave(self, call: Call, result: int) -> None:
        """The call was done with this result."""
        if call.name in SYNCS:
            self._sync(call, failed=result < 0)
        elif result >= 0:
            handler = self._handlers.get(call.name)
            if handler is None:
                self.recording.unrecorded.append(f"{call.name} on {self.short(call.path)}")
            else:
                handler(call, result)

    # What is meant

    def _ours(self, path: str) -> bool:
        inside = path == self.root or path.startswith(self.root + "/")
        return inside and not path.endswith(VOLATILE)

    def short(self, path: str) -> str:
        """A path below the watched folder."""
        return os.path.relpath(path, self.root)

    def _fd_path(self, fd: int) -> str:
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{fd}").removesuffix(" (deleted)")
        except OSError:
            return ""

    def _at(self, fd: int, address: int) -> str:
        path = ptrace.read_string(self.pid, address)
        if not os.path.isabs(path):
            fd = fd & 0xFFFFFFFF
            fd = fd - (1 << 32) if fd & 0x80000000 else fd
            base = f"/proc/{self.pid}/cwd" if fd == AT_FDCWD else f"/proc/{self.pid}/fd/{fd}"
            path = os.path.join(os.readlink(base), path)
        # The folder is resolved, the last name is not: it may be what is made or removed.
        folder, leaf = os.path.split(os.path.normpath(path))
        return os.path.join(os.path.realpath(folder), leaf)

    def _paths(self, name: str, args: tuple[int, ...]) -> tuple[str, str]:
        """What a call changes, and a rename's target."""
        if name in PATH_ARGS:
            found = [
                self._at(AT_FDCWD if fd is None else args[fd], args[at])
                for fd, at in PATH_ARGS[name]
            ]
            return found[0], found[1] if len(found) > 1 else ""
        return self._fd_path(args[FD_ARG.get(name, 0)]) if name != "sync" else self.root, ""

    def _changes(self, call: Call) -> bool:
        flags = {"open": call.args[1], "openat": call.args[2], "creat": O_CREAT | O_TRUNC}[
            call.name
        ]
        existed = self._find(call.path) is not None
        call.info["existed"] = existed
        call.info["truncates"] = int(bool(flags & O_TRUNC) and existed)
        return bool(call.info["truncates"]) or (bool(flags & O_CREAT) and not existed)

    def _maps_writable(self, args: tuple[int, ...]) -> bool:
        shared, writable = args[3] & 0x03 in (1, 3), args[2] & 2
        return bool(shared and writable)

    # What came of it

    def _write(self, call: Call, count: int) -> None:
        data = ptrace.read_memory(self.pid, call.args[1], count)
        fd = call.args[0]
        if fd == self.ack_fd:
            *lines, self._partial = (self._partial + data).split(b"\n")
            self.recording.events.extend(Ack(line.decode()) for line in lines)
            return
        offset = call.args[3] if call.name == "pwrite64" else self._position(fd) - count
        self.recording.events.append(Write(self._node(call), offset, data))

    def _copy(self, call: Call, count: int) -> None:
        out = call.args[FD_ARG.get(call.name, 0)]
        if call.name == "copy_file_range" and call.args[3]:
            self.recording.unrecorded.append(f"copy_file_range at an offset on {call.path}")
            return
        offset = self._position(out) - count
        with open(call.path, "rb") as file:
            file.seek(offset)
            data = file.read(count)
        self.recording.events.append(Write(self._node(call), offset, data))

    def _position(self, fd: int) -> int:
        with open(f"/proc/{self.pid}/fdinfo/{fd}") as info:
            return int(info.readline().split()[1])

    def _truncate(self, call: Call, _: int) -> None:
        self.recording.events.append(Resize(self._node(call), call.args[1]))

    def _fallocate(self, call: Call, _: int) -> None:
        end = call.args[2] + call.args[3]
        if call.args[1] != 0:
            self.recording.unrecorded.append(f"fallocate mode {call.args[1]} on {call.path}")
        elif end > call.info["size"]:
            self.recording.events.append(Resize(self._node(call), end))

    def _sync(self, call: Call, *, failed: bool) -> None:
        path = self.short(call.path)
        self.recording.events.append(Sync(self._node(call), call.since, path, failed))

    def _open(self, call: Call, fd: int) -> None:
        status = os.stat(f"/proc/{self.pid}/fd/{fd}")
        if not stat.S_ISREG(status.st_mode):
            return
        if not call.info["existed"]:
            self._link(call.path, status)
        elif call.info["truncates"]:
            self.recording.events.append(Resize(self._live.nodes[self._identity(status)], 0))

    def _remove(self, call: Call, _: int) -> None:
        parent, leaf = self._split(call.path)
        self._live.names.pop((parent, leaf), None)
        self.recording.events.append(Unlink(parent, leaf))

    def _mkdir(self, call: Call, _: int) -> None:
        self._link(call.path, os.stat(call.path))

    def _rename(self, call: Call, _: int) -> None:
        if not (self._ours(call.path) and self._ours(call.target)):
            self.recording.unrecorded.append(f"rename across {call.path} and {call.target}")
            return
        old, new = self._split(call.path), self._split(call.target)
        self._live.names[new] = self._live.names.pop(old)
        self.recording.events.append(Move(*old, *new))

    # The live tree

    @staticmethod
    def _identity(status: os.stat_result) -> tuple[int, int]:
        return status.st_dev, status.st_ino

    def _node(self, call: Call) -> int:
        if call.name == "truncate":
            return self._live.nodes[self._identity(os.stat(call.path))]
        fd = call.args[FD_ARG.get(call.name, 0)]
        return self._live.nodes[self._identity(os.stat(f"/proc/{self.pid}/fd/{fd}"))]

    def _new(self, status: os.stat_result) -> int:
        node = self._live.next
        self._live.next += 1
        # An inode number is free again only when nothing can reach the old node.
        self._live.nodes[self._identity(status)] = node
        if stat.S_ISDIR(status.st_mode):
            self._live.directories.add(node)
        return node

    def _find(self, path: str) -> int | None:
        node = ROOT
        for part in Path(path).relative_to(self.root).parts:
            found = self._live.names.get((node, part))
            if found is None:
                return None
            node = found
        return node

    def _split(self, path: str) -> tuple[int, str]:
        folder, leaf = os.path.split(path)
        parent = self._find(folder)
        if parent is None:
            raise LookupError(f"the recorder does not know the folder {folder}")
        return parent, leaf

    def _link(self, path: str, status: os.stat_result) -> None:
        parent, leaf = self._split(path)
        node = self._new(status)
        self._live.names[parent, leaf] = node
        self.recording.events.append(Link(parent, leaf, node, stat.S_ISDIR(status.st_mode)))

    def _survey(self, folder: str, parent: int) -> None:
        for entry in os.scandir(folder):
            if entry.name.endswith(VOLATILE):
                continue
            node = self._new(entry.stat(follow_symlinks=False))
            self._live.names[parent, entry.name] = node
            if entry.is_dir():
                self._survey(entry.path, node)
            else:
                self.recording.start.contents[node] = Path(entry.path).read_bytes()
