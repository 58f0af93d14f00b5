"""What reports of recommenders and of text models differ in, said once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from freqsgd.report.old.data_words import even_guess, sample_words, text_words
from freqsgd.report.old.measures import Breakdown, Measure, Metric, kept
from freqsgd.report.old.results import Results
from freqsgd.report.old.similarity import similarity_measures

TRAINING_LOSS = Metric("train_loss", "training loss", higher_is_better=False)
VALIDATION_LOSS = Metric("val_loss", "validation loss", higher_is_better=False)
VALIDATION_AUC = Metric("val_auc", "validation AUC", higher_is_better=True)

TEST_LOSS = Measure("test loss", lambda run: run.test_loss, higher_is_better=False)
TEST_AUC = Measure("test AUC", lambda run: run.test_auc, higher_is_better=True)

BY_TOKEN = Breakdown(
    "test_auc_by_frequency",
    "frequency",
    topic="Rare tokens",
    title="Test AUC by token frequency",
    score="AUC",
    of_tail="on the test samples that hold a rare token",
    of_classes="samples with head, torso and tail tokens",
    note="A sample belongs to the class of its rarest token. Head tokens make up the first 80% of "
    "a field's training occurrences, torso tokens the next 15%, tail tokens the last 5%.",
    higher_is_better=True,
    against_sgd=False,
)
WORD_CLASSES = (
    "Head words, the most frequent, make up the first 80% of the training text, "
    "torso words the next 15%, tail words the last 5%."
)
BY_PREDICTED_WORD = Breakdown(
    "test_loss_by_frequency",
    "frequency",
    topic="Rare words",
    title="Test loss by predicted word",
    score="loss",
    of_tail="on the rare words of the test text",
    of_classes="head, torso and tail words that are predicted",
    note=WORD_CLASSES,
    higher_is_better=False,
    against_sgd=True,
)
BY_CENTRE_WORD = Breakdown(
    "test_loss_by_centre_frequency",
    "centre-frequency",
    topic="Around rare words",
    title="Test loss by centre word",
    score="loss",
    of_tail="on the words around rare words",
    of_classes="words around head, torso and tail words",
    note=f"The centre word predicts the words around it. {WORD_CLASSES}",
    higher_is_better=False,
    against_sgd=True,
)


@dataclass(frozen=True)
class Kind:
    """How runs are compared, and in which words."""

    by: Metric  # epochs are compared by it
    kept: Measure  # its value in the epoch whose weights were kept
    outcome: Measure  # whole runs are compared by it
    test: Measure
    scores: tuple[Measure, ...]
    breakdowns: tuple[Breakdown, ...]
    data: Callable[[Results], str]  # how large the data are, in words
    test_data: str
    guess: str  # what a guess would score on them, in words
    speed: str
    batch: str
    inapplicable: tuple[str, ...]  # options that are written down and mean nothing here


def kind_of(results: Results) -> Kind:
    """The kind of these results."""
    return of_text(results) if results.dataset.kind == "text" else of_samples(results)


def of_samples(results: Results) -> Kind:
    """Recommenders: AUC counts; the loss where there is none, as with labels of one kind."""
    by = first_measured(results, VALIDATION_AUC, VALIDATION_LOSS)
    best = kept(by, f"best {by.name}")
    return Kind(
        by,
        best,
        outcome=best,
        test=TEST_AUC if is_known(results, TEST_AUC) else TEST_LOSS,
        scores=(best, TEST_AUC, TEST_LOSS, BY_TOKEN.measure("tail")),
        breakdowns=(BY_TOKEN,),
        data=sample_words,
        test_data="test samples",
        guess="",
        speed="Samples/s",
        batch="Batch size",
        inapplicable=(),
    )


def of_text(results: Results) -> Kind:
    """Models of text: the loss counts, that of the test text above all."""
    by = first_measured(results, VALIDATION_LOSS, TRAINING_LOSS)
    held_out = kept(by, by.name)
    losses = [kept(metric, metric.name) for metric in (TRAINING_LOSS, VALIDATION_LOSS)]
    return Kind(
        by,
        held_out,
        outcome=TEST_LOSS if is_known(results, TEST_LOSS) else held_out,
        test=TEST_LOSS,
        scores=(
            *losses,
            TEST_LOSS,
            BY_PREDICTED_WORD.measure("tail"),
            *similarity_measures(results),
        ),
        breakdowns=(BY_PREDICTED_WORD, BY_CENTRE_WORD),
        data=text_words,
        test_data="test text",
        guess=even_guess(results),
        speed="Words/s",
        batch="Paragraphs per step",
        inapplicable=("linear_lr_scale", "linear_decay_scale"),
    )


def first_measured(results: Results, *metrics: Metric) -> Metric:
    """The first that an epoch has a value of; the first of all if none has."""
    epochs = [epoch for run in results.runs for epoch in run.epochs]
    measured = (
        metric for metric in metrics if any(metric.of(epoch) is not None for epoch in epochs)
    )
    return next(measured, metrics[0])


def is_known(results: Results, measure: Measure) -> bool:
    """Whether any run has it."""
    return any(measure.of(run) is not None for run in results.runs)
