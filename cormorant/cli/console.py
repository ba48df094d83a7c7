"""Where does output go? Data to stdout; messages and progress to stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from cormorant.width import clip, columns

__all__ = ["Console", "Progress"]

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_REDRAW_S = 0.1


class Console:
    """A command's two streams, and what the terminal behind them can do.

    Args:
        out: Takes data.
        err: Takes messages and progress.
        environ: ``NO_COLOR`` switches colour off, ``FORCE_COLOR`` on; any value counts.
        quiet: Drop notes and progress; warnings and errors stay.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self.out = out or sys.stdout or _nowhere()
        self.err = err or sys.stderr or _nowhere()
        self._environ = os.environ if environ is None else environ
        self.quiet = quiet
        self._unicode = (getattr(self.out, "encoding", None) or "utf-8").lower().startswith("utf")
        for stream in (self.out, self.err):
            # A terminal of another encoding gets escapes rather than a crash.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")

    @property
    def width(self) -> int:
        """Columns of the terminal; 100 when the output is no terminal."""
        if not self.out.isatty():
            return 100
        return max(40, shutil.get_terminal_size((100, 24)).columns)

    def print(self, text: str = "") -> None:
        """Write one line of data."""
        self.out.write(text + "\n")

    def json(self, value: Any, *, indent: int | None = 2) -> None:
        """Write one JSON value as data; on one line if ``indent`` is None."""
        self.print(
            json.dumps(value, ensure_ascii=not self._unicode, indent=indent, default=_as_json)
        )

    def note(self, text: str) -> None:
        """Say what happened; dropped when quiet."""
        if not self.quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        """Say what the user must know though the command goes on."""
        self._say(f"{self.style('warning', 'yellow', stream=self.err)}: {text}")

    def error(self, text: str) -> None:
        """Say why the command failed, or what it had to leave out."""
        self._say(f"{self.style('error', 'red', stream=self.err)}: {text}")

    def _say(self, text: str) -> None:
        self.err.write(f"cormorant: {text}\n")
        self.err.flush()

    def style(self, text: str, *names: str, stream: TextIO | None = None) -> str:
        """The text in colour, if the stream it goes to shows colour."""
        if not names or not self._colours(stream or self.out):
            return text
        return f"\033[{';'.join(_STYLES[name] for name in names)}m{text}\033[0m"

    def _colours(self, stream: TextIO) -> bool:
        if self._environ.get("NO_COLOR"):
            return False
        if self._environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and self._environ.get("TERM") != "dumb"

    def progress(self, label: str, total: int | None = None) -> Progress:
        """A counter on stderr for long work; silent unless stderr is a terminal."""
        return Progress(self, label, total)


def _nowhere() -> TextIO:
    """Stands in for a stream that the shell closed (``>&-``)."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _as_json(value: Any) -> Any:
    """Instants as ISO 8601, numpy's numbers as numbers."""
    if isinstance(value, date):
        return value.isoformat()
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} has no JSON form.")
    return item()


class Progress:
    """A line that is drawn again and again while work goes on, and then wiped."""

    def __init__(self, console: Console, label: str, total: int | None) -> None:
        self._console = console
        self._label = label
        self._total = total
        self._done = 0
        self._drawn_at = 0.0
        self._shown = console.err.isatty() and not console.quiet

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._console.err.write("\r\033[K")
            self._console.err.flush()

    def advance(self, count: int) -> None:
        """Add to what is done, and draw if the last drawing is a while ago."""
        self._done += count
        if self._shown and time.monotonic() - self._drawn_at >= _REDRAW_S:
            self._draw()

    def _draw(self) -> None:
        if not self._shown:
            return
        self._drawn_at = time.monotonic()
        of = "" if self._total is None else f" of {self._total}"
        room = shutil.get_terminal_size((100, 24)).columns - 1
        line = clip(f"{self._label} {self._done}{of}", room)
        self._console.err.write(f"\r{line}{' ' * max(0, room - columns(line))}\r{line}")
        self._console.err.flush()
