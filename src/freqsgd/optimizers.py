"""The registry of optimizers: one row for each, which everything else asks.

To add an optimizer to the recommender, add a row here, a branch to the kernel
(:mod:`freqsgd.kernels.fm.rows`) and a row to the table of ``tests/recommender/slow.py``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from freqsgd.rates import AdamLaw, RateLaw, check_counting

__all__ = [
    "OPTIMIZERS",
    "Optimizer",
    "Rule",
    "State",
    "Style",
]

WIDE = 2**31  # counts that could come to so many have 64 bits
LAW, ADAGRAD, ROWWISE_ADAGRAD, ADAM, CFADAM = range(5)  # branches of the kernels


@dataclass(frozen=True)
class State:
    """What an optimizer keeps for a table, besides a counter per row.

    Args:
        words: the state in words
        row: floats per row
        weight: floats per weight
        column: numbers of 8 bytes per column
    """

    words: str = "nothing"
    row: int = 0
    weight: int = 0
    column: int = 0

    def floats(self, rows: int, width: int) -> int:
        """Return the floats of a table, those of its columns aside."""
        return self.row * rows + self.weight * rows * width


@dataclass(frozen=True)
class Search:
    """Ranges in which a search looks for settings.

    Args:
        typical_decay: weight decay of an occurrence of a typical token
        decay_power: how it follows frequency
        linear_lr: rate of linear weights, times that of vectors
        linear_decay: decay of linear weights, likewise
    """

    typical_decay: tuple[float, float] = (3e-4, 0.1)
    decay_power: tuple[float, float] = (0.5, 1.0)
    linear_lr: tuple[float, float] = (0.1, 1.0)
    linear_decay: tuple[float, float] = (0.5, 5.0)


@dataclass(frozen=True)
class Style:
    """How a line of a chart is drawn: its colour on white and on black, dash and marker."""

    light: str
    dark: str
    dash: str
    marker: str


@dataclass(frozen=True)
class Optimizer:
    """What the package knows of an optimizer.

    Args:
        name: as options spell it
        label: as reports spell it
        state: kept for a table whose rows hold a vector and a linear weight, as those of FM
        vector_state: kept for a table whose rows are one vector each, as those of words and of
            TorchRec, if that differs
        counts: each row has a counter
        takes_counting: takes ``halflife`` and ``count="batch"``
        needs_frequencies: must know the frequency of each row before training, so it cannot learn
            in one pass
        power: of the rate law; above 0, rates follow frequency and ``max_lr`` caps them
        dense: every step changes all rows
        dense_decay: weight decay is torch's: every row, every step. Else it follows frequency
        kernel: branch of the kernel of FM
        words_kernel: branch of the kernel of words with negative sampling; None: it has none
        softmax: class that trains words with a softmax; None: there is none
        word_decay: word vectors may have weight decay
        network: class of torch that trains the network of DeepFM
        eps: keeps divisions by a root defined
        lr: rate that serves without a search; None: it is to be found
        search: where a search looks for the other settings
        rates_of: optimizer whose preset rates and search of a rate it shares
        lr_start: where :func:`~freqsgd.recommender.find_lr.find_lr` begins
        lr_share: part of the rate that lowers the loss most in a few steps, for a whole run
        lr_found_with: optimizer that is tried instead, where a few steps would tell nothing
        grid: rates that one pass tries, for batches of 1,024
        fbgemm: optimizer that TorchRec would train its tables with; None: the planner leaves it out
        trains: False for one that only the planner knows
        style: of charts; None: one that no other series of the chart has
    """

    name: str
    label: str
    state: State = State()
    vector_state: State | None = None
    counts: bool = False
    takes_counting: bool = False
    needs_frequencies: bool = False
    power: float = 0.0
    dense: bool = False
    dense_decay: bool = False
    kernel: int = LAW
    words_kernel: int | None = None
    softmax: str | None = None
    word_decay: bool = True
    network: str = "SGD"
    eps: float = 0.0
    lr: float | None = None
    search: Search = Search()
    rates_of: str | None = None
    lr_start: float | None = None
    lr_share: float | None = None
    lr_found_with: str | None = None
    grid: tuple[float, ...] = ()
    fbgemm: str | None = None
    trains: bool = True
    style: Style | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the state is made of gradients."""
        kept = self.state.row or self.state.weight or self.state.column
        return bool(kept) and not self.needs_frequencies

    @property
    def stateful(self) -> bool:
        """Whether training leaves a state: counters, or what is made of gradients."""
        return self.counts or self.adaptive

    @property
    def capped(self) -> bool:
        """Whether ``max_lr`` means something."""
        return self.power > 0

    def state_of(self, *, linear: bool) -> State:
        """Return what is kept for rows with a linear weight, or for rows without."""
        return self.state if linear or self.vector_state is None else self.vector_state


