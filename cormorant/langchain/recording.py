"""Which prompts were asked before, and what was answered? A file of JSON lines.

The first line is ``{"format": "cormorant-recording", "version": 1}``, every other an answer:
``key`` (SHA-256 of the prompt), ``turn`` (0 for the first answer to the prompt of its session,
which replaces those of earlier ones), ``model``, ``prompt`` and ``answer``. Lines are appended
whole, under a lock on the file; what a killed process left of a line is no line, and is cut off
by the next to append.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from cormorant.errors import CorruptionError, FormatError, StoreError, UsageError

__all__ = ["Recording", "key_of"]

_FORMAT: Final = "cormorant-recording"
_VERSION: Final = 1
# A pipe in the file's place must not be waited for.
_READING: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_HEADER: Final = json.dumps({"format": _FORMAT, "version": _VERSION}).encode() + b"\n"


class _Answers(NamedTuple):
    model: str
    answers: list[dict[str, Any]]


def key_of(prompt: Mapping[str, Any]) -> str:
    """SHA-256 of the prompt, whatever the order of its keys.

    Raises:
        UsageError: If it holds what JSON cannot.
    """
    try:
        text = json.dumps(prompt, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"A prompt that is recorded must be JSON: {error}. Got {prompt!r:.300}."
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()


class Recording:
    """Answers by prompt, in a file several threads and processes may append to.

    Args:
        path: The file. It is made by the first answer.

    Raises:
        FormatError: If the file is something else, or of a later version.
        CorruptionError: If a line of it is damaged.
        StoreError: If it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[str, _Answers] = {}
        self._read_to = 0
        self._lines = 0
        with self._lock:
            self._catch_up()

    def __reduce__(self) -> tuple[type[Recording], tuple[Path]]:
        return Recording, (self.path,)

    def __len__(self) -> int:
        return len(self._known)

    def answers(self, key: str, model: str | None = None) -> list[dict[str, Any]]:
        """The answers to a prompt, in the order they were given; what others add is seen.

        Args:
            key: See :func:`key_of`.
            model: Only this model's; None: any's.
        """
        with self._lock:
            if not self._of(key, model):
                self._catch_up()
            return list(self._of(key, model))

    def append(
        self,
        prompt: Mapping[str, Any],
        answer: Mapping[str, Any],
        *,
        turn: int,
        model: str,
        unless_known: bool = False,
    ) -> dict[str, Any]:
        """Add an answer to the file. When this returns, it is on the disk.

        Args:
            prompt: What was asked.
            answer: What came.
            turn: How many answers to it the session has recorded before.
            model: Who answered.
            unless_known: If the model's answer is there by now, that one stays.

        Returns:
            The answer as it will be replayed.

        Raises:
            UsageError: If prompt or answer hold what JSON cannot.
            StoreError: If the file cannot be written. It is as it was.
        """
        key = key_of(prompt)
        key_of(answer)
        entry = {"key": key, "turn": turn, "model": model, "prompt": prompt, "answer": answer}
        with self._lock, self._locked() as file:
            self._catch_up()
            if unless_known and self._of(key, model):
                return self._of(key, model)[0]
            self._write(file, _line(entry))
            self._catch_up()
            return self._of(key, model)[-1]

    def _of(self, key: str, model: str | None) -> list[dict[str, Any]]:
        found = self._known.get(key)
        return [] if found is None or model not in {None, found.model} else found.answers

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unusable(self.path, "written", error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _write(self, file: int, line: bytes) -> None:
        whole = self._read_to  # what lies behind is a line somebody was killed in
        try:
            os.ftruncate(file, whole)
            data = line if whole else _HEADER + line
            try:
                if os.write(file, data) != len(data):
                    raise OSError("it was written in part")
                os.fsync(file)
            except OSError:
                os.ftruncate(file, whole)
                raise
        except OSError as error:
            raise _unusable(self.path, "written", error) from error

    def _catch_up(self) -> None:
        try:
            with os.fdopen(os.open(self.path, _READING), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise FormatError(f"{self.path} is no recording: it is no file.")
                if os.fstat(file.fileno()).st_size < self._read_to:
                    raise CorruptionError(
                        f"The recording {self.path} has become shorter than what was read of it. "
                        "Open it anew.",
                        str(self.path),
                    )
                file.seek(self._read_to)
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:  # ValueError: no file can have that name
            raise _unusable(self.path, "read", error) from error
        for line in lines:
            if self._lines == 0:
                self._check_header(line)
            elif line:
                self._take(line)
            self._lines += 1
            self._read_to += len(line) + 1

    def _check_header(self, line: bytes) -> None:
        try:
            header = json.loads(line)
            version = header["version"] if header["format"] == _FORMAT else None
        except (ValueError, TypeError, KeyError, RecursionError):
            version = None
        if version is None:
            raise FormatError(
                f"{self.path} is no recording: its first line is {line[:80]!r}, not "
                f"{_HEADER.decode().strip()}."
            )
        if version != _VERSION:
            raise FormatError(
                f"{self.path} is a recording of version {version!r}; this release reads version "
                f"{_VERSION}. Record it anew, or use a newer release."
            )

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            key, turn, model = entry["key"], entry["turn"], entry["model"]
            answer, whole = entry["answer"], key == key_of(entry["prompt"])
            whole = whole and isinstance(answer, dict) and isinstance(model, str)
            whole = whole and type(turn) is int and turn >= 0
        except (ValueError, TypeError, KeyError, RecursionError):
            whole = False
        if not whole:
            raise CorruptionError(
                f"Line {self._lines + 1} of the recording {self.path} is damaged, or its prompt "
                f"was changed: {line[:80]!r}. Remove the line, or record it anew.",
                str(self.path),
            )
        before = self._known.get(key)
        kept = before.answers[:turn] if before and before.model == model else []
        self._known[key] = _Answers(model, [*kept, answer])


def _line(entry: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(entry, allow_nan=False).encode() + b"\n"


def _unusable(path: Path, done: str, error: Exception) -> StoreError:
    return StoreError(f"The recording {str(path)!r} cannot be {done}: {error}.")
