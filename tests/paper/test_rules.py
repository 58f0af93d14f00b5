"""Rules hold, do not hold or have no answer; documents are made up, answers worked out by hand.

Numbers at a threshold are sums of powers of 2, so that nothing is rounded.
"""

from __future__ import annotations

import contextlib
import copy

import msgspec
import numpy as np
import pytest

from freqsgd.documents import read_document
from freqsgd.documents.inspection import InspectedField, Inspection
from freqsgd.documents.results import Results
from freqsgd.documents.theory import Theory
from freqsgd.errors import DataError
from freqsgd.inspection.document import rank_frequencies
from freqsgd.paper import rules
from freqsgd.paper.experiments import FIGURES
from freqsgd.paper.rules import Finding, Rule
from tests.report.made_up_inspection import make_field, make_inspection
from tests.report.made_up_theory import ITEMS, USERS, make_theory

NO_ANSWER = Finding(None, "not measured: the run did not come so far")


def steps(place, **values):
    """The epochs or windows of a run, from the curves of what it measured."""
    rows = enumerate(zip(*values.values(), strict=True), 1)
    return [{place: order, **dict(zip(values, each, strict=True))} for order, each in rows]


def epochs(**values):
    return steps("epoch", **values)


def results(runs, **more):
    """A comparison, from what each optimizer measured."""
    named = [{"optimizer": name, **run} for name, run in runs.items()]
    return {"schema": 1, "runs": named, **more}


def aucs(**curves):
    return results({name: {"epochs": epochs(val_auc=curve)} for name, curve in curves.items()})


def losses(**curves):
    return results({name: {"epochs": epochs(train_loss=curve)} for name, curve in curves.items()})


def followed(*moments):
    """Adam's second moments, each of an epoch, a correlation and a slope."""
    names = ("epoch", "pearson", "slope")
    entries = [{**dict(zip(names, each, strict=True)), "pearson_log": 0.75} for each in moments]
    return results({"adam": {"diagnosis": {"moments": entries}}})


def streamed(cfsgd, adagrad):
    """The NE of all examples so far, after each window."""
    curves = {"cfsgd": cfsgd, "adagrad": adagrad}
    return results(
        {name: {"windows": steps("examples", lifetime_ne=nes)} for name, nes in curves.items()}
    )


def evaluated(cfsgd, adagrad):
    return results({"cfsgd": {"test_ne": cfsgd}, "adagrad": {"test_ne": adagrad}})


def tuned(lr):
    best = {"number": 1, "params": {"lr": lr}}
    studies = [{"optimizer": "sgd"}, {"optimizer": "cfsgd", "best": best}]
    return results({"cfsgd": {}}, tuning={"studies": studies})


def held(state, weights=6400, dim=63):
    run = {"state_bytes": state, "parameter_bytes": weights}
    return results({"cfsgd": run}, model={"dim": dim})


def ended(sgd, cfsgd, adam):
    given = {"sgd": sgd, "cfsgd": cfsgd, "adam": adam}
    return results({name: {"test_loss": loss} for name, loss in given.items()})


def field(name, counts, family="exponential"):
    ranks = [[rank, count] for rank, count in enumerate(counts, 1)]
    return make_field(name, len(counts), ranks=ranks, fit={"family": family})


fields = make_inspection


def slope(measured, low, high, predicted):
    values = {"measured": measured, "low": low, "high": high, "predicted": predicted}
    return make_theory(
        improvements=[
            {**improvement, "slope": {**improvement["slope"], **values}}
            if improvement["optimizer"] == "cfsgd"
            else improvement
            for improvement in make_theory()["improvements"]
        ]
    )


def ratios(*measured):
    first, *others = make_theory()["improvements"]
    whole = [*measured, *[1.0] * (USERS + ITEMS - len(measured))]
    return make_theory(improvements=[{**first, "measured": whole}, *others])


def checks(**answers):
    said = {"condition": "Condition of the corollaries", "other": "Condition of another"}
    return make_theory(
        checks=[
            {"statement": said.get(name, name), "holds": holds, "detail": ""}
            for name, holds in answers.items()
        ]
    )


def found(rule, document):
    """What a rule finds in a document that a run has written."""
    kind = Theory if "tokens" in document else Inspection if "fields" in document else Results
    return rule.find(read_document(document, kind, "document"))


