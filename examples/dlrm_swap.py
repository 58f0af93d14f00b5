"""Another optimizer in a model that you have: a DLRM on clicks, by Adagrad and then by CFSGD.

python examples/dlrm_swap.py
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer

import freqsgd

ROWS = {"user": 20_000, "item": 5000, "page": 1000, "country": 100}
NUMBERS = 4  # dense features
DIM, BATCH = 16, 256
SAMPLES, HELD_OUT = 150_000, 20_000

Group = dict[str, Any]


def adagrad(tables: Group, network: Group) -> Optimizer:
    return torch.optim.Adagrad([tables, network], lr=0.05)


def cfsgd(tables: Group, network: Group) -> Optimizer:
    return freqsgd.CFSGD([tables, {**network, "lr": 0.5}], lr=3.0)  # the only line that differs


class DLRM(nn.Module):
    """Numbers become a vector like those of the tables; on top, products of all pairs of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True) for rows in ROWS.values()
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


def loss_of(scores: Tensor, clicks: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(scores, clicks)  # a mean over the batch


def train(model: nn.Module, opt: Optimizer, data: tuple[Tensor, Tensor, Tensor]) -> None:
    """Pass once over the samples."""
    for rows in torch.randperm(SAMPLES).split(BATCH):
        numbers, ids, clicks = (column[rows] for column in data)
        opt.zero_grad()
        loss_of(model(numbers, ids), clicks).backward()
        opt.step()


def auc(scores: Tensor, clicks: Tensor) -> float:
    """How often a sample with a click scores above one without."""
    ranks = scores.argsort().argsort().double() + 1
    yes = clicks.sum().item()
    pairs = yes * (len(clicks) - yes)
    return (ranks[clicks == 1].sum().item() - yes * (yes + 1) / 2) / pairs


def state_bytes(opt: Optimizer) -> int:
    values = [value for state in opt.state.values() for value in state.values()]
    return sum(value.nbytes for value in values if isinstance(value, Tensor))


def main() -> None:
    torch.set_num_threads(1)  # steps this small gain nothing from more
    torch.sparse.check_sparse_tensor_invariants.disable()  # else torch's Adagrad warns
    numbers, ids, clicks, odds = make_clicks()
    new, new_clicks = slice(SAMPLES, None), clicks[SAMPLES:]
    constant = clicks[:SAMPLES].mean().logit().expand(HELD_OUT)
    print(f"one chance for all: loss {loss_of(constant, new_clicks):.4f}, AUC 0.500")
    for make in (adagrad, cfsgd):
        torch.manual_seed(0)  # the same start and the same order
        model = DLRM()
        opt = make(*freqsgd.param_groups(model))
        train(model, opt, (numbers, ids, clicks))
        with torch.no_grad():
            scores = model(numbers[new], ids[new])
        print(
            f"{make.__name__}: loss {loss_of(scores, new_clicks):.4f}, "
            f"AUC {auc(scores, new_clicks):.3f}, state {state_bytes(opt):,} bytes"
        )
    loss, area = loss_of(odds[new], new_clicks), auc(odds[new], new_clicks)
    print(f"the best possible: loss {loss:.4f}, AUC {area:.3f}")


if __name__ == "__main__":
    main()
