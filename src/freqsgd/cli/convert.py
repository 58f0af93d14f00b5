"""``freqsgd convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.session import target

__all__ = ["convert"]


def convert(
    source: Annotated[Path, typer.Argument(help="A folder that freqsgd train --one-pass wrote.")],
    out: Annotated[Path, target("The folder to write.", show_default=False)],
) -> None:
    """Put the tables of torchrec's ranks together, or make of one process's what ranks go on from.

    Example: freqsgd convert sharded --out model
    """
    from freqsgd.torchrec.convert import convert as convert_folder

    print(f"{out}: {convert_folder(source, out)}")