COUNTER_SGD = "counter-sgd"
# Grids are a factor of about 3 apart, around the best of clicks-small. The shares were measured on
# three datasets: python -m benchmarks.find_lr. Colours are after Okabe and Ito's for the
# colour-blind, with their lightness moved so that each stands out from the page at least 3 : 1 and
# from the others also without red, green or blue.
_REGISTRY = (
    Optimizer(
        "sgd",
        "SGD",
        words_kernel=LAW,
        softmax="CFSGD",
        lr_found_with="cfsgd",
        grid=(1.0, 3.0, 10.0, 30.0, 100.0),
        fbgemm="sgd",
        style=Style("#4d5561", "#9aa2ae", "dashdot", "diamond"),
    ),
    Optimizer(
        "fasgd",
        "FA-SGD",
        State("one frequency per row", row=1),
        needs_frequencies=True,
        power=0.5,
        words_kernel=LAW,
        softmax="FASGD",
        rates_of="cfsgd",
        style=Style("#6b4a00", "#ffc53a", "longdash", "triangle-down"),
    ),
    Optimizer(
        "cfsgd",
        "CF-SGD",
        State("one counter per row"),
        counts=True,
        takes_counting=True,
        power=0.5,
        words_kernel=LAW,
        softmax="CFSGD",
        lr_start=2.0,
        lr_share=1 / 8,
        grid=(0.1, 0.3, 1.0, 3.0, 10.0),
        fbgemm=COUNTER_SGD,
        style=Style("#d55e00", "#f0803c", "solid", "circle"),
    ),
    Optimizer(
        "cfadam",
        "CFAdam",
        State("one counter per row, one number per column", column=1),
        counts=True,
        kernel=CFADAM,
        words_kernel=CFADAM,
        softmax="CFAdam",
        network="AdamW",
        eps=1e-8,
        lr=1e-3,
        search=Search((10.0, 3000.0), (0.5, 1.5), linear_lr=(0.25, 4.0), linear_decay=(0.01, 2.0)),
        grid=(0.0003, 0.001, 0.003, 0.01, 0.03),
        style=Style("#8100d6", "#b555f5", "dashes", "cross"),
    ),
    Optimizer(
        COUNTER_SGD,
        "COUNTER_SGD",
        State("three floats per row", row=3),  # of Adagrad, of the last batch, the counter
        fbgemm=COUNTER_SGD,
        trains=False,
    ),
    Optimizer(
        "adagrad",
        "Adagrad",
        State("one float per weight", weight=1),
        dense_decay=True,
        kernel=ADAGRAD,
        softmax="Adagrad",
        network="Adagrad",
        eps=1e-10,
        lr_start=0.1,
        lr_share=1 / 6,
        grid=(0.003, 0.01, 0.03, 0.1, 0.3),
        fbgemm="adagrad",
        style=Style("#009070", "#14a37c", "dot", "triangle-up"),
    ),
    Optimizer(
        "rowwise-adagrad",
        "Row-wise Adagrad",
        State("two floats per row", row=2),  # of the vector, of the linear weight
        State("one float per row", row=1),
        kernel=ROWWISE_ADAGRAD,
        words_kernel=ROWWISE_ADAGRAD,
        softmax="RowwiseAdagrad",
        word_decay=False,
        network="Adagrad",
        eps=1e-10,
        rates_of="adagrad",
        grid=(0.003, 0.01, 0.03, 0.1, 0.3),
        fbgemm="rowwise-adagrad",
        style=Style("#c2649a", "#f1c3dc", "longdashdot", "pentagon"),
    ),
    Optimizer(
        "adam",
        "Adam",
        State("two floats per weight", weight=2),
        dense=True,
        dense_decay=True,
        kernel=ADAM,
        softmax="Adam",
        network="Adam",
        eps=1e-8,
        lr_start=0.06,
        lr_share=1 / 64,
        grid=(0.0003, 0.001, 0.003, 0.01, 0.03),
        fbgemm="adam",
        style=Style("#0072b2", "#56b4e9", "dash", "square"),
    ),
)
OPTIMIZERS = {each.name: each for each in _REGISTRY if each.trains}
"""The optimizers by name."""
CAPPED = tuple(name for name, each in OPTIMIZERS.items() if each.capped)
COUNTING = tuple(name for name, each in OPTIMIZERS.items() if each.takes_counting)


def by_memory() -> list[Optimizer]:
    """Return all optimizers, the planner's too: last those that keep floats for every weight."""
    return sorted(_REGISTRY, key=lambda each: each.state.weight)


