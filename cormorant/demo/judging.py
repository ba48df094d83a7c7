"""How often does each mode find the paragraph a question was written for?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cormorant import data
from cormorant.demo.corpus import record_id
from cormorant.evaluate import mean_ndcg, parse_qrels
from cormorant.model import Mode, Query

if TYPE_CHECKING:
    from cormorant.store import Store

__all__ = ["TASKS", "EmbedQuery", "Task", "judge", "sample"]

EmbedQuery: TypeAlias = Callable[[str], Any]
"""A question's vector, or None where there is no embedder."""

PLACES = 10


@dataclass(frozen=True, slots=True)
class Task:
    """Questions of one language against paragraphs of one language."""

    name: str
    asked_in: str
    answered_in: str


TASKS = (
    Task("English questions, English paragraphs", "en", "en"),
    Task("Chinese questions, Chinese paragraphs", "zh", "zh"),
    Task("Chinese questions, English paragraphs", "zh", "en"),
)


def sample(count: int) -> list[str]:
    """Ids of ``count`` judged questions, evenly spread over the corpus; all of them for 0."""
    judged = list(parse_qrels(data.judgements(), name="qrels.tsv"))
    if not 0 < count < len(judged):
        return judged
    return [judged[i * len(judged) // count] for i in range(count)]


def judge(
    store: Store, embed: EmbedQuery, ids: list[str], modes: tuple[Mode, ...]
) -> Iterator[tuple[Task, dict[Mode, float]] | int]:
    """Ask each question in each mode.

    Args:
        store: A store filled by :func:`cormorant.demo.corpus.fill`.
        embed: Makes a question's vector.
        ids: The questions to ask; each is judged in both languages.
        modes: What to compare.

    Yields:
        1 after each question; after the last one of a task, the task and mean nDCG@10 by mode.
    """
    judged = parse_qrels(data.judgements(), name="qrels.tsv")
    vectors: dict[tuple[str, str], Any] = {}
    for task in TASKS:
        texts = data.questions(task.asked_in)
        runs: dict[Mode, dict[str, list[str]]] = {mode: {} for mode in modes}
        for identity in ids:
            text = texts[identity]
            key = (task.asked_in, identity)
            if key not in vectors:
                vectors[key] = embed(text)
            query = Query(
                text=text,
                vector=vectors[key],
                filter={"language": task.answered_in},
                top_k=PLACES,
            )
            for mode in modes:
                hits = store.search(replace(query, mode=mode)).hits
                runs[mode][identity] = [hit.id for hit in hits]
            yield 1
        qrels = {
            identity: {
                record_id(task.answered_in, document): grade
                for document, grade in judged[identity].items()
            }
            for identity in ids
        }
        yield task, {mode: mean_ndcg(runs[mode], qrels, PLACES) for mode in modes}
