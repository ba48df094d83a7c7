"""What was measured before the work was interrupted?

A file of JSON lines: first what the measurements belong to, as a hash; then one line a piece
of work, with its own checksum. A line is written and synced whole; a torn last line, which an
interruption may leave, is dropped when the file is read.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import ConfigError, EvalFileError

__all__ = ["Journal"]

_FORMAT: Final = "cormorant tuning journal 1"
_BEGINS: Final = json.dumps({"format": _FORMAT}).encode()[:-1]


class Journal:
    """Pieces of work and their values, kept in a file.

    One process uses it at a time. Close it, or use it as a context manager.

    Args:
        path: The file; made if it is missing. A file that is something else is left alone.
        belongs_to: A hash of everything the values depend on.
        resume: Go on with what the file holds; False begins it anew.

    Raises:
        ConfigError: If it is to be resumed and belongs to something else.
        EvalFileError: If the file cannot be read or written, is no journal, or another process
            is using it.
    """

    def __init__(self, path: str | Path, *, belongs_to: str, resume: bool) -> None:
        self.path = Path(path)
        self._done: dict[str, NDArray[np.float64]] = {}
        head = json.dumps({"format": _FORMAT, "belongs_to": belongs_to}).encode() + b"\n"
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            self._lock()
            content = self.path.read_bytes()
            # What was cut off within its first line holds nothing yet.
            other = not _BEGINS.startswith(content) and not content.startswith(_BEGINS)
            if other or (b"\n" in content and _head(content) is None):
                raise EvalFileError(
                    f"{self.path} is no tuning journal. Name another file.",
                    path=str(self.path),
                    line=1,
                )
            if resume and b"\n" in content:
                self._end = self._read(content, belongs_to)
            else:
                os.ftruncate(self._file, 0)
                self._end = 0
                self._append(head)
        except OSError as error:
            os.close(self._file)
            raise self._unusable(error) from error
        except BaseException:
            os.close(self._file)
            raise

    def __len__(self) -> int:
        return len(self._done)

    def get(self, piece: str) -> NDArray[np.float64] | None:
        """What was measured; None if it was not."""
        return self._done.get(piece)

    def put(self, piece: str, values: NDArray[np.float64]) -> None:
        """Keep what was measured; on return it survives a crash.

        Raises:
            EvalFileError: If it cannot be written; the file is as it was.
        """
        packed = zlib.compress(values.astype("<f8").tobytes())
        line = {
            "piece": piece,
            "shape": list(values.shape),
            "crc": zlib.crc32(packed),
            "values": base64.b64encode(packed).decode("ascii"),
        }
        self._append(json.dumps(line).encode() + b"\n")
        self._done[piece] = values

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EvalFileError(
                f"Another tuning is writing to the journal {self.path}. Wait for it, or name "
                "another journal.",
                path=str(self.path),
            ) from error

    def _append(self, data: bytes) -> None:
        try:
            if os.pwrite(self._file, data, self._end) != len(data):
                raise OSError("it was written in part")
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise self._unusable(error) from error
        self._end += len(data)

    def _unusable(self, error: OSError) -> EvalFileError:
        return EvalFileError(
            f"Cannot write the journal {self.path}: {error.strerror or error}. Name another place.",
            path=str(self.path),
        )

    def _read(self, content: bytes, belongs_to: str) -> int:
        """Take what a journal holds; returns where its whole lines end."""
        head = _head(content)
        if head is None or head.get("belongs_to") != belongs_to:
            raise ConfigError(
                f"The journal {self.path} belongs to another tuning: the store, queries, "
                "judgements, space, metric, seed or reranker changed since. Begin without "
                "resuming, or name another journal."
            )
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines()[1:], start=2):
            self._take(line, number)
        os.ftruncate(self._file, len(whole))  # what comes next must not be glued to a torn line
        return len(whole)

    def _take(self, line: bytes, number: int) -> None:
        parsed = _parsed(line) or {}
        try:
            packed = base64.b64decode(parsed["values"], validate=True)
            if zlib.crc32(packed) != parsed["crc"]:
                raise ValueError("checksum")
            flat = np.frombuffer(zlib.decompress(packed), "<f8").astype(np.float64)
            self._done[str(parsed["piece"])] = flat.reshape(parsed["shape"])
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
            raise EvalFileError(
                f"{self.path}, line {number}: the journal is damaged ({error}). Begin without "
                "resuming.",
                path=str(self.path),
                line=number,
            ) from error


def _head(content: bytes) -> Mapping[str, Any] | None:
    """What the first line says; None if this is no journal."""
    head = _parsed(content[: content.find(b"\n")])
    return head if head is not None and head.get("format") == _FORMAT else None


def _parsed(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
