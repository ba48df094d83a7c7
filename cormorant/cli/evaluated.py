"""What does an evaluation look like, as JSON and on a screen?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cormorant.width import plain, wrap

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.evaluate import Comparison, Evaluation, Report, Run, Verdict

__all__ = ["FIELDS", "json_fields", "lines"]

_COLOURS = {"pass": "green", "fail": "red", "cannot tell": "yellow"}

FIELDS = {
    "runs[].name": "the run's",
    "runs[].config": "all that is known to change its rankings",
    "runs[].config_hash": "of that; equal configurations have equal hashes",
    "runs[].queries": "how many are judged",
    "runs[].metrics": "each metric's mean over them",
    "runs[].failed": "by query, the error that came instead of an answer",
    "runs[].missing": "judged queries that the run does not have",
    "runs[].degraded": "by query, what was answered in a lesser way",
    "runs[].spending": "seconds, seconds_p50, seconds_p95, tokens, usd; null if not measured",
    "runs[].values": "by metric and query; with --per-query alone",
    "baseline": "the baseline's name; null without one",
    "comparisons[]": "of each run with the baseline, or with the first run: metric, baseline, "
    "system, difference, low, high, p, p_adjusted, groups (how many; null if each query counts), "
    "wins, ties, losses, verdict, warnings",
    "gates[]": "gate, outcome (pass, fail, cannot tell), value, low, high, queries, says",
}


def json_fields(
    judged: Sequence[Evaluation],
    baseline: Sequence[Evaluation],
    table: Report,
    verdicts: Sequence[Verdict],
    *,
    per_query: bool,
) -> dict[str, Any]:
    """The object of ``--json``."""
    return {
        "runs": [_run_fields(each, per_query=per_query) for each in judged],
        "baseline": baseline[0].run.name if baseline else None,
        "comparisons": [
            _comparison_fields(one) for many in table.comparisons.values() for one in many
        ],
        "gates": [
            {
                "gate": str(verdict.gate),
                "outcome": verdict.outcome,
                "value": verdict.value,
                "low": verdict.interval.low,
                "high": verdict.interval.high,
                "queries": verdict.queries,
                "says": verdict.says,
            }
            for verdict in verdicts
        ],
    }


def _run_fields(judged: Evaluation, *, per_query: bool) -> dict[str, Any]:
    from cormorant.evaluate.spending import spending

    run = judged.run
    spent = spending(run)
    fields = {
        "name": run.name,
        "config": run.config,
        "config_hash": run.config_hash,
        "queries": len(judged.queries),
        "metrics": judged.means,
        "failed": dict(run.failed),
        "missing": list(judged.missing),
        "degraded": {query: list(said) for query, said in run.degraded.items()},
        "spending": None if spent is None else dataclasses.asdict(spent),
    }
    if per_query:
        fields["values"] = {
            metric: dict(zip(judged.queries, judged.of(metric).tolist(), strict=True))
            for metric in judged.metrics
        }
    return fields


def _comparison_fields(comparison: Comparison) -> dict[str, Any]:
    return {
        "metric": comparison.metric,
        "baseline": comparison.baseline_name,
        "system": comparison.system_name,
        "difference": comparison.difference,
        "low": comparison.interval.low,
        "high": comparison.interval.high,
        "p": comparison.p,
        "p_adjusted": comparison.p_adjusted,
        "groups": comparison.groups,
        "wins": comparison.wins,
        "ties": comparison.ties,
        "losses": comparison.losses,
        "verdict": comparison.verdict,
        "warnings": list(comparison.warnings),
    }


def lines(
    judged: Sequence[Evaluation],
    table: Report,
    verdicts: Sequence[Verdict],
    console: Console,
    form: str,
    *,
    per_query: bool,
) -> Iterator[str]:
    """The table, then what it cost, then each gate's verdict."""
    if form == "markdown":
        yield table.markdown().rstrip("\n")
    elif form == "latex":
        yield table.latex().rstrip("\n")
    else:
        yield table.terminal(console.width).rstrip("\n")
    if per_query:
        for each in judged:
            yield ""
            yield _by_query(each, console.width)
    for each in judged:
        said = _cost_line(each.run)
        if said and form == "terminal":
            yield console.style(said, "dim")
    for verdict in verdicts:
        for line in wrap(verdict.says, console.width, 9):
            yield console.style(line, _COLOURS[verdict.outcome])


def _by_query(judged: Evaluation, width: int) -> str:
    from cormorant.evaluate.reporting.terminal import terminal_table

    rows = [
        [query, *(f"{value:.4f}" for value in values)]
        for query, values in zip(judged.queries, judged.values.tolist(), strict=True)
    ]
    return terminal_table([[judged.run.name, *judged.metrics], *rows], [], width).rstrip("\n")


def _cost_line(run: Run) -> str:
    from cormorant.evaluate.spending import spending

    spent = spending(run)
    if spent is None:
        return ""
    parts = [f"{spent.seconds_p50 * 1000:.1f} ms a query (95 %: {spent.seconds_p95 * 1000:.1f} ms)"]
    if spent.tokens:
        parts.append(f"{spent.tokens:,} tokens")
    if spent.usd:
        parts.append(f"{spent.usd:.4f} USD")
    return f"{plain(run.name)}: {', '.join(parts)}"
