"""How are documents cut into sentences?"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from langchain_core.documents import Document

from cormorant.analysis.sentences import sentence_spans

__all__ = ["SentenceSplitter", "sentence_spans"]


class SentenceSplitter:
    """Cuts documents into sentences; a text splitter for parent and window retrievers.

    Each sentence's ``metadata["start_index"]`` says where it begins.

    Example:
        >>> for each in SentenceSplitter().split_documents([Document("One. Two.")]):
        ...     print(each.page_content, each.metadata)
        One. {'start_index': 0}
        Two. {'start_index': 5}
    """

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """The sentences of the documents, in order."""
        return [
            Document(
                document.page_content[start:end],
                metadata={**copy.deepcopy(document.metadata), "start_index": start},
            )
            for document in documents
            for start, end in sentence_spans(document.page_content)
        ]

    def split_text(self, text: str) -> list[str]:
        """The sentences of a text, in order."""
        return [text[start:end] for start, end in sentence_spans(text)]
