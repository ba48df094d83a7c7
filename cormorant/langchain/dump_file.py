"""Where may a dump lie, and how is it written there whole, or not at all?"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cormorant.errors import FormatError, NotFound, StoreError, UsageError

__all__ = ["reading", "replacing"]

_NONBLOCK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` once it is whole and on disk.

    Missing folders are made, and go again if it fails.

    Raises:
        UsageError: If no file can have that path, or something else than a file has it.
        StoreError: If the system refuses to write there.
    """
    target = _path(path)
    there = _status(target, "write")
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise UsageError(
            f"A dump is a file, and {target} is {_kind(there)}. Nothing was written. Name a file"
            f"{', such as ' + repr(str(target / 'dump.jsonl')) if _is_folder(there) else ''}."
        )
    made: list[Path] = []
    # No part of the target's name: that may be as long as a name can be.
    draft = target.with_name(f".cormorant-{uuid.uuid4().hex}.tmp")
    try:
        _make_folders(target.parent, made)
        try:
            with draft.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):  # what went wrong first is what matters
                draft.unlink(missing_ok=True)
            raise
        _sync(target.parent)
    except BaseException as error:
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # not empty: the file is there
                folder.rmdir()
        if isinstance(error, OSError):
            raise StoreError(
                f"Could not write the dump {target}: {_why(error)}. Check the folder, its "
                "permissions and the space left, or name another file."
            ) from error
        raise


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file at ``path``.

    Raises:
        NotFound: If there is no such file.
        FormatError: If it is something else than a file.
        UsageError: If no file can have that path.
        StoreError: If the system refuses to read it.
    """
    source = _path(path)
    there = _status(source, "read")
    if there is None:
        raise NotFound(f"There is no file {source}.")
    _refuse_other(source, there)
    try:
        # Should a pipe have taken its place: one that nobody writes to must not be waited for.
        with os.fdopen(os.open(source, os.O_RDONLY | os.O_CLOEXEC | _NONBLOCK), "rb") as file:
            _refuse_other(source, os.fstat(file.fileno()))
            yield file
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {source}.") from error
    except OSError as error:
        raise StoreError(
            f"Could not read the dump {source}: {_why(error)}. Check its permissions and the disk."
        ) from error


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise UsageError(f"path must be a string or a Path; got a {type(path).__name__}.")
    return Path(path)


def _status(path: Path, doing: str) -> os.stat_result | None:
    """What is there; None if nothing is, and something could be."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        if doing == "read":
            return None
        raise UsageError(
            f"A dump cannot be written to {path}: a part of that path is a file, no folder."
        ) from error
    except ValueError as error:  # a NUL, or half a surrogate pair
        raise UsageError(f"path is none a file can have ({error}); got {str(path)!r}.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(
                f"path is longer than a path can be ({_why(error)}); got {str(path)[:100]!r}…"
            ) from error
        raise StoreError(f"Could not {doing} the dump {path}: {_why(error)}.") from error


def _refuse_other(path: Path, there: os.stat_result) -> None:
    if not stat.S_ISREG(there.st_mode):
        hint = " To open a store say Cormorant(embedding, path=…)." if _is_folder(there) else ""
        raise FormatError(f"{path} is {_kind(there)}, not a dump.{hint}")


def _is_folder(there: os.stat_result) -> bool:
    return stat.S_ISDIR(there.st_mode)


def _kind(there: os.stat_result) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_one, name in kinds if is_one(there.st_mode)), "a device")


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another program made it just now
            each.mkdir()
            made.append(each)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _why(error: OSError) -> str:
    code = errno.errorcode.get(error.errno or 0)
    return f"{error.strerror or error}{f' ({code})' if code else ''}"
