"""Films near a film, by its title, from who liked what in MovieLens-1M.

pip install ".[sklearn]"
FREQSGD_DATA=folder-that-holds-ml-1m python examples/film_neighbours.py "Toy Story (1995)"
"""

import os
import sys
from pathlib import Path

import polars as pl

import freqsgd

folder = Path(os.environ["FREQSGD_DATA"]) / "ml-1m"
lines = (folder / "movies.dat").read_text("latin-1").splitlines()
titles = dict(line.split("::")[:2] for line in lines)
ratings = pl.read_csv(folder / "ratings.dat", separator=":", has_header=False, columns=[0, 2, 4])
ratings.columns = ["user", "film", "rating"]
X = ratings.select("user", pl.col("film").cast(pl.String).replace(titles))

classifier = freqsgd.FMClassifier(dim=32, weight_decay=1e-5, min_count=50)
classifier.fit(X, ratings["rating"] > 3)
print(f"validation AUC {classifier.history_[classifier.best_epoch_ - 1]['val_auc']:.3f}")
for film in classifier.neighbors("film", sys.argv[1] if sys.argv[1:] else "Toy Story (1995)"):
    print(f"{film.cosine:.2f}  {film.token}")
