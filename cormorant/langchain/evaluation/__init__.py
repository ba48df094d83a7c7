"""How good is a LangChain retriever or chain?"""

from __future__ import annotations

from cormorant.langchain.evaluation.system import LangChainSystem, Price, as_system

__all__ = ["LangChainSystem", "Price", "as_system"]
