"""Prefixes, names and specifications: whom a wrapper asks, and what an embedder is called."""

from __future__ import annotations

import sys
import types

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from pydantic import BaseModel, SecretStr

from cormorant.errors import ConfigError, EmbeddingError, MissingDependency
from cormorant.langchain.embeddings import (
    CachedEmbeddings,
    PrefixEmbeddings,
    as_matrix,
    as_vector,
    default_spec,
    fingerprint,
    identity,
    model_name,
    resolve,
    sentence_encoder,
    spec,
)
from cormorant.langchain.embeddings.naming import uncached


class Roles(Embeddings):
    """A provider with an ``input_type``: says which side was asked."""

    model = "roles-1"

    def __init__(self):
        self.asked = []

    def embed_documents(self, texts):
        self.asked.append(("search_document", *texts))
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text):
        self.asked.append(("search_query", text))
        return [float(len(text)), 2.0]

    async def aembed_documents(self, texts):
        self.asked.append(("async",))
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        self.asked.append(("async",))
        return self.embed_query(text)


class Named(Embeddings):
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def embed_documents(self, texts):
        return [[1.0] for _ in texts]

    def embed_query(self, text):
        return [1.0]


class TestPrefix:
    def test_each_side_gets_its_prefix_and_keeps_its_role(self):
        inner = Roles()
        prefixed = PrefixEmbeddings(inner)
        assert prefixed.embed_documents(["a", "bc"]) == [[10.0, 1.0], [11.0, 1.0]]
        assert prefixed.embed_query("a") == [8.0, 2.0]
        assert inner.asked == [
            ("search_document", "passage: a", "passage: bc"),
            ("search_query", "query: a"),
        ]

    async def test_async_awaits_the_inner_methods(self):
        inner = Roles()
        prefixed = PrefixEmbeddings(inner, "q:", "")
        assert await prefixed.aembed_documents(["a"]) == [[1.0, 1.0]]
        assert await prefixed.aembed_query("a") == [3.0, 2.0]
        assert inner.asked == [
            ("async",),
            ("search_document", "a"),
            ("async",),
            ("search_query", "q:a"),
        ]

    def test_wrong_arguments_are_refused(self):
        with pytest.raises(ConfigError, match=r"inner.*got str"):
            PrefixEmbeddings("local")
        with pytest.raises(ConfigError, match=r"query_prefix.*NoneType"):
            PrefixEmbeddings(Roles(), None)
        with pytest.raises(ConfigError, match=r"document_prefix.*int"):
            PrefixEmbeddings(Roles(), "", 1)

    def test_prefixes_are_part_of_the_identity_and_not_of_the_name(self):
        inner = Roles()
        names = {identity(PrefixEmbeddings(inner, q, d)) for q in ("", "q: ") for d in ("", "d: ")}
        assert len(names) == 4
        assert identity(inner) not in names
        assert model_name(PrefixEmbeddings(inner)) == "roles-1"


