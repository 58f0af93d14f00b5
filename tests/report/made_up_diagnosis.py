"""Diagnoses to write reports of. Every number in them is made up: nothing was trained."""

from __future__ import annotations

from typing import Any

from tests.report.made_up import make_results, make_run

LOWS = (1, 2, 4, 8, 16, 64)


def make_buckets(level: float, power: float) -> list[dict[str, Any]]:
    """Mean squared gradients that follow a power of the count."""
    found = []
    for low in LOWS:
        value = level * (low * (2 * low - 1)) ** (power / 2)  # at the middle of the bucket
        found.append(
            {
                "from": low,
                "to": 2 * low - 1,
                "tokens": 1000 // low,
                "norm2": value,
                "norm2_per_occurrence": value / low**2,
                "linear2": 3 * value,
                "linear2_per_occurrence": 3 * value / low**2,
            }
        )
    return found


def make_gradients(*levels: tuple[float, float]) -> list[dict[str, Any]]:
    """From before the first epoch on, each of a level and a power."""
    return [{"epoch": e, "buckets": make_buckets(*each)} for e, each in enumerate(levels)]


def make_relation(epoch: int, **changes: Any) -> dict[str, Any]:
    relation = {
        "epoch": epoch,
        "tokens": 500,
        "pearson": 0.81,
        "pearson_log": 0.951,
        "spearman": 0.93,
        "slope": 1.02,
        "intercept": -20.0,
        "slope_error": 0.004,
    }
    return {**relation, **changes}


def make_prediction(power: float = -0.5) -> list[dict[str, Any]]:
    return [
        {**bucket, "p": bucket["from"] / 1000, "improvement": bucket["norm2"]}
        for bucket in make_buckets(4.0, power)
    ]


def make_diagnosed(
    *,
    sgd: Any = ((1.0, 0.0), (4.0, 0.5), (6.0, 1.0)),
    cfsgd: Any = ((1.0, 0.0), (2.0, 1.0), (3.0, 1.5)),
    relation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """SGD, CF-SGD and Adam with ``--diagnose``; ratios follow the prediction's power, -0.5."""
    adam: dict[str, Any] = {
        "gradients": make_gradients((1.0, 0.0), (2.0, 0.5)),
        "moments": [make_relation(1, slope=0.9), make_relation(2, **(relation or {}))],
        "scatter": {
            "epoch": 2,
            "count": [2000, 90, 4],
            "moment": [1e-5, 2e-7, 3e-9],
            "field": [0, 1, 1],
        },
    }
    return make_results(
        make_run("sgd", diagnosis={"gradients": make_gradients(*sgd)}),
        make_run("cfsgd", diagnosis={"gradients": make_gradients(*cfsgd)}),
        make_run("adam", diagnosis=adam),
        diagnosis={"fields": ["user", "<b>film"], "prediction": make_prediction()},
    )
