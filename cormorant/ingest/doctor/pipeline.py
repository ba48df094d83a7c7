"""What is around the store: how is it filled and asked, as its owner describes it?"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

from cormorant.errors import ConfigError, NotFound

__all__ = ["Pipeline"]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline's description; None is what nobody described.

    Attributes:
        chunker: How texts are cut: ``recursive``, ``structural``, ``fixed``, ….
        chunk_overlap: Characters.
        index_embedder: The model that embeds records.
        query_embedder: The model that embeds questions.
        mode: ``hybrid``, ``vector`` or ``text``.
        filters: Metadata fields that questions are filtered by.
        tenant_field: The field that says whose a record is, or who may read it; empty if
            everybody may read everything.
        reranker: Its name; empty if there is none.
        query_rewriting: Whether questions are rewritten (multi-query, HyDE, …) before searching.
        evaluated: Whether there are judged questions, by which changes are measured.
        tracing: Whether retrievals are traced.
        fallback: Whether something answers when a stage fails.
        cost_by_tenant: Whether cost is tracked by tenant.
        chunk_sizes_compared: Chunk sizes that were compared on judged questions.
    """

    chunker: str | None = None
    chunk_overlap: int | None = None
    index_embedder: str | None = None
    query_embedder: str | None = None
    mode: str | None = None
    filters: tuple[str, ...] | None = None
    tenant_field: str | None = None
    reranker: str | None = None
    query_rewriting: bool | None = None
    evaluated: bool | None = None
    tracing: bool | None = None
    fallback: bool | None = None
    cost_by_tenant: bool | None = None
    chunk_sizes_compared: tuple[int, ...] | None = None

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Self:
        """From a mapping under the attributes' names.

        Raises:
            ConfigError: On a name or a type that is not known.
        """
        hints = get_type_hints(cls)
        names = [each.name for each in fields(cls)]
        taken: dict[str, Any] = {}
        for name, value in described.items():
            if name not in hints:
                near = difflib.get_close_matches(str(name), names, 1)
                meant = f" Did you mean {near[0]!r}?" if near else ""
                raise ConfigError(f"A pipeline has no {name!r}.{meant} It has {', '.join(names)}.")
            taken[name] = _typed(name, value, hints[name])
        return cls(**taken)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """From a file: TOML if its name ends so, else JSON.

        Raises:
            NotFound: If there is no such file.
            ConfigError: If it cannot be read as that, or describes something else.
        """
        file = Path(path)
        if not file.is_file():
            raise NotFound(f"There is no pipeline description at {file}.")
        try:
            text = file.read_text(encoding="utf-8")
            read = tomllib.loads if file.suffix.lower() == ".toml" else json.loads
            described = read(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file} is no TOML or JSON: {error}.") from error
        if not isinstance(described, dict):
            raise ConfigError(f"{file} takes an object; got a {type(described).__name__}.")
        inner = described.get("pipeline", described)
        if not isinstance(inner, dict):
            raise ConfigError(f"{file}: pipeline takes a table; got a {type(inner).__name__}.")
        return cls.of(inner)


def _typed(name: str, value: Any, hint: Any) -> Any:
    (wanted, *_) = get_args(hint)
    inner = get_args(wanted)
    if inner:
        right = isinstance(value, (list, tuple)) and all(_is(each, inner[0]) for each in value)
        value, says = tuple(value) if right else value, f"a list of {_NAMES[inner[0]]}s"
    else:
        right, says = _is(value, wanted), f"a {_NAMES[wanted]}"
    if not right:
        raise ConfigError(f"A pipeline's {name} takes {says}; got {value!r}.")
    return value


_NAMES = {str: "text", int: "whole number", bool: "true or false"}


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
