"""``freqsgd analogy``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.neighbor_table import neighbors_json, print_neighbors, shown
from freqsgd.errors import DataError

__all__ = ["analogy"]


def analogy(
    model: Annotated[
        Path, typer.Argument(help="A folder that freqsgd train wrote, or a file of vectors.")
    ],
    tokens: Annotated[
        list[str],
        typer.Argument(
            help="Three words, or a field of a recommender and three tokens of it.",
            metavar="[FIELD] A B C",
        ),
    ],
    top: Annotated[int, typer.Option(help="How many answers.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what is to C as B is to A: the tokens whose vectors are nearest to B - A + C.

    Example: freqsgd analogy words man king woman
    """
    from freqsgd.vectors.export import open_vectors

    if top < 1:
        raise DataError(f"--top must be at least 1, got {top}")
    vectors, asked = open_vectors(model, tokens)
    if len(asked) != 3:
        raise DataError(f"an analogy takes three tokens, A B C, and got {len(asked)}")
    a, b, c = asked
    near = vectors.analogy(a, b, c, top)
    if as_json:
        print(json.dumps(neighbors_json(near), indent=1, ensure_ascii=False))
    else:
        print_neighbors(f"{shown(a)} : {shown(b)} = {shown(c)} : ?", near)
