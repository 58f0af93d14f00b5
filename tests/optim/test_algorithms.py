"""The optimizers equal the paper's algorithms, transcribed literally, at batch size 1."""

from __future__ import annotations

import math
import random

import pytest
import torch

from freqsgd import CFSGD, FASGD, paper_rates
from tests.reference import algorithm_1, algorithm_2

USERS, ITEMS, DIM, T = 5, 4, 3, 60
FUSED = pytest.mark.parametrize("fused", [False, True])


def logistic_gradient(u, v, y):
    """Gradients of log(1 + exp(-y u.v))."""
    slope = -y / (1 + math.exp(y * sum(a * b for a, b in zip(u, v, strict=True))))
    return [slope * b for b in v], [slope * a for a in u]


@pytest.fixture
def samples():
    rng = random.Random(0)
    users = rng.choices(range(USERS), weights=[16, 8, 4, 2, 1], k=T)
    items = rng.choices(range(USERS, USERS + ITEMS), weights=[9, 3, 1, 1], k=T)
    return [(i, j, rng.choice([-1, 1])) for i, j in zip(users, items, strict=True)]


def run(theta, samples, make):
    """Train two tables, users and items, one pair a step."""
    users = torch.nn.Embedding(USERS, DIM, sparse=True, dtype=torch.float64)
    items = torch.nn.Embedding(ITEMS, DIM, sparse=True, dtype=torch.float64)
    users.weight.data.copy_(theta[:USERS])
    items.weight.data.copy_(theta[USERS:])
    opt = make(users.weight, items.weight)
    for i, j, y in samples:
        opt.zero_grad()
        product = (users(torch.tensor([i])) * items(torch.tensor([j - USERS]))).sum()
        torch.nn.functional.softplus(-y * product).backward()
        opt.step()
    return torch.cat([users.weight, items.weight]).detach(), opt, users, items


@FUSED
@pytest.mark.parametrize(("alpha", "L"), [(2.0, 0.25), (8.0, 0.5)])
def test_cfsgd_is_algorithm_2(samples, fused, alpha, L):
    theta = torch.randn(USERS + ITEMS, DIM, dtype=torch.float64)
    lr, max_lr = paper_rates(alpha, T, L)
    trained, opt, users, items = run(
        theta, samples, lambda u, v: CFSGD([u, v], lr, max_lr=max_lr, fused=fused)
    )
    expected, c = algorithm_2(theta.tolist(), samples, logistic_gradient, alpha, T, L)
    torch.testing.assert_close(
        trained, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-9
    )
    assert torch.cat([opt.counts(users.weight), opt.counts(items.weight)]).tolist() == c


@FUSED
def test_fasgd_is_algorithm_1(samples, fused):
    theta = torch.randn(USERS + ITEMS, DIM, dtype=torch.float64)
    p = [16 / 31, 8 / 31, 4 / 31, 2 / 31, 1 / 31, 9 / 14, 3 / 14, 1 / 14, 1 / 14]
    p = torch.tensor(p, dtype=torch.float64)
    alpha, L = 2.0, 0.25
    lr, max_lr = paper_rates(alpha, T, L)
    trained, *_ = run(
        theta,
        samples,
        lambda u, v: FASGD(
            [u, v], lr, frequencies={u: p[:USERS], v: p[USERS:]}, max_lr=max_lr, fused=fused
        ),
    )
    expected = algorithm_1(theta.tolist(), samples, logistic_gradient, p.tolist(), alpha, T, L)
    torch.testing.assert_close(
        trained, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-9
    )


@FUSED
def test_uniform_frequencies_reduce_to_sgd(samples, fused):
    """Corollary 1, exactly: with |U| = |V| = N the trajectory is that of SGD with lr * sqrt(N)."""
    samples = [(i, j, y) for i, j, y in samples if i < ITEMS]
    theta = torch.randn(2 * ITEMS, DIM, dtype=torch.float64)
    start = torch.cat([theta[:ITEMS], torch.zeros(1, DIM), theta[ITEMS:]])
    uniform = torch.full((USERS,), 1 / ITEMS, dtype=torch.float64)
    frequencies = lambda u, v: {u: uniform, v: uniform[:ITEMS]}  # noqa: E731
    ours, *_ = run(
        start, samples, lambda u, v: FASGD([u, v], 0.1, frequencies=frequencies(u, v), fused=fused)
    )
    sgd, *_ = run(start, samples, lambda u, v: torch.optim.SGD([u, v], 0.1 * math.sqrt(ITEMS)))
    torch.testing.assert_close(ours, sgd, rtol=1e-12, atol=1e-13)
