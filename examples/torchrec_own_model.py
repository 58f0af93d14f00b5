"""A TorchRec model of your own under CF-SGD, its tables spread over processes.

torchrun --nproc-per-node 2 examples/torchrec_own_model.py
python examples/torchrec_own_model.py
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from freqsgd import CFSGD
from freqsgd.torchrec import (
    TableRates,
    check_loss,
    dense_parameters,
    join,
    leave,
    require_torchrec,
    shard,
)

require_torchrec()
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor  # noqa: E402

ROWS = {"user": 5000, "item": 500}
STEPS, BATCH = 400, 512  # of each rank
LR = 30.0  # counting by occurrence it would be about 1: times sqrt(batch size)


class ClickModel(nn.Module):
    """Vectors of a user and of an item, and a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = EmbeddingBagCollection(
            device=torch.device("meta"),  # made where their rows are
            tables=[
                EmbeddingBagConfig(
                    name=name, num_embeddings=rows, embedding_dim=8, feature_names=[name]
                )
                for name, rows in ROWS.items()
            ],
        )
        self.network = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, features: KeyedJaggedTensor) -> Tensor:
        found = self.tables(features)
        return self.network(torch.cat([found[name] for name in ROWS], 1)).squeeze(1)


def make_batch(random: torch.Generator) -> tuple[KeyedJaggedTensor, Tensor]:
    """Few users and items are frequent; users and items with even numbers are fond of clicks."""
    ids = [(torch.rand(BATCH, generator=random) ** 3 * rows).long() for rows in ROWS.values()]
    chance = 0.1 + 0.3 * (1 - ids[0] % 2) + 0.5 * (1 - ids[1] % 2)
    lengths = torch.ones(len(ROWS) * BATCH, dtype=torch.int32)
    features = KeyedJaggedTensor(list(ROWS), torch.cat(ids), lengths=lengths)
    return features, (torch.rand(BATCH, generator=random) < chance).float()


def main() -> None:
    join()
    torch.manual_seed(dist.get_rank())  # every rank draws rows of its own, and batches
    random = torch.Generator().manual_seed(dist.get_rank())
    model = shard(ClickModel(), lr=LR)
    rates = TableRates(model)
    optimizer = CFSGD(dense_parameters(model), lr=0.1)
    for step in range(STEPS):
        features, labels = make_batch(random)
        rates.step()  # before the forward pass
        loss = binary_cross_entropy_with_logits(model(features), labels)
        check_loss(loss, step)
        optimizer.zero_grad()
        loss.backward()  # tables learn here
        optimizer.step()
        if dist.get_rank() == 0 and (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
    leave()
