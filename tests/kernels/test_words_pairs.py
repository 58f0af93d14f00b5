from __future__ import annotations

import numpy as np
import pytest

from freqsgd.kernels.words.pairs import pair_products


@pytest.mark.parametrize("dim", [1, 7, 8, 16, 23, 24, 300])
@pytest.mark.parametrize("workers", [1, 3])
def test_products_of_pairs_are_those_of_numpy(dim, workers):
    draw = np.random.default_rng(dim)
    left, right = (draw.normal(size=(n, dim)).astype(np.float32) for n in (5, 9))
    rows, columns = draw.integers(0, 5, 10_000), draw.integers(0, 9, 10_000)
    found = pair_products(left, rows, right, columns, workers)
    expected = (left.astype(np.float64) @ right.T.astype(np.float64))[rows, columns]
    np.testing.assert_allclose(found, expected, atol=1e-5 * dim)


def test_no_pairs_give_no_products():
    rows = np.empty(0, np.int64)
    assert (
        len(pair_products(np.ones((1, 3), np.float32), rows, np.ones((1, 3), "f4"), rows, 2)) == 0
    )