SLOWEST = rules.slowest("sgd", margin=0.125)
LEADS = rules.leads_training("cfsgd", ["adagrad", "adam"], epochs=2)
NEAR = rules.peaks_near(0.75, 0.125, ["sgd", "adam"])
FIRST = rules.peaks_first("cfsgd", ["sgd", "adam"], behind=0.125)
FOLLOWS = rules.follows_counts("adam", pearson=0.875, slope=(0.75, 1.25), epoch=5)
PROGRESS = rules.leads_progressively("cfsgd", "adagrad")
LOWER = rules.lower_evaluation_ne("cfsgd", "adagrad", percent=25)
TUNED = rules.near_tuned("cfsgd", 0.5, factor=4)
KEEPS = rules.keeps("cfsgd", lambda dim: 1 / (dim + 1), "one number per row")
CLOSES = rules.closes_gap("cfsgd", below="sgd", near="adam", percent=25, within=50)
FEW = rules.few_hold_most(0.2, 0.5, of_fields=1)
FEW_OF_HALF = rules.few_hold_most(0.2, 0.5, of_fields=0.5, first=2)
TAIL = rules.tail_is_found(of_fields=1)
TAIL_OF_HALF = rules.tail_is_found(of_fields=0.5, first=2)
BOUNDS = rules.bounds_hold()
CONDITIONS = rules.conditions_are_met()
SLOPE = rules.counts_follow_bounds("cfsgd")
UNIFORM = rules.uniform_is_sgd(within=0.125)

STEEP, FLAT, HALF = field("a", [7, 1, 1, 1, 1]), field("b", [2, 2, 2, 2, 2]), [4, 1, 1, 1, 1]
SLOW = {"cfsgd": [0.5, 0.75], "adagrad": [0.75], "adam": [0.5, 0.625]}

