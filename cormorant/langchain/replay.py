"""What did the language model answer when this was recorded? A chat model that remembers.

Pipelines in which a model writes the queries are tested offline and identically: recorded once
with the model, replayed from a file without it.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, get_args

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr
from typing_extensions import override

from cormorant.errors import CorruptionError, UsageError
from cormorant.langchain.recording import Recording, key_of

__all__ = ["Mode", "NotRecorded", "RecordedLLM", "replaying"]

Mode = Literal["record", "replay", "auto"]

# The wrapper's own run stands for the model's, so that nobody sees a token, or its cost, twice.
_SILENT: Final[RunnableConfig] = {"callbacks": []}

_KEPT: Final = (
    "name",
    "tool_calls",
    "invalid_tool_calls",
    "additional_kwargs",
    "response_metadata",
    "usage_metadata",
)


class NotRecorded(UsageError):
    """A prompt is replayed that was never recorded.

    A UsageError, so that no retriever excuses it as a model's failure.
    """


class RecordedLLM(BaseChatModel):
    """A chat model that records what another answers, or replays it without that other.

    Prompts are told apart by their messages, stop words, tools and further arguments. The nth
    time a prompt is replayed it gets its nth answer, and after the last the first again; a model
    asked three times for three passages is replayed as three passages.

    Args:
        llm: Any chat model, language model or Runnable of one. Not needed to replay.
        path: The recording; see docs/replay.md for the format. Made when first needed.
        mode: ``record`` asks the model always, and replaces what an earlier session recorded
            for the prompt. ``replay`` never asks it, and refuses what was not recorded.
            ``auto`` asks only for what this model has not answered before.

    Raises:
        UsageError: If a model is needed and missing, or an argument is not known.
        NotRecorded: In a call, when replaying.
        FormatError: If the file is no recording.
        CorruptionError: If the recording is damaged.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["which bird dives?"])
        >>> replaying(model, "birds.jsonl", mode="record").invoke("Rephrase: diving bird").content
        'which bird dives?'
        >>> replaying(None, "birds.jsonl").invoke("Rephrase: diving bird").content
        'which bird dives?'
    """

    llm: Runnable[Any, Any] | None = None
    path: Path
    mode: Mode = "replay"
    cache: Any = False  # a cache in front would answer what was never recorded

    _recording: Recording = PrivateAttr()
    _turns: dict[str, int] = PrivateAttr(default_factory=dict)

    def __init__(self, **values: Any) -> None:
        unknown = sorted(set(values) - set(type(self).model_fields))
        if unknown:
            raise UsageError(
                f"RecordedLLM takes {', '.join(sorted(type(self).model_fields))}; got {unknown}."
            )
        mode, llm = values.get("mode", "replay"), values.get("llm")
        if mode not in get_args(Mode):
            raise UsageError(f"mode is one of {', '.join(get_args(Mode))}; got {mode!r}.")
        if llm is not None and not isinstance(llm, Runnable):
            raise UsageError(f"llm must be a model or a Runnable of one; got {llm!r}.")
        if llm is None and mode != "replay":
            raise UsageError(f"mode={mode!r} needs an llm to ask; give one, or mode='replay'.")
        super().__init__(**values)
        self._recording = Recording(self.path)

    @property
    @override
    def _llm_type(self) -> str:
        return "cormorant-recorded"

    def asks(self) -> list[Runnable[Any, Any]]:
        """What it waits for."""
        return [] if self.llm is None else [self.llm]

    @property
    @override
    def _identifying_params(self) -> dict[str, Any]:
        return {"path": str(self.path), "mode": self.mode, "model": self._model}

    @property
    def _model(self) -> str:
        model: Any = self.llm
        while isinstance(model, RunnableBindingBase):
            model = model.bound
        named = getattr(model, "model_name", None) or getattr(model, "model", None)
        kind = type(model).__name__
        return f"{kind} {named}" if isinstance(named, str) else kind

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The same model with tools, in the form that is recorded."""
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = _prompt(messages, stop, kwargs)
        message = self._recalled(prompt)
        if message is None:
            model, arguments = self._asked(stop, kwargs)
            message = self._kept(prompt, model.invoke(messages, _SILENT, **arguments))
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = _prompt(messages, stop, kwargs)
        message = await asyncio.to_thread(self._recalled, prompt)
        if message is None:
            model, arguments = self._asked(stop, kwargs)
            answer = await model.ainvoke(messages, _SILENT, **arguments)
            message = await asyncio.to_thread(self._kept, prompt, answer)
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        prompt = _prompt(messages, stop, kwargs)
        message = self._recalled(prompt)
        if message is not None:
            yield from map(_generation, _pieces(message))
            return
        model, arguments = self._asked(stop, kwargs)
        whole = None
        for output in model.stream(messages, _SILENT, **arguments):
            chunk = _chunk(output)
            whole = chunk if whole is None else whole + chunk
            yield _generation(chunk)
        self._kept(prompt, whole)

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        prompt = _prompt(messages, stop, kwargs)
        message = await asyncio.to_thread(self._recalled, prompt)
        if message is not None:
            for piece in _pieces(message):
                yield _generation(piece)
            return
        model, arguments = self._asked(stop, kwargs)
        whole = None
        async for output in model.astream(messages, _SILENT, **arguments):
            chunk = _chunk(output)
            whole = chunk if whole is None else whole + chunk
            yield _generation(chunk)
        await asyncio.to_thread(self._kept, prompt, whole)

    def _asked(
        self, stop: list[str] | None, kwargs: Mapping[str, Any]
    ) -> tuple[Runnable[Any, Any], dict[str, Any]]:
        """The model with the call's tools, and the arguments that are left."""
        if self.llm is None:  # refused when it was made
            raise UsageError("There is no llm to ask.")
        model: Any = self.llm
        rest = dict(kwargs)
        if "tools" in rest:
            if not hasattr(model, "bind_tools"):
                raise UsageError(f"{self._model} takes no tools; give a chat model that does.")
            choice = {"tool_choice": rest.pop("tool_choice")} if "tool_choice" in rest else {}
            model = model.bind_tools(rest.pop("tools"), **choice)
        if stop is not None:
            rest["stop"] = stop
        return model, rest

    def _holds(self) -> str:
        """How much there is to replay."""
        known = len(self._recording)
        return f"{known} known" if known or self.path.exists() else "there is no such file"

    def _recalled(self, prompt: dict[str, Any]) -> AIMessage | None:
        if self.mode == "record":
            return None
        key = key_of(prompt)
        answers = self._recording.answers(key, self._model if self.mode == "auto" else None)
        if answers:
            return self._replayed(answers[self._turn(key) % len(answers)])
        if self.mode == "auto":
            return None
        raise NotRecorded(
            f"This prompt is not in the recording {self.path} ({self._holds()}): "
            f"{_shown(prompt)} Record it with mode='record' or 'auto' and a model, or ask what was "
            "recorded: a prompt is another if one letter, stop word, tool or argument is."
        )

    def _replayed(self, answer: Mapping[str, Any]) -> AIMessage:
        try:
            return _decoded(answer)
        except Exception as error:
            raise CorruptionError(
                f"An answer in {self.path} is no message of a model: {answer!r:.200}. "
                "Remove its line, or record it anew.",
                str(self.path),
            ) from error

    def _kept(self, prompt: dict[str, Any], output: Any) -> AIMessage:
        answer, auto = _encoded(output), self.mode == "auto"
        with _TURNS:  # of one session's answers, the one written first is the first
            turn = 0 if auto else self._turns.get(key_of(prompt), 0)
            kept = self._recording.append(
                prompt, answer, turn=turn, model=self._model, unless_known=auto
            )
            if not auto:
                self._turns[key_of(prompt)] = turn + 1
        return _decoded(kept)

    def _turn(self, key: str) -> int:
        with _TURNS:
            turn = self._turns.get(key, 0)
            self._turns[key] = turn + 1
        return turn


