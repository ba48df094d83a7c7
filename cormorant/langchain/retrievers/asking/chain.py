"""Which chain asks a language model, and is it one at all?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda

from cormorant.errors import ConfigError, UsageError
from cormorant.langchain.scopes.children import innermost

__all__ = ["chain_of", "check_chain", "check_retriever", "check_retrievers", "model_of"]


def check_chain(chain: object, whose: str) -> None:
    """Refuse what is no chain.

    Raises:
        ConfigError: If it is no Runnable.
    """
    if not isinstance(chain, Runnable):
        raise ConfigError(
            f"{whose} must be a Runnable; got {_shown(chain)}. From a model, make it with "
            "from_llm(llm)."
        )


def check_retriever(retriever: object, name: str = "retriever") -> None:
    """Refuse what is no retriever.

    Args:
        retriever: What was given.
        name: The argument it was given as.

    Raises:
        UsageError: If it is no Runnable, or one that cannot find Documents.
    """
    if isinstance(retriever, BaseLanguageModel):
        raise ConfigError(
            f"{name} must be a retriever or a Runnable; got the language model "
            f"{_shown(retriever)}. Are the arguments in another order?"
        )
    if isinstance(retriever, Runnable) and isinstance(innermost(retriever), BaseDocumentCompressor):
        raise ConfigError(
            f"{name} must be a retriever or a Runnable from a question to Documents; got the "
            f"document compressor {_shown(innermost(retriever))}. Are the arguments in another "
            "order?"
        )
    if not isinstance(retriever, Runnable):
        hint = " Give its as_retriever()." if hasattr(retriever, "as_retriever") else ""
        raise UsageError(
            f"{name} must be a retriever or a Runnable; got {_shown(retriever)}.{hint}"
        )


def check_retrievers(retrievers: object) -> None:
    """Refuse what is no list of retrievers.

    Raises:
        UsageError: If it is none, is empty, or holds a Runnable that cannot find Documents.
    """
    if not isinstance(retrievers, (list, tuple)) or not retrievers:
        raise UsageError(f"retrievers must be a list of retrievers; got {retrievers!r}.")
    for place, each in enumerate(retrievers):
        if isinstance(each, Runnable):  # what is none, the field's type refuses
            check_retriever(each, f"retrievers[{place}]")


def model_of(llm: object, call: str) -> Runnable[Any, Any]:
    """What was given as a language model, as a Runnable.

    Args:
        llm: A model, any Runnable from a prompt to text or a message, or a function of that kind.
        call: The call it was given in, with its arguments, such as ``X.from_llm(llm, store)``.

    Raises:
        ConfigError: If it is none of these.
    """
    if isinstance(llm, Runnable) and not isinstance(llm, BaseRetriever):
        return llm
    if callable(llm) and not isinstance(llm, (type, BaseRetriever)):
        return RunnableLambda(llm)
    raise ConfigError(
        f"{call} takes a language model as llm, or a Runnable or function from a prompt to text; "
        f"got {_shown(llm)}. Give an instance of a model, and the arguments in that order."
    )


def chain_of(
    prompt: object,
    llm: object,
    parser: Runnable[Any, Any],
    *,
    call: str,
    gives: Sequence[str] | Literal[1] | None,
) -> Runnable[Any, Any]:
    """A chain of prompt, model and parser.

    Args:
        prompt: A prompt template, or any Runnable to a prompt.
        llm: As in :func:`model_of`.
        parser: Of the model's reply.
        call: As in :func:`model_of`.
        gives: The variables the prompt is filled with; 1: one, by whatever name; None: those are
            not known here.

    Raises:
        ConfigError: If one of them is of another kind, or the prompt needs another variable.
    """
    model = model_of(llm, call)
    if not isinstance(prompt, Runnable):
        raise ConfigError(
            f"{call} takes a prompt template as prompt; got {_shown(prompt)}. Make one with "
            "PromptTemplate.from_template(…)."
        )
    needs = prompt.input_variables if isinstance(prompt, BasePromptTemplate) else ()
    if gives == 1:
        if isinstance(prompt, BasePromptTemplate) and len(needs) != 1:
            raise ConfigError(
                f"The prompt of {call} must have one variable, for the question; it has "
                f"{', '.join(needs) or 'none'}. Fill others with prompt.partial(…)."
            )
    elif gives is not None:
        missing = sorted(set(needs) - set(gives))
        if missing:
            raise ConfigError(
                f"The prompt of {call} needs {', '.join(missing)}, which nobody gives it; it is "
                f"given {', '.join(gives)}. Rename the variable, or fill it with prompt.partial(…)."
            )
    return prompt | model | parser


def _shown(given: object) -> str:
    if given is None or isinstance(given, (str, bytes, int, float)):
        return f"{given!r:.80}"
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
