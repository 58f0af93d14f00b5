"""What FBGEMM's COUNTER_SGD needs: sizes, options that it has, and versions that work."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTER_SGD, OPTIMIZERS, Rule
from freqsgd.rates import RateLaw

FLOAT = 4  # bytes
MAX_STEPS = 2**24  # the kernel counts in float32, which cannot add 1 to this


def row_width(dim: int) -> int:
    """Return the numbers of a row: vector, linear weight, and zeros up to a multiple of 4."""
    return -(-(dim + 1) // 4) * 4


def law_of(lr: float) -> RateLaw:
    """Return the law of the kernel's rows."""
    try:
        return RateLaw(lr)
    except (TypeError, ValueError) as error:
        raise DataError(f"lr must be a finite number >= 0, got {lr!r}") from error


_KERNEL = next(name for name, facts in OPTIMIZERS.items() if facts.fbgemm == COUNTER_SGD)
_OPTIONS: dict[str, tuple[Any, str, str]] = {  # its value, what another is called, what to do
    "optimizer": (
        _KERNEL,
        "optimizer {!r}",
        f"take {_KERNEL}, or train in one process",
    ),
    "count": (
        "batch",
        "count={!r}",
        'take count="batch", and for tables start from lr * sqrt(batch size); dense layers keep '
        "their rate",
    ),
    "max_lr": (
        None,
        "max_lr",
        "leave it out and take a smaller lr, or train in one process",
    ),
    "halflife": (None, "halflife", "train in one process"),
    "weight_decay": (
        0,
        "weight_decay of rows",
        "give it to the optimizer of the dense layers only, or train in one process",
    ),
    "power": (0.5, "power={:g}", "leave it at 1/2, or train in one process"),
    "linear_lr_scale": (
        1,
        "linear_lr_scale",
        "leave it at 1, or train in one process",
    ),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of :class:`~freqsgd.CFSGD` and of ``Rule`` that the kernel lacks."""
    if unknown := options.keys() - _OPTIONS.keys():
        raise DataError(f"shard has no option {', '.join(sorted(unknown))}: leave it out")
    for option, (value, name, instead) in _OPTIONS.items():
        if options.get(option, value) != value:
            lacks = name.format(options[option])
            raise DataError(f"TorchRec's kernel has no {lacks}: {instead}")


def check_rule(rule: Rule) -> None:
    """Refuse a rule that the kernel cannot follow."""
    names = ("optimizer", "count", "halflife", "weight_decay", "linear_lr_scale")
    check_options({name: getattr(rule, name) for name in names} | {"max_lr": rule.law.max_lr})


_TESTED = {"torch": "2.13.0", "fbgemm-gpu-cpu": "1.8.0", "torchrec": "1.8.0"}
INSTALL = (  # the README's lines
    "pip install torch==2.13.0",
    "pip install pyre-extensions tensordict torchmetrics tqdm",
    "pip install --no-deps fbgemm-gpu-cpu==1.8.0 torchrec==1.8.0",
)


def require_torchrec() -> None:
    """Load TorchRec and FBGEMM, or say what was found, which versions work and how to get them."""
    versions = {name: _version(name) for name in _TESTED}
    if any(_release(versions[name]) != _release(tested) for name, tested in _TESTED.items()):
        raise DataError(_unfit(versions, ""))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kernels that only a GPU has
            importlib.import_module("fbgemm_gpu")
            importlib.import_module("torchrec")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(_unfit(versions, f", which do not load ({reason})")) from error
    _silence()


def _silence() -> None:
    """Silence warnings about TorchRec's own calls, which torch will rename."""
    deprecated = r"`(torch\.distributed\.\w+|broadcast_buffers)` is deprecated"
    warnings.filterwarnings("ignore", deprecated, FutureWarning)
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)


def _version(name: str) -> str | None:
    """Return that of an installed package; FBGEMM's build for CUDA does as well."""
    for candidate in (name, name.removesuffix("-cpu")):
        try:
            return metadata.version(candidate)
        except metadata.PackageNotFoundError:
            pass
    return None


def _release(version: str | None) -> list[str]:
    return (version or "").split(".")[:2]


def _unfit(versions: dict[str, str | None], reason: str) -> str:
    found = ", ".join(
        f"{name} {version}" if version else f"no {name}" for name, version in versions.items()
    )
    tested = ", ".join(f"{name} {version}" for name, version in _TESTED.items())
    return f"TorchRec needs {tested}; found {found}{reason}: {'; '.join(INSTALL)}"
