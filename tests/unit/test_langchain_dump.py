"""Does a dump come back as it was, and is everything else refused?"""

import datetime as dt
import errno
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from cormorant import Record, Store
from cormorant.errors import (
    ConfigError,
    CorruptionError,
    EmbeddingMismatch,
    FormatError,
    NotFound,
    StoreError,
    UsageError,
)
from cormorant.langchain import Cormorant
from cormorant.store import Family

FAKE = DeterministicFakeEmbedding(size=6)
METADATA = {
    "when": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    "day": dt.date(2026, 1, 2),
    "nested": {"list": [1, None, "鸬鹚"]},
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    with Cormorant.from_texts(
        ["a fish\n", "鸬鹚捕鱼", "a boat"], FAKE, [METADATA, {}, {}], ids=["x", "y", "z"]
    ) as vs:
        vs.dump(tmp_path / "made" / "kb.jsonl")
    return tmp_path / "made" / "kb.jsonl"


def test_a_dump_comes_back_as_it_was(dump: Path) -> None:
    """InMemoryVectorStore cannot load a date back."""
    with (
        Cormorant.from_texts(
            ["a fish\n", "鸬鹚捕鱼", "a boat"], FAKE, [METADATA, {}, {}], ids=["x", "y", "z"]
        ) as original,
        Cormorant.load(dump, FAKE) as loaded,
    ):
        assert loaded.get_by_ids(["x", "y", "z"]) == original.get_by_ids(["x", "y", "z"])
        for search_type in ("similarity", "mmr", "hybrid", "text"):
            assert loaded.search("a fish", search_type) == original.search("a fish", search_type)
        ours = loaded.similarity_search_with_score("a fish")
        theirs = original.similarity_search_with_score("a fish")
        assert [score for _, score in ours] == pytest.approx([s for _, s in theirs], abs=1e-6)


def test_nothing_is_embedded_again(dump: Path) -> None:
    class Broken(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("embedded again")

    with Cormorant.load(dump, Broken(size=6)) as loaded:
        assert loaded.store.count() == 3


def test_the_embedder_is_still_checked(dump: Path) -> None:
    class Other(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(text + "!")

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    with Cormorant.load(dump, Other(size=6)) as loaded, pytest.raises(EmbeddingMismatch):
        loaded.similarity_search("a fish")


def test_settings_come_back(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "metric": "euclidean",
        "language": "german",
        "bm25_k1": 0.9,
        "bm25_b": 0.3,
    }
    with Cormorant.from_texts(["Häuser am Fluss"], FAKE, **options) as vs:
        vs.dump(tmp_path / "kb")
        stored = vs.store.config
    with Cormorant.load(tmp_path / "kb", FAKE) as loaded:
        assert loaded.store.config == stored
        assert len(loaded.search("Haus", "text")) == 1


def test_an_empty_store_and_records_without_vectors(tmp_path: Path) -> None:
    with Cormorant(FAKE) as vs:
        vs.dump(tmp_path / "empty")
    with Cormorant.load(tmp_path / "empty", FAKE) as loaded:
        assert loaded.store.count() == 0
    with Cormorant.from_texts(["a fish"], None, ids=["x"]) as vs:
        vs.dump(tmp_path / "text")
    with Cormorant.load(tmp_path / "text", None) as loaded:
        assert [doc.id for doc in loaded.search("fish", "text")] == ["x"]


def test_loading_into_a_store_on_disk(dump: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "kb") as store:
        Cormorant.load(dump, FAKE, store=store)
        assert store.count() == 3
        Cormorant.load(dump, FAKE, store=store)
        assert store.count() == 3
    with Store.open(":memory:", metric="dot") as store:
        with pytest.raises(ConfigError, match="metric"):
            Cormorant.load(dump, FAKE, store=store)
        assert store.count() == 0
    with Store.open(":memory:") as store:
        Cormorant(DeterministicFakeEmbedding(size=5), store=store).add_texts(["a"])
        with pytest.raises((EmbeddingMismatch, UsageError)):
            Cormorant.load(dump, FAKE, store=store)
        assert store.count() == 1


def test_constructor_options_are_taken(dump: Path) -> None:
    with pytest.raises(UsageError, match="does not take 'colour'"):
        Cormorant.load(dump, FAKE, colour="red")
    with Cormorant.load(dump, FAKE, pool_size=1) as loaded:
        assert loaded.store.count() == 3


# The file


def test_it_is_json_lines_with_a_header(dump: Path) -> None:
    header, *lines, end = (json.loads(line) for line in dump.read_text("utf-8").splitlines())
    assert (header["format"], header["version"]) == ("cormorant-dump", 1)
    assert [line["id"] for line in lines] == ["x", "y", "z"]
    assert end["end"] == 3


def test_it_replaces_the_old_file_whole_or_not_at_all(
    dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dump.read_bytes()

    def fail(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with Store.open(":memory:") as store:
        store.add([Record(id="new", text="new")])
        with pytest.raises(StoreError, match=r"no space left \(ENOSPC\)"):
            Cormorant(FAKE, store=store).dump(dump)
    assert dump.read_bytes() == before
    assert [path.name for path in dump.parent.iterdir()] == [dump.name], "no draft is left"


def other_version(raw: bytes) -> bytes:
    return raw.replace(b'"version":1', b'"version":2', 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a file that Cormorant.dump"),
        (b"\x80\x04K\x01.", "not a file that Cormorant.dump"),
        (pickle.dumps({"a": 1}), "not a file that Cormorant.dump"),
        (b"SQLite format 3\x00", "not a file that Cormorant.dump"),
        (b"{}\n", "not a file that Cormorant.dump"),
        (b'["cormorant-dump"]\n', "not a file that Cormorant.dump"),
        (b"[" * 100_000, "not a file that Cormorant.dump"),
        (b'{"lc": 1, "type": "constructor", "id": ["os", "system"]}', "not a file that"),
        (other_version, "version 2"),
    ],
)
def test_what_is_no_dump_is_refused(
    dump: Path, content: bytes | Callable[[bytes], bytes], says: str
) -> None:
    dump.write_bytes(content if isinstance(content, bytes) else content(dump.read_bytes()))
    with pytest.raises(FormatError, match=says):
        Cormorant.load(dump, FAKE)


def test_a_dump_of_the_in_memory_store_is_refused(tmp_path: Path) -> None:
    InMemoryVectorStore.from_texts(["a"], FAKE).dump(str(tmp_path / "memory.json"))
    with pytest.raises(FormatError, match="must be added again"):
        Cormorant.load(tmp_path / "memory.json", FAKE)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file"):
        Cormorant.load(tmp_path / "nothing", FAKE)
    with pytest.raises(FormatError, match="folder"):
        Cormorant.load(tmp_path, FAKE)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1][: raw[:-1].rindex(b"\n") + 1],  # the last line is missing
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[: raw.index(b"\n") + 1],
        lambda raw: raw.replace(b"a boat", b"a goat"),
        lambda raw: raw.replace(b'"id":"z"', b'"id":"w"'),
        lambda raw: raw.replace(b'"id":"z"', b'"ix":"z"'),
        lambda raw: raw.replace(b'"vector":"', b'"vector":"!', 1),
        lambda raw: raw.replace(b'"end":3', b'"end":2'),
        lambda raw: raw + b'{"id":"q"}\n',
        lambda raw: raw.replace(b'"dim":6', b'"dim":7'),
        lambda raw: raw.replace(b'"options":{', b'"options":{"x":1,'),
        lambda raw: raw.replace(b'{"id":"y"', b'["id","y"', 1),
    ],
)
def test_a_damaged_dump_is_refused_whole(dump: Path, damage: Callable[[bytes], bytes]) -> None:
    dump.write_bytes(damage(dump.read_bytes()))
    with Store.open(":memory:") as store:
        with pytest.raises(CorruptionError, match="Nothing was loaded") as caught:
            Cormorant.load(dump, FAKE, store=store)
        assert caught.value.path == str(dump)
        assert store.count() == 0


def test_parents_are_in_the_dump(tmp_path: Path) -> None:
    embedding = DeterministicFakeEmbedding(size=8)
    with Cormorant(embedding) as vs:
        child = Document("a fish", id="p#0", metadata={"doc_id": "p"})
        parent = Record("p", "a fish and a boat", metadata={"on": dt.date(2026, 5, 1)})
        vs.add_family([child], [parent], Family(["p"], "doc_id"))
        vs.scope(tenant="acme").store.add([], documents=[{"id": "q"}])
        vs.dump(tmp_path / "all")
        vs.scope(tenant="acme").dump(tmp_path / "acme")
    with Cormorant.load(tmp_path / "all", embedding) as loaded:
        assert loaded.store.documents(["p"]) == [parent]
        assert loaded.store.document_ids() == ["p", "q"]
        assert [doc.id for doc in loaded.similarity_search("a fish")] == ["p#0"]
    with Cormorant.load(tmp_path / "acme", embedding) as loaded:
        assert loaded.store.document_ids() == ["q"]
        assert loaded.store.count() == 0


# Where it lies


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with Cormorant.from_texts(["a fish"], None) as store:
        yield store


@pytest.mark.parametrize(
    "path", ["a\0b", "\ud800", "x" * 300, "a/" * 3000 + "b", "", ".", 7, b"kb", None, ["kb"]]
)
def test_what_is_no_path_of_a_file(
    vs: Cormorant, path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        vs.dump(path)
    with pytest.raises((UsageError, FormatError)):
        Cormorant.load(path, None)
    assert list(tmp_path.iterdir()) == [], "nothing was made"


def test_a_folder_and_a_path_below_a_file(vs: Cormorant, tmp_path: Path) -> None:
    vs.dump(tmp_path / "file")
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(UsageError, match=r"is a folder.*dump\.jsonl"):
        vs.dump(tmp_path)
    with pytest.raises(UsageError, match="is a file, no folder"):
        vs.dump(tmp_path / "file" / "below")
    with pytest.raises(NotFound):
        Cormorant.load(tmp_path / "file" / "below", None)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == before


def test_only_a_file_is_replaced_or_read(vs: Cormorant, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link"):
        with pytest.raises(UsageError, match="is a pipe"):
            vs.dump(path)
        with pytest.raises(FormatError, match="is a pipe"):  # and does not wait for a writer
            Cormorant.load(path, None)
    assert pipe.is_fifo()
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "link"}


def test_the_longest_name_there_is(vs: Cormorant, tmp_path: Path) -> None:
    vs.dump(tmp_path / ("x" * 255))
    with Cormorant.load(tmp_path / ("x" * 255), None) as loaded:
        assert loaded.store.count() == 1


def test_folders_made_for_a_dump_that_failed_go_again(
    vs: Cormorant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()

    def fail(*args: Any) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="broken"):
        vs.dump(kept / "new" / "newer" / "kb")
    assert list(tmp_path.rglob("*")) == [kept]


def test_the_system_refuses(vs: Cormorant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vs.dump(tmp_path / "kb")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    for name, work in (
        ("open", lambda: Cormorant.load(tmp_path / "kb", None)),
        ("stat", lambda: Cormorant.load(tmp_path / "kb", None)),
        ("mkdir", lambda: vs.dump(tmp_path / "new" / "kb")),
        ("replace", lambda: vs.dump(tmp_path / "kb")),
        ("stat", lambda: vs.dump(tmp_path / "kb")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(StoreError, match="not yours"):
                work()
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]
