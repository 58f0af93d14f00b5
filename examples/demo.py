"""Four optimizers on one factorization machine: what does a counter per row buy?

    python examples/demo.py            train with the learning rates below
    python examples/demo.py --search   find them: the best of a grid for each optimizer

The clicks are generated (see freqsgd.data.synthetic): two fields whose tokens follow Zipf's law, so
that most tokens are rare. All optimizers start alike and see the same samples in the same order.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from freqsgd import CFSGD
from freqsgd.data.synthetic import Clicks, zipf_clicks

BATCH, DIM, EPOCHS = 1024, 16, 5
VALIDATION = 50_000  # the last samples

# Each the best of its grid by validation AUC within EPOCHS epochs (--search).
RATES = {"SGD": 30.0, "CF-SGD": 1.0, "Adagrad": 0.1, "Adam": 0.01}
GRIDS = {
    "SGD": [1.0, 3.0, 10.0, 30.0, 100.0],
    "CF-SGD": [0.1, 0.3, 1.0, 3.0, 10.0],
    "Adagrad": [0.01, 0.03, 0.1, 0.3],
    "Adam": [0.001, 0.003, 0.01, 0.03],
}
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": torch.optim.SGD,
    "CF-SGD": lambda params, lr: CFSGD(params, lr, tokens_per_sample=2),  # two fields share a table
    "Adagrad": torch.optim.Adagrad,
    "Adam": torch.optim.Adam,
}


class FactorizationMachine(nn.Module):
    """A bias, a weight per token, and the products of all pairs of vectors of a sample."""

    def __init__(self, sizes: tuple[int, ...], sparse: bool) -> None:
        super().__init__()
        self.rows = nn.Embedding(sum(sizes), 1 + DIM, sparse=sparse)  # the weight comes first
        self.bias = nn.Parameter(torch.zeros(()))
        self.register_buffer("offsets", torch.tensor([0, *sizes[:-1]]).cumsum(0))

    def forward(self, ids: Tensor) -> Tensor:
        rows = self.rows(ids + self.offsets)
        weights, vectors = rows[..., 0].sum(1), rows[..., 1:]
        pairs = vectors.sum(1).square().sum(1) - vectors.square().sum((1, 2))
        return self.bias + weights + pairs / 2


def auc(scores: Tensor, labels: Tensor) -> float:
    """The chance that a click scores above a non-click, ties counting half."""
    _, inverse, counts = scores.unique(return_inverse=True, return_counts=True)
    ranks = (counts.cumsum(0) - (counts - 1) / 2)[inverse].double()
    clicks = labels.sum().double()
    below = ranks[labels == 1].sum() - clicks * (clicks + 1) / 2
    return float(below / (clicks * (len(labels) - clicks)))


def train(name: str, lr: float, clicks: Clicks) -> Iterator[tuple[float, float, float, int]]:
    """Train; yield training loss, validation AUC, seconds and bytes of state of each epoch."""
    torch.manual_seed(0)
    model = FactorizationMachine(clicks.sizes, sparse=name != "Adam")  # torch's Adam wants dense
    nn.init.xavier_uniform_(model.rows.weight)
    model.rows.weight.data[:, 0] = 0
    optimizer = OPTIMIZERS[name](model.parameters(), lr=lr)
    ids, labels = clicks.ids[:-VALIDATION], clicks.labels[:-VALIDATION]
    for _ in range(EPOCHS):
        start, total = time.perf_counter(), 0.0
        order = torch.randperm(len(ids))
        for batch in order.split(BATCH):
            optimizer.zero_grad()
            logits = model(ids[batch])
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        seconds = time.perf_counter() - start
        with torch.no_grad():
            scores = model(clicks.ids[-VALIDATION:])
        state = state_bytes(optimizer)
        yield total / len(ids), auc(scores, clicks.labels[-VALIDATION:]), seconds, state


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """What the optimizer keeps beside the weights."""
    values = [v for state in optimizer.state.values() for v in state.values()]
    return sum(v.nbytes for v in values if isinstance(v, Tensor))


def warm_up() -> None:
    """Compile the kernel before anything is timed; a machine does that once and caches it."""
    table = nn.Embedding(1, 1, sparse=True)
    table(torch.tensor([0])).sum().backward()
    CFSGD(table.parameters(), lr=0.0).step()


def search(clicks: Clicks) -> None:
    for name, grid in GRIDS.items():
        best = {lr: max(a for _, a, _, _ in train(name, lr, clicks)) for lr in grid}
        found = max(best, key=best.__getitem__)
        print(
            f"{name:8} best lr {found:g}: " + "  ".join(f"{k:g}: {v:.4f}" for k, v in best.items())
        )


def compare(clicks: Clicks) -> None:
    rows = sum(clicks.sizes)
    truth = auc(clicks.probabilities[-VALIDATION:], clicks.labels[-VALIDATION:])
    print(
        f"{len(clicks.ids) - VALIDATION:,} generated clicks, {rows:,} tokens by Zipf's law\n"
        f"factorization machine of dimension {DIM}, batch {BATCH}, learning rates by grid search\n"
        f"best possible validation AUC: {truth:.4f}\n"
    )
    warm_up()
    epochs = "".join(f"{f'epoch {e}':>16}" for e in range(1, EPOCHS + 1))
    print(f"{'':8}{'lr':>7}{epochs}{'state':>12}{'seconds':>9}")
    print(f"{'':15}" + f"{'loss     AUC':>16}" * EPOCHS + f"{'bytes':>12}")
    for name, lr in RATES.items():
        print(f"{name:8}{lr:7g}", end="", flush=True)
        spent, kept = 0.0, 0
        for loss, score, seconds, state in train(name, lr, clicks):
            print(f"{loss:9.4f}{score:7.4f}", end="", flush=True)
            spent, kept = spent + seconds, state
        print(f"{kept:12,}{spent:9.1f}")
    print("\nstate: what the optimizer keeps beside the weights; CF-SGD keeps one counter per row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true", help="find the learning rates")
    warnings.filterwarnings("ignore", message="Sparse invariant checks")  # of torch's Adagrad
    (search if parser.parse_args().search else compare)(zipf_clicks())


if __name__ == "__main__":
    main()
