"""How do two systems, or several, look as a picture?

Needs matplotlib (extra ``plots``), whose global state is neither read nor changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cormorant.errors import MissingDependency, UsageError
from cormorant.evaluate.comparing.comparison import Comparison
from cormorant.width import clip, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["interval_plot", "scatter_plot"]

_FORMATS: Final = (".png", ".svg")
_BETTER, _WORSE, _SAME = "#1b7837", "#b2182b", "#777777"
_CHINESE: Final = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "SimHei",
    "Droid Sans Fallback",
)


def scatter_plot(comparison: Comparison, path: str | Path, *, label: int = 5) -> Path:
    """Draw each query as a point: the baseline's value across, the system's upwards.

    Args:
        comparison: What to draw; points above the diagonal are queries the system is higher at.
        path: A file to write, ending in ``.png`` or ``.svg``.
        label: How many of the queries that moved most are named.

    Returns:
        The path.

    Raises:
        MissingDependency: Without matplotlib.
        UsageError: On another ending.
    """
    figure, target = _figure(path, (6.0, 6.0))
    axes = figure.subplots()
    sign = 1 if comparison.higher_is_better else -1
    gains = sign * comparison.differences
    axes.plot((0, 1), (0, 1), color=_SAME, linewidth=0.8, zorder=1)
    for name, chosen, colour in (
        ("better", gains > 0, _BETTER),
        ("equal", gains == 0, _SAME),
        ("worse", gains < 0, _WORSE),
    ):
        axes.scatter(
            comparison.baseline[chosen],
            comparison.system[chosen],
            s=18,
            alpha=0.6,
            linewidths=0,
            color=colour,
            label=f"{name} ({int(chosen.sum())})",
            zorder=2,
        )
    fonts = _fonts()
    at: dict[tuple[float, float], list[str]] = {}
    for moved in comparison.moved(label):
        at.setdefault((moved.baseline, moved.system), []).append(moved.query)
    for point, queries in at.items():
        axes.annotate(
            _text(", ".join(queries)),
            point,
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8,
            fontfamily=fonts,
        )
    axes.set_xlabel(_text(comparison.baseline_name), fontfamily=fonts)
    axes.set_ylabel(_text(comparison.system_name), fontfamily=fonts)
    axes.set_title(f"{comparison.metric}, {len(comparison.queries)} queries")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return _saved(figure, target)


def interval_plot(comparisons: Sequence[Comparison], path: str | Path) -> Path:
    """Draw each comparison's mean difference with its interval, one a row.

    Args:
        comparisons: Against one baseline by one metric, as ``compare_all`` returns them.
        path: A file to write, ending in ``.png`` or ``.svg``.

    Returns:
        The path.

    Raises:
        MissingDependency: Without matplotlib.
        UsageError: On another ending, if there is nothing to draw, or on comparisons with
            several baselines or metrics.
    """
    if len({(each.baseline_name, each.metric, each.confidence) for each in comparisons}) != 1:
        raise UsageError(
            "An interval plot shows comparisons with one baseline by one metric at one "
            f"confidence; got {len(comparisons)} comparisons that are not such."
        )
    figure, target = _figure(path, (7.0, 1.2 + 0.4 * len(comparisons)))
    axes = figure.subplots()
    fonts = _fonts()
    axes.axvline(0, color=_SAME, linewidth=0.8)
    colours = {"better": _BETTER, "worse": _WORSE}
    for row, each in enumerate(comparisons):
        colour = colours.get(each.verdict, _SAME)
        axes.plot(each.interval, (row, row), color=colour, linewidth=2)
        axes.plot(each.difference, row, marker="o", color=colour)
    axes.set_yticks(
        range(len(comparisons)), [_text(c.system_name) for c in comparisons], fontfamily=fonts
    )
    axes.set_ylim(len(comparisons) - 0.5, -0.5)
    first = comparisons[0]
    axes.set_xlabel(
        f"{first.metric} minus that of {_text(first.baseline_name)}, "
        f"{first.confidence:.0%} interval",
        fontfamily=fonts,
    )
    return _saved(figure, target)


def _figure(path: str | Path, inches: tuple[float, float]) -> tuple[Figure, Path]:
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise UsageError(
            f"A plot is written as {' or '.join(_FORMATS)}; got {str(target)!r}. "
            f"Try {target.with_suffix('.svg').name or 'plot.svg'!r}."
        )
    try:
        drawing: Any = import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingDependency("Plotting", extra="plots") from error
    figure: Figure = drawing.Figure(figsize=inches, layout="constrained")
    return figure, target


def _saved(figure: Figure, target: Path) -> Path:
    kind = target.suffix.lower().removeprefix(".")
    # Without the date, so that a plot drawn again differs in nothing but what it shows.
    figure.savefig(target, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return target


def _fonts() -> list[str]:
    """Matplotlib's own font, then those installed that have Chinese characters."""
    manager: Any = import_module("matplotlib.font_manager")
    installed = {font.name for font in manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _CHINESE if name in installed)]


def _text(name: str) -> str:
    """A name as it is: matplotlib would read formulas between dollar signs."""
    return clip(plain(name), 40).replace("$", r"\$")
