"""How is a store copied while it is being written?

From one snapshot: SQLite's own backup of the rows, the committed length of the vector
file, the checkpoint. The SQLite file gets its name last, so an unfinished copy is no store.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, FormatError
from cormorant.storage import files, opening, sql
from cormorant.storage.arrays import write_arrays
from cormorant.storage.folder import Folder
from cormorant.storage.reader import Reader

if TYPE_CHECKING:
    from cormorant.storage.ground import Ground

__all__ = ["backup"]

_CHUNK_BYTES = 4 * 1024 * 1024


def backup(ground: Ground, folder: Path) -> None:
    """Copy a snapshot of the store into ``folder``, which must be absent or empty."""
    _check_empty(folder)
    if ground.path is not None and folder.resolve().is_relative_to(ground.path.resolve()):
        raise FormatError(
            f"{folder} lies inside the store {ground.path}; choose a folder outside of it."
        )
    made = files.make_folder(folder)
    try:
        _copy(ground, folder)
    except BaseException:
        for entry in list(folder.iterdir()):
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        files.remove_folders(made)
        raise


def _check_empty(folder: Path) -> None:
    """Refuse to write where something is.

    Raises:
        FormatError: If something is there.
    """
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise FormatError(f"{folder} exists and is not a folder. Choose a new or empty folder.")
    if any(folder.iterdir()):
        raise FormatError(f"{folder} is not empty; nothing was touched. Choose a new folder.")


def _copy(ground: Ground, folder: Path) -> None:
    target = Folder(folder)
    with Reader(ground) as reader:
        head = reader.head
        opening.make_folders(folder)
        with opening.new_database(folder) as connection:
            reader.copy_into(connection)
            # The copy says that it is in WAL mode; leaving it makes it whole in one file.
            sql.set_journal_mode(connection, "delete")
        _write_vectors(target.vector_path(head.generation), reader.vectors())
        if head.base_n:
            base = reader.base()
            write_arrays(target.rows_path(head.generation), {"base": base._asdict()})
        if head.checkpoint_name is not None:
            # A damaged checkpoint is copied as no other: the truth is whole, the rest is rebuilt.
            with contextlib.suppress(CorruptionError, FormatError):
                write_arrays(target.checkpoint_path(head.checkpoint_name), reader.checkpoint())
    for name in ("vectors", "derived"):
        files.sync_folder(folder / name)
    opening.name_database(folder)


def _write_vectors(path: Path, vectors: NDArray[np.float32] | None) -> None:
    fd = files.create(path)
    try:
        if vectors is not None and vectors.size:
            step = max(1, _CHUNK_BYTES // (4 * vectors.shape[1]))
            for lo in range(0, len(vectors), step):
                part = np.ascontiguousarray(vectors[lo : lo + step], dtype="<f4")
                files.pwrite_all(fd, part.data.cast("B"), lo * 4 * vectors.shape[1], path)
        files.sync(fd, path)
    finally:
        os.close(fd)
