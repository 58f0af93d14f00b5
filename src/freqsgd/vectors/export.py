"""Open vectors of a model or a file, and write a model in a format that others read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import check_target, is_stream, writing
from freqsgd.recommender.folder import part_files
from freqsgd.runs.checkpoint import check_folder, holds_words
from freqsgd.vectors.files import write_arrays
from freqsgd.vectors.names import FORMATS, VECTOR_FORMATS, WORD2VEC_FORMATS, choose
from freqsgd.vectors.onnx import dictionary_bytes, onnx_bytes
from freqsgd.vectors.vectors import SavedModel, Vectors, field_rows, key


def export_model(
    folder: Path, format: str, out: Path, *, field: str | None = None, force: bool = False
) -> list[Path]:
    """Write a model, or the vectors of a field, to a file.

    Args:
        folder: a model that ``freqsgd train`` wrote
        format: one of :data:`~freqsgd.vectors.names.FORMATS`
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
    for file in files:
        check_target(file, force=force, inputs=part_files(folder))
    if format == "onnx" and is_stream(out):
        raise DataError(f"cannot write {out}: the format onnx writes two files; name a file")
    if holds_words(folder):
        _export_words(folder, format, out, field, force)
        return files
    saved = SavedModel(folder)
    if format == "onnx":
        _export_graph(saved, *files)
    elif format in WORD2VEC_FORMATS:
        Vectors.of_saved(saved, field).save(out, format, force=force)
    else:
        write_arrays(out, format, _arrays(saved, field))
    return files


def _export_words(folder: Path, format: str, out: Path, field: str | None, force: bool) -> None:
    if format == "onnx":
        known = ", ".join(VECTOR_FORMATS)
        raise DataError(f"a model of words has no ONNX graph, only vectors: use one of {known}")
    Vectors.of_model(folder, field).save(out, format, force=force)


def _export_graph(saved: SavedModel, out: Path, beside: Path) -> None:
    bags = [column.kind == "bag" for column in saved.columns]
    graph = onnx_bytes(saved.model, bags)
    with writing(out) as model:
        model.write_bytes(graph)
        with writing(beside) as dictionary:
            dictionary.write_bytes(dictionary_bytes(saved))
            # a crash leaves no model beside another's dictionary; a link to it stays
            out.resolve().unlink(missing_ok=True)


def _beside(out: Path) -> Path:
    """Return where the dictionary goes."""
    return out.with_name(out.name.removesuffix(".onnx") + ".tokens.json")


def _arrays(saved: SavedModel, field: str | None) -> dict[str, NDArray[Any]]:
    """Return vectors, tokens, counts and linear weights of the fields, and the bias."""
    names = saved.fields if field is None else [choose("field", field, saved.fields)]
    named: dict[str, NDArray[Any]] = {"bias": saved.model.bias.detach().numpy()}
    for name in names:
        named |= Vectors.of_saved(saved, name).arrays()
        linear = field_rows(saved.model, saved.fields.index(name))[:, saved.model.dim]
        named[key(name, "linear")] = linear.copy()
    return named


def open_vectors(source: Path, names: Sequence[str]) -> tuple[Vectors, list[str]]:
    """Return the vectors that are meant, and the names that are tokens.

    Args:
        source: a model's folder, or a file of vectors
        names: tokens; before them the name of a field, for a recommender or a file of several
    """
    if source.is_file():
        fields = Vectors.load_fields(source)
        if len(fields) == 1:
            return next(iter(fields.values())), list(names)
        field, tokens = _field_and_tokens(names)
        return fields[choose("field", field, list(fields))], tokens
    if source.is_dir():
        check_folder(source)
    if holds_words(source):
        return Vectors.of_model(source), list(names)
    field, tokens = _field_and_tokens(names)
    return Vectors.of_model(source, field), tokens


def _field_and_tokens(names: Sequence[str]) -> tuple[str, list[str]]:
    if len(names) < 2:
        raise DataError(f"only {' '.join(names)!r} was named: name a field, then tokens of it")
    return names[0], list(names[1:])
