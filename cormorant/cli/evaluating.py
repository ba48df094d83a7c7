"""How good is it: a store asked judged queries, or runs that were saved?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cormorant.cli.asking import open_existing, way_of
from cormorant.cli.evaluated import FIELDS, json_fields, lines
from cormorant.cli.judged import (
    add_asking,
    add_groups,
    add_questions,
    brings_qrels,
    field_among,
    golden_of,
    groups_of,
    qrels_of,
)
from cormorant.cli.verb import (
    DEGRADED_EXIT,
    Verb,
    add_settings,
    folder,
    scoped,
)
from cormorant.errors import UsageError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Evaluation, Golden, Groups, Qrels, Report, Run
    from cormorant.store import Store
    from cormorant.store.door import Door

__all__ = ["VERB"]

_FORMATS = ("terminal", "markdown", "latex")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "store",
        metavar="KB",
        type=folder,
        nargs="?",
        help="the store's folder; not needed with --run and --qrels",
    )
    parser.add_argument(
        "--run",
        dest="runs",
        metavar="FILE",
        action="append",
        default=[],
        help="a saved run to judge, instead of asking the store; can be given several times",
    )
    add_questions(parser, judged=True)
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep these queries and judgements in the store, in place of those kept before",
    )
    parser.add_argument(
        "--metric",
        dest="metrics",
        metavar="NAMES",
        action="append",
        default=[],
        help="what to compute, as in ndcg@10,recall@5,mrr (default: "
        "ndcg@10,recall@10,mrr@10,unjudged@10)",
    )
    parser.add_argument("--baseline", metavar="FILE", help="a saved run to compare with")
    parser.add_argument(
        "--gate",
        dest="gates",
        metavar="GATE",
        action="append",
        default=[],
        help="a limit to keep to: 'ndcg@10>=-0.01' against the baseline, 'ndcg@10>=0.4' without; "
        "can be given several times",
    )
    add_groups(parser)
    parser.add_argument("--strict", action="store_true", help="a gate that cannot tell fails, too")
    parser.add_argument(
        "--save-run",
        metavar="FILE",
        help="save the store's answers: .jsonl keeps all, .csv and TREC's format the hits",
    )
    parser.add_argument("--name", metavar="NAME", help="of the run (default: the store's folder)")
    parser.add_argument(
        "--format", choices=_FORMATS, default="terminal", help="of the table (default: terminal)"
    )
    parser.add_argument(
        "--costs",
        action="store_true",
        help="milliseconds, tokens and dollars a query in the table, beside the metrics",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the comparison by the first metric as .png or .svg: each query as a point for "
        "one run, each run's interval for several; needs the extra plots",
    )
    parser.add_argument(
        "--per-query", action="store_true", help="print each query's values as well"
    )
    add_settings(parser, "top_k", "mode")
    add_asking(parser, "min_score", "fusion", "rrf_k", "fetch_k", "mmr_lambda")


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.evaluate import (
        DEFAULT_METRICS,
        Gate,
        check_gates,
        judge,
        read_run,
        report,
    )
    from cormorant.evaluate.gate import exit_code
    from cormorant.evaluate.names import parse_metrics

    _check(args)
    # All that may be mistyped is read before anything is asked, which may take long.
    gates = [Gate.parse(written) for written in args.gates]
    wanted = [*(args.metrics or DEFAULT_METRICS), *(gate.metric for gate in gates)]
    metrics = [each.name for each in parse_metrics(wanted)]
    baseline = read_run(args.baseline) if args.baseline else None
    runs = _apart([read_run(path) for path in args.runs], args.runs)
    runs, qrels, groups = _gathered(runs, args, settings, console)
    judged = [judge(run, qrels, metrics) for run in runs]
    first = []
    if baseline is not None:
        if any(run.name == baseline.name for run in runs):
            baseline = replace(baseline, name=f"{baseline.name} (baseline)")
        first = [judge(baseline, qrels, metrics)]
    _warn(judged, args, settings, console)
    if groups is None and (first or len(judged) > 1):
        _tell_groups(qrels, console)
    table = report(
        (first + judged)[0], (first + judged)[1:], metrics, groups=groups, costs=args.costs
    )
    if args.plot:
        console.note(f"drawn: {_drawn(table, args.plot)}")
    verdicts = (
        check_gates(gates, judged[0], first[0] if first else None, groups=groups) if gates else []
    )
    if args.json:
        console.json(json_fields(judged, first, table, verdicts, per_query=args.per_query))
    else:
        for line in lines(judged, table, verdicts, console, args.format, per_query=args.per_query):
            console.print(line)
    if verdicts:
        return exit_code(verdicts, strict=args.strict)
    return DEGRADED_EXIT if any(each.failed for each in judged) else 0


def _gathered(
    runs: list[Run], args: Namespace, settings: Settings, console: Console
) -> tuple[list[Run], Qrels, Groups | None]:
    """The saved runs, or the store's answers; the judgements, and which questions are one."""
    from cormorant.evaluate import keep_golden

    if args.store is None:
        qrels = qrels_of(args, None)
        return runs, qrels, groups_of(args, qrels, None, args.by)
    with open_existing(
        args.store, read_only=not args.keep, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        view = scoped(store, args)
        if runs and not args.keep and brings_qrels(args):
            qrels, by = qrels_of(args, view), args.by
        else:
            golden = golden_of(args, view)
            qrels, by = golden.qrels, golden.by
            if args.keep:
                keep_golden(view, golden)
                console.note(f"{len(qrels)} judged queries are kept in the store.")
        groups = groups_of(args, qrels, view, by)
        if not runs:
            runs = [_asked(store, view, golden, args, settings, console)]
        return runs, qrels, groups


def _check(args: Namespace) -> None:
    """Refuse what does not go together."""
    if args.store is None and not args.runs:
        raise UsageError("eval needs a store to ask, or a saved run: --run FILE.")
    if args.store is None and not brings_qrels(args):
        raise UsageError(
            "Without a store the judgements come from a file: --qrels FILE or --beir FOLDER."
        )
    if args.runs and args.save_run:
        raise UsageError("--save-run saves the store's answers; with --run nothing is asked.")
    if args.plot and args.baseline is None and len(args.runs) < 2:
        raise UsageError("--plot draws a comparison; give a --baseline, or several --run.")
    if args.plot and Path(args.plot).suffix.lower() not in {".png", ".svg"}:
        raise UsageError(f"--plot draws .png or .svg; got {args.plot}.")
    _keep_inputs(args)
    if args.keep and (args.store is None or not brings_qrels(args)):
        raise UsageError(
            "--keep needs a store, and what to keep: --queries and --qrels, or --beir."
        )
    if args.gates and len(args.runs) > 1:
        raise UsageError("A gate is about one run; give one --run, or none and a store.")


def _keep_inputs(args: Namespace) -> None:
    """Refuse to save the run over a file that this command reads."""
    if args.save_run is None:
        return
    saved = Path(args.save_run).resolve()
    for name in ("queries", "qrels", "baseline", "groups"):
        given = getattr(args, name)
        if given is not None and Path(given).resolve() == saved:
            raise UsageError(
                f"--save-run would write over {given}, which --{name} reads. Name another file."
            )


def _apart(runs: list[Run], paths: list[str]) -> list[Run]:
    """The runs, named by their files where one name stands for several."""
    names = [run.name for run in runs]
    return [
        replace(run, name=path) if names.count(run.name) > 1 else run
        for run, path in zip(runs, paths, strict=True)
    ]


def _asked(
    store: Store,
    view: Door,
    golden: Golden,
    args: Namespace,
    settings: Settings,
    console: Console,
) -> Run:
    """The store's answers to the judged queries, saved if so wished."""
    from pathlib import Path

    from cormorant.evaluate import run_system, write_run

    way = way_of(store, args, settings)
    # A store without vectors has nothing better; else each answer is less than it should be.
    lesser = way.degraded if store.dim is not None else ()
    for sentence in way.degraded[len(lesser) :]:
        console.warn(sentence)
    queries = golden.judged
    with console.progress("asked", len(queries)) as progress:
        run = run_system(
            view,
            queries,
            k=settings.get("top_k"),
            name=args.name or Path(args.store).resolve().name,
            config=way.config,
            embed=way.embed,
            by=golden.by,
            on_error="record",
            on_answer=lambda _: progress.advance(1),
        )
    if lesser:
        told = {query: (*lesser, *run.degraded.get(query, ())) for query in run.rankings}
        run = replace(run, degraded=told)
    if len(run.failed) == len(queries):
        query, error = next(iter(run.failed.items()))
        raise UsageError(f"All {len(queries)} queries failed, the first, {query!r}, by: {error}")
    strange = _strange(run, golden, view)
    if strange:
        console.warn(strange)
    if args.save_run:
        write_run(run, args.save_run)
        empty = sum(not ranking for ranking in run.rankings.values())
        if empty and not args.save_run.lower().endswith(".jsonl"):
            console.warn(
                f"{empty} queries have no hits, which {args.save_run} cannot say: a gate will "
                "find them missing. A .jsonl keeps them."
            )
    return run


def _tell_groups(qrels: Qrels, console: Console) -> None:
    """Say so if the questions are plainly not independent of each other."""
    from cormorant.evaluate.groups import by_records

    apart = by_records(qrels)
    groups = len(set(apart.values()))
    if groups <= len(apart) / 2:
        console.note(
            f"{len(apart)} questions are about {groups} records, and count as independent: "
            "differences look surer than they are. --groups records counts a record's once."
        )


def _drawn(table: Report, path: str) -> Path:
    """The picture of the comparisons by the first metric."""
    from cormorant.evaluate.reporting import interval_plot, scatter_plot

    found = table.comparisons[table.metrics[0]]
    return scatter_plot(found[0], path) if len(found) == 1 else interval_plot(found, path)


def _strange(run: Run, golden: Golden, view: Door) -> str | None:
    """That the judgements name nothing that was returned, and by what to judge if that is seen."""
    named = {doc for grades in golden.qrels.values() for doc in grades}
    returned = dict.fromkeys(doc for query in run.rankings for doc in run.ids(query))
    if not returned or not named.isdisjoint(returned):
        return None
    says = (
        f"No document that was returned is judged for any query: the judgements name documents "
        f"such as {next(iter(named))!r}, and the store answers with such as "
        f"{next(iter(returned))!r}."
    )
    if golden.by is None:
        field = field_among(view.get(list(returned)[:100]), named)
        if field is not None:
            return f"{says} They are the records' {field}: judge with --by {field}."
    return f"{says} Do they belong together?"


def _warn(judged: list[Evaluation], args: Namespace, settings: Settings, console: Console) -> None:
    """Say what makes figures look better or worse than the systems are."""
    from cormorant.evaluate import parse_metric

    for each in judged:
        if each.failed:
            query = each.failed[0]
            console.error(
                f"{each.run.name}: {len(each.failed)} of {len(each.queries)} queries failed and "
                f"count as no answer; the first, {query!r}, by: {each.run.failed[query]}"
            )
        if each.missing:
            console.warn(
                f"{each.run.name}: {len(each.missing)} of {len(each.queries)} judged queries are "
                f"not in the run and count as no answer, such as {each.missing[0]!r}."
            )
        for sentence in dict.fromkeys(s for many in each.run.degraded.values() for s in many):
            console.warn(f"{each.run.name}: {sentence}")
    if not args.runs:
        k = settings.get("top_k")
        deep = [m for m in judged[0].metrics if (parse_metric(m).k or k) > k]
        if deep:
            console.warn(
                f"{', '.join(deep)}: more places count than the {k} hits that were asked for; "
                "ask for more with -k."
            )


VERB = Verb(
    name="eval",
    says="say how good a store's answers, or saved runs, are",
    tells=(
        "Asks the store every judged query, as search would, and prints each metric's mean; with "
        "a baseline, whether the difference is significant. Exits 1 if a gate fails or a query "
        "does; a gate that cannot be asked exits 2, never 0."
    ),
    arguments=_arguments,
    run=_run,
    fields=FIELDS,
)
