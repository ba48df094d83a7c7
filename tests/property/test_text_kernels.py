"""numba's arithmetic is numpy's, to the last rank and the last bit."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.index.text import TextIndex, index, kernel, kernels, levels, rank, use_kernel

pytest.importorskip("numba", reason="numba is not installed: pip install 'cormorant[fast]'")

VOCABULARY = 30


@pytest.fixture(scope="module", autouse=True)
def numpy_again():
    yield
    use_kernel("numpy")


def collection(seed, count, longest):
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** 1.3
    weights /= weights.sum()
    return [
        [f"w{i}" for i in rng.choice(VOCABULARY, rng.integers(0, longest), p=weights)]
        for _ in range(count)
    ]


def outcome(name, text_index, terms, *, k, mask, alive, k1, b, long):
    use_kernel(name)
    chosen = [kernels.current()._replace(long=long)]
    with mock.patch.object(kernels, "_chosen", chosen), mock.patch.object(rank, "_PROBED", 30):
        asked = text_index.ask(terms, alive=alive, k1=k1, b=b)
        found = asked.search(k=k, mask=mask)
        whole = asked.score(np.arange(text_index.n))
    return (
        found.slots.tolist(),
        found.scores.tobytes(),
        found.matched,
        dict(found.counters),
        whole.tobytes(),
        asked.spread(),
    )


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 20),
    count=st.sampled_from([1, 200, 700]),
    longest=st.sampled_from([8, 400, 900]),  # lengths of one byte and of two; large frequencies
    batch=st.sampled_from([40, 10_000]),
    query=st.lists(st.integers(0, VOCABULARY + 1), min_size=1, max_size=8),
    k=st.sampled_from([1, 10, 900]),
    share=st.sampled_from([None, 0.6, 0.1, 0.0]),
    dead=st.sampled_from([0.0, 0.2]),
    setting=st.sampled_from([(1.2, 0.75), (0.0, 0.5), (2.0, 0.0), (0.9, 1.0), (1e-3, 0.3)]),
    long=st.sampled_from([1, 50, 10_000]),
)
def test_equal_to_the_bit(seed, count, longest, batch, query, k, share, dead, setting, long):
    documents = collection(seed, count, longest)
    with (
        mock.patch.object(index, "TAIL_POSTINGS", 900),
        mock.patch.object(levels, "TAIL_POSTINGS", 900),
    ):
        text_index = TextIndex.empty()
        for at in range(0, count, batch):
            text_index = text_index.append(TextIndex.encode(documents[at : at + batch]))
    rng = np.random.default_rng(seed)
    alive = rng.random(count) >= dead if dead else None
    mask = alive if share is None else rng.random(count) < share
    if mask is not None and alive is not None:
        mask = mask & alive
    terms = [f"w{i}" for i in query]
    k1, b = setting
    plain, compiled = (
        outcome(name, text_index, terms, k=k, mask=mask, alive=alive, k1=k1, b=b, long=long)
        for name in ("numpy", "numba")
    )
    assert compiled == plain


def test_mapped_arrays_are_read_as_they_are():
    documents = collection(1, 300, 30)
    arrays = TextIndex.empty().append(TextIndex.encode(documents)).to_arrays()
    mapped = TextIndex.from_arrays(
        {name: np.frombuffer(array.tobytes(), array.dtype) for name, array in arrays.items()}
    )
    found = []
    for name in ("numpy", "numba"):
        use_kernel(name)
        assert kernel() == name
        result = mapped.ask(["w0", "w3", "w29"]).search(k=20)
        found.append((result.slots.tolist(), result.scores.tobytes()))
    assert found[0] == found[1]
