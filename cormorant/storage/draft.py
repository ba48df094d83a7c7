"""How does a checkpoint come about while everybody goes on writing?

Its file is written and synced without the store's lock, held by a lock of its own so that no
writer takes it for a dead one's; under the store's lock the head is only made to name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from cormorant.storage import files
from cormorant.storage.types import Arrays, Head

if TYPE_CHECKING:
    from typing import Self

    from cormorant.storage.ground import Ground
    from cormorant.storage.vault import Sheet

__all__ = ["Draft"]


class Draft:
    """A checkpoint that nothing names yet; made by ``Storage.draft``.

    A context manager: unless a writer tried to name it, leaving the block removes it.

    Attributes:
        origin: The head of the snapshot its arrays were taken from.
    """

    def __init__(self, ground: Ground, origin: Head, arrays: Mapping[str, Arrays]) -> None:
        self.origin = origin
        self._ground = ground
        with files.translated(ground.where, "write a checkpoint of", absence=True):
            self._sheet: Sheet = ground.vault.write_sheet(origin, arrays)

    @property
    def name(self) -> str:
        """What the head will call it."""
        return self._sheet.name

    def keep(self) -> None:
        """The head may name it now: it stays, even if this is closed."""
        self._sheet.keep()

    def close(self) -> None:
        """Let go of it; unless the head may name it, remove it. Idempotent."""
        if not self._ground.is_forked:
            self._sheet.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
