"""Which format has a file of queries, judgements or a run? Its ending says.

``.csv`` and ``.jsonl`` are what they say; ``.tsv`` has BEIR's columns; any other ending is
TREC's format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from cormorant.errors import EvalFileError
from cormorant.evaluate.formats.json_lines import (
    json_qrels,
    json_queries,
    json_rows,
    json_run,
    parse_json_run,
)
from cormorant.evaluate.formats.lines import opened, wrote
from cormorant.evaluate.formats.rows import Rows, groups_of, qrels_of, queries_of
from cormorant.evaluate.formats.tables import (
    csv_qrels,
    csv_queries,
    csv_rows,
    csv_run,
    parse_csv_run,
)
from cormorant.evaluate.formats.trec import parse_qrels, parse_trec_run, trec_qrels, trec_run
from cormorant.evaluate.formats.tsv import (
    parse_tsv_groups,
    parse_tsv_queries,
    tsv_qrels,
    tsv_queries,
)
from cormorant.evaluate.qrels import Qrels
from cormorant.evaluate.run import Run

__all__ = [
    "read_groups",
    "read_qrels",
    "read_queries",
    "read_run",
    "write_qrels",
    "write_queries",
    "write_run",
]


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements.

    Args:
        path: A UTF-8 file: ``.csv`` with a header (query, document, grade), ``.jsonl`` with the
            same keys; else ``qid 0 docno grade`` separated by blanks, or
            ``qid<TAB>docno<TAB>grade`` with or without BEIR's header line.

    Returns:
        Queries in the file's order. Grades may be fractions in ``.csv`` and ``.jsonl`` alone.

    Raises:
        EvalFileError: With file and line, on a line of another shape, a grade that is no
            (whole) number, or a pair that is judged twice with different grades.

    Example:
        >>> write_qrels({"q1": {"a": 0.5}}, "judged.csv")
        >>> read_qrels("judged.csv")
        {'q1': {'a': 0.5}}
    """
    name = str(path)
    with opened(path) as lines:
        if _ending(path) == ".csv":
            return qrels_of(csv_rows(lines, name=name), name=name)
        if _ending(path) == ".jsonl":
            return qrels_of(json_rows(lines, name=name), name=name)
        return parse_qrels(lines, name=name)


def write_qrels(qrels: Mapping[str, Mapping[str, float]], path: str | Path) -> None:
    """Write judgements in the format of the path's ending.

    Raises:
        UsageError: If the format cannot hold them: fractions outside ``.csv`` and ``.jsonl``,
            ids with blanks in TREC's or with tabs in BEIR's. Nothing is written then.
        EvalFileError: If the file cannot be written.

    Example:
        >>> write_qrels({"q1": {"a": 1}}, "judged.qrels")
        >>> Path("judged.qrels").read_text().split()
        ['q1', '0', 'a', '1']
    """
    ending = _ending(path)
    if ending == ".csv":
        wrote(path, csv_qrels(qrels))
    elif ending == ".jsonl":
        wrote(path, "".join(json_qrels(qrels)))
    elif ending == ".tsv":
        wrote(path, "".join(tsv_qrels(qrels)))
    else:
        wrote(path, "".join(trec_qrels(qrels)))


def read_queries(path: str | Path) -> dict[str, str]:
    """Read queries: their ids and texts, in the file's order.

    Args:
        path: A UTF-8 file: ``.jsonl`` as BEIR's (``_id``, ``text``), ``.csv`` with a header
            (query, text), or ``.tsv`` lines ``qid<TAB>text``.

    Raises:
        EvalFileError: With file and line, on a line of another shape, a blank text or an id
            that comes twice; on another ending.

    Example:
        >>> write_queries({"q1": "who dives?"}, "queries.jsonl")
        >>> read_queries("queries.jsonl")
        {'q1': 'who dives?'}
    """
    return _by_query(path, "Queries", queries_of, parse_tsv_queries)


def read_groups(path: str | Path) -> dict[str, str]:
    """Read which queries belong together: query id to group.

    Args:
        path: A UTF-8 file: ``.csv`` with a header (query, group), ``.jsonl`` with the same keys,
            or ``.tsv`` lines ``qid<TAB>group``.

    Raises:
        EvalFileError: With file and line, on a line of another shape or an id that comes
            twice; on another ending.

    Example:
        >>> import json
        >>> _ = Path("groups.jsonl").write_text(json.dumps({"query": "q1", "group": "fish"}))
        >>> read_groups("groups.jsonl")
        {'q1': 'fish'}
    """
    return _by_query(path, "Groups", groups_of, parse_tsv_groups)


