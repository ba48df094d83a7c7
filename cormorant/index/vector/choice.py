"""Which index did somebody choose for a store's vectors?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from cormorant import defaults
from cormorant.errors import ConfigError

__all__ = ["INDEXES", "IndexChoice", "IndexKind"]

IndexKind: TypeAlias = Literal["pq", "exact"]
INDEXES: Final[tuple[IndexKind, ...]] = get_args(IndexKind)

_MOST_LISTS: Final = 65_536


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """What ``Store.optimize`` was asked for; kept in the store, so that upkeep follows it.

    Attributes:
        kind: ``pq`` (codes) or ``exact`` (vectors are scanned as they are).
        recall: Part of the true 10 nearest that a search should find.
        lists: Into how many lists codes are sorted; ``pq`` alone.

    Raises:
        ConfigError: On a value out of its range, or one that another kind would read.
    """

    kind: IndexKind = "pq"
    recall: float = defaults.RECALL_TARGET
    lists: int = 1

    def __post_init__(self) -> None:
        if self.kind not in INDEXES:
            raise ConfigError(f"index must be one of {', '.join(INDEXES)}; got {self.kind!r}.")
        if not isinstance(self.recall, float) or not 0.0 < self.recall < 1.0:
            raise ConfigError(
                f"recall must be a number above 0 and below 1, such as .99; got {self.recall!r}."
            )
        _check_whole("lists", self.lists, 1, _MOST_LISTS)
        if self.lists > 1 and self.kind != "pq":
            raise ConfigError(f"lists is read by index='pq' alone; got index={self.kind!r}.")

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> IndexChoice:
        """What :meth:`to_json` gave.

        Raises:
            ConfigError: If a value is out of its range.
            TypeError: If one has another name.
        """
        return cls(**stored)


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high}; got {value!r}.")
