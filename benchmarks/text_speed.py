"""What do indexing and searching text cost? CPU, against rank_bm25 on the same passages.

Run: ``python benchmarks/text_speed.py [PASSAGES]`` (100,000 by default; ``CORMORANT_BENCH`` names
the corpus, see ``corpus.py``). rank_bm25 splits on white space, as LangChain's BM25Retriever
does; both answer the same questions with ten hits, one thread each. Times are the least of three
turns a query, CPU alone. Prints figures, judges nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi

sys.path.insert(0, str(Path(__file__).parent))

import corpus

from cormorant.analysis import Analyzer
from cormorant.index.text import TextIndex

BATCH = 1000
SINGLES = 10_000


def percentiles(milliseconds):
    return f"p50 {np.median(milliseconds):.3f} ms, p99 {np.percentile(milliseconds, 99):.3f} ms"


def times(search, queries, turns=3):
    """CPU milliseconds of each query, the least of some turns."""
    best = np.full(len(queries), np.inf)
    for _ in range(turns):
        for i, query in enumerate(queries):
            start = time.process_time()
            search(query)
            best[i] = min(best[i], (time.process_time() - start) * 1000)
    return best


def build(texts, analyzer):
    """The index, and CPU seconds for terms, for bytes, for appending, and the longest append."""
    index, spent, longest = TextIndex.empty(), np.zeros(3), 0.0
    for at in range(0, len(texts), BATCH):
        marks = [time.process_time()]
        terms = [analyzer.terms(text) for text in texts[at : at + BATCH]]
        marks.append(time.process_time())
        blob = TextIndex.encode(terms)
        marks.append(time.process_time())
        index = index.append(blob)
        marks.append(time.process_time())
        spent += np.diff(marks)
        longest = max(longest, marks[-1] - marks[-2])
    return index, spent, longest


def append_singly(texts, analyzer):
    """CPU microseconds to encode and append one record, and the index."""
    terms = [analyzer.terms(text) for text in texts[:SINGLES]]
    start = time.process_time()
    index = TextIndex.empty()
    for one in terms:
        index = index.append(TextIndex.encode([one]))
    return (time.process_time() - start) / len(terms) * 1e6, index


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    texts = [str(passage["text"]) for passage in corpus.passages(count)]
    queries = corpus.queries(500)
    analyzer = Analyzer()
    asked = [analyzer.query_terms(query) for query in queries]
    print(
        f"{len(texts)} passages ({corpus.source()}), {len(queries)} queries of "
        f"{np.mean([len(set(terms)) for terms in asked]):.1f} terms"
    )

    index, (analysis, encoding, appending), longest = build(texts, analyzer)
    print(
        f"analysis {len(texts) / analysis:,.0f} passages/CPU-s; postings "
        f"{len(texts) / (encoding + appending):,.0f}; both "
        f"{len(texts) / (analysis + encoding + appending):,.0f}; "
        f"longest append of {BATCH} {longest * 1000:.0f} ms"
    )

    merged = TextIndex.from_arrays(index.to_arrays())
    size = sum(array.nbytes for array in merged.to_arrays().values())
    print(f"{size / len(texts):.0f} bytes a passage")

    ours = times(lambda terms: merged.ask(terms).search(k=10), asked)
    print(f"search, one segment: {percentiles(ours)}")
    segments = index.ask(asked[0]).search(k=10).counters["segments"]
    spread = times(lambda terms: index.ask(terms).search(k=10), asked)
    print(f"search, {segments} segments as appended: {percentiles(spread)}")
    rng = np.random.default_rng(1)
    for share in (0.5, 0.1, 0.01, 0.001):
        mask = rng.random(len(texts)) < share
        masked = times(lambda terms, mask=mask: merged.ask(terms).search(k=10, mask=mask), asked)
        print(f"search, {share:.1%} of records allowed: {percentiles(masked)}")
    alive = rng.random(len(texts)) < 0.95
    dead = times(lambda terms: merged.ask(terms, alive=alive).search(k=10, mask=alive), asked)
    print(f"search, 5% of records dead: {percentiles(dead)}")

    single, grown = append_singly(texts, analyzer)
    print(
        f"{SINGLES:,} single appends: {single:.0f} µs each; then search "
        f"{percentiles(times(lambda terms: grown.ask(terms).search(k=10), asked))}"
    )

    peer = BM25Okapi([text.split() for text in texts])
    theirs = times(lambda text: peer.get_top_n(text.split(), texts, n=10), queries[:20], turns=1)
    print(f"rank_bm25: {percentiles(theirs)}")
    print(f"search is {theirs.mean() / ours.mean():,.0f} times cheaper on average")


if __name__ == "__main__":
    main()
