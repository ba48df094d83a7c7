"""What did the language model say, in text?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from cormorant.analysis.normalise import normalise
from cormorant.errors import ReplyError

__all__ = ["GetInput", "default_get_input", "plain", "text_of"]

GetInput = Callable[[str, Document], Any]
"""Question and document to the chain's input."""


def default_get_input(query: str, doc: Document) -> dict[str, Any]:
    """The question and the text under the names the prompts here have for them."""
    return {"question": query, "context": doc.page_content}


def text_of(output: Any, who: str, error: type[ReplyError] = ReplyError) -> str:
    """A chain's output as text: a string, a message, or what an LLMChain of old returns.

    Raises:
        ReplyError: If it is something else; of the kind given as ``error``.
    """
    if isinstance(output, BaseMessage):
        return output.text
    if isinstance(output, dict) and isinstance(output.get("text"), str):
        return str(output["text"])
    if isinstance(output, str):
        return output
    raise error(
        f"{who} needs text from its chain; got {output!r}. Does the prompt's parser return None?"
    )


def plain(text: str) -> str:
    """The text in compatible characters, without blanks, quotes and marks around it."""
    return normalise(text).strip(" \t\r\n\"'`*.,:;!。、")
