"""What parameters and their gradients must be, and how messages name them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from freqsgd.rates import check_ids

TABLES = (nn.Embedding, nn.EmbeddingBag)  # the modules whose weights are tables
FORWARDS = [kind.forward for kind in TABLES]  # a subclass may look up other ids


Describe = Callable[[Tensor], str]  # an optimizer's `describe`, which knows names


def describe(param: Tensor, name: str | None = None) -> str:
    """Return what messages call a parameter: its name, where it is known, and its shape."""
    known = "a parameter" if name is None else f"parameter {name!r}"
    return f"{known} of shape {tuple(param.shape)}"


def rows_of(param: Tensor, describe: Describe) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradient's rows and their ids; no ids where it is dense."""
    grad = param.grad
    if grad is None:
        return None, None
    if grad.shape != param.shape:
        raise ValueError(
            f"{describe(param)} has a gradient of shape {tuple(grad.shape)}: call zero_grad() "
            "after changing its size"
        )
    if grad.layout == torch.strided:
        return (_plain_memory(grad, param) if param.dim() == 2 else grad), None
    if grad.layout != torch.sparse_coo or param.dim() != 2 or grad.sparse_dim() != 1:
        raise ValueError(
            "a sparse gradient must consist of rows of a 2-D parameter (one sparse dimension, COO "
            f"layout); {describe(param)} has one of layout {grad.layout}"
        )
    return _plain_memory(grad._values(), param), grad._indices()[0].contiguous()


def _plain_memory(grad: Tensor, param: Tensor) -> Tensor:
    """Return a gradient that can be read from its address, in the parameter's type."""
    if grad.dtype != param.dtype:
        grad = grad.to(param.dtype)
    return grad.resolve_neg().contiguous()


def check_table(param: Tensor, describe: Describe) -> None:
    """Refuse a table that is not a matrix."""
    if param.dim() != 2:
        raise ValueError(f"a table must be 2-D, got {describe(param)}")


def check_rows(param: Tensor, ids: Tensor, describe: Describe) -> None:
    """Refuse ids that are not rows of a table."""
    try:
        check_ids(ids, len(param))
    except IndexError as error:
        raise IndexError(f"{error} of {describe(param)}") from None


def why_not_fused(param: Tensor) -> str | None:
    """Return why the CPU kernel cannot update a parameter; None if it can."""
    if type(param) not in (Tensor, Parameter):
        return f"the weights are a {type(param).__name__}"
    if not param.is_cpu:
        return f"the weights are on {param.device}"
    if param.dtype not in (torch.float32, torch.float64):
        return f"the weights are {param.dtype}, not float32 or float64"
    if not param.is_contiguous():
        return "the weights are not contiguous"
    return None


def check_fused(param: Tensor, describe: Describe) -> None:
    """Refuse ``fused=True`` where the kernel cannot update a parameter."""
    if reason := why_not_fused(param):
        raise ValueError(f"fused=True cannot serve {describe(param)}: {reason}; use fused=None")
