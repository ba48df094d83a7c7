"""What is in this store?"""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from cormorant.cli.asking import open_existing
from cormorant.cli.verb import Verb, add_json, add_store
from cormorant.width import clip, plain, table

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.store import RankingConfig, Stats

__all__ = ["VERB", "size_text", "trust_fields", "weights_text"]

_KIB = 1024


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:  # noqa: ARG001 - every verb's
    with open_existing(args.store) as store:
        stats = store.stats()
        calibration = store.calibration
        ranking = store.ranking
    if args.json:
        evidence = None if calibration is None else dict(calibration.evidence)
        told = None if ranking is None else ranking.to_json()
        console.json({**_fields(args.store, stats), "calibration": evidence, "ranking": told})
        return 0
    rows = [*_rows(args.store, stats), ("weights", weights_text(stats, ranking))]
    if calibration is not None:
        modes = ", ".join(calibration.curves)
        rows.append(("relevance", f"a probability, calibrated for {modes}"))
    for line in table(rows):
        console.print(line)
    if stats.fields:
        console.print("\nmetadata")
        for line in table(_field_rows(stats), right=(2, 3)):
            console.print(clip(f"  {line}", console.width))
    if stats.dead:
        console.note(f"{stats.dead} dead records take space; cormorant compact {args.store}")
    return 0


def weights_text(stats: Stats, ranking: RankingConfig | None) -> str:
    """How the legs of a hybrid search are weighed that does not say."""
    if ranking is not None and ranking.weights is not None:
        return ", ".join(f"{leg} {w:g}" for leg, w in ranking.weights.items()) + ", as set"
    trust = stats.trust
    if trust is None:
        return "alike; nothing was learned yet"
    if stats.trust_doubt is not None:
        return f"alike; what was learned is not used: {stats.trust_doubt}"
    known = trust.heard is None or trust.heard == 1.0
    deaf = "" if known else ", for its embedder understands few questions"
    return (
        f"learned from {trust.records:,} records: vector {trust.share:.2f}, text "
        f"{1.0 - trust.share:.2f} before a question is looked at{deaf}"
    )


def _fields(path: str, stats: Stats) -> dict[str, Any]:
    return {
        "store": path,
        "records": stats.records,
        "with_vector": stats.with_vector,
        "dead": stats.dead,
        "dim": stats.dim,
        "metric": stats.metric,
        "analyzer": dict(stats.analyzer),
        "embedder": stats.embedder,
        "require_scope": list(stats.require_scope),
        "generation": stats.generation,
        "lsn": stats.lsn,
        "unfolded": stats.unfolded,
        "size_bytes": stats.size_bytes,
        "trust": trust_fields(stats),
        "metadata": {name: dataclasses.asdict(info) for name, info in sorted(stats.fields.items())},
    }


def trust_fields(stats: Stats) -> dict[str, Any] | None:
    """What was learned of the legs, as JSON values; None if nothing was."""
    if stats.trust is None:
        return None
    told = {name: getattr(stats.trust, name) for name in ("share", "vector", "text", "records")}
    told |= {name: getattr(stats.trust, name) for name in ("foreign", "heard", "probes")}
    return {**told, "doubt": stats.trust_doubt}


def _rows(path: str, stats: Stats) -> list[tuple[str, str]]:
    vectors = f"{stats.with_vector:,}"
    if stats.dim is not None:
        vectors += f" of {stats.dim} numbers, {stats.metric}"
    rows = [
        ("store", path),
        ("records", f"{stats.records:,}"),
        ("vectors", vectors),
        ("embedder", stats.embedder or "none remembered"),
        ("language", str(stats.analyzer.get("language", ""))),
        ("dead", f"{stats.dead:,}"),
        ("size", size_text(stats.size_bytes)),
        ("changes", f"{stats.lsn:,}, {stats.unfolded:,} not folded"),
    ]
    if stats.require_scope:
        rows.append(("scope", f"required on {', '.join(stats.require_scope)}"))
    return rows


def _field_rows(stats: Stats) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("field", "kinds", "in", "distinct", "such as")]
    for name, info in sorted(stats.fields.items()):
        distinct = "" if info.distinct is None else f"{info.distinct:,}"
        sample = ", ".join(map(str, info.values)) or f"{info.low} … {info.high}"
        rows.append(
            (plain(name), ", ".join(info.kinds), f"{info.present:,}", distinct, plain(sample))
        )
    return rows


def size_text(size: int) -> str:
    """Bytes for a screen: ``1.4 MiB``."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < _KIB:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= _KIB
    return f"{amount:,.1f} GiB"


VERB = Verb(
    name="info",
    says="say what is in a store",
    tells="Prints how many records there are, how they are searched, and what their metadata hold.",
    arguments=_arguments,
    run=_run,
    fields={
        "store": "the store's folder",
        "records": "that can be found",
        "with_vector": "records that have a vector",
        "dead": "deleted or replaced, whose space compact gives back",
        "dim": "numbers per vector; null if there are none",
        "metric": "cosine, dot or euclidean",
        "analyzer": "how text becomes terms",
        "embedder": "its specification; null if none is remembered",
        "require_scope": "fields every call must be scoped by",
        "generation": "of the vector file",
        "lsn": "how many changes were ever made",
        "unfolded": "changes a reader replays when it opens",
        "size_bytes": "of all files",
        "calibration": "what made relevances probabilities, and how good they are; null if "
        "nothing did",
        "ranking": "how hybrid searches are ranked that do not say, and why; null if nobody set it",
        "trust": "what was learned of the legs: the vector leg's share, how well vectors and texts "
        "find, from how many records; part of the records in another script than most; whether the "
        "embedder understands questions (1 yes, 0 no, null: not asked), by how many; and why it is "
        "not used; null if nothing was learned",
        "metadata": "by field: the kinds of its values, in how many records, how many distinct "
        "texts, the most frequent ones, the lowest and highest number or date",
    },
)
