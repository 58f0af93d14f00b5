"""Batch norm over a batch of which each rank has a part."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

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
    mean: Tensor = all_reduce((values * real).sum(0)) / whole
    centered = values - mean
    variance: Tensor = all_reduce((centered.square() * real).sum(0)) / whole
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.num_batches_tracked is not None
    assert layer.momentum is not None
    with torch.no_grad():
        layer.num_batches_tracked += 1
        layer.running_mean.lerp_(mean, layer.momentum)
        layer.running_var.lerp_(variance * (whole / (whole - 1)), layer.momentum)
    return centered * (variance + layer.eps).rsqrt() * layer.weight + layer.bias
