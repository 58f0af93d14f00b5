"""Clicks drawn from a known model, with tokens by Zipf's law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Clicks", "zipf_clicks"]


@dataclass(frozen=True)
class Clicks:
    """Samples: one token per field, whether it was clicked, and how likely that was."""

    ids: Tensor  # (samples, fields), int64; ids of a field start at 0
    labels: Tensor  # (samples,), float32, 0 or 1
    probabilities: Tensor  # (samples,), float32: the truth, which no model can beat
    sizes: tuple[int, ...]  # tokens of each field


def zipf_clicks(
    samples: int = 450_000,
    sizes: tuple[int, ...] = (8_000, 4_000),
    *,
    exponent: float = 1.0,
    dim: int = 8,
    linear_std: float = 0.7,
    interaction_std: float = 1.5,
    seed: int = 0,
) -> Clicks:
    """Draw samples whose click probability is a factorization machine of hidden vectors.

    The n-th most frequent token of a field has a probability proportional to n ** -exponent. Each
    token has a hidden weight and a hidden vector; a click has log odds equal to the sum of the
    weights and of the products of all pairs of vectors.

    Args:
        samples: how many
        sizes: number of tokens of each field
        exponent: of Zipf's law; 0 makes all tokens equally frequent
        dim: size of the hidden vectors
        linear_std: standard deviation of the hidden weights
        interaction_std: standard deviation of the product of two hidden vectors
        seed: the same seed gives the same samples

    Example:
        >>> clicks = zipf_clicks(1000, sizes=(50, 20))
        >>> clicks.ids.shape
        torch.Size([1000, 2])
    """
    generator = torch.Generator().manual_seed(seed)
    columns, logits = [], torch.zeros(samples)
    total, squares = torch.zeros(samples, dim), torch.zeros(samples)
    scale = math.sqrt(interaction_std / math.sqrt(dim))
    for size in sizes:
        frequency = torch.arange(1, size + 1, dtype=torch.float64) ** -exponent
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
