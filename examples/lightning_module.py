"""CFSGD in a LightningModule: where it is built, and how it counts when gradients accumulate.

pip install . lightning
python examples/lightning_module.py
"""

from __future__ import annotations

import logging
import warnings

import lightning
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, Dataset, TensorDataset

import freqsgd

USERS, ITEMS, DIM = 2000, 500, 8
ACCUMULATE = 2  # batches of a step


class Clicks(lightning.LightningModule):
    """The product of two vectors, of a user and of an item, and a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, DIM, sparse=True)
        self.items = nn.Embedding(ITEMS, DIM, sparse=True)
        self.network = nn.Sequential(nn.Linear(DIM, 16), nn.ReLU(), nn.Linear(16, 1))

    def loss(self, batch: list[Tensor]) -> Tensor:
        users, items, clicks = batch
        scores = self.network(self.users(users) * self.items(items)).squeeze(1)
        return binary_cross_entropy_with_logits(scores, clicks)

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        return self.loss(batch)

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.log("loss", self.loss(batch))

    def configure_optimizers(self) -> freqsgd.CFSGD:
        tables, network = freqsgd.param_groups(self)
        opt = freqsgd.CFSGD([tables, {**network, "lr": 0.3}], lr=2.0)
        # A second backward pass merges ids in the gradient, so let the forward pass count them.
        freqsgd.watch(self, opt)
        return opt


def make_clicks(count: int) -> Dataset[tuple[Tensor, ...]]:
    """Few users and items are frequent; users and items with even numbers are fond of clicks."""
    users, items = ((torch.rand(count) ** 3 * rows).long() for rows in (USERS, ITEMS))
    chance = 0.1 + 0.3 * (1 - users % 2) + 0.5 * (1 - items % 2)
    return TensorDataset(users, items, (torch.rand(count) < chance).float())


def main() -> None:
    torch.set_num_threads(1)  # steps this small gain nothing from more
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")  # it asks for workers, to read memory
    lightning.seed_everything(0, verbose=False)
    batches = DataLoader(make_clicks(60_000), batch_size=128, shuffle=True)
    held_out = DataLoader(make_clicks(10_000), batch_size=1000)
    model = Clicks()
    trainer = lightning.Trainer(
        max_epochs=2,
        accumulate_grad_batches=ACCUMULATE,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    before = trainer.validate(model, held_out, verbose=False)[0]["loss"]
    trainer.fit(model, batches, held_out)
    after = trainer.callback_metrics["loss"]
    print(f"validation loss {before:.3f} before, {after:.3f} after {trainer.global_step} steps")
    opt = trainer.optimizers[0]
    counted = opt.counts(model.items.weight)
    print(f"{counted.sum():,} items counted, the most frequent of them {counted.max():,} times")


if __name__ == "__main__":
    main()
