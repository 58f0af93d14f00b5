"""What training leaves, and how its rows move when tables grow."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.errors import DataError, DataWarning
from freqsgd.files import make_folder
from freqsgd.nn.fm import FM
from freqsgd.optimizers import OPTIMIZERS, Optimizer, Rule
from freqsgd.recommender.engine import new_moments
from freqsgd.recommender.folder import OPTIMIZER, load_dictionary, load_model, save_model
from freqsgd.recommender.models import MODELS, model_of
from freqsgd.recommender.predict import predictor_for
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.encoders.frames import encode_frame
from freqsgd.tables.fields import Field
from freqsgd.vectors.vectors import Vectors

_BY_ROW = {"tokens.weight", "counts", "state", "moment"}  # tensors with a row for each token


@dataclass
class Fitted:
    """A model, its dictionary, and the optimizer's state, from which training can go on."""

    model: FM
    encoder: Encoder
    state: dict[str, Tensor] = field(default_factory=dict)
    samples: int = 0  # that the state has seen
    steps: int = 0
    _vectors: dict[int, Vectors] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of_run(cls, model: FM, data: Dataset, rule: Rule, epochs: int) -> Fitted:
        """Keep what some epochs left, each of which has counted every sample once."""
        assert data.encoder is not None
        fitted = cls(model, data.encoder)
        if rule.counts:
            fitted.samples = epochs * len(data.splits.train)
            fitted._count(epochs * data.token_counts, rule.facts)
        return fitted

    def _count(self, counts: NDArray[np.int64], facts: Optimizer) -> None:
        """Take counts of all rows as the optimizer's state; averages begin anew."""
        self.state = {"counts": counts_of(counts)}
        if facts.state.column:
            starts = np.cumsum([0, *self.model.sizes[:-1]])
            self.state["moments"] = moments = new_moments(self.model)
            moments[:, -1] = torch.from_numpy(np.add.reduceat(counts, starts))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The raw columns, one for each field."""
        return self.encoder.columns

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a sample."""
        return self.encoder.fields

    def vectors(self, place: int) -> Vectors:
        """Return the vectors of a field, made when they are first asked for."""
        if place not in self._vectors:
            name = self.columns[place].name
            self._vectors[place] = Vectors.of(self.model, self.encoder, place, name)
        return self._vectors[place]

    def predict(self, frame: pl.DataFrame, threads: int | None) -> NDArray[np.float32]:
        """Return log odds of the rows of a frame."""
        return predictor_for(self.model, threads).predict(encode_frame(self.encoder, frame))

    def fitted(self) -> Fitted:
        """Return what was learned so far, as a stream does."""
        return self


def counts_of(seen: NDArray[np.int64]) -> Tensor:
    """Return counters of the optimizer, in 32 bits if they fit."""
    counts = torch.from_numpy(seen)
    return counts.int() if seen.max(initial=0) < 2**31 else counts


def resized(model: FM, sizes: Sequence[int], widths: Sequence[int]) -> FM:
    """Return a copy of a model with other sizes of its fields; new rows are zeros."""
    shape = {**model_of(model).shape(model), "sizes": sizes, "widths": widths}
    with torch.random.fork_rng(devices=[]):
        copied = type(model)(**shape, init_scale=model.init_scale)
    copied.load_state_dict(moved(model.state_dict(), model.sizes, sizes), assign=True)
    return copied.eval()


def moved(
    tensors: Mapping[str, Tensor], before: Sequence[int], after: Sequence[int]
) -> dict[str, Tensor]:
    """Return copies of the tensors of a model or optimizer for other sizes of the fields.

    The rows of each field are at its new place, as many as have room.
    """
    copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    for name in copies.keys() & _BY_ROW:
        rows = copies[name]
        copies[name] = rows.new_zeros(sum(after), *rows.shape[1:])
        starts = zip(np.cumsum([0, *before]), np.cumsum([0, *after]), strict=True)
        for (old, new), size, room in zip(starts, before, after, strict=False):
            kept = min(size, room)
            copies[name][new : new + kept] = rows[old : old + kept]
    return copies


_CLOSE = 1e-9  # log odds; those of a model are float32
_MOST_STEPS = 100  # enough for halving alone


def keep_base_rate(model: FM, data: Dataset, threads: int | None) -> None:
    """Move the bias until the mean probability of the training rows is their mean label.

    The epoch was chosen by AUC, which does not see the level of the probabilities.
    """
    rows = data.splits.train
    logits = predictor_for(model, threads).predict(data.ids, rows).astype(np.float64)
    weights = None if data.weights is None else data.weights[rows].astype(np.float64)
    with torch.no_grad():
        model.bias.add_(shift_to_base_rate(logits, data.labels[rows], weights))


