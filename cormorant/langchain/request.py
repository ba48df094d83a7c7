"""What was asked, in LangChain's words, and what is that as a Query?

One table says which search type takes which arguments. Everything else is refused, here,
so that a misspelt ``filter`` never silently returns another tenant's documents.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import QueryError, UsageError
from cormorant.langchain.filtering import engine_filter
from cormorant.model import Mode, Query, VectorLike

__all__ = ["ACCEPTED", "SEARCH_TYPES", "Request", "check_text", "refuse_unknown"]

_COMMON = ("k", "filter", "score_threshold", "with_scores", "fetch_k")
_FUSION = ("vector_weight", "keyword_weight", "fusion", "rrf_k")

ACCEPTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "similarity": (*_COMMON, "exact"),
        "similarity_score_threshold": (*_COMMON, "exact"),
        "mmr": (*_COMMON, "exact", "lambda_mult"),
        "hybrid": (*_COMMON, "exact", "lambda_mult", *_FUSION),
        "text": _COMMON,
    }
)
"""Search type to the arguments it takes."""

SEARCH_TYPES: Final = tuple(ACCEPTED)

_MODES: Final[Mapping[str, Mode]] = MappingProxyType(
    {
        "similarity": "vector",
        "similarity_score_threshold": "vector",
        "mmr": "vector",
        "hybrid": "hybrid",
        "text": "text",
    }
)

# LangChain's name to the engine's, where they differ.
_ENGINE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "k": "top_k",
        "score_threshold": "min_score",
        "lambda_mult": "mmr_lambda",
    }
)
# Where one thing has two names, one is easily given where the other is taken.
_PAIRED: Final = (
    ("k", "top_k", "top_n"),
    ("c", "rrf_k"),
    ("score_threshold", "min_score", "min_rerank_score", "similarity_threshold"),
    ("lambda_mult", "mmr_lambda"),
    ("token_budget", "max_tokens"),
    ("vector_weight", "alpha"),
    ("embedding", "embedding_function", "embeddings"),
)
_WEIGHTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "vector_weight": "vector",
        "keyword_weight": "text",
    }
)


@dataclass(frozen=True, slots=True)
class Request:
    """A search, checked: all of it but the question.

    Attributes:
        search_type: One of :data:`SEARCH_TYPES`.
        mode: The legs it runs.
        settings: The Query's other fields.
        with_scores: Whether Documents carry their scores.
    """

    search_type: str
    mode: Mode
    settings: Mapping[str, Any] = field(default_factory=dict)
    with_scores: bool = False

    @classmethod
    def build(cls, search_type: str, arguments: Mapping[str, Any]) -> Request:
        """Check a search's arguments.

        Args:
            search_type: One of :data:`SEARCH_TYPES`.
            arguments: By LangChain's names; one that is None counts as not given.

        Raises:
            QueryError: On an unknown search type, or a value outside its range.
            UsageError: On an argument the search type does not take.
            FilterError: On a filter that is not one.
        """
        if not isinstance(search_type, str) or search_type not in ACCEPTED:
            raise QueryError(
                f"search_type must be one of {', '.join(SEARCH_TYPES)}; got {search_type!r}."
                f"{_nearest(search_type, SEARCH_TYPES)}"
            )
        refuse_unknown(arguments, ACCEPTED[search_type], f"search_type={search_type!r}")
        given = {name: value for name, value in arguments.items() if value is not None}
        with_scores = given.pop("with_scores", False)
        if not isinstance(with_scores, bool):
            raise QueryError(f"with_scores must be True or False; got {with_scores!r}.")
        settings: dict[str, Any] = {"top_k": given.pop("k", defaults.LANGCHAIN_K)}
        if search_type == "mmr":
            settings["mmr_lambda"] = defaults.MMR_LAMBDA
        if "filter" in given:
            settings["filter"] = engine_filter(given.pop("filter"))
        weights = {leg: given.pop(name) for name, leg in _WEIGHTS.items() if name in given}
        if weights:
            settings["weights"] = {
                "vector": defaults.WEIGHT,
                "text": defaults.WEIGHT,
                **weights,
            }
        settings.update({_ENGINE_NAMES.get(name, name): value for name, value in given.items()})
        request = cls(search_type, _MODES[search_type], settings, with_scores)
        # The Query checks the ranges; a stand-in for the question lets it do so now.
        request.query("stand-in", (0.0,))
        return request

    @property
    def needs_vector(self) -> bool:
        """Whether the question must be embedded."""
        return self.mode != "text"

    def query(self, text: str | None, vector: VectorLike | None) -> Query:
        """The Query for a question.

        Raises:
            QueryError: On a value outside its range, under the name LangChain gives it.
        """
        try:
            return Query(
                text=text,
                vector=vector if self.needs_vector else None,
                mode=self.mode,
                **self.settings,
            )
        except QueryError as error:
            raise QueryError(_in_langchain_words(str(error))) from error


def check_text(text: object) -> str:
    """The question, if it is one.

    Raises:
        QueryError: If it is not a string, or is blank.
    """
    if not isinstance(text, str):
        raise QueryError(f"The query must be a string; got {type(text).__name__}.")
    if not text.strip():
        raise QueryError(f"The query must not be empty; got {text!r}.")
    return text


def refuse_unknown(given: Iterable[str], accepted: Iterable[str], whose: str) -> None:
    """Refuse arguments nobody reads.

    Raises:
        UsageError: Naming what is accepted, and the nearest name.
    """
    names = tuple(accepted)
    unknown = [name for name in given if name not in names]
    if not unknown:
        return
    elsewhere = [kind for kind, taken in ACCEPTED.items() if unknown[0] in taken]
    hint = _nearest(unknown[0], names)
    if elsewhere and whose.startswith("search_type="):
        hint = f" It belongs to {' and '.join(repr(kind) for kind in elsewhere)}."
    raise UsageError(
        f"{whose} does not take {', '.join(repr(name) for name in unknown)}; "
        f"it takes {', '.join(names)}.{hint}"
    )


def _nearest(name: object, names: Iterable[str]) -> str:
    taken = list(names)
    paired = {other for same in _PAIRED if name in same for other in same}
    close = [other for other in taken if other in paired]
    close = close or difflib.get_close_matches(str(name), taken, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _in_langchain_words(message: str) -> str:
    for theirs, ours in _ENGINE_NAMES.items():
        message = re.sub(rf"\b{ours}\b", theirs, message)
    for theirs, leg in _WEIGHTS.items():
        message = message.replace(f"weights[{leg!r}]", theirs)
    return message.replace(
        "weights must not all be 0", "vector_weight and keyword_weight must not both be 0"
    )
