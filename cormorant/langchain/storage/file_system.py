"""How does a folder keep bytes by key, each in a file of its own?"""

from __future__ import annotations

import errno
import os
import time
import unicodedata
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from langchain_core.stores import ByteStore
from typing_extensions import override

from cormorant.errors import RecordError
from cormorant.langchain.storage._keys import listed_keys
from cormorant.langchain.storage.exceptions import InvalidKeyException

__all__ = ["LocalFileStore"]

_SIGNS: Final = frozenset("_.-#")
_DRAFT: Final = "~"  # no key has one
_NO_NAME: Final = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
_ABSENT: Final = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
_SHOWN: Final = 80  # characters of a key in a message


class LocalFileStore(ByteStore):
    """Bytes by key, a file each.

    A key is a path below the folder: names of letters and digits of any script, ``_``, ``.``,
    ``-`` and ``#``, with ``/`` between them. A file is replaced when the new one is whole and
    on disk. What a killed writer left of one ends in ``~``: it is no key, and may be deleted.

    Args:
        root_path: The folder, made when something is put there.
        chmod_file: Permissions of new files; None leaves them to the umask.
        chmod_dir: Permissions of new folders; None leaves them to the umask.
        update_atime: Reading sets a file's access time, for caches that drop the least used.
    """

    def __init__(
        self,
        root_path: str | Path,
        *,
        chmod_file: int | None = None,
        chmod_dir: int | None = None,
        update_atime: bool = False,
    ) -> None:
        self.root_path = Path(root_path).absolute()
        self.chmod_file = chmod_file
        self.chmod_dir = chmod_dir
        self.update_atime = update_atime

    @override
    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values of the keys, None where there is none.

        Raises:
            InvalidKeyException: If one is no key.
            RecordError: On one key that is in no list.
        """
        return [self._read(path) for path in map(self._get_full_path, listed_keys(keys))]

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Put values, one after the other: each is there whole or not at all.

        Raises:
            InvalidKeyException: If one is no key; nothing is put then. Or if one names a folder,
                or is too long for the file system.
            RecordError: If a value is not bytes; nothing is put then.
        """
        pairs = [(self._get_full_path(key), _bytes(key, value)) for key, value in key_value_pairs]
        for path, value in pairs:
            try:
                self._write(path, value)
            except OSError as error:
                if error.errno not in _NO_NAME:
                    raise
                raise InvalidKeyException(
                    f"Invalid key: {_shown(path.relative_to(self._root()).as_posix())} cannot be "
                    f"a file here ({error.strerror}). A key may not begin with another key and a "
                    "/, and its names have at most 255 bytes, about 85 Chinese characters."
                ) from error

    @override
    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove the files of the keys; unknown ones are skipped."""
        for path in map(self._get_full_path, listed_keys(keys)):
            try:
                if path.is_file():
                    path.unlink()
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys, or those that begin with ``prefix``, sorted."""
        if prefix:
            self._check(prefix, prefix.removesuffix("/").split("/"))
        root = self._root()
        for path in sorted(root.rglob("*")):
            key = path.relative_to(root).as_posix()
            if key.startswith(prefix or "") and _DRAFT not in path.name and path.is_file():
                yield key

    def _root(self) -> Path:
        return self.root_path.resolve()

    def _get_full_path(self, key: str) -> Path:
        if not isinstance(key, str):
            raise InvalidKeyException(f"A key is a string; got a {type(key).__name__}.")
        self._check(key, key.split("/"))
        root = self._root()
        path = (root / key).resolve()
        if not path.is_relative_to(root):
            raise InvalidKeyException(f"Invalid key: {_shown(key)} leads out of {root}.")
        return path

    @staticmethod
    def _check(key: str, names: list[str]) -> None:
        plain = all(_is_plain(sign) for name in names for sign in name)
        if not plain or any(name in {"", ".", ".."} for name in names):
            raise InvalidKeyException(
                f"Invalid key: {_shown(key)}. A key has names of letters, digits and _ . - #, with "
                "/ between them, and is relative: no name may be empty, . or .."
            )

    def _read(self, path: Path) -> bytes | None:
        try:
            value = path.read_bytes()
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            return None
        if self.update_atime:
            found = path.stat()
            os.utime(path, ns=(max(time.time_ns(), found.st_atime_ns + 1), found.st_mtime_ns))
        return value

    def _write(self, path: Path, value: bytes) -> None:
        self._make_folder(path.parent)
        draft = path.with_name(f"{uuid.uuid4().hex}{_DRAFT}")
        try:
            with draft.open("xb") as file:
                file.write(value)
                file.flush()
                if self.chmod_file is not None:
                    os.fchmod(file.fileno(), self.chmod_file)
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        if self.chmod_dir is not None:
            folder.chmod(self.chmod_dir)
        _sync_folder(folder.parent)


def _bytes(key: str, value: bytes) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise RecordError(
            f"The value of {_shown(key)} must be bytes; got a {type(value).__name__}. "
            "create_kv_docstore keeps Documents."
        )
    return value


def _shown(key: str) -> str:
    return repr(key if len(key) <= _SHOWN else key[:_SHOWN] + "…")


def _is_plain(sign: str) -> bool:
    return sign in _SIGNS or unicodedata.category(sign)[0] in "LMN"


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
