"""The container of derived arrays: what is written is mapped back; nothing hostile gets through."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cormorant.errors import CorruptionError, FormatError, StoreError
from cormorant.storage import map_arrays, verify_arrays, write_arrays

PREFIX = struct.Struct("<8sIIQQ")
GROUPS = {
    "base": {
        "rows": np.arange(5),
        "alive": np.array([True, False, True]),
        "none": np.empty(0, np.float32),
        "wide": np.empty((0, 7), np.int16),
    },
    "text": {
        "tf": np.arange(200, dtype=np.uint8)[::2],
        "m": np.arange(12, dtype=np.float64).reshape(3, 4).T,
        "big": np.arange(3, dtype=">i4"),
        "names": np.array(["a", "鸬鹚"]),
        "raw": np.array([b"ab", b"c"]),
        "one": np.array(3.5, np.float32),
    },
    "empty": {},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.bin"
    write_arrays(path, GROUPS)
    return path


def forge(path: Path, header: Any, data: bytes = b"\0" * 128, **changes: Any) -> None:
    """A file with any header, its checksum right."""
    blob = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = -(-(PREFIX.size + len(blob)) // 64) * 64
    fields = {
        "magic": b"CRMARR1\n",
        "version": 1,
        "crc": zlib.crc32(blob),
        "length": len(blob),
        "total": start + len(data),
    } | changes
    body = PREFIX.pack(*fields.values()) + blob
    path.write_bytes(body.ljust(start, b"\0") + data)


def entry(**changes: Any) -> dict[str, Any]:
    return {"g": {"a": {"dtype": "<i8", "shape": [4], "offset": 0, "crc32": 0} | changes}}


def test_arrays_come_back(path: Path) -> None:
    back = map_arrays(path)
    assert {g: list(arrays) for g, arrays in back.items()} == {
        g: list(a) for g, a in GROUPS.items()
    }
    for group, arrays in GROUPS.items():
        for name, array in arrays.items():
            found = back[group][name]
            assert np.array_equal(found, array), name
            assert found.shape == array.shape
            assert found.dtype == array.dtype.newbyteorder("<")
            assert not found.size or not found.flags.writeable
    assert verify_arrays(path) == []


def test_data_is_aligned_and_stays_when_the_name_goes(path: Path) -> None:
    back = map_arrays(path)
    path.unlink()
    assert back["base"]["rows"].ctypes.data % 64 == 0
    assert back["text"]["m"].ctypes.data % 64 == 0
    assert back["text"]["m"].sum() == 66


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.zeros(2, "i4,f4"), np.array(["2024"], "M8[s]")]
)
def test_types_that_could_hide_something_are_not_written(tmp_path: Path, array: Any) -> None:
    with pytest.raises(TypeError, match="only numbers, booleans and fixed-width strings"):
        write_arrays(tmp_path / "a.bin", {"g": {"a": array}})
    assert not (tmp_path / "a.bin").exists()


def test_an_existing_file_is_not_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreError, match="EEXIST"):
        write_arrays(path, {})
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(path: Path) -> None:
    forge(path, {}, version=2)
    with pytest.raises(FormatError, match="array format 2; this release reads 1"):
        map_arrays(path)
    assert "array format 2" in verify_arrays(path)[0]


@pytest.mark.parametrize(
    "header",
    [
        entry(shape=[5], offset=128),
        entry(shape=[17]),
        entry(shape=[2**61]),
        entry(shape=[2**31, 2**31, 2**31]),
        entry(shape=[0, 2**62]),
        entry(shape=[-1]),
        entry(shape=[1.0]),
        entry(shape=[True]),
        entry(shape=4),
        entry(shape=[1] * 40),
        entry(offset=-64),
        entry(offset=1),
        entry(offset=2**64),
        entry(offset="0"),
        entry(crc32="x"),
        entry(dtype="|O"),
        entry(dtype="O"),
        entry(dtype=">i8"),
        entry(dtype="<M8[s]"),
        entry(dtype="i4,f4"),
        entry(dtype=[["a", "<i4"]]),
        entry(dtype="<U0"),
        entry(dtype="|S99999999999"),
        entry(dtype="<i3"),
        entry(dtype=None),
        {"g": {"a": 1}},
        {"g": [1]},
        [1],
        b"[" * 10_000,
        b"\xff\xfe",
    ],
)
def test_a_hostile_header_is_damage(tmp_path: Path, header: Any) -> None:
    path = tmp_path / "a.bin"
    forge(path, header)
    with pytest.raises(CorruptionError, match=r"a\.bin is damaged") as caught:
        map_arrays(path)
    assert caught.value.path == str(path)
    assert verify_arrays(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"magic": b"PK\3\4\0\0\0\0"},
        {"crc": 1},
        {"length": 2**62},
        {"length": 17 << 20},
        {"total": 1},
        {"total": 2**63},
    ],
)
def test_a_hostile_prefix_is_damage(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "a.bin"
    forge(path, entry(), **changes)
    with pytest.raises(CorruptionError, match="is damaged"):
        map_arrays(path)


def test_a_file_cut_short_anywhere_is_damage(path: Path) -> None:
    whole = path.read_bytes()
    for size in (0, 1, 31, 32, 100, len(whole) - 64, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptionError, match="is damaged"):
            map_arrays(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(CorruptionError, match="were written"):
        map_arrays(path)


def test_a_flipped_bit_in_any_array_is_found(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    rows = whole.index(np.arange(5).tobytes())
    whole[rows + 8] ^= 1
    path.write_bytes(whole)
    assert map_arrays(path)["base"]["rows"][1] == 0  # mapping does not read the data
    assert len(verify_arrays(path)) == 1
    assert "array base/rows has crc32" in verify_arrays(path)[0]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        map_arrays(tmp_path / "a.bin")
    assert verify_arrays(tmp_path / "a.bin") == ["the file is missing"]


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "b.bin"
    link.symlink_to(path)
    with pytest.raises(StoreError, match="It is a link"):
        map_arrays(link)
