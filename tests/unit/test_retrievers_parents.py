"""ParentDocumentRetriever: over one Cormorant, and over any two stores."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.stores import InMemoryByteStore, InMemoryStore

from cormorant.errors import QueryError, RecordError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import ParentDocumentRetriever, SentenceSplitter
from cormorant.langchain.storage import CormorantDocstore, LocalFileStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Lines, Pages, Plain, Unwilling, Words, contents, ids, lines

FISH = lines("a fish swims", "a boat sails", id="fish", topic="sea")
LEDGER = lines("an invoice is due", "a ledger is kept", id="ledger", topic="money")


class Bench(SimpleNamespace):
    """A retriever's stores, as a test looks into them."""

    def children(self) -> dict[str, Document]:
        if isinstance(self.vs, Cormorant):
            return {
                r.id: Document(r.text, id=r.id, metadata=dict(r.metadata))
                for r in self.vs.store.records()
            }
        return {
            key: Document(each["text"], id=key, metadata=each["metadata"])
            for key, each in self.vs.store.items()
        }

    def parents(self) -> list[str]:
        return sorted(self.retriever.docstore.yield_keys())

    def retrieving(self, **values: Any) -> ParentDocumentRetriever:
        given = {"vectorstore": self.vs, "child_splitter": Lines(), **self.stores, **values}
        return ParentDocumentRetriever(**given)


@pytest.fixture(params=["one store", "memory", "bytes", "files", "cormorant and memory", "two"])
def bench(request, tmp_path):
    """Both of a Cormorant; LangChain's stores; and mixtures."""
    stores: dict[str, Any] = {
        "memory": lambda: {"docstore": InMemoryStore()},
        "bytes": lambda: {"byte_store": InMemoryByteStore()},
        "files": lambda: {"byte_store": LocalFileStore(tmp_path / "files")},
        "cormorant and memory": lambda: {"docstore": InMemoryStore()},
    }.get(request.param, dict)()
    vs: Any = Plain()
    other = None
    if request.param in {"one store", "cormorant and memory"}:
        vs = Cormorant(Words(), path=tmp_path / "kb")
    if request.param == "two":
        other = Cormorant(None, path=tmp_path / "other")
        stores = {"docstore": CormorantDocstore(other)}
    made = Bench(vs=vs, stores=stores)
    made.retriever = made.retrieving()
    yield made
    for store in (vs, other):
        if isinstance(store, Cormorant):
            store.close()


@pytest.fixture
def vs(tmp_path):
    with Cormorant(Words(), path=tmp_path / "kb") as store:
        yield store


def over(vs: Any, **values: Any) -> ParentDocumentRetriever:
    return ParentDocumentRetriever(vectorstore=vs, child_splitter=Lines(), **values)


