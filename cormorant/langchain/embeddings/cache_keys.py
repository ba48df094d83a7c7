"""Under which key is a text's vector kept in a store that others use too?"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from langchain_core.embeddings import Embeddings

from cormorant.errors import ConfigError
from cormorant.langchain.embeddings.naming import identity, model_name

__all__ = ["Algorithm", "key_encoder_of"]

Algorithm: TypeAlias = Literal["sha1", "blake2b", "sha256", "sha512"]

# langchain-classic's: a UUID of the SHA-1, in this namespace.
_SHA1_NAMESPACE: Final = uuid.UUID(int=1985)


def key_encoder_of(
    embeddings: Embeddings, namespace: str, encoder: Callable[[str], str] | Algorithm
) -> Callable[[str], str]:
    """The function from text to key.

    Args:
        embeddings: Whose identity a key begins with, where there is no namespace.
        namespace: What a key begins with.
        encoder: A hash by name, or the function itself.

    Raises:
        ConfigError: On another encoder, or a namespace beside a function.
    """
    if not isinstance(namespace, str):
        raise ConfigError(f"namespace must be a string; got a {type(namespace).__name__}.")
    if callable(encoder):
        if namespace:
            raise ConfigError(
                f"namespace={namespace!r} has no effect beside a key_encoder of your own; put it "
                "into the keys there, and leave it out here."
            )
        return encoder
    if encoder not in _HASHES:
        raise ConfigError(
            f"key_encoder must be one of {', '.join(_HASHES)}, or a callable from text to key; got "
            f"{encoder!r}."
        )
    digest = _HASHES[encoder]
    prefix = namespace or _own_namespace(embeddings)

    def encode(text: str) -> str:
        if prefix is None:
            # Not before it is used: langchain-classic makes one of any embedder.
            raise ConfigError(
                f"The model name of {identity(embeddings)} is not known, and without one vectors "
                "of two models could be mixed up. Give one: namespace='name-of-the-model'."
            )
        # Lone surrogates are the embedder's to refuse; here any two texts only need two keys.
        return prefix + digest(text.encode("utf-8", "surrogatepass"))

    return encode


def _own_namespace(embeddings: Any) -> str | None:
    """Letters and digits that stand for the embedder; None if its model is not known."""
    if model_name(embeddings) is None:
        return None
    return hashlib.sha256(identity(embeddings).encode()).hexdigest()[:16] + "-"


def _sha1(data: bytes) -> str:
    digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    return str(uuid.uuid5(_SHA1_NAMESPACE, digest))


_HASHES: Final[dict[str, Callable[[bytes], str]]] = {
    "sha1": _sha1,
    "blake2b": lambda data: hashlib.blake2b(data).hexdigest(),
    "sha256": lambda data: hashlib.sha256(data).hexdigest(),
    "sha512": lambda data: hashlib.sha512(data).hexdigest(),
}
