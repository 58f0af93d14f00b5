"""Splits of a dataset, and batches of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.tables.dataset import batches
from freqsgd.tables.fields import (
    Chunk,
    Position,
    split_at_random,
    split_by_part,
    split_by_time,
    split_column,
)


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


# Two days, three files; malformed rows, which have numbers but are no examples.
FILES = [(0, range(1, 8), (3,)), (0, range(1, 2), ()), (1, range(1, 13), (1, 9, 12))]


def chunks(size):
    """All examples, so many rows of a file at a time."""
    dropped = 0
    for file, (day, numbers, bad) in enumerate(FILES):
        for start in range(0, len(numbers), size):
            some = numbers[start : start + size]
            good = np.array([number for number in some if number not in bad], np.int64)
            malformed = np.array([number for number in some if number in bad], np.int64)
            dropped += len(malformed)
            ids = np.stack([good + 100 * file, good], axis=1).astype(np.int32)
            labels = (good % 2).astype(np.uint8)
            yield Chunk(ids, labels, day, file, good, 0.5, dropped, malformed)


def flat(size):
    """Every example: ids, label, day, position."""
    return [
        (chunk.ids[row].tolist(), int(chunk.labels[row]), chunk.day, chunk.position(row))
        for chunk in chunks(size)
        for row in range(len(chunk.labels))
    ]


def together(arrays):
    return np.concatenate(list(arrays)).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 16, 17])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100])
def test_batches_have_their_size_whatever_the_chunks(rows, size):
    examples, found = flat(1), list(batches(chunks(rows), size))
    assert [len(batch.labels) for batch in found[:-1]] == [size] * (len(found) - 1)
    assert 1 <= len(found[-1].labels) <= size
    assert together(batch.ids for batch in found) == [each[0] for each in examples]
    assert together(batch.labels for batch in found) == [each[1] for each in examples]
    assert together(batch.days for batch in found) == [each[2] for each in examples]
    ends = np.cumsum([len(batch.labels) for batch in found]) - 1
    assert [batch.position for batch in found] == [examples[end][3] for end in ends]
    assert all(batch.ids.flags.c_contiguous for batch in found)


def test_positions_count_the_malformed_rows_before_them():
    examples = flat(100)
    assert examples[1][3] == Position(0, 2, 0)
    assert examples[2][3] == Position(0, 4, 1)
    assert examples[-1][3] == Position(2, 11, 3)
    assert flat(1) == flat(3) == examples


def test_a_batch_within_a_chunk_is_no_copy():
    (chunk,) = list(chunks(100))[:1]
    first, second, _ = batches([chunk], 2)
    assert np.shares_memory(first.ids, chunk.ids)
    assert np.shares_memory(second.labels, chunk.labels)


def test_no_examples_no_batches():
    assert list(batches([], 4)) == []
