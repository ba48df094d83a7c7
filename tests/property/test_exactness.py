"""``Result.exact`` is True only where the answer is what comparing all would give."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cormorant
from cormorant import Query, defaults
from cormorant.index.vector import learning

DIM = 8
STEPS = st.lists(
    st.sampled_from(["add", "add", "delete", "optimize", "compact", "reopen", "exact"]),
    min_size=2,
    max_size=7,
)


def brute(held, point, most, k):
    """The k best scores among records below ``most``."""
    rows = [vector for vector, part in held.values() if part < most]
    if not rows:
        return []
    made = np.stack(rows) @ point
    return np.sort(made)[::-1][:k].tolist()


@settings(deadline=None, max_examples=25)
@given(STEPS, st.integers(0, 2**16))
def test_exact_means_exact(steps, seed):
    rng = np.random.default_rng(seed)
    held, seen = {}, set()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(defaults, "INDEX_MIN_ROWS", 300),
        mock.patch.object(learning, "FEWEST", 300),
        mock.patch("cormorant.index.vector.pq._FIXED_ROWS", 60),
    ):
        path = Path(folder) / "kb"
        store = cormorant.open(path, metric="dot", background=False)
        reader = cormorant.open(path, read_only=True)
        try:
            for number, step in enumerate(["add", *steps]):
                if step == "add":
                    fresh = {
                        f"{number}-{i}": (v, float(p))
                        for i, (v, p) in enumerate(
                            zip(rng.standard_normal((400, DIM)), rng.random(400), strict=True)
                        )
                    }
                    store.add(
                        {"id": id, "vector": v, "metadata": {"part": p}}
                        for id, (v, p) in fresh.items()
                    )
                    held.update(fresh)
                elif step == "delete":
                    gone = [id for id in held if rng.random() < 0.3]
                    store.delete(gone)
                    for id in gone:
                        del held[id]
                elif step == "optimize":
                    store.optimize(index="pq", recall=0.5)
                elif step == "exact":
                    store.optimize(index="exact")
                elif step == "compact":
                    store.compact()
                else:
                    store.close()
                    store = cormorant.open(path, background=False)
                for most in (1.1, 0.5, 0.1, 0.002):
                    point = rng.standard_normal(DIM).astype(np.float32)
                    where = None if most > 1 else {"part": {"$lt": most}}
                    for door in (store, reader):
                        result = door.search(Query(vector=point, top_k=10, filter=where))
                        scores = [hit.score for hit in result.hits]
                        want = brute(held, point, most, 10)
                        seen.add(result.exact)
                        assert len(scores) == len(want)  # k hits come back if k exist
                        assert all(held[hit.id][1] < most for hit in result.hits)
                        if result.exact:
                            assert np.allclose(scores, want, atol=1e-4)
                        asked = Query(vector=point, top_k=10, filter=where, exact=True)
                        whole = door.search(asked)
                        assert whole.exact
                        assert np.allclose([hit.score for hit in whole], want, atol=1e-4)
        finally:
            reader.close()
            store.close()
    assert True in seen
