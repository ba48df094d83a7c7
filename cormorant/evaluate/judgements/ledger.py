"""Where is a judgement written down, so that it outlasts the next second?

A file of JSON lines that :func:`cormorant.evaluate.read_qrels` reads: ``query``, ``document``,
``grade``, and ``by``: ``"human"``, or of a model's judgement its :class:`Origin`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate.formats.json_lines import json_line, json_rows
from cormorant.evaluate.formats.lines import opened, wrong
from cormorant.evaluate.formats.rows import qrels_of
from cormorant.evaluate.qrels import Qrels

__all__ = ["HUMAN", "JudgementFile", "Ledger", "Origin", "Origins", "origins_of"]

HUMAN: Final = "human"


@dataclass(frozen=True, slots=True)
class Origin:
    """Which model gave a judgement, and how far it was to be believed.

    Attributes:
        model: Its name.
        prompt: The first 16 hex digits of the SHA-256 of what it was told to do.
        kappa: Its agreement with human judgements.
        weights: Of kappa; None if grades were equal or not.
        labels: Human judgements that kappa was measured on.
        threshold: What kappa had to reach.
    """

    model: str
    prompt: str
    kappa: float
    weights: str | None
    labels: int
    threshold: float

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Origin:
        """Read what :meth:`to_json` wrote; what a later release added is left out.

        Raises:
            KeyError: If something is missing.
        """
        return cls(**{name: written[name] for name in cls.__dataclass_fields__})


Origins: TypeAlias = dict[str, dict[str, Origin]]
"""Query id to document ids and where their judgements come from; a human's are not in it."""


class Ledger(Protocol):
    """Takes judgements, durably, and one back if it was a mistake."""

    @property
    def qrels(self) -> Mapping[str, Mapping[str, float]]:
        """All that is judged."""
        ...

    def put(self, query: str, doc: str, grade: float) -> None:
        """Write a person's judgement down; on return it survives a crash."""
        ...

    def take_back(self, query: str, doc: str) -> None:
        """Undo the last :meth:`put`."""
        ...


