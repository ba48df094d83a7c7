"""What does a question cost with each retriever, beside the models it asks?

Run: ``python benchmarks/retrievers_cost.py [--write]``. For each retriever over 5,000 passages:
how often a question asks a language model, how many texts it has an embedder and a cross-encoder
read, and the median CPU milliseconds of everything else. The models are stand-ins that answer at
once; their cost is yours to add. ``--write`` puts the table into docs/cheatsheet.md.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import time
from collections import Counter
from functools import cache
from pathlib import Path
from zlib import crc32

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel

from cormorant import data
from cormorant.langchain import Cormorant
from cormorant.langchain import document_transformers as transformers
from cormorant.langchain import retrievers as r
from cormorant.langchain.retrievers import document_compressors as c
from cormorant.langchain.retrievers.boost import Priority

PAGE = Path(__file__).parents[1] / "docs" / "cheatsheet.md"
BEGIN, END = "<!-- cost: begin -->", "<!-- cost: end -->"
PASSAGES, QUESTIONS, DIM = 5_000, 30, 384
asked: Counter[str] = Counter()


class StandIn(Embeddings):
    """A vector for each text, made of its checksum."""

    def embed_documents(self, texts):
        asked["embedder"] += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        asked["embedder"] += 1
        return self._vector(text)

    @staticmethod
    @cache
    def _vector(text):
        return np.random.default_rng(crc32(text.encode())).standard_normal(DIM).tolist()


class CrossEncoder(BaseCrossEncoder):
    def score(self, text_pairs):
        asked["cross-encoder"] += len(text_pairs)
        return [float(len(text)) for _, text in text_pairs]


class Model(SimpleChatModel):
    """A language model that always says the same."""

    reply: str

    @property
    def _llm_type(self):
        return "stand-in"

    def _call(self, *_, **__):
        asked["model"] += 1
        return self.reply


def model(reply):
    return Model(reply=reply)


def compressed(vs, *steps):
    return r.ContextualCompressionRetriever(
        base_retriever=vs.as_retriever(search_type="hybrid", k=20),
        base_compressor=c.DocumentCompressorPipeline(transformers=list(steps)),
    )


def cases(documents):
    """Name, when to take it, and the retriever; each made when it is its turn."""
    embedding = StandIn()
    vs = Cormorant.from_documents(documents, embedding)
    vector, text = vs.as_retriever(k=5), vs.as_retriever(search_type="text", k=5)
    hybrid = vs.as_retriever(search_type="hybrid", k=5)
    variants = model("1. how many people lived there\n2. who won the war\n3. when was it built")
    filtered = model('{"query": "people", "filter": "gt(\\"year\\", 2005)"}')
    yield (
        '`as_retriever(search_type="text")`',
        "names, codes, exact words; no embedder at hand",
        text,
    )
    yield "`as_retriever()`", "other words than the documents', other languages", vector
    yield (
        '`as_retriever(search_type="mmr")`',
        "many near-copies among the best",
        vs.as_retriever(search_type="mmr", k=5),
    )
    yield '`as_retriever(search_type="hybrid")`', "**the first choice**, over one Cormorant", hybrid
    yield (
        "`BM25Retriever`",
        "texts in memory, no store",
        r.BM25Retriever.from_documents(documents, k=5),
    )
    yield (
        "`HybridRetriever`",
        "a vector and a keyword retriever of any make",
        r.HybridRetriever(vector_retriever=vector, keyword_retriever=text),
    )
    yield (
        "`EnsembleRetriever`",
        "several retrievers, ranks fused, weights",
        r.EnsembleRetriever(retrievers=[vector, text], k=5, fetch_k=50),
    )
    yield (
        "`MergerRetriever`",
        "sources that must all have a say",
        r.MergerRetriever(retrievers=[vector, text], k=5),
    )
    yield (
        "`MultiQueryRetriever`",
        "short or vague questions",
        r.MultiQueryRetriever.from_llm(hybrid, variants, k=5, verbose=False),
    )
    yield (
        "`DecompositionRetriever`",
        "questions of several parts",
        r.DecompositionRetriever.from_llm(hybrid, variants, k=5),
    )
    yield (
        "`RePhraseQueryRetriever`",
        "chats: “and its price?”",
        r.RePhraseQueryRetriever.from_llm(hybrid, model("how many people")),
    )
    yield (
        "`HyDERetriever`",
        "questions unlike the passages that answer them",
        r.HyDERetriever.from_llm(model("Many people lived there."), vs, k=5),
    )
    yield (
        "`SelfQueryRetriever`",
        "questions with conditions on metadata: “since 2005”",
        r.SelfQueryRetriever.from_llm(filtered, vs, "articles", k=5),
    )
    yield (
        "`ScopedRetriever`",
        "tenants and permissions, a retriever per request",
        r.ScopedRetriever(retriever=hybrid).for_request(doctype="a"),
    )
    yield (
        "`FreshnessRetriever`",
        "news: the newer of the relevant",
        r.FreshnessRetriever(retriever=hybrid, date_field="year"),
    )
    yield (
        "`BoostRetriever`",
        "some kinds of document count more",
        r.BoostRetriever(retriever=hybrid, boosts=[Priority("doctype", {"a": 2})]),
    )
    yield (
        "`PreviousNextRetriever`",
        "numbered chunks, read with their neighbours",
        r.PreviousNextRetriever(retriever=hybrid, vectorstore=vs),
    )
    yield (
        "`EmbeddingsFilter`, 20 → 5",
        "a threshold on likeness",
        compressed(vs, c.EmbeddingsFilter(embeddings=embedding, k=5)),
    )
    yield (
        "`EmbeddingsRedundantFilter`, of 20",
        "passages that say the same",
        compressed(vs, transformers.EmbeddingsRedundantFilter(embeddings=embedding)),
    )
    yield (
        "`CrossEncoderReranker`, 20 → 5",
        "**the second step**, for the best five",
        compressed(vs, c.CrossEncoderReranker(model=CrossEncoder(), top_n=5)),
    )
    yield (
        "`LLMListwiseRerank`, 20 → 5",
        "the same with a language model",
        compressed(vs, c.LLMListwiseRerank.from_llm(model("[3] > [1] > [0]"), top_n=5)),
    )
    yield (
        "`LLMPointwiseRerank`, 20 → 5",
        "the same, with a grade for each",
        compressed(vs, c.LLMPointwiseRerank.from_llm(model("7"), top_n=5)),
    )
    yield (
        "`LLMChainFilter`, of 20",
        "drop what does not help, whatever its rank",
        compressed(vs, c.LLMChainFilter.from_llm(model("YES"))),
    )
    yield (
        "`LLMChainExtractor`, of 20",
        "long passages, of which a sentence matters",
        compressed(vs, c.LLMChainExtractor.from_llm(model("people"))),
    )
    yield (
        "`TokenBudgetPacker`, of 20",
        "a prompt of limited size",
        compressed(vs, c.TokenBudgetPacker(token_budget=1000)),
    )
    yield (
        "`LongContextReorder`, of 20",
        "a long prompt, read least in its middle",
        compressed(vs, transformers.LongContextReorder()),
    )
    vs.close()
    with Cormorant(embedding) as children:
        parents = r.ParentDocumentRetriever(
            vectorstore=children, child_splitter=r.SentenceSplitter(), k=5
        )
        parents.add_documents(documents)
        yield "`ParentDocumentRetriever`", "find sentences, read documents", parents
    with Cormorant(embedding) as children:
        merging = r.AutoMergingRetriever(
            vectorstore=children, child_splitter=r.SentenceSplitter(), k=5
        )
        merging.add_documents(documents)
        yield (
            "`AutoMergingRetriever`",
            "chunks, or the document where many of its chunks are found",
            merging,
        )
    with Cormorant(embedding) as children:
        windows = r.SentenceWindowRetriever(vectorstore=children, k=5)
        windows.add_documents(documents)
        yield "`SentenceWindowRetriever`", "exact hits with a little around them", windows
    with Cormorant(embedding) as memories:
        timed = r.TimeWeightedVectorStoreRetriever(vectorstore=memories, k=5)
        timed.add_documents(documents)
        yield (
            "`TimeWeightedVectorStoreRetriever`",
            "an agent's memories; it writes when it reads",
            timed,
        )


def passages():
    """Sentences of the demo's corpus, three by three, with metadata."""
    rng = random.Random(7)
    text = " ".join(data.documents("en").values())
    pieces = [s for s in re.split(r"(?<=[.!?])\s+", text) if len(s) > 20]
    return [
        Document(
            " ".join(rng.sample(pieces, 3)),
            id=f"p#{number}",
            metadata={"year": rng.randint(2000, 2026), "doctype": rng.choice("abcde")},
        )
        for number in range(PASSAGES)
    ]


def measure(retriever, questions):
    """Calls of each kind of model for a question, and median CPU milliseconds."""
    retriever.invoke(questions[0])
    asked.clear()
    spent = []
    for question in questions:
        began = time.process_time()
        retriever.invoke(question)
        spent.append(time.process_time() - began)
    calls = {kind: round(count / len(questions), 1) for kind, count in asked.items()}
    return calls, 1e3 * statistics.median(spent)


def table():
    documents = passages()
    questions = list(data.questions("en").values())[:QUESTIONS]
    lines = ["| take | for | models asked | CPU ms |", "|---|---|---|---|"]
    for name, use, retriever in cases(documents):
        calls, cost = measure(retriever, questions)
        said = ", ".join(f"{kind} {count:g}" for kind, count in sorted(calls.items())) or "none"
        lines.append(f"| {name} | {use} | {said} | {cost:.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/")
    options = parser.parse_args()
    made = table()
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
