"""Where a command writes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

__all__ = ["named_files", "target"]

_UsageError: Any = typer.BadParameter.__base__


def target(text: str, **more: Any) -> Any:
    """Make the option ``--out``, which names a file or folder to write."""
    return typer.Option("--out", help=text, parser=_named, metavar="PATH", **more)


def _named(text: str) -> Path:
    if text == "":  # which Path would take for the current folder
        raise _UsageError("--out is empty: name a file or folder")
    return Path(text)


def named_files(context: typer.Context) -> list[Path]:
    """List what other options of a command name, so that --out is none of it."""
    named = (value for name, value in context.params.items() if name != "out")
    return [Path(value) for value in named if isinstance(value, str | Path) and str(value)]
