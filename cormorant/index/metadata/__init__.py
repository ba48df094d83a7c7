"""Which slots have metadata that matches? Typed columns, and masks over them."""

from __future__ import annotations

from cormorant.index.metadata.columns import Columns, TextMask
from cormorant.index.metadata.info import FieldInfo

__all__ = ["Columns", "FieldInfo", "TextMask"]
