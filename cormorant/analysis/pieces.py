"""Which parts can be left out of a text, or taken from it, as they are written?"""

from __future__ import annotations

from cormorant.analysis.tokens import is_unspaced, token_pattern

__all__ = ["pieces"]


def pieces(text: str) -> list[tuple[int, int]]:
    """Where the parts lie: words, or two letters of scripts without spaces.

    Returns:
        (start, end), in order, without overlap.

    Example:
        >>> text = "Cormorants: 鸬鹚捕鱼"
        >>> [text[start:end] for start, end in pieces(text)]
        ['Cormorants', '鸬鹚', '捕鱼']
    """
    out: list[tuple[int, int]] = []
    for match in token_pattern().finditer(text):
        start, end = match.span()
        if is_unspaced(match[0]):
            out.extend((at, min(at + 2, end)) for at in range(start, end, 2))
        else:
            out.append((start, end))
    return out
