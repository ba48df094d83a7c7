"""Does a scope stay in force, whatever configs and chains stand inside it?"""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import tool

from cormorant.errors import ScopeError, UsageError
from cormorant.filters import parse
from cormorant.langchain import Cormorant, scoping
from cormorant.langchain.retrievers import EnsembleRetriever, MergerRetriever
from cormorant.langchain.scopes.in_force import scope_in_force
from cormorant.langchain.storage import CormorantDocstore

FAKE = DeterministicFakeEmbedding(size=6)
TENANTS = ("acme", "rival", "third")


def config(scope: Any = None, **configurable: Any) -> Any:
    return {"configurable": {**({} if scope is None else {"scope": scope}), **configurable}}


ACME = config({"tenant": "acme"})
INNER = [
    config(thread_id="1"),
    config({}),
    config({"tenant": {"$exists": True}}),
    config({"tenant": {"$in": list(TENANTS)}}),
    {**config(thread_id="1"), "callbacks": []},
    {**config(thread_id="1"), "callbacks": [BaseCallbackHandler()]},
    {**config(thread_id="1"), "callbacks": CallbackManager([])},
    {**config(thread_id="1"), "tags": ["t"], "metadata": {"scope": "x"}},
]


@pytest.fixture
def vs() -> Iterator[Cormorant]:
    with Cormorant(FAKE) as store:
        for tenant in TENANTS:
            store.scope(tenant=tenant).add_texts(
                [f"fish {number}" for number in range(3)],
                [{"n": number} for number in range(3)],
                ids=[f"{tenant}-{number}" for number in range(3)],
            )
        yield store


def passed() -> Runnable[Any, Any]:
    return RunnablePassthrough()


def ids(found: Any) -> set[str]:
    return {document.id for document in found}


OF_ACME = {"acme-0", "acme-1", "acme-2"}

Wrap = Callable[[Runnable[Any, Any], Any], Runnable[Any, Any]]


def by_invoke(inner: Runnable[Any, Any], given: Any) -> Runnable[Any, Any]:
    async def awaited(question: str) -> Any:
        return await inner.ainvoke(question, given)

    return RunnableLambda(lambda question: inner.invoke(question, given), awaited)


def by_batch(inner: Runnable[Any, Any], given: Any) -> Runnable[Any, Any]:
    async def awaited(question: str) -> Any:
        return (await inner.abatch([question] * 3, given))[2]

    return RunnableLambda(lambda question: inner.batch([question] * 3, given)[2], awaited)


def by_stream(inner: Runnable[Any, Any], given: Any) -> Runnable[Any, Any]:
    async def awaited(question: str) -> Any:
        return [each async for part in inner.astream(question, given) for each in part]

    return RunnableLambda(
        lambda question: [each for part in inner.stream(question, given) for each in part],
        awaited,
    )


def by_generator(inner: Runnable[Any, Any], given: Any) -> Runnable[Any, Any]:
    def generate(questions: Iterator[str]) -> Iterator[Any]:
        for question in questions:
            yield inner.invoke(question, given)

    async def agenerate(questions: Any) -> Any:
        async for question in questions:
            yield await inner.ainvoke(question, given)

    return RunnableGenerator(generate, agenerate)


def by_tool(inner: Runnable[Any, Any], given: Any) -> Runnable[Any, Any]:
    @tool
    def find(question: str) -> Any:
        """Finds."""
        return inner.invoke(question, given)

    return RunnableLambda(lambda question: {"question": question}) | find


WRAPS: list[Wrap] = [by_invoke, by_batch, by_stream, by_generator, by_tool]


def chains(vs: Cormorant) -> list[Runnable[Any, Any]]:
    retriever = vs.as_retriever(k=20)
    return [
        retriever,
        passed() | retriever,
        RunnableParallel(found=retriever) | (lambda found: found["found"]),
        RunnableBranch((lambda _: True, passed() | retriever), retriever),
        passed() | retriever.with_retry(),
        passed() | retriever.with_fallbacks([retriever]),
        passed() | EnsembleRetriever(retrievers=[retriever, retriever], weights=[0.5, 0.5]),
        passed() | MergerRetriever(retrievers=[retriever]),
    ]


