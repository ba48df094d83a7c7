"""What will be run for this query on this store, and what cannot be?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import QueryError
from cormorant.index.vector import check_vector
from cormorant.model import Fusion, Mode, Query
from cormorant.search.admit import Condition
from cormorant.search.calibration import Curve
from cormorant.search.legs import Leg, TextLeg, VectorLeg
from cormorant.search.ranking import Settled, settle

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query will be answered.

    Attributes:
        mode: What was asked for.
        legs: What runs; empty if the store has no records.
        weights: Each running leg's; where learned, before the query was looked at.
        settled: The query's ranking settings; what was learned is None if one leg runs alone.
        k: How many each leg is asked for.
        fusion: None if there is nothing to fuse: the one leg's scores are the hits'.
        rrf_k: Read by ``rrf`` alone.
        condition: The filter, understood.
        vector: float32, the query's as ``check_vector`` returns it; None if nothing needs it.
        mmr_lambda: None if MMR does not choose among the candidates.
        curve: Makes the relevance a probability; None if it is the legs' own.
        degraded: What was asked for and cannot be done, a sentence each.
        notes: What was left out because it would change nothing, a sentence each.
    """

    mode: Mode
    legs: tuple[Leg, ...]
    weights: Mapping[str, float]
    settled: Settled
    k: int
    fusion: Fusion | None
    rrf_k: float
    condition: Condition
    vector: NDArray[np.float32] | None
    mmr_lambda: float | None
    curve: Curve | None
    degraded: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def diversify(self) -> bool:
        """Whether MMR chooses among the candidates."""
        return self.mmr_lambda is not None


def make_plan(snapshot: Snapshot, query: Query) -> Plan:
    """Decide what to run.

    Raises:
        QueryError: If nothing that was asked for can be run.
        DimensionError: If the query's vector does not fit the store.
        FilterError: If the filter does not parse.
    """
    mode = query.resolved_mode
    settled = settle(snapshot, query)
    condition = Condition.of(query.filter)
    vector: NDArray[np.float32] | None = None
    if query.vector is not None and (mode != "text" or settled.mmr_lambda is not None):
        vector = check_vector(query.vector, dim=snapshot.dim, metric=snapshot.metric)
    legs: list[Leg] = []
    missing: list[str] = []
    partial: list[str] = []
    notes: list[str] = []
    wrong = False
    for name in ("vector", "text") if mode == "hybrid" else (mode,):
        if mode == "hybrid" and not settled.weights[name]:
            notes.append(f"{name}: not run, its weight is 0")
            continue
        made = (
            _vector_leg(snapshot, vector, exact=query.exact)
            if name == "vector"
            else _text_leg(snapshot, query)
        )
        if isinstance(made, _Missing):
            missing.append(made.why)
            wrong = wrong or made.wrong
        else:
            legs.append(made)
            if name == "vector" and snapshot.without_vector:
                partial.append(
                    f"{snapshot.without_vector:,} of {snapshot.n - snapshot.dead:,} records have "
                    "no vector, so the vector leg cannot find them."
                )
    if wrong and not legs:
        raise QueryError(" ".join(missing) + " Nothing can be searched.")
    if mode == "hybrid" and legs and missing:
        missing = [f"{why} Only the {legs[0].name} leg was searched." for why in missing]
    diversify = settled.mmr_lambda is not None and bool(legs)
    if diversify and vector is None:
        raise QueryError(
            "mmr_lambda compares candidates with the query's vector, and the query has none. "
            "Give a vector too, or leave mmr_lambda out."
        )
    if diversify and snapshot.vector is None:
        diversify = False
        missing.append("No record in the store has a vector, so mmr_lambda had no effect.")
    doubt = snapshot.trust_doubt
    if len(legs) > 1 and doubt is not None and settled.weights_why == "by default":
        notes.append(f"weights: what was learned is not used: {doubt}")
    curve = _curve(snapshot, query, legs, notes, partial)
    return Plan(
        mode=mode,
        legs=tuple(legs),
        weights={leg.name: settled.weights[leg.name] if mode == "hybrid" else 1.0 for leg in legs},
        settled=settled if len(legs) > 1 else replace(settled, trust=None, scripts=None),
        k=settled.fetch_k if mode == "hybrid" or diversify else query.top_k,
        fusion=settled.fusion if mode == "hybrid" else None,
        rrf_k=settled.rrf_k,
        condition=condition,
        vector=vector,
        mmr_lambda=settled.mmr_lambda if diversify else None,
        curve=curve,
        degraded=(*missing, *partial),
        notes=tuple(notes),
    )


def _curve(
    snapshot: Snapshot, query: Query, legs: list[Leg], notes: list[str], degraded: list[str]
) -> Curve | None:
    """The calibration that holds for the legs that run; says so, or why there is none.

    Raises:
        QueryError: If a threshold is asked for and its calibration no longer fits.
    """
    calibration = snapshot.calibration
    if calibration is None or not legs:
        return None
    ran = legs[0].name if len(legs) == 1 else "hybrid"
    curve = calibration.curves.get(ran)
    if curve is None:
        notes.append(f"relevance: as the index reports it; not calibrated for {ran} searches")
        if query.min_score is not None:
            degraded.append(
                f"The store is calibrated for {', '.join(calibration.curves)} searches and not for "
                f"{ran}: min_score was compared with a relevance that is no probability."
            )
        return None
    doubt = snapshot.calibration_doubt if ran != "text" else None
    if doubt is None:
        notes.append("relevance: a probability, as calibrated")
        return curve
    if query.min_score is not None:
        raise QueryError(
            f"min_score would mean no probability any more: {doubt} Calibrate the store again, or "
            "drop its calibration with set_calibration(None)."
        )
    degraded.append(f"Relevances are no probabilities: {doubt}")
    return None


class _Missing(NamedTuple):
    """Why a leg cannot run, and whether the question is wrong or the store has just nothing yet."""

    why: str
    wrong: bool


def _vector_leg(
    snapshot: Snapshot, vector: NDArray[np.float32] | None, *, exact: bool
) -> VectorLeg | _Missing:
    index = snapshot.scan if exact else snapshot.vector
    if vector is not None and index is not None:
        return VectorLeg(snapshot, index, vector)
    if snapshot.dim is None and snapshot.n > snapshot.dead:
        why = (
            "The store was filled without vectors, so the query's has nothing to be compared with."
        )
        return _Missing(why, wrong=True)
    return _Missing("No record in the store has a vector.", wrong=False)


def _text_leg(snapshot: Snapshot, query: Query) -> TextLeg | _Missing:
    terms = snapshot.analyzer.query_terms(query.text or "")
    if terms:
        return TextLeg(snapshot, terms)
    return _Missing(f"The text {query.text!r} holds no term that could be searched.", wrong=True)
