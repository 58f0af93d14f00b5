"""A fingerprint tells a text from every other one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freqsgd.words import corpus as corpus_module
from freqsgd.words.corpus import Corpus, Paragraphs
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

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
