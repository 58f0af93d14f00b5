"""Sums of vectors and analogies, as gensim has them."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.data.dataset import DataError
from freqsgd.export import Vectors


@pytest.fixture
def some():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(60, 7)).astype(np.float32)
    matrix *= rng.uniform(0.1, 20, (60, 1)).astype(np.float32)  # whose lengths must not count
    return Vectors([f"w{number}" for number in range(60)], matrix, np.arange(60))


@pytest.mark.parametrize(
    ("positive", "negative"),
    [
        (["w1"], []),
        (["w1", "w2"], ["w3"]),
        (["w1", "w1", "w2"], ["w3", "w4", "w3"]),
        ([], ["w7"]),
    ],
)
@pytest.mark.parametrize("top", [1, 10, 100])
def test_it_finds_what_gensim_finds(some, positive, negative, top):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(7)
    keyed.add_vectors(some.tokens, some.matrix)
    expected = keyed.most_similar(positive=positive, negative=negative, topn=top)
    found = some.most_similar(positive, negative, top)
    assert [one.token for one in found] == [token for token, _ in expected]
    assert [one.cosine for one in found] == pytest.approx([c for _, c in expected], abs=1e-5)
    assert all(one.count == int(one.token[1:]) for one in found)


def test_an_analogy_against_a_slow_search(some):
    unit = {token: row / np.linalg.norm(row) for token, row in zip(*parts(some), strict=True)}
    query = unit["w5"] - unit["w4"] + unit["w6"]
    query /= np.linalg.norm(query)
    cosines = {token: float(row @ query) for token, row in unit.items()}
    expected = sorted(set(cosines) - {"w4", "w5", "w6"}, key=lambda token: -cosines[token])
    found = some.analogy("w4", "w5", "w6", top=57)
    assert [one.token for one in found] == expected
    assert [one.cosine for one in found] == pytest.approx([cosines[t] for t in expected], abs=1e-5)


def parts(vectors):
    return vectors.tokens, vectors.matrix.astype(float)


def test_an_analogy_that_is_known():
    rows = np.float32([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [-1, 0.5, 0.2]])
    words = Vectors(["man", "king", "woman", "queen", "cabbage"], rows)
    assert words.analogy("man", "king", "woman")[0].token == "queen"
    assert [one.token for one in words.analogy("man", "king", "woman")] == ["queen", "cabbage"]


def test_one_token_alone_is_its_neighbours(some):
    assert some.most_similar("w3", top=5) == some.nearest(["w3"], 5)[0]


def test_what_is_refused(some):
    with pytest.raises(DataError, match="no token 'W3'; spelled alike: 'w3'"):
        some.most_similar("w1", "W3")
    with pytest.raises(DataError, match="nothing is left"):
        some.most_similar(["w1", "w2"], ["w2", "w1"])
    with pytest.raises(DataError, match="nothing is left"):
        some.most_similar([])
    with pytest.raises(ValueError, match="top"):
        some.most_similar("w1", top=0)


def test_vectors_by_token(some):
    assert np.array_equal(some["w7"], some.matrix[7])
    assert "w7" in some
    assert "W7" not in some
    with pytest.raises(KeyError) as error:
        some["W7"]
    assert str(error.value).startswith("there is no token 'W7'; spelled alike: 'w7'")


def test_the_lower_case_is_suggested_however_rare_it_is():
    count = 100_002  # of which the last are too many for a search of spellings
    tokens = [f"w{number}" for number in range(count - 1)] + ["zürich"]
    with pytest.raises(DataError, match="spelled alike: 'zürich'"):
        Vectors(tokens, np.ones((count, 1), np.float32)).nearest(["Zürich"])
