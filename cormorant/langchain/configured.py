"""What do our retrievers and compressors say of wrong settings, and of being sent elsewhere?

They are pydantic models, as LangChain's are. Whatever pydantic or Python would say of a wrong
constructor call, or of what cannot be pickled or copied, is said here in the package's own words.
"""

from __future__ import annotations

import pickle
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from typing_extensions import override

from cormorant.errors import ConfigError, CormorantError, UsageError
from cormorant.langchain.request import refuse_unknown

__all__ = ["Configured"]

_ASIDE = ("name", "tags", "metadata")  # every Runnable has them; they are not what was missed


class Configured(BaseModel):
    """A model made by keywords alone, whose errors name what was wrong.

    Raises:
        UsageError: On an argument nobody reads.
        ConfigError: If an argument is missing, or is not what it must be.
    """

    def __new__(cls, *args: Any, **values: Any) -> Self:  # noqa: ARG004 - __init__ reads them
        """Refuse what Python would, had it the words for it."""
        if args:
            # Unpickling and copying give none, so this is a call of the constructor.
            raise ConfigError(
                f"{cls.__name__} takes its settings by name; got {len(args)} without one. "
                f"Write {cls.__name__}({_call(cls)})."
            )
        return super().__new__(cls)

    def __init__(self, **values: Any) -> None:
        refuse_unknown(values, type(self).model_fields, type(self).__name__)
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


def _needed(cls: type[BaseModel]) -> list[str]:
    return [name for name, field in cls.model_fields.items() if field.is_required()]


def _call(cls: type[BaseModel]) -> str:
    needed = _needed(cls)
    return ", ".join(f"{name}=…" for name in needed or list(cls.model_fields)[:1])


def _said(cls: type[BaseModel], error: ValidationError) -> str:
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
        says.append(f"{name} must be {' or '.join(dict.fromkeys(ways))}; got {_short(got)}.")
    takes = [name for name in cls.model_fields if name not in _ASIDE]
    says.append(f"{cls.__name__} takes {', '.join((*takes, *_ASIDE))}.")
    return " ".join(says)


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
