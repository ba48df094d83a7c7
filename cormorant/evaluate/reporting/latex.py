"""How does a report look in a paper?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cormorant.width import plain

__all__ = ["latex_escape", "latex_table"]

_ESCAPES: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "→": r"$\rightarrow$",
        "−": r"$-$",
    }
)


def latex_table(rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Rows as a ``table`` environment, the first being the heads; marks stand raised.

    Needs the booktabs package; names in Chinese need xeCJK or the like.

    Args:
        rows: Cells; the first column is a name, the others are figures.
        notes: Sentences of the caption.
    """
    head, *body = rows
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(map(latex_escape, head)) + r" \\",
        r"\midrule",
        *(" & ".join([latex_escape(row[0]), *map(_figure, row[1:])]) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{' '.join(map(latex_escape, notes))}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_escape(text: str) -> str:
    """The text on one line, with what LaTeX would read as a command escaped."""
    return plain(text).translate(_ESCAPES)


def _figure(cell: str) -> str:
    if cell[-1:] in {"+", "-"}:
        return rf"{latex_escape(cell[:-1])}$^{{{cell[-1]}}}$"
    return latex_escape(cell)
