"""LangChain's own suites for key-value stores, over every store of ours."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

import cormorant
from cormorant.langchain.storage import (
    CormorantByteStore,
    CormorantDocstore,
    LocalFileStore,
    create_kv_docstore,
)

BYTES = (b"foo", b"\x00\xff", b"")
DOCUMENTS = (
    Document("foo"),
    Document("", id="b", metadata={"n": [1, {"x": None}]}),
    Document("文", id="foo"),
)


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb") as opened:
        yield opened


class _Documents:
    @pytest.fixture
    def three_values(self):
        return DOCUMENTS


class _Bytes:
    @pytest.fixture
    def three_values(self):
        return BYTES


class _OverStore(_Documents):
    @pytest.fixture
    def kv_store(self, store):
        return CormorantDocstore(store)


class _Encoded(_Documents):
    @pytest.fixture
    def kv_store(self):
        return create_kv_docstore(InMemoryByteStore())


class _BytesOverStore(_Bytes):
    @pytest.fixture
    def kv_store(self, store):
        return CormorantByteStore(store)


class _Files(_Bytes):
    @pytest.fixture
    def kv_store(self, tmp_path):
        return LocalFileStore(tmp_path / "files")


class TestDocstoreSync(_OverStore, BaseStoreSyncTests[Document]): ...


class TestDocstoreAsync(_OverStore, BaseStoreAsyncTests[Document]): ...


class TestEncodedSync(_Encoded, BaseStoreSyncTests[Document]): ...


class TestEncodedAsync(_Encoded, BaseStoreAsyncTests[Document]): ...


class TestByteStoreSync(_BytesOverStore, BaseStoreSyncTests[bytes]): ...


class TestByteStoreAsync(_BytesOverStore, BaseStoreAsyncTests[bytes]): ...


class TestFilesSync(_Files, BaseStoreSyncTests[bytes]): ...


class TestFilesAsync(_Files, BaseStoreAsyncTests[bytes]): ...