def write_queries(queries: Mapping[str, str], path: str | Path) -> None:
    """Write queries in the format of the path's ending.

    Raises:
        UsageError: If a ``.tsv`` cannot hold one: a tab in an id, a line break.
        EvalFileError: If the file cannot be written, or has another ending.

    Example:
        >>> write_queries({"q1": "who dives?"}, "queries.csv")
        >>> read_queries("queries.csv")
        {'q1': 'who dives?'}
    """
    ending = _ending(path)
    if ending not in _QUERY_ENDINGS:
        raise _not_kept_in("Queries", path)
    if ending == ".csv":
        wrote(path, csv_queries(queries))
    elif ending == ".jsonl":
        wrote(path, "".join(json_queries(queries)))
    else:
        wrote(path, "".join(tsv_queries(queries)))


def read_run(path: str | Path) -> Run:
    """Read a run.

    Args:
        path: A UTF-8 file: ``.jsonl`` as :func:`write_run` writes it, ``.csv`` with a header
            (query, document, score) and the best hit first, or TREC's six columns, which are
            ordered as trec_eval orders them: see
            :func:`cormorant.evaluate.formats.trec.parse_trec_run`.

    Returns:
        The run. A ``.csv`` is named by its file.

    Raises:
        EvalFileError: With file and line, on a line of another shape, a document that is
            ranked twice for a query, or a score that is no number.

    Example:
        >>> write_run(Run("mine", {"q1": (("a", 2.0), ("b", 1.0))}), "mine.jsonl")
        >>> read_run("mine.jsonl").ids("q1")
        ('a', 'b')
    """
    name, stem = str(path), Path(path).stem
    with opened(path) as lines:
        if _ending(path) == ".csv":
            return parse_csv_run(lines, name=name, run_name=stem)
        if _ending(path) == ".jsonl":
            return parse_json_run(lines, name=name, run_name=stem)
        return parse_trec_run(lines, name=name)


def write_run(run: Run, path: str | Path) -> None:
    """Write a run in the format of the path's ending.

    ``.jsonl`` keeps all of it. ``.csv`` and TREC's format keep the hits alone, without the
    queries that were answered with none. TREC's scores are lowered where trec_eval would
    otherwise see ties: see :func:`cormorant.evaluate.formats.trec.trec_run`.

    Raises:
        UsageError: If the format cannot hold it: failed queries outside ``.jsonl``, ids with
            blanks in TREC's. Nothing is written then.
        EvalFileError: If the file cannot be written.

    Example:
        >>> write_run(Run("mine", {"q1": (("a", 2.0),)}), "mine.run")
        >>> Path("mine.run").read_text().split()
        ['q1', 'Q0', 'a', '1', '2.0', 'mine']
    """
    ending = _ending(path)
    if ending == ".csv":
        wrote(path, csv_run(run))
    elif ending == ".jsonl":
        wrote(path, "".join(json_run(run)))
    else:
        wrote(path, "".join(trec_run(run)))


_QUERY_ENDINGS = (".csv", ".jsonl", ".tsv")


class _OfRows(Protocol):
    def __call__(self, rows: Rows, *, name: str) -> dict[str, str]: ...


class _OfLines(Protocol):
    def __call__(self, lines: Iterable[str], *, name: str) -> dict[str, str]: ...


def _by_query(path: str | Path, what: str, of_rows: _OfRows, of_tsv: _OfLines) -> dict[str, str]:
    """Something said of each query, from any of the formats that hold queries."""
    name, ending = str(path), _ending(path)
    if ending not in _QUERY_ENDINGS:
        raise _not_kept_in(what, path)
    with opened(path) as lines:
        if ending == ".csv":
            return of_rows(csv_rows(lines, name=name), name=name)
        if ending == ".jsonl":
            return of_rows(json_rows(lines, name=name), name=name)
        return of_tsv(lines, name=name)


def _ending(path: str | Path) -> str:
    return Path(path).suffix.lower()


def _not_kept_in(what: str, path: str | Path) -> EvalFileError:
    return EvalFileError(
        f"{what} are kept in {', '.join(_QUERY_ENDINGS)} files; got {path}.", path=str(path)
    )
