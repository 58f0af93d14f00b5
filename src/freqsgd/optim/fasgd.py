"""FA-SGD: frequencies known beforehand (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from freqsgd.optim._base import FrequencyOptimizer, rates_at
from freqsgd.optim._counting import COUNTER_KEYS, Batch, State
from freqsgd.optim._options import Group
from freqsgd.optim._parameters import Describe, check_table, describe
from freqsgd.optim._plain import Update

__all__ = ["FASGD"]


class FASGD(FrequencyOptimizer):
    r"""Frequency-aware SGD with given frequencies.

    .. math::
        \begin{aligned}
            \eta_k &= \min\{\text{max\_lr}, \; \text{lr} / p_k^{\,\text{power}}\} \\
            \theta_k &\leftarrow \theta_k - \eta_k \left( g_k
            + \text{weight\_decay} \; q_k \, p_k^{-\text{weight\_decay\_power}} \, \theta_k \right)
        \end{aligned}

    where p_k is the given frequency of token k per sample and q_k its frequency in the batch. A
    parameter with frequencies is a table; all others are ordinary weights, whose rate is ``lr``.
    Apart from the frequencies there is no state (one counter per row with ``weight_decay``).

    Args:
        params: parameters or parameter groups; every option may differ per group
        lr: rate of a token that every sample holds
        frequencies: of every row of a table, per sample, in (0, ``tokens_per_sample``];
            :func:`freqsgd.token_frequencies` makes them. A tensor for a group that holds one table;
            a list, one entry per parameter of the group, or a dict {parameter: tensor} for more,
            None or no entry for ordinary weights. They hold for every group that has no
            ``"frequencies"`` of its own. If they are left out, every group must have its own,
            None for ordinary weights
        power, max_lr, tokens_per_sample, weight_decay, weight_decay_power, maximize, fused: as for
            :class:`freqsgd.CFSGD`

    Example:
        >>> emb = torch.nn.Embedding(4, 8, sparse=True)
        >>> opt = FASGD(emb.parameters(), lr=0.1, frequencies=torch.tensor([1.0, 0.25, 0.01, 0.01]))
        >>> opt.rates(emb.weight)
        tensor([0.1000, 0.2000, 1.0000, 1.0000], dtype=torch.float64)

        Each group with its own:

        >>> user, item = torch.nn.Embedding(2, 8), torch.nn.Embedding(4, 8)
        >>> groups = [
        ...     {"params": user.parameters(), "frequencies": torch.tensor([0.9, 0.1])},
        ...     {"params": item.parameters(), "frequencies": torch.full((4,), 0.25)},
        ... ]
        >>> opt = FASGD(groups, lr=0.1)

    Reference:
        Li et al., Frequency-aware SGD for Efficient Embedding Learning with Provable Benefits,
        ICLR 2022.
    """

    _state_keys = COUNTER_KEYS | {"frequencies"}
    _group_marks = frozenset({"power", "tokens_per_sample"})
    _remedy = "Pass its frequencies as frequencies=; freqsgd.token_frequencies counts them"

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        *,
        frequencies: (
            Tensor | list[Tensor | None] | Mapping[Tensor, Tensor] | Literal["required"] | None
        ) = "required",
        power: float = 0.5,
        max_lr: float | None = None,
        tokens_per_sample: int = 1,
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        maximize: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "frequencies": frequencies,
                "power": power,
                "max_lr": max_lr,
                "tokens_per_sample": tokens_per_sample,
                "weight_decay": weight_decay,
                "weight_decay_power": weight_decay_power,
                "maximize": maximize,
                "fused": fused,
            },
        )
        if isinstance(frequencies, Mapping):
            self._check_used(frequencies)
        if not isinstance(frequencies, str):
            self.defaults["frequencies"] = None  # they live in the state of their tables

    def _check_used(self, frequencies: Mapping[Tensor, Tensor]) -> None:
        for param in frequencies:
            if "frequencies" not in self.state.get(param, {}):
                raise ValueError(
                    f"frequencies were given for {self._describe(param)} that is not among the "
                    "parameters"
                )

    def frequencies(self, param: Tensor) -> Tensor:
        """Return the frequencies of a table's rows, as given."""
        self._group_of(param)
        return self._given(param).clone()

    def rates(self, param: Tensor) -> Tensor:
        """Return the rate of each row as of now; a single number for an ordinary weight."""
        group = self._group_of(param)
        law = self._law(group)
        if "frequencies" not in self.state.get(param, {}):
            return rates_at(law, torch.ones((), device=param.device))
        return rates_at(law, self._given(param))

    @torch.no_grad()
    def set_frequencies(self, param: Tensor, frequencies: Tensor) -> None:
        """Give a table its frequencies: new ones, or those of a table that has grown."""
        group = self._group_of(param)
        _check_frequencies(param, frequencies, self._describe, group["tokens_per_sample"])
        dtype = frequencies.dtype if frequencies.dtype == torch.float64 else torch.float32
        self.state[param]["frequencies"] = frequencies.detach().to(param.device, dtype, copy=True)

    def _given(self, param: Tensor) -> Tensor:
        frequencies: Tensor | None = self.state.get(param, {}).get("frequencies")
        if frequencies is None:
            raise self._no_frequencies(param)
        return frequencies

    def _no_frequencies(self, param: Tensor) -> ValueError:
        return ValueError(
            f"no frequencies for {self._describe(param)}, a table: pass frequencies= "
            "(freqsgd.token_frequencies counts them), or use CFSGD, which counts as it goes"
        )

    # ---- what FrequencyOptimizer asks --------------------------------------------------------

    def _check_params(self, group: Group) -> None:
        super()._check_params(group)
        params, given = group["params"], group.pop("frequencies", None)
        if isinstance(given, str):
            some = [self._describe(param) for param in params[:3]] + ["..."] * (len(params) > 3)
            raise ValueError(
                f"parameter group {len(self.param_groups) - 1} ({', '.join(some)}) has no "
                'frequencies: pass frequencies= to FASGD, or "frequencies" in the group, which is '
                "None for ordinary weights"
            )
        if isinstance(given, Tensor):
            given = [given]
        if isinstance(given, Mapping):
            given = [given.get(param) for param in params]
        if given is None:
            given = [None] * len(params)
        if len(given) != len(params):
            raise ValueError(
                f"{len(given)} tensors of frequencies for {len(params)} parameters: give a list "
                "with one entry per parameter (None for ordinary weights) or a dict"
            )
        for param, frequencies in zip(params, given, strict=True):
            if frequencies is not None:
                _check_frequencies(param, frequencies, self._describe, group["tokens_per_sample"])
            elif group["table"]:
                raise self._no_frequencies(param)
        for param, frequencies in zip(params, given, strict=True):
            if frequencies is not None:
                self.set_frequencies(param, frequencies)

    def _check_saved(self, param: Tensor, state: State) -> None:
        super()._check_saved(param, state)
        if "frequencies" in self.state.get(param, {}) and "frequencies" not in state:
            raise ValueError(
                f"this is not the state of a {type(self).__name__}: it has no frequencies for a "
                "table. Load it into the optimizer that saved it"
            )
        if "frequencies" in state:
            _check_frequencies(param, state["frequencies"], describe)
            if state["frequencies"].dtype not in (torch.float32, torch.float64):
                raise ValueError("saved frequencies have lost precision: the file is damaged")

    def _counts_rows(self, group: Group) -> bool:
        return bool(group["weight_decay"] > 0)

    def _is_table(self, update: Update, group: Group, observed: bool) -> bool:
        param = update.param
        if "frequencies" not in self.state.get(param, {}):
            if observed or update.ids is not None or group["table"]:
                self._given(param)
            return False
        if len(self._given(param)) != len(param):
            raise RuntimeError(
                f"{self._describe(param)} has {len(self._given(param))} frequencies: call "
                "optimizer.set_frequencies(param, frequencies) after adding rows"
            )
        if group["weight_decay"] > 0 and update.ids is None and not observed:
            raise RuntimeError(
                f"the gradient of {self._describe(param)}, a table, is dense and does not say "
                "which rows the batch held, and weight decay needs that: call freqsgd.watch(model, "
                "optimizer) once, or optimizer.observe(param, ids) for each batch"
            )
        return True

    def _set_frequencies(self, update: Update, group: Group, batch: Batch | None) -> None:
        given = self._given(update.param).to(update.param.device)
        update.source = self.state[update.param]["frequencies"] = given


def _check_frequencies(
    param: Tensor, frequencies: Tensor, describe: Describe, tokens_per_sample: float = math.inf
) -> None:
    check_table(param, describe)
    if not isinstance(frequencies, Tensor) or not frequencies.is_floating_point():
        kind = frequencies.dtype if isinstance(frequencies, Tensor) else type(frequencies).__name__
        raise TypeError(f"frequencies must be a tensor of floats, got {kind} for {describe(param)}")
    if frequencies.shape != (len(param),):
        raise ValueError(
            f"frequencies must hold one number for each of {len(param)} rows of {describe(param)}, "
            f"got shape {tuple(frequencies.shape)}"
        )
    wrong = ~((frequencies > 0) & (frequencies <= tokens_per_sample) & frequencies.isfinite())
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"frequencies are per sample and must lie in (0, tokens_per_sample={tokens_per_sample}]"
            f", got {frequencies[row].item():g} for row {row} of {describe(param)}. Divide counts "
            "by the number of samples; a token that occurs several times in a sample needs "
            "tokens_per_sample"
        )
