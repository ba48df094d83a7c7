"""Which words has a text, for comparing texts and for asking with some of them?

Not the analyzer's terms: a question is made of words as they are written, not of stems.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from cormorant.analysis.normalise import normalise
from cormorant.analysis.pieces import pieces
from cormorant.analysis.tokens import is_unspaced, token_pattern

__all__ = ["folded", "number_of", "pieces", "words"]


def words(text: str) -> list[str]:
    """The words in their order, folded; of scripts without spaces, every two neighbours.

    Example:
        >>> words("Cormorants dive: 鸬鹚捕鱼")
        ['cormorants', 'dive', '鸬鹚', '鹚捕', '捕鱼']
    """
    return list(_words(normalise(text).casefold()))


def _words(text: str) -> Iterator[str]:
    for token in token_pattern().findall(text):
        if is_unspaced(token) and len(token) > 1:
            yield from (token[at : at + 2] for at in range(len(token) - 1))
        else:
            yield token


def folded(text: str) -> str:
    """Equal for texts that differ in width, case, blanks and marks at their ends alone."""
    return " ".join(normalise(text).casefold().split()).strip(" #*_.,:;!?。，、：；！？\"'“”")


def number_of(*parts: object) -> int:
    """A number that looks drawn, the same for the same parts, whatever the order they come in.

    Returns:
        From 0 to 2⁶⁴ - 1.
    """
    written = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(written, digest_size=8).digest(), "big")
