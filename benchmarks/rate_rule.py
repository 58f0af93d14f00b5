"""How good is the range of learning rates that `freqsgd inspect` suggests without training?

    FREQSGD_DATA=... python -m benchmarks.rate_rule [--datasets criteo,exponential]

For each dataset: the best validation AUC of CF-SGD at 20 rates, FM, batches of 1024, and how far
below it whole runs at both ends of the suggested range end; one seed, one split. The upper end was
fixed by the first eight datasets, before the others had been trained on; the lower end was moved
once after that (docs/inspect.md).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

from benchmarks.find_lr import grid
from freqsgd.inspection.document import learning_rates
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.generated.synthetic import clicks_dataset, generate_clicks
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

REAL = {
    "movielens-1m": (DataOptions(dataset="movielens-1m"), Settings()),
    "criteo": (DataOptions(dataset="criteo"), Settings(dim=16)),
}
WIDE, NARROW = Settings(dim=64), Settings(dim=16)
TWO = (8_000, 4_000)
SIX, TWENTY = (5_000, 2_000, 1_000, 300, 50, 10), (3_000, 1_000, 300, 100, 20) * 4
TEN = (10_000, 10_000, 2_000, 2_000, 500, 500, 100, 100, 10, 10)
FORTY = (2_000, 500, 100, 20) * 10
make = partial(partial, generate_clicks)
MADE = {
    "synthetic": (make(450_000, TWO), WIDE),
    "small": (make(30_000, (1_000, 500)), NARROW),
    "uniform": (make(450_000, TWO, falloff=0.0), WIDE),
    "steep": (make(450_000, TWO, falloff=1.5), WIDE),
    "6 fields": (make(300_000, SIX, linear_std=0.5, interaction_std=0.6), WIDE),
    "20 fields": (make(200_000, TWENTY, linear_std=0.3, interaction_std=0.2), NARROW),
    "exponential": (make(450_000, TWO, tail="exponential"), WIDE),
    "large": (make(1_000_000, (200_000, 50_000)), NARROW),
    "3 fields": (make(150_000, (20_000, 500, 30), falloff=1.2, interaction_std=1.0, seed=7),
                 Settings(dim=32)),
    "10 fields": (make(200_000, TEN, falloff=0.8, linear_std=0.4, interaction_std=0.4, seed=8),
                  NARROW),
    "40 fields": (make(150_000, FORTY, falloff=1.1, linear_std=0.25, interaction_std=0.1, seed=9),
                  NARROW),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join([*REAL, *MADE]))
    parser.add_argument("--patience", type=int, default=2, help="epochs before a run ends")
    given = parser.parse_args()
    for name in given.datasets.split(","):
        source, settings = REAL[name] if name in REAL else MADE[name]
        settings = replace(settings, patience=given.patience)
        data = load(source) if name in REAL else clicks_dataset(source())
        tried = grid(data, "cfsgd", settings)
        good = tried.rates[tried.aucs >= tried.best - 0.002]
        found = learning_rates(len(data.fields))
        ends = []
        for lr in (found.low, found.high):
            auc = fit(data, Rule("cfsgd", lr), settings)[1]["best_val_auc"] or 0.5
            ends.append(f"{lr:g}: {auc:.4f} ({auc - tried.best:+.4f})")
        print(
            f"{name:13} best of 20: {tried.best:.4f} (within 0.002: {good[0]:.2g} to "
            f"{good[-1]:.2g})   suggested {',  '.join(ends)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
