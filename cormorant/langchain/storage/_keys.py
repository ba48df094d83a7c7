"""Are these keys in a list, or is it one key?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from cormorant.errors import RecordError

__all__ = ["listed_keys"]

K = TypeVar("K")


def listed_keys(keys: Iterable[K]) -> list[K]:
    """The keys as a list; a key alone would be read as a list of letters.

    Raises:
        RecordError: If it is one string.
    """
    if isinstance(keys, (str, bytes)):
        raise RecordError(f"keys takes a list of keys; got {keys!r:.80} alone. Put it in a list.")
    return list(keys)
