"""Whether what is there of a dataset is what was published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freqsgd.data.catalogue import known_dataset, locate
from freqsgd.data.coding import TokenCoder
from freqsgd.data.encoding import Progress
from freqsgd.data.formats import format_for
from freqsgd.data.malformed import MalformedRows
from freqsgd.data.options import DataOptions
from freqsgd.data.samples import SampleReader
from freqsgd.data.sources import Request
from freqsgd.data.text_parts import files_of_parts
from freqsgd.data.token_table import TokenTable
from freqsgd.data.word_ids import PARTS
from freqsgd.data.word_reader import WordReader

__all__ = ["Check", "verify"]

_ANY_LENGTH = 1 << 30  # of paragraphs


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
    count = _count_words if dataset.text else _count_rows
    found, malformed = count(name, path, progress)
    checks = [Check(what, number, dataset.published.get(what)) for what, number in found.items()]
    return path, [*checks, *malformed]


def _count_rows(
    name: str, path: Path, progress: Progress | None
) -> tuple[dict[str, int], list[Check]]:
    source = Request.of(DataOptions(dataset=name)).source()
    size = path.stat().st_size
    table, malformed = TokenTable(), MalformedRows(allowed=size)
    coder = TokenCoder(source.columns, table, add=True)
    reader = SampleReader(source.columns, coder, malformed, source.target)
    for samples in reader.read(path, format_for(name, path)):
        if progress:
            progress("reading", round(samples.done * size), size)
    found = {"bytes": size, "rows": malformed.rows}
    tokens = np.bincount(table.fields(), minlength=len(source.columns))
    for column, count in zip(source.columns, tokens.tolist(), strict=True):
        if column.kind == "category":
            found[f"distinct values of {column.name}"] = count
    return found, [Check("malformed rows", malformed.count, 0)]


def _count_words(
    name: str, path: Path, progress: Progress | None
) -> tuple[dict[str, int], list[Check]]:
    """Words and line ends of each part, which are words in the published counts."""
    reader = WordReader("whitespace", lowercase=False, longest=_ANY_LENGTH)
    found = {}
    for part, (file,) in zip(PARTS, files_of_parts(path.parent), strict=True):
        size, words = file.stat().st_size, 0
        for codes, _, done in reader.read(file):
            words += len(codes)
            if progress:
                progress(f"reading {file.name}", round(done * size), size)
        with file.open("rb") as lines:
            found[f"words and line ends, {part}"] = words + sum(1 for _ in lines)
        found.setdefault("distinct words and the line end", len(reader.table) + 1)
    replaced = sum(reader.replaced.values())
    return found, [Check("places that are not UTF-8", replaced, 0)]
