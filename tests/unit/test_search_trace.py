"""Spans are silent until someone listens, and then tell what ran inside what."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from cormorant import trace
from cormorant.model import Query, Record
from cormorant.search import run

sys.path.insert(0, str(Path(__file__).parents[1]))
from searchlab import MemorySnapshot


def test_nothing_is_made_while_nobody_listens():
    first, second = trace.span("a"), trace.span("b", text="secret")
    assert first is second
    with first as silent:
        silent.count({"rows": 1})


def test_a_span_knows_its_parent_its_time_and_its_work():
    heard = []
    with trace.listen(heard.append):
        with trace.span("outer", k=3) as outer, trace.span("inner") as inner:
            inner.count({"rows": 2})
            inner.count({"rows": 3, "postings": 1})
        with trace.span("next"):
            pass
    assert [span.name for span in heard] == ["inner", "outer", "next"]
    assert inner.parent is outer
    assert outer.parent is None
    assert heard[2].parent is None
    assert inner.counters == {"rows": 5, "postings": 1}
    assert outer.attributes == {"k": 3}
    assert 0 < inner.seconds <= outer.seconds
    assert trace.span("after") is trace.span("after")


def test_an_error_ends_the_span_and_goes_on():
    heard = []
    with trace.listen(heard.append), pytest.raises(KeyError), trace.span("bad"):
        raise KeyError
    assert heard[0].error == "KeyError"


def test_listeners_come_and_go_in_any_order():
    one, two = [], []
    first, second = trace.listen(one.append), trace.listen(two.append)
    first.__enter__()
    second.__enter__()
    with trace.span("both"):
        pass
    first.__exit__(None, None, None)
    with trace.span("second"):
        pass
    second.__exit__(None, None, None)
    with trace.span("none"):
        pass
    assert [span.name for span in one] == ["both"]
    assert [span.name for span in two] == ["both", "second"]


async def test_tasks_do_not_mistake_each_others_spans_for_parents():
    heard = []

    async def work(name):
        with trace.span(name):
            await asyncio.sleep(0)
            with trace.span(name + ".part"):
                await asyncio.sleep(0)

    with trace.listen(heard.append):
        await asyncio.gather(work("a"), work("b"))
    parents = {span.name: span.parent.name if span.parent else None for span in heard}
    assert parents == {"a": None, "b": None, "a.part": "a", "b.part": "b"}


def test_a_search_is_recorded_stage_by_stage():
    snapshot = MemorySnapshot([Record(id="a", text="fish", vector=[1.0, 0.0])])
    heard = []
    with trace.to_function(heard.extend):
        result = run(snapshot, Query(text="fish", vector=[1.0, 0.0]))
    whole, *stages = heard
    assert whole["name"] == "search"
    assert whole["attributes"]["mode"] == "hybrid"
    assert whole["hits"] == [{"id": "a", "rank": 1, "score": result.hits[0].score}]
    assert "content" not in whole
    assert [each["name"] for each in stages] == [f"search.{stage.name}" for stage in result.stages]
    assert [each["counters"] for each in stages] == [dict(s.counters) for s in result.stages]
    assert all(each["parent"] == whole["id"] for each in stages)
