"""Which models read a question and a passage together, and score the pair?"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal

from langchain_core.cross_encoders import BaseCrossEncoder
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import MissingDependency, RerankError, UsageError
from cormorant.ranges import check_whole

__all__ = ["DEFAULT_MODEL", "BaseCrossEncoder", "HuggingFaceCrossEncoder", "Scale", "as_relevance"]

DEFAULT_MODEL: Final = "cross-encoder/ms-marco-MiniLM-L-6-v2"

Scale = Literal["logit", "probability"]
"""What a cross-encoder's scores are. One that says neither has no relevances, only an order."""


class HuggingFaceCrossEncoder(BaseCrossEncoder):
    """A sentence-transformers CrossEncoder, loaded when it first scores.

    Needs ``pip install 'cormorant[rerank]'``. The name is langchain-community's.

    Args:
        model_name: A name on the Hugging Face hub, or a folder.
        model_kwargs: For ``sentence_transformers.CrossEncoder``: ``device``, ``max_length``,
            ``revision``, ``local_files_only``, …
        batch_size: Pairs the model sees at once.

    Raises:
        MissingDependency: If sentence-transformers is not installed.

    Source:
        Nogueira and Cho, Passage Re-ranking with BERT, 2019, arXiv:1901.04085.
    """

    def __init__(
        self,
        model_name: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        model_kwargs: Mapping[str, Any] | None = None,
        batch_size: int = defaults.CROSS_ENCODER_BATCH,
    ) -> None:
        if find_spec("sentence_transformers") is None:
            raise MissingDependency(f"The cross-encoder {model_name!r}", extra="rerank")
        if not isinstance(model_name, (str, os.PathLike)) or not model_name:
            raise UsageError(
                "model_name must be a name on the Hugging Face hub, or a folder; got "
                f"{model_name!r}."
            )
        if model_kwargs is not None and not isinstance(model_kwargs, Mapping):
            raise UsageError(
                f"model_kwargs must be a dict, such as {{'device': 'cpu'}}; got {model_kwargs!r}."
            )
        check_whole("batch_size", batch_size)
        self.model_name = os.fspath(model_name)
        self.model_kwargs = dict(model_kwargs or {})
        self.batch_size = batch_size
        self._loaded: Any = None
        self._lock = threading.Lock()

    @property
    def scale(self) -> Scale | None:
        """What the scores are, as the model's own configuration has it."""
        activation = type(self._model().activation_fn).__name__
        scales: dict[str, Scale] = {"Identity": "logit", "Sigmoid": "probability"}
        return scales.get(activation)

    @override
    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Score pairs of texts, higher is better.

        Raises:
            RerankError: If the model classifies into more than two classes.
        """
        pairs = [list(pair) for pair in text_pairs]
        if not pairs:
            return []
        scores = self._model().predict(
            pairs, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        if scores.ndim == 2 and scores.shape[1] == 2:  # classes: irrelevant, relevant
            scores = scores[:, 1]
        if scores.ndim != 1:
            raise RerankError(
                f"{self.model_name!r} gives {scores.shape[1]} numbers per pair; a cross-encoder "
                "that reranks gives one. Is it one for natural language inference?"
            )
        return [float(score) for score in scores]

    def _model(self) -> Any:
        with self._lock:
            if self._loaded is None:
                library: Any = import_module("sentence_transformers")  # seconds; only when needed
                self._loaded = library.CrossEncoder(self.model_name, **self.model_kwargs)
            return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        # Pickled by name: weights are loaded again, locks are not shared.
        return {**self.__dict__, "_loaded": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"


def as_relevance(score: float, scale: str | None) -> float | None:
    """A cross-encoder's score in [0, 1]: the logistic of a logit, a probability as it is."""
    if scale == "probability":
        return min(max(score, 0.0), 1.0)
    if scale == "logit":
        return 0.5 * (1.0 + math.tanh(0.5 * score))  # 1 / (1 + e^-score) without overflow
    return None
