"""What is a compressor that needs no question? LangChain's document transformer too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.documents import BaseDocumentTransformer, Document
from typing_extensions import override

from cormorant.langchain.request import refuse_unknown
from cormorant.langchain.retrievers.document_compressors.compressor import Compressor

__all__ = ["Transformer"]


class Transformer(Compressor, BaseDocumentTransformer):
    """Documents to documents; as a Runnable it takes ``{"documents": […]}``."""

    needs_query: ClassVar[bool] = False

    @override
    def transform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """Like ``invoke``, as LangChain calls transformers."""
        refuse_unknown(kwargs, (), f"{self.get_name()}.transform_documents")
        return self.invoke({"documents": documents})

    @override
    async def atransform_documents(
        self, documents: Sequence[Document], **kwargs: Any
    ) -> Sequence[Document]:
        """Like ``ainvoke``, as LangChain calls transformers."""
        refuse_unknown(kwargs, (), f"{self.get_name()}.atransform_documents")
        return await self.ainvoke({"documents": documents})
