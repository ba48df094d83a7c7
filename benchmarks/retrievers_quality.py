"""How well do the retrievers find, on Cranfield, and at which cost?

Run: ``CORMORANT_DATA=FOLDER python benchmarks/retrievers_quality.py [--write] [--rewrites FILE]``.
The folder holds ``cranfield/`` with ``docs.jsonl``, ``queries.jsonl``, ``qrels.tsv`` and vectors
made beforehand, ``MODEL.npz``. Prints nDCG@10 and CPU milliseconds a question, which leave out the
embedding of questions; ``--write`` puts the table into docs/retrievers.md.

MultiQueryRetriever replays recorded rewrites. Without ``--rewrites`` they are recorded first, from
a rule and not from a model (see ``by_rule``), so that everybody gets the same; a recording of your
own model, made with the prompt ``PROMPT``, gives that model's figures. It asks by words alone,
since vectors of rewrites were not made beforehand.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from cormorant.evaluate import mean_ndcg, read_qrels
from cormorant.langchain import Cormorant
from cormorant.langchain.document_transformers import LongContextReorder
from cormorant.langchain.replay import replaying
from cormorant.langchain.retrievers import (
    BM25Retriever,
    ContextualCompressionRetriever,
    EnsembleRetriever,
    HybridRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from cormorant.langchain.retrievers.document_compressors import DocumentCompressorPipeline

PAGE = Path(__file__).parents[1] / "docs" / "retrievers.md"
BEGIN, END = "<!-- quality: begin -->", "<!-- quality: end -->"
MODELS = ("minilm", "use")
PROMPT = PromptTemplate.from_template("Put this question in other ways: {question}")
FRAME = re.compile(
    r"^(?:what|which|how|why|can|could|has|have|is|are|does|do|anyone|anybody|someone|been|the|a|"
    r"an|in|of|to|for|it|there|be|by|on|and|or|with|at|from|that|this|any|will)$"
)


class Given(Embeddings):
    """Hands out vectors made beforehand."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        return self.vectors[text]


def by_rule(message):
    """Three rewrites without a model: the telling words, the last half, the first half."""
    words = message[-1].content.removeprefix(PROMPT.template.split("{")[0]).split()
    telling = [word for word in words if not FRAME.match(word)]
    half = len(telling) // 2
    return "\n".join(" ".join(some) for some in (telling, telling[half:], telling[:half]) if some)


def read_jsonl(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def load(folder, model):
    """Documents, questions by id, and the model's vectors by text."""
    with np.load(folder / f"{model}.npz") as held:
        of_docs = dict(zip(held["doc_ids"].tolist(), held["docs"].tolist(), strict=True))
        of_queries = dict(zip(held["query_ids"].tolist(), held["queries"].tolist(), strict=True))
    docs = [
        Document(" ".join(filter(None, (doc.get("title"), doc["text"]))), id=doc["id"])
        for doc in read_jsonl(folder / "docs.jsonl")
        if doc["id"] in of_docs and doc["text"]  # two are empty; judged all the same
    ]
    asked = {q["id"]: q["text"] for q in read_jsonl(folder / "queries.jsonl")}
    asked = {query: text for query, text in asked.items() if query in of_queries}
    vectors = {doc.page_content: of_docs[doc.id] for doc in docs}
    vectors |= {text: of_queries[query] for query, text in asked.items()}
    return docs, asked, vectors


def retrievers(vs, docs, rewrites):
    """Name to retriever; each returns 10."""
    bm25 = BM25Retriever.from_documents(docs, k=10)
    by_vectors = vs.as_retriever(k=10)
    deep = [BM25Retriever.from_documents(docs, k=50), vs.as_retriever(k=50)]
    hybrid = vs.as_retriever(search_type="hybrid", k=10)
    return {
        "`BM25Retriever`": bm25,
        "`as_retriever()`: vectors": by_vectors,
        "`MergerRetriever` of both": MergerRetriever(retrievers=[bm25, by_vectors], k=10),
        "`EnsembleRetriever` of both, 50 each": EnsembleRetriever(retrievers=deep, k=10),
        "`HybridRetriever` by default, 50 each": HybridRetriever(
            vector_retriever=vs.as_retriever(k=50),
            keyword_retriever=vs.as_retriever(search_type="text", k=50),
            top_k=10,
        ),
        '`as_retriever(search_type="hybrid")`': hybrid,
        "the same, then `LongContextReorder`": ContextualCompressionRetriever(
            base_retriever=hybrid,
            base_compressor=DocumentCompressorPipeline(transformers=[LongContextReorder()]),
        ),
        "`MultiQueryRetriever` of `BM25Retriever`, recorded rewrites": (
            MultiQueryRetriever.from_llm(
                BM25Retriever.from_documents(docs, k=50),
                replaying(None, rewrites),
                PROMPT,
                k=10,
                verbose=False,
            )
        ),
    }


def judge(folder, model, rewrites):
    """Name to nDCG@10 and CPU milliseconds a question; how many documents and questions."""
    docs, asked, vectors = load(folder, model)
    qrels = read_qrels(folder / "qrels.tsv")
    asked = {query: text for query, text in asked.items() if qrels.get(query)}
    figures = {}
    with Cormorant.from_documents(docs, Given(vectors), check_embedder=False) as vs:
        for name, retriever in retrievers(vs, docs, rewrites).items():
            retriever.invoke(next(iter(asked.values())))
            began = time.process_time()
            run = {q: [doc.id for doc in retriever.invoke(text)] for q, text in asked.items()}
            cost = 1e3 * (time.process_time() - began) / len(asked)
            figures[name] = mean_ndcg(run, {query: qrels[query] for query in run}), cost
    return figures, len(docs), len(asked)


def table(folder, rewrites, source):
    measured = {model: judge(folder, model, rewrites) for model in MODELS}
    (_, docs, asked) = next(iter(measured.values()))
    lines = [
        f"Cranfield, {docs:,} documents, {asked} questions. Rewrites: {source}.",
        "",
        "| retriever | nDCG@10, MiniLM | nDCG@10, USE | CPU ms a question |",
        "|---|---|---|---|",
    ]
    for name in next(iter(measured.values()))[0]:
        found = [figures[name] for figures, _, _ in measured.values()]
        scores = " | ".join(f"{score:.3f}" for score, _ in found)
        lines.append(f"| {name} | {scores} | {min(cost for _, cost in found):.1f} |")
    return "\n".join(lines)


def record(folder, path):
    """Ask the rule for every question, as a model would be asked."""
    model = PROMPT | replaying(RunnableLambda(by_rule), path, "record")
    for query in read_jsonl(folder / "queries.jsonl"):
        model.invoke({"question": query["text"]})


def write(made):
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/")
    parser.add_argument("--rewrites", type=Path, help="a recording; default: made by a rule")
    options = parser.parse_args()
    root = os.environ.get("CORMORANT_DATA")
    if not root:
        print("Set CORMORANT_DATA to a folder of judged sets; skipped.")
        return 0
    folder = Path(root) / "cranfield"
    with tempfile.TemporaryDirectory() as temporary:
        path, source = options.rewrites, "those of the recording"
        if path is None:
            path, source = Path(temporary) / "rewrites.jsonl", "by a rule, not by a model"
            record(folder, path)
        made = table(folder, path, source)
    print(made)
    if options.write:
        write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
