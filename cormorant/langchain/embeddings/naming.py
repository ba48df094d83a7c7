"""Which model is this?

LangChain's ``Embeddings`` has no name. Providers keep theirs under different attributes,
and more than the name decides the vectors: the size asked for, the deployment, the
server. All of it goes into :func:`identity`, and none of it is ever a key or a password.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["identity", "model_name", "uncached"]

# In order of preference; what langchain-core's own and the partner packages use.
_NAMES: Final = (
    "model_name",
    "model",
    "model_id",
    "deployment_name",
    "deployment",
    "repo_id",
    "endpoint_name",
    "model_path",
)
# What else changes the vectors.
_SETTINGS: Final = (
    "revision",
    "dimensions",
    "dimension",
    "output_dimensionality",
    "output_dimension",
    "size",
    "task_type",
    "embedding_types",
    "truncate",
    "normalize",
    "normalize_embeddings",
    "query_instruction",
    "embed_instruction",
    "encode_kwargs",
    "query_encode_kwargs",
)
_SERVERS: Final = ("base_url", "openai_api_base", "azure_endpoint", "endpoint_url", "url")
_LANGCHAIN_CACHE: Final = "underlying_embeddings"  # where CacheBackedEmbeddings keeps its own
_SECRET: Final = re.compile(r"key|token|secret|password|auth|credential", re.IGNORECASE)


def model_name(embeddings: object) -> str | None:
    """What does the embedder call its model?

    Args:
        embeddings: Any LangChain ``Embeddings``.

    Returns:
        The name, such as ``text-embedding-3-small``; None if the embedder keeps none under
        an attribute that is known to hold one. Nothing is guessed from the class.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> print(model_name(DeterministicFakeEmbedding(size=6)))
        None
    """
    inner = _attribute(embeddings, _LANGCHAIN_CACHE)
    if inner is not None:
        return model_name(inner)
    for attribute in _NAMES:
        value = _attribute(embeddings, attribute)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def identity(embeddings: object) -> str:
    """A stable name of the embedder: class, model and what else changes its vectors.

    The same in every process; no memory addresses, no secrets. Wrappers speak for
    themselves through an ``embedding_identity`` attribute.

    Args:
        embeddings: Any LangChain ``Embeddings``.

    Returns:
        Such as ``langchain_openai.OpenAIEmbeddings:text-embedding-3-small[dimensions=256]``.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> identity(DeterministicFakeEmbedding(size=6))
        'langchain_core.DeterministicFakeEmbedding[size=6]'
    """
    own = _attribute(embeddings, "embedding_identity")
    if isinstance(own, str) and own:
        return own
    inner = _attribute(embeddings, _LANGCHAIN_CACHE)
    if inner is not None:
        return identity(inner)
    kind = type(embeddings)
    package = kind.__module__.partition(".")[0]
    # A class defined in a script belongs to `__main__` when run and to the file when imported.
    title = kind.__qualname__ if package == "__main__" else f"{package}.{kind.__qualname__}"
    name = model_name(embeddings)
    settings = {}
    for attribute in (*_NAMES, *_SETTINGS, *_SERVERS):
        said = _say(attribute, _attribute(embeddings, attribute))
        if said is not None and said != name:
            settings[attribute] = said
    listed = ",".join(f"{key}={value}" for key, value in settings.items())
    return title + (f":{name}" if name else "") + (f"[{listed}]" if listed else "")


def uncached(embeddings: Any) -> Any:
    """The same embedder without the caches around it.

    What a cache remembers says nothing about the model that answers today.

    Args:
        embeddings: Any LangChain ``Embeddings``.

    Returns:
        An ``Embeddings`` that asks the model for every text.
    """
    inner = _attribute(embeddings, _LANGCHAIN_CACHE)
    if inner is not None:
        return uncached(inner)
    own = _attribute(embeddings, "uncached")
    return embeddings if own is None or callable(own) else own


def _attribute(embeddings: object, attribute: str) -> Any:
    try:
        return getattr(embeddings, attribute, None)
    except Exception:  # noqa: BLE001 - a provider's property may fail in any way; then it names nothing
        return None


def _say(attribute: str, value: Any) -> str | None:
    """A setting as text; None for 'not set' and for what is no setting (a client, a callable)."""
    if isinstance(value, str):
        text = value.strip()
        return (_server(text) if attribute in _SERVERS else text) or None
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (Mapping, list, tuple)) and value:
        try:
            return json.dumps(
                _public(value), sort_keys=True, ensure_ascii=False, separators=(",", ":")
            )
        except (TypeError, ValueError):
            return None
    return None


def _public(value: Any) -> Any:
    """The same without anything that is named like a secret."""
    if isinstance(value, Mapping):
        return {
            str(key): _public(each) for key, each in value.items() if not _SECRET.search(str(key))
        }
    if isinstance(value, (list, tuple)):
        return [_public(each) for each in value]
    return value


def _server(url: str) -> str:
    """Host, port and path: user names, passwords and query strings may be secret."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
    except ValueError:  # not a URL, but still something that tells two servers apart
        return "#" + hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
