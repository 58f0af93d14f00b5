"""Options for the size of what ``freqsgd plan`` plans: numbers, a model's folder, or data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from freqsgd.cli.numbers import quantity
from freqsgd.cli.one_pass_options import stream_settings
from freqsgd.cli.options import COLUMNS, SEPARATOR, column_names, option, words
from freqsgd.cli.progress import Watcher
from freqsgd.errors import DataError
from freqsgd.inspection.options import InspectionOptions
from freqsgd.planner.workload import Workload, of_fields, of_model
from freqsgd.recommender.settings import Settings
from freqsgd.tables.catalog import known_dataset
from freqsgd.tables.fields import Field
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions

_SIZE, _DATA = "Size", "Size of what is there"
_BATCH = 65_536
_MOST_FEATURES = 1_000_000
_ANY = 2**31 - 1  # malformed rows, which sizes hardly depend on


def size_options(
    features: Annotated[
        str | None, option("How many; with --data, the columns: a,b,c.", panel=_SIZE)
    ] = None,
    rows: Annotated[
        str | None,
        option("Of the table of each feature, on average: 1e8, 100M.", panel=_SIZE),
    ] = None,
    dim: Annotated[
        int | None,
        option(
            "Size of the vectors (default: 64; with --hidden, --dataset or --data 16).", panel=_SIZE
        ),
    ] = None,
    hidden: Annotated[
        str | None, option("Hidden layers, of DeepFM: 16,16 (default: FM).", panel=_SIZE)
    ] = None,
    batch_size: Annotated[
        str | None,
        option(
            "Of a step on all hosts (default: 65536; with --dataset or --data 1024).", panel=_SIZE
        ),
    ] = None,
    tokens_per_example: Annotated[
        str | None,
        option("In all features together (default: one each).", panel=_SIZE),
    ] = None,
    examples: Annotated[str | None, option("To learn from: 2.5e10.", panel=_SIZE)] = None,
    model: Annotated[
        Path | None, option("Folder of a trained model: its own sizes.", panel=_DATA)
    ] = None,
    dataset: Annotated[
        str | None, option("movielens-1m, criteo, clicks-small, ...", panel=_DATA)
    ] = None,
    path: Annotated[str | None, option("Your own files.", "--data", panel=_DATA)] = None,
    label: Annotated[str | None, option("Column of the label; not needed.", panel=_DATA)] = None,
    numeric: Annotated[str | None, option("Columns of numbers.", panel=_DATA)] = None,
    separator: Annotated[str | None, option(SEPARATOR, panel=_DATA)] = None,
    columns: Annotated[str | None, option(COLUMNS, panel=_DATA)] = None,
    hash_rows: Annotated[
        str | None, option("Rows that tokens are hashed to, as with --one-pass.", panel=_DATA)
    ] = None,
) -> Workload:
    """Return the workload, from one of several sources."""
    batch = None if batch_size is None else quantity("--batch-size", batch_size)
    number = None if examples is None else quantity("--examples", examples)
    counts = {"--rows": rows, "--tokens-per-example": tokens_per_example}
    of_files = {"--label": label, "--numeric": numeric}
    of_files |= {"--separator": separator, "--columns": columns}
    if model is not None:
        shape = {"--features": features, "--dim": dim, "--hidden": hidden}
        data = {"--dataset": dataset, "--data": path, "--hash-rows": hash_rows}
        _refuse("--model", {**counts, **of_files, **shape, **data})
        from freqsgd.runs.checkpoint import check_folder

        check_folder(model)
        return of_model(model, batch, number)
    layers = None if hidden is None else _layers(hidden)
    if dim is not None and dim < 1:
        raise DataError(f"--dim must be at least 1, got {dim}")
    default = stream_settings()
    if dataset is not None:
        _refuse("--dataset", {**counts, **of_files, "--features": features, "--data": path})
        fields = _of_dataset(dataset, hash_rows)
    elif path is not None:
        _refuse("--data", counts)
        options = InspectionOptions(
            path=path,
            label=label,
            features=words(features or ""),
            numeric=words(numeric or ""),
            max_bad_rows=_ANY,
            separator=separator,
            columns=column_names(columns),
        )
        fields = _of_files(options, hash_rows)
    else:
        default = Settings("fm" if layers is None else "deepfm", batch_size=_BATCH)
        _refuse("numbers: name the files (--data)", {**of_files, "--hash-rows": hash_rows})
        fields = _of_numbers(features, rows, tokens_per_example)
    work = of_fields(fields, dim or default.vector_dim, batch or default.batch_size, layers, number)
    if tokens_per_example is None:
        return work
    return replace(work, tokens=quantity("--tokens-per-example", tokens_per_example))


def _refuse(source: str, options: dict[str, Any]) -> None:
    """Raise if there is an option that a source of sizes has no use for."""
    for name, value in options.items():
        if value is not None:
            raise DataError(f"{name} does not go with {source}")


def _layers(text: str) -> tuple[int, ...]:
    try:
        layers = tuple(map(int, words(text)))
    except ValueError:
        layers = ()
    if not layers or min(layers) < 1:
        raise DataError(f"--hidden takes sizes such as 16,16, not {text!r}")
    return layers


def _of_numbers(
    features: str | None, rows: str | None, tokens_per_example: str | None
) -> Sequence[Field]:
    """Return features of one size; bags, if an example has more tokens than there are features."""
    if features is None or rows is None:
        raise DataError(
            "say how large it is: --features 800 --rows 1e8 (rows of each feature), or name "
            "--model DIR, --dataset NAME or --data FILE"
        )
    number = quantity("--features", features)
    if number > _MOST_FEATURES:
        raise DataError(f"--features must be at most {_MOST_FEATURES:,}, got {number:,}")
    tokens = quantity("--tokens-per-example", tokens_per_example or "1")
    return [Field("", quantity("--rows", rows), max(1, -(-tokens // number)))] * number


def _of_dataset(name: str, hash_rows: str | None) -> Sequence[Field]:
    if known_dataset(name).stream:
        return open_stream(StreamOptions(dataset=name, hash_rows=hash_rows or "")).fields
    if hash_rows is not None:
        raise DataError(f"--hash-rows does not go with {name}, which is no stream")
    with Watcher() as watcher:
        return load(DataOptions(dataset=name), progress=watcher.loading).fields


def _of_files(options: InspectionOptions, hash_rows: str | None) -> Sequence[Field]:
    """Return the fields of files, whose labels do not matter; malformed rows are left out."""
    options.check()
    if not (options.features or options.numeric):
        raise DataError(
            f"{options.path}: name the columns: --features a,b, or --numeric for numbers"
        )
    from freqsgd.inspection.counting import count
    from freqsgd.inspection.sources import hashed_fields, open_source

    if hash_rows is not None:
        return hashed_fields(options, hash_rows)
    with Watcher() as watcher:
        return count(open_source(options), progress=watcher.loading).table_fields
