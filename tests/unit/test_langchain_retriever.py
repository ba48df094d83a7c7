"""Does the retriever hear what it is told, wherever it is told?"""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore

from cormorant.errors import CormorantError, FilterError, QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant, CormorantRetriever

FAKE = DeterministicFakeEmbedding(size=6)
TEXTS = [f"a fish, the {number}th" for number in range(10)]
METADATAS = [{"n": number, "tenant": "acme" if number % 2 else "other"} for number in range(10)]


@pytest.fixture(scope="module")
def vs() -> Iterator[Cormorant]:
    ids = [str(number) for number in range(10)]
    with Cormorant.from_texts(TEXTS, FAKE, METADATAS, ids=ids) as store:
        yield store


def numbers(documents: list[Document]) -> set[int]:
    return {doc.metadata["n"] for doc in documents}


@pytest.mark.parametrize("search_type", ["similarity", "mmr", "hybrid", "text"])
async def test_k_is_heard_everywhere(vs: Cormorant, search_type: str) -> None:
    """`as_retriever(k=3)` is silently 4 in langchain-core."""
    assert len(vs.as_retriever(search_type=search_type).invoke("fish")) == 4
    for retriever in (
        vs.as_retriever(search_type=search_type, k=3),
        vs.as_retriever(search_type=search_type, search_kwargs={"k": 3}),
        CormorantRetriever(vectorstore=vs, search_type=search_type, k=3),
    ):
        assert len(retriever.invoke("fish")) == 3
        assert len(await retriever.ainvoke("fish")) == 3
        assert len(retriever.invoke("fish", k=2)) == 2
        assert len(await retriever.ainvoke("fish", k=2)) == 2
        assert len(retriever.invoke("fish")) == 3, "a call changes nothing"


def test_every_argument_may_stand_in_three_places(vs: Cormorant) -> None:
    arguments = {
        "k": 5,
        "fetch_k": 8,
        "lambda_mult": 0.2,
        "with_scores": True,
        "filter": {"n": {"$gt": 3}},
    }
    expected = vs.search("fish", "mmr", **arguments)
    assert vs.as_retriever(search_type="mmr", **arguments).invoke("fish") == expected
    assert vs.as_retriever(search_type="mmr", search_kwargs=arguments).invoke("fish") == expected
    assert vs.as_retriever(search_type="mmr").invoke("fish", **arguments) == expected


def test_the_fusion_of_a_hybrid_retriever_is_heard(vs: Cormorant) -> None:
    arguments: dict[str, Any] = {
        "vector_weight": 0.9,
        "keyword_weight": 0.1,
        "fusion": "rrf",
        "rrf_k": 10,
        "k": 3,
    }
    expected = vs.search("the 7th", "hybrid", **arguments)
    assert vs.as_retriever(search_type="hybrid", **arguments).invoke("the 7th") == expected


