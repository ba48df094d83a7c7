"""Does code written for InMemoryVectorStore run unchanged, and agree?"""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from cormorant.langchain import Cormorant

FAKE = DeterministicFakeEmbedding(size=16)
CLASSES: list[Any] = [InMemoryVectorStore, Cormorant]


def documents() -> list[Document]:
    return [
        Document(id=str(n), page_content=f"text number {n}", metadata={"n": n, "odd": n % 2 == 1})
        for n in range(12)
    ]


@pytest.fixture(params=CLASSES, ids=["langchain-core", "cormorant"])
def store(request: pytest.FixtureRequest) -> Any:
    made = request.param(FAKE)
    yield made
    if isinstance(made, Cormorant):
        made.close()


async def test_the_tutorial_runs(store: Any) -> None:
    store.add_documents(documents=documents())
    assert [d.id for d in store.similarity_search(query="text number 3", k=1)] == ["3"]
    found = store.similarity_search(
        query="text number 3", k=5, filter=lambda doc: doc.metadata["odd"] and doc.id != "3"
    )
    assert len(found) == 5
    assert all(doc.metadata["odd"] for doc in found)
    ((best, score),) = store.similarity_search_with_score("text number 3", k=1)
    assert (best.id, score) == ("3", pytest.approx(1.0, abs=1e-5))
    store.delete(ids=["3"])
    assert store.get_by_ids(["3"]) == []
    retriever = store.as_retriever(
        search_type="mmr", search_kwargs={"k": 1, "fetch_k": 2, "lambda_mult": 0.5}
    )
    assert [d.id for d in retriever.invoke("text number 4")] == ["4"]
    ids = await store.aadd_documents([Document(page_content="new", id="new")])
    assert ids == ["new"]
    ((best, _),) = await store.asimilarity_search_with_score(query="new", k=1)
    assert best.id == "new"
    await store.adelete(ids=["new"])
    assert await store.aget_by_ids(["new"]) == []


def test_both_find_the_same() -> None:
    theirs = InMemoryVectorStore.from_documents(documents(), FAKE)
    vector = FAKE.embed_query("text number 5")

    def odd(document: Document) -> bool:
        return bool(document.metadata["odd"])

    with Cormorant.from_documents(documents(), FAKE) as ours:
        for k in (1, 4, 12, 50):
            assert ours.similarity_search("anything", k) == theirs.similarity_search("anything", k)
            assert ours.similarity_search_by_vector(vector, k, filter=odd) == (
                theirs.similarity_search_by_vector(vector, k, filter=odd)
            )
            pairs = zip(
                ours.similarity_search_with_score_by_vector(vector, k),
                theirs.similarity_search_with_score_by_vector(vector, k),
                strict=True,
            )
            for (doc, score), (expected, cosine) in pairs:
                assert doc == expected
                assert score == pytest.approx(cosine, abs=1e-5)
        arguments: dict[str, Any] = {"k": 5, "fetch_k": 10, "lambda_mult": 0.3, "filter": odd}
        assert ours.max_marginal_relevance_search("anything", **arguments) == (
            theirs.max_marginal_relevance_search("anything", **arguments)
        )


def test_dump_and_load_by_keyword(store: Any, tmp_path: Any) -> None:
    store.add_documents(documents())
    store.dump(path=str(tmp_path / "deep" / "store.json"))
    loaded = type(store).load(path=str(tmp_path / "deep" / "store.json"), embedding=FAKE)
    assert loaded.similarity_search("text number 3", 3) == store.similarity_search(
        "text number 3", 3
    )
    if isinstance(loaded, Cormorant):
        loaded.close()


def test_langchains_own_retriever_and_selectors_run_on_it() -> None:
    with Cormorant.from_documents(documents(), FAKE) as vs:
        plain = VectorStoreRetriever(vectorstore=vs, search_kwargs={"k": 2})
        assert len(plain.invoke("text number 3")) == 2
        threshold = VectorStoreRetriever(
            vectorstore=vs,
            search_type="similarity_score_threshold",
            search_kwargs={"score_threshold": 0.99},
        )
        assert [doc.id for doc in threshold.invoke("text number 3")] == ["3"]
    examples = [{"input": f"text {n}", "output": str(n)} for n in range(6)]
    for selector in (SemanticSimilarityExampleSelector, MaxMarginalRelevanceExampleSelector):
        chosen = selector.from_examples(examples, FAKE, Cormorant, k=2, input_keys=["input"])
        assert chosen.select_examples({"input": "text 3"})[0] == examples[3]
        chosen.vectorstore.close()


def test_where_the_in_memory_store_fails() -> None:
    """NotImplementedError, TypeError, k - 1 results, and documents dropped."""
    with Cormorant.from_documents(documents(), FAKE) as vs:
        assert isinstance(vs, VectorStore)
        assert len(vs.similarity_search_with_relevance_scores("text", score_threshold=0.0)) == 4
        assert len(vs.similarity_search("text", k=3, filter={"odd": True})) == 3
        with pytest.raises(ValueError, match="k must be"):
            vs.similarity_search("text", k=-1)
