"""Which metric does ``ndcg@10`` name?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.metrics.average_precision import MAP
from cormorant.evaluate.metrics.bpref import BPREF
from cormorant.evaluate.metrics.hit import HIT
from cormorant.evaluate.metrics.metric import Metric
from cormorant.evaluate.metrics.mrr import MRR
from cormorant.evaluate.metrics.ndcg import NDCG
from cormorant.evaluate.metrics.ndcg_exp import NDCG_EXP
from cormorant.evaluate.metrics.places import Places
from cormorant.evaluate.metrics.precision import PRECISION
from cormorant.evaluate.metrics.recall import RECALL
from cormorant.evaluate.metrics.rprec import RPREC
from cormorant.evaluate.metrics.unjudged import UNJUDGED

__all__ = ["DEFAULT_METRICS", "METRICS", "NamedMetric", "parse_metric", "parse_metrics"]

METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        NDCG,
        NDCG_EXP,
        RECALL,
        PRECISION,
        HIT,
        MRR,
        MAP,
        RPREC,
        BPREF,
        UNJUDGED,
    )
}
"""Every metric, by the name before ``@``."""

DEFAULT_METRICS: Final = ("ndcg@10", "recall@10", "mrr@10", "unjudged@10")
"""What is computed when nobody said which."""

_ALIASES: Final = {"p": "precision", "success": "hit", "hit_rate": "hit", "rr": "mrr", "ap": "map"}
_WRITTEN: Final = re.compile(r"([a-z_-]+)(?:@([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class NamedMetric:
    """A metric and how many places it counts.

    Attributes:
        metric: The metric.
        k: Places that count; None for all.
    """

    metric: Metric
    k: int | None

    @property
    def name(self) -> str:
        """As it is shown: ``ndcg@10``, ``map``."""
        return self.metric.name if self.k is None else f"{self.metric.name}@{self.k}"

    def of(self, places: Places) -> NDArray[np.float64]:
        """Its values, shape (queries,)."""
        return self.metric.compute(places, self.k)


def parse_metric(name: str) -> NamedMetric:
    """The metric that a name stands for.

    Args:
        name: A name of :data:`METRICS`, with ``@k`` for the first k places: ``ndcg@10``,
            ``recall@100``, ``map``. Upper case and ``p``, ``success``, ``hit_rate``, ``rr``
            and ``ap`` are understood.

    Raises:
        UsageError: On a name that is none, or a ``@k`` that is missing or too much.

    Example:
        >>> parse_metric("P@5").name
        'precision@5'
    """
    if not isinstance(name, str):
        raise UsageError(f"A metric is named by a string such as 'ndcg@10'; got {name!r}.")
    match = _WRITTEN.fullmatch(name.strip().lower())
    if match is None:
        raise UsageError(
            f"A metric is written as 'ndcg@10' or 'map'; got {name!r}. Accepted: {_accepted()}."
        )
    base = match[1].replace("-", "_")
    metric = METRICS.get(_ALIASES.get(base, base))
    if metric is None:
        near = difflib.get_close_matches(base, [*METRICS, *_ALIASES], n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"There is no metric {base!r}.{meant} Accepted: {_accepted()}.")
    k = None if match[2] is None else int(match[2])
    if k == 0:
        raise UsageError(f"{name!r} counts no place; the number after @ is at least 1.")
    if k is None and metric.cutoff == "required":
        raise UsageError(f"{metric.name!r} needs its number of places, as in {metric.name}@10.")
    if k is not None and metric.cutoff == "none":
        raise UsageError(f"{metric.name!r} counts all places; write it without @{k}.")
    return NamedMetric(metric, k)


def parse_metrics(names: str | Iterable[str]) -> list[NamedMetric]:
    """Several metrics, in the order named, each once.

    Args:
        names: One name, several separated by commas, or an iterable of such.

    Raises:
        UsageError: As :func:`parse_metric`, or if there is no name at all.

    Example:
        >>> [each.name for each in parse_metrics("P@5, mrr")]
        ['precision@5', 'mrr']
    """
    several = [names] if isinstance(names, str) else list(names)
    split = [part for name in several for part in _parts(name)]
    found = {named.name: named for named in map(parse_metric, split)}
    if not found:
        raise UsageError(f"No metric is named. Accepted: {_accepted()}.")
    return list(found.values())


def _parts(name: str) -> Sequence[str]:
    # What is no string goes on to parse_metric, which says so.
    if not isinstance(name, str):
        return [name]
    return [part for part in name.split(",") if part.strip()]


def _accepted() -> str:
    marks = {"required": "@k", "optional": "[@k]", "none": ""}
    return ", ".join(f"{metric.name}{marks[metric.cutoff]}" for metric in METRICS.values())
