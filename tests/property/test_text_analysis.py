"""What holds of the analyzer for any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.analysis import Analyzer
from cormorant.analysis.identifiers import LONGEST
from cormorant.analysis.t2s import SIMPLIFIED, TRADITIONAL

ANALYZERS = {language: Analyzer(language) for language in ("english", "german", "none")}
PIECES = st.sampled_from(
    [
        *(
            "the",
            "Running",
            "getUserName",
            "ERR_1042",
            "v0.3.7",
            "café",
            "Straße",
            "it's",
            "e-mail",
        ),
        *(
            "1,000",
            "12:30",
            "#4421",
            "C++",
            ".NET",
            "数据库",
            "數據庫",
            "カタカナ",
            "한국어",
            "ไทย",
        ),
        *(" ", "  ", ".", "-", "_", "'", "’", "@", "&", "#", "+", ",", ":", "\n", "\0", "½", "²"),
        *(
            "हिन्दी",
            "🚀",
            "\u200d",
            "\u00ad",
            "ﬁ",
            "Ａ",
            "\ud800",
            "İ",
            "ǅ",
            "ß",
            "٣",
            "ﷺ",
            "x" * 99,
        ),
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=12).map("".join))
languages = pytest.mark.parametrize("language", ANALYZERS)


@languages
@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
def test_terms_are_terms(language, text):
    for term in ANALYZERS[language].terms(text):
        assert term
        assert term.split() == [term], "no white space"
        assert len(term) <= 2 * LONGEST + 1
        term.encode()  # no lone surrogates
        assert unicodedata.is_normalized("NFC", term)


@languages
@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
def test_a_text_has_all_terms_of_its_own_query(language, text):
    analyzer = ANALYZERS[language]
    terms = analyzer.terms(text)
    queried = analyzer.query_terms(text)
    assert set(queried) <= set(terms)
    assert bool(queried) == bool(terms), "a query is empty only if there is nothing to look for"


@settings(deadline=None, max_examples=150)
@given(text=TEXTS, other=TEXTS)
def test_lines_do_not_touch(text, other):
    analyzer = ANALYZERS["english"]
    assert analyzer.terms(f"{text}\n{other}") == analyzer.terms(text) + analyzer.terms(other)


@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
def test_composed_or_not_is_the_same(text):
    analyzer = ANALYZERS["english"]
    composed = unicodedata.normalize("NFC", text)
    assert analyzer.terms(composed) == analyzer.terms(unicodedata.normalize("NFD", composed))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, len(TRADITIONAL) - 1), min_size=1, max_size=20))
def test_traditional_finds_simplified(positions):
    analyzer = ANALYZERS["english"]
    traditional = "".join(TRADITIONAL[i] for i in positions)
    simplified = "".join(SIMPLIFIED[i] for i in positions)
    assert analyzer.terms(traditional) == analyzer.terms(simplified)
    assert analyzer.query_terms(traditional) == analyzer.query_terms(simplified)


def test_the_table_folds_once_and_for_all():
    assert len(TRADITIONAL) == len(SIMPLIFIED) == len(set(TRADITIONAL))
    assert not set(TRADITIONAL) & set(SIMPLIFIED)
