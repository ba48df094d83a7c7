"""How are texts analysed by a function of the user's own?"""

from __future__ import annotations

from collections.abc import Callable

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
        words = list(self._function(text))
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
