"""CFAdam equals a slow reference on tables and AdamW on every other weight."""

from __future__ import annotations

import copy
import gc
import io
import math
import warnings
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import freqsgd
from freqsgd import CFAdam
from tests.reference import AdamReference

ROWS, LR = 6, 0.1
OPTIONS = {
    "beta2": st.sampled_from([0.0, 0.5, 0.999]),
    "eps": st.sampled_from([1e-8, 0.1]),
    "clip": st.sampled_from([None, 0.5, 3.0]),
    "weight_decay": st.sampled_from([0.0, 0.01, 100.0]),
    "weight_decay_power": st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    "maximize": st.booleans(),
}
batches = st.lists(
    st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=9), min_size=1, max_size=4
)


def sparse_gradient(ids, values, rows=ROWS):
    index = torch.as_tensor(ids).view(1, -1)
    return torch.sparse_coo_tensor(index, values, (rows, values.shape[1]), check_invariants=True)


def make(table, **options):
    beta2 = options.pop("beta2", 0.999)
    return CFAdam([table], LR, betas=(0.9, beta2), **options)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(batches, st.sampled_from([1, 3, 8, 17]), st.fixed_dictionaries(OPTIONS))
def test_tables_equal_the_reference(fused, dtype, batches, dim, options):
    table = nn.Parameter(torch.randn(ROWS, dim, dtype=dtype))
    opt = make(table, fused=fused, **options)
    reference = AdamReference(table.detach().double().tolist(), LR, **options)
    for ids in batches:
        gradients = torch.randn(len(ids), dim, dtype=dtype)
        table.grad = sparse_gradient(ids, gradients)
        before = gradients.clone()
        opt.step()
        assert torch.equal(gradients, before)  # gradients are the user's
        reference.step(ids, gradients.double().tolist())
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    expected = torch.tensor(reference.theta, dtype=torch.float64)
    torch.testing.assert_close(table.detach().double(), expected, **tolerance)
    assert opt.counts(table).tolist() == [reference.c[k] for k in range(ROWS)]
    torch.testing.assert_close(
        opt.state[table]["square_avg"], torch.tensor(reference.s, dtype=torch.float64)
    )


def test_a_row_that_each_step_holds_once_moves_as_in_adam_without_momentum():
    """Its frequency is 1, so p_k s_j is Adam's own second moment."""
    ours = nn.Parameter(torch.randn(1, 4, dtype=torch.float64))
    theirs = nn.Parameter(ours.detach().clone())
    opt = CFAdam([ours], 0.01, betas=(0.9, 0.99), clip=None)
    adam = torch.optim.Adam([theirs], 0.01, betas=(0.0, 0.99))
    for _ in range(20):
        gradient = torch.randn(1, 4, dtype=torch.float64)
        ours.grad, theirs.grad = sparse_gradient([0], gradient, rows=1), gradient
        opt.step()
        adam.step()
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("fused", [False, True])
def test_the_rates_are_what_the_latest_step_multiplied_gradients_by(fused):
    table = nn.Parameter(torch.randn(ROWS, 3, dtype=torch.float64))
    opt = CFAdam([table], LR, betas=(0.9, 0.3), clip=None, fused=fused)
    for ids in ([0] * 50, [0, 1, 1], [5, 0]):
        gradients = torch.randn(len(ids), 3, dtype=torch.float64)
        before = table.detach().clone()
        table.grad = sparse_gradient(ids, gradients)
        opt.step()
        moved = torch.zeros_like(before).index_add_(0, torch.tensor(ids), gradients)
        torch.testing.assert_close(before - table.detach(), opt.rates(table) * moved)


