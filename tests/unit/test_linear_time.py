"""Work that once grew with the square of its input: each would take minutes if it did again."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableLambda

import cormorant
from cormorant import Query
from cormorant.errors import ScopeError
from cormorant.langchain import Cormorant, scoping
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers import MultiQueryRetriever, ScopedRetriever
from cormorant.langchain.retrievers.asking.rewriting import key, passage, unthought
from cormorant.langchain.retrievers.document_compressors.foreign import as_compressor
from cormorant.langchain.retrievers.sentences import sentence_spans
from cormorant.langchain.storage import CormorantByteStore

MANY = 300_000


@pytest.mark.parametrize("text", ["." * MANY + "a", ".)" * MANY + "a", "\n" * MANY + "a"])
def test_sentences_are_cut_in_one_pass(text: str) -> None:
    assert sentence_spans(text)


@pytest.mark.parametrize(
    "answer",
    ["\n" * MANY + "x", "<think>" * MANY, "</think>" * MANY, "fish e" + "\u0301\u0327" * MANY],
)
def test_a_model_that_runs_on_is_read_in_one_pass(answer: str) -> None:
    passage(answer, "a test")
    key(answer)


def test_a_model_that_writes_blank_lines_does_not_hold_up_the_search() -> None:
    with Cormorant(None) as vs:
        vs.add_texts(["a fish"])
        retriever = vs.as_retriever(search_type="text")
        model = FakeListLLM(responses=["\n" * MANY + "x"])
        assert MultiQueryRetriever.from_llm(retriever, model).invoke("fish")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <think>b</think> c", "a  c"),
        ("<thinking>b</THINKING>c", "c"),
        ("<think>a<think>b</think>c", "c"),
        ("a <think>b", "a <think>b"),
        ("a </think> b", "a </think> b"),
    ],
)
def test_thinking_aloud_is_left_out(text: str, left: str) -> None:
    assert unthought(text) == left


def test_many_unknown_fields_are_named_without_comparing_all_with_all() -> None:
    with cormorant.open(":memory:") as store:
        fields = {f"fieldname{i}": i for i in range(3000)}
        store.add([{"id": "a", "text": "t", "metadata": fields}])
        asked = {"$or": [{f"fieldnam{i}x": 1} for i in range(100)]}
        assert len(store.search(Query(text="t", filter=asked)).degraded) == 100


def test_a_scope_is_kept_as_it_was_checked() -> None:
    with Cormorant(None) as vs:
        for tenant in ("a", "b"):
            vs.scope(tenant=tenant).add_texts([f"fish {tenant}"])
        retriever = vs.as_retriever(search_type="text", k=9)
        allowed = ["a"]
        scoped = ScopedRetriever(retriever=retriever, scope={"tenant": {"$in": allowed}})
        with scoping(tenant={"$in": allowed}):
            allowed.append("b")
            assert [d.page_content for d in retriever.invoke("fish")] == ["fish a"]
        assert [d.page_content for d in scoped.invoke("fish")] == ["fish a"]
        with pytest.raises(ScopeError):
            scoping()


def test_keys_asked_for_inside_a_scoping_stay_inside_it() -> None:
    with Cormorant(None) as vs:
        docstore = CormorantByteStore(vs)
        for tenant in ("a", "b"):
            with scoping(tenant=tenant):
                docstore.mset([(f"key {tenant}", b"x")])
        with scoping(tenant="a"):
            keys, later = docstore.yield_keys(), docstore.ayield_keys()
        assert list(keys) == ["key a"]

        async def rest() -> list[str]:
            return [each async for each in later]

        assert asyncio.run(rest()) == ["key a"]


@pytest.mark.parametrize("with_ids", [True, False])
def test_what_a_foreign_stage_returns_is_recognised_without_comparing_all_with_all(
    with_ids,
) -> None:
    documents = [
        Document(f"text {n}.", id=f"d{n}" if with_ids else None, metadata={"n": n})
        for n in range(10_000)
    ]
    turned = as_compressor(RunnableLambda(lambda given: given["documents"][::-1]))
    found = turned.invoke({"query": "q", "documents": documents})
    assert [each.metadata["n"] for each in found] == list(range(10_000))[::-1]
    assert all(of(each).journey[-1].says.endswith(" of 10000.") for each in found)


def test_nor_are_the_pieces_it_cuts() -> None:
    documents = [Document(f"one {n}. two {n}.", id=f"d{n}") for n in range(3_000)]
    cut = as_compressor(
        RunnableLambda(
            lambda given: [
                Document(piece) for each in given["documents"] for piece in _halves(each)
            ]
        )
    )
    found = cut.invoke({"query": "q", "documents": documents})
    assert len(found) == 6_000
    befores = [of(each).journey[-1].detail["before"] for each in found]
    assert befores == [n // 2 + 1 for n in range(6_000)]


def _halves(document: Document) -> list[str]:
    first, second, _ = document.page_content.split(".")
    return [f"{first}.", f"{second.strip()}."]
