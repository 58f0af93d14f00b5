"""Skip-gram with negative sampling on WikiText-2."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import wikitext
from benchmarks.zoo.task import Scores, Task, mean_scores, random_batches, rarest_fifth

WINDOW = 5
NEGATIVES = 5
SUBSAMPLING = 1e-4  # threshold above which words are dropped at random


class SkipGram(nn.Module):
    """Score words by the dot product with the vector of the word in the centre."""

    def __init__(self, words: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.centres = nn.Embedding(words, dim, sparse=sparse)
        self.contexts = nn.Embedding(words, dim, sparse=sparse)
        nn.init.uniform_(self.centres.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.contexts.weight)

    def forward(self, centres: Tensor, contexts: Tensor) -> Tensor:
        return (self.contexts(contexts) @ self.centres(centres)[:, :, None]).squeeze(2)


class SkipGramTask(Task):
    """Tell a word near the centre from five random ones. The metric is the held-out loss.

    A pair's loss is the sum over its six words. Its rare token is the rarer of its two words.
    """

    source = "wikitext-2"
    metric = "loss"
    higher_is_better = False
    epochs = 3
    batch_size = 1024
    words_per_epoch = 80_000  # a random stretch of the training text
    held_out_words = 50_000  # the beginning of the validation and test texts
    tokens_per_sample = {"contexts": 1 + NEGATIVES}  # noqa: RUF012

    def __init__(self) -> None:
        text = wikitext()
        self.counts = text.counts
        ratio = SUBSAMPLING * self.counts.sum() / self.counts
        self.kept = (ratio.sqrt() + ratio).clamp(max=1)
        noise = self.counts.double() ** 0.75
        self.noise = (noise / noise.sum()).cumsum(0)
        self.train = text.parts.train
        generator = torch.Generator().manual_seed(0)
        self.validation, self.test = (
            self._samples(part[: self.held_out_words], generator) for part in text.parts[1:]
        )
        centres, contexts = self.test
        self.rare = rarest_fifth(self.counts[torch.stack([centres, contexts[:, 0]])].amin(0))

    def _samples(self, text: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return centres and, for each, a word of its window followed by random words."""
        text = text[torch.rand(len(text), generator=generator) < self.kept[text]]
        reach = torch.randint(1, WINDOW + 1, text.shape, generator=generator)
        pairs = []
        for distance in range(1, WINDOW + 1):
            left, right = text[:-distance], text[distance:]
            forward, back = reach[:-distance] >= distance, reach[distance:] >= distance
            pairs += [torch.stack([left, right])[:, forward], torch.stack([right, left])[:, back]]
        centres, contexts = torch.cat(pairs, 1)
        uniform = torch.rand(len(centres), NEGATIVES, generator=generator, dtype=torch.float64)
        negatives = torch.searchsorted(self.noise, uniform).clamp(max=len(self.noise) - 1)
        return centres, torch.cat([contexts[:, None], negatives], 1)

    def model(self, sparse: bool) -> SkipGram:
        return SkipGram(len(self.counts), dim=48, sparse=sparse)

    def batches(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        last = len(self.train) - self.words_per_epoch
        start = int(torch.randint(last + 1, (), generator=generator))
        stretch = self.train[start : start + self.words_per_epoch]
        centres, contexts = self._samples(stretch, generator)
        for rows in random_batches(torch.arange(len(centres)), self.batch_size, generator):
            yield centres[rows], contexts[rows]

    def loss(self, model: SkipGram, batch: tuple[Tensor, Tensor]) -> Tensor:
        return self._losses(model, batch).mean()

    def _losses(self, model: SkipGram, samples: tuple[Tensor, Tensor]) -> Tensor:
        scores = model(*samples)
        return F.softplus(-scores[:, 0]) + F.softplus(scores[:, 1:]).sum(1)

    def evaluate(self, model: SkipGram) -> Scores:
        validation, test = (self._losses(model, part) for part in (self.validation, self.test))
        return mean_scores(validation, test, self.rare)
