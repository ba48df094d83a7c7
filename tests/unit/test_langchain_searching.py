"""What do LangChain's search methods return, and what do they refuse?"""

import itertools
import json
import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from cormorant import Store
from cormorant.errors import FilterError, NotFound, QueryError, UsageError
from cormorant.langchain import Cormorant

METRICS = ("cosine", "dot", "euclidean")
SEARCH_TYPES = ("similarity", "similarity_score_threshold", "mmr", "hybrid", "text")


class Letters(Embeddings):
    """How often each letter occurs: alike texts get alike vectors."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [text.lower().count(chr(97 + number)) + 0.01 for number in range(26)]
        return [*counts, float(len(text) % 7)]


TEXTS = [
    "cormorants dive for fish",
    "a cormorant dries its wings",
    "fish swim in the river",
    "the boat is on the river",
    "ledgers must add up",
    "the audit of the ledger",
]
METADATAS = [
    {"topic": topic, "year": 2020 + number}
    for number, topic in enumerate(["bird", "bird", "fish", "boat", "books", "books"])
]
IDS = [f"d{number}" for number in range(6)]


def made(**options: Any) -> Cormorant:
    return Cormorant.from_texts(TEXTS, Letters(), METADATAS, ids=IDS, **options)


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with made() as store:
        yield store


def test_no_method_of_the_base_class_is_left_not_implemented() -> None:
    own = set(dir(Cormorant))
    for name in dir(VectorStore):
        if name.startswith("__") or not callable(getattr(VectorStore, name)):
            continue
        inherited = getattr(Cormorant, name) is getattr(VectorStore, name)
        assert name in own
        assert not inherited or name in {
            "_cosine_relevance_score_fn",
            "_euclidean_relevance_score_fn",
            "_max_inner_product_relevance_score_fn",
            "_get_retriever_tags",
        }, name


@pytest.mark.parametrize("metric", METRICS)
async def test_sync_and_async_twins_agree(metric: str) -> None:
    with made(metric=metric) as vs:
        vector = Letters().embed_query("river fish")
        common: dict[str, Any] = {"k": 3, "filter": {"year": {"$lt": 2025}}}
        for name, argument in (
            ("similarity_search", "river fish"),
            ("similarity_search_with_score", "river fish"),
            ("similarity_search_with_relevance_scores", "river fish"),
            ("max_marginal_relevance_search", "river fish"),
            ("similarity_search_by_vector", vector),
            ("similarity_search_with_score_by_vector", vector),
            ("max_marginal_relevance_search_by_vector", vector),
        ):
            answer = getattr(vs, name)(argument, **common)
            assert len(answer) == 3, name
            assert answer == await getattr(vs, f"a{name}")(argument, **common), name
        for search_type in SEARCH_TYPES:
            answer = vs.search("river fish", search_type, **common)
            assert answer, search_type
            assert answer == await vs.asearch("river fish", search_type, **common)


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_the_metric_itself_and_higher_is_better(metric: str) -> None:
    question = "river fish"
    query = np.array(Letters().embed_query(question))
    vectors = np.array(Letters().embed_documents(TEXTS))
    expected = {
        "cosine": vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query),
        "dot": vectors @ query,
        "euclidean": -np.linalg.norm(vectors - query, axis=1),
    }[metric]
    with made(metric=metric) as vs:
        pairs = vs.similarity_search_with_score(question, k=6)
    assert [doc.id for doc, _ in pairs] == [IDS[n] for n in np.argsort(-expected, kind="stable")]
    for doc, score in pairs:
        assert score == pytest.approx(expected[IDS.index(doc.id or "")], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_relevance_is_from_0_to_1_for_every_metric(metric: str) -> None:
    """Chroma gives -140 on vectors that are not normalised; InMemoryVectorStore gives none."""
    with made(metric=metric) as vs:
        pairs = vs.similarity_search_with_relevance_scores("river fish", k=6)
        relevances = [relevance for _, relevance in pairs]
        assert len(pairs) == 6
        assert all(0 <= relevance <= 1 for relevance in relevances)
        assert relevances == sorted(relevances, reverse=True)
        by_hand = vs._select_relevance_score_fn()
        scores = vs.similarity_search_with_score("river fish", k=6)
        assert [by_hand(score) for _, score in scores] == pytest.approx(relevances, abs=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_a_threshold_works_for_every_metric(metric: str) -> None:
    with made(metric=metric) as vs:
        all_of_them = vs.similarity_search_with_relevance_scores("river fish", k=6)
        cut = (all_of_them[2][1] + all_of_them[3][1]) / 2
        kept = vs.similarity_search_with_relevance_scores("river fish", k=6, score_threshold=cut)
        assert kept == all_of_them[:3]
        assert vs.search("river fish", "similarity_score_threshold", k=6, score_threshold=cut) == [
            doc for doc, _ in all_of_them[:3]
        ]
        assert len(vs.similarity_search("river fish", k=6, score_threshold=cut)) == 3


def test_a_threshold_may_be_a_whole_number(vs: Cormorant) -> None:
    assert len(vs.search("fish", "similarity_score_threshold", k=6, score_threshold=0)) == 6
    assert vs.search("zzz", "similarity_score_threshold", score_threshold=1) == []


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
def test_a_threshold_that_leaves_nothing_is_logged_once(
    vs: Cormorant, search_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="cormorant"):
        assert vs.search("zebra quiz fish", search_type, score_threshold=1.0) == []
    (logged,) = caplog.records
    assert "score_threshold" in logged.getMessage()


@pytest.mark.parametrize("threshold", [-0.1, 1.1, 2, "high", True, math.nan])
@pytest.mark.parametrize("search_type", SEARCH_TYPES)
def test_a_threshold_outside_0_to_1_is_refused(
    vs: Cormorant, search_type: str, threshold: Any
) -> None:
    with pytest.raises(QueryError, match="score_threshold must be a number from 0 to 1"):
        vs.search("fish", search_type, score_threshold=threshold)


# MMR


@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_mmr_picks_what_langchain_picks(vs: Cormorant, lambda_mult: float) -> None:
    question = "fish and birds on the river"
    memory = InMemoryVectorStore.from_texts(TEXTS, Letters(), METADATAS, ids=IDS)
    arguments: dict[str, Any] = {"k": 4, "fetch_k": 6, "lambda_mult": lambda_mult}
    expected = memory.max_marginal_relevance_search(question, **arguments)
    assert vs.max_marginal_relevance_search(question, **arguments) == expected
    vector = Letters().embed_query(question)
    assert vs.max_marginal_relevance_search_by_vector(vector, **arguments) == expected
    assert vs.search(question, "mmr", **arguments) == expected


def test_mmr_keeps_the_filter(vs: Cormorant) -> None:
    found = vs.max_marginal_relevance_search("fish", k=6, filter={"topic": "books"})
    assert {doc.id for doc in found} == {"d4", "d5"}


def test_lambda_changes_the_picks() -> None:
    """A typo once made another store ignore it."""
    with made() as vs:
        relevant, diverse = (
            vs.max_marginal_relevance_search("a ledger audit", k=3, lambda_mult=lambda_mult)
            for lambda_mult in (1.0, 0.0)
        )
        assert relevant != diverse
        assert relevant == vs.similarity_search("a ledger audit", k=3)


def test_mmr_with_scores(vs: Cormorant) -> None:
    for doc in vs.max_marginal_relevance_search("fish", k=3, with_scores=True):
        assert math.isfinite(doc.metadata["_cormorant"]["score"])


def test_more_than_20_mmr_results_need_no_fetch_k() -> None:
    texts = [f"text number {number}" for number in range(40)]
    with Cormorant.from_texts(texts, Letters()) as vs:
        assert len(vs.max_marginal_relevance_search("number", k=30)) == 30


# Filters


def by_year(document: Document) -> bool:
    return bool(document.metadata["year"] >= 2023)


YEAR = Comparison(Comparator.GTE, "year", 2023)
TOPIC = Comparison(Comparator.NE, "topic", "boat")


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"year": {"$gte": 2023}}, {"d3", "d4", "d5"}),
        (by_year, {"d3", "d4", "d5"}),
        (YEAR, {"d3", "d4", "d5"}),
        (Operation(Operator.AND, [YEAR, TOPIC]), {"d4", "d5"}),
        (StructuredQuery(query="", filter=YEAR), {"d3", "d4", "d5"}),
        ({}, set(IDS)),
    ],
)
def test_every_search_type_takes_every_kind_of_filter(
    vs: Cormorant, search_type: str, filter: Any, expected: set[str]
) -> None:
    question = "cormorant wings fish river boat ledgers ledger"
    found = vs.search(question, search_type, k=6, filter=filter)
    assert {doc.id for doc in found} == expected


def test_a_callable_gets_a_document_of_its_own(vs: Cormorant) -> None:
    seen: list[Document] = []

    def meddle(document: Document) -> bool:
        seen.append(document.model_copy(deep=True))
        document.metadata["topic"] = "changed"
        return True

    vs.similarity_search("fish", k=6, filter=meddle)
    assert {(doc.id, doc.page_content) for doc in seen} == set(zip(IDS, TEXTS, strict=True))
    assert {doc.metadata["topic"] for doc in vs.get_by_ids(IDS)} == {
        "bird", "fish", "boat", "books"
    }  # fmt: skip


def test_a_filter_leaves_k_hits_if_k_exist() -> None:
    texts = [f"text {number}" for number in range(300)]
    metadatas = [{"rare": number % 100 == 99} for number in range(300)]
    with Cormorant.from_texts(texts, Letters(), metadatas) as vs:
        for search_type in SEARCH_TYPES:
            assert len(vs.search("text", search_type, k=3, filter={"rare": True})) == 3


@pytest.mark.parametrize("filter", ["topic", 7, ["topic"], {"year": {"$near": 1}}, {"$nope": 1}])
def test_what_is_no_filter_is_refused(vs: Cormorant, filter: Any) -> None:
    with pytest.raises(FilterError):
        vs.similarity_search("fish", filter=filter)
    with pytest.raises(FilterError):
        vs.delete(filter=filter)
    assert vs.store.count() == 6


# Arguments


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, QueryError, r"\bk must be a whole number of at least 1; got 0"),
        ({"k": -1}, QueryError, r"\bk must be"),
        ({"k": 2.5}, QueryError, r"\bk must be"),
        ({"k": True}, QueryError, r"\bk must be"),
        ({"fetch_k": -5}, QueryError, "fetch_k must be"),
        ({"k": 4, "fetch_k": 2}, QueryError, "fetch_k must be at least k; got fetch_k=2 and k=4"),
        ({"fliter": {}}, UsageError, "does not take 'fliter'.*Did you mean 'filter'"),
        ({"score_treshold": 0.5}, UsageError, "Did you mean 'score_threshold'"),
        ({"namespace": "x"}, UsageError, "it takes k, filter, score_threshold"),
        ({"with_scores": "yes"}, QueryError, "with_scores must be True or False"),
    ],
)
async def test_a_bad_argument_is_refused(
    vs: Cormorant, search_type: str, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        vs.search("fish", search_type, **arguments)
    with pytest.raises(error, match=says):
        await vs.asearch("fish", search_type, **arguments)


def test_every_search_method_refuses_an_unknown_argument(vs: Cormorant) -> None:
    vector = Letters().embed_query("fish")
    for name, argument in (
        ("similarity_search", "fish"),
        ("similarity_search_with_score", "fish"),
        ("similarity_search_with_relevance_scores", "fish"),
        ("max_marginal_relevance_search", "fish"),
        ("similarity_search_by_vector", vector),
        ("similarity_search_with_score_by_vector", vector),
        ("max_marginal_relevance_search_by_vector", vector),
        ("search_result", "fish"),
    ):
        with pytest.raises(UsageError, match="does not take 'where'"):
            getattr(vs, name)(argument, where={})


@pytest.mark.parametrize("lambda_mult", [-0.1, 1.5, "much"])
def test_lambda_outside_0_to_1_is_refused(vs: Cormorant, lambda_mult: Any) -> None:
    with pytest.raises(QueryError, match="lambda_mult must be a number from 0 to 1"):
        vs.max_marginal_relevance_search("fish", lambda_mult=lambda_mult)


def test_an_argument_of_another_search_type_is_refused_by_name(vs: Cormorant) -> None:
    with pytest.raises(UsageError, match="It belongs to 'mmr' and 'hybrid'"):
        vs.similarity_search("fish", lambda_mult=0.5)
    with pytest.raises(UsageError, match="It belongs to 'hybrid'"):
        vs.search("fish", "text", vector_weight=0.5)


def test_an_unknown_search_type_is_refused(vs: Cormorant) -> None:
    with pytest.raises(QueryError, match="Did you mean 'hybrid'"):
        vs.search("fish", "hibrid")


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
@pytest.mark.parametrize("question", ["", "   ", "\n", None, 7, ["fish"]])
async def test_an_empty_query_is_refused(vs: Cormorant, search_type: str, question: Any) -> None:
    with pytest.raises(QueryError, match="query must"):
        vs.search(question, search_type)
    with pytest.raises(QueryError, match="query must"):
        await vs.asearch(question, search_type)


@pytest.mark.parametrize("vector", [[1.0], [math.nan] * 27, [math.inf] * 27, [], [[1.0] * 27]])
def test_a_bad_query_vector_is_refused(vs: Cormorant, vector: Any) -> None:
    with pytest.raises(UsageError):
        vs.similarity_search_by_vector(vector)
    with pytest.raises(UsageError):
        vs.max_marginal_relevance_search_by_vector(vector)


def test_an_empty_store_answers_with_nothing() -> None:
    with Cormorant(Letters()) as vs:
        for search_type in SEARCH_TYPES:
            assert vs.search("fish", search_type) == []
        assert vs.get_by_ids(["x"]) == []


# Hybrid and text


def test_text_search_needs_no_embedder(vs: Cormorant) -> None:
    class Broken(Letters):
        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("a text search must not embed")

    unused = Cormorant(Broken(), store=vs.store, check_embedder=False)
    assert [doc.id for doc in unused.search("ledger audit", "text", k=1)] == ["d5"]


def test_chinese_is_found_by_text() -> None:
    """Splitting on spaces gives every Chinese document the score 0."""
    texts = ["鸬鹚潜入水中捕鱼", "合同约定的付款期限是三十天", "今天天气很好"]
    with Cormorant.from_texts(texts, Letters()) as vs:
        assert [doc.page_content for doc in vs.search("付款期限", "text")] == [texts[1]]
        assert vs.search("付款期限", "hybrid", k=1)[0].page_content == texts[1]


def test_weights_decide_between_the_legs(vs: Cormorant) -> None:
    question = "audit"
    by_text = vs.search(question, "text", k=1)
    by_vector = vs.similarity_search(question, k=1)
    assert by_text != by_vector
    only = {"k": 1, "fusion": "minmax"}
    assert vs.search(question, "hybrid", vector_weight=0, keyword_weight=1, **only) == by_text
    assert vs.search(question, "hybrid", vector_weight=1, keyword_weight=0, **only) == by_vector


@pytest.mark.parametrize("fusion", ["z", "rrf", "minmax"])
def test_every_fusion_can_be_chosen(vs: Cormorant, fusion: str) -> None:
    assert len(vs.search("river fish", "hybrid", k=3, fusion=fusion)) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"fusion": "magic"}, "fusion must be one of"),
        ({"rrf_k": -1}, "rrf_k must be"),
        ({"vector_weight": -1}, "vector_weight must be a number"),
        ({"vector_weight": 0, "keyword_weight": 0}, "vector_weight and keyword_weight must not"),
    ],
)
def test_bad_fusion_settings_are_refused(
    vs: Cormorant, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(QueryError, match=says):
        vs.search("fish", "hybrid", **arguments)


# Scores on documents


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
def test_scores_come_under_one_key_and_are_json(vs: Cormorant, search_type: str) -> None:
    plain = vs.search("river fish", search_type, k=3)
    scored = vs.search("river fish", search_type, k=3, with_scores=True)
    assert [doc.id for doc in plain] == [doc.id for doc in scored]
    assert all("_cormorant" not in doc.metadata for doc in plain)
    for rank, doc in enumerate(scored, start=1):
        scores = doc.metadata["_cormorant"]
        assert json.loads(json.dumps(scores, allow_nan=False)) == scores
        assert scores["rank"] == rank
        assert 0 <= scores["relevance"] <= 1
        assert scores["rerank_score"] is None
        if search_type == "hybrid":
            assert scores["retrieval_method"] == "hybrid"
            assert scores["fusion_score"] == scores["score"]
            assert set(scores["legs"]) == {"vector", "text"}
            assert sum(scores["contributions"].values()) == pytest.approx(scores["score"])
        else:
            assert scores["retrieval_method"] == ("text" if search_type == "text" else "vector")
            assert scores["fusion_score"] is None


def test_scores_of_one_search_do_not_stay_for_the_next(vs: Cormorant) -> None:
    vs.similarity_search("fish", k=6, with_scores=True)
    assert all("_cormorant" not in doc.metadata for doc in vs.similarity_search("fish", k=6))
    assert all("_cormorant" not in doc.metadata for doc in vs.get_by_ids(IDS))


def test_a_result_shows_stages_and_legs(vs: Cormorant) -> None:
    result = vs.search_result("river fish", k=2)
    assert result.mode == "hybrid"
    assert len(result) == 2
    assert result.stages
    assert set(result.hits[0].legs) == {"vector", "text"}


async def test_a_result_of_the_async_twin(vs: Cormorant) -> None:
    result = await vs.asearch_result("river fish", "text", k=2)
    assert [hit.id for hit in result] == [
        hit.id for hit in vs.search_result("river fish", "text", k=2)
    ]


def test_explain_says_why_and_why_not(vs: Cormorant) -> None:
    assert vs.explain("river fish", "d2", k=2).found
    missed = vs.explain("river fish", "d4", k=2, filter={"topic": "fish"})
    assert not missed.found
    assert missed.lost_at == "filter"
    with pytest.raises(NotFound):
        vs.explain("river fish", "nowhere")


def test_ties_keep_the_order_of_adding() -> None:
    """InMemoryVectorStore reverses them."""
    with Cormorant.from_texts(["same"] * 5, Letters(), ids=list("abcde")) as vs:
        for search_type in ("similarity", "hybrid", "text"):
            assert [doc.id for doc in vs.search("same", search_type, k=5)] == list("abcde")


def test_documents_of_equal_text_keep_their_ids(vs: Cormorant) -> None:
    vs.add_texts(["twin", "twin"], [{"n": 1}, {"n": 2}], ids=["t1", "t2"])
    for search_type in ("similarity", "hybrid", "text"):
        found = vs.search("twin", search_type, k=2)
        assert [(doc.id, doc.metadata) for doc in found] == [("t1", {"n": 1}), ("t2", {"n": 2})]


def test_a_prefix_of_a_ranking_is_the_smaller_ranking(vs: Cormorant) -> None:
    for search_type, k in itertools.product(("similarity", "hybrid", "text"), (1, 2, 3)):
        more = vs.search("river fish", search_type, k=4, fetch_k=50)
        assert vs.search("river fish", search_type, k=k, fetch_k=50) == more[:k]


def test_the_engine_finds_the_same(vs: Cormorant) -> None:
    assert isinstance(vs.store, Store)
    assert vs.store.count({"topic": "books"}) == 2
