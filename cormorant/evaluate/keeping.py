"""How is a golden set kept inside the store it is about?

It is one of the store's documents (never searched), written in one transaction, so that backups,
compaction and dumps take it along. Each scope has its own.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from cormorant.errors import CorruptionError, NotFound, UsageError
from cormorant.evaluate.golden import Golden
from cormorant.model import Record
from cormorant.store import OWN_DOCUMENTS, Family, stamps_of
from cormorant.store.door import Door

__all__ = ["forget_golden", "keep_golden", "kept_golden"]

_VERSION: Final = 1


def keep_golden(store: Door, golden: Golden) -> None:
    """Keep a golden set inside the store, in place of the one kept before.

    Durable on return. A scoped view keeps its own, which no other scope sees.

    Args:
        store: A store, or a scoped view of one whose predicates are equalities.
        golden: Queries and judgements.

    Raises:
        ScopeError: In a scope whose predicates are not all equalities.
        StoreLocked: If another process is writing for longer than the time-out.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> keep_golden(store, Golden({"1": "a fish?"}, {"1": {"a": 1}}))
        >>> kept_golden(store).qrels
        {'1': {'a': 1}}
    """
    store.add([], documents=[Record(golden_id(store), golden_text(golden))])


def kept_golden(store: Door) -> Golden:
    """The golden set that is kept inside the store.

    Args:
        store: A store, or the scoped view in which the set was kept: neither a wider nor a
            narrower one has it.

    Raises:
        NotFound: If there is none.
        CorruptionError: If what is there is no golden set.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> keep_golden(store, Golden({"1": "a fish?"}, {"1": {"a": 1}}))
        >>> kept_golden(store).judged
        {'1': 'a fish?'}
    """
    found = store.documents([golden_id(store)])
    if not found:
        raise NotFound(
            "No queries and judgements are kept in this store (in this scope). Keep some with "
            "keep_golden(store, golden), or: cormorant eval KB --queries FILE --qrels FILE --keep"
        )
    return golden_of(found[0].text)


def golden_text(golden: Golden) -> str:
    """A golden set as the text that is kept."""
    kept: dict[str, Any] = {"version": _VERSION, "queries": dict(golden.queries)}
    if golden.by is not None:
        kept["by"] = golden.by
    return json.dumps(kept | {"qrels": golden.qrels}, ensure_ascii=False)


def golden_of(text: str) -> Golden:
    """Read what :func:`golden_text` wrote.

    Raises:
        CorruptionError: If it is something else.
    """
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CorruptionError(
            f"The golden set kept in the store cannot be read: {error!r}. Keep it again."
        ) from error


def forget_golden(store: Door) -> None:
    """Drop the golden set that is kept inside the store; nothing happens if there is none.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:")
        >>> keep_golden(store, Golden({"1": "a fish?"}, {"1": {"a": 1}}))
        >>> forget_golden(store)
        >>> store.documents([golden_id(store)])
        []
    """
    store.delete(family=Family([golden_id(store)], None))


def golden_id(store: Door, kind: str = "golden") -> str:
    """The id of the document that keeps a golden set, one for each scope.

    Args:
        store: A store, or a scoped view.
        kind: What is kept: the set itself, or something that is said of it.

    Raises:
        ScopeError: In a scope whose predicates are not all equalities.
    """
    written = stamps_of(store, "A golden set is kept in a store, or in a scope")
    return f"{OWN_DOCUMENTS}{kind}/" + hashlib.sha256(written.encode()).hexdigest()[:16]


def _read(kept: dict[str, Any]) -> Golden:
    if kept["version"] != _VERSION:
        raise UsageError(
            f"it has version {kept['version']!r}; this release reads version {_VERSION}"
        )
    texts = {str(query): str(text) for query, text in kept["queries"].items()}
    qrels = {query: dict(grades) for query, grades in kept["qrels"].items()}
    by = kept.get("by")
    return Golden(texts, qrels, None if by is None else str(by))
