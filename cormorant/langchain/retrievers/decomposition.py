"""What is found for the parts of a question?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from langchain_core.language_models import LanguageModelLike
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.retrievers import RetrieverLike
from typing_extensions import override

from cormorant import defaults
from cormorant.langchain.retrievers.asking.several_questions import SeveralQuestions
from cormorant.langchain.retrievers.multi_query import LineListOutputParser

__all__ = ["DecompositionRetriever"]

logger = logging.getLogger(__name__)


_PROMPT: Final = PromptTemplate.from_template(
    """Split the question below into at most {variants} simpler questions, each of which can be \
answered on its own and names what it is about instead of saying "it". If it is simple already, \
repeat it. Keep the language of the question. Write the questions alone, one per line, without \
numbers.

Question: {question}"""
)


class DecompositionRetriever(SeveralQuestions):
    r"""A model splits the question; its parts are asked at once, and their lists fused.

    The best documents of every part come before the second-best of any, and a hit's ``legs`` say
    which parts found it. If the model fails, refuses or writes nothing, the question alone is
    asked, and ``degraded`` says so.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        llm_chain: ``{"question"}`` to text with a question per line, or to a list of them.
        include_original: Ask the question as it was put too.
        variants: The most parts that are asked; None: all, up to 50.
        k: Documents wanted; by default all that were found.
        rrf_k, id_key, on_llm_error, on_error, verbose: As in MultiQueryRetriever.

    A call takes ``k`` and ``filter``, which reach the retriever or are refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> retriever = DecompositionRetriever.from_llm(
        ...     BM25Retriever.from_texts(["gulls eat bread", "cormorants eat fish"]),
        ...     FakeListChatModel(responses=["what do gulls eat?\nwhat do cormorants eat?"]),
        ... )
        >>> hits = retriever.retrieve("compare the food of gulls and cormorants").hits
        >>> hits[0].legs["sub-question 1"].rank
        1
    """

    made: ClassVar[str] = "sub-question"

    @classmethod
    def from_llm(
        cls,
        retriever: RetrieverLike,
        llm: LanguageModelLike,
        prompt: BasePromptTemplate[Any] | None = None,
        **kwargs: Any,
    ) -> DecompositionRetriever:
        """Make one from a language model.

        Args:
            retriever: Any retriever or Runnable from a question to Documents.
            llm: The model.
            prompt: Over ``question``, and ``variants`` if it names that.
            **kwargs: The class's other arguments. ``variants`` is 4 unless the prompt is yours.
        """
        if prompt is None:
            prompt = _PROMPT
            kwargs.setdefault("variants", defaults.SUB_QUESTIONS)
        chain = cls._chain(
            prompt,
            llm,
            LineListOutputParser(),
            call=f"{cls.__name__}.from_llm(retriever, llm)",
            variants=kwargs.get("variants") or defaults.SUB_QUESTIONS,
        )
        return cls(retriever=retriever, llm_chain=chain, **kwargs)

    @override
    def _log(self, made: Sequence[str]) -> None:
        logger.info("Sub-questions: %s", made)
