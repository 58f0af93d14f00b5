"""What commands that train have in common."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.threads import use_threads
from freqsgd.errors import InterruptedFitError
from freqsgd.files import check_apart
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

if TYPE_CHECKING:
    from freqsgd.optimizers import Rule
    from freqsgd.tables.dataset import Dataset
    from freqsgd.tables.stream import Stream
    from freqsgd.words.corpus import Corpus

__all__ = ["REPORT", "any_session", "check_inputs", "command_line", "session", "stream_session"]

REPORT = "report.html"


@contextmanager
def session(
    options: DataOptions, threads: int | None, out: Path | None
) -> Iterator[tuple[Dataset, Watcher]]:
    """Load samples and compile the kernels; after Ctrl-C say how to go on."""
    check_inputs(options, out)
    with _watching(threads, out) as watcher:
        data = load(options, progress=watcher.loading)
        watcher.compiling()
        _compile(fades=False)
        yield data, watcher


@contextmanager
def any_session(
    options: DataOptions | TextOptions, threads: int | None, out: Path | None
) -> Iterator[tuple[Dataset | Corpus, Watcher]]:
    """The same for samples or text, whose kernels each training compiles as it needs them."""
    if isinstance(options, DataOptions):
        with session(options, threads, out) as made:
            yield made
    else:
        check_inputs(options, out)
        with _watching(threads, out) as watcher:
            corpus = load_text(options, progress=watcher.loading)
            watcher.words = corpus.train.raw_words
            watcher.compiling()
            yield corpus, watcher


@contextmanager
def stream_session(
    options: StreamOptions, rules: Iterable[Rule], threads: int | None, out: Path | None
) -> Iterator[tuple[Stream, Watcher]]:
    """The same for a stream, of which only the names and columns of its files are read yet."""
    check_inputs(options, out)
    with _watching(threads, out) as watcher:
        stream = open_stream(options)
        watcher.compiling()
        for rule in rules:
            _compile(fades=rule.halflife is not None)
        yield stream, watcher


def check_inputs(options: DataOptions | TextOptions | StreamOptions, out: Path | None) -> None:
    """Refuse data in the folder of the results that is called like one of them."""
    names = ("path", "validation_path", "test_path")
    given = (getattr(options, name, None) for name in names)
    if out is not None:
        from freqsgd.runs.checkpoint import MODEL
        from freqsgd.runs.documents import RESULTS
        from freqsgd.tables.encoder import DESCRIPTION, TOKENS

        written = (MODEL, DESCRIPTION, TOKENS, RESULTS, REPORT)
        check_apart(out, written, [Path(each) for each in given if each])


@contextmanager
def _watching(threads: int | None, out: Path | None) -> Iterator[Watcher]:
    """Show progress; say how to go on after Ctrl-C."""
    use_threads(threads)
    with Watcher() as watcher:
        try:
            yield watcher
        except InterruptedFitError:
            resumable = "the same command with --resume goes on from here"
            advice = "with --out DIR a run can be resumed" if out is None else resumable
            console.print(f"\ninterrupted; {advice}")
            raise typer.Exit(130) from None


def _compile(*, fades: bool) -> None:
    """Compile the kernel of a step, with counts that fade or not."""
    import numpy as np

    from freqsgd.kernels.fm import step_kernel

    step_kernel(np.float64 if fades else np.int32)


def command_line() -> str:
    """The command that was given, as it begins a run: a resumed one has the same results."""
    start: list[str] = []
    if "LOCAL_WORLD_SIZE" in os.environ:  # of torchrun
        start = ["torchrun", "--nproc-per-node", os.environ["LOCAL_WORLD_SIZE"], "-m"]
        if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
            start[1:1] = ["--nnodes", os.environ["GROUP_WORLD_SIZE"]]
    return shlex.join([*start, "freqsgd", *(part for part in sys.argv[1:] if part != "--resume")])
