"""How tuned CF-SGD, CFAdam and Adam do on MovieLens-1M, also where films are rare.

    FREQSGD_DATA=... python -m benchmarks.rare_tokens

Mean over four random splits of the test AUC, of that of samples with a tail token, and of the AUC
(validation and test rows together, which are few) of samples with one of the rarest fifth of films;
and the epoch in which each passes Adam's best validation AUC.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from freqsgd.nn import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender.predict import predictor_for
from freqsgd.recommender.settings import Settings, preset, with_preset
from freqsgd.recommender.training import fit
from freqsgd.runs.metrics import auc
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

FILM = 1  # field
SPLITS = range(4)


def rare_auc(data: Dataset, model: FM) -> float | None:
    """AUC of rows with one of the rarest fifth of the films in training, or one not in it."""
    counts = data.token_counts[data.fields[0].size :]
    seen = np.sort(counts[counts > 0])
    rare = counts < seen[len(seen) // 5]
    rows = np.concatenate([data.splits.validation, data.splits.test])
    rows = rows[rare[data.ids[rows, FILM]]]
    return auc(predictor_for(model).predict(data.ids, rows), data.labels[rows])


def contenders() -> dict[str, tuple[Rule, Settings]]:
    best = {
        name: with_preset(Rule(name), Settings(), preset("best", "movielens-1m", "fm", name) or {})
        for name in ("adam", "cfsgd", "cfadam")
    }
    rule, settings = best["cfsgd"]
    return {
        "adam": best["adam"],
        "cfadam": best["cfadam"],
        "cfsgd": best["cfsgd"],
        "cfsgd without cap": (replace(rule, max_lr=None), settings),
        "cfsgd without cap, one decay for all": (
            replace(rule, max_lr=None, linear_decay_scale=1.0),
            settings,
        ),
    }


def main() -> None:
    scores: dict[str, list[list[float]]] = {name: [] for name in contenders()}
    for split in SPLITS:
        data = load(DataOptions(dataset="movielens-1m", split_seed=split))
        to_pass = 1.0
        for name, (rule, settings) in contenders().items():
            model, record = fit(data, rule, settings)
            if name == "adam":
                to_pass = record["best_val_auc"]
            aucs = [epoch["val_auc"] for epoch in record["epochs"]]
            passed = next((n for n, value in enumerate(aucs, 1) if value >= to_pass), np.nan)
            tail = record["test_auc_by_frequency"]["tail"]
            scores[name].append([record["test_auc"], tail, rare_auc(data, model), passed])
    print(f"{'':38}    test    tail    rare  passes Adam's best in epoch")
    for name, values in scores.items():
        mean = np.mean(values, 0)
        epochs = ", ".join(f"{value[3]:g}" for value in values)
        print(f"{name:38}{mean[0]:8.4f}{mean[1]:8.4f}{mean[2]:8.4f}  {epochs}")


if __name__ == "__main__":
    main()
