from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from freqsgd import CFSGD, FASGD
from freqsgd.errors import DataError, DivergedError
from freqsgd.nn import FM, DeepFM
from freqsgd.optimizers import CAPPED, OPTIMIZERS, Rule
from freqsgd.recommender.engine import engine_for
from freqsgd.recommender.predict import predictor_for
from tests.recommender.slow import CASES, SlowFM

DECAY = {"weight_decay": 0.05, "weight_decay_power": 0.5}
LINEAR = {**DECAY, "linear_lr_scale": 0.3, "linear_decay_scale": 3.0, "max_lr": 0.9}


def rule_of(name, *, max_lr=None, **options):
    """A rule; the cap is for those that take one."""
    return Rule(name, CASES[name].lr, max_lr=max_lr if name in CAPPED else None, **options)


def samples(sizes, count, widths=None, seed=0):
    """Ids with many repetitions, and labels."""
    rng = np.random.default_rng(seed)
    columns = []
    for size, width in zip(sizes, widths or [1] * len(sizes), strict=True):
        part = np.minimum(rng.geometric(0.2, (count, width)) - 1, size - 1)
        if width > 1:
            part[rng.random((count, width)) < 0.4] = -1
        columns.append(part)
    ids = np.ascontiguousarray(np.concatenate(columns, 1), np.int32)
    return ids, rng.integers(0, 2, count).astype(np.uint8)


def frequencies_of(model):
    return torch.linspace(0.02, 0.9, len(model.tokens.weight))


