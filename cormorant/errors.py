"""What can go wrong, as a tree.

    CormorantError
    ├── UsageError (ValueError)      the call was wrong; nothing was changed
    │   ├── RecordError              a record, its id, text or metadata
    │   ├── FilterError              a filter: operator, field or operand
    │   ├── QueryError               a query: mode, k, weights, thresholds
    │   ├── DimensionError           a vector of the wrong shape or with bad values
    │   └── ConfigError              settings that do not fit the store or each other
    ├── NotFound (LookupError)       what was asked for by id or path is not there
    ├── StoreError                   the store itself
    │   ├── StoreLocked              another writer holds it (``pid``)
    │   ├── StoreClosed              used after ``close()`` or after a fork
    │   ├── FormatError              not a store, or a newer format than this release reads
    │   └── CorruptionError          damage was found (``path``)
    ├── EmbeddingError               the embedder failed (``model``, ``retryable``)
    ├── EmbeddingMismatch            another embedder than the one the store was built with
    ├── ReplyError                   a model answered something that cannot be used
    │   ├── RerankError              no usable scores, order or verdicts
    │   └── RewriteError             nothing that can be searched for
    ├── ScopeError                   a scope is missing, or a call would leave it
    ├── DeadlineExceeded (TimeoutError)   a stage took longer than it was given (``stage``)
    ├── LoadError                    a file holds no text that can be read (``path``)
    ├── EvalFileError                a judgement or run file (``path``, ``line``)
    └── MissingDependency (ImportError)   an extra is not installed; prints the pip line

A message says what was wrong, what came, what is accepted and what to do next.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "CormorantError",
    "CorruptionError",
    "DeadlineExceeded",
    "DimensionError",
    "EmbeddingError",
    "EmbeddingMismatch",
    "EvalFileError",
    "FilterError",
    "FormatError",
    "LoadError",
    "MissingDependency",
    "NotFound",
    "QueryError",
    "RecordError",
    "ReplyError",
    "RerankError",
    "RewriteError",
    "ScopeError",
    "StoreClosed",
    "StoreError",
    "StoreLocked",
    "UsageError",
]


class CormorantError(Exception):
    """Anything this package raises on purpose."""


class UsageError(CormorantError, ValueError):
    """The call was wrong; nothing was changed."""


class RecordError(UsageError):
    """A record cannot be stored: its id, text or metadata is at fault."""


class FilterError(UsageError):
    """A filter does not parse: unknown operator, wrong operand type, wrong shape."""


class QueryError(UsageError):
    """A query cannot be run as asked."""


class DimensionError(UsageError):
    """A vector has the wrong shape, or values that are not finite."""


class ConfigError(UsageError):
    """Settings do not fit the store, or each other."""


class NotFound(CormorantError, LookupError):
    """What was asked for by id or path is not there."""


class StoreError(CormorantError):
    """The store could not do what was asked; what was acknowledged before is intact."""


class StoreLocked(StoreError):
    """Another writer holds the store.

    Attributes:
        pid: Process id of the holder, or None if it could not be read.
    """

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreClosed(StoreError):
    """The store was closed, or belongs to the process this one was forked from."""


class FormatError(StoreError):
    """Not a Cormorant store, or one of a format this release does not read."""


class CorruptionError(StoreError):
    """Damage was found.

    Attributes:
        path: The damaged file, or None if the damage is in memory or in a row.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class EmbeddingError(CormorantError):
    """The embedder failed, or returned something that is not one vector per text.

    Attributes:
        model: Name of the embedder.
        retryable: True if the same call may succeed later.
    """

    def __init__(self, message: str, *, model: str = "", retryable: bool = False) -> None:
        super().__init__(message)
        self.model = model
        self.retryable = retryable


class EmbeddingMismatch(CormorantError):
    """The embedder is not the one the store's vectors were made with."""


class ReplyError(CormorantError):
    """A model answered something that cannot be used; the message quotes it."""


class RerankError(ReplyError):
    """A model returned no usable scores, order or verdicts for the documents it was given."""


class RewriteError(ReplyError):
    """A model made nothing of a question that can be searched for."""


class ScopeError(CormorantError):
    """A scope is required and missing, or the call would leave it."""


class DeadlineExceeded(CormorantError, TimeoutError):
    """A stage took longer than it was given, or was not begun because no time was left.

    Attributes:
        stage: What was late.
        seconds: What it was given; 0 if it was not begun.
    """

    def __init__(self, message: str, *, stage: str = "", seconds: float = 0.0) -> None:
        super().__init__(message)
        self.stage = stage
        self.seconds = seconds


class LoadError(CormorantError):
    """A file holds no text that can be read: broken, encrypted, scanned, of another format.

    Attributes:
        path: The file.
    """

    def __init__(self, message: str, *, path: object = "") -> None:
        super().__init__(message)
        self.path = str(path)


class EvalFileError(CormorantError):
    """A judgement or run file cannot be read.

    Attributes:
        path: The file.
        line: Line number, from 1.
    """

    def __init__(self, message: str, *, path: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class MissingDependency(CormorantError, ImportError):
    """A feature needs an extra that is not installed; the message carries the pip line."""

    def __init__(self, feature: str, *, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency that is not installed. "
            f"Install it with: pip install 'cormorant[{extra}]'"
        )
        self.extra = extra
