"""What did the last check of recall find? As it is kept in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["RecallCheck"]


@dataclass(frozen=True, slots=True)
class RecallCheck:
    """What the last check found, as it is kept in the store.

    Attributes:
        lsn: Which state of the store was asked.
        k, queries: How many hits were wanted of how many questions.
        mean, low, high: Recall, with the 95 % interval of its mean.
        recent: Of the newest vectors that the index holds, asked as questions; None if there
            is no index.
        drift: Why the index should be made anew, a sentence; None if it need not.
    """

    lsn: int
    k: int
    queries: int
    mean: float
    low: float
    high: float
    recent: float | None = None
    drift: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RecallCheck:
        """What :meth:`to_json` gave.

        Raises:
            TypeError: If a value has another name.
        """
        return cls(**stored)
