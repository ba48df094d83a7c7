"""Which value holds? Flags, then CORMORANT_* variables, then cormorant.toml, then defaults."""

from __future__ import annotations

import difflib
import os
import tomllib
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cormorant import defaults
from cormorant.errors import ConfigError

__all__ = ["SETTINGS", "Setting", "Settings", "config_files"]

_LOCAL_FILE = Path("cormorant.toml")


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that can be given in four places.

    Attributes:
        name: The key in cormorant.toml, and the flag's destination.
        kind: ``str``, ``int`` or ``float``: what the text in a variable becomes.
        default: What holds when nobody said anything; None leaves it to the command.
        help: For the flag's help and the reference page.
        choices: What is accepted, if that is a list.
    """

    name: str
    kind: Callable[[str], Any]
    default: Any
    help: str
    choices: tuple[str, ...] | None = None

    @property
    def flag(self) -> str:
        """The long option: ``lock_timeout`` → ``--lock-timeout``."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable: ``top_k`` → ``CORMORANT_TOP_K``."""
        return "CORMORANT_" + self.name.upper()


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "embedder",
            str,
            None,
            "embedding model, as SPEC; 'none' for text only (default: the store's own, "
            "else 'local' if installed)",
        ),
        Setting(
            "language",
            str,
            None,
            "whose stems and stop words a new store uses (default: english; Chinese and "
            "identifiers are handled in every language)",
        ),
        Setting(
            "mode",
            str,
            None,
            "legs to search (default: hybrid if the store has vectors and their embedder is "
            "installed, else text)",
            defaults.MODES,
        ),
        Setting("top_k", int, defaults.TOP_K, f"hits wanted (default: {defaults.TOP_K})"),
        Setting(
            "fetch_k",
            int,
            None,
            "candidates per leg, at least --top-k (default: as set in the store, else the larger "
            "of 50 and 4 x top-k)",
        ),
        Setting(
            "fusion",
            str,
            None,
            "how a hybrid search adds up its legs (default: as set in the store, else "
            f"{defaults.FUSION})",
            defaults.FUSIONS,
        ),
        Setting(
            "rrf_k",
            float,
            None,
            f"constant of rrf (default: as set in the store, else {defaults.RRF_K:g})",
        ),
        Setting("min_score", float, None, "lowest relevance kept, from 0 to 1 (default: keep all)"),
        Setting(
            "mmr_lambda",
            float,
            None,
            "diversify: 1 is relevance only, 0 diversity only (default: as set in the store, "
            "else do not)",
        ),
        Setting(
            "prices",
            str,
            None,
            "price table of your own, as FILE (default: the list prices that are shipped)",
        ),
        Setting(
            "lock_timeout",
            float,
            defaults.LOCK_TIMEOUT_S,
            "seconds to wait for another writer before exit code 3 "
            f"(default: {defaults.LOCK_TIMEOUT_S:g})",
        ),
    )
}


class Settings:
    """Settings as one command run sees them.

    Args:
        given: The parsed flags; None where a flag was not given.
        environ: The environment.
        written: The settings file's content.
        path: Where that was read, for messages.
    """

    def __init__(
        self,
        given: Namespace,
        environ: Mapping[str, str],
        written: Mapping[str, Any],
        path: Path | None,
    ) -> None:
        self._given = given
        self._environ = environ
        self._written = written
        self._path = path

    @classmethod
    def load(cls, given: Namespace, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the first settings file there is, and check it.

        Raises:
            ConfigError: If the file is not TOML, or names a setting that does not exist.
        """
        environ = os.environ if environ is None else environ
        for path in config_files(environ):
            if path.is_file():
                return cls(given, environ, _read(path), path)
        if environ.get("CORMORANT_CONFIG"):
            raise ConfigError(
                f"CORMORANT_CONFIG names {environ['CORMORANT_CONFIG']!r}: no such file."
            )
        return cls(given, environ, {}, None)

    def get(self, name: str) -> Any:
        """The value that holds.

        Raises:
            ConfigError: If a variable or the file has a value that is not accepted.
        """
        setting = SETTINGS[name]
        flag = getattr(self._given, name, None)
        if flag is not None:
            return flag
        variable = self._environ.get(setting.variable)
        if variable:
            return _checked(setting, variable, setting.variable)
        if name in self._written:
            return _checked(setting, self._written[name], f"{self._path}, {name}")
        return setting.default

    def trusted(self, name: str) -> bool:
        """Whether the value is the user's own word.

        Flags, variables and the file in the user's own configuration folder are; a
        cormorant.toml in the current folder may have come with a stranger's repository.
        """
        if getattr(self._given, name, None) is not None:
            return True
        if self._environ.get(SETTINGS[name].variable):
            return True
        return self._path is not None and self._path != _LOCAL_FILE


def config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where settings are looked for; the first file there is counts, alone."""
    named = environ.get("CORMORANT_CONFIG")
    if named:
        return (Path(named),)
    home = environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return _LOCAL_FILE, Path(home) / "cormorant" / "cormorant.toml"


def _read(path: Path) -> dict[str, Any]:
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    for name in written:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"{path} sets {name!r}, which is no setting.{meant} "
                f"Accepted: {', '.join(sorted(SETTINGS))}."
            )
    return written


def _checked(setting: Setting, value: Any, where: str) -> Any:
    try:
        if isinstance(value, bool):
            raise ValueError
        if not isinstance(value, str) and setting.kind is str:
            raise ValueError
        parsed = setting.kind(value)
    except (TypeError, ValueError):
        kind = {"str": "text", "int": "a whole number", "float": "a number"}[
            getattr(setting.kind, "__name__", "str")
        ]
        raise ConfigError(f"{where}: expected {kind}; got {value!r}.") from None
    if setting.choices and parsed not in setting.choices:
        raise ConfigError(f"{where}: expected one of {', '.join(setting.choices)}; got {value!r}.")
    return parsed
