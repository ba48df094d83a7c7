"""Is this folder a good store, holding what was acknowledged and nothing half done?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cormorant.errors import CormorantError, StoreError
from cormorant.model import Query, Record
from cormorant.store import Store
from crashlab.plan import (
    DIM,
    EVERYWHERE,
    Model,
    Op,
    backup_folder,
    document,
    item,
    open_store,
    states,
    word,
)

__all__ = ["contents", "differences", "half_batches", "judge"]

SENTINEL = 999_999
"""Batch number of what the judge itself adds."""


def judge(
    folder: Path, ops: Sequence[Op], acks: Iterable[str], *, base: Model | None = None
) -> list[str]:
    """What is wrong with a store that a crash left?

    Args:
        folder: The store; backups lie beside it.
        ops: The plan.
        acks: What the writer said before the crash, in order.
        base: What the store held before the plan; nothing, if it was made by it.

    Returns:
        A sentence for each fault; none for a good store.
    """
    said = [line.split()[1] for line in acks if line.startswith("ack ")]
    done = [int(name) for name in said if name.isdigit()]
    expected = states(ops, base)
    passed = max(done) + 1 - ops[0].place if done else 0
    try:
        found = _judge_store(
            folder, expected[passed : passed + 2], made="open" in said or base is not None
        )
        found += _judge_backups(folder, ops, done, expected)
    except CormorantError as error:
        return [f"{type(error).__name__}: {error}"]
    except Exception as error:  # noqa: BLE001 - whatever it is, this store is not usable
        return [f"not an error of ours: {type(error).__name__}: {error}"]
    return found


def contents(store: Store) -> dict[str, Record]:
    """All records by id, from one snapshot."""
    return {record.id: record for record in store.records(with_vectors=True)}


def differences(found: Model, wanted: Model) -> list[str]:
    """How two sets of records differ, a sentence each; vectors to the bit."""
    says = [f"{key} is missing" for key in wanted if key not in found]
    says += [f"{key} should not be there" for key in found if key not in wanted]
    for key in found.keys() & wanted.keys():
        one, other = found[key], wanted[key]
        if one.text != other.text or dict(one.metadata) != dict(other.metadata):
            says.append(f"{key} is {dict(one.metadata)}, not {dict(other.metadata)}")
        elif not _same_vector(one, other):
            says.append(f"{key} has the vector {one.vector!r}, not {other.vector!r}")
    return sorted(says)


def half_batches(records: Iterable[Record]) -> list[str]:
    """Which batches are there in part, or mixed from two versions, or at odds with themselves?

    For a plan of whole batches: every batch ought to be all there, in one version.
    """
    batches: dict[int, list[Record]] = {}
    for record in records:
        batches.setdefault(record.metadata["batch"], []).append(record)
    says = []
    for batch, members in batches.items():
        version, size = members[0].metadata["version"], members[0].metadata["size"]
        wanted = {r.id: r for r in (item(batch, version, i, size) for i in range(size))}
        says += differences({r.id: r for r in members}, wanted)
    return says


def _judge_store(folder: Path, allowed: Sequence[Model], *, made: bool) -> list[str]:
    # Before its creation was acknowledged a store may be missing, but never in the way.
    with open_store(folder, create=not made) as store:
        found = contents(store)
        verdicts = [differences(found, state) for state in allowed]
        if all(verdicts):
            return [f"no acknowledged state: {'; '.join(_some(min(verdicts, key=len)))}"]
        says = _judge_search(store, found) + _judge_documents(store, found)
        report = store.check()
        if not report.ok:
            says.append(f"check() reports {report}")
        store.add([item(SENTINEL, 0, i, 3) for i in range(3)])
        wanted = {**found, **{r.id: r for r in (item(SENTINEL, 0, i, 3) for i in range(3))}}
        says += differences(contents(store), wanted)
    with open_store(folder, create=False) as store:
        says += [f"after one more add: {s}" for s in differences(contents(store), wanted)]
        says += _judge_search(store, wanted)
    return says


def _judge_documents(store: Store, model: Model) -> list[str]:
    """Is every batch's document of the same version as its records, which came with it?"""
    versions = {r.metadata["batch"]: r.metadata["version"] for r in model.values()}
    wanted = {r.id: r for r in (document(*each) for each in versions.items())}
    return differences({r.id: r for r in store.documents(wanted)}, wanted)


def _judge_search(store: Store, model: Model) -> list[str]:
    """Do the indexes agree with the records?"""
    says = []
    everything = max(1, len(model))
    if store.count() != len(model):
        says.append(f"count() is {store.count()}, not {len(model)}")
    if not model:
        return says
    hits = store.search(Query(text=EVERYWHERE, top_k=everything))
    if {hit.id for hit in hits} != set(model):
        says.append(f"a word of every text finds {len(hits)} of {len(model)}")
    batches = sorted({r.metadata["batch"] for r in model.values()})
    for batch in batches[:: max(1, len(batches) // 3)]:
        wanted = {key for key, r in model.items() if r.metadata["batch"] == batch}
        hits = store.search(Query(text=word("x", batch), top_k=everything))
        if {hit.id for hit in hits} != wanted:
            says.append(f"batch {batch}'s word finds {sorted(h.id for h in hits)}, not {wanted}")
        if store.count({"batch": batch}) != len(wanted):
            says.append(f"count(batch {batch}) is not {len(wanted)}")
    vectors = {key: np.asarray(r.vector) for key, r in model.items() if r.vector is not None}
    if vectors:
        query = np.linspace(-1, 1, DIM, dtype=np.float32)
        hits = store.search(Query(vector=query, top_k=everything))
        scores = {hit.id: hit.score for hit in hits}
        if set(scores) != set(vectors):
            says.append(f"a vector finds {len(scores)} of {len(vectors)}")
        elif any(abs(scores[key] - float(v @ query)) > 1e-2 for key, v in vectors.items()):
            says.append("a vector's score is not that of the stored vector")
    return says


def _judge_backups(
    folder: Path, ops: Sequence[Op], done: Sequence[int], expected: Sequence[Model]
) -> list[str]:
    """An acknowledged backup is whole; another one is whole or refused."""
    says = []
    for op, wanted in zip(ops, expected, strict=False):
        target = backup_folder(folder, op)
        acknowledged = op.place in done
        if op.kind != "backup" or not (target.exists() or acknowledged):
            continue
        try:
            with open_store(target, create=False, read_only=True) as store:
                wrong = differences(contents(store), wanted)
        except (StoreError, LookupError) as error:
            wrong = [f"{type(error).__name__}: {error}"] if acknowledged else []
        if wrong:
            state = "acknowledged" if acknowledged else "unfinished"
            says.append(f"the {state} {target.name}: {'; '.join(_some(wrong))}")
    return says


def _same_vector(one: Record, other: Record) -> bool:
    if one.vector is None or other.vector is None:
        return one.vector is other.vector
    return bool(np.array_equal(np.asarray(one.vector), np.asarray(other.vector)))


def _some(says: Sequence[str]) -> list[str]:
    more = [f"and {len(says) - 4} more"] if len(says) > 4 else []
    return [*says[:4], *more]
