"""How are texts analysed by a function of the user's own?"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from typing_extensions import override

from cormorant.analysis import Analyzer
from cormorant.errors import UsageError

__all__ = ["Preprocessed"]


class Preprocessed(Analyzer):
    """An analyzer whose terms are what a function makes of a text.

    Args:
        function: Text to words, as ``preprocess_func`` of langchain-community's retriever.
    """

    def __init__(self, function: Callable[[str], list[str]]) -> None:
        super().__init__("none")
        self._function = function

    @override
    def terms(self, text: str) -> list[str]:
        words = self._function(text)
        if isinstance(words, (str, bytes)) or not isinstance(words, Iterable):
            # The letters of a string would pass for words.
            raise UsageError(
                f"preprocess_func must return a list of strings; it returned {words!r:.80}."
            )
        words = list(words)
        for word in words:
            if not isinstance(word, str):
                raise UsageError(
                    "preprocess_func must return a list of strings; one is a "
                    f"{type(word).__name__}, {word!r}."
                )
        return [word for word in words if word]

    @override
    def query_terms(self, text: str) -> list[str]:
        return self.terms(text)
