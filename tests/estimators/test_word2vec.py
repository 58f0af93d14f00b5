"""Word2Vec: a short surface over the training, the vectors and the folders of words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import freqsgd
from freqsgd import Word2Vec
from freqsgd.cli.app import run
from freqsgd.errors import DataError
from freqsgd.optimizers import Rule
from freqsgd.runs import checkpoint
from freqsgd.words.corpus import Corpus
from freqsgd.words.settings import TextSettings
from freqsgd.words.training import fit_text

ANIMALS, FOODS, PLACES = ["cat", "dog", "cow"], ["milk", "fish", "corn"], ["barn", "field", "den"]
SMALL = {"dim": 12, "window": 2, "seed": 3, "threads": 1}


def sentences(count=600):
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 3, (count, 3)).tolist()
    return [f"the {ANIMALS[a]} eats {FOODS[f]} in the {PLACES[p]}" for a, f, p in drawn]


@pytest.fixture(scope="module")
def fitted():
    return Word2Vec(**SMALL).fit(sentences())


@pytest.mark.parametrize("optimizer", ["cfsgd", "cfadam"])
@pytest.mark.parametrize("loss", ["softmax", "negative"])
@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_words_in_like_places_become_alike(model, loss, optimizer):
    given = {"lr": 0.01, "max_lr": 0.1} if (loss, optimizer) == ("negative", "cfsgd") else {}
    words = Word2Vec(**SMALL, **given, model=model, loss=loss, optimizer=optimizer, epochs=20)
    words.fit(sentences())
    for group in (ANIMALS, FOODS):
        first, *others = group
        assert {near.token for near in words.most_similar(first, top=2)} == set(others)


@pytest.mark.parametrize("loss", ["softmax", "negative"])
def test_it_is_the_same_training_as_everywhere(loss):
    words = Word2Vec(**SMALL, loss=loss, optimizer="sgd", lr=0.02, epochs=2, min_count=150)
    words.fit(sentences())
    corpus = Corpus.of_sentences(sentences(), min_count=150)
    settings = TextSettings(loss=loss, dim=12, window=2, windows="all", seed=3, epochs=2)
    model, record = fit_text(corpus, Rule("sgd", 0.02), settings, threads=1)
    assert words.words == corpus.words
    assert np.array_equal(words.vectors.matrix, model.vectors.numpy())
    assert np.array_equal(words.vectors.counts, corpus.counts)
    assert words.record["options"] == record["options"]


def test_lists_texts_and_generators_are_the_same(fitted):
    for same in ([text.split() for text in sentences()], (text for text in sentences())):
        found = Word2Vec(**SMALL).fit(same)
        assert np.array_equal(found.vectors.matrix, fitted.vectors.matrix)


def test_the_vocabulary_is_as_asked_for():
    words = Word2Vec(**SMALL, epochs=1, max_vocab=4).fit(sentences())
    assert words.words[0] == "the"
    assert len(words.words) == 4
    rare = Word2Vec(**SMALL, epochs=1, min_count=6).fit([*sentences(), *["once seen"] * 5])
    assert "once" not in rare


def test_a_second_fit_begins_anew(fitted):
    again = Word2Vec(**SMALL).fit(["one two three four"] * 50).fit(sentences())
    assert again.words == fitted.words
    assert np.array_equal(again.vectors.matrix, fitted.vectors.matrix)


def test_a_fit_that_fails_leaves_what_was_there():
    words = Word2Vec(**SMALL, epochs=1).fit(sentences())
    before = words["cat"].copy()
    for bad in ([], ["word"], "one text", [["cat", 5]] * 9, [b"cat dog"] * 9):
        with pytest.raises(DataError):
            words.fit(bad)
    words.optimizer, words.lr = "rowwise-adagrad", 1e30
    with pytest.raises(DataError, match="try a smaller learning rate"):
        words.fit(sentences())
    assert np.array_equal(words["cat"], before)


def test_vectors_by_word(fitted):
    assert "cat" in fitted
    assert "Cat" not in fitted
    assert fitted["cat"].shape == (12,)
    assert fitted.most_similar("cat", top=3) == fitted.vectors.nearest(["cat"], 3)[0]
    assert fitted.most_similar(["cat", "milk"], "the", 3) == fitted.vectors.most_similar(
        ["cat", "milk"], ["the"], 3
    )
    with pytest.raises(KeyError, match="spelled alike: 'cat'"):
        fitted["Cat"]
    with pytest.raises(DataError, match="spelled alike: 'cat'"):
        fitted.most_similar("catt")


@pytest.mark.parametrize(
    "use",
    [
        lambda words: words.vectors,
        lambda words: words.words,
        lambda words: words.record,
        lambda words: words["cat"],
        lambda words: "cat" in words,
        lambda words: words.most_similar("cat"),
        lambda words: words.save("nowhere"),
    ],
)
def test_before_fit_there_is_nothing(use):
    with pytest.raises(DataError, match="call fit"):
        use(Word2Vec())


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"vector_size": 50}, TypeError, "vector_size"),
        ({"model": "glove"}, ValueError, "known: cbow, skipgram"),
        ({"loss": "hinge"}, ValueError, "known: softmax, negative"),
        ({"optimizer": "adamw"}, ValueError, "known: sgd"),
        ({"optimizer": "adam"}, DataError, "loss softmax"),
        ({"dim": 0}, ValueError, "dim"),
        ({"subsample": 2}, ValueError, "subsample"),
    ],
)
def test_wrong_options_are_refused_at_once(options, error, said):
    with pytest.raises(error, match=said):
        Word2Vec(**options)


@pytest.mark.parametrize("options", [{}, {"model": "cbow", "loss": "softmax", "lr": 0.5}])
def test_a_folder_gives_it_back(tmp_path, options):
    words = Word2Vec(**SMALL, **options, max_vocab=9, epochs=1).fit(sentences())
    words.save(tmp_path / "model")
    state = torch.get_rng_state()
    loaded = Word2Vec.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)
    assert repr(loaded) == repr(words).replace("threads=1", "threads=None")
    assert (loaded.words, loaded.record) == (words.words, words.record)
    assert np.array_equal(loaded.vectors.matrix, words.vectors.matrix)
    assert np.array_equal(loaded.vectors.counts, words.vectors.counts)
    with pytest.raises(DataError, match="holds a model already"):
        loaded.save(tmp_path / "model")
    loaded.save(tmp_path / "copy")
    (_, one), (_, other) = (
        checkpoint.load(tmp_path / name / "model.safetensors") for name in ("model", "copy")
    )
    assert one == other


def test_the_commands_read_its_folder(fitted, tmp_path, monkeypatch, capsys):
    fitted.save(tmp_path)
    monkeypatch.setattr(sys, "argv", ["freqsgd", "neighbors", str(tmp_path), "cat", "--top", "1"])
    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 0
    assert capsys.readouterr().out.split()[-3] == fitted.most_similar("cat", top=1)[0].token


def test_it_reads_the_folders_of_training_runs(tmp_path):
    corpus = Corpus.of_sentences(sentences())
    settings = TextSettings(model="cbow", loss="softmax", dim=6, max_norm=0.5, window=2, epochs=2)
    model, record = fit_text(corpus, Rule("adam", 0.02), settings, threads=1, folder=tmp_path)
    loaded = Word2Vec.load(tmp_path)
    assert np.array_equal(loaded.vectors.matrix, model.vectors.numpy())
    assert (loaded.optimizer, loaded.lr, loaded.model, loaded.dim) == ("adam", 0.02, "cbow", 6)
    assert loaded.record == record
    loaded.save(tmp_path / "copy")
    for one in (loaded, Word2Vec.load(tmp_path / "copy")):
        with pytest.raises(DataError, match=r"trained by other means.*make a new Word2Vec"):
            one.fit(sentences())


def test_a_loaded_one_is_fitted_with_its_own_options(fitted, tmp_path):
    fitted.save(tmp_path)
    again = Word2Vec.load(tmp_path).fit(sentences())
    assert np.array_equal(again.vectors.matrix, fitted.vectors.matrix)


def test_without_what_it_needs_it_says_what_to_install():
    code = "import sys; sys.modules['polars'] = None; import freqsgd; freqsgd.Word2Vec"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "freqsgd.Word2Vec needs polars: pip install 'freqsgd[text]'" in told.stderr
    assert "Word2Vec" not in vars(freqsgd)


@pytest.mark.parametrize("name", ["dim", "window", "epochs", "batch_size", "negatives", "threads"])
@pytest.mark.parametrize("value", [1.5, 8.0, "8", True, 0, -1, 2**31])
def test_whole_numbers_are_checked(name, value):
    kind = ValueError if type(value) is int else TypeError
    with pytest.raises(kind, match=f"{name} must be .*, got"):
        Word2Vec(**{name: value})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"min_count": 0}, ValueError),
        ({"min_count": 2.5}, TypeError),
        ({"min_count": None}, TypeError),
        ({"max_vocab": 1}, ValueError),
        ({"threads": 5000}, ValueError),
        ({"seed": None}, TypeError),
        ({"seed": -1}, ValueError),
        ({"lr": "x"}, TypeError),
        ({"lr": True}, TypeError),
        ({"lr": -0.1}, ValueError),
        ({"max_lr": "x"}, TypeError),
        ({"subsample": None}, TypeError),
    ],
)
def test_other_numbers_are_checked(options, error):
    with pytest.raises(error, match=f"{next(iter(options))} must"):
        Word2Vec(**options)


def test_numbers_of_numpy_are_as_good(tmp_path):
    whole = {"dim": 5, "window": 2, "epochs": 2, "min_count": 1, "seed": 3, "batch_size": 64}
    real = {"lr": 0.015625, "max_lr": 0.125, "subsample": 0.25}
    plain = Word2Vec(**whole, **real).fit(sentences())
    as_numpy = {name: np.int16(value) for name, value in whole.items()}
    words = Word2Vec(**as_numpy, **{name: np.float32(value) for name, value in real.items()})
    assert repr(words) == repr(plain)
    words.fit(sentences()).save(tmp_path)
    assert np.array_equal(Word2Vec.load(tmp_path).vectors.matrix, plain.vectors.matrix)


def test_softmax_has_its_own_defaults():
    words = Word2Vec(**SMALL, loss="softmax", batch_size=50).fit(sentences(100))
    assert words.record["options"]["settings"]["epochs"] == 20
    assert words.record["batch_size"] == 50
    assert Word2Vec(**SMALL).fit(sentences(100)).record["options"]["settings"]["epochs"] == 5


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (["the", "cat", "sat"] * 9, DataError, "each of the 27 texts is a sentence"),
        ("the cat sat", DataError, "a list of sentences, not one text"),
        (b"the cat sat", TypeError, "a list of sentences, got b'the"),
        (None, TypeError, "a list of sentences, got None"),
        (Path("text.txt"), TypeError, r"text\.txt'\): open it"),
        ([["a", "b"], ["b", "\ud800c"]], DataError, r"sentence 2 .* surrogate\): '\\ud800c'"),
    ],
)
def test_what_is_not_a_list_of_sentences_is_named(given, error, said):
    with pytest.raises(error, match=said):
        Word2Vec(**SMALL).fit(given)


def test_words_are_plain_text():
    arrays = [np.array(sentence.split()) for sentence in sentences(50)]
    words = Word2Vec(**SMALL, epochs=1, min_count=1).fit(arrays)
    assert {type(word) for word in words.words} == {str}


def test_words_are_counted_gone_through_and_compared(fitted):
    assert (len(fitted), list(fitted)) == (len(fitted.words), fitted.words)
    assert np.array_equal(fitted[["cat", "dog"]], [fitted["cat"], fitted["dog"]])
    cat, dog = fitted[["cat", "dog"]].astype(float)
    cosine = cat @ dog / np.linalg.norm(cat) / np.linalg.norm(dog)
    assert fitted.similarity("cat", "dog") == pytest.approx(cosine, abs=1e-6)
    assert fitted.most_similar(negative=["cat"], top=2) == fitted.most_similar([], "cat", 2)
    with pytest.raises(TypeError, match="must be text"):
        fitted.most_similar(fitted["cat"])


@pytest.mark.parametrize("use", [len, list, lambda words: words.similarity("cat", "dog")])
def test_before_fit_there_is_nothing_to_count(use):
    with pytest.raises(DataError, match="call fit"):
        use(Word2Vec())
