"""Which configurations are to be tried?"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Self

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.evaluate.tuning.knobs import ABSENT, KNOBS
from cormorant.evaluate.tuning.point import INDEXED, Point, simplicity

__all__ = ["DEFAULT_SPACE", "MAX_POINTS", "Space"]

MAX_POINTS: Final = 10_000
"""More are refused: nobody waits for them, and the best of so many is best by luck."""

DEFAULT_SPACE: Final[Mapping[str, Any]] = {
    "fusion": ["z", "minmax", "rrf"],
    "vector_weight": {"from": 0.0, "to": 1.0, "step": 0.05},
}
"""Both legs alone and every share between them, under each fusion."""

_ROUND: Final = 9  # digits: 0.1 + 0.2 is written 0.3


@dataclass(frozen=True, slots=True)
class Space:
    """Settings and the values to try of each; every combination is a configuration.

    Attributes:
        values: By setting, the values in the order written.

    Raises:
        ConfigError: On a setting that cannot be tuned, a value it does not take, or more than
            :data:`MAX_POINTS` combinations.
    """

    values: Mapping[str, tuple[Any, ...]]

    def __post_init__(self) -> None:
        count = math.prod(map(len, self.values.values()))
        if count > MAX_POINTS:
            sizes = ", ".join(f"{name} {len(each)}" for name, each in self.values.items())
            raise ConfigError(
                f"The space has {count:,} combinations ({sizes}); at most {MAX_POINTS:,} are "
                "tried. Name fewer values, or tune some settings after the others."
            )

    @classmethod
    def of(cls, written: Mapping[str, Any], *, name: str = "space") -> Self:
        """Read a space from a dict of values, lists and ranges.

        Args:
            written: By setting: a value, a list of them, or for numbers a range
                ``{"from": .1, "to": .9, "step": .1}``, both ends included.
            name: Stands in errors.

        Raises:
            ConfigError: As the class says.

        Example:
            >>> space = Space.of({"vector_weight": {"from": 0.4, "to": 0.6, "step": 0.1}})
            >>> space.values["vector_weight"]
            (0.4, 0.5, 0.6)
        """
        if not isinstance(written, Mapping) or not written:
            raise ConfigError(f"{name} names no setting to tune. Accepted: {_accepted()}.")
        return cls({key: _values(name, key, value) for key, value in written.items()})

    @classmethod
    def default(cls) -> Self:
        """:data:`DEFAULT_SPACE`."""
        return cls.of(DEFAULT_SPACE)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a space from a TOML file.

        Raises:
            ConfigError: If it cannot be read, is not TOML, or as the class says.
        """
        try:
            written = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}.") from error
        return cls.of(written, name=str(path))

    def points(self, *, depth: int) -> tuple[Point, ...]:
        """Every configuration that differs from the others in what it does, simple ones first.

        A setting that nothing reads (``rrf_k`` without ``rrf``, ``fusion`` of one leg) is left
        at its default, and a ``chunk_overlap`` as large as its chunk is no configuration.

        Args:
            depth: Hits that the metric reads.

        Raises:
            ConfigError: If none is left.
        """
        found: dict[Point, None] = {}
        for combination in product(*self.values.values()):
            point = _canonical(
                Point(**dict(zip(self.values, combination, strict=True))), depth=depth
            )
            if point is not None:
                found.setdefault(point)
        if not found:
            raise ConfigError(
                "No configuration is left: every chunk_overlap is at least as large as its "
                "chunk_size. Name smaller overlaps."
            )
        return tuple(sorted(found, key=simplicity))

    def to_json(self) -> dict[str, Any]:
        """The values by setting."""
        return {name: list(values) for name, values in self.values.items()}


def _canonical(point: Point, *, depth: int) -> Point | None:
    size, overlap = point.chunk_size, point.chunk_overlap
    if size is None:
        point = replace(point, chunk_overlap=None)
    elif overlap is not None and overlap >= size:
        return None
    if point.vector_weight in (0.0, 1.0):
        point = replace(point, fusion=defaults.FUSION)
    if point.fusion != "rrf":
        point = replace(point, rrf_k=defaults.RRF_K)
    if point.top_k is not None and point.top_k >= depth:
        point = replace(point, top_k=None)
    if point.fetch_k is not None and max(point.fetch_k, depth) == defaults.leg_fetch_k(depth):
        point = replace(point, fetch_k=None)
    return point


def _values(where: str, name: str, written: Any) -> tuple[Any, ...]:
    if name in ABSENT:
        raise ConfigError(
            f"{where} varies {name!r}, a setting of approximate indexes made of graphs or lists, "
            f"which stores do not have. Leave it out. Accepted: {_accepted()}."
        )
    knob = KNOBS.get(name)
    if knob is None:
        near = difflib.get_close_matches(str(name), KNOBS, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"{where} varies {name!r}, which cannot be tuned.{meant} Accepted: {_accepted()}."
        )
    if isinstance(written, Mapping):
        several = _range(where, name, written)
    else:
        several = list(written) if isinstance(written, (list, tuple)) else [written]
    if not several:
        raise ConfigError(f"{where}, {name}: the list is empty; name {knob.accepts}.")
    read: dict[Any, None] = {}
    for value in several:
        try:
            read.setdefault(knob.read(value))
        except (ValueError, TypeError) as error:
            told = f" {error}" if str(error) else ""
            raise ConfigError(
                f"{where}, {name}: got {value!r}; accepted is {knob.accepts}.{told}"
            ) from error
    return tuple(read)


def _range(where: str, name: str, written: Mapping[str, Any]) -> list[float]:
    numbers = [written.get(key) for key in ("from", "to", "step")]
    plain = all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers)
    if set(written) != {"from", "to", "step"} or not plain:
        raise ConfigError(
            f"{where}, {name}: a range is written {{ from = .1, to = .9, step = .1 }}; got "
            f"{dict(written)!r}."
        )
    low, high, step = (float(n) for n in numbers if n is not None)
    if not (math.isfinite(low) and low <= high < math.inf and step > 0):
        raise ConfigError(
            f"{where}, {name}: a range needs from ≤ to and a step above 0; got {dict(written)!r}."
        )
    span = (high - low) / step
    if span >= MAX_POINTS:
        raise ConfigError(
            f"{where}, {name}: the range has more than {MAX_POINTS:,} values; take a larger step."
        )
    count = int(span + 1e-9) + 1
    whole = all(isinstance(n, int) for n in numbers)
    values = [round(low + i * step, _ROUND) for i in range(count)]
    return [int(value) for value in values] if whole else values


def _accepted() -> str:
    return ", ".join(f"{name} (another index)" if name in INDEXED else name for name in KNOBS)
