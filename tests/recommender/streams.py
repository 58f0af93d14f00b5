"""A small stream in memory, whose labels follow its tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from freqsgd.tables.fields import Chunk, Field


class MemoryStream:
    """Days of two files each; every tenth row of a file holds no example."""

    def __init__(self, sizes=(60, 40), rows=(700, 900, 650), seed=0, chunk=130, name="made-up"):
        rng = np.random.default_rng(seed)
        truth = [rng.normal(0, 1, size) for size in sizes]
        self.name, self.fields = name, tuple(Field(f"f{k}", s) for k, s in enumerate(sizes))
        self.days = tuple(f"day-{day}" for day in range(len(rows)))
        self.fingerprint, self.encoder, self.skipped = f"{sizes} {rows} {seed}", None, []
        self.chunk = chunk
        self.files: list[tuple[np.ndarray, np.ndarray]] = []
        for count in rows:
            ids = np.stack([np.minimum(rng.geometric(0.08, count) - 1, s - 1) for s in sizes], 1)
            odds = sum(values[ids[:, k]] for k, values in enumerate(truth))
            labels = (rng.random(count) < 1 / (1 + np.exp(-odds))).astype(np.uint8)
            ids = ids.astype(np.int32)
            cut = count // 3
            self.files += [(ids[:cut], labels[:cut]), (ids[cut:], labels[cut:])]

    def whole(self, first, last):
        """All examples of some days at once: ids, labels and days."""
        files = self.files[2 * first : 2 * last]
        days = [np.full(len(labels), first + k // 2) for k, (_, labels) in enumerate(files)]
        return (*(np.concatenate(part) for part in zip(*files, strict=True)), np.concatenate(days))

    def chunks(self, first, last, start=None):
        total = sum(len(labels) for _, labels in self.files[2 * first : 2 * last])
        done = 0
        for file in range(2 * first, 2 * last):
            ids, labels = self.files[file]
            numbers = np.arange(len(labels))
            numbers = numbers + numbers // 9 + 1
            begin = 0
            if start is not None and file <= start.file:
                begin = len(labels)
                if file == start.file:
                    begin = int(np.searchsorted(numbers, start.row, side="right"))
            done += begin
            for k in range(begin, len(labels), self.chunk):
                part = slice(k, k + self.chunk)
                done += len(labels[part])
                yield Chunk(
                    np.ascontiguousarray(ids[part]),
                    labels[part],
                    file // 2,
                    file,
                    numbers[part],
                    done / total,
                    0,
                )

    def summary(self) -> dict[str, Any]:
        sizes = [field.size for field in self.fields]
        rows = sum(len(labels) for _, labels in self.files)
        return {
            "name": self.name,
            "kind": "stream",
            "days": list(self.days),
            "fields": len(sizes),
            "tokens": sum(sizes),
            "rows": rows,
            "encoding": "ids",
        }
