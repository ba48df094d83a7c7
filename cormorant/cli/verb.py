"""What is a verb, and which arguments do verbs share?"""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cormorant.cli.settings import SETTINGS
from cormorant.errors import FilterError

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.cli.settings import Settings
    from cormorant.store import ScopedStore, Store

__all__ = [
    "DEGRADED_EXIT",
    "Verb",
    "add_filter",
    "add_json",
    "add_scope",
    "add_settings",
    "add_store",
    "folder",
    "parsed_filter",
    "scope_of",
    "scoped",
]

DEGRADED_EXIT = 1
"""Exit code of a negative verdict: damage, a why-not, an input that had to be left out."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One subcommand.

    Attributes:
        name: What the user types.
        says: One line for the overview.
        tells: A paragraph for its own help: what it prints, when it exits 1.
        arguments: Adds its arguments to a parser.
        run: Does it; returns the exit code.
        fields: What ``--json`` prints: each field of the object, and what it means. A nested
            one is written ``hits[].id``.
    """

    name: str
    says: str
    tells: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Settings, Console], int]
    fields: Mapping[str, str]


def add_store(parser: ArgumentParser) -> None:
    """The store comes first, in every verb."""
    parser.add_argument("store", metavar="KB", type=folder, help="the store's folder")


def folder(written: str) -> str:
    """A store's path, as argparse takes it."""
    if written == ":memory:":
        raise ArgumentTypeError(
            "':memory:' keeps nothing once the command ends; name a folder, such as ./kb"
        )
    return written


def add_json(parser: ArgumentParser) -> None:
    """``--json``: one object on stdout."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_filter(parser: ArgumentParser) -> None:
    """``--filter``: a filter in the filter language, as JSON."""
    parser.add_argument(
        "--filter",
        metavar="JSON",
        help='only records whose metadata match, e.g. \'{"year": {"$gte": 2024}}\'',
    )


def add_scope(parser: ArgumentParser) -> None:
    """``--scope``: what the whole call is confined to, as JSON."""
    parser.add_argument(
        "--scope",
        metavar="JSON",
        help='only records inside it can be seen or written, e.g. \'{"tenant": "acme"}\'',
    )


def add_settings(parser: ArgumentParser, *names: str) -> None:
    """Flags for settings, which can also be given by variable and in cormorant.toml."""
    short = {"top_k": ["-k"]}
    metavar = {"embedder": "SPEC", "language": "NAME", "lock_timeout": "SECONDS", "prices": "FILE"}
    for name in names:
        setting = SETTINGS[name]
        parser.add_argument(
            *short.get(name, []),
            setting.flag,
            dest=name,
            type=setting.kind,
            choices=setting.choices,
            metavar=None if setting.choices else metavar.get(name, "N"),
            default=None,
            help=setting.help,
        )


def parsed_filter(args: Namespace) -> dict[str, Any] | None:
    """The ``--filter`` argument as a dict; None if it was not given.

    Raises:
        FilterError: If it is not a JSON object.
    """
    return _json_object("--filter", args.filter, """{"language": "en"}""")


def scoped(store: Store, args: Namespace) -> Store | ScopedStore:
    """The store, confined to ``--scope`` if one was given.

    Raises:
        FilterError: If it is not a JSON object.
        ScopeError: If it is no restriction.
    """
    predicates = scope_of(args)
    return store if predicates is None else store.scope(**predicates)


def scope_of(args: Namespace) -> dict[str, Any] | None:
    """What ``--scope`` says; None if it was not given.

    Raises:
        FilterError: If it is not a JSON object.
    """
    return _json_object("--scope", args.scope, """{"tenant": "acme"}""")


def _json_object(flag: str, written: str | None, example: str) -> dict[str, Any] | None:
    if written is None:
        return None
    try:
        value = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise FilterError(
            f"{flag} takes a JSON object; got {written[:200]!r}: {error}. "
            f"Put single quotes around it, as in {flag} '{example}'."
        ) from error
    if not isinstance(value, dict):
        raise FilterError(f"{flag} takes a JSON object, as in {flag} '{example}'; got {written!r}.")
    return value
