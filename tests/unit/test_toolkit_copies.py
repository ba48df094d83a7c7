"""Dumped, pickled, copied: every public class of the toolkit, over a folder and in memory."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumpd, dumps
from langchain_core.runnables import Runnable

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import found, ids
from toolkitlab import ALL, COMPRESSORS, QUESTION, RETRIEVERS, Parts, make, public

import cormorant
from cormorant.errors import NotFound, ScopeError, UsageError
from cormorant.langchain import Cormorant

LABS = Path(__file__).parents[1]
RUNNABLE = [name for name in ALL if issubclass(public()[name], Runnable)]


@pytest.fixture
def disk(tmp_path):
    parts = Parts(path=tmp_path)
    yield parts
    parts.close()


@pytest.fixture
def memory():
    parts = Parts()
    yield parts
    parts.close()


def asked(made):
    """What it answers, by ids."""
    if hasattr(made, "compress_documents"):
        return ids(made.invoke({"query": QUESTION, "documents": found("a fish", "fish", "boats")}))
    return [hit.id for hit in made.retrieve(QUESTION)]


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_dump_names_the_class_and_holds_no_documents(name, memory):
    """As LangChain's own retrievers: not to be loaded again, and said so."""
    made = make(name, memory)
    dumped = dumpd(made)
    assert dumped["type"] == "not_implemented"
    assert dumped["id"][-1] == name
    assert json.loads(dumps(made))["id"] == dumped["id"]
    assert "fish note 1" not in dumps(made)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_over_a_folder_a_pickle_opens_it_again(name, disk):
    made = make(name, disk)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    assert asked(again) == asked(made)
    assert asked(made), "the question must find something for the test to tell"


@pytest.mark.parametrize("name", RETRIEVERS)
def test_in_memory_a_pickle_is_refused_with_what_to_do(name, memory):
    with pytest.raises(UsageError, match=r"in memory cannot be pickled.*Keep it in a folder"):
        pickle.dumps(make(name, memory))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_compressor_is_pickled_with_its_settings(name, memory):
    made = make(name, memory)
    assert asked(pickle.loads(pickle.dumps(made))) == asked(made) != []


class Locked:
    """A client as they are: with a lock, which cannot be taken along."""

    def __init__(self):
        self.lock = threading.Lock()

    def rerank(self, **request):
        raise NotImplementedError


def test_a_setting_that_cannot_be_taken_along_is_named(memory):
    made = make("HostedReranker", memory, client=Locked())
    with pytest.raises(UsageError, match="This HostedReranker cannot be pickled: its client"):
        pickle.dumps(made)
    with pytest.raises(UsageError, match=r"cannot be copied deeply.*Use model_copy\(\)"):
        copy.deepcopy(made)
    assert made.model_copy().client is made.client


@pytest.mark.parametrize("name", [*RETRIEVERS, *COMPRESSORS])
def test_copies_ask_the_same_store(name, memory):
    made = make(name, memory)
    for copied in (copy.copy(made), copy.deepcopy(made), made.model_copy(deep=True)):
        assert copied is not made
        assert asked(copied) == asked(made) != []
    if "k" in type(made).model_fields:
        copied.k = 1
        assert made.k != 1, "settings are the copy's own"


def test_two_legs_over_one_store_are_so_after_a_pickle_too(tmp_path):
    with Cormorant.from_texts(["a fish"], DeterministicFakeEmbedding(size=4), path=tmp_path) as vs:
        legs = [vs.as_retriever(), vs.scope(a=1).as_retriever(search_type="text")]
        one, other = pickle.loads(pickle.dumps(legs))
        assert one.vectorstore.store._core is other.vectorstore.store._core
        assert one.vectorstore.store._core is not vs.store._core


def test_a_scope_is_never_lost_in_a_pickle(tmp_path):
    texts = ["a fish", "two fish", "red fish"]
    metadatas = [{"t": "a", "n": 1}, {"t": "b", "n": 1}, {"t": "a", "n": 2}]
    with Cormorant.from_texts(texts, None, metadatas, path=tmp_path) as vs:
        view = vs.scope(t="a").scope(n={"$lt": 9}).scope(n={"$lt": 2})
        for scoped in (pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
            assert [d.page_content for d in scoped.search("fish", "text")] == ["a fish"]
            with pytest.raises(ScopeError):
                scoped.add_texts(["x"], [{"t": "b", "n": 1}])
            assert "t='a', n={'$lt': 9}, n={'$lt': 2}" in repr(scoped.store._scope)


def test_a_required_scope_stays_required(tmp_path):
    with Cormorant(None, path=tmp_path / "kb", require_scope=["t"]) as vs:
        again = pickle.loads(pickle.dumps(vs))
        with pytest.raises(ScopeError, match="requires a scope on t"):
            again.search("fish", "text")


def test_how_it_was_opened_comes_along(tmp_path):
    cormorant.open(tmp_path / "kb").close()
    with cormorant.open(tmp_path / "kb", read_only=True, lock_timeout_s=2, pool_size=1) as store:
        with pickle.loads(pickle.dumps(store)) as again:
            assert again.read_only
            assert again._core.storage.lock_timeout_s == 2
            assert again.executor._max_workers == 1
        data = pickle.dumps(store)
    for file in sorted(tmp_path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    with pytest.raises(NotFound):
        pickle.loads(data)
    assert not (tmp_path / "kb").exists(), "nothing is made in its place"


def test_another_process_answers_the_same(tmp_path):
    parts = Parts(path=tmp_path / "stores")
    made = make("HybridRetriever", parts)
    (tmp_path / "made.pickle").write_bytes(pickle.dumps(made))
    program = (
        "import pickle, sys; made = pickle.load(open(sys.argv[1], 'rb'));"
        f"print([hit.id for hit in made.retrieve({QUESTION!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "made.pickle")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(LABS), "PATH": ""},
        timeout=60,
    )
    assert done.stdout.strip() == str(asked(made))
    parts.close()
