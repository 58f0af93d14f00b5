"""A model in a format that others read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.export import arrays, vectors, word2vec
from freqsgd.export.arrays import writing
from freqsgd.export.choosing import choose
from freqsgd.export.dictionary import dictionary_bytes
from freqsgd.export.onnx_graph import onnx_bytes
from freqsgd.export.saved_model import FILES, SavedModel
from freqsgd.export.vectors import Vectors, key
from freqsgd.training.word_folder import holds_words

__all__ = ["FORMATS", "export_model"]

FORMATS = (*vectors.FORMATS, "onnx")
"""What a model can be written as."""


def export_model(
    folder: Path, format: str, out: Path, *, field: str | None = None, force: bool = False
) -> list[Path]:
    """Write a model, or the vectors of a field, to a file.

    Args:
        folder: a model that ``freqsgd train`` wrote
        format: one of :data:`FORMATS`
        out: the file
        field: the one field to write; word2vec's formats need it where there are several, and
            onnx, which is the whole model, takes none
        force: replace files that exist

    Returns:
        The files that were written.
    """
    choose("format", format, FORMATS)
    if format == "onnx" and field is not None:
        raise DataError("the format onnx holds the whole model: leave out the field")
    files = [out, *([_beside(out)] if format == "onnx" else [])]
    _check_targets(files, folder, force)
    if holds_words(folder):
        _export_words(folder, format, out, field)
        return files
    saved = SavedModel(folder)
    if format == "onnx":
        _export_graph(saved, *files)
    elif format in word2vec.FORMATS:
        Vectors.of_saved(saved, field).save(out, format)
    else:
        arrays.write(out, format, _arrays(saved, field))
    return files


def _export_words(folder: Path, format: str, out: Path, field: str | None) -> None:
    if format == "onnx":
        known = ", ".join(vectors.FORMATS)
        raise DataError(f"a model of words has no ONNX graph, only vectors: use one of {known}")
    Vectors.of_model(folder, field).save(out, format)


def _export_graph(saved: SavedModel, out: Path, beside: Path) -> None:
    bags = [column.kind == "bag" for column in saved.columns]
    graph = onnx_bytes(saved.model, bags)
    with writing(out) as model:
        model.write_bytes(graph)
        with writing(beside) as dictionary:
            dictionary.write_bytes(dictionary_bytes(saved))
            out.unlink(missing_ok=True)  # a crash leaves no model beside another's dictionary


def _beside(out: Path) -> Path:
    """Where the dictionary goes."""
    return out.with_name(out.name.removesuffix(".onnx") + ".tokens.json")


def _check_targets(files: list[Path], folder: Path, force: bool) -> None:
    for file in files:
        if file.resolve() in [(folder / name).resolve() for name in FILES]:
            raise DataError(f"{file} is a part of the model itself: choose another name")
        if file.is_dir():
            raise DataError(f"{file} is a folder: name a file in it")
        if file.exists() and not force:
            raise DataError(f"{file} exists already: use --force to replace it")


def _arrays(saved: SavedModel, field: str | None) -> dict[str, NDArray[Any]]:
    """Vectors, tokens, counts and linear weights of the fields, and the bias."""
    names = saved.fields if field is None else [choose("field", field, saved.fields)]
    named: dict[str, NDArray[Any]] = {"bias": saved.model.bias.detach().numpy()}
    for name in names:
        named |= Vectors.of_saved(saved, name).arrays()
        linear = saved.rows(saved.fields.index(name))[:, saved.model.dim]
        named[key(name, "linear")] = linear.copy()
    return named
