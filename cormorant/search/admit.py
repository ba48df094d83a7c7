"""Which records may a search return: alive, in the scope, and past the filter?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cormorant.errors import FilterError
from cormorant.filters import Filter, parse
from cormorant.index.contract import Mask
from cormorant.model import FilterLike, Record

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

_BATCH = 1000  # records fetched in one go for a predicate

__all__ = ["Condition", "admitted", "matching", "text_match"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A caller's filter, understood: at most one of the two is set.

    Attributes:
        parsed: From a dict in the filter language.
        predicate: A callable on a Record.
    """

    parsed: Filter | None = None
    predicate: Callable[[Record], bool] | None = None

    @classmethod
    def of(cls, filter: FilterLike | Filter | None) -> Condition:
        """Understand a filter.

        Raises:
            FilterError: If it is neither a dict that parses nor callable.
        """
        if filter is None:
            return cls()
        if isinstance(filter, (Mapping, Filter)):
            return cls(parsed=parse(filter))
        if inspect.iscoroutinefunction(filter) or inspect.iscoroutinefunction(
            getattr(filter, "__call__", None)  # noqa: B004 - an object with an async __call__
        ):
            raise FilterError(
                "The filter callable is async, so its answer would be a coroutine, which is always "
                "true. Give a plain function."
            )
        if callable(filter):
            return cls(predicate=filter)
        raise FilterError(
            "A filter is a dict in the filter language, such as {'year': {'$gte': 2024}}, or a "
            f"callable on a Record; got a {type(filter).__name__}."
        )


def matching(snapshot: Snapshot, filter: FilterLike | Filter | None = None) -> Mask:
    """Where is a live record, inside the scope, that the filter lets through?

    Args:
        snapshot: Of the store.
        filter: A dict, or a predicate, called on every record the scope admits.

    Returns:
        bool, shape (n,); not to be written to.

    Raises:
        FilterError: On a filter that does not parse, or a predicate that raises.
    """
    mask = admitted(snapshot, Condition.of(filter))
    return snapshot.alive if mask is None else mask


def admitted(snapshot: Snapshot, condition: Condition) -> Mask | None:
    """The same for a filter that is understood; None if every slot passes."""
    mask = snapshot.alive if snapshot.dead else None
    for clause in (snapshot.scope, condition.parsed):
        if clause is not None:
            column = snapshot.columns.mask(clause, text_mask=lambda w: _text_mask(snapshot, w))
            mask = column if mask is None else mask & column
    if condition.predicate is not None:
        mask = _ask(snapshot, condition.predicate, mask)
    return mask


def text_match(snapshot: Snapshot) -> Callable[[str, str], bool]:
    """``$text`` on a single record, as the mask decides it for all of them."""
    terms = snapshot.analyzer.terms

    def holds(words: str, text: str) -> bool:
        wanted = set(terms(words))
        return bool(wanted) and wanted <= set(terms(text))

    return holds


def _text_mask(snapshot: Snapshot, words: str) -> Mask:
    terms = snapshot.analyzer.terms(words)
    if not terms:
        raise FilterError(
            f"The filter's $text {words!r} holds no term that could be searched, so it could let "
            "nothing through. Give words, or leave the clause out."
        )
    return snapshot.text.contains_all(terms)


def _ask(snapshot: Snapshot, predicate: Callable[[Record], bool], mask: Mask | None) -> Mask:
    """Call the predicate on every record that passed so far, and on no other."""
    passed = np.zeros(snapshot.n, dtype=np.bool_)
    slots = np.arange(snapshot.n) if mask is None else np.flatnonzero(mask)
    for start in range(0, len(slots), _BATCH):
        some = slots[start : start + _BATCH]
        passed[some] = [_verdict(predicate, record) for record in snapshot.fetch(some)]
    return passed


def _verdict(predicate: Callable[[Record], bool], record: Record) -> bool:
    try:
        verdict = predicate(record)
        if inspect.isawaitable(verdict):
            raise TypeError("it returned an awaitable; give a plain function")
        return bool(verdict)
    except Exception as error:
        raise FilterError(
            f"The filter callable raised {type(error).__name__} on record {record.id!r}: "
            f"{str(error).rstrip('.')}. It must accept every record, those that lack a field "
            "too: use record.metadata.get(…)."
        ) from error
