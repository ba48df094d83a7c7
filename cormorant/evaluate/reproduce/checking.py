"""Are the scores what they were?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cormorant import defaults
from cormorant.errors import UsageError
from cormorant.evaluate.reproduce.expected import Expectation, Expected
from cormorant.evaluate.reproduce.measuring import measured
from cormorant.evaluate.reproduce.sets import judged_set

__all__ = ["BEGIN", "END", "Outcome", "page_with", "reproduce", "table"]

BEGIN: Final = "<!-- scores: written by python -m cormorant.evaluate.reproduce -->"
END: Final = "<!-- end of scores -->"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row as it was expected and as it was measured.

    Attributes:
        expected: What stands in the file.
        measured: The same, as it was found.
        off: Modes whose score is off by more than the tolerance.
    """

    expected: Expectation
    measured: Expectation
    off: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether sizes agree, and every score within the tolerance."""
        sizes = [(each.documents, each.queries) for each in (self.expected, self.measured)]
        return not self.off and sizes[0] == sizes[1]


def reproduce(expected: Expected, root: str | Path) -> Iterator[Outcome]:
    """Measure every row anew.

    Args:
        expected: What to measure, and what should come out.
        root: The folder of judged sets; see :func:`~cormorant.evaluate.reproduce.judged_set`.

    Yields:
        Rows in the order of ``expected``, each once it is measured.

    Raises:
        EvalFileError: If a set is not there.
    """
    for row in expected.rows:
        held = judged_set(root, row.set, row.embedding)
        scores = measured(held, expected.metric)
        found = Expectation(row.set, row.embedding, len(held.documents), len(held.queries), scores)
        off = (
            mode
            for mode in defaults.MODES
            if abs(scores[mode] - row.scores[mode]) > expected.tolerance + 1e-12
        )
        yield Outcome(row, found, tuple(off))


def table(expected: Expected) -> str:
    """The scores as a Markdown table; the best mode of each row is bold."""
    lines = [
        f"| set | embedding | documents | queries | {' | '.join(defaults.MODES)} |",
        f"|---|---|--:|--:|{'--:|' * len(defaults.MODES)}",
    ]
    for row in expected.rows:
        best = max(row.scores.values())
        scores = (
            f"**{row.scores[m]:.4f}**" if row.scores[m] == best else f"{row.scores[m]:.4f}"
            for m in defaults.MODES
        )
        lines.append(
            f"| {row.set} | {row.embedding} | {row.documents:,} | {row.queries:,} "
            f"| {' | '.join(scores)} |"
        )
    return "\n".join(lines)


def page_with(page: str, expected: Expected) -> str:
    """The page with its table replaced by the expected scores.

    Raises:
        UsageError: If the page has no place for it.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"The page has no lines {BEGIN} and {END} for the table to stand between.")
    return f"{before}{BEGIN}\n\n{table(expected)}\n\n{END}{after}"