class TestNames:
    @pytest.mark.parametrize(
        ("attributes", "name"),
        [
            ({"model_name": "a", "model": "b"}, "a"),
            ({"model": "b"}, "b"),
            ({"model_id": "c"}, "c"),
            ({"model": object(), "repo_id": "d"}, "d"),
            ({"model": "  "}, None),
            ({"size": 6}, None),
            ({}, None),
        ],
    )
    def test_the_name_is_where_providers_keep_it(self, attributes, name):
        assert model_name(Named(**attributes)) == name

    def test_what_changes_the_vectors_is_in_the_identity(self):
        variants = [
            {"model": "m"},
            {"model": "n"},
            {"model": "m", "dimensions": 256},
            {"model": "m", "dimensions": 512},
            {"model": "m", "deployment": "a"},
            {"model": "m", "base_url": "http://one:8000/v1"},
            {"model": "m", "base_url": "http://two:8000/v1"},
            {"model": "m", "base_url": "one:8000"},
            {"model": "m", "base_url": "http://[broken"},
            {"model": "m", "encode_kwargs": {"normalize_embeddings": True}},
            {"model": "m", "encode_kwargs": {"normalize_embeddings": False}},
            {"model": "m", "task_type": "RETRIEVAL_QUERY"},
            {"size": 3},
        ]
        names = [identity(Named(**attributes)) for attributes in variants]
        assert len(set(names)) == len(variants), names
        assert names == [identity(Named(**attributes)) for attributes in variants]

    def test_nothing_secret_is_in_it(self):
        class Provider(BaseModel, Embeddings):
            model: str = "m"
            api_key: SecretStr = SecretStr("sk-hidden")
            base_url: str = "https://user:hidden@host.example/v1?token=hidden"
            encode_kwargs: dict = {"token": "hidden", "nested": {"api_key": "hidden"}}

            def embed_documents(self, texts):
                return []

            def embed_query(self, text):
                return []

        assert "hidden" not in identity(Provider())
        assert "host.example/v1" in identity(Provider())

    def test_no_addresses_in_memory(self):
        assert " at 0x" not in identity(Named(model=object(), encode_kwargs={"f": object()}))

    def test_a_failing_property_names_nothing(self):
        class Failing(Named):
            @property
            def model_name(self):
                raise RuntimeError("not connected")

        assert model_name(Failing(model="m")) == "m"

    def test_caches_speak_for_what_they_hold(self):
        inner = Roles()
        with CachedEmbeddings(inner) as cached:
            assert identity(cached) == identity(inner)
            assert model_name(cached) == "roles-1"
            assert uncached(PrefixEmbeddings(cached)).inner is inner
            assert uncached(CachedEmbeddings(cached)) is inner
        langchains = Named(underlying_embeddings=inner)
        assert identity(langchains) == identity(inner)
        assert model_name(langchains) == "roles-1"
        assert uncached(langchains) is inner
        assert uncached(inner) is inner

    def test_a_fingerprint_is_never_answered_from_a_cache(self):
        inner = Roles()
        with CachedEmbeddings(inner) as cached:
            fingerprint(cached)
            asked = len(inner.asked)
            fingerprint(PrefixEmbeddings(cached))
            assert len(inner.asked) == asked + 2
            assert cached.hits == cached.misses == 0


class TestVectors:
    def test_lists_and_arrays_become_float32(self):
        matrix = as_matrix([[1, 2], [3, 4.5]], 2, model="m")
        assert (matrix.dtype, matrix.shape) == ("float32", (2, 2))
        assert as_matrix([], 0, model="m").shape == (0, 0)
        assert as_matrix(matrix, 2, model="m").tolist() == [[1.0, 2.0], [3.0, 4.5]]
        assert as_vector((1, 2), model="m").tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("returned", "said"),
        [
            ([[1.0]], "1 vectors for 2 texts"),
            (None, "NoneType"),
            ([[1.0], [1.0, 2.0]], "different sizes"),
            ([[1.0], [float("nan")]], "text 1 of 2"),
            ([[1.0], [None]], "text 1 of 2"),
            ([1.0, 2.0], r"shape \(2,\)"),
        ],
    )
    def test_the_message_says_what_came(self, returned, said):
        with pytest.raises(EmbeddingError, match=said) as raised:
            as_matrix(returned, 2, model="m-1")
        assert raised.value.model == "m-1"
        assert "m-1" in str(raised.value)


@pytest.fixture
def langchain(monkeypatch):
    """A stand-in for the package ``langchain``, as its 1.x releases behave."""
    package, module = types.ModuleType("langchain"), types.ModuleType("langchain.embeddings")
    package.__path__ = []
    package.__spec__ = types.SimpleNamespace(name="langchain")
    module.asked = []

    def init_embeddings(model):
        module.asked.append(model)
        if model.startswith("cohere:"):
            raise ImportError("Could not import langchain_cohere python package.")
        if model.startswith("mistralai:"):
            raise ValueError("no API key")
        if model.startswith("bedrock:"):
            return "something else"
        return Named(model=model)

    module.init_embeddings = init_embeddings
    monkeypatch.setitem(sys.modules, "langchain", package)
    monkeypatch.setitem(sys.modules, "langchain.embeddings", module)
    return module


