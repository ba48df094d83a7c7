"""What does a child do at every syscall, and what if the nth one fails?

The child says ``ready`` on stdout when its imports are done and then reads a line from stdin; it is
watched from there on, so that the record holds the work alone.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crashlab import ptrace
from crashlab.events import Recording
from crashlab.recorder import MUTATING, Call, Recorder

__all__ = ["Fault", "record"]

PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and when.

    Attributes:
        kind: ``fail`` with ``error`` and do nothing; ``short``: a write that writes half;
            ``skip``: do nothing and say it was done; ``kill`` before, ``kill-after`` the call.
        at: From which matching call on, from 0.
        times: How many calls are struck.
        calls: Which syscalls match.
        path: A regular expression on the path below the watched folder.
        error: The errno.
    """

    kind: Literal["fail", "short", "skip", "kill", "kill-after"]
    at: int = 0
    times: int = 1
    calls: tuple[str, ...] = MUTATING
    path: str = ""
    error: int = errno.EIO


def record(
    argv: Sequence[str],
    root: Path,
    *,
    faults: Sequence[Fault] = (),
    after: Recording | None = None,
) -> Recording:
    """Run a child to its end and record what it does below ``root``.

    Args:
        argv: The command.
        root: The folder to watch; what is in it now is taken to be durable.
        faults: Struck independently of each other.
        after: What an earlier process did to the same folder, so that this one's record goes on
            from it: a kill loses nothing, but what was not synced is still not durable.

    Raises:
        OSError: If ptrace is not allowed (see :func:`ptrace.unavailable`).
        TimeoutError: If the child hangs.
    """
    with tempfile.TemporaryFile() as stderr:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            recording = _Watch(child, root, faults, after).run()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
        stderr.seek(0)
        recording.output = stderr.read().decode(errors="replace")
    return recording


class _Watch:
    """One child, from its ``ready`` to its end."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        root: Path,
        faults: Sequence[Fault],
        after: Recording | None,
    ) -> None:
        self._child = child
        self._pid = child.pid
        self._faults = list(faults)
        self._seen = [0] * len(self._faults)
        self._inside: dict[int, Call | None] = {}  # tid → the call between entry and exit
        self._root = root
        self._after = after

    def run(self) -> Recording:
        stdin, stdout = self._child.stdin, self._child.stdout
        if stdin is None or stdout is None:
            raise ValueError("the child needs pipes")
        if stdout.readline() != b"ready\n":
            nothing = Recorder(self._root, self._pid, after=self._after).recording
            nothing.status = self._child.wait()
            return nothing
        self._recorder = Recorder(self._root, self._pid, after=self._after)
        for tid in [int(task.name) for task in Path(f"/proc/{self._pid}/task").iterdir()]:
            ptrace.seize(tid)
            ptrace.interrupt(tid)
        stdin.write(b"go\n")
        stdin.flush()
        previous = signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(PATIENCE_S)
        try:
            self._loop()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
        return self._recorder.recording

    def _loop(self) -> None:
        while True:
            # The child leads its own group, so no other child's end is taken from its owner.
            tid, status = os.waitpid(-self._pid, ptrace.ALL)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self._inside.pop(tid, None)
                if tid == self._pid:
                    code = os.waitstatus_to_exitcode(status)
                    self._recorder.recording.status = self._child.returncode = code
                    return
                continue
            try:
                self._stopped(tid, status)
            except (
                ProcessLookupError,
                FileNotFoundError,
            ):  # killed while stopped: its end is reported next
                continue

    def _stopped(self, tid: int, status: int) -> None:
        signum = os.WSTOPSIG(status)
        if signum == signal.SIGTRAP | 0x80:
            self._syscall(tid)
            ptrace.resume(tid)
        elif status >> 16:  # a new thread, or our own interruption
            ptrace.resume(tid)
        else:
            ptrace.resume(tid, signum)

    def _syscall(self, tid: int) -> None:
        info = ptrace.stop_info(tid)
        if isinstance(info, tuple):
            call = self._recorder.enter(*info)
            self._inside[tid] = call
            if call is not None:
                self._strike(tid, call)
        elif isinstance(info, int):
            call = self._inside.pop(tid, None)
            if call is None:
                return
            result = info
            if call.result is not None:
                ptrace.set_result(tid, call.result)
                result = call.result
            if "skipped" not in call.info:
                self._recorder.leave(call, result)
            if "kill" in call.info:
                os.kill(self._pid, signal.SIGKILL)

    def _strike(self, tid: int, call: Call) -> None:
        path = self._recorder.short(call.path) if call.path else ""
        for place, fault in enumerate(self._faults):
            if call.name not in fault.calls or not call.path or not re.search(fault.path, path):
                continue
            seen = self._seen[place]
            self._seen[place] += 1
            if not fault.at <= seen < fault.at + fault.times:
                continue
            self._recorder.recording.struck.append((call.name, path))
            self._do(tid, call, fault)

    def _do(self, tid: int, call: Call, fault: Fault) -> None:
        if fault.kind == "kill":
            os.kill(self._pid, signal.SIGKILL)
        elif fault.kind == "kill-after":
            call.info["kill"] = 1
        elif fault.kind == "short":
            # Half of it: the caller must notice and go on, or fail.
            ptrace.set_count(tid, max(1, call.args[2] // 2))
        else:
            ptrace.skip(tid)
            call.result = 0 if fault.kind == "skip" else -fault.error
            if fault.kind == "skip":
                call.info["skipped"] = 1


def _too_long(signum: int, frame: object) -> None:
    raise TimeoutError(f"the watched child was not done after {PATIENCE_S} s")
