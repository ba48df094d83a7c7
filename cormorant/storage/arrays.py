r"""How are named arrays kept in a file that can be mapped and never executes anything?

Layout (little-endian; ``docs/FORMAT.md`` is the reference)::

    0   8   magic  b"CRMARR1\n"
    8   4   version, 1
    12  4   crc32 of the header
    16  8   length of the header
    24  8   length of the file
    32      header: JSON {group: {name: {dtype, shape, offset, crc32}}}
    …       from the next multiple of 64 on: each array's bytes, C order, each at an
            offset from there that is a multiple of 64

Mapping checks the header and every bound, not the data: that is ``verify_arrays``, and
``ArrayFile.check``, which a store calls before it first uses a file.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, FormatError
from cormorant.storage import files
from cormorant.storage.types import Arrays

__all__ = ["ArrayFile", "fill_arrays", "map_arrays", "verify_arrays", "write_arrays"]

_MAGIC = b"CRMARR1\n"
_VERSION = 1
_PREFIX = struct.Struct("<8sIIQQ")
_ALIGN = 64
_MAX_HEADER_BYTES = 16 * 1024 * 1024
_MAX_NDIM = 8
_BURST_BYTES = 16 * 1024 * 1024  # written before they are synced
_KINDS = frozenset("biufSU")  # plain numbers, booleans and fixed-width strings
_MAX_ITEM_BYTES = 1 << 20


def write_arrays(path: str | Path, groups: Mapping[str, Arrays]) -> int:
    """Write ``groups`` into a new file and fsync it.

    The folder is not fsynced: the caller names the file in a transaction and
    syncs the folder before.

    Args:
        path: Must not exist.
        groups: Group name → array name → array. Object and structured types are refused.

    Returns:
        The file's size in bytes.

    Raises:
        TypeError: On an array of a type that cannot be mapped safely.
        StoreError: If the file cannot be written; it is removed then.
    """
    path = Path(path)
    fd = files.create(path)
    try:
        return fill_arrays(fd, path, groups)
    except BaseException:
        files.unlink(path)
        raise
    finally:
        os.close(fd)


def fill_arrays(fd: int, path: Path, groups: Mapping[str, Arrays]) -> int:
    """The same into a new file that is open: ``fd``, of the name ``path``."""
    header, chunks, size = _plan(groups)
    blob = json.dumps(header, separators=(",", ":")).encode()
    # The header holds offsets that depend on its own length: offsets are relative to the data.
    start = _aligned(_PREFIX.size + len(blob))
    total = start + size
    prefix = _PREFIX.pack(_MAGIC, _VERSION, zlib.crc32(blob), len(blob), total)
    files.pwrite_all(fd, prefix + blob, 0, path)
    for offset, data in chunks:
        for at in range(0, len(data), _BURST_BYTES):
            if at:  # one long burst would make a writer's small sync wait for all of it
                files.sync(fd, path)
            files.pwrite_all(fd, data[at : at + _BURST_BYTES], start + offset + at, path)
    files.truncate(fd, total, path)
    files.sync(fd, path)
    return total


def map_arrays(path: str | Path) -> dict[str, dict[str, NDArray[Any]]]:
    """Map a file written by :func:`write_arrays`; its arrays are read-only views of it.

    Raises:
        FileNotFoundError: If there is no such file.
        CorruptionError: If the header is damaged or points outside the file.
        FormatError: If a newer release wrote it.
    """
    return ArrayFile(Path(path)).groups


def verify_arrays(path: str | Path) -> list[str]:
    """Which arrays of the file are damaged? A sentence each; empty is good."""
    try:
        return ArrayFile(Path(path)).damage()
    except FileNotFoundError:
        return ["the file is missing"]
    except (CorruptionError, FormatError) as exc:
        return [str(exc)]


class ArrayFile:
    """A mapped file; it stays readable when its name is gone.

    Attributes:
        path: Where it lay when it was mapped.
        groups: Group name → array name → array, read-only.

    Raises:
        FileNotFoundError: If there is no such file.
        CorruptionError: If the header is damaged or points outside the file.
        FormatError: If a newer release wrote it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.groups: dict[str, dict[str, NDArray[Any]]] = {}
        self._crcs: dict[tuple[str, str], int] = {}
        self._mapped = mapped = _map(path)
        self._sound = False
        header, start = _header(path, mapped)
        for group, members in header.items():
            if not isinstance(members, dict):
                raise _damaged(path, f"group {group!r} is not a table of arrays")
            arrays = self.groups.setdefault(group, {})
            for name, entry in members.items():
                arrays[name], crc = _array(path, mapped, start, f"{group}/{name}", entry)
                self._crcs[group, name] = crc

    def check(self) -> None:
        """Look at all bytes, once; afterwards only at the file's length.

        Raises:
            CorruptionError: If an array does not match its checksum, or the file is cut.
        """
        self.check_length()
        if self._sound:
            return
        found = self.damage()
        if found:
            raise _damaged(self.path, found[0])
        self._sound = True

    def check_length(self) -> None:
        """Touching pages behind a file's end would kill the process.

        Raises:
            CorruptionError: If the file was cut short since it was mapped.
        """
        size = self._mapped.size()
        if size < len(self._mapped):
            raise _damaged(
                self.path,
                f"it was cut to {size} bytes while it was in use. Close the store and open it "
                "again before anything else",
            )

    def damage(self) -> list[str]:
        """Which arrays do not match their checksum? A sentence each."""
        try:
            self.check_length()
        except CorruptionError as exc:
            return [str(exc)]
        found = []
        for (group, name), crc in self._crcs.items():
            array = self.groups[group][name]
            got = zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0
            if got != crc:
                found.append(f"array {group}/{name} has crc32 {got:#010x}, recorded is {crc:#010x}")
        return found


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


