"""A scope can only narrow: no sequence of calls crosses it, whatever the arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cormorant
from cormorant import Query, Record
from cormorant.errors import CormorantError, FilterError, NotFound, ScopeError

TENANTS = ("acme", "beta", "")
VECTOR = [1.0, 0.0]


def _fill(store: cormorant.Store) -> None:
    for tenant in TENANTS:
        store.add(
            {
                "id": f"{tenant}:{i}",
                "text": f"fish number {i}",
                "vector": [1.0, i / 10],
                "metadata": {"tenant": tenant, "n": i, "permission": "pq"[i % 2]},
            }
            for i in range(4)
        )
    store.add([{"id": "none:0", "text": "fish of nobody", "vector": VECTOR}])


hostile_filters = st.recursive(
    st.sampled_from(
        [
            {"tenant": "beta"},
            {"tenant": {"$ne": "acme"}},
            {"tenant": {"$exists": False}},
            {"tenant": {"$exists": True}},
            {"tenant": {"$in": ["beta", "acme", ""]}},
            {"tenant": {"$nin": ["acme"]}},
            {"tenant": {"$like": "%"}},
            {"$not": {"tenant": "acme"}},
            {"n": {"$gte": 0}},
            {"$text": "fish"},
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda fs: {"$or": fs}),
        st.lists(inner, min_size=1, max_size=3).map(lambda fs: {"$and": fs}),
        inner.map(lambda f: {"$not": f}),
    ),
    max_leaves=6,
)
queries = st.builds(
    dict,
    mode=st.sampled_from(["vector", "text", "hybrid"]),
    top_k=st.integers(1, 20),
    fusion=st.sampled_from(["z", "rrf", "minmax"]),
    mmr_lambda=st.one_of(st.none(), st.floats(0, 1)),
    min_score=st.one_of(st.none(), st.floats(0, 1)),
    explain=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    tenant=st.sampled_from(TENANTS),
    filter=st.one_of(st.none(), st.just({}), hostile_filters),
    query=queries,
    narrower=st.one_of(
        st.none(),
        st.sampled_from(
            [
                {"tenant": "beta"},
                {"tenant": {"$in": list(TENANTS)}},
                {"permission": {"$in": ["p"]}},
                {"n": {"$gte": 0}},
            ]
        ),
    ),
)
def test_no_call_reads_or_writes_outside_its_scope(
    tenant: str, filter: Any, query: dict[str, Any], narrower: dict[str, Any] | None
) -> None:
    with cormorant.open(":memory:", dim=2, require_scope=("tenant",)) as root:
        for name in TENANTS:
            _fill_one(root, name)
        view = root.scope(tenant=tenant)
        if narrower:
            view = view.scope(**narrower)
        others = [t for t in TENANTS if t != tenant]

        def own(metadata: Any) -> bool:
            return bool(metadata["tenant"] == tenant)

        wanted: Any = filter
        asked = Query(text="fish number", vector=VECTOR, filter=wanted, **query)
        hits = view.search(asked).hits
        assert all(own(hit.metadata) for hit in hits)
        assert all(own(r.metadata) for r in view.records(wanted))
        assert view.count(wanted) <= 4
        assert view.get([f"{t}:{i}" for t in others for i in range(4)]) == []
        for t in others:
            with pytest.raises(NotFound):
                view.explain(asked, f"{t}:0")
        assert view.delete([f"{t}:{i}" for t in others for i in range(4)]) == 0
        view.delete(filter=wanted if wanted is not None else {})
        for t in others:
            assert root.scope(tenant=t).count() == 4


def _fill_one(root: cormorant.Store, tenant: str) -> None:
    root.scope(tenant=tenant).add(
        {
            "id": f"{tenant}:{i}",
            "text": f"fish number {i}",
            "vector": [1.0, i / 10],
            "metadata": {"n": i, "permission": "pq"[i % 2]},
        }
        for i in range(4)
    )


@settings(max_examples=60, deadline=None)
@given(
    metadata=st.dictionaries(
        st.sampled_from(["tenant", "permission", "n"]),
        st.sampled_from(["acme", "beta", None, 1, True, ["acme", "beta"], {"$eq": "acme"}]),
    ),
    id=st.sampled_from(["new", "acme:0", "beta:0", "none:0"]),
)
def test_what_a_scope_adds_is_inside_it_or_refused(metadata: dict[str, Any], id: str) -> None:
    with cormorant.open(":memory:", dim=2) as root:
        _fill(root)
        before = {r.id: r.metadata for r in root.records()}
        view = root.scope(tenant="acme", permission={"$in": ["p", "q"]})
        try:
            view.add([{"id": id, "text": "t", "metadata": metadata}])
        except CormorantError:
            assert {r.id: r.metadata for r in root.records()} == before
            return
        (record,) = root.get([id])
        assert record.metadata["tenant"] == "acme"
        assert record.metadata["permission"] in ("p", "q")
        assert id in ("new", "acme:0")


def test_an_unscoped_call_is_refused_where_a_scope_is_required() -> None:
    with cormorant.open(":memory:", dim=2, require_scope=("tenant",)) as store:
        scoped = store.scope(tenant="acme")
        scoped.add([{"id": "a", "text": "fish"}])
        for view in (store, store.scope(n=1), store.scope(tenant={"$ne": "x"})):
            for call in (
                lambda view=view: view.search(Query(text="fish")),
                lambda view=view: view.get(["a"]),
                lambda view=view: view.count(),
                lambda view=view: view.delete(["a"]),
                lambda view=view: view.records(),
                lambda view=view: view.add([{"id": "b", "text": "t"}]),
                lambda view=view: view.explain(Query(text="fish"), "a"),
            ):
                with pytest.raises(ScopeError, match="tenant"):
                    call()
        assert scoped.count() == 1
        assert store.scope(tenant={"$in": ["acme", "beta"]}).count() == 1


def test_a_scope_that_is_no_restriction_is_refused() -> None:
    with cormorant.open(":memory:") as store:
        for wrong in ({"tenant": None}, {"$or": "x"}, {"tenant": ["a", "b"]}, {"tenant": {"a": 1}}):
            with pytest.raises(ScopeError):
                store.scope(**wrong)  # type: ignore[arg-type]
        with pytest.raises(FilterError):
            store.scope(tenant={"$foo": 1})


def test_a_callable_filter_sees_only_the_scope() -> None:
    seen: list[str] = []

    def predicate(record: Record) -> bool:
        seen.append(record.id)
        return True

    with cormorant.open(":memory:", dim=2) as root:
        _fill(root)
        view = root.scope(tenant="acme")
        view.search(Query(text="fish", filter=predicate))
        assert view.count(predicate) == 4
        assert view.delete(filter=predicate) == 4
        assert all(id.startswith("acme:") for id in seen)
        assert root.count() == 9


def test_changing_the_predicate_afterwards_does_not_widen_the_scope() -> None:
    allowed = ["p"]
    with cormorant.open(":memory:", dim=2) as root:
        _fill(root)
        view = root.scope(tenant="acme", permission={"$in": allowed})
        allowed.append("q")
        assert view.count() == 2
