"""How do many texts get their vectors: in batches, several at once, and again if it was busy?

Retries are our own and not tenacity's: what one request is told (come back in 20 s) holds for all
that are in flight, and the sync and async forms share every decision.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant import defaults
from cormorant.errors import ConfigError, EmbeddingError
from cormorant.ingest.batching import batches
from cormorant.ingest.tokens import token_count
from cormorant.langchain.embedder import Embedder
from cormorant.langchain.embeddings.naming import uncached
from cormorant.ranges import check_whole

__all__ = ["EmbeddingWork", "Vectors"]

Vectors = NDArray[np.float32]
_LONGEST_ASKED_S: Final = 600.0  # a service that asks for more is down for today
_jitter: Final = random.SystemRandom()


@dataclass(slots=True)
class _Calm:
    """Until when nobody asks, because the service said so."""

    until: float = 0.0


class EmbeddingWork:
    """Embeds many texts: batches within limits, a few requests at once, patient with rate limits.

    A request that fails as one that may succeed later (429, 5xx, a time-out: see
    ``EmbeddingError.retryable``) is tried again after a wait that doubles, drawn at random below
    its bound; a ``Retry-After`` is obeyed, by all requests in flight. Anything else fails at
    once.

    Args:
        embedder: The user's, wrapped.
        batch_tokens: Tokens of one request.
        batch_texts: Texts of one request.
        calls_at_once: Requests in flight; None takes 1 for the local model, which works on one
            core, else ``defaults.EMBEDDING_CALLS_AT_ONCE``.
        tries: Of one request.
        progress: Called with how many texts got their vectors, from any thread.
        sleep: Waits so many seconds; for tests.
        asleep: The same, awaited.
        draw: A number from 0 to 1; for tests.

    Attributes:
        texts, tokens, requests, retries: What was done so far.
        counter: What counts tokens.

    Raises:
        ConfigError: If a limit is below 1.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        batch_tokens: int = defaults.EMBEDDING_BATCH_TOKENS,
        batch_texts: int = defaults.EMBEDDING_BATCH_TEXTS,
        calls_at_once: int | None = None,
        tries: int = defaults.EMBEDDING_TRIES,
        progress: Callable[[int], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = _jitter.random,
    ) -> None:
        for name, value in (
            ("batch_tokens", batch_tokens),
            ("batch_texts", batch_texts),
            ("calls_at_once", 1 if calls_at_once is None else calls_at_once),
            ("tries", tries),
        ):
            check_whole(name, value, error=ConfigError)
        if calls_at_once is None:
            local = _is_local(embedder)
            calls_at_once = 1 if local else defaults.EMBEDDING_CALLS_AT_ONCE
        self.embedder = embedder
        self.counter = token_count(embedder.embedding)
        self.calls_at_once = calls_at_once
        self.texts = self.tokens = self.requests = self.retries = 0
        self._limits = {"max_tokens": batch_tokens, "max_texts": batch_texts}
        self._tries = tries
        self._progress = progress
        self._sleep, self._asleep, self._draw = sleep, asleep, draw
        self._calm = _Calm()
        self._counting = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of the texts, in order: float32, shape (n, dim); (0, 0) without texts.

        Raises:
            EmbeddingError: If the embedder fails for good, or returns something else than one
                usable vector per text.
        """
        parts = self._parts(texts)
        if self.calls_at_once == 1 or len(parts) < 2:
            return _joined([self._request(part) for part, _ in parts], parts, self)
        with ThreadPoolExecutor(self.calls_at_once, thread_name_prefix="cormorant-embed") as pool:
            contexts = [contextvars.copy_context() for _ in parts]
            waiting = [
                pool.submit(context.run, self._request, part)
                for context, (part, _) in zip(contexts, parts, strict=True)
            ]
            try:
                wait(waiting, return_when=FIRST_EXCEPTION)
            finally:
                for each in waiting:
                    each.cancel()
            failed = next((e for e in waiting if not e.cancelled() and e.exception()), None)
            returned = [(failed or each).result() for each in waiting]
        return _joined(returned, parts, self)

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """:meth:`embed`, awaiting the embedder's own async method."""
        parts = self._parts(texts)
        turn = asyncio.Semaphore(self.calls_at_once)

        async def one(part: list[str]) -> Vectors:
            async with turn:
                return await self._arequest(part)

        tasks = [asyncio.ensure_future(one(part)) for part, _ in parts]
        try:
            returned = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return _joined(returned, parts, self)

    def _parts(self, texts: Sequence[str]) -> list[tuple[list[str], int]]:
        counts = [self.counter.count(text) for text in texts]
        return [(list(texts[part]), sum(counts[part])) for part in batches(counts, **self._limits)]

    def _request(self, part: list[str]) -> Vectors:
        for attempt in range(1, self._tries + 1):
            self._wait_for_calm()
            try:
                return self._done(part, self.embedder.embed_documents(part))
            except EmbeddingError as error:
                seconds = self._patience(error, attempt)
            self._sleep(seconds)
        raise AssertionError  # the last attempt returns or raises

    async def _arequest(self, part: list[str]) -> Vectors:
        for attempt in range(1, self._tries + 1):
            while (seconds := self._calm.until - time.monotonic()) > 0:
                await self._asleep(seconds)
            try:
                return self._done(part, await self.embedder.aembed_documents(part))
            except EmbeddingError as error:
                seconds = self._patience(error, attempt)
            await self._asleep(seconds)
        raise AssertionError  # the last attempt returns or raises

    def _wait_for_calm(self) -> None:
        while (seconds := self._calm.until - time.monotonic()) > 0:
            self._sleep(seconds)

    def _done(self, part: list[str], returned: Any) -> Vectors:
        vectors = self.embedder.matrix(returned, len(part))
        with self._counting:
            self.requests += 1
            self.texts += len(part)
        if self._progress is not None:
            self._progress(len(part))
        return vectors

    def _patience(self, error: EmbeddingError, attempt: int) -> float:
        """Seconds to wait before the next try; raises the error if there is none."""
        if not error.retryable:
            raise error
        asked = _retry_after(error)
        if attempt == self._tries or (asked is not None and asked > _LONGEST_ASKED_S):
            raise EmbeddingError(
                f"{error} It was tried {attempt} times. What was embedded and stored before "
                "stays; running the sync again goes on from there.",
                model=error.model,
                retryable=True,
            ) from error
        with self._counting:
            self.retries += 1
            if asked is not None:
                self._calm.until = max(self._calm.until, time.monotonic() + asked)
        bound = defaults.EMBEDDING_FIRST_WAIT_S * 2 ** (attempt - 1)
        longest: float = min(bound, defaults.EMBEDDING_LONGEST_WAIT_S)
        return self._draw() * longest


