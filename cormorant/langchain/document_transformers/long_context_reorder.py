"""Where in a long prompt do the best documents go?"""

from __future__ import annotations

from langchain_core.documents import Document
from typing_extensions import override

from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.document_transformers.transformer import Transformer
from cormorant.langchain.provenance import journeyed
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.model import Step

__all__ = ["LongContextReorder"]


class LongContextReorder(Transformer):
    """Puts the best documents first and last, and the worst in the middle.

    Models overlook the middle of long contexts. All documents stay; the order is no longer that
    of rank, so let nothing that cuts or reranks come after it.

    Args:
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Source:
        Liu et al., Lost in the Middle, TACL 2024, doi:10.1162/tacl_a_00638; the arrangement is
        langchain-community's: the worst document in the middle, each better one outside of it.

    Example:
        >>> documents = [Document(text) for text in ("1st", "2nd", "3rd", "4th", "5th")]
        >>> reordered = LongContextReorder().transform_documents(documents)
        >>> [document.page_content for document in reordered]
        ['1st', '3rd', '5th', '4th', '2nd']
    """

    @property
    @override
    def arranges(self) -> bool:
        return True

    @override
    def _compress(self, call: Call) -> list[Document]:
        ranks = range(1, len(call.answer) + 1)
        # Every second one from the front, then the others back to front. The last place is
        # that of the best if the number is even, of the second best if it is odd.
        front, back = (ranks[0::2], ranks[1::2]) if len(ranks) % 2 else (ranks[1::2], ranks[0::2])
        order = [*front, *reversed(back)]
        return [
            journeyed(call.answer[rank - 1], _step(rank, place, len(order)))
            for place, rank in enumerate(order, start=1)
        ]

    @override
    async def _acompress(self, call: Call) -> list[Document]:
        return await aside(call.answer, self._compress, call)


def _step(rank: int, place: int, count: int) -> Step:
    says = f"LongContextReorder: rank {rank} goes to place {place} of {count}."
    return Step("reorder", kept=True, says=says, detail={"before": rank, "after": place})
