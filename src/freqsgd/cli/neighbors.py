"""``freqsgd neighbors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freqsgd.data.dataset import DataError
from freqsgd.export import Neighbor, Vectors
from freqsgd.export.names import read_names

__all__ = ["neighbors"]


def neighbors(
    model: Annotated[Path, typer.Argument(help="A folder that freqsgd train wrote.")],
    field: Annotated[str, typer.Argument(help="A field of the model.")],
    tokens: Annotated[list[str], typer.Argument(help="Tokens of the field.", metavar="TOKEN")],
    top: Annotated[int, typer.Option(help="How many neighbours.")] = 10,
    names: Annotated[
        Path | None,
        typer.Option(help="A file of tokens and their names, such as MovieLens' movies.dat."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the tokens whose vectors are nearest, by cosine.

    Example: freqsgd neighbors model movie 1 --names ml-1m/movies.dat
    """
    if top < 1:
        raise DataError(f"--top must be at least 1, got {top}")
    known = None if names is None else read_names(names)
    found = Vectors.of_model(model, field).nearest(tokens, top)
    if as_json:
        print(json.dumps(_as_json(tokens, found, known), indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False, width=None if Console().is_terminal else 1000)
    for number, (token, near) in enumerate(zip(tokens, found, strict=True)):
        title = _shown(token) + (f"  {_shown(known[token])}" if known and token in known else "")
        console.print(Text(("\n" if number else "") + title, "bold"), soft_wrap=True)
        console.print(_table(near, known))


def _as_json(
    tokens: list[str], found: list[list[Neighbor]], known: dict[str, str] | None
) -> list[dict[str, object]]:
    def named(token: str) -> dict[str, object]:
        return {"token": token} | ({} if known is None else {"name": known.get(token)})

    return [
        {
            **named(token),
            "neighbors": [
                {**named(one.token), "cosine": one.cosine, "count": one.count} for one in near
            ],
        }
        for token, near in zip(tokens, found, strict=True)
    ]


def _table(near: list[Neighbor], known: dict[str, str] | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rank", justify="right")
    table.add_column("token")
    if known is not None:
        table.add_column("name")
    table.add_column("cosine", justify="right", no_wrap=True)
    table.add_column("seen", justify="right", no_wrap=True)
    for rank, one in enumerate(near, start=1):
        name = [] if known is None else [Text(_shown(known.get(one.token, "")))]
        seen = "-" if one.count is None else f"{one.count:,}"
        table.add_row(str(rank), Text(_shown(one.token)), *name, f"{one.cosine:.4f}", seen)
    return table


def _shown(text: str) -> str:
    """A text that keeps to its line and cannot steer the terminal."""
    return text if text.isprintable() else repr(text)
