"""Text drawn from topics, for trying things out where there is no text."""

from __future__ import annotations

import numpy as np

_TOPICS = 20
_COMMON = 100  # words that are used whatever the topic
_SHORTEST, _LONGEST = 8, 32  # words of a sentence
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def zipf_text(words: int = 400_000, vocabulary: int = 5_000, seed: int = 0) -> list[str]:
    """Make sentences whose words are about as frequent as in a language, and fit together.

    The n-th most frequent word has a probability that is about proportional to 1/(n + 2.7). The 100
    most frequent ones, which end with a consonant, are used in all sentences; any other word has
    one of 20 topics, which is its first syllable, and is used in sentences of that topic. So the
    nearest words of a word should be those of its topic.

    Args:
        words: how many there are in all sentences together, about
        vocabulary: how many distinct ones there are to draw from
        seed: the same seed gives the same text

    Example:
        >>> text = zipf_text(1000)
        >>> sorted({word[:2] for word in text[0].split() if word[-1] in "aeiou"})
        ['ga']
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    rank = np.arange(vocabulary)
    weight = 1 / (rank + 3.7)
    sizes = generator.integers(_SHORTEST, _LONGEST + 1, max(1, 2 * words // (_SHORTEST + _LONGEST)))
    topics = generator.integers(_TOPICS, size=len(sizes))
    text = [""] * len(sizes)
    for topic in range(_TOPICS):
        own = (rank >= _COMMON) & (rank % _TOPICS == topic)
        chance = np.where(own, _TOPICS * weight, np.where(rank < _COMMON, weight, 0))
        sentences = np.flatnonzero(topics == topic)
        ends = np.cumsum(sizes[sentences])
        drawn = generator.choice(vocabulary, ends[-1] if len(ends) else 0, p=chance / chance.sum())
        for sentence, some in zip(sentences.tolist(), np.split(drawn, ends), strict=False):
            text[sentence] = " ".join(map(_spelling, some.tolist()))
    return text


def _spelling(rank: int) -> str:
    """Return the word of a rank: its topic, then its number within the topic."""
    if rank < _COMMON:
        return f"{_SYLLABLES[rank % len(_SYLLABLES)]}{'nt'[rank // len(_SYLLABLES)]}"
    number, topic = divmod(rank - _COMMON, _TOPICS)
    word = _SYLLABLES[topic] + _SYLLABLES[number % len(_SYLLABLES)]
    while number := number // len(_SYLLABLES):
        word += _SYLLABLES[number % len(_SYLLABLES)]
    return word
