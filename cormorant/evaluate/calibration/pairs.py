"""How does each candidate of a judged question stand, and is it relevant?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import QueryError
from cormorant.evaluate.answers import field_of
from cormorant.model import Mode, Query
from cormorant.store import Candidates, Curve

__all__ = ["Asked", "Pairs", "ask_all"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates of several questions, as one mode sees them.

    Attributes:
        standings: float64, shape (n,): deviations above the collection's mean.
        relevant: bool, shape (n,).
        questions: How many they come from.
    """

    standings: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    questions: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Judged questions whose legs were asked.

    Attributes:
        found: By question: by mode, standings and whether relevant.
        weights: By mode: each leg's part in the standing.
        unsearchable: Questions that hold nothing to search, and why.
    """

    found: Mapping[str, Mapping[Mode, tuple[NDArray[np.float64], NDArray[np.bool_]]]]
    weights: Mapping[Mode, Mapping[str, float]]
    unsearchable: Mapping[str, str]

    def pairs(self, mode: Mode, questions: Sequence[str]) -> Pairs:
        """The candidates of some questions in one mode."""
        several = [
            self.found[name][mode]
            for name in questions
            if name in self.found and mode in self.found[name]
        ]
        if not several:
            return Pairs(np.empty(0), np.empty(0, np.bool_), 0)
        standings, relevant = (np.concatenate(parts) for parts in zip(*several, strict=True))
        return Pairs(standings, relevant, len(several))


def ask_all(
    store: Any,
    queries: Mapping[str, Query],
    qrels: Mapping[str, Mapping[str, float]],
    *,
    relevant: float,
    by: str | None = None,
) -> Asked:
    """Ask every question, and look each candidate up in the judgements.

    Candidates are what each leg fetches for a search by default settings; the fused mode has
    those of both legs. One that was not judged counts as not relevant.

    Args:
        store: A store or a scoped view.
        queries: By id.
        qrels: Judgements.
        relevant: The lowest grade that counts as relevant.
        by: The metadata field that is judged; None for the record's id.
    """
    seen: dict[str, tuple[Candidates, NDArray[np.bool_]]] = {}
    unsearchable = {}
    for name, query in queries.items():
        try:
            candidates = store.candidates(
                replace(query, top_k=defaults.TOP_K, min_score=None, mmr_lambda=None),
                fetch_k=defaults.leg_fetch_k(defaults.TOP_K),
            )
        except QueryError as error:
            unsearchable[name] = str(error)
            continue
        judged = qrels[name]
        answers = np.array(
            [
                judged.get(record.id if by is None else field_of(record, by, record.id), 0)
                >= relevant
                for record in candidates.records
            ],
            np.bool_,
        )
        # Texts and metadata of all candidates of all questions would fill memory.
        seen[name] = replace(candidates, records=()), answers
    weights = _weights([candidates for candidates, _ in seen.values()])
    found = {
        name: dict(_by_mode(candidates, answers, weights))
        for name, (candidates, answers) in seen.items()
    }
    return Asked(found, weights, unsearchable)


def _weights(seen: Sequence[Candidates]) -> dict[Mode, Mapping[str, float]]:
    """Each leg's part in a mode's standing; in hybrid, the mean of what searches weigh it."""
    weights: dict[Mode, Mapping[str, float]] = {"vector": {"vector": 1.0}, "text": {"text": 1.0}}
    hybrid = [each.settled.weights for each in seen if each.hybrid]
    if hybrid:
        shares = [each["vector"] / (each["vector"] + each["text"]) for each in hybrid]
        share = round(float(np.mean(shares)), 6)
        if 0.0 < share < 1.0:
            weights["hybrid"] = {"vector": share, "text": round(1.0 - share, 6)}
    return weights


def _by_mode(
    candidates: Candidates,
    answers: NDArray[np.bool_],
    weights: Mapping[Mode, Mapping[str, float]],
) -> Iterator[tuple[Mode, tuple[NDArray[np.float64], NDArray[np.bool_]]]]:
    standards = {
        name: leg.statistics.standard(leg.scores)
        for name, leg in candidates.legs.items()
        if leg.statistics is not None
    }
    for mode, parts in weights.items():
        if not set(parts) <= set(standards):
            continue
        standing = Curve.standing(standards, parts)
        own = np.logical_or.reduce([candidates.legs[leg].ranks > 0 for leg in parts])
        yield mode, (standing[own], answers[own])
