"""A model of your own clicks, in Python: load a CSV, train, look at the result, predict.

pip install ".[cli]"
python examples/own_data.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from freqsgd.optimizers import Rule
from freqsgd.recommender import Settings, fit
from freqsgd.recommender.predict import probabilities
from freqsgd.tables import DataOptions, load


def write_clicks(path: Path, rows: int = 5000) -> None:
    """Shops with an even number are popular, and everybody likes low prices."""
    chance = random.Random(0)
    with path.open("w") as file:
        file.write("user,shop,price,click\n")
        for _ in range(rows):
            user, shop, price = (chance.randrange(n) for n in (200, 30, 100))
            click = chance.random() < (0.7 if shop % 2 == 0 else 0.3) - price / 400
            file.write(f"u{user},s{shop},{price},{int(click)}\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clicks, new, out = (Path(folder) / name for name in ("clicks.csv", "new.csv", "model"))
        write_clicks(clicks)
        data = load(
            DataOptions(
                path=str(clicks), label="click", features=("user", "shop"), numeric=("price",)
            )
        )
        _, record = fit(data, Rule("cfsgd", lr=0.3), Settings(dim=8), folder=out)
        print(f"test AUC {record['test_auc']:.3f} after {record['best_epoch']} epochs")
        new.write_text("user,shop,price\nu1,s2,10\nu1,s3,90\n")
        for part in probabilities(out, str(new)):
            print("chances of a click:", [round(float(p), 2) for p in part])


if __name__ == "__main__":
    main()
