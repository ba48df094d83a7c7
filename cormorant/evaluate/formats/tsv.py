"""What do tab-separated lines say: queries ``qid<TAB>text``, BEIR's judgements?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cormorant.errors import UsageError
from cormorant.evaluate.formats.lines import wrong
from cormorant.evaluate.formats.rows import Rows, groups_of, queries_of
from cormorant.evaluate.formats.trec import whole

__all__ = ["parse_tsv_groups", "parse_tsv_queries", "tsv_qrels", "tsv_queries"]


def parse_tsv_queries(lines: Iterable[str], *, name: str) -> dict[str, str]:
    """Queries, a line each, without header.

    Raises:
        EvalFileError: With the line, on one of another shape.
    """
    return queries_of(_rows(lines, name, "text"), name=name)


def parse_tsv_groups(lines: Iterable[str], *, name: str) -> dict[str, str]:
    """Query ids and their groups, a line each, without header.

    Raises:
        EvalFileError: With the line, on one of another shape.
    """
    return groups_of(_rows(lines, name, "group"), name=name)


def _rows(lines: Iterable[str], name: str, second: str) -> Rows:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        query, tab, rest = line.partition("\t")
        if not tab:
            raise wrong(name, number, f"expected 'qid<TAB>{second}'; there is no tab.")
        yield number, {"query": query.strip(), second: rest.strip()}


def tsv_queries(queries: Mapping[str, str]) -> Iterator[str]:
    """Queries as lines.

    Raises:
        UsageError: On a tab in an id, or a line break.
    """
    for query, text in queries.items():
        _refuse(query, "\t\r\n")
        _refuse(text, "\r\n")
        yield f"{query}\t{text}\n"


def tsv_qrels(qrels: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Judgements as BEIR's lines ``query-id<TAB>corpus-id<TAB>score``, under its header.

    Raises:
        UsageError: On a grade that is not whole, or an id with a tab or a line break.
    """
    yield "query-id\tcorpus-id\tscore\n"
    for query, grades in qrels.items():
        _refuse(query, "\t\r\n")
        for doc, grade in grades.items():
            _refuse(doc, "\t\r\n")
            yield f"{query}\t{doc}\t{whole(grade, query, doc)}\n"


def _refuse(value: str, marks: str) -> None:
    if value != value.strip() or any(mark in value for mark in marks):
        raise UsageError(
            f"{value!r} has a tab, a line break, or a blank at its end, which a line of a .tsv "
            "cannot hold. Write .jsonl or .csv."
        )
