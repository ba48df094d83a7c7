"""What holds when a query does not say how to rank: set in the store, else by default?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cormorant
from cormorant import Query
from cormorant.errors import ConfigError, CorruptionError
from cormorant.store import RankingConfig, Store
from cormorant.store.config import StoreConfig

BOTH: dict[str, Any] = {"text": "heron", "vector": [1.0, 0.0]}


@pytest.fixture
def store() -> Store:
    store = cormorant.open(":memory:", dim=2)
    store.add(
        [
            {"id": "a", "text": "a cormorant", "vector": [1.0, 0.0]},
            {"id": "b", "text": "a heron", "vector": [0.0, 1.0]},
            {"id": "c", "text": "a swift", "vector": [-1.0, 0.1]},
            {"id": "d", "text": "a second swift", "vector": [-0.9, 0.3]},
        ]
    )
    return store


def ids(store: Store, **settings: Any) -> list[str]:
    return [hit.id for hit in store.search(Query(**BOTH, **settings))]


def fuse_note(store: Store, **settings: Any) -> str:
    (note,) = [n for n in store.search(Query(**BOTH, **settings)).plan if n.startswith("fuse")]
    return note


def test_weights_set_in_the_store_rank_a_query_that_does_not_say(store: Store) -> None:
    store.set_ranking(RankingConfig(weights={"vector": 0.1, "text": 0.9}))
    assert ids(store)[0] == "b"
    assert "vector 0.1, text 0.9" in fuse_note(store)
    assert fuse_note(store).endswith("as set in the store")
    store.set_ranking(RankingConfig(weights={"vector": 0.9, "text": 0.1}))
    assert ids(store)[0] == "a"


def test_a_query_that_says_wins(store: Store) -> None:
    store.set_ranking(RankingConfig(weights={"vector": 0.1, "text": 0.9}, fusion="rrf"))
    note = fuse_note(store, weights={"vector": 0.9, "text": 0.1}, fusion="z")
    assert "fuse: z" in note
    assert "vector 0.9, text 0.1" in note
    assert note.endswith("as the query says")


def test_every_setting_is_filled_in_by_itself(store: Store) -> None:
    store.set_ranking(RankingConfig(fusion="rrf", rrf_k=0.0))
    assert "fuse: rrf" in fuse_note(store)
    first = store.search(Query(**BOTH)).hits[0]
    assert (first.legs["vector"].rank, first.legs["vector"].standard) == (2, 1 / 2)
    assert fuse_note(store).endswith("by default")
    assert store.search(Query(**BOTH, rrf_k=1.0)).hits[0].legs["vector"].standard == 1 / 3


def test_fetch_k_of_the_store_gives_way_to_a_larger_top_k(store: Store) -> None:
    store.set_ranking(RankingConfig(fetch_k=1))
    assert len(store.search(Query(**BOTH, top_k=1)).hits) == 1
    assert len(store.search(Query(**BOTH, top_k=3)).hits) == 3


def test_mmr_of_the_store_is_about_hybrid_searches(store: Store) -> None:
    store.set_ranking(RankingConfig(mmr_lambda=0.5))
    assert any(note.startswith("mmr") for note in store.search(Query(**BOTH)).plan)
    assert not any(note.startswith("mmr") for note in store.search(Query(text="heron")).plan)
    assert any("lambda 1" in note for note in store.search(Query(**BOTH, mmr_lambda=1.0)).plan)


def test_a_ranking_is_kept_with_its_evidence_and_can_be_unset(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2) as store:
        assert store.ranking is None
        store.set_ranking(RankingConfig(weights={"text": 1.0}, evidence={"ndcg@10": 0.5}))
    with cormorant.open(tmp_path / "kb") as store:
        kept = store.ranking
        assert kept is not None
        assert dict(kept.weights or {}) == {"text": 1.0}
        assert kept.evidence == {"ndcg@10": 0.5}
        assert store.scope(tenant="a").ranking == kept
        store.set_ranking(None)
        assert store.ranking is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"fusion": "sum"},
        {"weights": {"vector": 0.0}},
        {"weights": {"image": 1.0}},
        {"rrf_k": -1.0},
        {"fetch_k": 0},
        {"mmr_lambda": 2.0},
        {"evidence": "measured"},
    ],
)
def test_what_is_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RankingConfig(**wrong)
    with pytest.raises(CorruptionError, match=next(iter(wrong))):
        StoreConfig.from_json({"ranking": wrong})


@pytest.mark.parametrize("wrong", [{"weights": {"text": 1.0}}, "z", object()])
def test_only_a_ranking_is_set(store: Store, wrong: Any) -> None:
    with pytest.raises(ConfigError, match="RankingConfig"):
        store.set_ranking(wrong)


@pytest.mark.parametrize("evidence", [{"at": object()}, {"p": float("nan")}])
def test_evidence_that_is_no_json_is_refused(store: Store, evidence: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="JSON"):
        store.set_ranking(RankingConfig(evidence=evidence))
    assert store.ranking is None