def train(model, rule, ids, labels, batch=64, threads=1, passes=1, weights=None, **options):
    engine = engine_for(
        model,
        rule,
        batch_size=batch,
        threads=threads,
        frequencies=frequencies_of(model),
        **options,
    )
    order = np.random.default_rng(1).permutation(len(ids))
    losses = []
    for _ in range(passes):
        lrs = np.full(-(-len(ids) // batch), rule.lr)
        for part in engine.train(ids, labels, order, lrs, weights=weights):
            losses += part.tolist()
    return engine, losses


def copy_of(model, **options):
    other = type(model)(model.sizes, model.dim, widths=model.widths, **options)
    other.load_state_dict(model.state_dict())
    return other


def test_every_optimizer_has_a_case():
    assert list(CASES) == list(OPTIMIZERS)


@pytest.mark.parametrize("options", [{}, DECAY, LINEAR], ids=["plain", "decay", "linear"])
@pytest.mark.parametrize("dim", [3, 8, 21, 40])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_engine_equals_training_sample_by_sample(name, dim, options):
    sizes = [30, 7, 11]
    ids, labels = samples(sizes, 150)
    model = FM(sizes, dim, init_scale=2.0)
    rule = rule_of(name, **options)
    starts = model.columns_start.tolist()
    slow = SlowFM(
        model.tokens.weight.detach().numpy(), 0.0, starts, name, rule.lr,
        frequencies=frequencies_of(model).numpy(), **options,
    )  # fmt: skip
    order = np.random.default_rng(1).permutation(len(ids))
    expected = [
        slow.step(ids[order[i : i + 64]], labels[order[i : i + 64]]) for i in range(0, 150, 64)
    ]
    engine, losses = train(model, rule, ids, labels)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(model.tokens.weight.detach(), slow.weight, rtol=2e-4, atol=3e-5)
    assert model.bias.item() == pytest.approx(slow.bias, abs=1e-5)
    if rule.counts:
        np.testing.assert_array_equal(engine.state["counts"], slow.counts)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bags_equal_training_sample_by_sample(name):
    sizes, widths = [12, 9, 5], [1, 4, 2]
    ids, labels = samples(sizes, 150, widths)
    model = FM(sizes, 10, widths=widths, init_scale=2.0)
    rule = rule_of(name, **DECAY)
    slow = SlowFM(
        model.tokens.weight.detach().numpy(), 0.0, model.columns_start.tolist(), name, rule.lr,
        frequencies=frequencies_of(model).numpy(), **DECAY,
    )  # fmt: skip
    order = np.random.default_rng(1).permutation(len(ids))
    for i in range(0, 150, 64):
        slow.step(ids[order[i : i + 64]], labels[order[i : i + 64]])
    train(model, rule, ids, labels)
    np.testing.assert_allclose(model.tokens.weight.detach(), slow.weight, rtol=2e-4, atol=3e-5)


def torch_optimizer(model, rule, fields):
    law = {
        "tokens_per_sample": fields,
        "weight_decay": rule.weight_decay,
        "weight_decay_power": rule.weight_decay_power,
    }
    parameters = list(model.parameters())
    match rule.optimizer:
        case "sgd" if rule.weight_decay == 0:
            return torch.optim.SGD(parameters, rule.lr)
        case "sgd":
            return CFSGD(parameters, rule.lr, power=0.0, **law)
        case "cfsgd":
            law |= {"halflife": rule.halflife, "max_lr": rule.max_lr}
            return CFSGD(parameters, rule.lr, **law)
        case "fasgd":
            frequencies = {model.tokens.weight: frequencies_of(model)}
            return FASGD(parameters, rule.lr, frequencies=frequencies, **law)
        case "adagrad":
            return torch.optim.Adagrad(parameters, rule.lr, weight_decay=rule.weight_decay)
        case "adam":
            return torch.optim.Adam(parameters, rule.lr, weight_decay=rule.weight_decay)


@pytest.fixture
def torch_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_cap_on_rates_holds_for_the_network_too():
    ids, labels = samples([40, 20], 64)
    capped = DeepFM([40, 20], 8)
    slow = copy_of(capped)
    train(capped, Rule("cfsgd", 0.5, max_lr=0.1), ids, labels)
    train(slow, Rule("cfsgd", 0.1), ids, labels)
    for ours, theirs in zip(capped.network.parameters(), slow.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_dropout_neither_follows_nor_moves_torchs_generator():
    ids, labels = samples([40, 20], 200)
    first = DeepFM([40, 20], 8)
    found = []
    for seed in (1, 2):
        model = copy_of(first)
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        train(model, Rule("cfsgd", 0.1), ids, labels, seed=7)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(model.state_dict())
    for key, tensor in found[0].items():
        assert torch.equal(tensor, found[1][key]), key


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("name", ["sgd", "fasgd", "cfsgd", "adagrad", "adam"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_engine_equals_autograd_and_the_torch_optimizer(
    name, kind, decay, weighted, torch_threads
):
    torch_threads(1)  # as the engine has, for a network of this size
    sizes = [40, 20]
    ids, labels = samples(sizes, 330)
    weights = np.random.default_rng(2).exponential(1.0, 330).astype(np.float32)
    weights = weights if weighted else None
    rule = rule_of(name, weight_decay=decay)
    options = {"dropout": 0.0} if kind is DeepFM else {}
    model = kind(sizes, 12, **options)
    other = copy_of(model, sparse=name not in ("adagrad", "adam"), **options)
    optimizer = torch_optimizer(other, rule, len(sizes))
    order = np.random.default_rng(1).permutation(len(ids))
    expected = []
    for _ in range(2):
        for i in range(0, len(ids), 64):
            rows = order[i : i + 64]
            optimizer.zero_grad()
            logits = other(torch.from_numpy(ids[rows]))
            of_samples = binary_cross_entropy_with_logits(
                logits, torch.from_numpy(labels[rows]).float(), reduction="none"
            )
            loss = (of_samples * (1 if weights is None else torch.from_numpy(weights[rows]))).mean()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
    _, losses = train(model, rule, ids, labels, passes=2, weights=weights)
    np.testing.assert_allclose(losses, expected, rtol=2e-4)
    for (key, ours), theirs in zip(
        model.state_dict().items(), other.state_dict().values(), strict=True
    ):
        if key in ("network.0.bias", "network.4.bias") or key.endswith("running_mean"):
            continue  # before batch norm: the bias's gradient is rounding noise, which Adam scales
        torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-4, msg=key)


@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_number_of_threads_gives_the_same_bits(name, kind):
    sizes = [300, 50]
    ids, labels = samples(sizes, 3000)
    first = kind(sizes, 48)
    models = [copy_of(first) for _ in range(3)]
    for model, threads in zip(models, (1, 2, 5), strict=True):
        train(model, rule_of(name, **DECAY), ids, labels, batch=1000, threads=threads)
    for model in models[1:]:
        assert torch.equal(model.tokens.weight, models[0].tokens.weight)
        assert torch.equal(model.bias, models[0].bias)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_small_network_gives_the_same_bits_for_any_number_of_torchs_threads(name, torch_threads):
    sizes = [300, 50]
    ids, labels = samples(sizes, 3000)
    first, found = DeepFM(sizes, 16), []
    for threads in (1, 2):
        torch_threads(threads)
        model = copy_of(first)
        engine, _ = train(model, rule_of(name), ids, labels, batch=1000, threads=threads)
        assert torch.get_num_threads() == threads
        assert engine.torch_threads == 1
        found.append({**model.state_dict(), "logits": torch.from_numpy(engine.predict(ids))})
    for key, tensor in found[0].items():
        assert torch.equal(tensor, found[1][key]), key


def test_a_large_network_has_torchs_threads_and_is_resumed_with_them(torch_threads):
    torch_threads(2)
    large = DeepFM([300, 50], 16, hidden=[2000, 2000])
    assert engine_for(large, Rule("sgd", 0.1)).torch_threads == 2
    assert engine_for(DeepFM([300, 50], 16), Rule("sgd", 0.1)).torch_threads == 1
    assert engine_for(FM([300, 50], 16), Rule("sgd", 0.1)).torch_threads is None


def test_batches_are_cut_into_calls_as_it_suits_without_changing_bits(monkeypatch):
    sizes = [300, 50]
    ids, labels = samples(sizes, 3000)
    order, lrs = np.arange(3000), np.full(30, 0.5)
    whole, parts = FM(sizes, 16), []
    models = [whole, copy_of(whole)]
    for model, longest in zip(models, (1e12, 20_000), strict=True):
        monkeypatch.setattr("freqsgd.recommender.engine._LONGEST_CALL", longest)
        monkeypatch.setattr("freqsgd.recommender.predict._SMALL", 0)
        engine = engine_for(model, Rule("cfsgd", 0.5), batch_size=100, threads=2)
        parts.append([len(part) for part in engine.train(ids, labels, order, lrs, most=12)])
    assert torch.equal(whole.tokens.weight, models[1].tokens.weight)
    for lengths in parts:
        assert {12, 24, 30} <= set(np.cumsum(lengths).tolist())  # where checkpoints are written


@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("widths", [None, [1, 3]])
def test_predictions_equal_the_modules(kind, widths, monkeypatch):
    monkeypatch.setattr("freqsgd.recommender.predict._SMALL", 0)  # so that two threads do run
    sizes = [50, 20]
    ids, _ = samples(sizes, 500, widths)
    model = kind(sizes, 20, widths=widths, init_scale=4.0)
    model.tokens.weight.data[:, -1].normal_()
    model.eval()
    expected = model(torch.from_numpy(ids)).detach().numpy()
    rows = np.array([499, 3, 3, 0], np.int64)
    predictor = predictor_for(model, threads=2)
    np.testing.assert_allclose(predictor.predict(ids), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(predictor.predict(ids, rows), expected[rows], rtol=1e-4, atol=1e-5)
    assert len(predictor.predict(ids[:0])) == 0


@pytest.mark.parametrize("kind", [FM, DeepFM])
def test_several_threads_may_predict_at_once(kind):
    ids, _ = samples([300, 200], 20_000)
    predictor = predictor_for(kind([300, 200], 16).eval(), threads=1)
    expected, before = predictor.predict(ids), torch.get_num_threads()
    with ThreadPoolExecutor(4) as pool:
        for logits in pool.map(lambda _: predictor.predict(ids), range(40)):
            np.testing.assert_array_equal(logits, expected)
    assert torch.get_num_threads() == before


def test_the_loss_is_exact_for_large_log_odds():
    model = FM([2, 2], 4)
    model.tokens.weight.data[:2, -1] = torch.tensor([80.0, -80.0])
    ids = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.int32)
    labels = np.array([1, 0, 0, 1], np.uint8)
    _, losses = train(model, Rule("sgd", 0.0), ids, labels, batch=4)
    logits = model(torch.from_numpy(ids)).double()
    expected = binary_cross_entropy_with_logits(logits, torch.from_numpy(labels).double())
    assert losses[0] == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("kind", [FM, DeepFM])
def test_a_loss_that_is_not_finite_stops_before_the_step_is_taken(kind, monkeypatch):
    monkeypatch.setattr("freqsgd.recommender.predict._SMALL", 0)  # so that two threads do run
    model = kind([5, 5], 8)
    ids, labels = samples([5, 5], 100)
    model.tokens.weight.data[0, 0] = float("nan")
    before = model.tokens.weight.detach().clone()
    with pytest.raises(DivergedError, match="step 0"):
        train(model, Rule("cfsgd", 1.0), ids, labels, batch=50, threads=2)
    assert torch.equal(model.tokens.weight.nan_to_num(), before.nan_to_num())


def test_a_network_gradient_that_is_not_finite_stops_before_the_step_is_taken():
    model = DeepFM([5, 5], 8)
    ids, labels = samples([5, 5], 50)
    first = next(model.network.parameters())
    first.register_hook(lambda gradient: gradient * float("nan"))
    before = {name: value.clone() for name, value in model.named_parameters()}
    with pytest.raises(DivergedError, match="a gradient that is not a finite number in step 0"):
        train(model, Rule("cfsgd", 1.0), ids, labels, batch=50)
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())


def test_counts_beyond_32_bits():
    sizes = [5, 5]
    ids, labels = samples(sizes, 100)
    model = FM(sizes, 8)
    narrow, wide = copy_of(model), copy_of(model)
    rule = Rule("cfsgd", 0.5)
    counts = torch.full((10,), 2**30, dtype=torch.int32)
    engines = [engine_for(m, rule, batch_size=50) for m in (narrow, wide)]
    engines[0].load_state({"counts": counts}, 2**30, 0)
    engines[1].load_state({"counts": counts.long()}, 2**30, 0)
    for engine in engines:
        list(engine.train(ids, labels, np.arange(100), np.full(2, 0.5)))
    assert torch.equal(narrow.tokens.weight, wide.tokens.weight)
    engines[0].load_state({"counts": counts}, 2**31 - 50, 0)
    list(engines[0].train(ids, labels, np.arange(100), np.full(2, 0.5)))
    assert engines[0].state["counts"].dtype == torch.int64
    assert engines[0].state["counts"].sum().item() == 10 * 2**30 + 200


def test_arrays_that_the_kernel_cannot_read_are_refused():
    engine = engine_for(FM([5, 5], 8), Rule("sgd", 0.1))
    with pytest.raises(ValueError, match="int32 array of 2 columns"):
        engine.predict(np.zeros((3, 2), np.int64))
    with pytest.raises(ValueError, match="int32 array of 2 columns"):
        engine.predict(np.zeros((3, 3), np.int32))
    with pytest.raises(ValueError, match="int64"):
        engine.predict(np.zeros((3, 2), np.int32), np.zeros(2, np.int32))
    with pytest.raises(ValueError, match=r"must lie in \[0, 3\)"):
        engine.predict(np.zeros((3, 2), np.int32), np.array([10**12]))
    with pytest.raises(DataError, match="id 9 in row 2, column 1 is out of range for 5 tokens"):
        engine.predict(np.array([[0, 0], [1, 1], [4, 9]], np.int32))
    ids, labels = samples([5, 5], 100)
    order, lrs = np.arange(100), np.full(1, 0.1)
    with pytest.raises(ValueError, match="uint8"):
        list(engine.train(ids, labels.astype(np.int64), order, lrs))
    with pytest.raises(ValueError, match="contiguous"):
        list(engine.train(ids, labels[::-1], order, lrs))
    with pytest.raises(ValueError, match="do not make 3 steps"):
        list(engine.train(ids, labels, order, np.full(3, 0.1)))
    with pytest.raises(ValueError, match="out of range for 50 labels"):
        list(engine.train(ids, labels[:50], order, lrs))
    with pytest.raises(ValueError, match="threads must be at least 1"):
        engine_for(FM([5, 5], 8), Rule("sgd", 0.1), threads=-1)
    with pytest.raises(ValueError, match="float32 on the CPU"):
        engine_for(FM([5, 5], 8).double(), Rule("sgd", 0.1))


def test_a_kernel_that_finds_no_memory_is_an_error(monkeypatch):
    engine = engine_for(FM([5, 5], 8), Rule("sgd", 0.1))
    monkeypatch.setattr("freqsgd.recommender.predict.run", lambda kernel, job, workers: None)
    with pytest.raises(MemoryError, match="batches of 3 samples"):
        engine.predict(np.zeros((3, 2), np.int32))


def test_the_version_of_the_weights_rises():
    model = FM([5, 5], 8)
    ids, labels = samples([5, 5], 100)
    before = model.tokens.weight._version
    train(model, Rule("cfsgd", 0.1), ids, labels)
    assert model.tokens.weight._version > before


@pytest.mark.parametrize("hidden", [(), (7,)])
def test_deepfm_with_bags_and_a_last_batch_of_one_equals_autograd(hidden):
    sizes, widths = [12, 9], [1, 3]
    ids, labels = samples(sizes, 129, widths)
    options = {"dropout": 0.0, "hidden": hidden}
    model = DeepFM(sizes, 10, widths=widths, **options)
    other = copy_of(model, **options)
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    order = np.random.default_rng(1).permutation(len(ids))
    for i in range(0, 129, 64):
        rows = order[i : i + 64]
        other.network.train(len(rows) > 1)
        optimizer.zero_grad()
        target = torch.from_numpy(labels[rows]).float()
        binary_cross_entropy_with_logits(other(torch.from_numpy(ids[rows])), target).backward()
        optimizer.step()
    train(model, Rule("sgd", 0.1), ids, labels)
    torch.testing.assert_close(model.tokens.weight, other.tokens.weight, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(model.network.parameters(), other.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_is_as_large_as_the_rule_says(name):
    model = FM([90, 10], 15)
    engine = engine_for(model, Rule(name, 0.1), frequencies=frequencies_of(model))
    assert engine.state_bytes == CASES[name].state_bytes


@pytest.mark.parametrize("kind", [FM, DeepFM])
@pytest.mark.parametrize("halflife", [0.5, 30.0, 1000.0])
def test_counts_that_fade_equal_the_torch_optimizers(kind, halflife):
    sizes = [40, 20]
    ids, labels = samples(sizes, 330)
    rule = rule_of("cfsgd", halflife=halflife, max_lr=2.0)
    options = {"dropout": 0.0} if kind is DeepFM else {}
    model = kind(sizes, 12, **options)
    other = copy_of(model, **options)
    optimizer = torch_optimizer(other, rule, len(sizes))
    order = np.random.default_rng(1).permutation(len(ids))
    for _ in range(2):
        for i in range(0, len(ids), 64):
            rows = order[i : i + 64]
            optimizer.zero_grad()
            logits = other(torch.from_numpy(ids[rows]))
            labels_of = torch.from_numpy(labels[rows]).float()
            binary_cross_entropy_with_logits(logits, labels_of).backward()
            optimizer.step()
    engine, _ = train(model, rule, ids, labels, passes=2)
    torch.testing.assert_close(model.tokens.weight, other.tokens.weight, rtol=2e-3, atol=2e-4)
    mass, _ = engine.state["fading"].tolist()
    table = optimizer.state[other.tokens.weight]
    theirs = table["counts"] / (table["mass"] / len(sizes))
    torch.testing.assert_close(engine.state["counts"] / mass, theirs, rtol=1e-9, atol=1e-12)


def test_counts_that_fade_may_be_saved_at_any_step():
    ids, labels = samples([40, 20], 640)
    rule = rule_of("cfsgd", halflife=2.0, max_lr=2.0)
    model = FM([40, 20], 8)
    resumed = copy_of(model)
    whole, _ = train(model, rule, ids, labels)
    order = np.random.default_rng(1).permutation(len(ids))
    engine = engine_for(resumed, rule, batch_size=64, threads=1)
    for start in (0, 192):
        last = engine_for(resumed, rule, batch_size=64, threads=1)
        last.load_state(engine.state, engine.samples, engine.steps)
        engine = last
        some = order[start : 192 if start == 0 else 640]
        for _ in engine.train(ids, labels, some, np.full(len(some) // 64, rule.lr)):
            pass
    assert torch.equal(resumed.tokens.weight, model.tokens.weight)
    for name in ("counts", "fading"):
        assert torch.equal(engine.state[name], whole.state[name])


@pytest.mark.parametrize("halflife", [1.0, 2.3, 40.0])
def test_counts_that_fade_do_not_depend_on_the_steps_of_a_call(halflife):
    ids, labels = samples([40, 20], 5990)
    rule, states = rule_of("cfsgd", halflife=halflife, max_lr=2.0), []
    model = FM([40, 20], 8)
    for most in (1, 7, 50):
        made = copy_of(model)
        engine = engine_for(made, rule, batch_size=64, threads=1)
        for _ in range(2):  # the last step of a pass is shorter
            list(engine.train(ids, labels, np.arange(5990), np.full(94, rule.lr), most))
        states.append({**engine.state, "weight": made.tokens.weight})
    for other in states[1:]:
        assert all(torch.equal(value, other[name]) for name, value in states[0].items())


def test_a_halflife_that_is_no_use_is_refused():
    for options in ({"halflife": 0.0}, {"halflife": float("nan")}, {"halflife": -1.0}):
        with pytest.raises(ValueError, match="halflife must be a finite number > 0"):
            rule_of("cfsgd", **options)
    with pytest.raises(ValueError, match="halflife is for cfsgd"):
        rule_of("sgd", halflife=10.0)
    with pytest.raises(ValueError, match="too short for steps of 1024 samples"):
        engine_for(FM([4], 2), rule_of("cfsgd", halflife=1.0))


@pytest.mark.parametrize("kind", [FM, DeepFM])
def test_log_odds_are_those_before_each_step(kind):
    ids, labels = samples([40, 20], 200)
    model = kind([40, 20], 8)
    other = copy_of(model)
    order = np.random.default_rng(1).permutation(len(ids))
    logits = np.empty(len(ids), np.float32)
    rule, lrs = rule_of("cfsgd"), np.full(4, CASES["cfsgd"].lr)
    engine = engine_for(model, rule, batch_size=64, threads=1)
    for _ in engine.train(ids, labels, order, lrs, logits=logits):
        pass
    engine = engine_for(other, rule, batch_size=64, threads=1)
    for i in range(0, 200, 64):
        rows = order[i : i + 64]
        np.testing.assert_array_equal(logits[i : i + 64], engine.predict(ids, rows))
        for _ in engine.train(ids, labels, rows, lrs[:1]):
            pass
    assert torch.equal(model.tokens.weight, other.tokens.weight)
    with pytest.raises(ValueError, match="logits must be a contiguous float32 array"):
        next(iter(engine.train(ids, labels, order, lrs, logits=logits[1:])))
