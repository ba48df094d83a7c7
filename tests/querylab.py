"""Models and retrievers for tests of what happens to a question before it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import Field

from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import (
    DecompositionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
    SelfQueryRetriever,
)


def says(*replies: str) -> FakeListChatModel:
    """A chat model that gives these replies in turn."""
    return FakeListChatModel(responses=list(replies))


class Away(FakeListChatModel):
    """A chat model that cannot be reached."""

    responses: list[str] = Field(default_factory=lambda: [""])

    # The fake's own two forget return_exceptions.
    batch = BaseChatModel.batch
    abatch = BaseChatModel.abatch

    def _call(self, *args: Any, **kwargs: Any) -> str:
        raise ConnectionError("the model is away")


class ByQuestion(BaseRetriever):
    """Documents by the question, from a dict; writes down what it was asked."""

    answers: dict[str, list[Document]] = Field(default_factory=dict)
    asked: list[str] = Field(default_factory=list)
    heard: list[dict[str, Any]] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        self.asked.append(query)
        self.heard.append(kwargs)
        return self.answers.get(query, [])


def sometimes(*replies: str | None) -> Runnable[Any, str]:
    """A model that gives these replies in turn, and fails where one is None."""
    left = list(replies)

    def reply(prompt: Any) -> str:
        said = left.pop(0)
        if said is None:
            raise ConnectionError("the model is away")
        return said

    return RunnableLambda(reply)


def over(vs: Cormorant) -> Runnable[str, list[Document]]:
    return vs.as_retriever(search_type="text", k=9)


QUERY_SIDE: dict[str, Callable[..., Any]] = {
    "MultiQuery": lambda llm, vs, **more: MultiQueryRetriever.from_llm(over(vs), llm, **more),
    "Decomposition": lambda llm, vs, **more: DecompositionRetriever.from_llm(over(vs), llm, **more),
    "RePhrase": lambda llm, vs, **more: RePhraseQueryRetriever.from_llm(over(vs), llm, **more),
    "HyDE": lambda llm, vs, **more: HyDERetriever.from_llm(llm, vs, passages=1, **more),
    "SelfQuery": lambda llm, vs, **more: SelfQueryRetriever.from_llm(
        llm, vs, "notes", search_type="text", **more
    ),
}
"""Every retriever in which a model changes the question, from a model and a store."""

FAKE = DeterministicFakeEmbedding(size=8)


def reply_for(kind: str, question: str) -> str:
    """What a model says that makes this question of any."""
    structured = {"query": question, "filter": "NO_FILTER"}
    return json.dumps(structured) if kind == "SelfQuery" else question


class Heard(BaseCallbackHandler):
    """Every run, by its id: what began it, its parent, tags and metadata."""

    run_inline = True

    def __init__(self) -> None:
        self.runs: dict[UUID, dict[str, Any]] = {}

    def _began(self, kind: str, kwargs: dict[str, Any]) -> None:
        self.runs[kwargs["run_id"]] = {
            "kind": kind,
            "parent": kwargs["parent_run_id"],
            "tags": kwargs["tags"] or [],
            "metadata": kwargs["metadata"] or {},
        }

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self._began("chain", kwargs)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self._began("retriever", kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self._began("model", kwargs)

    def root(self, run_id: UUID) -> UUID:
        parent = self.runs[run_id]["parent"]
        return run_id if parent is None else self.root(parent)
