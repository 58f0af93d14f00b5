"""The table of the paper's figures: commands that can be run, and words that agree with them."""

from __future__ import annotations

import re
import shlex

import pytest
from msgspec.structs import replace
from typer.main import get_command

from freqsgd.cli.app import app
from freqsgd.cli.options import words
from freqsgd.documents.results import Model, Results, Run
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.paper.experiments import FIGURES, RUNS
from freqsgd.paper.running import chosen_figures
from freqsgd.paper.tasks import WRITTEN, plan_task
from freqsgd.recommender.settings import preset
from freqsgd.tables.catalog import KNOWN, known_dataset

FIGURE = {figure.name: figure for figure in FIGURES}
WAYS = {
    f"{name}, {kind}": (run, kind, way)
    for name, run in RUNS.items()
    for kind in ("quick", "full", "stand_in")
    if (way := getattr(run, kind)) is not None
}
each_way = pytest.mark.parametrize(("run", "kind", "way"), WAYS.values(), ids=WAYS)


def parsed(command):
    """The values of all options of a command, which is not run."""
    known, arguments = get_command(app), command
    while hasattr(known, "list_commands"):
        name, *arguments = arguments
        known = known.get_command(None, name)
    with known.make_context(name, [*arguments, "--out", "out"]) as context:
        return context.params


def given(way):
    """The numbers that a command gives, by option."""
    return dict(re.findall(r"--(dim|epochs|trials) (\d+)", way.command))


def test_every_figure_and_table_of_the_paper_is_there():
    assert list(FIGURE) == [
        "fig1", "fig2", "fig3ab", "fig3cd", "fig4ab", "table1", "table2", "table3", "memory",
        "fig5", "appendix-c", "theory",
    ]  # fmt: skip
    assert FIGURE["table1"].number == "Figure 4c-d, Table 1"
    assert len({figure.number for figure in FIGURES}) == len(FIGURES)


def test_every_run_is_of_a_figure_and_every_figure_has_runs():
    assert {name for figure in FIGURES for name in figure.runs} == set(RUNS)
    for figure in FIGURES:
        assert figure.rules
        assert len({(run, rule.says) for run, rule in figure.rules}) == len(figure.rules)


@each_way
def test_a_command_is_understood_and_knows_its_dataset(run, kind, way):
    command = shlex.split(way.command)
    options = parsed(command)
    assert command[0] in WRITTEN
    if command[0] == "theory":
        assert options["tail"] in ("exponential", "polynomial", "uniform")
        return
    dataset = known_dataset(options["dataset"])
    assert (dataset.kind == "text") == (options.get("model") in ("cbow", "skipgram"))
    assert (dataset.kind == "stream") == (command[0] == "stream")
    assert set(words(options.get("optimizers") or "")) <= set(OPTIMIZERS)


@each_way
def test_data_are_those_that_a_run_names_and_a_stand_in_needs_none(run, kind, way):
    dataset = parsed(shlex.split(way.command)).get("dataset")
    if kind == "stand_in" or run.data is None:
        assert dataset is None or known_dataset(dataset).file is None
    else:
        assert dataset == run.data
        assert known_dataset(run.data).file is not None


@each_way
def test_a_budget_is_no_less_than_what_a_run_usually_takes(run, kind, way):
    assert 0 < way.usual <= way.budget


@each_way
def test_what_is_smaller_than_in_the_paper_is_said_with_its_numbers(run, kind, way):
    papers = {**given(run.full), "dim": "300" if "--loss" in way.command else "64"}
    for name, value in given(way).items():
        if value != papers.get(name):
            assert value in re.findall(r"\d+", way.smaller), name
    if kind == "stand_in" and "compare" in way.command:
        assert way.smaller.startswith("generated ")
    assert not way.smaller.endswith(".")  # the report ends the sentence


