"""What in a model's reply is talk around what it was asked for? In English and Chinese.

Every pattern is matched at a line's beginning and reads it at most once, however long it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from cormorant.analysis.normalise import fold_han, normalise

__all__ = ["evaded", "refused", "unquoted", "without_preface", "without_talk"]

_HAN_ORDINAL: Final = "十?[一二三四五六七八九]|十"
_ORDINAL: Final = rf"\d{{1,2}}|{_HAN_ORDINAL}"
_BULLET: Final = re.compile(r"^[-*•‣–·●○◦▪]\s+")
_NUMBERS: Final = (
    # Question 1: · Version 2 - · 问题一： · 第二种问法：
    re.compile(
        r"^(?:(?:alternative|rephrased?|rewritten|sub|search|version|variant)[ -]?)*"
        r"(?:question|query|version|variant|q|(?:替代|改写|子|检索|搜索)?(?:问题|查询|问法|问句)"
        rf"|版本|改写|变体)\s*({_ORDINAL})\s*[.:：)、-]\s*",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^第\s*({_ORDINAL})\s*(?:[个种条句问]|[个种]?(?:问题|查询|问法|版本))?\s*[.:：、,，]\s*"
    ),
    # 1. · (1) · 1) · 1、 · 1： · 一、 · （一）· ①
    re.compile(r"^[(（\[【]?(\d{1,2})(?:[.)）\]】、．：]|:(?=\s))[.、]?\s*(?=\D|$)"),
    re.compile(rf"^[(（\[【]?({_HAN_ORDINAL})(?:[)）\]】]\s*[、.．:：]?|[、.．:：])\s*(?=\D|$)"),
    re.compile(r"^([①-⑳⑴-⒇㈠-㈩❶-❿])\s*[、.．]?\s*"),
)
# A title before the one thing that was asked for.
_TITLE: Final = re.compile(
    r"^(?:(?:re-?phrased|rewritten|reformulated|standalone|search|final|improved|clarified)\s+)*"
    r"(?:question|query)\s*[:：]\s*"
    r"|^(?:(?:改写|重写|优化|独立|检索|搜索)后?的?)*(?:问题|查询|问句|检索词|搜索词|关键词)\s*[:：]\s*",
    re.IGNORECASE,
)
_CONSENT: Final = (
    r"(?:sure|certainly|of course|absolutely|okay|ok|great|got it|好的?|当然(?:可以)?|没问题"
    r"|可以|收到|明白了?)(?:\s*[!,.:。、~]|\s+thing[!,.:]?)\s*"
)
_THING: Final = (
    r"(?:questions?|quer(?:y|ies)|versions?|variants?|alternatives?|rephras\w*|rewrit\w*"
    r"|sub-?questions?)\b"
)
_CHATTER: Final = re.compile(
    r"^(?:sure|certainly|of course|absolutely|okay|ok|great)\s*[!,.:]"
    rf"|^(?:here (?:are|is)|here's|below (?:are|is)|the following|these are)\b.*\b{_THING}"
    r"|^these (?:questions|queries|versions|alternatives)\b"
    r"|^original (?:question|query)\s*:"
    r"|^(?:好的|好|当然|当然可以|没问题|可以|收到|明白|明白了)[,!。:~]"
    r"|^(?:以下是|下面是|这里是|以下为|如下是|以上是|以上(?:问题|查询)|原(?:始)?问题:)"
    r"|^(?:根据|针对|按照)(?:您|你|用户)的.*(?:如下|以下)"
    r"|^(?:我|已)(?:为您|为你|将|把|已将?).*(?:如下|以下|改写|分解|拆分)",
    re.IGNORECASE,
)
_PREFACE: Final = re.compile(
    rf"^[*_#\s]*(?:{_CONSENT})?[*_]*"
    r"(?:(?:here(?:'s| is| are)|below (?:is|are)|the following(?: is| are)?|this is|以下[是为]|"
    r"下面[是为]|这[里]?是|以下|如下)[^\n:.?!。]{0,120}"
    r"(?:passage|paragraph|answer|text|document|excerpt|response|question|quer|version|variant"
    r"|段落|段|文章|文本|文字|文档|回答|答案|内容|问题|查询|问法|问句)[^\n:.?!。]{0,80}:\s*"
    r"|(?:(?:hypothetical )?(?:passage|paragraph|document|answer)|(?:假设(?:性)?的?)?"
    r"(?:段落|文章|文档|回答|答案))\s*:\s*)[*_]*\s*",
    re.IGNORECASE,
)
_CONSENT_LINE: Final = re.compile(rf"^(?:{_CONSENT})$", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"^(?:i hope (?:this|these|that|it)\b|hope (?:this|that)\b|let me know\b|feel free\b"
    r"|if you (?:need|want|would like|have (?:any|more|further))\b"
    r"|\(?note\s*:\s*(?:this|the above|i)\b|please note\b.*\b(?:hypothetical|fictional|made up)"
    r"|希望(?:这|以上|对)|如果[您你]|如有(?:其他|任何|疑问)|如需|请告诉我|请随时"
    r"|\(?注(?:意)?:.*(?:假设|虚构|仅供))",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(
    r"^(?:(?:i'?m|i am)\s+(?:really |very |so |truly |terribly )?sorry,? (?:but|i|that)\b"
    r"|(?:i'?m sorry|sorry)[.,!]"
    r"|my apologies|i apologi[sz]e|apologies,"
    r"|as an? (?:ai|artificial|large language|language)\b|i(?:'m| am) (?:just |only )?an? ai\b"
    r"|(?:(?:unfortunately|i'm afraid),? )?(?:i(?:'m| am) (?:unable|not able) to"
    r"|i (?:can(?:no|')t|can not|won't|will not|must decline to|do(?:n't| not) feel)) "
    # What a user cannot do is a question all the same: "I can't log in".
    r"(?:help|assist|answer|provide|generate|create|comply|fulfil|do (?:that|this|so)|respond|write"
    r"|rephrase|produce|discuss|continue|engage|comfortable|fabricate|make up|process|verify"
    r"|confirm|give|offer|share|support)"
    r"|i (?:must|have to) decline\b"
    r"|(?:很|非常|十分|实在)?抱歉|对不起[,。!]|不好意思[,。!]"
    r"|(?:作为|我(?:只)?是)(?:一[个名款]?)?(?:AI|人工智能|(?:大型?)?语言模型|大模型)"
    r"|(?:很遗憾,?)?我(?:暂时|目前|现在)?(?:无法|不能|没法|不便|没有办法)(?:为您|为你|直接|就此|对此)?"
    r"(?:回答|提供|帮助|协助|生成|完成|满足|讨论|继续|编写|撰写|给出|处理|评论|改写))",
    re.IGNORECASE,
)
# What no passage that answers a question begins with; a question may.
_EVASION: Final = re.compile(
    r"^(?:(?:unfortunately|regrettably|sadly|i'm sorry|i'm afraid),? )?"
    r"(?:i (?:really |honestly |currently )?"
    r"(?:do(?:n't| not) (?:have|know|possess|recall|understand)|have no|am not (?:sure|aware)"
    r"|lack|can(?:'t|not| not) (?:find|determine|say|access|tell|see))\b"
    r"|i'm not (?:sure|aware|certain|familiar)\b"
    r"|(?:there is|there's|we have) (?:no|not enough|insufficient)(?: \w+){0,2} "
    r"(?:information|context)\b"
    r"|(?:no|insufficient|not enough)(?: \w+)? (?:information|context|data) "
    r"(?:is |was |to )?(?:available|found|provided|given|answer|about)\b"
    r"|(?:could|can|would) you (?:please )?(?:provide|clarify|specify|rephrase|tell)\b"
    r"|please (?:provide|clarify|specify|share)\b)"
    r"|^(?:很遗憾,?)?我(?:暂时|目前|现在|也)?"
    r"(?:不知道|不清楚|不了解|不确定|没有(?:足够|相关|任何|关于|办法|这)|没找到|未能|找不到|无法)"
    r"|^(?:暂无|(?:目前|现在)?(?:没有|缺乏|缺少|未找到|未能找到)(?:足够|相关|任何)的?"
    r"(?:信息|资料|数据|内容|上下文|背景)|无法(?:确定|判断|获知|回答)"
    r"|请(?:您)?(?:提供|说明|告诉|补充)|信息不足)",
    re.IGNORECASE,
)
_LOOKED_AT: Final = 400  # characters of a beginning, which is all the patterns are about
_PAIRS: Final = {
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "《": "》",
    "`": "`",
    "*": "*",
    "_": "_",
}


def refused(text: str) -> bool:
    """Whether the text is a refusal or an apology, and nothing to search for."""
    return bool(_REFUSAL.match(_plain(text)))


def evaded(text: str) -> bool:
    """Whether a passage says that the model knows nothing, or wants to know more."""
    return bool(_EVASION.match(_plain(text)))


def without_talk(lines: Sequence[str]) -> list[str]:
    """The questions among lines: without greetings, headings, numbers, bullets, quotes, blanks."""
    marked: list[str] = []
    plain: list[str] = []
    number = 0
    for line in lines:
        bare = line.strip("*_ ") if line.startswith(("**", "__")) else line.strip()
        bare = _after_preface(bare)
        if not bare or bare.startswith("#") or bare.endswith((":", "：")):
            continue
        start = _plain(bare)
        # Some talk begins as questions do: "If you need more, ask." and "If you have a cold?"
        asks = bare.endswith(("?", "？"))
        if _CHATTER.match(start) or (_CLOSING.match(start) and not asks):
            continue
        rest, number, is_marked = _unmarked(bare, number)
        (marked if is_marked else plain).append(unquoted(rest))
    # Where some lines are numbered or bulleted, the others are talk around them.
    return [line for line in (marked or plain) if line]


def without_preface(text: str) -> str:
    """A passage without what a model says before and after it."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    if rest.strip() and _CONSENT_LINE.match(_plain(first)):
        text = rest.strip()
    text = _after_preface(text)
    while True:
        before, _, last = text.rpartition("\n")
        if not before.strip() or not _CLOSING.match(_plain(last)):
            return unquoted(text)
        text = before.rstrip()


