"""Key-value stores: files, encoded values, and documents in a Cormorant store."""

from __future__ import annotations

import asyncio
import datetime as dt
import json

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.messages import HumanMessage
from langchain_core.stores import InMemoryByteStore, InvalidKeyException

import cormorant
from cormorant.errors import CorruptionError, RecordError, ScopeError, UsageError
from cormorant.langchain import Cormorant, storage
from cormorant.langchain.storage import (
    CormorantByteStore,
    CormorantDocstore,
    EncoderBackedStore,
    LocalFileStore,
    create_kv_docstore,
    create_lc_store,
)


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb") as opened:
        yield opened


def test_every_name_is_handed_on():
    for name in storage.__all__:
        assert getattr(storage, name).__name__ == name or name.startswith("create")
    assert set(storage.__all__) <= set(dir(storage))
    with pytest.raises(AttributeError, match="RedisStore"):
        storage.RedisStore  # noqa: B018 - the access is the test


# Files


@pytest.mark.parametrize("key", ["文档", "第一章/文档-1.txt", "ключ", "हिन्दी", "é", "a.b_c-d/9#1"])
def test_a_file_key_may_be_of_any_script(tmp_path, key):
    files = LocalFileStore(tmp_path)
    files.mset([(key, b"x")])
    assert files.mget([key]) == [b"x"]
    assert list(files.yield_keys()) == [key]
    files.mdelete([key, "other"])
    assert list(files.yield_keys()) == []


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "../a",
        "a b",
        "a~",
        "😿",
        "a\0",
        "a\nb",
        "a\\b",
        "..\\a",
        "\ud800",
        "a/..",
        "../../etc/passwd",
        "a\u202eb",
        3,
    ],
)
def test_what_is_no_file_key_is_refused(tmp_path, key):
    files = LocalFileStore(tmp_path / "files")
    for call in (
        lambda: files.mget([key]),
        lambda: files.mset([("good", b""), (key, b"x")]),
        lambda: files.mdelete([key]),
    ):
        with pytest.raises(InvalidKeyException):
            call()
    assert not (tmp_path / "files").exists()


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    files = LocalFileStore(tmp_path / "files")
    files.mset([("a", b"x")])
    (tmp_path / "files" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidKeyException, match="leads out"):
        files.mget(["link"])


@pytest.mark.parametrize(
    "key", ["a/b", "x" * 300, "鸬" * 90, "n/" * 3000 + "n", "y" * 100_000], ids=len
)
async def test_a_key_that_cannot_be_a_file_is_refused_and_never_there(tmp_path, key):
    files = LocalFileStore(tmp_path)
    files.mset([("a", b"x")])
    with pytest.raises(InvalidKeyException, match="cannot be a file"):
        files.mset([(key, b"y")])
    with pytest.raises(InvalidKeyException, match="cannot be a file"):
        await files.amset([(key, b"y")])
    assert files.mget([key, "a"]) == await files.amget([key, "a"]) == [None, b"x"]
    files.mdelete([key])
    await files.amdelete([key])
    assert list(files.yield_keys()) == ["a"]


def test_a_key_that_names_a_folder_is_refused_and_never_there(tmp_path):
    files = LocalFileStore(tmp_path)
    files.mset([("a/b", b"x")])
    with pytest.raises(InvalidKeyException, match="cannot be a file"):
        files.mset([("a", b"y")])
    files.mdelete(["a"])
    assert files.mget(["a", "a/b"]) == [None, b"x"]
    assert list(files.yield_keys()) == ["a/b"]


@pytest.mark.parametrize("value", ["text", None, 7, ["x"]])
def test_a_file_keeps_bytes_alone_and_then_none_of_a_call(tmp_path, value):
    files = LocalFileStore(tmp_path)
    with pytest.raises(RecordError, match="'b' must be bytes"):
        files.mset([("a", b"x"), ("b", value)])
    assert list(files.yield_keys()) == []
    files.mset([("a", bytearray(b"x")), ("b", memoryview(b"y"))])
    assert files.mget(["a", "b"]) == [b"x", b"y"]


def test_file_keys_begin_with_a_prefix_that_need_not_be_a_folder(tmp_path):
    files = LocalFileStore(tmp_path)
    files.mset([(key, b"") for key in ("doc1", "doc2", "docs/a", "other")])
    assert list(files.yield_keys(prefix="doc")) == ["doc1", "doc2", "docs/a"]
    assert list(files.yield_keys(prefix="docs/")) == ["docs/a"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    files = LocalFileStore(tmp_path)
    files.mset([("a", b"old")])

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("cormorant.langchain.storage.file_system.os.fsync", fail)
    with pytest.raises(OSError, match="full"):
        files.mset([("a", b"new")])
    monkeypatch.undo()
    assert files.mget(["a"]) == [b"old"]
    assert list(files.yield_keys()) == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_is_no_key(tmp_path):
    files = LocalFileStore(tmp_path)
    files.mset([("a", b"x")])
    (tmp_path / "0f~").write_bytes(b"hal")
    assert list(files.yield_keys()) == ["a"]


# Encoded


def test_documents_that_langchain_classic_wrote_are_read():
    metadata = {"plain": 1, "lc": 1, "nested": {"lc": {"x": 1}}, "list": [{"lc": 2}]}
    for document in (
        Document("text", id="i", metadata=metadata),
        Document("text", metadata={"a": {"__lc_escaped__": 1}}),
        Document("text"),
    ):
        inner = InMemoryByteStore()
        inner.mset([("key", dumps(document).encode())])
        assert create_kv_docstore(inner).mget(["key", "no"]) == [document, None]


def test_dates_come_back_as_dates():
    document = Document("x", metadata={"on": dt.date(2026, 5, 1), "at": dt.datetime(2026, 5, 1, 9)})
    docstore = create_kv_docstore(InMemoryByteStore())
    docstore.mset([("k", document)])
    assert docstore.mget(["k"]) == [document]


@pytest.mark.parametrize("value", ["text", None, HumanMessage("hi")])
def test_a_docstore_keeps_documents_alone(value):
    docstore = create_kv_docstore(InMemoryByteStore())
    with pytest.raises(RecordError, match="keeps Documents"):
        docstore.mset([("k", value)])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        (
            b'{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],'
            b'"kwargs":{"content":"x"}}'
        ),
        json.dumps({"type": "constructor", "id": ["Document"], "kwargs": {}}).encode(),
    ],
)
def test_damaged_values_are_refused(data):
    inner = InMemoryByteStore()
    inner.mset([("k", data)])
    for made in (create_kv_docstore(inner), create_lc_store(inner)):
        with pytest.raises(CorruptionError, match="not what this store writes"):
            made.mget(["k"])


