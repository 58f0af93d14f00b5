"""Models of words: their vectors, exports and queries as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from freqsgd.nn.word2vec import CBOW, SkipGram
from freqsgd.vectors.export import export_model
from freqsgd.vectors.vectors import Vectors
from freqsgd.words.folder import save_words

WORDS = ["the", "king", "queen", "man", "woman", "日本", "word"]
COUNTS = np.array([1500, 40, 30, 20, 10, 5, 4])
FORMATS = ["safetensors", "npz", "word2vec-text", "word2vec-bin"]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The folder of a model of words."""
    folder = tmp_path_factory.mktemp("words") / "model"
    save_words(folder, SkipGram(7, 5), WORDS, COUNTS, {})
    return folder


def test_vectors_of_a_model_of_words(tmp_path):
    model = CBOW(7, 5, max_norm=0.5)
    save_words(tmp_path, model, WORDS, COUNTS, {})
    for field in (None, "word"):
        vectors = Vectors.of_model(tmp_path, field)
        assert (vectors.tokens, vectors.counts.tolist()) == (WORDS, COUNTS.tolist())
        assert np.array_equal(vectors.matrix, model.vectors.numpy())
    assert np.linalg.norm(vectors.matrix, axis=1).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("format", FORMATS)
def test_exports_are_read_back(words, freqsgd, tmp_path, format):
    told = freqsgd("export", words, "--format", format, "--out", tmp_path / "file")
    assert told.startswith(f"{tmp_path / 'file'}: ")
    expected, found = Vectors.of_model(words), Vectors.load(tmp_path / "file")
    assert found.tokens == WORDS
    assert np.array_equal(found.matrix, expected.matrix)
    if not format.startswith("word2vec"):
        assert found.name == "word"
        assert np.array_equal(found.counts, COUNTS)


@pytest.mark.parametrize("format", ["word2vec-text", "word2vec-bin"])
def test_gensim_reads_the_export(words, tmp_path, format):
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    export_model(words, format, tmp_path / "file")
    found = keyed.load_word2vec_format(tmp_path / "file", binary=format == "word2vec-bin")
    assert found.index_to_key == WORDS
    assert np.array_equal(found.vectors, Vectors.of_model(words).matrix)


@pytest.mark.parametrize("format", FORMATS)
def test_words_with_spaces(freqsgd, tmp_path, format):
    save_words(tmp_path / "m", SkipGram(2, 3), ["New York", "New_York"], np.array([2, 1]), {})
    command = ["export", tmp_path / "m", "--format", format, "--out", tmp_path / "file"]
    if format.startswith("word2vec"):
        assert "'New York' and 'New_York'" in freqsgd(*command, fails=True)
        assert not (tmp_path / "file").exists()
    else:
        freqsgd(*command)
        assert Vectors.load(tmp_path / "file").tokens == ["New York", "New_York"]


def test_what_export_refuses(words, freqsgd, tmp_path):
    out = ["--out", tmp_path / "file"]
    message = freqsgd("export", words, "--format", "onnx", *out, fails=True)
    assert "no ONNX graph" in message
    assert "word2vec-bin" in message
    message = freqsgd("export", words, "--format", "npz", "--field", "user", *out, fails=True)
    assert "no field 'user'" in message
    assert not list(tmp_path.iterdir())


def test_neighbors_need_no_field(words, freqsgd):
    told = freqsgd("neighbors", words, "king", "word", "--top", 3)
    first, second = told.split("\n\n")
    title, columns, *lines = first.splitlines()
    assert (title, columns.split()) == ("king", ["rank", "token", "cosine", "seen"])
    for line, one in zip(lines, Vectors.of_model(words).nearest(["king"], 3)[0], strict=True):
        assert line.split()[1:] == [one.token, f"{one.cosine:.4f}", f"{one.count:,}"]
    assert second.startswith("word\n")


def test_unknown_words_get_suggestions(words, freqsgd):
    message = freqsgd("neighbors", words, "King", fails=True)
    assert "no token 'King'; spelled alike: 'king'" in message
    assert "'woman'" in freqsgd("words", "analogy", words, "man", "king", "womann", fails=True)


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_vectors_can_be_asked_too(words, freqsgd, tmp_path, format):
    export_model(words, format, tmp_path / "file")
    told = json.loads(freqsgd("neighbors", tmp_path / "file", "king", "--json"))
    expected = json.loads(freqsgd("neighbors", words, "king", "--json"))
    if format.startswith("word2vec"):  # which holds no counts
        for one in expected[0]["neighbors"]:
            one["count"] = None
    assert told == expected


def test_an_analogy(words, freqsgd):
    told = freqsgd("words", "analogy", words, "man", "king", "woman", "--top", 2)
    title, columns, *lines = told.splitlines()
    assert title == "man : king = woman : ?"
    assert columns.split() == ["rank", "token", "cosine", "seen"]
    expected = Vectors.of_model(words).analogy("man", "king", "woman", 2)
    assert [line.split()[1] for line in lines] == [one.token for one in expected]
    as_json = json.loads(
        freqsgd("words", "analogy", words, "man", "king", "woman", "--top", 2, "--json")
    )
    assert as_json == [
        {"token": one.token, "cosine": one.cosine, "count": one.count} for one in expected
    ]


def test_what_queries_refuse(words, folders, freqsgd, tmp_path):
    assert "three tokens" in freqsgd("words", "analogy", words, "man", "king", fails=True)
    assert "--top" in freqsgd(
        "words", "analogy", words, "man", "king", "queen", "--top", 0, fails=True
    )
    assert "name a field, then tokens" in freqsgd("neighbors", folders / "fm", "u1", fails=True)
    assert f"{tmp_path} is not a model" in freqsgd("neighbors", tmp_path, "king", fails=True)
    export_model(folders / "fm", "npz", tmp_path / "file")
    assert "no field 'users'" in freqsgd("neighbors", tmp_path / "file", "users", "u1", fails=True)


def test_recommenders_name_the_field_first(folders, freqsgd, tmp_path):
    export_model(folders / "fm", "npz", tmp_path / "all")
    export_model(folders / "fm", "npz", tmp_path / "user", field="user")
    expected = freqsgd("words", "analogy", folders / "fm", "user", "u1", "u2", "u3")
    assert expected.startswith("u1 : u2 = u3 : ?\n")
    assert freqsgd("words", "analogy", tmp_path / "all", "user", "u1", "u2", "u3") == expected
    assert freqsgd("words", "analogy", tmp_path / "user", "u1", "u2", "u3") == expected
