"""How is a table kept as plain arrays, and read back without being decoded?

All arrays of one dtype lie behind each other in one, so a table is a dozen arrays
however many fields it has; ``meta`` (JSON) says which stretch is what. Values are in
the narrowest dtype that holds them exactly, strings sorted. A field's stretches become
a :class:`Field` when a filter first asks for it.

Layout of ``meta``: ``{"version": 1, "n": n, "fields": {name: {sort: [slots, values,
offsets, blob]}}}``. A stretch is ``[dtype, start, length]``; slots without a gap are
``[first, count]``; parts that a sort does not have are left off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import CorruptionError, FormatError
from cormorant.index.contract import Arrays
from cormorant.index.metadata.dictionary import REPAIR, SortedStrings, encode_strings
from cormorant.index.metadata.runs import Run, Slots
from cormorant.index.metadata.sound import (
    MAX_SLOTS,
    check_coded,
    check_shape,
    check_slots,
    check_strings,
    check_values,
)
from cormorant.index.metadata.table import Column, Field, Table

__all__ = ["freeze", "thaw"]

VERSION = 1
_META = "meta"
_DTYPES = ("u1", "u2", "u4", "i1", "i2", "i4", "i8", "f4", "f8")
_WHOLE = tuple(
    (np.dtype("<" + name), np.iinfo(name)) for name in ("u1", "i1", "u2", "i2", "u4", "i4", "i8")
)
_WORTHWHILE = 32  # values, from which on narrowing saves more than it costs


def freeze(parts: Sequence[tuple[Table, NDArray[np.int64] | None]]) -> dict[str, NDArray[Any]]:
    """One table from several, each reduced to the slots to keep (None: all), as arrays.

    Args:
        parts: Tables and int64 slots of theirs, strictly ascending.

    Returns:
        Arrays by dtype, and ``meta``. Strings that no kept record uses are not in them.
    """
    packer = _Packer()
    moves = [_Move(table.n, keep) for table, keep in parts]
    offsets = np.cumsum([0, *(move.n for move in moves)]).tolist()
    names = dict.fromkeys(name for table, _ in parts for name in table.fields)
    for name in names:
        held = [
            (table.fields[name], move, offset)
            for (table, _), move, offset in zip(parts, moves, offsets, strict=False)
            if name in table.fields
        ]
        for sort in dict.fromkeys(sort for field, _, _ in held for sort in field):
            pieces = [
                _Piece(field[sort], move, offset) for field, move, offset in held if sort in field
            ]
            if sum(piece.n for piece in pieces):
                packer.add(name, sort, pieces)
    return packer.arrays(offsets[-1])


class _Move:
    """Where a table's slots go."""

    def __init__(self, n: int, keep: NDArray[np.int64] | None) -> None:
        self.n = n if keep is None else len(keep)
        self.drops = keep is not None
        self._to: NDArray[np.int64] | None = None
        if keep is not None:
            self._to = np.full(n, -1, dtype=np.int64)
            self._to[keep] = np.arange(len(keep))

    def __call__(self, slots: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | slice]:
        """The new slots, and which of the old stay."""
        if self._to is None:
            return slots, slice(None)
        moved = self._to[slots]
        stays = moved >= 0
        return moved[stays], stays


class _Piece:
    """What stays of one column."""

    def __init__(self, column: Column, move: _Move, offset: int) -> None:
        slots, stays = move(column.slots.array)
        self.slots = slots.astype(np.int64) + offset
        self.n = len(slots)
        self.values = None if column.values is None else column.values.view[stays]
        self.strings = None if column.strings is None else column.strings.all()
        self._drops = move.drops

    def used(self) -> Sequence[str]:
        """The strings some value stands for."""
        if self.strings is None or self.values is None:
            return []
        if not self._drops:
            return self.strings
        counts = np.bincount(self.values, minlength=len(self.strings))
        return [self.strings[code] for code in np.flatnonzero(counts).tolist()]

    def recode(self, codes: Mapping[str, int]) -> NDArray[np.int64]:
        """The values in another dictionary's codes."""
        if self.strings is None or self.values is None:
            return np.empty(0, dtype=np.int64)
        table = np.fromiter(
            (codes.get(string, -1) for string in self.strings),
            dtype=np.int64,
            count=len(self.strings),
        )
        values: NDArray[np.int64] = table[self.values]
        return values


