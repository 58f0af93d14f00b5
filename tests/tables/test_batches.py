"""Batches of chunks of any size."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.tables.dataset import batches
from freqsgd.tables.fields import Chunk, Position

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