@pytest.mark.parametrize("fused", [False, True])
def test_no_occurrence_moves_its_row_further_than_the_bound(fused):
    table = nn.Parameter(torch.zeros(ROWS, 4, dtype=torch.float64))
    opt = CFAdam([table], LR, clip=2.0, fused=fused)
    for size in [1.0] * 200 + [1e6]:
        before = table.detach().clone()
        table.grad = sparse_gradient([0, 1, 2, 3], torch.full((4, 4), size, dtype=torch.float64))
        opt.step()
    moved = (table.detach() - before)[:4]  # p = 1/4 and m = 4: each row is in every step
    torch.testing.assert_close(moved, torch.full_like(moved, -2 * LR))


# ---- other weights ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1},
        {"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.3},
        {"maximize": True},
        {"fused": True, "weight_decay": 0.1},
        {"lr": torch.tensor(0.01)},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_other_weights_are_the_bits_of_adamw(options, dtype):
    results = []
    for make in (CFAdam, torch.optim.AdamW):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 1)).to(dtype)
        opt = make(model.parameters(), **{"lr": 0.01, "weight_decay": 0.0, **options})
        for step in range(10):
            opt.zero_grad()
            model(torch.randn(4, 5, dtype=dtype)).square().mean().backward()
            if step % 3 == 0:
                model[1].bias.grad = None  # a weight that a step leaves out
            opt.step()
        results.append([p.detach() for p in model.parameters()])
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours, theirs)


# ---- dense gradients and watch ---------------------------------------------------------------


class Bags(nn.Module):
    """A table and a bag, whose gradients are sparse or dense."""

    def __init__(self, sparse, mode="mean", padding_idx=None, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        options = {"sparse": sparse, "dtype": dtype, "padding_idx": padding_idx}
        self.table = nn.Embedding(20, 3, **options)
        self.bag = nn.EmbeddingBag(20, 3, mode=mode, **options)
        self.head = nn.Linear(3, 1, dtype=dtype)

    def forward(self, ids, weights=None, offsets=None):
        bag = self.bag(ids if offsets is None else ids.view(-1), offsets, weights)
        return self.head(self.table(ids).sum(1) + bag).squeeze(1)


def loss_of(model, ids, **options):
    return nn.functional.softplus(model(ids, **options) * (ids.sum(1) % 3 - 1.0)).mean()


def random_ids(seed, size=16):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(size, 4, generator=generator, dtype=torch.float64) ** 3 * 20).long()


def assert_close(model, other):
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


BAGS = {
    "mean": {},
    "sum": {"mode": "sum"},
    "padding": {"padding_idx": 0},
    "sum with padding": {"mode": "sum", "padding_idx": 0},
}


@pytest.mark.parametrize("bag", BAGS.values(), ids=BAGS)
@pytest.mark.parametrize("call", ["matrix", "offsets", "weighted"])
def test_a_model_with_dense_gradients_learns_what_it_learns_with_sparse_ones(bag, call):
    if call == "weighted" and bag.get("mode") != "sum":
        pytest.skip("torch weighs sums only")
    models = []
    for sparse in (False, True):
        model = Bags(sparse, **bag)
        opt = CFAdam(model, 0.05, clip=None)
        for seed in range(8):
            ids = random_ids(seed)
            options = {}
            if call == "offsets":
                options["offsets"] = torch.arange(0, ids.numel(), 4)
            if call == "weighted":
                options["weights"] = torch.rand(ids.shape, dtype=torch.float64)
            torch.manual_seed(seed)
            opt.zero_grad()
            loss_of(model, ids, **options).backward()
            opt.step()
        models.append(model)
    assert_close(*models)


def test_a_table_that_is_looked_up_twice_has_the_moments_of_all_occurrences():
    """A ranking loss, whose gradients cancel out. Merged gradients are noticed after a step."""
    moments = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = nn.Embedding(20, 3, sparse=sparse, dtype=torch.float64)
        opt = CFAdam(table, lr=0.0, betas=(0.9, 0.0))
        for seed in range(4):
            better, worse = random_ids(seed)[:, :2].T
            wanted = torch.randn(3, dtype=torch.float64)
            opt.zero_grad()
            nn.functional.softplus((table(worse) - table(better)) @ wanted).mean().backward()
            opt.step()
            moments.append(opt.state[table.weight]["square_avg"])
    torch.testing.assert_close(moments[1:4], moments[5:])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_scale_of_the_loss_does_not_matter(sparse):
    models = []
    for scale in (1.0, 1000.0):
        model = Bags(sparse)
        opt = CFAdam(model, 0.05, eps=1e-15)
        for seed in range(5):
            opt.zero_grad()
            (loss_of(model, random_ids(seed)) * scale).backward()
            opt.step()
        models.append(model)
    assert_close(*models)


