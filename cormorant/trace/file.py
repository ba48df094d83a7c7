"""How are traces kept in a file that stays within its limits and can be read elsewhere?

An SQLite database, a row a trace. Searches never wait for it: one thread writes what a queue brings
it, and what the queue cannot hold is dropped and counted.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sqlite3
import threading
import time
import zlib
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from cormorant.errors import ConfigError, FormatError, NotFound
from cormorant.ranges import check_number, check_whole
from cormorant.trace.record import as_records
from cormorant.trace.span import Span, listen

__all__ = ["TraceFile", "read_trace", "read_traces"]

logger = logging.getLogger(__name__)

MAX_BYTES: Final = 64 * 2**20
MAX_AGE_S: Final = 30 * 86_400.0
_WAITING: Final = 10_000  # traces in the queue
_BATCH: Final = 100
_APART_S: Final = 0.25  # between two commits
_LARGEST: Final = 64 * 2**20  # of one trace, unpacked: a file from elsewhere may be hostile
_FULL: Final = 0.8  # of the limit; the rest is for the index and half-filled pages
_SHARE_DROPPED: Final = 10  # one in so many rows goes, the oldest, where the file is full
_ID: Final = 0x43524D54  # "CRMT" in the file's header

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS traces (
    id TEXT PRIMARY KEY, started_s REAL NOT NULL, seconds REAL NOT NULL, name TEXT NOT NULL,
    scope TEXT, error TEXT, spans BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON traces (started_s);
"""


class TraceFile:
    """Keeps the traces of this process in a file while it is open.

    Args:
        path: The file; made if it is not there, added to if it is. Several processes may.
        max_bytes: The file does not grow beyond it: the oldest traces go. Beside it, while it is
            being written, lies a journal of what is changed.
        max_age_s: Older traces go, in seconds.
        content: Whether questions and texts are kept; ids, scores and numbers always are.

    Raises:
        ConfigError: If a limit is out of its range.
        FormatError: If the file is something else.

    Example:
        >>> import cormorant, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "traces.db"
        >>> with cormorant.open(":memory:") as store, TraceFile(path):
        ...     _ = store.add([{"id": "a", "text": "fish"}])
        ...     _ = store.search(cormorant.Query(text="fish"))
        >>> [trace["name"] for trace in read_traces(path)]
        ['search']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = MAX_AGE_S,
        content: bool = False,
    ) -> None:
        check_whole("max_bytes", max_bytes, error=ConfigError)
        check_number("max_age_s", max_age_s, 0.0, error=ConfigError)
        if max_bytes < 2**16:
            raise ConfigError(f"max_bytes must be at least {2**16:,}; got {max_bytes:,}.")
        self.path = Path(path)
        self.dropped = 0
        """How many traces were not kept because they came faster than they could be written."""
        self._max_bytes, self._max_age_s, self._content = max_bytes, max_age_s, content
        self._waiting: queue.Queue[Span | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._open = ExitStack()
        _made(self.path)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._write, name="cormorant-traces", daemon=True)
        self._thread.start()
        self._open.enter_context(listen(self._take))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting, and listen no more. Idempotent."""
        self._open.close()
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ending.set()
            self._waiting.put(None)
            thread.join()
            if self.dropped:
                logger.warning("%d traces were not kept in %s.", self.dropped, self.path)

    def _take(self, span: Span) -> None:
        if span.parent is None:
            try:
                self._waiting.put_nowait(span)
            except queue.Full:
                self.dropped += 1

    def _write(self) -> None:
        """Until told to end; an error is logged and ends nothing else."""
        with closing(_connected(self.path)) as database:
            ended = False
            while not ended:
                batch = [self._waiting.get()]
                self._ending.wait(0 if batch[0] is None else _APART_S)
                while len(batch) < _BATCH and not self._waiting.empty():
                    batch.append(self._waiting.get())
                ended = None in batch
                try:
                    self._keep(database, [span for span in batch if span is not None])
                except sqlite3.Error as error:
                    self.dropped += len(batch) - ended
                    logger.warning("Traces could not be kept in %s: %s", self.path, error)

    def _keep(self, database: sqlite3.Connection, roots: list[Span]) -> None:
        rows = [_row(as_records(root, content=self._content)) for root in roots]
        size = sum(len(row[-1]) for row in rows)
        with database:
            database.execute(
                "DELETE FROM traces WHERE started_s < ?", (time.time() - self._max_age_s,)
            )
            while size + _used(database) > _FULL * self._max_bytes:
                gone = database.execute(
                    "DELETE FROM traces WHERE id IN (SELECT id FROM traces ORDER BY started_s "
                    "LIMIT 1 + (SELECT count(*) FROM traces) / ?)",
                    (_SHARE_DROPPED,),
                ).rowcount
                if not gone:
                    break
            database.executemany("INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def read_traces(
    path: str | os.PathLike[str],
    *,
    scope: str | None = None,
    slower_s: float = 0.0,
    failed: bool = False,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """What was traced, the newest first.

    Args:
        path: Of a trace file, from this machine or another.
        scope: Those whose scope has this text in it, such as a tenant's name.
        slower_s: Those that took at least so many seconds.
        failed: Those alone in which something failed.
        limit: So many at most.

    Returns:
        ``id``, ``started_s``, ``seconds``, ``name``, ``scope``, ``error`` of each.

    Raises:
        NotFound: If there is no file.
        FormatError: If it is something else.
    """
    where, values = ["seconds >= ?"], list[Any]([slower_s])
    if scope is not None:
        where.append("instr(scope, ?)")
        values.append(scope)
    if failed:
        where.append("error IS NOT NULL")
    names = ("id", "started_s", "seconds", "name", "scope", "error")
    statement = (
        f"SELECT {', '.join(names)} FROM traces WHERE {' AND '.join(where)} "  # noqa: S608 - no value
        "ORDER BY started_s DESC LIMIT ?"
    )
    with closing(_reading(path)) as database:
        found = database.execute(statement, (*values, limit)).fetchall()
    return [dict(zip(names, row, strict=True)) for row in found]


def read_trace(path: str | os.PathLike[str], id: str) -> list[dict[str, Any]]:
    """One trace's spans, each after its parent, as :func:`read_traces`'s ``id`` names it.

    Args:
        path: Of a trace file.
        id: The trace's, or the beginning of it that no other has.

    Raises:
        NotFound: If there is no file, or no such trace in it.
        FormatError: If it is something else, or a trace is damaged.
    """
    with closing(_reading(path)) as database:
        found = database.execute(
            "SELECT spans FROM traces WHERE substr(id, 1, ?) = ? LIMIT 2", (len(id), id)
        ).fetchall()
    if len(found) != 1:
        many = "several" if found else "no"
        raise NotFound(f"{path} has {many} traces whose id begins with {id!r}.")
    try:
        unpacked = zlib.decompressobj().decompress(found[0][0], _LARGEST)
        return [dict(each) for each in json.loads(unpacked)]
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"The trace {id!r} in {path} is damaged: {error}.") from error


