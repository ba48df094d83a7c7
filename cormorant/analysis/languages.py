"""Which languages have a stemmer, and what do their users call them?"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from cormorant.errors import ConfigError

__all__ = ["LANGUAGES", "resolve"]

_CODES: Final = MappingProxyType(
    {
        "ar": "arabic",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "eo": "esperanto",
        "es": "spanish",
        "et": "estonian",
        "eu": "basque",
        "fa": "persian",
        "fi": "finnish",
        "fr": "french",
        "ga": "irish",
        "hi": "hindi",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "it": "italian",
        "lt": "lithuanian",
        "ne": "nepali",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sr": "serbian",
        "st": "sesotho",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
        "yi": "yiddish",
    }
)

LANGUAGES: Final = (*sorted(_CODES.values()), "none")
"""What ``language=`` takes; ISO 639-1 codes are taken too. ``none`` neither stems nor drops."""

_UNSPACED: Final = frozenset(
    {"zh", "chinese", "ja", "japanese", "ko", "korean", "th", "thai", "km", "khmer", "lo", "my"}
)


def resolve(language: str) -> str:
    """The name in :data:`LANGUAGES` for a language's name or code.

    Raises:
        ConfigError: If there is no stemmer for it.
    """
    if isinstance(language, str):
        name = language.strip().lower()
        name = _CODES.get(name, name)
        if name in LANGUAGES:
            return name
        if name in _UNSPACED:
            raise ConfigError(
                f"language={language!r} has no stemmer and needs none: Chinese, Japanese, Korean "
                "and Thai text is handled whatever the language. It names the language of the "
                "words between spaces; leave it out for English, or give 'none'."
            )
    raise ConfigError(
        f"language must be one of {', '.join(LANGUAGES)}, or an ISO 639-1 code of one; "
        f"got {language!r}."
    )