def test_an_lc_store_makes_nothing_but_what_was_allowed():
    kept = create_lc_store(InMemoryByteStore(), key_encoder=lambda key: f"k-{key}")
    kept.mset([("a", Document("x", metadata={"on": dt.date(2026, 5, 1)}))])
    assert kept.mget(["a"])[0].metadata == {"on": dt.date(2026, 5, 1)}
    assert list(kept.yield_keys()) == ["k-a"]
    with pytest.raises(RecordError, match="Name its class in allowed_objects"):
        kept.mset([("b", HumanMessage("hi"))])


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_an_lc_store_keeps_other_objects_when_told_to():
    kept = create_lc_store(InMemoryByteStore(), allowed_objects=[HumanMessage])
    kept.mset([("b", HumanMessage("hi"))])
    assert kept.mget(["b"]) == [HumanMessage("hi")]


async def test_an_encoder_awaits_the_stores_own_methods():
    encoded = EncoderBackedStore(InMemoryByteStore(), str, lambda n: b"%d" % n, int)
    await encoded.amset([(1, 2)])
    assert await encoded.amget([1, 2]) == [2, None]
    assert [key async for key in encoded.ayield_keys()] == ["1"]
    await encoded.amdelete([1])
    assert await encoded.amget([1]) == [None]


# In a Cormorant store


def test_a_docstore_shares_nothing_with_whoever_put_or_got(store):
    docstore = CormorantDocstore(store)
    document = Document("x", metadata={"tags": ["a"]})
    docstore.mset([("k", document)])
    document.metadata["tags"].append("b")
    docstore.mget(["k"])[0].metadata["tags"].append("c")
    assert docstore.mget(["k"])[0].metadata == {"tags": ["a"]}


def test_documents_by_key_are_not_searched(store):
    with Cormorant(None, store=store) as vs:
        CormorantDocstore(vs).mset([("k", Document("a fish"))])
        assert vs.search("fish", "text") == []
        assert vs.get_by_ids(["k"]) == []


def test_a_call_keeps_all_or_nothing(store):
    docstore = CormorantDocstore(store)
    for bad in (("b", "text"), ("b", Document("x", metadata={"s": {1}})), ("", Document("x"))):
        with pytest.raises(RecordError):
            docstore.mset([("a", Document("x")), bad])
    assert list(docstore.yield_keys()) == []


def test_a_scope_holds_for_keys(store):
    acme = CormorantDocstore(store).scope(tenant="acme")
    acme.mset([("a", Document("x"))])
    other = CormorantDocstore(store.scope(tenant="other"))
    assert other.mget(["a"]) == [None]
    assert list(other.yield_keys()) == []
    other.mdelete(["a"])
    with pytest.raises(ScopeError):
        other.mset([("a", Document("stolen"))])
    assert acme.mget(["a"]) == [Document("x", metadata={"tenant": "acme"})]


def test_bytes_and_documents_are_told_apart(store):
    CormorantDocstore(store).mset([("d", Document("x"))])
    made = CormorantByteStore(store)
    with pytest.raises(UsageError, match="not bytes"):
        made.mget(["d"])
    with pytest.raises(RecordError, match="must be bytes"):
        made.mset([("b", "text")])


@pytest.mark.parametrize("made", [CormorantByteStore, CormorantDocstore])
def test_what_is_no_store_is_refused(made):
    with pytest.raises(UsageError, match=r"takes an open cormorant\.Store"):
        made("kb")


async def test_async_calls_run_in_the_stores_threads(store, monkeypatch):
    def fail(*_):
        raise AssertionError("the default executor was used")

    docstore = CormorantDocstore(store)
    monkeypatch.setattr(asyncio.get_running_loop(), "set_default_executor", fail)
    monkeypatch.setattr("langchain_core.stores.run_in_executor", fail)
    await docstore.amset([("a", Document("x")), ("b", Document("y"))])
    assert [key async for key in docstore.ayield_keys(prefix="a")] == ["a"]
    await docstore.amdelete(["a"])
    assert await docstore.amget(["a", "b"]) == [None, Document("y")]
