"""Which files of a folder are its sources?"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from cormorant.ingest.loaders.formats import format_of

__all__ = ["SourceFile", "walk"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was found.

    Attributes:
        path: Where it lies.
        source: Its name: the path relative to the folder, with ``/`` between parts.
        size_bytes: Its size.
        modified: When it was last changed, in seconds since the epoch.
    """

    path: Path
    source: str
    size_bytes: int
    modified: float

    @classmethod
    def at(cls, path: str | os.PathLike[str], source: str | None = None) -> SourceFile:
        """A single file; its name is the file's own unless given.

        Raises:
            OSError: If it cannot be looked at.
        """
        found = Path(path)
        status = found.stat()
        return cls(found, source or found.name, status.st_size, status.st_mtime)


def walk(
    root: str | os.PathLike[str],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    passed_over: Callable[[str, str], None] | None = None,
) -> Iterator[SourceFile]:
    """The files below a folder that there is a loader for, by name, folder after folder.

    Nothing outside the folder is ever read: a link to a file inside it counts as that file, every
    other link is passed over, as are links to folders, which may go in circles. What begins with a
    dot is left alone.

    Args:
        root: The folder.
        include: Patterns such as ``*.md`` or ``docs/*``, on a file's source or its name; a file
            must match one. Given, they also let in files that no suffix tells the format of; they
            are read as text. Empty: every file there is a loader for.
        exclude: Patterns of files to leave out.
        passed_over: Told the source of each link, and of each folder and file that cannot be
            read, and why.
    """
    folder = Path(root).resolve()
    yield from _walk(folder, folder, include, exclude, passed_over or _quiet)


def _quiet(source: str, why: str) -> None: ...


def _walk(
    root: Path,
    folder: Path,
    include: Sequence[str],
    exclude: Sequence[str],
    told: Callable[[str, str], None],
) -> Iterator[SourceFile]:
    waiting = [iter(_entries(root, folder, told))]  # no recursion: folders may nest without end
    while waiting:
        path = next(waiting[-1], None)
        if path is None:
            waiting.pop()
            continue
        source = _source(root, path)
        try:
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                if not _matches(source, exclude):
                    waiting.append(iter(_entries(root, path, told)))
                continue
            if not _wanted(source, include, exclude):
                continue
            if stat.S_ISLNK(status.st_mode):
                if not _inside(root, path):
                    told(source, "it is a link that leads to no file of this folder.")
                    continue
                status = path.stat()
        except OSError as error:
            told(source, f"it cannot be looked at: {error.strerror or error}.")
            continue
        if stat.S_ISREG(status.st_mode):
            yield SourceFile(path, source, status.st_size, status.st_mtime)


def _entries(root: Path, folder: Path, told: Callable[[str, str], None]) -> list[Path]:
    """What is in a folder, by name, without what is hidden."""
    try:
        found = sorted(folder.iterdir(), key=os.fsencode)
    except OSError as error:
        told(_source(root, folder), f"the folder cannot be read: {error.strerror or error}.")
        return []
    return [path for path in found if not path.name.startswith(".")]


def _source(root: Path, path: Path) -> str:
    """Relative, and text whatever the bytes of the name are."""
    relative = PurePosixPath(path.relative_to(root)).as_posix()
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _inside(root: Path, link: Path) -> bool:
    target = link.resolve(strict=True)
    return target.is_file() and target.is_relative_to(root)


def _wanted(source: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if _matches(source, exclude):
        return False
    return _matches(source, include) if include else format_of(source) is not None


def _matches(source: str, patterns: Sequence[str]) -> bool:
    name = source.rsplit("/", 1)[-1]
    return any(fnmatchcase(source, each) or fnmatchcase(name, each) for each in patterns)
