"""Where does a text change its subject?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.analysis.sentences import sentence_spans
from cormorant.errors import ConfigError
from cormorant.ingest.chunkers.base import Chunker, Span, check_sizes
from cormorant.ingest.chunkers.recursive import cut
from cormorant.langchain.embeddings.naming import identity
from cormorant.langchain.embeddings.vectors import as_matrix
from cormorant.ranges import check_number, check_whole

__all__ = ["SemanticChunker"]

Breakpoints = Literal["percentile", "standard_deviation", "interquartile", "gradient"]

_AMOUNTS: Final = {
    "percentile": 95.0,
    "standard_deviation": 3.0,
    "interquartile": 1.5,
    "gradient": 95.0,
}


class SemanticChunker(Chunker):
    """Cuts where neighbouring sentences are least alike. Each sentence is embedded once.

    Args:
        embeddings: Of sentences.
        breakpoints: What counts as a great distance: above so many percent of them; the mean plus
            so many deviations; plus so many interquartile ranges; or the same percent of how fast
            it grows.
        amount: Of the above; None takes 95, 3, 1.5 and 95.
        buffer: A sentence is compared together with so many before and after it.
        size: A chunk is cut further where it is longer, in characters.
        overlap: Of those cuts alone.

    Raises:
        ConfigError: On a value out of its range.

    Source:
        The distances of sentence windows and their percentiles: Kamradt, 5 Levels of Text
        Splitting, 2023, as in langchain-experimental's SemanticChunker, whose names these are.
        Deviation: a window's vector is the mean of its sentences', so that each is embedded once.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        breakpoints: Breakpoints = "percentile",
        amount: float | None = None,
        buffer: int = 1,
        size: int = 4 * defaults.CHUNK_SIZE,
        overlap: int = defaults.CHUNK_OVERLAP,
    ) -> None:
        if breakpoints not in _AMOUNTS:
            raise ConfigError(f"breakpoints is one of {', '.join(_AMOUNTS)}; got {breakpoints!r}.")
        check_sizes(size, overlap)
        check_whole("buffer", buffer, 0, error=ConfigError)
        self.embeddings, self.breakpoints = embeddings, breakpoints
        self.amount = _AMOUNTS[breakpoints] if amount is None else amount
        most = 100.0 if breakpoints in {"percentile", "gradient"} else 1e6
        check_number("amount", self.amount, 0.0, most, error=ConfigError)
        self.buffer, self.size, self.overlap = buffer, size, overlap

    def spans(self, text: str, metadata: dict[str, Any]) -> Iterator[tuple[Span, dict[str, Any]]]:
        """Where the chunks lie."""
        del metadata
        sentences = sentence_spans(text)
        if not sentences:
            return
        starts = [0, *self._turns(text, sentences), len(sentences)]
        for first, after in pairwise(starts):
            start, end = sentences[first][0], sentences[after - 1][1]
            for span in cut(text, start, end, self.size, self.overlap):
                yield span, {}

    def _turns(self, text: str, sentences: list[Span]) -> list[int]:
        """Sentences that something new begins with."""
        if len(sentences) < 3:
            return []
        texts = [text[start:end] for start, end in sentences]
        different = list(dict.fromkeys(texts))
        made = self.embeddings.embed_documents(different)
        rows = as_matrix(made, len(different), model=identity(self.embeddings)).astype(np.float64)
        place = {each: i for i, each in enumerate(different)}
        apart = _distances(rows[[place[each] for each in texts]], self.buffer)
        values = np.gradient(apart) if self.breakpoints == "gradient" else apart
        return (np.flatnonzero(values > self._limit(values)) + 1).tolist()

    def _limit(self, values: NDArray[np.float64]) -> float:
        if self.breakpoints == "standard_deviation":
            return float(values.mean() + self.amount * values.std())
        if self.breakpoints == "interquartile":
            low, high = np.percentile(values, (25, 75))
            return float(values.mean() + self.amount * (high - low))
        return float(np.percentile(values, self.amount))

    def settings(self) -> dict[str, Any]:
        """The arguments, the embedder by its name."""
        names = ("breakpoints", "amount", "buffer", "size", "overlap")
        return {"embeddings": identity(self.embeddings)} | {n: getattr(self, n) for n in names}


def _distances(rows: NDArray[np.float64], buffer: int) -> NDArray[np.float64]:
    """1 - cosine of each window of sentences and the next one."""
    total = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])
    places = np.arange(len(rows))
    low, high = np.maximum(places - buffer, 0), np.minimum(places + buffer + 1, len(rows))
    windows = total[high] - total[low]
    lengths = np.linalg.norm(windows, axis=1, keepdims=True)
    windows = np.divide(windows, lengths, out=np.zeros_like(windows), where=lengths > 0)
    made: NDArray[np.float64] = 1.0 - np.einsum("ij,ij->i", windows[:-1], windows[1:])
    return made
