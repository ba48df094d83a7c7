"""A LangChain retriever or chain as a system: ids, scores, tokens, and what its run remembers."""

from __future__ import annotations

import json

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from pydantic import SecretStr

import cormorant
from cormorant.errors import UsageError
from cormorant.evaluate import judge, run_system
from cormorant.langchain import Cormorant
from cormorant.langchain.evaluation import Price, as_system

TEXTS = ["a fish swims", "a bird flies", "a cormorant dives for fish"]
QUERIES = {"1": "fish", "2": "bird"}


@pytest.fixture
def vs():
    sources = [{"source": name} for name in ("f.md", "b.md", "f.md")]
    embedding = DeterministicFakeEmbedding(size=8)
    with Cormorant.from_texts(TEXTS, embedding, sources, ids=["a", "b", "c"]) as made:
        yield made


class Plain(BaseRetriever):
    """Somebody else's: no scores, no ids."""

    k: int = 2
    api_key: str = "very secret"
    password: SecretStr = SecretStr("very secret")

    def _get_relevant_documents(self, query, *, run_manager):
        found = [Document(text, metadata={"source": f"{i}.md"}) for i, text in enumerate(TEXTS)]
        return [document for document in found if query in document.page_content][: self.k]


def test_our_retriever_gives_ids_and_the_scores_of_its_last_stage(vs):
    retriever = vs.as_retriever(search_type="text")
    run = run_system(as_system(retriever), QUERIES)
    hits = vs.store.search(cormorant.Query(text="fish", top_k=4)).hits
    assert run.rankings["1"] == tuple((hit.id, hit.score) for hit in hits)
    assert judge(run, {"1": {"a": 1}, "2": {"b": 1}}, "hit@1").means == {"hit@1": 1.0}
    assert run.name == retriever.get_name()


def test_somebody_elses_documents_are_named_by_metadata():
    with pytest.raises(UsageError, match="id_key"):
        run_system(as_system(Plain()), QUERIES)
    with pytest.raises(UsageError, match="'nothing'"):
        run_system(as_system(Plain(), id_key="nothing"), QUERIES)
    run = run_system(as_system(Plain(), id_key="source"), QUERIES)
    assert run.rankings == {"1": (("0.md", 1.0), ("2.md", 0.5)), "2": (("1.md", 1.0),)}


def test_hits_of_one_document_count_once(vs):
    system = as_system(vs.as_retriever(search_type="text"))
    assert set(run_system(system, {"1": "fish"}, by="source").ids("1")) == {"f.md"}


@pytest.mark.parametrize("documents", [None, "docs", lambda returned: returned["docs"]])
def test_a_chain_returns_its_documents_among_other_things(vs, documents):
    retriever = RunnableLambda(lambda asked: asked["question"]) | vs.as_retriever(
        search_type="text"
    )
    key = "context" if documents is None else "docs"
    chain = RunnablePassthrough.assign(**{key: retriever})
    system = as_system(chain, input_key="question", documents=documents)
    assert run_system(system, QUERIES).ids("2") == ("b",)
    with pytest.raises(UsageError, match=r"question.*documents='context'"):
        run_system(as_system(chain, input_key="question", documents="elsewhere"), QUERIES)


def test_tokens_and_their_price_stand_beside_quality(vs):
    def message(name):
        told = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        named = {"model_name": name} if name else {}
        return AIMessage("fish", usage_metadata=told, response_metadata=named)

    model = GenericFakeChatModel(messages=iter([message("small"), message(None)]))
    chain = model | (lambda answer: answer.text) | vs.as_retriever(search_type="text")
    system = as_system(chain, prices={"small": Price(read=1.0, written=10.0)})
    run = run_system(system, QUERIES)
    assert [cost.tokens for cost in run.costs.values()] == [120, 120]
    assert run.costs["1"].usd == pytest.approx((100 * 1 + 20 * 10) / 1e6)
    assert run.costs["2"].usd == 0, "a model without a name has no known price"


def test_callbacks_and_scope_of_the_callers_config_are_kept(vs):
    vs.add_texts(["another fish"], metadatas=[{"source": "x", "tenant": "acme"}], ids=["d"])
    seen = []

    class Watching(RunnableLambda):
        pass

    def note(text, config):
        seen.append(config["tags"])
        return text

    chain = Watching(note) | vs.as_retriever(search_type="text")
    config = {"configurable": {"scope": {"tenant": "acme"}}, "tags": ["mine"]}
    run = run_system(as_system(chain, config=config), {"1": "fish"})
    assert run.ids("1") == ("d",)
    assert seen == [["mine"]]


def test_a_failing_chain_is_recorded():
    def fail(_):
        raise ValueError("no")

    run = run_system(as_system(RunnableLambda(fail)), QUERIES, on_error="record")
    assert run.failed == {"1": "ValueError: no", "2": "ValueError: no"}


def test_what_is_degraded_reaches_the_run():
    with Cormorant.from_texts(TEXTS, None, ids=["a", "b", "c"]) as vs:
        found = vs.as_retriever(search_type="text").invoke("fish")
        chain = RunnableLambda(lambda _: found.degrading("half of it"))
        assert run_system(as_system(chain), {"1": "x"}).degraded == {"1": ("half of it",)}


def test_the_configuration_is_hashed_into_the_run(vs):
    def hashed(**arguments):
        return run_system(as_system(vs.as_retriever(**arguments)), QUERIES).config_hash

    text = hashed(search_type="text")
    assert text == hashed(search_type="text")
    assert len({text, hashed(search_type="text", k=2), hashed(search_type="hybrid")}) == 3


def test_secrets_are_not_written_into_runs():
    chain = Plain() | RunnableLambda(lambda found: found)
    system = as_system(chain.with_config(tags=["x"]), id_key="source")
    run = run_system(system, QUERIES)
    written = json.dumps(run.config)
    assert "very secret" not in written
    assert '"k": 2' in written


def test_what_is_no_runnable_is_refused():
    with pytest.raises(UsageError, match="run_system as it is"):
        as_system(len)
