"""Which checks are there? The table that drives the examination and its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cormorant.ingest.doctor import of_pipeline, of_records
from cormorant.ingest.doctor.diagnosis import Finding, Said, Severity
from cormorant.ingest.doctor.facts import Facts
from cormorant.ingest.doctor.pipeline import Pipeline

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: How it is called.
        question: What it answers.
        severity: ``error`` where data is lost or leaked or answers are wrong, ``warning`` where
            answers are worse, ``advice`` else.
        checklist: Whether it is one of the twelve of the production checklist.
        remedy: What to do if it fails.
        look: Answers it.
    """

    name: str
    question: str
    severity: Severity
    checklist: bool
    remedy: str
    look: Callable[[Facts, Pipeline], Said]

    def finding(self, facts: Facts, pipeline: Pipeline) -> Finding:
        """What it says of this store and pipeline."""
        told = self.look(facts, pipeline)
        return Finding(
            name=self.name,
            question=self.question,
            severity=self.severity,
            checklist=self.checklist,
            state=told.state,
            evidence=told.evidence,
            examples=told.examples,
            remedy="" if told.state == "passed" else self.remedy,
        )


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "chunk-overlap",
        "Do neighbouring chunks overlap, so that no sentence is lost at a border?",
        "warning",
        checklist=True,
        remedy="Overlap by a tenth: cormorant sync FOLDER KB --size 500 --overlap 50",
        look=of_pipeline.overlap,
    ),
    Check(
        "chunk-sizes-compared",
        "Were chunk sizes compared on judged questions?",
        "advice",
        checklist=True,
        remedy="Build a store for each of two sizes and compare: cormorant diff A B",
        look=of_pipeline.chunk_sizes_compared,
    ),
    Check(
        "tenant-field",
        "Does every record say whose it is, or who may read it?",
        "error",
        checklist=True,
        remedy=(
            "Write inside a scope, store.scope(tenant=…), and open with "
            "require_scope=('tenant',); if everybody may read everything, say tenant_field = '' "
            "in the pipeline."
        ),
        look=of_pipeline.tenant_field,
    ),
    Check(
        "one-embedder",
        "Are records and questions embedded by one model?",
        "error",
        checklist=True,
        remedy=(
            "Embed both sides through one Cormorant(embedding, path=…), which remembers its "
            "embedder."
        ),
        look=of_pipeline.one_embedder,
    ),
    Check(
        "filter-fields",
        "Are the fields that questions are filtered by in the records, and selective?",
        "warning",
        checklist=True,
        remedy=(
            "Fill the fields when loading, and name them in the pipeline: filters = ['language']."
        ),
        look=of_pipeline.filter_fields,
    ),
    Check(
        "hybrid",
        "Are questions answered by words and by meaning?",
        "warning",
        checklist=True,
        remedy=(
            "Give every record a vector (cormorant sync FOLDER KB --embedder SPEC) and ask with "
            "--mode hybrid."
        ),
        look=of_pipeline.hybrid,
    ),
    Check(
        "reranker",
        "Is there a reranker?",
        "advice",
        checklist=True,
        remedy=(
            "Retrieve 20 and rerank to 5: ContextualCompressionRetriever with a "
            "CrossEncoderReranker."
        ),
        look=of_pipeline.reranker,
    ),
    Check(
        "query-rewriting",
        "Are questions rewritten before they are searched for?",
        "advice",
        checklist=True,
        remedy="Put a MultiQueryRetriever or a HyDE retriever before the store.",
        look=of_pipeline.query_rewriting,
    ),
    Check(
        "evaluation",
        "Are there judged questions, by which a change is measured?",
        "warning",
        checklist=True,
        remedy="Judge some questions, kept in the store: cormorant judge KB",
        look=of_pipeline.evaluation,
    ),
    Check(
        "tracing",
        "Can a bad answer be looked into afterwards?",
        "advice",
        checklist=True,
        remedy="Switch traces on, and read them: cormorant traces FILE",
        look=of_pipeline.tracing,
    ),
    Check(
        "fallback",
        "Does something answer when a stage fails?",
        "warning",
        checklist=True,
        remedy="Give stages a time and a fallback: docs/resilience.md",
        look=of_pipeline.fallback,
    ),
    Check(
        "cost-by-tenant",
        "Is it known which tenant costs what?",
        "advice",
        checklist=True,
        remedy="Record tokens by tenant where models are called, and say cost_by_tenant = true.",
        look=of_pipeline.cost_by_tenant,
    ),
    Check(
        "chunk-size",
        "Are chunks of a size that can be found and read?",
        "warning",
        checklist=False,
        remedy="Cut again: cormorant sync FOLDER KB --size 500 --overlap 50",
        look=of_records.chunk_size,
    ),
    Check(
        "cut-mid-sentence",
        "Do chunks end where sentences do?",
        "warning",
        checklist=False,
        remedy="Cut at sentences or headings: cormorant sync FOLDER KB --chunker structural",
        look=of_records.cut_mid_sentence,
    ),
    Check(
        "fixed-splitter",
        "Are texts cut with regard to what they say?",
        "warning",
        checklist=False,
        remedy="Cut again: cormorant sync FOLDER KB --chunker recursive",
        look=of_records.fixed_splitter,
    ),
    Check(
        "duplicates",
        "Is each text in the store once?",
        "warning",
        checklist=False,
        remedy="Fill it with cormorant sync, which stores one text once, whatever sources hold it.",
        look=of_records.duplicates,
    ),
    Check(
        "empty-chunks",
        "Has every record a text?",
        "warning",
        checklist=False,
        remedy="Delete them: cormorant delete KB ID …",
        look=of_records.empty_chunks,
    ),
    Check(
        "over-long-chunks",
        "Is every chunk short enough to be embedded whole?",
        "warning",
        checklist=False,
        remedy=(
            "Cut them with RecursiveChunker: what is beyond a model's window is not in the vector."
        ),
        look=of_records.over_long,
    ),
    Check(
        "normalised-vectors",
        "Do vectors differ in direction alone?",
        "warning",
        checklist=False,
        remedy="Normalise before adding, or make the store with metric='cosine'.",
        look=of_records.normalised,
    ),
    Check(
        "enum-drift",
        "Is each metadata value written in one way?",
        "warning",
        checklist=False,
        remedy=(
            "Choose one spelling where documents are loaded, such as type.lower(), and sync again."
        ),
        look=of_records.enum_drift,
    ),
    Check(
        "copied-texts",
        "Are metadata about the text, and not the text again?",
        "warning",
        checklist=False,
        remedy="Drop the field where documents are loaded; keep whole documents in a docstore.",
        look=of_records.copied_texts,
    ),
)
"""In the order they are reported: the checklist's twelve first."""
