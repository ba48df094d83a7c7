"""Is this run good enough to let a change through?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.answerable import able, alike, answerable, least, lesser, only_one
from cormorant.evaluate.comparing.comparison import Comparison, compare
from cormorant.evaluate.comparing.interval import Interval, bootstrap_interval
from cormorant.evaluate.comparing.pairing import cut_differently, paired
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.groups import Groups, grouping
from cormorant.evaluate.names import parse_metric

__all__ = ["Gate", "Verdict", "check_gates", "exit_code"]

_WRITTEN: Final = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=)\s*([+-]?)([0-9]*\.?[0-9]+)\s*")
_EXAMPLES: Final = (
    "Write ndcg@10>=-0.01 (may fall by .01 against a baseline), ndcg@10>=+0.02 (must rise by .02) "
    "or ndcg@10>=0.40 (must reach .40, no baseline)"
)

Outcome = Literal["pass", "fail", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of a run.

    Attributes:
        gate: Which gate.
        outcome: ``pass`` if the whole interval is within the limit, ``fail`` if it is wholly
            beyond, ``cannot tell`` if the limit lies inside it.
        value: The mean change against the baseline, or the mean itself without one.
        interval: Its limits.
        queries: How many queries it rests on.
        comparison: With the baseline; None if the gate asks for none.
        says: The verdict in one sentence with its numbers.
    """

    gate: Gate
    outcome: Outcome
    value: float
    interval: Interval
    queries: int
    comparison: Comparison | None
    says: str


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit that a metric, or its change against a baseline, must keep to.

    Attributes:
        metric: The metric's name.
        limit: From -1 to 1 for a change, from 0 to 1 for a level.
        change: Whether the limit is one on the change against a baseline.

    Raises:
        UsageError: On a limit out of its range, or one that every run keeps to.
    """

    metric: str
    limit: float
    change: bool

    def __post_init__(self) -> None:
        number = isinstance(self.limit, (int, float)) and not isinstance(self.limit, bool)
        if not number or not (-1 if self.change else 0) <= self.limit <= 1:
            raise UsageError(
                f"A gate's limit is a number from {'-1' if self.change else '0'} to 1; got "
                f"{self.limit!r}."
            )
        least = (-1.0 if self.change else 0.0) if self._higher_is_better else 1.0
        if self.limit == least:
            raise UsageError(
                f"'{self}' is kept by every run: its limit is none. For no fall against a "
                f"baseline write {self.metric}{'>=' if self._higher_is_better else '<='}+0."
            )

    @classmethod
    def parse(cls, written: str) -> Self:
        """Read a gate as it is written on the command line.

        A number with a sign is a change against a baseline, one without is a level.

        Args:
            written: ``ndcg@10>=-0.01``, ``recall@10>=+0``, ``mrr>=0.6``, ``unjudged@10<=0.2``.

        Raises:
            UsageError: If it is written otherwise, names no metric, asks a metric in the
                direction that is not better, or has a limit that every run or none keeps to.

        Example:
            >>> Gate.parse("ndcg@10>=-0.01")
            Gate(metric='ndcg@10', limit=-0.01, change=True)
            >>> str(Gate.parse("mrr >= .6"))
            'mrr>=0.6'
        """
        match = _WRITTEN.fullmatch(written)
        if match is None:
            raise UsageError(f"{written!r} is no gate. {_EXAMPLES}.")
        name, sign, number = match[1], match[3], float(match[4])
        parsed = parse_metric(name)
        wanted = ">=" if parsed.metric.higher_is_better else "<="
        if match[2] != wanted:
            better = "higher" if wanted == ">=" else "lower"
            raise UsageError(
                f"{written!r}: {better} is better for {parsed.name}, so its gate is written "
                f"{parsed.name}{wanted}…"
            )
        if number > 1:
            raise UsageError(
                f"{written!r}: metrics go from 0 to 1; got {number:g}. Ten percent is 0.1."
            )
        return cls(parsed.name, -number if sign == "-" else number, change=bool(sign))

    def __str__(self) -> str:
        sign = ">=" if self._higher_is_better else "<="
        return f"{self.metric}{sign}{self.limit:{'+' if self.change else ''}g}"

    @property
    def _higher_is_better(self) -> bool:
        return parse_metric(self.metric).metric.higher_is_better

    def check(
        self,
        run: Evaluation,
        baseline: Evaluation | None = None,
        *,
        groups: Groups | None = None,
        confidence: float = defaults.CONFIDENCE,
        seed: int = defaults.RESAMPLING_SEED,
    ) -> Verdict:
        """Ask whether the run keeps to the limit.

        Args:
            run: What wants to pass, judged by the gate's metric.
            baseline: What it is measured against, judged by the same judgements; a level
                needs none.
            groups: Queries that rise and fall together; see
                :func:`~cormorant.evaluate.compare`.
            confidence: Of the interval. A run that is exactly at the limit fails with a
                probability of (1 - confidence) / 2.
            seed: Of the bootstrap.

        Raises:
            UsageError: If the question cannot be asked: no baseline, queries that failed, were
                not asked or are too few, other judgements, judgements by which no run could
                have fallen, an empty run, rankings that end where the metric still counts. A
                gate never passes because of that.
        """
        answerable(run, self.metric, confidence)
        if not self.change:
            return self._level(run, groups, confidence, seed)
        if baseline is None:
            raise UsageError(
                f"The gate {self} is about a change: it needs the run to compare with. "
                f"Give a baseline, or a level such as {self.metric}>=0.40."
            )
        answerable(baseline, self.metric, confidence)
        ended = cut_differently(baseline.run, run.run, self.metric)
        if ended:
            raise UsageError(f"The gate {self} cannot be asked. {ended}")
        if not (run.qrels and baseline.qrels):
            raise UsageError(
                f"The gate {self} cannot be asked: it is not known by which judgements the "
                "runs were judged. Judge both with judge(run, qrels, …)."
            )
        paired(baseline, run, self.metric)
        self._movable(run, baseline, confidence)
        alike(run, baseline, str(self))
        notes = only_one(baseline.run, run.run)
        still = len(run.queries)
        if self._higher_is_better:
            # Queries that are 0 whatever is returned would make every change look smaller.
            movable = set(able(run))
            run, baseline = run.only(movable), baseline.only(movable)
        still -= len(run.queries)
        if still:
            notes.append(
                f"{still} more have nothing judged relevant, so they are 0 whatever is returned, "
                "and are left out."
            )
        comparison = compare(
            baseline, run, self.metric, groups=groups, confidence=confidence, seed=seed
        )
        self._enough(comparison.groups, len(run.queries), confidence)
        value, interval = comparison.difference, comparison.interval
        outcome = self._outcome(interval)
        if comparison.wins or comparison.losses:
            notes.insert(
                0,
                f"{comparison.wins} better, {comparison.ties} equal, {comparison.losses} worse.",
            )
        if outcome == "pass" and comparison.verdict == "worse":
            notes.append(f"It is worse all the same (p = {comparison.p:.4f}): the limit allows it.")
        notes += lesser(baseline) + lesser(run)
        count = len(run.queries)
        says = self._says(outcome, value, interval, count, comparison.groups)
        return Verdict(self, outcome, value, interval, count, comparison, " ".join([says, *notes]))

    def _level(
        self, run: Evaluation, groups: Groups | None, confidence: float, seed: int
    ) -> Verdict:
        """Ask whether the mean itself keeps to the limit."""
        among = grouping(run.queries, groups, run.qrels)
        count, apart = len(run.queries), None if among is None else among.count
        self._enough(apart, count, confidence)
        values = run.of(self.metric)
        value = float(values.mean())
        low, high = bootstrap_interval(
            values if among is None else among.witnesses(values), confidence=confidence, seed=seed
        )
        interval = Interval(max(low, 0.0), min(high, 1.0))
        outcome = self._outcome(interval)
        notes = lesser(run)
        still = count - len(able(run))
        if run.qrels and still and self._higher_is_better:
            notes.insert(
                0,
                f"{still} of them have nothing judged relevant: they are 0 whatever is returned, "
                "and lower the mean.",
            )
        says = self._says(outcome, value, interval, count, apart)
        return Verdict(self, outcome, value, interval, count, None, " ".join([says, *notes]))

    def _enough(self, groups: int | None, count: int, confidence: float) -> None:
        """Refuse groups too few for any answer to be possible.

        Raises:
            UsageError: Saying how many are needed.
        """
        if groups is not None and groups < least(confidence):
            raise UsageError(
                f"The gate {self} cannot be asked: the {count} queries are in {groups} groups, and "
                f"{least(confidence)} at least are needed. Judge questions about more records."
            )

    def _movable(self, run: Evaluation, baseline: Evaluation, confidence: float) -> None:
        """Refuse judgements by which this change could not have been for the worse.

        Raises:
            UsageError: Saying why.
        """
        count = len(run.queries)
        if self._higher_is_better:
            count, needed = len(able(run)), least(confidence)
            if count < needed:
                raise UsageError(
                    f"The gate {self} cannot be asked: {count} of {len(run.queries)} queries have "
                    f"anything judged relevant, and the others are 0 whatever is returned; "
                    f"{needed} at least are needed. Judge more queries, or look whether grades are "
                    "right."
                )
        worst = 0.0 if self._higher_is_better else 1.0
        if all((each.of(self.metric) == worst).all() for each in (run, baseline)):
            raise UsageError(
                f"The gate {self} cannot be asked: both runs have {self.metric} {worst:g} at each "
                f"of {count} queries, so nothing could fall. Do the judgements name documents of "
                "this store, as the runs do?"
            )

    def _outcome(self, interval: Interval) -> Outcome:
        worst, best = interval if self._higher_is_better else (-interval.high, -interval.low)
        limit = self.limit if self._higher_is_better else -self.limit
        # A limit is written in decimals; a mean that is meant to be it may be off by rounding.
        if best < limit - 1e-9:
            return "fail"
        return "pass" if worst >= limit - 1e-9 else "cannot tell"

    def _says(
        self, outcome: Outcome, value: float, interval: Interval, count: int, groups: int | None
    ) -> str:
        sign = "+" if self.change else ""
        low, high = interval
        numbers = f"{value:{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}] over {count} queries"
        if groups is not None:
            numbers += f" in {groups} groups"
        what = f"{self.metric} {'changed by' if self.change else 'is'}"
        says = f"{outcome.upper()} {self}: {what} {numbers}."
        if outcome == "cannot tell":
            says += (
                f" The limit lies inside the interval{_more(value, self.limit, interval, count)}."
            )
        return says


def check_gates(
    gates: Iterable[Gate],
    run: Evaluation,
    baseline: Evaluation | None = None,
    *,
    groups: Groups | None = None,
    confidence: float = defaults.CONFIDENCE,
    seed: int = defaults.RESAMPLING_SEED,
) -> list[Verdict]:
    """Ask several gates; see :meth:`Gate.check`.

    Raises:
        UsageError: If there is no gate, or one cannot be asked.

    Example:
        >>> from cormorant.evaluate import Run, judge
        >>> qrels = {str(q): {"a": 1} for q in range(40)}
        >>> same = judge(Run("a", {q: (("a", 1.0),) for q in qrels}), qrels, "mrr")
        >>> [v.outcome for v in check_gates([Gate.parse("mrr>=-0.01")], same, same)]
        ['pass']
    """
    verdicts = [
        gate.check(run, baseline, groups=groups, confidence=confidence, seed=seed) for gate in gates
    ]
    if not verdicts:
        raise UsageError(f"There is no gate to check. {_EXAMPLES}.")
    return verdicts


def exit_code(verdicts: Sequence[Verdict], *, strict: bool = False) -> int:
    """What the shell learns: 0 let it through, 1 a gate failed.

    What could not be asked never gets here: :meth:`Gate.check` raises, and that is exit code 2.

    Args:
        verdicts: At least one.
        strict: Take ``cannot tell`` for a failure: the run must be shown to keep to its limits.

    Raises:
        UsageError: If there is no verdict.
    """
    if not verdicts:
        raise UsageError("There is no verdict: no gate was checked.")
    bad = {"fail", "cannot tell"} if strict else {"fail"}
    return int(any(verdict.outcome in bad for verdict in verdicts))


def _more(value: float, limit: float, interval: Interval, count: int) -> str:
    """About how many queries would tell, if the mean stayed as it is."""
    half = max(interval.high - value, value - interval.low)
    margin = abs(value - limit)
    if margin < 1e-9 or not math.isfinite(half):
        return ""
    wanted = count * (half / margin) ** 2
    if wanted > 1e6:
        return ""
    digits = 10 ** max(0, int(math.log10(wanted)) - 1)
    return f"; if the mean stays, about {math.ceil(wanted / digits) * digits:,} queries would tell"
