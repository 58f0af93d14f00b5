"""Options: what is refused, what may differ per group, what schedulers may change."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import freqsgd
from freqsgd import CFSGD, FASGD


def table(rows=4, dim=2, **options):
    return nn.Parameter(torch.randn(rows, dim, **options))


UNIFORM = torch.full((4,), 0.25)


def test_the_signatures_are_those_that_others_build_on():
    def shape(cls):
        parameters = list(inspect.signature(cls).parameters.values())
        return [(p.name, p.default) for p in parameters[1:]], {p.kind for p in parameters[2:]}

    decay = [("weight_decay", 0.0), ("weight_decay_power", 1.0)]
    power = [("power", 0.5), ("max_lr", None)]
    per_sample = ("tokens_per_sample", 1)
    end = [("maximize", False), ("fused", None)]
    empty = inspect.Parameter.empty
    cfsgd = [("lr", empty), *power, ("count", "occurrence"), per_sample, *decay, ("halflife", None)]
    fasgd = [("lr", empty), ("frequencies", "required"), *power, per_sample, *decay]
    assert shape(CFSGD) == ([*cfsgd, *end], {inspect.Parameter.KEYWORD_ONLY})
    assert shape(FASGD) == ([*fasgd, *end], {inspect.Parameter.KEYWORD_ONLY})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": math.nan}, "lr must be a finite number >= 0, got nan"),
        ({"lr": -1.0}, "lr must be a finite number >= 0, got -1.0"),
        ({"power": 1.5}, r"power must lie in \[0, 1\], got 1.5"),
        ({"power": -0.5}, "power must lie in"),
        ({"max_lr": 0.0}, "max_lr must be > 0"),
        ({"count": "sample"}, "count must be 'occurrence' or 'batch', got 'sample'"),
        ({"tokens_per_sample": 0}, "tokens_per_sample must be an integer >= 1, got 0"),
        ({"tokens_per_sample": 1.5}, "tokens_per_sample must be an integer"),
        ({"weight_decay": -0.1}, "weight_decay must be a finite number >= 0"),
        ({"weight_decay_power": 1.1}, "weight_decay_power must lie in"),
        ({"halflife": 0}, "halflife must be a finite number > 0"),
        ({"halflife": math.inf}, "halflife must be a finite number > 0"),
        ({"lr": "0.1"}, "lr must be a number, got '0.1'"),
        ({"lr": True}, "lr must be a number, got True"),
        ({"lr": None}, "lr must be a number, got None"),
        ({"lr": torch.ones(2)}, "lr must be a number, got tensor"),
        ({"lr": torch.tensor(True)}, "lr must be a number, got tensor"),
        ({"lr": 1j}, "lr must be a number, got 1j"),
        ({"power": "0.5"}, "power must be a number, got '0.5'"),
        ({"max_lr": "3"}, "max_lr must be a number, got '3'"),
        ({"weight_decay": None}, "weight_decay must be a number, got None"),
        ({"weight_decay_power": "1"}, "weight_decay_power must be a number, got '1'"),
        ({"halflife": "5"}, "halflife must be a number, got '5'"),
        ({"tokens_per_sample": True}, "tokens_per_sample must be an integer >= 1, got True"),
        ({"maximize": "no"}, "maximize must be True or False, got 'no'"),
        ({"fused": "yes"}, "fused must be None, True or False, got 'yes'"),
        ({"fused": 1}, "fused must be None, True or False, got 1"),
    ],
)
def test_senseless_options_are_refused_in_the_constructor_and_in_groups(options, message):
    with pytest.raises(ValueError, match=message):
        CFSGD([table()], **{"lr": 0.1, **options})
    with pytest.raises(ValueError, match=message):
        CFSGD([{"params": [table()], **options}], 0.1)


def test_whether_a_group_holds_tables_is_true_or_false():
    with pytest.raises(ValueError, match="table must be True or False, got 'yes'"):
        CFSGD([{"params": [table()], "table": "yes"}], 0.1)


def test_misspelt_options_are_refused():
    with pytest.raises(TypeError, match="wieght_decay"):
        CFSGD([table()], 0.1, wieght_decay=0.1)
    with pytest.raises(ValueError, match="no option 'wieght_decay'; did you mean 'weight_decay'"):
        CFSGD([{"params": [table()], "wieght_decay": 0.1}], 0.1)


def test_a_refused_group_is_not_added():
    opt = CFSGD([table()], 0.1)
    with pytest.raises(TypeError, match="must be real"):
        opt.add_param_group({"params": [table(dtype=torch.complex64)]})
    assert len(opt.param_groups) == 1


@pytest.mark.parametrize(
    ("frequencies", "error", "message"),
    [
        (torch.tensor([0.5, 0.5]), ValueError, "one number for each of 4 rows"),
        (
            torch.tensor([0.5, 0.0, 0.2, 0.3]),
            ValueError,
            r"\(0, tokens_per_sample=1\], got 0 for row 1",
        ),
        (torch.tensor([0.5, 0.1, -0.2, 0.3]), ValueError, "got -0.2 for row 2"),
        (torch.tensor([0.5, 0.1, 0.2, math.nan]), ValueError, "got nan for row 3"),
        (torch.tensor([5.0, 1.0, 1.0, 1.0]), ValueError, "got 5 for row 0"),
        (torch.tensor([1, 1, 1, 1]), TypeError, "tensor of floats, got torch.int64"),
        ([[0.5, 0.2, 0.2, 0.1]], TypeError, "tensor of floats, got list"),
        ([UNIFORM, UNIFORM], ValueError, "2 tensors of frequencies for 1 parameters"),
    ],
)
def test_senseless_frequencies_are_refused(frequencies, error, message):
    with pytest.raises(error, match=message):
        FASGD([table()], 0.1, frequencies=frequencies)


def test_missing_frequencies_are_refused():
    with pytest.raises(ValueError, match=r"group 0 \(a parameter of shape \(4, 2\)\) has no freq"):
        FASGD([table()], 0.1)
    emb = nn.Embedding(4, 2, sparse=True)
    opt = FASGD(emb.parameters(), 0.1, frequencies=None)
    emb(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="no frequencies for a parameter of shape"):
        opt.step()


SKEWED = torch.tensor([0.9, 0.5, 0.1, 0.01])


def test_groups_bring_their_own_frequencies():
    one, two, bias = table(), table(), nn.Parameter(torch.zeros(3))
    twins = [nn.Parameter(p.detach().clone()) for p in (one, two, bias)]
    opt = FASGD([{"params": [one], "frequencies": SKEWED}], 0.1)
    opt.add_param_group({"params": [two, bias], "frequencies": {two: UNIFORM}})
    together = FASGD(twins, 0.1, frequencies=[SKEWED, UNIFORM, None])
    for p, twin in zip((one, two, bias), twins, strict=True):
        p.grad, twin.grad = torch.ones_like(p), torch.ones_like(p)
    opt.step()
    together.step()
    for p, twin in zip((one, two, bias), twins, strict=True):
        assert torch.equal(p, twin)
    assert torch.equal(opt.frequencies(one), SKEWED)
    assert torch.equal(opt.frequencies(two), UNIFORM)
    assert opt.rates(bias).shape == ()


def test_a_group_takes_the_frequencies_of_the_constructor_unless_it_brings_its_own():
    one, two = table(), table()
    opt = FASGD(
        [{"params": [one]}, {"params": [two], "frequencies": SKEWED}], 1, frequencies=UNIFORM
    )
    assert torch.equal(opt.frequencies(one), UNIFORM)
    assert torch.equal(opt.frequencies(two), SKEWED)
    opt.add_param_group({"params": [nn.Parameter(torch.zeros(3))]})  # ordinary weights


def without_change(opt):
    return opt


def pickled(opt):
    return pickle.loads(pickle.dumps(opt))


def loaded(opt):
    opt.load_state_dict(opt.state_dict())
    return opt


@pytest.mark.parametrize("become", [without_change, copy.deepcopy, pickled, loaded])
def test_a_group_without_frequencies_is_refused_by_name(become):
    groups = [
        {"params": [("user", table())], "frequencies": SKEWED},
        {"params": [("item", table()), ("bias", nn.Parameter(torch.zeros(3)))]},
    ]
    with pytest.raises(ValueError, match=r"group 1 \(parameter 'item' .* 'bias' .*\) has no freq"):
        FASGD(groups, 0.1)
    opt = become(FASGD(groups[:1], 0.1))
    before = opt.state_dict()
    with pytest.raises(ValueError, match=r"group 1 \(parameter 'item' .*\) has no frequencies"):
        opt.add_param_group(groups[1])
    assert len(opt.param_groups) == 1
    assert opt.state_dict()["param_groups"] == before["param_groups"]
    opt.add_param_group({**groups[1], "frequencies": None})
    assert torch.equal(opt.frequencies(opt.param_groups[0]["params"][0]), SKEWED)


def test_many_parameters_of_a_group_without_frequencies_are_abbreviated():
    with pytest.raises(ValueError, match=r"\(3, 2\), \.\.\.\) has no frequencies"):
        FASGD([table(rows) for rows in (1, 2, 3, 4, 5)], 0.1)


def test_a_misspelt_option_is_told_before_missing_frequencies():
    with pytest.raises(ValueError, match="'frequences'; did you mean 'frequencies'"):
        FASGD([{"params": [table()], "frequences": UNIFORM}], 0.1)


def test_a_refused_group_leaves_nothing_behind():
    opt = FASGD([table()], 0.1, frequencies=UNIFORM)
    one, two = table(), table()
    with pytest.raises(ValueError, match="no frequencies for a parameter"):
        opt.add_param_group({"params": [one, two], "table": True, "frequencies": [UNIFORM, None]})
    assert opt.state_dict()["state"].keys() == {0}


@pytest.mark.parametrize("named", [False, True])
def test_groups_can_be_used_again(named):
    """torch fills in and keeps the dicts that it is given; generators end after the first use."""
    emb = nn.Embedding(4, 2)
    params = emb.named_parameters() if named else emb.parameters()
    groups = [{"params": params, "frequencies": SKEWED, "max_lr": 0.2}]
    for lr in (0.1, 0.3):
        opt = FASGD(groups, lr)
        assert opt.rates(emb.weight).tolist() == pytest.approx(
            (lr / SKEWED.sqrt()).clamp(max=0.2).tolist()
        )
    with pytest.raises(ValueError, match="CFSGD has no option 'frequencies'"):
        CFSGD(groups, 0.1)
    del groups[0]["frequencies"]
    for _ in range(2):
        with pytest.raises(ValueError, match="has no frequencies"):
            FASGD(groups, 0.1)
    FASGD(groups, 0.1, frequencies=SKEWED)


def test_frequencies_above_one_need_as_many_tokens_per_sample():
    opt = FASGD([table()], 0.1, frequencies=torch.tensor([2.0, 1.0, 0.5, 0.5]), tokens_per_sample=4)
    assert opt.rates(opt.param_groups[0]["params"][0])[0].item() == pytest.approx(0.1 / 2**0.5)


@pytest.mark.parametrize("fused", [False, None])
def test_a_sparse_gradient_must_be_rows_of_a_matrix(fused):
    vector = nn.Parameter(torch.zeros(5))
    vector.grad = torch.sparse_coo_tensor([[1, 2]], torch.ones(2), (5,), check_invariants=True)
    with pytest.raises(ValueError, match="rows of a 2-D parameter"):
        CFSGD([vector], 0.1, fused=fused).step()
    matrix = table()
    matrix.grad = torch.sparse_coo_tensor(
        [[1, 2], [0, 1]], torch.ones(2), (4, 2), check_invariants=True
    )
    with pytest.raises(ValueError, match="one sparse dimension"):
        CFSGD([matrix], 0.1, fused=fused).step()


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([0, 4]), IndexError, "id 4 is out of range for 4 rows"),
        (torch.tensor([-1, 0]), IndexError, "id -1 is out of range for 4 rows"),
        (torch.tensor([0.0]), TypeError, "ids must be integers"),
        (torch.tensor([True]), TypeError, "ids must be integers"),
    ],
)
def test_observe_refuses_ids_that_are_not_rows(ids, error, message):
    weights = table()
    opt = CFSGD([weights], 0.1)
    with pytest.raises(error, match=message):
        opt.observe(weights, ids)
    opt.step()
    assert opt.counts(weights).sum() == 0


def test_what_is_not_a_tensor_or_not_our_optimizer_is_refused_in_words():
    weights = table()
    opt = CFSGD([weights], 0.1)
    with pytest.raises(TypeError, match="ids must be a tensor of integers, got list"):
        opt.observe(weights, [1, 2])
    with pytest.raises(TypeError, match="watch needs a CFAdam, CFSGD or FASGD, got SGD"):
        freqsgd.watch(nn.Embedding(2, 2), torch.optim.SGD([weights], 0.1))


@pytest.mark.parametrize(
    "lr", [1, np.float32(1), np.int64(1), np.array(1.0), torch.tensor(1), torch.tensor([1.0])]
)
def test_numbers_of_every_kind_are_taken(lr):
    weights = table()
    assert CFSGD([weights], lr).rates(weights).item() == 1.0


def test_integers_of_every_kind_are_taken():
    weights = table()
    opt = CFSGD([weights], np.float32(0.5), tokens_per_sample=np.int64(2))
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.uint16):
        opt.observe(weights, torch.tensor([1, 3], dtype=dtype), samples=np.int64(2))
    opt.step()
    assert opt.counts(weights).tolist() == [0, 4, 0, 4]
    assert opt.frequencies(weights).tolist() == [0, 0.5, 0, 0.5]
    assert type(opt.state[weights]["units"]) is int


def test_observe_refuses_strangers_and_vectors():
    opt = CFSGD([table(), nn.Parameter(torch.zeros(3))], 0.1)
    with pytest.raises(ValueError, match="not in this optimizer"):
        opt.observe(table(), torch.tensor([0]))
    with pytest.raises(ValueError, match="must be 2-D"):
        opt.observe(opt.param_groups[0]["params"][1], torch.tensor([0]))
    with pytest.raises(ValueError, match="samples must be an integer >= 1, got 0"):
        opt.observe(opt.param_groups[0]["params"][0], torch.tensor([0]), samples=0)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["sparse", "dense", "ordinary"])
def test_a_gradient_that_is_not_finite_raises_before_anything_is_written(fused, poison, where):
    good, bad = table(5000, 9), table(5000, 9)
    layer = nn.Parameter(torch.randn(3))
    opt = CFSGD([good, bad, layer], 0.1, fused=fused, weight_decay=0.1)
    ids = torch.randint(0, 5000, (1, 4000))
    for weights in (good, bad):
        weights.grad = torch.sparse_coo_tensor(
            ids, torch.randn(4000, 9), (5000, 9), check_invariants=True
        )
    layer.grad = torch.randn(3)
    if where == "sparse":
        bad.grad._values()[3999, 8] = poison
    elif where == "dense":
        bad.grad = torch.randn(5000, 9)
        bad.grad[17, 8] = poison
        opt.observe(bad, ids)
    else:
        layer.grad[1] = poison
    before = [p.detach().clone() for p in (good, bad, layer)]
    with pytest.raises(ValueError, match="NaN or infinity; nothing was updated"):
        opt.step()
    for p, old in zip((good, bad, layer), before, strict=True):
        assert torch.equal(p, old)
    assert opt.counts(good).sum() == 0


@pytest.mark.parametrize("row", [-1, 4, 2**40])
def test_a_sparse_gradient_with_impossible_ids_is_refused_by_the_kernel(row):
    weights = table()
    before = weights.detach().clone()
    opt = CFSGD([weights], 0.1, fused=True)
    indices = torch.tensor([[0, row]])
    weights.grad = torch.sparse_coo_tensor(
        indices, torch.ones(2, 2), (4, 2), check_invariants=False
    )
    with pytest.raises(IndexError, match=rf"id {row} is out of range for 4 rows"):
        opt.step()
    assert torch.equal(weights, before)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (table(dtype=torch.bfloat16), "weights are torch.bfloat16"),
        (nn.Parameter(torch.randn(2, 4).t()), "not contiguous"),
        (nn.Parameter(torch.empty(4, 2, device="meta")), "weights are on meta"),
    ],
)
def test_fused_true_says_why_it_cannot_be_had(weights, reason):
    with pytest.raises(ValueError, match=reason):
        CFSGD([{"params": [weights], "table": True}], 0.1, fused=True)


def test_fused_true_is_about_tables_alone():
    bias, weights = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16)), table(dtype=torch.bfloat16)
    opt = CFSGD([bias, weights], 0.5, fused=True)
    bias.grad = torch.ones_like(bias)
    opt.step()
    assert bias.tolist() == [-0.5] * 3
    opt.observe(weights, torch.tensor([1]))
    with pytest.raises(ValueError, match=r"weights are torch\.bfloat16"):
        opt.step()


def test_a_kernel_raises_the_version_so_that_autograd_catches_misuse():
    emb = nn.Embedding(4, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, fused=True)
    emb(torch.tensor([1])).sum().backward()
    saved = (emb.weight**2).sum()
    version = emb.weight._version
    opt.step()
    assert emb.weight._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_groups_differ_in_every_option():
    one, two = (nn.Embedding(4, 2, sparse=True) for _ in range(2))
    opt = CFSGD([{"params": one.parameters(), "max_lr": 0.11, "lr": 1.0}], 0.1, power=0.0)
    opt.add_param_group({"params": two.parameters(), "power": 1.0, "count": "batch"})
    for emb in (one, two):
        emb(torch.tensor([1, 1, 3])).sum().backward()
    opt.step()
    assert opt.rates(one.weight).tolist() == [0.11] * 4
    assert opt.counts(two.weight).tolist() == [0, 1, 0, 1]
    assert opt.rates(two.weight).tolist() == [0.1] * 4


def test_one_cycle_does_not_touch_the_cap():
    """OneCycleLR keeps its peak in group["max_lr"]; our cap of that name must survive it."""
    emb = nn.Embedding(4, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1, max_lr=7.0)
    torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.3, total_steps=10, cycle_momentum=False)
    emb(torch.tensor([1] * 9999 + [3])).sum().backward()
    opt.step()
    lr = opt.param_groups[0]["lr"]
    assert opt.rates(emb.weight)[3].item() == pytest.approx(min(7.0, lr * 100))


def test_a_learning_rate_that_turns_nan_is_refused_at_the_step():
    weights = table()
    weights.grad = torch.ones(4, 2)
    opt = CFSGD([weights], 0.1)
    opt.param_groups[0]["lr"] = math.nan
    with pytest.raises(ValueError, match="lr must be a finite number"):
        opt.step()


@pytest.mark.parametrize("fused", [False, True])
def test_gradients_of_another_type_or_sign_bit_are_read_as_they_mean(fused):
    for make in (lambda g: torch._neg_view(-g), lambda g: g.t().contiguous().t()):
        weights = nn.Parameter(torch.zeros(3, 2))
        opt = CFSGD([weights], 0.1, fused=fused)
        weights.grad = make(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        opt.observe(weights, torch.tensor([0, 1, 2]))
        opt.step()
        expected = -0.1 * 3**0.5 * torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        torch.testing.assert_close(weights.detach(), expected)


def test_a_gradient_left_from_before_a_table_changed_its_size_is_refused():
    weights = table(6)
    weights.grad = torch.ones(6, 2)
    weights.data = torch.zeros(3, 2)
    opt = CFSGD([weights], 0.1)
    opt.observe(weights, torch.tensor([1]))
    with pytest.raises(ValueError, match=r"gradient of shape \(6, 2\): call zero_grad"):
        opt.step()


def test_options_that_go_wrong_later_are_refused_at_the_step():
    emb = nn.Embedding(4, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    emb(torch.tensor([1])).sum().backward()
    opt.step()
    opt.param_groups[0]["count"] = "batches"
    with pytest.raises(ValueError, match="count must be"):
        opt.step()
    opt.param_groups[0].update(count="occurrence", fused="no")
    with pytest.raises(ValueError, match="fused must be"):
        opt.step()
    opt.param_groups[0].update(fused=None, halflife=5.0)
    with pytest.raises(RuntimeError, match="halflife was switched on or off"):
        opt.step()


def test_an_optimizer_can_be_made_from_the_groups_of_another():
    first = CFSGD([{"params": [table()], "max_lr": 3.0}], 0.1)
    assert CFSGD(first.param_groups, 0.5).param_groups[0]["max_rate"] == 3.0


def test_frequencies_of_a_stranger_are_refused():
    with pytest.raises(ValueError, match=r"shape \(4, 2\) that is not among the parameters"):
        FASGD([table()], 0.1, frequencies={table(): UNIFORM})


def test_closures_are_evaluated_with_gradients_and_their_loss_returned():
    emb = nn.Embedding(4, 2, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)

    def closure():
        opt.zero_grad()
        loss = emb(torch.tensor([2, 2])).pow(2).sum()
        loss.backward()
        return loss

    first, second = opt.step(closure), opt.step(closure)
    assert second < first
    assert opt.counts(emb.weight).tolist() == [0, 0, 4, 0]


def test_a_step_leaves_the_users_settings_alone():
    emb = nn.Embedding(5000, 16, sparse=True)
    opt = CFSGD(emb.parameters(), 0.1)
    emb(torch.randint(0, 5000, (5000,))).sum().backward()
    rng, threads = torch.get_rng_state(), torch.get_num_threads()
    indices, values = emb.weight.grad._indices().clone(), emb.weight.grad._values().clone()
    opt.step()
    assert torch.equal(rng, torch.get_rng_state())
    assert threads == torch.get_num_threads()
    assert torch.equal(indices, emb.weight.grad._indices())
    assert torch.equal(values, emb.weight.grad._values())
    assert not emb.weight.grad.is_coalesced()


def test_public_names_are_documented():
    for name in freqsgd.__all__:
        thing = getattr(freqsgd, name)
        assert thing.__doc__, name
        members = vars(thing).items() if inspect.isclass(thing) else ()
        for attribute, member in members:
            if callable(member) and not attribute.startswith("_"):
                assert member.__doc__, f"{name}.{attribute}"


def test_options_of_numpy_and_torch_become_plain_numbers():
    emb = nn.Embedding(4, 2, sparse=True)
    options = {"weight_decay": torch.tensor([0.1]), "power": np.float32(0.5), "max_lr": Fraction(3)}
    opt = CFSGD(emb.parameters(), 0.1, fused=np.bool_(False), halflife=np.array(9), **options)
    emb(torch.tensor([1, 1])).sum().backward()
    opt.step()
    (group,) = opt.state_dict()["param_groups"]
    kinds = (type(None), bool, int, float, str, list)
    assert {key: value for key, value in group.items() if type(value) not in kinds} == {}
    assert group["fused"] is False
