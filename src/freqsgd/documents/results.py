"""``results.json``, which ``compare``, ``train`` and ``tune`` write (docs/results.md)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(ge=1)]


class Dataset(Struct, frozen=True):
    """The training data: samples, text or a stream."""

    name: str | None = None
    kind: str | None = None  # "text", "stream", or none for samples
    rows: int | None = None
    fields: int | None = None
    tokens: int | None = None
    positive_rate: float | None = None
    source: str | None = None
    days: tuple[str, ...] = ()  # of a stream
    encoding: str | None = None
    words: int | None = None  # of text
    raw_words: int | None = None
    paragraphs: int | None = None


class Model(Struct, frozen=True):
    """The model that was trained."""

    name: str | None = None
    dim: int | None = None
    hidden: tuple[int, ...] = ()
    loss: str | None = None  # of text
    window: int | None = None
    negatives: int | None = None


class Machine(Struct, frozen=True):
    """The machine that trained."""

    cpu: str | None = None
    cores: int | None = None
    threads: int | None = None
    torch: str | None = None
    python: str | None = None


class Epoch(Struct, frozen=True):
    """Measurements at the end of an epoch."""

    epoch: int
    train_loss: float | None = None
    val_loss: float | None = None
    val_auc: float | None = None
    val_ne: float | None = None
    seconds: float | None = None  # of training, from the start of the run
    samples_per_second: float | None = None
    words_per_second: float | None = None  # of text
    lr: float | None = None

    @property
    def speed(self) -> float | None:
        """Words per second on text, samples per second on other data."""
        words = self.words_per_second
        return self.samples_per_second if words is None else words


class Similarity(Struct, frozen=True):
    """Agreement of word vectors with a list of pairs of words."""

    spearman: float | None = None
    pairs: int | None = None
    covered: int | None = None


class Window(Struct, frozen=True):
    """Consecutive examples of a stream, scored before they were learned."""

    examples: float  # seen up to its end
    loss: float | None = None
    ne: float | None = None
    auc: float | None = None
    calibration: float | None = None
    lifetime_ne: float | None = None  # of all examples up to its end
    lifetime_auc: float | None = None
    lifetime_calibration: float | None = None
    seconds: float | None = None


class Day(Struct, frozen=True):
    """A training day of a stream, scored before it was learned."""

    day: str
    examples: float | None = None
    loss: float | None = None
    ne: float | None = None
    auc: float | None = None
    calibration: float | None = None


class Tried(Struct, frozen=True):
    """A learning rate that was tried on a stream, and its result."""

    lr: float
    train_ne: float | None = None
    test_ne: float | None = None
    error: str | None = None


class TokenBucket(Struct, frozen=True):
    """Tokens that occur between ``low`` and ``high`` times in the training rows, and their means.

    ``p`` and ``improvement`` are of a prediction, the others of gradients.
    """

    low: Count = field(name="from")
    high: Count = field(name="to")
    tokens: int = 0
    norm2: float | None = None
    norm2_per_occurrence: float | None = None
    linear2: float | None = None
    linear2_per_occurrence: float | None = None
    p: float | None = None
    improvement: float | None = None


class Gradients(Struct, frozen=True):
    """Squared gradients after an epoch."""

    epoch: int
    buckets: tuple[TokenBucket, ...] = ()


class Relation(Struct, frozen=True):
    """The relation of second moments to counts after an epoch."""

    epoch: int
    tokens: int | None = None
    pearson: float | None = None
    pearson_log: float | None = None
    spearman: float | None = None
    slope: float | None = None
    intercept: float | None = None
    slope_error: float | None = None


class Scatter(Struct, frozen=True):
    """Counts and second moments of some tokens, by column."""

    epoch: int | None = None
    count: tuple[float | None, ...] = ()
    moment: tuple[float | None, ...] = ()
    field: tuple[int | None, ...] = ()


class RunDiagnosis(Struct, frozen=True):
    """Diagnosis of a run by ``compare --diagnose``."""

    gradients: tuple[Gradients, ...] = ()
    moments: tuple[Relation, ...] = ()
    scatter: Scatter = Scatter()


class Diagnosis(Struct, frozen=True):
    """The part of the diagnosis that all runs share."""

    fields: tuple[str, ...] = ()
    prediction: tuple[TokenBucket, ...] = ()


class Trial(Struct, frozen=True):
    """One try of a search."""

    number: int
    value: float | None = None  # best validation AUC
    state: str | None = None
    epochs: int | None = None
    seconds: float | None = None
    params: dict[str, int | float | None] = {}

    @property
    def lr(self) -> float | None:
        """Its learning rate."""
        return self.params.get("lr")


class BestTrial(Trial, frozen=True):
    """The best settings that a search found."""

    origin: str | None = field(default=None, name="from")  # "trial" or "sweep"


class SweepPoint(Struct, frozen=True):
    """A learning rate that was tried with the other settings of the best trial."""

    lr: float
    val_auc: float | None = None


class Study(Struct, frozen=True):
    """The search for one optimizer."""

    optimizer: str
    trials: tuple[Trial, ...] = ()
    best: BestTrial | None = None
    lr_sweep: tuple[SweepPoint, ...] = ()


class Tuning(Struct, frozen=True):
    """The search of ``freqsgd tune``."""

    trials: int | None = None
    space: dict[str, Any] = {}
    typical_frequency: float | None = None
    studies: tuple[Study, ...] = ()


class Run(Struct, frozen=True):
    """One optimizer's training from start to stop."""

    optimizer: str
    lr: float | None = None
    weight_decay: float | None = None
    weight_decay_rule: str | None = None
    max_lr: float | None = None
    halflife: float | None = None
    count: str | None = None
    dense_lr: float | None = None
    seed: int | None = None
    batch_size: int | None = None
    options: dict[str, Any] = {}
    engine: str | None = None
    ranks: int | None = None
    sharding: str | None = None
    state_bytes: float | None = None
    state_rule: str | None = None
    parameter_bytes: float | None = None
    epochs: tuple[Epoch, ...] = ()
    epochs_planned: int | None = None
    best_epoch: int | None = None
    stopped: str | None = None
    still_learning: bool = False  # patience ended it while its losses fell
    error: str | None = None
    seconds: float | None = None
    samples_per_second: float | None = None
    words_per_second: float | None = None
    best_val_auc: float | None = None
    best_val_loss: float | None = None
    train_loss: float | None = None  # of a stream: every example, scored before it was learned
    train_ne: float | None = None
    train_auc: float | None = None
    train_calibration: float | None = None
    test_loss: float | None = None
    test_auc: float | None = None
    test_ne: float | None = None
    test_calibration: float | None = None
    test_rows: int | None = None
    test_auc_by_frequency: dict[str, float] = {}
    test_loss_by_frequency: dict[str, float] = {}  # of text, by the word that is predicted
    test_loss_by_centre_frequency: dict[str, float] = {}
    similarity: dict[str, Similarity] = {}
    examples: float | None = None  # of a stream, from here on
    windows: tuple[Window, ...] = ()
    days: tuple[Day, ...] = ()
    search: tuple[Tried, ...] = ()
    search_edge: bool = False  # the best rate is the smallest or the largest
    peak_memory_bytes: float | None = None
    dropped: float | None = None
    skipped: tuple[str, ...] = ()
    diagnosis: RunDiagnosis | None = None

    @property
    def speed(self) -> float | None:
        """Words per second on text, samples per second on other data."""
        words = self.words_per_second
        return self.samples_per_second if words is None else words


class Results(Struct, frozen=True):
    """All runs, and the data and model that they share."""

    schema: int
    runs: Annotated[tuple[Run, ...], Meta(min_length=1)]
    one_pass: bool = False
    dataset: Dataset = Dataset()
    model: Model = Model()
    splits: dict[str, float] = {}
    best_possible: dict[str, float] = {}  # what the true probabilities score, for generated data
    command: str | None = None
    created: str | None = None
    machine: Machine = Machine()
    tuning: Tuning | None = None
    diagnosis: Diagnosis = Diagnosis()
