"""The kernels alone, against loops over numpy arrays."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.kernels import lookup, rows

RNG = np.random.default_rng(0)


def table_of(**fields):
    table = np.zeros(1, rows.TABLE)
    for name, value in fields.items():
        table[name] = value.ctypes.data if isinstance(value, np.ndarray) else value
    return table


@pytest.mark.parametrize("dim", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("workers", [1, 3])
def test_an_update_of_strided_ids_with_padding_and_repeated_values(dim, kind, workers):
    """Ids in every second place, three to a row of values, as a pooled lookup has them."""
    weight = RNG.normal(size=(6, dim)).astype(kind)
    counts = np.array([5, 0, 2, 7, 1, 3], np.int32)
    ids = RNG.integers(0, 6, size=(12, 2))
    values = RNG.normal(size=(4, dim)).astype(kind)
    expected_counts, expected = counts.copy(), weight.astype(np.float64)
    for i in ids[:, 0]:
        expected_counts[i] += i != 2
    for place, i in enumerate(ids[:, 0]):
        if i != 2:
            rate = min(0.9, 0.1 / (expected_counts[i] / 20.0) ** 0.5)
            expected[i] -= rate * values[place // 3]
    table = table_of(
        weight=weight, counts=counts, source=counts, rows=6, dim=dim, padding=2,
        counted=ids, counted_stride=2, counted_len=12, ids=ids, ids_stride=2, ids_len=12,
        values=values, values_stride=dim, repeat=3,
        sign=1.0, lr=0.1, power=0.5, cap=0.9, n=20.0, added=12.0, unseen=1.0,
    )  # fmt: skip
    rows.update(table, kind, np.int32, np.int32, workers)
    np.testing.assert_array_equal(counts, expected_counts)
    np.testing.assert_allclose(weight, expected, rtol=1e-5 if kind == np.float32 else 1e-12)


@pytest.mark.parametrize("place", [0, 499, 999])
def test_find_bad_names_the_first_table_that_cannot_be_updated(place):
    values = [np.zeros((1000, 3), np.float32) for _ in range(3)]
    ids = [np.zeros(1000, np.int64) for _ in range(3)]
    tables = np.concatenate(
        [
            table_of(rows=5, dim=3, ids=i, ids_len=1000, values=v, values_stride=3)
            for i, v in zip(ids, values, strict=True)
        ]
    )
    for workers in (1, 2):
        assert rows.find_bad(tables, np.float32, workers) is None
        values[2][place, 1] = np.inf
        assert rows.find_bad(tables, np.float32, workers) == 2
        ids[1][place] = 5
        assert rows.find_bad(tables, np.float32, workers) == 1
        values[2][place, 1], ids[1][place] = 0.0, 0


@pytest.mark.parametrize("dim", [1, 8, 13])
@pytest.mark.parametrize("pooled", [False, True])
def test_a_lookup_with_padding(dim, pooled):
    weight = RNG.normal(size=(9, dim))
    ids = RNG.integers(0, 4, size=(300, 2))
    starts, sizes = np.array([0, 5]), np.array([5, 4])
    out = np.empty((300, dim) if pooled else (300, 2, dim))
    assert lookup.gather(weight, ids, starts, sizes, 3, pooled, out, 2) is None
    expected = weight[ids + starts]
    if pooled:
        expected = (expected * (ids != 3)[:, :, None]).sum(1)
    np.testing.assert_allclose(out, expected)
    ids[250, 1] = 4
    assert lookup.gather(weight, ids, starts, sizes, 3, pooled, out, 2) == 250 * 2 + 1


@pytest.mark.parametrize("length", [1, 2, 2047, 2048, 5001])
@pytest.mark.parametrize("dim", [3, 8, 17])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_check_sums_the_squares_of_each_column(length, dim, kind):
    values = RNG.normal(size=(length, dim)).astype(kind)
    ids = RNG.integers(0, 6, size=length)
    table = table_of(rows=6, dim=dim, ids=ids, ids_len=length, values=values, values_stride=dim)
    expected = (values.astype(np.float64) ** 2).sum(0)
    results = []
    for workers in (1, 2):
        sums = np.zeros((rows.parts_of(table), dim))
        table["squares"], table["squares_stride"] = sums.ctypes.data, dim
        assert rows.find_bad(table, kind, workers) is None
        results.append(sums.sum(0))
    np.testing.assert_allclose(results[0], expected, rtol=1e-12)
    np.testing.assert_array_equal(results[0], results[1])
