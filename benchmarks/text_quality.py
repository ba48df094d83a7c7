"""How well does the text leg rank? nDCG@10 on judged sets, against a floor for each.

Run: ``CORMORANT_DATA=FOLDER python benchmarks/text_quality.py [SET …]``. The folder holds judged
sets: ``SET/docs.jsonl`` (id, title, text), ``SET/queries.jsonl`` (id, text), ``SET/qrels.tsv``.
Titles are indexed with the texts. Chinese sets are also asked with their documents turned into
Traditional characters and the queries left as they are. Exits 1 if a set is below its floor.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from cormorant.analysis import Analyzer
from cormorant.analysis.t2s import SIMPLIFIED, TRADITIONAL
from cormorant.evaluate import mean_ndcg, read_qrels
from cormorant.index.text import TextIndex

FLOORS = {"cranfield": 0.36, "xquad-en": 0.96, "xquad-zh": 0.96, "cmrc2018-dev": 0.975}
# The table backwards: of several Traditional forms the last, so no text is as a writer's would be.
TO_TRADITIONAL = dict(zip(map(ord, SIMPLIFIED), TRADITIONAL, strict=True))


def read_jsonl(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge(folder, *, traditional=False):
    """nDCG@10, documents, queries, and CPU ms per query."""
    documents = read_jsonl(folder / "docs.jsonl")
    queries = read_jsonl(folder / "queries.jsonl")
    qrels = read_qrels(folder / "qrels.tsv")
    texts = [f"{d['title']}\n{d['text']}" for d in documents]
    if traditional:
        texts = [text.translate(TO_TRADITIONAL) for text in texts]
    analyzer = Analyzer()
    index = TextIndex.empty().append(TextIndex.encode(map(analyzer.terms, texts)))
    asked = [query for query in queries if qrels.get(query["id"])]
    start = time.process_time()
    run = {}
    for query in asked:
        slots = index.ask(analyzer.query_terms(query["text"])).search(k=10).slots
        run[query["id"]] = [documents[slot]["id"] for slot in slots]
    spent = (time.process_time() - start) / len(asked) * 1000
    judged = {query["id"]: qrels[query["id"]] for query in asked}
    return mean_ndcg(run, judged), len(documents), len(asked), spent


def main():
    where = os.environ.get("CORMORANT_DATA")
    if not where:
        print("CORMORANT_DATA names no folder of judged sets; nothing was measured.")
        return 0
    sets = sys.argv[1:] or sorted(path.parent.name for path in Path(where).glob("*/qrels.tsv"))
    below = []
    print("| set | documents | queries | nDCG@10 | floor | CPU ms a query |")
    print("|---|---|---|---|---|---|")
    for name in sets:
        chinese = "zh" in name or "cmrc" in name
        for traditional in (False, True) if chinese else (False,):
            label = f"{name}, documents Traditional" if traditional else name
            score, documents, queries, spent = judge(Path(where) / name, traditional=traditional)
            floor = FLOORS.get(name, 0.0)
            if score < floor:
                below.append(label)
            print(f"| {label} | {documents} | {queries} | {score:.4f} | {floor} | {spent:.2f} |")
    print(f"\nBelow its floor: {', '.join(below) or 'none'}.")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
