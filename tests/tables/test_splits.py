from __future__ import annotations

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.tables.fields import split_at_random, split_by_part, split_by_time, split_column


def rows_of(splits):
    return [part.tolist() for part in (splits.train, splits.validation, splits.test)]


@pytest.mark.parametrize("rows", [10, 19, 1234])
def test_a_random_split_gives_a_tenth_to_each_held_out_part_and_every_row_to_one(rows):
    parts = rows_of(split_at_random(rows, seed=3))
    assert [len(part) for part in parts] == [rows - 2 * (rows // 10), rows // 10, rows // 10]
    assert sorted(row for part in parts for row in part) == list(range(rows))
    assert all(part == sorted(part) for part in parts)


def test_a_random_split_is_cut_from_numpys_permutation():
    order = np.random.Generator(np.random.PCG64(7)).permutation(100)
    parts = rows_of(split_at_random(100, seed=7))
    assert parts == [sorted(order[:80]), sorted(order[80:90]), sorted(order[90:])]


def test_a_part_with_a_file_of_its_own_is_not_drawn():
    train, validation, test = rows_of(split_at_random(50, seed=0, own=(0, 7)))
    assert test == list(range(50, 57))
    assert len(validation) == 5
    assert sorted(train + validation) == list(range(50))
    train, validation, test = rows_of(split_at_random(50, seed=0, own=(3, 7)))
    assert (train, validation) == (list(range(50)), [50, 51, 52])
    assert test == list(range(53, 60))


def test_by_time_the_newest_tenth_is_for_testing_and_ties_keep_their_order():
    times = np.array([5.0] * 10 + [9.0] * 2 + [1.0] * 8)
    train, validation, test = rows_of(split_by_time(times))
    assert test == [10, 11]
    assert validation == [8, 9]
    assert train == [*range(8), *range(12, 20)]


def test_by_part_every_part_must_have_rows():
    assert rows_of(split_by_part(np.array([0.0, 2, 1, 0]))) == [[0, 3], [2], [1]]
    with pytest.raises(DataError, match="no row is marked test"):
        split_by_part(np.array([0.0, 1, 1]))


def test_too_few_rows_to_split_are_refused():
    with pytest.raises(DataError, match="9 rows are too few to split: at least 10 are needed"):
        split_at_random(9, seed=0)


def test_a_split_names_its_column():
    assert split_column("random") == ("random", "")
    assert split_column("time:a:b") == ("time", "a:b")
    assert split_column("column:part") == ("column", "part")
    for wrong in ("time", "time:", "rows:x", "column"):
        with pytest.raises(DataError, match="use random, time:COLUMN or column:COLUMN"):
            split_column(wrong)
