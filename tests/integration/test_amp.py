"""Mixed precision: scaled gradients, steps that the scaler skips, 16-bit weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import freqsgd
from freqsgd import CFSGD
from tests.integration.slow import SlowTable

ROWS, DIM, BATCH, LR = 14, 6, 12, 0.2


class Model(nn.Module):
    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, DIM, sparse=sparse)
        self.head = nn.Linear(DIM, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.table(ids)).squeeze(-1)


def make_batches(steps: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(8)
    return [(torch.rand(BATCH, generator=generator) ** 2 * ROWS).long() for _ in range(steps)]


def count_of(batches: list[Tensor]) -> Tensor:
    return torch.bincount(torch.cat(batches), minlength=ROWS)


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("batchwise", [False, True], ids=["occurrence", "batch"])
def test_batches_whose_step_was_skipped_are_counted_with_the_next(
    sparse: bool, batchwise: bool
) -> None:
    """Their gradients are lost; what they say about frequencies is not."""
    model = Model(sparse)
    opt = CFSGD(
        model.parameters(), LR, weight_decay=0.05, count="batch" if batchwise else "occurrence"
    )
    freqsgd.watch(model, opt)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    slow = SlowTable(model.table.weight, LR, weight_decay=0.05, batchwise=batchwise)
    pending: list[Tensor] = []
    for number, ids in enumerate(make_batches(steps=6)):
        before = model.table.weight.detach().clone()
        loss = model(ids).pow(2).mean()
        opt.zero_grad()
        plain = torch.autograd.grad(loss, model.table.weight, retain_graph=True)[0]
        scaler.scale(loss).backward()
        poisoned = number in (1, 2, 4)
        if poisoned:
            model.head.bias.grad.fill_(torch.inf)
        scaler.step(opt)
        scaler.update()
        pending.append(ids)
        if poisoned:
            assert torch.equal(model.table.weight, before)
        else:
            slow.step(plain, torch.cat(pending))
            pending = []
            slow.same_as(model.table.weight, opt.counts(model.table.weight), 1e-5)
    assert scaler.get_scale() == 1.0
    assert all(param.isfinite().all() for param in model.parameters())


def test_a_scale_that_is_too_large_comes_down_and_every_batch_is_counted() -> None:
    model = Model(sparse=False)
    opt = CFSGD(model.parameters(), lr=1e-4)
    freqsgd.watch(model, opt)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-60)
    batches = make_batches(steps=4)
    steps = 0
    for ids in batches:
        before = model.table.weight.detach().clone()
        opt.zero_grad()
        scaler.scale(100 * model(ids).pow(2).mean()).backward()
        scaler.step(opt)
        scaler.update()
        steps += not torch.equal(model.table.weight, before)
    assert 0 < steps < len(batches)
    assert torch.equal(opt.counts(model.table.weight), count_of(batches))
    assert opt.frequencies(model.table.weight).sum().item() == pytest.approx(1.0)
    assert all(param.isfinite().all() for param in model.parameters())


def test_unwatched_sparse_gradients_are_unscaled_before_they_are_applied() -> None:
    model, twin = Model(sparse=True), Model(sparse=True)
    twin.load_state_dict(model.state_dict())
    opt, twin_opt = CFSGD(model.parameters(), LR), CFSGD(twin.parameters(), LR)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    batches = make_batches(steps=4)
    for ids in batches:
        for m, o in ((model, opt), (twin, twin_opt)):
            o.zero_grad()
            loss = m(ids).pow(2).mean()
            (scaler.scale(loss) if o is opt else loss).backward()
        scaler.step(opt)
        scaler.update()
        twin_opt.step()
    assert torch.equal(opt.counts(model.table.weight), count_of(batches))
    for param, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(param, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("computed_in", [torch.bfloat16, torch.float16])
def test_autocast_with_bfloat16_weights_rounds_each_row_once(
    computed_in: torch.dtype, sparse: bool
) -> None:
    model = Model(sparse).bfloat16()
    opt = CFSGD(model.parameters(), LR, weight_decay=0.05)
    freqsgd.watch(model, opt)
    slow = SlowTable(model.table.weight, LR, weight_decay=0.05)
    for ids in make_batches(steps=5):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=computed_in):
            out = model(ids)
            assert out.dtype == computed_in
            loss = out.float().pow(2).mean()
        loss.backward()
        grad = model.table.weight.grad
        if sparse:  # torch's own sum of duplicates would round to bfloat16
            rows, values = grad._indices()[0], grad._values().double()
            grad = torch.zeros(ROWS, DIM, dtype=torch.float64).index_add_(0, rows, values)
        slow.step(grad, ids)
        opt.step()
        assert model.table.weight.dtype == torch.bfloat16
        # one rounding is at most half of the distance between neighbours, 2^-8 of the number
        torch.testing.assert_close(
            model.table.weight.detach().double(), slow.weight, rtol=2**-8, atol=1e-7
        )
        assert opt.counts(model.table.weight).tolist() == slow.counts
        slow.weight = model.table.weight.detach().double()  # the next step starts from here
    assert torch.stack([p.float().abs().max() for p in model.parameters()]).isfinite().all()


@pytest.mark.parametrize("computed_in", [torch.bfloat16, torch.float16])
def test_autocast_with_float32_weights_follows_the_law(computed_in: torch.dtype) -> None:
    model = Model(sparse=True)
    opt = CFSGD(model.parameters(), LR)
    slow = SlowTable(model.table.weight, LR)
    for ids in make_batches(steps=3):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=computed_in):
            loss = model(ids).float().pow(2).mean()
        loss.backward()
        slow.step(model.table.weight.grad, ids)
        opt.step()
        slow.same_as(model.table.weight, opt.counts(model.table.weight), 2e-6)
