"""Retrievers that tell what they were asked, for tests of those that ask them."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field


def doc(text: str, id: str | None = None, **metadata: Any) -> Document:
    return Document(page_content=text, id=id, metadata=metadata)


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


class Fixed(BaseRetriever):
    """Always the same documents; takes no arguments, as LangChain's example."""

    docs: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.docs


class Told(BaseRetriever):
    """Takes any argument and writes it down."""

    docs: list[Document]
    heard: list[dict[str, Any]] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        self.heard.append(kwargs)
        return self.docs


class Slow(BaseRetriever):
    """Only returns once as many are at it as were expected."""

    docs: list[Document]
    barrier: Any = None
    together: Any = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.barrier.wait(timeout=10)
        return self.docs

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.wait_for(self.together.wait(), timeout=10)
        return self.docs


class Failing(BaseRetriever):
    """Never answers."""

    error: Exception = Field(default_factory=lambda: RuntimeError("the index is away"))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise self.error


class Blocking(BaseRetriever):
    """Holds its thread for a while, and has no async method of its own."""

    docs: list[Document]
    threads: list[int] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.threads.append(threading.get_ident())
        time.sleep(0.2)
        return self.docs
