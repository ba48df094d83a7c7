"""Traces are kept within limits, without content unless asked, and read back elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
import sqlite3
import threading
import time

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel

import cormorant
from cormorant import Query, trace
from cormorant.cli import main
from cormorant.errors import ConfigError, FormatError, NotFound
from cormorant.langchain import Cormorant
from cormorant.langchain.document_transformers import LongContextReorder
from cormorant.langchain.retrievers import (
    ContextualCompressionRetriever,
    MultiQueryRetriever,
)
from cormorant.langchain.retrievers.document_compressors import DocumentCompressorPipeline
from cormorant.trace import file as trace_file


@pytest.fixture
def store():
    with cormorant.open(":memory:") as made:
        made.add(
            [
                {"id": "a", "text": "a secret fish", "metadata": {"tenant": "acme"}},
                {"id": "b", "text": "a fish of others", "metadata": {"tenant": "rival"}},
            ]
        )
        yield made


def test_a_search_is_kept_and_read_on_another_machine(store, tmp_path):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path):
        found = store.scope(tenant="acme").search(Query(text="fish"))
    elsewhere = tmp_path / "copy.db"
    shutil.copy(path, elsewhere)
    path.unlink()
    (told,) = trace.read_traces(elsewhere)
    assert (told["name"], told["error"]) == ("search", None)
    assert "acme" in told["scope"]
    root, *stages = trace.read_trace(elsewhere, told["id"][:8])
    assert root["hits"] == [{"id": "a", "rank": 1, "score": found.hits[0].score}]
    assert {stage["parent"] for stage in stages} == {root["id"]}


@pytest.mark.parametrize("content", [False, True])
def test_content_is_kept_only_if_asked(store, tmp_path, content):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path, content=content):
        store.search(Query(text="secret"))
    (told,) = trace.read_traces(path)
    written = json.dumps(trace.read_trace(path, told["id"]))
    assert ("secret" in written) is content


def test_the_file_stays_within_its_limit(store, tmp_path):
    path = tmp_path / "traces.db"
    limit = 2**17
    with trace.TraceFile(path, max_bytes=limit) as kept:
        for _ in range(3000):
            store.search(Query(text="fish"))
    assert path.stat().st_size <= limit
    assert kept.dropped == 0
    left = trace.read_traces(path, limit=10_000)
    assert 20 < len(left) < 3000
    assert [each["started_s"] for each in left] == sorted(
        (each["started_s"] for each in left), reverse=True
    )


def test_old_traces_go(store, tmp_path):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path):
        store.search(Query(text="fish"))
    time.sleep(0.05)
    with trace.TraceFile(path, max_age_s=0.04):
        store.search(Query(text="fish"))
    assert len(trace.read_traces(path)) == 1


def test_slow_and_failed_and_one_tenants(store, tmp_path):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path):
        store.scope(tenant="acme").search(Query(text="fish"))
        store.scope(tenant="rival").search(Query(text="fish"))
        with contextlib.suppress(cormorant.CormorantError):
            store.search(Query(text="fish", filter={"$nope": 1}))
    assert len(trace.read_traces(path)) == 3
    assert [t["error"] for t in trace.read_traces(path, failed=True)] == ["FilterError"]
    assert len(trace.read_traces(path, scope="acme")) == 1
    assert trace.read_traces(path, slower_s=60.0) == []
    assert len(trace.read_traces(path, limit=2)) == 2


def test_many_threads_at_once(store, tmp_path):
    path = tmp_path / "traces.db"

    def ask():
        for _ in range(50):
            store.search(Query(text="fish"))

    with trace.TraceFile(path) as kept:
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(trace.read_traces(path, limit=1000)) == 200
    assert kept.dropped == 0


def test_what_comes_too_fast_is_counted(store, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(trace_file, "_WAITING", 3)
    monkeypatch.setattr(trace_file, "_APART_S", 5.0)
    path = tmp_path / "traces.db"
    with trace.TraceFile(path) as kept:
        for _ in range(50):
            store.search(Query(text="fish"))
    assert kept.dropped + len(trace.read_traces(path)) == 50
    assert kept.dropped > 0
    assert "were not kept" in caplog.text


def test_another_file_is_not_written_over(tmp_path):
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE precious (a)")
        database.commit()
    text = tmp_path / "text.db"
    text.write_text("no database at all, but long enough to be looked at" * 50)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(FormatError, match="no trace file"):
            trace.TraceFile(path)
        with pytest.raises(FormatError, match="no trace file"):
            trace.read_traces(path)
        assert path.read_bytes() == before
    with pytest.raises(NotFound):
        trace.read_traces(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_damage_is_told(store, tmp_path):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path):
        store.search(Query(text="fish"))
    (told,) = trace.read_traces(path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE traces SET spans = x'00'")
        database.commit()
    with pytest.raises(FormatError, match="damaged"):
        trace.read_trace(path, told["id"])
    with pytest.raises(NotFound, match="no traces whose id"):
        trace.read_trace(path, "zz")


@pytest.mark.parametrize("limits", [{"max_bytes": 10}, {"max_bytes": "x"}, {"max_age_s": -1}])
def test_limits_that_cannot_be_are_refused(tmp_path, limits):
    with pytest.raises(ConfigError):
        trace.TraceFile(tmp_path / "t.db", **limits)
    assert not (tmp_path / "t.db").exists()


def test_lines_of_json_and_a_log(store, tmp_path, caplog):
    path = tmp_path / "traces.jsonl"
    with trace.to_json_lines(path), trace.to_log(), caplog.at_level(logging.INFO):
        store.search(Query(text="secret"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["name"] == "search"
    assert lines[0]["found"] == 1
    assert "secret" not in path.read_text()
    assert "1 hits" in caplog.text
    assert "secret" not in caplog.text


def test_a_listener_that_fails_does_not_fail_the_search(store, caplog):
    def fails(records):
        raise RuntimeError

    with trace.to_function(fails):
        assert store.search(Query(text="fish")).hits
    assert "could not be handed on" in caplog.text


class Slow(DeterministicFakeEmbedding):
    """Has an async method of its own, as clients of a service have."""

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return self.embed_query(text)


@pytest.mark.parametrize("embedding", [DeterministicFakeEmbedding(size=8), Slow(size=8)])
async def test_a_retriever_is_a_tree_of_spans_in_both_worlds(embedding):
    traces = []
    with Cormorant.from_texts(["a fish", "a boat"], embedding) as vs:
        retriever = vs.as_retriever(search_type="hybrid", k=1)
        vs.similarity_search("fish")  # the embedder's probes, once
        with trace.to_function(traces.append):
            retriever.invoke("fish")
            await asyncio.gather(retriever.ainvoke("fish"), retriever.ainvoke("boat"))
    assert len(traces) == 3
    for spans in traces:
        names = {span["id"]: span["name"] for span in spans}
        under = {span["name"]: names.get(span["parent"]) for span in spans}
        assert under["retrieve"] is None
        assert under["embed"] == "retrieve"
        assert under["search"] == "retrieve"
        assert under["search.vector"] == "search"
    assert traces[0][0]["attributes"] == {"search_type": "hybrid"}


@pytest.mark.parametrize("awaited", [False, True])
async def test_composites_show_what_ran_inside_what(awaited):
    traces = []
    model = FakeListChatModel(responses=["boat?\nnet?"])
    with Cormorant.from_texts(["a fish", "a boat", "a net"], None) as vs:
        several = MultiQueryRetriever.from_llm(
            retriever=vs.as_retriever(search_type="text"), llm=model
        )
        reranked = ContextualCompressionRetriever(
            base_compressor=DocumentCompressorPipeline(transformers=[LongContextReorder()]),
            base_retriever=several,
        )
        with trace.to_function(traces.append):
            found = await reranked.ainvoke("fish?") if awaited else reranked.invoke("fish?")
    assert found
    (spans,) = traces
    names = {span["id"]: span["name"] for span in spans}
    assert [span["parent"] for span in spans].count(None) == 1
    retrievers = [span["attributes"].get("retriever") for span in spans]
    assert retrievers[0] == "ContextualCompressionRetriever"
    assert "MultiQueryRetriever" in retrievers
    under = {(span["name"], names.get(span["parent"])) for span in spans}
    assert {("model", "retrieve"), ("search", "retrieve"), ("compress", "retrieve")} <= under
    assert sum(span["name"] == "search" for span in spans) >= 2
    assert "fish" not in json.dumps(spans)


def test_the_command_line_lists_and_shows(store, tmp_path, capsys):
    path = tmp_path / "traces.db"
    with trace.TraceFile(path):
        store.scope(tenant="acme").search(Query(text="fish"))
        with contextlib.suppress(cormorant.CormorantError):
            store.search(Query(text="fish", filter={"$nope": 1}))
    assert main(["traces", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["traces"]
    assert [each["error"] for each in told] == ["FilterError", None]
    assert main(["traces", str(path), "--scope", "acme"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert told[1]["id"][:8] in line
    assert main(["traces", str(path), told[1]["id"][:8]]) == 0
    shown = capsys.readouterr().out
    assert "search.text" in shown
    assert "█" in shown
    assert main(["traces", str(path), told[1]["id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spans"][0]["hits"][0]["id"] == "a"
    assert main(["traces", str(tmp_path / "nothing")]) == 2


def test_search_writes_a_trace(tmp_path, capsys):
    kb, path = tmp_path / "kb", tmp_path / "traces.db"
    with cormorant.open(kb) as made:
        made.add([{"id": "a", "text": "fish"}])
    assert main(["search", str(kb), "fish", "--embedder", "none", "--trace", str(path)]) == 0
    assert [each["name"] for each in trace.read_traces(path)] == ["search"]