def _row(records: list[dict[str, Any]]) -> tuple[Any, ...]:
    root = records[0]
    scope = root["attributes"].get("scope")
    error = next((each["error"] for each in records if each["error"]), None)
    spans = zlib.compress(json.dumps(records, ensure_ascii=False).encode(), 1)
    return root["trace"], root["started_s"], root["seconds"], root["name"], scope, error, spans


def _made(path: Path) -> None:
    """The file, with its table.

    Raises:
        FormatError: If there is another one.
    """
    new = not path.exists() or path.stat().st_size == 0
    try:
        with closing(_connected(path)) as database:
            if new:
                database.execute(f"PRAGMA application_id = {_ID}")
            elif database.execute("PRAGMA application_id").fetchone() != (_ID,):
                raise FormatError(f"{path} is no trace file. Name another one, or a new one.")
            database.executescript(_TABLE)
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{path} is no trace file: {error}. Name another one.") from error


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10.0)
    database.execute("PRAGMA synchronous = NORMAL")
    # No log beside the file: it can be copied as it is.
    database.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
    return database


def _reading(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """Of a file that is there; read as it is, by whoever wrote it."""
    if not Path(path).is_file():
        raise NotFound(f"There is no trace file at {path}.")
    database = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True, timeout=10.0)
    try:
        if database.execute("PRAGMA application_id").fetchone() != (_ID,):
            raise FormatError(f"{path} is no trace file.")
    except sqlite3.DatabaseError as error:
        database.close()
        raise FormatError(f"{path} is no trace file: {error}.") from error
    except FormatError:
        database.close()
        raise
    return database


def _used(database: sqlite3.Connection) -> int:
    """Bytes that hold something; what was freed is used again before the file grows."""
    pages, free, each = (
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * each)
