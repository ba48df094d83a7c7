"""Bad input is refused with a useful message, and nothing is stored."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cormorant
from cormorant import Query
from cormorant.errors import (
    ConfigError,
    DimensionError,
    FilterError,
    FormatError,
    NotFound,
    QueryError,
    RecordError,
    StoreClosed,
    StoreError,
)

GOOD = {"id": "good", "text": "a good record", "vector": [1.0, 0.0]}
NESTED: dict[str, Any] = {}
NESTED["self"] = NESTED


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        ({"id": "x", "text": "t", "vector": [1.0, float("nan")]}, DimensionError, "finite"),
        ({"id": "x", "text": "t", "vector": [float("inf"), 1.0]}, DimensionError, "finite"),
        ({"id": "x", "text": "t", "vector": [1.0, 2.0, 3.0]}, DimensionError, "3"),
        ({"id": "x", "text": "t", "vector": [1.0]}, DimensionError, "1"),
        ({"id": "x", "text": "t", "vector": []}, DimensionError, "0"),
        ({"id": "x", "text": "t", "vector": [0.0, 0.0]}, DimensionError, "zero"),
        ({"id": "x", "text": "t", "vector": [1e39, 0.0]}, DimensionError, "float32"),
        ({"id": "x", "text": "t", "vector": ["a", "b"]}, DimensionError, "number"),
        ({"id": "x", "text": "t", "vector": [[1.0, 0.0]]}, DimensionError, "shape"),
        ({"id": "good", "text": "twin", "vector": [0.0, 1.0]}, RecordError, "twice"),
        ({"id": "", "text": "t"}, RecordError, "empty id"),
        ({"id": 7, "text": "t"}, RecordError, "string"),
        ({"id": "x" * 2000, "text": "t"}, RecordError, "bytes"),
        ({"id": "x", "text": None}, RecordError, "neither"),
        ({"id": "x", "text": 7}, RecordError, "string"),
        ({"id": "x", "text": "lone \ud800 surrogate"}, RecordError, "surrogate"),
        ({"id": "\udfff", "text": "t"}, RecordError, "surrogate"),
        ({"id": "x", "text": "t" * 10_000_000}, RecordError, "chunks"),
        ({"id": "x", "text": "t", "colour": "red"}, RecordError, "colour"),
        ({"id": "x", "text": "t", "metadata": {"a": {1, 2}}}, RecordError, "a"),
        ({"id": "x", "text": "t", "metadata": {"a": object()}}, RecordError, "a"),
        ({"id": "x", "text": "t", "metadata": {"a": float("nan")}}, RecordError, "a"),
        ({"id": "x", "text": "t", "metadata": {1: "a"}}, RecordError, "1"),
        ({"id": "x", "text": "t", "metadata": {"a": "\ud800"}}, RecordError, "surrogate"),
        ({"id": "x", "text": "t", "metadata": {"a": b"bytes"}}, RecordError, "a"),
        ({"id": "x", "text": "t", "metadata": NESTED}, RecordError, "itself|deep|depth"),
        ({"id": "x", "text": "t", "metadata": "not a dict"}, RecordError, "str"),
        ("not a record", RecordError, "str"),
        (None, RecordError, "NoneType"),
    ],
)
def test_a_bad_record_is_refused_and_nothing_of_its_batch_is_stored(
    bad: Any, error: type[Exception], says: str
) -> None:
    with cormorant.open(":memory:", dim=2) as store:
        with pytest.raises(error, match=says):
            store.add([GOOD, bad])
        assert store.count() == 0
        assert store.add([GOOD]).added == 1


def test_a_bare_string_or_dict_is_not_a_list_of_records() -> None:
    with cormorant.open(":memory:") as store:
        for records in ("text", b"text", GOOD):
            with pytest.raises(RecordError, match="list"):
                store.add(records)  # type: ignore[arg-type]


def test_a_generator_of_records_is_read_once_and_whole() -> None:
    with cormorant.open(":memory:") as store:
        assert store.add({"id": str(i), "text": f"text {i}"} for i in range(50)).added == 50
        assert store.count() == 50


def test_dates_and_datetimes_are_taken_and_come_back() -> None:
    kept = {
        "day": dt.date(2026, 1, 2),
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC),
        "naive": dt.datetime(2026, 1, 2, 3, 4),
    }
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t", "metadata": kept}])
        assert store.get(["a"])[0].metadata == kept


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"text": ""}, "empty"),
        ({"text": "   \n"}, "empty"),
        ({}, "empty"),
        ({"text": "t", "top_k": 0}, "top_k"),
        ({"text": "t", "top_k": -1}, "top_k"),
        ({"text": "t", "top_k": True}, "top_k"),
        ({"text": "t", "top_k": 2.5}, "top_k"),
        ({"text": "t", "fetch_k": -1}, "fetch_k"),
        ({"text": "t", "fetch_k": 3, "top_k": 4}, "fetch_k"),
        ({"text": "t", "mmr_lambda": 1.1}, "mmr_lambda"),
        ({"text": "t", "mmr_lambda": float("nan")}, "mmr_lambda"),
        ({"text": "t", "min_score": -0.1}, "min_score"),
        ({"text": "t", "min_score": 2}, "min_score"),
        ({"text": "t", "mode": "fuzzy"}, "mode"),
        ({"text": "t", "mode": "hybrid"}, "vector"),
        ({"text": "t", "fusion": "sum"}, "fusion"),
        ({"text": "t", "rrf_k": -1}, "rrf_k"),
        ({"text": "t", "weights": {"vector": 0, "text": 0}}, "weights"),
        ({"text": "t", "weights": {"vector": -1, "text": 1}}, "weights"),
        ({"text": "t", "weights": {"image": 1}}, "weights"),
        ({"text": 7}, "string"),
    ],
)
def test_a_bad_query_is_refused(query: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        Query(**query)


def test_an_unknown_argument_of_a_query_is_refused() -> None:
    with pytest.raises(TypeError, match="limit"):
        Query(text="t", limit=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0, 2.0, 3.0], [float("nan"), 1.0], [0.0, 0.0], ["a", "b"]]
)
def test_a_bad_query_vector_is_refused(vector: list[Any]) -> None:
    with cormorant.open(":memory:", dim=2) as store:
        store.add([GOOD])
        with pytest.raises(DimensionError):
            store.search(Query(vector=vector))


@pytest.mark.parametrize(
    "filter",
    [{"a": {"$foo": 1}}, {"$or": []}, {"a": {"$in": 5}}, {"$nor": [{}]}, ["a"], "a", 5, {1: 2}],
)
def test_a_bad_filter_is_refused_wherever_it_comes_in(filter: Any) -> None:
    with cormorant.open(":memory:", dim=2) as store:
        store.add([GOOD])
        for call in (
            lambda: store.search(Query(text="good", filter=filter)),
            lambda: store.count(filter),
            lambda: store.delete(filter=filter),
            lambda: list(store.records(filter)),
            lambda: store.explain(Query(text="good", filter=filter), "good"),
        ):
            with pytest.raises(FilterError):
                call()
        assert store.count() == 1


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    cormorant.open(tmp_path / "kb", dim=2, metric="dot").close()
    for wrong in (
        {"dim": 3},
        {"metric": "cosine"},
        {"language": "german"},
        {"bm25_k1": 2.0},
        {"pool_size": 0},
        {"require_scope": "tenant"},
    ):
        with pytest.raises(ConfigError):
            cormorant.open(tmp_path / "kb", **wrong)  # type: ignore[arg-type]
    for wrong in ({"dim": 0}, {"dim": True}, {"metric": "manhattan"}, {"bm25_b": 2}):
        with pytest.raises(ConfigError):
            cormorant.open(tmp_path / "new", **wrong)  # type: ignore[arg-type]
        assert not (tmp_path / "new").exists()
    with cormorant.open(tmp_path / "kb") as store:
        assert (store.dim, store.metric) == (2, "dot")


def test_a_folder_that_is_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(FormatError, match="other"):
        cormorant.open(other)
    assert [p.name for p in other.iterdir()] == ["letter.txt"]
    with pytest.raises(FormatError):
        cormorant.open(other / "letter.txt")
    with pytest.raises(NotFound):
        cormorant.open(tmp_path / "absent", create=False)
    assert not (tmp_path / "absent").exists()


def test_a_read_only_store_refuses_writes_and_answers(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2) as store:
        store.add([GOOD])
    with cormorant.open(tmp_path / "kb", read_only=True) as store:
        assert [h.id for h in store.search(Query(text="good"))] == ["good"]
        for call in (
            lambda: store.add([GOOD]),
            lambda: store.delete(["good"]),
            store.compact,
            lambda: store.set_embedder("x"),
        ):
            with pytest.raises(StoreError, match="read-only"):
                call()
        assert store.count() == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_opens(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", dim=2) as store:
        store.add([GOOD])
    (tmp_path / "kb").chmod(0o500)
    with cormorant.open(tmp_path / "kb") as store:
        assert store.count() == 1


def test_a_closed_store_says_so() -> None:
    store = cormorant.open(":memory:", dim=2)
    store.close()
    store.close()
    for call in (
        store.count,
        lambda: store.add([GOOD]),
        lambda: store.search(Query(text="t")),
        lambda: store.get(["a"]),
        lambda: list(store.records()),
        store.stats,
    ):
        with pytest.raises(StoreClosed, match="closed"):
            call()


def test_what_comes_in_and_goes_out_is_copied() -> None:
    metadata = {"tags": ["a"], "inner": {"n": 1}}
    vector = np.array([1.0, 0.0])
    with cormorant.open(":memory:", dim=2) as store:
        store.add([{"id": "x", "text": "t", "vector": vector, "metadata": metadata}])
        metadata["tags"].append("b")  # type: ignore[attr-defined]
        vector[:] = 9
        first = store.get(["x"], with_vectors=True)[0]
        first.metadata["inner"]["n"] = 2
        first.vector[0] = 5  # type: ignore[index]
        again = store.get(["x"], with_vectors=True)[0]
        assert again.metadata == {"tags": ["a"], "inner": {"n": 1}}
        assert again.vector is not None
        assert list(again.vector) == [1.0, 0.0]
        hit = store.search(Query(text="t")).hits[0]
        hit.metadata["tags"].append("c")
        assert store.search(Query(text="t")).hits[0].metadata["tags"] == ["a"]


def test_delete_needs_to_be_told_what() -> None:
    with cormorant.open(":memory:", dim=2) as store:
        store.add([GOOD])
        with pytest.raises(RecordError, match=r"filter=\{\}"):
            store.delete()
        with pytest.raises(RecordError, match="list"):
            store.delete("good")
        with pytest.raises(RecordError):
            store.get([1])  # type: ignore[list-item]
        assert store.delete([]) == 0
        assert store.delete(["absent"]) == 0
        assert store.delete(filter={}) == 1