@pytest.mark.parametrize("sparse", [False, True])
def test_accumulated_gradients_are_one_step(sparse):
    models = []
    for parts in (1, 2):
        model = Bags(sparse)
        opt = CFAdam(model, 0.05, clip=None)
        for seed in range(5):
            opt.zero_grad()
            for ids in random_ids(seed).chunk(parts):
                (loss_of(model, ids) / parts).backward()
            opt.step()
        models.append(model)
    counts = [opt.counts(model.table.weight), opt.counts(model.bag.weight)]
    assert [int(c.sum()) for c in counts] == [5 * 64] * 2
    if not sparse:  # a second backward() merges the repeated ids of sparse gradients
        assert_close(*models)


def test_gradients_that_were_scaled_after_backward_give_the_same_moments():
    models = []
    for scale in (1.0, 1024.0):
        model = Bags(sparse=False)
        opt = CFAdam(model, 0.05)
        for seed in range(5):
            opt.zero_grad()
            (loss_of(model, random_ids(seed)) * scale).backward()
            for param in model.parameters():
                param.grad /= scale
            opt.step()
        models.append(model)
    assert_close(*models)


def replace_gradient(param):
    param.grad = param.grad * 0.1


def divide_data(param):
    param.grad.data.div_(1024)


SCALINGS = {
    "in place": lambda param: param.grad.mul_(0.1),
    "another tensor": replace_gradient,
    "past the version counter": divide_data,
}


@pytest.mark.parametrize("scale", SCALINGS.values(), ids=SCALINGS)
@pytest.mark.parametrize("first", [0, 4])
def test_scaled_gradients_have_the_same_moments_dense_and_sparse(scale, first):
    moments = []
    for sparse in (False, True):
        model = Bags(sparse)
        opt = CFAdam(model, lr=0.0, betas=(0.9, 0.0))
        for seed in range(7):
            opt.zero_grad()
            loss_of(model, random_ids(seed)).backward()
            for param in (model.table.weight, model.bag.weight):
                if seed >= first:
                    scale(param)
            opt.step()
            moments.append(opt.state[model.bag.weight]["square_avg"].clone())
    torch.testing.assert_close(moments[:7], moments[7:])


def test_gradients_that_were_discarded_leave_no_trace_in_the_moments():
    """A training loop may skip the step after a spike of the loss."""
    results = []
    for spike in (False, True):
        model = Bags(sparse=False)
        opt = CFAdam(model)
        train(model, opt, range(3))
        if spike:
            (1e4 * loss_of(model, random_ids(3))).backward()
        train(model, opt, range(4, 6))
        results.append(opt.state[model.table.weight]["square_avg"])
    torch.testing.assert_close(*results)


def test_gradients_of_the_output_that_are_asked_for_beside_are_not_added():
    """As for a gradient penalty or an adversarial step."""
    results = []
    for asked in (False, True):
        model = Bags(sparse=False)
        opt = CFAdam(model, betas=(0.9, 0.0))
        ids = random_ids(0)
        if asked:
            out = model.table(ids)
            torch.autograd.grad(out.square().mean(), out)
            opt.state[model.table.weight].pop("observed")
        train(model, opt, range(1))
        results.append(opt.state[model.table.weight]["square_avg"])
    torch.testing.assert_close(*results)


