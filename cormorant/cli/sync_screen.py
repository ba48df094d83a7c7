"""What does somebody see who syncs: progress, a report, a bill?"""

from __future__ import annotations

import shutil
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from cormorant import defaults
from cormorant.cli.info import size_text
from cormorant.width import clip, columns, plain, table

if TYPE_CHECKING:
    from cormorant.cli.console import Console
    from cormorant.ingest import PriceTable, Progress, SyncReport

__all__ = ["Line", "fields", "print_bill", "print_report"]

_REDRAW_S: Final = 0.1
_SHOWN: Final = 20
_QUESTIONS: Final = 1000
_MINUTE: Final = 60
_HOUR: Final = 3600


class Line:
    """One line on stderr, drawn again and again; silent unless that is a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = console.err.isatty() and not console.quiet
        self._drawn_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wipe()

    def wipe(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self._console.err.write("\r\033[K")
            self._console.err.flush()

    def draw(self, progress: Progress) -> None:
        """Show how far it is, if the last drawing is a while ago."""
        if not self._shown or time.monotonic() - self._drawn_at < _REDRAW_S:
            return
        self._drawn_at = time.monotonic()
        room = shutil.get_terminal_size((100, 24)).columns - 1
        line = clip(_progress(progress), room)
        self._console.err.write(f"\r{line}{' ' * max(0, room - columns(line))}\r{line}")
        self._console.err.flush()


def _progress(progress: Progress) -> str:
    parts = [f"{progress.sources:,} of {progress.of_sources:,} files"]
    if progress.total_bytes:
        done = progress.done_bytes / progress.total_bytes
        parts.append(f"{done:.0%} of {size_text(progress.total_bytes)}")
    parts.append(f"{progress.embedded:,} embedded")
    if progress.left_s is not None:
        parts.append(f"{duration_text(progress.left_s)} left")
    return ", ".join(parts)


def duration_text(seconds: float) -> str:
    """A time as people say it.

    Example:
        >>> [duration_text(s) for s in (4.2, 95, 7300)]
        ['4 s', '1 min 35 s', '2 h 1 min']
    """
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def print_report(report: SyncReport, console: Console) -> None:
    """What was done, in a line or two; what failed, on stderr."""
    from cormorant.ingest.pricing import usd_text

    for failed in report.failed[:_SHOWN]:
        console.error(plain(f"{failed.source}: {failed.error}"))
    if len(report.failed) > _SHOWN:
        more = len(report.failed) - _SHOWN
        console.error(f"… and {more} more like these; --json lists them all.")
    for note in report.notes:
        console.note(plain(note))
    counts = [
        f"{count:,} {name}"
        for name, count in (
            ("added", report.added),
            ("updated", report.updated),
            ("moved", report.moved),
            ("deleted", report.deleted),
            ("unchanged", report.skipped),
            ("failed", len(report.failed)),
        )
        if count
    ]
    would = "would be: " if report.dry_run else ""
    console.print(f"files {would}{', '.join(counts) or 'none'} ({report.seconds:.1f} s)")
    if report.chunks_added is not None:
        console.print(
            f"chunks {report.chunks_added:,} added, {report.chunks_updated:,} updated, "
            f"{report.chunks_deleted:,} deleted"
        )
    if report.embedded:
        cost = "no price known" if report.usd is None else usd_text(report.usd)
        verb = "to embed" if report.dry_run else "embedded"
        console.print(
            f"{verb} {report.embedded:,} chunks, {report.tokens:,} tokens ({report.tokens_by}), "
            f"{cost}"
        )


def print_bill(
    report: SyncReport, prices: PriceTable, spec: str | None, held: int, console: Console
) -> None:
    """What it costs with each model of the table: once, and with every question."""
    from cormorant.ingest.pricing import usd_text

    if not report.embedded:
        return
    chosen = prices.find(spec)
    rows = [("", "model", "build, once", f"{_QUESTIONS:,} questions", "vectors")]
    rows += [
        (
            "*" if price == chosen else "",
            plain(f"{price.provider} {price.model}"),
            usd_text(price.build_usd(report.tokens)),
            usd_text(price.query_usd() * _QUESTIONS),
            size_text(price.vector_bytes(report.embedded + held)),
        )
        for price in prices.rows
    ]
    console.print()
    for line in table(rows, right=(2, 3, 4)):
        console.print(clip(line, console.width))
    dates = ", ".join(dict.fromkeys(price.as_of for price in prices.rows))
    console.note(
        f"prices as of {plain(dates)}; they change. A question is taken to have "
        f"{defaults.QUERY_TOKENS} tokens. What is local costs computing time only."
    )


def fields(report: SyncReport, prices: PriceTable, spec: str | None, held: int) -> dict[str, Any]:
    """The report as ``--json`` prints it."""
    chunks = held + (report.embedded if report.dry_run else 0)
    return {
        **report.to_json(),
        "chunks": held,
        "embedder": spec,
        "prices": [
            {
                "provider": price.provider,
                "model": price.model,
                "as_of": price.as_of,
                "build_usd": price.build_usd(report.tokens),
                "query_usd": price.query_usd(),
                "vector_bytes": price.vector_bytes(chunks),
            }
            for price in prices.rows
        ],
    }
