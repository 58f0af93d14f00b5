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
    files = [out]
    if format == "onnx":  # and its dictionary
        files.append(out.with_name(out.name.removesuffix(".onnx") + ".tokens.json"))
    for file in files:
        check_target(file, force=force, inputs=part_files(folder))
    if format == "onnx" and is_stream(out):
        raise DataError(f"cannot write {out}: the format onnx writes two files; name a file")
    if format == "onnx" and holds_words(folder):
        known = ", ".join(VECTOR_FORMATS)
        raise DataError(f"a model of words has no ONNX graph, only vectors: use one of {known}")
    if format == "onnx":
        _export_graph(SavedModel(folder), *files)
    elif format in WORD2VEC_FORMATS or holds_words(folder):
        Vectors.of_model(folder, field).save(out, format, force=force)
    else:
        write_arrays(out, format, _arrays(SavedModel(folder), field))
    return files


def _export_graph(saved: SavedModel, out: Path, beside: Path) -> None:
    bags = [column.kind == "bag" for column in saved.columns]
    graph = onnx_bytes(saved.model, bags)
    with writing(out) as model:
        model.write_bytes(graph)
        with writing(beside) as dictionary:
            dictionary.write_bytes(dictionary_bytes(saved))
            # a crash leaves no model beside another's dictionary; a link to it stays
            out.resolve().unlink(missing_ok=True)


def _arrays(saved: SavedModel, field: str | None) -> dict[str, NDArray[Any]]:
    """Return vectors, tokens, counts and linear weights of the fields, and the bias."""
    model = saved.model
    named: dict[str, NDArray[Any]] = {"bias": model.bias.detach().numpy()}
    chosen = None if field is None else choose("field", field, saved.fields)
    for place, name in enumerate(saved.fields):
        if chosen in (None, name):
            named |= Vectors.of(model, saved.encoder, place, name).arrays()
            named[key(name, "linear")] = field_rows(model, place)[:, model.dim].copy()
    return named


def open_vectors(source: Path, names: Sequence[str]) -> tuple[Vectors, list[str]]:
    """Return the vectors that are meant, and the names that are tokens.

    Args:
        source: a model's folder, or a file of vectors
        names: tokens; before them the name of a field, for a recommender or a file of several
    """
    fields = Vectors.load_fields(source) if source.is_file() else {}
    if len(fields) == 1:
        return next(iter(fields.values())), list(names)
    if source.is_dir():
        check_folder(source)
    if not fields and holds_words(source):
        return Vectors.of_model(source), list(names)
    if len(names) < 2:
        raise DataError(f"only {' '.join(names)!r} was named: name a field, then tokens of it")
    field, *tokens = names
    if fields:
        return fields[choose("field", field, list(fields))], tokens
    return Vectors.of_model(source, field), tokens