CASES = {
    # the lowest best is Adam's 0.625, less 0.125: 0.5
    "the last to get there": (
        SLOWEST, aucs(sgd=[0.25, 0.625], **SLOW), True,
        "validation AUC 0.5000 after epochs: SGD 2, CF-SGD 1, Adagrad 1, Adam 1",
    ),
    "just there with the others": (
        SLOWEST, aucs(sgd=[0.5, 0.625], **SLOW), False,
        "validation AUC 0.5000 after epochs: SGD 1, CF-SGD 1, Adagrad 1, Adam 1",
    ),
    "another is as late": (
        SLOWEST, aucs(sgd=[0.25, 0.625], **SLOW | {"adam": [0.25, 0.625]}), False,
        "validation AUC 0.5000 after epochs: SGD 2, CF-SGD 1, Adagrad 1, Adam 2",
    ),
    "what all reach is low because of FA-SGD": (
        SLOWEST, aucs(sgd=[0.25, 0.625], fasgd=[0.375], **SLOW), False,
        "validation AUC 0.2500 after epochs: SGD 1, CF-SGD 1, Adagrad 1, Adam 1",
    ),
    "ahead while it is asked": (
        LEADS, losses(cfsgd=[0.6, 0.4, 0.4], adagrad=[0.7, 0.5, 0.3], adam=[0.7, 0.6, 0.3]), True,
        "in epoch 2: CF-SGD 0.4000, Adagrad 0.5000, Adam 0.6000",
    ),
    "behind one at first": (
        LEADS, losses(cfsgd=[0.6, 0.4], adagrad=[0.5, 0.5], adam=[0.7, 0.6]), False,
        "in epoch 2: CF-SGD 0.4000, Adagrad 0.5000, Adam 0.6000",
    ),
    "as low as one is not below it": (
        LEADS, losses(cfsgd=[0.6, 0.4], adagrad=[0.7, 0.5], adam=[0.7, 0.4]), False,
        "in epoch 2: CF-SGD 0.4000, Adagrad 0.5000, Adam 0.4000",
    ),
    "ahead in the only epoch that all have": (
        LEADS, losses(cfsgd=[0.6, 0.4], adagrad=[0.7, 0.3], adam=[0.7]), True,
        "in epoch 1, the last that all have: CF-SGD 0.6000, Adagrad 0.7000, Adam 0.7000",
    ),
    "as far off as it may be, on both sides": (
        NEAR, aucs(sgd=[0.5, 0.625], adam=[0.875, 0.5], cfsgd=[0.1]), True,
        "best validation AUC: SGD 0.6250, Adam 0.8750",
    ),
    "too low": (
        NEAR, aucs(sgd=[0.624], adam=[0.75]), False, "best validation AUC: SGD 0.6240, Adam 0.7500"
    ),
    "too high": (
        NEAR, aucs(sgd=[0.75], adam=[0.876]), False, "best validation AUC: SGD 0.7500, Adam 0.8760"
    ),
    "sooner, and as far behind as it may be": (
        FIRST, aucs(cfsgd=[0.625, 0.5], sgd=[0.1, 0.5], adam=[0.1, 0.2, 0.75]), True,
        "CF-SGD 0.6250 in epoch 1, SGD 0.5000 in epoch 2, Adam 0.7500 in epoch 3",
    ),
    "sooner, and too far behind": (
        FIRST, aucs(cfsgd=[0.624, 0.5], sgd=[0.1, 0.5], adam=[0.1, 0.75]), False,
        "CF-SGD 0.6240 in epoch 1, SGD 0.5000 in epoch 2, Adam 0.7500 in epoch 2",
    ),
    "better, in the same epoch as another": (
        FIRST, aucs(cfsgd=[0.5, 0.8], sgd=[0.1, 0.5, 0.6], adam=[0.1, 0.75]), False,
        "CF-SGD 0.8000 in epoch 2, SGD 0.6000 in epoch 3, Adam 0.7500 in epoch 2",
    ),
    "the first of equal epochs is the best": (
        FIRST, aucs(cfsgd=[0.75, 0.75, 0.75], sgd=[0.1, 0.5], adam=[0.1, 0.75]), True,
        "CF-SGD 0.7500 in epoch 1, SGD 0.5000 in epoch 2, Adam 0.7500 in epoch 2",
    ),
    "just correlated, and as flat as may be": (
        FOLLOWS, followed((1, 0.1, 9), (5, 0.875, 0.75), (6, 0.1, 9)), True,
        "after epoch 5: correlation 0.875 (0.750 of logarithms), slope 0.75",
    ),
    "as steep as may be, in the last epoch that there is": (
        FOLLOWS, followed((3, 0.875, 1.25)), True,
        "after epoch 3: correlation 0.875 (0.750 of logarithms), slope 1.25",
    ),
    "too little correlated": (
        FOLLOWS, followed((5, 0.874, 1.0)), False,
        "after epoch 5: correlation 0.874 (0.750 of logarithms), slope 1.00",
    ),
    "too flat": (
        FOLLOWS, followed((5, 0.9, 0.74)), False,
        "after epoch 5: correlation 0.900 (0.750 of logarithms), slope 0.74",
    ),
    "too steep": (
        FOLLOWS, followed((5, 0.9, 1.26)), False,
        "after epoch 5: correlation 0.900 (0.750 of logarithms), slope 1.26",
    ),
    "known too late": (FOLLOWS, followed((6, 0.9, 1.0)), *vars(NO_ANSWER).values()),
    # quarters of 8 windows end with the 2nd, 4th, 6th and 8th
    "below after each quarter": (
        PROGRESS, streamed([2, 0.5, 2, 0.75, 2, 0.75, 2, 0.875], [1] * 8), True,
        "difference of NE: -50.00%, -25.00%, -25.00%, -12.50%",
    ),
    "level after a quarter": (
        PROGRESS, streamed([0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 0.5], [1] * 8), False,
        "difference of NE: -50.00%, +0.00%, -50.00%, -50.00%",
    ),
    "two windows": (
        PROGRESS, streamed([0.5, 0.75], [1, 1]), True,
        "difference of NE: -50.00%, -50.00%, -25.00%, -25.00%",
    ),
    "one of the streams ended sooner": (
        PROGRESS, streamed([0.5], [1, 1]), *vars(NO_ANSWER).values()
    ),
    "as much below as is asked": (
        LOWER, evaluated(0.75, 1.0), True, "CF-SGD 0.7500, Adagrad 1.0000: -25.00%"
    ),
    "less below than is asked": (
        LOWER, evaluated(0.751, 1.0), False, "CF-SGD 0.7510, Adagrad 1.0000: -24.90%"
    ),
    "as many times more as may be": (TUNED, tuned(2.0), True, "2 found, 0.5 in the paper"),
    "as many times less as may be": (TUNED, tuned(0.125), True, "0.125 found, 0.5 in the paper"),
    "too many times more": (TUNED, tuned(2.01), False, "2.01 found, 0.5 in the paper"),
    "too many times less": (TUNED, tuned(0.1234), False, "0.123 found, 0.5 in the paper"),
    # 64 numbers per row, of which the state has one: 100 of 6,400 bytes
    "one number per row": (KEEPS, held(100), True, "0.0156 times the weights (100 bytes)"),
    "98% of it": (KEEPS, held(9801, 640_000), True, "0.0153 times the weights (9,801 bytes)"),
    "102% of it": (KEEPS, held(10_199, 640_000), True, "0.0159 times the weights (10,199 bytes)"),
    "less than 98%": (KEEPS, held(9799, 640_000), False, "0.0153 times the weights (9,799 bytes)"),
    "more than 102%": (
        KEEPS, held(10_201, 640_000), False, "0.0159 times the weights (10,201 bytes)"
    ),
    "vectors of another length": (
        KEEPS, held(100, dim=31), False, "0.0156 times the weights (100 bytes)"
    ),
    "just far enough below, just near enough": (
        CLOSES, ended(4.0, 3.0, 2.0), True, "test loss: SGD 4.000, CF-SGD 3.000, Adam 2.000"
    ),
    "not far enough below": (
        CLOSES, ended(4.0, 3.001, 2.5), False, "test loss: SGD 4.000, CF-SGD 3.001, Adam 2.500"
    ),
    "not near enough": (
        CLOSES, ended(4.0, 3.0, 1.999), False, "test loss: SGD 4.000, CF-SGD 3.000, Adam 1.999"
    ),
    # the first of five tokens has 7 of 11, 2 of 10, 4 of 8
    "one field, imbalanced": (
        FEW, fields(STEEP), True, "in 1 of 1 fields; least 64% (a), most 64% (a)"
    ),
    "one of two is not every field": (
        FEW, fields(STEEP, FLAT), False, "in 1 of 2 fields; least 20% (b), most 64% (a)"
    ),
    "one of two is half; a third is not looked at": (
        FEW_OF_HALF, fields(STEEP, FLAT, FLAT), True,
        "in 1 of 2 fields; least 20% (b), most 64% (a)",
    ),
    "the third is imbalanced": (
        FEW_OF_HALF, fields(FLAT, field("c", HALF), STEEP), False,
        "in 0 of 2 fields; least 20% (b), most 50% (c)",
    ),
    "exactly half is not more": (
        FEW, fields(field("c", HALF)), False, "in 0 of 1 fields; least 50% (c), most 50% (c)"
    ),
    "both tails": (
        TAIL, fields(STEEP, field("b", HALF, "polynomial")), True,
        "1 exponential, 1 polynomial, of 2",
    ),
    "no tail in one": (
        TAIL, fields(STEEP, field("b", HALF, None)), False, "1 exponential, 0 polynomial, of 2"
    ),
    "a tail in half of the first": (
        TAIL_OF_HALF, fields(field("b", HALF, None), STEEP, field("b", HALF, None)), True,
        "1 exponential, 0 polynomial, of 2",
    ),
    "no tail among the first": (
        TAIL_OF_HALF, fields(*[field("b", HALF, None)] * 2, STEEP), False,
        "0 exponential, 0 polynomial, of 2",
    ),
    "all statements": (
        BOUNDS, checks(first=True, second=True, condition=True), True, "2 of 2 statements hold"
    ),
    "a condition is no statement": (
        BOUNDS, checks(first=True, condition=False), True, "1 of 1 statements hold"
    ),
    "one statement does not hold": (
        BOUNDS, checks(first=True, second=False, third=False, condition=True), False,
        "1 of 3 statements hold; not: second; third",
    ),
    "the condition is met, whatever else holds": (
        CONDITIONS, checks(first=False, condition=True), True, "1 of 1 conditions are met"
    ),
    "one condition is not met": (
        CONDITIONS, checks(first=True, condition=True, other=False), False,
        "1 of 2 conditions are met; not: Condition of another",
    ),
    "predicted at the low end": (
        SLOPE, slope(0.5, 0.25, 0.75, 0.25), True,
        "slope 0.500 (0.250 to 0.750), predicted 0.250",
    ),
    "predicted at the high end": (
        SLOPE, slope(0.5, 0.25, 0.75, 0.75), True,
        "slope 0.500 (0.250 to 0.750), predicted 0.750",
    ),
    "predicted below": (
        SLOPE, slope(0.5, 0.25, 0.75, 0.249), False,
        "slope 0.500 (0.250 to 0.750), predicted 0.249",
    ),
    "predicted above": (
        SLOPE, slope(0.5, 0.25, 0.75, 0.751), False,
        "slope 0.500 (0.250 to 0.750), predicted 0.751",
    ),
    "perhaps no slope at all": (
        SLOPE, slope(0.5, 0.0, 1.0, 0.5), False, "slope 0.500 (0.000 to 1.000), predicted 0.500"
    ),
    "as equal as may be": (
        UNIFORM, ratios(0.875, 1.125, 1), True, "SGD's error over FA-SGD's: 0.875 to 1.125"
    ),
    "one is too low": (
        UNIFORM, ratios(0.874, 1.0), False, "SGD's error over FA-SGD's: 0.874 to 1.000"
    ),
    "one is too high": (
        UNIFORM, ratios(1.0, 1.126), False, "SGD's error over FA-SGD's: 1.000 to 1.126"
    ),
}  # fmt: skip
WHOLE = {  # a document of each rule that it holds for
    rule.says: (rule, document) for rule, document, holds, _ in reversed(CASES.values()) if holds
}
RULES = [rule for rule, _ in WHOLE.values()]
OF_RUNS = {name: pair for name, pair in WHOLE.items() if pair[1].get("kind") is None}


