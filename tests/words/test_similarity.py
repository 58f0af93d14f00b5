"""Word similarity, against scipy and gensim."""

from __future__ import annotations

import numpy as np
import pytest

from freqsgd.errors import DataError, DataWarning
from freqsgd.runs.metrics import spearman
from freqsgd.words.similarity import read_pairs, word_similarity

WORDS = ["king", "queen", "cat", "tiger", "jaguar", "fbi", "Mars", "water"]
PAIRS = """# Two words and a mean
king\tqueen\t8.5
cat\ttiger\t7.3
cat\tjaguar\t7.3
FBI\twater\t0.5
Mars\twater\t2.9
MARS\twater\t9
king\tunheard-of\t5
queen\tqueen\t10
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A data folder with one of the two files; returns the file."""
    monkeypatch.setenv("FREQSGD_DATA", str(tmp_path))
    monkeypatch.setenv("FREQSGD_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "word-similarity" / "wordsim353.tsv"
    path.parent.mkdir()
    path.write_text(PAIRS)
    return path


@pytest.mark.parametrize("distinct", [3, 10, 1000])
def test_spearman_is_scipys_with_ties_too(distinct):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(distinct)
    for count in (3, 4, 50, 353):
        a, b = rng.integers(0, distinct, (2, count))
        b += a
        if len(set(a.tolist())) > 1 < len(set(b.tolist())):
            assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_correlations_that_mean_nothing():
    rising = np.arange(5.0)
    assert spearman(rising, rising**3) == 1
    assert spearman(rising, -rising) == -1
    assert spearman(rising, np.ones(5)) is None
    assert spearman(rising[:2], rising[:2]) is None
    assert spearman(rising, np.array([0, 1, np.nan, 2, 3])) is None


def test_cosines_of_covered_pairs_are_compared(files):
    stats = pytest.importorskip("scipy.stats")
    matrix = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    pairs = [("king", "queen"), ("cat", "tiger"), ("cat", "jaguar"), ("fbi", "water")]
    pairs += [("Mars", "water"), ("queen", "queen")]  # MARS is there neither so nor as mars
    vector = dict(zip(WORDS, matrix.astype(float), strict=True))
    cosines = [
        vector[a] @ vector[b] / np.linalg.norm(vector[a]) / np.linalg.norm(vector[b])
        for a, b in pairs
    ]
    expected = stats.spearmanr(cosines, [8.5, 7.3, 7.3, 0.5, 2.9, 10]).statistic
    found = word_similarity(WORDS, matrix)
    assert found == {
        "wordsim353": {"spearman": pytest.approx(expected), "pairs": 8, "covered": 6},
    }


def test_it_agrees_with_gensim(files):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(6)
    words = [word.lower() for word in WORDS]
    matrix = np.random.default_rng(1).normal(size=(len(words), 6)).astype(np.float32)
    keyed.add_vectors(words, matrix)
    _, (correlation, _), missing = keyed.evaluate_word_pairs(str(files))
    found = word_similarity(words, matrix)["wordsim353"]
    assert found["spearman"] == pytest.approx(correlation, abs=1e-6)
    assert 1 - found["covered"] / found["pairs"] == pytest.approx(missing / 100)


def test_vectors_that_say_nothing_have_no_score(files):
    for matrix in (np.ones((8, 3)), np.zeros((8, 3)), np.full((8, 3), np.nan)):
        found = word_similarity(WORDS, matrix.astype(np.float32))["wordsim353"]
        assert (found["spearman"], found["covered"]) == (None, 6)
    nothing = word_similarity(["other"], np.ones((1, 3), np.float32))
    assert nothing == {"wordsim353": {"spearman": None, "pairs": 8, "covered": 0}}


def test_without_files_there_are_no_scores(files):
    files.unlink()
    assert word_similarity(WORDS, np.ones((8, 3), np.float32)) == {}


def test_a_broken_file_is_named_and_left_out(files):
    files.write_text("king\tqueen\t8.5\nking\tqueen\n")
    with pytest.raises(DataError, match=r"wordsim353.tsv, line 2: expected two words and a number"):
        read_pairs(files)
    with pytest.warns(DataWarning, match="line 2"):
        assert word_similarity(WORDS, np.ones((8, 3), np.float32)) == {}
