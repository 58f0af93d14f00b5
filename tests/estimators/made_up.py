"""Small samples whose classes follow their categories."""

from __future__ import annotations

import numpy as np


def clicks(rows=600, sizes=(12, 8), seed=0):
    """Columns of tokens "u3", "i5" and labels."""
    rng = np.random.default_rng(seed)
    ids = np.stack([np.minimum(rng.geometric(0.25, rows) - 1, s - 1) for s in sizes], 1)
    truth = sum(
        np.random.default_rng(9 + f).normal(0, 2, s)[ids[:, f]] for f, s in enumerate(sizes)
    )
    labels = rng.random(rows) < 1 / (1 + np.exp(-truth))
    X = np.array([[f"{'ui'[f]}{i}" for f, i in enumerate(row)] for row in ids], dtype=object)
    return X, labels.astype(int)
