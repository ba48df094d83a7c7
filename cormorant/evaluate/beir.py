"""What is in a BEIR folder?

``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
``qrels/<split>.tsv`` with a header line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cormorant.errors import EvalFileError
from cormorant.evaluate.files import read_qrels, read_queries, write_qrels, write_queries
from cormorant.evaluate.formats.json_lines import json_line, json_rows
from cormorant.evaluate.formats.lines import id_of, opened, wrong, wrote
from cormorant.evaluate.formats.rows import cell
from cormorant.evaluate.golden import Golden
from cormorant.model import Record

__all__ = ["read_beir", "read_beir_corpus", "write_beir"]


def read_beir(folder: str | Path, *, split: str = "test") -> Golden:
    """The queries that are judged in a split, and their judgements.

    Args:
        folder: With ``queries.jsonl`` and ``qrels/<split>.tsv``.
        split: ``train``, ``dev`` or ``test``, as far as the folder has it.

    Raises:
        EvalFileError: With file and line, on what is not BEIR's format; if a file is missing;
            if a judged query has no text.

    Example:
        >>> golden = Golden({"1": "a fish?"}, {"1": {"a": 1}})
        >>> write_beir("fish", golden, [Record("a", "A fish swims.")])
        >>> read_beir("fish").qrels
        {'1': {'a': 1}}
    """
    base = Path(folder)
    path = base / "qrels" / f"{split}.tsv"
    if not path.is_file():
        there = sorted(each.stem for each in (base / "qrels").glob("*.tsv"))
        raise EvalFileError(
            f"There is no {path}; splits of this folder: {', '.join(there) or 'none'}.",
            path=str(path),
        )
    qrels = read_qrels(path)
    queries = read_queries(base / "queries.jsonl")
    without = next((query for query in qrels if query not in queries), None)
    if without is not None:
        raise EvalFileError(
            f"{path} judges the query {without!r}, which queries.jsonl does not have.",
            path=str(path),
        )
    if not qrels:
        raise EvalFileError(f"{path} has no judgements.", path=str(path))
    return Golden({query: queries[query] for query in qrels}, qrels)


def read_beir_corpus(folder: str | Path) -> Iterator[Record]:
    """The documents of ``corpus.jsonl`` as records, without vectors, one at a time.

    The title is put before the text, and kept as ``metadata["title"]``.

    Raises:
        EvalFileError: With file and line, on a line of another shape.

    Example:
        >>> write_beir("fish", Golden({"1": "?"}, {"1": {"a": 1}}), [Record("a", "A fish swims.")])
        >>> [record.text for record in read_beir_corpus("fish")]
        ['A fish swims.']
    """
    path = Path(folder) / "corpus.jsonl"
    name = str(path)
    with opened(path) as lines:
        for line, row in json_rows(lines, name=name):
            doc = id_of(cell(row, ("_id", "id"), name, line), "the document id", name, line)
            text, title = cell(row, ("text",), name, line), row.get("title") or ""
            if not isinstance(text, str) or not isinstance(title, str):
                raise wrong(name, line, "title and text must be texts.")
            metadata: dict[str, Any] = {"title": title} if title else {}
            yield Record(doc, f"{title}\n\n{text}" if title else text, metadata=metadata)


def write_beir(
    folder: str | Path, golden: Golden, records: Iterable[Record] = (), *, split: str = "test"
) -> None:
    """Write a BEIR folder; it is made if it is missing.

    Args:
        folder: Where to.
        golden: Queries and judgements.
        records: The corpus, ids and texts; a title that the text begins with, as
            :func:`read_beir_corpus` puts it, goes back to its own place.
        split: The judgements' name.

    Raises:
        UsageError: If a grade is not whole, or an id has a tab or a line break.
        EvalFileError: If a file cannot be written.

    Example:
        >>> write_beir("fish", Golden({"1": "a fish?"}, {"1": {"a": 1}}))
        >>> sorted(path.name for path in Path("fish").iterdir())
        ['corpus.jsonl', 'qrels', 'queries.jsonl']
    """
    base = Path(folder)
    try:
        (base / "qrels").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvalFileError(f"Cannot make {base}: {error.strerror}.", path=str(base)) from error
    write_qrels(golden.qrels, base / "qrels" / f"{split}.tsv")
    write_queries(golden.queries, base / "queries.jsonl")
    wrote(base / "corpus.jsonl", "".join(map(_document, records)))


def _document(record: Record) -> str:
    title = record.metadata.get("title")
    title = title if isinstance(title, str) else ""
    text = record.text.removeprefix(f"{title}\n\n") if title else record.text
    return json_line({"_id": record.id, "title": title, "text": text})
