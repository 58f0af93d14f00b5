"""What commands have in common: command lines, threads, documents and their pages."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.errors import DataError
from freqsgd.files import check_target, make_folder, write_json


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


RUN, COMPARISON, SEARCH = "the run of a model", "a comparison", "a search"
_KINDS = {  # what commands leave in a folder, by patterns of files of which one is always there
    SEARCH: ("trials.sqlite",),
    RUN: ("model.safetensors", "checkpoint.safetensors", "shards-*"),
    COMPARISON: ("models/*/*.safetensors", "rates/*"),
    "an inspection": ("inspect.json",),
    "a check of the theorems": ("theory.json",),
}
_BESIDE = ("run.json", "log.txt")  # that freqsgd paper writes into the folder of a run


def check_out(folder: Path | None, kind: str, *, resume: bool = False) -> None:
    """Refuse a folder that holds anything but an earlier result of this kind.

    A line tells where ``resume`` finds nothing.
    """
    try:
        held = sorted(path.name for path in folder.iterdir()) if folder else []
    except (FileNotFoundError, NotADirectoryError):  # a file is refused by what makes the folder
        held = []
    except OSError as error:
        raise DataError(f"cannot use the folder {folder}: {error.strerror}") from error
    if folder is None:
        return
    for other, patterns in _KINDS.items():
        if any(any(folder.glob(pattern)) for pattern in patterns):
            if other != kind:
                raise DataError(f"{folder} holds {other}, not {kind}: use another --out")
            return
    held = [name for name in held if not name.startswith(".") and name not in _BESIDE]
    if held:
        more = f" and {len(held) - 1:,} more" if held[1:] else ""
        raise DataError(
            f"{folder} holds {held[0]}{more}, and no result of freqsgd: name a folder that is new "
            "or empty (--out)"
        )
    if resume and not folder.is_file():
        told = f"{folder} holds nothing to resume: this run begins anew"
        console.print(told, soft_wrap=True, markup=False)


_Document = TypeVar("_Document", bound=msgspec.Struct)


def present(
    name: str,
    make: Callable[..., _Document],
    show: Callable[[_Document], None],
    write: Callable[[dict[str, Any], Path], Path],
    out: Path | None,
    force: bool,
    inputs: Sequence[Path] = (),
) -> None:
    """Make a document, write it and its page into the folder, then show it.

    Args:
        name: of its file
        make: takes ``progress`` and ``command``
        show: prints it
        write: writes its page into a folder, and says where that is
        out: the folder, if it is to be written
        force: replace the document of an earlier call
        inputs: files that are read
    """
    if out is not None:
        check_out(out, next(kind for kind, patterns in _KINDS.items() if name in patterns))
        make_folder(out)
        for file in (out / name, (out / name).with_suffix(".html")):
            check_target(file, force=force, inputs=inputs)
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
