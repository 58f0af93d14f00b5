"""What commands have in common: ``--out``, ``--threads``, documents and their pages."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from freqsgd.cli.options import UsageError
from freqsgd.cli.progress import Watcher, console
from freqsgd.errors import DataError
from freqsgd.files import make_folder, read_file, read_json, write_json

__all__ = ["command_line", "named_files", "present", "target", "use_threads"]


def command_line() -> str:
    """The command that was given, as it begins a run: a resumed one has the same results."""
    start: list[str] = []
    if "LOCAL_WORLD_SIZE" in os.environ:  # of torchrun
        start = ["torchrun", "--nproc-per-node", os.environ["LOCAL_WORLD_SIZE"], "-m"]
        if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
            start[1:1] = ["--nnodes", os.environ["GROUP_WORLD_SIZE"]]
    return shlex.join([*start, "freqsgd", *(part for part in sys.argv[1:] if part != "--resume")])


def target(text: str, **more: Any) -> Any:
    """Make the option ``--out``, which names a file or folder to write."""
    return typer.Option("--out", help=text, parser=_named, metavar="PATH", **more)


def _named(text: str) -> Path:
    if text == "":  # which Path would take for the current folder
        raise UsageError("--out is empty: name a file or folder")
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
