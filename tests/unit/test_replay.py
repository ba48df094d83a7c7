"""Is what a model answered replayed as it was, and nothing else?"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel, FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from cormorant.errors import CorruptionError, FormatError, StoreError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.recording import Recording
from cormorant.langchain.replay import NotRecorded, RecordedLLM, replaying
from cormorant.langchain.retrievers import BM25Retriever, HyDERetriever, MultiQueryRetriever


class Counting(BaseChatModel):
    """Answers with how often it was asked; calls a tool where it has some."""

    model_name: str = "counting-1"
    asked: list[Any] = []  # noqa: RUF012 - pydantic copies it
    tools: list[Any] = []  # noqa: RUF012 - the same

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(mine=[tool["function"]["name"] for tool in tools])

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.asked.append((messages, stop, kwargs))
        message = AIMessage(
            f"answer {len(self.asked)}\nof  two lines ",
            usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        )
        if "mine" in kwargs:
            call = {"name": kwargs["mine"][0], "args": {"n": len(self.asked)}, "id": "c1"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.jsonl"


def said(message: Any) -> dict[str, Any]:
    return {k: v for k, v in message.model_dump().items() if k != "id"}


class TestReplaying:
    def test_the_answer_comes_back_whole(self, path: Path) -> None:
        model = Counting()
        recorded = replaying(model, path, "record").invoke("a question")
        assert recorded.content == "answer 1\nof  two lines "
        replayed = replaying(None, path).invoke("a question")
        assert said(replayed) == said(recorded)
        assert replayed.usage_metadata == recorded.usage_metadata
        assert len(model.asked) == 1

    def test_the_model_is_not_asked_when_replaying(self, path: Path) -> None:
        replaying(Counting(), path, "record").invoke("q")
        model = Counting()
        assert replaying(model, path, "replay").invoke("q").text.startswith("answer 1")
        assert model.asked == []

    async def test_every_way_of_asking_gives_the_same(self, path: Path) -> None:
        replaying(Counting(), path, "record").invoke("q")
        model = replaying(None, path)
        whole = model.invoke("q")
        assert said(await model.ainvoke("q")) == said(whole)
        assert [said(each) for each in model.batch(["q", "q"])] == [said(whole)] * 2
        pieces = list(model.stream("q"))
        apieces = [piece async for piece in model.astream("q")]
        assert len(pieces) > 3
        for each in (pieces, apieces):
            assert "".join(piece.text for piece in each) == whole.content
            assert sum(each[1:], each[0]).usage_metadata == whole.usage_metadata

    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "abatch"])
    async def test_every_way_of_recording_can_be_replayed(self, path: Path, way: str) -> None:
        model = replaying(FakeListChatModel(responses=["two words"]), path, "record")
        if way in {"ainvoke", "abatch"}:
            await getattr(model, way)(["q"] if way == "abatch" else "q")
        elif way == "astream":
            assert len([piece async for piece in model.astream("q")]) > 1
        elif way == "stream":
            assert len(list(model.stream("q"))) > 1
        else:
            getattr(model, way)(["q"] if way == "batch" else "q")
        assert replaying(None, path).invoke("q").content == "two words"

    @pytest.mark.parametrize(
        "text", ["", " ", "a", " a  b\n", "\n\n", "鸬鹚 潜水", "\ud800", "a\u2028b"]
    )
    def test_any_text(self, path: Path, text: str) -> None:
        replaying(FakeListChatModel(responses=[text]), path, "record").invoke(text)
        assert replaying(None, path).invoke(text).content == text
        assert "".join(p.text for p in replaying(None, path).stream(text)) == text

    def test_a_text_model_is_recorded_too(self, path: Path) -> None:
        model = replaying(FakeListLLM(responses=["text"]), path, "record")
        assert (model | StrOutputParser()).invoke("q") == "text"
        assert replaying(None, path).invoke("q").content == "text"

    @pytest.mark.parametrize("way", ["ainvoke", "stream", "astream"])
    async def test_an_unknown_prompt_is_refused(self, path: Path, way: str) -> None:
        replaying(Counting(), path, "record").invoke("known")
        model = replaying(None, path)

        async def ask() -> None:
            if way == "ainvoke":
                await model.ainvoke("unknown")
            elif way == "stream":
                list(model.stream("unknown"))
            else:
                [piece async for piece in model.astream("unknown")]

        with pytest.raises(NotRecorded, match=r"(?s)“unknown”.*mode='record'"):
            await ask()
        with pytest.raises(NotRecorded, match=r"1 known"):
            model.invoke("unknown")

    @pytest.mark.parametrize(
        "other",
        [
            lambda m: m.invoke("Q"),
            lambda m: m.invoke("q", stop=["."]),
            lambda m: m.invoke("q", temperature=1),
            lambda m: m.invoke([SystemMessage("q")]),
            lambda m: m.invoke([SystemMessage("s"), HumanMessage("q")]),
            lambda m: m.invoke([HumanMessage("q", name="me")]),
            lambda m: m.bind_tools([{"title": "t", "description": "d"}]).invoke("q"),
        ],
    )
    def test_what_makes_another_prompt(self, path: Path, other: Any) -> None:
        replaying(Counting(), path, "record").invoke("q")
        with pytest.raises(NotRecorded):
            other(replaying(None, path))
        assert replaying(None, path).invoke([HumanMessage("q", id="its own")])

    def test_a_prompt_asked_again_gets_its_answers_in_turn(self, path: Path) -> None:
        model = replaying(Counting(), path, "record")
        given = [model.invoke("q").content for _ in range(3)]
        assert len(set(given)) == 3
        again = replaying(None, path)
        assert [again.invoke("q").content for _ in range(5)] == [*given, *given[:2]]

    def test_a_later_session_replaces_what_was_recorded(self, path: Path) -> None:
        replaying(FakeListChatModel(responses=["old"]), path, "record").batch(["q", "q"])
        replaying(FakeListChatModel(responses=["new"]), path, "record").invoke("q")
        model = replaying(None, path)
        assert [model.invoke("q").content for _ in range(2)] == ["new", "new"]

    def test_tools_and_structured_answers(self, path: Path) -> None:
        class Verdict(BaseModel):
            """A verdict."""

            n: int

        structured = replaying(Counting(), path, "record").with_structured_output(Verdict)
        assert structured.invoke("q") == Verdict(n=1)
        replayed = replaying(None, path).with_structured_output(Verdict)
        assert replayed.invoke("q") == Verdict(n=1)
        assert list(replayed.stream("q"))[-1] == Verdict(n=1)

    def test_stop_words_and_arguments_reach_the_model(self, path: Path) -> None:
        model = Counting()
        replaying(model, path, "record").invoke("q", stop=["."], temperature=1)
        assert model.asked[0][1:] == (["."], {"temperature": 1})


class TestAuto:
    def test_it_asks_once(self, path: Path) -> None:
        model = Counting()
        auto = replaying(model, path, "auto")
        assert {auto.invoke("q").content for _ in range(3)} == {"answer 1\nof  two lines "}
        assert replaying(model, path, "auto").invoke("q").text.startswith("answer 1")
        assert len(model.asked) == 1
        assert auto.invoke("other").text.startswith("answer 2")

    def test_another_model_is_asked_anew(self, path: Path) -> None:
        replaying(Counting(), path, "auto").invoke("q")
        other = Counting(model_name="counting-2")
        assert replaying(other, path, "auto").invoke("q")
        assert len(other.asked) == 1
        replaying(other, path, "auto").invoke("q")
        assert len(other.asked) == 1

    async def test_of_many_at_once_the_first_recorded_is_everyones(self, path: Path) -> None:
        auto = replaying(Counting(), path, "auto")
        answers = await asyncio.gather(*(auto.ainvoke("q") for _ in range(8)))
        assert len({answer.content for answer in answers}) == 1
        assert len(Recording(path).answers(next(iter(Recording(path)._known)))) == 1


class TestTheFile:
    def test_it_reads_as_json_lines(self, path: Path) -> None:
        replaying(FakeListChatModel(responses=["潜水"]), path, "record").invoke("问")
        header, line = path.read_text(encoding="utf-8").splitlines()
        assert json.loads(header) == {"format": "cormorant-recording", "version": 1}
        entry = json.loads(line)
        assert entry["prompt"] == {"messages": [{"type": "human", "content": "问"}]}
        assert entry["answer"] == {"content": "潜水"}
        assert entry["model"] == "FakeListChatModel"
        assert "潜水" in line

    def test_a_line_a_process_was_killed_in_is_no_line(self, path: Path) -> None:
        replaying(Counting(), path, "record").invoke("q")
        whole = path.read_bytes()
        path.write_bytes(whole + whole.splitlines()[1][:40])
        auto = replaying(Counting(), path, "auto")
        assert auto.invoke("q").text.startswith("answer 1")
        auto.invoke("next")
        assert path.read_bytes().startswith(whole)
        assert len(Recording(path)) == 2

    def test_a_torn_header_is_begun_again(self, path: Path) -> None:
        path.write_bytes(b'{"format": "cormor')
        replaying(Counting(), path, "record").invoke("q")
        assert replaying(None, path).invoke("q")

    @pytest.mark.parametrize("first", [b"[]", b"{}", b"a,b", b'{"format": "else", "version": 1}'])
    def test_something_else_is_refused(self, path: Path, first: bytes) -> None:
        path.write_bytes(first + b"\n")
        with pytest.raises(FormatError, match="is no recording"):
            replaying(None, path)
        assert path.read_bytes() == first + b"\n"

    def test_a_later_version_is_refused(self, path: Path) -> None:
        path.write_bytes(b'{"format": "cormorant-recording", "version": 2}\n')
        with pytest.raises(FormatError, match="version 2"):
            replaying(None, path)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda line: line[:-5],
            lambda line: line.replace(b'"q"', b'"changed"'),
            lambda line: line.replace(b'"turn": 0', b'"turn": -1'),
            lambda line: b"7",
            lambda line: b"\xff\xfe",
        ],
    )
    def test_damage_names_its_line(self, path: Path, damage: Any) -> None:
        replaying(Counting(), path, "record").invoke("q")
        header, line = path.read_bytes().splitlines()
        assert damage(line) != line
        path.write_bytes(header + b"\n" + damage(line) + b"\n")
        with pytest.raises(CorruptionError, match="Line 2"):
            replaying(None, path)

    def test_a_file_that_was_cut_is_noticed(self, path: Path) -> None:
        model = replaying(Counting(), path, "record")
        model.invoke("q")
        path.write_bytes(b"")
        with pytest.raises(CorruptionError, match="shorter"):
            model.invoke("other")

    def test_a_write_that_fails_leaves_the_file_as_it_was(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = replaying(Counting(), path, "record")
        model.invoke("q")
        before, write = path.read_bytes(), os.write
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))
        with pytest.raises(StoreError, match="in part"):
            model.invoke("other")
        monkeypatch.undo()
        assert path.read_bytes() == before
        model.invoke("other")
        assert len(Recording(path)) == 2

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="cannot be written"):
            replaying(Counting(), tmp_path / "none" / "a.jsonl", "record").invoke("q")
        with pytest.raises(StoreError, match="cannot be read"):
            replaying(None, tmp_path)

    def test_what_another_recorded_meanwhile_is_seen(self, path: Path) -> None:
        reader = replaying(None, path)
        with pytest.raises(NotRecorded):
            reader.invoke("q")
        replaying(Counting(), path, "record").invoke("q")
        assert reader.invoke("q")

    def test_threads_and_processes_append_whole_lines(self, path: Path) -> None:
        program = (
            "import sys; from langchain_core.language_models import FakeListChatModel as F\n"
            "from cormorant.langchain.replay import replaying\n"
            "model = replaying(F(responses=['x' * 5000]), sys.argv[1], 'record')\n"
            "[model.invoke(f'{sys.argv[2]} {i}') for i in range(20)]\n"
        )
        runs = [
            subprocess.Popen([sys.executable, "-c", program, str(path), name])
            for name in ("a", "b")
        ]
        model = replaying(Counting(), path, "record")
        threads = [threading.Thread(target=model.invoke, args=(f"c {i}",)) for i in range(20)]
        for thread in threads:
            thread.start()
        for waited in (*threads,):
            waited.join()
        assert [run.wait() for run in runs] == [0, 0]
        assert len(Recording(path)) == 60


class TestRefusals:
    @pytest.mark.parametrize("mode", ["record", "auto"])
    def test_no_model_to_ask(self, path: Path, mode: Any) -> None:
        with pytest.raises(UsageError, match="needs an llm"):
            replaying(None, path, mode)

    def test_wrong_arguments(self, path: Path) -> None:
        with pytest.raises(UsageError, match="one of record, replay, auto"):
            replaying(None, path, "rewind")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="must be a model"):
            replaying("gpt", path, "record")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="speed"):
            RecordedLLM(path=path, speed=2)

    def test_what_json_cannot_hold(self, path: Path) -> None:
        model = replaying(Counting(), path, "record")
        with pytest.raises(UsageError, match="must be JSON"):
            model.invoke("q", callback=object())
        with pytest.raises(UsageError, match="must be JSON"):
            model.invoke("q", temperature=float("nan"))

    def test_an_answer_that_is_none(self, path: Path) -> None:
        with pytest.raises(UsageError, match="message or text"):
            replaying(RunnableLambda(lambda _: 7), path, "record").invoke("q")

    def test_a_model_without_tools(self, path: Path) -> None:
        model = replaying(FakeListLLM(responses=["x"]), path, "record")
        tools = [{"title": "t", "description": "d"}]
        with pytest.raises(UsageError, match="takes no tools"):
            model.bind_tools(tools).invoke("q")


class TestInAPipeline:
    def test_multi_query_is_replayed_and_an_unknown_prompt_is_no_excuse(self, path: Path) -> None:
        found = BM25Retriever.from_texts(["a cormorant", "a boat", "a diving bird"])
        model = replaying(FakeListChatModel(responses=["which bird is diving?"]), path, "record")
        first = MultiQueryRetriever.from_llm(found, model).retrieve("cormorant")
        again = MultiQueryRetriever.from_llm(found, replaying(None, path))
        assert [(h.id, h.text, h.score) for h in again.retrieve("cormorant")] == [
            (h.id, h.text, h.score) for h in first
        ]
        with pytest.raises(NotRecorded):
            again.invoke("boat")

    async def test_made_up_passages_are_replayed(self, path: Path) -> None:
        replies = ["Cormorants eat fish.", "They dive for it.", "Birds of the sea."]
        ours = DeterministicFakeEmbedding(size=16)
        with Cormorant.from_texts(["a fish", "a boat", "a bird"], ours) as vs:

            def asks(model: Any) -> HyDERetriever:
                return HyDERetriever.from_llm(model, vs, k=3, passages=3)

            model = replaying(FakeListChatModel(responses=replies), path, "record")
            first = asks(model).retrieve("what feeds them?")
            again = asks(replaying(None, path)).retrieve("what feeds them?")
            later = await asks(replaying(None, path)).aretrieve("what feeds them?")
        assert len(Recording(path).answers(next(iter(Recording(path)._known)))) == 3
        for each in (again, later):
            assert [hit.id for hit in each] == [hit.id for hit in first]
            assert [hit.score for hit in each] == pytest.approx([hit.score for hit in first])

    def test_one_run_in_the_callbacks(self, path: Path) -> None:
        starts: list[Any] = []

        class Seen(BaseCallbackHandler):
            def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
                starts.append(kwargs["run_id"])

        for mode in ("record", "replay"):
            starts.clear()
            replaying(Counting(), path, mode).invoke("q", {"callbacks": [Seen()]})
            assert len(starts) == 1

    def test_a_global_cache_does_not_answer(self, path: Path) -> None:
        from langchain_core.caches import InMemoryCache
        from langchain_core.globals import get_llm_cache, set_llm_cache

        before = get_llm_cache()
        set_llm_cache(InMemoryCache())
        try:
            model = replaying(Counting(cache=False), path, "record")
            assert model.invoke("q").content != model.invoke("q").content
        finally:
            set_llm_cache(before)

    def test_pickled(self, path: Path) -> None:
        replaying(Counting(), path, "record").invoke("q")
        model = pickle.loads(pickle.dumps(replaying(None, path)))
        assert model.invoke("q").text.startswith("answer 1")


def test_arguments_in_another_order_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"takes a file's path; got a FakeListChatModel"):
        replaying(tmp_path / "r.jsonl", FakeListChatModel(responses=["x"]))


def test_a_recording_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(NotRecorded, match="there is no such file"):
        replaying(None, tmp_path / "misspelt.jsonl").invoke("a question")


def _recorded_line(path: Path) -> tuple[bytes, dict[str, Any]]:
    replaying(FakeListChatModel(responses=["fish"]), path, "record").invoke("q")
    head, line = path.read_bytes().split(b"\n")[:2]
    return head, json.loads(line)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"content": 5},
        {"content": None},
        {"content": "x", "type": "human"},
        {"content": "x", "tool_calls": "none"},
        {"content": "x", "tool_calls": [{"name": 5}]},
        {"content": "x", "usage_metadata": 5},
        {"content": "x", "self": 1},
    ],
)
def test_an_answer_that_is_no_message_is_damage(tmp_path, answer):
    path = tmp_path / "r"
    head, entry = _recorded_line(path)
    path.write_bytes(head + b"\n" + json.dumps({**entry, "answer": answer}).encode() + b"\n")
    with pytest.raises(CorruptionError, match="no message of a model"):
        replaying(None, path).invoke("q")


def test_a_line_nested_too_deep_to_be_read_is_damage(tmp_path):
    path = tmp_path / "r"
    head, _ = _recorded_line(path)
    deep = b"[" * 100_000 + b"]" * 100_000 + b"\n"
    path.write_bytes(head + b"\n" + deep)
    with pytest.raises(CorruptionError):
        replaying(None, path)
    path.write_bytes(deep)
    with pytest.raises(FormatError):
        replaying(None, path)


def test_a_pipe_is_no_recording_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="no file"):
        replaying(None, tmp_path / "pipe")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_no_file_can_have(name):
    with pytest.raises(StoreError, match="cannot be read"):
        replaying(None, name)
