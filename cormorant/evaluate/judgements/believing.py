"""May a model's judgements be used? Only once they were measured against people's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.judgements.agreement import Agreement, Weights, qrels_agreement
from cormorant.evaluate.judgements.kept import StoreJudgements
from cormorant.evaluate.judgements.ledger import JudgementFile, Origin
from cormorant.evaluate.qrels import Qrels
from cormorant.store.door import Door

__all__ = ["Believed", "ModelJudgements", "NotBelieved"]


class NotBelieved(UsageError):
    """A model's agreement with people was not measured, on too little, or is too low.

    Attributes:
        agreement: What was measured; None if nothing could be.
    """

    def __init__(self, message: str, agreement: Agreement | None = None) -> None:
        super().__init__(message)
        self.agreement = agreement


@dataclass(frozen=True, slots=True)
class ModelJudgements:
    """What a model said of pairs of query and document. No qrels: see :meth:`believed`.

    Attributes:
        grades: Query id to document ids and grades, of the pairs that got one.
        unjudged: Query id to document ids and why they got none.
        model: Who judged.
        prompt: A hash of what it was told to do.
        tokens: That it read and wrote.
        usd: Their price; 0 where no price is known.
    """

    grades: Qrels
    unjudged: Mapping[str, Mapping[str, str]]
    model: str
    prompt: str
    tokens: int = 0
    usd: float = 0.0

    def agreement(
        self,
        human: Mapping[str, Mapping[str, float]],
        *,
        weights: Weights | None = "linear",
        **options: Any,
    ) -> Agreement:
        """Its agreement with people, over the pairs that both judged.

        Args:
            human: People's judgements.
            weights: See :func:`~cormorant.evaluate.judgements.cohen_kappa`.
            **options: ``confidence``, ``resamples``, ``seed``.

        Raises:
            UsageError: If there is no such pair.
        """
        return qrels_agreement(self.grades, human, weights=weights, **options)

    def believed(
        self,
        human: Mapping[str, Mapping[str, float]],
        *,
        threshold: float = defaults.KAPPA,
        least: int = defaults.KAPPA_LABELS,
        weights: Weights | None = "linear",
    ) -> Believed:
        """The judgements as ones that may be used, if they agree with people's.

        Args:
            human: People's judgements, and nobody else's: ``JudgementFile.human``,
                ``kept_human(store)``.
            threshold: The lowest kappa; what is written says both.
            least: How many pairs both must have judged, at least 2.
            weights: Of kappa.

        Raises:
            NotBelieved: If it was measured on fewer pairs, cannot be told, or is lower.
            UsageError: On a threshold or a count out of range.
        """
        if isinstance(least, bool) or not isinstance(least, int) or least < 2:
            raise UsageError(f"least must be a whole number of at least 2; got {least!r}.")
        number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
        if not number or not -1 <= threshold <= 1:
            raise UsageError(f"threshold must be a kappa, from -1 to 1; got {threshold!r}.")
        shared = sum(
            doc in self.grades.get(query, {}) for query, docs in human.items() for doc in docs
        )
        if shared < least:
            raise NotBelieved(
                f"{self.model} and people judged {shared} pairs in common; {least} are needed to "
                "say whether it can be believed. Judge more by hand: cormorant judge KB"
            )
        measured = self.agreement(human, weights=weights)
        if not measured.kappa >= threshold:
            why = "is not defined, all grades being the same" if math.isnan(measured.kappa) else ""
            raise NotBelieved(
                f"{self.model} is not believed: {measured}; its kappa "
                f"{why or f'must be at least {threshold:g}'}. Change the prompt or the model, or "
                "judge by hand. A lower threshold can be given, and is written down with the "
                "judgements.",
                measured,
            )
        origin = Origin(
            self.model, self.prompt, measured.kappa, weights, measured.pairs, float(threshold)
        )
        new = {
            query: {doc: g for doc, g in grades.items() if doc not in human.get(query, {})}
            for query, grades in self.grades.items()
        }
        return Believed({query: each for query, each in new.items() if each}, origin, measured)


@dataclass(frozen=True, slots=True)
class Believed:
    """A model's judgements whose agreement with people was measured and is high enough.

    Attributes:
        qrels: Of the pairs that people have not judged.
        origin: Written down with each.
        agreement: What was measured.
    """

    qrels: Qrels
    origin: Origin
    agreement: Agreement = field(repr=False)

    def merged(self, human: Mapping[str, Mapping[str, float]]) -> Qrels:
        """These and people's; where both judged, people's."""
        queries = dict.fromkeys([*human, *self.qrels])
        return {query: {**self.qrels.get(query, {}), **human.get(query, {})} for query in queries}

    def write(self, path: str | Path) -> int:
        """Add them to a ``.jsonl`` file; what is judged there already stays.

        Returns:
            How many were added.

        Raises:
            EvalFileError: If the file cannot be written.
        """
        with JudgementFile(path) as file:
            return file.put_all(self.qrels, self.origin)

    def keep(self, store: Door, queries: Mapping[str, str]) -> int:
        """Add them to the golden set kept inside a store; what is judged there already stays.

        Args:
            store: Open for writing.
            queries: Query id to text.

        Returns:
            How many were added.

        Raises:
            UsageError: If a judged query has no text, or another in the store.
        """
        return StoreJudgements(store, queries).put_all(self.qrels, self.origin)
