"""Every optimizer through the same cases; a new one gets them all by a new row in OPTIMIZERS."""

from __future__ import annotations

import copy
import io
import math

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from freqsgd import CFSGD, FASGD, CFAdam

ROWS = 12


def fasgd(params, lr, by_group=False, **options):
    """FASGD with made-up frequencies for every matrix of ROWS rows."""
    groups = [g if isinstance(g, dict) else {"params": [g]} for g in params]
    groups = [{**g, "params": list(g["params"])} for g in groups]
    frequencies = {
        p: torch.linspace(0.9, 0.01, ROWS)
        for g in groups
        for p in g["params"]
        if p.shape[0] == ROWS
    }
    if by_group:
        return FASGD([{**g, "frequencies": frequencies} for g in groups], lr, **options)
    return FASGD(groups, lr, frequencies=frequencies, **options)


def ours(make, **fixed):
    return lambda params, lr, **options: make(params, lr, **{**fixed, **options})


# name: (constructor, learning rate, whether a whole model of sparse and dense gradients is taken)
OPTIMIZERS = {
    "cfsgd": (ours(CFSGD), 0.1, True),
    "cfsgd-plain": (ours(CFSGD, fused=False), 0.1, True),
    "cfsgd-batch": (ours(CFSGD, count="batch"), 0.1, True),
    "cfsgd-decay": (ours(CFSGD, weight_decay=1e-3, weight_decay_power=0.5), 0.1, True),
    "cfsgd-decay-plain": (ours(CFSGD, weight_decay=1e-3, fused=False), 0.1, True),
    "cfsgd-halflife": (ours(CFSGD, halflife=50.0), 0.1, True),
    "cfadam": (ours(CFAdam), 0.02, True),
    "cfadam-plain": (ours(CFAdam, fused=False), 0.02, True),
    "cfadam-unbounded": (ours(CFAdam, clip=None), 0.02, True),
    "cfadam-decay": (ours(CFAdam, weight_decay=1e-3, weight_decay_power=0.5), 0.02, True),
    "fasgd": (ours(fasgd), 0.1, True),
    "fasgd-by-group": (ours(fasgd, by_group=True), 0.1, True),
    "fasgd-decay-plain": (ours(fasgd, weight_decay=1e-3, fused=False), 0.1, True),
    "sgd": (torch.optim.SGD, 0.2, True),
    "adagrad": (torch.optim.Adagrad, 0.1, True),
    "sparse-adam": (torch.optim.SparseAdam, 0.02, False),
}
OURS = [name for name in OPTIMIZERS if name.startswith(("cf", "fasgd"))]
every = pytest.mark.parametrize("name", OPTIMIZERS)
each_of_ours = pytest.mark.parametrize("name", OURS)


class Net(nn.Module):
    """A table with sparse gradients, a bag, and (for optimizers that take them) dense weights."""

    def __init__(self, dim=3, dense=True, rows=ROWS):
        super().__init__()
        self.table = nn.Embedding(rows, dim, sparse=True, padding_idx=0 if rows > 1 else None)
        self.bag = nn.EmbeddingBag(rows, dim, mode="mean", sparse=True)
        self.head = nn.Linear(dim, 1) if dense else None
        for table in (self.table, self.bag):
            table.weight.data *= 0.1

    def forward(self, ids):
        x = self.table(ids).sum(1) + self.bag(ids)
        return self.head(x) if self.head is not None else x.sum(1, keepdim=True)


def batch(seed, rows=ROWS, size=16):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, rows, (size, 2), generator=generator)  # many duplicates
    return ids, (ids.float().square().sin() + 0.5).sum(1, keepdim=True)


def train(net, opt, steps, first=0, rows=ROWS):
    losses = []
    for seed in range(first, first + steps):
        ids, target = batch(seed, rows)
        opt.zero_grad()
        loss = (net(ids) - target).square().mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def build(name, **shape):
    make, lr, whole = OPTIMIZERS[name]
    net = Net(dense=whole, **shape)
    return net, make(net.parameters(), lr=lr)