@pytest.fixture(params=["sync", "async"])
def call(request):
    """A method by name, called or awaited."""

    async def asked(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if request.param == "async":
            return await getattr(owner, f"a{name}")(*args, **kwargs)
        return await asyncio.to_thread(getattr(owner, name), *args, **kwargs)

    return asked


# What must hold over any stores


async def test_adding_returns_the_ids_and_searching_the_parents(bench, call):
    assert await call(bench.retriever, "add_documents", [FISH, LEDGER]) == ["fish", "ledger"]
    (found,) = await call(bench.retriever, "invoke", "a boat sails", k=1)
    assert found == FISH
    assert {d.metadata["doc_id"] for d in bench.children().values()} == {"fish", "ledger"}
    assert all(d.metadata["topic"] for d in bench.children().values())


async def test_ids_given_beat_the_documents_own_and_none_becomes_one(bench, call):
    documents = [lines("one"), lines("two", id="own"), lines("three", id="lost")]
    made = await call(bench.retriever, "add_documents", documents, ids=["a", None, "c"])
    assert made[0] == "a"
    assert made[2] == "c"
    assert made[1] not in {None, "own"}
    assert bench.parents() == sorted(made)
    assert bench.retriever.add_documents([lines("four", id="own")]) == ["own"]


async def test_adding_again_replaces_the_old_children(bench, call):
    await call(bench.retriever, "add_documents", [FISH, LEDGER])
    await call(bench.retriever, "add_documents", [lines("a kite flies", id="fish")])
    assert sorted(contents(bench.children().values())) == [
        "a kite flies",
        "a ledger is kept",
        "an invoice is due",
    ]
    (found,) = bench.retriever.invoke("a kite flies", k=1)
    assert (found.id, found.page_content) == ("fish", "a kite flies")
    again = bench.retriever.invoke("a boat sails", k=5)
    assert all("boat" not in each.page_content for each in again)


async def test_deleting_takes_parent_and_children(bench, call):
    await call(bench.retriever, "add_documents", [FISH, LEDGER])
    await call(bench.retriever, "delete", ["fish", "unknown"])
    assert bench.parents() == ["ledger"]
    assert sorted(contents(bench.children().values())) == ["a ledger is kept", "an invoice is due"]
    assert ids(bench.retriever.invoke("a boat sails", k=5)) == ["ledger"]
    await call(bench.retriever, "delete", [])
    assert bench.parents() == ["ledger"]


async def test_k_counts_parents(bench, call):
    many = [lines(*[f"boat {n} {m}" for m in range(40)], id=f"p{n}") for n in range(6)]
    await call(bench.retriever, "add_documents", [*many, FISH])
    for k in (1, 4, 7):
        found = await call(bench.retriever, "invoke", "boat 3", k=k)
        assert len(found) == len(set(ids(found))) == k
        assert found[0].id == "p3"
    assert len(await call(bench.retriever, "invoke", "boat 3")) == 4
    assert len(await call(bench.retriever, "invoke", "boat 3", k=50)) == 7


async def test_a_parents_place_and_score_are_its_best_childs(bench, call):
    await call(bench.retriever, "add_documents", [FISH, LEDGER])
    result = await call(bench.retriever, "retrieve", "a boat sails", k=2)
    best = result.hits[0]
    assert best.id == "fish"
    assert best.journey[-1].stage == "parent"
    assert "2 children found, the best at place 1" in best.journey[-1].says
    if isinstance(bench.vs, Cormorant):
        assert best.score == pytest.approx(1.0, abs=1e-4)
        assert best.legs["vector"].rank == 1
        (shown,) = bench.retriever.invoke("a boat sails", k=1, with_scores=True)
        assert shown.metadata["_cormorant"]["score"] == pytest.approx(1.0, abs=1e-4)


async def test_parts_of_documents_with_ids(bench, call):
    retriever = bench.retriever = bench.retrieving(parent_splitter=Pages())
    text = "a fish swims\na boat sails\n\nan invoice is due\n\na ledger is kept"
    documents = [Document(text, id="a"), Document("a kite flies", id="b")]
    assert await call(retriever, "add_documents", documents) == ["a", "b"]
    assert bench.parents() == ["a#0", "a#1", "a#2", "b#0"]
    (found,) = await call(retriever, "invoke", "a boat sails", k=1)
    assert (found.id, found.page_content) == ("a#0", "a fish swims\na boat sails")
    await call(retriever, "add_documents", [Document("a new page", id="a")])
    assert bench.parents() == ["a#0", "b#0"]
    assert sorted(contents(bench.children().values())) == ["a kite flies", "a new page"]
    await call(retriever, "delete", ["a"])
    assert bench.parents() == ["b#0"]
    assert contents(bench.children().values()) == ["a kite flies"]
    await call(retriever, "delete", ["b#0"])
    assert bench.parents() == []
    assert bench.children() == {}


async def test_child_metadata_fields_that_a_document_lacks_are_skipped(bench, call):
    retriever = bench.retriever = bench.retrieving(child_metadata_fields=["topic", "year"])
    await call(retriever, "add_documents", [lines("a fish", id="f", topic="sea", tags=["x"])])
    (child,) = bench.children().values()
    assert child.metadata == {"topic": "sea", "doc_id": "f"}
    assert retriever.invoke("fish")[0].metadata == {"topic": "sea", "tags": ["x"]}


async def test_no_child_shares_metadata_with_another(bench, call):
    retriever = bench.retriever = bench.retrieving()
    document = lines("one", "two", id="p", tags=["a"])
    await call(retriever, "add_documents", [document])
    assert document.metadata == {"tags": ["a"]}
    first, second = bench.children().values()
    first.metadata["tags"].append("b")
    assert second.metadata["tags"] == ["a"]


async def test_what_a_splitter_changes_is_its_own_copy(bench, call):
    class Marking(Lines):
        def split_documents(self, documents):
            for document in documents:
                document.metadata["tags"].append("cut")
            return super().split_documents(documents)

    retriever = bench.retriever = bench.retrieving(child_splitter=Marking())
    document = lines("a fish", "a boat", id="p", tags=["a"])
    await call(retriever, "add_documents", [document])
    assert document.metadata == {"tags": ["a"]}
    assert retriever.invoke("fish")[0].metadata == {"tags": ["a"]}


async def test_what_is_returned_is_not_what_is_kept(bench, call):
    document = lines("a fish", id="p", tags=["a"])
    await call(bench.retriever, "add_documents", [document])
    document.metadata["tags"].append("given")
    found = bench.retriever.invoke("fish")[0]
    found.metadata["tags"].append("found")
    found.page_content = "changed"
    (again,) = bench.retriever.invoke("fish")
    assert (again.page_content, again.metadata) == ("a fish", {"tags": ["a"]})


@pytest.mark.parametrize("blank", ["", "   \n \n"])
async def test_a_document_no_search_could_find_is_refused(bench, call, blank):
    with pytest.raises(RecordError, match="'blank' has no children"):
        await call(bench.retriever, "add_documents", [FISH, Document(blank, id="blank")])
    assert bench.children() == {}
    assert bench.parents() == []
    with pytest.raises(RecordError, match="has no children"):
        bench.retrieving(parent_splitter=Pages()).add_documents([Document(blank, id="blank")])


@pytest.mark.parametrize(
    ("documents", "given", "says"),
    [
        ([FISH], ["a", "b"], "number of ids"),
        ([FISH, LEDGER], ["a", "a"], "'a' comes twice"),
        ([FISH, FISH], None, "'fish' comes twice"),
        ([FISH], "a", "Put it in a list"),
        (FISH, None, "got one alone. Put it in a list"),
        (["text"], None, "takes Documents; got a str at position 0"),
    ],
)
def test_bad_documents_and_ids_store_nothing(bench, documents, given, says):
    with pytest.raises(RecordError, match=says):
        bench.retriever.add_documents(documents, given)
    assert bench.children() == {}


async def test_parents_that_are_in_the_docstore_need_not_be_given_again(bench, call):
    retriever = bench.retriever
    retriever.docstore.mset([("fish", FISH)])
    await call(retriever, "add_documents", [FISH], ids=["fish"], add_to_docstore=False)
    assert ids(retriever.invoke("a boat sails", k=1)) == ["fish"]
    changed = lines("a kite flies")
    await call(retriever, "add_documents", [changed], ids=["fish"], add_to_docstore=False)
    assert contents(bench.children().values()) == ["a kite flies"]
    assert contents(retriever.invoke("a kite flies", k=1)) == [FISH.page_content]
    with pytest.raises(UsageError, match="give the ids"):
        retriever.add_documents([FISH], add_to_docstore=False)


async def test_an_orphan_takes_no_parents_place_and_is_told_of(bench, call):
    many = [lines(*[f"boat {m}" for m in range(30)], id=f"lost{n}") for n in range(3)]
    await call(bench.retriever, "add_documents", [*many, FISH, LEDGER])
    bench.retriever.docstore.mdelete(["lost0", "lost1", "lost2"])
    result = await call(bench.retriever, "retrieve", "boat 3", k=2)
    assert {hit.id for hit in result} == {"fish", "ledger"}
    assert any("not in the docstore" in says for says in result.degraded)


def test_filters_of_retriever_and_call_both_hold(bench):
    documents = [lines("a fish", id=f"{t}{y}", t=t, y=y) for t in "ab" for y in (1, 2)]
    if not isinstance(bench.vs, Cormorant):
        bench.retriever.search_kwargs = {"filter": lambda child: child.metadata["t"] == "a"}
        bench.retriever.add_documents(documents)
        found = bench.retriever.invoke("fish", filter=lambda child: child.metadata["y"] == 2)
    else:
        bench.retriever.search_kwargs = {"filter": {"t": "a"}}
        bench.retriever.add_documents(documents)
        found = bench.retriever.invoke("fish", filter={"y": 2})
    assert ids(found) == ["a2"]


async def test_both_search_types_and_thresholds(bench, call):
    await call(bench.retriever, "add_documents", [FISH, LEDGER])
    bench.retriever.search_type = "mmr"
    bench.retriever.search_kwargs = {"lambda_mult": 1.0}
    assert ids(await call(bench.retriever, "invoke", "a boat sails", k=1)) == ["fish"]
    exact = bench.retrieving(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.99}
    )
    assert ids(await call(exact, "invoke", "a boat sails")) == ["fish"]
    assert await call(exact, "invoke", "quite another thing") == []


