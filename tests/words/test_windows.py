from __future__ import annotations

import numpy as np
import pytest

from freqsgd.words.corpus import Paragraphs
from freqsgd.words.windows import cbow_samples, kept_share, skipgram_samples, subsample, take


def text_of(*paragraphs):
    ids = np.array([k for paragraph in paragraphs for k in paragraph], np.int32)
    starts = np.cumsum([0, *map(len, paragraphs)])
    return Paragraphs(ids, starts, len(ids))


def random_paragraphs(seed=0):
    """Of 0 to 14 words, many of which repeat."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 6, rng.integers(0, 15)).tolist() for _ in range(30)]


def slow_windows(paragraphs, window, full):
    """(word, words around it) in order, -1 where there is none."""
    for paragraph in paragraphs:
        for i, word in enumerate(paragraph):
            places = [j for j in range(i - window, i + window + 1) if j != i]
            around = [paragraph[j] if 0 <= j < len(paragraph) else -1 for j in places]
            if -1 in around if full else set(around) == {-1}:
                continue
            yield word, around


@pytest.fixture(params=[(1, True), (2, True), (4, True), (1, False), (4, False)])
def case(request):
    window, full = request.param
    paragraphs = random_paragraphs()
    text = text_of(*paragraphs)
    ids, starts = take(text, np.arange(len(text)))
    return ids, starts, window, full, list(slow_windows(paragraphs, window, full))


def test_cbow_predicts_each_word_from_its_window(case):
    ids, starts, window, full, expected = case
    samples = cbow_samples(ids, starts, window, full=full)
    assert samples.targets.tolist() == [word for word, _ in expected]
    assert samples.inputs.tolist() == [around for _, around in expected]
    assert samples.rows.tolist() == list(range(len(expected)))
    used = [k for _, around in expected for k in around if k >= 0]
    assert sorted(samples.occurrences.tolist()) == sorted(used)


def test_skip_gram_has_a_sample_for_each_pair(case):
    ids, starts, window, full, expected = case
    samples = skipgram_samples(ids, starts, window, full=full)
    pairs = sorted((word, k) for word, around in expected for k in around if k >= 0)
    centres = samples.inputs[samples.rows]
    assert sorted(zip(centres.tolist(), samples.targets.tolist(), strict=True)) == pairs
    assert samples.occurrences.tolist() == centres.tolist()
    assert len(set(samples.inputs.tolist())) == len(samples.inputs)
    assert (np.diff(samples.rows) >= 0).all()
    assert set(samples.rows.tolist()) == set(range(len(samples.inputs)))


@pytest.mark.parametrize("make", [cbow_samples, skipgram_samples])
@pytest.mark.parametrize("full", [True, False])
def test_paragraphs_too_short_for_a_window_give_no_samples(make, full):
    text = text_of([1], [], [2])
    assert len(make(*take(text, np.arange(3)), 2, full=full)) == 0
    assert len(make(*take(text, np.arange(0)), 2, full=full)) == 0


def test_paragraphs_are_taken_in_the_order_that_is_asked_for():
    ids, starts = take(text_of([1, 2, 3], [], [4], [5, 6]), np.array([3, 1, 0]))
    assert ids.tolist() == [5, 6, 1, 2, 3]
    assert starts.tolist() == [0, 2, 2, 5]


def test_words_are_kept_with_the_chance_of_their_frequency():
    counts = np.array([9000, 900, 90, 10])
    expected = [min(1.0, (0.01 / f) ** 0.5 + 0.01 / f) for f in counts / 10_000]
    share = kept_share(counts, 0.01)
    np.testing.assert_allclose(share, expected)
    assert share[-1] == 1
    np.testing.assert_array_equal(kept_share(counts, 0.0), 1)
    words = np.repeat([0, 1], 40_000)
    kept, starts = subsample(words, np.array([0, 80_000]), share, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(kept) / 40_000, share[:2], atol=0.01)
    assert starts.tolist() == [0, len(kept)]


def test_paragraphs_stay_apart_when_words_are_left_out():
    ids, starts = take(text_of([0, 1, 0], [0, 0], [1, 1, 0]), np.arange(3))
    left, starts = subsample(ids, starts, np.array([0.0, 1.0]), np.random.default_rng(0))
    assert left.tolist() == [1, 1, 1]
    assert starts.tolist() == [0, 1, 1, 3]