def _plan(
    groups: Mapping[str, Arrays],
) -> tuple[dict[str, dict[str, Any]], list[tuple[int, memoryview]], int]:
    header: dict[str, dict[str, Any]] = {}
    chunks: list[tuple[int, memoryview]] = []
    offset = 0
    for group, arrays in groups.items():
        members: dict[str, Any] = {}
        for name, array in arrays.items():
            plain = np.asarray(array)
            if plain.dtype.kind not in _KINDS or not plain.dtype.itemsize:
                raise TypeError(
                    f"Array {group}/{name} has type {plain.dtype}; only numbers, booleans and "
                    "fixed-width strings can be kept in a file."
                )
            shape = list(plain.shape)
            plain = np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("<"))
            data = plain.reshape(-1).view(np.uint8).data if plain.nbytes else memoryview(b"")
            members[name] = {
                "dtype": plain.dtype.str,
                "shape": shape,
                "offset": offset,
                "crc32": zlib.crc32(data),
            }
            if data:
                chunks.append((offset, data))
            offset = _aligned(offset + len(data))
        header[group] = members
    return header, chunks, offset


def _map(path: Path) -> mmap.mmap:
    fd = files.open_read(path)
    try:
        size = os.fstat(fd).st_size
        if size < _PREFIX.size:
            raise _damaged(path, f"it is {size} bytes long, shorter than its prefix")
        return files.map_read(fd, size, path)
    finally:
        os.close(fd)


def _header(path: Path, mapped: mmap.mmap) -> tuple[dict[str, Any], int]:
    size = len(mapped)
    magic, version, crc, length, total = _PREFIX.unpack(mapped[: _PREFIX.size])
    if magic != _MAGIC:
        raise _damaged(path, f"it begins with {magic!r}, not {_MAGIC!r}")
    if version != _VERSION:
        raise FormatError(
            f"{path} has array format {version}; this release reads {_VERSION}. "
            "Use a newer release of cormorant."
        )
    if total != size:
        raise _damaged(path, f"it is {size} bytes long; {total} were written")
    if length > _MAX_HEADER_BYTES or _PREFIX.size + length > size:
        raise _damaged(path, f"its header claims {length} bytes")
    blob = mapped[_PREFIX.size : _PREFIX.size + length]
    if zlib.crc32(blob) != crc:
        raise _damaged(path, "its header's crc32 does not match")
    try:
        header = json.loads(blob)
    except (ValueError, RecursionError) as exc:
        raise _damaged(path, "its header is not JSON") from exc
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a table")
    return header, _aligned(_PREFIX.size + length)


def _array(
    path: Path, mapped: mmap.mmap, start: int, name: str, entry: object
) -> tuple[NDArray[Any], int]:
    if not isinstance(entry, dict):
        raise _damaged(path, f"array {name} is not described")
    shape, offset, crc = entry.get("shape"), entry.get("offset"), entry.get("crc32")
    dtype = _dtype(entry.get("dtype"))
    if dtype is None:
        raise _damaged(path, f"array {name} has type {entry.get('dtype')!r}, which is not accepted")
    if (
        not isinstance(shape, list)
        or len(shape) > _MAX_NDIM
        or any(type(side) is not int or side < 0 for side in shape)
    ):
        raise _damaged(path, f"array {name} has shape {shape!r}")
    if type(offset) is not int or offset < 0 or offset % _ALIGN or type(crc) is not int:
        raise _damaged(path, f"array {name} has offset {offset!r} and crc32 {crc!r}")
    count = math.prod(shape)
    size = len(mapped)
    if count * dtype.itemsize > size - start - offset or any(side > size for side in shape):
        raise _damaged(path, f"array {name} of shape {shape} at {offset} ends past the file")
    if count == 0:
        return np.empty(shape, dtype), crc
    array = np.frombuffer(mapped, dtype, count, start + offset).reshape(shape)
    return array, crc


def _dtype(spec: object) -> np.dtype[Any] | None:
    if not isinstance(spec, str) or len(spec) > 16:
        return None
    try:
        dtype = np.dtype(spec)
    except (TypeError, ValueError):
        return None
    plain = dtype.kind in _KINDS and dtype.str == spec and not spec.startswith(">")
    return dtype if plain and 0 < dtype.itemsize <= _MAX_ITEM_BYTES else None


def _damaged(path: Path, what: str) -> CorruptionError:
    return CorruptionError(f"{path} is damaged: {what}.", str(path))
