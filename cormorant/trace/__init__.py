"""What happened? Every retrieval as a tree of spans, handed to whoever listens.

Off until someone listens. ``span.py`` is what the rest of the package calls; ``record.py`` says
what is written down, ``sinks.py`` and ``file.py`` where.
"""

from __future__ import annotations

from cormorant.trace.file import TraceFile, read_trace, read_traces
from cormorant.trace.sinks import to_function, to_json_lines, to_log
from cormorant.trace.span import Silence, Sink, Span, listen, span

__all__ = [
    "Silence",
    "Sink",
    "Span",
    "TraceFile",
    "listen",
    "read_trace",
    "read_traces",
    "span",
    "to_function",
    "to_json_lines",
    "to_log",
]
