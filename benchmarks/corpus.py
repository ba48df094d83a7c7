"""Where do the benchmarks' passages and vectors come from?

``CORMORANT_BENCH`` names a folder with ``passages.jsonl.gz`` and ``queries.jsonl.gz``
(one object a line with ``text``, and for passages ``tenant``, ``year``, ``doctype``).
Without it the passages are the demo's, cut into sentences and recombined; the figures
then say so, since a small vocabulary flatters a text index.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["passages", "queries", "source", "vectors"]


def source() -> str:
    """Which corpus the figures are about."""
    return "benchmark corpus" if os.environ.get("CORMORANT_BENCH") else "recombined demo corpus"


def passages(count: int) -> list[dict[str, object]]:
    """``count`` passages with metadata."""
    folder = os.environ.get("CORMORANT_BENCH")
    if folder:
        return _read(Path(folder) / "passages.jsonl.gz", count)
    rng = random.Random(7)
    pieces = _sentences()
    return [
        {
            "id": f"p{i}",
            "text": " ".join(rng.sample(pieces, 2)),
            "tenant": f"t{int(rng.paretovariate(1.0)) % 1000}",
            "year": rng.randint(2000, 2026),
            "doctype": rng.choice(["a", "b", "c", "d", "e"]),
        }
        for i in range(count)
    ]


def queries(count: int) -> list[str]:
    """``count`` questions that are not among the passages."""
    folder = os.environ.get("CORMORANT_BENCH")
    if folder:
        return [str(q["text"]) for q in _read(Path(folder) / "queries.jsonl.gz", count)]
    rng = random.Random(11)
    words = [w for s in _sentences() for w in s.split() if len(w) > 3]
    return [" ".join(rng.sample(words, 6)) for _ in range(count)]


def vectors(count: int, dim: int, *, seed: int = 7) -> NDArray[np.float32]:
    """Random clustered unit vectors: float32, shape (count, dim)."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((64, dim), dtype=np.float32)
    made = centres[rng.integers(0, 64, count)]
    made += rng.standard_normal((count, dim), dtype=np.float32) * 0.7
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def _read(path: Path, count: int) -> list[dict[str, object]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def _sentences() -> list[str]:
    from cormorant import data

    text = " ".join(data.documents("en").values())
    return [s for s in re.split(r"(?<=[.!?])\s+", text) if len(s) > 20]
