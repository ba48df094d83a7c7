"""What do indexing and searching text cost? CPU, one thread, ten hits, on the same passages.

Run: ``python benchmarks/text_speed.py [PASSAGES]`` (100,000 by default; ``CORMORANT_BENCH`` names
the corpus, see ``corpus.py``; more passages than it has are repeated). Peers are measured where
they are installed: tantivy (its English stemmer, stop words dropped, with and without counting
all matches) and, up to 100,000 passages, rank_bm25 (splits on white space, as LangChain's
BM25Retriever does). Numba is measured where it is installed. Times are the least of three turns a
query, all threads. Prints figures, judges nothing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import corpus

from cormorant.analysis import Analyzer
from cormorant.analysis.stopwords import STOP_WORDS
from cormorant.index.text import TextIndex, use_kernel

BATCH = 1000
SINGLES = 10_000
TAILS = ("to be or not to be", "the of a", "the", "woodgrain the of a to")


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
    """The index; CPU seconds of terms, bytes, appends and merges; the longest append, merge."""
    index, spent, longest, aside = TextIndex.empty(), np.zeros(4), 0.0, 0.0
    for at in range(0, len(texts), BATCH):
        marks = [time.process_time()]
        terms = [analyzer.terms(text) for text in texts[at : at + BATCH]]
        marks.append(time.process_time())
        blob = TextIndex.encode(terms)
        marks.append(time.process_time())
        index = index.append(blob)
        marks.append(time.process_time())
        while (merge := index.due()) is not None:
            began = time.process_time()
            index = index.adopt(merge.run())
            aside = max(aside, time.process_time() - began)
        marks.append(time.process_time())
        spent += np.diff(marks)
        longest = max(longest, marks[3] - marks[2])
    return index, spent, longest, aside


def append_singly(texts, analyzer):
    """CPU microseconds to encode and append one record, and the index."""
    terms = [analyzer.terms(text) for text in texts[:SINGLES]]
    start = time.process_time()
    index = TextIndex.empty()
    for one in terms:
        index = index.append(TextIndex.encode([one]))
    return (time.process_time() - start) / len(terms) * 1e6, index


def searches(index, asked, name):
    """Every kind of search, by the kernel in use; the first one's times."""
    ours = times(lambda terms: index.ask(terms).search(k=10), asked)
    read = [index.ask(terms).search(k=10).counters for terms in asked]
    postings = sum(one["postings"] for one in read)
    share = sum(one["postings_read"] for one in read) / max(1, postings)
    print(f"{name}: {percentiles(ours)}; {share:.0%} of {postings / len(asked):,.0f} postings read")
    rng = np.random.default_rng(1)
    for part in (0.5, 0.1, 0.01, 0.001):
        mask = rng.random(index.n) < part
        masked = times(lambda terms, mask=mask: index.ask(terms).search(k=10, mask=mask), asked)
        print(f"{name}, {part:.1%} of records allowed: {percentiles(masked)}")

    def whole(terms):
        one = index.ask(terms)
        one.search(k=50)
        one.spread()

    print(f"{name}, as in a hybrid search: {percentiles(times(whole, asked))}")
    alive = rng.random(index.n) < 0.95
    dead = times(lambda terms: index.ask(terms, alive=alive).search(k=10, mask=alive), asked)
    print(f"{name}, 5% of records dead: {percentiles(dead)}")
    for question in TAILS:
        (tail,) = times(lambda terms: index.ask(terms).search(k=10), [question.split()], turns=5)
        print(f"{name}, {question!r}, no word dropped: {tail:.2f} ms")
    return ours


def tantivy_search(texts, queries):
    """Milliseconds of tantivy, counting all matches as it does unless told, and not."""
    import tantivy

    stop = STOP_WORDS["english"]
    with tempfile.TemporaryDirectory() as folder:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", tokenizer_name="en_stem", index_option="freq")
        index = tantivy.Index(schema.build(), path=folder)
        writer = index.writer(256_000_000, 1)
        for text in texts:
            writer.add_document(tantivy.Document(body=text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        searcher = index.searcher()

        def parsed(text):
            words = re.findall("[a-z0-9]+", text.lower())
            return index.parse_query(
                " ".join([w for w in words if w not in stop] or words), ["body"]
            )

        asked = [*map(parsed, queries)]
        for count in (True, False):
            print(
                f"tantivy, {'' if count else 'not '}counting: "
                f"{percentiles(times(lambda q, c=count: searcher.search(q, 10, count=c), asked))}"
            )
        for question in TAILS:
            query = index.parse_query(question, ["body"])
            (tail,) = times(lambda q: searcher.search(q, 10), [query], turns=5)
            print(f"tantivy, {question!r}, no word dropped: {tail:.2f} ms")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    held = [str(passage["text"]) for passage in corpus.passages(count)]
    texts = [held[i % len(held)] for i in range(count)]
    queries = corpus.queries(500)
    analyzer = Analyzer()
    asked = [analyzer.query_terms(query) for query in queries]
    print(
        f"{len(texts)} passages ({corpus.source()}), {len(queries)} queries of "
        f"{np.mean([len(set(terms)) for terms in asked]):.1f} terms"
    )

    index, (analysis, encoding, appending, merging), longest, aside = build(texts, analyzer)
    print(
        f"analysis {len(texts) / analysis:,.0f} passages/CPU-s; postings "
        f"{len(texts) / (encoding + appending + merging):,.0f}; "
        f"longest append of {BATCH} {longest * 1000:.0f} ms, "
        f"longest merge aside {aside * 1000:.0f} ms of {merging:.2f} s"
    )

    arrays = index.to_arrays()
    began = time.process_time()
    merged = TextIndex.from_arrays(arrays)
    merged.ask(asked[0]).search(k=10)
    print(f"opened and asked once: {(time.process_time() - began) * 1000:.1f} ms")
    print(f"{sum(array.nbytes for array in arrays.values()) / len(texts):.0f} bytes a passage")

    ours = searches(merged, asked, "search")
    segments = index.ask(asked[0]).search(k=10).counters["segments"]
    spread = times(lambda terms: index.ask(terms).search(k=10), asked)
    print(f"search, {segments} segments as appended: {percentiles(spread)}")
    if importlib.util.find_spec("numba"):
        began = time.process_time()
        use_kernel("numba")
        print(f"numba loaded in {time.process_time() - began:.2f} s")
        searches(merged, asked, "search by numba")
        use_kernel("numpy")

    single, grown = append_singly(texts, analyzer)
    print(
        f"{SINGLES:,} single appends: {single:.0f} µs each; then search "
        f"{percentiles(times(lambda terms: grown.ask(terms).search(k=10), asked))}"
    )
    if importlib.util.find_spec("tantivy"):
        tantivy_search(texts, queries)
    if importlib.util.find_spec("rank_bm25") and count <= 100_000:
        from rank_bm25 import BM25Okapi

        peer = BM25Okapi([text.split() for text in texts])
        theirs = times(
            lambda text: peer.get_top_n(text.split(), texts, n=10), queries[:20], turns=1
        )
        print(f"rank_bm25: {percentiles(theirs)}")
        print(f"search is {theirs.mean() / ours.mean():,.0f} times cheaper on average")


if __name__ == "__main__":
    main()
