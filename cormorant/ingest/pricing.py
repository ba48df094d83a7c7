"""What does embedding cost, once for the corpus and again with every question?

The table is a TOML file with a date on it. What has no price there has no price: it is never
taken for free.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.ranges import check_number, check_whole

__all__ = ["Price", "PriceTable", "usd_text"]

_FIELDS: Final = ("provider", "model", "dimensions", "usd_per_million_tokens")
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """One row of the table.

    Attributes:
        provider: Such as ``openai``.
        model: As the provider calls it.
        dimensions: Numbers per vector.
        usd_per_million_tokens: US dollars; 0 for a model that costs computing time only.
        as_of: When it held, in the table's own words.
    """

    provider: str
    model: str
    dimensions: int
    usd_per_million_tokens: float
    as_of: str = ""

    def build_usd(self, tokens: int) -> float:
        """What embedding so many tokens costs, once.

        Example:
            >>> price = Price("openai", "text-embedding-3-small", 1536, 0.02)
            >>> price.build_usd(1_000_000 * 500)
            10.0
        """
        return tokens * self.usd_per_million_tokens / _MILLION

    def query_usd(self, tokens: int = defaults.QUERY_TOKENS) -> float:
        """What embedding one question of so many tokens costs, every time it is asked."""
        return self.build_usd(tokens)

    def vector_bytes(self, chunks: int) -> int:
        """What the vectors of so many chunks take on disk: 4 bytes a number."""
        return chunks * self.dimensions * 4


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices, those of the user's own file first.

    Attributes:
        rows: In the order they are looked through.
    """

    rows: tuple[Price, ...]

    @classmethod
    def load(cls, path: str | Path | None = None) -> PriceTable:
        """The shipped list prices, after those of a file of the user's own.

        Args:
            path: A TOML file of the same form as ``cormorant/ingest/prices.toml``.

        Raises:
            ConfigError: If the file is missing or is not of that form.

        Example:
            >>> PriceTable.load().find("openai:text-embedding-3-large").build_usd(500_000_000)
            65.0
        """
        shipped = files("cormorant.ingest").joinpath("prices.toml").read_text(encoding="utf-8")
        rows = _rows(shipped, "the shipped price table")
        if path is not None:
            try:
                written = Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(
                    f"The price table {path} cannot be read: {error}. It is a TOML file with rows "
                    f"[[price]] of {', '.join(_FIELDS)}."
                ) from error
            rows = _rows(written, str(path)) + rows
        seen: dict[tuple[str, str], Price] = {}
        for row in rows:
            seen.setdefault((row.provider.lower(), row.model.lower()), row)
        return cls(tuple(seen.values()))

    def find(self, *names: str | None) -> Price | None:
        """The first row one of these names stands for; None if none does.

        Args:
            names: Specifications (``openai:text-embedding-3-small``, ``local``) or the models'
                own names.
        """
        for name in names:
            if not name:
                continue
            provider, colon, model = name.strip().lower().partition(":")
            for row in self.rows:
                if colon and row.model.lower() == model and row.provider.lower() in provider:
                    return row
                if not colon and provider in {row.model.lower(), row.provider.lower()}:
                    alone = [each for each in self.rows if each.provider == row.provider]
                    if row.model.lower() == provider or len(alone) == 1:
                        return row
        return None


def usd_text(usd: float) -> str:
    """Dollars as people read them: whole ones plain, cents from a dollar on, else two digits.

    Example:
        >>> [usd_text(usd) for usd in (10.0, 1234.5, 0.0042, 0.0)]
        ['$10', '$1,234.50', '$0.0042', '$0']
    """
    if usd == round(usd):
        return f"${usd:,.0f}"
    if usd >= 1:
        return f"${usd:,.2f}"
    places = max(2, 1 - math.floor(math.log10(usd)))
    return f"${usd:.{places}f}"


def _rows(written: str, where: str) -> list[Price]:
    try:
        table = tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}.") from error
    as_of, listed = table.get("as_of"), table.get("price")
    if not isinstance(as_of, str) or not as_of.strip() or not isinstance(listed, list):
        raise ConfigError(
            f"{where} needs as_of, a text that says when its prices held, and rows [[price]] of "
            f"{', '.join(_FIELDS)}."
        )
    return [_row(row, as_of.strip(), f"{where}, price {n}") for n, row in enumerate(listed, 1)]


def _row(row: Any, as_of: str, where: str) -> Price:
    if not isinstance(row, Mapping) or set(row) != set(_FIELDS):
        raise ConfigError(f"{where} must have {', '.join(_FIELDS)} and nothing else; got {row!r}.")
    for name in ("provider", "model"):
        if not isinstance(row[name], str) or not row[name].strip():
            raise ConfigError(f"{where}: {name} must be a name; got {row[name]!r}.")
    check_whole(f"{where}: dimensions", row["dimensions"], error=ConfigError)
    usd = row["usd_per_million_tokens"]
    check_number(f"{where}: usd_per_million_tokens", usd, low=0, error=ConfigError)
    return Price(row["provider"].strip(), row["model"].strip(), row["dimensions"], usd, as_of)
