"""How probable is it that a candidate of this standing is relevant?

A store that was calibrated with judged questions answers so: a hit's relevance is then a
probability, and a threshold means the same whatever the embedding model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import ConfigError

__all__ = ["Calibration", "Curve"]

_MAX_KNOTS: Final = 4096


@dataclass(frozen=True, slots=True)
class Curve:
    """From how far a candidate stands above the collection's mean to a probability.

    Attributes:
        standings: Ascending: deviations above the mean of all scores the query gives in the
            store, as ``z`` fusion standardises them; where two legs run, their mean by
            ``weights``.
        probabilities: At each of them, in [0, 1], never falling. Straight lines between;
            beyond the ends as at the ends.
        weights: Each leg's part in the standing.

    Raises:
        ConfigError: If it is no such curve.
    """

    standings: Sequence[float]
    probabilities: Sequence[float]
    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        x, y = (_numbers(each) for each in (self.standings, self.probabilities))
        sound = len(x) == len(y) and 1 <= len(x) <= _MAX_KNOTS
        if not sound or (np.diff(x) <= 0).any() or (np.diff(y) < 0).any():
            raise ConfigError(
                "A calibration curve has as many probabilities as standings, at least one; "
                "standings rise and probabilities do not fall."
            )
        if y[0] < 0 or y[-1] > 1:
            raise ConfigError(f"Probabilities lie in [0, 1]; got {y[0]:g} to {y[-1]:g}.")
        weights = self.weights
        if not isinstance(weights, Mapping) or not weights or set(weights) - {"vector", "text"}:
            raise ConfigError(f"A curve's weights name 'vector' and 'text'; got {weights!r}.")
        if not all(_positive(weight) for weight in weights.values()):
            raise ConfigError(f"A curve's weights must be numbers above 0; got {dict(weights)!r}.")
        object.__setattr__(self, "standings", tuple(x.tolist()))
        object.__setattr__(self, "probabilities", tuple(y.tolist()))
        object.__setattr__(self, "weights", MappingProxyType(dict(weights)))

    def probability(self, standards: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Of each candidate, given its standards in each leg, shape (m,)."""
        return np.interp(self.standing(standards, self.weights), self.standings, self.probabilities)

    @staticmethod
    def standing(
        standards: Mapping[str, NDArray[np.float64]], weights: Mapping[str, float]
    ) -> NDArray[np.float64]:
        """The legs' standards, averaged by weights: what a curve is read at."""
        total = sum(weights.values())
        parts = [weight / total * standards[leg] for leg, weight in weights.items()]
        return np.asarray(sum(parts), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A store's curves, and what they were made with.

    Attributes:
        curves: By mode: ``vector``, ``text``, ``hybrid``.
        fingerprint: Of the embedder whose vectors they were made with, encoded as the store
            keeps it; None if the store knew none.
        evidence: What they rest on; JSON values.

    Raises:
        ConfigError: On a mode that is none, or a curve that is none.
    """

    curves: Mapping[str, Curve]
    fingerprint: Mapping[str, Any] | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.curves, Mapping) or not self.curves:
            raise ConfigError(f"A calibration has a curve by mode; got {self.curves!r}.")
        for mode, curve in self.curves.items():
            legs = {"vector", "text"} if mode == "hybrid" else {mode}
            if mode not in defaults.MODES or not isinstance(curve, Curve):
                raise ConfigError(
                    f"A calibration has a Curve for {', '.join(defaults.MODES)}; got {mode!r}: "
                    f"{type(curve).__name__}."
                )
            if set(curve.weights) != legs:
                raise ConfigError(
                    f"The {mode} curve weighs {', '.join(sorted(legs))}; got "
                    f"{dict(curve.weights)!r}."
                )
        for name in ("fingerprint", "evidence"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                raise ConfigError(f"A calibration's {name} is a dict; got {type(given).__name__}.")
        object.__setattr__(self, "curves", MappingProxyType(dict(self.curves)))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Calibration:
        """Read what :meth:`to_json` wrote; what a later release added is left out.

        Raises:
            ConfigError: If it is something else.
        """
        try:
            curves = {
                mode: Curve(each["standings"], each["probabilities"], each["weights"])
                for mode, each in stored["curves"].items()
            }
            return cls(curves, stored["fingerprint"], stored["evidence"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"The store's calibration is damaged: {error!r}.") from error

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "curves": {
                mode: {
                    "standings": list(curve.standings),
                    "probabilities": list(curve.probabilities),
                    "weights": dict(curve.weights),
                }
                for mode, curve in self.curves.items()
            },
            "fingerprint": None if self.fingerprint is None else dict(self.fingerprint),
            "evidence": dict(self.evidence),
        }


def _numbers(given: object) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"A calibration curve is made of numbers; got {given!r:.80}.") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ConfigError("A calibration curve is made of two lists of finite numbers.")
    return numbers


def _positive(weight: object) -> bool:
    number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    return number and 0 < weight < math.inf  # type: ignore[operator]
