"""What do TREC's files of judgements and runs say, and how does trec_eval read ours?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import UsageError
from cormorant.evaluate.formats.gather import GatheredQrels, GatheredRankings
from cormorant.evaluate.formats.lines import score_of, wrong
from cormorant.evaluate.qrels import Qrels
from cormorant.evaluate.run import Ranking, Run

__all__ = ["parse_qrels", "parse_trec_run", "trec_qrels", "trec_run"]

_SECOND: Final = frozenset({"0", "Q0"})
_HEADER: Final = ("query-id", "corpus-id", "score")
# C's isspace, by which trec_eval splits; str.split would split at more.
_COLUMN: Final = re.compile(r"[^ \t\n\r\v\f]+")
# More digits than any grade has: every float holds it.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_WIDEST: Final = np.finfo(np.float32).max


def parse_qrels(lines: Iterable[str], *, name: str) -> Qrels:
    """Parse judgement lines, TREC's four columns or BEIR's three.

    Args:
        lines: ``qid 0 docno grade`` separated by blanks, or ``qid<TAB>docno<TAB>grade`` with
            or without BEIR's header line.
        name: Stands in errors.

    Returns:
        Queries in the lines' order.

    Raises:
        EvalFileError: With the line, on one of another shape, a grade that is not a whole
            number, or a pair that is judged twice with different grades.

    Example:
        >>> parse_qrels(["q1 0 a 1", "q1 0 b 0"], name="judged.qrels")
        {'q1': {'a': 1, 'b': 0}}
    """
    gathered = GatheredQrels(name)
    beir = False
    for number, line in enumerate(lines, start=1):
        tabbed, columns = _tabbed(line), _COLUMN.findall(line)
        if number == 1 and tuple(tabbed or columns) == _HEADER:
            beir = True
            continue
        if not columns:
            continue
        # TREC's four columns may be parted by blanks here and tabs there; the second is known.
        trec = len(columns) == 4 and columns[1] in _SECOND and not beir
        if tabbed and not trec:
            columns = tabbed
        if len(columns) not in {3, 4}:
            raise wrong(
                name,
                number,
                f"expected 'qid 0 docno grade' or 'qid docno grade'; got {len(columns)} columns.",
            )
        query, doc, written = columns[0], columns[-2], columns[-1]
        if not _WHOLE.fullmatch(written):
            raise wrong(
                name,
                number,
                f"a grade is a whole number; got {written!r:.80}. Fractions can be written in "
                ".csv and .jsonl.",
            )
        gathered.put(query, doc, int(written), number)
    return gathered.qrels


def _tabbed(line: str) -> list[str]:
    """BEIR's three columns, whose ids may hold blanks; nothing if the line is no such."""
    columns = [column.strip() for column in line.split("\t")]
    return columns if len(columns) == 3 and all(columns) else []


def parse_trec_run(lines: Iterable[str], *, name: str) -> Run:
    """Parse a run of six columns, ``qid Q0 docno rank score tag``, as trec_eval reads it.

    trec_eval does not look at the rank. It reads scores as 32-bit floats, sorts by them,
    falling, and puts the greater docno first where two are equal; so does this.

    Args:
        lines: Of the file.
        name: Stands in errors.

    Returns:
        The run, named by its first tag. Scores are as written where they agree with the
        order; where only 32 bits do, rounded to 32 bits.

    Raises:
        EvalFileError: With the line, on one of another shape, a score that is no number, or
            a document that is ranked twice.
    """
    gathered = GatheredRankings(name)
    tag = ""
    for number, line in enumerate(lines, start=1):
        columns = _COLUMN.findall(line)
        if not columns:
            continue
        if len(columns) != 6:
            raise wrong(
                name,
                number,
                f"expected 'qid Q0 docno rank score tag'; got {len(columns)} columns.",
            )
        query, _, doc, _, written, last = columns
        tag = tag or last
        gathered.put(query, doc, score_of(written, name, number), number)
    return Run(tag, {query: _as_read(hits) for query, hits in gathered.rankings.items()})


