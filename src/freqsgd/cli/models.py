"""Commands that use trained models: predict, neighbors, analogy, export, convert."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from freqsgd.cli import options as opt
from freqsgd.cli.options import column_names, option, target
from freqsgd.cli.output import grid, screen, shown
from freqsgd.cli.session import RUN, check_out, use_threads
from freqsgd.errors import DataError
from freqsgd.files import is_stream
from freqsgd.runs.machine import byte_size
from freqsgd.tables.readers.dialect import Dialect
from freqsgd.vectors.names import FORMATS

if TYPE_CHECKING:
    from freqsgd.vectors.vectors import Neighbor

_Folder = Annotated[Path, typer.Argument(help="Folder of a trained model.")]
_Vectors = Annotated[Path, typer.Argument(help="Folder of a trained model, or a file of vectors.")]


def predict(
    model: _Folder,
    file: Annotated[str, typer.Argument(help="Rows with the columns that it was trained on.")],
    out: Annotated[
        Path | None, target("A .csv file for one probability per row (default: print them).")
    ] = None,
    force: opt.Force = False,
    threads: opt.Threads = None,
    separator: Annotated[
        str | None,
        option("Separator between cells (default: that of the training files)."),
    ] = None,
    columns: Annotated[
        str | None,
        option("Names of all columns, comma-separated (default: those of the training files)."),
    ] = None,
) -> None:
    """Write the probability of a positive label for each row of a file.

    Example: freqsgd predict model new.csv --out predictions.csv
    """
    from freqsgd.recommender.predict import predict_file

    use_threads(threads)
    dialect = Dialect(separator, column_names(columns))
    rows = predict_file(model, file, out, dialect, force=force)
    if out is not None:
        # a pipe may be stdout, where nothing but probabilities belongs
        print(f"{out}: {rows:,} rows", file=sys.stderr if is_stream(out) else sys.stdout)


def neighbors(
    model: _Vectors,
    tokens: Annotated[
        list[str],
        typer.Argument(
            help="Words; for a recommender a field, then tokens of it.", metavar="[FIELD] TOKEN"
        ),
    ],
    top: Annotated[int, option("Number of neighbors.", min=1)] = 10,
    names: Annotated[
        Path | None, option("File of tokens and their names, such as MovieLens' movies.dat.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the tokens whose vectors are nearest, by cosine.

    Example: freqsgd neighbors model movie 1 --names ml-1m/movies.dat

    Example: freqsgd words neighbors vectors king queen
    """
    from freqsgd.vectors.export import open_vectors
    from freqsgd.vectors.names import read_names

    known = None if names is None else read_names(names)
    vectors, asked = open_vectors(model, tokens)
    found = list(zip(asked, vectors.nearest(asked, top), strict=True))
    if as_json:
        whole = [
            {
                "token": token,
                **({} if known is None else {"name": known.get(token)}),
                "neighbors": _as_json(near, known),
            }
            for token, near in found
        ]
        print(json.dumps(whole, indent=1, ensure_ascii=False))
        return
    for number, (token, near) in enumerate(found):
        title = shown(token) + (f"  {shown(known[token])}" if known and token in known else "")
        _print_neighbors(("\n" if number else "") + title, near, known)


def analogy(
    model: _Vectors,
    tokens: Annotated[
        list[str],
        typer.Argument(
            help="Three words, or a field of a recommender and three tokens of it.",
            metavar="[FIELD] A B C",
        ),
    ],
    top: Annotated[int, option("Number of answers.", min=1)] = 10,
    as_json: opt.AsJson = False,
) -> None:
    """Print what is to C as B is to A: the tokens whose vectors are nearest to B - A + C.

    Example: freqsgd words analogy vectors man king woman
    """
    from freqsgd.vectors.export import open_vectors

    vectors, asked = open_vectors(model, tokens)
    if len(asked) != 3:
        raise DataError(f"an analogy takes three tokens, A B C, and got {len(asked)}")
    a, b, c = asked
    near = vectors.analogy(a, b, c, top)
    if as_json:
        print(json.dumps(_as_json(near), indent=1, ensure_ascii=False))
    else:
        _print_neighbors(f"{shown(a)} : {shown(b)} = {shown(c)} : ?", near)


_Names = dict[str, str] | None


def _as_json(near: list[Neighbor], names: _Names = None) -> list[dict[str, object]]:
    return [
        {
            "token": one.token,
            **({} if names is None else {"name": names.get(one.token)}),
            "cosine": one.cosine,
            "count": one.count,
        }
        for one in near
    ]


def _print_neighbors(title: str, near: list[Neighbor], names: _Names = None) -> None:
    """Print a title and a line per neighbour."""
    console = screen(1000)
    console.print(Text(title, "bold"), soft_wrap=True)
    text = ("token",) if names is None else ("token", "name")
    table = grid("rank", *text, "cosine", "seen", text=text)
    for rank, one in enumerate(near, start=1):
        name = [] if names is None else [Text(shown(names.get(one.token, "")))]
        seen = "-" if one.count is None else f"{one.count:,}"
        table.add_row(str(rank), Text(shown(one.token)), *name, f"{one.cosine:.4f}", seen)
    console.print(table)


def export(
    model: _Folder,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.", show_default=False)],
    out: Annotated[Path, target("The file to write.", show_default=False)],
    field: Annotated[
        str | None,
        option("Field to write (default: all; word2vec's formats hold one)."),
    ] = None,
    force: opt.Force = False,
) -> None:
    """Write a model's vectors and their tokens, or the whole model as ONNX, for other programs.

    Example: freqsgd export model --format word2vec-text --field item --out items.txt
    """
    from freqsgd.vectors.export import export_model

    for file in export_model(model, format, out, field=field, force=force):
        if not is_stream(file):  # where nothing but the model belongs
            print(f"{file}: {byte_size(file.stat().st_size)}")


def convert(
    source: Annotated[
        Path, typer.Argument(help="Folder of a model that freqsgd stream train wrote.")
    ],
    out: Annotated[Path, target("The folder to write.", show_default=False)],
) -> None:
    """Put the tables of torchrec's ranks together, or make of one process's what ranks go on from.

    Example: freqsgd convert sharded --out model
    """
    from freqsgd.torchrec.convert import convert as convert_folder

    check_out(out, RUN)
    print(f"{out}: {convert_folder(source, out)}")
