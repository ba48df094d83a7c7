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

from cormorant import defaults
from cormorant.analysis.normalise import normalise
from cormorant.errors import CormorantError, ScopeError, UsageError
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.calling import Run
from cormorant.langchain.retrievers.document_compressors.answers import text_of
from cormorant.langchain.retrievers.legs import OnError

__all__ = [
    "RewriteError",
    "aask_model",
    "ask_model",
    "excuse",
    "key",
    "passage",
    "questions",
    "refused",
    "told",
    "unthought",
]

logger = logging.getLogger(__name__)

_THINKING: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE: Final = re.compile(r"^[ \t]*```[\w-]*[ \t]*$", re.MULTILINE)
_BULLET: Final = re.compile(r"^[-*•‣–]\s+")
_NUMBER: Final = re.compile(r"^[(（\[]?(\d{1,2})(?:[.)）\]、．]|[:：](?=\s))\s*(?=\D)")
_LABEL: Final = re.compile(
    r"^(?:(?:alternative|rephrased?|sub|search|version|variant)[ -]?)*"
    r"(?:question|query|version|variant|q|问题|子问题|查询|问法)\s*(\d{1,2})\s*[.:：)、-]\s*",
    re.IGNORECASE,
)
_CHATTER: Final = re.compile(
    r"^(?:sure|certainly|of course|absolutely|okay|ok|great)\s*[!,.:]"
    r"|^(?:here (?:are|is)|here's|below (?:are|is)|the following)\b.*"
    r"\b(?:questions?|quer(?:y|ies)|versions?|variants?|alternatives?|rephras\w*|sub-?questions?)\b"
    r"|^(?:i hope (?:this|these|that|it)|let me know|feel free|hope (?:this|these)|"
    r"if you (?:need|want|would like|have)|these (?:questions|queries|versions|alternatives))\b"
    r"|^(?:好的|当然|没问题)[，,。！!：:]"
    r"|^(?:以下是|下面是|这里是|希望(?:这些|以上|对))",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(
    r"^(?:(?:i'?m|i am)\s+(?:really |very |so |truly )?sorry,? (?:but|i|that)\b"
    r"|(?:i'?m sorry|sorry)[.,!]"
    r"|my apologies|i apologi[sz]e"
    r"|as an? (?:ai|artificial|large language|language)\b"
    r"|(?:unfortunately,? )?(?:i(?:'m| am) (?:unable|not able) to"
    r"|i (?:can(?:no|')t|can not|won't|will not|must decline to|do(?:n't| not) feel)) "
    # What a user cannot do is a question all the same: "I can't log in".
    r"(?:help|assist|answer|provide|generate|create|comply|fulfil|do (?:that|this|so)|respond|write"
    r"|rephrase|produce|discuss|continue|engage|comfortable|fabricate|make up|process)"
    r"|(?:很|非常)?抱歉|对不起[,，]|(?:作为|我是)(?:一个|一名)?(?:AI|人工智能|语言模型|大模型)"
    r"|我(?:无法|不能|没法)(?:回答|提供|帮助|协助|生成|完成|满足|讨论|继续))",
    re.IGNORECASE,
)
_PAIRS: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "`": "`", "*": "*", "_": "_"}


class RewriteError(CormorantError):
    """A model made nothing usable of a question."""


def ask_model(run: Run, chain: Runnable[Any, Any], input: Any, tag: str) -> Any:
    """Ask a chain, as a child of the retriever's run."""
    return run.within(
        lambda config: chain.invoke(input, config),
        tag,
        who=chain,
        name=tag,
        share=defaults.REWRITE_SHARE,
    )


async def aask_model(run: Run, chain: Runnable[Any, Any], input: Any, tag: str) -> Any:
    """Like :func:`ask_model`, awaiting the chain's own async method."""
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


def refused(text: str) -> bool:
    """Whether the text is a refusal or an apology, and nothing to search for."""
    plain = normalise(text).replace("’", "'").strip(" \t\r\n\"'`*")
    return bool(_REFUSAL.match(plain))


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
    """What a chain wrote, as one passage: without thinking aloud and code fences.

    Empty if the model refused.
    """
    text = _FENCE.sub("", unthought(text_of(output, who))).strip()
    return "" if refused(text) else text


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
    folded = normalise(question).casefold()
    return " ".join(folded.split()).rstrip(" ?.!。！")


def _lines(output: Any, who: str) -> list[str]:
    if isinstance(output, Mapping) and isinstance(output.get("text"), list):
        output = output["text"]  # an LLMChain of old
    listed = _listed(output)
    if listed is not None:
        return [_unquoted(line) for line in listed]
    text = unthought(text_of(output, who))
    try:
        listed = _listed(json.loads(_FENCE.sub("", text)))
    except ValueError:
        listed = None
    if listed is not None:
        return [_unquoted(line) for line in listed]
    return _cleaned([line.strip() for line in _FENCE.sub("", text).splitlines()])


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
            return [each.strip() for each in output]
    return None


def _cleaned(lines: Sequence[str]) -> list[str]:
    marked: list[str] = []
    plain: list[str] = []
    number = 0
    for line in lines:
        bare = line.strip("*_ ") if line.startswith(("**", "__")) else line
        if not bare or bare.startswith("#") or bare.endswith((":", "：")) or _CHATTER.match(bare):
            continue
        rest, number, is_marked = _unmarked(bare, number)
        (marked if is_marked else plain).append(_unquoted(rest))
    # Where some lines are numbered or bulleted, the others are talk around them.
    return [line for line in (marked or plain) if line]


def _unmarked(line: str, last: int) -> tuple[str, int, bool]:
    """The line without its number or bullet, the number, and whether it had one.

    A number counts only where it is the next one, so that ``3.5 mm`` stays what it is.
    """
    bullet = _BULLET.match(line)
    rest = line[bullet.end() :] if bullet else line
    for pattern in (_LABEL, _NUMBER):
        found = pattern.match(rest)
        if found and int(found[1]) in {1, last + 1}:
            return rest[found.end() :].strip("* "), int(found[1]), True
    return rest, last, bullet is not None


def _unquoted(line: str) -> str:
    line = line.strip()
    while len(line) > 2 and _PAIRS.get(line[0]) == line[-1] and line[0] not in line[1:-1]:
        line = line[1:-1].strip()
    return line.strip("*") if line.startswith("**") else line


def told(answer: Answer, plan: Sequence[str], degraded: Sequence[str]) -> Answer:
    """The Answer, with what was made of the question before it."""
    full = answer.degrading(*degraded) if degraded else answer.of(answer)
    full.plan = (*plan, *answer.plan)
    return full
