"""The published files, where FREQSGD_DATA names a folder that holds them."""

from __future__ import annotations

from collections import Counter

import pytest

from freqsgd.inspection.document import inspect_data
from freqsgd.inspection.options import InspectionOptions
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from tests.tables.test_real_data import real_file


def test_movielens():
    lines = real_file("ml-1m/ratings.dat").read_text(encoding="latin-1").splitlines()
    users, movies = (Counter(line.split("::")[n] for line in lines) for n in (0, 1))
    document = inspect_data(InspectionOptions(dataset="movielens-1m"))
    found = {field.name: field for field in document.fields}
    for name, counts in (("user", users), ("movie", movies)):
        field = found[name]
        assert field.occurrences == document.dataset.rows == len(lines)
        assert field.tokens == len(counts)
        assert field.singletons == sum(count == 1 for count in counts.values())
        assert field.most_frequent[0][1] == max(counts.values())
        squares = sum((count / len(lines)) ** 2 for count in counts.values())
        assert field.effective_tokens == pytest.approx(1 / squares)
    assert document.tail_samples.of == len(lines)


def test_criteo_has_39_fields_and_the_tokens_that_training_has():
    real_file("criteo/train.txt")
    document = inspect_data(InspectionOptions(dataset="criteo", dim=16))
    names = [f"I{n}" for n in range(1, 14)] + [f"C{n}" for n in range(1, 27)]
    assert [field.name for field in document.fields] == names
    data = load(DataOptions(dataset="criteo"))
    assert document.memory["weights"] == 4 * 17 * data.tokens
    for field, its_counts in zip(document.fields, data.encoder.counts(), strict=True):
        assert 0 <= field.tokens - len(its_counts) <= 1  # one stands for all rare tokens
