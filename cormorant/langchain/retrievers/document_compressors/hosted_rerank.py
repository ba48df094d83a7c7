"""Which documents answer the question best, says a hosted reranking service?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from cormorant import defaults
from cormorant.errors import RerankError, UsageError
from cormorant.langchain.calls.time_limit import to_thread
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.base import check_k
from cormorant.langchain.retrievers.document_compressors.compressor import Call
from cormorant.langchain.retrievers.document_compressors.ranking import number
from cormorant.langchain.retrievers.document_compressors.reranker import Reranker
from cormorant.ranges import is_whole

__all__ = ["HostedReranker"]


class HostedReranker(Reranker):
    """Has a service of the Cohere shape score the documents, and keeps the best.

    The client's ``rerank(query=, documents=, top_n=, model=)`` returns results, or an object or
    dict with ``results``, each with ``index`` and ``relevance_score``. Keys, retries and time-outs
    are the client's.

    Args:
        client: Any such client, sync or async.
        model: The service's model.
        top_n: Documents to keep; None: all. A call's ``top_n`` comes before it.
        min_rerank_score: The lowest score to keep.
        batch_size: Documents per request; more are asked for in several.
        with_scores: Put scores into ``metadata["_cormorant"]`` of what is returned.

    Raises:
        UsageError: If ``client`` has no ``rerank``, or is async and called without await.
        RerankError: If the results are not one finite score for each document that was wanted.
    """

    client: Any
    model: str
    batch_size: int = defaults.HOSTED_BATCH

    def __init__(self, **values: Any) -> None:
        if not callable(getattr(values.get("client"), "rerank", None)):
            raise UsageError(
                "client must have a method rerank(query=, documents=, top_n=, model=); got "
                f"{values.get('client')!r}. Pass, for instance, cohere.ClientV2(api_key)."
            )
        check_k(values.get("batch_size", defaults.HOSTED_BATCH), "batch_size")
        super().__init__(**values)

    @override
    def _compress(self, call: Call) -> Answer:
        scores: dict[int, float] = {}
        for start in range(0, len(call.answer), self.batch_size):
            request = self._request(call, start)
            returned = self.client.rerank(**request)
            if inspect.isawaitable(returned):
                if inspect.iscoroutine(returned):
                    returned.close()
                raise UsageError(
                    f"{type(self.client).__name__} is an async client: use ainvoke or "
                    "acompress_documents, or give a sync one."
                )
            scores.update(self._read(returned, request, start))
        return self._ranked(call, scores)

    @override
    async def _acompress(self, call: Call) -> Answer:
        scores: dict[int, float] = {}
        for start in range(0, len(call.answer), self.batch_size):
            request = self._request(call, start)
            if inspect.iscoroutinefunction(self.client.rerank):
                returned = await self.client.rerank(**request)
            else:
                returned = await to_thread(self.client, self.client.rerank, **request)
                if inspect.isawaitable(returned):
                    returned = await returned
            scores.update(self._read(returned, request, start))
        return self._ranked(call, scores)

    def _request(self, call: Call, start: int) -> dict[str, Any]:
        texts = [doc.page_content for doc in call.answer[start : start + self.batch_size]]
        wanted = self._wanted(call)
        top_n = len(texts) if wanted is None else min(wanted, len(texts))
        return {"query": call.query, "documents": texts, "top_n": top_n, "model": self.model}

    def _read(self, returned: Any, request: Mapping[str, Any], start: int) -> dict[int, float]:
        """Scores by position in the whole list."""
        who = f"{type(self.client).__name__}.rerank"
        results = _part(returned, "results", returned)
        if not isinstance(results, Sequence) or isinstance(results, str):
            raise RerankError(f"{who} must return a list of results; it returned {returned!r}.")
        count = len(request["documents"])
        scores: dict[int, float] = {}
        for result in results:
            index = _part(result, "index", None)
            if not is_whole(index, 0, count - 1):
                raise RerankError(
                    f"{who} gave index {index!r}; there were documents 0–{count - 1}."
                )
            if start + index in scores:
                raise RerankError(f"{who} gave index {index} twice.")
            scores[start + index] = number(_part(result, "relevance_score", None), index, who)
        if len(scores) < request["top_n"]:
            raise RerankError(
                f"{who} returned {len(scores)} results; {request['top_n']} were asked for, of "
                f"{count} documents."
            )
        return scores

    @override
    def _relevance(self, score: float) -> float | None:
        return score if 0.0 <= score <= 1.0 else None


def _part(of: Any, name: str, default: Any) -> Any:
    return of.get(name, default) if isinstance(of, Mapping) else getattr(of, name, default)
