"""Models and retrievers for tests of what happens to a question before it is asked."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from pydantic import Field


def says(*replies: str) -> FakeListChatModel:
    """A chat model that gives these replies in turn."""
    return FakeListChatModel(responses=list(replies))


class Away(FakeListChatModel):
    """A chat model that cannot be reached."""

    responses: list[str] = Field(default_factory=lambda: [""])

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
