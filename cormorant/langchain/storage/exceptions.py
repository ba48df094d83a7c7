"""What is raised for a key that is none? What langchain-core raises."""

from __future__ import annotations

from langchain_core.stores import InvalidKeyException

__all__ = ["InvalidKeyException"]
