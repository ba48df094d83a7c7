"""Does a generated filter narrow the search, and never widen it?"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import Away, says
from retrieverlab import texts

from cormorant.errors import FilterError, RewriteError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import SelfQueryRetriever
from cormorant.langchain.retrievers.self_query import AttributeInfo
from cormorant.langchain.retrievers.self_query.expression import parse_expression
from cormorant.store import Store

ROWS = [
    ("gull old", {"tenant": "acme", "year": 2019, "topic": "birds"}),
    ("gull new", {"tenant": "acme", "year": 2024, "topic": "birds"}),
    ("gull theirs", {"tenant": "other", "year": 2024, "topic": "birds"}),
    ("gull boat", {"tenant": "acme", "year": 2022, "topic": "boats", "day": date(2022, 5, 1)}),
]
FIELDS = [
    AttributeInfo(name="tenant", description="whose", type="string"),
    AttributeInfo(name="year", description="of writing", type="integer"),
    AttributeInfo(name="topic", description="what of", type="string"),
]


@pytest.fixture
def vs() -> Any:
    with Cormorant.from_texts([t for t, _ in ROWS], None, [m for _, m in ROWS]) as store:
        yield store


def reply(query: str, filter: Any = "NO_FILTER", **more: Any) -> str:
    return json.dumps({"query": query, "filter": filter, **more}, ensure_ascii=False)


def asking(vs: Any, answer: str, **settings: Any) -> SelfQueryRetriever:
    settings.setdefault("search_type", "text")
    settings.setdefault("metadata_field_info", FIELDS)
    return SelfQueryRetriever.from_llm(says(answer), vs, "notes", **settings)


OLD = reply("gull", 'eq("year", 2019)')


class TestExpressions:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('eq("a", 1)', Comparison(Comparator.EQ, "a", 1)),
            ("eq('a', 'it\\'s')", Comparison(Comparator.EQ, "a", "it's")),
            ("GTE(year, -2.5)", Comparison(Comparator.GTE, "year", -2.5)),
            ('in("a", ["x", 2, true])', Comparison(Comparator.IN, "a", ["x", 2, True])),
            ('in("a", [])', Comparison(Comparator.IN, "a", [])),
            (
                'lt("d", 2024-01-05)',
                Comparison(Comparator.LT, "d", {"type": "date", "date": "2024-01-05"}),
            ),
            (
                'and(eq("a", "鱼"), not(or(ne("b", 1), like("c", "x%"))))',
                Operation(
                    Operator.AND,
                    [
                        Comparison(Comparator.EQ, "a", "鱼"),
                        Operation(
                            Operator.NOT,
                            [
                                Operation(
                                    Operator.OR,
                                    [
                                        Comparison(Comparator.NE, "b", 1),
                                        Comparison(Comparator.LIKE, "c", "x%"),
                                    ],
                                )
                            ],
                        ),
                    ],
                ),
            ),
        ],
    )
    def test_they_are_read(self, text: str, expected: Any) -> None:
        assert parse_expression(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "eq",
            'eq("a"',
            'eq("a", )',
            'eq("a", 1) eq("b", 2)',
            'same("a", 1)',
            "and()",
            'eq(1, "a")',
            '__import__("os").system("true")',
            "$where: 1",
            "not(" * 40 + 'eq("a", 1)' + ")" * 40,
        ],
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(RewriteError, match="the filter"):
            parse_expression(text)


class TestSearch:
    def test_the_filter_of_the_question_is_applied(self, vs: Cormorant) -> None:
        answer = reply("gull", 'and(gte("year", 2020), eq("topic", "birds"))')
        assert texts(asking(vs, answer).invoke("gulls since 2020")) == ["gull new", "gull theirs"]

    async def test_async_finds_the_same(self, vs: Cormorant) -> None:
        answer = reply("gull", 'lt("year", 2020)')
        assert texts(await asking(vs, answer).ainvoke("old gulls")) == ["gull old"]

    @pytest.mark.parametrize(
        "answer",
        [
            "Sure! Here it is:\n```json\n" + OLD + "\n```\nAnything else?",
            "<think>{hm}</think>" + OLD,
            reply("gull", 'eq("year", "2019")'),
            reply("gull", 'in("year", ["2019", 1])'),
        ],
    )
    def test_chatter_and_text_for_numbers_are_understood(self, vs: Cormorant, answer: str) -> None:
        result = asking(vs, answer).retrieve("gulls of 2019")
        assert [hit.text for hit in result] == ["gull old"]
        assert not result.degraded

    def test_dates_are_dates(self, vs: Cormorant) -> None:
        answer = reply("gull", 'gte("day", 2022-01-01)')
        retriever = asking(vs, answer, metadata_field_info=None)
        assert texts(retriever.invoke("gulls since 2022")) == ["gull boat"]

    def test_a_blank_query_leaves_the_question(self, vs: Cormorant) -> None:
        assert texts(asking(vs, reply(" ", 'eq("year", 2019)')).invoke("gull")) == ["gull old"]

    def test_the_question_can_be_searched_as_it_was_put(self, vs: Cormorant) -> None:
        retriever = asking(vs, reply("boat"), use_original_query=True)
        assert len(retriever.invoke("gull")) == 4

    def test_a_number_in_the_question_is_how_many(self, vs: Cormorant) -> None:
        retriever = asking(vs, reply("gull", limit=2), enable_limit=True)
        assert len(retriever.invoke("two gulls")) == 2
        assert len(retriever.invoke("two gulls", k=1)) == 1
        assert len(asking(vs, reply("gull", limit=999), max_limit=3).invoke("gulls")) == 3

    def test_documents_come_once(self) -> None:
        twice = [Document(id="1", page_content="a"), Document(id="1", page_content="a")]

        class Twice(InMemoryVectorStore):
            def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
                return twice

        store = Twice(DeterministicFakeEmbedding(size=4))
        retriever = SelfQueryRetriever.from_llm(says(reply("a")), store, "notes", FIELDS)
        assert texts(retriever.invoke("a")) == ["a"]

    def test_what_was_searched_is_told(self, vs: Cormorant) -> None:
        result = asking(vs, reply("gull", 'gte("year", 2020)')).retrieve("gulls since 2020")
        assert result.plan[0] == "self-query: gull, where year is at least 2020"
        assert result.hits[0].legs["text"].rank == 1

    def test_the_model_is_told_the_fields_and_their_values(self, vs: Cormorant) -> None:
        heard = []
        model = RunnableLambda(lambda prompt: heard.append(prompt.to_string()) or reply("gull"))
        SelfQueryRetriever.from_llm(model, vs, "notes on {birds}", search_type="text").invoke("q")
        assert "notes on {birds}" in heard[0]
        assert '"year"' in heard[0]
        assert "'boats'" in heard[0]
        assert "from 2019 to 2024" in heard[0]


class TestNeverWider:
    FILTERS = (
        'eq("tenant", "other")',
        'ne("tenant", "acme")',
        'or(eq("tenant", "other"), eq("tenant", "acme"))',
        'not(eq("tenant", "acme"))',
        'or(gte("year", 0), lt("year", 0))',
        'in("tenant", ["other"])',
        'like("tenant", "%")',
        "NO_FILTER",
        "eq(",
        'eq("nobody", 1)',
    )

    # These contradict the tenant's filter: nothing is left, and that is the right answer.
    EXCLUDING = FILTERS[:2] + FILTERS[3:4] + FILTERS[5:6]

    def left(self, filter: str) -> set[str]:
        return set() if filter in self.EXCLUDING else {"acme"}

    @pytest.mark.parametrize("filter", EXCLUDING)
    def test_what_contradicts_finds_others_where_nothing_forbids_it(
        self, vs: Cormorant, filter: str
    ) -> None:
        found = asking(vs, reply("gull", filter)).invoke("gull", k=10)
        assert {each.metadata["tenant"] for each in found} == {"other"}

    @pytest.mark.parametrize("filter", FILTERS)
    def test_than_the_fixed_filter(self, vs: Cormorant, filter: str) -> None:
        fixed = {"filter": {"tenant": "acme"}, "k": 10}
        found = asking(vs, reply("gull", filter), search_kwargs=fixed).invoke("gull")
        assert {each.metadata["tenant"] for each in found} == self.left(filter)

    @pytest.mark.parametrize("filter", FILTERS)
    def test_than_the_calls_filter(self, vs: Cormorant, filter: str) -> None:
        found = asking(vs, reply("gull", filter)).invoke("gull", filter={"tenant": "acme"}, k=10)
        assert {each.metadata["tenant"] for each in found} == self.left(filter)

    @pytest.mark.parametrize("filter", FILTERS)
    async def test_than_the_requests_scope(self, vs: Cormorant, filter: str) -> None:
        config = {"configurable": {"scope": {"tenant": "acme"}}}
        found = await asking(vs, reply("gull", filter)).ainvoke("gull", config)
        assert {each.metadata["tenant"] for each in found} == self.left(filter)

    @pytest.mark.parametrize("filter", FILTERS)
    def test_over_another_store_too(self, filter: str) -> None:
        store = InMemoryVectorStore.from_texts(
            [t for t, _ in ROWS], DeterministicFakeEmbedding(size=4), [m for _, m in ROWS]
        )
        retriever = asking(
            store,
            reply("gull", filter),
            search_type="similarity",
            search_kwargs={"k": 10, "filter": lambda doc: doc.metadata["tenant"] == "acme"},
        )
        found = retriever.invoke("gull")
        assert {each.metadata["tenant"] for each in found} == self.left(filter)

    def test_both_filters_hold(self, vs: Cormorant) -> None:
        fixed = {"filter": {"tenant": "acme"}}
        retriever = asking(vs, reply("gull", 'gte("year", 2024)'), search_kwargs=fixed)
        assert texts(retriever.invoke("new gulls")) == ["gull new"]

    def test_what_cannot_be_joined_is_refused(self) -> None:
        class Dialect(Visitor):
            allowed_comparators = None
            allowed_operators = None

            def visit_operation(self, operation: Any) -> Any: ...

            def visit_comparison(self, comparison: Any) -> str:
                return f"{comparison.attribute} == {comparison.value}"

            def visit_structured_query(self, structured_query: Any) -> Any:
                return structured_query.query, {"expr": structured_query.filter.accept(self)}

        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
        retriever = asking(
            store,
            reply("gull", 'eq("year", 1)'),
            search_type="similarity",
            search_kwargs={"expr": "tenant == acme"},
            structured_query_translator=Dialect(),
        )
        with pytest.raises(FilterError, match="cannot be joined"):
            retriever.invoke("gull")

    def test_a_scope_that_another_store_cannot_see_is_refused(self) -> None:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
        retriever = asking(store, reply("gull"), search_type="similarity")
        with pytest.raises(ScopeError):
            retriever.invoke("gull", {"configurable": {"scope": {"tenant": "acme"}}})


class TestGeneratedFiltersAreChecked:
    def test_against_the_fields_that_were_told(self, vs: Cormorant) -> None:
        result = asking(vs, reply("gull", 'eq("author", "me")')).retrieve("gulls by me")
        assert len(result) == 4
        assert "names 'author'; it may name tenant, year, topic" in result.degraded[0]
        assert "without a filter" in result.degraded[0]

    def test_against_the_fields_the_store_has(self, vs: Cormorant) -> None:
        more = [*FIELDS, {"name": "author", "description": "who", "type": "string"}]
        answer = reply("gull", 'eq("author", "me")')
        result = asking(vs, answer, metadata_field_info=more).retrieve("gulls by me")
        assert "names 'author', which no document of the store has" in result.degraded[0]

    def test_a_field_only_others_have_is_unknown_in_a_scope(self, vs: Cormorant) -> None:
        vs.add_texts(["gull secret"], [{"tenant": "other", "secret": 1}])
        retriever = asking(
            vs,
            reply("gull", 'eq("secret", 1)'),
            metadata_field_info=[
                *FIELDS,
                {"name": "secret", "description": "s", "type": "integer"},
            ],
        )
        assert not retriever.retrieve("gull").degraded
        result = retriever.retrieve("gull", {"configurable": {"scope": {"tenant": "acme"}}})
        assert "no document of the store has" in result.degraded[0]

    @pytest.mark.parametrize(
        "filter", ['eq("year", "last year")', 'gt("year", true)', 'in("year", ["x"])']
    )
    def test_values_of_another_type_are_refused(self, vs: Cormorant, filter: str) -> None:
        assert "of type integer" in asking(vs, reply("gull", filter)).retrieve("q gull").degraded[0]

    @pytest.mark.parametrize("answer", ["", "no idea", "[]", '{"a": 1}', reply("q", {"year": 1})])
    def test_what_is_no_structured_query_leaves_the_question(
        self, vs: Cormorant, answer: str
    ) -> None:
        result = asking(vs, answer).retrieve("gull")
        assert len(result) == 4
        assert "the question was searched as it was put" in result.degraded[0]

    def test_a_model_that_is_away_too(self, vs: Cormorant) -> None:
        retriever = SelfQueryRetriever.from_llm(Away(), vs, "notes", FIELDS, search_type="text")
        assert "ConnectionError" in retriever.retrieve("gull").degraded[0]

    def test_it_can_be_an_error(self, vs: Cormorant) -> None:
        retriever = asking(vs, reply("gull", 'eq("author", "me")'), on_llm_error="raise")
        with pytest.raises(RewriteError, match="author"):
            retriever.invoke("gull")


class TestMaking:
    def test_no_other_package_is_asked_for_a_translator(self) -> None:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
        assert asking(store, reply("a"), search_type="similarity").invoke("a") == []

        class Other(InMemoryVectorStore.__base__):
            def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
                return []

            @classmethod
            def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
                return cls()

        with pytest.raises(UsageError, match="needs a structured_query_translator for a Other"):
            asking(Other(), reply("a"))

    def test_fields_are_needed_where_the_store_cannot_be_asked(self, vs: Cormorant) -> None:
        with pytest.raises(UsageError, match="metadata_field_info is needed"):
            asking(vs.scope(tenant="acme"), reply("a"), metadata_field_info=None)

    def test_a_chain_of_ones_own(self, vs: Cormorant) -> None:
        chain = RunnableLambda(
            lambda _: StructuredQuery(
                query="gull", filter=Comparison(Comparator.EQ, "year", 2019), limit=None
            )
        )
        retriever = SelfQueryRetriever(vectorstore=vs, llm_chain=chain, search_type="text")
        assert retriever.llm_chain is chain
        assert texts(retriever.invoke("q")) == ["gull old"]

    @pytest.mark.parametrize(
        "wrong", [{"metadata_field_info": ["year"]}, {"chain_kwargs": {"fix": 1}}, {"filtr": {}}]
    )
    def test_wrong_arguments_are_refused(self, vs: Cormorant, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            asking(vs, reply("a"), **wrong)

    def test_a_store_that_requires_a_scope_keeps_requiring_it(self) -> None:
        with Store.open(":memory:", require_scope=("tenant",)) as store:
            retriever = asking(Cormorant(None, store=store), reply("a", 'eq("year", 1)'))
            with pytest.raises(ScopeError):
                retriever.invoke("a")

    def test_model_and_search_are_child_runs(self, vs: Cormorant) -> None:
        parents: dict[str, Any] = {}

        class Watch(BaseCallbackHandler):
            def on_retriever_start(self, serialized: Any, query: str, **kw: Any) -> None:
                parents[query] = (kw["run_id"], kw["parent_run_id"])

            def on_chain_start(self, serialized: Any, inputs: Any, **kw: Any) -> None:
                parents.setdefault(kw.get("name", ""), (kw["run_id"], kw["parent_run_id"]))

        asking(vs, reply("gull")).invoke("which gulls", {"callbacks": [Watch()]})
        root = parents["which gulls"][0]
        assert parents["gull"][1] == root
        assert parents["query_constructor"][1] == root
