"""Which settings are best for these questions?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cormorant.cli.asking import open_existing
from cormorant.cli.judged import (
    add_asking,
    add_groups,
    add_questions,
    add_split,
    groups_of,
    judged_queries,
)
from cormorant.cli.verb import Verb, add_settings, add_store, scoped
from cormorant.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Tuned
    from cormorant.evaluate.tuning.measuring import Progress

__all__ = ["VERB"]

_SHOWN: Final = 5
"""Configurations that are printed beside the chosen one."""


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    add_questions(parser, judged=True)
    parser.add_argument(
        "--space",
        metavar="FILE",
        help="what to try, as TOML (default: each leg alone and every share of them in steps of "
        ".05, under each fusion)",
    )
    parser.add_argument(
        "--metric", default="ndcg@10", metavar="NAME", help="what to maximise (default: ndcg@10)"
    )
    add_groups(parser)
    add_split(parser)
    parser.add_argument(
        "--folds",
        type=int,
        default=5,
        metavar="N",
        help="parts of the cross-validation on the others (default: 5)",
    )
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="keeps what is done until the tuning is finished (default: KB.tuning.jsonl)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with what an interrupted tuning did"
    )
    parser.add_argument(
        "--apply", action="store_true", help="set the store to what is recommended, if anything"
    )
    add_settings(parser, "mode")
    add_asking(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.evaluate import Space, tune

    space = None if args.space is None else Space.read(args.space)
    if args.apply and args.scope is not None:
        raise UsageError(
            "--apply sets how the whole store ranks, so it does not go with --scope. Tune without "
            "one, or leave --apply out."
        )
    journal = Path(args.journal or f"{args.store.rstrip('/')}.tuning.jsonl")
    with open_existing(
        args.store, read_only=not args.apply, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        view = scoped(store, args)
        asked = judged_queries(store, view, args, settings, console)
        for sentence in asked.degraded:
            console.warn(sentence)
        with _progress(console) as progress:
            tuned = tune(
                view,
                asked.queries,
                asked.qrels,
                space=space,
                metric=args.metric,
                by=asked.by,
                groups=groups_of(args, asked.qrels, view, asked.by),
                holdout=args.holdout,
                folds=args.folds,
                seed=args.seed,
                journal=journal,
                resume=args.resume,
                progress=progress,
            )
        applied = tuned.apply(store) if args.apply else False
    journal.unlink(missing_ok=True)
    if args.json:
        console.json({**tuned.evidence, "applied": applied})
    else:
        for line in _lines(tuned):
            console.print(line)
    for note in tuned.notes:
        console.note(note)
    if applied:
        console.note(f"{args.store} now ranks so where a query does not say otherwise.")
    elif tuned.recommended is not None and not args.apply:
        console.note("to set the store to it: the same command with --apply")
    return 0


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    """A counter that learns from its first call how much there is to do."""
    with ExitStack() as stack:
        line = None
        before = 0

        def tell(done: int, of: int) -> None:
            nonlocal line, before
            if line is None:
                line = stack.enter_context(console.progress("trying settings on question", of))
            line.advance(done - before)
            before = done

        yield tell


def _lines(tuned: Tuned) -> Iterator[str]:
    from cormorant.width import table

    training = tuned.training
    held = {name: each.means[tuned.metric] for name, each in tuned.held_out.items()}
    rows = [(tuned.metric, "chosen by", "judged by")]
    queries = len(next(iter(tuned.held_out.values())).queries)
    rows.append(("questions", f"{training.queries:,}", f"{queries:,}"))
    by_name = {_name(point): mean for point, mean in training.means.items()}
    for name, mean in held.items():
        mark = " *" if tuned.chosen is not None and name == tuned.chosen.says else ""
        told = by_name.get(name)
        rows.append((name + mark, "" if told is None else f"{told:.4f}", f"{mean:.4f}"))
    top = sorted(training.means, key=lambda point: -training.means[point])[:_SHOWN]
    rows.extend(
        (_name(point), f"{training.means[point]:.4f}", "")
        for point in top
        if _name(point) not in held
    )
    yield from table(rows, right=(1, 2))
    yield ""
    yield (
        f"{training.tried} configurations, {training.within} of them within noise of the best; "
        f"cross-validated gain of choosing {training.cross_validated_gain:+.4f}."
    )
    yield tuned.says


def _name(point: Any) -> str:
    from cormorant.evaluate.tuning import AS_SET

    return AS_SET if point is None else str(point.says)


_FIELDS: Final[Mapping[str, str]] = {
    "by": "tune",
    "metric": "what was maximised",
    "space": "what was tried: the values of each setting",
    "holdout": "share of the questions that judged the choice",
    "folds": "parts of the cross-validation",
    "seed": "of the split",
    "chosen": "the simplest configuration within noise of the best; null for the store as it is "
    "set",
    "recommended": "what to use; null to leave the store as it is set",
    "says": "the verdict",
    "training": "what the choice was made by: questions, configurations tried and within noise, "
    "mean of the store as it is set, of the chosen and of the best, the cross-validated gain, and "
    "how many folds chose the same",
    "held_out": "by configuration: its mean on the questions that had no part in the choice",
    "comparison": "of the choice with the store as it is set, there: difference, interval (null: "
    "no limit), p and verdict; missing if nothing else was chosen",
    "beside_legs": "the same of what is recommended with each leg alone",
    "notes": "what to know before believing it",
    "applied": "whether the store was set to what is recommended",
}

VERB = Verb(
    name="tune",
    says="find the settings that answer judged questions best",
    tells=(
        "Tries settings on some of the judged questions, chooses the simplest that is as good as "
        "the best within noise, and compares it with the store as it is set on the others. "
        "Recommends a change only if it is significantly better there. That nothing helps is an "
        "answer too, and exits 0."
    ),
    arguments=_arguments,
    run=_run,
    fields=_FIELDS,
)
