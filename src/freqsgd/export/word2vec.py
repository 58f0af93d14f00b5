"""The text format of word2vec: a line "tokens dimension", then a line per token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.export.arrays import writing

__all__ = ["read", "write"]


def write(path: Path, tokens: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """Write the vectors; white space in a token becomes "_".

    Raises:
        DataError: two tokens would look the same
    """
    frame = pl.from_numpy(matrix).insert_column(0, pl.Series("token", _words(tokens), pl.String))
    with writing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(tokens)} {matrix.shape[1]}\n".encode())
        frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def read(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """The tokens and vectors of a file."""
    try:
        with path.open("rb") as file:
            count, dim = (int(number) for number in file.readline().split())
            schema = {"token": pl.String(), **{str(k): pl.Float32() for k in range(dim)}}
            frame = pl.read_csv(
                file.read().replace(b" \n", b"\n"),  # how the original program ends lines
                has_header=False,
                separator=" ",
                quote_char=None,
                schema=schema,
            )
        if len(frame) != count:
            raise ValueError(f"{len(frame)} vectors where the first line says {count}")
        if frame.null_count().sum_horizontal().item():
            raise ValueError(f"a line with fewer than {dim} numbers")
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} is not a file of vectors ({error})") from error
    matrix = frame.drop("token").to_numpy().astype(np.float32, order="C", copy=False)
    return frame["token"].to_list(), matrix


def _words(tokens: Sequence[str]) -> list[str]:
    """The tokens without white space."""
    origin: dict[str, str] = {}
    for token in tokens:
        word = re.sub(r"\s", "_", token)
        if word in origin:
            raise DataError(
                f"the tokens {origin[word]!r} and {token!r} would both be written as {word!r}: use "
                "the format safetensors or npz"
            )
        origin[word] = token
    return list(origin)
