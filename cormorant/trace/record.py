"""What is written down of a span, and what is left out?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cormorant.model import Hit
    from cormorant.trace.span import Span

__all__ = ["as_records"]

_HITS: Final = 50  # of one span, from the best
_TEXT: Final = 2_000  # characters of a text, where content is asked for


def as_records(root: Span, *, content: bool) -> list[dict[str, Any]]:
    """A tree of spans as JSON values, each after its parent.

    Args:
        root: The outermost span, ended.
        content: Write questions and texts, shortened to 2,000 characters each; else ids, scores and
            numbers alone.
    """
    records = []
    for span in _walk(root):
        records.append(_record(span, root.id, content=content))
        records.extend(_stages(span, root.id))
    return records


def _walk(span: Span) -> Iterator[Span]:
    yield span
    for child in list(span.children):  # a straggler may still begin some
        yield from _walk(child)


def _record(span: Span, trace: str, *, content: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "trace": trace,
        "id": span.id,
        "parent": None if span.parent is None else span.parent.id,
        "name": span.name,
        "started_s": span.started_s,
        "seconds": span.seconds,
        "ended": span.ended,
        "attributes": _plain(span.attributes),
        "counters": dict(span.counters),
        "error": span.error,
    }
    if span.hits is not None:
        made["hits"] = [_hit(hit, content=content) for hit in span.hits[:_HITS]]
        made["found"] = len(span.hits)
    if content and span.content:
        made["content"] = _plain(span.content)
    return made


def _stages(span: Span, trace: str) -> Iterator[dict[str, Any]]:
    """A search's stages as spans inside of it, one after the other from its beginning."""
    began = span.started_s
    for number, stage in enumerate(span.stages):
        yield {
            "trace": trace,
            "id": f"{span.id}-{number}",
            "parent": span.id,
            "name": f"{span.name}.{stage.name}",
            "started_s": began,
            "seconds": stage.seconds,
            "ended": True,
            "attributes": {},
            "counters": dict(stage.counters),
            "error": None,
        }
        began += stage.seconds


def _hit(hit: Hit, *, content: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"id": hit.id, "rank": hit.rank, "score": _plain(hit.score)}
    if content:
        told |= {"text": hit.text[:_TEXT], "metadata": _plain(hit.metadata)}
    return told


def _plain(value: Any) -> Any:
    """As JSON can say it."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value[:_TEXT]
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(each) for each in value]
    return str(value)[:_TEXT]