@every
@pytest.mark.parametrize("dim", [1, 3, 64])
def test_the_loss_falls(name, dim):
    net, opt = build(name, dim=dim)
    losses = train(net, opt, 150)
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if not n.startswith("fasgd")])
def test_a_table_of_one_row_can_be_trained(name):
    net, opt = build(name, rows=1)
    losses = train(net, opt, 30, rows=1)
    assert losses[-1] < losses[0]


@every
def test_a_batch_of_padding_alone_does_not_move_the_table(name):
    net, opt = build(name)
    before = net.table.weight.detach().clone()
    net.table(torch.zeros(4, 2, dtype=torch.int64)).sum().backward()
    assert net.table.weight.grad._nnz() == 0
    opt.step()
    assert torch.equal(net.table.weight, before)


@every
def test_training_is_deterministic(name):
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        net, opt = build(name)
        train(net, opt, 10)
        results.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert torch.equal(*results)


@every
def test_a_saved_state_goes_on_with_the_same_bits(name):
    net, opt = build(name)
    train(net, opt, 5)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
    train(net, opt, 5, first=5)

    file.seek(0)
    saved = torch.load(file, weights_only=True)
    twin, twin_opt = build(name)
    twin.load_state_dict(saved["net"])
    twin_opt.load_state_dict(saved["opt"])
    train(twin, twin_opt, 5, first=5)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


@every
def test_a_deep_copy_goes_on_by_itself(name):
    net, opt = build(name)
    train(net, opt, 5)
    twin, twin_opt = copy.deepcopy((net, opt))
    train(twin, twin_opt, 3, first=5)
    assert not torch.equal(net.bag.weight, twin.bag.weight)
    train(net, opt, 3, first=5)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


SCHEDULERS = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 4]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, total_iters=2),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, total_iters=4),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, total_iters=6),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [3]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.1, 2, cycle_momentum=False),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9, cycle_momentum=False),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.01),
}


def test_no_scheduler_of_torch_is_left_out():
    known = {n for n in lr_scheduler.__all__ if n != "LRScheduler"} | {"SWALR"}
    assert known == set(SCHEDULERS)


def adamw_step(weight, gradient, state, lr, decay):
    """What torch's AdamW makes of a weight."""
    weight = nn.Parameter(weight.clone())
    weight.grad = gradient
    adamw = torch.optim.AdamW([weight], lr=lr, weight_decay=decay)
    adamw.state[weight].update(state)
    adamw.step()
    return weight.detach()


@each_of_ours
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.filterwarnings("ignore:.*deprecated.*", "ignore:To get the last learning rate")
def test_every_scheduler_sets_the_rate_of_each_step(name, scheduler):
    net, opt = build(name)
    schedule = SCHEDULERS[scheduler](opt)
    for seed in range(8):
        lr = float(opt.param_groups[0]["lr"])
        before = net.head.weight.detach().clone()
        adam = {key: value.clone() for key, value in opt.state[net.head.weight].items()}
        train(net, opt, 1, first=seed)
        decay = opt.param_groups[0]["weight_decay"]
        gradient = net.head.weight.grad
        if name.startswith("cfadam"):
            expected = adamw_step(before, gradient, adam, lr, decay)
        else:
            expected = before - lr * (gradient + decay * before)
        torch.testing.assert_close(net.head.weight.detach(), expected)
        schedule.step(*([1.0] if scheduler == "ReduceLROnPlateau" else []))
    assert len({float(g["lr"]) for g in opt.param_groups}) == 1


@each_of_ours
def test_a_learning_rate_may_be_a_tensor(name):
    make, lr, _ = OPTIMIZERS[name]
    results = []
    for rate in (lr, torch.tensor(lr, dtype=torch.float64)):
        torch.manual_seed(0)
        net = Net()
        train(net, make(net.parameters(), lr=rate), 4)
        results.append(net.table.weight.detach())
    torch.testing.assert_close(*results, rtol=0, atol=0)


