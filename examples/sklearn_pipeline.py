"""FMClassifier in a scikit-learn pipeline: numbers into bins, a search for the size of vectors.

pip install ".[sklearn]"
python examples/sklearn_pipeline.py
"""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from freqsgd import FMClassifier

KINDS = ["tea", "shoes", "books", "plants"]


def make_clicks(rows: int = 20_000) -> pl.DataFrame:
    """Users like one kind of shop, and everybody likes low prices; few users are frequent."""
    random = np.random.default_rng(0)
    user = (random.random(rows) ** 2 * 100).astype(int)
    shop = (random.random(rows) ** 2 * 40).astype(int)
    price = random.lognormal(3, 1, rows)
    chance = np.where(user % 4 == shop % 4, 0.95, 0.1) / (1 + price / 50)
    return pl.DataFrame(
        {
            "user": user,
            "shop": [f"{KINDS[number % 4]} {number}" for number in shop],
            "price": price,
            "chance": chance,
            "click": random.random(rows) < chance,
        }
    )


def main() -> None:
    train, new = train_test_split(make_clicks(), random_state=0)
    bins = KBinsDiscretizer(10, encode="ordinal", strategy="kmeans")
    columns = make_column_transformer(
        ("passthrough", ["user", "shop"]), (bins, ["price"]), verbose_feature_names_out=False
    )
    pipeline = make_pipeline(columns.set_output(transform="polars"), FMClassifier())
    search = GridSearchCV(pipeline, {"fmclassifier__dim": [1, 4, 16]}, scoring="roc_auc", cv=3)
    search.fit(train, train["click"])
    for options, found in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        print(f"dim {options['fmclassifier__dim']}: AUC {found:.3f} in cross-validation")
    found = roc_auc_score(new["click"], search.predict_proba(new)[:, 1])
    best = roc_auc_score(new["click"], new["chance"])
    print(f"AUC {found:.3f} on new rows, where {best:.3f} is possible")
    nearest = search.best_estimator_[-1].neighbors("shop", "tea 0", top=5)
    print("nearest to tea 0:", ", ".join(shop.token for shop in nearest))


if __name__ == "__main__":
    main()
