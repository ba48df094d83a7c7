"""No bytes whatever make the container read outside of them, or raise what is not ours."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cormorant.errors import CorruptionError, FormatError
from cormorant.storage import map_arrays, verify_arrays, write_arrays

FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a sync costs nothing there

dtypes = st.sampled_from(["<i1", "<i8", "<u2", "<u8", "<f2", "<f4", "<f8", "?", "S3", "<U2"])
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
groups = st.dictionaries(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=4),
    st.dictionaries(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=4), arrays, max_size=3
    ),
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(groups)
def test_arrays_come_back(made: dict[str, dict[str, np.ndarray]]) -> None:
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        path = Path(folder) / "a.bin"
        write_arrays(path, made)
        back = map_arrays(path)
        assert verify_arrays(path) == []
        assert list(back) == list(made)
        for group, members in made.items():
            assert list(back[group]) == list(members)
            for name, array in members.items():
                found = back[group][name]
                assert found.dtype == array.dtype
                assert found.shape == array.shape
                assert found.tobytes() == array.tobytes()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damage_is_found_or_harmless(data: st.DataObject) -> None:
    made = {"g": {"a": np.arange(30), "b": np.ones((3, 2), np.float32)}}
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        path = Path(folder) / "a.bin"
        size = write_arrays(path, made)
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            whole[data.draw(st.integers(0, size - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(whole)
        try:
            back = map_arrays(path)
        except (CorruptionError, FormatError):
            assert verify_arrays(path)
            return
        same = all(np.array_equal(back["g"][n], a, equal_nan=True) for n, a in made["g"].items())
        assert same == (verify_arrays(path) == [])
