"""How is an evaluation file opened, and how does an error say where it is wrong?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from cormorant.errors import EvalFileError

__all__ = ["grade_of", "id_of", "opened", "score_of", "text_of", "wrong", "wrote"]


@contextmanager
def opened(path: str | Path) -> Iterator[TextIO]:
    """The file's text, UTF-8, with or without a byte order mark.

    Raises:
        EvalFileError: If it cannot be read, or is not UTF-8.
    """
    try:
        # newline="": a line break inside a quoted CSV cell stays as it is.
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise EvalFileError(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise EvalFileError(f"{path} is not UTF-8: {error.reason}.", path=str(path)) from error


def wrote(path: str | Path, text: str) -> None:
    """Write a whole file.

    Raises:
        EvalFileError: If it cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise EvalFileError(f"Cannot write {path}: {error.strerror}.", path=str(path)) from error
    except UnicodeEncodeError as error:
        raise EvalFileError(
            f"Cannot write {path}: {error.object[error.start]!r} is a lone surrogate, which is no "
            "character. Clean the text first.",
            path=str(path),
        ) from error


def wrong(name: str, line: int, says: str) -> EvalFileError:
    """The error about one line."""
    return EvalFileError(f"{name}, line {line}: {says}", path=name, line=line)


def id_of(value: Any, what: str, name: str, line: int) -> str:
    """An id, which may be written as a whole number.

    Raises:
        EvalFileError: If it is something else, or empty.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise wrong(name, line, f"{what} must be a text that is not empty; got {value!r}.")
    return value


def text_of(value: Any, what: str, name: str, line: int) -> str:
    """A text, which may not be blank.

    Raises:
        EvalFileError: If it is something else.
    """
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, line, f"{what} must be a text that is not blank; got {value!r}.")
    return value


def grade_of(value: Any, name: str, line: int) -> float:
    """A grade: an int where it is whole, else a float.

    Raises:
        EvalFileError: If it is no finite number.
    """
    grade = _number(value)
    if grade is None or not math.isfinite(grade):
        raise wrong(name, line, f"a grade is a number such as 1 or .5; got {value!r:.80}.")
    return int(grade) if grade == int(grade) else grade


def score_of(value: Any, name: str, line: int) -> float:
    """A score, which may be infinite.

    Raises:
        EvalFileError: If it is no number.
    """
    score = _number(value)
    if score is None or math.isnan(score):
        raise wrong(name, line, f"a score is a number; got {value!r:.80}.")
    return score


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    # Python's own spellings, 1_0 and digits of other scripts, are read by nobody else.
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
