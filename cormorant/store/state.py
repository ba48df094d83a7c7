"""What does a snapshot look like in memory?

A State is immutable. The writer and every reader reach the next one through the
same :meth:`State.apply`, from the same log rows, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import CorruptionError
from cormorant.index.growing import Growing
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cormorant.index.contract import Arrays
    from cormorant.storage import Delta

__all__ = ["State"]


@dataclass(frozen=True, slots=True)
class State:
    """One generation's records up to one log sequence number.

    Attributes:
        generation: Which vector file.
        lsn: The last log row applied.
        rows: int64, shape (n,), ascending: the permanent row of each slot.
        alive: bool, shape (n,): False where the record was deleted or replaced.
        has_vector: bool, shape (n,).
        dead: How many slots are not alive.
        columns, text: The metadata and text indexes.
    """

    generation: int
    lsn: int
    rows: Growing[np.int64]
    alive: Growing[np.bool_]
    has_vector: Growing[np.bool_]
    dead: int
    columns: Columns
    text: TextIndex
    _sample: list[NDArray[np.int64]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def empty(cls, generation: int, lsn: int = 0) -> State:
        """A store with nothing in it."""
        return cls(
            generation=generation,
            lsn=lsn,
            rows=Growing(np.empty(0, np.int64)),
            alive=Growing(np.empty(0, np.bool_)),
            has_vector=Growing(np.empty(0, np.bool_)),
            dead=0,
            columns=Columns.empty(),
            text=TextIndex.empty(),
        )

    @classmethod
    def from_arrays(cls, generation: int, lsn: int, arrays: Mapping[str, Arrays]) -> State:
        """The state a checkpoint holds; arrays stay mapped, nothing is decoded.

        Raises:
            CorruptionError: If a part is missing or the parts disagree about n.
        """
        try:
            base = arrays["base"]
            rows = np.asarray(base["rows"], dtype=np.int64)
            alive = np.asarray(base["alive"], dtype=np.bool_)
            has_vector = np.asarray(base["has_vector"], dtype=np.bool_)
            columns = Columns.from_arrays(arrays["columns"])
            text = TextIndex.from_arrays(arrays["text"])
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptionError(f"A derived file is damaged: {error!r}.") from error
        if not len(rows) == len(alive) == len(has_vector) == columns.n == text.n:
            raise CorruptionError(
                f"Derived files disagree: {len(rows)} rows, {columns.n} in columns, "
                f"{text.n} in text."
            )
        return cls(
            generation=generation,
            lsn=lsn,
            rows=Growing(rows),
            alive=Growing(alive),
            has_vector=Growing(has_vector),
            dead=int(len(alive) - np.count_nonzero(alive)),
            columns=columns,
            text=text,
        )

    def to_arrays(self) -> dict[str, Arrays]:
        """What a checkpoint keeps."""
        return {
            "base": {
                "rows": self.rows.view,
                "alive": self.alive.view,
                "has_vector": self.has_vector.view,
            },
            "columns": self.columns.to_arrays(),
            "text": self.text.to_arrays(),
        }

    @classmethod
    def bare(
        cls, generation: int, lsn: int, rows: NDArray[np.int64], has_vector: NDArray[np.bool_]
    ) -> State:
        """Slots alone, all dead, before :meth:`filled` gives them their contents."""
        return replace(
            cls.empty(generation, lsn),
            rows=Growing(rows),
            alive=Growing(np.zeros(len(rows), np.bool_)),
            has_vector=Growing(has_vector),
            dead=len(rows),
        )

    def filled(
        self,
        alive: NDArray[np.bool_],
        terms: list[list[str]],
        metadatas: list[dict[str, Any]],
    ) -> State:
        """These slots with indexes made from scratch; what is not alive must come empty."""
        return replace(
            self,
            alive=Growing(alive),
            dead=int(len(alive) - np.count_nonzero(alive)),
            columns=Columns.empty().append(Columns.encode(metadatas)),
            text=TextIndex.empty().append(TextIndex.encode(terms)),
        )

    @property
    def n(self) -> int:
        """Slots, dead ones included."""
        return len(self.rows)

    @property
    def live(self) -> int:
        """Records that can be found."""
        return self.n - self.dead

    def slots_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of permanent rows; -1 where this generation does not hold one."""
        held = self.rows.view
        at = np.searchsorted(held, rows)
        at[at == len(held)] = 0
        found = held[at] == rows if len(held) else np.zeros(len(rows), np.bool_)
        return np.where(found, at, -1)

    def apply(self, delta: Delta) -> State:
        """The next state.

        Positions inside a delta are relative to its own first record, so compaction can
        replay it onto a generation where it lands elsewhere.
        """
        count = delta.hi - delta.lo
        state = self
        if len(delta.dead_rows):
            slots = self.slots_of(np.asarray(delta.dead_rows, dtype=np.int64))
            slots = slots[slots >= 0]
            slots = slots[self.alive.view[slots]]
            state = replace(
                state,
                alive=state.alive.with_values(slots, False),  # noqa: FBT003 - a value, not a flag
                dead=state.dead + len(slots),
                _sample=[],
            )
        if count:
            first = delta.first_row
            state = replace(
                state,
                rows=state.rows.append(np.arange(first, first + count, dtype=np.int64)),
                alive=state.alive.append(np.ones(count, np.bool_)),
                has_vector=state.has_vector.append(np.asarray(delta.has_vector, np.bool_)),
                columns=state.columns.append(delta.columns),
                text=state.text.append(delta.postings),
                _sample=[],
            )
        return replace(state, lsn=delta.lsn)

    def take(self, keep: NDArray[np.int64], generation: int) -> State:
        """Only the slots in ``keep``, numbered anew: a compacted generation."""
        return State(
            generation=generation,
            lsn=self.lsn,
            rows=Growing(self.rows.view[keep]),
            alive=Growing(np.ones(len(keep), np.bool_)),
            has_vector=Growing(self.has_vector.view[keep]),
            dead=0,
            columns=self.columns.take(keep),
            text=self.text.take(keep),
        )

    @property
    def sample(self) -> NDArray[np.int64]:
        """Slots whose vector scores stand for the whole collection's mean and deviation.

        All live slots with a vector if there are few, else those with the smallest hash of
        their row: a uniform sample that stays the same while other records come and go.
        """
        if not self._sample:
            self._sample.append(self._draw())
        return self._sample[0]

    def _draw(self) -> NDArray[np.int64]:
        slots = np.flatnonzero(self.alive.view & self.has_vector.view)
        if len(slots) <= defaults.STATISTICS_SAMPLE:
            return slots
        keys = _splitmix64(self.rows.view[slots])
        chosen = np.argpartition(keys, defaults.STATISTICS_SAMPLE)[: defaults.STATISTICS_SAMPLE]
        return np.sort(slots[chosen])


def _splitmix64(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, fig. 15."""
    z = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
