"""What parameters and their gradients must be, for a step and for a kernel."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import Parameter

TABLES = (nn.Embedding, nn.EmbeddingBag)  # the modules whose weights are tables
FORWARDS = [kind.forward for kind in TABLES]  # a subclass may look up other ids


def rows_of(param: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradient's rows and their ids; no ids where it is dense."""
    grad = param.grad
    if grad is None:
        return None, None
    if grad.shape != param.shape:
        raise ValueError(
            f"a parameter of shape {tuple(param.shape)} has a gradient of shape "
            f"{tuple(grad.shape)}: call zero_grad() after changing its size"
        )
    if grad.layout == torch.strided:
        return (_plain_memory(grad, param) if param.dim() == 2 else grad), None
    if grad.layout != torch.sparse_coo or param.dim() != 2 or grad.sparse_dim() != 1:
        raise ValueError(
            f"a sparse gradient must consist of rows of a 2-D parameter (one sparse dimension, COO "
            f"layout); the parameter of shape {tuple(param.shape)} has one of layout {grad.layout}"
        )
    return _plain_memory(grad._values(), param), grad._indices()[0].contiguous()


def _plain_memory(grad: Tensor, param: Tensor) -> Tensor:
    """A gradient that can be read from its address, as numbers of the parameter's type."""
    return grad.to(param.dtype).resolve_neg().contiguous()


def check_table(param: Tensor) -> None:
    """Refuse a table that is not a matrix."""
    if param.dim() != 2:
        raise ValueError(f"a table must be 2-D, got a parameter of shape {tuple(param.shape)}")


def why_not_fused(param: Tensor) -> str | None:
    """Why the CPU kernel cannot update a parameter; None if it can."""
    if type(param) not in (Tensor, Parameter):
        return f"the weights are a {type(param).__name__}"
    if param.device.type != "cpu":
        return f"the weights are on {param.device}"
    if param.dtype not in (torch.float32, torch.float64):
        return f"the weights are {param.dtype}, not float32 or float64"
    if not param.is_contiguous():
        return "the weights are not contiguous"
    return None


def check_fused(param: Tensor) -> None:
    """Refuse ``fused=True`` where it cannot be had."""
    if reason := why_not_fused(param):
        raise ValueError(f"fused=True cannot be had: {reason}; use fused=None")
