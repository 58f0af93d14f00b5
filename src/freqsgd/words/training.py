"""Training word vectors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.nn.word2vec import CBOW, SkipGram, WordModel
from freqsgd.optimizers import Rule
from freqsgd.runs.documents import heading
from freqsgd.runs.epochs import EpochRun, Listener
from freqsgd.runs.machine import available_memory, byte_size
from freqsgd.runs.run import check_loss
from freqsgd.words.corpus import Corpus, Paragraphs
from freqsgd.words.engine import WordEngine
from freqsgd.words.folder import load_words, save_words
from freqsgd.words.settings import TextSettings, check_rule, with_default_lr
from freqsgd.words.similarity import word_similarity

_FEW = 0.01  # of a text's samples, that subsampling leaves


def fit_text(
    corpus: Corpus,
    rule: Rule,
    settings: TextSettings | None = None,
    *,
    threads: int | None = None,
    folder: Path | None = None,
    resume: bool = False,
    listener: Listener | None = None,
) -> tuple[WordModel, dict[str, Any]]:
    """Train word vectors; return the model and the run's record.

    The record is one of the ``runs`` of ``results.json``.

    Args:
        corpus: the text
        rule: the optimizer; without ``lr`` it takes the default of its model and loss
        settings: everything else
        threads: of the kernels; None for torch's number. With negative sampling the result does
            not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called some times a second with the progress and the record so far

    Example:
        >>> corpus = Corpus.of_sentences(["the cat sat on the mat"] * 20, min_count=1)
        >>> model, record = fit_text(corpus, Rule("cfsgd"), TextSettings(dim=8, window=2))
        >>> model.vectors.shape
        torch.Size([5, 8])
    """
    run = _Run(corpus, rule, settings or TextSettings(), threads, folder)
    record = run.start(resume, listener)
    return run.model, record


def word_engine(
    model: WordModel,
    rule: Rule,
    settings: TextSettings,
    counts: NDArray[np.int64],
    threads: int | None = None,
) -> WordEngine:
    """Return the engine that trains a model with the loss of the settings."""
    if settings.loss == "softmax":
        from freqsgd.words.softmax import SoftmaxEngine

        return SoftmaxEngine(model, rule, settings, counts, threads)
    from freqsgd.words.negative import NegativeEngine

    return NegativeEngine(model, rule, settings, counts, threads)


def new_model(words: int, settings: TextSettings) -> WordModel:
    """Return a model as it starts."""
    kind = CBOW if settings.model == "cbow" else SkipGram
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        bias = settings.loss == "softmax"
        return kind(words, settings.dim, bias=bias, max_norm=settings.max_norm)


def compile_kernels(rule: Rule, settings: TextSettings) -> None:
    """Take a step with a tiny model, so that nothing is compiled while training is timed."""
    settings = replace(settings, dim=4, window=1, negatives=1, subsample=0.0, batch_size=1)
    text = Paragraphs(np.array([0, 1, 0], np.int32), np.array([0, 3]), raw_words=3)
    engine = word_engine(new_model(2, settings), rule, settings, np.array([2, 1]), threads=1)
    for _ in engine.train(text, np.arange(1), np.array([0.01]), epoch=0):
        pass


class _Run(EpochRun):
    speed = "words_per_second"
    chosen_by = "val_loss"
    model: WordModel
    settings: TextSettings
    engine: WordEngine

    def __init__(
        self,
        corpus: Corpus,
        rule: Rule,
        settings: TextSettings,
        threads: int | None,
        folder: Path | None,
    ) -> None:
        check_text(corpus, settings)
        check_rule(rule, settings)
        cut = within(settings, corpus)
        super().__init__(
            with_default_lr(rule, cut, corpus.counts),
            settings,
            folder,
            options={"rule": rule.plain, "settings": _that_apply(settings)},
            about={**corpus.summary(), "data": corpus.fingerprint},
            rows=np.arange(len(corpus.train)),
            batch_size=settings.batch_size,
            size=corpus.train.raw_words,
            columns=(2,),
        )
        self.corpus, self.cut, self.threads = corpus, cut, threads
        if settings.loss == "softmax":
            self.torch_threads = threads or torch.get_num_threads()

    def begin(self) -> None:
        counts = self.corpus.counts
        self.model = new_model(len(counts), self.settings)
        self.engine = word_engine(self.model, self.rule, self.cut, counts, self.threads)

    @property
    def keeps(self) -> str:  # here there are no linear weights
        return self.rule.kept(linear=False)

    def prepare(self) -> None:
        compile_kernels(self.rule, self.cut)

    def train_steps(
        self, order: NDArray[np.int64], lrs: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        yield from self.engine.train(self.corpus.train, order, lrs, self.progress.epoch)
        samples = int(self.losses[:, 1].sum())
        if samples == 0:
            raise DataError("subsampling has left no two words together: use a larger subsample")
        whole = number_of_samples(self.corpus.train, self.cut)
        if self.progress.epoch == 0 and samples < _FEW * whole:
            warnings.warn(
                f"subsample {self.cut.subsample:g} leaves {samples:,} of {whole:,} samples in an "
                "epoch: use a larger value",
                DataWarning,
                stacklevel=2,
            )

    def mean_loss(self, losses: NDArray[np.float64]) -> float:
        total, samples = losses.sum(0).tolist()
        return total / samples if samples else math.nan

    def validate(self) -> dict[str, float | None]:
        loss = self.engine.evaluate(self.corpus.validation).mean
        seen = loss
        if loss is None:
            seen = self.engine.evaluate(_beginning(self.corpus.train)).mean
        if seen is not None:
            check_loss(seen, blank_loss(self.model.words, self.cut), self.steps - 1)
        return {"val_loss": loss}

    def test(self, best: dict[str, Any] | None) -> dict[str, Any]:
        corpus, blank = self.corpus, blank_loss(self.model.words, self.cut)
        # The loss of negative sampling is bounded: a rate that is far too high does not diverge.
        if best and best["val_loss"] is not None and best["val_loss"] > blank:
            warnings.warn(
                f"the validation loss {best['val_loss']:.4g} of the best epoch is above the "
                f"{blank:.4g} of a model that knows nothing: try a smaller learning rate, or more "
                "text",
                DataWarning,
                stacklevel=2,
            )
        losses = self.engine.evaluate(corpus.test if best else _beginning(corpus.test, 0))
        by_centre = losses.by_centre_frequency(corpus.counts)
        return {
            "test_loss": _finite(losses.mean),
            "test_loss_by_frequency": _all_finite(losses.by_frequency(corpus.counts)),
            **({"test_loss_by_centre_frequency": _all_finite(by_centre)} if by_centre else {}),
            "similarity": word_similarity(corpus.words, self.model.vectors.numpy()) if best else {},
        }

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        save_words(folder, self.model, self.corpus.words, self.corpus.counts, description)

    def load_model(self, folder: Path) -> None:
        self.model = load_words(folder)[0]


def _that_apply(settings: TextSettings) -> dict[str, Any]:
    other = "max_norm" if settings.loss == "negative" else "negatives"
    return {key: value for key, value in asdict(settings).items() if key != other}


def _beginning(text: Paragraphs, paragraphs: int = 96) -> Paragraphs:
    starts = text.starts[: paragraphs + 1]
    return Paragraphs(text.ids[: starts[-1]], starts, raw_words=0)


def _finite(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None


def _all_finite(losses: dict[str, float | None]) -> dict[str, float | None]:
    return {name: _finite(loss) for name, loss in losses.items()}


def describe_text(
    corpus: Corpus, settings: TextSettings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """Return the content of ``results.json`` without runs."""
    splits = {name: len(getattr(corpus, name).ids) for name in ("train", "validation", "test")}
    return heading(corpus.summary(), splits, settings.about_model, threads, command)


def check_text(corpus: Corpus, settings: TextSettings) -> None:
    """Refuse a text without samples; warn of held-out text without words."""
    shortest = 2 * settings.window + 1 if settings.windows == "full" else 2
    longest = _longest(corpus.train)
    if longest < shortest:
        advice = ["a smaller window", "windows all"] if shortest > 2 else []
        rare = ""
        if len(corpus.train.ids) < corpus.train.raw_words:
            rare, advice = " after rare words were left out", ["a smaller min_count", *advice]
        raise DataError(
            f"no paragraph of {corpus.name} has the {shortest} words that a sample takes, the "
            f"longest has {longest}{rare}: try {', '.join(advice) or 'whole sentences on a line'}"
        )
    if settings.patience is not None and _longest(corpus.validation) < shortest:
        raise DataError(
            f"{corpus.name} has no text to validate on, by which patience chooses an epoch: give "
            "some, or leave patience out"
        )
    available, of_number = available_memory(), 2 * 4 * len(corpus.words)
    if available is not None and of_number * settings.dim > available:
        raise DataError(
            f"vectors of {settings.dim:,} numbers for {len(corpus.words):,} words do not fit: they "
            f"take {byte_size(of_number * settings.dim)}, {byte_size(available)} are available."
            f" Use a smaller dimension (--dim {available // of_number} at most), fewer words or a "
            "larger machine"
        )
    for name in ("validation", "test"):
        text: Paragraphs = getattr(corpus, name)
        if text.raw_words and not len(text.ids):
            warnings.warn(
                f"none of the {text.raw_words:,} words of the {name} text is in the vocabulary, so "
                f"there is no {name} loss",
                DataWarning,
                stacklevel=4,
            )


def within(settings: TextSettings, corpus: Corpus) -> TextSettings:
    """Narrow the window to the longest paragraph, where windows are cut anyway."""
    if settings.windows == "full":
        return settings
    longest = max(_longest(text) for text in (corpus.train, corpus.validation, corpus.test))
    return replace(settings, window=min(settings.window, longest - 1))


def number_of_samples(text: Paragraphs, settings: TextSettings) -> int:
    """Count the samples of a text of which nothing is left out."""
    lengths, window = np.diff(text.starts), settings.window
    if settings.windows == "full":
        middles = int(np.maximum(lengths - 2 * window, 0).sum())
        return middles * (2 * window if settings.model == "skipgram" else 1)
    if settings.model == "cbow":
        return int(lengths[lengths > 1].sum())
    reach = np.minimum(window, np.maximum(lengths - 1, 0))  # the sum of lengths - d for d = 1, ...
    return int((2 * reach * lengths - reach * (reach + 1)).sum())


def blank_loss(words: int, settings: TextSettings) -> float:
    """Return the loss of a model that knows nothing: for it all words are equally likely."""
    if settings.loss == "softmax":
        return math.log(words)
    return math.log(2) * (1 + settings.negatives)


def _longest(text: Paragraphs) -> int:
    return int(np.diff(text.starts).max(initial=0))
