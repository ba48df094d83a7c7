"""What probability of being relevant does a hit have?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

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
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.evaluate import Calibrated

__all__ = ["VERB"]


def _arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    add_questions(parser, judged=True)
    parser.add_argument(
        "--relevant",
        type=float,
        default=1.0,
        metavar="GRADE",
        help="lowest grade that counts as relevant (default: 1)",
    )
    add_groups(parser)
    add_split(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="measure, and leave the store as it is"
    )
    parser.add_argument(
        "--drop", action="store_true", help="drop the calibration; relevances are the indexes' own"
    )
    add_settings(parser, "mode")
    add_asking(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.evaluate import calibrate

    narrowed = args.scope is not None or args.filter is not None
    if args.drop and (args.dry_run or args.queries or args.qrels or args.beir or narrowed):
        raise UsageError("--drop drops the calibration; it goes with no other work. Leave one out.")
    if narrowed and not args.dry_run:
        raise UsageError(
            "The whole store is set to a calibration, so --scope and --filter measure alone: add "
            "--dry-run, or leave them out."
        )
    with open_existing(
        args.store, read_only=args.dry_run, lock_timeout_s=settings.get("lock_timeout")
    ) as store:
        if args.drop:
            had = store.calibration is not None
            store.set_calibration(None)
            if args.json:
                console.json({"calibrated": False, "modes": {}, "notes": []})
            console.note("dropped; relevances are the indexes' own." if had else "there was none.")
            return 0
        view = scoped(store, args)
        asked = judged_queries(store, view, args, settings, console)
        for sentence in asked.degraded:
            console.warn(sentence)
        done = calibrate(
            view,
            asked.queries,
            asked.qrels,
            by=asked.by,
            groups=groups_of(args, asked.qrels, view, asked.by),
            relevant=args.relevant,
            holdout=args.holdout,
            seed=args.seed,
        )
        if not args.dry_run:
            done.apply(store)
    if args.json:
        console.json(
            {
                "calibrated": not args.dry_run,
                "modes": {mode: each.to_json() for mode, each in done.quality.items()},
                "notes": list(done.notes),
            }
        )
    else:
        for line in _lines(done):
            console.print(line)
    for note in done.notes:
        console.note(note)
    if args.dry_run:
        console.note("nothing was changed; without --dry-run the store is set to this.")
    else:
        console.note(
            f"relevances of {args.store} are probabilities now, and so are --min-score and "
            "score_threshold. To go back: cormorant calibrate KB --drop"
        )
    return 0


def _lines(done: Calibrated) -> Iterator[str]:
    from cormorant.width import table

    rows = [("held out", "questions", "Brier", "without", ".8 keeps", "precision", "recall")]
    for mode, each in done.quality.items():
        at = each.at(0.8)
        rows.append(
            (
                mode,
                f"{each.questions:,}",
                f"{each.brier:.4f}",
                f"{each.brier_without:.4f}",
                f"{at.kept:.2f}",
                _share(at.precision),
                _share(at.recall),
            )
        )
    yield from table(rows, right=range(1, 7))
    for mode, each in done.quality.items():
        yield ""
        bins = [(f"{mode}: said", "candidates", "mean said", "found relevant")]
        bins.extend(
            (f"{b.low:g} to {b.high:g}", f"{b.count:,}", f"{b.said:.3f}", f"{b.found:.3f}")
            for b in each.bins
        )
        yield from table(bins, right=(1, 2, 3))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


_FIELDS: Final[Mapping[str, str]] = {
    "calibrated": "whether the store's relevances are probabilities now",
    "modes": "by mode: questions, candidates, brier, brier_without (every candidate given the "
    "same), skill, bins (what was said beside what was found), thresholds (what each keeps, with "
    "precision and recall), all on the held-out questions",
    "notes": "what to know before relying on it",
}

VERB = Verb(
    name="calibrate",
    says="make thresholds mean probabilities, by judged questions",
    tells=(
        "Fits, for each mode, from how far a candidate stands above the collection's mean to how "
        "probable it is that it is relevant, and keeps that in the store: relevances are then "
        "probabilities, and a threshold of .8 means the same after a change of the embedding "
        "model and another calibration. Prints how good the probabilities are on questions they "
        "were not fitted to."
    ),
    arguments=_arguments,
    run=_run,
    fields=_FIELDS,
)
