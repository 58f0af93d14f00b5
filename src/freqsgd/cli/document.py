"""What commands that make a document have in common: ``inspect.json``, ``theory.json``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.session import command_line
from freqsgd.errors import DataError
from freqsgd.files import make_folder, read_file, read_json, write_json

__all__ = ["present"]


def present(
    name: str,
    make: Callable[..., dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
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
            write_json(out / name, document)
            page = write(document, out)
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
