"""A corpus: made of sentences in memory, and told from every other one."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from freqsgd.errors import DataError
from freqsgd.words import corpus as corpus_module
from freqsgd.words.corpus import Corpus, Paragraphs
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions
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


@pytest.mark.parametrize("seed", [0, 1])
def test_a_twentieth_is_held_out_for_each_part_by_its_seed(seed):
    given = [["a", "b", str(n)] for n in range(60)]
    corpus = Corpus.of_sentences(given, min_count=1, split_seed=seed)
    parts = [as_lists(part) for part in (corpus.train, corpus.validation, corpus.test)]
    assert [len(part) for part in parts] == [54, 3, 3]
    assert corpus.counts.sum() == 3 * 54
    other = Corpus.of_sentences(given, min_count=1, split_seed=1 - seed)
    assert corpus.fingerprint != other.fingerprint
    assert (
        corpus.fingerprint == Corpus.of_sentences(given, min_count=1, split_seed=seed).fingerprint
    )


# ---- fingerprints ------------------------------------------------------------------------------

PARTS = ("train", "validation", "test")


def paragraphs(words, seed):
    ids = np.random.default_rng(seed).integers(0, 5, words, np.int32)
    return Paragraphs(ids, np.arange(0, words + 1, 10), words)


def corpus_of(**changes):
    made = Corpus("c", list("abcde"), np.arange(5)[::-1], *(paragraphs(90, n) for n in range(3)))
    return replace(made, **changes)


@pytest.mark.parametrize("block", [7, 1 << 22])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("array", ["ids", "starts"])
def test_any_number_that_changes_changes_it(monkeypatch, block, part, array):
    monkeypatch.setattr(corpus_module, "_HASHED_AT_ONCE", block)
    corpus = corpus_of()
    numbers = getattr(getattr(corpus, part), array)
    seen = {corpus.fingerprint}
    for place in range(len(numbers)):
        changed = numbers.copy()
        changed[place] += 1
        other = replace(getattr(corpus, part), **{array: changed})
        seen.add(replace(corpus, **{part: other}).fingerprint)
    assert len(seen) == 1 + len(numbers)


def test_of_a_long_text_any_id_counts():
    ids = np.zeros(corpus_module._HASHED_AT_ONCE + 40_000, np.int32)
    fingerprint = corpus_of(train=Paragraphs(ids, np.array([0, len(ids)]), len(ids))).fingerprint
    for place in (1, 12_345, 2_000_001, corpus_module._HASHED_AT_ONCE, len(ids) - 2):
        changed = ids.copy()
        changed[place] = 1
        part = Paragraphs(changed, np.array([0, len(ids)]), len(ids))
        assert corpus_of(train=part).fingerprint != fingerprint


def test_words_counts_and_the_order_of_parts_count():
    corpus = corpus_of()
    others = [
        corpus_of(words=["a", "b", "c", "d", "f"]),
        corpus_of(words=["a", "b", "c", "d\ne"]),
        corpus_of(words=["a", "b", "c", "d", "\ud800"]),  # no UTF-8, as text of a program may be
        corpus_of(words=["a", "b", "c", "d", "\ud801"]),
        corpus_of(counts=np.array([4, 3, 2, 1, 1])),
        corpus_of(validation=corpus.test, test=corpus.validation),
        corpus_of(validation=paragraphs(0, 1)),
        corpus_of(validation=paragraphs(0, 1), test=paragraphs(0, 1)),
    ]
    assert len({corpus.fingerprint, *(other.fingerprint for other in others)}) == 9


def test_blocks_files_and_memory_make_no_difference(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("tea with milk or with sugar\n" * 19)
    options = TextOptions(path=str(tmp_path / "a.txt"))
    read = load_text(options)
    assert isinstance(read.train.ids, np.memmap)
    with (tmp_path / "a.txt").open() as lines:
        assert Corpus.of_sentences(lines).fingerprint == read.fingerprint
    monkeypatch.setattr(corpus_module, "_HASHED_AT_ONCE", 10)
    assert load_text(options).fingerprint == read.fingerprint
