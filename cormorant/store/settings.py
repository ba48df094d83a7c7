"""How are a store's remembered settings changed?

Each change starts from the settings as they stand in the store under the lock, never
from what this process read when it opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import ConfigError, DimensionError
from cormorant.index.vector import IndexChoice
from cormorant.search import Calibration, RankingConfig, Trust
from cormorant.store.checked import RecallCheck
from cormorant.store.config import StoreConfig
from cormorant.store.fingerprint import Fingerprint, compare, require_same

if TYPE_CHECKING:
    from cormorant.storage import Writer
    from cormorant.store.core import Core
    from cormorant.store.snapshot import Snapshot

__all__ = [
    "add_requirement",
    "calibration_doubt",
    "fingerprint",
    "remember_embedder",
    "set_calibration",
    "set_dim",
    "set_index",
    "set_ranking",
    "set_recall_check",
    "set_trust",
    "trust_doubt",
    "with_dim",
]


def fingerprint(config: StoreConfig) -> Fingerprint | None:
    """The stored probe vectors, decoded."""
    return None if config.fingerprint is None else Fingerprint.from_json(config.fingerprint)


def with_dim(config: StoreConfig, dim: int) -> StoreConfig | None:
    """The settings with the dimension filled in; None if they had it already.

    Raises:
        DimensionError: If the store has another dimension.
    """
    if config.dim is None:
        return replace(config, dim=dim)
    if config.dim != dim:
        raise DimensionError(
            f"The vectors have {dim} numbers; this store holds vectors of {config.dim}."
        )
    return None


def set_dim(core: Core, dim: int) -> None:
    """Fix the dimension of a store that has no vectors yet."""
    _change(core, lambda snapshot: with_dim(snapshot.config, dim))


def add_requirement(core: Core, fields: Iterable[str]) -> None:
    """Require a scope on further fields, from now on and in every process."""

    def wider(snapshot: Snapshot) -> StoreConfig:
        stored = snapshot.config.require_scope
        return replace(
            snapshot.config, require_scope=(*stored, *(f for f in fields if f not in stored))
        )

    _change(core, wider)


def set_ranking(core: Core, ranking: RankingConfig | None) -> None:
    """Rank as told where a query does not say; None: as learned, or by default.

    Raises:
        ConfigError: If it is no RankingConfig, or its evidence cannot be kept as JSON.
    """
    if not isinstance(ranking, (RankingConfig, NoneType)):
        raise ConfigError(
            f"ranking takes a RankingConfig, or None to unset it; got {type(ranking).__name__}."
        )
    if ranking is not None:
        _check_json(ranking.to_json(), "ranking")
    _change(core, lambda snapshot: replace(snapshot.config, ranking=ranking))


def set_calibration(core: Core, calibration: Calibration | None) -> None:
    """Report probabilities as relevances from now on; None: what the indexes report.

    Raises:
        ConfigError: If it is no Calibration, its evidence cannot be kept as JSON, or it was
            made with another embedder's vectors.
    """
    if not isinstance(calibration, (Calibration, NoneType)):
        raise ConfigError(
            f"calibration takes a Calibration, or None to drop it; got "
            f"{type(calibration).__name__}."
        )
    if calibration is not None:
        _check_json(calibration.to_json(), "calibration")

    def change(snapshot: Snapshot) -> StoreConfig:
        changed = replace(snapshot.config, calibration=calibration)
        doubt = calibration_doubt(changed)
        if doubt is not None:
            raise ConfigError(f"{doubt} Calibrate with this store's own embedder.")
        return changed

    _change(core, change)


def calibration_doubt(config: StoreConfig) -> str | None:
    """Why the calibration does not fit the store's vectors; None if it does, or there is none."""
    if config.calibration is None:
        return None
    other = _other_vectors(config.calibration.fingerprint, config.fingerprint)
    return None if other is None else f"The calibration was made with other vectors. {other}"


def set_trust(core: Core, trust: Trust | None) -> None:
    """Keep what was learned of the legs; None forgets it."""
    _change(core, lambda snapshot: replace(snapshot.config, trust=trust))


def set_index(core: Core, index: IndexChoice) -> None:
    """Give vectors this index from the next building on."""
    _change(core, lambda snapshot: replace(snapshot.config, index=index))


def set_recall_check(core: Core, check: RecallCheck | None) -> None:
    """Keep what a check of recall found; None forgets it."""
    _change(core, lambda snapshot: replace(snapshot.config, recall_check=check))


def trust_doubt(config: StoreConfig, rows: NDArray[np.int64]) -> str | None:
    """Why what was learned no longer fits; None if it does, or nothing was.

    Args:
        config: The store's.
        rows: int64, ascending: those of its records.
    """
    if config.trust is None:
        return None
    other = _other_vectors(config.trust.fingerprint, config.fingerprint)
    if other is not None:
        return f"It was learned from other vectors. {other}"
    newer = len(rows) - int(np.searchsorted(rows, config.trust.newest, side="right"))
    if 2 * newer > len(rows):
        return (
            f"{newer:,} of {len(rows):,} records came after it was learned. "
            "Store.optimize() learns again."
        )
    return None


def _other_vectors(
    made_with: Mapping[str, Any] | None, kept: Mapping[str, Any] | None
) -> str | None:
    """How another embedder's fingerprint differs from the store's; None if it does not."""
    if made_with is None or kept is None or kept == made_with:
        return None
    verdict = compare(Fingerprint.from_json(made_with), Fingerprint.from_json(kept))
    return None if verdict.same else verdict.says


def _check_json(written: object, what: str) -> None:
    try:
        json.dumps(written, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"The {what}'s evidence must be JSON values, without NaN: {error}."
        ) from error


def remember_embedder(
    core: Core, spec: str | None, fresh: Fingerprint | None, *, respecify: bool
) -> None:
    """Remember the embedder, refusing another one than the stored vectors were made with.

    Args:
        core: Of the store.
        spec: Its specification; looked at if ``respecify``.
        fresh: Its probe vectors, if they were taken.
        respecify: Whether the specification may change.

    Raises:
        EmbeddingMismatch: If the store has vectors of another embedder.
        ConfigError: If the store has vectors, and nothing shows that another specification
            means the same embedder.
    """
    if not isinstance(fresh, (Fingerprint, NoneType)) or not isinstance(spec, (str, NoneType)):
        raise ConfigError(
            "An embedder is remembered by its specification, a string, and its Fingerprint; got "
            f"{type(spec).__name__} and {type(fresh).__name__}."
        )

    def change(snapshot: Snapshot) -> StoreConfig:
        config = snapshot.config
        stored = fingerprint(config)
        if (snapshot.has_vector & snapshot.alive).any():
            if fresh is not None and stored is not None:
                require_same(stored, fresh)
            renamed = respecify and config.embedder is not None and spec != config.embedder
            if renamed and (fresh is None or stored is None):
                raise ConfigError(
                    f"The store's vectors were made by {config.embedder!r}; it cannot take "
                    f"{spec!r} instead on its word. Build a new store with that embedder, or give "
                    "its fingerprint to set_embedder if both names mean the same model."
                )
        return replace(
            config,
            embedder=spec if respecify else config.embedder,
            fingerprint=config.fingerprint if fresh is None else fresh.to_json(),
        )

    _change(core, change)


def _change(core: Core, make: Callable[[Snapshot], StoreConfig | None]) -> None:
    def work(writer: Writer, snapshot: Snapshot) -> None:
        changed = make(snapshot)
        if changed is not None and changed != snapshot.config:
            core.commit(writer, None, terms=[], dead=np.empty(0, np.int64), config=changed)

    core.write_unscoped(work)
