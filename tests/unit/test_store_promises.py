"""What a store promises about scopes, settings and failures after the fact."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cormorant
from cormorant import Query, Record, defaults
from cormorant.errors import (
    ConfigError,
    CorruptionError,
    FilterError,
    QueryError,
    RecordError,
    ScopeError,
    StoreError,
)
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex
from cormorant.storage import Writer


@pytest.mark.parametrize(
    ("predicates", "metadata"),
    [
        ({"tenant": {"$in": ["a"]}}, {"tenant": ["a", "victim"]}),
        ({"tenant": "a"}, {"tenant": ["a", "victim"]}),
        ({"tenant": "a"}, {"tenant": ["a"]}),
        ({"acl.team": "blue"}, {"acl.team": "red"}),
        ({"acl.team": "blue"}, {"acl": [{"team": "blue"}, {"team": "red"}]}),
        ({"tenant": {"$gte": "a", "$lt": "b"}}, {"tenant": ["a", "victim"]}),
        ({"tenant": {"$ne": "victim"}}, {"tenant": ["a", "victim"]}),
    ],
)
def test_a_scope_writes_nothing_that_another_scope_would_see(
    predicates: dict[str, Any], metadata: dict[str, Any]
) -> None:
    with cormorant.open(":memory:") as store:
        with pytest.raises(ScopeError):
            store.scope(**predicates).add([{"id": "x", "text": "t", "metadata": metadata}])
        assert store.count() == 0


def test_a_scope_on_an_array_as_a_whole_takes_arrays() -> None:
    with cormorant.open(":memory:") as store:
        view = store.scope(readers={"$contains": "staff"})
        view.add([{"id": "x", "text": "t", "metadata": {"readers": ["staff", "board"]}}])
        assert view.count() == 1


def test_a_required_scope_is_kept_in_the_store(tmp_path: Path) -> None:
    early = cormorant.open(tmp_path / "kb")
    early.add([{"id": "a", "text": "t", "metadata": {"tenant": "acme"}}])
    with cormorant.open(tmp_path / "kb", require_scope=("tenant",)) as store:
        store.scope(tenant="acme").add([{"id": "b", "text": "t", "vector": [1.0, 0.0]}])
    for call in (
        early.count,
        lambda: early.add([{"id": "c", "text": "t", "vector": [1.0, 1.0]}]),
        lambda: early.search(Query(text="t")),
    ):
        with pytest.raises(ScopeError):
            call()
    early.close()
    with cormorant.open(tmp_path / "kb") as again:
        with pytest.raises(ScopeError):
            again.count()
        assert again.scope(tenant="acme").count() == 2
    with cormorant.open(tmp_path / "kb", require_scope=("tenant", "team")) as more:
        assert more.stats().require_scope == ("tenant", "team")
    with pytest.raises(ConfigError, match="require"):
        cormorant.open(tmp_path / "kb", require_scope=("team",))


def test_a_scoped_view_cannot_change_the_store() -> None:
    with cormorant.open(":memory:") as store:
        view = store.scope(tenant="acme")
        for name in ("set_embedder", "compact", "check", "backup", "stats", "optimize"):
            assert not hasattr(view, name)


def test_an_async_predicate_is_refused_and_deletes_nothing() -> None:
    async def always(record: Record) -> bool:
        return False

    class Asks:
        async def __call__(self, record: Record) -> bool:
            return False

    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t"}])
        for predicate in (always, Asks()):
            with pytest.raises(FilterError, match="async"):
                store.delete(filter=predicate)  # type: ignore[arg-type]
        assert store.count() == 1


def test_what_was_committed_is_acknowledged_though_folding_the_log_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(defaults, "CHECKPOINT_MAX_DELTAS", 1)
    store = cormorant.open(tmp_path / "kb", background=False)

    def full(*_: object) -> bool:
        raise StoreError("disk full")

    monkeypatch.setattr(Writer, "adopt", full)
    assert store.add([{"id": "a", "text": "t"}]).added == 1
    assert "folding the log failed" in caplog.text
    assert store.count() == 1
    store.close()
    with cormorant.open(tmp_path / "kb") as again:
        assert again.count() == 1


def test_another_embedder_is_not_taken_on_its_word(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb", embedder="local") as store:
        store.set_embedder("other")  # no vectors yet
        store.set_embedder("local")
        store.add([{"id": "a", "text": "t", "vector": [1.0, 0.0]}])
        with pytest.raises(ConfigError, match="local"):
            store.set_embedder("other")
        assert store.embedder == "local"
    with pytest.raises(ConfigError, match="local"):
        cormorant.open(tmp_path / "kb", embedder="other")


@pytest.mark.parametrize("path", ["", " ", 5, None, "postgresql://localhost/db", "qdrant://x"])
def test_a_path_that_is_no_folder_is_refused(path: Any) -> None:
    with pytest.raises(ConfigError):
        cormorant.open(path)


def test_deleted_values_are_not_shown() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t", "metadata": {"colour": "gone"}}])
        store.delete(["a"])
        assert "colour" not in store.stats().fields


def test_arguments_of_the_wrong_kind_are_refused() -> None:
    with cormorant.open(":memory:") as store:
        for batch in (0, -1, True, 2.5):
            with pytest.raises(ConfigError, match="batch"):
                store.records(batch=batch)  # type: ignore[arg-type]
        for ids in (None, [["a"]], 5):
            with pytest.raises(RecordError):
                store.get(ids)  # type: ignore[arg-type]


def test_records_and_queries_can_be_compared() -> None:
    record = Record("a", "t", np.array([1.0, 0.0]))
    assert record == Record("a", "t", [1.0, 0.0])
    assert record != Record("a", "t", [1.0, 1.0])
    assert record != Record("a", "t")
    assert len({record, Record("a", "t", [1.0, 0.0])}) == 1
    query = Query(text="t", vector=np.array([1.0, 0.0]))
    assert query == query  # noqa: PLR0124 - this once raised
    with pytest.raises(TypeError):
        query.weights["text"] = -5  # type: ignore[index]


def test_reading_on_in_memory_while_writing_keeps_the_snapshot() -> None:
    with cormorant.open(":memory:") as store:
        store.add({"id": str(i), "text": "t"} for i in range(2500))
        seen = []
        for record in store.records(batch=100):
            seen.append(record.id)
            store.delete([record.id])
        assert len(seen) == 2500
        assert store.count() == 0


def test_a_filter_that_changes_the_store_ends_in_an_error_not_a_loop() -> None:
    with cormorant.open(":memory:") as store:
        store.add({"id": str(i), "text": "t"} for i in range(3))

        def replaces(record: Record) -> bool:
            store.add([{"id": record.id, "text": "t"}])
            return True

        with pytest.raises(StoreError, match="change the store"):
            store.search(Query(text="t", filter=replaces))


def test_an_index_that_names_lost_records_is_damage_not_a_loop(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb") as store:
        store.add({"id": str(i), "text": "t"} for i in range(3))
        store.count()
        rows = store._core._state.rows.view  # type: ignore[union-attr]
        rows.flags.writeable = True
        rows[:] += 1000
        with pytest.raises(CorruptionError, match="repair"):
            store.search(Query(text="t"))


def test_arguments_of_foreign_types_are_refused() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t"}])
        for query in (None, "words", 5):
            with pytest.raises(QueryError, match="Query"):
                store.search(query)  # type: ignore[arg-type]
            with pytest.raises(QueryError, match="Query"):
                store.explain(query, "a")  # type: ignore[arg-type]
        for records in (None, 5):
            with pytest.raises(RecordError):
                store.add(records)  # type: ignore[arg-type]
        with pytest.raises(ConfigError):
            store.remember_fingerprint(1)  # type: ignore[arg-type]
        with pytest.raises(ScopeError):
            store.scope(tenant=(x for x in "ab"))
        assert store.scope(self="x").count() == 0
    huge = 10**400
    for wrong in (
        {"min_score": huge},
        {"rrf_k": huge},
        {"weights": {"text": huge}},
        {"mode": np.array(["text", "text"])},
        {"fusion": np.array(["z", "z"])},
    ):
        with pytest.raises(QueryError):
            Query(text="t", **wrong)  # type: ignore[arg-type]
    for option in (
        {"bm25_k1": huge},
        {"metric": np.array(["dot", "dot"])},
        {"read_only": np.array([1, 0])},
        {"create": "yes"},
    ):
        with pytest.raises(ConfigError):
            cormorant.open(":memory:", **option)  # type: ignore[arg-type]


def test_records_without_a_vector_are_spoken_of() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t", "vector": [1.0, 0.0]}, {"id": "b", "text": "t"}])
        result = store.search(Query(text="t", vector=[1.0, 0.0]))
        assert result.degraded == (
            "1 of 2 records have no vector, so the vector leg cannot find them.",
        )
        assert store.search(Query(text="t")).degraded == ()


def test_a_filter_on_a_field_that_no_record_has_is_spoken_of() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t", "metadata": {"year": 2024, "t": {"x": 1}}}])
        (said,) = store.search(Query(text="t", filter={"yaer": 2024})).degraded
        assert "did you mean 'year'" in said
        assert store.search(Query(text="t", filter={"year": 1})).degraded == ()
        assert store.search(Query(text="t", filter={"t": 1})).degraded == ()
        (said,) = store.scope(year=2024).search(Query(text="t", filter={"yaer": 1})).degraded
        assert "mean" not in said


WRONG_TYPE = [
    {"year": "2020"},
    {"year": {"$gte": "2020"}},
    {"year": {"$in": ["2020", "2021"]}},
    {"year": {"$like": "20%"}},
    {"year": {"$contains": "20"}},
    {"$and": [{"year": "2020"}, {"tenant": "a"}]},
    {"$or": [{"year": True}, {"tenant": "z"}]},
]


@pytest.mark.parametrize("filter", WRONG_TYPE)
def test_a_filter_of_another_type_than_the_field_is_spoken_of(filter: Any) -> None:
    with cormorant.open(":memory:") as store:
        store.add(
            [
                {"id": str(year), "text": "t", "metadata": {"year": year, "tenant": "a"}}
                for year in (2020, 2021)
            ]
        )
        (said,) = store.search(Query(text="t", filter=filter)).degraded
        assert "'year', whose values are of type number" in said
        assert "values of different types are never equal" in said


@pytest.mark.parametrize(
    "filter",
    [
        {"year": 1999},
        {"year": {"$ne": "2020"}, "tenant": "z"},
        {"$not": {"$or": [{"year": "2020"}, {"year": 2020}]}},
        {"day": {"$contains": "1999"}},
        {"day": {"$like": "1999%"}},
        {"mixed": "z"},
        {"year": {"$exists": False}},
    ],
)
def test_one_of_the_same_type_is_not(filter: Any) -> None:
    with cormorant.open(":memory:") as store:
        about = {"year": 2020, "tenant": "a", "day": "2024-01-05"}
        store.add(
            [
                {"id": "a", "text": "t", "metadata": {**about, "mixed": 1}},
                {"id": "b", "text": "t", "metadata": {**about, "mixed": "x"}},
            ]
        )
        assert store.search(Query(text="t", filter=filter)).hits == ()
        assert store.search(Query(text="t", filter=filter)).degraded == ()


def test_a_scope_is_told_the_types_of_its_own_records_alone() -> None:
    with cormorant.open(":memory:") as store:
        store.add(
            [
                {"id": "a", "text": "t", "metadata": {"tenant": "a", "year": 2020}},
                {"id": "b", "text": "t", "metadata": {"tenant": "b", "year": "2020", "secret": 1}},
            ]
        )
        scoped = store.scope(tenant="a")
        (said,) = scoped.search(Query(text="t", filter={"year": "2020"})).degraded
        assert "of type number" in said
        assert store.search(Query(text="t", filter={"year": "1999"})).degraded == ()
        # What is nobody's and what is another's sound alike.
        for name in ("secret", "nobodys"):
            (said,) = scoped.search(Query(text="t", filter={name: "x"})).degraded
            assert said == f"No record has the field {name!r}, which the filter asks for."
        assert store.scope(tenant="z").search(Query(text="t", filter={"year": 1})).degraded == ()


def test_explain_says_how_far_down_a_missed_record_is() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "tide tide"}, {"id": "b", "text": "tide and more words"}])
        missed = store.explain(Query(text="tide", top_k=1), "b")
        assert missed.lost_at == "top_k"
        assert "By text it ranks 2 of 2; top_k is 1." in missed.says


def test_a_change_whose_parts_disagree_is_damage() -> None:
    with cormorant.open(":memory:") as store:
        store.add([{"id": "a", "text": "t"}])
        store.count()
        state = store._core._state
        assert state is not None
        with store._core.storage.read() as reader:
            (delta,) = reader.deltas(0) or []
        twice = TextIndex.encode([["t"], ["t"]])
        for wrong in ({"postings": twice}, {"columns": Columns.encode([{}, {}])}):
            with pytest.raises(CorruptionError, match="repair"):
                state.apply(dataclasses.replace(delta, **wrong))  # type: ignore[arg-type]


def test_check_reads_the_settings_too(tmp_path: Path) -> None:
    with cormorant.open(tmp_path / "kb") as store:
        config = dataclasses.replace(store._core.config, fingerprint={"vectors": "garbage"})
        with store._core.storage.write() as writer:
            writer.commit(config=config.to_json())
        report = store.check()
        assert [problem.repairable for problem in report.problems] == [False]
        assert "fingerprint" in report.problems[0].what
