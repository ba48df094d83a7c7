"""docs/langchain.md names every search type and argument there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cormorant.langchain import Cormorant, CormorantRetriever
from cormorant.langchain.request import ACCEPTED
from cormorant.langchain.vectorstore import _OWN

PAGE = (Path(__file__).parents[2] / "docs" / "langchain.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("search_type", ACCEPTED)
def test_every_search_type_has_its_row(search_type):
    assert f"\n| `{search_type}` |" in PAGE


@pytest.mark.parametrize("name", sorted({name for names in ACCEPTED.values() for name in names}))
def test_every_search_argument_is_named(name):
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", _OWN)
def test_every_constructor_argument_has_its_row(name):
    assert f"\n| `{name}` |" in PAGE


def test_every_score_has_its_row():
    with Cormorant.from_texts(["a fish"], None) as vs:
        (doc,) = vs.search("fish", "text", with_scores=True)
    for key in doc.metadata["_cormorant"]:
        assert f"`{key}`" in PAGE


def test_the_retriever_takes_what_the_searches_take():
    arguments = {name for names in ACCEPTED.values() for name in names}
    assert arguments <= set(CormorantRetriever.model_fields)
