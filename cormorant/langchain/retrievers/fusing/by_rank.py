"""How do several ranked lists become one? By reciprocal ranks, with the store's own formula."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cormorant.errors import QueryError
from cormorant.langchain.provenance import Answer, Provenance, attach, of
from cormorant.langchain.retrievers.fusing.duplicates import Group, grouped
from cormorant.model import Leg, Mode, Stage, Step
from cormorant.ranges import check_number, is_number
from cormorant.search import LegScores, fuse

__all__ = ["check_rrf_k", "check_weights", "fused", "fused_step", "ranked_step"]


def fused(
    answers: Sequence[Answer],
    weights: Sequence[float],
    names: Sequence[str],
    *,
    rrf_k: float,
    id_key: str | None = None,
    mode: Mode = "hybrid",
) -> Answer:
    """Weighted reciprocal rank fusion: Σ weight / (rrf_k + rank), ranks from 1.

    Args:
        answers: One ranked list per leg.
        weights: Trust in each.
        names: Of the legs, unique.
        rrf_k: The formula's constant.
        id_key: As in :func:`~cormorant.langchain.retrievers.fusing.duplicates.grouped`.
        mode: What the Answer says was run.

    Returns:
        Every document once, best first; ties by the leg that comes first, and its order.
    """
    began = time.perf_counter()
    groups = grouped(answers, id_key)
    views = [
        LegScores(
            weight=weight,
            scores=np.zeros(len(groups), dtype=np.float32),  # not read by ranks
            ranks=np.array([group.ranks.get(number, 0) for group in groups], dtype=np.int64),
        )
        for number, weight in enumerate(weights)
    ]
    worth = fuse(views, fusion="rrf", rrf_k=rrf_k)
    order = np.argsort(-worth.scores, kind="stable")
    documents = []
    for place, at in enumerate(order.tolist(), start=1):
        group = groups[at]
        known = _provenance(
            group,
            names,
            [float(standard[at]) for standard in worth.standards],
            [float(part[at]) for part in worth.contributions],
            weights,
        )
        score = float(worth.scores[at])
        step = fused_step(score, place, len(groups), rrf_k)
        documents.append(
            attach(
                group.document,
                known.then(step, score=score, fusion_score=score, method=mode),
            )
        )
    stages = [stage for answer in answers for stage in answer.stages]
    stages.append(Stage("fuse", time.perf_counter() - began, {"candidates": len(groups)}))
    return Answer(
        documents,
        mode=mode,
        stages=stages,
        exact=all(answer.exact for answer in answers),
        complete=all(answer.complete for answer in answers),
        degraded=dict.fromkeys(says for answer in answers for says in answer.degraded),
        plan=[
            *(says for answer in answers for says in answer.plan),
            f"fuse: rrf over {len(groups):,} candidates, "
            + ", ".join(f"{n} {w:g}" for n, w in zip(names, weights, strict=True)),
        ],
    )


def _provenance(
    group: Group,
    names: Sequence[str],
    standards: Sequence[float],
    contributions: Sequence[float],
    weights: Sequence[float],
) -> Provenance:
    legs: dict[str, Leg] = {}
    steps: list[Step] = []
    relevance = weight_known = 0.0
    for number, rank in group.ranks.items():
        told = of(group.views[number])
        score = math.nan if told.score is None else told.score
        legs[names[number]] = Leg(score=score, rank=rank, standard=standards[number])
        steps.extend(told.journey)
        steps.append(ranked_step(names[number], rank, told.score))
        if told.relevance is not None:
            relevance += weights[number] * told.relevance
            weight_known += weights[number]
    return Provenance(
        # Of the legs that know one, weighted as they are trusted.
        relevance=relevance / weight_known if weight_known else None,
        legs=legs,
        contributions=dict(zip(names, contributions, strict=True)),
        journey=tuple(steps),
    )


def ranked_step(name: str, rank: int, score: float | None) -> Step:
    """What a leg did for a document."""
    known = "" if score is None else f", score {score:.4f}"
    return Step(name, kept=True, says=f"Rank {rank} in {name}{known}.", value=score)


def fused_step(score: float, place: int, count: int, rrf_k: float) -> Step:
    """What fusion did for a document."""
    return Step(
        "fuse",
        kept=True,
        says=f"Fused by reciprocal ranks: score {score:.6f}, place {place} of {count}.",
        value=score,
        detail={"rank": place, "rrf_k": rrf_k},
    )


def check_weights(weights: Any, count: int, names: str = "weights") -> list[float]:
    """One weight per leg; equal ones if none are given.

    Raises:
        QueryError: If they are not ``count`` numbers of at least 0, or are all 0.
    """
    if weights is None or (isinstance(weights, (list, tuple)) and not weights):
        return [1 / count] * count
    if not isinstance(weights, (list, tuple)) or len(weights) != count:
        raise QueryError(
            f"{names} must be a list of {count} numbers, one per retriever; got {weights!r}."
        )
    for weight in weights:
        if not is_number(weight, 0):
            raise QueryError(f"{names} must be numbers of at least 0; got {weight!r}.")
    if not any(weights):
        raise QueryError(f"{names} must not all be 0; got {weights!r}.")
    return [float(weight) for weight in weights]


def check_rrf_k(value: Any, name: str) -> None:
    """Refuse what is no constant of the formula.

    Raises:
        QueryError: If it is not a number of at least 0.
    """
    check_number(name, value, 0)
