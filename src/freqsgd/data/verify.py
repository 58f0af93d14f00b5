"""Whether what is there of a dataset is what was published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freqsgd.data.catalogue import known_dataset, locate
from freqsgd.data.encoding import Progress
from freqsgd.data.formats import format_for
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.options import DataOptions
from freqsgd.data.samples import SampleReader
from freqsgd.data.sources import Request
from freqsgd.data.token_table import TokenTable

__all__ = ["Check", "verify"]


@dataclass(frozen=True)
class Check:
    """A number that was found, and the published one."""

    what: str
    found: int
    published: int | None = None  # None: not known

    @property
    def right(self) -> bool:
        """Whether it is as published, as far as that is known."""
        return self.published is None or self.found == self.published


def verify(name: str, progress: Progress | None = None) -> tuple[Path, list[Check]]:
    """Read the file of a dataset, and count what is in it."""
    dataset = known_dataset(name)
    path = locate(dataset)
    source = Request.of(DataOptions(dataset=name)).source()
    size = path.stat().st_size
    table, malformed = TokenTable(), MalformedRows(allowed=size)
    reader = SampleReader(source.columns, table, malformed, source.target, add=True)
    for samples in reader.read(path, format_for(name, path)):
        if progress:
            progress("reading", round(samples.done * size), size)
    found = {"bytes": size, "rows": malformed.rows}
    tokens = np.bincount(table.fields(), minlength=len(source.columns))
    for column, count in zip(source.columns, tokens.tolist(), strict=True):
        if column.kind == "category":
            found[f"distinct values of {column.name}"] = count
    checks = [Check(what, count, dataset.published.get(what)) for what, count in found.items()]
    return path, [*checks, Check("malformed rows", malformed.count, 0)]
