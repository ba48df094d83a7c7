"""Parents and children against a dict: any sequence of adding, adding again and deleting.

Where the two are in two stores, one call of one of them may fail at any step, before it did
anything or half way. Then all is as it was or the error's notes say what is not, and doing it
again puts it right.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Lines, Pages, Plain, Words

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import ParentDocumentRetriever

IDS = st.sampled_from(["a", "鸟", "b/1"])
LINE = st.sampled_from(["fish", "boat sails", "an old ledger", "鸬鹚 捕鱼", "kite"])
TEXT = st.lists(st.lists(LINE, min_size=1, max_size=3), min_size=1, max_size=3).map(
    lambda pages: "\n\n".join("\n".join(page) for page in pages)
)
ADD = st.tuples(st.just("add"), st.dictionaries(IDS, TEXT, min_size=1))
DELETE = st.tuples(st.just("delete"), st.lists(IDS, max_size=2))
FAULT = st.none() | st.tuples(st.integers(1, 5), st.booleans())
STEPS = st.lists(st.tuples(st.one_of(ADD, ADD, DELETE), FAULT, st.booleans()), max_size=6)


class Fault:
    """Fails at the n-th of the calls that write, before it or half way through; once."""

    def __init__(self) -> None:
        self.left = 0
        self.half = False

    def set(self, fault: tuple[int, bool] | None) -> None:
        self.left, self.half = fault or (0, False)

    def at(self, items: Any) -> list[Any] | None:
        """What is done before it fails; None if it does not."""
        self.left -= 1
        if self.left != 0:
            return None
        given = list(items)
        return given[: len(given) // 2] if self.half else []


class Docs(InMemoryStore):
    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def mset(self, key_value_pairs: Any) -> None:
        done = self.fault.at(key_value_pairs)
        super().mset(key_value_pairs if done is None else done)
        if done is not None:
            raise OSError("mset failed")

    def mdelete(self, keys: Any) -> None:
        done = self.fault.at(keys)
        super().mdelete(keys if done is None else done)
        if done is not None:
            raise OSError("mdelete failed")

    async def amset(self, key_value_pairs: Any) -> None:
        self.mset(key_value_pairs)

    async def amdelete(self, keys: Any) -> None:
        self.mdelete(keys)


class Vectors(Plain):
    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        if self.fault.at([]) is not None:
            raise OSError("add failed")
        return super().add_documents(documents, ids, **kwargs)

    async def aadd_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        return self.add_documents(documents, ids, **kwargs)

    def delete(self, ids: Any = None, **kwargs: Any) -> None:
        done = self.fault.at(ids)
        super().delete(ids if done is None else done, **kwargs)
        if done is not None:
            raise OSError("delete failed")

    async def adelete(self, ids: Any = None, **kwargs: Any) -> None:
        self.delete(ids, **kwargs)


State = tuple[dict[str, str], Counter[tuple[str, str]]]


class Bench:
    """A retriever, its stores and what should be in them."""

    def __init__(self, kind: str, *, parts: bool) -> None:
        self.fault = Fault()
        self.vs: Any = Cormorant(Words()) if "cormorant" in kind else Vectors(self.fault)
        stores = {} if kind == "cormorant" else {"docstore": Docs(self.fault)}
        self.parts = parts
        self.retriever = ParentDocumentRetriever(
            vectorstore=self.vs,
            child_splitter=Lines(),
            parent_splitter=Pages() if parts else None,
            **stores,
        )
        self.model: dict[str, str] = {}

    def close(self) -> None:
        if isinstance(self.vs, Cormorant):
            self.vs.close()

    def do(self, name: str, given: Any, *, awaited: bool) -> None:
        if name == "add":
            given = [Document(text, id=id) for id, text in given.items()]
            name = "add_documents"
        if awaited:
            asyncio.run(getattr(self.retriever, f"a{name}")(given))
        else:
            getattr(self.retriever, name)(given)

    def after(self, name: str, given: Any) -> dict[str, str]:
        if name == "add":
            return {**self.model, **given}
        return {id: text for id, text in self.model.items() if id not in given}

    def expected(self, model: dict[str, str]) -> State:
        parents = {}
        for id, text in model.items():
            pages = {f"{id}#{n}": page for n, page in enumerate(text.split("\n\n"))}
            parents.update(pages if self.parts else {id: text})
        lines = ((key, line) for key, text in parents.items() for line in text.split("\n"))
        return parents, Counter((key, line) for key, line in lines if line)

    def state(self) -> State:
        keys = list(self.retriever.docstore.yield_keys())
        found = zip(keys, self.retriever.docstore.mget(keys), strict=True)
        if isinstance(self.vs, Cormorant):
            children = [(r.metadata["doc_id"], r.text) for r in self.vs.store.records()]
        else:
            children = [(r["metadata"]["doc_id"], r["text"]) for r in self.vs.store.values()]
        return {key: document.page_content for key, document in found}, Counter(children)


@pytest.mark.parametrize("parts", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize("kind", ["cormorant", "two", "cormorant and docstore"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, k=st.integers(1, 6))
def test_stores_hold_what_a_dict_would(kind: str, parts: bool, steps: Any, k: int) -> None:
    bench = Bench(kind, parts=parts)
    try:
        for (name, given), fault, awaited in steps:
            before = bench.state()
            bench.fault.set(fault)
            after = bench.after(name, given)
            try:
                bench.do(name, given, awaited=awaited)
            except OSError as error:
                notes = getattr(error, "__notes__", [])
                bench.fault.set(None)
                assert bench.state() == before or notes, "half done, and nothing says so"
                bench.do(name, given, awaited=awaited)
            bench.fault.set(None)
            bench.model = after
            assert bench.state() == bench.expected(after)
        parents, _ = bench.expected(bench.model)
        found = bench.retriever.invoke("fish boat", k=k)
        assert len(found) == len({each.id for each in found}) == min(k, len(parents))
        assert {each.id: each.page_content for each in found}.items() <= parents.items()
    finally:
        bench.close()