@each_way
def test_recommenders_end_by_the_papers_patience(run, kind, way):
    command = shlex.split(way.command)
    options = parsed(command)
    if command[0] not in ("compare", "tune"):
        return
    values = preset("paper", options["dataset"], options["model"], "sgd") or {}
    from_preset = values.get("patience") if command[0] == "compare" else None
    assert (options["patience"] if "--patience" in command else from_preset) == 2


def test_words_are_compared_at_the_papers_sizes():
    for name in ("cbow", "skipgram"):
        assert given(RUNS[name].full) == {"dim": "300", "epochs": "20"}
        for smaller in ("dimension 32 instead of 300", "epochs instead of 20"):
            assert smaller in RUNS[name].quick.smaller
            assert smaller in RUNS[name].stand_in.smaller


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_commands_take_what_is_added_to_them(full, there, tmp_path):
    for dataset in KNOWN if there else ():
        if dataset.file is not None:
            path = tmp_path / "data" / dataset.file  # the folder that conftest.py names
            path.parent.mkdir(parents=True)
            path.touch()
    given = ["--threads 2", "--seed 5"]
    tasks = {name: plan_task(name, run, full, given) for name, run in RUNS.items()}
    assert {task.name for task in tasks.values() if task.lacks} == (
        set() if there else {name for name, run in RUNS.items() if run.data and not run.stand_in}
    )
    for name, task in tasks.items():
        assert task.stand_in == (not there and RUNS[name].stand_in is not None)
        options = parsed([*task.command, *(["--resume"] if task.resumable else [])])
        assert options.get("threads", 2) == 2
        assert options.get("seed", 5) == 5


def test_a_stranger_to_the_command_line_would_be_noticed():
    with pytest.raises(Exception, match="No such option: --epoch"):
        parsed(["compare", "--dataset", "criteo", "--epoch", "3"])


@pytest.mark.parametrize(("name", "dataset"), [("table2", "movielens-1m"), ("table3", "criteo")])
def test_rates_in_claims_are_those_of_the_presets(name, dataset):
    optimizers = {"SGD": "sgd", "CF-SGD": "cfsgd", "Adagrad": "adagrad", "Adam": "adam"}
    paper = {shown: preset("paper", dataset, "fm", own)["lr"] for shown, own in optimizers.items()}
    figure = FIGURE[name]
    for text in (figure.claim, figure.brief):
        said = re.findall(r"(CF-SGD|SGD|Adagrad|Adam) ([\d.]*\d)", text)
        assert {shown: float(rate) for shown, rate in said} == paper
    asked = [rule.says for _, rule in figure.rules]
    assert asked == [
        f"the learning rate found here for {shown} is within a factor of 10 of the paper's {rate:g}"
        for shown, rate in paper.items()
    ]


def test_state_is_one_number_per_row_and_two_or_one_per_weight():
    rows, dim = 1000, 64
    weights = 4 * rows * (dim + 1)  # a vector and a linear weight, of four bytes each
    states = {"adam": 2 * weights, "adagrad": weights, "cfsgd": 4 * rows}
    runs = [Run(name, state_bytes=state, parameter_bytes=weights) for name, state in states.items()]
    for _, rule in FIGURE["memory"].rules:
        for order in (runs, runs[::-1]):
            assert rule.find(Results(1, tuple(order), model=Model(dim=dim))).holds is True
        larger = tuple(replace(run, state_bytes=3 * weights) for run in runs)
        assert rule.find(Results(1, larger, model=Model(dim=dim))).holds is False


def test_only_what_is_not_public_is_called_private():
    assert [figure.name for figure in FIGURES if figure.private] == ["table1"]
    assert "not public" in FIGURE["table1"].private


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["fig3"], ["fig3ab", "fig3cd"]),
        (["fig4"], ["fig4ab", "table1"]),
        (["fig4cd", "fig1"], ["fig1", "table1"]),
        (["all", "fig1"], [figure.name for figure in FIGURES]),
    ],
)
def test_figures_can_be_asked_for_by_the_papers_numbers(asked, found):
    assert [figure.name for figure in chosen_figures(asked)] == found
