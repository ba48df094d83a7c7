"""Under which names can a token be looked for?

A plain word has one name. A compound, an identifier, a version or a number has several:
itself, its parts, and itself without its separators, so that ``ERR_1042``, ``err-1042``,
``ERR1042`` and ``err 1042`` find each other, and the exact form still ranks first.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["LONGEST", "Name", "names", "pieces"]

LONGEST: Final = 128
"""A name is cut at this many characters; a longer token is taken apart only at its separators."""

_CASES_MAX: Final = 8  # more changes of letter case: a key, not words
_ATOMS_MAX: Final = 3  # more changes between letters and digits: a hash, not words and numbers
_SEPARATORS: Final = ("@", "&", ".", "-", "_")
_PREFIXES: Final = frozenset(
    {
        *("anti", "co", "counter", "de", "inter", "intra", "macro", "micro", "mid", "mis", "multi"),
        *("non", "over", "post", "pre", "pseudo", "quasi", "re", "self", "semi", "sub", "super"),
        *("trans", "ultra", "un", "under"),
    }
)

_THOUSANDS: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DOT: Final = re.compile(r"(?<![0-9])\.|\.(?![0-9])")  # not the points inside 0.3.7
_ATOM: Final = re.compile(r"[0-9]+(?:[.:][0-9]+)*|[^0-9]+")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+(?:\.[0-9]+)*")
_HYPHENATED: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^A-Za-z]+")
_ONE_WORD: Final = re.compile(r"[a-z]?[A-Z][a-z]+|[A-Z]{2,}s")  # iPhone, Paris, IDs
_SIMPLE: Final = re.compile(r"[^\W_]+")
_CONTRACTED: Final = frozenset({"t", "s", "d", "m", "re", "ve", "ll"})


def pieces(token: str) -> list[str]:
    """A token as it is, or the simple words of one that is too long to be a name."""
    if len(token) <= LONGEST:
        return [token]
    return [simple[:LONGEST] for simple in _SIMPLE.findall(token)]


class Name(NamedTuple):
    """One name of a token, in lower case; a ``word`` is stemmed, and may be a stop word."""

    text: str
    word: bool


def names(token: str) -> list[Name]:
    """All names of a token, the fullest first.

    Args:
        token: One of :func:`pieces`.

    Returns:
        At least one name if the token has a letter, a digit or is an emoji; no name twice.
    """
    if token.isalpha() and (token.islower() or token.istitle()):
        return [Name(token.lower(), word=True)]  # nine tokens of ten
    found: list[Name] = []
    if _SIMPLE.search(token) is None:
        found.extend([Name(token, word=False)] if "_" not in token else [])  # an emoji, or a rule
    else:
        _affixed(token.replace("’", "'"), found)
    return list(dict.fromkeys(found))


def _plain(token: str) -> Name:
    lower = token.lower()
    return Name(lower, word=not any(map(str.isdecimal, lower)))


def _affixed(token: str, found: list[Name]) -> None:
    """``#4421``, ``.NET``, ``C++``, ``C#``: the whole, then what is inside."""
    inner = token.removesuffix("++").removesuffix("#").lstrip("#.")
    if inner != token:
        found.append(Name(token.lower(), word=False))
    _apostrophes(inner, found)


def _apostrophes(token: str, found: list[Name]) -> None:
    """``company's`` is company; ``don't`` one word; ``o'neil`` and ``l'homme`` also their parts."""
    if "'" not in token:
        _numbers(token, found)
        return
    *pieces, last = token.split("'")
    if last in {"s", "S"}:
        _apostrophes("'".join(pieces), found)
        return
    _numbers("".join((*pieces, last)).lower(), found)
    if last.lower() not in _CONTRACTED:
        for piece in (*pieces, last):
            if len(piece) > 2:
                _numbers(piece, found)


def _numbers(token: str, found: list[Name]) -> None:
    """``1,000`` is 1000; other commas between digits only separate."""
    if "," not in token:
        _split(token, found)
    elif _THOUSANDS.fullmatch(token):
        _split(token.replace(",", ""), found)
    else:
        for piece in token.split(","):
            _split(piece, found)


def _split(token: str, found: list[Name]) -> None:
    """The token at its coarsest separators, then each part."""
    for separator in _SEPARATORS:
        if separator not in token:
            continue
        pieces = _DOT.split(token) if separator == "." else token.split(separator)
        if len(pieces) == 1:
            continue
        parts = [piece for piece in pieces if piece]
        if separator == "-" and _HYPHENATED.fullmatch(token):
            _hyphenated(parts, found)
            return
        if separator == "." and all(len(part) == 1 and part.isalpha() for part in parts):
            found.append(_plain("".join(parts)))  # U.S.A. is USA
            return
        found.append(Name(token.lower(), word=False))
        if separator in "-_" and any(map(str.isalpha, token)):
            joined = "".join(parts).lower()
            found.extend((Name(joined, word=False), _plain(joined)))
        for part in parts:
            _split(part, found)
        return
    _atoms(token, found)


def _hyphenated(parts: list[str], found: list[Name]) -> None:
    """``front-end`` is also frontend; in ``re-entry`` and ``e-mail`` the prefix is no word."""
    found.append(_plain("".join(parts)))
    if len(parts[0]) == 1 or parts[0].lower() in _PREFIXES:
        del parts[0]
    for part in parts:
        _split(part, found)


def _atoms(token: str, found: list[Name]) -> None:
    """Letters apart from numbers: ``CUDA12.1`` is also CUDA and 12.1, ``v0.3.7`` also 0.3.7."""
    atoms = _ATOM.findall(token)
    if len(atoms) > 1:
        found.append(Name(token.lower(), word=False))
        if len(atoms) > _ATOMS_MAX:
            return
    for atom in atoms:
        if atom[0].isdecimal():
            found.append(Name(atom, word=False))
            if _VERSION.fullmatch(atom):
                major, minor, *_ = atom.split(".")
                found.append(Name(f"{major}.{minor}.", word=False))  # 3.11 also finds 3.11.7
        elif len(atoms) == 1 or len(atom) > 1:
            _cases(atom, found)


def _cases(word: str, found: list[Name]) -> None:
    """``getUserName`` is also get, user and name."""
    if word.islower() or word.isupper() or not word.isascii() or _ONE_WORD.fullmatch(word):
        found.append(Name(word.lower(), word=True))
        return
    found.extend((Name(word.lower(), word=False), Name(word.lower(), word=True)))
    parts = _CAMEL.findall(word)
    if len(parts) <= _CASES_MAX:
        found.extend(Name(part.lower(), word=True) for part in parts if len(part) > 1)
