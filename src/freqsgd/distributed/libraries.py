"""TorchRec and FBGEMM: whether they are there, and fit."""

from __future__ import annotations

import importlib
import logging
import warnings
from importlib import metadata

from freqsgd.data.dataset import DataError

__all__ = ["INSTALL", "require_torchrec"]

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
    """Of TorchRec's own calls that torch will rename."""
    deprecated = r"`(torch\.distributed\.\w+|broadcast_buffers)` is deprecated"
    warnings.filterwarnings("ignore", deprecated, FutureWarning)
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)


def _version(name: str) -> str | None:
    """Of an installed package; FBGEMM's build for CUDA does as well."""
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
