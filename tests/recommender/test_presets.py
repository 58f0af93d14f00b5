from __future__ import annotations

import pytest

from freqsgd.cli import tables
from freqsgd.cli.options import rate, rates
from freqsgd.errors import DataError
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings, preset, with_preset
from freqsgd.tables.spec import DataOptions


@pytest.mark.parametrize(
    "optimizer", ["sgd", "fasgd", "cfsgd", "cfadam", "adagrad", "rowwise-adagrad", "adam"]
)
def test_the_papers_rates_are_known_for_its_datasets_alone(optimizer):
    for dataset in ("movielens-1m", "criteo", "synthetic"):
        for model in ("fm", "deepfm"):
            assert preset("paper", dataset, model, optimizer)["lr"] > 0
    assert preset("paper", None, "fm", optimizer) is None


@pytest.mark.parametrize(
    ("dataset", "patience"), [("movielens-1m", 2), ("criteo", 2), ("synthetic", 5), (None, 5)]
)
def test_the_papers_patience_is_for_its_datasets_alone(dataset, patience):
    values = preset("paper", dataset, "fm", "sgd") or {}
    assert with_preset(Rule("sgd"), Settings(), values)[1].patience == patience


def test_every_best_preset_makes_a_rule_and_settings():
    values = preset("best", "movielens-1m", "fm", "cfsgd")
    rule, settings = with_preset(Rule("cfsgd"), Settings(dim=8), values)
    assert (rule.lr, rule.max_lr, rule.weight_decay_power) == (3.0, 135.0, 0.5)
    assert (settings.dim, settings.lr_decay, settings.epochs) == (8, "linear", 11)


@pytest.mark.parametrize(
    ("name", "dataset", "optimizer", "message"),
    [
        ("good", None, "cfsgd", "unknown preset 'good'; known: paper, best"),
        ("best", None, "cfsgd", "no best preset.*known: movielens-1m fm: cfsgd, cfadam, adam"),
        ("best", "movielens-1m", "fasgd", "no best preset for fm with fasgd"),
        ("paper", None, "adamw", "unknown optimizer 'adamw'"),
    ],
)
def test_what_is_not_known_is_named(name, dataset, optimizer, message):
    with pytest.raises(DataError, match=message):
        preset(name, dataset, "fm", optimizer)


def test_options_that_are_given_go_before_a_preset_even_if_they_are_the_defaults(monkeypatch):
    values = {"lr": 3.0, "weight_decay": 1e-3, "epochs": 12}
    monkeypatch.setattr(tables, "preset", lambda *_: values)
    monkeypatch.setattr(tables.opt, "rule_of", lambda _, name, lr: Rule(name, rate(lr)))
    monkeypatch.setattr(tables.opt, "given", lambda context: context)

    def of(lr, *names):
        rule, settings = tables._planned(
            set(names), DataOptions(), Settings(), "cfsgd", lr, "paper"
        )
        return rule.lr, rule.weight_decay, settings.epochs

    assert of("") == (3.0, 1e-3, 12)
    assert of("0.5") == (0.5, 1e-3, 12)
    assert of("auto", "epochs") == (None, 1e-3, 60)
    assert of("", "weight_decay") == (3.0, 0.0, 12)


@pytest.mark.parametrize("lr", ["much", "0"])
def test_a_rate_that_is_none_is_refused(lr):
    with pytest.raises(DataError, match="--lr"):
        rate(lr)


def test_rates_are_for_all_optimizers_or_one_by_one():
    names = ("sgd", "cfsgd")
    assert rates("", names) == {"sgd": "", "cfsgd": ""}
    assert rates("auto", names) == {"sgd": "auto", "cfsgd": "auto"}
    assert rates("cfsgd=auto, sgd=10", names) == {"cfsgd": "auto", "sgd": "10"}
    for text, message in [
        ("sgd=1,sgd=2", "sgd twice"),
        ("sgd=", "'sgd=' is none"),
        ("adam=1", "names adam, which --optimizers does not"),
        ("foo=1", "'foo=1' is none"),
    ]:
        with pytest.raises(DataError, match=message):
            rates(text, names)