@pytest.mark.parametrize("value", [-0.1, 1.5, "high", True, float("nan")])
def test_a_threshold_outside_its_range_is_refused(bench, value):
    with pytest.raises(QueryError, match="score_threshold must be a number"):
        bench.retrieving(
            search_type="similarity_score_threshold", search_kwargs={"score_threshold": value}
        )


def test_a_threshold_that_is_missing_or_unread_is_refused(bench):
    with pytest.raises(QueryError, match="needs a score_threshold"):
        bench.retrieving(search_type="similarity_score_threshold")
    if isinstance(bench.vs, Cormorant):
        bench.retrieving(search_kwargs={"score_threshold": 0.5})
    else:
        with pytest.raises(UsageError, match="has no effect"):
            bench.retrieving(search_kwargs={"score_threshold": 0.5})
        with pytest.raises(UsageError, match="has no effect"):
            bench.retriever.invoke("fish", score_threshold=0.5)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"child_splitter": None}, "split_documents"),
        ({"parent_splitter": "x"}, "split_documents"),
        ({"child_metadata_fields": "topic"}, "list of names"),
        ({"search_type": "best"}, "search_type must be one of"),
        ({"search_kwargs": {"k": 0}}, "k must be"),
        ({"k": 0}, "k must be"),
        ({"k": 2, "search_kwargs": {"k": 3}}, "given twice"),
        ({"idkey": "x"}, "Did you mean 'id_key'"),
        ({"doc_id": "parent"}, "Say id_key='parent'"),
        ({"vectorstore": None}, "must be a LangChain VectorStore"),
        ({"docstore": {}, "byte_store": None}, "docstore must be"),
    ],
)
def test_what_nobody_reads_is_refused(bench, values, says):
    with pytest.raises((UsageError, QueryError), match=says):
        bench.retrieving(**values)


