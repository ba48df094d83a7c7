"""What is fixed when a store is made, and what was remembered since?"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import ConfigError, CorruptionError
from cormorant.index.vector import IndexChoice
from cormorant.model import Metric
from cormorant.search import Calibration, RankingConfig, Trust
from cormorant.store.checked import RecallCheck

__all__ = ["StoreConfig"]

_MAX_DIM: Final = 65_536
_DEFAULT_INDEX: Final = IndexChoice()


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """A store's own settings, kept inside it as JSON.

    Attributes:
        dim: Numbers per vector; None until the first vector arrives.
        metric: ``cosine``, ``dot`` or ``euclidean``; fixed at creation.
        analyzer: The analyzer's spec; fixed at creation, since postings depend on it.
        bm25_k1, bm25_b: Lucene's parameters.
        require_scope: Fields every call must be scoped by.
        embedder: The embedder's specification, as the command line takes it.
        fingerprint: The embedder's probe vectors, encoded; see ``fingerprint.py``.
        ranking: How hybrid queries are ranked that do not say; None if nobody set it.
        calibration: What makes relevances probabilities; None if nobody calibrated the store.
        trust: What the store learned of its legs; None if it did not.
        index: Which index vectors get.
        recall_check: What the last check of recall found; None if there was none.
    """

    dim: int | None = None
    metric: Metric = defaults.METRIC
    analyzer: Mapping[str, Any] | None = None
    bm25_k1: float = defaults.BM25_K1
    bm25_b: float = defaults.BM25_B
    require_scope: tuple[str, ...] = ()
    embedder: str | None = None
    fingerprint: Mapping[str, Any] | None = None
    ranking: RankingConfig | None = None
    calibration: Calibration | None = None
    trust: Trust | None = None
    index: IndexChoice = _DEFAULT_INDEX
    recall_check: RecallCheck | None = None

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoreConfig:
        """Read what :meth:`to_json` wrote.

        Raises:
            CorruptionError: If a value is not what a store would have written.
        """
        known = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        if isinstance(known.get("require_scope"), list):
            known["require_scope"] = tuple(known["require_scope"])
        try:
            if known.get("ranking") is not None:
                known["ranking"] = RankingConfig.from_json(known["ranking"])
            if known.get("calibration") is not None:
                known["calibration"] = Calibration.from_json(known["calibration"])
            if known.get("trust") is not None:
                known["trust"] = Trust.from_json(known["trust"])
            if "index" in known:
                known["index"] = IndexChoice.from_json(known["index"])
            if known.get("recall_check") is not None:
                known["recall_check"] = RecallCheck.from_json(known["recall_check"])
            return cls(**known)
        except (ConfigError, TypeError) as error:
            raise CorruptionError(f"The store's settings are damaged: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        written = asdict(replace(self, ranking=None, calibration=None, trust=None))
        for name in ("ranking", "calibration", "trust"):
            kept = getattr(self, name)
            written[name] = None if kept is None else kept.to_json()
        return written

    def reconcile(self, asked: Mapping[str, Any]) -> None:
        """Check what the caller of ``open`` asked for against what the store was made with.

        Args:
            asked: Settings by name; None means 'as stored'.

        Raises:
            ConfigError: If a setting that is fixed differs.
        """
        for name, value in asked.items():
            stored = getattr(self, name)
            if value is None or value == stored:
                continue
            if name == "dim" and stored is None:
                continue
            if name == "require_scope":
                # Dropping a requirement would widen what an unscoped caller sees.
                missing = set(stored) - set(value)
                if missing:
                    raise ConfigError(
                        f"This store requires a scope on {sorted(stored)}; it cannot be opened "
                        f"with require_scope={tuple(value)!r}. Leave require_scope out, or name "
                        "them all."
                    )
                continue
            raise ConfigError(
                f"This store was made with {name}={stored!r}; it cannot be opened with "
                f"{name}={value!r}. Leave {name} out, or build a new store."
            )


def _check(config: StoreConfig) -> None:
    dim = config.dim
    whole = isinstance(dim, int) and not isinstance(dim, bool)
    if dim is not None and not (whole and 1 <= dim <= _MAX_DIM):
        raise ConfigError(f"dim must be a whole number from 1 to {_MAX_DIM}; got {dim!r}.")
    if not isinstance(config.metric, str) or config.metric not in defaults.METRICS:
        raise ConfigError(
            f"metric must be one of {', '.join(defaults.METRICS)}; got {config.metric!r}."
        )
    _check_number("bm25_k1", config.bm25_k1, math.inf)
    _check_number("bm25_b", config.bm25_b, 1.0)
    names = config.require_scope
    if not isinstance(names, tuple) or not all(isinstance(n, str) and n for n in names):
        raise ConfigError(f"require_scope takes field names, such as ('tenant',); got {names!r}.")


def _check_number(name: str, value: object, high: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= min(high, sys.float_info.max):  # type: ignore[operator]
        wanted = "of at least 0" if math.isinf(high) else f"from 0 to {high:g}"
        raise ConfigError(f"{name} must be a number {wanted}; got {value!r}.")