def test_moments_of_a_backward_pass_without_a_step_do_no_harm():
    """As of a loss that was not finite, after which the training loop goes on."""
    model = Bags(sparse=False)
    opt = CFAdam(model)
    train(model, opt, range(2))
    (loss_of(model, random_ids(2)) * math.nan).backward()
    train(model, opt, range(3, 6))
    assert all(param.isfinite().all() for param in model.parameters())
    assert opt.state[model.table.weight]["square_avg"].isfinite().all()


@pytest.mark.parametrize("dim", [1, 2, 8])
def test_a_table_with_other_uses_takes_the_squares_of_its_gradients_rows(dim):
    """Also where they begin late."""
    table = nn.Embedding(20, dim, dtype=torch.float64)
    opt = CFAdam(table, 0.05, betas=(0.9, 0.0))
    for step in range(12):
        opt.zero_grad()
        loss = nn.functional.softplus(table(random_ids(step))).mean()
        used = step not in (1, 3, 4)
        (loss + used * 0.1 * table.weight.square().sum()).backward()
        opt.step()
        rows = table.weight.grad.square().sum(0)
        same = torch.allclose(opt.state[table.weight]["square_avg"], rows)
        assert same == used, step


def test_a_softmax_over_a_tables_own_rows_trains_without_diverging():
    """Every row has a gradient in every step, also rows that no input ever held."""
    torch.manual_seed(0)
    table = nn.Embedding(200, 8)
    opt = CFAdam(table, 0.03)
    losses = []
    for seed in range(300):
        ids = random_ids(seed, 32)
        opt.zero_grad()
        logits = table(ids[:, 0]) @ table.weight.T
        loss = nn.functional.cross_entropy(logits, (ids[:, 0] * 7 + 1) % 200)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) < 0.5 * sum(losses[:20])


# ---- which parameters are tables ---------------------------------------------------------------


def test_a_model_given_as_a_whole_has_its_tables_found_and_watched():
    model = Bags(sparse=False)
    opt = CFAdam(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of(model, random_ids(0)).backward()
        opt.step()
    assert int(opt.counts(model.table.weight).sum()) == 64
    assert "exp_avg" not in opt.state[model.table.weight]
    assert "exp_avg" in opt.state[model.head.weight]


def test_weights_that_are_frozen_at_first_are_trained_later():
    model = Bags(sparse=False)
    model.requires_grad_(False)
    model.head.weight.requires_grad_(True)
    opt = CFAdam(model)
    before = copy.deepcopy(model.state_dict())
    train(model, opt, range(1))
    assert torch.equal(model.table.weight, before["table.weight"])
    model.requires_grad_(True)
    train(model, opt, range(1, 2))
    for name, value in model.state_dict().items():
        assert not torch.equal(value, before[name]), name
    assert int(opt.counts(model.table.weight).sum()) == 64


def test_a_watched_table_in_eval_mode_is_refused_in_words():
    model = Bags(sparse=False).eval()
    opt = CFAdam(model)
    loss_of(model, random_ids(0)).backward()
    with pytest.raises(RuntimeError, match=r"was in eval mode.*call model.train\(\)"):
        opt.step()


def test_a_model_does_not_keep_an_optimizer_that_nobody_holds():
    model = Bags(sparse=False)
    gone = weakref.ref(CFAdam(model))
    gc.collect()
    assert gone() is None
    opt = CFAdam(model)
    train(model, opt, range(2))
    assert int(opt.counts(model.table.weight).sum()) == 2 * 64


def test_a_weight_that_an_output_layer_shares_is_trained_by_adamw():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table = nn.Embedding(20, 3)
            self.head = nn.Linear(3, 20, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))

    models = []
    for make in (
        lambda m: CFAdam(m, 0.01),
        lambda m: torch.optim.AdamW(m.parameters(), 0.01, weight_decay=0),
    ):
        model = Tied()
        opt = make(model)
        for seed in range(3):
            opt.zero_grad()
            model(random_ids(seed)).square().mean().backward()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                opt.step()
        models.append(model)
    assert torch.equal(*(m.table.weight for m in models))


