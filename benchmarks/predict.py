"""How fast an FM predicts, against torch's forward pass.

    python -m benchmarks.predict

Two fields as MovieLens-1M has them (6,041 x 3,707 tokens, the rare one of each included), d=64,
5 million rows of random ids. Torch runs the same model under no_grad on the same number of threads
in the same run, on fewer rows; it is compared at the best of three numbers of rows at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.figures import figure
from benchmarks.fm import best_of, tell
from freqsgd.nn import FM
from freqsgd.recommender.predict import predictor_for

SIZES, DIM, ROWS = [6041, 3707], 64, 5_000_000
TORCH_ROWS, BLOCKS = 262_144, (1024, 8192, 65_536)


def kernels(model: FM, ids: np.ndarray, threads: int) -> Callable[[], float]:
    """Rows per second of the kernels."""
    predictor = predictor_for(model, threads)

    def run() -> float:
        start = time.perf_counter()
        predictor.predict(ids)
        return len(ids) / (time.perf_counter() - start)

    return run


def forward(model: FM, ids: np.ndarray, threads: int, block: int) -> Callable[[], float]:
    """Rows per second of torch."""
    some = torch.from_numpy(ids[:TORCH_ROWS])

    @torch.no_grad()
    def run() -> float:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        for rows in some.split(block):
            model(rows)
        return len(some) / (time.perf_counter() - start)

    return run


def main() -> None:
    rng = np.random.default_rng(0)
    ids = np.stack([rng.integers(0, size, ROWS) for size in SIZES], 1).astype(np.int32)
    model = FM(SIZES, DIM)
    ours = predictor_for(model).predict(ids[:10_000])
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids[:10_000])).numpy()
    assert np.abs(ours - theirs).max() < 1e-5
    print(f"FM of {' x '.join(map(str, SIZES))} tokens, d={DIM}, {ROWS:,} rows of random ids")
    for threads in (1, 2):
        speed = best_of(
            {
                "kernels": kernels(model, ids, threads),
                **{f"torch, {b}": forward(model, ids, threads, b) for b in BLOCKS},
            }
        )
        best = max(value for name, value in speed.items() if name != "kernels")
        on = f"{threads} thread{'s' * (threads > 1)}"
        tell(f"predictions, {on}", speed["kernels"])
        figure(f"predictions / torch's forward pass at its best, {on}", speed["kernels"] / best)


if __name__ == "__main__":
    main()
