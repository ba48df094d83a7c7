"""What came of tuning, and on what does it rest?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cormorant.errors import ConfigError
from cormorant.evaluate.comparing import Comparison
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.tuning.choosing import Fold
from cormorant.evaluate.tuning.point import INDEXED, Point
from cormorant.evaluate.whole import need_whole

if TYPE_CHECKING:
    from cormorant.store import RankingConfig, Store

__all__ = ["AS_SET", "Training", "Tuned"]

AS_SET = "the store as it is set"
"""What the configuration None is called."""


@dataclass(frozen=True, slots=True)
class Training:
    """What the choice was made by.

    Attributes:
        queries: How many.
        tried: Configurations measured, the store as it is set among them.
        within: How many of them were as good as the best, within noise.
        best: The one with the highest mean.
        means: Mean of the metric: by configuration, simple ones first; None is the store as
            it is set.
        folds: Cross-validation of choosing itself.
    """

    queries: int
    tried: int
    within: int
    best: Point | None
    means: Mapping[Point | None, float]
    folds: tuple[Fold, ...]

    @property
    def cross_validated_gain(self) -> float:
        """Mean over all queries of what each fold's choice, made without it, gained on it."""
        total = sum(fold.gain * fold.queries for fold in self.folds)
        return total / sum(fold.queries for fold in self.folds)


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The outcome of :func:`~cormorant.evaluate.tune`.

    Attributes:
        metric: What was tuned for.
        chosen: The simplest configuration within noise of the best, on the training queries;
            None is the store as it is set.
        recommended: What to use: ``chosen`` if it is significantly better on the held-out
            queries, else None: leave the store as it is set.
        training: What the choice was made by.
        held_out: By name, evaluations on the held-out queries, which had no part in the
            choice: the store as it is set, what was chosen, each leg alone.
        comparison: Of the choice with the store as it is set, there; None if that was chosen.
        beside_legs: Of what is recommended with each leg alone, there.
        settings: Metric, space, split and seed: what another run needs to come to the same.
        notes: What to know before believing it, a sentence each.
        kept_notes: The same without ids and words of questions, for the store's evidence, which
            all of its tenants read.
        cpu_s: CPU seconds: ``asking`` the legs, ``ranking`` and judging.
    """

    metric: str
    chosen: Point | None
    recommended: Point | None
    training: Training
    held_out: Mapping[str, Evaluation]
    comparison: Comparison | None
    beside_legs: tuple[Comparison, ...]
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    kept_notes: tuple[str, ...]
    cpu_s: Mapping[str, float]

    @property
    def says(self) -> str:
        """The verdict in one sentence."""
        if self.comparison is None:
            return (
                f"Nothing tried is better than {AS_SET}, beyond noise, on the "
                f"{self.training.queries} training queries: keep it."
            )
        if self.recommended is None:
            head = "No significant difference"
            if self.comparison.verdict == "worse":
                head = "The choice is worse"
            return f"{head} on the {len(self.comparison.queries)} held-out queries: keep {AS_SET}."
        return f"Use {self.recommended.says}: {self.comparison.says}"

    @property
    def evidence(self) -> dict[str, Any]:
        """What the choice rests on, JSON values; a store keeps it with its ranking."""
        training = self.training
        out: dict[str, Any] = {
            "by": "tune",
            **self.settings,
            "chosen": _json(self.chosen),
            "recommended": _json(self.recommended),
            "says": self.says,
            "training": {
                "queries": training.queries,
                "tried": training.tried,
                "within_noise": training.within,
                "as_set": training.means[None],
                "chosen": training.means[self.chosen],
                "best": training.means[training.best],
                "cross_validated_gain": training.cross_validated_gain,
                "folds_that_chose_it": sum(f.chosen == self.chosen for f in training.folds),
            },
            "held_out": {name: each.means[self.metric] for name, each in self.held_out.items()},
        }
        if self.comparison is not None:
            out["comparison"] = _compared(self.comparison)
        out["beside_legs"] = [_compared(each) for each in self.beside_legs]
        out["notes"] = list(self.kept_notes)
        return out

    @property
    def ranking(self) -> RankingConfig | None:
        """What is recommended, as a store can be set to it, with its evidence.

        None if the store is to stay as it is.

        Raises:
            ConfigError: If it has a part that a store cannot be set to: another index, or a
                reranker.
        """
        point = self.recommended
        if point is None:
            return None
        outside = {name: value for name, value in point.changed.items() if name in _OUTSIDE}
        if outside:
            told = ", ".join(f"{name} = {value}" for name, value in outside.items())
            raise ConfigError(
                f"What is recommended ({point.says}) cannot be set in this store: {told}. Build a "
                "new store with these settings (rerank_k: wrap the retriever), and tune that; or "
                "leave them out of the space."
            )
        return replace(point.ranking, evidence=self.evidence)

    def apply(self, store: Store) -> bool:
        """Set the store to what is recommended, with the evidence.

        Args:
            store: The whole store; tuned in a scope, it goes by that scope's questions.

        Returns:
            Whether anything was set; False leaves the store as it is.

        Raises:
            ConfigError: As :attr:`ranking`.
            ScopeError: If it is a scoped view.
        """
        need_whole(store, "How it ranks")
        ranking = self.ranking
        if ranking is None:
            return False
        store.set_ranking(ranking)
        return True


_OUTSIDE = (*INDEXED, "rerank_k")


def _json(point: Point | None) -> dict[str, Any] | None:
    """A configuration as JSON values; None for the store as it is set."""
    return None if point is None else {"says": point.says, **point.to_json()}


def _compared(comparison: Comparison) -> dict[str, Any]:
    low, high = comparison.interval
    return {
        "baseline": comparison.baseline_name,
        "system": comparison.system_name,
        "difference": comparison.difference,
        "low": low if abs(low) < float("inf") else None,
        "high": high if abs(high) < float("inf") else None,
        "p": comparison.p,
        "verdict": comparison.verdict,
        "queries": len(comparison.queries),
    }
