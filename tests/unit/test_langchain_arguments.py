"""Is what is no argument refused in the package's own words, wherever it comes in?"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from cormorant.errors import CormorantError, QueryError, RecordError, UsageError
from cormorant.langchain import Cormorant

FAKE = DeterministicFakeEmbedding(size=4)
ODD: list[Any] = [0, 1.5, True, "x", b"x", ["x"], [1], (), {"a": 1}, {1: 2}, {"x"}, object(), len]


@pytest.fixture(scope="module")
def vs() -> Iterator[Cormorant]:
    with Cormorant.from_texts(["a fish"], FAKE) as store:
        yield store


def outcome(work: Any) -> None:
    """It works, or refuses as the package does; any other error fails the test."""
    with contextlib.suppress(CormorantError):
        work()


@pytest.mark.parametrize("odd", ODD)
async def test_a_search_type_that_is_none(vs: Cormorant, odd: Any) -> None:
    with pytest.raises(QueryError, match="search_type must be one of similarity"):
        vs.search("fish", odd)
    with pytest.raises(QueryError, match="search_type must be one of"):
        await vs.asearch("fish", odd)
    with pytest.raises(QueryError, match="search_type must be one of"):
        vs.as_retriever(search_type=odd)


@pytest.mark.parametrize("odd", [each for each in ODD if not isinstance(each, dict)])
def test_search_kwargs_that_are_no_dict(vs: Cormorant, odd: Any) -> None:
    with pytest.raises(UsageError, match="search_kwargs must be a dict"):
        vs.as_retriever(search_kwargs=odd)
    retriever = vs.as_retriever()
    retriever.search_kwargs = odd
    with pytest.raises(UsageError, match="search_kwargs must be a dict"):
        retriever.invoke("fish")


def test_none_is_not_given(vs: Cormorant) -> None:
    retriever = vs.as_retriever(search_kwargs=None, search_type=None, tags=None, k=None)
    assert retriever.search_type == "similarity"
    assert retriever.search_kwargs == {}
    assert len(retriever.invoke("fish")) == 1


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "name",
    [
        "k",
        "fetch_k",
        "filter",
        "score_threshold",
        "lambda_mult",
        "with_scores",
        "vector_weight",
        "keyword_weight",
        "fusion",
        "rrf_k",
        "tags",
        "metadata",
        "name",
        "vectorstore",
    ],
)
def test_every_field_of_the_retriever(vs: Cormorant, name: str, odd: Any) -> None:
    given: Any = {name: odd}
    outcome(lambda: vs.as_retriever(search_type="hybrid", **given))
    outcome(lambda: vs.as_retriever(search_type="hybrid", search_kwargs=given).invoke("fish"))
    outcome(lambda: vs.as_retriever(search_type="hybrid").invoke("fish", **given))
    outcome(lambda: vs.search("fish", "hybrid", **given))


def test_the_field_is_named(vs: Cormorant) -> None:
    with pytest.raises(UsageError, match="tags"):
        vs.as_retriever(tags="x")
    with pytest.raises(UsageError, match="metadata"):
        vs.as_retriever(metadata=["x"])
    with pytest.raises(UsageError, match="vectorstore is this store"):
        vs.as_retriever(vectorstore=vs)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["configurable", "tags", "metadata", "callbacks"])
async def test_what_is_no_config(vs: Cormorant, name: str, odd: Any) -> None:
    retriever = vs.as_retriever()
    fits = isinstance(odd, list if name in ("tags", "callbacks") else dict)
    if not fits:
        config: Any = {name: odd}
        with pytest.raises(UsageError, match=name):
            retriever.invoke("fish", config)
        with pytest.raises(UsageError, match=name):
            await retriever.ainvoke("fish", config)
    if not isinstance(odd, dict):
        with pytest.raises(UsageError, match="config must be a dict"):
            retriever.invoke("fish", odd)


@pytest.mark.parametrize("odd", [0, 1.5, True, object(), len])
async def test_what_cannot_be_gone_through(vs: Cormorant, odd: Any) -> None:
    for work in (
        lambda: vs.add_texts(odd),
        lambda: vs.add_texts(["x"], odd),
        lambda: vs.add_texts(["x"], ids=odd),
        lambda: vs.add_documents(odd),
        lambda: vs.add_documents([Document("x")], ids=odd),
        lambda: vs.get_by_ids(odd),
        lambda: vs.delete(odd),
    ):
        with pytest.raises(RecordError, match=r"takes a list|ids"):
            work()
    with pytest.raises(RecordError, match="takes a list"):
        await vs.aadd_texts(odd)
    with pytest.raises(RecordError, match="takes a list"):
        await vs.aadd_documents(odd)
    assert vs.store.count() == 1


def test_an_iterator_that_fails_is_not_taken_for_a_wrong_argument(vs: Cormorant) -> None:
    def texts() -> Iterator[str]:
        yield "x"
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        vs.add_texts(texts())
