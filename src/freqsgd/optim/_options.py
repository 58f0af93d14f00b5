"""Parameter groups whose options are checked and saved, and names of parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from freqsgd.optim._counting import COUNTER_KEYS, State, check_state
from freqsgd.optim._parameters import check_fused, check_table, describe
from freqsgd.rates import RateLaw, check_counting, number

# Keys of parameter groups beside our options: torch's, its schedulers', and our max_rate.
_FOREIGN_KEYS = {"params", "param_names", "name", "initial_lr", "max_rate"}

Group = dict[str, Any]


class CheckedOptimizer(Optimizer):
    """An optimizer that refuses options and saved state that are not its own."""

    _state_keys: frozenset[str] = COUNTER_KEYS  # what a parameter's state may hold
    _group_marks: frozenset[str]  # options by which saved groups are known to be this optimizer's
    _takeover = "load the model alone"  # what to do with a model that another optimizer trained
    _names: dict[Tensor, str]  # of parameters, where torch's groups have none

    def _law(self, group: Group) -> RateLaw:
        """Return the law that a group's options amount to; refuse what makes no sense."""
        return RateLaw(
            lr=group["lr"],
            power=group["power"],
            max_lr=group["max_rate"],
            weight_decay=group["weight_decay"],
            weight_decay_power=group["weight_decay_power"],
        )

    def add_param_group(self, param_group: Group) -> None:
        """Add a group; the options that it leaves out are the optimizer's own."""
        known = [*self.defaults, *_FOREIGN_KEYS]
        for key in param_group:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{type(self).__name__} has no option {key!r}{hint}")
        options = self._renamed({**self.defaults, **param_group})
        self._check_group(options)
        if isinstance(param_group["params"], Iterator):
            param_group["params"] = list(param_group["params"])
        super().add_param_group(dict(param_group))  # a copy: the caller may use its own again
        group = self.param_groups[-1]
        group.update(self._renamed(group))
        group.pop("max_lr", None)
        _make_plain(group)
        try:
            self._check_params(group)
        except Exception:
            self.param_groups.pop()
            raise

    def _renamed(self, options: Group) -> Group:
        """Keep the cap under a name of its own: OneCycleLR writes its peak into ``max_lr``."""
        if "max_lr" not in self.defaults:
            return options
        return {"max_rate": options.get("max_lr", self.defaults["max_lr"]), **options}

    def _check_group(self, group: Group) -> RateLaw:
        """Return a group's rate law; refuse options of the wrong type or without sense."""
        for name in ("maximize", "table"):
            if not isinstance(group[name], bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {group[name]!r}")
        if not isinstance(group["fused"], bool | np.bool_ | None):
            raise ValueError(f"fused must be None, True or False, got {group['fused']!r}")
        check_counting(**counting_options(group))
        return self._law(group)

    def _check_params(self, group: Group) -> None:
        for param in group["params"]:
            if param.is_complex():
                raise TypeError(
                    f"weights must be real, got {param.dtype} for {self._describe(param)}"
                )
            if group["table"]:
                check_table(param, self._describe)
                if group["fused"]:
                    check_fused(param, self._describe)

    def _group_of(self, param: Tensor) -> Group:
        for group in self.param_groups:
            if any(param is p for p in group["params"]):
                return group
        raise ValueError(f"{self._describe(param)} is not in this optimizer")

    def _describe(self, param: Tensor) -> str:
        """Return what messages call a parameter."""
        for group in self.param_groups:
            for name, known in zip(group.get("param_names", ()), group["params"], strict=False):
                if known is param:
                    return describe(param, name)
        return describe(param, self._names.get(param))

    def _learn_names(self, model: nn.Module) -> None:
        """Take the names of a model's parameters, of those that have none yet."""
        known = {param for group in self.param_groups for param in group["params"]}
        for name, param in model.named_parameters():
            if param in known:
                self._names.setdefault(param, name)

    # ---- saved state -----------------------------------------------------------------------

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what ``state_dict()`` returned; counts come back exactly as they were saved."""
        saved: dict[str, Any] = {}

        def check(_: Optimizer, state_dict: dict[str, Any]) -> None:
            self._check_saved_groups(state_dict)
            for param, state in self._states_by_param(state_dict):
                try:
                    self._check_saved(param, state)
                except (IndexError, TypeError, ValueError) as error:
                    message = f"cannot load the state of {self._describe(param)}: {error}"
                    raise type(error)(message) from error
            saved.update(state_dict)

        handle = self.register_load_state_dict_pre_hook(check)  # after the user's own hooks
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
        # torch has cast the state to the weights' dtype, in which counts are not exact.
        for param, state in self._states_by_param(saved):
            if state:
                self.state[param] = _copy_to(state, param.device)

    def _check_saved_groups(self, state_dict: dict[str, Any]) -> None:
        """Refuse the state of another optimizer, which may differ in its groups alone."""
        name = type(self).__name__
        if absent := {"state", "param_groups"} - state_dict.keys():
            raise ValueError(f"this is not the state of a {name}: it has no {sorted(absent)}")
        for group in state_dict["param_groups"]:
            missing = sorted(self._group_marks - group.keys())
            strange = sorted(group.keys() - self.defaults.keys() - _FOREIGN_KEYS)
            if missing or {"count", "halflife"} & set(strange):
                found = [f"lack {missing}"] * bool(missing) + [f"hold {strange}"] * bool(strange)
                raise ValueError(
                    f"this is not the state of a {name}: its groups {' and '.join(found)}. Load it "
                    f"into the optimizer that saved it; to go on with {name}, {self._takeover}"
                )
            self._check_group(self._renamed({**self.defaults, **group}))

    def _check_saved(self, param: Tensor, state: State) -> None:
        """Refuse saved state that does not fit the parameter, or that no run can have written."""
        if strange := state.keys() - self._state_keys:
            name = type(self).__name__
            raise ValueError(
                f"this is not the state of a {name}: it holds {sorted(strange)}. Load it into the "
                f"optimizer that saved it; to go on with {name}, {self._takeover}"
            )
        check_state(state, param.shape[0] if param.dim() else 1)

    def _states_by_param(self, state_dict: dict[str, Any]) -> Iterator[tuple[Tensor, State]]:
        keys = [key for group in state_dict["param_groups"] for key in group["params"]]
        params = [param for group in self.param_groups for param in group["params"]]
        for key, param in zip(keys, params, strict=False):
            yield param, state_dict["state"].get(key, {})

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_names": self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("_names", {})
        for group in self.param_groups:
            for name in self.defaults.keys() - {"max_lr", "frequencies", "differentiable"}:
                group.setdefault(name, self.defaults[name])
            if "max_lr" in self.defaults:
                group.setdefault("max_rate", self.defaults["max_lr"])


def _make_plain(group: Group) -> None:
    """Turn options of numpy and torch into Python's; ``lr`` stays, since schedulers may fill it."""
    if "tokens_per_sample" in group:
        group["tokens_per_sample"] = int(group["tokens_per_sample"])
    for name in ("maximize", "table", "fused"):
        if group[name] is not None:
            group[name] = bool(group[name])
    names = ("power", "max_rate", "weight_decay", "weight_decay_power", "halflife", "eps", "clip")
    for name in names:
        if group.get(name) is not None:
            group[name] = number(name, group[name])


def counting_options(group: Group) -> dict[str, Any]:
    """Return the options of a group that say how tokens are counted."""
    return {
        "count": group.get("count", "occurrence"),
        "tokens_per_sample": group.get("tokens_per_sample", 1),
        "halflife": group.get("halflife"),
    }


def _copy_to(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, copy=True)
    if isinstance(value, dict):
        return {key: _copy_to(item, device) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_copy_to(item, device) for item in value)
    return value