class JudgementFile:
    """Judgements in a ``.jsonl`` file, appended one by one; go on where it ends.

    One process writes at a time. Close it, or use it as a context manager.

    Args:
        path: The file; made if it is missing. What a killed process left of a line is cut off.

    Raises:
        UsageError: If it does not end in ``.jsonl``, or another process is writing to it.
        EvalFileError: If it cannot be read or written, or holds something else.

    Example:
        >>> with JudgementFile("mine.jsonl") as ledger:
        ...     ledger.put("1", "x", 1)
        ...     ledger.qrels
        {'1': {'x': 1}}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() != ".jsonl":
            raise UsageError(
                f"Judgements are written to a .jsonl file, line by line; got {str(path)!r}. "
                "Another format is made of it afterwards: write_qrels(read_qrels(…), …)."
            )
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            self._lock()
            self._mend()
            with opened(self.path) as lines:
                rows = list(json_rows(lines, name=str(self.path)))
            self._qrels = qrels_of(rows, name=str(self.path))
            self._origins = origins_of(rows, name=str(self.path))
        except BaseException:
            os.close(self._file)
            raise
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        self._put: list[tuple[str, str, int]] = []  # what can be taken back, and where it begins

    @property
    def qrels(self) -> Qrels:
        """All that is judged, by people and by models."""
        return {query: dict(grades) for query, grades in self._qrels.items() if grades}

    @property
    def origins(self) -> Origins:
        """Which of it models judged."""
        return {query: dict(each) for query, each in self._origins.items()}

    @property
    def human(self) -> Qrels:
        """What people judged."""
        return without(self.qrels, self._origins)

    def put(self, query: str, doc: str, grade: float) -> None:
        """Write a person's judgement down; on return it survives a crash.

        Raises:
            UsageError: If the pair is judged already.
            EvalFileError: If it cannot be written; the file is as it was.
        """
        if doc in self._qrels.get(query, {}):
            raise UsageError(f"{query!r} and {doc!r} are judged already; take it back first.")
        start = self._append(_line(query, doc, grade, HUMAN))
        self._qrels.setdefault(query, {})[doc] = grade
        self._put.append((query, doc, start))

    def put_all(self, qrels: Mapping[str, Mapping[str, float]], origin: Origin) -> int:
        """Write a model's judgements down, all or none; pairs that are judged already stay.

        Returns:
            How many were written.
        """
        new = {
            (query, doc): grade
            for query, grades in qrels.items()
            for doc, grade in grades.items()
            if doc not in self._qrels.get(query, {})
        }
        by = origin.to_json()
        self._append(b"".join(_line(*pair, grade, by) for pair, grade in new.items()))
        for (query, doc), grade in new.items():
            self._qrels.setdefault(query, {})[doc] = grade
            self._origins.setdefault(query, {})[doc] = origin
        self._put.clear()
        return len(new)

    def take_back(self, query: str, doc: str) -> None:
        """Undo the last :meth:`put`.

        Raises:
            UsageError: If that was about something else, or before this file was opened.
            EvalFileError: If the file cannot be written.
        """
        if not self._put or self._put[-1][:2] != (query, doc):
            raise UsageError(f"{query!r} and {doc!r} are not what was judged last.")
        start = self._put[-1][2]
        try:
            os.ftruncate(self._file, start)
            os.fsync(self._file)
        except OSError as error:
            raise self._unusable(error) from error
        self._end = start
        self._put.pop()
        del self._qrels[query][doc]

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
            raise UsageError(
                f"Another process is writing judgements to {self.path}. Wait for it, or judge into "
                "another file."
            ) from error

    def _mend(self) -> None:
        """End the last line, if it is a whole one; else cut it off."""
        content = self.path.read_bytes()
        start = content.rfind(b"\n") + 1
        if start == len(content):
            if not content:
                self._sync_folder()
            return
        try:
            json.loads(content[start:])
        except ValueError:
            os.ftruncate(self._file, start)
        else:
            os.lseek(self._file, 0, os.SEEK_END)
            os.write(self._file, b"\n")
        os.fsync(self._file)

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _append(self, data: bytes) -> int:
        """Write at the end, and sync; returns where it begins."""
        start = self._end
        try:
            if os.pwrite(self._file, data, start) != len(data):
                raise OSError("it was written in part")
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, start)
            raise self._unusable(error) from error
        self._end = start + len(data)
        return start

    def _unusable(self, error: OSError) -> EvalFileError:
        return EvalFileError(f"Cannot write {self.path}: {error}.", path=str(self.path))


def _line(query: str, doc: str, grade: float, by: Any) -> bytes:
    line = json_line({"query": query, "document": doc, "grade": grade, "by": by})
    try:
        return line.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{query!r} and {doc!r}: an id holds a lone surrogate, which is no character."
        ) from error


def origins_of(rows: Iterable[tuple[int, Mapping[str, Any]]], *, name: str) -> Origins:
    """Which of a file's judgements models gave.

    Raises:
        EvalFileError: With the line, on an origin that says something else.
    """
    out: Origins = {}
    for line, row in rows:
        by = row.get("by")
        if not isinstance(by, dict):
            continue
        try:
            out.setdefault(str(row["query"]), {})[str(row["document"])] = Origin.from_json(by)
        except KeyError as error:
            raise wrong(
                name, line, f"'by' lacks {error}, which a model's judgement has."
            ) from error
    return out


def without(qrels: Mapping[str, Mapping[str, float]], origins: Mapping[str, Any]) -> Qrels:
    """The judgements that do not come from models."""
    kept = {
        query: {doc: grade for doc, grade in grades.items() if doc not in origins.get(query, {})}
        for query, grades in qrels.items()
    }
    return {query: grades for query, grades in kept.items() if grades}
