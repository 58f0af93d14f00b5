"""Training word models with a softmax over the whole vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.data.corpus import Paragraphs
from freqsgd.nn.word2vec import WordModel
from freqsgd.optim import CFSGD, FASGD
from freqsgd.training.engine import DivergedError
from freqsgd.training.rules import Rule
from freqsgd.training.softmax_layer import SoftmaxLayer
from freqsgd.training.text_rules import check_rule
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.torch_threads import torch_threads
from freqsgd.training.windows import Samples, kept_share
from freqsgd.training.word_batches import batches, losses_by_word, parts, samples_of
from freqsgd.training.word_engine import check_model
from freqsgd.training.word_losses import WordLosses
from freqsgd.training.word_optimizers import word_optimizer

__all__ = ["SoftmaxEngine"]


class SoftmaxEngine:
    """Minibatch training of a word model, equal to autograd and the torch optimizer.

    A step minimises the mean cross-entropy of its samples. The frequency of a word in the input
    table is per sample: for skip-gram its share of the pairs, for CBOW, where a sample has several
    words, the sum over words is about twice the window. In the output table and its bias it is the
    word's share of the targets.

    Args:
        model: trained in place; float32, on the CPU, with a bias
        rule: the optimizer
        settings: window, batch size, subsampling and seed
        counts: occurrences of each word in the training text; fasgd takes its frequencies, which
            are nearly those of the samples, from them
        threads: that torch uses meanwhile (default: torch's number); results differ in rounding

    Attributes:
        samples, steps: taken so far
    """

    def __init__(
        self,
        model: WordModel,
        rule: Rule,
        settings: TextSettings,
        counts: NDArray[np.int64],
        threads: int | None = None,
    ) -> None:
        check_rule(rule, settings)
        check_model(model, settings, counts)
        self.model, self.rule, self.settings = model, rule, settings
        self.threads = torch.get_num_threads() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self.samples = self.steps = 0
        self._share = kept_share(counts, settings.subsample)
        self._layer = SoftmaxLayer(model.output)
        self._tables = {
            "input.weight": model.input.weight,
            "output.weight": model.output.weight,
            "output.bias": model.output.bias.detach()[:, None],  # its entries belong to words too
        }
        self._optimizer = word_optimizer(
            rule,
            self._input,
            self._outputs,
            counts * self._share,
            settings.inputs_per_sample,
        )

    @property
    def _input(self) -> Tensor:
        return self._tables["input.weight"]

    @property
    def _outputs(self) -> list[Tensor]:
        return [self._tables["output.weight"], self._tables["output.bias"]]

    @property
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name; Adam has it from the first step on."""
        return {
            f"{name}.{key}": torch.as_tensor(value)
            for name, table in self._tables.items()
            for key, value in self._optimizer.state.get(table, {}).items()
        }

    @property
    def state_bytes(self) -> int:
        """Bytes that the optimizer keeps beside the weights."""
        return sum(tensor.nbytes for tensor in self.state.values())

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""
        saved = self._optimizer.state_dict()
        saved["state"] = {}
        for number, (name, table) in enumerate(self._tables.items()):
            for key, value in state.items():
                if key.startswith(f"{name}."):
                    if value.dim() and len(value) != len(table):
                        raise ValueError(f"the saved {key} does not fit {len(table)} words")
                    whole = value.dim() == 0 and value.dtype == torch.int64
                    of_table = saved["state"].setdefault(number, {})
                    of_table[key.removeprefix(f"{name}.")] = int(value) if whole else value.clone()
        self._optimizer.load_state_dict(saved)
        self.samples, self.steps = samples, steps

    def train(
        self, text: Paragraphs, order: NDArray[np.int64], lrs: NDArray[np.float64], epoch: int
    ) -> Iterator[NDArray[np.float64]]:
        """Take one step per entry of ``lrs``, over the paragraphs ``order`` names.

        Yields sum of the losses and number of samples, (1, 2), of each step. A step whose
        paragraphs are too short for a sample changes nothing.
        """
        settings, first = self.settings, (epoch, self.steps)
        for ids, starts, lr in batches(text, order, lrs, settings, self._share, first):
            samples = samples_of(ids, starts, self.model, settings)
            loss = self._step(samples, lr) if len(samples) else 0.0
            self.samples += len(samples)
            self.steps += 1
            yield np.array([[loss, len(samples)]])

    def evaluate(self, text: Paragraphs) -> WordLosses:
        """The losses of a text, all of its words included; the model stays as it is."""
        with torch.no_grad(), torch_threads(self.threads), _unchanged(self.model):
            found = (
                (samples, self._losses(samples))
                for samples in parts(text, self.model, self.settings)
            )
            return losses_by_word(found, self.model)

    def _losses(self, samples: Samples) -> NDArray[np.float32]:
        hidden = self.model.hidden(torch.from_numpy(samples.inputs))
        losses: NDArray[np.float32] = self._layer.losses(
            hidden, samples.rows, samples.targets
        ).numpy()
        return losses

    def _step(self, samples: Samples, lr: float) -> float:
        weight, bias = self._outputs
        self._optimizer.zero_grad()
        weight.grad, bias.grad = torch.zeros_like(weight), torch.zeros_like(bias)
        with torch_threads(self.threads):
            hidden = self.model.hidden(torch.from_numpy(samples.inputs))
            losses, slopes = self._layer.gradients(
                hidden.detach(), samples.rows, samples.targets, weight.grad, bias.grad[:, 0]
            )
            loss = float(losses.sum(dtype=torch.float64))
            if not math.isfinite(loss):
                raise DivergedError(self.steps)
            hidden.backward(slopes)
            self._observe(samples)
            for group in self._optimizer.param_groups:
                group["lr"] = lr
            self._optimizer.step()
        self._optimizer.zero_grad()
        return loss

    def _observe(self, samples: Samples) -> None:
        """Tell an optimizer that counts what the batch holds."""
        if isinstance(self._optimizer, CFSGD | FASGD):
            inputs, targets = map(torch.from_numpy, (samples.occurrences, samples.targets))
            self._optimizer.observe(self._input, inputs, len(samples))
            for table in self._outputs:
                self._optimizer.observe(table, targets, len(samples))


@contextmanager
def _unchanged(model: WordModel) -> Iterator[None]:
    """Undo that vectors are shortened when they are used."""
    before = None if model.max_norm is None else model.input.weight.detach().clone()
    try:
        yield
    finally:
        if before is not None:
            model.input.weight.detach().copy_(before)
