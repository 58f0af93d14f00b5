"""Batch norm over a batch of which each rank has a part."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["batch_norm"]


def batch_norm(values: Tensor, layer: nn.BatchNorm1d, size: int, whole: int) -> Tensor:
    """What a layer makes of a rank's samples in training, by mean and variance of the whole batch.

    Args:
        values: of the rank's samples
        layer: whose running mean and variance are moved too
        size: samples that are not there to fill up
        whole: samples of all ranks
    """
    real = (torch.arange(len(values)) < size).unsqueeze(1)
    mean = _over_ranks((values * real).sum(0)) / whole
    centered = values - mean
    variance = _over_ranks((centered.square() * real).sum(0)) / whole
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.num_batches_tracked is not None
    assert layer.momentum is not None
    with torch.no_grad():
        layer.num_batches_tracked += 1
        layer.running_mean.lerp_(mean, layer.momentum)
        layer.running_var.lerp_(variance * (whole / (whole - 1)), layer.momentum)
    return centered * (variance + layer.eps).rsqrt() * layer.weight + layer.bias


def _over_ranks(values: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """Of what all ranks have, in all of which the gradient is that of the sum of their losses."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return _summed(values)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return _summed(slope)


def _summed(values: Tensor) -> Tensor:
    total = values.clone()
    dist.all_reduce(total)
    return total
