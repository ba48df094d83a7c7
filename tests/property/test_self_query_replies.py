"""Whatever a model replies: does it end in a StructuredQuery or an error of the package's own?"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.structured_query import StructuredQuery
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import FAKE, ByQuestion, says

from cormorant.errors import RewriteError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import MultiQueryRetriever, SelfQueryRetriever
from cormorant.langchain.retrievers.asking.rewriting import passage, questions
from cormorant.langchain.retrievers.document_compressors import LLMListwiseRerank, RerankError
from cormorant.langchain.retrievers.self_query import AttributeInfo, StructuredQueryOutputParser
from cormorant.langchain.retrievers.self_query.expression import parse_expression

PARSER = StructuredQueryOutputParser()
FIELDS = [
    AttributeInfo(name="tenant", description="whose", type="string"),
    AttributeInfo(name="year", description="of writing", type="integer"),
    AttributeInfo(name="open", description="to all", type="boolean"),
    AttributeInfo(name="day", description="when", type="date"),
]
ROWS = [
    {"tenant": "acme", "year": 2019, "open": True},
    {"tenant": "acme", "year": 2024, "tags": ["a", "b"]},
    {"tenant": "rival", "year": 2024, "open": False, "tags": ["a"]},
]

# Pieces that an expression is made of, and such as break one.
PIECES = [
    *("and(", "or(", "not(", "eq(", "ne(", "gt(", "in(", "nin(", "like(", "contain(", "EQ ("),
    *('"tenant"', '"year"', "'day'", "year", '"nobody"', '"a.b"', '"$or"', '""', '"\\ud800"'),
    *("1", "-2.5", "1e999", "9" * 30, "9" * 5000, ".5", "0x1", "²", "٣", "1_000", "NaN", "inf"),
    *("2024-01-05", "2024-99-99", "2024-01-05T09:30Z", "0000-00-00", "２０２４-01-05"),
    *("true", "False", "null", "[", "]", "(", ")", ",", '"', "'", "\\", "%", "{", "}", " ", "\n"),
    *("鱼", "\x00", "\x1b[0m", "\ud83d", "🐟"),
]


def refusal(read: Callable[[str], Any], text: str) -> str:
    """What is said of a text that is refused; nothing of one that is read."""
    try:
        read(text)
    except RewriteError as error:
        return str(error)
    return ""


expressions = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@st.composite
def filters(draw: st.DrawFn, depth: int = 3) -> str:
    """An expression that is well formed, over any field and value."""
    if depth and draw(st.booleans()):
        name = draw(st.sampled_from(["and", "or", "not"]))
        parts = draw(st.lists(filters(depth=depth - 1), min_size=1, max_size=3))
        return f"{name}({', '.join(parts)})"
    name = draw(st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "like"]))
    name = draw(st.sampled_from([name, "contain"]))
    field = draw(st.sampled_from(["tenant", "year", "open", "day", "tags", "nobody"]))
    scalar = st.one_of(
        st.integers(-(10**25), 10**25).map(str),
        st.floats().map(str),
        st.text(max_size=6).map(json.dumps),
        st.sampled_from(["true", "2024-01-05", "2024-13-01", '"rival"', '"acme"', "2024", '"%"']),
    )
    value = draw(scalar | st.lists(scalar, max_size=4).map(lambda each: f"[{', '.join(each)}]"))
    return f'{name}("{field}", {value})'


@settings(max_examples=120, deadline=None)
@given(expressions | filters() | st.text(max_size=40))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    assert len(refusal(parse_expression, text)) < 1500


@settings(max_examples=120, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.dictionaries(st.sampled_from(["query", "filter", "limit", "x"]), values).map(json.dumps),
        st.builds(
            lambda query, where, limit, around: around.replace(
                "@", json.dumps({"query": query, "filter": where, "limit": limit})
            ),
            st.text(max_size=8),
            expressions,
            values | st.sampled_from(["²", "٣", "9" * 5000, " 3 ", "-1", 10**30, 0, True]),
            st.sampled_from(
                ["@", "Sure! @ Done.", "```json\n@\n```", "<think>{</think>@", "{@", "@}"]
            ),
        ),
    )
)
def test_any_reply_is_a_structured_query_or_is_refused(reply: str) -> None:
    says_what = refusal(PARSER.parse, reply)
    assert len(says_what) < 1500
    if not says_what:
        made = PARSER.parse(reply)
        assert isinstance(made, StructuredQuery)
        assert made.limit is None or made.limit > 0


@pytest.fixture(scope="module")
def stores() -> Any:
    texts = [f"gull {number}" for number in range(len(ROWS))]
    memory = InMemoryVectorStore.from_texts(texts, FAKE, ROWS)
    with Cormorant.from_texts(texts, FAKE, ROWS) as vs:
        yield {"text": vs, "similarity": memory}


@pytest.mark.parametrize("search_type", ["text", "similarity"])
@settings(max_examples=80, deadline=None)
@given(filter=filters(), told=st.booleans())
def test_any_filter_ends_in_documents_of_the_scope(
    stores: Any, search_type: str, filter: str, told: bool
) -> None:
    """No error reaches the caller, and nothing from outside the fixed filter does."""
    vs = stores[search_type]
    fixed: Any = {"tenant": "acme"}
    if search_type == "similarity":
        fixed = lambda doc: doc.metadata["tenant"] == "acme"  # noqa: E731
    retriever = SelfQueryRetriever.from_llm(
        says(json.dumps({"query": "gull", "filter": filter})),
        vs,
        "notes",
        FIELDS if told or search_type == "similarity" else None,
        search_type=search_type,
        search_kwargs={"filter": fixed, "k": 9},
    )
    result = retriever.retrieve("gull")
    assert {hit.metadata["tenant"] for hit in result} <= {"acme"}
    assert len(" ".join(result.degraded)) < 2000


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, "\n", "1. ", "一、", "- ", "```", "<think>", "以下是"]))
    .map("".join)
    .filter(lambda text: "\ud83d" not in text)
)
def test_any_reply_is_read_as_questions_passage_and_order(reply: str) -> None:
    assert all(line.strip() for line in questions(reply, "who"))
    passage(reply, "who")
    child = ByQuestion()
    MultiQueryRetriever.from_llm(child, says(reply)).invoke("a")
    assert "a" in child.asked
    documents = [Document("one"), Document("two")]
    with contextlib.suppress(RerankError):
        LLMListwiseRerank.from_llm(says(reply)).invoke({"query": "?", "documents": documents})


MANY = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * MANY,
        "(" * MANY,
        "{" * MANY,
        "}" * MANY,
        "{}" * MANY,
        '{"query":' * MANY,
        "and(" * MANY,
        'eq("a",' + "[" * MANY,
        'eq("a",' + "9" * MANY + ")",
        'eq("a",' + "9" * MANY + ".0)",
        'eq("a",1e' + "9" * MANY + ")",
        'eq("' + "a" * MANY,
        'eq("a", "' + "\\" * MANY,
        "and(" + 'eq("a",1),' * (MANY // 10),
        'in("a",[' + "1," * MANY + "1])",
        " " * MANY + "x" + " " * MANY,
        '"' * MANY,
        "2024-01-" * MANY,
        "a." * MANY,
    ],
    ids=range(19),
)
def test_a_reply_that_runs_on_ends_in_linear_time(text: str) -> None:
    """Each would take minutes if it did not, or all of Python's stack."""
    for reply in (
        text,
        json.dumps({"query": "a", "filter": text}),
        '{"query":"a","filter":' + text,
    ):
        assert len(refusal(PARSER.parse, reply)) < 1500


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("3", 3),
        (" 3 ", 3),
        (3, 3),
        ("²", None),
        ("٣", None),
        ("-1", None),
        (0, None),
        (2.5, None),
        (True, None),
        ("9" * 5000, None),
        (10**30, 10**30),
        ([3], None),
    ],
)
def test_a_limit_is_a_number_of_documents_or_none(limit: Any, count: int | None) -> None:
    assert PARSER.parse(json.dumps({"query": "a", "limit": limit})).limit == count


def test_a_filter_that_was_cut_off_is_not_searched_without_its_rest() -> None:
    whole = '{"query": "gull", "filter": "eq(\\"tenant\\", \\"acme\\")"}'
    for end in range(len(whole)):
        with pytest.raises(RewriteError):
            PARSER.parse(whole[:end])
    assert PARSER.parse(whole).filter is not None
