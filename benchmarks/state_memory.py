"""How much memory does each optimizer need beside the weights?

    python -m benchmarks.state_memory [--rows 5000000] [--dim 64]

Each optimizer trains one table for three steps of 4096 ids in a process of its own. State is what
the optimizer keeps between steps; peak is the most memory that the process ever held (its resident
set), weights and gradients included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

import torch

from benchmarks.figures import figure
from freqsgd import CFSGD, FASGD, CFAdam

OPTIMIZERS = {
    "SGD": lambda w: torch.optim.SGD([w], lr=0.1),
    "CFSGD": lambda w: CFSGD([w], lr=0.1),
    "FASGD": lambda w: FASGD([w], lr=0.1, frequencies=torch.full((len(w),), 0.5)),
    "CFAdam": lambda w: CFAdam([w]),
    "Adagrad": lambda w: torch.optim.Adagrad([w], lr=0.1),
    "SparseAdam": lambda w: torch.optim.SparseAdam([w], lr=0.1),
    "Adam": lambda w: torch.optim.Adam([w], lr=0.1),
}


def run(name: str, rows: int, dim: int) -> None:
    """Train, then print bytes of state and peak bytes."""
    table = torch.nn.Embedding(rows, dim, sparse=name != "Adam", _weight=torch.zeros(rows, dim))
    optimizer = OPTIMIZERS[name](table.weight)
    for _ in range(3):
        optimizer.zero_grad()
        table(torch.randint(0, rows, (4096,))).sum().backward()
        optimizer.step()
    values = [v for state in optimizer.state.values() for v in state.values()]
    state = sum(v.nbytes for v in values if isinstance(v, torch.Tensor))
    print(state, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--only", choices=OPTIMIZERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        run(options.only, options.rows, options.dim)
        return
    weights = options.rows * options.dim * 4
    print(f"{options.rows:,} rows x {options.dim}, float32: weights {weights / 1e6:,.0f} MB")
    for name in OPTIMIZERS:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.state_memory", "--only", name]
        sizes = ["--rows", str(options.rows), "--dim", str(options.dim)]
        output = subprocess.run([*command, *sizes], check=True, capture_output=True, text=True)
        state, peak = map(int, output.stdout.split())
        figure(f"state of {name}", state / 1e6, "MB")
        figure(f"peak memory with {name}", peak / 1e6, "MB")


if __name__ == "__main__":
    main()
