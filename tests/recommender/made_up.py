"""A small dataset whose labels follow its tokens."""

from __future__ import annotations

import numpy as np

from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Field, Splits


def dataset(rows=3000, sizes=(60, 40), seed=0, name="made-up"):
    rng = np.random.default_rng(seed)
    ids = np.stack([np.minimum(rng.geometric(0.08, rows) - 1, s - 1) for s in sizes], 1)
    truth = sum(rng.normal(0, 1, s)[ids[:, f]] for f, s in enumerate(sizes))
    labels = (rng.random(rows) < 1 / (1 + np.exp(-truth))).astype(np.uint8)
    order = rng.permutation(rows)
    cuts = int(0.8 * rows), int(0.9 * rows)
    splits = Splits(*(np.sort(part) for part in np.split(order, cuts)))
    fields = tuple(Field(f"field{f}", s) for f, s in enumerate(sizes))
    return Dataset(name, fields, np.ascontiguousarray(ids, np.int32), labels, splits)
