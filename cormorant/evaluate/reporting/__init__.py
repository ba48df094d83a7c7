"""How are judged runs shown? Tables as text, Markdown and LaTeX; plots."""

from __future__ import annotations

from cormorant.evaluate.reporting.plots import interval_plot, scatter_plot
from cormorant.evaluate.reporting.report import Report, report
from cormorant.evaluate.reporting.terminal import comparison_lines

__all__ = ["Report", "comparison_lines", "interval_plot", "report", "scatter_plot"]
