"""What did the language model say, in text?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from cormorant.analysis.normalise import normalise
from cormorant.errors import UsageError
from cormorant.langchain.retrievers.document_compressors.compressor import Call, RerankError

__all__ = ["GetInput", "asked", "check_chain", "checked", "default_get_input", "plain", "text_of"]

GetInput = Callable[[str, Document], Any]
"""Question and document to the chain's input."""


def default_get_input(query: str, doc: Document) -> dict[str, Any]:
    """The question and the text under the names the prompts here have for them."""
    return {"question": query, "context": doc.page_content}


def asked(call: Call, get_input: GetInput) -> list[Any]:
    """The chain's inputs, one per document."""
    return [get_input(call.query, document) for document in call.answer]


def checked(outputs: Sequence[Any], call: Call, who: str) -> Sequence[Any]:
    """A chain's outputs, if there is one per document.

    Raises:
        RerankError: If not.
    """
    if len(outputs) != len(call.answer):
        raise RerankError(
            f"{who} got {len(outputs)} answers for {len(call.answer)} documents; its chain must "
            "give one per document, in their order."
        )
    return outputs


def text_of(output: Any, who: str) -> str:
    """A chain's output as text: a string, a message, or what an LLMChain of old returns.

    Raises:
        RerankError: If it is something else.
    """
    if isinstance(output, BaseMessage):
        return output.text
    if isinstance(output, dict) and isinstance(output.get("text"), str):
        return str(output["text"])
    if isinstance(output, str):
        return output
    raise RerankError(
        f"{who} needs text from its chain; got {output!r}. Does the prompt's parser return None?"
    )


def plain(text: str) -> str:
    """The text in compatible characters, without blanks, quotes and marks around it."""
    return normalise(text).strip(" \t\r\n\"'`*.,:;!。、")


def check_chain(chain: object, whose: str) -> None:
    """Refuse what is no chain.

    Raises:
        UsageError: If it is no Runnable.
    """
    if not isinstance(chain, Runnable):
        raise UsageError(
            f"{whose} must be a Runnable; got {chain!r}. From a model, make it with from_llm(llm)."
        )
