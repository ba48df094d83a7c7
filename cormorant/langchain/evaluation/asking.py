"""How is a model asked many things, some at a time, so that nothing is lost if one fails?"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import RunnableConfig, merge_configs

from cormorant.analysis.tokens import is_unspaced
from cormorant.errors import ScopeError, UsageError
from cormorant.langchain.evaluation.system import Price
from cormorant.langchain.evaluation.usage import Usage
from cormorant.langchain.replay import replaying
from cormorant.langchain.retrievers.asking.chain import model_of
from cormorant.langchain.retrievers.asking.rewriting import unthought

__all__ = [
    "Asker",
    "Failed",
    "fenced",
    "in_chinese",
    "messages",
    "prompt_hash",
    "run",
    "still_thinking",
    "unspaced_share",
]

T = TypeVar("T")

_THOUGHT: Final = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CHINESE: Final = 0.3  # of the letters, from which on a text is asked about in Chinese


@dataclass(frozen=True, slots=True)
class Failed:
    """What came instead of a reply, after the last attempt."""

    error: Exception

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


class Asker:
    """A chat model, asked some things at a time, several times if it fails.

    Args:
        llm: A chat model, any Runnable from messages to a message or text, or a function.
        call: The call it was given in, for the message if it is none.
        concurrency: Questions under way at once.
        attempts: Times a question is asked before it counts as failed.
        wait_s: Seconds before the second attempt; twice as long before each further one.
        recording: A file that keeps every reply as it comes, and gives it back instead of asking
            again: an interrupted run goes on where it was. See ``docs/replay.md``.
        prices: Model name to its price.
        config: Passed to the model: tags, callbacks.

    Raises:
        ConfigError: If it is no model.
        UsageError: On a number out of range.
    """

    def __init__(
        self,
        llm: object,
        *,
        call: str,
        concurrency: int = 8,
        attempts: int = 3,
        wait_s: float = 1.0,
        recording: str | PathLike[str] | None = None,
        prices: Mapping[str, Price] | None = None,
        config: RunnableConfig | None = None,
    ) -> None:
        for what, value in (("concurrency", concurrency), ("attempts", attempts)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"{what} must be a whole number of at least 1; got {value!r}.")
        if isinstance(wait_s, bool) or not isinstance(wait_s, (int, float)) or not wait_s >= 0:
            raise UsageError(f"wait_s must be a number of at least 0; got {wait_s!r}.")
        self.model: Runnable[Any, Any] = model_of(llm, call)
        if recording is not None:
            self.model = replaying(self.model, recording, "auto")
        self._own_name = _name(llm)
        self._concurrency = concurrency
        self._attempts = attempts
        self._wait_s = wait_s
        self._prices = dict(prices or {})
        self._usage = Usage()
        self._config = merge_configs(config, {"callbacks": [self._usage]})

    @property
    def name(self) -> str:
        """The model's, as its replies say it; else that of its settings and class."""
        said = sorted(name for name in self._usage.by_model if name)
        return ", ".join(said) or self._own_name

    @property
    def tokens(self) -> int:
        """Read and written so far; a recorded reply counts what it cost when it was made."""
        return self._usage.tokens

    @property
    def usd(self) -> float:
        """Their price; models without one cost nothing."""
        return sum(
            (self._prices[name].read * read + self._prices[name].written * written) / 1e6
            for name, (read, written) in self._usage.by_model.items()
            if name in self._prices
        )

    async def ask_each(
        self,
        prompts: Sequence[Any],
        *,
        through: Runnable[Any, Any] | None = None,
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Each prompt's reply, or its :class:`Failed`, in the prompts' order.

        Args:
            prompts: Messages.
            through: The model in another form, such as one with structured output.
            on_reply: Called with a prompt's place once its reply is there.

        Raises:
            UsageError, ScopeError: A wrong call is nobody's failure: it ends the whole.
        """
        model = self.model if through is None else through
        gate = asyncio.Semaphore(self._concurrency)

        async def one(at: int, prompt: Any) -> Any:
            async with gate:
                reply = await self._asked(lambda: model.ainvoke(prompt, self._config))
            if on_reply is not None:
                on_reply(at)
            return reply

        tasks = [asyncio.ensure_future(one(at, prompt)) for at, prompt in enumerate(prompts)]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _asked(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        # langchain-core's own retry would also repeat, and wait for, what is a wrong call.
        for attempt in range(self._attempts):
            try:
                return await ask()
            except (UsageError, ScopeError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a model raises is its failure
                failed = Failed(error)
            if attempt + 1 < self._attempts:
                await asyncio.sleep(self._wait_s * 2**attempt)
        return failed


def _name(llm: Any) -> str:
    while isinstance(llm, RunnableBindingBase):
        llm = llm.bound
    named = getattr(llm, "model_name", None) or getattr(llm, "model", None)
    kind = type(llm).__name__
    return f"{kind} {named}" if isinstance(named, str) and named else kind


def fenced(name: str, text: str) -> str:
    """A text between marks it cannot hold: their number is made from the text itself.

    A text that ends its own quotation, and goes on as if it were the prompt, would have to know
    the hash of itself.
    """
    number = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"<{name}-{number}>\n{text}\n</{name}-{number}>"


def messages(system: str, human: str) -> list[BaseMessage]:
    """A prompt whose texts are taken as they are: no braces are filled in."""
    return [SystemMessage(system), HumanMessage(human)]


def prompt_hash(*parts: object) -> str:
    """The first 16 hex digits of the SHA-256 of all that a model was told to do."""
    written = "\x1f".join(map(str, parts))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def unspaced_share(text: str) -> float:
    """Which share of the letters is of scripts without spaces, such as Chinese; 0 without any."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(map(is_unspaced, letters)) / len(letters) if letters else 0.0


def in_chinese(text: str) -> bool:
    """Whether the model is asked about this text in Chinese."""
    return unspaced_share(text) >= _CHINESE


def still_thinking(text: str) -> bool:
    """Whether a reply was cut off while the model thought aloud: it says nothing yet."""
    return _THOUGHT.search(unthought(text)) is not None


def run(work: Coroutine[Any, Any, T], instead: str) -> T:
    """Run to its end what is awaited elsewhere.

    Raises:
        UsageError: Inside a running event loop, which it would hold.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise UsageError(f"An event loop is running here, which this would hold. Use: await {instead}")
