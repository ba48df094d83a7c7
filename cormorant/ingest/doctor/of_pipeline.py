"""Is what is around the store fit for production? What nobody described is unknown."""

from __future__ import annotations

from statistics import median
from typing import Final

from cormorant.errors import NotFound, ScopeError
from cormorant.evaluate.keeping import kept_golden
from cormorant.ingest.doctor.diagnosis import Said, said
from cormorant.ingest.doctor.facts import Facts, share
from cormorant.ingest.doctor.pipeline import Pipeline

__all__ = [
    "chunk_sizes_compared",
    "cost_by_tenant",
    "evaluation",
    "fallback",
    "filter_fields",
    "hybrid",
    "one_embedder",
    "overlap",
    "query_rewriting",
    "reranker",
    "tenant_field",
    "tracing",
]

TENANT_FIELDS: Final = (
    *("tenant", "tenant_id", "org", "org_id", "organization", "customer", "customer_id"),
    *("account", "user_id", "owner", "acl", "permissions", "groups", "access"),
)
_PRESENT: Final = 0.95
_MOST: Final = 0.95  # of records that a field's most frequent value may have, to select anything


def overlap(facts: Facts, pipeline: Pipeline) -> Said:
    """Do neighbouring chunks overlap, so that no sentence is lost at a border?"""
    measured = facts.overlaps()
    if measured:
        middle = median(measured)
        evidence = f"consecutive chunks overlap by {middle:,.0f} characters (median)"
        # Borders at paragraphs leave blanks between chunks: what lies there is lost to neither.
        if middle > 0 or pipeline.chunker == "structural":
            return said("passed", evidence)
        return said("failed", evidence)
    if pipeline.chunk_overlap is None:
        return said("unknown", "no chunks say where in their source they begin (start_index)")
    evidence = f"the pipeline says {pipeline.chunk_overlap:,} characters"
    return said("passed" if pipeline.chunk_overlap > 0 else "failed", evidence)


def chunk_sizes_compared(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Were chunk sizes compared on judged questions?"""
    sizes = pipeline.chunk_sizes_compared
    if sizes is None:
        return said("unknown", "the pipeline does not say whether chunk sizes were compared")
    told = ", ".join(map(str, sizes)) or "none"
    evidence = f"sizes that were compared on judged questions: {told}"
    return said("passed" if len(set(sizes)) > 1 else "failed", evidence)


def tenant_field(facts: Facts, pipeline: Pipeline) -> Said:
    """Does every record say whose it is, or who may read it?"""
    if pipeline.tenant_field == "":
        return said("passed", "the pipeline says that everybody may read everything")
    required = facts.store.config.require_scope
    name = pipeline.tenant_field or next(
        (each for each in (*required, *TENANT_FIELDS) if each in facts.fields), None
    )
    if name is None:
        return said("failed", "no metadata field says whose a record is, or who may read it")
    present = facts.fields[name].present if name in facts.fields else 0
    evidence = f"{present:,} of {facts.examined:,} records have {name!r}"
    return said("passed" if present and present == facts.examined else "failed", evidence)


def filter_fields(facts: Facts, pipeline: Pipeline) -> Said:
    """Are the fields that questions are filtered by in the records, and selective?"""
    if not facts.examined:
        return said("unknown", "there are no records")
    if pipeline.filters is None:
        names = ", ".join(sorted(facts.fields)[:10])
        if not names:
            return said("failed", "no record has metadata to filter by")
        return said("unknown", f"the pipeline does not say what it filters by; there are {names}")
    if not pipeline.filters:
        return said("failed", "the pipeline filters by nothing")
    faults = []
    for name in pipeline.filters:
        field = facts.fields.get(name)
        present = share(0 if field is None else field.present, facts.examined)
        if field is None or present < _PRESENT:
            faults.append(f"{name}: in {present:.0%} of records")
        elif field.values and field.values.most_common(1)[0][1] > _MOST * facts.examined:
            faults.append(f"{name}: nearly all say {field.values.most_common(1)[0][0]!r}")
    if faults:
        return said("failed", f"{len(faults)} of {len(pipeline.filters)} fields are no use", faults)
    return said("passed", f"{', '.join(pipeline.filters)}: in nearly all records, and selective")


def one_embedder(facts: Facts, pipeline: Pipeline) -> Said:
    """Are records and questions embedded by one model?"""
    index, query = pipeline.index_embedder, pipeline.query_embedder
    if index is not None and query is not None and index != query:
        return said("failed", f"records are embedded by {index!r}, questions by {query!r}")
    fingerprint = facts.store.fingerprint
    if fingerprint is not None:
        return said(
            "passed", f"the store knows {fingerprint.name!r} by its vectors, and refuses another"
        )
    stored = facts.store.embedder
    if stored is not None and query is not None and stored != query:
        return said(
            "failed", f"the store remembers {stored!r}, questions are embedded by {query!r}"
        )
    if (index or stored) is not None and query is not None:
        return said("passed", f"both sides are embedded by {query!r}")
    return said("unknown", "the store remembers no embedder, and the pipeline does not say both")


def hybrid(facts: Facts, pipeline: Pipeline) -> Said:
    """Are questions answered by words and by meaning?"""
    bare = len(facts.bare)
    if not facts.examined:
        return said("unknown", "there are no records")
    if bare:
        evidence = f"{bare:,} of {facts.examined:,} records have no vector"
        return said("failed", evidence, facts.bare)
    if pipeline.mode is None:
        return said(
            "unknown", "the store has texts and vectors; the pipeline does not say its mode"
        )
    evidence = f"the pipeline asks in mode {pipeline.mode!r}"
    return said("passed" if pipeline.mode == "hybrid" else "failed", evidence)


def reranker(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Is there a reranker?"""
    if pipeline.reranker is None:
        return said("unknown", "the pipeline does not say whether it reranks")
    if not pipeline.reranker:
        return said("failed", "the pipeline does not rerank")
    return said("passed", f"the pipeline reranks by {pipeline.reranker!r}")


def evaluation(facts: Facts, pipeline: Pipeline) -> Said:
    """Are there judged questions, by which a change is measured?"""
    try:
        golden = kept_golden(facts.store)
    except (NotFound, ScopeError):
        return _described("it is evaluated on judged questions", value=pipeline.evaluated)
    return said("passed", f"the store keeps {len(golden.qrels):,} judged questions")


def query_rewriting(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Are questions rewritten before they are searched for?"""
    return _described("it rewrites questions", value=pipeline.query_rewriting)


def tracing(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Can a bad answer be looked into afterwards?"""
    return _described("it traces retrievals", value=pipeline.tracing)


def fallback(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Does something answer when a stage fails?"""
    return _described("something answers when a stage fails", value=pipeline.fallback)


def cost_by_tenant(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Is it known which tenant costs what?"""
    return _described("cost is tracked by tenant", value=pipeline.cost_by_tenant)


def _described(what: str, *, value: bool | None) -> Said:
    if value is None:
        return said("unknown", f"the pipeline does not say whether {what}")
    evidence = f"the pipeline says {'' if value else 'not '}that {what}"
    return said("passed" if value else "failed", evidence)
