"""The rates that ``freqsgd bench`` measures, and the plan of ``freqsgd plan`` (docs/scaling.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from freqsgd.documents.results import Machine

# ---- rates of a machine --------------------------------------------------------------------------

KIND: Literal["rates of a machine"] = "rates of a machine"
AtLeastOne = Annotated[int, Meta(ge=1)]


class BenchMachine(Machine, frozen=True, kw_only=True):
    """The machine that was measured."""

    threads: AtLeastOne
    available_memory: int | None = None
    freqsgd: str
    torchrec: str | None = None
    no_torchrec: str | None = None  # why TorchRec was not measured


class BenchSizes(Struct, frozen=True):
    """The sizes of the measurements.

    Args:
        features: of an example
        tokens: of a feature, and rows of its table; a quarter of these where vectors have 64
            numbers, not 16
        batch_size: examples of a step
        rounds: of which the median is taken
        copied: bytes that are copied
        sent: bytes that are sent
    """

    features: int
    tokens: int
    batch_size: int
    rounds: int
    copied: int
    sent: int

    @property
    def memory(self) -> int:
        """About the most bytes that are held: tables and states of both engines, and a batch."""
        rows, batch = self.features * self.tokens, self.features * self.batch_size
        return 4 * (rows * (17 + 1 + 20 + 3) + 20 * batch * 20)


class BenchRate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A median over the rounds, and the slowest and fastest of them."""

    what: Literal["cfsgd", "torchrec", "copy", "loopback"]
    unit: Literal["rows", "bytes"]
    per_second: Annotated[float, Meta(gt=0)]
    slowest: float
    fastest: float
    dim: int | None = None  # of rows, from here on
    row_bytes: AtLeastOne | None = None
    table_rows: int | None = None


class Bench(Struct, frozen=True, kw_only=True):
    """Rows looked up and updated, bytes copied and bytes sent in a second.

    The rate "copy" is of memory, "loopback" of bytes that each of two processes sends the other.
    """

    schema: int
    kind: Literal["rates of a machine"]
    created: str
    quick: bool  # the tables were small, which is too fast
    machine: BenchMachine
    sizes: BenchSizes
    seconds: float
    rates: tuple[BenchRate, ...]

    def __post_init__(self) -> None:
        """Refuse a document without the rates that every prediction needs."""
        if missing := {"cfsgd", "copy", "loopback"} - {rate.what for rate in self.rates}:
            raise ValueError(f'"rates" has none of {", ".join(sorted(missing))}')

    @property
    def measured(self) -> str:
        """Where and when it was measured."""
        machine = self.machine
        return f"{machine.cpu}, {machine.threads} threads, {self.created[:10]}"

    def rows(self, engine: str) -> list[tuple[int, float]]:
        """Return bytes of a row and rows per second of an engine, by dimension."""
        found = [rate for rate in self.rates if rate.what == engine]
        return [(rate.row_bytes or 1, rate.per_second) for rate in found]

    def bytes_per_second(self, what: str) -> float:
        """Return the rate of "copy" or "loopback"."""
        return next(rate.per_second for rate in self.rates if rate.what == what)


# ---- the plan ------------------------------------------------------------------------------------


class PlannedSize(Struct, frozen=True):
    """The tables and examples that are planned for."""

    features: int
    rows: int
    tokens_per_example: int
    dim: int
    row_width: int  # numbers of a row in TorchRec
    hidden: tuple[int, ...] | None
    batch_size: int
    examples: int | None


class PlannedHost(Struct, frozen=True):
    """Each of the hosts, in bytes."""

    memory: int
    reserve: float  # part of the memory for everything else
    workspace: int
    usable: int
    cores: int | None
    network_bytes_per_second: float | None


class OneProcess(Struct, frozen=True):
    """Training in one process of freqsgd."""

    bytes: int
    fits: bool


class PlannedOptimizer(Struct, frozen=True):
    """The bytes that an optimizer keeps in TorchRec, and the hosts that hold them."""

    optimizer: str
    keeps: str
    state_per_row: int
    state: int
    total: int
    hosts: dict[str, int | None]  # the fewest, by way of sharding; None: no number holds it
    hypothetical: bool  # no engine shards it


class Exchange(Struct, frozen=True):
    """Bytes that a host sends in a step.

    Tokens are taken to be spread evenly, so that every host sends as much as it receives.

    Args:
        ids: of tokens, to the hosts that have their rows
        lengths: numbers of tokens, to the same
        rows: looked up, back to the hosts that have the examples
        gradients: of these rows
        others: log odds, gradients of all other weights, and sums for batch norm
        total: all of it
        seconds: the least time that the network takes for it
    """

    ids: int
    lengths: int
    rows: int
    gradients: int
    others: int
    total: int
    seconds: float | None = None


class StepSeconds(Struct, frozen=True):
    """The time of a step by part; nothing is taken to overlap.

    Args:
        updates: looking rows up, the loss and its gradients, updating rows
        buffers: filling and reading the sums of the whole batch that each host has
        exchange: sending
    """

    updates: float
    buffers: float = 0.0
    exchange: float = 0.0


class Prediction(Struct, frozen=True):
    """The speed of training.

    Args:
        how: "one process" (the engine of freqsgd), or a way of sharding (TorchRec)
        hosts: their number
        seconds: of the parts of a step
        examples_per_second: of all hosts together
        assumptions: of this prediction; docs/scaling.md has those of all predictions
        step_seconds: of a whole step
        hours: for all examples, where their number is known
    """

    how: str
    hosts: int
    seconds: StepSeconds
    examples_per_second: float
    assumptions: tuple[str, ...]
    step_seconds: float
    hours: float | None


class Plan(Struct, frozen=True):
    """Memory, hosts, exchange and speed."""

    schema: int
    size: PlannedSize
    host: PlannedHost
    weights: int  # bytes of all tables in TorchRec
    one_process: OneProcess
    optimizers: tuple[PlannedOptimizer, ...]
    hosts: int
    exchange: dict[str, Exchange | None]  # None: these hosts do not hold it, or tables are few
    rates: str | None  # where and when they were measured
    predictions: tuple[Prediction, ...]
    no_prediction: str | None  # why something is not predicted
    bottleneck: str
    notes: tuple[str, ...]
