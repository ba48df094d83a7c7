"""Which embedder does a name stand for?

A store remembers its embedder as a short text, and ``--embedder`` takes the same:

- ``none``: no embedder, text search alone;
- ``local``: :class:`LocalEmbeddings`;
- ``provider:model``, such as ``openai:text-embedding-3-small``: LangChain's
  ``init_embeddings``, if ``langchain`` and the provider's package are installed;
- ``python:module.attribute``: an ``Embeddings``, or a callable without arguments that
  makes one, from an importable module.

A store may come from a stranger, and nothing in a store is executed. So of what a *store*
says only the forms are followed that import fixed, known packages; ``python:`` imports any
module, and ``huggingface:`` reads model code from any folder or repository, so these two are
followed only when the user says them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from cormorant.errors import ConfigError, MissingDependency
from cormorant.langchain.embeddings import sentence_encoder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

__all__ = ["default_spec", "resolve"]

_ACCEPTED: Final = (
    "Accepted are 'local', 'none', 'provider:model' (such as 'openai:text-embedding-3-small') "
    "and 'python:module.attribute'."
)
_REMEMBERED: Final = frozenset(
    {
        "azure_ai",
        "azure_openai",
        "bedrock",
        "cohere",
        "google_genai",
        "google_vertexai",
        "mistralai",
        "ollama",
        "openai",
    }
)
"""Providers a store's own word is enough for: they send text to a service or a local server."""


class _NoProvider(MissingDependency):
    """A package that is no extra of ours is missing; the message carries its own pip line."""

    def __init__(self, message: str) -> None:
        ImportError.__init__(self, message)
        self.extra = ""


def default_spec() -> str:
    """``local`` if the extra is installed, else ``none``."""
    return "local" if sentence_encoder.installed() else "none"


def resolve(spec: str, *, trusted: bool) -> Embeddings | None:
    """Make the embedder a specification names.

    Args:
        spec: See the module's docstring.
        trusted: True only if the user gave the specification in this call (an argument, a
            flag, their own environment); False for what a store says.

    Returns:
        The embedder; None for ``none``.

    Raises:
        ConfigError: If the specification is not understood, names nothing that works, or
            may not be followed on a store's word.
        MissingDependency: If a package is missing; carries the pip line.

    Example:
        >>> resolve("none", trusted=False) is None
        True
    """
    if not isinstance(spec, str) or not spec.strip():
        raise ConfigError(f"An embedder's specification must be a text; got {spec!r}. {_ACCEPTED}")
    spec = spec.strip()
    if spec == "none":
        return None
    if spec == "local":
        from cormorant.langchain.embeddings.local import LocalEmbeddings

        return LocalEmbeddings()
    form, colon, name = (part.strip() for part in spec.partition(":"))
    form = form.lower()
    if not (form and colon and name):
        raise ConfigError(f"The embedder {spec!r} is not known. {_ACCEPTED}")
    if not trusted and form not in _REMEMBERED:
        raise ConfigError(
            f"The store names the embedder {spec!r}, which can run code of its own, and a store's "
            f"word is not enough for that. If you trust it, say it yourself: --embedder {spec}"
        )
    return _from_python(spec, name) if form == "python" else _from_provider(spec, form)


def _from_provider(spec: str, provider: str) -> Embeddings:
    if find_spec("langchain") is None:
        raise _NoProvider(
            f"The embedder {spec!r} needs LangChain and the provider's package, which are not "
            f"installed. Install them with: pip install langchain {_package(provider)}"
        )
    try:
        made = import_module("langchain.embeddings").init_embeddings(spec)
    except ImportError as error:
        raise _NoProvider(
            f"The embedder {spec!r} cannot be loaded: {error}. "
            f"Install what it needs with: pip install langchain {_package(provider)}"
        ) from error
    except Exception as error:  # a provider's class may refuse in any way: no key, no such model
        raise ConfigError(f"The embedder {spec!r} cannot be made: {error}") from error
    return _embeddings(spec, made)


def _package(provider: str) -> str:
    """The provider's package; most are named after it, two are not."""
    known = {"azure_openai": "openai", "bedrock": "aws"}
    return "langchain-" + known.get(provider, provider).replace("_", "-")


def _from_python(spec: str, name: str) -> Embeddings:
    module_name, dot, attribute = name.rpartition(".")
    if not dot or not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(
            f"The embedder {spec!r} must name a module and an attribute, as in "
            "python:my_package.embedder."
        )
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The embedder {spec!r} cannot be imported: {error}. The module must be "
            "installed or on PYTHONPATH."
        ) from error
    from langchain_core.embeddings import Embeddings

    return _embeddings(spec, found if isinstance(found, Embeddings) else _call(spec, found))


def _call(spec: str, maker: object) -> object:
    if not callable(maker):
        raise ConfigError(
            f"The embedder {spec!r} is neither an Embeddings nor a callable that makes one; it is "
            f"{type(maker).__name__}."
        )
    return maker()


def _embeddings(spec: str, made: object) -> Embeddings:
    from langchain_core.embeddings import Embeddings

    if not isinstance(made, Embeddings):
        raise ConfigError(
            f"The embedder {spec!r} made {type(made).__name__}, which is no LangChain Embeddings."
        )
    return made
