"""Models and documents for tests of what comes after retrieval."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from cormorant.langchain.provenance import Provenance, attach
from cormorant.model import Leg, Step


def found(*texts: str) -> list[Document]:
    """Documents as a hybrid search hands them on, best first: ids d0, d1, …"""
    return [
        attach(
            Document(page_content=text, id=f"d{rank}", metadata={"page": rank, "tags": ["x"]}),
            Provenance(
                score=1.0 / (rank + 1),
                relevance=0.9 - rank / 10,
                method="hybrid",
                fusion_score=1.0 / (rank + 1),
                legs={"text": Leg(score=3.0 - rank, rank=rank + 1)},
                contributions={"text": 1.0 / (rank + 1)},
                journey=(Step("hybrid", kept=True, says=f"Rank {rank + 1}."),),
            ),
        )
        for rank, text in enumerate(texts)
    ]


def ids(documents: Sequence[Document]) -> list[str | None]:
    return [document.id for document in documents]


class Scores(BaseCrossEncoder):
    """Gives what it was made with."""

    def __init__(self, *scores: Any, scale: str | None = None) -> None:
        self.scores = list(scores)
        self.scale = scale
        self.pairs: list[tuple[str, str]] = []
        self.threads: list[int] = []

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.pairs += text_pairs
        self.threads.append(threading.get_ident())
        return self.scores


class Lengths(BaseCrossEncoder):
    """The longer, the better."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(text)) for _, text in text_pairs]


class Compass(Embeddings):
    """Texts as directions in the plane, in degrees; counts what it embeds."""

    def __init__(self, **degrees: float) -> None:
        self.degrees = degrees
        self.embedded: list[str] = []
        self.queries: list[str] = []

    def _vector(self, text: str) -> list[float]:
        import math

        angle = math.radians(self.degrees[text])
        return [math.cos(angle), math.sin(angle)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return self._vector(text)


class AwaitedCompass(Compass):
    """The same with async methods of its own, and no others."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("the sync method was called")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("the sync method was called")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return super().embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return super().embed_query(text)


class ToolModel(GenericFakeChatModel):
    """A chat model that calls the tool it is bound to, with arguments made beforehand."""

    arguments: list[dict[str, Any]]
    seen: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def __init__(self, *arguments: dict[str, Any]) -> None:
        replies = iter(
            AIMessage(
                content="",
                tool_calls=[{"name": "RankDocuments", "args": given, "id": str(number)}],
            )
            for number, given in enumerate(arguments)
        )
        super().__init__(messages=replies, arguments=list(arguments))

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.seen.append(messages)
        return super()._generate(messages, *args, **kwargs)


class Runs(BaseCallbackHandler):
    """The names of the runs, each with its parent's, in the order they began."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.runs: list[tuple[str, str | None]] = []
        self.outputs: dict[str, Any] = {}
        self.errors: list[str] = []

    def _began(self, name: str, run_id: Any, parent_run_id: Any) -> None:
        self.names[run_id] = name
        self.runs.append((name, self.names.get(parent_run_id)))

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self._began(kwargs["name"], run_id, parent_run_id)

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self._began(kwargs["name"], run_id, parent_run_id)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self._began("model", run_id, parent_run_id)

    def on_chain_end(self, outputs, *, run_id, **kwargs):
        self.outputs[self.names[run_id]] = outputs

    def on_chain_error(self, error, *, run_id, **kwargs):
        self.errors.append(self.names[run_id])
