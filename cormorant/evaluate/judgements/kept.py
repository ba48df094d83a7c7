"""How do judgements come into the golden set that a store keeps, and what is known of them?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from cormorant.errors import CorruptionError, NotFound, UsageError
from cormorant.evaluate.golden import Golden
from cormorant.evaluate.judgements.ledger import Origin, Origins, without
from cormorant.evaluate.keeping import golden_id, golden_of, golden_text, kept_golden
from cormorant.evaluate.qrels import Qrels
from cormorant.model import Record
from cormorant.store.door import Door

__all__ = ["StoreJudgements", "kept_human", "kept_origins"]

_VERSION: Final = 1


class StoreJudgements:
    """Judgements that go into the golden set kept inside a store; each in a transaction.

    Args:
        store: Open for writing; a store, or a scoped view whose predicates are equalities.
        queries: Query id to text: those that will be judged.

    Raises:
        UsageError: If the store keeps a query of the same id and another text, or judgements
            that name a metadata field and not records.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> ledger = StoreJudgements(store, {"1": "who dives?"})
        >>> ledger.put("1", "a", 1)
        >>> kept_human(store)
        {'1': {'a': 1}}
    """

    def __init__(self, store: Door, queries: Mapping[str, str]) -> None:
        self._store = store
        self._queries = dict(queries)
        other = next((q for q, text in self._kept()[0].items() if queries.get(q, text) != text), "")
        if other:
            raise UsageError(
                f"The store keeps judgements for a query {other!r} with another text. Give the "
                "query another id, or judge into a file."
            )

    @property
    def qrels(self) -> Qrels:
        """All that is judged, by people and by models."""
        return self._kept()[1]

    def put(self, query: str, doc: str, grade: float) -> None:
        """Keep a person's judgement; on return it survives a crash."""

        def judge(queries: dict[str, str], qrels: Qrels, origins: Origins) -> None:
            queries |= self._queries
            qrels.setdefault(query, {})[doc] = grade
            origins.get(query, {}).pop(doc, None)

        self._revise(judge)

    def put_all(self, qrels: Mapping[str, Mapping[str, float]], origin: Origin) -> int:
        """Keep a model's judgements; pairs that are judged already stay.

        Returns:
            How many were kept.
        """
        count = 0

        def judge(queries: dict[str, str], before: Qrels, origins: Origins) -> None:
            nonlocal count
            count = 0
            for query, grades in qrels.items():
                for doc, grade in grades.items():
                    if doc not in before.get(query, {}):
                        before.setdefault(query, {})[doc] = grade
                        origins.setdefault(query, {})[doc] = origin
                        count += 1
            if count:
                queries |= self._queries

        self._revise(judge)
        return count

    def take_back(self, query: str, doc: str) -> None:
        """Drop a judgement."""

        def drop(queries: dict[str, str], qrels: Qrels, origins: Origins) -> None:  # noqa: ARG001 - as the others
            qrels.get(query, {}).pop(doc, None)
            if not qrels.get(query):
                qrels.pop(query, None)
            origins.get(query, {}).pop(doc, None)

        self._revise(drop)

    def _revise(self, change: Callable[[dict[str, str], Qrels, Origins], None]) -> None:
        """Change what is kept as it is now: several judges at once lose nothing of each other's."""
        golden, by = golden_id(self._store), _origins_id(self._store)

        def revised(found: list[Record]) -> list[Record]:
            texts = {each.id: each.text for each in found}
            queries, qrels = _parts(golden_of(texts[golden])) if golden in texts else ({}, {})
            origins = _origins(texts[by], qrels) if by in texts else {}
            change(queries, qrels, origins)
            kept = []
            if qrels:
                kept.append(Record(golden, golden_text(Golden(queries, qrels))))
            if qrels and any(origins.values()):
                kept.append(Record(by, _written(origins, qrels)))
            return kept

        self._store.revise_documents([golden, by], revised)

    def _kept(self) -> tuple[dict[str, str], Qrels]:
        try:
            golden = kept_golden(self._store)
        except NotFound:
            return {}, {}
        return _parts(golden)


def _parts(golden: Golden) -> tuple[dict[str, str], Qrels]:
    """Queries and judgements of records, copies that may be changed."""
    if golden.by is not None:  # mixed, they would count against either way of judging
        raise UsageError(
            f"The judgements kept in the store name the records' {golden.by}, and these name "
            "records. Judge into a file: --qrels FILE, or JudgementFile."
        )
    return dict(golden.queries), {query: dict(each) for query, each in golden.qrels.items()}


def kept_human(store: Door) -> Qrels:
    """What people judged of the golden set kept inside a store.

    Raises:
        NotFound: If none is kept.
    """
    return without(kept_golden(store).qrels, kept_origins(store))


def kept_origins(store: Door) -> Origins:
    """Which judgements of the golden set kept inside a store come from models, and from which.

    A judgement that has another grade by now is no longer that model's.

    Raises:
        CorruptionError: If what is kept of them cannot be read.
    """
    found = store.documents([_origins_id(store)])
    if not found:
        return {}
    try:
        qrels = kept_golden(store).qrels
    except NotFound:
        return {}
    return _origins(found[0].text, qrels)


def _origins(text: str, qrels: Qrels) -> Origins:
    try:
        written = json.loads(text)
        if written["version"] != _VERSION:
            raise UsageError(f"it has version {written['version']!r}; supported is {_VERSION}")
        known = [Origin.from_json(each) for each in written["origins"]]
        out: Origins = {}
        for query, doc, grade, number in written["judged"]:
            if qrels.get(query, {}).get(doc) == grade:
                out.setdefault(query, {})[doc] = known[number]
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise CorruptionError(
            f"Which models judged cannot be read from the store: {error!r}. Keep the golden set "
            "again."
        ) from error
    return out


def _written(origins: Origins, qrels: Qrels) -> str:
    known = list(dict.fromkeys(each for by in origins.values() for each in by.values()))
    written: dict[str, Any] = {
        "version": _VERSION,
        "origins": [each.to_json() for each in known],
        "judged": [
            [query, doc, qrels[query][doc], known.index(origin)]
            for query, by in origins.items()
            for doc, origin in by.items()
        ],
    }
    return json.dumps(written, ensure_ascii=False)


def _origins_id(store: Door) -> str:
    return golden_id(store, "judged-by")