@pytest.mark.parametrize(("rule", "document", "holds", "measured"), CASES.values(), ids=CASES)
def test_what_a_rule_finds(rule, document, holds, measured):
    before = copy.deepcopy(document)
    assert found(rule, document) == Finding(holds, measured)
    assert document == before


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        (BOUNDS, checks()),
        (BOUNDS, checks(condition=True)),
        (CONDITIONS, checks(first=True)),
        (TUNED, tuned(0.0)),
    ],
    ids=["no check", "no statement", "no condition", "a rate of zero"],
)
def test_of_nothing_there_is_no_answer(rule, document):
    assert found(rule, document).holds is None


def test_every_rule_is_looked_at_from_both_sides():
    asked = {rule.look.__qualname__ for figure in FIGURES for _, rule in figure.rules}
    assert {rule.look.__qualname__ for rule in RULES} == asked
    for rule in RULES:
        answers = {holds for each, _, holds, _ in CASES.values() if each.says == rule.says}
        assert {True, False} <= answers


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (SLOWEST, "SGD needs more epochs than CF-SGD, Adagrad and Adam to reach the lowest of the "
         "best validation AUCs less 0.125"),
        (LEADS, "the training loss of CF-SGD is below that of Adagrad and Adam in each of the "
         "first 2 epochs"),
        (rules.leads_training("cfsgd", ["sgd"], epochs=1),
         "the training loss of CF-SGD is below that of SGD in the first epoch"),
        (NEAR, "the best validation AUC of SGD and Adam is within 0.125 of 0.75"),
        (FIRST, "CF-SGD has its best validation AUC in an earlier epoch than SGD and Adam, at most "
         "0.125 below the best of all"),
        (FOLLOWS, "the second moments of Adam have a correlation of 0.875 or more with the counts "
         "of CF-SGD by epoch 5, and a slope of 0.75 to 1.25 on log scales"),
        (PROGRESS, "after each quarter of the examples the NE of CF-SGD so far is below that of "
         "Adagrad"),
        (LOWER, "the evaluation NE of CF-SGD is at least 25% below that of Adagrad"),
        (TUNED, "the learning rate found here for CF-SGD is within a factor of 4 of the paper's "
         "0.5"),
        (KEEPS, "CF-SGD keeps one number per row, within 2%"),
        (CLOSES, "the test loss of CF-SGD is at least 25% below that of SGD and at most 50% above "
         "that of Adam"),
        (FEW, "in every field the most frequent 20% of the tokens hold more than 50% of the "
         "occurrences"),
        (FEW_OF_HALF, "in 50% of the fields the most frequent 20% of the tokens hold more than 50% "
         "of the occurrences"),
        (TAIL, "an exponential or polynomial tail can be fitted in every field"),
        (TAIL_OF_HALF, "an exponential or polynomial tail can be fitted in 50% of the fields"),
        (BOUNDS, "every bound and lemma that the simulation checks holds"),
        (CONDITIONS, "the condition of the corollaries is met"),
        (SLOPE, "SGD's error over that of CF-SGD rises along the tail, at the slope of the bounds "
         "(within the 95% interval, which is above 0)"),
        (UNIFORM, "equally frequent tokens: FA-SGD's errors are SGD's, within 12%"),
    ],
)  # fmt: skip
def test_a_rule_says_its_thresholds(rule, words):
    assert rule.says == words