class TestSpec:
    def test_none_and_local(self):
        assert resolve("none", trusted=False) is None
        if sentence_encoder.installed():
            assert type(resolve(" local ", trusted=False)).__name__ == "LocalEmbeddings"
            assert default_spec() == "local"

    def test_without_the_extra(self, monkeypatch):
        monkeypatch.setattr(sentence_encoder, "installed", lambda: False)
        assert default_spec() == "none"
        with pytest.raises(MissingDependency, match=r"cormorant\[local\]"):
            resolve("local", trusted=True)

    @pytest.mark.parametrize("wrong", ["", "  ", None, 3, "openai", "openai:", ":x", "lokal"])
    def test_what_is_no_specification_is_refused_with_what_is(self, wrong):
        with pytest.raises(ConfigError, match="'provider:model'"):
            resolve(wrong, trusted=True)

    @pytest.mark.parametrize("trusted", [True, False])
    def test_a_provider_goes_through_langchain(self, langchain, trusted):
        made = resolve("openai:text-embedding-3-small", trusted=trusted)
        assert made.model == "openai:text-embedding-3-small"
        assert langchain.asked == ["openai:text-embedding-3-small"]

    def test_without_langchain_the_pip_line_is_given(self, monkeypatch):
        monkeypatch.setattr(spec, "find_spec", lambda name: None)
        for asked, line in {
            "openai:m": "pip install langchain langchain-openai",
            "azure_openai:m": "pip install langchain langchain-openai",
            "bedrock:m": "pip install langchain langchain-aws",
            "google_genai:m": "pip install langchain langchain-google-genai",
        }.items():
            with pytest.raises(MissingDependency, match=line):
                resolve(asked, trusted=True)

    def test_what_the_provider_says_is_passed_on(self, langchain):
        with pytest.raises(MissingDependency, match=r"langchain_cohere.*pip install"):
            resolve("cohere:m", trusted=True)
        with pytest.raises(ConfigError, match="no API key"):
            resolve("mistralai:m", trusted=True)
        with pytest.raises(ConfigError, match="made str"):
            resolve("bedrock:m", trusted=True)

    @pytest.mark.parametrize(
        "stored",
        [
            "python:test_module.embedder",
            "huggingface:/tmp/model",
            "python:os.getcwd",
            "PYTHON:os.getcwd",
            " python : os.getcwd",
            "unknown:x",
        ],
    )
    def test_a_stores_word_imports_nothing(self, langchain, monkeypatch, stored):
        def refuse(name, *rest):
            raise AssertionError(f"{name} was imported")

        monkeypatch.setattr(spec, "import_module", refuse)
        with pytest.raises(ConfigError, match="--embedder"):
            resolve(stored, trusted=False)
        assert langchain.asked == []

    def test_the_users_word_imports(self, monkeypatch, langchain):
        module = types.ModuleType("some_package.some_module")
        module.ready, module.make = Named(model="a"), lambda: Named(model="b")
        module.wrong, module.number = (lambda: "no embedder"), 3
        monkeypatch.setitem(sys.modules, "some_package.some_module", module)
        assert resolve("python:some_package.some_module.ready", trusted=True).model == "a"
        assert resolve("python:some_package.some_module.make", trusted=True).model == "b"
        for name, said in {
            "some_package.some_module.wrong": "made str",
            "some_package.some_module.number": "int",
            "some_package.some_module.absent": "cannot be imported",
            "no_such_module_at_all.x": "cannot be imported",
            "ready": "module and an attribute",
            "a b.c": "module and an attribute",
        }.items():
            with pytest.raises(ConfigError, match=said):
                resolve(f"python:{name}", trusted=True)
        assert resolve("huggingface:some/model", trusted=True).model == "huggingface:some/model"


def test_a_fake_of_langchain_core_is_named_by_its_size():
    fake = DeterministicFakeEmbedding(size=6)
    assert identity(fake) == "langchain_core.DeterministicFakeEmbedding[size=6]"