def shift_to_base_rate(
    logits: NDArray[np.float64], labels: NDArray[np.uint8], weights: NDArray[np.float64] | None
) -> float:
    """Return what to add to log odds of rows of both classes: Newton's method, between bounds."""
    if not np.isfinite(logits).all():
        raise DataError("log odds of training rows are not finite numbers: try a smaller lr")
    share = np.full(len(logits), 1 / len(logits)) if weights is None else weights / weights.sum()
    positive, negative = share @ labels, share @ (1 - labels)
    level = np.log(positive) - np.log(negative)
    low, high = level - logits.max(), level - logits.min()  # no row is above, none is below it
    shift = min(max(0.0, low), high)
    for _ in range(_MOST_STEPS):
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-(logits + shift)))
        excess, slope = share @ p - positive, share @ (p * (1 - p))
        low, high = (low, shift) if excess > 0 else (shift, high)
        step = -excess / slope if slope > 0 else np.inf
        if not low < shift + step < high:
            step = (low + high) / 2 - shift
        shift += step
        if abs(step) < _CLOSE:
            break
    return float(shift)


_CLASS_KINDS = "biufU"  # numbers and texts


def save(folder: Path, fitted: Fitted, about: dict[str, Any], record: dict[str, Any]) -> None:
    """Write a folder that holds no model yet; a folder with weights is complete.

    Args:
        folder: the folder
        fitted: what training left
        about: the estimator: params, lr, seed, classes, and has_names: whether columns have names
        record: of the run that ``fit`` made
    """
    if (folder / MODEL).exists():
        raise DataError(f"{folder} holds a model already: use another folder")
    classes = about["classes"]
    if classes.dtype == object and all(isinstance(value, str) for value in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in _CLASS_KINDS:
        raise DataError(f"classes {classes.tolist()} cannot be saved: use texts or numbers")
    described = {
        **about,
        "params": {name: _plain(value) for name, value in about["params"].items()},
        "classes": {"dtype": classes.dtype.str, "values": classes.tolist()},
    }
    description: dict[str, Any] = {"estimator": described, "record": record, "data": {}}
    steps = {"samples": fitted.samples, "steps": fitted.steps}
    make_folder(folder)
    description["optimizer"] = checkpoint.save(folder / OPTIMIZER, fitted.state, steps)
    save_model(folder, fitted.model, fitted, description)


def load(
    folder: Path, kind: str, names: Collection[str]
) -> tuple[Fitted, dict[str, Any], dict[str, Any]]:
    """Return what :func:`save` or ``freqsgd train`` wrote, as ``save`` takes it.

    Args:
        folder: the folder
        kind: of the model
        names: of the parameters of its estimator
    """
    model, description = load_model(folder)
    if description["model"] != kind:
        found = f"{MODELS[description['model']].title}Classifier"
        raise DataError(f"{folder} holds another kind of model: use {found}.load")
    fitted, record = (
        Fitted(model, load_dictionary(folder, model, description)),
        description["record"],
    )
    if "estimator" in description:
        about = description["estimator"]
        about["classes"] = np.array(about["classes"]["values"], about["classes"]["dtype"])
        _load_optimizer(folder, fitted, description.get("optimizer"))
    else:
        about = _of_command(fitted, record, names)
        facts = OPTIMIZERS[record["optimizer"]]
        if facts.counts:  # its own counters were not kept
            counts = [np.append(0, seen.to_numpy()) for seen in fitted.encoder.counts()]  # 0: rare
            fitted._count(np.concatenate(counts), facts)
            fitted.samples = int(description["data"]["rows"])
    # JSON has made lists of tuples
    params = {name: tuple(v) if isinstance(v, list) else v for name, v in about["params"].items()}
    return fitted, {**about, "params": params}, record


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
    """Return a parameter as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _of_command(fitted: Fitted, record: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return what an estimator would have kept, from the record of ``freqsgd train``."""
    rule, settings = record["options"]["rule"], record["options"]["settings"]
    # estimators count occurrences
    scale = settings["batch_size"] ** -0.5 if rule.get("count") == "batch" else 1.0
    columns = fitted.columns
    params = {
        **rule,
        **settings,
        "random_state": settings["seed"],
        "dim": fitted.model.dim,
        "lr": "auto" if rule["lr"] is None else scale * rule["lr"],
        "numeric": [column.name for column in columns if column.is_number],
        "numeric_rule": "quantiles" if any(column.edges for column in columns) else "log",
        "min_count": fitted.encoder.min_count,
    }
    return {
        "params": {name: value for name, value in params.items() if name in names},
        "lr": scale * record["lr"],
        "seed": settings["seed"],
        "classes": np.array([0, 1]),
        "has_names": True,
    }
