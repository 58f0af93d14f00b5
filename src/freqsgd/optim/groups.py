"""Split a model into its tables and the rest."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from freqsgd.optim._parameters import FORWARDS, TABLES

__all__ = ["param_groups"]


def param_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Split a model's trainable parameters into tables and all others.

    An optimizer that is built from these groups knows its tables. It never takes one for an
    ordinary weight, and refuses dense gradients that nobody observed (:func:`freqsgd.watch`).

    Args:
        model: a module; its tables are the weights of ``nn.Embedding`` and ``nn.EmbeddingBag``

    Returns:
        Two parameter groups, tables first, to which options can be added.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 1))
        >>> tables, rest = param_groups(model)
        >>> opt = CFSGD([{**tables, "max_lr": 10.0}, {**rest, "lr": 0.01}], lr=0.5)
    """
    tables = {id(module.weight) for module in model.modules() if isinstance(module, TABLES)}
    return _split([param for param in model.parameters() if param.requires_grad], tables)


def tables_of(model: nn.Module) -> list[Tensor]:
    """Return the weights of a model's embedding modules, as far as these look up their input.

    A subclass with a forward pass of its own may look up other ids or change what it finds.
    """
    modules = [module for module in model.modules() if isinstance(module, TABLES)]
    return [module.weight for module in modules if type(module).forward in FORWARDS]


def groups_of(model: nn.Module) -> list[dict[str, Any]]:
    """Split a model that an optimizer is given as a whole.

    A weight that another kind of module shares, such as the output layer of a language model, is
    an ordinary weight here: every row of it has a gradient in every step.
    """
    tables = {id(weight) for weight in tables_of(model)}
    for module in model.modules():
        if not isinstance(module, TABLES):
            tables -= {id(param) for param in module.parameters(recurse=False)}
    # Frozen weights too, which may be trained later.
    return [group for group in _split([*model.parameters()], tables) if group["params"]]


def _split(params: list[nn.Parameter], tables: set[int]) -> list[dict[str, Any]]:
    return [
        {"params": [param for param in params if id(param) in tables], "table": True},
        {"params": [param for param in params if id(param) not in tables]},
    ]