class _Packer:
    """Collects stretches by dtype, and the description of what is where."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[NDArray[Any]]] = {name: [] for name in _DTYPES}
        self._lengths = dict.fromkeys(_DTYPES, 0)
        self._fields: dict[str, dict[str, list[list[Any]]]] = {}

    def add(self, name: str, sort: str, pieces: list[_Piece]) -> None:
        """Pack one sort of one field."""
        slots = Slots.of(np.concatenate([piece.slots for piece in pieces]))
        packed = [[slots.start, slots.n] if slots.contiguous else self._put(_narrow(slots.array))]
        if pieces[0].strings is not None:
            strings = sorted({string for piece in pieces for string in piece.used()})
            codes = {string: code for code, string in enumerate(strings)}
            values = np.concatenate([piece.recode(codes) for piece in pieces])
            cuts, blob = encode_strings(strings)
            packed += [self._put(_narrow(values)), self._put(_narrow(cuts)), self._put(blob)]
        elif pieces[0].values is not None:
            raw = np.concatenate([piece.values for piece in pieces if piece.values is not None])
            packed.append(self._put(_narrow(raw)))
        self._fields.setdefault(name, {})[sort] = packed

    def arrays(self, n: int) -> dict[str, NDArray[Any]]:
        """All that was packed."""
        meta = {"version": VERSION, "n": n, "fields": self._fields}
        data = json.dumps(meta, separators=(",", ":")).encode()
        arrays: dict[str, NDArray[Any]] = {_META: np.frombuffer(data, dtype=np.uint8)}
        for name, chunks in self._chunks.items():
            if chunks:
                arrays[name] = np.concatenate(chunks)
        return arrays

    def _put(self, array: NDArray[Any]) -> list[Any]:
        name = array.dtype.str[1:]
        start = self._lengths[name]
        self._chunks[name].append(array)
        self._lengths[name] += len(array)
        return [name, start, len(array)]


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The values in the smallest dtype that holds each exactly; a handful as they are."""
    if len(values) < _WORTHWHILE:
        return values
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            half = values.astype("<f4")
        return half if bool((half == values).all()) else values.astype("<f8", copy=False)
    low, high = int(values.min()), int(values.max())
    for dtype, bounds in _WHOLE:
        if bounds.min <= low and high <= bounds.max:
            return values.astype(dtype, copy=False)
    return values


def thaw(arrays: Arrays) -> Table:
    """The table in these arrays, which may be mapped read-only; nothing else is read yet.

    Raises:
        CorruptionError: The arrays do not hold what ``meta`` says.
        FormatError: A later release wrote them.
    """
    try:
        meta = json.loads(np.asarray(arrays[_META]).tobytes())
        version, n, fields = meta["version"], meta["n"], meta["fields"]
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise CorruptionError(
            f"The metadata columns have no readable description: {error!r:.200}. {REPAIR}"
        ) from error
    if version != VERSION:
        raise FormatError(
            f"The metadata columns are of version {version!r}; this release reads {VERSION}. "
            "Open the store with the release that wrote it, or a later one."
        )
    if type(n) is not int or not 0 <= n <= MAX_SLOTS or not isinstance(fields, dict):
        raise CorruptionError(f"The metadata columns have no readable description. {REPAIR}")
    return Table(n, _Fields(n, fields, arrays))


class _Fields(Mapping[str, Field]):
    """Fields by name, each put together when first asked for."""

    def __init__(self, n: int, fields: dict[str, Any], arrays: Arrays) -> None:
        self._n = n
        self._described = fields
        self._arrays = arrays
        self._ready: dict[str, Field] = {}

    def __len__(self) -> int:
        return len(self._described)

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __contains__(self, name: object) -> bool:
        return name in self._described

    def __getitem__(self, name: str) -> Field:
        field = self._ready.get(name)
        if field is None:
            described = self._described[name]
            try:
                field = {sort: self._column(sort, parts) for sort, parts in described.items()}
                if not field:
                    raise ValueError("it holds nothing")
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise CorruptionError(
                    f"The metadata column {name!r:.80} is damaged: {error!r:.200}. {REPAIR}"
                ) from error
            self._ready[name] = field
        return field

    def _column(self, sort: str, parts: list[list[Any]]) -> Column:
        check_shape(sort, parts)
        where, *rest = parts
        if len(where) == 2:
            slots = Slots(None, *where)
            if where[0] + where[1] > self._n:
                raise ValueError(f"slots {where} of {self._n}")
        else:
            array = self._stretch(where)
            check_slots(array, self._n)
            slots = Slots.of(array)
        runs = [self._stretch(part) for part in rest]
        if not runs:
            return Column(slots)
        if len(runs[0]) != slots.n:
            raise ValueError(f"{len(runs[0])} values in {slots.n} slots")
        check_values(sort, runs[0])
        if len(runs) == 1:
            return Column(slots, Run.of(runs[0]))
        _, offsets, blob = runs
        check_strings(offsets, blob)
        check_coded(runs[0], len(offsets) - 1)
        return Column(slots, Run.of(runs[0]), SortedStrings(offsets, blob.view(np.uint8)))

    def _stretch(self, described: list[Any]) -> NDArray[Any]:
        name, start, length = described
        if name not in _DTYPES:
            raise ValueError(f"numbers of {name!r:.80}")
        if length == 0:
            return np.empty(0, dtype="<" + name)
        stretch = np.asarray(self._arrays[name])[start : start + length]  # a memmap slices slowly
        if len(stretch) != length or stretch.dtype != np.dtype("<" + name):
            raise ValueError(
                f"{length} values of {name} from {start}, of which {len(stretch)} are there"
            )
        return stretch
