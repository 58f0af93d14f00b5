"""Clicks drawn from a known model, so that the best possible score is known too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import RARE, Field, split_at_random

if TYPE_CHECKING:
    from torch import Tensor

TAILS = ("polynomial", "exponential")
FALLOFF = {"polynomial": 1.0, "exponential": 0.002}  # of each tail, unless another one is given


@dataclass(frozen=True)
class Clicks:
    """Samples: one token per field, whether it was clicked, and how likely that was."""

    ids: Tensor  # (samples, fields), int64; ids of a field start at 0
    labels: Tensor  # (samples,), float32, 0 or 1
    probabilities: Tensor  # (samples,), float32: the truth, which no model can beat
    sizes: tuple[int, ...]  # tokens of each field


def generate_clicks(
    samples: int = 450_000,
    sizes: tuple[int, ...] = (8_000, 4_000),
    *,
    tail: str = "polynomial",
    falloff: float | None = None,
    dim: int = 8,
    linear_std: float = 0.7,
    interaction_std: float = 1.5,
    seed: int = 0,
) -> Clicks:
    """Draw samples whose click probability is a factorization machine of hidden vectors.

    The n-th most frequent token of a field, n = 1, 2, ..., has a probability proportional to
    ``n ** -falloff`` (a polynomial tail) or to ``exp(-falloff * n)`` (an exponential one). Each
    token has a hidden weight and a hidden vector; a click has log odds equal to the sum of the
    weights and of the products of all pairs of vectors.

    Args:
        samples: how many
        sizes: number of tokens of each field
        tail: "polynomial" or "exponential"
        falloff: how fast the tail falls, the paper's nu or tau (by default 1 and 0.002); 0 makes
            all tokens equally frequent
        dim: size of the hidden vectors
        linear_std: standard deviation of the hidden weights
        interaction_std: standard deviation of the product of two hidden vectors
        seed: the same seed gives the same samples

    Example:
        >>> clicks = generate_clicks(1000, sizes=(50, 20))
        >>> clicks.ids.shape
        torch.Size([1000, 2])
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    columns, logits = [], torch.zeros(samples)
    total, squares = torch.zeros(samples, dim), torch.zeros(samples)
    scale = math.sqrt(interaction_std / math.sqrt(dim))
    for size in sizes:
        frequency = _frequencies(size, tail, falloff)
        ranks = torch.multinomial(frequency, samples, replacement=True, generator=generator)
        ids = torch.randperm(size, generator=generator)[ranks]
        weights = linear_std * torch.randn(size, generator=generator)
        vectors = scale * torch.randn(size, dim, generator=generator)
        logits += weights[ids]
        total += vectors[ids]
        squares += vectors[ids].square().sum(1)
        columns.append(ids)
    logits += (total.square().sum(1) - squares) / 2
    probabilities = logits.sigmoid()
    labels = torch.bernoulli(probabilities, generator=generator)
    return Clicks(torch.stack(columns, 1), labels, probabilities, tuple(sizes))


def _frequencies(size: int, tail: str, falloff: float | None) -> Tensor:
    """Return frequencies of tokens, the most frequent first, up to a common factor."""
    import torch

    if tail not in TAILS:
        raise DataError(f"unknown tail {tail!r}: known are {', '.join(TAILS)}")
    rate = FALLOFF[tail] if falloff is None else falloff
    rank = torch.arange(1, size + 1, dtype=torch.float64)
    return rank**-rate if tail == "polynomial" else torch.exp(-rate * rank)


def clicks_dataset(clicks: Clicks, split_seed: int = 0) -> Dataset:
    """Make a dataset of generated samples, split at random; the ids make room for the rare one."""
    import torch

    ids = (clicks.ids + RARE + 1).to(torch.int32).numpy()
    return Dataset(
        "synthetic",
        tuple(Field(f"field{n}", size + 1) for n, size in enumerate(clicks.sizes, start=1)),
        ids,
        clicks.labels.to(torch.uint8).numpy(),
        split_at_random(len(ids), split_seed),
        probabilities=clicks.probabilities.numpy(),
    )