def _joined(
    returned: Sequence[Vectors], parts: Sequence[tuple[list[str], int]], work: EmbeddingWork
) -> Vectors:
    work.tokens += sum(tokens for _, tokens in parts)
    if not returned:
        return np.empty((0, 0), dtype=np.float32)
    sizes = {part.shape[1] for part in returned}
    if len(sizes) > 1:
        raise EmbeddingError(
            f"The embedder {work.embedder.embedding_identity!r} returned vectors of "
            f"{' and '.join(map(str, sorted(sizes)))} numbers; all must have one size. Nothing "
            "was stored.",
            model=work.embedder.embedding_identity,
        )
    return np.concatenate(returned)


def _is_local(embedder: Embedder) -> bool:
    inner = uncached(embedder.embedding)
    return type(inner).__module__ == "cormorant.langchain.embeddings.local"


def _retry_after(error: BaseException) -> float | None:
    """The seconds a service's answer asks to wait, as RFC 9110 writes them; None if it does not."""
    cause: BaseException | None = error
    while cause is not None:
        headers = getattr(getattr(cause, "response", None), "headers", None)
        said = None if headers is None else _header(headers, "retry-after")
        if said is not None:
            return said
        cause = cause.__cause__
    return None


def _header(headers: Any, name: str) -> float | None:
    try:
        said = headers.get(name) or headers.get(name.title())
    except (AttributeError, TypeError):
        return None
    if said is None:
        return None
    try:
        return max(0.0, float(said))
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, parsedate_to_datetime(str(said)).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
