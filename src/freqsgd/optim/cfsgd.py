"""CF-SGD: frequencies counted online (Algorithm 2 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from freqsgd.optim._base import rates_at
from freqsgd.optim._counting import Batch, samples_seen, state_from_counts
from freqsgd.optim._online import CountingOptimizer, per_sample
from freqsgd.optim._options import Group
from freqsgd.optim._parameters import check_table
from freqsgd.optim._plain import Update, wide

__all__ = ["CFSGD"]


class CFSGD(CountingOptimizer):
    r"""Counter-based frequency-aware SGD.

    .. math::
        \begin{aligned}
            c_k &\leftarrow c_k + \text{occurrences of token } k \text{ in the batch}, \qquad
            n \leftarrow n + \text{samples in the batch} \\
            p_k &= c_k / n, \qquad
            \eta_k = \min\{\text{max\_lr}, \; \text{lr} / p_k^{\,\text{power}}\} \\
            \theta_k &\leftarrow \theta_k - \eta_k \left( g_k
            + \text{weight\_decay} \; q_k \, p_k^{-\text{weight\_decay\_power}} \, \theta_k \right)
        \end{aligned}

    where q_k is the frequency of k in the batch. A weight that is no row of a table is touched by
    every sample: p = q = 1, its rate is ``lr``. The state is one integer per row.

    A parameter is a table if its gradient is sparse, if it is watched or was observed
    (:func:`freqsgd.watch`, :meth:`observe`), or if its group says ``"table": True``, as
    :func:`freqsgd.param_groups` does. All others are ordinary weights; a warning tells of tables
    among them.

    Args:
        params: parameters or parameter groups; every option may differ per group
        lr: rate of a token that every sample holds. With a loss that is the mean over the batch
            start from 1
        power: exponent of the frequency, in [0, 1]; 0 is SGD
        max_lr: cap on every rate
        count: ``"occurrence"``, or ``"batch"``: a row counts once per step that holds it and n
            counts steps. Then start from lr * sqrt(batch size) for tables
        tokens_per_sample: how many ids each sample looks up in a table: F for a table that F
            fields share, so that each field's frequencies sum to 1
        weight_decay: L2 penalty, paid by a row when it occurs
        weight_decay_power: 1 is ordinary L2; below 1 spares rare rows, 0 decays per occurrence
        halflife: number of samples after which a count is worth half
        maximize: ascend instead of descend
        fused: None uses the CPU kernel where it can (CPU, float32 or float64, contiguous), False
            never, True always or raises

    Example:
        >>> emb = torch.nn.EmbeddingBag(1000, 16, mode="sum", sparse=True)
        >>> opt = CFSGD(emb.parameters(), lr=0.5)
        >>> emb(torch.tensor([[1, 2], [1, 3]])).pow(2).sum().backward()
        >>> opt.step()
        >>> opt.counts(emb.weight)[:4]
        tensor([0, 2, 1, 1])

    Note:
        A group keeps ``max_lr`` as ``group["max_rate"]``, since ``OneCycleLR`` uses the other name.

    Reference:
        Li et al., Frequency-aware SGD for Efficient Embedding Learning with Provable Benefits,
        ICLR 2022.
    """

    _group_marks = frozenset({"power", "count", "halflife"})
    _remedy = (
        "Build the optimizer from freqsgd.param_groups(model) and call freqsgd.watch(model, "
        "optimizer) once; or give the module sparse=True"
    )

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        *,
        power: float = 0.5,
        max_lr: float | None = None,
        count: str = "occurrence",
        tokens_per_sample: int = 1,
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        halflife: float | None = None,
        maximize: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "power": power,
                "max_lr": max_lr,
                "count": count,
                "tokens_per_sample": tokens_per_sample,
                "weight_decay": weight_decay,
                "weight_decay_power": weight_decay_power,
                "halflife": halflife,
                "maximize": maximize,
                "fused": fused,
            },
        )

    def rates(self, param: Tensor) -> Tensor:
        """Return the rate of each row as of now; a single number for an ordinary weight."""
        group = self._group_of(param)
        law = self._law(group)
        state = self.state.get(param, {})
        if "counts" not in state:
            shape = (len(param),) if self._is_marked(param, group) else ()
            return rates_at(law, torch.ones(shape, device=param.device))
        counts, one = wide(state["counts"]), self._one(param, group)
        n = samples_seen(state, per_sample(group))
        return rates_at(law, torch.where(counts == 0, one, counts) / n)

    @torch.no_grad()
    def set_counts(self, param: Tensor, counts: Tensor, samples: int) -> None:
        """Start from known counts, e.g. of a model that another optimizer has trained.

        Args:
            param: the table
            counts: occurrences of each row (an integer tensor)
            samples: the number of samples (with ``count="batch"``: of batches) they come from
        """
        group = self._group_of(param)
        check_table(param, self._describe)
        state = state_from_counts(param, counts, samples, per_sample(group), group["halflife"])
        self.state[param].update(state)

    # ---- what FrequencyOptimizer asks --------------------------------------------------------

    def _set_frequencies(self, update: Update, group: Group, batch: Batch | None) -> None:
        state = self.state[update.param]
        update.source = state["counts"]
        if batch is None:
            update.n = samples_seen(state, per_sample(group))
            update.unseen = self._one(update.param, group)
        else:
            update.n, update.unseen = batch.n, batch.unseen