@every
def test_groups_keep_their_own_learning_rate(name):
    make, lr, whole = OPTIMIZERS[name]
    net = Net(dense=whole)
    opt = make([{"params": [net.table.weight], "lr": 0.0}, {"params": [net.bag.weight]}], lr=lr)
    if whole:
        ordinary = {"frequencies": None} if name == "fasgd-by-group" else {}
        opt.add_param_group({"params": list(net.head.parameters()), "lr": 0.0, **ordinary})
    before = copy.deepcopy(net.state_dict())
    train(net, opt, 3)
    after = net.state_dict()
    assert torch.equal(before["table.weight"], after["table.weight"])
    assert not torch.equal(before["bag.weight"], after["bag.weight"])
    if whole:
        assert torch.equal(before["head.weight"], after["head.weight"])


@each_of_ours
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_weights_of_every_precision_follow_float32(name, dtype):
    make, lr, _ = OPTIMIZERS[name]
    finest = nn.Parameter(torch.randn(ROWS, 5))
    weights = nn.Parameter(finest.detach().to(dtype))
    pairs = [(p, make([p], lr=lr)) for p in (finest, weights)]
    for seed in range(5):
        ids, _ = batch(seed)
        values = torch.randn(ids.numel(), 5)
        for p, opt in pairs:
            p.grad = torch.sparse_coo_tensor(
                ids.view(1, -1), values.to(dtype).to(p.dtype), p.shape, check_invariants=True
            )
            opt.step()
    tolerance = {torch.float64: 1e-5, torch.bfloat16: 0.05, torch.float16: 0.01}[dtype]
    torch.testing.assert_close(
        weights.detach().float(), finest.detach(), rtol=tolerance, atol=tolerance
    )


@each_of_ours
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bit_rows_are_rounded_once_per_step(name, dtype):
    """Many tiny updates of one row in a batch must add up before they are rounded away."""
    make, _, _ = OPTIMIZERS[name]
    weights = nn.Parameter(torch.ones(ROWS, 2, dtype=dtype))
    opt = make([weights], lr=1.0)
    ids = torch.full((1, 4096), ROWS - 2)
    tiny = torch.full((4096, 2), -(2.0**-12), dtype=dtype)  # far below the spacing at 1
    weights.grad = torch.sparse_coo_tensor(ids, tiny, weights.shape, check_invariants=True)
    opt.step()
    moved = weights[ROWS - 2].detach().float() - 1
    expected = opt.rates(weights)[ROWS - 2] * torch.ones(2)  # all gradients together are -1
    assert moved.tolist() == pytest.approx(expected.tolist(), rel=0.02)


@each_of_ours
def test_maximize_climbs(name):
    make, lr, _ = OPTIMIZERS[name]
    net = Net()
    opt = make(net.parameters(), lr=lr, maximize=True)
    losses = [train(net, opt, 1)[0] for _ in range(4)]  # the same batch each time
    assert losses == sorted(losses)
    assert losses[-1] > losses[0]


@each_of_ours
@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_of_either_kind_stops_movement(name, set_to_none):
    net, opt = build(name)
    train(net, opt, 2)
    opt.zero_grad(set_to_none=set_to_none)
    for group in opt.param_groups:
        group["weight_decay"] = 0.0
    before = copy.deepcopy(net.state_dict())
    opt.step()
    for key, value in net.state_dict().items():
        moved_by_momentum = name.startswith("cfadam") and "head" in key and not set_to_none
        assert torch.equal(value, before[key]) != moved_by_momentum, key


@pytest.mark.parametrize("name", [n for n in OURS if "plain" not in n])
def test_the_fused_step_agrees_with_the_plain_one(name):
    """To 1e-6 relative, on a table large enough for several threads, with many duplicates."""
    torch.set_num_threads(2)
    make, lr, _ = OPTIMIZERS[name]
    rows = ROWS if name.startswith("fasgd") else 700
    results = []
    for fused in (False, True):
        torch.manual_seed(1)
        table = nn.Parameter(torch.randn(rows, 37, dtype=torch.float64))
        opt = make([table], lr=lr, fused=fused)
        for _ in range(3):
            ids = (torch.rand(1, 3000) ** 3 * rows).long()
            values = torch.randn(3000, 37, dtype=torch.float64)
            table.grad = torch.sparse_coo_tensor(ids, values, table.shape, check_invariants=True)
            opt.step()
        results.append(table.detach())
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-9)
    assert math.isfinite(results[0].abs().max())
