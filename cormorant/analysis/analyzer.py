"""How does a text become terms?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from cormorant.analysis.grams import grams, query_grams
from cormorant.analysis.identifiers import Name, names, pieces
from cormorant.analysis.languages import resolve
from cormorant.analysis.normalise import fold_accents, fold_digits, fold_han, normalise
from cormorant.analysis.stems import digest, stemmer
from cormorant.analysis.stopwords import STOP_WORDS
from cormorant.analysis.tokens import is_unspaced, token_pattern
from cormorant.errors import ConfigError

__all__ = ["Analyzer", "analyzer_for", "analyzer_from_spec"]

_NAME: Final = "cormorant"
_VERSION: Final = 1  # raised when the same text would give other terms
_CACHED_TOKENS: Final = 32_768
_CACHED_LENGTH: Final = 48
# Written without accents, but for borrowed words: folding first lets the stemmer see one spelling.
_ACCENTS_ARE_FOREIGN: Final = frozenset({"english", "indonesian", "none"})


class Analyzer:
    """Text → terms, for the index and for the query.

    Thread-safe; equal texts give equal terms in every process.

    Args:
        language: One of :data:`cormorant.analysis.LANGUAGES` or its ISO 639-1 code: whose
            stems and stop words apply to words between spaces.

    Raises:
        ConfigError: If there is no stemmer for the language.

    Example:
        >>> analyzer = Analyzer()
        >>> analyzer.terms("Running CUDA 12.1")
        ['run', 'cuda', '12.1', '12.1.']
        >>> analyzer.query_terms("where is the ERR_1042?")
        ['err_1042', 'err_1042', 'err1042', 'err', '1042']
        >>> analyzer.query_terms("臺灣") == analyzer.query_terms("台湾")
        True
    """

    def __init__(self, language: str = "english") -> None:
        self.language = resolve(language)
        self._stop_words = STOP_WORDS.get(self.language, frozenset())
        self._fold_first = self.language in _ACCENTS_ARE_FOREIGN
        self._stemmer = None if self.language == "none" else stemmer(self.language)
        self._lock = threading.Lock()
        self._find = token_pattern().findall
        self._index_terms = _TokenTerms(self._expand)
        self._query_terms = _TokenTerms(self._expand_query)

    @property
    def spec(self) -> Mapping[str, Any]:
        """What a store keeps, JSON-ready: analyzers of one spec give equal terms."""
        return MappingProxyType(
            {
                "name": _NAME,
                "version": _VERSION,
                "language": self.language,
                "stems": "" if self.language == "none" else digest(self.language),
            }
        )

    def terms(self, text: str) -> list[str]:
        """Index side.

        Args:
            text: Any string; control characters separate, lone surrogates are passed over.

        Returns:
            Terms in the order of the text, repeats kept.
        """
        tokens = self._find(normalise(text))
        return list(chain.from_iterable(map(self._index_terms.__getitem__, tokens)))

    def query_terms(self, text: str) -> list[str]:
        """Query side: stop words dropped unless nothing else remains.

        Args:
            text: Any string.

        Returns:
            Terms in the order of the text, repeats kept (they count in the score).
        """
        tokens = self._find(normalise(text))
        kept = list(chain.from_iterable(map(self._query_terms.__getitem__, tokens)))
        return kept or self.terms(text)

    def _expand(self, token: str) -> list[str]:
        if is_unspaced(token):
            return grams(fold_han(token))
        return [term for piece in pieces(token) for term in self._stems(names(fold_digits(piece)))]

    def _expand_query(self, token: str) -> list[str]:
        if is_unspaced(token):
            return query_grams(fold_han(token))
        terms: list[str] = []
        for piece in pieces(token):
            found = [n for n in names(fold_digits(piece)) if n.text not in self._stop_words]
            stems = self._stems(found)
            if len(stems) > 1 and not (found[0].word or found[0].text.isalpha()):
                terms.append(stems[0])  # the exact form of an identifier counts twice
            terms += stems
        return terms

    def _stems(self, found: list[Name]) -> list[str]:
        stems = list(map(self._term, found))
        return stems if len(stems) == 1 else list(dict.fromkeys(stems))

    def _term(self, name: Name) -> str:
        text = name.text
        if self._fold_first:
            text = fold_accents(text)
        if not name.word:
            # Set apart from stems: load_user_configs is no exact match for loadUserConfig.
            return f"={fold_accents(text)}" if text.isalpha() else fold_accents(text)
        if self._stemmer is not None:
            with self._lock:
                text = self._stemmer.stemWord(text)
        return fold_accents(text)

    def __repr__(self) -> str:
        return f"Analyzer(language={self.language!r})"


class _TokenTerms(dict[str, list[str]]):
    """Token → terms, remembered for as long as there is room."""

    def __init__(self, expand: Callable[[str], list[str]]) -> None:
        super().__init__()
        self._expand = expand

    def __missing__(self, token: str) -> list[str]:
        terms = self._expand(token)
        if len(token) == 1 or (len(token) <= _CACHED_LENGTH and token[0] < "\u0e00"):
            if len(self) >= _CACHED_TOKENS:
                self.clear()
            self[token] = terms
        return terms


def analyzer_for(language: str) -> Analyzer:
    """The analyzer a store is made with.

    Raises:
        ConfigError: If there is no stemmer for the language.
    """
    return Analyzer(language)


def analyzer_from_spec(spec: Mapping[str, Any]) -> Analyzer:
    """The analyzer a store was made with.

    Args:
        spec: What :attr:`Analyzer.spec` gave when the store was made.

    Raises:
        ConfigError: If this release would give other terms than the ones in the store.
    """
    known = {"name", "version", "language", "stems"}
    if not isinstance(spec, Mapping) or set(spec) != known:
        raise ConfigError(
            f"An analyzer's spec has the keys {', '.join(sorted(known))}; got {spec!r}. "
            "Take it from Analyzer(language).spec."
        )
    if spec["name"] != _NAME or spec["version"] != _VERSION:
        raise ConfigError(
            f"The store's text was analysed by {spec['name']!r} version {spec['version']!r}; this "
            f"release has {_NAME!r} version {_VERSION}. Open it with the release that made it, or "
            "build a new store from its records."
        )
    analyzer = Analyzer(spec["language"])
    if spec["stems"] != analyzer.spec["stems"]:
        raise ConfigError(
            f"The installed PyStemmer stems some {analyzer.language} words in another way than the "
            f"one the store was made with (stems {spec['stems']!r}, now "
            f"{analyzer.spec['stems']!r}), and records would be missed. Install the PyStemmer "
            "release the store was made with, or build a new store from its records."
        )
    return analyzer
