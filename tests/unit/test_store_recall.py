"""recall_check: against brute force, kept in the store, and drift that optimize mends."""

from __future__ import annotations

import numpy as np
import pytest

import cormorant
from cormorant import Query, defaults
from cormorant.errors import ConfigError, DimensionError, QueryError
from cormorant.index.vector import learning

DIM = 16


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(defaults, "INDEX_MIN_ROWS", 500)
    monkeypatch.setattr(learning, "FEWEST", 500)


def cloud(count, seed, centre=0.0, spread=1.0):
    return centre + spread * np.random.default_rng(seed).standard_normal((count, DIM))


def fill(store, vectors, first=0, **metadata):
    store.add(
        [
            {"id": f"r{first + i}", "vector": vector, "metadata": {"half": i % 2, **metadata}}
            for i, vector in enumerate(vectors)
        ]
    )


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb", metric="euclidean", background=False) as made:
        yield made


def test_it_says_what_brute_force_says(store):
    vectors, asked = cloud(3000, 0), cloud(40, 1)
    fill(store, vectors)
    store.optimize(recall=0.6)
    report = store.recall_check(asked, k=5)
    near = np.argsort(((vectors[None] - asked[:, None]) ** 2).sum(-1), axis=1)[:, :5]
    found = [
        np.mean(
            [
                f"r{slot}" in {h.id for h in store.search(Query(vector=q, top_k=5)).hits}
                for slot in row
            ]
        )
        for q, row in zip(asked, near, strict=True)
    ]
    assert np.allclose(report.by_query, found)
    assert report.check.mean == pytest.approx(np.mean(found))
    assert report.minimum == min(found)
    assert report.check.low < report.check.mean < report.check.high
    assert report.exact == 0
    assert (report.check.k, report.check.queries) == (5, 40)


def test_what_it_found_is_kept_and_shown_and_with_a_filter_it_is_not(store, tmp_path):
    fill(store, cloud(2000, 2))
    store.optimize(recall=0.9)
    kept = store.recall_check().check
    assert store.stats().recall_check == kept
    assert kept.mean >= 0.85
    assert store.recall_check(filter={"half": 1}, k=3).check.k == 3
    assert store.stats().recall_check == kept
    store.close()
    with cormorant.open(tmp_path / "kb", read_only=True) as again:
        assert again.stats().recall_check == kept
        assert again.recall_check().check.mean == kept.mean


def test_a_scan_misses_nothing_and_the_interval_says_how_sure_that_is(store):
    fill(store, cloud(300, 3))
    report = store.recall_check(k=10)
    assert report.check.mean == 1.0
    assert report.check.low == pytest.approx(1 - 3 / (10 * 200))
    assert report.exact == report.check.queries
    assert "exact scan" in report.says
    assert report.check.recent is None


def test_drift_is_noticed_said_and_mended(store):
    fill(store, cloud(4000, 4))
    store.optimize(recall=0.95)
    assert store.recall_check().check.drift is None
    # Far from all that the codebook knows, and told apart by little.
    fill(store, cloud(600, 5, centre=9.0, spread=0.05), first=10_000)
    state = store._core._state
    grown, _ = learning._encoded(
        state.coded.codebook, store._core.read_unscoped(lambda s: s.vectors())[4000:], "euclidean",
        lambda _done: None,
    )  # fmt: skip
    longer = cormorant.index.vector.coded.replace(
        state.coded, codes=np.concatenate([state.coded.codes, grown])
    )
    store._core._state = cormorant.store.core.replace(state, coded=longer)
    report = store.recall_check()
    assert report.check.drift is not None
    assert report.check.recent < 0.9
    assert "optimize()" in report.says
    assert store.optimize().built == "new"
    assert store.stats().recall_check is None
    after = store.recall_check()
    assert after.check.recent > report.check.recent


def test_what_cannot_be_checked_is_refused(store):
    with pytest.raises(QueryError, match="no recall"):
        store.recall_check()
    fill(store, cloud(50, 6))
    with pytest.raises(ConfigError, match="k must"):
        store.recall_check(k=0)
    with pytest.raises(ConfigError, match="empty"):
        store.recall_check([])
    with pytest.raises(QueryError, match="filter"):
        store.recall_check(filter={"half": 7})
    with pytest.raises(DimensionError):
        store.recall_check([np.ones(3)])
