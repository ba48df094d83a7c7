"""What was measured before the work was interrupted?

A file of JSON lines: first what the measurements belong to, as a hash; then one line a piece
of work, with its own checksum. A line is written and synced whole; a torn last line, which an
interruption may leave, is dropped when the file is read.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import ConfigError, EvalFileError

__all__ = ["Journal"]

_FORMAT: Final = "cormorant tuning journal 1"


class Journal:
    """Pieces of work and their values, kept in a file.

    Args:
        path: The file; made if it is missing.
        belongs_to: A hash of everything the values depend on.
        resume: Go on with what the file holds; False begins it anew.

    Raises:
        ConfigError: If it is to be resumed and belongs to something else.
        EvalFileError: If the file cannot be read, or is no journal.
    """

    def __init__(self, path: str | Path, *, belongs_to: str, resume: bool) -> None:
        self.path = Path(path)
        self._done: dict[str, NDArray[np.float64]] = {}
        if resume and self.path.exists():
            self._read(belongs_to)
            return
        self._begin(belongs_to)

    def __len__(self) -> int:
        return len(self._done)

    def get(self, piece: str) -> NDArray[np.float64] | None:
        """What was measured; None if it was not."""
        return self._done.get(piece)

    def put(self, piece: str, values: NDArray[np.float64]) -> None:
        """Keep what was measured; on return it survives a crash."""
        packed = zlib.compress(values.astype("<f8").tobytes())
        line = {
            "piece": piece,
            "shape": list(values.shape),
            "crc": zlib.crc32(packed),
            "values": base64.b64encode(packed).decode("ascii"),
        }
        with self.path.open("ab") as out:
            out.write(json.dumps(line).encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())
        self._done[piece] = values

    def _begin(self, belongs_to: str) -> None:
        head = json.dumps({"format": _FORMAT, "belongs_to": belongs_to}).encode() + b"\n"
        self._replace(head)

    def _replace(self, content: bytes) -> None:
        beside = self.path.with_name(self.path.name + ".new")
        try:
            with beside.open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            beside.replace(self.path)
        except OSError as error:
            raise EvalFileError(
                f"Cannot write the journal {self.path}: {error.strerror}. Name another place.",
                path=str(self.path),
            ) from error

    def _read(self, belongs_to: str) -> None:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise EvalFileError(
                f"Cannot read the journal {self.path}: {error.strerror}.", path=str(self.path)
            ) from error
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        head = _parsed(lines[0]) if lines else None
        if head is None or head.get("format") != _FORMAT:
            raise EvalFileError(
                f"{self.path} is no tuning journal. Name another file, or begin without resuming.",
                path=str(self.path),
                line=1,
            )
        if head.get("belongs_to") != belongs_to:
            raise ConfigError(
                f"The journal {self.path} belongs to another tuning: the store, queries, "
                "judgements, space, metric, seed or reranker changed since. Begin without "
                "resuming, or name another journal."
            )
        for number, line in enumerate(lines[1:], start=2):
            self._take(line, number)
        if len(whole) != len(content):
            self._replace(whole)  # what comes next must not be glued to a torn line

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


def _parsed(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
