"""What does a JSONL file of queries, judgements or a run say?

The one format that loses nothing of a run: order and scores to the last bit, its configuration,
what each query cost, and which queries failed or were answered with nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cormorant.errors import EvalFileError
from cormorant.evaluate.formats.lines import id_of, score_of, wrong
from cormorant.evaluate.formats.rows import Rows
from cormorant.evaluate.run import Cost, Ranking, Run

__all__ = ["json_line", "json_qrels", "json_queries", "json_rows", "json_run", "parse_json_run"]

_COSTS: Final = ("seconds", "tokens", "usd")


def json_rows(lines: Iterable[str], *, name: str) -> Rows:
    """The objects of the lines; blank lines are skipped.

    Raises:
        EvalFileError: On a line that is no JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise wrong(name, number, f"not valid JSON: {error}.") from error
        if not isinstance(value, dict):
            raise wrong(name, number, f"expected a JSON object; got {type(value).__name__}.")
        yield number, value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_json_run(lines: Iterable[str], *, name: str, run_name: str) -> Run:
    """A run as :func:`json_run` writes it.

    Args:
        lines: Of the file.
        name: Stands in errors.
        run_name: What the run is called if the file does not say.

    Raises:
        EvalFileError: With the line, on one that says something else.
    """
    rankings: dict[str, Ranking] = {}
    costs: dict[str, Cost] = {}
    degraded: dict[str, tuple[str, ...]] = {}
    failed: dict[str, str] = {}
    config: Mapping[str, Any] = {}
    for line, row in json_rows(lines, name=name):
        if "run" in row:
            run_name = str(row["run"])
            config = row.get("config") or {}
            if not isinstance(config, dict):
                raise wrong(name, line, f"config must be an object; got {config!r:.80}.")
            continue
        query = id_of(row.get("query"), "the query id", name, line)
        if query in rankings or query in failed:
            raise wrong(name, line, f"the query id {query!r} comes twice.")
        if "failed" in row:
            failed[query] = _failed(row, name, line)
        else:
            rankings[query] = _ranking(row.get("hits"), name, line)
        if any(part in row for part in _COSTS):
            costs[query] = _cost(row, name, line)
        if row.get("degraded"):
            degraded[query] = _degraded(row["degraded"], name, line)
    return Run(run_name, rankings, config, costs, degraded, failed)


def _ranking(hits: Any, name: str, line: int) -> Ranking:
    if not isinstance(hits, list) or not all(isinstance(h, list) and len(h) == 2 for h in hits):
        raise wrong(name, line, f"hits is a list of [document id, score]; got {hits!r:.80}.")
    ranking = tuple(
        (id_of(doc, "a document id", name, line), score_of(score, name, line))
        for doc, score in hits
    )
    try:
        Run("", {"": ranking})
    except ValueError as error:
        raise EvalFileError(f"{name}, line {line}: {error}", path=name, line=line) from error
    return ranking


def _failed(row: Mapping[str, Any], name: str, line: int) -> str:
    if "hits" in row:
        raise wrong(name, line, "the query both failed and has hits; it is one or other.")
    if not isinstance(row["failed"], str):
        raise wrong(name, line, f"failed is the error, a text; got {row['failed']!r:.80}.")
    return row["failed"]


def _degraded(told: Any, name: str, line: int) -> tuple[str, ...]:
    if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
        raise wrong(name, line, f"degraded is a list of sentences; got {told!r:.80}.")
    return tuple(told)


def _cost(row: Mapping[str, Any], name: str, line: int) -> Cost:
    given = {part: score_of(row.get(part, 0), name, line) for part in _COSTS}
    if not all(0 <= value < math.inf for value in given.values()):
        raise wrong(name, line, f"seconds, tokens and usd are at least 0; got {given!r}.")
    return Cost(given["seconds"], int(given["tokens"]), given["usd"])


def json_run(run: Run) -> Iterator[str]:
    """A run: a line with its name and configuration, then a line a query."""
    yield json_line({"run": run.name, "config": run.config})
    for query in [*run.rankings, *run.failed]:
        row: dict[str, Any] = {"query": query}
        if query in run.failed:
            row["failed"] = run.failed[query]
        else:
            row["hits"] = [[doc, _written(score)] for doc, score in run.rankings[query]]
        if query in run.costs:
            cost = run.costs[query]
            row |= {part: getattr(cost, part) for part in _COSTS}
        if run.degraded.get(query):
            row["degraded"] = run.degraded[query]
        yield json_line(row)


def _written(score: float) -> float | str:
    # JSON has no infinity; as a text it is read back.
    return score if math.isfinite(score) else str(score)


def json_qrels(qrels: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Judgements, a line each."""
    for query, grades in qrels.items():
        for doc, grade in grades.items():
            yield json_line({"query": query, "document": doc, "grade": grade})


def json_queries(queries: Mapping[str, str]) -> Iterator[str]:
    """Queries, a line each, as BEIR has them."""
    for query, text in queries.items():
        yield json_line({"_id": query, "text": text})


def json_line(value: Mapping[str, Any]) -> str:
    """An object as a line; what JSON does not know is written as text."""
    return json.dumps(dict(value), ensure_ascii=False, default=str) + "\n"
