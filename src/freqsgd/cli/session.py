"""What commands that train have in common: loading and watching before, results after."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.threads import use_threads
from freqsgd.data.dataset import Dataset
from freqsgd.data.options import DataOptions, load
from freqsgd.report import write_report
from freqsgd.training.compare import RESULTS, write_results
from freqsgd.training.fit import InterruptedFitError

__all__ = ["REPORT", "command_line", "session", "write_all"]

REPORT = "report.html"


@contextmanager
def session(
    options: DataOptions, threads: int | None, out: Path | None
) -> Iterator[tuple[Dataset, Watcher]]:
    """Load the data and compile the kernels; after Ctrl-C say how to go on."""
    use_threads(threads)
    with Watcher() as watcher:
        data = load(options, progress=watcher.loading)
        watcher.compiling()
        try:
            yield data, watcher
        except InterruptedFitError:
            resumable = "the same command with --resume goes on from here"
            advice = "with --out DIR a run can be resumed" if out is None else resumable
            console.print(f"\ninterrupted; {advice}")
            raise typer.Exit(130) from None


def write_all(results: dict[str, Any], out: Path) -> Path:
    """Write ``results.json`` and the report; return where the report is."""
    results["command"] = command_line()
    write_results(results, out / RESULTS)
    write_report(results, out / REPORT)
    return out / REPORT


def command_line() -> str:
    """The command that was given."""
    return shlex.join(["freqsgd", *sys.argv[1:]])