def test_an_embedding_with_a_forward_pass_of_its_own_is_trained_by_adamw_and_this_is_said():
    class Positions(nn.Embedding):
        def forward(self, tokens):
            return super().forward(torch.arange(tokens.shape[-1]))

    model = Positions(2000, 3)
    opt = CFAdam(model)
    model(torch.tensor([7, 7, 9])).sum().backward()
    with pytest.warns(UserWarning, match="nn.Embedding"):
        opt.step()
    assert "counts" not in opt.state[model.weight]


def test_a_watched_embedding_may_return_anything():
    class Pair(nn.Embedding):
        def forward(self, ids):
            found = super().forward(ids)
            return found, 8 * found

    table = Pair(20, 3)
    opt = CFAdam(table.parameters(), betas=(0.9, 0.0))
    freqsgd.watch(table, opt)
    table(torch.tensor([1, 1, 2]))[1].sum().backward()
    opt.step()
    rows = table.weight.grad.double().square().sum(0)
    torch.testing.assert_close(opt.state[table.weight]["square_avg"], rows)


def test_parameters_alone_with_dense_gradients_are_trained_by_adamw_and_this_is_said():
    model = Bags(sparse=False)
    opt = CFAdam(model.parameters())
    loss_of(model, random_ids(0)).backward()
    with pytest.warns(UserWarning, match="Pass the model itself, CFAdam\\(model"):
        opt.step()
    assert "exp_avg" in opt.state[model.table.weight]


# ---- state -------------------------------------------------------------------------------------


