"""What does a snapshot look like in memory?

A State is immutable. The writer and every reader reach the next one through the
same :meth:`State.apply`, from the same log rows, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError
from cormorant.index.growing import Growing
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex
from cormorant.index.vector import Coded
from cormorant.store.sample import Sample

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
        with_vector: How many live slots have a vector.
        coded: Codes of the first slots' vectors; None: vectors are scanned as they are.
    """

    generation: int
    lsn: int
    rows: Growing[np.int64]
    alive: Growing[np.bool_]
    has_vector: Growing[np.bool_]
    dead: int
    columns: Columns
    text: TextIndex
    with_vector: int = 0
    coded: Coded | None = None
    _sample: list[Sample] = field(default_factory=list, compare=False, repr=False)

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
            coded = Coded.from_arrays(arrays["codes"]) if "codes" in arrays else None
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptionError(f"A derived file is damaged: {error!r}.") from error
        count = 0 if coded is None else coded.n
        if not count <= len(rows) == len(alive) == len(has_vector) == columns.n == text.n:
            raise CorruptionError(
                f"Derived files disagree: {len(rows)} rows, {columns.n} in columns, "
                f"{text.n} in text, {count} codes."
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
            with_vector=int(np.count_nonzero(alive & has_vector)),
            coded=coded,
        )

    def to_arrays(self) -> dict[str, Arrays]:
        """What a checkpoint keeps."""
        arrays: dict[str, Arrays] = {
            "base": {
                "rows": self.rows.view,
                "alive": self.alive.view,
                "has_vector": self.has_vector.view,
            },
            "columns": self.columns.to_arrays(),
            "text": self.text.to_arrays(),
        }
        if self.coded is not None:
            arrays["codes"] = self.coded.to_arrays()
        return arrays

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
            with_vector=int(np.count_nonzero(alive & self.has_vector.view)),
            _sample=[],
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
        state, sample = self, self._sample[:1]
        if len(delta.dead_rows):
            slots = self.slots_of(np.asarray(delta.dead_rows, dtype=np.int64))
            slots = slots[slots >= 0]
            slots = slots[self.alive.view[slots]]
            sample = [left for one in sample if (left := one.without(slots)) is not None]
            state = replace(
                state,
                alive=state.alive.with_values(slots, False),  # noqa: FBT003 - a value, not a flag
                dead=state.dead + len(slots),
                with_vector=state.with_vector - int(np.count_nonzero(state.has_vector.view[slots])),
                _sample=sample,
            )
        if count:
            rows = np.arange(delta.first_row, delta.first_row + count, dtype=np.int64)
            has_vector = np.asarray(delta.has_vector, np.bool_)
            having = np.flatnonzero(has_vector)
            state = replace(
                state,
                rows=state.rows.append(rows),
                alive=state.alive.append(np.ones(count, np.bool_)),
                has_vector=state.has_vector.append(has_vector),
                with_vector=state.with_vector + len(having),
                columns=state.columns.append(delta.columns),
                text=state.text.append(delta.postings),
                _sample=[one.joined(having + self.n, rows[having]) for one in sample],
            )
            if not state.columns.n == state.text.n == state.n:
                raise CorruptionError(
                    f"Change {delta.lsn} of the log adds {count} records, {state.text.n - self.n} "
                    f"to the text index and {state.columns.n - self.n} to the metadata. "
                    "check(repair=True) rebuilds what is derived from the records."
                )
        return replace(state, lsn=delta.lsn)

    def take(self, keep: NDArray[np.int64], generation: int) -> State:
        """Only the slots in ``keep``, numbered anew: a compacted generation."""
        has_vector = self.has_vector.view[keep]
        return State(
            generation=generation,
            lsn=self.lsn,
            rows=Growing(self.rows.view[keep]),
            alive=Growing(np.ones(len(keep), np.bool_)),
            has_vector=Growing(has_vector),
            dead=0,
            with_vector=int(np.count_nonzero(has_vector)),
            columns=self.columns.take(keep),
            text=self.text.take(keep),
            coded=None if self.coded is None else self.coded.take(keep),
        )

    def recoded(self, arrays: Mapping[str, Arrays]) -> State:
        """With the codes of a newer checkpoint of this generation; the same ones are kept.

        Raises:
            CorruptionError: If they are damaged.
        """
        if "codes" not in arrays:
            return replace(self, coded=None)
        try:
            coded = Coded.from_arrays(arrays["codes"])
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptionError(f"A derived file is damaged: {error!r}.") from error
        if coded.n > self.n or (self.coded is not None and self.coded.mark == coded.mark):
            return self
        return replace(self, coded=coded)

    @property
    def sample(self) -> Sample:
        """Of the live slots with a vector; drawn when first needed, then carried along."""
        held = self._sample[:1]
        if not held:
            slots = np.flatnonzero(self.alive.view & self.has_vector.view)
            held = [Sample.draw(slots, self.rows.view[slots])]
            self._sample[:] = held
        return held[0]
