"""What does the store, at its defaults, score on a judged set?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cormorant import defaults
from cormorant.evaluate.reproduce.sets import JudgedSet
from cormorant.evaluate.run import Run
from cormorant.evaluate.running import run_system
from cormorant.evaluate.scoring import judge
from cormorant.store import Store

__all__ = ["measured", "runs"]

_BATCH: Final = 256


def runs(held: JudgedSet) -> Iterator[tuple[str, Run]]:
    """Every mode and its run; text alone where the set has no vectors.

    The set is added to a store in memory with default settings; nothing is tuned, and no
    judgement is looked at.
    """
    with Store.open(":memory:") as store:
        ids = list(held.documents)
        for start in range(0, len(ids), _BATCH):
            store.add(
                {"id": doc, "text": held.documents[doc], "vector": held.document_vectors.get(doc)}
                for doc in ids[start : start + _BATCH]
            )
        for mode in defaults.MODES:
            if mode != "text" and not held.query_vectors:
                continue
            embed = None if mode == "text" else held.query_vectors.__getitem__
            yield (
                mode,
                run_system(store, held.queries, name=mode, config={"mode": mode}, embed=embed),
            )


def measured(held: JudgedSet, metric: str) -> dict[str, float]:
    """The metric's mean over the set's queries, by mode."""
    return {mode: judge(run, held.qrels, metric).means[metric] for mode, run in runs(held)}
