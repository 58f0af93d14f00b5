"""New models, and the engines that train a module's own tensors with the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from freqsgd.errors import DivergedError
from freqsgd.kernels.fm import job as kernels
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.optimizers import WIDE, Rule
from freqsgd.rates import AdamLaw
from freqsgd.recommender.halflife import Halflife
from freqsgd.recommender.models import model_of
from freqsgd.recommender.predict import BLOCK, DeepPredictor, Predictor, check_samples
from freqsgd.recommender.settings import Settings
from freqsgd.runs.torch_threads import network_threads, torch_threads
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Field

_LONGEST_CALL = 3e7  # numbers that a call of a kernel may touch: some hundredths of a second
_OF_TRIAL = 16  # so many times shorter are calls that try a number of threads


class Engine(Predictor):
    """Minibatch training of an :class:`~freqsgd.nn.FM`, equal to autograd and the torch optimizer.

    Args:
        model: trained in place; float32, on the CPU
        rule: the optimizer
        batch_size: samples per step
        threads: maximum for the kernels (default: torch's number); on a busy machine they may use
            one. The result does not depend on it
        frequencies: frequency of each row, per sample; for fasgd
        expected: number of samples that will come, if known: counters that could overflow 32 bits
            then have 64 from the start

    Attributes:
        samples, steps: taken so far
        torch_threads: number of threads of torch's operators, where the result depends on it
    """

    torch_threads: int | None = None

    def __init__(
        self,
        model: FM,
        rule: Rule,
        *,
        batch_size: int = 1024,
        threads: int | None = None,
        frequencies: Tensor | None = None,
        expected: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        counted = rule.most_counted(expected, max(model.widths), batch_size)
        super().__init__(model, threads, _mark_type(rule, counted))
        self.rule, self.batch_size = rule, batch_size
        self.samples = self.steps = 0
        self._dense_scale = rule.dense_scale(batch_size)
        self._state = _new_state(model, rule, frequencies, self._marks.dtype)
        # counts serve as the marks that the kernel needs; without them there are marks alone
        rows = len(model.tokens.weight)
        self._marks = self._state.get("counts", torch.zeros(rows, dtype=torch.int32))
        self._buffers = _buffers(model, rule, batch_size)
        self._fading = Halflife.of(rule, self._state, batch_size)

    @property
    def state(self) -> dict[str, Tensor]:
        """The optimizer's state, by name."""
        return self._state

    @property
    def state_bytes(self) -> int:
        """Bytes of the optimizer's state."""
        return sum(tensor.nbytes for tensor in self.state.values())

    def train(
        self,
        ids: NDArray[np.int32],
        labels: NDArray[np.uint8],
        order: NDArray[np.int64],
        lrs: NDArray[np.float64],
        most: int | None = None,
        weights: NDArray[np.float32] | None = None,
        logits: NDArray[np.float32] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Take one step per entry of ``lrs``, over the samples ``order`` names.

        Yields the losses of some hundredths of a second's steps at a time, of ``most`` at most.
        The loss of a sample is multiplied by its weight, which does not change what is counted.
        ``logits`` takes the log odds of the samples, each as it was before its step.
        """
        self._begin(ids, labels, order, lrs, weights, logits)
        columns, dim = len(self._starts), self.model.dim
        work = self.batch_size * columns * dim
        if self.rule.dense:
            work += self.model.tokens.weight.numel()
        steps, team = max(1, int(_LONGEST_CALL / work)), self._team(self.batch_size, (True, True))
        most = most or len(lrs)
        first = 0
        while first < len(lrs):
            count = max(1, steps // _OF_TRIAL) if team.is_trial else steps
            count = min(count, most - first % most)
            if self._fading is not None:
                count = min(count, self._fading.steps(self.samples))
            some = np.ascontiguousarray(lrs[first : first + count], np.float64)
            losses = np.zeros(len(some))
            job = self._training_job(ids, order)
            job["labels"], job["losses"] = labels.ctypes.data, losses.ctypes.data
            job["sample_weights"] = 0 if weights is None else weights.ctypes.data
            job["logits"] = 0 if logits is None else logits[first * self.batch_size :].ctypes.data
            job["first"] = first * self.batch_size
            job["last"] = min((first + len(some)) * self.batch_size, len(order))
            job["forward"] = job["update"] = 1
            self._describe_rule(job, some)
            self._run(job, ids)
            increment_version([self.model.tokens.weight, self.model.bias])
            if job["bad_step"][0] >= 0:
                raise DivergedError(self.steps + int(job["bad_step"][0]))
            self.samples += int(job["last"][0] - job["first"][0])
            self.steps += len(some)
            first += len(some)
            yield losses

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved; wide counters are taken over, not copied."""
        for name, tensor in list(self._state.items()):
            saved = state.get(name)
            if saved is None or saved.shape != tensor.shape:
                raise ValueError(
                    f"the saved optimizer state has no {name} of shape {tuple(tensor.shape)}"
                )
            if name == "counts" and (saved.dtype, tensor.dtype) == (torch.int64, torch.int32):
                self._state[name] = self._marks = saved
            else:
                tensor.copy_(saved)
        self.samples, self.steps = samples, steps

    def _training_job(self, ids: NDArray[np.int32], order: NDArray[np.int64]) -> Any:
        job = self._job(ids, order)
        job["batch_size"] = self.batch_size
        for name, array in self._buffers.items():
            job[name] = array.ctypes.data
        return job

    def _describe_rule(self, job: Any, lrs: NDArray[np.float64]) -> None:
        rule, law = self.rule, self.rule.law
        job["rule"], job["eps"] = rule.facts.kernel, rule.facts.eps
        job["dense"], job["dense_decay"] = rule.dense, rule.facts.dense_decay
        job["shard_shift"] = 6 if rule.dense else 0  # sweeps over all rows like theirs in one piece
        shards = 1
        while len(self._spans) * shards < self.threads:
            shards *= 2
        job["shards"] = shards
        job["marks"], job["counted"] = self._marks.data_ptr(), rule.counts
        job["once_per_step"] = rule.count == "batch"
        for name in ("frequencies", "state", "moment", "bias_state", "moments"):
            job[name] = self._state[name].data_ptr() if name in self._state else 0
        if self._fading is not None:
            count = int(job["last"][0] - job["first"][0])
            self._fading.describe(job, self.samples, count)
        job["samples_before"], job["steps_before"] = self.samples, self.steps
        job["lrs"] = lrs.ctypes.data
        job["power"], job["max_lr"] = law.power, law.cap
        job["weight_decay"] = rule.weight_decay
        job["weight_decay_power"] = rule.weight_decay_power
        job["linear_lr_scale"] = rule.linear_lr_scale
        job["linear_decay_scale"] = rule.linear_decay_scale
        job["bias_lr_scale"] = self._dense_scale
        job["beta1"], job["beta2"], job["clip"] = 0.9, AdamLaw.beta2, AdamLaw.clip

    def _begin(
        self,
        ids: NDArray[np.int32],
        labels: NDArray[np.uint8],
        order: NDArray[np.int64],
        lrs: NDArray[np.float64],
        weights: NDArray[np.float32] | None,
        logits: NDArray[np.float32] | None,
    ) -> None:
        """Check what training is given; counts that might not fit 32 bits become 64."""
        check_samples(ids, order, self.model)
        if labels.dtype != np.uint8 or not labels.flags.c_contiguous:
            raise ValueError(f"labels must be a contiguous uint8 array, got {labels.dtype}")
        if len(lrs) != -(-len(order) // self.batch_size):
            raise ValueError(
                f"{len(order)} samples in batches of {self.batch_size} do not make {len(lrs)} steps"
            )
        if len(order) and order.max() >= len(labels):
            raise ValueError(f"row {order.max()} is out of range for {len(labels)} labels")
        _check_floats("weights", weights, "label", len(labels))
        _check_floats("logits", logits, "row number", len(order))
        counted = (self.samples + len(order)) * max(self.model.widths)
        if self.rule.count == "batch":
            counted = self.steps + len(lrs)
        if self._marks.dtype == torch.int32 and self.rule.counts and counted >= WIDE:
            self._state["counts"] = self._marks = self._marks.long()


class DeepEngine(DeepPredictor, Engine):
    """The same for :class:`~freqsgd.nn.DeepFM`: torch runs the network, the kernels the tables.

    Dropout draws from ``seed`` and the number of the step, so that a run can be resumed.
    """

    model: DeepFM

    def __init__(self, model: DeepFM, rule: Rule, *, seed: int = 0, **options: Any) -> None:
        super().__init__(model, rule, **options)
        self.seed = seed
        sizes = self.batch_size, BLOCK  # of training, of predictions
        self.torch_threads = max(network_threads(model.network, size) for size in sizes)
        self._optimizer = _network_optimizer(model.network, rule)
        self._vectors = torch.empty(self.batch_size, len(model.sizes), model.dim)

    @property
    def state(self) -> dict[str, Tensor]:
        """The state of both optimizers, by name."""
        state = dict(self._state)
        for number, values in self._optimizer.state_dict()["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    state[f"network.{number}.{name}"] = value
        return state

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""
        super().load_state(state, samples, steps)
        saved = self._optimizer.state_dict()
        for key, value in state.items():
            if key.startswith("network."):
                _, number, name = key.split(".")
                saved["state"].setdefault(int(number), {})[name] = value
        self._optimizer.load_state_dict(saved)

    def train(
        self,
        ids: NDArray[np.int32],
        labels: NDArray[np.uint8],
        order: NDArray[np.int64],
        lrs: NDArray[np.float64],
        most: int | None = None,
        weights: NDArray[np.float32] | None = None,
        logits: NDArray[np.float32] | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Take one step per entry of ``lrs``; yields the loss of each."""
        self._begin(ids, labels, order, lrs, weights, logits)
        self.model.train()
        for step, lr in enumerate(lrs):
            rows = order[step * self.batch_size : (step + 1) * self.batch_size]
            if logits is not None:
                start = step * self.batch_size
                logits[start : start + len(rows)] = self.predict(ids, rows)
                self.model.train()
            threads = network_threads(self.model.network, self.batch_size)
            with _seeded((self.seed << 32) + self.steps), torch_threads(threads):
                times = None if weights is None else torch.from_numpy(weights[rows])
                targets = torch.from_numpy(labels[rows]).float()
                loss = self._step(ids, targets, times, rows, float(lr))
            self.samples += len(rows)
            self.steps += 1
            yield np.array([loss])

    def _step(
        self, ids: NDArray[np.int32], labels: Tensor, weights: Tensor | None, rows: Any, lr: float
    ) -> float:
        size = len(rows)
        vectors, shallow = self._vectors[:size], torch.empty(size)
        job = self._training_job(ids, rows)
        job["last"], job["forward"], job["slopes"] = size, 1, 0
        job["logits"], job["vectors"] = shallow.data_ptr(), vectors.data_ptr()
        self._run(job, ids)
        inputs = [shallow, vectors.detach().flatten(1)]
        for tensor in inputs:
            tensor.requires_grad_()
        self.model.network.train(size > 1)  # batch norm has no variance of one sample
        logits = shallow + self.model.network(inputs[1]).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels, weights)
        if not math.isfinite(loss.item()):
            raise DivergedError(self.steps)
        weights_of_network = self._optimizer.param_groups[0]["params"]
        slopes, gradient, *others = torch.autograd.grad(loss, [*inputs, *weights_of_network])
        if not torch.nn.utils.get_total_norm(others).isfinite():
            raise DivergedError(self.steps, "has a gradient that is not a finite number")
        for parameter, its in zip(weights_of_network, others, strict=True):
            parameter.grad = its
        for group in self._optimizer.param_groups:
            group["lr"] = min(lr * self._dense_scale, self.rule.law.cap)
        self._optimizer.step()
        slopes, gradient, lrs = slopes.contiguous(), gradient.contiguous(), np.array([lr])
        job["forward"], job["update"] = 0, 1
        job["slopes"], job["vectors_gradient"] = slopes.data_ptr(), gradient.data_ptr()
        self._describe_rule(job, lrs)
        self._run(job, ids)
        increment_version([self.model.tokens.weight, self.model.bias])
        return loss.item()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let torch draw from a seed, and then go on as before."""
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)


def engine_for(model: FM, rule: Rule, *, seed: int = 0, **options: Any) -> Engine:
    """Return the engine that trains a model."""
    kind = model_of(model)
    if kind.network:
        options["seed"] = seed
    engine: Engine = kind.load("engine")(model, rule, **options)
    return engine


def new_model(fields: Sequence[Field], settings: Settings) -> FM:
    """Return a new model for the fields of a sample; all tokens start at random."""
    kind = settings.kind
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model: FM = kind.load("module")(
            [field.size for field in fields],
            settings.vector_dim,
            widths=[field.width for field in fields],
            init_scale=settings.init_scale,
            **kind.options(settings.hidden, settings.dropout),
        )
    return model


def build_model(data: Dataset, settings: Settings) -> FM:
    """Return a new model for a dataset; tokens that training never shows are 0 and add nothing."""
    model = new_model(data.fields, settings)
    with torch.no_grad():
        model.tokens.weight[torch.from_numpy(data.token_counts == 0)] = 0
    return model


def frequencies_for(data: Dataset, rule: Rule) -> Tensor | None:
    """Return the frequency of each row, for a rule that needs them."""
    if not rule.facts.needs_frequencies:
        return None
    return torch.from_numpy(np.maximum(data.token_counts, 1) / len(data.splits.train)).float()


def _check_floats(name: str, array: NDArray[Any] | None, of: str, count: int) -> None:
    if array is None:
        return
    if array.dtype != np.float32 or not array.flags.c_contiguous or array.shape != (count,):
        raise ValueError(f"{name} must be a contiguous float32 array, one for each {of}")


def _mark_type(rule: Rule, counted: int) -> torch.dtype:
    """Return the type that holds such counts, or marks alone."""
    if rule.halflife is not None:
        return torch.float64
    return torch.int64 if rule.counts and counted >= WIDE else torch.int32


def _new_state(
    model: FM, rule: Rule, frequencies: Tensor | None, marks: torch.dtype
) -> dict[str, Tensor]:
    weight, facts = model.tokens.weight, rule.facts
    state: dict[str, Tensor] = {}
    if rule.counts:
        state["counts"] = torch.zeros(len(weight), dtype=marks)
    if rule.halflife is not None:
        state["fading"] = torch.zeros(2, dtype=torch.float64)
    if facts.needs_frequencies:
        if frequencies is None or frequencies.shape != weight.shape[:1]:
            raise ValueError(f"{rule.optimizer} needs the frequency of every row")
        state["frequencies"] = frequencies.float().contiguous().clone()
    elif facts.state.row:
        state["state"] = torch.zeros(len(weight), facts.state.row)
    for name in ("state", "moment")[: facts.state.weight]:
        state[name] = torch.zeros_like(weight)
    if facts.state.column:
        state["moments"] = new_moments(model)
    if facts.adaptive:
        state["bias_state"] = torch.zeros(2)
    return state


def new_moments(model: FM) -> Tensor:
    """Return the second moments of each field's columns, and the ids that it has seen: none."""
    return torch.zeros(len(model.sizes), model.dim + 2, dtype=torch.float64)


def _buffers(model: FM, rule: Rule, batch_size: int) -> dict[str, NDArray[Any]]:
    """Allocate the arrays that the first phase of a step fills for the second."""
    chunks, fields, dim = -(-batch_size // kernels.CHUNK), len(model.sizes), model.dim
    buffers: dict[str, NDArray[Any]] = {
        "batch_ids": np.empty((len(model.columns_start), batch_size + kernels.PAD), np.int32),
        "sums": np.empty((batch_size, dim), np.float32),
        "slopes": np.empty(batch_size, np.float32),
        "chunk_losses": np.empty(chunks),
    }
    if rule.facts.state.column:
        buffers |= {
            "chunk_squares": np.empty((chunks, fields, dim + 2), np.float32),
            "column_scales": np.empty((fields, dim + 1), np.float32),
            "field_tokens": np.empty(fields),
        }
    return buffers


def _network_optimizer(network: nn.Module, rule: Rule) -> torch.optim.Optimizer:
    """Return the network's optimizer: each step sets one rate for all weights, decay is L2."""
    kind: type[torch.optim.Adam] = getattr(torch.optim, rule.facts.network)
    return kind(network.parameters(), weight_decay=rule.weight_decay, fused=True)
