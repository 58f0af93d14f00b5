"""Predictions by the kernels from a model's own tensors, and probabilities for a file's rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import check_target, writing
from freqsgd.kernels.fm.job import JOB
from freqsgd.kernels.fm.step import step_kernel
from freqsgd.kernels.threads import Team, run
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.recommender.folder import load_encoder, load_model, part_files
from freqsgd.recommender.models import model_of
from freqsgd.runs.checkpoint import holds_words
from freqsgd.runs.torch_threads import network_threads, torch_threads
from freqsgd.tables.readers.dialect import BY_NAME, Dialect
from freqsgd.tables.readers.files import named_paths

__all__ = [
    "DeepPredictor",
    "Predictor",
    "check_samples",
    "predict_file",
    "predictor_for",
    "probabilities",
]

_MARKS = {torch.int32: np.int32, torch.int64: np.int64, torch.float64: np.float64}
_SMALL = 1 << 16  # numbers of a batch below which a second thread costs more than it brings
BLOCK = 8192  # samples that the network predicts at a time


class Predictor:
    """Predictions of an :class:`~freqsgd.nn.FM` by the kernels.

    Args:
        model: float32, on the CPU
        threads: maximum for the kernels (default: torch's number); on a busy machine they may use
            one. The result does not depend on it
        marks: type of the marks of rows, for which the kernel is compiled
    """

    def __init__(
        self, model: FM, threads: int | None = None, marks: torch.dtype = torch.int32
    ) -> None:
        weight = model.tokens.weight
        if weight.dtype != torch.float32 or weight.device.type != "cpu":
            raise ValueError(
                f"the model must be float32 on the CPU, got {weight.dtype} on {weight.device}"
            )
        self.model = model
        self.threads = torch.get_num_threads() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._teams: dict[tuple[bool, bool], Team] = {}  # one for each kind of call: speeds differ
        self._starts = model.columns_start.numpy().astype(np.int64)
        self._sizes = model.columns_size.numpy().astype(np.int64)
        self._spans = _spans(model)
        self._marks = torch.empty(0, dtype=marks)
        step_kernel(_MARKS[marks])  # compiled before anything is timed

    def predict(
        self, ids: NDArray[np.int32], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return the log odds of samples: of the named rows, or of all."""
        check_samples(ids, rows, self.model)
        logits = np.empty(len(ids) if rows is None else len(rows), np.float32)
        if len(logits):
            self._forward(ids, rows, logits)
        return logits

    def _forward(
        self,
        ids: NDArray[np.int32],
        rows: NDArray[np.int64] | None,
        logits: NDArray[np.float32],
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        job = self._job(ids, rows)
        job["last"] = job["batch_size"] = len(logits)
        job["forward"], job["logits"] = 1, logits.ctypes.data
        job["vectors"] = 0 if vectors is None else vectors.ctypes.data
        self._run(job, ids)

    def _job(self, ids: NDArray[np.int32], order: NDArray[np.int64] | None) -> Any:
        """Return a record for the kernel: samples, which have been checked, and model."""
        job = np.zeros(1, JOB)
        job["units"] = job["bad_step"] = job["bad_id"] = -1
        job["ids"] = ids.ctypes.data
        job["order"] = 0 if order is None else order.ctypes.data
        job["columns"], job["fields"] = len(self._starts), len(self._spans)
        job["columns_start"] = self._starts.ctypes.data
        job["columns_size"] = self._sizes.ctypes.data
        job["spans"], job["shards"] = self._spans.ctypes.data, 1
        job["weight"], job["dim"] = self.model.tokens.weight.data_ptr(), self.model.dim
        job["bias"] = self.model.bias.data_ptr()
        return job

    def _team(self, batch: int, kind: tuple[bool, bool]) -> Team:
        """Return the threads for batches of this size and a kind of call."""
        if batch * len(self._starts) * self.model.dim < _SMALL:
            return Team(1)
        return self._teams.setdefault(kind, Team(self.threads))

    def _run(self, job: Any, ids: NDArray[np.int32]) -> None:
        marks = _MARKS[self._marks.dtype]
        counters = np.zeros(16, np.int64)  # of this call: others may predict at the same time
        job["counters"] = counters.ctypes.data
        kernel = step_kernel(marks)
        kind = bool(job["forward"][0]), bool(job["update"][0])
        team = self._team(int(job["batch_size"][0]), kind)
        with team.call(int(job["last"][0] - job["first"][0])) as threads:
            run(kernel, job, threads)
        if counters[8] != job["units"][0]:  # an exception in a kernel is only printed
            raise MemoryError(f"no memory for batches of {job['batch_size'][0]} samples")
        if job["bad_id"][0] >= 0:
            row, column = divmod(int(job["bad_id"][0]), len(self._starts))
            raise DataError(
                f"id {ids[row, column]} in row {row}, column {column} is out of range for "
                f"{self._sizes[column]} tokens"
            )


class DeepPredictor(Predictor):
    """Predictions of a :class:`~freqsgd.nn.DeepFM`: torch runs the network."""

    model: DeepFM

    @torch.no_grad()
    def predict(
        self, ids: NDArray[np.int32], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return the log odds of samples: of the named rows, or of all."""
        check_samples(ids, rows, self.model)
        training = self.model.training
        self.model.eval()
        count = len(ids) if rows is None else len(rows)
        logits = np.empty(count, np.float32)
        for first in range(0, count, BLOCK):
            last = min(first + BLOCK, count)
            some = np.arange(first, last) if rows is None else rows[first:last]
            vectors = torch.empty(last - first, len(self.model.sizes), self.model.dim)
            self._forward(ids, some, logits[first:last], vectors.numpy())
            with torch_threads(network_threads(self.model.network, last - first)):
                logits[first:last] += self.model.network(vectors.flatten(1)).squeeze(1).numpy()
        self.model.train(training)
        return logits


def predictor_for(model: FM, threads: int | None = None) -> Predictor:
    """Return the predictor of a model."""
    predictor: Predictor = model_of(model).load("predictor")(model, threads)
    return predictor


def check_samples(ids: NDArray[Any], order: NDArray[Any] | None, model: FM) -> None:
    """Refuse arrays that the kernel cannot read."""
    columns = len(model.columns_start)
    if ids.dtype != np.int32 or not ids.flags.c_contiguous or ids.shape[1:] != (columns,):
        raise ValueError(
            f"ids must be a C-contiguous int32 array of {columns} columns, got {ids.dtype} "
            f"{ids.shape}"
        )
    if order is None:
        return
    if order.dtype != np.int64 or not order.flags.c_contiguous:
        raise ValueError(f"row numbers must be a contiguous int64 array, got {order.dtype}")
    if len(order) and not (order.min() >= 0 and order.max() < len(ids)):
        raise ValueError(f"row numbers must lie in [0, {len(ids)})")


def _spans(model: FM) -> NDArray[np.int64]:
    """Return first and last column, first and last row of each field."""
    columns, rows = np.cumsum([0, *model.widths]), np.cumsum([0, *model.sizes])
    return np.ascontiguousarray(
        np.stack([columns[:-1], columns[1:], rows[:-1], rows[1:]], 1), np.int64
    )


def probabilities(
    folder: Path, file: str, dialect: Dialect = BY_NAME
) -> Iterator[NDArray[np.float32]]:
    """Yield probabilities of the rows of a file, some thousand at a time."""
    if holds_words(folder):
        raise DataError(f"{folder} holds word vectors, which predict no label: see neighbors")
    model, description = load_model(folder)
    encoder = load_encoder(folder, model, description)
    predictor = predictor_for(model)
    for ids in encoder.encode_file(file, dialect=dialect):
        logits = predictor.predict(np.ascontiguousarray(ids))
        yield np.exp(-np.logaddexp(np.float32(0), -logits))


def predict_file(
    folder: Path, file: str, out: Path | None, dialect: Dialect = BY_NAME, *, force: bool = False
) -> int:
    """Write a header and one probability per row, to a file that is whole or not there.

    Args:
        folder: the model's folder
        file: the rows: a file, a folder of files, of days, or wildcards
        out: the file to write; None prints
        dialect: how text files are laid out; by default as those that the model was trained on
        force: replace a file that exists

    Returns:
        The number of rows.
    """
    if file == "":
        raise DataError("the file of rows has no name: name a file or folder")
    if out is not None:
        check_target(out, force=force, inputs=[*named_paths(file), *part_files(folder)])
    rows = 0

    def lines() -> Iterator[str]:
        nonlocal rows
        yield "probability\n"
        for part in chain([first], parts):
            rows += len(part)
            yield from (f"{p:.6g}\n" for p in part.tolist())

    parts = probabilities(folder, file, dialect)
    first = next(parts, np.empty(0, np.float32))  # what can be refused is refused before writing
    if out is None:
        try:
            sys.stdout.writelines(lines())
            sys.stdout.flush()
        except BrokenPipeError:  # head has read enough, which is nobody's error
            raise
        except OSError as error:
            raise DataError(f"cannot write the predictions: {error.strerror}") from error
    else:
        with writing(out) as temporary, temporary.open("w") as target:
            target.writelines(lines())
    return rows
