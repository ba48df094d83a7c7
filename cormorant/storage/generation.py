"""How is a new generation built while everybody goes on working?

The live slots are copied into a new generation without the store's lock; the lock is
taken for the tail that was appended meanwhile and for the switch.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.storage import files
from cormorant.storage.ranges import Base, damaged_runs
from cormorant.storage.types import Arrays

if TYPE_CHECKING:
    from typing import Self

    from cormorant.storage.ground import Ground
    from cormorant.storage.reader import Reader
    from cormorant.storage.vault import Claim

__all__ = ["NewGeneration"]

_CHUNK_BYTES = 4 * 1024 * 1024


class NewGeneration:
    """A generation under construction; made by ``Storage.new_generation``.

    A context manager: unless a switch was tried, leaving the block removes it.

    Attributes:
        origin: The head of the snapshot it is made from.
        n: Slots it carries over.
        rows: int64, shape (n,): their rows.
        sealed: Whether :meth:`seal` was called.
        size_before: Bytes of all files before the copy was made.
    """

    def __init__(
        self,
        ground: Ground,
        reader: Reader,
        keep: NDArray[np.int64],
    ) -> None:
        slots = reader.slot_map()
        self.origin = reader.head
        self.n = len(keep)
        self.rows = slots.rows[keep]
        self.sealed = False
        self.size_before = ground.vault.total_bytes()
        self._has_vector = slots.has_vector[keep]
        self._ends: list[int] = []
        self._crcs: list[int] = []
        self._ground = ground
        self._kept = False
        self._closed = False
        self.claim: Claim = ground.vault.claim(self.origin)
        ground.hold(self)
        try:
            self._copy(reader, keep)
        except BaseException:
            self.close()
            raise

    @property
    def generation(self) -> int:
        """Its number."""
        return self.claim.generation

    @property
    def checkpoint_name(self) -> str:
        """Stem of its checkpoint's file."""
        return f"g{self.generation}"

    def seal(self, arrays: Mapping[str, Arrays]) -> None:
        """Add the derived arrays of the kept slots as of ``origin.lsn``, durably."""
        self._ground.check_process()
        self._ground.check_place()
        with files.translated(self._ground.where, "seal the generation of", absence=True):
            self._seal(arrays)
        self.sealed = True

    def _seal(self, arrays: Mapping[str, Arrays]) -> None:
        self.claim.seal(
            Base(
                self.rows,
                self._has_vector,
                np.array(self._ends, np.int64),
                np.array(self._crcs, np.uint32),
            )
        )
        self._ground.vault.save_checkpoint(self.checkpoint_name, arrays)

    def keep(self) -> None:
        """The head may name it now: it stays, even if this is closed."""
        self._kept = True
        self.claim.keep()

    def close(self) -> None:
        """Let go of it; unless the head may name it, remove it. Idempotent."""
        if self._closed or self._ground.is_forked:
            return
        self._closed = True
        self._ground.let_go(self)
        if not self._kept:
            # The checkpoint first: while the vector file is locked no sweep looks at it.
            self._ground.vault.drop_checkpoint(self.checkpoint_name)
        self.claim.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _copy(self, reader: Reader, keep: NDArray[np.int64]) -> None:
        vectors = reader.vectors()
        if vectors is None or not len(keep):
            return
        # A fresh checksum must not make damaged vectors look whole.
        for lo, hi in damaged_runs(vectors, reader.base(), reader.ranges()):
            if np.searchsorted(keep, lo) < np.searchsorted(keep, hi):
                path = str(self._ground.vault.vector_path(self.origin.generation))
                raise CorruptionError(
                    f"{path} is damaged: slots {lo} to {hi - 1} do not match their checksum, so "
                    "they are not copied. Restore the store from a backup, or add those records "
                    "again.",
                    path,
                )
        step = max(1, _CHUNK_BYTES // (4 * vectors.shape[1]))
        for lo in range(0, len(keep), step):
            part = np.ascontiguousarray(vectors[keep[lo : lo + step]], dtype="<f4")
            self.claim.put(lo, part)
            self._ends.append(lo + len(part))
            self._crcs.append(zlib.crc32(part.data.cast("B")))