def train(model, opt, steps):
    for seed in steps:
        opt.zero_grad()
        loss_of(model, random_ids(seed)).backward()
        opt.step()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_saved_run_goes_on_with_the_same_bits(sparse):
    model = Bags(sparse)
    opt = CFAdam(model, 0.05, weight_decay=0.01)
    train(model, opt, range(3))
    file = io.BytesIO()
    torch.save([model.state_dict(), opt.state_dict()], file)
    train(model, opt, range(3, 6))
    twin = Bags(sparse)
    twin_opt = CFAdam(twin, 0.05, weight_decay=0.01)
    file.seek(0)
    for part, saved in zip((twin, twin_opt), torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(saved)
    train(twin, twin_opt, range(3, 6))
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


def test_the_state_of_a_table_is_a_counter_per_row_and_a_number_per_column():
    table = nn.Embedding(1000, 16, sparse=True)
    opt = CFAdam(table.parameters())
    table(torch.tensor([1, 2])).sum().backward()
    opt.step()
    state = opt.state[table.weight]
    sizes = {name: x.nbytes for name, x in state.items() if isinstance(x, torch.Tensor)}
    assert sizes == {"counts": 4 * 1000, "square_avg": 8 * 16}


def test_nothing_is_written_when_any_gradient_is_not_finite():
    model = Bags(sparse=True)
    opt = CFAdam(model, 0.05)
    train(model, opt, range(2))
    weights, state = copy.deepcopy((model.state_dict(), opt.state_dict()))
    for bad in (model.bag.weight, model.head.weight):
        opt.zero_grad()
        loss_of(model, random_ids(2)).backward()
        values = bad.grad._values() if bad.grad.is_sparse else bad.grad
        values.view(-1)[0] = math.nan
        with pytest.raises(ValueError, match="NaN or infinity"):
            opt.step()
        torch.testing.assert_close(dict(model.state_dict()), dict(weights), rtol=0, atol=0)
        for key, kept in state["state"].items():
            now = {k: v for k, v in opt.state_dict()["state"][key].items() if k != "observed"}
            torch.testing.assert_close(now, kept, rtol=0, atol=0)


def test_new_rows_start_uncounted_and_the_rest_goes_on():
    table = nn.Embedding(4, 3, sparse=True)
    opt = CFAdam(table.parameters(), LR)
    table(torch.tensor([1, 1, 2])).sum().backward()
    opt.step()
    old = table.weight
    table.weight = nn.Parameter(torch.cat([old.detach(), torch.randn(2, 3)]))
    opt.resize(old, table.weight)
    table(torch.tensor([5])).sum().backward()
    opt.step()
    assert opt.counts(table.weight).tolist() == [0, 2, 1, 0, 0, 1]
    assert opt.state[table.weight]["steps"] == 2


def test_the_state_of_a_small_watched_table_that_has_grown_can_be_loaded():
    table = nn.Embedding(4, 3)
    opt = CFAdam(table)
    for _ in range(2):
        table(torch.tensor([1, 1, 2])).sum().backward()
        opt.step()
        opt.zero_grad()
    old = table.weight
    table.weight = nn.Parameter(torch.cat([old.detach(), torch.randn(9, 3)]))
    opt.resize(old, table.weight)
    opt.load_state_dict(opt.state_dict())
    assert opt.counts(table.weight).tolist() == [0, 4, 2] + [0] * 10


def test_a_table_may_not_change_its_columns():
    table = nn.Embedding(4, 3, sparse=True)
    opt = CFAdam(table.parameters())
    with pytest.raises(ValueError, match="cannot change its columns: 3 before, 5 now"):
        opt.resize(table.weight, nn.Parameter(torch.zeros(4, 5)))


def test_a_step_without_tokens_lets_second_moments_fade_fused_and_plain():
    results = []
    for fused in (False, True):
        table = nn.Parameter(torch.ones(ROWS, 3))
        opt = CFAdam([table], betas=(0.9, 0.5), fused=fused)
        for ids in ([1, 2], [], [1], []):
            table.grad = sparse_gradient(
                torch.tensor(ids, dtype=torch.int64), torch.ones(len(ids), 3)
            )
            opt.step()
        results.append(opt.state[table]["square_avg"])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("fused", [False, True])
def test_a_gradient_whose_square_overflows_is_refused(fused):
    table = nn.Parameter(torch.ones(ROWS, 3, dtype=torch.float64))
    opt = CFAdam([table], fused=fused)
    table.grad = sparse_gradient([1], torch.full((1, 3), 1e160, dtype=torch.float64))
    with pytest.raises(ValueError, match="NaN or infinity"):
        opt.step()
    assert not opt.counts(table).any()


def test_a_table_that_was_an_ordinary_weight_before_keeps_no_moments_per_weight():
    model = Bags(sparse=False)
    opt = CFAdam(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(model, opt, range(1))
    freqsgd.watch(model, opt)
    train(model, opt, range(1, 3))
    assert "exp_avg" not in opt.state[model.table.weight]
    assert "exp_avg" in opt.state[model.head.weight]


DAMAGE = {
    "a list of squares": ("square_avg", [1.0, 1.0, 1.0]),
    "too few columns": ("square_avg", torch.zeros(2)),
    "a negative square": ("square_avg", torch.tensor([1.0, -1.0, 1.0])),
    "a square that is not a number": ("square_avg", torch.tensor([1.0, math.nan, 1.0])),
    "steps in text": ("steps", "3"),
    "no steps": ("steps", 0),
    "no tokens": ("tokens", -1),
    "an unknown key": ("momentum_buffer", torch.zeros(20, 3)),
}


@pytest.mark.parametrize(("name", "value"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_state_is_refused(name, value):
    model = Bags(sparse=True)
    opt = CFAdam(model)
    train(model, opt, range(2))
    saved = copy.deepcopy(opt.state_dict())
    saved["state"][0][name] = value
    with pytest.raises(ValueError, match=r"damaged|does not fit|not the state"):
        opt.load_state_dict(saved)


def test_the_state_of_adam_is_not_taken_for_ours():
    model = Bags(sparse=False)
    adam = torch.optim.AdamW(model.parameters())
    with pytest.raises(ValueError, match=r"not the state of a CFAdam.*CFAdam.from_adam"):
        CFAdam(model.parameters()).load_state_dict(adam.state_dict())


# ---- taking over from Adam ----------------------------------------------------------------------


def test_a_model_that_adam_trained_goes_on():
    model = Bags(sparse=False)
    adam = torch.optim.AdamW(model.parameters(), 0.02, betas=(0.8, 0.99), weight_decay=0.1)
    train(model, adam, range(5))
    ids = torch.cat([random_ids(seed).view(-1) for seed in range(5)])
    counts = torch.bincount(ids, minlength=20)
    tables = {model.table.weight: counts, model.bag.weight: counts}
    twin, twin_adam = copy.deepcopy((model, adam))
    opt = CFAdam.from_adam(adam, tables)
    assert opt.param_groups[0]["betas"] == (0.8, 0.99)
    for param in tables:
        assert opt.counts(param).tolist() == counts.tolist()
        expected = adam.state[param]["exp_avg_sq"].sum(0)
        torch.testing.assert_close(opt.state[param]["square_avg"], expected)
    freqsgd.watch(model, opt)
    for each, optimizer in ((model, opt), (twin, twin_adam)):
        optimizer.zero_grad()
        loss_of(each, random_ids(9)).backward()
        optimizer.step()
    assert torch.equal(model.head.weight, twin.head.weight)
    assert not torch.equal(model.table.weight, twin.table.weight)


def test_what_cannot_be_taken_over_is_refused():
    model = Bags(sparse=False)
    table = model.table.weight
    counts = torch.ones(20, dtype=torch.int64)
    with pytest.raises(TypeError, match="needs an Adam or AdamW, got SGD"):
        CFAdam.from_adam(torch.optim.SGD(model.parameters(), 0.1), {table: counts})
    for wrong in ({"table.weight": counts}, counts):
        with pytest.raises(TypeError, match="counts must be a dict of parameters"):
            CFAdam.from_adam(torch.optim.Adam(model.parameters()), wrong)
    with pytest.raises(ValueError, match="amsgrad"):
        CFAdam.from_adam(torch.optim.Adam(model.parameters(), amsgrad=True), {table: counts})
    with pytest.raises(ValueError, match="decays as AdamW does"):
        CFAdam.from_adam(torch.optim.Adam(model.parameters(), weight_decay=0.1), {table: counts})
    with pytest.raises(ValueError, match="not among the optimizer's parameters"):
        CFAdam.from_adam(torch.optim.Adam(model.head.parameters()), {table: counts})


# ---- options -------------------------------------------------------------------------------------


BAD_OPTIONS = {
    "lr must be": {"lr": -1.0},
    "betas must be a pair": {"betas": 0.9},
    r"betas\[0\] must lie in": {"betas": (1.0, 0.9)},
    "beta2 must lie in": {"betas": (0.9, 1.0)},
    "eps must be": {"eps": 0.0},
    "clip must be": {"clip": 0.0},
    "weight_decay must be": {"weight_decay": -1.0},
    "weight_decay_power must": {"weight_decay_power": 2.0},
    "maximize must be": {"maximize": "yes"},
    "fused must be": {"fused": "yes"},
}


@pytest.mark.parametrize(("words", "options"), BAD_OPTIONS.items(), ids=BAD_OPTIONS)
def test_options_without_sense_are_refused(words, options):
    with pytest.raises((ValueError, TypeError), match=words):
        CFAdam([nn.Parameter(torch.zeros(3, 2))], **options)


def test_an_option_of_another_optimizer_is_refused_with_a_hint():
    params = [nn.Parameter(torch.zeros(3, 2))]
    with pytest.raises(ValueError, match="has no option 'max_lr'"):
        CFAdam([{"params": params, "max_lr": 1.0}])
    with pytest.raises(ValueError, match="did you mean 'betas'"):
        CFAdam([{"params": params, "beta": (0.9, 0.9)}])
