"""CFAdam: Adam whose second moment of a table is a counter per row times a number per column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW
from torch.optim.adamw import adamw

from freqsgd.optim._base import Group
from freqsgd.optim._counting import (
    COUNTER_KEYS,
    Batch,
    State,
    samples_seen,
    state_from_counts,
)
from freqsgd.optim._online import CountingOptimizer
from freqsgd.optim._parameters import check_table
from freqsgd.optim._plain import Update, wide, working
from freqsgd.optim.watch import signs_of
from freqsgd.rates import AdamLaw, check_integers, number

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
            values spare rare rows
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
        | {"moments", "merged", "scaled", "shared"}  # what a watch saw, and needs to know
    )
    _sums_squares = True
    _group_marks = frozenset({"betas", "clip"})
    _remedy = (
        "It is trained by AdamW, with two floats of state per weight. Pass the model itself, "
        "CFAdam(model, ...), or give the module sparse=True"
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
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for param in counts:
            if id(param) not in known:
                raise ValueError(
                    f"counts were given for a tensor of shape {tuple(param.shape)} that is not "
                    "among the optimizer's parameters"
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
            shared = {name: group[name] for name in kept} | options
            for table in (True, False):
                params = [p for p in group["params"] if (p in counts) == table]
                if params:
                    groups.append({"params": params, "table": table, **shared})
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
        check_table(param)
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
        moments = state.pop("moments", None)
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
        if moments is not None:
            update.squares = _squares(update, state, moments)

    def _scale_columns(self, updates: Sequence[Update]) -> None:
        """Take the squares into the second moments of all tables, which are small, at once."""
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

    def _check_saved(self, param: Tensor, state: State) -> None:
        super()._check_saved(param, state)
        for name, shape in (
            ("square_avg", param.shape[1:]),
            ("exp_avg", param.shape),
            ("exp_avg_sq", param.shape),
        ):
            if name in state and state[name].shape != shape:
                raise ValueError(
                    f"saved {name} of shape {tuple(state[name].shape)} does not fit a parameter of "
                    f"shape {tuple(param.shape)}"
                )
        if "square_avg" in state and not (
            isinstance(state.get("steps"), int)
            and state["steps"] > 0
            and isinstance(state.get("tokens"), int | float)
            and state["tokens"] >= 0
            and ((state["square_avg"] >= 0) & state["square_avg"].isfinite()).all()
        ):
            raise ValueError("saved second moments hold impossible numbers: the file is damaged")

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


def _squares(update: Update, state: State, moments: Tensor) -> Tensor | None:
    """Return the squares of a step's occurrences, summed per column.

    A watch has summed them in ``backward()``. Since then the gradient may have been scaled, by
    GradScaler, by clipping its norm or by DDP's mean over ranks. The sum of its rows, with the
    signs of their ids, tells the factor. Where it tells none, since the table has other uses as
    well, the rows of the gradient take the place of the occurrences.
    """
    assert update.grad is not None
    assert update.param.grad is not None
    squares: Tensor = moments[0]
    if update.param.grad._version:  # changed since backward() made it
        state["scaled"] = True
    if len(moments) == 1:
        known = "scaled" not in state and "shared" not in state
        return squares if known and squares.isfinite().all() else update.squares
    seen = moments[1]
    ids = torch.arange(len(update.param), device=seen.device) if update.ids is None else update.ids
    grad = working(update.grad)
    now = (signs_of(ids).to(grad.dtype) @ grad).to(seen.dtype)
    product = (seen @ now) ** 2
    lengths = (seen @ seen) * (now @ now)
    state.pop("shared", None)
    if not (lengths.isfinite() and product > 0.99 * lengths and squares.isfinite().all()):
        state["shared"] = True
        return update.squares
    scaled: Tensor = squares * ((now @ now) / (seen @ seen))
    return scaled
