"""Vectors are taken whatever they are made of, and refused with their name when bad."""

from __future__ import annotations

import numpy as np
import pytest

from cormorant.errors import DimensionError
from cormorant.index.vector import check_vector, check_vectors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8])
def test_any_number_type_is_taken(dtype):
    given = np.array([[1, 2], [3, 4]], dtype=dtype)
    taken = check_vectors(given, dim=2, metric="dot")
    assert taken.dtype == np.float32
    assert taken.flags.c_contiguous
    assert taken.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "given",
    [
        [[1, 2], [3, 4]],
        [(1.0, 2.0), [3, 4]],
        [np.array([1, 2], dtype=np.int32), np.array([3, 4], dtype=np.float16)],
        np.array([[1, 3], [2, 4]], dtype=np.float64).T,
        np.array([[1, 9, 2, 9], [3, 9, 4, 9]], dtype=np.float32)[:, ::2],
    ],
)
def test_any_shape_of_list_is_taken(given):
    taken = check_vectors(given, dim=None, metric="euclidean")
    assert taken.tolist() == [[1, 2], [3, 4]]
    assert taken.flags.c_contiguous


def test_what_comes_back_shares_no_memory():
    given = np.ones((2, 3), dtype=np.float32)
    for metric in ("cosine", "dot", "euclidean"):
        taken = check_vectors(given, dim=3, metric=metric)
        assert not np.shares_memory(given, taken)
        assert taken.flags.writeable
    assert given.tolist() == np.ones((2, 3)).tolist()


def test_none_is_an_empty_array_of_the_right_type():
    taken = check_vectors([], dim=5, metric="cosine")
    assert taken.shape[0] == 0
    assert taken.dtype == np.float32


def test_cosine_normalises_however_long_or_short():
    taken = check_vectors([[3, 4], [3e-30, 4e-30], [3e17, 4e17]], dim=2, metric="cosine")
    assert taken == pytest.approx(np.array([[0.6, 0.8]] * 3), abs=1e-7)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ([1.0, float("nan")], "nan at position 1; only finite"),
        ([float("-inf"), 1.0], "-inf at position 0; only finite"),
        ([1e39, 0.0], "1e+39 at position 0, which float32 cannot hold"),
        ([3e18, 0.0], "length 3e+18; at most 1e+18"),
        ([1.0], "has 1 numbers; the one before it has 2"),
        ([1.0, 2.0, 3.0], "has 3 numbers; the one before it has 2"),
        ([0.0, 0.0], "all zeros"),
        ([1e-50, 0.0], "all zeros"),
        (["a", "b"], "not a number"),
        (["1", "2"], "not a number"),
        ([1 + 2j, 0], "not a number"),
        ([None, 1.0], "not a number"),
        ("ab", "not a number"),
        (None, "not a number"),
        (7, "has shape ()"),
        ([[1.0, 2.0]], r"has shape (1, 2); a flat list of numbers is accepted. Pass its first row"),
        ([[1.0], [1.0, 2.0]], "not a list of numbers"),
        ({"a": 1}, "not a number"),
    ],
)
def test_a_bad_vector_is_refused_by_name(bad, says):
    with pytest.raises(DimensionError) as caught:
        check_vectors([[1.0, 2.0], bad], dim=2, metric="cosine", names=["good", "culprit"])
    assert str(caught.value).startswith("The vector of 'culprit'")
    assert says in str(caught.value)


def test_a_lone_bad_vector_says_what_is_wanted():
    with pytest.raises(DimensionError, match="has 3 numbers; this store holds vectors of 2"):
        check_vectors([[1, 2, 3]], dim=2, metric="dot")
    with pytest.raises(DimensionError, match="not a number"):
        check_vectors([[True, False]], dim=2, metric="dot")
    with pytest.raises(DimensionError, match="is empty"):
        check_vectors([[]], dim=None, metric="dot")


def test_a_zero_vector_is_fine_where_it_means_something():
    for metric in ("dot", "euclidean"):
        assert check_vectors([[0, 0]], dim=2, metric=metric).tolist() == [[0, 0]]


def test_a_query_vector_is_called_so():
    assert check_vector([3, 4], dim=2, metric="cosine") == pytest.approx([0.6, 0.8])
    with pytest.raises(DimensionError, match=r"^The query's vector has 1 numbers"):
        check_vector([3], dim=2, metric="cosine")
