"""How does a change become durable, all of it or nothing?

Vectors first: written behind the committed length and synced, where no reader looks.
Then one SQLite transaction names them. A failure before its COMMIT leaves the store as it was.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import ConfigError, CorruptionError, DimensionError, RecordError, StoreError
from cormorant.storage import documents as keeping
from cormorant.storage import sql
from cormorant.storage.head import encode_config, log_crc, read_head, record_crc, write_head
from cormorant.storage.ranges import Range, pack_flags
from cormorant.storage.reader import Reader
from cormorant.storage.types import (
    Arrays,
    Delta,
    Head,
    NewDocument,
    NewRecord,
    Reclaimed,
    StaleGeneration,
)

if TYPE_CHECKING:
    from typing import Self

    from cormorant.storage.draft import Draft
    from cormorant.storage.generation import NewGeneration
    from cormorant.storage.ground import Ground

__all__ = ["Writer"]

_RANGE = "INSERT OR REPLACE INTO ranges VALUES (?, ?, ?, ?, ?, ?)"


class Writer(Reader):
    """The only one who may change the store; a Reader of its newest state too.

    A context manager, made by ``Storage.write``.
    """

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._size_before: int | None = None

    def __enter__(self) -> Self:
        self._connection, self._head, self._pin = self._ground.begin_write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._ground.end_write(connection)

    def commit(
        self,
        *,
        records: Sequence[NewRecord] = (),
        vectors: NDArray[np.float32] | None = None,
        has_vector: NDArray[np.bool_] | None = None,
        dead_rows: NDArray[np.int64] | Sequence[int] = (),
        postings: bytes = b"",
        columns: bytes = b"",
        config: Mapping[str, Any] | None = None,
        documents: Sequence[NewDocument] = (),
        dead_documents: Sequence[str] = (),
    ) -> Delta:
        """Store records, let others die, change settings: one transaction, durable on return.

        Args:
            records: New ones, each with an id that is not stored or whose row dies here.
            vectors: float32, shape (len(records), dim), zeros where there is none; None
                if no record has one.
            has_vector: bool, shape (len(records),); None means all, if there are vectors.
            dead_rows: Rows of records that are deleted or replaced.
            postings: The text index's encoding of ``records``.
            columns: The metadata index's encoding of ``records``.
            config: Settings to add or change, JSON values by name.
            documents: Kept beside the records; one whose id exists is replaced.
            dead_documents: Ids of documents to take out, before others come in.

        Returns:
            The change as readers will see it.

        Raises:
            RecordError: If an id is stored already, or a text is not valid Unicode.
            DimensionError: If the vectors' shape does not fit.
            StoreError: If the disk fails; nothing is stored then, and the store must be
                opened again before it can be written.
        """
        head = self._writing
        rows = np.asarray(dead_rows, dtype="<i8")
        batch = _Batch(head, records, vectors, has_vector, config)
        if batch.count or batch.dim != head.dim:
            with self._ground.poisoning("store records"):
                self._ground.vault.append(head, batch.dim, batch.count, batch.data)
        delta = Delta(
            lsn=head.lsn + 1,
            generation=head.generation,
            lo=head.n,
            hi=head.n + batch.count,
            first_row=head.next_row,
            dead_rows=rows.astype(np.int64),
            has_vector=batch.flags,
            postings=postings,
            columns=columns,
        )
        changed = head._replace(
            lsn=delta.lsn,
            n=delta.hi,
            next_row=head.next_row + batch.count,
            dim=batch.dim,
            config_lsn=delta.lsn if batch.config else head.config_lsn,
        )
        with self._transaction(changed) as connection:
            _delete(connection, rows.tolist())
            self._insert(connection, batch)
            dead = rows.tobytes()
            log = (delta.lsn, delta.lo, delta.hi, delta.first_row, dead, batch.vectors)
            blobs = (batch.packed, postings, columns)
            connection.execute(
                "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*log, *blobs, log_crc(delta.first_row, dead, *blobs)),
            )
            connection.executemany(sql.PUT_SETTING, batch.config)
            keeping.drop(connection, dead_documents)
            keeping.put(connection, documents)
        return delta

    def save_checkpoint(self, arrays: Mapping[str, Arrays], lsn: int) -> bool:
        """Keep derived arrays as of ``lsn`` and trim the log up to there.

        Returns:
            False, and nothing changed, if a later checkpoint is there already.
        """
        head = self._writing
        if not head.checkpoint_lsn <= lsn <= head.lsn:
            return False
        name = f"{lsn}-{head.files + 1}"
        with self._ground.poisoning("save a checkpoint"):
            self._ground.vault.save_checkpoint(name, arrays)
        self._name_checkpoint(name, lsn)
        return True

    def adopt(self, draft: Draft) -> bool:
        """The same with a checkpoint that was written without the lock.

        Returns:
            False, and nothing changed, if a later checkpoint or another generation is there.
        """
        head, origin = self._writing, draft.origin
        if head.generation != origin.generation or origin.lsn < head.checkpoint_lsn:
            return False
        # From here on the head may name it, whatever this process comes to know of that.
        draft.keep()
        self._name_checkpoint(draft.name, origin.lsn)
        return True

    def _name_checkpoint(self, name: str, lsn: int) -> None:
        head = self._writing
        changed = head._replace(
            checkpoint_lsn=lsn,
            checkpoint_n=self._n_at(lsn),
            checkpoint_name=name,
            files=head.files + 1,
        )
        trim = min([lsn, *self._ground.held_lsns()])
        with self._transaction(changed) as connection:
            connection.execute("DELETE FROM log WHERE lsn <= ?", (trim,))
        self._renew()

    def switch_generation(self, new: NewGeneration) -> Head:
        """End a compaction: copy what was appended since, then name the new generation.

        Rows stay; slots are numbered anew, and so are the changes since the new
        generation's snapshot: they follow its checkpoint, so a reader of the old
        generation always reloads.

        Returns:
            The new head; its checkpoint is the one that ``new`` was sealed with.

        Raises:
            StaleGeneration: If another compaction came first, or the changes since are no
                longer in the log: begin again with a new snapshot.
        """
        head, origin = self._writing, new.origin
        tail = [] if head.lsn == origin.lsn else self.deltas(origin.lsn)
        if head.generation != origin.generation or tail is None:
            raise StaleGeneration
        if not new.sealed:
            raise StoreError("A new generation must be sealed before the store switches to it.")
        shift = origin.n - new.n
        with self._ground.poisoning("switch the generation"):
            ranges = list(self._moved(new, shift))
            new.claim.sync(head.n - shift, head.dim)
        jump = head.lsn - origin.lsn + 1
        changed = head._replace(
            lsn=head.lsn + jump,
            generation=new.generation,
            n=head.n - shift,
            base_n=new.n,
            checkpoint_lsn=origin.lsn + jump,
            checkpoint_n=new.n,
            checkpoint_name=new.checkpoint_name,
        )
        # From here on the head may name it, whatever this process comes to know of that: a
        # COMMIT that fails may be in the log all the same. The next writer sweeps by the head.
        new.keep()
        with self._transaction(changed) as connection:
            connection.execute("DELETE FROM ranges")
            connection.executemany(_RANGE, ranges)
            connection.execute("DELETE FROM log WHERE lsn <= ?", (origin.lsn,))
            # Upwards past every old number, so no two can meet on the way.
            connection.execute(
                "UPDATE log SET lsn = lsn + ?, lo = lo - ?, hi = hi - ?", (jump, shift, shift)
            )
        self._renew()
        self._size_before = new.size_before
        return changed

    def reclaim(self) -> Reclaimed:
        """Make deleted bytes go: rewrite SQLite's file, cut its log, remove old generations.

        A snapshot of this or another process that is still open keeps old bytes in SQLite's
        log (``pending_readers``); they go with the first write after it has ended.

        Returns:
            Sizes before (of the whole compaction, after a switch) and after.
        """
        head = self._writing
        before = self._size_before or self._ground.vault.total_bytes()
        pending, left = self._ground.reclaim(self._open, head)
        after = self._ground.vault.total_bytes()
        return Reclaimed(before, after, pending_readers=pending, left=tuple(left))

    # Inside

    @property
    def _writing(self) -> Head:
        """The newest head, while this is the writer: files are touched before SQL would refuse.

        Raises:
            StoreClosed: After its `with` block, and in a forked child.
        """
        _ = self._open
        return self.head

    @contextmanager
    def _transaction(self, changed: Head) -> Iterator[sqlite3.Connection]:
        """One transaction that ends with ``changed`` as the head."""
        connection, before = self._open, self.head
        with self._ground.committing(connection):
            if read_head(connection, self._ground.sqlite_path, before) != before:
                raise StoreError(
                    f"{self._where} was changed by a writer without the lock. Nothing of this "
                    "call was stored. Was the file `lock` removed while it was in use?"
                )
            yield connection
            write_head(connection, changed)
        self._head = changed

    def _renew(self) -> None:
        """After what the head names changed: hold the new, remove the old."""
        self._pin = self._ground.pinned_for(self.head)
        self._ground.vault.remove_unnamed(self.head)

    def _insert(self, connection: sqlite3.Connection, batch: _Batch) -> None:
        if not batch.count:
            return
        row = self.head.next_row
        try:
            connection.executemany(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?)", _encoded(batch.records, row)
            )
        except sqlite3.IntegrityError as exc:
            raise RecordError(
                f"An id of this batch is stored already, or twice in the batch ({exc}); nothing "
                "was stored. Name the row it replaces in dead_rows."
            ) from exc
        last = connection.execute("SELECT * FROM ranges ORDER BY first_row DESC LIMIT 1").fetchone()
        grown = None
        if last:
            grown = Range.checked(last, self._where).extended(
                batch.count, batch.vectors, batch.data
            )
        crc = None
        if batch.data is not None:
            crc = zlib.crc32(batch.data, zlib.crc32(batch.packed or b""))
        lo = self.head.n
        fresh = Range(row, lo, lo + batch.count, batch.vectors, batch.packed, crc)
        connection.execute(_RANGE, grown or fresh)

    def _moved(self, new: NewGeneration, shift: int) -> Iterator[Range]:
        """The ranges after the snapshot, copied to where they lie in the new generation."""
        start, vectors = new.origin.n, self.vectors()
        for run in self.ranges():
            if run.hi <= start:
                continue
            lo, crc = max(run.lo, start), run.crc
            if crc is not None and vectors is not None:
                if not run.matches(vectors):
                    path = str(self._ground.vault.vector_path(self.head.generation))
                    raise CorruptionError(
                        f"{path} is damaged: slots {run.lo} to {run.hi - 1} do not match their "
                        "checksum. Restore the store from a backup.",
                        path,
                    )
                new.claim.put(lo - shift, vectors[lo : run.hi])
                if lo > run.lo:  # it grew over the snapshot's end: such ranges are uniform
                    crc = zlib.crc32(vectors[lo : run.hi].data.cast("B"))
            yield run._replace(
                first_row=run.first_row + lo - run.lo,
                lo=lo - shift,
                hi=run.hi - shift,
                vectors=min(run.vectors, run.hi - lo),
                crc=crc,
            )

    def _n_at(self, lsn: int) -> int:
        """How many slots there were at ``lsn``."""
        head = self.head
        if lsn == head.lsn:
            return head.n
        if lsn == head.checkpoint_lsn:
            return head.checkpoint_n
        found = self._rows("SELECT hi FROM log WHERE lsn = ?", (lsn,))
        if not found or type(found[0][0]) is not int:
            raise CorruptionError(f"{self._where} is damaged: its log lacks {lsn}.", self._where)
        return found[0][0]


class _Batch:
    """The arguments of a commit, checked against the head and encoded."""

    def __init__(
        self,
        head: Head,
        records: Sequence[NewRecord],
        vectors: NDArray[np.float32] | None,
        has_vector: NDArray[np.bool_] | None,
        config: Mapping[str, Any] | None,
    ) -> None:
        self.records = records
        self.count = len(records)
        settings = dict(config or {})
        asked = settings.pop("dim", None)
        self.dim = head.dim if head.dim is not None else asked
        if asked is not None and asked != self.dim:
            raise ConfigError(f"The store's vectors have {self.dim} numbers; dim={asked} came.")
        self.config = encode_config(settings)
        flags = np.zeros(self.count, np.bool_) if has_vector is None else np.asarray(has_vector)
        if vectors is not None and has_vector is None:
            flags = np.ones(self.count, np.bool_)
        if flags.shape != (self.count,) or flags.dtype != np.bool_:
            raise DimensionError(
                f"has_vector must be bool, shape ({self.count},); got {flags.dtype}, {flags.shape}."
            )
        self.flags = flags
        self.vectors, self.packed = pack_flags(flags)
        self.data: memoryview | None = None
        if self.vectors and vectors is None:
            raise DimensionError(f"has_vector names {self.vectors} vectors; none came.")
        if vectors is not None and self.vectors:
            self.data = self._bytes(np.asarray(vectors))

    def _bytes(self, vectors: NDArray[Any]) -> memoryview:
        wanted = (self.count, self.dim or vectors.shape[-1])
        if vectors.shape != wanted or not wanted[1]:
            raise DimensionError(f"Vectors must have shape {wanted}; got {vectors.shape}.")
        self.dim = wanted[1]
        if not self.flags.all():
            vectors = np.where(self.flags[:, None], vectors, np.float32(0))
        return np.ascontiguousarray(vectors, dtype="<f4").data.cast("B")


def _delete(connection: sqlite3.Connection, rows: list[int]) -> None:
    """Take records out.

    Raises:
        RecordError: If one of the rows is not stored, or named twice.
    """
    if not rows:
        return
    done = connection.executemany('DELETE FROM records WHERE "row" = ?', [(row,) for row in rows])
    if done.rowcount != len(rows):
        raise RecordError(
            f"dead_rows names {len(rows)} rows, of which {done.rowcount} are stored; nothing was "
            "changed. Name each row that rows_of gave once."
        )


def _encoded(records: Sequence[NewRecord], row: int) -> Iterator[tuple[int, str, str, str, int]]:
    for number, (id, text, metadata) in enumerate(records, row):
        try:
            crc = record_crc(id, text, metadata)
        except UnicodeEncodeError as exc:
            raise RecordError(
                f"Record {id!r} has a lone surrogate ({exc.object[exc.start]!r}), which is no "
                "character; nothing was stored. Clean the text first."
            ) from None
        yield number, id, text, metadata, crc
