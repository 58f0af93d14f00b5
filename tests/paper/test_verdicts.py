"""What the rules of a figure say together, and what they are asked of."""

from __future__ import annotations

from itertools import product

import pytest

from freqsgd.paper.document import figure_entry, verdict
from freqsgd.paper.rules import Finding, Rule
from tests.paper.tiny import figure

SIZE = Rule("it is large", lambda document: Finding(document["size"] > 3, str(document["size"])))
OF_DATA = Rule("it is as in the paper", SIZE.look, of_data=True)
DONE = {"status": "done", "stand_in": False, "dataset": "movielens-1m"}
STAND_IN = {**DONE, "stand_in": True}
LARGE, SMALL = {"size": 4}, {"size": 3}


def judged(*entries_and_documents, rules=(SIZE,), private=""):
    """The entry of a figure whose runs are called a, b and so on."""
    names = "abc"[: len(entries_and_documents)]
    entries, documents = zip(*entries_and_documents, strict=True)
    return figure_entry(
        figure("fig1", *names, rules=rules, private=private),
        dict(zip(names, entries, strict=True)),
        dict(zip(names, documents, strict=True)),
        "freqsgd paper --only fig1",
    )


@pytest.mark.parametrize("answers", list(product([True, False, None], repeat=3)), ids=str)
def test_one_word_for_three_answers(answers):
    if True not in answers:
        expected = "differs" if False in answers else "not measured"
    else:
        expected = "agrees" if set(answers) == {True} else "agrees in part"
    assert verdict(answers) == expected


def test_no_rules_at_all_are_no_agreement():
    assert verdict([]) == "not measured"


def test_an_entry_has_the_words_of_its_figure_and_every_answer():
    entry = judged((DONE, LARGE), (DONE, SMALL))
    assert (
        entry.items()
        >= {
            "name": "fig1",
            "number": "FIG1",
            "title": "title of fig1",
            "claim": "claim",
            "brief": "brief",
            "private": "",
            "data": "real",
            "verdict": "agrees in part",
            "rules": [
                {"run": "a", "says": "it is large", "holds": True, "measured": "4"},
                {"run": "b", "says": "it is large", "holds": False, "measured": "3"},
            ],
            "runs": ["a", "b"],
            "command": "freqsgd paper --only fig1",
        }.items()
    )


def test_without_a_document_a_rule_has_no_answer_and_says_why():
    failed = {**DONE, "status": "failed"}
    entry = judged((DONE, LARGE), (failed, None))
    assert entry["verdict"] == "agrees in part"
    assert entry["rules"][1]["holds"] is None
    assert entry["rules"][1]["measured"] == "not measured: failed"


def test_generated_data_cannot_tell_what_is_about_the_papers():
    entry = judged((STAND_IN, LARGE), rules=(OF_DATA, SIZE))
    assert [rule["holds"] for rule in entry["rules"]] == [None, True]
    assert entry["rules"][0]["measured"] == "not measured: this is about movielens-1m"
    assert entry["verdict"] == "agrees in part"
    assert judged((DONE, LARGE), rules=(OF_DATA, SIZE))["verdict"] == "agrees"


@pytest.mark.parametrize(
    ("runs", "private", "data"),
    [
        ([DONE, DONE], "", "real"),
        ([DONE, STAND_IN], "", "stand-in"),
        ([DONE, DONE], "not public", "stand-in"),
        ([STAND_IN, {**DONE, "status": "no data"}], "", "none"),
        ([{**DONE, "dataset": None}, DONE], "", "real"),
        ([{**DONE, "dataset": None}] * 2, "", "simulated"),
    ],
)
def test_a_figures_data_are_as_good_as_the_worst_of_its_runs(runs, private, data):
    assert judged(*((run, LARGE) for run in runs), private=private)["data"] == data
