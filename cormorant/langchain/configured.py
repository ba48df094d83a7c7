"""What do our retrievers and compressors say of wrong settings, and of being sent elsewhere?

They are pydantic models, as LangChain's are. Whatever pydantic or Python would say of a wrong
constructor call, or of what cannot be pickled or copied, is said here in the package's own words.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ValidationError
from typing_extensions import override

from cormorant.errors import ConfigError, CormorantError, UsageError
from cormorant.langchain.request import refuse_unknown

__all__ = ["Configured"]

_OURS = "cormorant.langchain."
_ASIDE = ("name", "tags", "metadata")  # every Runnable has them; they are not what was missed


class Configured(BaseModel):
    """A model made by keywords alone, whose errors name what was wrong.

    Raises:
        UsageError: On an argument nobody reads.
        ConfigError: If an argument is missing, or is not what it must be.
    """

    also_takes: ClassVar[tuple[str, ...]] = ()
    """What the constructor takes besides the fields, and makes fields of."""

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Refuse what Python would, had it the words for it."""
        if args:
            # Unpickling and copying give none, so this is a call of the constructor.
            raise ConfigError(
                f"{cls.__name__} takes its settings by name; got {len(args)} without one. "
                f"Write {cls.__name__}({_call(cls)})."
            )
        if cls.__module__.startswith(_OURS):
            # Before a constructor finds missing what was there under another name. A class of
            # somebody else's may take more, which its own constructor knows.
            _refuse_unknown(cls, values)
        return super().__new__(cls)

    def __init__(self, **values: Any) -> None:
        _refuse_unknown(type(self), values)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_said(type(self), error)) from error

    @override
    def __getstate__(self) -> dict[Any, Any]:
        """Its settings, if all of them can be taken along.

        Raises:
            UsageError: Naming the one that cannot: a store in memory, a client, a lambda.
        """
        state = super().__getstate__()
        for name, value in state["__dict__"].items():
            try:
                pickle.dumps(value)
            except CormorantError:
                raise
            except Exception as error:
                raise UsageError(
                    f"This {type(self).__name__} cannot be pickled: its {name} cannot ({error}). "
                    "Make it where it is wanted, from settings that can be sent."
                ) from error
        return state

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy of the settings; an open store in them is the same one.

        Raises:
            UsageError: Naming the setting that cannot be copied.
        """
        try:
            return super().__deepcopy__(memo)
        except CormorantError:
            raise
        except Exception as error:
            raise UsageError(
                f"This {type(self).__name__} cannot be copied deeply: one of its settings cannot "
                f"({error}). Use model_copy(), which shares them."
            ) from error


def _refuse_unknown(cls: type[Configured], values: Iterable[str]) -> None:
    refuse_unknown(values, _takes(cls), cls.__name__)


def _takes(cls: type[Configured]) -> list[str]:
    """What the constructor takes; what every Runnable has comes last."""
    names = dict.fromkeys((*cls.model_fields, *cls.also_takes))
    return sorted(names, key=lambda name: name in _ASIDE)


def _needed(cls: type[BaseModel]) -> list[str]:
    return [name for name, field in cls.model_fields.items() if field.is_required()]


def _call(cls: type[BaseModel]) -> str:
    needed = _needed(cls)
    return ", ".join(f"{name}=…" for name in needed or list(cls.model_fields)[:1])


def _said(cls: type[Configured], error: ValidationError) -> str:
    """All that pydantic found, a sentence each, and what the class takes."""
    found = error.errors(include_url=False)
    missing = [str(each["loc"][0]) for each in found if each["type"] == "missing"]
    says = [f"{cls.__name__} needs {' and '.join(missing)}; not given."] if missing else []
    wrong: dict[str, tuple[list[str], Any]] = {}
    for each in found:
        if each["type"] == "missing" and len(each["loc"]) == 1:
            continue
        wanted = each["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        name = _where(each["loc"])
        wrong.setdefault(name, ([], each["input"]))[0].append(wanted)
    for name, (ways, got) in wrong.items():
        wanted = " or ".join(dict.fromkeys(ways))
        says.append(f"{name} must be {wanted}; got {_short(got)}.{_instead(wanted, got)}")
    says.append(f"{cls.__name__} takes {', '.join(_takes(cls))}.")
    return " ".join(says)


def _instead(wanted: str, got: object) -> str:
    if "VectorStore" in wanted and hasattr(got, "vectorstore"):
        return " Give the vector store itself, which is its .vectorstore."
    if "Runnable" not in wanted:
        return ""
    if hasattr(got, "as_retriever"):
        return " Give its as_retriever()."
    return " Wrap a function in RunnableLambda." if inspect.isroutine(got) else ""


def _where(loc: tuple[int | str, ...]) -> str:
    """The setting, and the place in it if it is a list."""
    if not loc:
        return "the settings"
    return f"{loc[0]}" + "".join(f"[{part}]" for part in loc[1:] if isinstance(part, int))


def _short(value: object) -> str:
    """The value as it is written, cut; its type if it cannot be written."""
    try:
        written = repr(value)
    except Exception:  # noqa: BLE001 - whatever an object's own repr raises
        return f"a {type(value).__name__}"
    return written if len(written) <= 80 else f"{written[:80]}…"
