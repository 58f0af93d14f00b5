"""Word vectors from sentences in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from freqsgd.checks import real_number, whole_number
from freqsgd.errors import DataError, InterruptedFitError
from freqsgd.nn.word2vec import WordModel
from freqsgd.optimizers import Rule
from freqsgd.runs.checkpoint import MODEL
from freqsgd.vectors.vectors import Neighbor, Vectors
from freqsgd.words.corpus import Corpus
from freqsgd.words.folder import load_words, save_words
from freqsgd.words.settings import TextSettings, check_rule
from freqsgd.words.training import fit_text

__all__ = ["Word2Vec"]

_OWN = "word2vec"  # where a folder has the options of this class
_RULE = ("optimizer", "lr", "max_lr")
_SETTINGS = (
    "model", "loss", "dim", "window", "negatives", "subsample", "epochs", "batch_size", "seed",
)  # fmt: skip
_LEAST = {"min_count": 1, "max_vocab": 2}
_MOST_THREADS = 1024  # far more than that crashes torch


@dataclass(eq=False)
class Word2Vec:
    """Learns a vector for each word of some sentences.

    Softmax suits vocabularies of some thousand words. It takes one step per batch of sentences, so
    a small text wants a smaller ``batch_size``, or more ``epochs``, to learn much.

    Args:
        dim: size of the vectors
        model: "skipgram" or "cbow"
        loss: "negative": negative sampling, or "softmax" over the whole vocabulary
        optimizer: "sgd", "cfsgd", "fasgd", "cfadam" or "rowwise-adagrad"; with softmax also
            "adagrad", "adam"
        lr: learning rate; None for the default of the model, loss and optimizer
        max_lr: cap on the rate of a word, for cfsgd and fasgd; without ``lr`` it has a default too
        window: words on each side
        epochs: how often the sentences are gone through; None: 5, with softmax 20
        batch_size: sentences of a step; None: 1024, with softmax 96
        min_count: words seen less often are left out
        max_vocab: the most words of the vocabulary: the most frequent ones
        negatives: noise words of a sample, for negative sampling
        subsample: frequency above which some occurrences of a word are left out; 0 keeps all
        seed: of the start, the order of the sentences, and the noise words
        threads: None for torch's number; with negative sampling the result is the same for any

    Example:
        >>> sentences = ["the cat sat on the mat", "the dog sat on the log"] * 50
        >>> words = Word2Vec(dim=8, window=2, min_count=1).fit(sentences)
        >>> words["cat"].shape, len(words.most_similar("cat", top=3))
        ((8,), 3)
    """

    dim: int = 100
    _: KW_ONLY
    model: str = "skipgram"
    loss: str = "negative"
    optimizer: str = "cfsgd"
    lr: float | None = None
    max_lr: float | None = None
    window: int = 4
    epochs: int | None = None
    batch_size: int | None = None
    min_count: int = 5
    max_vocab: int | None = None
    negatives: int = 5
    subsample: float = 0.0
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        self._learned: tuple[WordModel, Vectors, dict[str, Any]] | None = None
        self._options()  # which raises where they are wrong

    def fit(self, sentences: Iterable[str | Sequence[str]]) -> Self:
        """Learn anew from sentences: lists of words, or texts that are split at white space.

        They are read once: an open file, whose lines are sentences, will do. The first fit on a
        machine compiles the kernels of negative sampling, which takes about half a minute.
        """
        rule, settings = self._options()
        if self._learned is not None and _OWN not in self._learned[2]:
            raise DataError(
                "this model was trained by other means, with options that are not known here: "
                "make a new Word2Vec and fit that"
            )
        options = {name: value for name, value in asdict(self).items() if name != "threads"}
        corpus = Corpus.of_sentences(
            sentences, min_count=self.min_count, max_vocab=self.max_vocab, name="the sentences"
        )
        try:
            model, record = fit_text(corpus, rule, settings, threads=self.threads)
        except InterruptedFitError:
            raise KeyboardInterrupt from None
        if record["stopped"] == "diverged":
            raise DataError(record["error"])
        about = {"record": record, "data": corpus.summary(), _OWN: options}
        self._keep(model, corpus.words, corpus.counts, about)
        return self

    @property
    def vectors(self) -> Vectors:
        """The vectors and their words: for queries, and for files of other programs."""
        return self._known()[1]

    @property
    def words(self) -> list[str]:
        """The vocabulary, by falling frequency."""
        return list(self.vectors.tokens)

    @property
    def record(self) -> dict[str, Any]:
        """How the training went, as a run of ``results.json`` says it."""
        record: dict[str, Any] = self._known()[2]["record"]
        return record

    def most_similar(
        self, positive: str | Sequence[str] = (), negative: str | Sequence[str] = (), top: int = 10
    ) -> list[Neighbor]:
        """Return the words nearest to a word, or to the sum of some less that of others."""
        return self.vectors.most_similar(positive, negative, top)

    def similarity(self, a: str, b: str) -> float:
        """Return the cosine of two words' vectors."""
        return self.vectors.similarity(a, b)

    def __len__(self) -> int:
        return len(self.vectors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.vectors)

    def __getitem__(self, words: str | Sequence[str]) -> NDArray[np.float32]:
        """Return a copy of a word's vector, or of those of some words, a row each."""
        return self.vectors[words]

    def __contains__(self, word: object) -> bool:
        return word in self.vectors

    def save(self, folder: str | Path) -> None:
        """Write a model folder, which ``load`` and the commands of ``freqsgd`` read."""
        model, vectors, about = self._known()
        folder = Path(folder)
        if (folder / MODEL).exists():
            raise DataError(f"{folder} holds a model already: use another folder")
        assert vectors.counts is not None
        save_words(folder, model, vectors.tokens, vectors.counts, about)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model folder that ``save`` or ``freqsgd words train`` wrote.

        The latter has options that are none here, such as how its text was read: such a model
        answers everything, but ``fit`` refuses it.
        """
        model, words, counts, about = load_words(Path(folder))
        loaded = cls(**(about.get(_OWN) or _options_of(about["record"])))
        kept = {name: about[name] for name in ("record", "data", _OWN) if name in about}
        loaded._keep(model, words, counts, kept)
        return loaded

    def _options(self) -> tuple[Rule, TextSettings]:
        self._check_numbers()
        rule = Rule(**{name: getattr(self, name) for name in _RULE})
        chosen = {name: getattr(self, name) for name in _SETTINGS}
        settings = TextSettings(**chosen, windows="all")  # for sentences are short
        check_rule(rule, settings)
        for name in _SETTINGS:
            if getattr(self, name) is not None:
                setattr(self, name, getattr(settings, name))
        return rule, settings

    def _check_numbers(self) -> None:
        """Refuse what is no number or too small; numpy's numbers become Python's."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None or name == "min_count":
                setattr(self, name, whole_number(name, value, least))
        if self.threads is not None:
            self.threads = whole_number("threads", self.threads, 1, _MOST_THREADS)
        for name in ("lr", "max_lr"):
            if getattr(self, name) is not None:
                setattr(self, name, real_number(name, getattr(self, name)))

    def _keep(
        self,
        model: WordModel,
        words: Sequence[str],
        counts: NDArray[np.int64],
        about: dict[str, Any],
    ) -> None:
        self._learned = model, Vectors(words, model.vectors.numpy(), counts, "word"), about

    def _known(self) -> tuple[WordModel, Vectors, dict[str, Any]]:
        if self._learned is None:
            raise DataError("there are no vectors yet: call fit with sentences first")
        return self._learned


def _options_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a run of ``freqsgd words train``, as far as they are options here."""
    chosen = record["options"]["rule"] | record["options"]["settings"]
    names = {field.name for field in fields(Word2Vec)}
    return {name: value for name, value in chosen.items() if name in names}
