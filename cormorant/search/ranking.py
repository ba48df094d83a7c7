"""Which settings rank a query's candidates, and who said so?

The one place where a query's unset settings are filled in: what the query says comes first,
then what somebody set for the store, then what the store learned, then the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cormorant import defaults
from cormorant.errors import ConfigError, QueryError
from cormorant.model import Fusion, Query

if TYPE_CHECKING:
    from cormorant.search.snapshot import Snapshot
    from cormorant.search.trust import Trust

__all__ = ["RankingConfig", "Settled", "settle"]

_EQUAL: Final = MappingProxyType({"vector": defaults.WEIGHT, "text": defaults.WEIGHT})


@dataclass(frozen=True, slots=True)
class RankingConfig:
    """How a store ranks when a hybrid query does not say: set by a user, or found by tuning.

    Attributes:
        fusion, weights, rrf_k, fetch_k, mmr_lambda: As in :class:`~cormorant.model.Query`;
            None leaves the setting to what was learned, or to the default. Where ``fetch_k``
            is below a query's ``top_k``, ``top_k`` is taken.
        evidence: Why these: scores, sets, dates; JSON values.

    Raises:
        ConfigError: On a value outside its range.
    """

    fusion: Fusion | None = None
    weights: Mapping[str, float] | None = None
    rrf_k: float | None = None
    fetch_k: int | None = None
    mmr_lambda: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            checked = Query(text="a", vector=(0.0,), top_k=1, **self._settings())
        except QueryError as error:
            raise ConfigError(f"The store's ranking: {error}") from error
        if not isinstance(self.evidence, Mapping):
            raise ConfigError(
                f"The store's ranking: evidence takes a dict; got {type(self.evidence).__name__}."
            )
        object.__setattr__(self, "weights", checked.weights)
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RankingConfig:
        """Read what :meth:`to_json` wrote; what a later release added is left out.

        Raises:
            ConfigError: On a value outside its range.
        """
        return cls(**{name: stored[name] for name in cls.__dataclass_fields__ if name in stored})

    def to_json(self) -> dict[str, Any]:
        """The settings that are set, as JSON values."""
        written = {name: value for name, value in self._settings().items() if value is not None}
        if self.weights is not None:
            written["weights"] = dict(self.weights)
        return {**written, "evidence": dict(self.evidence)}

    def _settings(self) -> dict[str, Any]:
        names = ("fusion", "weights", "rrf_k", "fetch_k", "mmr_lambda")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Settled:
    """A query's ranking settings with nothing left open.

    Attributes:
        fusion, weights, rrf_k, mmr_lambda: What holds; ``weights`` has both legs.
        fetch_k: Candidates per leg.
        weights_why: Who said the weights, for the reader.
        trust: Where the weights are learned: makes them for the query, once its legs were asked.
        scripts: Where the store has several: what was learned. Heeded by ``z`` alone.
    """

    fusion: Fusion
    weights: Mapping[str, float]
    rrf_k: float
    fetch_k: int
    mmr_lambda: float | None
    weights_why: str
    trust: Trust | None = None
    scripts: Trust | None = None


def settle(snapshot: Snapshot, query: Query) -> Settled:
    """Fill in what the query leaves open.

    A store's ranking is about hybrid searches; one leg alone is ranked as the query says.
    """
    hybrid = query.resolved_mode == "hybrid"
    kept = (snapshot.ranking if hybrid else None) or RankingConfig()
    mmr_lambda = query.mmr_lambda if query.mmr_lambda is not None else kept.mmr_lambda
    fusion = query.fusion or kept.fusion or defaults.FUSION
    rrf_k = next(k for k in (query.rrf_k, kept.rrf_k, defaults.RRF_K) if k is not None)
    if query.fetch_k is not None:
        fetch_k = query.fetch_k
    elif kept.fetch_k is not None:
        fetch_k = max(kept.fetch_k, query.top_k)
    elif mmr_lambda is not None and not hybrid:
        fetch_k = max(defaults.MMR_FETCH_K, query.top_k)
    else:
        fetch_k = defaults.leg_fetch_k(query.top_k)
    weights, said = _weights(query, kept)
    # What was learned was measured with standardised scores, and holds for them alone.
    learned = snapshot.trust if hybrid else None
    trust = learned if weights is None and fusion == "z" else None
    if trust is not None:
        weights = {"vector": trust.share, "text": 1.0 - trust.share}
        said = "as learned"
    scripts = learned if learned is not None and learned.several else None
    return Settled(fusion, weights or _EQUAL, rrf_k, fetch_k, mmr_lambda, said, trust, scripts)


def _weights(query: Query, kept: RankingConfig) -> tuple[Mapping[str, float] | None, str]:
    for given, said in (
        (query.weights, "as the query says"),
        (kept.weights, "as set in the store"),
    ):
        if given is not None:
            return {"vector": 0.0, "text": 0.0, **given}, said
    return None, "by default"
