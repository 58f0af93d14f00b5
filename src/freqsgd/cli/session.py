"""What commands that train have in common."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, overload

import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.threads import use_threads
from freqsgd.data.corpus import Corpus
from freqsgd.data.dataset import Dataset
from freqsgd.data.options import DataOptions, load
from freqsgd.data.text_options import TextOptions, load_text
from freqsgd.training.fit import InterruptedFitError

__all__ = ["REPORT", "command_line", "session"]

REPORT = "report.html"


@overload
def session(
    options: DataOptions, threads: int | None, out: Path | None
) -> AbstractContextManager[tuple[Dataset, Watcher]]: ...
@overload
def session(
    options: DataOptions | TextOptions, threads: int | None, out: Path | None
) -> AbstractContextManager[tuple[Dataset | Corpus, Watcher]]: ...


@contextmanager
def session(
    options: DataOptions | TextOptions, threads: int | None, out: Path | None
) -> Iterator[tuple[Any, Watcher]]:
    """Load the data and compile the kernels; after Ctrl-C say how to go on."""
    use_threads(threads)
    with Watcher() as watcher:
        data: Dataset | Corpus
        if isinstance(options, TextOptions):
            data = load_text(options, progress=watcher.loading)
            watcher.words = data.train.raw_words
        else:
            data = load(options, progress=watcher.loading)
            watcher.compiling()
        try:
            yield data, watcher
        except InterruptedFitError:
            resumable = "the same command with --resume goes on from here"
            advice = "with --out DIR a run can be resumed" if out is None else resumable
            console.print(f"\ninterrupted; {advice}")
            raise typer.Exit(130) from None


def command_line() -> str:
    """The command that was given."""
    return shlex.join(["freqsgd", *sys.argv[1:]])
