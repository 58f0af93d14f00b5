"""What commands have in common: command lines, threads, documents and their pages."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.errors import DataError
from freqsgd.files import make_folder, read_file, read_json, write_json


def command_line() -> str:
    """Return the command that was given, as it begins a run: a resumed one has the same results."""
    start: list[str] = []
    if "LOCAL_WORLD_SIZE" in os.environ:  # of torchrun
        start = ["torchrun", "--nproc-per-node", os.environ["LOCAL_WORLD_SIZE"], "-m"]
        if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
            start[1:1] = ["--nnodes", os.environ["GROUP_WORLD_SIZE"]]
    return shlex.join([*start, "freqsgd", *(part for part in sys.argv[1:] if part != "--resume")])


def named_files(context: typer.Context) -> list[Path]:
    """List what other options of a command name, so that --out is none of it."""
    named = (value for name, value in context.params.items() if name != "out")
    return [Path(value) for value in named if isinstance(value, str | Path) and str(value)]


def use_threads(threads: int | None) -> None:
    """Let torch use so many threads; None leaves it to torch."""
    if threads is not None:
        import torch  # which commands that take no --threads do without

        torch.set_num_threads(threads)


@contextmanager
def interruptible(told: str, by: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """After Ctrl-C, which raises ``by``, print a line and end the command."""
    try:
        yield
    except by:
        console.print(f"\n{told}")
        raise typer.Exit(130) from None


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
    with interruptible("interrupted"):
        with Watcher() as watcher:
            document = make(progress=watcher.loading, command=command_line())
        if out is not None:
            content = msgspec.to_builtins(document)
            write_json(out / name, content)
            page = write(content, out)
        show(document)
        if out is not None:
            print(f"\nreport: {page}")


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
