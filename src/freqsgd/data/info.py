"""What is in a dataset or a file."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from freqsgd.data.dataset import Dataset
from freqsgd.data.formats import format_of, list_files
from freqsgd.data.loading import encoded_folder
from freqsgd.data.options import DataOptions
from freqsgd.data.schema import file_schema
from freqsgd.data.sources import Request

__all__ = ["cache_place", "describe", "file_columns"]


def describe(dataset: Dataset) -> list[tuple[str, str]]:
    """Facts about loaded samples: what, and how much."""
    splits = dataset.splits
    parts = (len(splits.train), len(splits.validation), len(splits.test))
    summary = dataset.summary()
    facts = [
        ("rows", f"{dataset.rows:,}"),
        ("split", "{:,} train, {:,} validation, {:,} test".format(*parts)),
        ("positive rate", f"{summary['positive_rate']:.4f}"),
        ("fields", f"{len(dataset.fields)}"),
        ("tokens", f"{dataset.tokens:,}"),
        ("bytes", f"{dataset.ids.nbytes + dataset.labels.nbytes:,}"),
    ]
    for field in dataset.fields:
        width = f", bags of up to {field.width}" if field.width > 1 else ""
        facts.append((f"  {field.name}", f"{field.size:,} tokens{width}"))
    return facts


def cache_place(options: DataOptions) -> Path | None:
    """The folder of the encoded samples; None for generated ones, which are not kept."""
    if options.path is None and options.dataset == "synthetic":
        return None
    return encoded_folder(Request.of(options))


def file_columns(path: str) -> list[tuple[str, str]]:
    """Names and types of the columns of a file of one's own, or of the first one in a folder."""
    first = list_files(Path(path))[0]
    schema = file_schema(first, format_of(first))
    return [(name, "text" if dtype == pl.String else str(dtype)) for name, dtype in schema.items()]
