"""How good is each configuration at each query?"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cormorant.evaluate.metrics.places import Places
from cormorant.evaluate.names import NamedMetric
from cormorant.evaluate.tuning.journal import Journal
from cormorant.evaluate.tuning.point import Point
from cormorant.evaluate.tuning.ranking import Answers, Ledger, Rerank, ask
from cormorant.evaluate.tuning.variants import Chunking, Searched, Variant, variant
from cormorant.model import Query

__all__ = ["Bench", "Progress", "Settings"]

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many (query, index) pairs are done, and of how many."""

_CHUNK: Final = 64
"""Queries whose candidates are held at once, and that a journal's line is about."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What every configuration is measured with.

    Attributes:
        store: Searched.
        queries: By id.
        qrels: Judgements of those queries, and of no others.
        metric: What is measured.
        depth: Hits it reads.
        rerank: See :data:`~cormorant.evaluate.tuning.ranking.Rerank`.
        chunking: For spaces that vary ``chunk_size``.
        by: The metadata field that is judged; None for the record's id.
    """

    store: Searched
    queries: Mapping[str, Query]
    qrels: Mapping[str, Mapping[str, float]]
    metric: NamedMetric
    depth: int
    rerank: Rerank | None
    chunking: Chunking | None
    by: str | None = None

    def digest(self, points: Sequence[Point | None], *further: object) -> str:
        """SHA-256 over all that the values depend on."""
        found = hashlib.sha256()

        def take(value: object) -> None:
            found.update(json.dumps(value, sort_keys=True, default=_named).encode() + b"\n")

        take([None if point is None else point.to_json() for point in points])
        take([self.metric.name, self.depth, *further])
        if self.by is not None:
            take(["by", self.by])
        take(self.qrels)
        for name, query in self.queries.items():
            take([name, query.text, query.resolved_mode, query.filter, query.fusion, query.rrf_k])
            take([query.fetch_k, query.mmr_lambda, dict(query.weights or {})])
            found.update(_bytes(query.vector))
        take(self.store.config.to_json())
        if getattr(self.store, "path", None) is not None:
            # A folder counts its changes; reading all of a large one would take long.
            stats = self.store.stats()
            take([str(self.store.path.resolve()), stats.generation, stats.lsn])
        else:
            for record in self.store.records(with_vectors=True):
                take([record.id, record.text, record.metadata])
                found.update(_bytes(record.vector))
        if self.rerank is not None:
            take(self.rerank)
        if self.chunking is not None:
            take([self.chunking.documents, self.chunking.chunker, self.chunking.embed])
        return found.hexdigest()


class Bench:
    """Measures configurations, index by index and a few queries at a time.

    Args:
        settings: What they are measured with.
        journal: Where what is done is kept, and found again; None to keep nothing.
        progress: Told how far the work is.

    Attributes:
        ledger: What was noticed on the way.
        ranking_s: CPU seconds spent in ranking and judging, after the legs were asked.
    """

    def __init__(
        self, settings: Settings, *, journal: Journal | None = None, progress: Progress | None
    ) -> None:
        self.settings = settings
        self.ledger = Ledger()
        self.ranking_s = 0.0
        self._journal = journal
        self._progress = progress or (lambda done, of: None)  # noqa: ARG005 - nobody watches

    def values(self, points: Sequence[Point | None], names: Sequence[str]) -> NDArray[np.float64]:
        """The metric of each configuration at each query, shape (points, queries)."""
        out = np.zeros((len(points), len(names)))
        for numbers, span, part in self._pieces(points, names):
            for number, values in zip(numbers, part, strict=True):
                out[number, span] = values
        return out

    def answers(
        self, points: Sequence[Point | None], names: Sequence[str]
    ) -> list[dict[str, list[str]]]:
        """Each configuration's ranked ids at each query. Kept in no journal."""
        out: list[dict[str, list[str]]] = [{} for _ in points]
        for numbers in _by_index(points):
            some = [points[number] for number in numbers]
            with self._variant(some) as searched:
                for name, found in self._ask(searched, some, names):
                    for number, ids in zip(numbers, found, strict=True):
                        out[number][name] = ids
        return out

    def _pieces(
        self, points: Sequence[Point | None], names: Sequence[str]
    ) -> Iterator[tuple[list[int], slice, NDArray[np.float64]]]:
        groups = _by_index(points)
        spans = [slice(start, start + _CHUNK) for start in range(0, len(names), _CHUNK)]
        done, of = 0, len(groups) * len(names)
        for index, numbers in enumerate(groups):
            waiting = []
            for number, span in enumerate(spans):
                kept = None
                if self._journal is not None:
                    kept = self._journal.get(f"{index}/{number}")
                if kept is None:
                    waiting.append((number, span))
                    continue
                done += kept.shape[1]
                yield numbers, span, kept
            self._progress(done, of)
            if not waiting:
                continue
            some = [points[number] for number in numbers]
            with self._variant(some) as searched:
                for number, span in waiting:
                    part = self._judged(searched, some, names[span])
                    if self._journal is not None:
                        self._journal.put(f"{index}/{number}", part)
                    done += part.shape[1]
                    self._progress(done, of)
                    yield numbers, span, part

    def _variant(self, points: Sequence[Point | None]) -> AbstractContextManager[Variant]:
        return variant(
            self.settings.store, _index(points), self.settings.chunking, self.settings.by
        )

    def _judged(
        self, searched: Variant, points: Sequence[Point | None], names: Sequence[str]
    ) -> NDArray[np.float64]:
        began, waited = time.process_time(), self.ledger.asking_s
        answers = dict(self._ask(searched, points, names))
        qrels = {name: self.settings.qrels[name] for name in names}
        part = np.stack(
            [
                self.settings.metric.of(
                    Places.of({name: found[number] for name, found in answers.items()}, qrels)
                )
                for number in range(len(points))
            ]
        )
        self.ranking_s += time.process_time() - began - (self.ledger.asking_s - waited)
        return part

    def _ask(
        self, searched: Variant, points: Sequence[Point | None], names: Sequence[str]
    ) -> Iterator[tuple[str, Answers]]:
        return ask(
            searched,
            {name: self.settings.queries[name] for name in names},
            points,
            depth=self.settings.depth,
            rerank=self.settings.rerank,
            ledger=self.ledger,
        )


def _by_index(points: Sequence[Point | None]) -> list[list[int]]:
    """Numbers of the configurations that share an index, the store's own first."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, point in enumerate(points):
        groups.setdefault((point or Point()).index, []).append(number)
    return list(groups.values())


def _index(points: Sequence[Point | None]) -> Point:
    return next((point for point in points if point is not None), Point())


def _bytes(vector: Any) -> bytes:
    return b"" if vector is None else np.asarray(vector, np.float64).tobytes()


def _named(value: object) -> str:
    """What stands for a value that has no JSON form; a callable goes by its name."""
    if callable(value):
        return f"{type(value).__qualname__} {getattr(value, '__qualname__', '')}"
    return repr(dict(value) if isinstance(value, Mapping) else value)
