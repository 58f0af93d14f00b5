"""``freqsgd neighbors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.neighbor_table import neighbors_json, print_neighbors, shown
from freqsgd.errors import DataError

__all__ = ["neighbors"]


def neighbors(
    model: Annotated[
        Path, typer.Argument(help="A folder that freqsgd train wrote, or a file of vectors.")
    ],
    tokens: Annotated[
        list[str],
        typer.Argument(
            help="Words; for a recommender a field, then tokens of it.", metavar="[FIELD] TOKEN"
        ),
    ],
    top: Annotated[int, typer.Option(help="How many neighbours.")] = 10,
    names: Annotated[
        Path | None,
        typer.Option(help="A file of tokens and their names, such as MovieLens' movies.dat."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the tokens whose vectors are nearest, by cosine.

    Example: freqsgd neighbors model movie 1 --names ml-1m/movies.dat

    Example: freqsgd neighbors words king queen
    """
    from freqsgd.vectors.export import open_vectors
    from freqsgd.vectors.names import read_names

    if top < 1:
        raise DataError(f"--top must be at least 1, got {top}")
    known = None if names is None else read_names(names)
    vectors, asked = open_vectors(model, tokens)
    found = list(zip(asked, vectors.nearest(asked, top), strict=True))
    if as_json:
        whole = [
            {
                "token": token,
                **({} if known is None else {"name": known.get(token)}),
                "neighbors": neighbors_json(near, known),
            }
            for token, near in found
        ]
        print(json.dumps(whole, indent=1, ensure_ascii=False))
        return
    for number, (token, near) in enumerate(found):
        title = shown(token) + (f"  {shown(known[token])}" if known and token in known else "")
        print_neighbors(("\n" if number else "") + title, near, known)
