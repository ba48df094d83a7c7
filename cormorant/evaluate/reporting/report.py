"""Which systems were judged, how good is each, and which differ from the baseline?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.comparing.comparison import Comparison, compare_all
from cormorant.evaluate.evaluation import Evaluation, check_judged
from cormorant.evaluate.groups import Groups
from cormorant.evaluate.reporting.latex import latex_table
from cormorant.evaluate.reporting.markdown import markdown_table
from cormorant.evaluate.reporting.terminal import terminal_table
from cormorant.evaluate.spending import Spending, spending

__all__ = ["Report", "report"]

_MARKS = {"better": "+", "worse": "-", "no significant difference": ""}


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A table of systems and metrics, ready to be printed.

    Attributes:
        systems: The runs' names, the baseline first.
        metrics: Metric names.
        means: System to its mean by metric, in the order of both.
        comparisons: Metric to the comparison of each system but the baseline, in order.
        queries: How many were judged.
        confidence: Of the tests and intervals.
        spent: What each run cost, in their order; None where nothing was measured. Empty if costs
            are not in the table.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]
    comparisons: Mapping[str, Sequence[Comparison]]
    queries: int
    confidence: float
    spent: tuple[Spending | None, ...] = ()

    def mark(self, system: int, metric: str) -> str:
        """``+`` if the system is significantly better than the baseline, ``-`` if worse."""
        return _MARKS[self.comparisons[metric][system - 1].verdict] if system else ""

    def rows(self) -> list[list[str]]:
        """Cells as text, the heads first: name, a mean with its mark for each metric, then costs.

        Costs are those of a query: its median milliseconds, its mean tokens and dollars; what
        nobody measured is left empty.
        """
        heads, costs = self._costs()
        return [
            ["system", *self.metrics, *heads],
            *(
                [
                    name,
                    *(f"{m:.4f}{self.mark(i, metric)}" for metric, m in self._by_metric(i)),
                    *costs[i],
                ]
                for i, name in enumerate(self.systems)
            ),
        ]

    def _costs(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells of the costs; tokens and dollars only where there are some."""
        known = [each for each in self.spent if each is not None]
        if not known:
            return [], [[] for _ in self.systems]
        heads = ["ms"]
        heads += ["tokens"] if any(each.tokens for each in known) else []
        heads += ["USD"] if any(each.usd for each in known) else []
        return heads, [[_cost(each, head) for head in heads] for each in self.spent]

    @property
    def legend(self) -> str:
        """What the marks mean, and how many queries it rests on."""
        count = f"{self.queries} queries."
        if len(self.systems) == 1:
            return f"Means over {count}"
        groups = next((one.groups for many in self.comparisons.values() for one in many), None)
        if groups is not None:
            count = f"{self.queries} queries in {groups} groups."
        alpha = f"{1 - self.confidence:.3f}".rstrip("0")
        several = len(self.systems) - 1
        by = f", by Holm over {several} systems in each metric" if several > 1 else ""
        return (
            f"Means over {count} + significantly better, - significantly worse than "
            f"{self.systems[0]} (paired randomisation test, p < {alpha}{by})."
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before believing it, a sentence each; the same one is said once."""
        each = (w for many in self.comparisons.values() for one in many for w in one.warnings)
        return tuple(dict.fromkeys(each))

    def terminal(self, width: int = 100) -> str:
        """As plain text in ``width`` columns; more metrics than fit continue below."""
        return terminal_table(self.rows(), [self.legend, *self._noted()], width)

    def markdown(self) -> str:
        """As a Markdown table with its legend below."""
        return markdown_table(self.rows(), [self.legend, *self._noted()])

    def latex(self) -> str:
        """As a LaTeX table for the booktabs package, escaped, with its legend as the caption."""
        return latex_table(self.rows(), [self.legend, *self._noted()])

    def _by_metric(self, system: int) -> list[tuple[str, float]]:
        return list(zip(self.metrics, self.means[system], strict=True))

    def _noted(self) -> list[str]:
        return [f"Note: {warning}" for warning in self.warnings]


def _cost(spent: Spending | None, head: str) -> str:
    """What a query costs, as the cell below a head; empty if nobody measured it."""
    if spent is None:
        return ""
    return {
        "ms": f"{spent.seconds_p50 * 1000:.1f}",
        "tokens": f"{spent.tokens / spent.queries:.0f}",
        "USD": f"{spent.usd / spent.queries:.6f}",
    }[head]


def report(
    baseline: Evaluation,
    systems: Sequence[Evaluation] = (),
    metrics: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    costs: bool = False,
    confidence: float = defaults.CONFIDENCE,
    seed: int = defaults.RESAMPLING_SEED,
) -> Report:
    """Put one or several judged runs into a table.

    Args:
        baseline: The first row; the others are compared with it.
        systems: Further rows, judged for the same queries by the same judgements.
        metrics: Columns; None takes all of the baseline's.
        groups: Queries that rise and fall together, as for
            :func:`~cormorant.evaluate.compare`.
        costs: Put what a query costs beside its quality: milliseconds, tokens, dollars.
        confidence: Of the tests.
        seed: Of the tests.

    Raises:
        UsageError: If there is no metric, a run was not judged by one, or the runs cannot be
            compared; see :func:`~cormorant.evaluate.comparing.compare`.

    Example:
        >>> from cormorant.evaluate import Run, judge
        >>> qrels = {str(q): {"a": 1} for q in range(8)}
        >>> first = judge(Run("first", {q: (("b", 2.0), ("a", 1.0)) for q in qrels}), qrels, "mrr")
        >>> second = judge(Run("second", {q: (("a", 2.0),) for q in qrels}), qrels, "mrr")
        >>> report(first, [second]).rows()
        [['system', 'mrr'], ['first', '0.5000'], ['second', '1.0000+']]
    """
    check_judged(baseline, *systems)
    wanted = tuple(baseline.metrics if metrics is None else metrics)
    if not wanted:
        raise UsageError("A report needs a metric; got none. Judge the run by one, say ndcg@10.")
    every = (baseline, *systems)
    return Report(
        systems=tuple(each.run.name for each in every),
        metrics=wanted,
        means=tuple(tuple(float(each.of(m).mean()) for m in wanted) for each in every),
        comparisons={
            metric: compare_all(
                baseline, systems, metric, groups=groups, confidence=confidence, seed=seed
            )
            if systems
            else ()
            for metric in wanted
        },
        queries=len(baseline.queries),
        confidence=confidence,
        spent=tuple(spending(each.run) for each in every) if costs else (),
    )
