"""Swap the optimizer of a DLRM that you have: Adam, then CFAdam at the same learning rate.

python examples/dlrm_swap.py
"""

from __future__ import annotations

import argparse
import statistics

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer

import freqsgd

ROWS = {"user": 20_000, "item": 5000, "page": 1000, "country": 100}
NUMBERS = 4  # dense features
DIM, BATCH = 16, 256
SAMPLES, HELD_OUT = 150_000, 20_000


def adam(model: nn.Module) -> list[Optimizer]:
    return [torch.optim.Adam(model.parameters(), lr=3e-3)]


def cfadam(model: nn.Module) -> list[Optimizer]:
    return [freqsgd.CFAdam(model, lr=3e-3)]  # the only line that differs


def adagrad(model: nn.Module) -> list[Optimizer]:
    return [torch.optim.Adagrad(model.parameters(), lr=0.05)]


def cfsgd(model: nn.Module) -> list[Optimizer]:
    """CF-SGD for the tables and, as for every other weight, plain SGD for the network."""
    tables, network = freqsgd.param_groups(model)
    opt = freqsgd.CFSGD([tables, {**network, "lr": 0.5}], lr=3.0)
    freqsgd.watch(model, opt)
    return [opt]


def cfsgd_with_adagrad(model: nn.Module) -> list[Optimizer]:
    """The same tables with a better network: plain SGD was what held CF-SGD back."""
    tables, network = freqsgd.param_groups(model)
    opt = freqsgd.CFSGD([tables], lr=3.0)
    freqsgd.watch(model, opt)
    return [opt, torch.optim.Adagrad(network["params"], lr=0.05)]


class DLRM(nn.Module):
    """Numbers become a vector like those of the tables; on top, products of all pairs of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, DIM, mode="sum") for rows in ROWS.values()
        )
        for table in self.tables:
            bound = len(table.weight) ** -0.5
            nn.init.uniform_(table.weight, -bound, bound)
        self.bottom = nn.Sequential(nn.Linear(NUMBERS, 16), nn.ReLU(), nn.Linear(16, DIM))
        self.left, self.right = torch.tril_indices(len(ROWS) + 1, len(ROWS) + 1, offset=-1)
        inputs = DIM + len(self.left)
        self.top = nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        bags = [table(ids[:, [field]]) for field, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *bags], 1)
        products = (vectors @ vectors.transpose(1, 2))[:, self.left, self.right]
        return self.top(torch.cat([dense, products], 1)).squeeze(1)


def make_clicks() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens by Zipf's law; log odds of a click from tokens, from users with items, and numbers."""
    random = torch.Generator().manual_seed(0)
    count = SAMPLES + HELD_OUT
    tastes = [0.7 * torch.randn(rows, 4, generator=random) for rows in ROWS.values()]
    zipf = [1 / torch.arange(1.0, rows + 1) for rows in ROWS.values()]
    ids = [torch.multinomial(weights, count, True, generator=random) for weights in zipf]
    numbers = torch.randn(count, NUMBERS, generator=random)
    found = torch.stack([taste[tokens] for taste, tokens in zip(tastes, ids, strict=True)])
    odds = found[:, :, 0].sum(0) + (found[0] * found[1]).sum(1)
    odds += numbers @ torch.linspace(-0.5, 0.5, NUMBERS) - 1
    clicks = torch.rand(count, generator=random) < odds.sigmoid()
    return numbers, torch.stack(ids, 1), clicks.float(), odds


def train(model: nn.Module, opts: list[Optimizer], data: tuple[Tensor, Tensor, Tensor]) -> None:
    """Pass once over the samples."""
    for rows in torch.randperm(SAMPLES).split(BATCH):
        numbers, ids, clicks = (column[rows] for column in data)
        model.zero_grad()
        binary_cross_entropy_with_logits(model(numbers, ids), clicks).backward()
        for opt in opts:
            opt.step()


def auc(scores: Tensor, clicks: Tensor) -> float:
    """How often a sample with a click scores above one without."""
    ranks = scores.argsort().argsort().double() + 1
    yes = clicks.sum().item()
    pairs = yes * (len(clicks) - yes)
    return (ranks[clicks == 1].sum().item() - yes * (yes + 1) / 2) / pairs


def state_bytes(opt: Optimizer, model: DLRM) -> int:
    """Return the bytes that an optimizer keeps for the tables."""
    states = [opt.state[table.weight] for table in model.tables]
    values = [value for state in states for value in state.values()]
    return sum(value.nbytes for value in values if isinstance(value, Tensor))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs of each optimizer")
    seeds = range(parser.parse_args().seeds)
    torch.set_num_threads(1)  # steps this small gain nothing from more
    numbers, ids, clicks, odds = make_clicks()
    new, new_clicks = slice(SAMPLES, None), clicks[SAMPLES:]
    for make in (adam, cfadam, adagrad, cfsgd, cfsgd_with_adagrad):
        areas = []
        for seed in seeds:
            torch.manual_seed(seed)  # start and order
            model = DLRM()
            opts = make(model)
            train(model, opts, (numbers, ids, clicks))
            with torch.no_grad():
                areas.append(auc(model(numbers[new], ids[new]), new_clicks))
        spread = statistics.stdev(areas) if len(areas) > 1 else 0.0
        print(
            f"{make.__name__}: AUC {statistics.mean(areas):.4f} +- {spread:.4f}, "
            f"state of the tables {state_bytes(opts[0], model):,} bytes",
            flush=True,
        )
    print(f"the best possible: AUC {auc(odds[new], new_clicks):.4f}")


if __name__ == "__main__":
    main()
