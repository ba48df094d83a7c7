"""A wrong constructor call is refused in the package's words: every public class of the toolkit."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import math
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parents[1]))
from toolkitlab import ALL, NOT_MADE, Parts, public

from cormorant.errors import ConfigError, CormorantError, MissingDependency, UsageError
from cormorant.langchain import retrievers
from cormorant.langchain.retrievers.boost import Priority, TitleHit
from cormorant.langchain.retrievers.document_compressors import cross_encoder

MODELS = [name for name in ALL if issubclass(public()[name], BaseModel)]


BOOSTS = {"Priority": Priority, "TitleHit": TitleHit}
MADE_BY_DEFAULT = {
    ("BM25Retriever", "vectorstore"),
    ("SelfQueryRetriever", "structured_query_translator"),
}


class Odd:
    """Nothing anybody expects."""


RUBBISH = [
    *(None, True, 0, -1, 3, 10**40, 0.5, math.nan, math.inf, "", "x", "\ud800", b"x"),
    *((), [], {}, [None], [3], ["x"], {"x": None}, {3: 3}, {"x"}, Odd(), Odd, len, lambda: None),
]


def _needs_the_extra(kind, given):
    """Without a model one is loaded, by sentence-transformers."""
    if importlib.util.find_spec("sentence_transformers") is None:
        with pytest.raises(MissingDependency, match=r"pip install 'cormorant\[rerank\]'"):
            kind(**given)
    else:
        assert kind(**given).model.model_name


@pytest.fixture(scope="module")
def parts():
    made = Parts()
    yield made
    made.close()


def test_every_public_class_stands_in_the_tables():
    assert set(public()) == set(ALL) | NOT_MADE
    assert not set(ALL) & NOT_MADE


@pytest.mark.parametrize("name", MODELS)
def test_what_is_missing_is_named(name, parts):
    kind, given = public()[name], ALL[name](parts)
    for argument in given:
        without = {key: value for key, value in given.items() if key != argument}
        field = kind.model_fields[argument]
        if not field.is_required():
            continue
        if (name, argument) in MADE_BY_DEFAULT:
            kind(**without)
        elif name == "CrossEncoderReranker":
            _needs_the_extra(kind, without)
        else:
            with pytest.raises(UsageError, match=rf"\b{argument}\b"):
                kind(**without)


@pytest.mark.parametrize("name", MODELS)
def test_no_arguments_at_all_are_the_packages_own_error_or_fine(name):
    kind = public()[name]
    if name == "CrossEncoderReranker":
        _needs_the_extra(kind, {})
    elif any(f.is_required() for f in kind.model_fields.values()) and name != "BM25Retriever":
        with pytest.raises(UsageError, match=r"must|needs"):
            kind()
    else:
        assert kind()


@pytest.mark.parametrize("name", MODELS)
def test_settings_without_a_name_are_refused_with_the_names(name):
    with pytest.raises(ConfigError, match=r"takes its settings by name; got 1 .*Write \w+\(\w+=…"):
        public()[name](3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("argument", ["nothing", "K", "_config"])
def test_what_nobody_reads_is_refused_with_what_is_taken(name, argument, parts):
    with pytest.raises(UsageError, match=f"does not take '{argument}'; it takes"):
        public()[name](**{**ALL[name](parts), argument: 1})


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_value_is_taken_or_refused_in_the_packages_words(name, parts):
    """No ValidationError, no TypeError, whatever a field is given."""
    kind, given = public()[name], ALL[name](parts)
    refused: list[str] = []
    for field in kind.model_fields:
        for value in RUBBISH:
            try:
                kind(**{**given, field: value})
            except CormorantError as error:
                refused.append(str(error))
            except Exception as error:  # noqa: BLE001 - the point: there must be no other
                pytest.fail(f"{name}({field}={value!r:.40}): {type(error).__name__}: {error}")
    assert len(refused) > len(RUBBISH), "most of it is wrong for most fields"
    assert all(len(says) > 20 for says in refused), refused


PLAIN = [*(name for name in ALL if name not in MODELS), "HuggingFaceCrossEncoder", *BOOSTS]


@pytest.mark.parametrize("name", PLAIN)
def test_so_it_is_with_those_that_are_no_models(name, parts, monkeypatch):
    """Python itself says which arguments a plain class takes; their values are ours to judge."""
    monkeypatch.setattr(cross_encoder, "find_spec", lambda name: name)  # as if it were installed
    kind = BOOSTS.get(name) or public()[name]
    given = {"Priority": {"field": "a", "factors": {}}}.get(name) or (
        ALL[name](parts) if name in ALL else {}
    )
    refused = []
    for argument in inspect.signature(kind).parameters:
        for value in RUBBISH:
            try:
                kind(**{**given, argument: value})
            except UsageError as error:
                refused.append(str(error))
            except Exception as error:  # noqa: BLE001 - the point: there must be no other
                pytest.fail(f"{name}({argument}={value!r:.40}): {type(error).__name__}: {error}")
    assert refused or not inspect.signature(kind).parameters
    assert all(len(says) > 20 for says in refused)


@pytest.mark.parametrize("name", [name for name in MODELS if "tags" in public()[name].model_fields])
def test_pydantics_own_complaints_say_what_came_and_what_is_taken(name, parts):
    with pytest.raises(ConfigError, match=r"tags must be a valid list; got 'x'\. \w+ takes .*tags"):
        public()[name](**{**ALL[name](parts), "tags": "x"})
    with pytest.raises(ValueError, match=r"metadata must be a valid dictionary; got 3"):
        public()[name](**{**ALL[name](parts), "metadata": 3})  # as LangChain's users catch it


def test_an_element_of_a_list_is_named_by_its_place(parts):
    words = parts.words()
    with pytest.raises(
        ConfigError, match=r"retrievers\[1\] must be an instance of Runnable; got 3"
    ):
        public()["MergerRetriever"](retrievers=[words, 3])


@pytest.mark.parametrize("name", MODELS)
def test_what_nobody_reads_is_said_before_what_is_missing(name):
    # What is missing was given under a wrong name, more often than not.
    with pytest.raises(UsageError, match="does not take 'misnamed'; it takes"):
        public()[name](misnamed=1)


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("EnsembleRetriever", "top_k", "k"),
        ("EnsembleRetriever", "rrf_k", "c"),
        ("HybridRetriever", "alpha", "vector_weight"),
        ("HybridRetriever", "c", "rrf_k"),
        ("BM25Retriever", "top_k", "k"),
        ("BM25Retriever", "min_score", "score_threshold"),
        ("CrossEncoderReranker", "k", "top_n"),
        ("CrossEncoderReranker", "score_threshold", "min_rerank_score"),
        ("ContextualCompressionRetriever", "compressor", "base_compressor"),
        ("EmbeddingsFilter", "embedding", "embeddings"),
        ("TokenBudgetPacker", "max_tokens", "token_budget"),
    ],
)
def test_the_other_name_of_a_thing_is_answered_with_this_ones(name, given, meant):
    with pytest.raises(UsageError, match=rf"does not take '{given}'; .* Did you mean '{meant}'\?"):
        public()[name](**{given: 3})


def test_what_every_runnable_has_stands_last_in_what_is_taken():
    with pytest.raises(UsageError, match=r"it takes \w*model.*, name, tags, metadata\.|name\."):
        public()["CrossEncoderReranker"](nothing=1)
    with pytest.raises(UsageError, match=r"it takes .*doc_id.*, name, tags, metadata\."):
        public()["MultiVectorRetriever"](nothing=1)


TAKES_A_RETRIEVER = [
    (name, argument)
    for name in MODELS
    for argument in ("retriever", "base_retriever", "vector_retriever", "keyword_retriever")
    if argument in public()[name].model_fields
]


@pytest.mark.parametrize(("name", "argument"), TAKES_A_RETRIEVER)
def test_a_vector_store_in_a_retrievers_place_is_told_how_to_become_one(name, argument, parts):
    with pytest.raises(UsageError, match=rf"{argument} must be .*Give its as_retriever\(\)\."):
        public()[name](**{**ALL[name](parts), argument: parts.store()})


@pytest.mark.parametrize("name", ["EnsembleRetriever", "MergerRetriever"])
def test_so_are_a_vector_store_and_a_function_in_a_list(name, parts):
    for given, hint in ((parts.store(), r"Give its as_retriever\(\)"), (len, "in RunnableLambda")):
        with pytest.raises(ConfigError, match=rf"retrievers\[1\] must be .*{hint}"):
            public()[name](retrievers=[parts.words(), given])


TAKES_A_VECTOR_STORE = [
    name
    for name in MODELS
    if public()[name].model_fields.get("vectorstore") and name != "BM25Retriever"
]


@pytest.mark.parametrize("name", TAKES_A_VECTOR_STORE)
def test_a_retriever_in_a_vector_stores_place_is_told_where_that_is(name, parts):
    given = {**ALL[name](parts), "vectorstore": parts.store().as_retriever()}
    with pytest.raises(ConfigError, match=r"CormorantRetriever.*Give the vector store"):
        public()[name](**given)


HERE = Path(retrievers.__file__).parent
FILES = sorted([*HERE.rglob("*.py"), *(HERE.parent / "document_transformers").glob("*.py")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_number_that_holds_when_nobody_said_one_stands_in_defaults(path):
    """0 and 1 change nothing where they stand: no overhead, no factor."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    values: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            values += [each.value for each in node.body if isinstance(each, ast.AnnAssign)]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            values += [*node.args.defaults, *node.args.kw_defaults]
    numbers = [
        each.value
        for each in values
        if isinstance(each, ast.Constant)
        and isinstance(each.value, (int, float))
        and each.value not in {0, 1}
    ]
    assert not numbers, f"{path.name}: put {numbers} into defaults.py, with a row in defaults.md"
