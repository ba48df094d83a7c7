"""What did a language model make of a question?

Models greet, number, explain themselves, answer in JSON, think aloud and refuse. None of that is
a question or a passage, and none of it may be searched for.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import Runnable

from cormorant import defaults, trace
from cormorant.analysis.normalise import normalise
from cormorant.errors import RewriteError, ScopeError, UsageError
from cormorant.langchain.calls.blocking import only_sync
from cormorant.langchain.calls.time_limit import time_left
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.answers import text_of
from cormorant.langchain.retrievers.asking.chatter import (
    evaded,
    refused,
    unquoted,
    without_preface,
    without_talk,
)
from cormorant.langchain.retrievers.calling import Run
from cormorant.langchain.retrievers.fusing.legs import OnError

__all__ = [
    "aask_model",
    "ask_model",
    "excuse",
    "flaw",
    "key",
    "passage",
    "questions",
    "quoted",
    "read_json",
    "searchable",
    "told",
    "unthought",
]

logger = logging.getLogger(__name__)

_QUOTED: Final = 200  # characters of a model's reply that a message repeats
_THINKING: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_LINE_ENDS: Final = re.compile("[\r\n\u2028\u2029]+")
_BLANKS: Final = re.compile("[ \t\r\n]+")
_FENCE: Final = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
# Tabs and line ends are part of texts; the other control characters are signs of rubbish.
_UNSEARCHABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|(?P<half>[\ud800-\udfff])")


def ask_model(run: Run, chain: Runnable[Any, Any], input: Any, tag: str) -> Any:
    """Ask a chain, as a child of the retriever's run."""
    with trace.span("model", task=tag):
        return run.within(
            lambda config: chain.invoke(input, config),
            tag,
            who=chain,
            name=tag,
            share=defaults.REWRITE_SHARE,
        )


async def aask_model(run: Run, chain: Runnable[Any, Any], input: Any, tag: str) -> Any:
    """Like :func:`ask_model`, awaiting the chain's own async method."""
    with trace.span("model", task=tag):
        if only_sync(chain) and time_left() is not None:
            return await run.in_thread(
                lambda config: chain.invoke(input, config),
                tag,
                who=chain,
                name=tag,
                share=defaults.REWRITE_SHARE,
            )
        return await run.awithin(
            lambda config: chain.ainvoke(input, config),
            tag,
            who=chain,
            name=tag,
            share=defaults.REWRITE_SHARE,
        )


def excuse(error: Exception, policy: OnError, instead: str) -> str:
    """The sentence for ``degraded`` when a model failed, or the error.

    Wrong arguments and scopes are never excused.
    """
    if policy == "raise" or isinstance(error, (UsageError, ScopeError)):
        raise error
    says = f"The model failed, {instead}: {type(error).__name__}: {error}"
    logger.warning(says)
    return says


def flaw(text: str) -> str | None:
    """Why what a model wrote cannot be searched for; None if it can."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > defaults.MAX_QUERY_BYTES:
        return f"it has {size:,} bytes, of at most {defaults.MAX_QUERY_BYTES:,}"
    found = _UNSEARCHABLE.search(text)
    if found is not None:
        kind = "half a surrogate pair" if found["half"] else "a control character"
        return f"it holds {kind}, {found[0]!r}"
    return None if text.strip() else "it is empty"


def searchable(made: Sequence[str], kind: str) -> tuple[list[str], tuple[str, ...]]:
    """Of what a model made, that which can be searched for, and what must be said of the rest."""
    kept, says = [], []
    for number, each in enumerate(made, start=1):
        wrong = flaw(each)
        if wrong is None:
            kept.append(each)
        else:
            says.append(f"The model's {kind} {number} of {len(made)} was left out: {wrong}.")
    for sentence in says:
        logger.warning(sentence)
    return kept, tuple(says)


def quoted(text: str) -> str:
    """A text in a message, cut where it runs on."""
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}…"


def unthought(text: str) -> str:
    """The text without what the model thought aloud; one pass, whatever it wrote."""
    kept: list[str] = []
    opened: int | None = None
    start = 0
    for mark in _THINKING.finditer(text):
        if mark[1] and opened is not None:
            kept.append(text[start:opened])
            start, opened = mark.end(), None
        elif not mark[1] and opened is None:
            opened = mark.start()
    return "".join(kept) + text[start:]


def passage(output: Any, who: str) -> str:
    """What a chain wrote, as one passage: without thinking aloud, code fences and greetings.

    Empty if the model refused, or said that it does not know.
    """
    text = without_preface(_FENCE.sub("", unthought(text_of(output, who, RewriteError))))
    return "" if refused(text) or evaded(text) else text


def questions(output: Any, who: str) -> list[str]:
    """The questions in what a chain wrote, each once, in their order.

    Args:
        output: Text with one question per line; a list of them; a dict or JSON with such a list.
        who: Named if it is none of these.
    """
    found: dict[str, str] = {}
    for line in _lines(output, who):
        if not refused(line):
            found.setdefault(key(line), line)
    return [line for line in found.values() if any(letter.isalnum() for letter in line)]


def key(question: str) -> str:
    """Equal for questions that differ only in case, width, blanks and marks at the end."""
    if len(question) > defaults.MAX_QUERY_BYTES:
        return question  # nobody asks it: see flaw
    folded = normalise(question).casefold()
    return " ".join(folded.split()).rstrip(" ?.!。！")


def _lines(output: Any, who: str) -> list[str]:
    if isinstance(output, Mapping) and isinstance(output.get("text"), list):
        output = output["text"]  # an LLMChain of old
    listed = _listed(output)
    if listed is None:
        text = _FENCE.sub("", unthought(text_of(output, who, RewriteError)))
        listed = _listed(read_json(text))
        if listed is None:
            return without_talk(_LINE_ENDS.split(text))
    return [unquoted(line) for line in listed]


def read_json(text: str) -> Any:
    """What a text says as JSON; None if it is none, or nested too deep to be read."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _listed(output: Any) -> list[str] | None:
    """The strings of a list, or of the one list in a dict."""
    if isinstance(output, Mapping):
        lists = [value for value in output.values() if isinstance(value, (list, tuple))]
        output = lists[0] if len(lists) == 1 else None
    if isinstance(output, (list, tuple)):
        if any(isinstance(each, Mapping) for each in output):
            output = [
                next((v for v in each.values() if isinstance(v, str)), "")
                if isinstance(each, Mapping)
                else each
                for each in output
            ]
        if all(isinstance(each, str) for each in output):
            return [_BLANKS.sub(" ", each).strip() for each in output]
    return None


def told(answer: Answer, plan: Sequence[str], degraded: Sequence[str]) -> Answer:
    """The Answer, with what was made of the question before it."""
    full = answer.degrading(*degraded) if degraded else answer.of(answer)
    full.plan = (*plan, *answer.plan)
    return full
