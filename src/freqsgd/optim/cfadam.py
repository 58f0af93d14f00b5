"""CFAdam: Adam whose second moment of a table is a counter per row times a number per column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW
from torch.optim.adamw import adamw

from freqsgd.optim._counting import (
    COUNTER_KEYS,
    Batch,
    State,
    samples_seen,
    state_from_counts,
)
from freqsgd.optim._moments import PROBE, choose_probe, probe_of, rows_now, squares_of
from freqsgd.optim._online import CountingOptimizer
from freqsgd.optim._options import Group
from freqsgd.optim._parameters import check_table, describe
from freqsgd.optim._plain import Update, wide
from freqsgd.rates import AdamLaw, check_ids, check_integers, number

__all__ = ["CFAdam"]

ADAM_KEYS = frozenset({"step", "exp_avg", "exp_avg_sq"})  # of an ordinary weight, as in AdamW


class CFAdam(CountingOptimizer):
    r"""Adam with one counter per row of a table in place of two floats per weight.

    Adam's second moment of an embedding table is close to :math:`p_k s_j`: the frequency of the
    row times one number per column. CFAdam keeps the two factors. ``lr`` means what it means in
    Adam, so a model can change over without a new search.

    In step :math:`t`, which holds :math:`m` tokens, each occurrence :math:`o` of token :math:`k`
    adds its row of the gradient:

    .. math::
        \begin{aligned}
            c_k &\leftarrow c_k + \text{occurrences of } k, \qquad
            n \leftarrow n + m \\
            s_j &\leftarrow \beta_2 s_j + (1 - \beta_2) \sum_o g_{oj}^2, \qquad
            u_{oj} = g_{oj} / (\sqrt{s_j / (1 - \beta_2^t)} + \epsilon) \\
            p_k &= \max\{c_k / n, \; (1 - \beta_2) / m\} \\
            \theta_{kj} &\leftarrow \theta_{kj} - \frac{\text{lr}}{\sqrt{p_k}} \, u_{oj}
            \min\{1, \; \text{clip} \sqrt{\max\{p_k, 1 / m\}} \, / \, \text{rms}_j(u_{oj})\}
        \end{aligned}

    Every other weight is updated by ``torch.optim.AdamW``'s own code.

    A parameter is a table if its gradient is sparse, if it is watched or was observed
    (:func:`freqsgd.watch`, :meth:`observe`), or if its group says ``"table": True``. Given a model,
    CFAdam finds and watches its ``nn.Embedding`` and ``nn.EmbeddingBag`` modules.

    Args:
        params: a model; or parameters or parameter groups, where every option may differ per group
        lr: learning rate, as in Adam
        betas: decay of the first and second moments. Tables have no first moment
        eps: added to the root of the second moment
        weight_decay: decoupled weight decay, as in AdamW. A row of a table pays when it occurs:
            the part lr * weight_decay * q_k * (c_k / n)^-weight_decay_power, where q_k is its
            frequency in the batch; at most half of the row
        weight_decay_power: 1 gives every row the same decay on average, as AdamW does; smaller
            values spare rare rows, larger ones, up to 1.5, shrink them more
        clip: bound on the step of a table's row, in units of Adam's usual step for a row as
            frequent; None for no bound
        maximize: ascend instead of descend
        fused: for tables, None uses the CPU kernel where it can (CPU, float32 or float64,
            contiguous), False never, True always or raises. For other weights, as in AdamW

    Example:
        >>> model = torch.nn.Sequential(torch.nn.EmbeddingBag(1000, 16), torch.nn.Linear(16, 1))
        >>> opt = CFAdam(model, lr=1e-3)
        >>> model(torch.tensor([[1, 2], [1, 3]])).pow(2).mean().backward()
        >>> opt.step()
        >>> opt.counts(model[0].weight)[:4]
        tensor([0, 2, 1, 1])

    Note:
        A sparse gradient, as ``backward()`` makes it, has one row per occurrence. Where it is dense
        or merged, a watch takes the squares of the occurrences from the gradients of the looked-up
        rows; for a table that is not watched, or whose weight has other uses too, the rows of the
        gradient take their place. The bound then holds for a token's whole step.
    """

    _state_keys = (
        COUNTER_KEYS
        | ADAM_KEYS
        | {"square_avg", "steps", "tokens"}
        | {"moments", "merged", "probe"}  # what a watch has told, and needs to know
    )
    _sums_squares = True
    _group_marks = frozenset({"betas", "clip"})
    _takeover = "load the model alone, or take over from Adam by CFAdam.from_adam"
    _remedy = (
        "It is trained by AdamW, with two floats of state per weight. Pass the model itself, "
        "CFAdam(model, ...), or call freqsgd.watch(model, optimizer)"
    )

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        weight_decay_power: float = 1.0,
        clip: float | None = 3.0,
        maximize: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "weight_decay_power": weight_decay_power,
                "clip": clip,
                "maximize": maximize,
                "fused": fused,
            },
        )

    @classmethod
    def from_adam(
        cls, optimizer: Adam | AdamW, counts: Mapping[Tensor, Tensor], **options: Any
    ) -> CFAdam:
        """Go on with a model that ``torch.optim.Adam`` or ``AdamW`` has trained.

        Ordinary weights keep their state. A table's second moments are summed over its rows.

        Args:
            optimizer: the optimizer that trained the model
            counts: how often each row of a table occurred in all of its training, by parameter;
                what is not named here is an ordinary weight
            options: as for the constructor, in place of the old optimizer's

        Example:
            >>> emb = torch.nn.Embedding(4, 8)
            >>> adam = torch.optim.Adam(emb.parameters(), lr=1e-3)
            >>> emb(torch.tensor([1, 1, 3])).pow(2).sum().backward()
            >>> adam.step()
            >>> opt = CFAdam.from_adam(adam, {emb.weight: torch.tensor([0, 2, 0, 1])})
            >>> handle = watch(emb, opt)
        """
        if not isinstance(optimizer, Adam | AdamW):
            raise TypeError(f"from_adam needs an Adam or AdamW, got {type(optimizer).__name__}")
        if not isinstance(counts, Mapping) or not all(isinstance(p, Tensor) for p in counts):
            raise TypeError("counts must be a dict of parameters and their integer tensors")
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for param in counts:
            if id(param) not in known:
                raise ValueError(
                    f"counts were given for {describe(param)} that is not among the optimizer's "
                    "parameters"
                )
        groups = []
        for group in optimizer.param_groups:
            if group["amsgrad"]:
                raise ValueError("from_adam cannot go on from amsgrad=True")
            decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, AdamW))
            if group["weight_decay"] and not decoupled:
                raise ValueError(
                    "Adam adds weight decay to the gradient, CFAdam decays as AdamW does: set "
                    "weight_decay to 0 in the groups of the old optimizer and pass weight_decay= "
                    "for the new one"
                )
            kept = ("lr", "betas", "eps", "weight_decay", "maximize", "fused")
            for table in (True, False):
                chosen = [k for k, p in enumerate(group["params"]) if (p in counts) == table]
                if chosen:
                    shared = {name: copy(group[name]) for name in kept} | options
                    lists = [name for name in ("params", "param_names") if name in group]
                    shared |= {name: [group[name][k] for k in chosen] for name in lists}
                    groups.append({**shared, "table": table})
        new = cls(groups)
        for param, count in counts.items():
            new.set_counts(param, count)
        for param, state in optimizer.state.items():
            if param in counts:
                steps = int(state["step"])
                new.state[param].update(
                    square_avg=wide(state["exp_avg_sq"]).sum(0),
                    steps=steps,
                    tokens=new.state[param]["units"] / steps,
                )
            else:
                new.state[param] = {name: state[name].clone() for name in sorted(ADAM_KEYS)}
        return new

    def rates(self, param: Tensor) -> Tensor:
        """Return what the gradient of each weight was multiplied by in the latest step.

        A table has one rate per row and column, before the bound. An ordinary weight has ``lr``,
        which Adam divides by the root of each weight's own second moment.
        """
        group = self._group_of(param)
        law = self._law(group)
        state = self.state.get(param, {})
        if "square_avg" not in state:
            return wide(torch.as_tensor(law.lr, device=param.device))
        p = wide(state["counts"]).clamp(min=1) / samples_seen(state, 1)
        eta = law.rate(p.clamp(min=law.least(state["tokens"])))
        rates: Tensor = eta[:, None] * law.scale(state["square_avg"], state["steps"])
        return rates

    @torch.no_grad()
    def observe(self, param: Tensor, ids: Tensor, samples: int | None = None) -> None:
        """Say which tokens the batch holds, as in :meth:`freqsgd.CFSGD.observe`.

        ``samples`` makes no difference: CFAdam's frequencies are shares of the ids.
        """
        super().observe(param, ids)

    @torch.no_grad()
    def set_counts(self, param: Tensor, counts: Tensor) -> None:
        """Start from known counts, e.g. of a model that another optimizer has trained.

        Second moments start from the first gradient; :meth:`from_adam` takes over those of Adam.

        Args:
            param: the table
            counts: occurrences of each row (an integer tensor)
        """
        self._group_of(param)
        check_table(param, self._describe)
        check_integers("counts", counts)
        samples = int(counts.sum(dtype=torch.int64))
        self.state[param].update(state_from_counts(param, counts, samples, 1, None))

    # ---- what FrequencyOptimizer asks --------------------------------------------------------

    def _law(self, group: Group) -> AdamLaw:
        betas = group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas must be a pair of numbers, got {betas!r}")
        if not 0.0 <= number("betas[0]", betas[0]) < 1.0:
            raise ValueError(f"betas[0] must lie in [0, 1), got {betas[0]}")
        return AdamLaw(
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            weight_decay_power=group["weight_decay_power"],
            beta2=betas[1],
            eps=group["eps"],
            clip=group["clip"],
        )

    def _set_frequencies(self, update: Update, group: Group, batch: Batch | None) -> None:
        state = self.state[update.param]
        update.source, update.n = state["counts"], samples_seen(state, 1)
        if update.grad is None or batch is None:
            return
        if "square_avg" not in state:
            columns = torch.zeros(update.param.shape[1], device=update.param.device)
            state.update(square_avg=wide(columns), steps=0)
        state["steps"] += 1
        state["tokens"] = batch.added
        if update.ids is not None and update.ids.numel() < batch.ids.numel():
            state["merged"] = True  # from now on a watch takes the squares from looked-up rows
        for name in ADAM_KEYS:  # of a table that was an ordinary weight before
            state.pop(name, None)

    def _scale_columns(self, updates: Sequence[Update]) -> None:
        """Take the squares into the second moments of all tables, which are small, at once."""
        self._take_watched(updates)
        alike: dict[Any, list[Update]] = defaultdict(list)
        for update in updates:
            if update.squares is not None and update.batch is not None:
                param, steps = update.param, self.state[update.param]["steps"]
                alike[id(update.law), steps, param.dtype, param.device].append(update)
        for (_, steps, dtype, _), group in alike.items():
            law = group[0].law
            assert isinstance(law, AdamLaw)
            moments = [self.state[update.param]["square_avg"] for update in group]
            squares = torch.cat([update.squares for update in group if update.squares is not None])
            together = law.moment(torch.cat(moments), squares)
            scales = law.scale(together, steps).to(torch.promote_types(dtype, torch.float32))
            widths = [len(moment) for moment in moments]
            torch._foreach_copy_(moments, together.split(widths))
            for update, scale in zip(group, scales.split(widths), strict=True):
                update.scale = scale

    def _take_watched(self, updates: Sequence[Update]) -> None:
        """Take the squares of occurrences from what watches told, where that fits the gradient."""
        alike: dict[Any, list[tuple[Update, Tensor, Tensor]]] = defaultdict(list)
        for update in updates:
            state = self.state[update.param]
            moments = state.pop("moments", None)
            if moments is not None and update.grad is not None and "steps" in state:
                now = rows_now(probe_of(state, update.param), update.grad, update.ids)
                alike[moments.shape, moments.device].append((update, moments, now))
                choose_probe(state)
        for group in alike.values():
            told = torch.stack([moments for _, moments, _ in group])
            squares, usable = squares_of(told, torch.stack([now for _, _, now in group]))
            for (update, _, _), new, fits in zip(group, squares, usable.tolist(), strict=True):
                if fits:
                    update.squares = new

    def _check_saved(self, param: Tensor, state: State) -> None:
        super()._check_saved(param, state)
        probe = min(PROBE, len(param)) if param.dim() else 0
        for name, shape in (
            ("square_avg", param.shape[1:]),
            ("moments", (1 + probe, *param.shape[1:])),
            ("probe", (probe,)),
            ("exp_avg", param.shape),
            ("exp_avg_sq", param.shape),
        ):
            if name in state and getattr(state[name], "shape", None) != shape:
                raise ValueError(f"saved {name} does not fit: it must have shape {tuple(shape)}")
        if "square_avg" in state and not (
            type(state.get("steps")) is int
            and state["steps"] > 0
            and isinstance(state.get("tokens"), int | float)
            and state["tokens"] >= 0
            and ((state["square_avg"] >= 0) & state["square_avg"].isfinite()).all()
        ):
            raise ValueError("saved second moments hold impossible numbers: the file is damaged")
        if "probe" in state:
            check_ids(state["probe"], len(param))

    def _step_ordinary(self, updates: Sequence[tuple[Update, Group]]) -> None:
        by_group: dict[int, list[Update]] = defaultdict(list)
        for update, group in updates:
            if update.grad is not None:
                by_group[id(group)].append(update)
        for group in self.param_groups:
            if chosen := by_group[id(group)]:
                self._step_adamw([u.param for u in chosen], group)

    def _step_adamw(self, params: list[Tensor], group: Group) -> None:
        for param in params:
            if "exp_avg" not in self.state[param]:
                on = param.device if group["fused"] else "cpu"
                self.state[param].update(
                    step=torch.zeros((), dtype=torch.float32, device=on),
                    exp_avg=torch.zeros_like(param, memory_format=torch.preserve_format),
                    exp_avg_sq=torch.zeros_like(param, memory_format=torch.preserve_format),
                )
        states = [self.state[param] for param in params]
        adamw(
            params,
            [param.grad for param in params if param.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=group["fused"],
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )
