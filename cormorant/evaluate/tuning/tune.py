"""Which settings are best for these questions, and are they better than what is set?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.answerable import least
from cormorant.evaluate.asked import asked_queries
from cormorant.evaluate.comparing import Comparison, compare
from cormorant.evaluate.evaluation import Evaluation
from cormorant.evaluate.groups import Groups, group_names, grouping
from cormorant.evaluate.names import NamedMetric, parse_metric
from cormorant.evaluate.run import Run
from cormorant.evaluate.scoring import judge
from cormorant.evaluate.splitting import split
from cormorant.evaluate.tuning.choosing import choose, cross_validate
from cormorant.evaluate.tuning.journal import Journal
from cormorant.evaluate.tuning.measuring import Bench, Progress, Settings
from cormorant.evaluate.tuning.point import Point
from cormorant.evaluate.tuning.ranking import Ledger, Rerank
from cormorant.evaluate.tuning.space import Space
from cormorant.evaluate.tuning.tuned import AS_SET, Training, Tuned
from cormorant.evaluate.tuning.variants import Chunking, Searched
from cormorant.model import Query, VectorLike

__all__ = ["tune"]

_DEPTH: Final = 100
"""Hits that are ranked for a metric that reads all of them."""
_LEGS: Final = {
    "vector leg alone": Point(vector_weight=1.0),
    "text leg alone": Point(vector_weight=0.0),
}


def tune(
    store: Searched,
    queries: Mapping[str, str | Query],
    qrels: Mapping[str, Mapping[str, float]],
    *,
    space: Space | Mapping[str, Any] | None = None,
    metric: str = "ndcg@10",
    holdout: float = 0.3,
    folds: int = 5,
    seed: int = 0,
    embed: Callable[[str], VectorLike] | Any = None,
    by: str | None = None,
    groups: Groups | None = None,
    rerank: Rerank | None = None,
    chunking: Chunking | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Choose settings by some of the judged queries, and judge the choice by the others.

    The legs are asked once for each query; every configuration ranks their candidates, with
    the hits its search would give. On the training queries the simplest configuration within
    one standard error of the best is chosen. Only then are the held-out queries ranked, by
    what was chosen and by the store as it is set, and compared.

    Args:
        store: A store, or a scoped view.
        queries: By id, a text or a whole Query; each judged one must be there.
        qrels: Judgements.
        space: What to try; None for both legs alone and every share of them between, under each
            fusion.
        metric: What to maximise, such as ``ndcg@10``.
        holdout: Share of the judged queries that has no part in the choice, between 0 and 1.
        folds: Parts of the cross-validation on the other queries, at least 2.
        seed: Of the split. The same seed, store, queries and space give the same choice.
        embed: Makes the vector of a query given as text: a function, or an object with
            ``embed_query``. Without it such a query is searched by text alone.
        by: The metadata field that judgements name instead of a record's id, such as its
            document's; of several hits with one value the first counts, as in ``run_system``.
        groups: Queries that rise and fall together, as for :func:`~cormorant.evaluate.compare`: a
            group is wholly held out or not at all, and counts once.
        rerank: Scores texts for a question; needed if the space varies ``rerank_k``.
        chunking: How to chunk; needed if the space varies ``chunk_size``.
        journal: A file that keeps what was measured, so that an interrupted tuning can go on.
        resume: Go on with what the journal holds, if it belongs to the same tuning.
        progress: Told how many (query, index) pairs are done, and of how many.

    Returns:
        What was chosen, whether it is better where it was not chosen, and how sure that is.

    Raises:
        UsageError: On arguments out of range, too few judged queries, a judged query that is
            missing, a space that changes nothing for these queries, or judgements by which
            nothing is found.
        ConfigError: On a space that cannot be tried, or a journal of another tuning.
        EvalFileError: If the journal cannot be read or written.

    Example:
        >>> import cormorant
        >>> store = cormorant.open(":memory:", language="none")
        >>> stems = [f"{a}a{b}ind" for a in "bdfgklmp" for b in "nrstv"]
        >>> _ = store.add({"id": stem, "text": f"{stem}ing"} for stem in stems)
        >>> asked, qrels = {s: f"{s}ed" for s in stems}, {s: {s: 1} for s in stems}
        >>> tune(store, asked, qrels, space={"language": ["english"]}).recommended.says
        'z, vector 0.5 : text 0.5, language english'
    """
    named = parse_metric(metric)
    _check(named, folds)
    if not isinstance(space, Space):
        space = Space.default() if space is None else Space.of(space)
    depth = named.k or _DEPTH
    judged = asked_queries(queries, qrels, embed)
    hybrid = any(query.resolved_mode == "hybrid" for query in judged.values())
    points, notes = _points(space, depth, hybrid=hybrid)
    named_groups = group_names(list(judged), groups, qrels)
    training, held = split(
        list(judged), holdout=holdout, least=2 * folds, seed=seed, groups=named_groups
    )
    among = grouping(training, named_groups, qrels)
    needed = least(defaults.CONFIDENCE)
    apart = len(held if named_groups is None else {named_groups[name] for name in held})
    if apart < needed:
        notes.append(
            f"{apart} held-out {'questions' if named_groups is None else 'groups'} are too few for "
            f"any difference to be significant: {needed} are needed at least, and some "
            "hundreds to be of use."
        )
    settings = Settings(store, judged, dict(qrels), named, depth, rerank, chunking, by)
    kept = None
    if journal is not None:
        belongs = settings.digest(points, training)
        kept = Journal(journal, belongs_to=belongs, resume=resume)
    elif resume:
        raise UsageError("resume=True needs a journal to go on with; give journal=, a file.")
    bench = Bench(settings, journal=kept, progress=progress)
    with nullcontext() if kept is None else kept:
        values = bench.values(points, training)
    if not values.any():
        raise UsageError(
            f"{named.name} is 0 at each of {len(training)} training queries, whatever is tried, so "
            "nothing can be chosen by it. Do the judgements name records of this store (or, with "
            "by, values of a metadata field of theirs), and are some of them above 0?"
        )
    choice = choose(values, points, among)
    chosen = points[choice.chosen]
    means = values.mean(axis=1).tolist()
    evaluations = _held_out(bench, chosen, held, hybrid=hybrid)
    comparison = None
    if chosen is not None:
        comparison = compare(
            evaluations[AS_SET], evaluations[chosen.says], named.name, groups=named_groups
        )
    better = comparison is not None and comparison.verdict == "better"
    recommended = chosen if better else None
    legs: tuple[Comparison, ...] = ()
    if hybrid:
        legs = _beside_legs(evaluations, recommended, named.name, named_groups)
    noticed = _noticed(bench.ledger, len(judged))
    # They name no question: each was asked, and none failed.
    warned = () if comparison is None else comparison.warnings
    return Tuned(
        metric=named.name,
        chosen=chosen,
        recommended=recommended,
        training=Training(
            queries=len(training),
            tried=len(points),
            within=choice.within,
            best=points[choice.best],
            means=dict(zip(points, means, strict=True)),
            folds=cross_validate(values, points, folds=folds, among=among),
        ),
        held_out=evaluations,
        comparison=comparison,
        beside_legs=legs,
        settings={
            "metric": named.name,
            "space": space.to_json(),
            "holdout": holdout,
            "folds": folds,
            "seed": seed,
            **({} if by is None else {"judged_by": by}),
            **({} if named_groups is None else {"groups": len(set(named_groups.values()))}),
        },
        notes=(*notes, *(said + example for said, example in noticed), *warned),
        kept_notes=(*notes, *(f"{said}." for said, _ in noticed), *warned),
        cpu_s={"asking": bench.ledger.asking_s, "ranking": bench.ranking_s},
    )


def _check(named: NamedMetric, folds: object) -> None:
    if not named.metric.higher_is_better:
        raise UsageError(
            f"{named.name} is no measure of quality: a higher one is not better. Tune for another, "
            "such as ndcg@10."
        )
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise UsageError(f"folds must be a whole number of at least 2; got {folds!r}.")


def _points(space: Space, depth: int, *, hybrid: bool) -> tuple[list[Point | None], list[str]]:
    """The store as it is set, then the space's configurations, each once."""
    points = space.points(depth=depth)
    notes = []
    if not hybrid:
        alone = Point()
        told = {name: getattr(alone, name) for name in ("fusion", "vector_weight", "rrf_k")}
        left = tuple(dict.fromkeys(replace(point, **told) for point in points))
        if len(left) < len(points):
            notes.append("No query has both text and vector, so nothing is fused or weighted.")
        points = left
        if points == (alone,):
            raise UsageError(
                "No query has both text and vector, and the space varies nothing else than how "
                "legs are fused. Give embed=, or a space that varies language, bm25_k1, bm25_b, "
                "mmr_lambda or rerank_k."
            )
    return [None, *points], notes


def _held_out(
    bench: Bench, chosen: Point | None, held: Sequence[str], *, hybrid: bool
) -> dict[str, Evaluation]:
    wanted: dict[str, Point | None] = {AS_SET: None}
    if chosen is not None:
        wanted[chosen.says] = chosen
    if hybrid:
        for name, point in _LEGS.items():
            wanted.setdefault(name, point)
    qrels = {name: dict(bench.settings.qrels[name]) for name in held}
    answers = bench.answers(list(wanted.values()), held)
    return {
        name: judge(
            _run(name, point, found, bench.settings.depth), qrels, bench.settings.metric.name
        )
        for (name, point), found in zip(wanted.items(), answers, strict=True)
    }


def _run(name: str, point: Point | None, answers: Mapping[str, Sequence[str]], depth: int) -> Run:
    # MMR's order is not that of the scores, so a place stands for the score.
    rankings = {
        query: tuple((doc, 1.0 / place) for place, doc in enumerate(ids, start=1))
        for query, ids in answers.items()
    }
    if point is None:
        return Run(name, rankings, {"k": depth})
    return Run(name, rankings, {"k": point.top_k or depth, **point.to_json()})


def _beside_legs(
    evaluations: Mapping[str, Evaluation],
    recommended: Point | None,
    metric: str,
    groups: Groups | None,
) -> tuple[Comparison, ...]:
    name = AS_SET if recommended is None else recommended.says
    return tuple(
        compare(evaluations[leg], evaluations[name], metric, groups=groups)
        for leg in _LEGS
        if leg != name
    )


def _noticed(ledger: Ledger, count: int) -> list[tuple[str, str]]:
    """Sentences without their end, and the example that ends each."""
    notes = []
    for what, found in (
        ("hold nothing this store can search, and count as unanswered", ledger.unsearchable),
        ("were answered in a lesser way", ledger.degraded),
    ):
        if found:
            name, why = next(iter(found.items()))
            notes.append((f"{len(found)} of {count} queries {what}", f", such as {name!r}: {why}"))
    return notes