def test_a_threshold_may_be_a_field_and_an_int(vs: Cormorant) -> None:
    """langchain-core wants it in search_kwargs, and a float."""
    best = vs.similarity_search_with_relevance_scores("fish", k=10)
    cut = best[2][1]
    for retriever in (
        vs.as_retriever(search_type="similarity_score_threshold", score_threshold=cut, k=10),
        vs.as_retriever(
            search_type="similarity_score_threshold",
            search_kwargs={"score_threshold": cut, "k": 10},
        ),
    ):
        assert retriever.invoke("fish") == [doc for doc, _ in best[:3]]
        assert len(retriever.invoke("fish", score_threshold=0)) == 10
    vs.as_retriever(search_type="similarity_score_threshold", score_threshold=0)
    with pytest.raises(QueryError, match="needs a score_threshold"):
        vs.as_retriever(search_type="similarity_score_threshold")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"top_k": 3}, UsageError, "does not take 'top_k'"),
        ({"search_kwarg": {}}, UsageError, "Did you mean 'search_kwargs'"),
        ({"search_kwargs": {"top_k": 3}}, UsageError, "does not take 'top_k'"),
        ({"search_type": "hibrid"}, QueryError, "Did you mean 'hybrid'"),
        ({"k": 0}, QueryError, "k must be a whole number"),
        ({"search_kwargs": {"k": 0}}, QueryError, "k must be a whole number"),
        ({"k": 5, "fetch_k": 4}, QueryError, "fetch_k must be at least k"),
        ({"score_threshold": 7}, QueryError, "score_threshold must be"),
        ({"lambda_mult": 0.5}, UsageError, "It belongs to 'mmr' and 'hybrid'"),
        ({"filter": {"n": {"$near": 3}}}, FilterError, "near"),
        ({"k": 3, "search_kwargs": {"k": 4}}, UsageError, "given twice"),
    ],
)
def test_a_bad_argument_is_refused_when_the_retriever_is_made(
    vs: Cormorant, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        vs.as_retriever(**arguments)
    with pytest.raises(error, match=says):
        CormorantRetriever(vectorstore=vs, **arguments)


async def test_a_bad_argument_is_refused_at_the_call(vs: Cormorant) -> None:
    retriever = vs.as_retriever()
    for arguments in ({"top_k": 3}, {"k": 0}, {"where": {}}, {"lambda_mult": 0.5}):
        with pytest.raises(UsageError):
            retriever.invoke("fish", **arguments)
        with pytest.raises(UsageError):
            await retriever.ainvoke("fish", **arguments)


def test_a_retriever_of_another_vector_store_is_refused() -> None:
    with pytest.raises(UsageError, match="as_retriever"):
        CormorantRetriever(vectorstore=InMemoryVectorStore(FAKE))


# Filters


def only_small(document: Document) -> bool:
    return bool(document.metadata["n"] < 6)


@pytest.mark.parametrize("at_call", [{"n": {"$lt": 6}}, only_small])
@pytest.mark.parametrize(
    "fixed", [{"tenant": "acme"}, lambda document: document.metadata["tenant"] == "acme"]
)
async def test_a_filter_at_the_call_narrows_the_fixed_one(
    vs: Cormorant, fixed: Any, at_call: Any
) -> None:
    """In langchain-core it replaces it, and another tenant's documents come back."""
    for retriever in (
        vs.as_retriever(k=10, filter=fixed),
        vs.as_retriever(k=10, search_kwargs={"filter": fixed}),
    ):
        assert numbers(retriever.invoke("fish", filter=at_call)) == {1, 3, 5}
        assert numbers(await retriever.ainvoke("fish", filter=at_call)) == {1, 3, 5}
        assert numbers(retriever.invoke("fish", filter={"tenant": "other"})) == set()
        assert numbers(retriever.invoke("fish", filter=None)) == {1, 3, 5, 7, 9}
        assert numbers(retriever.invoke("fish", filter={})) == {1, 3, 5, 7, 9}


def test_a_filter_as_field_and_in_search_kwargs_both_hold(vs: Cormorant) -> None:
    retriever = vs.as_retriever(
        k=10, filter={"n": {"$lt": 6}}, search_kwargs={"filter": {"tenant": "acme"}}
    )
    assert numbers(retriever.invoke("fish")) == {1, 3, 5}


def test_a_text_filter_and_a_callable_do_not_combine(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=10, filter={"$text": "7th"})
    assert numbers(retriever.invoke("fish")) == {7}
    assert numbers(retriever.invoke("fish", filter={"n": {"$lt": 6}})) == set()
    with pytest.raises(FilterError, match=r"\$text"):
        retriever.invoke("fish", filter=only_small)


# Scope by config

ACME: Any = {"configurable": {"scope": {"tenant": "acme"}}}


async def test_a_scope_in_the_config_narrows_the_request(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=10)
    assert numbers(retriever.invoke("fish", ACME)) == {1, 3, 5, 7, 9}
    assert numbers(await retriever.ainvoke("fish", ACME)) == {1, 3, 5, 7, 9}
    assert numbers(retriever.with_config(ACME).invoke("fish")) == {1, 3, 5, 7, 9}
    assert numbers(retriever.invoke("fish", ACME, filter={"tenant": "other"})) == set()
    assert len(retriever.invoke("fish")) == 10, "the next request is not narrowed"


def test_each_request_of_a_batch_has_its_own_scope(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=10)
    other: Any = {"configurable": {"scope": {"tenant": "other"}}}
    acme, others = retriever.batch(["fish", "fish"], [ACME, other])
    assert numbers(acme) == {1, 3, 5, 7, 9}
    assert numbers(others) == {0, 2, 4, 6, 8}


async def test_a_scope_around_the_retriever_stays_in_force(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=10)
    piped = RunnablePassthrough() | retriever
    assert numbers(piped.invoke("fish", ACME)) == {1, 3, 5, 7, 9}
    assert numbers(await piped.ainvoke("fish", ACME)) == {1, 3, 5, 7, 9}

    # An inner config replaces the outer `configurable` in langchain-core.
    inner: Any = {"configurable": {"thread_id": "1"}}
    wider: Any = {"configurable": {"scope": {"n": {"$lt": 6}}}}
    for config, expected in ((inner, {1, 3, 5, 7, 9}), (wider, {1, 3, 5})):
        node = RunnableLambda(lambda question, c=config: retriever.invoke(question, c))
        assert numbers(node.invoke("fish", ACME)) == expected


def test_a_wrapper_that_goes_past_invoke_is_scoped_by_the_chain_around_it(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=10)
    node = RunnableLambda(
        lambda question: retriever._get_relevant_documents(question, run_manager=None)
    )
    assert numbers(node.invoke("fish", ACME)) == {1, 3, 5, 7, 9}


def test_a_retriever_tool_is_scoped_too(vs: Cormorant) -> None:
    tool = create_retriever_tool(
        vs.as_retriever(k=10), "find", "finds", response_format="content_and_artifact"
    )
    call = {"name": "find", "args": {"query": "fish"}, "id": "1", "type": "tool_call"}
    message = tool.invoke(call, ACME)
    assert numbers(message.artifact) == {1, 3, 5, 7, 9}


def test_a_scoped_store_is_narrowed_further_by_the_config(vs: Cormorant) -> None:
    retriever = vs.scope(n={"$lt": 6}).as_retriever(k=10)
    assert numbers(retriever.invoke("fish", ACME)) == {1, 3, 5}
    assert retriever.invoke("fish", {"configurable": {"scope": {"n": 8}}}) == []


@pytest.mark.parametrize(
    "scope", ["acme", ["acme"], {"tenant": None}, {7: "acme"}, {"tenant": ["a"]}]
)
def test_what_is_no_scope_is_refused(vs: Cormorant, scope: Any) -> None:
    with pytest.raises(CormorantError):
        vs.as_retriever().invoke("fish", {"configurable": {"scope": scope}})


def test_a_store_that_requires_a_scope_gets_it_from_the_config() -> None:
    with Cormorant(FAKE, require_scope=("tenant",)) as vs:
        vs.scope(tenant="acme").add_texts(["a fish"], [{"n": 1}])
        retriever = vs.as_retriever()
        with pytest.raises(ScopeError):
            retriever.invoke("fish")
        assert numbers(retriever.invoke("fish", ACME)) == {1}


# LangChain's machinery


class Listening(BaseCallbackHandler):
    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.tags: list[str] = []
        self.found: list[Document] = []
        self.errors: list[BaseException] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.metadata, self.tags = kwargs["metadata"], kwargs["tags"]

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.found = list(documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)


async def test_tracing_learns_the_embedding_model(vs: Cormorant) -> None:
    class Named(DeterministicFakeEmbedding):
        model: str = "fake-6"

    for embedding, model in ((Named(size=6), "fake-6"), (FAKE, "DeterministicFakeEmbedding")):
        with Cormorant.from_texts(["a fish"], embedding) as named:
            retriever = named.as_retriever(tags=["mine"], metadata={"project": "p"})
            for invoke in (retriever.invoke, retriever.ainvoke):
                listening = Listening()
                found = invoke("fish", {"callbacks": [listening]})
                found = found if isinstance(found, list) else await found
                assert listening.found == found
                assert listening.metadata["ls_retriever_name"] == "cormorant"
                assert listening.metadata["ls_vector_store_provider"] == "Cormorant"
                assert listening.metadata["ls_embedding_provider"] == type(embedding).__name__
                assert model in listening.metadata["ls_embedding_model"]
                assert listening.metadata["project"] == "p"
                assert listening.tags == ["mine"]


def test_an_error_reaches_the_callbacks(vs: Cormorant) -> None:
    listening = Listening()
    with pytest.raises(QueryError):
        vs.as_retriever().invoke("fish", {"callbacks": [listening]}, k=0)
    assert len(listening.errors) == 1


def test_default_tags_name_store_and_embedder(vs: Cormorant) -> None:
    assert vs.as_retriever().tags == ["Cormorant", "DeterministicFakeEmbedding"]


def test_fields_can_be_configured_by_request(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=2).configurable_fields(
        k=ConfigurableField("k"), search_kwargs=ConfigurableField("search_kwargs")
    )
    assert len(retriever.invoke("fish")) == 2
    assert len(retriever.invoke("fish", {"configurable": {"k": 7}})) == 7
    narrowed = {"configurable": {"k": 10, "search_kwargs": {"filter": {"tenant": "acme"}}}}
    assert numbers(retriever.invoke("fish", narrowed)) == {1, 3, 5, 7, 9}


async def test_batch_stream_and_fallbacks_work(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=2)
    expected = retriever.invoke("fish")
    assert retriever.batch(["fish", "fish"]) == [expected, expected]
    assert await retriever.abatch(["fish", "fish"]) == [expected, expected]
    assert list(retriever.stream("fish")) == [expected]
    assert retriever.with_fallbacks([retriever]).invoke("fish") == expected
    assert retriever.bind(k=1).invoke("fish") == expected[:1]


async def test_documents_added_through_the_retriever_are_found() -> None:
    with Cormorant(FAKE) as vs:
        retriever = vs.as_retriever()
        retriever.add_documents([Document(page_content="a", id="x")])
        await retriever.aadd_documents([Document(page_content="b", id="y")])
        assert {doc.id for doc in retriever.invoke("a")} == {"x", "y"}
