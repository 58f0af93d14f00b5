"""Training word vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.data.corpus import Corpus, Paragraphs
from freqsgd.data.dataset import DataError
from freqsgd.data.lock import locked
from freqsgd.nn.word2vec import WordModel
from freqsgd.training.divergence import check_loss
from freqsgd.training.documents import heading
from freqsgd.training.rules import Rule
from freqsgd.training.run import Listener, Run
from freqsgd.training.similarity import word_similarity
from freqsgd.training.text_checks import (
    blank_loss,
    check_text,
    warn_of_few,
    warn_of_nothing_learned,
    within,
)
from freqsgd.training.text_rules import check_rule, with_default_lr
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.word_engine import WordEngine, compile_kernels, new_model, word_engine
from freqsgd.training.word_folder import load_words, save_words

__all__ = ["fit_text"]


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
    with locked(folder):
        run = _Run(corpus, rule, settings or TextSettings(), threads, folder)
        return run.start(resume, listener)


class _Run(Run[WordModel]):
    speed = "words_per_second"
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
        asked, cut = rule, within(settings, corpus)
        rule = with_default_lr(rule, cut, corpus.counts)
        model = new_model(len(corpus.words), settings)
        softmax = settings.loss == "softmax"
        super().__init__(
            model,
            word_engine(model, rule, cut, corpus.counts, threads),
            rule,
            settings,
            options={"rule": asked.plain, "settings": _that_apply(settings)},
            rows=np.arange(len(corpus.train)),
            batch_size=settings.batch_size,
            about={**corpus.summary(), "data": corpus.fingerprint},
            folder=folder,
            size=corpus.train.raw_words,
            columns=(2,),
            torch_threads=threads or torch.get_num_threads() if softmax else None,
            keeps=_keeps(rule),
        )
        self.corpus, self.cut = corpus, cut

    def prepare(self) -> None:
        compile_kernels(self.rule, self.cut)

    def train_steps(
        self, order: NDArray[np.int64], lrs: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        yield from self.engine.train(self.corpus.train, order, lrs, self.progress.epoch)
        samples = int(self.losses[:, 1].sum())
        if samples == 0:
            raise DataError("subsampling has left no two words together: use a larger subsample")
        if self.progress.epoch == 0:
            warn_of_few(samples, self.corpus.train, self.cut)

    def mean_loss(self, losses: NDArray[np.float64]) -> float:
        total, samples = losses.sum(0).tolist()
        return total / samples if samples else math.nan

    def validate(self) -> dict[str, float | None]:
        loss = self.engine.evaluate(self.corpus.validation).mean
        seen = loss
        if loss is None:
            seen = self.engine.evaluate(_beginning(self.corpus.train)).mean
        if seen is not None:
            check_loss(seen, blank_loss(self.model.words, self.cut), self.engine.steps - 1)
        return {"val_loss": loss}

    def better(self, epoch: dict[str, Any], best: dict[str, Any]) -> bool:
        return bool(epoch["val_loss"] < best["val_loss"])

    def test(self, best: dict[str, Any] | None) -> dict[str, Any]:
        corpus, steps = self.corpus, self.engine.steps
        if best:
            warn_of_nothing_learned(best["val_loss"], blank_loss(self.model.words, self.cut))
        losses = self.engine.evaluate(corpus.test if best else _beginning(corpus.test, 0))
        words = self.size * steps / self.progress.steps
        figures: dict[str, Any] = {
            "best_val_loss": best["val_loss"] if best else None,
            "words_per_second": words / self.progress.seconds if steps else None,
            "test_loss": _finite(losses.mean),
            "test_loss_by_frequency": _all_finite(losses.by_frequency(corpus.counts)),
        }
        by_centre = losses.by_centre_frequency(corpus.counts)
        if by_centre is not None:
            figures["test_loss_by_centre_frequency"] = _all_finite(by_centre)
        vectors = self.model.vectors.numpy()
        return {**figures, "similarity": word_similarity(corpus.words, vectors) if best else {}}

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        save_words(folder, self.model, self.corpus.words, self.corpus.counts, description)

    def load_model(self, folder: Path) -> tuple[WordModel, dict[str, Any]]:
        model, _, _, description = load_words(folder)
        return model, description


def _keeps(rule: Rule) -> str:
    """What the optimizer keeps, in words; here there are no linear weights."""
    return "one float per row" if rule.optimizer == "rowwise-adagrad" else rule.keeps


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
