"""How does one process watch another's syscalls, with nothing but the standard library?

Linux on x86-64 alone: :func:`unavailable` says why it cannot be done elsewhere.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = [
    "Entry",
    "Exit",
    "interrupt",
    "read_memory",
    "read_string",
    "resume",
    "seize",
    "set_count",
    "set_result",
    "skip",
    "stop_info",
    "unavailable",
]

SEIZE: Final = 0x4206
INTERRUPT: Final = 0x4207
SYSCALL: Final = 24
POKEUSER: Final = 6
GET_SYSCALL_INFO: Final = 0x420E  # Linux 5.3
OPTIONS: Final = 0x1 | 0x8 | 0x100000  # TRACESYSGOOD, TRACECLONE, EXITKILL
ALL: Final = 0x40000000  # __WALL: threads too
ORIG_RAX, RAX, RDX = 15 * 8, 10 * 8, 12 * 8  # offsets in struct user, x86-64

Entry = tuple[int, tuple[int, ...]]
"""Number and six arguments."""
Exit = int
"""Result; negative is an errno."""


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return libc


def _call(
    request: int, tid: int, addr: int = 0, data: int | ctypes.Array[ctypes.c_char] = 0
) -> int:
    where = ctypes.cast(data, ctypes.c_void_p) if isinstance(data, ctypes.Array) else data
    done = int(_libc().ptrace(request, tid, addr, where))
    if done == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace request {request:#x}: {os.strerror(error)}")
    return done


def seize(tid: int) -> None:
    """Attach to a thread without stopping it; its new threads come along, and it dies with us."""
    _call(SEIZE, tid, 0, OPTIONS)


def interrupt(tid: int) -> None:
    """Stop a seized thread."""
    _call(INTERRUPT, tid)


def resume(tid: int, signum: int = 0) -> None:
    """Run on to the next syscall's entry or exit, delivering ``signum``."""
    _call(SYSCALL, tid, 0, signum)


def stop_info(tid: int) -> Entry | Exit | None:
    """What a thread in a syscall stop is about to do, or what came of it."""
    buffer = ctypes.create_string_buffer(88)
    _call(GET_SYSCALL_INFO, tid, 88, buffer)
    kind = buffer.raw[0]
    if kind == 1:
        number, *args = struct.unpack_from("=7Q", buffer.raw, 24)
        return number, tuple(args)
    if kind == 2:
        return int(struct.unpack_from("=q", buffer.raw, 24)[0])
    return None


def skip(tid: int) -> None:
    """At an entry: the kernel shall not do this call (give the result with :func:`set_result`)."""
    _call(POKEUSER, tid, ORIG_RAX, (1 << 64) - 1)


def set_result(tid: int, value: int) -> None:
    """At an exit: what the caller shall see; a negative errno is a failure."""
    _call(POKEUSER, tid, RAX, value & ((1 << 64) - 1))


def set_count(tid: int, count: int) -> None:
    """At the entry of a write: write only so many bytes."""
    _call(POKEUSER, tid, RDX, count)


def read_memory(pid: int, address: int, size: int) -> bytes:
    """Bytes of the watched process."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def read_string(pid: int, address: int) -> str:
    """A C string of the watched process, such as a path."""
    found = b""
    while b"\0" not in found:
        # Never across a page's end in one read: the next page may not be there.
        step = 4096 - (address + len(found)) % 4096
        found += read_memory(pid, address + len(found), step)
    return os.fsdecode(found.split(b"\0", 1)[0])


@functools.cache
def unavailable() -> str | None:
    """Why syscalls cannot be recorded here, or None if they can: tried on a real child."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 2**32:
        return (
            "recording syscalls needs Linux on x86-64; "
            f"this is {sys.platform} on {platform.machine()}"
        )
    child = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", "import os; os.write(1, b'r'); os.read(0, 1)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        child.stdout.read(1)
        seize(child.pid)
        interrupt(child.pid)
        os.waitpid(child.pid, ALL)
        resume(child.pid)
        child.stdin.close()  # type: ignore[union-attr]
        child.stdin = None
        os.waitpid(child.pid, ALL)
        if stop_info(child.pid) is None:
            return "this kernel's ptrace tells nothing of a syscall (it needs Linux 5.3)"
    except OSError as error:
        return f"ptrace is not allowed here ({error}); a container needs --cap-add=SYS_PTRACE"
    else:
        return None
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
        if child.stdin is not None:
            child.stdin.close()
