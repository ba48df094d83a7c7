"""Which documents were judged relevant to which query?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from cormorant.errors import EvalFileError

__all__ = ["Qrels", "parse_qrels", "read_qrels"]

Qrels: TypeAlias = dict[str, dict[str, float]]
"""Query id to judged document ids and their grades; above 0 is relevant. Whole grades are ints."""

_HEADER = ("query-id", "corpus-id", "score")


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements, TREC's four columns or BEIR's three.

    Args:
        path: A UTF-8 file: ``qid 0 docno grade`` separated by blanks, or
            ``qid<TAB>docno<TAB>grade`` with or without BEIR's header line.

    Returns:
        Queries in the file's order.

    Raises:
        EvalFileError: With file and line, on a line of another shape, a grade that is not a
            whole number, or a pair that is judged twice with different grades.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            return parse_qrels(lines, name=str(path))
    except OSError as error:
        raise EvalFileError(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise EvalFileError(f"{path} is not UTF-8: {error.reason}.", path=str(path)) from error


def parse_qrels(lines: Iterable[str], *, name: str) -> Qrels:
    """Parse judgement lines; ``name`` stands in errors. See :func:`read_qrels`."""
    qrels: Qrels = {}
    for number, line in enumerate(lines, start=1):
        columns = line.split()
        if not columns or (number == 1 and tuple(columns) == _HEADER):
            continue
        if len(columns) not in {3, 4}:
            raise EvalFileError(
                f"{name}, line {number}: expected 'qid 0 docno grade' or 'qid docno grade'; "
                f"got {len(columns)} columns.",
                path=name,
                line=number,
            )
        query, doc, written = columns[0], columns[-2], columns[-1]
        try:
            grade = int(written)
        except ValueError:
            raise EvalFileError(
                f"{name}, line {number}: a grade is a whole number; got {written!r}.",
                path=name,
                line=number,
            ) from None
        if qrels.setdefault(query, {}).setdefault(doc, grade) != grade:
            raise EvalFileError(
                f"{name}, line {number}: {query!r} and {doc!r} are judged twice, "
                f"as {qrels[query][doc]} and as {grade}.",
                path=name,
                line=number,
            )
    return qrels
