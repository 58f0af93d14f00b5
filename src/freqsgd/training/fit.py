"""The training loop: epochs, early stopping, checkpoints."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.data.dataset import DataError, Dataset
from freqsgd.nn.fm import FM
from freqsgd.training import checkpoint
from freqsgd.training.engine import DivergedError, Engine, engine_for
from freqsgd.training.find_lr import with_lr
from freqsgd.training.metrics import (
    auc,
    auc_by_frequency,
    cross_entropy,
    frequency_classes,
    normalized_entropy,
)
from freqsgd.training.model_folder import MODEL, load_model, make_folder, save_model
from freqsgd.training.prepare import build_model, check, frequencies_for
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["InterruptedFitError", "Progress", "fit"]

CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


@dataclass
class Progress:
    """Where a run is: what listeners are told, and what a checkpoint keeps beside tensors."""

    epoch: int = 0  # epochs finished
    step: int = 0  # steps of the current epoch
    steps: int = 0  # steps of an epoch
    seconds: float = 0.0  # of training, without evaluation
    loss: float = math.nan  # mean of the current epoch's steps


class InterruptedFitError(Exception):
    """Ctrl-C came; what was done so far is saved where there is a folder."""


class _Interrupt:
    """Notices Ctrl-C, so that training can stop between steps; a second one stops at once."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> _Interrupt:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: Any) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)


def fit(
    data: Dataset,
    rule: Rule,
    settings: Settings | None = None,
    *,
    threads: int | None = None,
    folder: Path | None = None,
    resume: bool = False,
    listener: Callable[[Progress, dict[str, Any]], None] | None = None,
) -> tuple[FM, dict[str, Any]]:
    """Train until validation AUC stops rising; return the best model and the run's record.

    The record is one of the ``runs`` of ``results.json``.

    Args:
        data: samples and their splits
        rule: the optimizer
        settings: everything else
        threads: of the kernels; None for torch's number. FM's result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called some times a second with the progress and the record so far

    Example:
        >>> from freqsgd.data import DataOptions, load
        >>> data = load(DataOptions(samples=2000))  # generated clicks
        >>> model, record = fit(data, Rule("cfsgd", lr=1.0), Settings(dim=4, epochs=1))
        >>> record["stopped"]
        'epochs'
    """
    run = _Run(data, rule, settings or Settings(), threads, folder)
    if folder is not None:
        make_folder(folder)
        used = [name for name in (MODEL, CHECKPOINT) if (folder / name).exists()]
        if used and not resume:
            raise DataError(
                f"{folder} holds a {used[0]} already: resume it (--resume), or use another folder"
            )
        if MODEL in used:
            return run.finished()
        if CHECKPOINT in used:
            run.resume()
    return run.go(listener or (lambda progress, record: None))


