"""Runs of every public class of the toolkit: each stage is a child run, and no config is lost."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig, RunnableLambda

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import found, ids
from toolkitlab import COMPRESSORS, QUESTION, RETRIEVERS, Parts, make

NAMES = [*RETRIEVERS, *COMPRESSORS]


class Recorder(BaseCallbackHandler):
    """Every run that began: its name, parent, tags and metadata; and those that ended."""

    def __init__(self) -> None:
        self.runs: dict[uuid.UUID, dict[str, Any]] = {}
        self.ended: set[uuid.UUID] = set()

    def _began(self, run_id: Any, parent_run_id: Any, kwargs: dict[str, Any]) -> None:
        self.runs[run_id] = {
            "name": kwargs.get("name"),
            "parent": parent_run_id,
            "tags": kwargs.get("tags") or [],
            "metadata": kwargs.get("metadata") or {},
        }

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self._began(run_id, parent_run_id, kwargs)

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self._began(run_id, parent_run_id, kwargs)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self._began(run_id, parent_run_id, {**kwargs, "name": "model"})

    def on_chain_end(self, outputs, *, run_id, **kwargs):
        self.ended.add(run_id)

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.ended.add(run_id)

    def on_llm_end(self, response, *, run_id, **kwargs):
        self.ended.add(run_id)


class Model(FakeListChatModel):
    """Its runs are called model."""

    name: str | None = "model"


class Heard:
    """Parts whose use is known, and what the children heard of the config."""

    def __init__(self) -> None:
        self.expected: set[str] = set()
        self.configurable: list[Any] = []
        self.parts = Parts(child=self._child, llm=self._llm)

    def _child(self, retriever: Any) -> Any:
        self.expected.add("child")

        def child(query: str, config: RunnableConfig, **kwargs: Any) -> Any:
            self.configurable.append(config["configurable"].get("thing"))
            return retriever.invoke(query, config, **kwargs)

        return RunnableLambda(child)

    def _llm(self, reply: str) -> Any:
        self.expected.add("model")
        return Model(responses=[reply])


def question(name: str) -> Any:
    if name in RETRIEVERS:
        return QUESTION
    return {"query": QUESTION, "documents": found("a fish", "fish", "boats")}


def config(recorder: Recorder, run_id: uuid.UUID) -> RunnableConfig:
    return {
        "callbacks": [recorder],
        "run_id": run_id,
        "tags": ["mine"],
        "metadata": {"user": 7},
        "configurable": {"thing": "there"},
        "run_name": "outer",
    }


def check(recorder: Recorder, run_id: uuid.UUID, heard: Heard) -> None:
    root = recorder.runs[run_id]
    assert root["parent"] is None
    assert root["name"] == "outer"
    orphans = [r["name"] for id, r in recorder.runs.items() if r["parent"] is None and id != run_id]
    assert not orphans, "runs that are nobody's children"
    assert all(run["parent"] in recorder.runs for id, run in recorder.runs.items() if id != run_id)
    for run in recorder.runs.values():
        assert "mine" in run["tags"], run
        assert run["metadata"].get("user") == 7, run
    assert heard.expected <= {run["name"] for run in recorder.runs.values()}
    assert recorder.ended == set(recorder.runs), "every run that began has ended"
    assert set(heard.configurable) <= {"there"}
    assert bool(heard.configurable) == ("child" in heard.expected)


@pytest.fixture
def heard():
    made = Heard()
    yield made
    made.parts.close()


@pytest.mark.parametrize("name", NAMES)
def test_tags_metadata_run_id_and_configurables_reach_every_stage(name, heard):
    made, recorder, run_id = make(name, heard.parts), Recorder(), uuid.uuid4()
    made.invoke(question(name), config(recorder, run_id))
    check(recorder, run_id, heard)


@pytest.mark.parametrize("name", NAMES)
async def test_and_without_holding_the_loop(name, heard):
    made, recorder, run_id = make(name, heard.parts), Recorder(), uuid.uuid4()
    await made.ainvoke(question(name), config(recorder, run_id))
    check(recorder, run_id, heard)


@pytest.mark.parametrize("name", NAMES)
async def test_the_events_show_every_stage_under_its_parent(name, heard):
    made, run_id = make(name, heard.parts), uuid.uuid4()
    settings = config(Recorder(), run_id)
    events = [event async for event in made.astream_events(question(name), settings, version="v2")]
    assert events[0]["run_id"] == events[-1]["run_id"] == str(run_id)
    kind = "retriever" if name in RETRIEVERS else "chain"
    assert [events[0]["event"], events[-1]["event"]] == [f"on_{kind}_start", f"on_{kind}_end"]
    begun = {event["run_id"] for event in events if event["event"].endswith("_start")}
    ended = {event["run_id"] for event in events if event["event"].endswith("_end")}
    assert begun == ended
    assert heard.expected <= {event["name"] for event in events}
    for event in events:
        assert event["run_id"] == str(run_id) or event["parent_ids"][0] == str(run_id), event


@pytest.mark.parametrize("name", NAMES)
async def test_every_way_to_call_it_gives_the_same(name, heard):
    made, asked = make(name, heard.parts), question(name)
    expected = ids(made.invoke(asked))
    assert expected, "the question must find something for the test to tell"
    assert ids(await made.ainvoke(asked)) == expected
    assert [ids(one) for one in made.batch([asked, asked])] == [expected] * 2
    assert [ids(one) for one in await made.abatch([asked, asked])] == [expected] * 2
    assert [ids(one) for one in made.stream(asked)] == [expected]
    assert [ids(one) async for one in made.astream(asked)] == [expected]
    assert ids(made.with_config(tags=["x"]).invoke(asked)) == expected
    assert ids(made.with_retry().invoke(asked)) == expected
    assert ids(await made.with_fallbacks([made]).ainvoke(asked)) == expected
    chain = RunnableLambda(lambda given: given) | made
    assert ids(chain.invoke(asked)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_inside_a_function_its_run_is_a_child_without_being_told(name, heard):
    made, recorder, run_id = make(name, heard.parts), Recorder(), uuid.uuid4()
    outer = RunnableLambda(lambda given: list(made.invoke(given)))
    outer.invoke(question(name), config(recorder, run_id))
    inner = [run for run in recorder.runs.values() if run["name"] == made.get_name()]
    assert [run["parent"] for run in inner] == [run_id]
    check(recorder, run_id, heard)
