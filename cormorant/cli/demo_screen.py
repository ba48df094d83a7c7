"""What does the demonstration look like on a screen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cormorant.width import clip, columns, pad, plain, table

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.demo import Question
    from cormorant.model import Hit, Leg

__all__ = ["Screen"]

_TERMS = 24
_TOO_NARROW = 10
_TICK = "✓"


class Screen:
    """The demonstration on a screen; says nothing when JSON was asked for."""

    def __init__(self, console: Console, *, silent: bool) -> None:
        self._console = console
        self._silent = silent

    def _print(self, text: str = "") -> None:
        if not self._silent:
            self._console.print(text)

    def built(self, built: dict[str, Any]) -> None:
        """What is in the store, and what it cost."""
        bold = self._console.style(f"{built['records']} paragraphs", "bold")
        made = "stored"
        if built["embedder"]:
            made = f"embedded by {built['embedder']!r} ({built['dim']} numbers each) and stored"
        self._print(f"{bold} of {built['corpus']}, English and Chinese,")
        self._print(f"{made} in {built['build_cpu_seconds']:.1f} s of CPU.")
        self._print(f"{_TICK} marks the paragraph that a question was written for.")

    def answered(
        self,
        question: Question,
        hits: tuple[Hit, ...],
        right: frozenset[str],
        *,
        compares: bool,
    ) -> None:
        """A question and its hits as a table; what it shows, if there is more than one leg."""
        style = self._console.style
        self._print()
        self._print(style(question.text, "bold"))
        if compares:
            self._print(style(question.shows, "dim"))
        head = ["", "fused", "vector", "", "BM25", "", "matched terms", "record", ""]
        if not hits:
            self._print("no hits")
            return
        rows = [_row(hit, right) for hit in hits]
        lines = table([head, *(row for row, _ in rows)], right=(0, 1, 2, 3, 4, 5))
        used = max(map(columns, lines))
        left = self._console.width - used - 2
        self._print(style(lines[0], "dim"))
        for line, (row, text) in zip(lines[1:], rows, strict=True):
            snippet = clip(plain(text), left) if left > _TOO_NARROW else ""
            colour = ("green",) if row[-1] else ()
            self._print(f"{style(pad(line, used), *colour)}  {snippet}".rstrip())

    def judged(self, scores: list[dict[str, Any]]) -> None:
        """The means, as a table."""
        modes = [mode for mode in ("text", "vector", "hybrid") if mode in scores[0]]
        rows = [["nDCG@10", "questions", *modes]]
        rows += [
            [said["task"], f"{said['questions']:,}", *(f"{said[mode]:.3f}" for mode in modes)]
            for said in scores
        ]
        head, *lines = table(rows, right=range(1, len(rows[0])))
        self._print()
        self._print(self._console.style(head, "bold"))
        for line in lines:
            self._print(line)
        self._print()


def _row(hit: Hit, right: frozenset[str]) -> tuple[list[str], str]:
    vector, text = hit.legs.get("vector"), hit.legs.get("text")
    terms = ""
    if text is not None:
        strongest = sorted(text.terms, key=lambda match: -match.score)
        terms = clip(", ".join(plain(match.term) for match in strongest), _TERMS)
    row = [
        str(hit.rank),
        f"{hit.score:.2f}",
        *_leg(vector, 2),
        *_leg(text, 1),
        terms,
        hit.id,
        _TICK if hit.id in right else "",
    ]
    return row, hit.text


def _leg(leg: Leg | None, digits: int) -> tuple[str, str]:
    if leg is None:
        return "", ""
    return ("–" if leg.rank is None else f"#{leg.rank}"), f"{leg.score:.{digits}f}"
