"""Does a tail fit find the tail that counts were drawn from?

    python -m benchmarks.tails [--tokens 10000] [--draws 10]

Tokens of known frequencies are drawn so often that each is seen 3, 10 or 100 times on average. For
each it is told of how many draws the family was found, and the median of the rates found.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.distributions import token_distribution
from freqsgd.theory.tails import TailFit, fit_tail

TAILS = [
    ("uniform", 1.0),
    *(("polynomial", nu) for nu in (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)),
    *(("exponential", tau) for tau in (1e-4, 3e-4, 1e-3, 1e-2)),
]


def drawn(p: NDArray[np.float64], samples: int, seed: int) -> TailFit:
    """The fit to some samples."""
    counts = np.random.default_rng(seed).multinomial(samples, p)
    return fit_tail(np.sort(counts[counts > 0])[::-1])


def told(tail: str, fits: list[TailFit]) -> str:
    """How often the family was found, another was, and the median rate."""
    wanted = None if tail == "uniform" else tail
    found = [fit for fit in fits if fit.family == wanted]
    wrong = sum(fit.family not in (wanted, None) for fit in fits)
    rates = [fit.nu if tail == "polynomial" else fit.tau for fit in found]
    median = f", {np.median(rates):.2g}" if wanted and found else ""
    return f"{len(found)} of {len(fits)}{median}{f', {wrong} wrong' if wrong else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    print("| drawn from | 3 times each | 10 times | 100 times |\n| --- | --- | --- | --- |")
    for tail, rate in TAILS:
        p = token_distribution(tail, given.tokens, rate)
        cells = [
            told(tail, [drawn(p, each * p.size, seed + 100) for seed in range(given.draws)])
            for each in (3, 10, 100)
        ]
        print(f"| {tail} {rate:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
