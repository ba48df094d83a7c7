"""Which judged sets are there to be measured on, with vectors made beforehand?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant import data
from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate.files import read_qrels
from cormorant.evaluate.formats.trec import parse_qrels
from cormorant.evaluate.qrels import Qrels

__all__ = ["JudgedSet", "judged_set", "shipped_set"]

_SHIPPED: Final = "xquad-"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSet:
    """Documents, queries and judgements, and a vector for each text if there is a model.

    Attributes:
        name: Of the set.
        embedding: The model's name; empty if there are no vectors.
        documents: Id to text, a title in front.
        queries: Id to text, of those that are judged (and, with a model, have a vector).
        qrels: Judgements of these queries.
        document_vectors: Id to vector, float32; empty without a model.
        query_vectors: Text to vector, float32; empty without a model.
    """

    name: str
    embedding: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    qrels: Qrels
    document_vectors: Mapping[str, NDArray[np.float32]]
    query_vectors: Mapping[str, NDArray[np.float32]]


def judged_set(root: str | Path, name: str, embedding: str) -> JudgedSet:
    """Read a set and one model's vectors.

    Args:
        root: The folder of all sets.
        name: The set's folder, with ``docs.jsonl`` (id, title, text), ``queries.jsonl`` (id,
            text) and ``qrels.tsv``.
        embedding: The model's file there, ``EMBEDDING.npz``: ``docs`` and ``queries``, shape
            (n, dim), with their ``doc_ids`` and ``query_ids``. Documents and queries
            without a vector are left out.

    Raises:
        EvalFileError: If a file is missing or has another shape.
    """
    folder = Path(root) / name
    documents = _texts(folder / "docs.jsonl")
    texts = _texts(folder / "queries.jsonl")
    qrels = read_qrels(folder / "qrels.tsv")
    path = folder / f"{embedding}.npz"
    try:
        with np.load(path) as held:
            vectors = dict(zip(held["doc_ids"].tolist(), _float(held["docs"]), strict=True))
            asked = dict(zip(held["query_ids"].tolist(), _float(held["queries"]), strict=True))
    except (OSError, KeyError, ValueError) as error:
        raise EvalFileError(
            f"Cannot read {path}: {error}. It holds docs, queries, doc_ids and query_ids.",
            path=str(path),
        ) from error
    wanted = {query: texts[query] for query in qrels if query in asked and query in texts}
    return JudgedSet(
        name=name,
        embedding=embedding,
        documents={doc: text for doc, text in documents.items() if doc in vectors},
        queries=wanted,
        qrels={query: qrels[query] for query in wanted},
        document_vectors=vectors,
        query_vectors={text: asked[query] for query, text in wanted.items()},
    )


def shipped_set(
    name: str, embed: Callable[[list[str]], Any] | None = None, *, embedding: str = ""
) -> JudgedSet:
    """The judged set that comes with the package.

    Args:
        name: ``xquad-en`` or ``xquad-zh``.
        embed: Texts to vectors, shape (texts, dim); None for a set without vectors.
        embedding: The model's name.

    Raises:
        UsageError: On another name.
    """
    language = name.removeprefix(_SHIPPED)
    if not name.startswith(_SHIPPED) or language not in data.LANGUAGES:
        known = ", ".join(f"{_SHIPPED}{each}" for each in data.LANGUAGES)
        raise UsageError(f"The package ships no set {name!r}. It ships: {known}.")
    documents = data.documents(language)
    texts = data.questions(language)
    qrels = parse_qrels(data.judgements(), name="the shipped judgements")
    queries = {query: texts[query] for query in qrels}

    def vectors(keys: list[str], each: list[str]) -> dict[str, NDArray[np.float32]]:
        return {} if embed is None else dict(zip(keys, _float(embed(each)), strict=True))

    asked = list(queries.values())
    return JudgedSet(
        name=name,
        embedding=embedding,
        documents=documents,
        queries=queries,
        qrels=qrels,
        document_vectors=vectors(list(documents), list(documents.values())),
        query_vectors=vectors(asked, asked),
    )


def _float(vectors: Any) -> NDArray[np.float32]:
    return np.asarray(vectors, np.float32)


def _texts(path: Path) -> dict[str, str]:
    """Id to text, with its title in front if it has one."""
    out: dict[str, str] = {}
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                row = json.loads(line)
                out[row["id"]] = " ".join(filter(None, (row.get("title"), row["text"])))
    except OSError as error:
        raise EvalFileError(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvalFileError(
            f"{path}, line {number}: expected an object with id and text.",
            path=str(path),
            line=number,
        ) from error
    return out
