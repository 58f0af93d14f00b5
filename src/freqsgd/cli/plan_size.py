"""The size of what ``freqsgd plan`` plans: from numbers, a model's folder, or data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import typer

from freqsgd.cli.options import layers, made
from freqsgd.cli.progress import Watcher
from freqsgd.errors import DataError
from freqsgd.inspection.options import InspectionOptions
from freqsgd.planner.workload import Workload, of_fields, of_model
from freqsgd.recommender.settings import Settings
from freqsgd.tables.catalog import known_dataset
from freqsgd.tables.fields import Field
from freqsgd.tables.loading import load, open_stream
from freqsgd.tables.spec import DataOptions, StreamOptions

_DATA_DIM, _BATCH = 16, 65_536
_MOST_FEATURES = 1_000_000
_ANY = 2**31 - 1  # malformed rows, which sizes hardly depend on
_COUNTS = ("rows", "tokens_per_example")
_OF_FILES = ("label", "numeric", "separator", "columns")


def workload(context: typer.Context) -> Workload:
    """Return the workload, from one of several sources."""
    asked = context.params
    batch = _number(context, "batch_size")
    examples = _number(context, "examples")
    if asked["model"] is not None:
        shape = ("features", "dim", "hidden", "dataset", "path", "hash_rows")
        _refuse(context, "--model", *_COUNTS, *_OF_FILES, *shape)
        from freqsgd.runs.checkpoint import check_folder

        check_folder(asked["model"])
        return of_model(asked["model"], batch, examples)
    hidden = None if asked["hidden"] is None else layers(asked["hidden"])
    if hidden is not None and (not hidden or min(hidden) < 1):
        raise DataError(f"--hidden takes sizes such as 16,16, not {asked['hidden']!r}")
    default = Settings(dim=_DATA_DIM)
    if asked["dataset"] is not None:
        _refuse(context, "--dataset", *_COUNTS, *_OF_FILES, "features", "path")
        fields = _of_dataset(asked["dataset"], asked["hash_rows"])
    elif asked["path"] is not None:
        _refuse(context, "--data", *_COUNTS)
        options = made(InspectionOptions, context, dim=_DATA_DIM, max_bad_rows=_ANY)
        fields = _of_files(options, asked["hash_rows"])
    else:
        _refuse(context, "numbers: name the files (--data)", *_OF_FILES, "hash_rows")
        default = Settings("fm" if hidden is None else "deepfm", batch_size=_BATCH)
        fields = _of_numbers(asked["features"], asked["rows"], asked["tokens_per_example"])
    dim, size = asked["dim"] or default.vector_dim, batch or default.batch_size
    work = of_fields(fields, dim, size, hidden, examples)
    tokens = _number(context, "tokens_per_example")
    return work if tokens is None else replace(work, tokens=tokens)


def _number(context: typer.Context, name: str) -> int | None:
    text = context.params[name]
    return None if text is None else quantity(name, text)


def _refuse(context: typer.Context, source: str, *names: str) -> None:
    """Raise if there is an option that a source of sizes has no use for."""
    for name in names:
        if context.params[name] is not None:
            raise DataError(f"{name} does not go with {source}")


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
    if known_dataset(name, "table", "stream").kind == "stream":
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


_MOST = 1e30  # so that products of some of them are floats too
_EXAMPLES = {
    "": "1000000, 1e8, 100M or 2.5G",
    "B": "64GB, 1T or 512GiB",
    "bit": "25G or 100M, in bits per second",
}
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_PATTERN = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kmgtp]?)(i?)(b?)", re.IGNORECASE)


def quantity(option: str, text: str, *, unit: str = "") -> int:
    """Return a whole number above 0, such as 1e8, 100M, 64GB or 64GiB; the unit is B, bit or none.

    Example:
        >>> quantity("--host-memory", "1.5T", unit="B")
        1500000000000
    """
    found = _PATTERN.fullmatch(text.strip().replace(",", "").replace("_", ""))
    try:
        if found is None or (found[4] and unit != "B"):
            raise ValueError
        base = 1024 if found[3] else 1000
        value = float(found[1]) * base ** _PREFIXES[found[2].lower()]
    except (ValueError, OverflowError):
        raise DataError(
            f"{option} takes a number such as {_EXAMPLES[unit]}, not {text!r}"
        ) from None
    if not 1 <= value <= _MOST or value != int(value):
        raise DataError(
            f"{option} must be a whole number of at least 1 and at most {_MOST:g}, not {text}"
        )
    return int(value)
