"""What commands that train have in common."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.files import check_apart, make_folder, read_file, read_json, write_json
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

if TYPE_CHECKING:
    from freqsgd.optimizers import Rule
    from freqsgd.tables.dataset import Dataset
    from freqsgd.tables.stream import Stream
    from freqsgd.words.corpus import Corpus

__all__ = [
    "REPORT",
    "any_session",
    "check_inputs",
    "command_line",
    "named_files",
    "present",
    "session",
    "stream_session",
    "target",
    "use_threads",
]

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
        from freqsgd.tables.files import named_paths

        written = (MODEL, DESCRIPTION, TOKENS, RESULTS, REPORT)
        check_apart(out, written, [path for each in given if each for path in named_paths(each)])


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


MOST = 1024  # far more than help; tens of thousands exhaust the system


def use_threads(threads: int | None) -> None:
    """Use so many; None leaves it to torch."""
    if threads is not None:
        if threads < 1:
            raise DataError(f"--threads must be at least 1, got {threads}")
        if threads > MOST:
            raise DataError(f"--threads must be at most {MOST:,}, got {threads:,}")
        import torch  # which commands that take no --threads do without

        torch.set_num_threads(threads)


_Document = TypeVar("_Document", bound=msgspec.Struct)


def present(
    name: str,
    make: Callable[..., _Document],
    show: Callable[[_Document], None],
    write: Callable[[dict[str, Any], Path], Path],
    out: Path | None,
) -> None:
    """Make a document, write it and its page into the folder, then show it.

    Args:
        name: of its file
        make: takes ``progress`` and ``command``
        show: prints it
        write: writes its page into a folder, and says where that is
        out: the folder, if it is to be written
    """
    if out is not None:
        make_folder(out)
        _check_own(out / name)
    try:
        with Watcher() as watcher:
            document = make(progress=watcher.loading, command=command_line())
        if out is not None:
            content = msgspec.to_builtins(document)
            write_json(out / name, content)
            page = write(content, out)
        show(document)
        if out is not None:
            print(f"\nreport: {page}")
    except KeyboardInterrupt:
        console.print("\ninterrupted")
        raise typer.Exit(130) from None


def _check_own(path: Path) -> None:
    """Refuse to replace a document, or a page beside it, that this command did not write."""
    page = path.with_suffix(".html")
    try:
        if path.exists():
            own = "kind" in read_json(read_file(path), dict)
        else:
            own, path = not page.exists(), page
    except (OSError, ValueError):
        own = False
    if not own:
        raise DataError(
            f"{path} was not written by this command and would be replaced: use another --out"
        )
