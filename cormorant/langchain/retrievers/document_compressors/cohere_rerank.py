"""Where does langchain-classic's CohereRerank live?"""

from __future__ import annotations

from cormorant.langchain.retrievers.document_compressors.hosted_rerank import HostedReranker

__all__ = ["CohereRerank"]


class CohereRerank(HostedReranker):
    """:class:`HostedReranker` under the name langchain-classic has for it.

    The client is made by the caller: ``CohereRerank(client=cohere.ClientV2(), model=…)``.
    """