def _as_read(hits: Mapping[str, float]) -> Ranking:
    single = _single(list(hits.values())).tolist()
    # Docnos compare by bytes in trec_eval, which in UTF-8 is the order of code points.
    rows = sorted(zip(single, hits, hits.values(), strict=True), reverse=True)
    written = tuple((doc, score) for _, doc, score in rows)
    if all(a[1] >= b[1] for a, b in pairwise(written)):
        return written
    return tuple((doc, rounded) for rounded, doc, _ in rows)


def trec_qrels(qrels: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Judgements as lines ``qid 0 docno grade``.

    Raises:
        UsageError: On a grade that is not whole, or an id with blanks.
    """
    for query, grades in qrels.items():
        _refuse_blanks(query)
        for doc, grade in grades.items():
            _refuse_blanks(doc)
            yield f"{query} 0 {doc} {whole(grade, query, doc)}\n"


def whole(grade: float, query: str, doc: str) -> int:
    """A grade as the integer that TREC's and BEIR's files hold.

    Raises:
        UsageError: If it is a fraction.
    """
    if grade != int(grade):
        raise UsageError(
            f"The grade of query {query!r} and document {doc!r} is {grade!r}; this format holds "
            "whole grades alone. Write .csv or .jsonl, or round the grades first."
        )
    return int(grade)


def trec_run(run: Run) -> Iterator[str]:
    """A run as lines ``qid Q0 docno rank score tag`` that trec_eval ranks as the run does.

    trec_eval does not look at the rank; it reads scores as 32-bit floats and puts the greater
    docno first where two are equal. So a score is written as it is where it falls in 32 bits
    too, and else lowered by the least step that makes it fall (raised, where nothing lower is
    left). Infinite and greater scores become the greatest 32-bit float.

    A query that was answered with no document has no line: TREC's format cannot hold it.
    Blanks in the run's name become underscores in the tag.

    Raises:
        UsageError: On an id with blanks, or if a query failed: the file would not say so.
    """
    if run.failed:
        query, error = next(iter(run.failed.items()))
        raise UsageError(
            f"{len(run.failed)} queries of the run failed, such as {query!r} ({error}), which "
            "TREC's format cannot say: they would look like queries never asked. Write .jsonl."
        )
    tag = "_".join(_COLUMN.findall(run.name)) or "cormorant"
    for query, ranking in run.rankings.items():
        _refuse_blanks(query)
        scores = _falling([score for _, score in ranking])
        for rank, ((doc, _), score) in enumerate(zip(ranking, scores, strict=True), start=1):
            _refuse_blanks(doc)
            yield f"{query} Q0 {doc} {rank} {score!r} {tag}\n"


def _refuse_blanks(id: str) -> None:
    if not _COLUMN.fullmatch(id):
        raise UsageError(
            f"TREC's format separates columns by blanks, so the id {id!r} cannot be written in "
            "it. Write .csv or .jsonl, or name it otherwise."
        )


def _falling(scores: list[float]) -> list[float]:
    """The scores, or the nearest that fall strictly when read as 32-bit floats."""
    single = np.clip(_single(scores), -_WIDEST, _WIDEST)
    steps = _step_of(single)
    place = np.arange(len(steps))
    # t[i] ≤ steps[i] and t[i] < t[i-1], each as great as can be …
    fallen = np.minimum.accumulate(steps + place) - place
    # … but not below the least float: there the end stays, and those before it rise.
    floor = _step_of(np.array([-_WIDEST], np.float32))[0] + place[::-1]
    fallen = np.maximum(fallen, floor)
    kept = fallen == _step_of(_single(scores))
    moved = _at_step(fallen).tolist()
    return [a if same else b for a, b, same in zip(scores, moved, kept.tolist(), strict=True)]


def _single(scores: list[float]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        return np.array(scores, np.float64).astype(np.float32)


def _step_of(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Each float's place in the order of all floats: neighbours differ by 1, both zeros are 0."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def _at_step(steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """What :func:`_step_of` was given."""
    sign = np.where(steps < 0, np.int64(0x80000000), np.int64(0))
    return (np.abs(steps) | sign).astype(np.uint32).view(np.float32)
