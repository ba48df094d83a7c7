"""What did the user type? The command line, one verb a file."""

from __future__ import annotations

from cormorant.cli.app import main

__all__ = ["main"]
