"""A store against a dict: whatever is added, replaced, deleted, compacted or reopened."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

import cormorant
from cormorant import Query

DIM = 3
WORDS = ("fish", "bird", "water", "鸬鹚", "捕鱼", "err_42", "the")

ids = st.sampled_from([f"id{i}" for i in range(12)] + ["é", "日本", "a b"])
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
vectors = st.lists(st.integers(-3, 3), min_size=DIM, max_size=DIM).filter(any)
metadatas = st.dictionaries(
    st.sampled_from(["tenant", "n", "tags"]),
    st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 3), st.lists(st.sampled_from("ab"))),
)
records = st.fixed_dictionaries(
    {"id": ids, "text": texts, "metadata": metadatas},
    optional={"vector": vectors},
)


def _has(value: object, wanted: str) -> bool:
    return wanted in value if isinstance(value, list) else value == wanted


class StoreMachine(RuleBasedStateMachine):
    """Every operation is done on the store and on a dict; they must agree throughout."""

    held = Bundle("held")

    @initialize(memory=st.booleans())
    def open(self, memory: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path: Any = ":memory:" if memory else self.folder / "kb"
        self.store = cormorant.open(self.path, dim=DIM)
        self.reader = self.store if memory else cormorant.open(self.path)
        self.model: dict[str, dict[str, Any]] = {}

    @rule(batch=st.lists(records, max_size=6, unique_by=lambda r: r["id"]))
    def add(self, batch: list[dict[str, Any]]) -> None:
        done = self.store.add(batch)
        assert done.updated == sum(r["id"] in self.model for r in batch)
        assert done.added == len(batch) - done.updated
        for record in batch:
            self.model.pop(record["id"], None)
            self.model[record["id"]] = record

    @rule(some=st.lists(ids, max_size=4))
    def delete(self, some: list[str]) -> None:
        gone = {id for id in some if id in self.model}
        assert self.store.delete(some) == len(gone)
        for id in gone:
            del self.model[id]

    @rule(tenant=st.sampled_from("ab"))
    def delete_by_filter(self, tenant: str) -> None:
        gone = [i for i, r in self.model.items() if _has(r["metadata"].get("tenant"), tenant)]
        assert self.store.delete(filter={"tenant": tenant}) == len(gone)
        for id in gone:
            del self.model[id]

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @rule()
    def optimize(self) -> None:
        self.store.optimize()

    @rule()
    def reopen(self) -> None:
        if self.path != ":memory:":
            self.store.close()
            self.store = cormorant.open(self.path)

    @rule(text=texts, vector=vectors, mode=st.sampled_from(["vector", "text", "hybrid"]))
    def search(self, text: str, vector: list[int], mode: Any) -> None:
        result = self.reader.search(Query(text=text, vector=vector, mode=mode, top_k=50))
        assert [h.rank for h in result] == list(range(1, len(result) + 1))
        scores = [h.score for h in result]
        assert scores == sorted(scores, reverse=True)
        for hit in result:
            record = self.model[hit.id]
            assert (hit.text, hit.metadata) == (record["text"], record["metadata"])
        if mode == "vector":
            q = np.array(vector, dtype=np.float64)
            expected = {
                id: float(np.dot(q, r["vector"]) / np.linalg.norm(q) / np.linalg.norm(r["vector"]))
                for id, r in self.model.items()
                if "vector" in r
            }
            assert {h.id for h in result} == set(expected)
            for hit in result:
                assert abs(hit.score - expected[hit.id]) < 1e-5
        if mode == "text":
            words = set(text.split()) - {"the"} or {"the"}
            assert {h.id for h in result} == {
                id for id, r in self.model.items() if words & set(r["text"].split())
            }

    @invariant()
    def agrees(self) -> None:
        for store in {self.store, self.reader}:
            assert store.count() == len(self.model)
            got = {r.id: r for r in store.records(with_vectors=True)}
            assert got.keys() == self.model.keys()
            for id, record in self.model.items():
                assert got[id].text == record["text"]
                assert got[id].metadata == record["metadata"]
                assert (got[id].vector is None) == ("vector" not in record)

    @invariant()
    def is_sound(self) -> None:
        assert self.store.check().ok

    def teardown(self) -> None:
        for store in {self.store, self.reader}:
            store.close()
        shutil.rmtree(self.folder)


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestStore = StoreMachine.TestCase
