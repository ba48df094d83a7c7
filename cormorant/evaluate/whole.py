"""Is this a whole store, which can be set to something, or a view of one?"""

from __future__ import annotations

from typing import Any

from cormorant.errors import ScopeError
from cormorant.store import ScopedStore

__all__ = ["need_whole"]


def need_whole(store: Any, what: str) -> None:
    """Refuse a scoped view where a setting of the whole store is meant.

    Args:
        store: What was given.
        what: What would be set, in words.

    Raises:
        ScopeError: Naming the way to do it.
    """
    if isinstance(store, ScopedStore):
        raise ScopeError(
            f"{what} is a setting of the whole store, which a scoped view cannot change; got "
            f"{store!r}. Whoever holds the store can: give apply() the store."
        )
