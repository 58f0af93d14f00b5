"""What the rules of a figure say together, and what they are asked of."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from freqsgd.documents.paper import PaperFigure, PaperRun, Ruling
from freqsgd.paper.rules import Finding, Rule
from freqsgd.paper.running import judged, verdict
from tests.paper.tiny import figure

SIZE = Rule("it is large", lambda size: Finding(size > 3, str(size)))
OF_DATA = Rule("it is as in the paper", SIZE.look, of_data=True)
DONE = PaperRun(status="done", dataset="movielens-1m")
STAND_IN = replace(DONE, stand_in=True)
LARGE, SMALL = 4, 3


def entry_of(*entries_and_documents, rules=(SIZE,), private=""):
    """The entry of a figure whose runs are called a, b and so on."""
    names = "abc"[: len(entries_and_documents)]
    entries, documents = zip(*entries_and_documents, strict=True)
    return judged(
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
    assert entry_of((DONE, LARGE), (DONE, SMALL)) == PaperFigure(
        name="fig1",
        number="FIG1",
        title="title of fig1",
        claim="claim",
        brief="brief",
        data="real",
        verdict="agrees in part",
        rules=(
            Ruling("a", "it is large", holds=True, measured="4"),
            Ruling("b", "it is large", holds=False, measured="3"),
        ),
        runs=("a", "b"),
        command="freqsgd paper --only fig1",
    )


def test_without_a_document_a_rule_has_no_answer_and_says_why():
    entry = entry_of((DONE, LARGE), (replace(DONE, status="failed"), None))
    assert entry.verdict == "agrees in part"
    assert entry.rules[1].holds is None
    assert entry.rules[1].measured == "not measured: failed"


def test_generated_data_cannot_tell_what_is_about_the_papers():
    entry = entry_of((STAND_IN, LARGE), rules=(OF_DATA, SIZE))
    assert [rule.holds for rule in entry.rules] == [None, True]
    assert entry.rules[0].measured == "not measured: this is about movielens-1m"
    assert entry.verdict == "agrees in part"
    assert entry_of((DONE, LARGE), rules=(OF_DATA, SIZE)).verdict == "agrees"


@pytest.mark.parametrize(
    ("runs", "private", "data"),
    [
        ([DONE, DONE], "", "real"),
        ([DONE, STAND_IN], "", "stand-in"),
        ([DONE, DONE], "not public", "stand-in"),
        ([STAND_IN, replace(DONE, status="no data")], "", "none"),
        ([replace(DONE, dataset=None), DONE], "", "real"),
        ([replace(DONE, dataset=None)] * 2, "", "simulated"),
    ],
)
def test_a_figures_data_are_as_good_as_the_worst_of_its_runs(runs, private, data):
    assert entry_of(*((run, LARGE) for run in runs), private=private).data == data
