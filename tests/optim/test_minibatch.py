"""Minibatches equal a slow reference, for ids and options that hypothesis makes up."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from freqsgd import CFSGD, FASGD
from tests.reference import MinibatchReference

ROWS = 6
OPTIONS = {
    "power": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    "weight_decay": st.sampled_from([0.0, 0.01, 100.0]),
    "weight_decay_power": st.sampled_from([0.0, 0.5, 0.7, 1.0]),
    "tokens_per_sample": st.sampled_from([1, 2, 3]),
    "max_lr": st.sampled_from([None, 0.15]),
    "maximize": st.booleans(),
}
batches = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=9), min_size=1, max_size=4)


def check_against_reference(make, batches, dim, dtype, reference_options, coalesce=False):
    table = torch.nn.Parameter(torch.randn(ROWS, dim, dtype=dtype))
    opt = make(table)
    reference = MinibatchReference(table.detach().double().tolist(), lr=0.1, **reference_options)
    for ids in batches:
        gradients = torch.randn(len(ids), dim, dtype=dtype)
        index = torch.tensor(ids, dtype=torch.int64).view(1, -1)
        grad = torch.sparse_coo_tensor(index, gradients, table.shape, check_invariants=True)
        if coalesce:
            opt.observe(table, index)
            grad = grad.coalesce()
        before = grad._values().clone()
        table.grad = grad
        opt.step()
        assert torch.equal(grad._values(), before)  # gradients are the user's
        if ids:
            reference.step(ids, gradients.double().tolist())
    tolerance = (
        {"rtol": 1e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-11}
    )
    expected = torch.tensor(reference.theta, dtype=torch.float64)
    torch.testing.assert_close(table.detach().double(), expected, **tolerance)
    return opt, table, reference


def plain_options(options):
    return {k: v for k, v in options.items() if not (k == "max_lr" and v is None)}


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    batches,
    st.sampled_from([1, 3, 8, 17]),
    st.fixed_dictionaries(
        {
            **OPTIONS,
            "count": st.sampled_from(["occurrence", "batch"]),
            "halflife": st.sampled_from([None, 2.5, 1e6]),
        }
    ),
    st.booleans(),
)
def test_cfsgd_equals_the_reference(fused, dtype, batches, dim, options, coalesce):
    if options["count"] == "batch" or options["halflife"] is not None:
        batches = [ids for ids in batches if ids]  # the reference has no empty steps
    opt, table, reference = check_against_reference(
        lambda table: CFSGD([table], 0.1, fused=fused, **options),
        batches,
        dim,
        dtype,
        plain_options(options),
        coalesce,
    )
    if options["halflife"] is None:
        assert opt.counts(table).tolist() == [reference.c[k] for k in range(ROWS)]
    if reference.n:
        p = [reference.c[k] / reference.n for k in range(ROWS)]
        expected = torch.tensor(p, dtype=torch.float64)
        torch.testing.assert_close(opt.frequencies(table), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("fused", [False, True])
@given(batches, st.sampled_from([1, 3, 16]), st.fixed_dictionaries(OPTIONS), st.booleans())
def test_fasgd_equals_the_reference(fused, batches, dim, options, coalesce):
    frequencies = torch.tensor([0.9, 0.5, 0.25, 0.1, 0.01, 0.001], dtype=torch.float64)
    check_against_reference(
        lambda table: FASGD([table], 0.1, frequencies=frequencies, fused=fused, **options),
        batches,
        dim,
        torch.float64,
        {**plain_options(options), "frequencies": frequencies.tolist()},
        coalesce,
    )


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("fused", [False, True])
def test_a_long_run_with_a_short_halflife_stays_exact_when_counts_are_rescaled(fused, weight_decay):
    """Weights of samples pass 2^500 many times; the ratio to the reference must not show it."""
    torch.manual_seed(1)
    options = {"halflife": 0.5, "weight_decay": weight_decay}
    table = torch.nn.Parameter(torch.randn(ROWS, 2, dtype=torch.float64))
    opt = CFSGD([table], 0.1, fused=fused, max_lr=10.0, **options)
    reference = MinibatchReference(table.detach().tolist(), lr=0.1, max_lr=10.0, **options)
    for _ in range(120):
        ids = torch.randint(0, ROWS, (1, 4))
        gradients = torch.randn(4, 2, dtype=torch.float64)
        table.grad = torch.sparse_coo_tensor(ids, gradients, table.shape, check_invariants=True)
        opt.step()
        reference.step(ids[0].tolist(), gradients.tolist())
    assert opt.state[table]["origin"] > 0
    torch.testing.assert_close(table.detach(), torch.tensor(reference.theta, dtype=torch.float64))
