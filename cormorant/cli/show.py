"""What does a hit, or an explanation, look like on a screen?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cormorant.width import clip, plain, wrap

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.model import Explanation, Hit, Leg

__all__ = ["explanation_lines", "hit_lines", "leg_text"]

_TERMS = 6
_LINES = 3


def hit_lines(hit: Hit, console: Console) -> Iterator[str]:
    """A hit: rank, score and id; relevance and how each leg saw it; the beginning of its text."""
    place = f"{hit.rank:>2}"
    head = console.style(f"{hit.score:7.3f}", "bold")
    yield f"{place} {head}  {console.style(clip(plain(hit.id), console.width - 13), 'cyan')}"
    # With one leg alone, its score is the hit's.
    parts = hit.contributions if len(hit.contributions) > 1 else {}
    # What --min-score compares with, which is not the score.
    seen = [f"relevance {hit.relevance:.3f}"]
    seen += [leg_text(name, leg, parts.get(name)) for name, leg in hit.legs.items()]
    yield console.style(clip(f"   {' · '.join(seen)}", console.width), "dim")
    for line in wrap(hit.text, console.width - 3, _LINES):
        yield f"   {line}"


def leg_text(name: str, leg: Leg, contribution: float | None) -> str:
    """One leg's part: its rank, score, contribution to a fused score, and matched terms."""
    rank = "not fetched" if leg.rank is None else f"#{leg.rank}"
    text = f"{name} {rank} {leg.score:.3f}"
    if contribution is not None:
        text += f" ({contribution:+.3f})"
    if leg.terms:
        strongest = sorted(leg.terms, key=lambda match: -match.score)
        text += " " + ", ".join(plain(match.term) for match in strongest[:_TERMS])
        if len(strongest) > _TERMS:
            text += ", …"
    return text


def explanation_lines(explanation: Explanation, console: Console) -> Iterator[str]:
    """The verdict, then each stage of the journey with its sentence."""
    colour = "green" if explanation.found else "red"
    yield console.style(plain(explanation.says), "bold", colour)
    for step in explanation.steps:
        mark = console.style("kept", "green") if step.kept else console.style("lost", "red")
        yield f"  {mark}  {step.stage:<9} {plain(step.says)}"
