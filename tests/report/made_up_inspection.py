"""An inspection to write pages of. Every number in it is made up: nothing was counted."""

from __future__ import annotations

from typing import Any

ROWS = 100_000


def make_field(name: str = "user", /, tokens: int = 2000, **changes: Any) -> dict[str, Any]:
    """A field whose counts fall as 5000 / rank."""
    ranks = sorted({round(tokens ** (step / 40)) for step in range(41)})
    field = {
        "name": name,
        "tokens": tokens,
        "samples": ROWS,
        "occurrences": ROWS,
        "top_1": 0.45,
        "top_10": 0.72,
        "singletons": 40,
        "effective_tokens": 321.5,
        "most_frequent": [["7", 5000], ["42", 2500]],
        "fit": {
            "family": "polynomial",
            "reason": None,
            "tokens": tokens,
            "from_rank": 5,
            "samples": 60_000,
            "nu": 1.02,
            "tau": 0.004,
            "first_count": {"exponential": 300.0, "polynomial": 1000.0},
            "log_likelihoods": {"exponential": -5.2e5, "polynomial": -5.0e5},
            "distances": {"exponential": 0.2, "polynomial": 0.01},
            "statistic": 80.0,
            "p_value": 0.0,
        },
        "corollary": {"applies": False, "reason": "nu = 1.02 is below 2", "top": 15},
        "promise": make_promise(),
        "ranks": [[rank, max(1, 5000 // rank)] for rank in ranks],
    }
    return {**field, **changes}


def make_promise(
    median: float = 3.0, p90: float = 5.0, counts: tuple[int, int] = (50, 20)
) -> dict[str, Any]:
    """Of tokens that were seen so often."""
    places = zip(("median", "p90"), (1001, 1801), counts, (median, p90), strict=True)
    return {
        name: {
            "rank": rank,
            "count": count,
            "p": count / ROWS,
            "error": error,
            "iterations": error**2,
        }
        for name, rank, count, error in places
    }


def no_fit(reason: str, tokens: int) -> dict[str, Any]:
    """What a fit says when there is none."""
    empty = dict.fromkeys(
        ("family", "from_rank", "samples", "nu", "tau", "first_count", "statistic", "p_value")
    )
    return {**empty, "reason": reason, "tokens": tokens}


def make_inspection(*fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The content of an ``inspect.json``, of two fields or of those given."""
    listed = list(fields) or [make_field("user"), make_field("movie", 800)]
    document = {
        "schema": 1,
        "kind": "inspection",
        "command": "freqsgd inspect --dataset movielens-1m --out looked",
        "created": "2024-05-01T12:00:00+00:00",
        "dataset": {
            "name": "movielens-1m",
            "rows": ROWS,
            "fields": len(listed),
            "tokens": sum(field["tokens"] for field in listed),
            "min_count": 1,
        },
        "dim": 64,
        "fields": listed,
        "promise": make_promise(),
        "tail_samples": {"share": 0.0973, "of": ROWS, "seen_below_10": 0.0421},
        "memory": {
            "weights": 728_000,
            "adam": 1_456_000,
            "adagrad": 728_000,
            "rowwise-adagrad": 22_400,
            "cfsgd": 11_200,
        },
        "lr": {"low": 0.5, "high": 2.0, "rule": "as it is", "advice": "begin at the upper end"},
        "lr_reason": None,
        "notes": [],
    }
    return {**document, **changes}
