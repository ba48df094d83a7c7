"""Is this store, and the pipeline around it, ready for production?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cormorant.errors import ConfigError, UsageError
from cormorant.ingest.doctor.diagnosis import Diagnosis
from cormorant.ingest.doctor.facts import gather
from cormorant.ingest.doctor.pipeline import Pipeline
from cormorant.ingest.doctor.table import CHECKS
from cormorant.ranges import check_whole
from cormorant.store.door import Door

__all__ = ["LOOKED_AT", "examine"]

LOOKED_AT: Final = 100_000
"""Records that are looked at, at most: about 3 s of CPU, however large the store is."""


def examine(
    store: Door,
    pipeline: Pipeline | Mapping[str, Any] | None = None,
    *,
    limit: int = LOOKED_AT,
) -> Diagnosis:
    """Look at a store and at the description of its pipeline; changes nothing.

    Args:
        store: An open store, or a scoped view, whose records alone are looked at.
        pipeline: What is around the store; what is not described is unknown, and not passed.
        limit: Records to look at, at most, oldest first; the diagnosis says if there are more.

    Returns:
        A finding for each of ``CHECKS``, in that order.

    Raises:
        UsageError: If it is no store.
        ConfigError: If the pipeline or the limit is not as accepted.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> _ = store.add([{"id": "a", "text": "A fish.", "metadata": {"tenant": "acme"}}])
        >>> diagnosis = examine(store, {"mode": "text", "tracing": True})
        >>> diagnosis.passed, diagnosis.of, diagnosis.verdict
        (2, 12, 'not ready')
        >>> store.close()
    """
    if not isinstance(store, Door):
        raise UsageError(
            f"examine takes an open store, or a scoped view; got {type(store).__name__}. Of a "
            "vector store pass its .store."
        )
    check_whole("limit", limit, error=ConfigError)
    described = pipeline if isinstance(pipeline, Pipeline) else Pipeline.of(pipeline or {})
    facts = gather(store, limit)
    return Diagnosis(
        findings=tuple(check.finding(facts, described) for check in CHECKS),
        records=facts.records,
        examined=facts.examined,
    )
