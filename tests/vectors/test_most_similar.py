"""Sums of vectors and analogies, as gensim has them."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.vectors.vectors import Vectors


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
    for nothing in ((), ([],), ([], [])):
        with pytest.raises(DataError, match="no token was given"):
            some.most_similar(*nothing)
    for vector in (some["w1"], some.matrix, 3, [None]):
        with pytest.raises(TypeError, match="must be text, got"):
            some.most_similar(vector)
    with pytest.raises(ValueError, match="top must be at least 1"):
        some.most_similar("w1", top=0)
    with pytest.raises(TypeError, match="top must be a whole number"):
        some.nearest("w1", top=2.5)


def test_vectors_by_token(some):
    assert np.array_equal(some["w7"], some.matrix[7])
    assert "w7" in some
    assert "W7" not in some
    with pytest.raises(KeyError) as error:
        some["W7"]
    assert str(error.value).startswith("there is no token 'W7'; spelled alike: 'w7'")
    with pytest.raises(TypeError, match="must be text, got int"):
        some[7]


def test_several_vectors_by_their_tokens(some):
    for tokens in (["w7", "w2", "w7"], ("w7", "w2", "w7"), np.array(["w7", "w2", "w7"])):
        assert np.array_equal(some[tokens], some.matrix[[7, 2, 7]])
    assert some[[]].shape == (0, 7)


def test_tokens_are_counted_gone_through_and_plain_text(some):
    assert (len(some), list(some)) == (60, some.tokens)
    vectors = Vectors(np.array(["a", "b"]), np.eye(2, dtype=np.float32))
    assert vectors.tokens == ["a", "b"]
    assert {type(token) for token in vectors.tokens} == {str}
    with pytest.raises(TypeError, match="texts"):
        Vectors(["a", 5], np.eye(2, dtype=np.float32))


def test_writing_to_what_was_asked_for_changes_nothing(some):
    before = some.nearest(["w7"])
    for mine in (some["w7"], some[["w7", "w8"]]):
        mine *= -3
    assert some.nearest(["w7"]) == before
    assert np.array_equal(some["w7"], some.matrix[7])


def test_similarity_is_gensims(some):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(7)
    keyed.add_vectors(some.tokens, some.matrix)
    for a, b in (("w1", "w2"), ("w8", "w30"), ("w5", "w5")):
        found = some.similarity(a, b)
        assert type(found) is float
        assert found == pytest.approx(keyed.similarity(a, b), abs=1e-6)
    with pytest.raises(KeyError, match="spelled alike"):
        some.similarity("w1", "W2")


def test_negative_words_alone_and_bare_words(some):
    alone = some.most_similar(negative="w7", top=3)
    assert alone == some.most_similar([], ["w7"], 3)
    assert some.nearest("w7") == some.nearest(["w7"])


def test_the_lower_case_is_suggested_however_rare_it_is():
    count = 100_002  # of which the last are too many for a search of spellings
    tokens = [f"w{number}" for number in range(count - 1)] + ["zürich"]
    with pytest.raises(DataError, match="spelled alike: 'zürich'"):
        Vectors(tokens, np.ones((count, 1), np.float32)).nearest(["Zürich"])
