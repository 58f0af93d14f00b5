"""``freqsgd export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.session import target
from freqsgd.files import is_stream
from freqsgd.vectors.names import FORMATS

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="A folder that freqsgd train wrote.")],
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.", show_default=False)],
    out: Annotated[Path, target("The file to write.", show_default=False)],
    field: Annotated[
        str | None, typer.Option(help="Write this field only; word2vec's formats hold one.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a model's vectors and their tokens, or the whole model as ONNX, for other programs.

    Example: freqsgd export model --format word2vec-text --field item --out items.txt
    """
    from freqsgd.vectors.export import export_model

    for file in export_model(model, format, out, field=field, force=force):
        if not is_stream(file):  # where nothing but the model belongs
            print(f"{file}: {_size(file.stat().st_size)}")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"
