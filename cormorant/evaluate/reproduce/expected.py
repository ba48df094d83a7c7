"""Which scores are expected of this release?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from cormorant import defaults
from cormorant.errors import EvalFileError
from cormorant.evaluate.names import parse_metric

__all__ = ["Expectation", "Expected", "read_expected", "write_expected"]

_FILE: Final = "expected.yaml"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one set scores with one model's vectors.

    Attributes:
        set: The set's name.
        embedding: The model's name.
        documents: How many are searched.
        queries: How many are judged.
        scores: Mode to the metric's mean.
    """

    set: str
    embedding: str
    documents: int
    queries: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of this release.

    Attributes:
        metric: The metric's name.
        tolerance: How far a score may be off, either way.
        rows: Sets and models.
    """

    metric: str
    tolerance: float
    rows: tuple[Expectation, ...]


def read_expected(path: str | Path | None = None) -> Expected:
    """Read expected scores.

    Args:
        path: A YAML file; None reads the one that comes with the package.

    Raises:
        EvalFileError: If it cannot be read or has another shape.
    """
    source = files("cormorant.evaluate.reproduce").joinpath(_FILE) if path is None else Path(path)
    name = str(path or _FILE)
    try:
        written = yaml.safe_load(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvalFileError(f"Cannot read {name}: {error.strerror}.", path=name) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise EvalFileError(f"{name} is not YAML: {error}.", path=name) from error
    try:
        return Expected(
            metric=parse_metric(written["metric"]).name,
            tolerance=_number(written["tolerance"]),
            rows=tuple(map(_row, written["rows"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EvalFileError(
            f"{name}: {error}. It has metric, tolerance and rows; a row has set, embedding, "
            f"documents, queries and scores, with {', '.join(defaults.MODES)}.",
            path=name,
        ) from error


def write_expected(expected: Expected, path: str | Path) -> None:
    """Write expected scores as YAML, a row a line, scores to four places.

    Raises:
        EvalFileError: If the file cannot be written.
    """
    lines = [
        "# What this release scores at its defaults: python -m cormorant.evaluate.reproduce",
        f"metric: {expected.metric}",
        f"tolerance: {expected.tolerance:g}",
        "rows:",
    ]
    for row in expected.rows:
        scores = ", ".join(f"{mode}: {row.scores[mode]:.4f}" for mode in defaults.MODES)
        lines.append(
            f"  - {{set: {row.set}, embedding: {row.embedding}, documents: {row.documents}, "
            f"queries: {row.queries}, scores: {{{scores}}}}}"
        )
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvalFileError(f"Cannot write {path}: {error.strerror}.", path=str(path)) from error


def _row(row: Mapping[str, Any]) -> Expectation:
    scores = {mode: _number(score) for mode, score in row["scores"].items()}
    if set(scores) != set(defaults.MODES):
        raise ValueError(f"{row['set']}, {row['embedding']} has scores of {sorted(scores)}")
    return Expectation(
        row["set"], row["embedding"], int(row["documents"]), int(row["queries"]), scores
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"a score is a number from 0 to 1; got {value!r}")
    return float(value)
