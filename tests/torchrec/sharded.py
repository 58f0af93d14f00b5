"""Runs on ranks beside runs of one process: streams with bags, what they end with, counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from freqsgd.optimizers import Rule
from freqsgd.recommender.one_pass import StreamProgress, fit_stream
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables.fields import Field
from tests.recommender.streams import MemoryStream

BATCH = 39  # of 1,600 examples: the last batch has one, which leaves a rank of two without any
RULE = Rule("cfsgd", 4.0, count="batch", dense_lr=0.5)
PLAN = Pass(window=300, checkpoint_examples=400)
MODELS: dict[str, dict[str, Any]] = {
    "fm": {"dim": 4},
    "deepfm": {"dim": 6, "hidden": (8, 5), "dropout": 0.3},
}
DIFFERENT = {  # what a record may tell that depends on who trained, when and where
    "state_bytes", "state_rule", "parameter_bytes", "engine", "ranks", "sharding",
    "seconds", "samples_per_second", "peak_memory_bytes",
}  # fmt: skip


class BagStream(MemoryStream):
    """A bag of up to three tokens between two fields, of which one has fewer rows than ranks."""

    def __init__(self, sizes: tuple[int, ...] = (60, 40, 1), **options: Any) -> None:
        super().__init__(sizes, **options)
        self.fields = tuple(
            Field(field.name, field.size, width=3 if number == 1 else 1)
            for number, field in enumerate(self.fields)
        )
        rng = np.random.default_rng(7)
        for number, (ids, labels) in enumerate(self.files):
            others = rng.integers(-sizes[1], sizes[1], (len(ids), 2)).clip(-1).astype(np.int32)
            self.files[number] = np.insert(ids, [2, 2], others, axis=1), labels


STREAMS: dict[str, Callable[[], MemoryStream]] = {"plain": MemoryStream, "bags": BagStream}


def settings_of(model: str, batch_size: int = BATCH, seed: int = 0) -> Settings:
    return Settings(model=model, batch_size=batch_size, seed=seed, **MODELS[model])


class StoppedError(Exception):
    """Breaks a run off."""


def stop_at(batch: int | None) -> Callable[[StreamProgress, Any], None]:
    told: list[int] = []

    def listen(progress: StreamProgress, record: Any) -> None:
        told.append(progress.examples)
        if len(told) == batch:
            raise StoppedError

    return listen


def train(rank: int, model: str, options: dict[str, Any]) -> dict[str, Any]:
    """A rank's part of a run: its record, the rows that it holds, and the other weights."""
    from freqsgd.torchrec.tables import rows_by_weight
    from freqsgd.torchrec.trainer import fit_sharded

    folder = options.get("folder")
    try:
        trained, record = fit_sharded(
            STREAMS[options.get("stream", "bags")](),
            RULE,
            settings_of(model, options.get("batch_size", BATCH)),
            PLAN,
            sharding=options.get("sharding", "row-wise"),
            folder=None if folder is None else Path(folder),
            resume=options.get("resume", False),
            listener=stop_at(options.get("stop")),
        )
    except StoppedError:
        return {}
    return {
        "record": record,
        "rows": {
            f"{t} {first:05d}": (w, counts)
            for t, first, w, counts in rows_by_weight(trained).values()
        },
        "others": {k: v for k, v in trained.state_dict().items() if not k.startswith("tables.")},
    }


def put_together(results: list[dict[str, Any]]) -> tuple[Tensor, Tensor]:
    """Weights and counts of all ranks' rows, table after table."""
    parts = sorted(part for result in results for part in result["rows"].items())
    weights, counts = zip(*(rows for _, rows in parts), strict=True)
    return torch.cat(weights), torch.cat(counts)


def counted(stream: MemoryStream, batch_size: int) -> np.ndarray:
    """How many batches held each row, by looking."""
    ids = stream.whole(0, 2)[0]
    counts, column = [], 0
    for field in stream.fields:
        of_field = np.zeros(field.size)
        for first in range(0, len(ids), batch_size):
            part = ids[first : first + batch_size, column : column + field.width]
            of_field[np.unique(part[part >= 0])] += 1
        counts.append(of_field)
        column += field.width
    return np.concatenate(counts)


@cache
def one_process(model: str, stream: str = "bags", batch_size: int = BATCH) -> Any:
    """The model and the record of the same run in this process."""
    return fit_stream(STREAMS[stream](), RULE, settings_of(model, batch_size), PLAN)


def assert_like_one_process(
    results: list[dict[str, Any]], model: str, stream: str = "bags", batch_size: int = BATCH
) -> None:
    """Counts are equal; all weights, and all that records tell, to 1e-5."""
    expected, record = one_process(model, stream, batch_size)
    state = expected.state_dict()
    weight, counts = put_together(results)
    np.testing.assert_array_equal(counts, counted(STREAMS[stream](), batch_size))
    columns = state["tokens.weight"].shape[1]
    close(weight[:, :columns], state.pop("tokens.weight"))
    assert not weight[:, columns:].any()
    for result in results:
        assert result["others"].keys() == state.keys()
        for name, value in state.items():
            close(result["others"][name], value)
        same_record(result["record"], record, 1e-5)


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def same_results(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same bits on the same ranks."""
    for one, other in zip(found, expected, strict=True):
        for part in ("rows", "others"):
            torch.testing.assert_close(one[part], other[part], rtol=0, atol=0)
        same_record(one["record"], other["record"], 0)


def same_record(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    assert found.keys() - DIFFERENT == expected.keys() - DIFFERENT
    for name in expected.keys() - DIFFERENT:
        _same(found[name], expected[name], tolerance, name)


def _same(found: Any, expected: Any, tolerance: float, name: str) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected), name
        for number, value in enumerate(expected):
            _same(found[number], value, tolerance, f"{name}[{number}]")
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), name
        for key in expected.keys() - DIFFERENT:
            _same(found[key], expected[key], tolerance, f"{name}.{key}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=0, abs=tolerance), name
    else:
        assert found == expected, name