def test_index_fills_it(bench):
    """LangChain's index() takes vector stores alone."""
    store = bench.retriever.as_vectorstore()
    manager = InMemoryRecordManager("parents")
    manager.create_schema()
    named = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
    first = [lines("a fish", "a boat", source="a"), lines("a ledger", source="b")]
    assert index(first, manager, store, **named)["num_added"] == 2
    second = [lines("a kite", source="a"), lines("a ledger", source="b")]
    done = index(second, manager, store, **named)
    assert (done["num_added"], done["num_deleted"], done["num_skipped"]) == (1, 1, 1)
    assert sorted(contents(bench.children().values())) == ["a kite", "a ledger"]
    assert contents(store.similarity_search("a kite", k=1)) == ["a kite"]
    (key, *_) = bench.parents()
    assert ids(store.get_by_ids([key, "no", key])) == [key]
    with pytest.raises(UsageError):
        store.delete()


async def test_aindex_fills_it(bench):
    store = bench.retriever.as_vectorstore()
    manager = InMemoryRecordManager("parents")
    await manager.acreate_schema()
    documents = [lines("a fish", "a boat", source="a")]
    done = await aindex(documents, manager, store, key_encoder="sha256")
    assert done["num_added"] == 1
    done = await aindex([], manager, store, cleanup="full", key_encoder="sha256")
    assert done["num_deleted"] == 1
    assert bench.children() == {}
    (key,) = await store.aadd_documents([FISH])
    assert ids(await store.aget_by_ids([key])) == ["fish"]
    assert ids(await store.asimilarity_search("boat", k=1)) == ["fish"]


# Over two stores


async def test_a_docstore_that_fails_leaves_no_orphans(call):
    docs = Unwilling()
    retriever = over(Plain(), docstore=docs)
    await call(retriever, "add_documents", [LEDGER])
    docs.full = True
    for documents in ([FISH], [lines("a kite flies", id="ledger")]):
        with pytest.raises(OSError, match="away"):
            await call(retriever, "add_documents", documents)
        kept = [each["text"] for each in retriever.vectorstore.store.values()]
        assert sorted(kept) == ["a ledger is kept", "an invoice is due"]
    docs.full = False
    assert ids(await call(retriever, "invoke", "a ledger", k=3)) == ["ledger"]


