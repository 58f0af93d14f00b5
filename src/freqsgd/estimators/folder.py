"""An estimator as a model folder, like the one that ``freqsgd train`` writes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError, DataWarning
from freqsgd.data.files import make_folder
from freqsgd.estimators.fitted import Fitted, counts_of
from freqsgd.estimators.inputs import no_samples
from freqsgd.training import checkpoint
from freqsgd.training.checkpoint import MODEL
from freqsgd.training.model_folder import OPTIMIZER, load_dictionary, load_model, save_model

__all__ = ["Saved", "load", "save"]

_CLASS_KINDS = "biufU"  # numbers and texts


@dataclass
class Saved:
    """What a folder keeps of an estimator beside its model."""

    params: dict[str, Any]
    classes: NDArray[Any]
    lr: float
    seed: int
    has_names: bool  # whether its columns had names
    record: dict[str, Any]  # of the run that ``fit`` made


def save(folder: Path, fitted: Fitted, saved: Saved) -> None:
    """Write a folder that holds no model yet; a folder with weights is complete."""
    if (folder / MODEL).exists():
        raise DataError(f"{folder} holds a model already: use another folder")
    classes = saved.classes
    if classes.dtype == object and all(isinstance(value, str) for value in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in _CLASS_KINDS:
        raise DataError(f"classes {classes.tolist()} cannot be saved: use texts or numbers")
    description: dict[str, Any] = {
        "estimator": {
            "params": {name: _plain(value) for name, value in saved.params.items()},
            "lr": saved.lr,
            "seed": saved.seed,
            "classes": {"dtype": classes.dtype.str, "values": classes.tolist()},
            "has_names": saved.has_names,
        },
        "record": saved.record,
        "data": {},
    }
    steps = {"samples": fitted.samples, "steps": fitted.steps}
    make_folder(folder)
    description["optimizer"] = checkpoint.save(folder / OPTIMIZER, fitted.state, steps)
    save_model(folder, fitted.model, no_samples(fitted.encoder), description)


def load(folder: Path, kind: str, names: Collection[str]) -> tuple[Fitted, Saved]:
    """Read a folder that :func:`save` or ``freqsgd train`` wrote; ``names`` of the parameters."""
    model, description = load_model(folder)
    if description["model"] != kind:
        found = {"fm": "FMClassifier", "deepfm": "DeepFMClassifier"}[description["model"]]
        raise DataError(f"{folder} holds another kind of model: use {found}.load")
    fitted = Fitted(model, load_dictionary(folder, model, description))
    if "estimator" not in description:
        _count_from_dictionary(fitted, description)
        return fitted, _of_command(fitted, description["record"], names)
    _load_optimizer(folder, fitted, description.get("optimizer"))
    about = description["estimator"]
    classes = np.array(about["classes"]["values"], about["classes"]["dtype"])
    params, lr, seed = _with_tuples(about["params"]), about["lr"], about["seed"]
    return fitted, Saved(params, classes, lr, seed, about["has_names"], description["record"])


def _load_optimizer(folder: Path, fitted: Fitted, digest: str | None) -> None:
    """Read the optimizer's state; ``digest`` tells whose it is, None: not known."""
    path = folder / OPTIMIZER
    if path.exists():
        if digest is not None and checkpoint.digest(path) != digest:
            raise DataError(f"{path} belongs to another model: restore the whole folder")
        fitted.state, steps = checkpoint.load(path)
        fitted.samples, fitted.steps = steps["samples"], steps["steps"]
    else:
        warnings.warn(
            f"{folder} has no {OPTIMIZER}: predictions are the same, but partial_fit begins "
            "with new counters and averages",
            DataWarning,
            stacklevel=4,
        )


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _with_tuples(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as they were before JSON made lists of tuples."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in params.items()}


def _of_command(fitted: Fitted, record: dict[str, Any], names: Collection[str]) -> Saved:
    """What an estimator would have kept, from the record of ``freqsgd train``."""
    rule, settings = record["options"]["rule"], record["options"]["settings"]
    # estimators count occurrences
    scale = settings["batch_size"] ** -0.5 if rule.get("count") == "batch" else 1.0
    seed, columns = settings["seed"], fitted.encoder.columns
    params = {**rule, **settings, "random_state": seed, "dim": fitted.model.dim}
    params["lr"] = "auto" if rule["lr"] is None else scale * rule["lr"]
    params["numeric"] = tuple(column.name for column in columns if column.is_number)
    params["numeric_rule"] = "quantiles" if any(column.edges for column in columns) else "log"
    params["min_count"] = fitted.encoder.min_count
    params = {name: value for name, value in params.items() if name in names}
    return Saved(_with_tuples(params), np.array([0, 1]), scale * record["lr"], seed, True, record)


def _count_from_dictionary(fitted: Fitted, description: dict[str, Any]) -> None:
    """Counters for going on with a model whose own were not kept."""
    if description["record"]["optimizer"] != "cfsgd":
        return
    counts = [np.append(0, counts.to_numpy()) for counts in fitted.encoder.counts()]  # 0: rare
    fitted.state = {"counts": counts_of(np.concatenate(counts))}
    fitted.samples = int(description["data"]["rows"])
