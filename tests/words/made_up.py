"""A small text with topics, and what tests of word vectors share."""

from __future__ import annotations

import signal

import torch

from freqsgd.words.corpus import Corpus
from freqsgd.words.settings import TextSettings
from freqsgd.words.zipf import zipf_text

BOTH = [(model, loss) for model in ("skipgram", "cbow") for loss in ("softmax", "negative")]


def corpus(seed=0, words=5000):
    """Sentences, of which 5% and 5% are held out; some words are rare."""
    return Corpus.of_sentences(zipf_text(words, 150, seed), name="made-up", split_seed=0)


def small(model="skipgram", loss="softmax", **options):
    quick = {"dim": 6, "window": 2, "epochs": 3, "batch_size": 30, "lr_decay": "linear"}
    return TextSettings(model=model, loss=loss, **{**quick, **options})


def same_weights(one, other):
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def interrupt_at(step):
    """A listener that presses Ctrl-C in the second epoch."""

    def listener(progress, record):
        if progress.epoch == 1 and progress.step >= step:
            signal.raise_signal(signal.SIGINT)

    return listener