@pytest.mark.parametrize("inner", INNER)
async def test_an_inner_config_does_not_undo_the_scope_around(vs: Cormorant, inner: Any) -> None:
    wrapped = [wrap(chains(vs)[1], inner) for wrap in WRAPS]
    for outer in (*wrapped, *(by_invoke(chain, inner) for chain in chains(vs))):
        assert ids(outer.invoke("fish", ACME)) == OF_ACME
        assert ids(await outer.ainvoke("fish", ACME)) == OF_ACME
        assert all(ids(each) == OF_ACME for each in outer.batch(["fish"] * 2, ACME))
        assert all(ids(each) == OF_ACME for each in await outer.abatch(["fish"] * 2, ACME))
        assert ids(each for part in outer.stream("fish", ACME) for each in part) == OF_ACME
        streamed = [each async for part in outer.astream("fish", ACME) for each in part]
        assert ids(streamed) == OF_ACME


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("middle", [INNER[0], INNER[3], INNER[6]])
async def test_three_levels(vs: Cormorant, wrap: Wrap, middle: Any) -> None:
    for chain in chains(vs)[:2]:
        for inner, expected in (
            (INNER[0], OF_ACME),
            (INNER[4], OF_ACME),
            (config({"n": {"$lt": 2}}), {"acme-0", "acme-1"}),
        ):
            outer = wrap(passed() | wrap(chain, inner), middle)
            assert ids(outer.invoke("fish", ACME)) == expected
            assert ids(await outer.ainvoke("fish", ACME)) == expected


def test_another_tenant_inside_finds_nothing(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=20)
    chain = passed() | retriever
    rival = config({"tenant": "rival"})
    assert by_invoke(chain, rival).invoke("fish", ACME) == []
    middle = by_invoke(by_invoke(chain, rival), config({"n": 1}))
    assert middle.invoke("fish", ACME) == []
    ensemble = passed() | MergerRetriever(retrievers=[retriever])
    assert by_invoke(ensemble, rival).invoke("fish", ACME) == []


def test_scopes_with_the_same_operator_hold_together(vs: Cormorant) -> None:
    merged = MergerRetriever(retrievers=[vs.as_retriever(k=20)])
    chain = by_invoke(passed() | merged, config({"n": {"$gte": 0, "$lt": 2}}))
    for between in ({"n": {"$gte": 1}}, {"n": {"$not": {"$lt": 1}}}):
        found = by_invoke(chain, config(between)).invoke("fish", config({"n": {"$gte": -1}}))
        assert ids(found) == {f"{tenant}-1" for tenant in TENANTS}
    with scoping(n={"$not": {"$lt": 1}}), scoping(n={"$not": {"$gt": 1}}):
        assert ids(vs.as_retriever(k=20).invoke("fish")) == {f"{each}-1" for each in TENANTS}
        with pytest.raises(ScopeError, match="cannot be written as one"):
            merged.invoke("fish")


OPERATORS: list[Any] = [
    *({op: bound} for op in ("$gte", "$lt", "$eq", "$ne") for bound in (0, 1)),
    *({"$in": values} for values in ([0], [0, 1], [1, 2])),
    *({"$not": {"$gte": bound}} for bound in (1, 2)),
    {"$exists": True},
    {"$gte": 0, "$lte": 1},
    1,
]


@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("inner", OPERATORS)
def test_scopes_as_one_admit_what_all_of_them_admit(outer: Any, inner: Any) -> None:
    values: list[dict[str, Any]] = [{}, *({"n": n} for n in (0, 1, 2, [0, 2], None, "x"))]
    scopes = [{"n": outer}, {"n": inner}, {"n": {"$gte": 0}}]
    with scoping(**scopes[0]), scoping(**scopes[1]), scoping(**scopes[2]):
        try:
            joined = parse(scope_in_force() or {})
        except ScopeError:
            assert "$not" in str(outer)
            assert "$not" in str(inner)
            return
    for value in values:
        assert joined.matches(value) == all(parse(scope).matches(value) for scope in scopes)


def test_what_is_no_scope_is_refused_from_an_outer_config_too(vs: Cormorant) -> None:
    chain = by_invoke(passed() | vs.as_retriever(), config(thread_id="1"))
    with pytest.raises(ScopeError, match="must be a dict"):
        chain.invoke("fish", config("acme"))


def test_one_request_leaves_nothing_to_the_next(vs: Cormorant) -> None:
    chain = by_invoke(passed() | vs.as_retriever(k=20), config(thread_id="1"))
    assert ids(chain.invoke("fish", ACME)) == OF_ACME
    assert len(chain.invoke("fish")) == 9
    assert ids(chain.invoke("fish", config({"tenant": "third"}))) == {
        f"third-{number}" for number in range(3)
    }


@pytest.mark.parametrize("shared", [[], CallbackManager([]), [BaseCallbackHandler()]])
def test_callbacks_that_requests_share_keep_nothing_of_one(vs: Cormorant, shared: Any) -> None:
    chain = passed() | vs.as_retriever(k=20)
    outer = by_invoke(by_invoke(chain, {"callbacks": shared}), config(thread_id="1"))
    for tenant in TENANTS:
        found = outer.invoke("fish", ACME | config({"tenant": tenant}) | {"callbacks": shared})
        assert ids(found) == {f"{tenant}-{number}" for number in range(3)}
    assert len(outer.invoke("fish", {"callbacks": shared})) == 9


