"""Does a request see what it may, and nothing else?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import says
from retrieverlab import Fixed, doc, texts

from cormorant.errors import ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import MultiQueryRetriever, ScopedRetriever

ROWS = [
    ("fish acme", {"tenant": "acme", "acl": ["staff"]}),
    ("fish acme boss", {"tenant": "acme", "acl": ["boss"]}),
    ("fish rival", {"tenant": "rival", "acl": ["staff"]}),
]


@pytest.fixture
def base() -> Any:
    with Cormorant.from_texts([t for t, _ in ROWS], None, [m for _, m in ROWS]) as vs:
        yield vs.as_retriever(search_type="text")


def test_each_request_sees_its_own(base: Any) -> None:
    safe = ScopedRetriever(retriever=base, required=["tenant"])
    mine = safe.for_request(tenant="acme", acl={"$any": ["staff"]})
    assert texts(mine.invoke("fish")) == ["fish acme"]
    assert texts(safe.for_request(tenant="rival").invoke("fish")) == ["fish rival"]
    assert sorted(texts(safe.for_request(tenant="acme").invoke("fish"))) == [
        "fish acme",
        "fish acme boss",
    ]


async def test_async_too(base: Any) -> None:
    safe = ScopedRetriever(retriever=base, required=["tenant"])
    assert texts(await safe.for_request(tenant="rival").ainvoke("fish")) == ["fish rival"]
    with pytest.raises(ScopeError):
        await safe.ainvoke("fish")


def test_a_request_without_the_scope_is_refused(base: Any) -> None:
    safe = ScopedRetriever(retriever=base, required=["tenant"])
    with pytest.raises(ScopeError, match="requires a scope on tenant"):
        safe.invoke("fish")
    config = {"configurable": {"scope": {"tenant": "rival"}}}
    assert texts(safe.invoke("fish", config)) == ["fish rival"]


@pytest.mark.parametrize("predicates", [{}, {"tenant": None}, {"tenant": ["acme"]}])
def test_an_unset_variable_is_no_scope(base: Any, predicates: dict[str, Any]) -> None:
    with pytest.raises(ScopeError):
        ScopedRetriever(retriever=base).for_request(**predicates)


def test_nothing_in_a_call_widens_it(base: Any) -> None:
    mine = ScopedRetriever(retriever=base, scope={"tenant": "acme"})
    assert mine.invoke("fish", filter={"tenant": "rival"}) == []
    narrower = mine.for_request(acl={"$any": ["boss"]})
    assert texts(narrower.invoke("fish")) == ["fish acme boss"]
    # Two scopes that exclude each other admit nothing.
    assert mine.invoke("fish", {"configurable": {"scope": {"tenant": "rival"}}}) == []
    assert mine.for_request(tenant="rival").invoke("fish") == []


def test_it_holds_below_other_retrievers_and_beside_them(base: Any) -> None:
    several = MultiQueryRetriever.from_llm(base, says("rival"))
    inside = ScopedRetriever(retriever=several, scope={"tenant": "acme"})
    assert {each.metadata["tenant"] for each in inside.invoke("fish")} == {"acme"}
    assert len(several.invoke("fish")) == 3, "the scope ends with the call"


def test_predicates_can_come_of_the_config(base: Any) -> None:
    def of_user(config: Any) -> dict[str, Any]:
        return {"tenant": config["configurable"]["user"].split("@")[1]}

    safe = ScopedRetriever(retriever=base, scope_from=of_user, required=["tenant"])
    found = safe.invoke("fish", {"configurable": {"user": "ann@rival"}})
    assert texts(found) == ["fish rival"]


def test_a_retriever_that_cannot_see_it_is_refused() -> None:
    with pytest.raises(ScopeError, match="cannot see it"):
        ScopedRetriever(retriever=Fixed(docs=[doc("a")]), scope={"tenant": "acme"}).invoke("q")


def test_wrong_arguments_are_refused(base: Any) -> None:
    with pytest.raises(UsageError):
        ScopedRetriever(retriever=base, scop={})
    with pytest.raises(ScopeError):
        ScopedRetriever(retriever=base, required="tenant")
