"""The command line: one file per command, no logic of its own."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run ``freqsgd``; bad input ends it with one line and exit code 2."""
    try:
        from freqsgd.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name in ("typer", "rich", "polars", "plotly", "safetensors", "click"):
            print(
                f"freqsgd: the command line needs {missing.name}: pip install 'freqsgd[cli]'",
                file=sys.stderr,
            )
            sys.exit(2)
        raise
