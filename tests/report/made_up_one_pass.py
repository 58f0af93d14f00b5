"""Results of one-pass runs to write reports of. Every number in them is made up."""

from __future__ import annotations

import math
from typing import Any

from tests.report.made_up import make_results

WINDOWS, WINDOW, DAYS = 18, 100_000, 9
LEVELS = {  # optimizer: NE at the end, how fast it gets there, lr, state, seconds of a window
    "cfsgd": (0.8121, 0.9, 0.5, 4_000_104, 0.09),
    "adagrad": (0.8127, 0.8, 0.05, 68_000_004, 0.31),
    "rowwise-adagrad": (0.8142, 0.7, 0.2, 4_000_104, 0.18),
    "sgd": (0.8290, 0.3, 40.0, 0, 0.08),
}


def ne_at(optimizer: str, window: int) -> float:
    end, speed, *_ = LEVELS[optimizer]
    return end + 0.15 * math.exp(-speed * window) + 0.002 * math.sin(2.3 * window)


def make_window(optimizer: str, number: int) -> dict[str, Any]:
    """The ``number``-th window, from 1."""
    nes = [ne_at(optimizer, each) for each in range(1, number + 1)]
    lifetime = sum(nes) / number
    return {
        "examples": number * WINDOW,
        "loss": 0.325 * nes[-1],
        "ne": nes[-1],
        "auc": 1.4 - 0.8 * nes[-1],
        "calibration": 1 + 0.02 * math.sin(number + nes[-1]),
        "lifetime_ne": lifetime,
        "lifetime_auc": 1.4 - 0.8 * lifetime,
        "lifetime_calibration": 1.001,
        "seconds": number * LEVELS[optimizer][4],
    }


def make_streamed(optimizer: str, /, **changes: Any) -> dict[str, Any]:
    """The best run of an optimizer."""
    end, _, lr, state, pace = LEVELS[optimizer]
    windows = [make_window(optimizer, number) for number in range(1, WINDOWS + 1)]
    train_ne = windows[-1]["lifetime_ne"]
    run = {
        "optimizer": optimizer,
        "lr": lr,
        "weight_decay": 0.0,
        "weight_decay_rule": "none",
        "max_lr": None,
        "halflife": None,
        "seed": 0,
        "batch_size": 65_536,
        "options": {"threads": 2},
        "state_bytes": state,
        "state_rule": "one counter per row" if optimizer == "cfsgd" else "made up",
        "parameter_bytes": 68_000_004,
        "epochs": [],
        "best_epoch": None,
        "epochs_planned": 1,
        "stopped": "end",
        "examples": WINDOWS * WINDOW,
        "windows": windows,
        "days": [
            {
                "day": f"day-{day:02}",
                "examples": 2 * WINDOW,
                "loss": 0.26,
                "ne": (windows[2 * day]["ne"] + windows[2 * day + 1]["ne"]) / 2,
                "auc": 0.75,
                "calibration": 1.0,
            }
            for day in range(DAYS)
        ],
        "train_loss": 0.325 * train_ne,
        "train_ne": train_ne,
        "train_auc": 0.74,
        "train_calibration": 1.001,
        "test_loss": 0.325 * (end - 0.001),
        "test_ne": end - 0.001,
        "test_auc": 1.4 - 0.8 * end,
        "test_calibration": 1.012,
        "test_rows": 200_000,
        "seconds": WINDOWS * pace,
        "samples_per_second": WINDOW / pace,
        "peak_memory_bytes": 812_000_000,
        "dropped": 0,
        "skipped": [],
        "search": [
            {
                "lr": lr * 2.0**k,
                "train_ne": train_ne + 0.004 * k * k,
                "test_ne": end - 0.001 + 0.003 * k * k,
                "error": None,
            }
            for k in range(-2, 3)
        ],
        "search_edge": False,
    }
    return {**run, **changes}


def make_one_pass(*runs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Results of ``stream compare`` with four optimizers, or with the runs given."""
    common = {
        "one_pass": True,
        "command": "freqsgd stream compare --dataset clicks-small --out results",
        "dataset": {
            "name": "clicks-small",
            "kind": "stream",
            "days": [f"day-{day:02}" for day in range(DAYS + 1)],
            "fields": 26,
            "tokens": 1_000_026,
            "rows": 2_000_000,
            "encoding": "ids",
        },
        "splits": {"train": WINDOWS * WINDOW, "test": 200_000},
        "model": {"name": "fm", "dim": 16, "hidden": []},
        "best_possible": {"train_ne": 0.805, "test_ne": 0.801, "test_auc": 0.762},
    }
    default = [make_streamed(name) for name in ("sgd", "cfsgd", "adagrad", "rowwise-adagrad")]
    return make_results(*(runs or default), **{**common, **changes})
