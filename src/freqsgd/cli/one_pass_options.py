"""Options of one-pass training. Those that are not described here are so for other training."""

from __future__ import annotations

from typing import Annotated

from freqsgd.cli.options import ONE_PASS, column_names, option, settings, words
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables.spec import StreamOptions

__all__ = ["one_pass_plan", "stream_data", "stream_settings"]

_DEFAULT_DATASET = "clicks-small"


def stream_data(
    dataset: str | None = None,
    path: str | None = None,
    label: str | None = None,
    features: str = "",
    numeric: str = "",
    positive_above: float | None = None,
    max_bad_rows: int = 0,
    separator: str | None = None,
    columns: str | None = None,
    hash_rows: Annotated[
        str,
        option(
            "Rows of each field's table, to which tokens are hashed: 1000000, or "
            "user=1e5,item=1e6.",
            panel=ONE_PASS,
        ),
    ] = "",
    dictionary: Annotated[
        str | None,
        option("Take the tokens of this folder, a trained model, instead.", panel=ONE_PASS),
    ] = None,
    skip_bad_files: Annotated[
        bool,
        option(
            "Leave out damaged files with a warning.",
            "--skip-bad-files",
            panel=ONE_PASS,
        ),
    ] = False,
    allow_missing_days: Annotated[
        bool, option("Days may be missing between others.", "--allow-missing-days", panel=ONE_PASS)
    ] = False,
) -> StreamOptions:
    """The days to learn from."""
    return StreamOptions(
        dataset=dataset or (_DEFAULT_DATASET if path is None else None),
        path=path,
        label=label,
        features=words(features),
        numeric=words(numeric),
        positive_above=positive_above,
        max_bad_rows=max_bad_rows,
        hash_rows=hash_rows,
        dictionary=dictionary,
        skip_bad_files=skip_bad_files,
        allow_missing_days=allow_missing_days,
        separator=separator,
        columns=column_names(columns),
    )


def stream_settings(
    model: str = "fm",
    dim: int = 16,
    hidden: str = "16,16",
    dropout: float = 0.2,
    init_scale: float = 1.0,
    batch_size: int = 1024,
    seed: int = 0,
) -> Settings:
    """What all optimizers share."""
    return settings(
        model=model,
        dim=dim,
        hidden=hidden,
        dropout=dropout,
        init_scale=init_scale,
        batch_size=batch_size,
        seed=seed,
    )


def one_pass_plan(
    window: int = 100_000,
    checkpoint_examples: Annotated[
        int | None, option("Write a checkpoint after so many examples.", panel=ONE_PASS)
    ] = None,
) -> Pass:
    """How the pass is measured and saved."""
    return Pass(window=window, checkpoint_examples=checkpoint_examples)
