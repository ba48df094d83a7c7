"""How are judged runs shown? Tables as text, Markdown and LaTeX; plots."""

from __future__ import annotations

from cormorant.evaluate.report.plots import interval_plot, scatter_plot
from cormorant.evaluate.report.report import Report, report
from cormorant.evaluate.report.terminal import comparison_lines

__all__ = ["Report", "comparison_lines", "interval_plot", "report", "scatter_plot"]
