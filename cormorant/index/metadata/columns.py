"""Which records match a filter? The metadata of a snapshot, by column.

A :class:`Columns` is two tables: a base that lies in mapped files as a checkpoint or
compaction left it, and a tail of the records added since, which grows in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import FilterError, RecordError, UsageError
from cormorant.filters import And, Compare, Filter, Not, Or, Text
from cormorant.index.contract import Arrays, Mask
from cormorant.index.metadata.blob import pack, unpack
from cormorant.index.metadata.frozen import freeze, thaw
from cormorant.index.metadata.info import FieldInfo, field_info
from cormorant.index.metadata.masks import MASKS
from cormorant.index.metadata.table import Table, tabulate

__all__ = ["Columns", "TextMask"]

TextMask: TypeAlias = Callable[[str], Mask]
"""Words → bool, shape (n,): the slots whose text contains every term of the words."""

_EMPTY = Table(0, {})


class Columns:
    """The metadata of slots 0 … n-1. Immutable: a change makes a new object that shares arrays.

    Example:
        >>> from cormorant.filters import parse
        >>> from cormorant.index.metadata import Columns
        >>> columns = Columns.empty().append(Columns.encode([{"year": 2023}, {"year": 2024}]))
        >>> columns.mask(parse({"year": {"$gte": 2024}})).tolist()
        [False, True]
    """

    __slots__ = ("_base", "_tail")

    def __init__(self, base: Table, tail: Table) -> None:
        self._base = base
        self._tail = tail

    @classmethod
    def empty(cls) -> Columns:
        """No records."""
        return cls(_EMPTY, _EMPTY)

    @property
    def n(self) -> int:
        """How many records."""
        return self._base.n + self._tail.n

    @staticmethod
    def encode(records: Iterable[Mapping[str, Any]]) -> bytes:
        """The metadata of some records as bytes, numbered from 0, for :meth:`append`.

        Raises:
            RecordError: A value is of a type that cannot be stored.
        """
        try:
            return pack(freeze([(tabulate(records), None)]))
        except UnicodeEncodeError as error:
            raise RecordError(
                f"Metadata holds a lone surrogate ({error.object!r:.80}), which is no character. "
                "Decode the string properly before it gets here."
            ) from error

    def append(self, blob: bytes) -> Columns:
        """These records and then those of the blob. Costs what the blob holds, not ``n``.

        Raises:
            CorruptionError: The blob is damaged.
            FormatError: A later release wrote it.
        """
        return Columns(self._base, self._tail.extend(thaw(unpack(blob))))

    def take(self, keep: NDArray[np.int64]) -> Columns:
        """Only these slots, moved together; nothing of the others remains in it.

        Args:
            keep: int64, shape (m,), strictly ascending.

        Raises:
            UsageError: Slots out of order, repeated, or not there.
        """
        keep = np.asarray(keep, dtype=np.int64)
        if len(keep) and (keep[0] < 0 or keep[-1] >= self.n or (keep[1:] <= keep[:-1]).any()):
            raise UsageError(
                f"take() wants slots from 0 to {self.n - 1} in ascending order, each once."
            )
        cut = int(np.searchsorted(keep, self._base.n))
        parts = [(self._base, keep[:cut]), (self._tail, keep[cut:] - self._base.n)]
        return Columns(thaw(freeze(parts)), _EMPTY)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """A dozen arrays that hold everything, for a derived file."""
        return freeze([(self._base, None), (self._tail, None)])

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Columns:
        """From what :meth:`to_arrays` gave, mapped read-only or not; decoded when needed.

        Raises:
            CorruptionError: The arrays are damaged.
            FormatError: A later release wrote them.
        """
        return cls(thaw(arrays), _EMPTY)

    def mask(self, filter: Filter, *, text_mask: TextMask | None = None) -> Mask:
        """Which slots match? Says the same as ``filter.matches`` for every record.

        Args:
            filter: A parsed filter.
            text_mask: How ``$text`` is answered.

        Returns:
            bool, shape (n,), the caller's own.

        Raises:
            FilterError: The filter holds ``$text`` and there is no ``text_mask``.
        """
        if isinstance(filter, Compare):
            return self._compare(filter)
        if isinstance(filter, Not):
            return np.logical_not(self.mask(filter.part, text_mask=text_mask))
        if isinstance(filter, And):
            return self._all(filter.parts, text_mask)
        if isinstance(filter, Or):
            some = np.zeros(self.n, dtype=np.bool_)
            for part in filter.parts:
                some |= self.mask(part, text_mask=text_mask)
            return some
        if isinstance(filter, Text):
            return self._text(filter.words, text_mask)
        raise FilterError(f"mask() takes a parsed filter; got {type(filter).__name__}.")

    def fields(self, alive: Mask | None = None) -> dict[str, FieldInfo]:
        """What each dotted field holds, by name.

        Args:
            alive: bool, shape (n,): the slots that count; None for all.
        """
        names = sorted({*self._base.fields, *self._tail.fields})
        infos = {}
        for name in names:
            parts = [
                (table.fields[name], None if alive is None else alive[start : start + table.n])
                for table, start in self._tables()
                if name in table.fields
            ]
            info = field_info(parts)
            if info is not None:
                infos[name] = info
        return infos

    def _tables(self) -> Iterator[tuple[Table, int]]:
        yield self._base, 0
        yield self._tail, self._base.n

    def _compare(self, clause: Compare) -> Mask:
        row = clause.row
        out = np.zeros(self.n, dtype=np.bool_)
        for table, start in self._tables():
            if clause.field in table.fields:
                fill = MASKS[str(row.mask)]
                fill(table.fields[clause.field], clause.operand, out[start : start + table.n])
        if row.negated or clause.operand is False:  # {"$exists": False}
            np.logical_not(out, out=out)
        return out

    def _all(self, parts: tuple[Filter, ...], text_mask: TextMask | None) -> Mask:
        every = np.ones(self.n, dtype=np.bool_)
        for part in parts:
            every &= self.mask(part, text_mask=text_mask)
        return every

    def _text(self, words: str, text_mask: TextMask | None) -> Mask:
        if text_mask is None:
            raise FilterError(
                f"$text {words!r} needs the text index. Give mask() text_mask=, or ask the store."
            )
        return np.array(text_mask(words), dtype=np.bool_)
