"""Which documents fit into the prompt?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from langchain_core.documents import Document
from typing_extensions import override

from cormorant.errors import QueryError
from cormorant.langchain.document_transformers.transformer import Transformer
from cormorant.langchain.provenance import Answer, journeyed
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.model import Step
from cormorant.ranges import check_whole, is_whole

__all__ = ["TokenBudgetPacker", "WhenFull", "estimate_tokens"]

WhenFull = Literal["skip", "stop", "cut"]
"""What becomes of a document that does not fit: ``skip`` it and try the next, ``stop`` there, or
``cut`` its text at the end of a sentence and stop."""

_CJK: Final = "⺀-鿿가-힯豈-﫿＀-￯\U00020000-\U0003ffff"
_PIECES: Final = re.compile(rf"[{_CJK}]|[^\W\d_{_CJK}]+|\d+|[^\w\s]|_")
_ENDS: Final = re.compile(r"[.!?…。！？]+[\"'”’）)\]]*(?:\s|$)|[。！？]|\n")


class TokenBudgetPacker(Transformer):
    """Keeps the best documents that fit into a number of tokens, in their order.

    Args:
        token_budget: Tokens all documents together may have.
        length_function: A text's tokens; a model's own count is ``llm.get_num_tokens``. By
            default an estimate, see :func:`estimate_tokens`.
        overhead: Tokens each document costs besides its text: separators, headings.
        when_full: What becomes of a document that does not fit.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    If the best document is left out or cut, the answer's ``degraded`` says so.

    Example:
        >>> documents = [Document("five words are in here"), Document("a few more"), Document("ok")]
        >>> packer = TokenBudgetPacker(token_budget=6, length_function=lambda t: len(t.split()))
        >>> [document.page_content for document in packer.transform_documents(documents)]
        ['five words are in here', 'ok']
    """

    token_budget: int
    length_function: Callable[[str], int] | None = None
    overhead: int = 0
    when_full: WhenFull = "skip"

    def __init__(self, **values: Any) -> None:
        check_k(values.get("token_budget"), "token_budget")
        overhead = values.get("overhead", 0)
        check_whole("overhead", overhead, 0)
        if values.get("when_full", "skip") not in get_args(WhenFull):
            raise QueryError(f"when_full must be skip, stop or cut; got {values['when_full']!r}.")
        super().__init__(**values)

    @override
    def _compress(self, call: Call) -> Answer:
        kept: list[Document] = []
        left, degraded = self.token_budget, []
        for rank, document in enumerate(call.answer, start=1):
            tokens = self._tokens(document.page_content) + self.overhead
            if tokens <= left:
                kept.append(journeyed(document, self._step(rank, tokens, left)))
                left -= tokens
                continue
            if rank == 1:
                done = "cut" if self.when_full == "cut" else "left out"
                degraded.append(
                    f"The best document has {tokens} tokens, the budget is "
                    f"{self.token_budget}: it was {done}."
                )
            if self.when_full == "cut":
                text = self._cut(document.page_content, left - self.overhead)
                if text:
                    tokens = self._tokens(text) + self.overhead
                    part = document.model_copy(update={"page_content": text})
                    kept.append(journeyed(part, self._step(rank, tokens, left, part=True)))
                    left -= tokens
            if self.when_full != "skip":
                break
        packed = call.answer.of(kept)
        used = self.token_budget - left
        says = f"{len(kept)} of {len(call.answer)} documents packed into {used} tokens"
        packed.plan = (*packed.plan, f"{says}, of {self.token_budget}.")
        return packed.degrading(*degraded)

    def _tokens(self, text: str) -> int:
        count = (self.length_function or estimate_tokens)(text)
        if not is_whole(count, 0):
            raise QueryError(
                f"length_function must return a whole number of tokens; got {count!r}."
            )
        return count

    def _cut(self, text: str, room: int) -> str:
        """The longest beginning that fits and ends with a sentence; else with a word."""
        ends = [match.end() for match in _ENDS.finditer(text)]
        spaces = [match.start() for match in re.finditer(r"\s+", text)]
        for places in (ends, spaces, range(1, len(text))):
            low, high = 0, len(places)  # longer beginnings have no fewer tokens
            while low < high:
                middle = (low + high) // 2
                if self._tokens(text[: places[middle]].rstrip()) <= room:
                    low = middle + 1
                else:
                    high = middle
            if low and text[: places[low - 1]].strip():
                return text[: places[low - 1]].rstrip()
        return ""

    def _step(self, rank: int, tokens: int, left: int, *, part: bool = False) -> Step:
        says = f"{self.get_name()}: rank {rank}, {tokens} tokens of the {left} that were left."
        if part:
            says += " Its text was cut."
        detail = {"before": rank, "tokens": tokens, "cut": part}
        return Step("token_budget", kept=True, says=says, value=float(tokens), detail=detail)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has for a language model, without its tokenizer.

    One for each CJK character and each mark; for a word one in four letters, or in two if they
    are not Latin; for a number one in three digits; rounded up. Where the number must hold, give
    the model's own count.
    """
    tokens = 0
    for match in _PIECES.finditer(text):
        piece = match.group()
        if piece[0].isdigit():
            tokens += -(-len(piece) // 3)
        elif piece[0].isalpha():
            tokens += -(-len(piece) // (4 if piece.isascii() else 2))
        else:
            tokens += 1
    return tokens
