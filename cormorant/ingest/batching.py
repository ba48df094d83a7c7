"""Which texts go to the embedder in one request?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.ranges import check_whole

__all__ = ["batches"]


def batches(
    tokens: Sequence[int],
    *,
    max_tokens: int = defaults.EMBEDDING_BATCH_TOKENS,
    max_texts: int = defaults.EMBEDDING_BATCH_TEXTS,
) -> Iterator[slice]:
    """Slices of consecutive texts, each within both limits.

    Args:
        tokens: Of each text, in order.
        max_tokens: Of all texts of a batch together; a text with more is a batch of its own.
        max_texts: Texts of a batch.

    Raises:
        ConfigError: If a limit is below 1.

    Example:
        >>> [(b.start, b.stop) for b in batches([4, 4, 4, 90, 1], max_tokens=9, max_texts=10)]
        [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    check_whole("max_tokens", max_tokens, error=ConfigError)
    check_whole("max_texts", max_texts, error=ConfigError)
    first, total = 0, 0
    for at, count in enumerate(tokens):
        if at > first and (total + count > max_tokens or at - first >= max_texts):
            yield slice(first, at)
            first, total = at, 0
        total += count
    if first < len(tokens):
        yield slice(first, len(tokens))
