"""Which bytes are durable? The one object through which a store's files are touched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import ConfigError, NotFound
from cormorant.storage import files, opening
from cormorant.storage.backup import backup
from cormorant.storage.draft import Draft
from cormorant.storage.generation import NewGeneration
from cormorant.storage.ground import MEMORY, Ground
from cormorant.storage.reader import Reader
from cormorant.storage.types import Arrays, Problem
from cormorant.storage.verify import verify
from cormorant.storage.writer import Writer

__all__ = ["Storage"]


class Storage:
    """A store's files, open; thread-safe. Made by :meth:`open`.

    Attributes:
        path: The folder; None in memory.
        in_memory: Whether no file is touched.
        read_only: Whether :meth:`write` refuses.
        created: Whether opening made the store.
    """

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        config: Mapping[str, Any] | None = None,
        create: bool = True,
        read_only: bool = False,
        lock_timeout_s: float = defaults.LOCK_TIMEOUT_S,
    ) -> Storage:
        """Open a folder, or make a store there.

        Args:
            path: A folder, or ``":memory:"``.
            config: Settings of a new store, JSON values by name; ``dim`` may be None. Not
                looked at if there is a store already.
            create: Make a store if the folder is missing or empty.
            read_only: Refuse writes. A folder that cannot be written is always so.
            lock_timeout_s: How long :meth:`write` waits for another writer.

        Raises:
            UsageError: If no path can be that.
            ConfigError: If a setting is no JSON, or the time-out no number of seconds.
            NotFound: If there is no store and none may be made.
            FormatError: If the folder is something else, or of a format not supported.
            StoreError: If it cannot be opened.
        """
        ok = isinstance(lock_timeout_s, (int, float)) and not isinstance(lock_timeout_s, bool)
        if not ok or not 0 <= lock_timeout_s < math.inf:
            raise ConfigError(
                f"lock_timeout_s must be a number of seconds, at least 0; got {lock_timeout_s!r}."
            )
        if str(path) == MEMORY:
            if read_only or not create:
                raise NotFound("A store in memory is always new: it needs create=True.")
            made = opening.Opened(created=True, read_only=False, immutable=False)
            return cls(None, made, config, lock_timeout_s)
        folder = opening.locate(path)
        with files.translated(folder, "open", absence=True):
            found = opening.prepare(
                folder, config=config, create=create, read_only=read_only, timeout_s=lock_timeout_s
            )
            return cls(folder, found, config, lock_timeout_s)

    def __init__(
        self,
        folder: Path | None,
        opened: opening.Opened,
        config: Mapping[str, Any] | None,
        lock_timeout_s: float,
    ) -> None:
        self.path = folder
        self.in_memory = folder is None
        self.read_only = opened.read_only
        self.lock_timeout_s = lock_timeout_s
        self.created = opened.created
        self._ground = Ground(folder, opened, config, lock_timeout_s)
        try:
            self._ground.check_file()
        except BaseException:
            self._ground.close()
            raise

    def read(self) -> Reader:
        """One consistent snapshot, for a ``with`` block."""
        return Reader(self._ground)

    def write(self) -> Writer:
        """The only writer, for a ``with`` block.

        Entering raises StoreLocked (with the holder's pid) if the lock does not come free
        within ``lock_timeout_s``, and StoreError if the store is read-only or if a write
        failed before.
        """
        return Writer(self._ground)

    def new_generation(self, reader: Reader, keep: NDArray[np.int64]) -> NewGeneration:
        """Copy slots of a snapshot into a new generation; needs no lock.

        Then :meth:`NewGeneration.seal` it with the derived arrays of those slots, and
        :meth:`Writer.switch_generation` to it.

        Args:
            reader: The snapshot; it may end once this returns.
            keep: int64, ascending: the slots to carry over, all that are alive.
        """
        self._ground.check_writable()
        with files.translated(self._ground.where, "copy the generation of", absence=True):
            return NewGeneration(self._ground, reader, keep)

    def draft(self, reader: Reader, arrays: Mapping[str, Arrays]) -> Draft:
        """Write a checkpoint of a snapshot; needs no lock. :meth:`Writer.adopt` names it.

        Args:
            reader: The snapshot the arrays were derived from, as of its ``head.lsn``.
            arrays: By group and name.
        """
        self._ground.check_writable()
        return Draft(self._ground, reader.head, arrays)

    def backup(self, folder: str | PathLike[str]) -> None:
        """Copy one consistent snapshot into a new folder, while reads and writes go on.

        Args:
            folder: Must not exist, or be empty. What was written is removed if it fails.

        Raises:
            FormatError: If the folder holds something.
            StoreError: If it cannot be written.
        """
        target = opening.plain_path(folder)
        with files.translated(target, "back up to", absence=True):
            backup(self._ground, target)

    def verify(self) -> list[Problem]:
        """Look for damage in everything on disk; empty is good."""
        return verify(self._ground)

    def size_bytes(self) -> int:
        """Size of all files; in memory, of the vectors."""
        with files.translated(self._ground.where, "measure", absence=True):
            return self._ground.vault.total_bytes()

    def close(self) -> None:
        """Let go of all files; snapshots that are open stay valid until their end. Idempotent."""
        self._ground.close()
