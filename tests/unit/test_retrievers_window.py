"""Windows: sentences around a sentence, and chunks around a chunk."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Comparator, Comparison

from cormorant.errors import QueryError, ScopeError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    PreviousNextRetriever,
    SentenceSplitter,
    SentenceWindowRetriever,
)
from cormorant.langchain.retrievers.sentences import sentence_spans

sys.path.insert(0, str(Path(__file__).parents[1]))
from parentlab import Plain, Words, contents, ids
from retrieverlab import Fixed

# Sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("One", ["One"]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("鸬鹚捕鱼。翅膀会湿吗？会！", ["鸬鹚捕鱼。", "翅膀会湿吗？", "会！"]),
        ("他说：“走。”然后走了。", ["他说：“走。”", "然后走了。"]),
        ('He said "go." Then he went.', ['He said "go."', "Then he went."]),
        (
            "Version 1.2 of a.b runs. See e.g. Dr. Wu.",
            ["Version 1.2 of a.b runs.", "See e.g. Dr. Wu."],
        ),
        ("A heading\n\nIts text", ["A heading", "Its text"]),
        ("Wait... what?! Yes…no", ["Wait...", "what?!", "Yes…", "no"]),
        ("J. Smith wrote it. End", ["J. Smith wrote it.", "End"]),
    ],
)
def test_where_sentences_end(text, sentences):
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@given(st.text(alphabet=".!?。！？ \n\"'”)a文A1", max_size=60))
def test_sentences_hold_all_but_space_once_in_order(text):
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))
    left = "".join(text[start:end] for start, end in spans)
    assert "".join(left.split()) == "".join(text.split())


def test_a_sentence_says_where_it_begins_though_it_comes_twice():
    made = SentenceSplitter().split_documents([Document("Yes. No. Yes.", metadata={"t": ["x"]})])
    assert [each.metadata["start_index"] for each in made] == [0, 5, 9]
    made[0].metadata["t"].append("y")
    assert made[1].metadata["t"] == ["x"]
    assert SentenceSplitter().split_text("Yes. No.") == ["Yes.", "No."]


# Windows of sentences

TEXT = "One rock. Two birds. Three boats. Four fish.  Five kites. Six nests. Seven sails."


@pytest.fixture(params=["one store", "two stores"])
def making(request):
    vs = Plain() if request.param == "two stores" else Cormorant(Words())
    more = {"docstore": InMemoryStore()} if request.param == "two stores" else {}

    def make(**values):
        return SentenceWindowRetriever(vectorstore=vs, **more, **values)

    yield make
    if isinstance(vs, Cormorant):
        vs.close()


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (0, "Four fish."),
        (1, "Three boats. Four fish.  Five kites."),
        (2, "Two birds. Three boats. Four fish.  Five kites. Six nests."),
        (9, TEXT),
    ],
)
def test_a_window_is_cut_from_the_document_itself(making, window, text):
    retriever = making(window=window)
    retriever.add_documents([Document(TEXT, id="d", metadata={"page": 1})])
    (found, *_) = retriever.invoke("four fish", k=1)
    assert found.page_content == text
    start = TEXT.index(text)
    assert found.metadata == {"page": 1, "start_index": start}
    assert found.id == f"d[{start}:{start + len(text)}]"


async def test_windows_that_touch_become_one(making):
    retriever = making(window=1)
    await retriever.aadd_documents([Document(TEXT, id="d"), Document("Other fish. Swim.", id="e")])
    result = await retriever.aretrieve("four fish five kites", k=2)
    first, second = (hit.text for hit in result)
    assert first == "Three boats. Four fish.  Five kites. Six nests."
    assert second == "Other fish. Swim."
    assert "of 2 children found, the best at place 1" in result.hits[0].journey[-1].says


def test_only_as_many_sentences_as_k_windows_need_have_one(making):
    retriever = making(window=0)
    retriever.add_documents([Document(TEXT, id="d")])
    for k in range(1, 8):
        found = retriever.invoke("four fish", k=k)
        assert len(found) == k
        assert found[0].page_content == "Four fish."
    assert len(retriever.invoke("four fish", k=20)) == 7


def test_more_sentences_of_one_document_are_asked_for_while_windows_are_missing(making):
    retriever = making(window=30)
    text = "Fish swim here. " * 30 + "Rocks. " * 100 + "A fish."
    retriever.add_documents([Document(text, id="d")])
    assert len(retriever.invoke("fish swim here", k=1)) == 1
    first, second = contents(retriever.invoke("fish swim here", k=2))
    assert first == "Fish swim here. " * 30 + ("Rocks. " * 30).strip()
    assert second == "Rocks. " * 30 + "A fish."


def test_a_repeated_sentence_has_the_window_of_its_own_place(making):
    retriever = making(window=1)
    text = "Yes. Alpha. Beta. Gamma. Yes, birds. Delta."
    retriever.add_documents([Document(text, id="d")])
    assert contents(retriever.invoke("yes birds", k=1))[0].endswith("Gamma. Yes, birds. Delta.")


def test_what_is_not_word_for_word_in_the_document_has_all_of_it_for_a_window(making):
    retriever = making(window=1)
    retriever.add([Document(TEXT, id="d")], [["what swims?"]])
    assert contents(retriever.invoke("what swims", k=1)) == [TEXT]


def test_chunks_without_start_index_are_looked_for(making):
    class Bare:
        def split_documents(self, documents):
            return [
                Document(s)
                for d in documents
                for s in SentenceSplitter().split_text(d.page_content)
            ]

    retriever = making(window=1, child_splitter=Bare())
    retriever.add_documents([Document(TEXT, id="d")])
    assert contents(retriever.invoke("four fish", k=1)) == ["Three boats. Four fish.  Five kites."]


@pytest.mark.parametrize("value", [-1, 1.5, True, "3"])
def test_a_window_is_a_whole_number(making, value):
    with pytest.raises(QueryError, match="window must be a whole number"):
        making(window=value)
    with pytest.raises(UsageError, match="no window"):
        making(window=1001)


# Chunks before and after


def chunks(count, source="d", **metadata):
    return [
        Document(f"chunk {source} {n}", id=f"{source}#{n}", metadata={"n": n, **metadata})
        for n in range(count)
    ]


@pytest.fixture(params=["cormorant", "plain"])
def store(request):
    vs = Plain() if request.param == "plain" else Cormorant(Words())
    vs.add_documents([*chunks(6), *chunks(2, "e")])
    yield vs
    if isinstance(vs, Cormorant):
        vs.close()


def around(store, found, **values):
    return PreviousNextRetriever(retriever=Fixed(docs=found), vectorstore=store, **values)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [(1, 1, [2, 3, 4]), (0, 2, [3, 4, 5]), (2, 0, [1, 2, 3]), (9, 9, range(6))],
)
def test_a_chunk_comes_with_its_neighbours(store, before, after, wanted):
    (found,) = around(store, [chunks(6)[3]], before=before, after=after).invoke("x")
    assert found.page_content == "\n".join(f"chunk d {n}" for n in wanted)
    assert found.id == f"d#{min(wanted)}-{max(wanted)}"
    assert found.metadata == {"n": 3}


async def test_rows_that_touch_become_one_and_others_stay_apart(store):
    found = [chunks(6)[5], chunks(2, "e")[0], chunks(6)[3], chunks(6)[0]]
    made = await around(store, found).ainvoke("x")
    assert ids(made) == ["d#0-5", "e#0-1"]
    assert ids(around(store, found, before=0, after=0).invoke("x")) == ["d#5", "e#0", "d#3", "d#0"]


def test_a_chunk_that_names_no_place_is_returned_as_it_is(store):
    odd = [Document("a", id=None), Document("b", id="x"), Document("c", id="d#03"), chunks(6)[3]]
    assert ids(around(store, odd).invoke("x")) == [None, "x", "d#03", "d#2-4"]


def test_a_gap_ends_the_row(store):
    store.delete(["d#2"])
    assert ids(around(store, [chunks(6)[3]], before=3, after=1).invoke("x")) == ["d#3-4"]


def test_what_overlapping_chunks_share_is_there_once():
    text = "The cormorant dives and brings the fish back to the boat."
    cut = [(0, 20), (14, 40), (34, len(text))]
    made = [
        Document(text[lo:hi], id=f"d#{n}", metadata={"start_index": lo})
        for n, (lo, hi) in enumerate(cut)
    ]
    store = Plain()
    store.add_documents(made)
    (found,) = around(store, [made[1]], separator="|").invoke("x")
    assert found.page_content == text
    assert found.metadata == {"start_index": 0}
    wrong = [
        Document("aXb", id="w#0", metadata={"start_index": 0}),
        Document("bYc", id="w#1", metadata={"start_index": 1}),
    ]
    store.add_documents(wrong)
    assert contents(around(store, [wrong[0]], separator="|").invoke("x")) == ["aXb|bYc"]


def test_it_asks_a_store_and_its_neighbours_inside_the_scope():
    with Cormorant(Words()) as vs:
        vs.scope(tenant="acme").add_documents(chunks(2))
        vs.scope(tenant="other").add_documents([Document("chunk d 2", id="d#2")])
        retriever = PreviousNextRetriever(retriever=vs.as_retriever(k=1), vectorstore=vs)
        config = {"configurable": {"scope": {"tenant": "acme"}}}
        assert ids(retriever.invoke("chunk d 1", config)) == ["d#0-1"]
        assert ids(retriever.invoke("chunk d 1")) == ["d#0-2"]
        assert ids(retriever.invoke("chunk", filter={"tenant": "other"})) == ["d#2"]
        assert len(retriever.retrieve("chunk d 1", k=3)) == 1
        plain = PreviousNextRetriever(retriever=vs.as_retriever(k=1), vectorstore=Plain())
        with pytest.raises(ScopeError, match="cannot see it"):
            plain.invoke("chunk d 1", config)


ADMITTED = Comparison(comparator=Comparator.LTE, attribute="n", value=3)


@pytest.mark.parametrize("filter", [{"n": {"$lte": 3}}, lambda d: d.metadata["n"] <= 3, ADMITTED])
async def test_what_the_calls_filter_excludes_is_not_joined(filter):
    with Cormorant(Words()) as vs:
        vs.add_documents(chunks(6))
        retriever = PreviousNextRetriever(
            retriever=vs.as_retriever(k=1), vectorstore=vs, before=1, after=2
        )
        assert ids(retriever.invoke("chunk d 3")) == ["d#2-5"]
        for found in (
            retriever.retrieve("chunk d 3", filter=filter),
            await retriever.aretrieve("chunk d 3", filter=filter),
        ):
            assert [hit.id for hit in found] == ["d#2-3"]
            assert found.degraded == ()


def test_neighbours_that_a_filter_cannot_judge_are_not_joined_and_that_is_said():
    with Cormorant(Words()) as vs:
        vs.add_documents(chunks(6))
        retriever = PreviousNextRetriever(retriever=vs.as_retriever(k=1), vectorstore=vs)
        found = retriever.retrieve("chunk d 3", filter={"$text": "chunk"})
        assert [hit.id for hit in found] == ["d#3"]
        assert "were not joined: it cannot be told whether the filter" in found.degraded[0]
        alone = PreviousNextRetriever(
            retriever=vs.as_retriever(k=1), vectorstore=vs, before=0, after=0
        )
        assert alone.retrieve("chunk d 3", filter={"$text": "chunk"}).degraded == ()


def test_its_numbers_are_whole(store):
    for name in ("before", "after"):
        with pytest.raises(QueryError, match=f"{name} must be"):
            around(store, [], **{name: -1})
    assert not around(store, []).accepts("k")
