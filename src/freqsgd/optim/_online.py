"""What CFSGD and CFAdam share: tables whose tokens are counted online."""

from __future__ import annotations

import torch
from torch import Tensor

from freqsgd.optim._base import FrequencyOptimizer
from freqsgd.optim._counting import present_weight, samples_seen
from freqsgd.optim._options import Group
from freqsgd.optim._plain import Update, wide


class CountingOptimizer(FrequencyOptimizer):
    """An optimizer that counts the rows of its tables as it goes."""

    def counts(self, param: Tensor) -> Tensor:
        """Return how often each row was counted (int64); with ``halflife`` rounded, as of now."""
        group = self._group_of(param)
        state = self.state.get(param, {})
        if "counts" not in state:
            return torch.zeros(len(param), dtype=torch.int64, device=param.device)
        counts: Tensor = state["counts"]
        if group.get("halflife") is not None:
            counts = (counts / self._one(param, group)).round()
        return counts.to(torch.int64, copy=True)

    def frequencies(self, param: Tensor) -> Tensor:
        """Return the frequency of each row per sample, as counted so far; 0 where unseen."""
        group = self._group_of(param)
        state = self.state.get(param, {})
        if "counts" not in state:
            return wide(torch.zeros(len(param), device=param.device))
        return wide(state["counts"]) / samples_seen(state, per_sample(group))

    # ---- what FrequencyOptimizer asks --------------------------------------------------------

    def _counts_rows(self, group: Group) -> bool:
        return True

    def _is_table(self, update: Update, group: Group, observed: bool) -> bool:
        param = update.param
        if observed or update.ids is not None:
            return True
        if not self._is_marked(param, group):
            return False
        if update.grad is not None and update.grad.any():
            remedy = (
                "call freqsgd.watch(model, optimizer) once, or optimizer.observe(param, ids) for "
                "each batch"
            )
            if any(watch.watches(param) for watch in self._watches):
                remedy = (
                    "its module is watched, but was in eval mode, was not called, or ran without "
                    "gradients: call model.train(), checkpoint activations with "
                    "use_reentrant=False, or call optimizer.observe(param, ids) for each batch"
                )
            raise RuntimeError(
                f"the gradient of {self._describe(param)}, a table, is dense and does not say "
                f"which rows the batch held: {remedy}"
            )
        self._counters(param, group)
        return True

    def _one(self, param: Tensor, group: Group) -> float:
        """Return what one sample counts now."""
        return present_weight(self.state[param], per_sample(group), group.get("halflife"))


def per_sample(group: Group) -> int:
    """Return how many counted units make a sample."""
    return 1 if group.get("count") == "batch" else int(group.get("tokens_per_sample", 1))
