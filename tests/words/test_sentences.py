"""Sentences in memory."""

from __future__ import annotations

import random

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.words.corpus import Corpus
from tests.words.test_text_files import as_lists, slow_ids


def sentences(seed):
    draw = random.Random(seed)
    words = [f"w{n}" for n in range(40)]
    weights = [1 / (n + 1) for n in range(40)]
    return [draw.choices(words, weights, k=draw.choice([0, 1, 5, 30])) for _ in range(60)]


@pytest.mark.parametrize("options", [{}, {"min_count": 1}, {"min_count": 3, "max_vocab": 9}])
def test_words_and_ids_are_those_of_plain_python(options):
    given = sentences(1)
    corpus = Corpus.of_sentences((sentence for sentence in given), longest=7, **options)
    pieces = [s[n : n + 7] for s in given for n in range(0, len(s), 7)]
    words, counts, ids = slow_ids(pieces, pieces, **{"min_count": 5, **options})
    assert corpus.words == words
    assert corpus.counts.tolist() == counts
    assert as_lists(corpus.train) == ids
    assert corpus.train.raw_words == sum(map(len, given))
    assert len(corpus.validation) == len(corpus.test) == 0
    assert corpus.train.ids.dtype == np.int32
    assert corpus.train.starts.dtype == np.int64


def test_texts_are_split_at_white_space_and_words_may_hold_some():
    texts = ["tea  with\tmilk", "with sugar "]
    lists = [["tea", "with", "milk"], ("with", "sugar")]
    one, other = (Corpus.of_sentences(given, min_count=1) for given in (texts, lists))
    assert one.words == other.words == ["with", "tea", "milk", "sugar"]
    assert one.fingerprint == other.fingerprint
    phrases = Corpus.of_sentences([["New York", "tea"], np.array(["tea"])], min_count=1)
    assert phrases.words == ["tea", "New York"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a b", ["a", 3]], "sentence 2 has a word that is not text: 3"),
        ([["a"], ["a", None]], "sentence 2 has a word that is not text: None"),
        ([b"a b"], "sentence 1 has a word that is not text: 97"),
        ([["a", ["b"]]], "sentence 1 is not a list of words"),
        (["a", 5], "sentence 2 is not a list of words"),
        ("a text", "a list of sentences, not one text"),
        ([], "text: there are no words in it"),
        ([[], " "], "text: there are no words in it"),
        (["a a b"], "no word is seen 5 times.* its 2 distinct words, 'a', is seen 2 times"),
        (["a a a a a b"], "one word only, 'a'.* Lower the min count"),
        (["a a a a a"], "one word only, 'a'; at least two are needed to learn from$"),
    ],
)
def test_what_cannot_be_used_is_named(given, message):
    with pytest.raises(DataError, match=message):
        Corpus.of_sentences(given)


@pytest.mark.parametrize("option", [{"min_count": 0}, {"max_vocab": 1}, {"longest": 1}])
def test_options_have_a_least_value(option):
    with pytest.raises(DataError, match=f"{next(iter(option))} must be at least"):
        Corpus.of_sentences(["a b"], **option)
