"""Can anything LangChain's methods take widen a scope?"""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator

from cormorant import Store
from cormorant.errors import NotFound, ScopeError
from cormorant.langchain import Cormorant

FAKE = DeterministicFakeEmbedding(size=6)
WIDE: list[Any] = [
    None,
    {},
    {"tenant": "other"},
    {"$or": [{"tenant": "acme"}, {"tenant": "other"}]},
    {"$not": {"tenant": "acme"}},
    {"tenant": {"$exists": True}},
    lambda document: True,
    Operation(
        Operator.OR,
        [Comparison(Comparator.EQ, "tenant", t) for t in ("acme", "other")],
    ),
]


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with Cormorant(FAKE) as store:
        for tenant in ("acme", "other"):
            store.scope(tenant=tenant).add_texts(
                [f"fish {number}" for number in range(5)],
                ids=[f"{tenant}-{number}" for number in range(5)],
            )
        yield store


@pytest.mark.parametrize("filter", WIDE)
async def test_no_filter_widens_a_search(vs: Cormorant, filter: Any) -> None:
    acme = vs.scope(tenant="acme")
    for search_type in ("similarity", "similarity_score_threshold", "mmr", "hybrid", "text"):
        for found in (
            acme.search("fish", search_type, k=10, filter=filter),
            await acme.asearch("fish", search_type, k=10, filter=filter),
            acme.as_retriever(search_type=search_type, k=10, score_threshold=0).invoke(
                "fish", filter=filter
            ),
        ):
            assert all(doc.metadata == {"tenant": "acme"} for doc in found)


@pytest.mark.parametrize("filter", WIDE[1:])
def test_no_filter_widens_a_delete(vs: Cormorant, filter: Any) -> None:
    vs.scope(tenant="acme").delete(filter=filter)
    vs.scope(tenant="acme").delete([f"other-{number}" for number in range(5)])
    assert vs.store.count({"tenant": "other"}) == 5


async def test_ids_do_not_reach_outside(vs: Cormorant) -> None:
    acme = vs.scope(tenant="acme")
    asked = ["other-1", "acme-1"]
    assert [doc.id for doc in acme.get_by_ids(asked)] == ["acme-1"]
    assert [doc.id for doc in await acme.aget_by_ids(asked)] == ["acme-1"]
    with pytest.raises(NotFound):
        acme.explain("fish", "other-1")
    with pytest.raises(ScopeError):
        acme.add_texts(["taken over"], ids=["other-1"])
    with pytest.raises(ScopeError):
        acme.add_documents([Document(page_content="smuggled", metadata={"tenant": "other"})])
    assert vs.store.count() == 10


def test_a_scope_of_a_scope_narrows(vs: Cormorant) -> None:
    inner = vs.scope(tenant="acme").scope(tenant={"$in": ["acme", "other"]})
    assert {doc.metadata["tenant"] for doc in inner.similarity_search("fish", k=10)} == {"acme"}
    assert vs.scope(tenant="acme").scope(tenant="other").similarity_search("fish") == []


def test_the_view_and_the_whole_are_one_store(vs: Cormorant) -> None:
    acme = vs.scope(tenant="acme")
    acme.add_texts(["fish 6"], ids=["acme-6"])
    assert vs.get_by_ids(["acme-6"])[0].metadata == {"tenant": "acme"}
    acme.close()
    assert vs.store.count() == 11, "closing a view closes nothing"
    assert acme.embeddings is FAKE


def test_a_scoped_store_can_be_handed_in() -> None:
    with Store.open(":memory:", require_scope=["tenant"]) as store:
        acme = Cormorant(FAKE, store=store.scope(tenant="acme"))
        acme.add_texts(["fish"])
        assert acme.similarity_search("fish")[0].metadata == {"tenant": "acme"}
        with pytest.raises(ScopeError):
            Cormorant(FAKE, store=store).similarity_search("fish")
        with pytest.raises(ScopeError):
            Cormorant(FAKE, store=store).add_texts(["fish"])


def test_a_dump_of_a_view_holds_the_view(vs: Cormorant, tmp_path: Any) -> None:
    vs.scope(tenant="acme").dump(tmp_path / "acme.jsonl")
    assert b"other" not in (tmp_path / "acme.jsonl").read_bytes()
    with Cormorant.load(tmp_path / "acme.jsonl", FAKE) as loaded:
        assert loaded.store.count() == 5