_TURNS: Final = threading.Lock()


def replaying(
    llm: Runnable[Any, Any] | None, path: str | PathLike[str], mode: Mode = "replay"
) -> RecordedLLM:
    """The model, recorded in a file or replayed from it; see :class:`RecordedLLM`."""
    if not isinstance(path, (str, PathLike)):
        raise UsageError(
            f"replaying(llm, path) takes a file's path; got a {type(path).__name__}. Are the "
            "arguments in another order?"
        )
    return RecordedLLM(llm=llm, path=Path(path), mode=mode)


def _prompt(
    messages: Sequence[BaseMessage], stop: list[str] | None, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """What tells a prompt apart: no ids of messages, nothing that is empty."""
    prompt = {
        "messages": [_asked_message(message) for message in messages],
        "stop": stop or None,
        "arguments": dict(kwargs) or None,
    }
    return {name: value for name, value in prompt.items() if value is not None}


def _asked_message(message: BaseMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"type": message.type, "content": message.content}
    if message.additional_kwargs:
        said["additional_kwargs"] = message.additional_kwargs
    if message.name is not None:
        said["name"] = message.name
    if isinstance(message, AIMessage) and message.tool_calls:
        said["tool_calls"] = [dict(call) for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        said["tool_call_id"] = message.tool_call_id
    return said


def _encoded(output: Any) -> dict[str, Any]:
    if isinstance(output, AIMessageChunk):
        output = message_chunk_to_message(output)
    if isinstance(output, str):
        output = AIMessage(output)
    if not isinstance(output, AIMessage):
        raise UsageError(
            f"A language model answers with a message or text; got {type(output).__name__}: "
            f"{output!r:.200}. Record the model alone, without a parser behind it."
        )
    answer = {"content": output.content}
    return answer | {name: value for name in _KEPT if (value := getattr(output, name))}


def _decoded(answer: Mapping[str, Any]) -> AIMessage:
    return AIMessage(**json.loads(json.dumps(answer)))


def _chunk(output: Any) -> AIMessageChunk:
    if isinstance(output, AIMessageChunk):
        return output
    return _as_chunk(_decoded(_encoded(output)))


def _as_chunk(message: AIMessage, content: str | None = None) -> AIMessageChunk:
    more = {name: value for name in _KEPT if (value := getattr(message, name))}
    said = message.content if content is None else content
    return AIMessageChunk(content=said, chunk_position="last", **more)


def _pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message word by word; what is no text comes with the last."""
    if not isinstance(message.content, str):
        yield _as_chunk(message)
        return
    words = re.findall(r"\s*\S+\s*\Z|\s*\S+|\s+\Z", message.content) or [""]
    for word in words[:-1]:
        yield AIMessageChunk(content=word)
    yield _as_chunk(message, words[-1])


def _generation(chunk: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=chunk)


def _shown(prompt: Mapping[str, Any]) -> str:
    last = prompt["messages"][-1]["content"] if prompt["messages"] else ""
    shown = last if isinstance(last, str) else json.dumps(last)
    return f"“{shown[:200]}{'…' if len(shown) > 200 else ''}”."
