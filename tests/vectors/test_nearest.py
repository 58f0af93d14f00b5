"""Nearest tokens, against a slow search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.vectors import vectors
from freqsgd.vectors.vectors import Vectors


def slow_nearest(tokens, matrix, token, top):
    """All cosines in double precision, one by one."""
    query = matrix[tokens.index(token)].tolist()
    found = []
    for other, row in zip(tokens, matrix.tolist(), strict=True):
        if other == token or not any(row):
            continue
        lengths = math.hypot(*query) * math.hypot(*row)
        found.append((sum(a * b for a, b in zip(query, row, strict=True)) / lengths, other))
    return sorted(found, reverse=True)[:top]


@pytest.fixture
def some():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(60, 7)).astype(np.float32)
    matrix[[0, 17, 59]] = 0
    matrix[5] *= np.float32(1e30)  # whose square is no float32
    matrix[6] *= np.float32(1e-30)
    return Vectors([f"t{number}" for number in range(60)], matrix, np.arange(60) - 1)


@pytest.mark.parametrize("at_once", [1, 200, 1 << 24])
@pytest.mark.parametrize("top", [1, 4, 100])
def test_it_finds_what_a_slow_search_finds(some, monkeypatch, at_once, top):
    monkeypatch.setattr(vectors, "_AT_ONCE", at_once)
    queries = ["t3", "t5", "t6", "t58", "t3", *(f"t{number}" for number in range(20, 30))]
    for token, near in zip(queries, some.nearest(queries, top), strict=True):
        expected = slow_nearest(some.tokens, some.matrix, token, top)
        assert len(near) == min(top, 56)
        assert [one.token for one in near] == [other for _, other in expected]
        assert [one.cosine for one in near] == pytest.approx([c for c, _ in expected], abs=1e-6)


def test_counts_are_told_where_they_are_known(some):
    found = {one.token: one.count for one in some.nearest(["t3"], 60)[0]}
    assert found["t41"] == 40
    assert found["t1"] == 0
    unknown = Vectors(some.tokens, some.matrix).nearest(["t3"], 1)[0][0]
    assert unknown.count is None


def test_equal_vectors_have_a_cosine_of_one():
    rows = np.float32([[0.1, 0.7, 0.3]] * 3 + [[-0.1, -0.7, -0.3]])
    near = Vectors(["a", "b", "c", "d"], rows).nearest(["b"])[0]
    assert {one.token for one in near[:2]} == {"a", "c"}
    assert max(one.cosine for one in near) <= 1.0
    assert min(one.cosine for one in near) == pytest.approx(-1)


def test_a_token_alone_has_no_neighbours():
    assert Vectors(["a"], np.ones((1, 2), np.float32)).nearest(["a"]) == [[]]
    assert Vectors(["a"], np.ones((1, 2), np.float32)).nearest([]) == []


def test_unknown_and_untrained_tokens_are_refused(some):
    with pytest.raises(DataError, match="no token 't9x'; spelled alike: 't9'"):
        some.nearest(["t1", "t9x"])
    with pytest.raises(DataError, match="no token 'something else' among 60"):
        some.nearest(["something else"])
    with pytest.raises(DataError, match=r"'t59' .* not in the training rows"):
        some.nearest(["t59"])


def test_parts_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="3 vectors, 2 tokens"):
        Vectors(["a", "b"], np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="1 counts"):
        Vectors(["a", "b"], np.ones((2, 2), np.float32), np.ones(1, np.int64))
    with pytest.raises(ValueError, match="float64"):
        Vectors(["a", "b"], np.ones((2, 2)))
    with pytest.raises(ValueError, match="top"):
        Vectors(["a", "b"], np.ones((2, 2), np.float32)).nearest(["a"], 0)
