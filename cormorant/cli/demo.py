"""What does it look like when real questions are answered?"""

from __future__ import annotations

import os
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cormorant.cli.demo_screen import Screen
from cormorant.cli.shape import hit_fields
from cormorant.cli.verb import Verb, add_json, add_settings, folder
from cormorant.errors import UsageError
from cormorant.model import Query

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.embedding import Choice
    from cormorant.cli.settings import Settings
    from cormorant.demo import Question
    from cormorant.model import Mode
    from cormorant.store import Store

__all__ = ["VERB"]

_MARK = "made-by-cormorant-demo"
_SHOWN = 3


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "store",
        nargs="?",
        type=folder,
        metavar="KB",
        help="keep the store in this new folder (default: cormorant/demo in the cache folder, "
        "made anew each time)",
    )
    parser.add_argument(
        "--questions",
        type=int,
        default=0,
        metavar="N",
        help="judge this many questions in each language, evenly spread (default: all 1,190)",
    )
    add_settings(parser, "embedder")
    add_json(parser)


def _run(args: Namespace, settings: Settings, console: Console) -> int:
    from cormorant.store import Store

    if args.questions < 0:
        raise UsageError(f"--questions must be at least 1, or 0 for all; got {args.questions}.")
    with Store.open(_place(args.store)) as store:
        show = Screen(console, silent=args.json)
        choice, built = _build(store, settings, console)
        show.built(built)
        answers = [_answer(store, choice, question, show) for question in _questions()]
        scores = _judge(store, choice, args.questions, console)
        show.judged(scores)
        path = str(store.path)
    if args.json:
        console.json({"store": path, **built, "answers": answers, "ndcg_at_10": scores})
    else:
        command = "cormorant" if shutil.which("cormorant") else sys.argv[0]
        console.print(f"Ask it yourself: {command} search {path} 'your question'")
    return 0


def _place(asked: str | None) -> Path:
    """Where the store goes; an earlier demonstration's is removed, anything else never."""
    if asked is not None:
        place = Path(asked)
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise UsageError(f"{asked} exists and is not an empty folder. Name a new one.")
        return place
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    own = Path(cache) / "cormorant" / "demo"
    if (own / _MARK).exists():
        shutil.rmtree(own)
    elif own.exists() and any(own.iterdir()):
        raise UsageError(f"{own} holds something else. Name a folder: cormorant demo KB")
    own.mkdir(parents=True, exist_ok=True)
    (own / _MARK).touch()
    return own / "kb"


def _build(store: Store, settings: Settings, console: Console) -> tuple[Choice, dict[str, Any]]:
    from cormorant import data
    from cormorant.cli.embedding import for_adding
    from cormorant.demo import fill

    started = time.process_time()
    choice = for_adding(store, settings.get("embedder"), trusted=settings.trusted("embedder"))
    for sentence in choice.degraded:
        console.warn(sentence)
    with console.progress("paragraphs stored:") as progress:
        for count in fill(store, choice.embedded):
            progress.advance(count)
    return choice, {
        "corpus": data.attribution(),
        "records": store.count(),
        "embedder": choice.spec,
        "dim": store.dim,
        "build_cpu_seconds": time.process_time() - started,
        "degraded": list(choice.degraded),
    }


def _questions() -> tuple[Question, ...]:
    from cormorant.demo import QUESTIONS

    return QUESTIONS


def _answer(store: Store, choice: Choice, question: Question, show: Screen) -> dict[str, Any]:
    from cormorant.demo import wanted

    query = Query(
        text=question.text,
        vector=choice.embedded_query(question.text),
        filter=dict(question.filter) or None,
        top_k=_SHOWN,
        explain=True,
    )
    result = store.search(query)
    right = wanted(question)
    show.answered(question, result.hits, right, compares=choice.embedder is not None)
    return {
        "question": question.text,
        "shows": question.shows,
        "filter": dict(question.filter),
        "hits": [{**hit_fields(hit), "judged_relevant": hit.id in right} for hit in result.hits],
    }


def _judge(store: Store, choice: Choice, count: int, console: Console) -> list[dict[str, Any]]:
    from cormorant.demo import TASKS, judge, sample

    ids = sample(count)
    modes: tuple[Mode, ...] = ("text", "vector", "hybrid") if choice.embedder else ("text",)
    scores: list[dict[str, Any]] = []
    with console.progress("questions judged:", len(ids) * len(TASKS)) as progress:
        for said in judge(store, choice.embedded_query, ids, modes):
            if isinstance(said, int):
                progress.advance(said)
            else:
                task, means = said
                by_mode = {str(mode): mean for mode, mean in means.items()}
                scores.append({"task": task.name, "questions": len(ids), **by_mode})
    return scores


VERB = Verb(
    name="demo",
    says="answer questions from a bilingual corpus, and judge the answers",
    tells=(
        "Builds a store from the 240 English and 240 Chinese paragraphs that the package ships "
        "(XQuAD), asks a few questions, shows each hit with its vector rank, its BM25 rank and "
        "matched terms and its fused score, and prints nDCG@10 of each mode on judged questions. "
        "Without an embedder it shows text search alone, and says so."
    ),
    arguments=_arguments,
    run=_run,
    fields={
        "store": "the folder the store is in",
        "corpus": "whose work the paragraphs are",
        "records": "paragraphs stored",
        "embedder": "the embedder's specification; null for text only",
        "dim": "numbers per vector; null for text only",
        "build_cpu_seconds": "CPU time for embedding and storing",
        "degraded": "what was left out, a sentence each",
        "answers[].question": "a question that was asked",
        "answers[].shows": "what to look at",
        "answers[].filter": "which records could answer it",
        "answers[].hits": "as in search, each with judged_relevant",
        "ndcg_at_10[].task": "questions of one language, paragraphs of one",
        "ndcg_at_10[].questions": "how many were judged",
        "ndcg_at_10[].text": "mean nDCG@10 of text search",
        "ndcg_at_10[].vector": "of vector search; missing without an embedder",
        "ndcg_at_10[].hybrid": "of hybrid search; missing without an embedder",
    },
)