class Handing(BaseRetriever):
    """A retriever as LangChain's own ones are: it hands on its callbacks alone."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.inner.invoke(query, {"callbacks": run_manager.get_child()})


def test_what_cannot_be_held_is_what_the_documentation_says(vs: Cormorant) -> None:
    retriever = vs.as_retriever(k=20)
    foreign = Handing(inner=retriever)

    # with_config of a chain: LangChain merges before anything of ours is asked.
    chain = passed() | retriever
    assert len(chain.with_config(ACME).invoke("fish", config({}))) == 9
    assert ids(retriever.with_config(ACME).invoke("fish", config({}))) == OF_ACME
    # A foreign retriever asked with the config itself, not inside a chain that has it.
    assert len(foreign.invoke("fish", ACME)) == 9
    assert ids((passed() | foreign).invoke("fish", ACME)) == OF_ACME
    inner = by_invoke(passed() | foreign, config(thread_id="1"))
    assert ids(inner.invoke("fish", ACME)) == OF_ACME
    # The vector store itself reads no config.
    direct: Runnable[Any, Any] = RunnableLambda(
        lambda question: vs.similarity_search(question, k=20)
    )
    assert len(direct.invoke("fish", ACME)) == 9

    with scoping(tenant="acme"):
        assert ids(chain.with_config(ACME).invoke("fish", config({}))) == OF_ACME
        assert ids(foreign.invoke("fish")) == OF_ACME
        assert ids(direct.invoke("fish")) == OF_ACME


def test_a_thread_started_by_hand_has_no_scope_and_a_store_can_require_one() -> None:
    with Cormorant(FAKE, require_scope=("tenant",)) as vs:
        vs.scope(tenant="acme").add_texts(["a fish"], ids=["a"])
        retriever = vs.as_retriever()
        answers: list[Any] = []

        def ask(question: str) -> None:
            try:
                answers.append(retriever.invoke(question))
            except ScopeError as error:
                answers.append(error)

        def by_hand(question: str) -> Any:
            for context in (None, contextvars.copy_context()):
                work = functools.partial(ask, question)
                inside = work if context is None else functools.partial(context.run, work)
                thread = threading.Thread(target=inside)
                thread.start()
                thread.join()
            return answers

        refused, found = RunnableLambda(by_hand).invoke("fish", ACME)
        assert isinstance(refused, ScopeError)
        assert ids(found) == {"a"}


async def test_requests_at_the_same_time_do_not_meet(vs: Cormorant) -> None:
    async def slow(question: str) -> str:
        await asyncio.sleep(0)
        return question

    chain = by_invoke(RunnableLambda(slow) | vs.as_retriever(k=20), config(thread_id="1"))
    answers = await asyncio.gather(
        *(chain.ainvoke("fish", config({"tenant": tenant})) for tenant in TENANTS * 10)
    )
    for tenant, answer in zip(TENANTS * 10, answers, strict=True):
        assert ids(answer) == {f"{tenant}-{number}" for number in range(3)}


def test_a_run_without_a_scope_gets_no_handler_of_ours(vs: Cormorant) -> None:
    seen: list[Any] = []

    def look(question: str, config: Any) -> str:
        seen.append(config["callbacks"].handlers)
        return question

    chain = by_invoke(passed() | RunnableLambda(look), config(thread_id="1"))
    chain.invoke("fish")
    chain.invoke("fish", config(user="u"))
    assert seen == [[], []]
    for _ in range(5):
        chain = by_invoke(chain, ACME)
    chain.invoke("fish", ACME)
    assert len(seen[-1]) == 1, "one note says it, however deep"


def test_a_scope_beside_configurable_counts_as_langchain_has_it(vs: Cormorant) -> None:
    beside: Any = {"scope": {"tenant": "acme"}}
    retriever = vs.as_retriever(k=20)
    assert ids(retriever.invoke("fish", beside)) == OF_ACME
    assert ids((passed() | retriever).invoke("fish", beside)) == OF_ACME


# scoping


async def test_scoping_narrows_everything_inside(vs: Cormorant) -> None:
    for chain in chains(vs):
        for inner in INNER[:5:2]:
            outer = by_invoke(chain, inner)
            with scoping(tenant="acme"):
                assert ids(chain.invoke("fish", inner)) == OF_ACME
                assert ids(outer.invoke("fish")) == OF_ACME
                assert ids(await outer.ainvoke("fish")) == OF_ACME
                assert all(ids(each) == OF_ACME for each in outer.batch(["fish"] * 3))
                task = asyncio.create_task(outer.ainvoke("fish", config({})))
            assert ids(await task) == OF_ACME
    assert len(vs.as_retriever(k=20).invoke("fish")) == 9


async def test_scoping_holds_for_the_vector_store(vs: Cormorant) -> None:
    rival = ["rival-0", "acme-0"]
    with scoping(tenant="acme"):
        assert ids(vs.similarity_search("fish", k=20)) == OF_ACME
        assert ids(await vs.asimilarity_search("fish", k=20)) == OF_ACME
        assert ids(vs.similarity_search_by_vector([1.0] * 6, k=20)) == OF_ACME
        assert ids(vs.get_by_ids(rival)) == {"acme-0"}
        assert ids(await vs.aget_by_ids(rival)) == {"acme-0"}
        assert vs.store.count() == 3
        assert vs.scope(n=1).store.count() == 1
        kept = vs.scope(n=1)
        vs.add_texts(["whale"], ids=["new"])
        await vs.aadd_texts(["whale"], ids=["new-2"])
        with pytest.raises(ScopeError):
            vs.add_texts(["whale"], [{"tenant": "rival"}])
        vs.delete(["rival-0", "new-2"])
        await vs.adelete(filter={"n": 2})
        docs = CormorantDocstore(vs)
        docs.mset([("d", Document(page_content="doc"))])
        assert docs.store is vs.store
    assert kept.store.count() == 1, "a view made inside keeps what it was made under"
    assert vs.store.count() == 9
    assert vs.get_by_ids(["new"])[0].metadata == {"tenant": "acme"}
    shared = CormorantDocstore(vs)
    assert shared.mget(["d"])[0] is not None
    with scoping(tenant="rival"):
        assert shared.mget(["d"]) == [None]


def test_scopings_nest_and_end(vs: Cormorant) -> None:
    with scoping(tenant="acme"):
        with scoping(n={"$gte": 1}), scoping(n={"$lte": 1}):
            assert ids(vs.similarity_search("fish", k=20)) == {"acme-1"}
        with scoping(tenant="rival"):
            assert vs.similarity_search("fish", k=20) == []
        with pytest.raises(ZeroDivisionError), scoping(n=0):
            raise ZeroDivisionError
        assert ids(vs.similarity_search("fish", k=20)) == OF_ACME
        assert ids(vs.as_retriever(k=20).invoke("fish", config({"n": 1}))) == {"acme-1"}
        found = vs.as_retriever(k=20).invoke("fish", config({"tenant": "rival"}))
        assert found == []
    assert len(vs.similarity_search("fish", k=20)) == 9
    with scoping(n=True):
        assert vs.similarity_search("fish", k=20) == []


def test_scoping_satisfies_a_required_scope() -> None:
    with Cormorant(FAKE, require_scope=("tenant",)) as vs:
        with scoping(tenant="acme"):
            vs.add_texts(["a fish"])
            assert len(vs.similarity_search("fish")) == 1
        with pytest.raises(ScopeError), scoping(n=1):
            vs.similarity_search("fish")
        found: list[Any] = []

        def search() -> None:
            try:
                found.extend(vs.similarity_search("fish"))
            except ScopeError as error:
                found.append(error)

        with scoping(tenant="acme"):
            thread = threading.Thread(target=search)
            thread.start()
            thread.join()
        assert [type(each) for each in found] == [ScopeError]


@pytest.mark.parametrize("predicates", [{}, {"tenant": None}, {"$or": []}, {"tenant": ["a"]}])
def test_what_is_no_scoping_is_refused(predicates: dict[str, Any]) -> None:
    with pytest.raises(ScopeError):
        scoping(**predicates)


def test_a_scoping_is_entered_once(vs: Cormorant) -> None:
    block = scoping(tenant="acme")
    with block:
        with pytest.raises(UsageError, match="entered already"):
            block.__enter__()
        assert ids(vs.similarity_search("fish", k=20)) == OF_ACME
    with block:
        assert ids(vs.similarity_search("fish", k=20)) == OF_ACME


async def test_leaving_it_elsewhere_is_refused() -> None:
    async def enter(block: Any) -> None:
        block.__enter__()

    block = scoping(tenant="acme")
    await asyncio.create_task(enter(block))
    with pytest.raises(ScopeError, match="another context"):
        block.__exit__(None, None, None)


def test_a_foreign_child_is_refused_inside_a_scoping(vs: Cormorant) -> None:
    class Foreign(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=query, metadata={"tenant": "rival"})]

    merged = MergerRetriever(retrievers=[Foreign()])
    assert len(merged.invoke("fish")) == 1
    with scoping(tenant="acme"), pytest.raises(ScopeError, match="cannot see it"):
        merged.invoke("fish")


def test_self_is_a_field_like_others(vs: Cormorant) -> None:
    field = {"self": "x"}
    vs.scope(**field).add_texts(["own"], ids=["own"])
    CormorantDocstore(vs).scope(**field)
    assert ids(vs.as_retriever().invoke("fish", config(field))) == {"own"}
    with scoping(**field):
        assert ids(vs.similarity_search("fish")) == {"own"}
