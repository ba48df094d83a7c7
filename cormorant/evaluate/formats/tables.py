"""What does a CSV file of queries, judgements or hits say?"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import Any

from cormorant.errors import UsageError
from cormorant.evaluate.formats.gather import GatheredRankings
from cormorant.evaluate.formats.lines import id_of, score_of, wrong
from cormorant.evaluate.formats.rows import DOCUMENT, QUERY, SCORE, Rows, cell
from cormorant.evaluate.run import Run

__all__ = ["csv_qrels", "csv_queries", "csv_rows", "csv_run", "parse_csv_run"]


def csv_rows(lines: Iterable[str], *, name: str, delimiter: str = ",") -> Rows:
    """The rows below the header line.

    Args:
        lines: Of the file, with their line ends.
        name: Stands in errors.
        delimiter: Between cells.

    Yields:
        The line number at which a row ends, and its cells by column.

    Raises:
        EvalFileError: If there is no header, it names a column twice, or a row has more or
            fewer cells than it.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next((row for row in reader if any(row)), None)
        if header is None:
            raise wrong(name, 1, "the file is empty; its first line names the columns.")
        columns = [column.strip() for column in header]
        twice = next((each for each in columns if each and columns.count(each) > 1), None)
        if twice is not None:
            raise wrong(name, reader.line_num, f"there is a column {twice!r} twice.")
        for row in reader:
            if not row:
                continue
            if len(row) != len(columns):
                raise wrong(
                    name,
                    reader.line_num,
                    f"expected {len(columns)} cells ({', '.join(columns)}); got {len(row)}.",
                )
            yield reader.line_num, dict(zip(columns, row, strict=True))
    except csv.Error as error:
        raise wrong(name, reader.line_num, f"not valid CSV: {error}.") from error


def parse_csv_run(lines: Iterable[str], *, name: str, run_name: str) -> Run:
    """A run of columns query, document and score, best first within each query.

    Args:
        lines: Of the file.
        name: Stands in errors.
        run_name: What the run is called, which the file does not say.

    Raises:
        EvalFileError: With the line, on a document that is ranked twice, or a score that is
            no number or rises.
    """
    gathered = GatheredRankings(name)
    last: dict[str, float] = {}
    for line, row in csv_rows(lines, name=name):
        query = id_of(cell(row, QUERY, name, line), "the query id", name, line)
        doc = id_of(cell(row, DOCUMENT, name, line), "the document id", name, line)
        score = score_of(cell(row, SCORE, name, line), name, line)
        if score > last.get(query, score):
            raise wrong(
                name,
                line,
                f"query {query!r} has the score {score!r} below {last[query]!r}; "
                "the best hit comes first.",
            )
        last[query] = score
        gathered.put(query, doc, score, line)
    return Run(run_name, {query: tuple(hits.items()) for query, hits in gathered.rankings.items()})


def csv_qrels(qrels: Mapping[str, Mapping[str, float]]) -> str:
    """Judgements with the columns query, document, grade."""
    pairs = ((q, doc, grade) for q, grades in qrels.items() for doc, grade in grades.items())
    return _written(("query", "document", "grade"), pairs)


def csv_queries(queries: Mapping[str, str]) -> str:
    """Queries with the columns query, text."""
    return _written(("query", "text"), queries.items())


def csv_run(run: Run) -> str:
    """A run's hits with the columns query, document, score, best first.

    A query that was answered with no document has no row.

    Raises:
        UsageError: If a query failed: the file would not say so.
    """
    if run.failed:
        raise UsageError(
            f"{len(run.failed)} queries of the run failed, which a table of hits cannot say. "
            "Write .jsonl."
        )
    hits = ((q, doc, score) for q, ranking in run.rankings.items() for doc, score in ranking)
    return _written(("query", "document", "score"), hits)


def _written(header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    return "".join(",".join(map(_cell, row)) + "\n" for row in [header, *rows])


def _cell(value: Any) -> str:
    # The csv module's writer leaves a lone carriage return unquoted, and its reader then ends
    # the row there.
    text = repr(value) if isinstance(value, float) else str(value)
    if any(mark in text for mark in '",\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
