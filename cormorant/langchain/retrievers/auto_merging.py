"""Chunks or their document? The document, where enough of its chunks were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import QueryError, UsageError
from cormorant.langchain.calls.pool import in_pool
from cormorant.langchain.calls.steps import Call, Steps, beside
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.parent_document_retriever import ParentDocumentRetriever
from cormorant.langchain.retrievers.parents.families import Families, Found, adopted
from cormorant.langchain.retrievers.parents.kin import children_of, plain
from cormorant.ranges import is_number

__all__ = ["AutoMergingRetriever"]


class AutoMergingRetriever(ParentDocumentRetriever):
    """Returns chunks, and a document in place of its chunks where enough of them were found.

    ``k`` counts what is returned. A document stands where its best chunk stood. Where merging
    leaves fewer than ``k``, the chunks after the candidates follow.

    Args:
        merge_ratio: A document is returned if more than this part of its chunks is among the
            candidates; from 0 to below 1. 0 returns documents always.
        fetch_k: Candidates: chunks looked at; at least ``k``. 20 by default, or 4 × ``k``.
        **values: Those of :class:`ParentDocumentRetriever`.

    Raises:
        UsageError: On an argument nobody reads, or stores that do not fit.
        QueryError: On a value outside its range.
    """

    merge_ratio: float = defaults.MERGE_RATIO
    fetch_k: int | None = None

    def __init__(self, **values: Any) -> None:
        ratio = values.get("merge_ratio", defaults.MERGE_RATIO)
        if not is_number(ratio, 0) or ratio >= 1:
            raise QueryError(f"merge_ratio must be a number from 0 to below 1; got {ratio!r}.")
        if values.get("fetch_k") is not None:
            check_k(values["fetch_k"], "fetch_k")
        super().__init__(**values)

    @override
    def _width(self, wanted: int) -> int:
        given = self.fetch_k or self._given("fetch_k")
        if given is not None and given < wanted:
            raise QueryError(
                f"fetch_k must be at least k; got fetch_k={given} and k={wanted}. Raise fetch_k, "
                "or leave it out."
            )
        return given or max(defaults.MERGE_CANDIDATES, 4 * wanted)

    @override
    def _leaves_out(self, child: BaseRetriever) -> bool:
        return False  # a family's chunks are counted in one list

    @override
    def _chosen(self, families: Families, wanted: int) -> Steps[list[Document]]:
        found = list(families)
        totals: dict[int, int] = {}
        for number, family in enumerate(found):
            totals[number] = yield from self._total(families, family)
        sized = list(zip(found, totals.values(), strict=True))
        chosen: list[Document] = yield beside(sized, lambda: self._merged(sized, wanted))
        return chosen

    def _merged(self, sized: Sequence[tuple[Found, int]], wanted: int) -> list[Document]:
        candidates = self._width(wanted)  # those after them fill up to k, and decide nothing
        chosen: list[tuple[int, Document]] = []
        for family, total in sized:
            counted = [pair for pair in family.children if pair[0] <= candidates]
            if family.parent is None:
                chosen.append((family.place, family.told()))
            elif len(counted) > self.merge_ratio * total:
                what = f"More than {self.merge_ratio:g} of the {total} chunks of {family.key!r}"
                whole = plain(str(family.key), family.parent)
                chosen.append((family.place, adopted(whole, counted, what)))
            else:
                chosen.extend(family.children)
        return [document for _, document in sorted(chosen, key=lambda pair: pair[0])]

    def _total(self, families: Families, family: Found) -> Steps[int]:
        """How many chunks the document has."""
        if family.parent is None:
            return 0
        remembered = children_of(family.parent)
        door = families.door
        if remembered is not None:
            return remembered
        if door is not None:
            mine = {families.id_key: family.key}
            counted: int = yield Call(
                lambda: door.count(mine), lambda: in_pool(door.executor, door.count, mine)
            )
            return counted
        raise UsageError(
            f"It is not known how many chunks {family.key!r} has, because this retriever did not "
            "add it. Add it with add_documents, or use a Cormorant."
        )
