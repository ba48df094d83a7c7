"""What is known of a Runnable that changes its rankings?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.runnables import RunnableBinding, RunnableSequence
from pydantic import BaseModel

from cormorant.evaluate.store_system import store_settings
from cormorant.langchain.vectorstore import Cormorant

__all__ = ["described"]

_DEEPEST: Final = 8
_SECRET: Final = re.compile(r"key$|token$|secret|password|credential|^headers$", re.IGNORECASE)
_UNRELATED: Final = {"callbacks", "tags", "metadata", "verbose", "name", "cache"}


def described(value: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each kind of value
    """JSON values that are equal for equal settings.

    Fields of pydantic models are written one by one; a function is its name; of other objects
    the class is all that is known. Fields that hold keys, tokens or passwords are left out.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth >= _DEEPEST:
        return _name(type(value))
    if isinstance(value, Mapping):
        return {
            str(key): described(each, depth + 1)
            for key, each in value.items()
            if not _SECRET.search(str(key))
        }
    if isinstance(value, (list, tuple)):
        return [described(each, depth + 1) for each in value]
    if isinstance(value, Cormorant):
        return {"class": _name(type(value)), "store": store_settings(value.store)}
    if isinstance(value, RunnableBinding):
        return described({"bound": value.bound, "kwargs": value.kwargs}, depth)
    if isinstance(value, RunnableSequence):
        return described(value.steps, depth)
    if isinstance(value, BaseModel):
        fields = {
            name: described(getattr(value, name), depth + 1)
            for name, field in type(value).model_fields.items()
            if not (field.exclude or name in _UNRELATED or _SECRET.search(name))
        }
        return {"class": _name(type(value)), **fields}
    if callable(value) and hasattr(value, "__qualname__"):
        return _name(value)
    return _name(type(value))


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
