"""What does the package keep inside a store for itself, and apart for each scope?

Documents under ids of their own, so that backups, dumps and compaction take them along. Ids are
unique in a store, whatever the scope: so each scope's are told apart by what it stamps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cormorant.errors import ScopeError

if TYPE_CHECKING:
    from cormorant.store.door import Door

__all__ = ["OWN_DOCUMENTS", "stamps_of"]

OWN_DOCUMENTS: Final = "$cormorant/"
"""Begins the ids of documents that this package keeps for itself: no listing of the user's own
shows them, so that clearing a document store by its listing leaves them."""


def stamps_of(store: Door, says: str, *, id: str = OWN_DOCUMENTS) -> str:
    """What a scope stamps on all that is written through it, as text to tell scopes apart by.

    Args:
        store: A store, or a scoped view of one.
        says: For the error: where such a thing can be kept.
        id: For the error: of what is kept.

    Raises:
        ScopeError: In a scope whose predicates are not all equalities.
    """
    try:
        stamps = store.stamped({}, id=id)
    except ScopeError as error:
        raise ScopeError(
            f"{says} whose predicates are all equalities, such as store.scope(tenant='acme'). "
            f"{error}"
        ) from error
    return json.dumps(stamps, sort_keys=True, ensure_ascii=False, default=str)
