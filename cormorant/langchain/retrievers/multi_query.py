"""What is found when a question is put in several ways?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.retrievers import RetrieverLike
from typing_extensions import override

from cormorant import defaults
from cormorant.langchain.retrievers.asking.rewriting import questions
from cormorant.langchain.retrievers.asking.several_questions import SeveralQuestions
from cormorant.langchain.retrievers.fusing.duplicates import unique

__all__ = ["DEFAULT_QUERY_PROMPT", "LineListOutputParser", "MultiQueryRetriever"]

logger = logging.getLogger(__name__)


DEFAULT_QUERY_PROMPT: Final = PromptTemplate.from_template(
    """Put the question below in {variants} other ways, so that a search finds what the first \
wording would miss: other words for the same things, and what a document that answers it would \
say. Keep names, numbers and the language of the question. Write the {variants} questions alone, \
one per line, without numbers.

Question: {question}"""
)


class LineListOutputParser(BaseOutputParser[list[str]]):
    r"""A model's reply as a list of questions: no greetings, headings, numbers, quotes, blanks.

    Example:
        >>> reply = "Sure! Here are 2 versions:\n1. What eats fish?\n2) Who dives?"
        >>> LineListOutputParser().parse(reply)
        ['What eats fish?', 'Who dives?']
    """

    @override
    def parse(self, text: str) -> list[str]:
        return questions(text, "LineListOutputParser")


class MultiQueryRetriever(SeveralQuestions):
    """A model puts the question in other ways; all are asked at once, and their lists fused.

    A document scores Σ (1/n) / (rrf_k + rank) over the n questions that find it, so what several
    wordings agree on comes first. If the model fails, refuses or writes nothing, the question
    alone is asked, and ``degraded`` says so.

    Args:
        retriever: Any retriever or Runnable from a question to Documents.
        llm_chain: ``{"question"}`` to text with a question per line, or to a list of them.
        include_original: Ask the question as it was put too.
        variants: The most of the model's questions that are asked; None: all, up to 50.
        k: Documents wanted; by default all that were found.
        rrf_k: The formula's constant.
        id_key: Metadata key that tells documents apart; see EnsembleRetriever.
        on_llm_error: ``raise`` hands on the model's failure.
        on_error: ``degrade`` leaves a failing search out, and says so in ``degraded``.
        verbose: Log the questions.

    A call takes ``k`` and ``filter``, which reach the retriever or are refused.

    Raises:
        UsageError: On an argument nobody reads, or a value outside its range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from cormorant.langchain.retrievers import BM25Retriever
        >>> retriever = MultiQueryRetriever.from_llm(
        ...     BM25Retriever.from_texts(["a cormorant", "a boat", "a diving bird"]),
        ...     FakeListChatModel(responses=["1. which bird is diving?"]),
        ... )
        >>> [hit.text for hit in retriever.retrieve("cormorant")]
        ['a cormorant', 'a diving bird']
    """

    verbose: bool = True
    parser_key: str | None = None

    made: ClassVar[str] = "variant"

    @classmethod
    def from_llm(
        cls,
        retriever: RetrieverLike,
        llm: LanguageModelLike,
        prompt: BasePromptTemplate[Any] | None = None,
        parser_key: str | None = None,
        include_original: bool = True,  # noqa: FBT001, FBT002 - its place in langchain-classic
        **kwargs: Any,
    ) -> MultiQueryRetriever:
        """Make one from a language model.

        Args:
            retriever: Any retriever or Runnable from a question to Documents.
            llm: The model.
            prompt: Over ``question``, and ``variants`` if it names that.
            parser_key: Accepted, as in langchain-classic, and of no effect.
            include_original: Ask the question as it was put too.
            **kwargs: The class's other arguments. ``variants`` is 3 unless the prompt is yours.
        """
        if prompt is None:
            prompt = DEFAULT_QUERY_PROMPT
            kwargs.setdefault("variants", defaults.QUERY_VARIANTS)
        chain = cls._chain(
            prompt,
            llm,
            LineListOutputParser(),
            call=f"{cls.__name__}.from_llm(retriever, llm)",
            variants=kwargs.get("variants") or defaults.QUERY_VARIANTS,
        )
        return cls(
            retriever=retriever,
            llm_chain=chain,
            include_original=include_original,
            parser_key=parser_key,
            **kwargs,
        )

    def unique_union(self, documents: list[Document]) -> list[Document]:
        """The documents, each once; see EnsembleRetriever for which are the same."""
        return unique(documents, self.id_key)

    @override
    def _log(self, made: Sequence[str]) -> None:
        logger.info("Generated queries: %s", made)


def _unique_documents(documents: Sequence[Document]) -> list[Document]:
    """Equal documents once; linear where ids or texts differ."""
    seen: dict[tuple[str | None, str], list[Document]] = {}
    kept = []
    for document in documents:
        twins = seen.setdefault((document.id, document.page_content), [])
        if document not in twins:
            twins.append(document)
            kept.append(document)
    return kept