async def test_a_store_that_cannot_delete_is_not_left_with_old_children(call):
    class Forever(Plain):
        from langchain_core.vectorstores import VectorStore as _Base

        delete = _Base.delete

    retriever = over(Forever(), docstore=InMemoryStore())
    await call(retriever, "add_documents", [FISH])
    for name, given in (("add_documents", [lines("a kite", id="fish")]), ("delete", ["fish"])):
        with pytest.raises(UsageError, match="cannot delete"):
            await call(retriever, name, given)
    assert len(retriever.vectorstore.store) == 2


def test_another_store_needs_a_docstore():
    with pytest.raises(UsageError, match="keeps no parents"):
        over(Plain())
    with pytest.raises(UsageError, match="give one of them"):
        over(Plain(), docstore=InMemoryStore(), byte_store=InMemoryByteStore())
    with pytest.raises(QueryError, match="needs a Cormorant"):
        over(Plain(), docstore=InMemoryStore(), search_type="hybrid")


def test_arguments_reach_another_stores_add_documents():
    class Told(Plain):
        heard: Any = None

        def add_documents(self, documents, ids=None, **kwargs):
            self.heard = kwargs
            return super().add_documents(documents, ids)

    store = Told()
    over(store, docstore=InMemoryStore()).add_documents([FISH], batch_size=7)
    assert store.heard == {"batch_size": 7}


def test_parents_that_langchain_classic_stored_are_found():
    store, docs = Plain(), InMemoryStore()
    store.add_documents([Document("a fish swims", metadata={"doc_id": "x"})])
    docs.mset([("x", Document("the whole text"))])
    (found,) = over(store, docstore=docs).invoke("fish")
    assert (found.id, found.page_content, found.metadata) == ("x", "the whole text", {})


# Over one Cormorant


async def test_parent_and_children_are_one_transaction(vs, call, monkeypatch):
    retriever = over(vs)
    before = vs.store.stats().lsn
    await call(retriever, "add_documents", [FISH, LEDGER])
    assert vs.store.stats().lsn <= before + 2  # the embedder's fingerprint is one of its own
    lsn = vs.store.stats().lsn
    await call(retriever, "add_documents", [lines("a kite", id="fish")])
    await call(retriever, "delete", ["ledger"])
    assert vs.store.stats().lsn == lsn + 2

    from cormorant.storage import writer

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(writer.keeping, "put", fail)
    with pytest.raises(OSError, match="no"):
        await call(retriever, "add_documents", [lines("a boat", "a mast", id="fish")])
    monkeypatch.undo()
    assert [record.text for record in vs.store.records()] == ["a kite"]
    assert contents(retriever.docstore.mget(["fish"])) == ["a kite"]


def test_an_embedder_that_fails_leaves_all_as_it_was(vs):
    retriever = over(vs)
    retriever.add_documents([FISH])

    class Down(Words):
        def embed_documents(self, texts):
            raise ConnectionError("down")

    broken = over(Cormorant(Down(), store=vs.store, check_embedder=False))
    with pytest.raises(Exception, match="down"):
        broken.add_documents([lines("a kite", id="fish")])
    assert ids(retriever.invoke("a boat sails", k=1)) == ["fish"]
    assert contents(retriever.invoke("a boat sails", k=1)) == [FISH.page_content]


def test_parents_are_not_searched_counted_or_filtered(vs):
    over(vs).add_documents([FISH])
    assert vs.store.count() == 2
    assert {doc.id for doc in vs.similarity_search("fish", k=9)} == {"fish#0", "fish#1"}
    assert vs.get_by_ids(["fish"]) == []
    assert vs.store.count({"topic": "sea"}) == 2


def test_families_survive_closing(tmp_path):
    with Cormorant(Words(), path=tmp_path / "kb") as vs:
        over(vs).add_documents([FISH, LEDGER])
        vs.store.compact()
        vs.store.backup(tmp_path / "copy")
        assert vs.store.check().ok
    for folder in ("kb", "copy"):
        with Cormorant(Words(), path=tmp_path / folder) as vs:
            retriever = over(vs)
            assert retriever.invoke("a boat sails", k=1) == [FISH]
            retriever.delete(["fish", "ledger"])
            assert vs.store.count() == 0


@pytest.mark.parametrize("search_type", ["hybrid", "text"])
def test_words_find_children_too(vs, search_type):
    retriever = over(vs, search_type=search_type)
    retriever.add_documents([FISH, LEDGER])
    assert ids(retriever.invoke("sailing boats", k=1)) == ["fish"]