def test_the_level_of_the_aucs_and_token_counts_are_about_the_papers_data():
    about = (NEAR, FEW, FEW_OF_HALF, TAIL, TAIL_OF_HALF)
    assert {rule.says for rule in RULES if rule.of_data} == {rule.says for rule in about}


def paths(value, start=()):
    """Where entries of objects are, at any depth."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in pairs:
        if isinstance(value, dict):
            yield (*start, key)
        if isinstance(each, dict | list):
            yield from paths(each, (*start, key))


def cut(document, path, **instead):
    """A copy that lacks an entry, or has another in its place."""
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    if instead:
        place[path[-1]] = instead["value"]
    return changed


@pytest.mark.parametrize(("rule", "document"), OF_RUNS.values(), ids=OF_RUNS)
def test_whatever_is_missing_a_rule_has_no_answer_or_did_not_need_it(rule, document):
    answers = set()
    for path in paths(document):
        with contextlib.suppress(DataError):
            answers.add(found(rule, cut(document, path)))
    assert answers <= {found(rule, document), NO_ANSWER}
    assert NO_ANSWER in answers


@pytest.mark.parametrize("value", [None, "?", 0.5, {}], ids=str)
@pytest.mark.parametrize(("rule", "document"), OF_RUNS.values(), ids=OF_RUNS)
def test_what_is_there_but_something_else_raises_nothing(rule, document, value):
    for path in paths(document):
        with contextlib.suppress(DataError):
            answer = found(rule, cut(document, path, value=value))
            assert answer.holds in (True, False, None)


@pytest.mark.parametrize(
    ("rule", "about"),
    [
        (SLOWEST, ["sgd", "cfsgd", "adagrad", "adam"]),
        (LEADS, ["cfsgd", "adagrad", "adam"]),
        (NEAR, ["sgd", "adam"]),
        (FIRST, ["cfsgd", "sgd", "adam"]),
    ],
)
def test_before_its_first_epoch_an_optimizer_gives_no_answer(rule, about):
    curves = {"sgd": [0.25, 0.625], **SLOW}
    measured = {
        name: {"epochs": epochs(val_auc=curve, train_loss=curve)} for name, curve in curves.items()
    }
    assert found(rule, results(measured)).holds is not None
    for name in about:
        others = {other: run for other, run in measured.items() if other != name}
        assert found(rule, results(others)) == NO_ANSWER
        assert found(rule, results({**others, name: {"epochs": []}})) == NO_ANSWER


def share_of_top(listed, part):
    return rules._share_of_top(msgspec.convert(listed, InspectedField), part)


@pytest.mark.parametrize(
    ("part", "counts", "share"),
    [
        (0.2, [50, 20, 10, 10, 10], 50 / 100),
        (0.4, [50, 20, 10, 10, 10], 70 / 100),
        (0.1, [50, 20, 10, 10, 10], 50 / 100),  # one token at least
        (0.2, [6], 1.0),
        (0.2, [5] * 40, 8 / 40),
    ],
)
def test_the_share_of_the_most_frequent_where_all_counts_are_listed(part, counts, share):
    assert share_of_top(field("a", counts), part) == pytest.approx(share)


def test_counts_that_are_not_listed_lie_on_a_line_of_logarithms():
    exact = [360_000 / rank**2 for rank in range(1, 101)]
    listed = make_field(tokens=100, ranks=[[1, 360_000], [10, 3600], [100, 36]])
    assert share_of_top(listed, 0.2) == pytest.approx(sum(exact[:20]) / sum(exact))


@pytest.mark.parametrize("shape", ["flat", "steep"])
def test_the_share_of_counted_tokens_is_that_of_all_their_counts(shape):
    draw = np.random.default_rng(0)
    means = np.exp(-np.arange(3000) / 900) if shape == "flat" else 1 / np.arange(1, 3001)
    counts = np.sort(draw.poisson(4e5 * means / means.sum()) + 1)[::-1]
    listed = make_field(tokens=3000, ranks=rank_frequencies(counts))
    assert len(listed["ranks"]) < 600
    share = counts[:600].sum() / counts.sum()
    assert share_of_top(listed, 0.2) == pytest.approx(share, abs=0.01)


def test_errors_that_are_no_lack_of_data_are_not_hidden():
    def wrong(document):
        raise AssertionError

    with pytest.raises(AssertionError):
        Rule("", wrong).find(None)