def unquoted(line: str) -> str:
    """The line without quotation marks and emphasis around the whole of it."""
    line = line.strip()
    while len(line) > 2 and _PAIRS.get(line[0]) == line[-1] and line[0] not in line[1:-1]:
        line = line[1:-1].strip()
    return line.strip("*") if line.startswith("**") else line


def _plain(text: str) -> str:
    """The beginning, in the form the patterns are written in."""
    return fold_han(normalise(text[:_LOOKED_AT])).replace("’", "'").strip(" \t\r\n\"'`*_“”「」")


def _in_place(text: str) -> str:
    """The beginning, with Simplified characters in the places of Traditional ones."""
    return fold_han(text[:_LOOKED_AT])


def _after_preface(text: str) -> str:
    """What stands after "Here is the passage:", if anything does."""
    found = _PREFACE.match(_in_place(text).translate(_MARKS))
    return text[found.end() :].strip() if found else text


_MARKS: Final = str.maketrans("：，。！？’、～", ":,。!?'、~")


def _unmarked(line: str, last: int) -> tuple[str, int, bool]:
    """The line without its number, bullet or title, the number, and whether it had one.

    A number counts only where it is the next one, so that ``3.5 mm`` stays what it is.
    """
    bullet = _BULLET.match(line)
    rest = line[bullet.end() :] if bullet else line
    for pattern in _NUMBERS:
        found = pattern.match(_in_place(rest))
        if found and _ordinal(found[1]) in {1, last + 1}:
            return rest[found.end() :].strip("* "), _ordinal(found[1]), True
    title = _TITLE.match(_in_place(rest))
    if title and title.end() < len(rest):
        return rest[title.end() :].strip("* "), last, True
    return rest, last, bullet is not None


def _ordinal(written: str) -> int:
    """``7``, ``十二`` or ``③`` as a number."""
    if written.isdecimal():
        return int(written)
    tens = 10 if len(written) > 1 else 0
    return tens + int(unicodedata.numeric(written[-1]))
