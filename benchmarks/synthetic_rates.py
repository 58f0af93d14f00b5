"""Which learning rates suit the generated data.

    python -m benchmarks.synthetic_rates

For every optimizer: of a grid, the largest rate whose best validation AUC is within 0.001 of the
grid's best, that is the one that learns soonest without losing quality. Prints what
freqsgd.recommender.settings holds for the dataset "synthetic".
"""

from __future__ import annotations

from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

GRIDS = {
    "sgd": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    "cfsgd": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
    "adagrad": [0.003, 0.01, 0.03, 0.1, 0.3],
    "adam": [0.0003, 0.001, 0.003, 0.01, 0.03],
}
NEAR = 0.001  # validation AUC


def main() -> None:
    data = load(DataOptions())
    for model in ("fm", "deepfm"):
        for optimizer, grid in GRIDS.items():
            found = {}
            for lr in grid:
                record = fit(data, Rule(optimizer, lr), Settings(model=model, patience=2))[1]
                found[lr] = (record["best_val_auc"] or 0.0, record["best_epoch"])
            top = max(auc for auc, _ in found.values())
            best = max(lr for lr, (auc, _) in found.items() if auc >= top - NEAR)
            listing = "  ".join(f"{lr:g}: {a:.4f} ({e})" for lr, (a, e) in found.items())
            print(
                f"{model:7}{optimizer:9} best {best:g}    AUC (epoch) by rate: {listing}",
                flush=True,
            )


if __name__ == "__main__":
    main()
