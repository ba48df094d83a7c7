"""What do the rows of a CSV or JSONL file say, whatever its columns are called?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from cormorant.evaluate.formats.gather import GatheredQrels
from cormorant.evaluate.formats.lines import grade_of, id_of, text_of, wrong
from cormorant.evaluate.qrels import Qrels

__all__ = [
    "DOCUMENT",
    "GRADE",
    "GROUP",
    "QUERY",
    "SCORE",
    "TEXT",
    "Rows",
    "cell",
    "groups_of",
    "qrels_of",
    "queries_of",
]

Rows: TypeAlias = Iterable[tuple[int, Mapping[str, Any]]]
"""Line numbers, from 1, and the values there by column."""

QUERY: Final = ("query", "query_id", "query-id", "qid", "_id", "id")
DOCUMENT: Final = ("document", "document_id", "doc", "doc_id", "docid", "docno", "corpus-id")
GRADE: Final = ("grade", "relevance", "rel", "label", "score")
SCORE: Final = ("score",)
TEXT: Final = ("text", "question")
GROUP: Final = ("group", "cluster", "topic")


def cell(row: Mapping[str, Any], names: tuple[str, ...], file: str, line: int) -> Any:
    """The value under the first of ``names`` that the row has.

    Raises:
        EvalFileError: If it has none of them.
    """
    for name in names:
        if name in row:
            return row[name]
    raise wrong(
        file,
        line,
        f"there is no {names[0]!r} (accepted names: {', '.join(names)}); "
        f"got {', '.join(map(str, row)) or 'nothing'}.",
    )


def qrels_of(rows: Rows, *, name: str) -> Qrels:
    """Judgements, a row each: query, document, grade. Whole grades become ints.

    Raises:
        EvalFileError: With the line, on a row that says something else.
    """
    gathered = GatheredQrels(name)
    for line, row in rows:
        query = id_of(cell(row, QUERY, name, line), "the query id", name, line)
        doc = id_of(cell(row, DOCUMENT, name, line), "the document id", name, line)
        gathered.put(query, doc, grade_of(cell(row, GRADE, name, line), name, line), line)
    return gathered.qrels


def queries_of(rows: Rows, *, name: str) -> dict[str, str]:
    """Queries, a row each: query (its id), text.

    Raises:
        EvalFileError: With the line, on a row that says something else, or an id that comes
            twice.
    """
    return {
        query: text_of(cell(row, TEXT, name, line), "the query's text", name, line)
        for query, line, row in _by_query(rows, name)
    }


def groups_of(rows: Rows, *, name: str) -> dict[str, str]:
    """Groups of queries, a row each: query (its id), group.

    Raises:
        EvalFileError: With the line, on a row that says something else, or an id that comes
            twice.
    """
    return {
        query: id_of(cell(row, GROUP, name, line), "the group", name, line)
        for query, line, row in _by_query(rows, name)
    }


def _by_query(rows: Rows, name: str) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Each row's query id, line and cells; an id that comes twice is an error."""
    seen: set[str] = set()
    for line, row in rows:
        query = id_of(cell(row, QUERY, name, line), "the query id", name, line)
        if query in seen:
            raise wrong(name, line, f"the query id {query!r} comes twice.")
        seen.add(query)
        yield query, line, row
