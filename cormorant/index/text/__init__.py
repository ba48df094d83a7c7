"""How well does a record's text match? BM25 over postings of our own.

:class:`TextIndex` is immutable and exact: document lengths are not rounded, and document
frequencies and the average length count live records alone. ``docs/text.md`` describes it.
"""

from __future__ import annotations

from cormorant.index.text.index import TextIndex
from cormorant.index.text.kernels import KERNELS, kernel, use_kernel
from cormorant.index.text.levels import Merge, Merged

__all__ = ["KERNELS", "Merge", "Merged", "TextIndex", "kernel", "use_kernel"]