class _Run:
    def __init__(
        self,
        data: Dataset,
        rule: Rule,
        settings: Settings,
        threads: int | None,
        folder: Path | None,
    ) -> None:
        check(data, settings)
        asked, rule = rule, with_lr(data, rule, settings, threads=threads)
        self.data, self.rule, self.settings, self.folder = data, rule, settings, folder
        self.model = build_model(data, settings)
        self.engine: Engine = engine_for(
            self.model,
            rule,
            seed=settings.seed,
            batch_size=min(settings.batch_size, len(data.splits.train)),
            threads=threads,
            frequencies=frequencies_for(data, rule),
        )
        steps = -(-len(data.splits.train) // self.engine.batch_size)
        self.progress = Progress(steps=steps)
        self.about = {
            **data.summary(),
            "train_rows": len(data.splits.train),
            "data": data.fingerprint,
        }
        self.losses = np.zeros(steps)  # of the current epoch's steps
        self.best: dict[str, Tensor] = {}
        self.record: dict[str, Any] = {
            "optimizer": rule.optimizer,
            "lr": rule.lr,
            "weight_decay": rule.weight_decay,
            "weight_decay_rule": rule.decay_rule,
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "max_lr": rule.law.max_lr,
            "options": {"rule": asdict(asked), "settings": _plain(settings)},
            "state_bytes": self.engine.state_bytes,
            "state_rule": rule.keeps,
            "parameter_bytes": sum(p.nbytes for p in self.model.parameters()),
            "epochs_planned": settings.epochs,
            "epochs": [],
            "best_epoch": None,
            "stopped": None,
        }

    # ---- the loop --------------------------------------------------------------------------------

    def go(self, listener: Callable[[Progress, dict[str, Any]], None]) -> tuple[FM, dict[str, Any]]:
        """Train to the end, evaluate, and return the best model."""
        record, progress = self.record, self.progress
        try:
            with _Interrupt() as self.interrupt:
                while record["stopped"] is None:
                    self._epoch(listener)
                    self._evaluate()
                    self._save()
                    listener(progress, record)
                    if self.interrupt.came:
                        raise InterruptedFitError
        except DivergedError as error:
            record["stopped"] = "diverged"
            record["error"] = (
                f"the loss is not a finite number in step {error.step} (epoch "
                f"{progress.epoch + 1}) at lr {self._lr(error.step):g}: try a smaller learning rate"
            )
            self._save()
        if self.best:
            self.model.load_state_dict(self.best)
        self._finish()
        if self.folder is not None and self.best:
            description = {"record": record, "data": self.about}
            save_model(self.folder, self.model, self.data, description)
            self._clean_up()
        return self.model, record

    def _clean_up(self) -> None:
        """Remove what a finished run needs no longer."""
        assert self.folder is not None
        for path in (self.folder / CHECKPOINT, self.folder / BEST, *self.folder.glob(".*.tmp")):
            path.unlink(missing_ok=True)

    def _epoch(self, listener: Callable[[Progress, dict[str, Any]], None]) -> None:
        """Take the steps of an epoch that are left."""
        progress, data, size = self.progress, self.data, self.engine.batch_size
        generator = np.random.Generator(np.random.PCG64([self.settings.seed, progress.epoch]))
        order = generator.permutation(data.splits.train)[progress.step * size :]
        first = progress.epoch * progress.steps
        lrs = np.array([self._lr(first + k) for k in range(progress.step, progress.steps)])
        unsaved, start = 0, time.perf_counter()
        most = self.settings.checkpoint_steps
        for losses in self.engine.train(data.ids, data.labels, order, lrs, most, data.weights):
            self.losses[progress.step : progress.step + len(losses)] = losses
            progress.step += len(losses)
            progress.seconds += time.perf_counter() - start
            progress.loss = float(self.losses[: progress.step].mean())
            listener(progress, self.record)
            if self.interrupt.came:
                self._save()
                raise InterruptedFitError
            unsaved += len(losses)
            if most is not None and unsaved >= most:
                self._save()
                unsaved = 0
            start = time.perf_counter()

    def _lr(self, step: int) -> float:
        lr = self.rule.law.lr
        if self.settings.lr_decay == "constant":
            return lr
        return lr * (1 - step / (self.settings.epochs * self.progress.steps))

    def _evaluate(self) -> None:
        """Record a finished epoch; decide whether it was the last."""
        progress, record, train = self.progress, self.record, len(self.data.splits.train)
        size = self.engine.batch_size
        weights = np.full(progress.steps, float(size))
        weights[-1] = train - (progress.steps - 1) * size
        rows = self.data.splits.validation
        validation = self._metrics(self._predict(rows))
        diverged = validation["loss"] is None
        if len(rows) == 0:
            diverged = not np.isfinite(self._predict(self.data.splits.train[:size])[0]).all()
        if diverged:
            raise DivergedError(self.engine.steps - 1)
        progress.epoch += 1
        progress.step = 0
        before = record["epochs"][-1]["seconds"] if record["epochs"] else 0.0
        epoch = {
            "epoch": progress.epoch,
            "train_loss": float((self.losses * weights).sum() / train),
            **{f"val_{key}": value for key, value in validation.items()},
            "seconds": progress.seconds,
            "samples_per_second": train / (progress.seconds - before),
            "lr": self._lr(progress.epoch * progress.steps - 1),
        }
        record["epochs"].append(epoch)
        best, patience = record["best_epoch"], self.settings.patience
        if best is None or patience is None or _better(epoch, record["epochs"][best - 1]):
            record["best_epoch"] = progress.epoch
            self.best = {k: v.clone() for k, v in self.model.state_dict().items()}
            if self.folder is not None:
                checkpoint.save(self.folder / BEST, self.best, {"epoch": progress.epoch})
        if patience is not None and progress.epoch - record["best_epoch"] >= patience:
            record["stopped"] = "patience"
        elif progress.epoch == self.settings.epochs:
            record["stopped"] = "epochs"

    def _predict(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Log odds and labels."""
        return self.engine.predict(self.data.ids, rows), self.data.labels[rows]

    def _metrics(
        self, predicted: tuple[NDArray[np.float32], NDArray[np.uint8]]
    ) -> dict[str, float | None]:
        logits, labels = predicted
        if len(labels) == 0:
            return {"loss": None, "auc": None, "ne": None}
        loss = cross_entropy(logits, labels)
        if not math.isfinite(loss):
            return {"loss": None, "auc": None, "ne": None}
        return {"loss": loss, "auc": auc(logits, labels), "ne": normalized_entropy(loss, labels)}

    def _finish(self) -> None:
        """Evaluate the best model on the test rows."""
        record, rows = self.record, self.data.splits.test
        best = record["best_epoch"]
        record["best_val_auc"] = record["epochs"][best - 1]["val_auc"] if best else None
        record["state_bytes"] = self.engine.state_bytes
        record["seconds"] = self.progress.seconds
        taken = self.engine.samples
        record["samples_per_second"] = taken / self.progress.seconds if taken else None
        if not best:
            rows = rows[:0]
        predicted, ids = self._predict(rows), self.data.ids[rows]
        record.update({f"test_{k}": v for k, v in self._metrics(predicted).items()})
        classes = frequency_classes(self.data.token_counts, self.model.sizes)
        of_tokens = classes[np.maximum(ids, 0) + self.model.columns_start.numpy()]
        of_tokens[ids < 0] = 0
        record["test_auc_by_frequency"] = auc_by_frequency(*predicted, of_tokens.max(1))
        self.model.eval()

    # ---- checkpoints -----------------------------------------------------------------------------

    def _save(self) -> None:
        if self.folder is None:
            return
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"optimizer.{k}": v for k, v in self.engine.state.items()}
        tensors["losses"] = torch.from_numpy(self.losses)
        description = {
            "progress": asdict(self.progress),
            "samples": self.engine.samples,
            "steps": self.engine.steps,
            "data": self.about,
            "torch_threads": torch.get_num_threads(),
            "record": self.record,
        }
        checkpoint.save(self.folder / CHECKPOINT, tensors, description)

    def finished(self) -> tuple[FM, dict[str, Any]]:
        """What a run that came to its end has left."""
        assert self.folder is not None
        model, saved = load_model(self.folder)
        self._check_same(self.folder / MODEL, saved)
        self._clean_up()
        return model, saved["record"]

    def resume(self) -> None:
        """Go on from the folder's checkpoint."""
        assert self.folder is not None
        path = self.folder / CHECKPOINT
        tensors, saved = checkpoint.load(path)
        self._check_same(path, saved)
        part = {
            prefix: {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
            for prefix in ("model.", "optimizer.")
        }
        self.model.load_state_dict(part["model."])
        self.engine.load_state(part["optimizer."], saved["samples"], saved["steps"])
        self.losses = tensors["losses"].numpy().copy()
        self.progress = Progress(**saved["progress"])
        self.record = saved["record"]
        if self.record["best_epoch"] is not None:
            self.best, best = checkpoint.load(self.folder / BEST)
            if best["epoch"] != self.record["best_epoch"]:
                # Killed between the two files: the epoch is taken again, and is the best again.
                assert best["epoch"] == self.progress.epoch + 1

    def _check_same(self, path: Path, saved: dict[str, Any]) -> None:
        """Refuse to go on with other data or options."""
        now = {**_flat(self.record["options"]), **self.about}
        then = {**_flat(saved["record"]["options"]), **saved["data"]}
        if self.settings.model == "deepfm" and "torch_threads" in saved:  # torch's own operations
            now["threads"], then["threads"] = torch.get_num_threads(), saved["torch_threads"]
        differing = [k for k in now if k != "checkpoint_steps" and now[k] != then.get(k)]
        if differing:
            name = differing[0]
            raise DataError(
                f"cannot resume from {path}: it was written with {name} {then.get(name)}, now "
                f"{name} is {now[name]}; use the same options, or another folder"
            )


def _better(epoch: dict[str, Any], best: dict[str, Any]) -> bool:
    return bool(epoch["val_auc"] > best["val_auc"])


def _plain(settings: Settings) -> dict[str, Any]:
    """What applies to the model, as JSON reads it back: lists for tuples."""
    only_deep = () if settings.model == "deepfm" else ("hidden", "dropout")
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(settings).items()
        if key not in only_deep
    }


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        flat |= _flat(value) if isinstance(value, dict) else {key: value}
    return flat
