"""What probability of being relevant does a hit have in this store?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cormorant.errors import UsageError
from cormorant.evaluate.asked import asked_queries
from cormorant.evaluate.calibration.isotonic import isotonic
from cormorant.evaluate.calibration.pairs import Asked, ask_all
from cormorant.evaluate.calibration.quality import Quality, quality
from cormorant.evaluate.groups import Groups, group_names
from cormorant.evaluate.splitting import split
from cormorant.evaluate.whole import need_whole
from cormorant.model import Mode, Query, VectorLike
from cormorant.store import Calibration, Curve, Store

__all__ = ["Calibrated", "calibrate"]

_LEAST: Final = 10
"""Relevant candidates that a curve needs: fewer say next to nothing."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The outcome of :func:`calibrate`.

    Attributes:
        calibration: What a store is set to.
        quality: By mode: how good it is on the held-out questions, which it was not fitted to.
        notes: What to know before relying on it, a sentence each.
    """

    calibration: Calibration
    quality: Mapping[str, Quality]
    notes: tuple[str, ...]

    def apply(self, store: Store) -> None:
        """Make the store's relevances probabilities.

        Args:
            store: The whole store; calibrated in a scope, it goes by that scope's questions.

        Raises:
            ConfigError: If the store's vectors are of another embedder.
            ScopeError: If it is a scoped view.
        """
        need_whole(store, "A calibration")
        store.set_calibration(self.calibration)


def calibrate(
    store: Any,
    queries: Mapping[str, str | Query],
    qrels: Mapping[str, Mapping[str, float]],
    *,
    embed: Callable[[str], VectorLike] | Any = None,
    by: str | None = None,
    groups: Groups | None = None,
    relevant: float = 1,
    holdout: float = 0.3,
    seed: int = 0,
) -> Calibrated:
    """Learn from judged questions how probable it is that a candidate is relevant.

    For each mode the questions allow, a never-falling curve is fitted from a candidate's
    standing to the share that is relevant: how many deviations it stands above the mean of all
    scores its question gives in the store, in one leg, or averaged over both. The curve is
    fitted on one part of the questions and measured on the other.

    Args:
        store: A store, or a scoped view.
        queries: By id, a text or a whole Query; each judged one must be there.
        qrels: Judgements. What was not judged counts as not relevant.
        embed: Makes the vector of a query given as text: a function, or an object with
            ``embed_query``. Without it only text searches are calibrated.
        by: The metadata field that judgements name instead of a record's id, such as its
            document's: a probability is then that of belonging to a relevant document.
        groups: Queries that belong together, as for :func:`~cormorant.evaluate.compare`: a group is
            wholly held out or not at all.
        relevant: The lowest grade that counts as relevant.
        holdout: Share of the questions that the curves are measured on.
        seed: Of the split.

    Raises:
        UsageError: On arguments out of range, or judgements that are too few.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> names = [f"{a}a{b}o" for a in "bdfgk" for b in "lmnprst"]
        >>> _ = store.add({"id": name, "text": f"{name} among others"} for name in names)
        >>> done = calibrate(store, {n: f"{n} others" for n in names}, {n: {n: 1} for n in names})
        >>> done.apply(store)
        >>> [hit.id for hit in store.search(cormorant.Query(text="balo others", min_score=0.8))]
        ['balo']
    """
    number = isinstance(relevant, (int, float)) and not isinstance(relevant, bool)
    if not number or not relevant > 0:
        raise UsageError(f"relevant must be a grade above 0; got {relevant!r}.")
    judged = asked_queries(queries, qrels, embed)
    named = group_names(list(judged), groups, qrels)
    training, held = split(list(judged), holdout=holdout, least=_LEAST, seed=seed, groups=named)
    found = ask_all(store, judged, qrels, relevant=relevant, by=by)
    curves: dict[str, Curve] = {}
    measured: dict[str, Quality] = {}
    notes: list[str] = []
    mode: Mode
    for mode in ("vector", "text", "hybrid"):
        told = _fitted(found, mode, training, held)
        if isinstance(told, str):
            notes.append(told)
        elif told is not None:
            curves[mode], measured[mode] = told
            notes.extend(_useless(mode, measured[mode]))
    if not curves:
        raise UsageError("Nothing can be calibrated. " + " ".join(notes))
    count = len(found.unsearchable)
    said = f"{count} of {len(judged)} questions hold nothing this store can search"
    # The evidence is read by every tenant of the store: no question stands in it.
    kept = [*notes, f"{said}."] if count else list(notes)
    if count:
        name, why = next(iter(found.unsearchable.items()))
        notes.append(f"{said}, such as {name!r}: {why}")
    evidence = {
        "by": "calibrate",
        "questions": len(training),
        "relevant": relevant,
        **({} if by is None else {"judged_by": by}),
        **({} if named is None else {"groups": len(set(named.values()))}),
        "holdout": holdout,
        "seed": seed,
        "held_out": {mode: each.to_json() for mode, each in measured.items()},
        "notes": kept,
    }
    calibration = Calibration(curves, store.config.fingerprint, evidence)
    return Calibrated(calibration, measured, tuple(notes))


def _useless(mode: Mode, measured: Quality) -> list[str]:
    """That a mode's probabilities tell nothing, if they do not."""
    if measured.brier < measured.brier_without:
        return []
    said = (
        f"In {mode} mode the probabilities were no better on the {measured.questions} held-out "
        f"questions than giving every candidate the same (Brier {measured.brier:.4f} beside "
        f"{measured.brier_without:.4f}): a threshold on them means nothing yet. Judge more "
        "questions."
    )
    return [said]


def _fitted(
    found: Asked, mode: Mode, training: list[str], held: list[str]
) -> tuple[Curve, Quality] | str | None:
    """A mode's curve and how good it is; why there is none; None if no question allows it."""
    fitted, other = found.pairs(mode, training), found.pairs(mode, held)
    if not fitted.questions:
        return None
    count = int(fitted.relevant.sum())
    if count < _LEAST or not len(other.standings):
        return (
            f"{mode} searches stay as they are: only {count} relevant candidates were found, of "
            f"{_LEAST} needed. Judge more questions, or look whether ids and grades are right."
        )
    steps = isotonic(fitted.standings, fitted.relevant)
    curve = Curve(steps.x.tolist(), steps.y.tolist(), found.weights[mode])
    return curve, quality(
        steps.at(other.standings),
        other.relevant,
        share=float(fitted.relevant.mean()),
        questions=other.questions,
    )
