"""Taking turns against its description.

langchain-classic documents MergerRetriever's order as: every retriever's first document, in the
order of the retrievers, then every one's second, and so on; a retriever that has no more is
passed over. Duplicates are ours to leave out: a document stays where it comes first.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import Fixed, doc

from cormorant.langchain.retrievers import MergerRetriever


def by_turns(lists: list[list[str]]) -> list[str]:
    """Sort all (place in its list, number of the list): turns, then retrievers."""
    places = [
        (place, number, id) for number, ids in enumerate(lists) for place, id in enumerate(ids)
    ]
    return [id for _, _, id in sorted(places, key=lambda each: each[:2])]


def drawn(seed: int) -> list[list[str]]:
    chance = random.Random(seed)
    ids = [f"d{number}" for number in range(20)]
    return [chance.sample(ids, chance.randint(0, 12)) for _ in range(chance.randint(1, 5))]


@pytest.mark.parametrize("seed", range(30))
async def test_the_order_is_that_of_turns(seed: int) -> None:
    lists = drawn(seed)
    legs = [Fixed(docs=[doc(id, id) for id in ids]) for ids in lists]
    wanted = by_turns(lists)
    merger = MergerRetriever(retrievers=legs, deduplicate=False)
    assert [d.id for d in merger.invoke("q")] == wanted
    assert [d.id for d in await merger.ainvoke("q")] == wanted
    once = MergerRetriever(retrievers=legs)
    assert [d.id for d in once.invoke("q")] == list(dict.fromkeys(wanted))
    assert [d.id for d in once.invoke("q", with_scores=True)] == list(dict.fromkeys(wanted))


def test_as_langchain_classics_own_example_has_it() -> None:
    legs = [Fixed(docs=[doc(t) for t in texts]) for texts in (["a1", "a2", "a3"], ["b1"], ["c1"])]
    merged = MergerRetriever(retrievers=legs).invoke("q")
    assert [d.page_content for d in merged] == ["a1", "b1", "c1", "a2", "a3"]