@dataclass(frozen=True)
class Rule:
    """An optimizer and its options.

    Weight decay of adagrad and adam is torch's: every row, every step. That of the others follows
    the law of :mod:`freqsgd.rates`, for which sgd and rowwise-adagrad keep a counter per row too.

    Args:
        optimizer: a key of :data:`OPTIMIZERS`
        lr: learning rate; None to let :func:`~freqsgd.recommender.find_lr.find_lr` find it
        weight_decay: strength of the L2 penalty
        weight_decay_power: how the law spreads it over frequencies; 1 is ordinary L2, for cfadam
            the decay of AdamW
        max_lr: cap on the rate of a row, for fasgd and cfsgd
        linear_lr_scale: learning rate of linear weights, times that of the vectors
        linear_decay_scale: weight decay of linear weights, times that of the vectors
        halflife: of counts, in samples, for cfsgd; None: they do not fade
        count: ``"occurrence"``, or, for cfsgd, ``"batch"``: a row counts once per batch that holds
            it, and frequencies are per batch, as TorchRec counts. Then start from
            lr * sqrt(batch size)
        dense_lr: rate of the bias and of a network where batches are counted; None: that which
            goes with ``lr`` where occurrences are
    """

    optimizer: str
    lr: float | None = None
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    max_lr: float | None = None
    linear_lr_scale: float = 1.0
    linear_decay_scale: float = 1.0
    halflife: float | None = None
    count: str = "occurrence"
    dense_lr: float | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"unknown optimizer {self.optimizer!r}; known: {known}")
        _ = self.law
        for name in ("linear_lr_scale", "linear_decay_scale"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be a number >= 0, got {getattr(self, name)}")
        if self.max_lr is not None and not self.facts.capped:
            names = " and ".join(CAPPED)
            raise ValueError(f"max_lr is for {names}, not for {self.optimizer}")
        check_counting(halflife=self.halflife, count=self.count)
        if self.halflife is not None:
            self._check_counts("halflife")
        if self.count == "batch":
            self._check_batches()
        elif self.dense_lr is not None:
            raise ValueError("dense_lr needs count 'batch': else bias and network move at lr")

    def _check_counts(self, option: str) -> None:
        if not self.facts.takes_counting:
            names = " and ".join(COUNTING)
            raise ValueError(f"{option} is for {names}, which counts, not for {self.optimizer}")

    def _check_batches(self) -> None:
        """Refuse what does not go with counting batches."""
        self._check_counts("count 'batch'")
        if self.halflife is not None:
            raise ValueError(
                "halflife is in samples, which count 'batch' does not count: leave one out"
            )
        if self.dense_lr is not None and not 0.0 <= self.dense_lr < math.inf:
            raise ValueError(f"dense_lr must be a finite number >= 0, got {self.dense_lr}")

    @property
    def facts(self) -> Optimizer:
        """The optimizer's row of the registry."""
        return OPTIMIZERS[self.optimizer]

    @property
    def settled(self) -> Rule:
        """The rule; without a rate of its own, at the one that serves without a search, if any."""
        return self if self.lr is not None else replace(self, lr=self.facts.lr)

    @property
    def law(self) -> RateLaw:
        """The rate law; sgd is the law of power 0. A rate that is yet to be found is 0."""
        options = {
            "lr": self.lr or 0.0,
            "weight_decay": self.weight_decay,
            "weight_decay_power": self.weight_decay_power,
        }
        if self.facts.kernel == CFADAM:
            return AdamLaw(**options)
        cap = None if self.max_lr == math.inf else self.max_lr
        return RateLaw(**options, power=self.facts.power, max_lr=cap)

    def dense_rate(self, batch_size: int) -> float:
        """The rate of weights that every sample touches: the bias, a network."""
        if self.dense_lr is not None:
            return self.dense_lr
        return self.law.lr * self.dense_scale(batch_size)

    def dense_scale(self, batch_size: int) -> float:
        """That rate as a part of ``lr``, which it follows where a schedule lowers it."""
        if self.dense_lr is None:
            return 1.0 / math.sqrt(batch_size) if self.count == "batch" else 1.0
        if not self.lr:
            raise ValueError(f"dense_lr needs a learning rate (lr) > 0 beside it, got {self.lr}")
        return self.dense_lr / self.lr

    def most_counted(self, samples: int, width: int, batch_size: int) -> int:
        """The most that so many samples can count for a row of a field with so many columns."""
        return -(-samples // batch_size) if self.count == "batch" else samples * width

    @property
    def plain(self) -> dict[str, Any]:
        """All options, as JSON can hold them: an infinite cap is none."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}

    @property
    def counts(self) -> bool:
        """Whether each row has a counter: also decay by frequency needs one, if none is given."""
        facts = self.facts
        by_frequency = not (facts.dense_decay or facts.needs_frequencies)
        return facts.counts or (self.weight_decay > 0 and by_frequency)

    @property
    def dense(self) -> bool:
        """Whether every step changes all rows, also those that the batch does not hold."""
        return self.facts.dense or (self.weight_decay > 0 and self.facts.dense_decay)

    @property
    def decay_rule(self) -> str:
        """How weight decay works, in words."""
        if self.weight_decay == 0:
            return "none"
        if self.facts.dense_decay:
            return "dense L2: every row, every step"
        return f"by frequency, power {self.weight_decay_power:g}"

    @property
    def keeps(self) -> str:
        """What the optimizer keeps beside the weights of FM, in words."""
        return self.kept(linear=True)

    def kept(self, *, linear: bool) -> str:
        """Return what is kept for rows with a linear weight, or for rows without, in words."""
        state = self.facts.state_of(linear=linear)
        if not self.counts or self.facts.counts:
            return state.words
        return f"{'' if state == State() else f'{state.words} and '}one counter per row"