def test_a_question_is_embedded_once_where_its_first_children_suffice(vs):
    retriever = over(vs)
    retriever.add_documents([FISH, LEDGER])
    vs.embeddings.questions = 0
    retriever.invoke("boat", k=2)
    assert vs.embeddings.questions == 1


def test_a_scope_holds_for_parents(vs):
    acme, other = over(vs.scope(tenant="acme")), over(vs.scope(tenant="other"))
    acme.add_documents([lines("acme's plan", id="p")])
    other.add_documents([lines("the other's plan", id="q")])
    (found,) = acme.invoke("plan", k=9)
    assert (found.id, found.metadata) == ("p", {"tenant": "acme"})
    with pytest.raises(ScopeError, match="taken outside the scope"):
        acme.add_documents([lines("stolen", id="q")])
    acme.delete(["q"])
    assert ids(other.invoke("plan", k=9)) == ["q"]
    # A child may name what it likes: it leads to no parent outside.
    vs.scope(tenant="acme").add_documents([Document("plan", metadata={"doc_id": "q"})])
    result = acme.retrieve("plan", k=9)
    assert [hit.id for hit in result] == ["p"]
    assert "not in the docstore" in result.degraded[0]


def test_a_scope_holds_over_a_docstore_that_knows_none(vs):
    docs = InMemoryStore()
    acme = over(vs.scope(tenant="acme"), docstore=docs)
    acme.add_documents([lines("acme's plan", id="p")])
    docs.mset([("q", Document("the other's", metadata={"tenant": "other"})), ("r", Document("?"))])
    for key in ("q", "r"):
        vs.scope(tenant="acme").add_documents([Document("plan", metadata={"doc_id": key})])
    assert ids(acme.invoke("plan", k=9)) == ["p"]


def test_a_requests_scope_holds_for_parents(vs):
    retriever = over(vs)
    for tenant in ("acme", "other"):
        over(vs.scope(tenant=tenant)).add_documents([lines(f"{tenant}'s plan", id=tenant)])
    config = {"configurable": {"scope": {"tenant": "acme"}}}
    assert ids(retriever.invoke("plan", config, k=9)) == ["acme"]
    assert len(retriever.invoke("plan", k=9)) == 2
    plain = over(Plain(), docstore=InMemoryStore())
    plain.add_documents([FISH])
    with pytest.raises(ScopeError, match="cannot see it"):
        plain.invoke("plan", config)


def test_a_required_scope_is_required(tmp_path):
    with Cormorant(Words(), path=tmp_path / "kb", require_scope=("tenant",)) as vs:
        with pytest.raises(ScopeError):
            over(vs).add_documents([FISH])
        with pytest.raises(ScopeError):
            over(vs).invoke("fish")
        over(vs.scope(tenant="acme")).add_documents([FISH])


def test_add_documents_over_a_cormorant_takes_no_more(vs):
    with pytest.raises(UsageError, match="does not take 'batchsize'"):
        over(vs).add_documents([FISH], batchsize=3)
    over(vs).add_documents([FISH], batch_size=3)


async def test_childrens_search_is_a_run_of_its_own(vs):
    retriever = over(vs)
    await retriever.aadd_documents([FISH])
    events = [
        event
        async for event in retriever.astream_events("boat", version="v2", config={"tags": ["t"]})
    ]
    started = {e["name"]: e for e in events if e["event"] == "on_retriever_start"}
    assert set(started) == {"ParentDocumentRetriever", "CormorantRetriever"}
    parent, child = started["ParentDocumentRetriever"], started["CormorantRetriever"]
    assert child["parent_ids"] == [parent["run_id"]]
    assert "t" in child["tags"]
    assert "children" in child["tags"]


def test_batch_and_stream_work(vs):
    retriever = over(vs, k=1)
    retriever.add_documents([FISH, LEDGER])
    found = retriever.batch(["boat", "ledger"])
    assert [ids(each) for each in found] == [["fish"], ["ledger"]]
    assert [ids(each) for each in retriever.stream("boat")] == [["fish"]]


def test_sentences_are_children_too(vs):
    retriever = ParentDocumentRetriever(
        vectorstore=vs, child_splitter=SentenceSplitter(), search_type="text"
    )
    retriever.add_documents([Document("鸬鹚捕鱼。翅膀会湿。", id="鸟")])
    assert ids(retriever.invoke("捕鱼")) == ["鸟"]
