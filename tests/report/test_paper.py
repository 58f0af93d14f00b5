"""The page and the pictures of ``freqsgd paper``."""

from __future__ import annotations

import copy
import json
import re

import pytest

pytest.importorskip("vl_convert", reason='needs vl-convert: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.paper import experiments
from freqsgd.report import write_paper
from freqsgd.report.page import render
from freqsgd.report.paper import CHARTS
from tests.report.made_up import HOSTILE, make_results, make_run, make_tuned, plain
from tests.report.made_up_inspection import make_inspection
from tests.report.made_up_paper import (
    FIGURES,
    make_documents,
    make_figure,
    make_paper,
    page_of,
    write_runs,
)
from tests.report.made_up_theory import make_theory
from tests.report.test_page import Elements

DASH = "\N{EN DASH}"
MISSING = {
    "status": "no data",
    "why": "criteo is not here. By hand: get it from https://criteo.example and put it at data.",
    "document": None,
    "report": None,
    "seconds": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the documents of all runs; nothing is written to it."""
    path = tmp_path_factory.mktemp("paper")
    write_runs(path)
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """The page of everything."""
    return page_of(make_paper(), folder)


def section(page, name):
    (found,) = (each for each in page.sections if each.name == name)
    return found


def rows(table) -> list[list[str]]:
    """A table's texts, its head first."""
    return [list(table.head), *([plain(cell.text) for cell in row] for row in table.rows)]


def rules(part) -> list[list[str]]:
    return rows(next(each for each in part.tables if each.title == "Rules"))


def runs(part) -> list[list[str]]:
    return rows(next(each for each in part.tables if each.folded == "Runs"))


def links(page) -> set[str]:
    tables = (table for part in page.sections for table in part.tables)
    return {cell.link for table in tables for row in table.rows for cell in row if cell.link}


def names(page) -> list[str]:
    return [chart.name for chart in page.charts]


def tile(page, title: str) -> str:
    return next(plain(f"{each.value}: {each.note}") for each in page.tiles if each.title == title)


def drawn(page, name: str) -> list[dict]:
    """The rows of a chart."""
    return next(chart for chart in page.charts if chart.name == name).spec["data"]["values"]


def test_every_figure_has_a_section_with_claim_verdict_questions_and_command(whole):
    for name, (number, title, its_runs) in FIGURES.items():
        part = section(whole, name)
        assert part.title == f"{number}: {title}"
        assert part.remarks == [
            f"The paper: The paper says this of {name}.",
            "Verdict: ✓ agrees (2 of 2 rules hold).",
        ]
        asked = [row[-2:] for row in rules(part)[1:]]
        assert asked == [[f"question {n} of {name}", f"measured {n} of {name}"] for n in (0, 1)]
        assert part.command == f"freqsgd paper --only {name}"
        assert [row[0] for row in runs(part)[1:]] == [f"The run {run}" for run in its_runs]
        assert {tuple(row[1:4]) for row in runs(part)[1:]} == {
            ("Done in 12 s", DASH, "Its own report")
        }
        assert {row[4] for row in runs(part)[1:]} == {
            f"freqsgd something --out {run}" for run in its_runs
        }
        assert {f"runs/{run}/report.html" for run in its_runs} <= links(whole)
    assert whole.sections[-1].command == "freqsgd paper --out paper"
    assert whole.made == ["Made-up CPU", "cores: 2", "threads: 2"]


def test_the_page_begins_with_a_chart_and_the_table_of_verdicts(whole):
    assert whole.sections[0].title == "How the optimizers learn"
    assert [chart.name for chart in whole.sections[0].charts] == ["leading"]
    assert whole.sections[1].name == "figures"


def test_the_verdict_table_tells_of_each_figure_and_leads_to_it(folder):
    page = page_of(
        make_paper(
            make_figure("fig1", True, True, data="stand-in"),
            make_figure("fig2", True, False, None, verdict="agrees in part"),
            make_figure("fig3cd", False, False, verdict="differs"),
            make_figure("table3", None, None, verdict="not measured", data="none"),
            make_figure("theory", True, data="simulated"),
            runs={"ml-tokens": {"stand_in": True}, "criteo-tuned": MISSING},
        ),
        folder,
    )
    (table,) = section(page, "figures").tables
    assert rows(table) == [
        ["Figure", "Verdict", "Rules that hold", "What it shows", "Data"],
        ["Figure 1", "✓ agrees, on generated data", "2 of 2", FIGURES["fig1"][1],
         "generated, a stand-in for movielens-1m"],
        ["Figure 2", "◐ agrees in part", "1 of 3", FIGURES["fig2"][1], "movielens-1m"],
        ["Figure 3c-d", "✗ differs", "0 of 2", FIGURES["fig3cd"][1], "criteo"],
        ["Table 3", f"{DASH} not measured", "0 of 2", FIGURES["table3"][1], "criteo: missing"],
        ["Theorems 1-3, corollaries", "✓ agrees", "1 of 1", FIGURES["theory"][1], "simulated"],
    ]  # fmt: skip
    shown = ["fig1", "fig2", "fig3cd", "table3", "theory"]
    assert [row[0].link for row in table.rows] == [f"#{name}" for name in shown]
    assert [part.name for part in page.sections if part.name] == ["figures", *shown]


def test_answers_stand_beside_their_questions_and_runs(folder):
    figure = make_figure("fig2", True, False, None, verdict="agrees in part")
    part = section(page_of(make_paper(figure), folder), "fig2")
    assert rules(part) == [
        ["Answer", "Run", "Rule", "Measured"],
        ["✓ holds", "the run ml-fm", "question 0 of fig2", "measured 0 of fig2"],
        ["✗ does not hold", "the run ml-deepfm", "question 1 of fig2", "measured 1 of fig2"],
        [f"{DASH} not measured", "the run ml-fm", "question 2 of fig2", "measured 2 of fig2"],
    ]
    assert "Verdict: ◐ agrees in part (1 of 3 rules hold)." in part.remarks


def test_the_tiles_count_verdicts_and_runs_and_are_those_of_the_main_run(folder, whole):
    paper = make_paper(
        make_figure("fig1"),
        make_figure("memory"),
        make_figure("table1", data="stand-in"),
        make_figure("fig2", verdict="agrees in part"),
        make_figure("fig5", verdict="differs"),
        make_figure("table3", verdict="not measured"),
    )
    assert tile(page_of(paper, folder), "Figures and tables that agree") == (
        "3 of 6: 1 agree in part, 1 differ and 1 could not be measured"
    )
    assert tile(whole, "CF-SGD as good as SGD's best") == (
        "epoch 6: 4.2 times fewer epochs and 3.8 times less time; SGD: epoch 25, 8.2 s "
        "(the run ml-fm)"
    )
    assert tile(whole, "Sizes") == "Quick: 14 of 14 runs done in 7 min 0 s"


def test_the_sentences_tell_what_is_not_as_in_the_paper(folder):
    changes = {"stand_in": True, "smaller": "less", "status": "out of time"}
    figures = [make_figure(name, data="stand-in") for name in FIGURES]
    page = page_of(make_paper(*figures, runs=dict.fromkeys(make_documents(), changes)), folder)
    stand_ins, smaller, missing = page.sentences
    assert stand_ins.startswith("Generated data stand in for those of the paper in Figure 1, ")
    assert smaller.startswith("Smaller than in the paper, as each figure says: 14 runs")
    assert missing.startswith("Not done: the run ml-tokens")


def test_what_cfsgd_never_reaches_is_said(tmp_path):
    slow = make_run("cfsgd")
    for epoch in slow["epochs"]:
        epoch["val_auc"] -= 0.1
    write_runs(tmp_path, {"ml-fm": make_results(make_run("sgd"), slow)})
    page = page_of(make_paper(make_figure("memory")), tmp_path)
    assert tile(page, "CF-SGD as good as SGD's best").startswith("never: ")
    assert page.sections[0].title == "How the optimizers learn"


def test_a_stand_in_is_said_to_be_one_wherever_it_is_shown(folder):
    paper = make_paper(
        make_figure("fig2", data="stand-in"),
        make_figure("fig3cd"),
        runs={"ml-fm": {"stand_in": True, "why": "freqsgd data get movielens-1m downloads it"}},
    )
    page = page_of(paper, folder)
    assert section(page, "fig2").remarks[1:] == [
        "Verdict: ✓ agrees, on generated data (2 of 2 rules hold).",
    ]
    titles = [chart.title for chart in page.charts]
    assert [each for each in titles if each.startswith("Validation AUC: ")] == [
        "Validation AUC: the run ml-fm (stand-in: generated data)",  # the first that is seen
        "Validation AUC: the run ml-fm (stand-in: generated data)",
        "Validation AUC: the run ml-deepfm",
        "Validation AUC: the run criteo-fm",
    ]
    words = " ".join(page.sentences)
    assert "Generated data stand in for those of the paper in Figure 2" in words
    assert "(stand-in: generated data)" in tile(page, "Optimizer state of CF-SGD")
    assert "stand-in" not in " ".join(section(page, "fig3cd").remarks)


def test_private_data_are_said_to_be_generated(folder):
    figure = make_figure("table1", data="stand-in", private="The examples are not public.")
    part = section(page_of(make_paper(figure), folder), "table1")
    assert part.remarks[-1] == "The examples are not public: these are generated."


def test_missing_data_are_shown_with_how_to_get_them(folder):
    figures = (make_figure("table3", None, verdict="not measured", data="none"),
               make_figure("memory"))  # fmt: skip
    page = page_of(make_paper(*figures, runs={"criteo-tuned": MISSING}), folder)
    part = section(page, "table3")
    how = "criteo is not here. By hand: get it from https://criteo.example and put it at data."
    assert part.remarks[1:] == [
        f"Verdict: {DASH} not measured.",
        f"Missing: the run criteo-tuned: {how}",
    ]
    assert runs(part)[1][1:4] == [f"No data: {how}".rstrip("."), DASH, DASH]
    assert page.sentences[-1] == "Not done: the run criteo-tuned; the figures say why."
    assert list(page.pictures) == ["memory"]


def test_a_run_cut_short_shows_what_it_has_and_says_so(tmp_path):
    begun = make_results(make_run("sgd"), make_run("cfsgd", epochs=[], best_epoch=None))
    write_runs(tmp_path, {"criteo-fm": begun})
    stopped = {"status": "out of time", "why": "stopped after 60 s; the same command goes on"}
    page = page_of(make_paper(make_figure("fig3cd"), runs={"criteo-fm": stopped}), tmp_path)
    told = "Out of time in 12 s: stopped after 60 s; the same command goes on"
    assert runs(section(page, "fig3cd"))[1][1] == told
    assert page.sentences[-1] == "Not done: the run criteo-fm; the figures say why."
    assert "fig3cd-0-validation" in names(page)
    assert tile(page, "Sizes") == "Quick: 0 of 1 run done in 7 min 0 s"


def test_nothing_at_all_is_a_page_too(tmp_path):
    entry = {"status": "not asked", "why": "", "document": None, "report": None, "seconds": None}
    figures = [make_figure(name, None, verdict="not measured") for name in FIGURES]
    changes = dict.fromkeys((run for _, _, each in FIGURES.values() for run in each), entry)
    page = page_of(make_paper(*figures, runs=changes), tmp_path)
    assert page.sentences[0] == "Nothing has been run yet."
    assert "Missing: the run clicks: not asked." in section(page, "table1").remarks
    assert names(page) == ["fig1-exponential", "fig1-polynomial"]  # which need no data
    assert "None" not in Elements(render(page)).text


def test_what_is_smaller_than_in_the_paper_is_said_under_its_figure(folder):
    less = {"ml-fm": {"smaller": "at most 27 epochs"}, "ml-deepfm": {"smaller": "6 epochs"}}
    paper = make_paper(make_figure("fig2"), runs=less)
    page = page_of(paper, folder)
    assert [row[2] for row in runs(section(page, "fig2"))] == [
        "Smaller than in the paper", "at most 27 epochs", "6 epochs",
    ]  # fmt: skip
    assert page.sentences[-1] == (
        "Smaller than in the paper, as each figure says: 2 runs; --full has larger ones."
    )
    paper["mode"] = "full"
    assert page_of(paper, folder).sentences[-1] == (
        "Smaller than in the paper, as each figure says: 2 runs."
    )


@pytest.mark.parametrize("name", ["table1", "fig5"])
def test_what_the_runs_of_a_figure_came_to_is_in_a_table(whole, name):
    tables = [each for each in section(whole, name).tables if each.label == "All runs"]
    assert [each.title for each in tables] == [f"The run {run}" for run in FIGURES[name][2]]
    for table in tables:
        assert {"SGD", "CF-SGD"} <= {row[0].text for row in table.rows}


def test_tables_2_and_3_have_the_papers_rates_beside_those_found(tmp_path):
    studies = [
        {"optimizer": name, "best": {"number": 3, "value": 0.8, "params": {"lr": lr}}}
        for name, lr in (("sgd", 2.5), ("adam", 0.004))
    ]
    write_runs(tmp_path, {"ml-tuned": make_tuned(*studies)})
    rates = {"fm": {"sgd": 10.0, "adam": 0.001}, "deepfm": {"sgd": 0.01, "adam": 0.002}}
    page = page_of(make_paper(make_figure("table2", rates=rates)), tmp_path)
    assert rows(section(page, "table2").tables[0]) == [
        ["Optimizer", "FM, in the paper", "FM, found here", "Times apart", "Its validation AUC",
         "DeepFM, in the paper"],
        ["SGD", "10", "2.5", "4.0", "0.8000", "0.01"],
        ["Adam", "0.001", "0.004", "4.0", "0.8000", "0.002"],
    ]  # fmt: skip


def test_every_chart_is_named_once_and_described(whole):
    found = whole.charts
    assert len({chart.name for chart in found}) == len(found)
    assert all(len(chart.description) > 40 for chart in found)
    for name in FIGURES:
        assert any(chart.name.startswith(f"{name}-") for chart in found), name
    assert sum("improvement" in chart.name for chart in found) == 4


def test_appendix_c_has_the_first_28_fields(tmp_path):
    write_runs(tmp_path, {"criteo-tokens": make_documents(fields=39)["criteo-tokens"]})
    part = section(page_of(make_paper(make_figure("appendix-c")), tmp_path), "appendix-c")
    assert "Dashed: the exponential tail" in part.charts[0].note
    assert [chart.title for chart in part.charts] == [
        f"C{place}: the run criteo-tokens" for place in range(1, 29)
    ]
    assert part.small


def test_the_legend_has_each_optimizer_once(whole):
    assert [one.label for one in whole.legend] == [
        "SGD", "FA-SGD", "CF-SGD", "Adagrad", "Row-wise Adagrad", "Adam",
    ]  # fmt: skip
    for name in ("fig2-0-validation", "fig2-1-validation", "fig5-1-validation", "leading"):
        assert {row["run"] for row in drawn(whole, name)} <= {one.label for one in whole.legend}


def test_the_formulas_of_figure_1_sum_to_one_and_fall_as_they_say(folder):
    page = page_of(make_paper(make_figure("fig1")), folder)
    exponential, polynomial = (
        [row["p"] for row in drawn(page, f"fig1-{family}")]
        for family in ("exponential", "polynomial")
    )
    assert sum(exponential) == pytest.approx(1)
    assert sum(polynomial) == pytest.approx(1)
    assert exponential[10] / exponential[0] == pytest.approx(2.718281828**-2)
    assert polynomial[9] / polynomial[0] == pytest.approx(1 / 100)


def test_pictures_are_written_beside_the_page_one_per_part_with_charts(tmp_path):
    chosen = ("ml-tokens", "ml-fm", "theory-exponential", "theory-polynomial", "theory-uniform")
    documents = make_documents()
    write_runs(tmp_path, {name: documents[name] for name in chosen})
    figures = [make_figure(name) for name in ("fig1", "memory", "table3", "theory")]
    paper = make_paper(*figures, runs={"criteo-tuned": MISSING})
    before = copy.deepcopy(paper)
    assert write_paper(paper, tmp_path) == tmp_path / "paper.html"
    assert paper == before
    expected = {
        "paper-fig1-counts.png", "paper-fig1-tails.png", "paper-memory.png",
        "paper-theory-exponential.png", "paper-theory-polynomial.png",
    }  # fmt: skip
    assert {each.name for each in tmp_path.glob("*.png")} == expected
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in tmp_path.glob("*.png"))
    page = Elements((tmp_path / "paper.html").read_text())
    hrefs = {entry["href"] for entry in page.of("a")}
    assert {each for each in hrefs if each.endswith(".png")} == expected


def test_every_figure_has_its_pictures(whole):
    assert list(whole.pictures) == [
        "fig1-tails", "fig1-counts", "fig2", "fig3ab", "fig3cd", "fig4ab", "table1", "table2",
        "table3", "memory", "fig5", "appendix-c", "theory-exponential", "theory-polynomial",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"schema": 1, "runs": [',
        "[]",
        "null",
        "{}",
        json.dumps({"schema": 1, "kind": "planner"}),
        json.dumps(make_theory()),
        json.dumps(make_inspection()),
        json.dumps({"schema": 1, "runs": []}),
        json.dumps({"schema": 2, "runs": [make_run("sgd")]}),
        json.dumps(make_results(make_run("sgd", epochs=[]), make_run("cfsgd", epochs=[]))),
    ],
    ids=["empty", "cut", "list", "null", "bare", "kind", "theory", "tokens", "none", "schema",
         "unbegun"],
)  # fmt: skip
def test_a_broken_document_takes_nothing_else_with_it(tmp_path, content):
    write_runs(tmp_path, {"ml-fm": content, "ml-deepfm": make_results()})
    page = page_of(make_paper(make_figure("fig2")), tmp_path)
    assert names(page) == ["leading", "fig2-1-validation", "fig2-1-training-loss"]
    answer = ["✓ holds", "the run ml-fm", "question 0 of fig2", "measured 0 of fig2"]
    assert rules(section(page, "fig2"))[1] == answer  # as paper.json has it


@pytest.mark.parametrize("content", [None, '{"schema": 1, "ru'], ids=["missing", "damaged"])
def test_a_document_that_cannot_be_read_is_said_to_be(tmp_path, content):
    write_runs(tmp_path, {} if content is None else {"criteo-fm": content})
    part = section(page_of(make_paper(make_figure("fig3cd")), tmp_path), "fig3cd")
    assert part.remarks[-1] == (
        "Missing: the run criteo-fm: Its document, runs/criteo-fm/document.json, cannot be read."
    )


@pytest.mark.parametrize("way", ["../outside/{}", "{}", "runs/../../outside/{}"])
def test_only_what_is_below_the_page_is_read_and_linked(tmp_path, way):
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside").mkdir()
    secret = tmp_path / "outside/document.json"
    secret.write_text(json.dumps(make_results()))
    path = way.format("document.json" if ".." in way else secret)
    paper = make_paper(
        make_figure("fig3cd"), runs={"criteo-fm": {"document": path, "report": path}}
    )
    page = page_of(paper, tmp_path / "inside")
    assert names(page) == []
    assert links(page) == {"#fig3cd"}


def test_a_figure_or_a_run_that_nobody_knows_has_its_words(folder):
    stranger = make_figure("memory", name="fig9", number="Figure 9")
    paper = make_paper(stranger, make_figure("fig2"))
    del paper["runs"]["ml-deepfm"]
    page = page_of(paper, folder)
    assert section(page, "fig9").remarks[0] == "The paper: The paper says this of memory."
    assert rules(section(page, "fig9"))[1][1] == "question 0 of memory"
    assert rules(section(page, "fig2"))[2][1:3] == ["ml-deepfm", "question 1 of fig2"]
    assert names(page) == ["leading", "fig2-0-validation", "fig2-0-training-loss"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "theory"}, "give the file that freqsgd paper wrote"),
        ({"schema": 2}, '"schema" is 2'),
        ({"figures": []}, r"paper.json: .*`\$\.figures`"),
        ({"figures": ["fig1"]}, r"at `\$\.figures\[0\]`"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(tmp_path, changes, words):
    with pytest.raises(DataError, match=words):
        write_paper(make_paper(**changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def hostile(value):
    """The same with every string replaced, but for what names places and kinds."""
    kept = ("kind", "document", "report", "verdict", "data", "name", "runs", "run", "mode")
    if isinstance(value, dict):
        return {key: each if key in kept and isinstance(each, str) else hostile(each)
                for key, each in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def test_strings_from_outside_stay_text(tmp_path):
    documents = make_documents()
    documents["ml-fm"]["runs"][0]["optimizer"] = HOSTILE
    documents["ml-tokens"]["fields"][0]["name"] = HOSTILE
    documents["ml-tuned"]["tuning"]["studies"][0]["optimizer"] = HOSTILE
    documents["theory-exponential"]["runs"][0]["optimizer"] = HOSTILE
    write_runs(tmp_path, documents)
    paper = make_paper()
    for figure in paper["figures"]:
        figure.update(hostile(figure), runs=figure["runs"])
    paper["runs"] = {name: hostile(run) for name, run in paper["runs"].items()}
    for name in ("command", "created", "machine"):
        paper[name] = hostile(paper[name])
    elements = Elements(render(page_of(paper, tmp_path)))
    assert not elements.of("img")
    assert len(elements.of("script")) == 3
    attributes = {name for _, entry in elements.found for name in entry}
    assert all(re.fullmatch("[a-zA-Z-]+", name) and name[:2] != "on" for name in attributes)
    assert elements.text.count(HOSTILE) > 100


def test_hostile_names_of_figures_and_runs_stay_within_their_attributes(folder):
    paper = make_paper(runs={HOSTILE: {"document": HOSTILE, "report": HOSTILE}})
    page = page_of({**paper, "mode": HOSTILE}, folder)
    assert not Elements(render(page)).of("img")
    with pytest.raises(DataError, match="regex"):
        page_of(make_paper(make_figure("fig2", name=HOSTILE)), folder)


def test_figures_that_were_not_asked_for_are_left_out(folder):
    changes = {name: {"status": "not asked", "document": None} for name in ("clicks", "ml-deepfm")}
    figures = (make_figure("fig2"), make_figure("table1"), make_figure("memory"))
    page = page_of(make_paper(*figures, runs=changes), folder)
    assert [part.name for part in page.sections if part.name] == ["figures", "memory"]
    assert tile(page, "Figures and tables that agree").startswith("1 of 1")


def test_every_figure_of_the_table_has_charts():
    assert CHARTS.keys() == {figure.name for figure in experiments.FIGURES}
