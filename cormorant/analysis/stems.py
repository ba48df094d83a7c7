"""Does the stemmer give the stems it gave when the store was made?

Snowball changes: between PyStemmer 2.2 and 3.0 ``added`` went from ``ad`` to ``add``, between 3.0
and 3.1 ``internal`` from ``intern`` to ``internal``, under version numbers that do not tell. A
store stemmed one way and asked another would miss records in silence, so what identifies a
stemmer is what it does to a fixed list of words.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from itertools import product
from typing import Final

import Stemmer

from cormorant.errors import ConfigError

__all__ = ["digest", "stemmer"]

# Beginnings and endings, put together each with each: thousands of words of many kinds.
_PROBES: Final = (
    (
        (
            "a add anthropo arbeit arsen bok cant commun fact gener general habl hous häus "
            "inter interfer kat kitap lief log nation organ parl past port schön talo univers "
            "vend étudi"
        ),
        (
            "s es ed ing ings ly ness ation ational ator izer ogist ology al ally ic ive "
            "ement ment e er ern em en est heit keit ung isch lich ismus ique eux euse ais "
            "aise aux ance ence ité ação ções mente idad ando endo ado ido ar ir are ere ire "
            "ato uto o a i os as ene het arna erna else ssa lla ista stä ler lar da dan etje "
            "tjes heden ość ami ach ów ést ak ban nek"
        ),
    ),
    (
        "книг город красив интернациональн дела уч кућ лијеп",
        ("а и у ой ами ах ый ая ое ые ть л ла ли ет ут ость ости ейш ее ого ему ом е ама ских"),
    ),
    (
        "σπιτ ανθρωπ γραφ καλ",
        "ι ια ιων ος οι ους ω εις ει ουμε ησα ικος ικη τερος",
    ),
    (
        "लड़क किताब घर जान",
        "ा े ी ों ियाँ ें ना ता ते ती ूँगा हरू ले लाई को",
    ),
    (
        "كتاب مدرس والكتاب يكتب خانه",
        "ات ون ين ها هم ة ه ي تان های ترین",
    ),
    (
        "տուն գիրք գրող մեծ",
        "եր ներ ի ից ով ում ության ական ել ած",
    ),
    (
        "மரம் வீடு படி பூ",
        "கள் கள ங்கள் ஆல் இல் உக்கு ஐ த்தேன்",
    ),
    (
        "הױז בוך שרײַב קינד",
        "ער ן ען ט לעך קײט",
    ),
)


def stemmer(language: str) -> Stemmer.Stemmer:
    """A stemmer without its own cache, which is not thread-safe; tokens are remembered elsewhere.

    Raises:
        ConfigError: If the installed PyStemmer does not know the language.
    """
    try:
        return Stemmer.Stemmer(language, 0)
    except KeyError:
        raise ConfigError(
            f"language={language!r}: the installed PyStemmer (Snowball {Stemmer.version()}) has "
            "no such stemmer. Upgrade PyStemmer, or give 'none'."
        ) from None


@cache
def digest(language: str) -> str:
    """What identifies the stemmer of a language: equal if all probes have equal stems.

    Raises:
        ConfigError: If the installed PyStemmer does not know the language.
    """
    words = [
        one + other
        for beginnings, endings in _PROBES
        for one, other in product(beginnings.split(), ["", *endings.split()])
    ]
    stems = "\n".join(stemmer(language).stemWords(words))
    return blake2b(stems.encode(), digest_size=8).hexdigest()
