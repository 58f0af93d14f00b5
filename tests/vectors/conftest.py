"""Small trained models of rows with everything that is awkward in names, tokens and columns."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

from freqsgd.cli.app import run
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import fit
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions

ODD = "shop/ü 100%.npy"
SHOPS = ["Corner Shop", 'the "best"', "a,b", "line\nbreak", "[red]", "日本", "plain", None]


def rows(count=600, seed=0):
    rng = np.random.default_rng(seed)
    user, shop = rng.integers(0, 40, count), rng.integers(0, len(SHOPS), count)
    lengths = rng.integers(0, 4, count)
    price = np.round(rng.lognormal(2, 2, count), 3)
    label = (user + shop) % 2 == 0
    return pl.DataFrame(
        {
            "user": pl.Series([f"u{i}" for i in user]),
            ODD: [SHOPS[i] for i in shop],
            "price": [None if i % 50 == 0 else x for i, x in enumerate(price.tolist())],
            "weight": rng.normal(0, 5, count).tolist(),
            "tags": [
                [f"t{(i + k) % 6}" for k in range(n)] for i, n in zip(user, lengths, strict=True)
            ],
            "click": (label ^ (rng.random(count) < 0.1)).astype(int),
        }
    )


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """The models, by name, and the file that they were trained on."""
    base = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FREQSGD_CACHE", str(base / "cache"))
        rows().write_parquet(base / "clicks.parquet")
        own = {
            "path": str(base / "clicks.parquet"),
            "label": "click",
            "features": ("user", ODD, "tags"),
        }
        # so that some users, and some bins, are rare
        log = load(DataOptions(**own, numeric=("price",), min_count=12))
        bins = {"numeric": ("weight",), "numeric_rule": "quantiles"}
        quantiles = load(DataOptions(**own, **bins, min_count=10))
        flat = load(DataOptions(**(own | {"features": ("user",)})))
        generated = load(DataOptions(samples=2000))
    for name, data, model in (
        ("fm", log, "fm"),
        ("deepfm", quantiles, "deepfm"),
        ("one-field", flat, "fm"),
        ("generated", generated, "deepfm"),
    ):
        settings = Settings(model=model, dim=5, epochs=3, batch_size=64, hidden=(7, 3))
        fit(data, Rule("adam", 0.03), settings, threads=1, folder=base / name)
    return base


@pytest.fixture
def freqsgd(monkeypatch, capsys):
    """Run a command; returns what it printed, or the one line of its error."""

    def command(*arguments, fails=False):
        monkeypatch.setattr(sys, "argv", ["freqsgd", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            run()
        out, errors = capsys.readouterr()
        assert end.value.code == (2 if fails else 0), errors
        if not fails:
            return out
        start, _, message = errors.partition("freqsgd: error: ")
        assert (start, message.count("\n")) == ("", 1), errors
        return message

    return command
