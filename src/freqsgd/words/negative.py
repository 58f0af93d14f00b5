"""Training word models with negative sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.nn.functional import softplus

from freqsgd.errors import DivergedError
from freqsgd.kernels.threads import Team, run
from freqsgd.kernels.words import job as kernels
from freqsgd.kernels.words.block import block_kernel
from freqsgd.kernels.words.pairs import pair_products
from freqsgd.nn.word2vec import WordModel
from freqsgd.optimizers import LAW, Rule
from freqsgd.rates import AdamLaw
from freqsgd.words.corpus import Paragraphs
from freqsgd.words.engine import WordEngine, WordLosses
from freqsgd.words.settings import TextSettings
from freqsgd.words.windows import Ids, Samples

BLOCK = 16  # words; longer ones learn from weights that are out of date
_MOST = 2.0  # rate of a row times the samples of a block that touch it
_CALL = 4096  # words of a call of the kernel: some milliseconds
_DRAWS = {"skipgram": 4096, "cbow": 512}  # noise words of an evaluation
_ROWS = 1024  # whose products with them are held at a time


class NegativeEngine(WordEngine):
    """Training of a word model in small blocks of words, with noise words that a block shares.

    In the output table a sample touches its target and ``negatives`` noise words; all are counted.
    The model has no bias. The rule is sgd, fasgd, cfsgd, cfadam or rowwise-adagrad. For cfadam a
    block is a step, and each row that it looks up counts once. The result does not depend on the
    number of threads.
    """

    def _prepare(self, counts: NDArray[np.int64]) -> None:
        model, rule, settings = self.model, self.rule, self.settings
        self._team = Team(self.threads)
        self._noise = noise_distribution(counts)
        self._cumulative = np.cumsum(self._noise)
        self._cumulative[-1] = 1.0
        self._state = _new_state(model, rule, settings, counts * self._share, self._noise)
        self._job, self._buffers = _new_job(model, rule, settings)
        self._job["noise"] = self._cumulative.ctypes.data
        self._blocks_at_once = _CALL // BLOCK

    @property
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name."""
        return self._state

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""
        for name, tensor in self._state.items():
            saved = state.get(name)
            kinds = (torch.int32, torch.int64) if name.endswith("counts") else (tensor.dtype,)
            if saved is None or saved.shape != tensor.shape or saved.dtype not in kinds:
                raise ValueError(
                    f"the saved optimizer state has no {name} for {self.model.words} words"
                )
            self._state[name] = saved.clone()
        self.samples, self.steps = samples, steps

    def evaluate(self, text: Paragraphs) -> WordLosses:
        """Return the losses of a text, all of its words included.

        The noise is the same in every evaluation: words in the order of their counts, evenly
        spaced in their cumulative probability.
        """
        draws = _DRAWS[self.settings.model]
        drawn = np.searchsorted(self._cumulative, (np.arange(draws) + 0.5) / draws, side="right")
        noise = self.model.output.weight.detach()[torch.from_numpy(drawn)]
        return self._add_up(text, lambda samples: self._losses(samples, noise))

    def _losses(self, samples: Samples, noise: Tensor) -> NDArray[np.float32]:
        with torch.no_grad():
            hidden = self.model.hidden(torch.from_numpy(samples.inputs))
            each = [softplus(some @ noise.T).mean(1) for some in hidden.split(_ROWS)]
            output = self.model.output.weight.numpy()
            targets, rows = samples.targets, samples.rows
            products = pair_products(hidden.numpy(), rows, output, targets, self._team.most)
            losses = softplus(-torch.from_numpy(products))
            losses += self.settings.negatives * torch.cat(each)[torch.from_numpy(rows)]
        found: NDArray[np.float32] = losses.numpy()
        return found

    def _step(self, ids: Ids, starts: Ids, lr: float, epoch: int) -> float:
        if not len(ids):
            return 0.0
        self._widen_counts(len(ids))
        words, lengths = ids.astype(np.int32), np.diff(starts)
        lows = np.repeat(starts[:-1], lengths).astype(np.int32)
        highs = np.repeat(starts[1:], lengths).astype(np.int32)
        blocks = -(-len(words) // BLOCK)
        losses = np.zeros((blocks, kernels.PARTS))
        counters = np.zeros(16, np.int64)
        job = self._job
        job["counters"], job["losses"] = counters.ctypes.data, losses.ctypes.data
        job["ids"], job["length"] = words.ctypes.data, len(words)
        job["starts"], job["ends"] = lows.ctypes.data, highs.ctypes.data
        seed = np.random.SeedSequence([self.settings.seed, epoch, self.steps, 1])
        job["seed"] = seed.generate_state(1, np.uint64).view(np.int64)
        job["bad"], job["samples"], job["lr"] = -1, self.samples, lr
        job["input"] = self.model.input.weight.data_ptr()
        job["output"] = self.model.output.weight.data_ptr()
        for name, tensor in self._state.items():
            job[name] = tensor.data_ptr()
        for first in range(0, blocks, self._blocks_at_once):
            counters[:] = 0
            self._run(first, min(first + self._blocks_at_once, blocks))
        increment_version([self.model.input.weight, self.model.output.weight])
        if job["bad"][0] >= 0:
            raise DivergedError(self.steps)
        self.samples = int(job["samples"][0])
        return float(losses.sum())

    def _run(self, first: int, last: int) -> None:
        """Run the kernel over some blocks of a step."""
        counts = self._state.get("input_counts")
        wide = counts is not None and counts.dtype == torch.int64
        self._job["first"], self._job["last"] = first, last
        with self._team.call(last - first) as threads:
            run(block_kernel(np.int64 if wide else np.int32), self._job, threads)

    def _widen_counts(self, words: int) -> None:
        """Make counts that might not fit 32 bits have 64."""
        if self.settings.most_counted(words, self.samples) >= 2**31:
            for name in ("input_counts", "output_counts"):
                if name in self._state:
                    self._state[name] = self._state[name].long()


def noise_distribution(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chance of each word to be drawn as noise: its count to the power of 3/4."""
    powers: NDArray[np.float64] = counts.astype(np.float64) ** 0.75
    share: NDArray[np.float64] = powers / powers.sum()
    return share


def _new_state(
    model: WordModel,
    rule: Rule,
    settings: TextSettings,
    counts: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> dict[str, Tensor]:
    facts = rule.facts
    if facts.needs_frequencies:
        share = np.maximum(counts, 1) / counts.sum()
        return {
            "input_frequencies": torch.from_numpy(settings.inputs_per_sample * share).float(),
            "output_frequencies": torch.from_numpy(share + settings.negatives * noise).float(),
        }
    if not facts.stateful:
        return {}
    kind, what = (torch.int32, "counts") if facts.counts else (torch.float32, "state")
    tables = (f"input_{what}", f"output_{what}")
    state = {name: torch.zeros(model.words, dtype=kind) for name in tables}
    if facts.state.column:  # second moments of each table's columns, ids and blocks it has seen
        state["moments"] = torch.zeros(2, model.dim + 2, dtype=torch.float64)
    return state


def _new_job(
    model: WordModel, rule: Rule, settings: TextSettings
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return what stays the same from step to step; the buffers are those that it points to."""
    job = np.zeros(1, kernels.JOB)
    window, block, words = settings.window, BLOCK, model.words
    pool = kernels.POOL_UNIT * -(-settings.negatives // (kernels.POOL_UNIT // 2))
    inputs = kernels.ROWS * -(-(block + 2 * window) // kernels.ROWS)
    rows, dim = inputs + block + pool, kernels.padded(model.dim)
    facts, law = rule.facts, rule.law
    by_row = facts.words_kernel != LAW
    buffers: dict[str, NDArray[Any]] = {
        "rows": np.zeros(rows, np.int64),
        "weights": np.zeros(inputs, np.float32),
        "touches": np.zeros(rows, np.float32),
        "totals": np.zeros((2, 0 if by_row else words), np.float32),
        "targets": np.zeros(rows, np.int64),
        "scales": np.zeros(rows, np.float32),
        "owners": np.zeros(rows, np.int64),
        "marks": np.full((2, words if by_row else 0), -1, np.int64),
        "copies": np.zeros((rows, dim), np.float32),
        "hidden": np.zeros((inputs, dim), np.float32),
        "gradients": np.zeros((rows if by_row else 0, dim), np.float32),
        "rates": np.zeros(rows, np.float32),
        "bounds": np.zeros(rows, np.float32),
        "squares": np.zeros((2, dim), np.float32),
        "column_scales": np.zeros((2, dim), np.float32),
        "band": np.zeros((block, 2 * window + 1 + 2 * kernels.GUARD), np.float32),
        "noise_slopes": np.zeros((inputs, pool), np.float32),
    }
    for name, array in buffers.items():
        job[name] = array.ctypes.data
    job["window"], job["full"] = window, settings.windows == "full"
    job["cbow"], job["block"] = settings.model == "cbow", block
    job["pool"], job["negatives"], job["words"] = pool, settings.negatives, words
    job["inputs"], job["dim"] = inputs, model.dim
    job["rule"], job["eps"] = facts.words_kernel, facts.eps
    job["beta2"], job["clip"] = AdamLaw.beta2, AdamLaw.clip
    job["power"], job["cap"], job["most"] = law.power, law.cap, _MOST
    return job, buffers
