"""The page and the pictures of ``freqsgd paper``."""

from __future__ import annotations

import copy
import json
import re

import pytest

pytest.importorskip("plotly", reason='needs plotly: pip install "freqsgd[cli]"')
pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "freqsgd[cli]"')

from freqsgd.errors import DataError
from freqsgd.paper import experiments
from freqsgd.report.old import write_paper
from freqsgd.report.old.paper import read_paper
from freqsgd.report.old.paper_charts import MAKERS, charts_of
from freqsgd.report.old.paper_here import SAY
from freqsgd.report.old.paper_sections import paper_pictures
from freqsgd.report.old.paper_words import headline, summarize
from freqsgd.report.old.picture_known import check_known
from tests.report.made_up import HOSTILE, make_results, make_run, make_tuned, plain
from tests.report.made_up_inspection import make_inspection
from tests.report.made_up_one_pass import LEVELS
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

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
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


def said(document, folder) -> dict[str, str]:
    return {each.topic: plain(each.text) for each in summarize(read_paper(document, folder))}


def tiles(document, folder) -> dict[str, str]:
    return {
        tile.title: plain(f"{tile.value}: {tile.note}")
        for tile in headline(read_paper(document, folder))
    }


def section(page: str, name: str) -> Elements:
    """One part of a page."""
    return Elements(page.split(f'<section id="{name}">')[1].split("</section>")[0])


def rows(page: str, name: str) -> list[list[str]]:
    """The cells of all tables of a section that can be sorted, row by row."""
    part = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    tables = re.findall(r'<table class="sortable.*?</table>', part)
    cells = (re.findall(r"<t[hd].*?</t[hd]>", row) for table in tables
             for row in re.findall(r"<tr>.*?</tr>", table))  # fmt: skip
    return [[Elements(cell).text for cell in row] for row in cells]


def charts(page: str) -> list[dict[str, str]]:
    return [entry for entry in Elements(page).of("div") if entry.get("class") == "chart"]


def drawn(page: str) -> dict[str, dict]:
    """The charts of a page by name, as the browser gets them."""
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    return json.loads(data)


def pictures(document, folder):
    paper = read_paper(document, folder)
    return paper_pictures(paper, {each.name: charts_of(paper, each) for each in paper.figures})


def test_every_figure_has_a_section_with_claim_verdict_questions_and_command(folder):
    page = page_of(make_paper(), folder)
    for name, (number, title, runs) in FIGURES.items():
        part = section(page, name)
        assert part.text.startswith(f"{number}: {title}")
        for words in (
            f"The paper says this of {name}.",
            "✓ agrees (2 of 2 rules hold)",
            f"✓ holds{'the run ' + runs[0] if len(runs) > 1 else ''}question 0 of {name}",
            f"question 1 of {name}measured 1 of {name}",
            f"To do it againfreqsgd paper --only {name}",
            *(f"The run {run}Done in 12 s." for run in runs),
            *(f"freqsgd something --out {run}" for run in runs),
        ):
            assert words in part.text, name
        assert "nothing was measured" not in part.text
        links = {entry["href"] for entry in part.of("a")}
        assert {f"runs/{run}/report.html" for run in runs} <= links
    assert "freqsgd paper --out paper" in Elements(page).text
    assert "Made-up CPU · cores: 2 · threads: 2" in Elements(page).text


def test_the_verdict_table_tells_of_each_figure_and_leads_to_it(folder):
    paper = make_paper(
        make_figure("fig1", True, True, data="stand-in"),
        make_figure("fig2", True, False, None, verdict="agrees in part"),
        make_figure("fig3cd", False, False, verdict="differs"),
        make_figure("table3", None, None, verdict="not measured", data="none"),
        make_figure("theory", True, data="simulated"),
        runs={"ml-tokens": {"stand_in": True}, "criteo-tuned": MISSING},
    )
    page = page_of(paper, folder)
    assert rows(page, "figures") == [
        ["Figure", "Verdict", "Rules that hold", "What it shows", "Data"],
        ["Figure 1", "✓ agrees, on generated data", "2 of 2", FIGURES["fig1"][1],
         "generated, a stand-in for movielens-1m"],
        ["Figure 2", "◐ agrees in part", "1 of 3", FIGURES["fig2"][1], "movielens-1m"],
        ["Figure 3c-d", "✗ differs", "0 of 2", FIGURES["fig3cd"][1], "criteo"],
        ["Table 3", f"{DASH} not measured", "0 of 2", FIGURES["table3"][1], "criteo: missing"],
        ["Theorems 1-3, corollaries", "✓ agrees", "1 of 1", FIGURES["theory"][1], "simulated"],
    ]  # fmt: skip
    links = [entry["href"] for entry in section(page, "figures").of("a")]
    assert links == ["#fig1", "#fig2", "#fig3cd", "#table3", "#theory"]
    names = [entry["id"] for entry in Elements(page).of("section") if "id" in entry]
    assert names == ["figures", "fig1", "fig2", "fig3cd", "table3", "theory"]


def test_answers_stand_beside_their_questions_and_runs(folder):
    figure = make_figure("fig2", True, False, None, verdict="agrees in part")
    part = section(page_of(make_paper(figure), folder), "fig2")
    assert (
        "AnswerRunRuleMeasured"
        "✓ holdsthe run ml-fmquestion 0 of fig2measured 0 of fig2"
        "✗ does not holdthe run ml-deepfmquestion 1 of fig2measured 1 of fig2"
        f"{DASH} not measuredthe run ml-fmquestion 2 of fig2measured 2 of fig2"
    ) in part.text
    assert "◐ agrees in part (1 of 3 rules hold)" in part.text


def test_the_summary_counts_verdicts_and_names_the_figures(folder):
    paper = make_paper(
        make_figure("fig1"),
        make_figure("memory"),
        make_figure("table1", data="stand-in"),
        make_figure("fig2", verdict="agrees in part"),
        make_figure("fig5", verdict="differs"),
        make_figure("table3", verdict="not measured"),
    )
    assert said(paper, folder)["Agreement"] == (
        "Agree: 3 (Figure 1; Section 4, memory; Figure 4c-d, Table 1, on generated data). "
        "Agree in part: 1 (Figure 2). Differ: 1 (Figure 5). Could not be measured: 1 (Table 3)."
    )
    assert tiles(paper, folder)["Figures and tables that agree"] == (
        "3 of 6: 1 agree in part, 1 differ and 1 could not be measured"
    )


def test_the_summary_tells_what_the_runs_measured(folder):
    words = said(make_paper(), folder)
    curves = {name: [epoch["val_auc"] for epoch in make_run(name)["epochs"]]
              for name in ("sgd", "cfsgd")}  # fmt: skip
    best = max(curves["sgd"])
    reached = next(epoch for epoch, auc in enumerate(curves["cfsgd"], 1) if auc >= best)
    last = curves["sgd"].index(best) + 1
    assert (reached, last) == (6, 25)
    assert words["Against SGD"].count(f"in epoch {reached} (SGD {last})") == 4
    assert "14 runs" in words["Compared"]
    assert "CF-SGD keeps 130 times less" in words["Against Adam"]  # 5,067,920 bytes over 39,000
    assert "SGD none, CF-SGD 39.0 kB and Adam 5.07 MB" in words["Memory"]
    own, its = (LEVELS[name][0] - 0.001 for name in ("cfsgd", "adagrad"))
    assert f"CF-SGD {100 * (1 - own / its):.3f}% lower" in words["One pass"]
    assert words["Word vectors"].count("test loss: Adam 5.5204, CF-SGD 5.5518 and SGD 6.0779") == 2
    assert tiles(make_paper(), folder)["CF-SGD as good as SGD's best"] == (
        "epoch 6: after 2.2 s; SGD: epoch 25, 8.2 s (the run ml-fm)"
    )
    assert tiles(make_paper(), folder)["Sizes"] == "Quick: 14 of 14 runs done in 7 min 0 s"


def test_what_cfsgd_never_reaches_is_said(tmp_path):
    slow = make_run("cfsgd")
    for epoch in slow["epochs"]:
        epoch["val_auc"] -= 0.1
    write_runs(tmp_path, {"ml-fm": make_results(make_run("sgd"), slow)})
    paper = make_paper(make_figure("memory"))
    assert "the run ml-fm never (SGD 25)" in said(paper, tmp_path)["Against SGD"]
    assert tiles(paper, tmp_path)["CF-SGD as good as SGD's best"].startswith("never: ")
    assert "takes CF-SGD" not in Elements(page_of(paper, tmp_path)).text


def test_a_stand_in_is_said_to_be_one_wherever_it_is_shown(folder):
    paper = make_paper(
        make_figure("fig2", data="stand-in"),
        make_figure("fig3cd"),
        runs={"ml-fm": {"stand_in": True, "why": "freqsgd data get movielens-1m downloads it"}},
    )
    page = page_of(paper, folder)
    part = section(page, "fig2")
    assert "Generated data stand in for those of the paper." in part.text
    assert "✓ agrees, on generated data" in part.text
    titles = re.findall(r"<h3>(.*?)</h3>", page)
    assert [each for each in titles if each.startswith("Validation AUC: ")] == [
        "Validation AUC: the run ml-fm (stand-in: generated data)",  # the first that is seen
        "Validation AUC: the run ml-fm (stand-in: generated data)",
        "Validation AUC: the run ml-deepfm",
        "Validation AUC: the run criteo-fm",
    ]
    words = said(paper, folder)
    assert "Generated data stand in for those of the paper in Figure 2" in words["Read with care"]
    assert "the run ml-fm (stand-in: generated data) in epoch 6" in words["Against SGD"]
    assert "(stand-in: generated data)" in tiles(paper, folder)["Optimizer state of CF-SGD"]
    shown = pictures(paper, folder)
    assert shown["fig2"].title == (
        "Figure 2: MovieLens-1M, FM and DeepFM (stand-in: generated data)"
    )
    assert shown["fig3cd"].title == "Figure 3c-d: Criteo, FM"
    assert "stand-in" not in section(page, "fig3cd").text


def test_private_data_are_said_to_be_generated(folder):
    figure = make_figure("table1", data="stand-in", private="The examples are not public.")
    part = section(page_of(make_paper(figure), folder), "table1")
    assert "DataThe examples are not public: these are generated." in part.text


def test_missing_data_are_shown_with_how_to_get_them(folder):
    figures = (make_figure("table3", None, verdict="not measured", data="none"),
               make_figure("memory"))  # fmt: skip
    paper = make_paper(*figures, runs={"criteo-tuned": MISSING})
    page = page_of(paper, folder)
    part = section(page, "table3")
    how = "By hand: get it from https://criteo.example and put it at data."
    assert "Herenothing was measured." in part.text
    assert f"MissingThe run criteo-tuned: criteo is not here. {how}" in part.text
    assert "No data: criteo is not here" in part.text
    assert [entry for entry in part.of("a") if "report" in entry["href"]] == []
    assert "As pictures" not in part.text
    assert said(paper, folder)["Missing"] == (
        f"The run criteo-tuned (no data): criteo is not here. {how}"
    )
    assert list(pictures(paper, folder)) == ["memory"]
    assert "Missing" not in said(make_paper(), folder)


def test_a_run_cut_short_shows_what_it_has_and_says_so(tmp_path):
    begun = make_results(make_run("sgd"), make_run("cfsgd", epochs=[], best_epoch=None))
    write_runs(tmp_path, {"criteo-fm": begun})
    stopped = {"status": "out of time", "why": "stopped after 60 s; the same command goes on"}
    paper = make_paper(make_figure("fig3cd"), runs={"criteo-fm": stopped})
    page = page_of(paper, tmp_path)
    told = "stopped after 60 s; the same command goes on."
    assert f"Out of time in 12 s: {told}" in section(page, "fig3cd").text
    assert said(paper, tmp_path)["Cut short"] == f"The run criteo-fm (out of time): {told}"
    names = [entry["data-figure"] for entry in charts(page)]
    assert "fig3cd-0-validation" in names
    assert tiles(paper, tmp_path)["Sizes"] == "Quick: 0 of 1 run done in 7 min 0 s"
    assert "Cut short" not in said(make_paper(make_figure("fig3cd")), tmp_path)


def test_nothing_at_all_is_a_page_too(tmp_path):
    entry = {"status": "not asked", "why": "", "document": None, "report": None, "seconds": None}
    figures = [make_figure(name, None, verdict="not measured") for name in FIGURES]
    runs = dict.fromkeys((run for _, _, names in FIGURES.values() for run in names), entry)
    paper = make_paper(*figures, runs=runs)
    page = page_of(paper, tmp_path)
    assert said(paper, tmp_path)["Compared"] == "Nothing has been run yet."
    assert said(paper, tmp_path)["Missing"].count("(not asked)") == 14
    names = [entry["data-figure"] for entry in charts(page)]
    assert names == ["fig1-exponential", "fig1-polynomial"]  # which need no data
    assert "None" not in Elements(page).text


def test_what_is_smaller_than_in_the_paper_is_said_under_its_figure(folder):
    less = {"ml-fm": {"smaller": "at most 27 epochs"}, "ml-deepfm": {"smaller": "6 epochs."}}
    paper = make_paper(make_figure("fig2"), runs=less)
    text = section(page_of(paper, folder), "fig2").text
    assert "Done in 12 s. Smaller than in the paper: at most 27 epochs." in text
    assert "Done in 12 s. Smaller than in the paper: 6 epochs.I" in text  # one full stop
    assert "2 runs are smaller than in the paper" in said(paper, folder)["Read with care"]
    assert "--full has larger ones" in said(paper, folder)["Read with care"]
    paper["mode"] = "full"
    assert "2 runs are smaller than in the paper" in said(paper, folder)["Read with care"]
    assert "--full" not in said(paper, folder)["Read with care"]


def test_table_1_has_the_evaluation_ne_and_its_difference(folder):
    head, *lines = rows(page_of(make_paper(make_figure("table1")), folder), "table1")
    assert head[:3] == ["Optimizer", "Evaluation NE", "Against Adagrad, %"]
    nes = {name: LEVELS[name][0] - 0.001 for name in ("sgd", "cfsgd", "adagrad", "rowwise-adagrad")}
    for line, ne in zip(lines, nes.values(), strict=True):
        assert float(line[1]) == pytest.approx(ne, abs=1e-5)
        if line[0] != "Adagrad":
            apart = 100 * (ne / nes["adagrad"] - 1)
            assert float(line[2].replace(MINUS, "-")) == pytest.approx(apart, abs=1e-3)
    assert [line[0] for line in lines] == ["SGD", "CF-SGD", "Adagrad", "Row-wise Adagrad"]


def test_tables_2_and_3_have_the_papers_rates_beside_those_found(tmp_path):
    studies = [
        {"optimizer": name, "best": {"number": 3, "value": 0.8, "params": {"lr": lr}}}
        for name, lr in (("sgd", 2.5), ("adam", 0.004))
    ]
    write_runs(tmp_path, {"ml-tuned": make_tuned(*studies)})
    rates = {"fm": {"sgd": 10.0, "adam": 0.001}, "deepfm": {"sgd": 0.01, "adam": 0.002}}
    page = page_of(make_paper(make_figure("table2", rates=rates)), tmp_path)
    head, *lines = rows(page, "table2")
    table = [dict(zip(head, line, strict=True)) for line in lines]
    assert [line["Optimizer"] for line in table] == ["SGD", "Adam"]
    assert [line["FM, in the paper"] for line in table] == ["10", "0.001"]
    assert [line["FM, found here"] for line in table] == ["2.5", "0.004"]
    assert [line["Times apart"] for line in table] == ["4.0", "4.0"]
    assert [line["DeepFM, in the paper"] for line in table] == ["0.01", "0.002"]
    assert "best learning rates, with their validation AUC: SGD 2.5 (0.8000)" in plain(
        section(page, "table2").text
    )


def test_the_memory_table_has_bytes_and_their_share(folder):
    _, *lines = rows(page_of(make_paper(make_figure("memory")), folder), "memory")
    assert [line[:2] + line[3:] for line in lines] == [
        ["SGD", "0", "0"],
        ["CF-SGD", "39,000", "0.0154"],
        ["Adam", "5,067,920", "2"],
    ]


def test_every_chart_is_named_once_described_and_has_its_data(folder):
    page = page_of(make_paper(), folder)
    found = charts(page)
    assert len({entry["id"] for entry in found}) == len(found) == len(drawn(page)) == 30
    assert all(entry["role"] == "img" for entry in found)
    assert all(len(entry["aria-label"] or "") > 40 for entry in found)
    simulated = [entry for entry in found if "improvement" in entry["id"]]
    assert len(simulated) == 4  # their numbers are in the runs' own reports
    assert page.count("<summary>Data</summary>") == len(found) - 4
    for name in FIGURES:
        assert f"chart-{name}-" in " ".join(entry["id"] for entry in found)


def test_appendix_c_has_the_first_28_fields(tmp_path):
    write_runs(tmp_path, {"criteo-tokens": make_documents(fields=39)["criteo-tokens"]})
    page = page_of(make_paper(make_figure("appendix-c")), tmp_path)
    titles = re.findall(r"<h3>(C\d+): the run criteo-tokens</h3>", page)
    assert titles == [f"C{place}" for place in range(1, 29)]
    assert 'class="charts small"' in page


def test_the_legend_has_each_optimizer_once_and_charts_refer_to_it(folder):
    page = page_of(make_paper(), folder)
    labels = re.findall(r'<button [^>]*data-run="(\d+)".*?</svg>(.*?)<', page)
    assert [name for _, name in labels] == [
        "SGD", "FA-SGD", "CF-SGD", "Adagrad", "Row-wise Adagrad", "Adam",
    ]  # fmt: skip
    assert [int(place) for place, _ in labels] == list(range(6))
    found = drawn(page)
    for name in ("fig2-0-validation", "fig2-1-validation", "fig5-1-validation", "leading"):
        traces = found[name]["data"]
        assert {trace["name"]: trace["meta"]["run"] for trace in traces}.items() <= {
            "SGD": 0, "CF-SGD": 2, "Adagrad": 3, "Adam": 5,
        }.items()  # fmt: skip
        assert len(traces) >= 3


def test_the_formulas_of_figure_1_sum_to_one_and_fall_as_they_say(folder):
    found = drawn(page_of(make_paper(make_figure("fig1")), folder))
    exponential, polynomial = (
        found[f"fig1-{family}"]["data"][0]["y"] for family in ("exponential", "polynomial")
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
    names = {
        "paper-fig1-counts.png", "paper-fig1-tails.png", "paper-memory.png",
        "paper-theory-exponential.png", "paper-theory-polynomial.png",
    }  # fmt: skip
    assert {each.name for each in tmp_path.glob("*.png")} == names
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in tmp_path.glob("*.png"))
    page = Elements((tmp_path / "paper.html").read_text())
    assert {entry["href"] for entry in page.of("a") if entry["href"].endswith(".png")} == names


def test_every_picture_can_be_drawn(folder):
    found = pictures(make_paper(), folder)
    assert list(found) == [
        "fig1-tails", "fig1-counts", "fig2", "fig3ab", "fig3cd", "fig4ab", "table1", "table2",
        "table3", "memory", "fig5", "appendix-c", "theory-exponential", "theory-polynomial",
    ]  # fmt: skip
    for picture in found.values():
        for panel in picture.panels:
            check_known(panel.figure.to_plotly_json())


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"schema": 1, "runs": [',
        "[]",
        "null",
        "{}",
        json.dumps(make_theory()),
        json.dumps(make_inspection()),
        json.dumps({"schema": 1, "runs": []}),
        json.dumps({"schema": 2, "runs": [make_run("sgd")]}),
        json.dumps(make_results(make_run("sgd", epochs=[]), make_run("cfsgd", epochs=[]))),
    ],
    ids=["empty", "cut", "list", "null", "bare", "theory", "tokens", "none", "schema", "unbegun"],
)
def test_a_broken_document_takes_nothing_else_with_it(tmp_path, content):
    write_runs(tmp_path, {"ml-fm": content, "ml-deepfm": make_results()})
    page = page_of(make_paper(make_figure("fig2")), tmp_path)
    names = [entry["data-figure"] for entry in charts(page)]
    assert names == ["leading", "fig2-1-training-loss", "fig2-1-validation"]
    text = section(page, "fig2").text
    assert "✓ holdsthe run ml-fmquestion 0 of fig2" in text  # as paper.json has it
    assert "The run ml-deepfm: best validation AUC" in text


@pytest.mark.parametrize("content", [None, '{"schema": 1, "ru'], ids=["missing", "damaged"])
def test_a_document_that_cannot_be_read_is_said_to_be(tmp_path, content):
    write_runs(tmp_path, {} if content is None else {"criteo-fm": content})
    paper = make_paper(make_figure("fig3cd"))
    told = "Its document, runs/criteo-fm/document.json, cannot be read."
    assert said(paper, tmp_path)["Missing"] == f"The run criteo-fm (done): {told}"
    assert told in section(page_of(paper, tmp_path), "fig3cd").text


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
    assert charts(page) == []
    assert "Its own report" not in Elements(page).text


def test_a_figure_or_a_run_that_nobody_knows_has_its_words(folder):
    stranger = make_figure("memory", name="fig9", number="Figure 9")
    paper = make_paper(stranger, make_figure("fig2"))
    del paper["runs"]["ml-deepfm"]
    page = page_of(paper, folder)
    assert "The paper says this of memory." in section(page, "fig9").text
    assert "question 0 of memory" in section(page, "fig9").text
    assert "ml-deepfmquestion 1 of fig2" in section(page, "fig2").text
    names = [entry["data-figure"] for entry in charts(page)]
    assert names == ["leading", "fig2-0-training-loss", "fig2-0-validation"]


def test_figures_of_one_name_can_be_told_apart(folder):
    page = Elements(page_of(make_paper(make_figure("fig3cd"), make_figure("fig3cd")), folder))
    names = [entry["id"] for entry in page.of("section") if "id" in entry]
    assert len(set(names)) == len(names) == 3
    assert {f"#{name}" for name in names[1:]} <= {entry["href"] for entry in page.of("a")}


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
        runs = figure["runs"]
        figure.update(hostile(figure), runs=runs)
    paper["runs"] = {name: hostile(run) for name, run in paper["runs"].items()}
    for name in ("command", "created", "machine"):
        paper[name] = hostile(paper[name])
    page = page_of(paper, tmp_path)
    elements = Elements(page)
    assert not elements.of("img")
    assert len(elements.of("script")) == 3
    attributes = {name for _, entry in elements.found for name in entry}
    assert all(re.fullmatch("[a-z-]+", name) and not name.startswith("on") for name in attributes)
    assert elements.text.count(HOSTILE) > 100
    assert len(charts(page)) == len(drawn(page)) == 30


def test_hostile_names_of_figures_and_runs_stay_within_their_attributes(folder):
    figure = make_figure("fig2", name=HOSTILE, runs=[HOSTILE])
    paper = make_paper(figure, runs={HOSTILE: {"document": HOSTILE, "report": HOSTILE}})
    elements = Elements(page_of({**paper, "mode": HOSTILE}, folder))
    assert not elements.of("img")
    (name,) = (
        entry["id"] for entry in elements.of("section") if entry.get("id", "figures") != "figures"
    )
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert f"#{name}" in [entry["href"] for entry in elements.of("a")]


def test_figures_that_were_not_asked_for_are_left_out(folder):
    runs = {name: {"status": "not asked", "document": None} for name in ("clicks", "ml-deepfm")}
    paper = make_paper(make_figure("fig2"), make_figure("table1"), make_figure("memory"), runs=runs)
    page = page_of(paper, folder)
    names = [entry["id"] for entry in Elements(page).of("section") if "id" in entry]
    assert names == ["figures", "memory"]
    text = Elements(page).text
    assert "Adam. Section 4, memory is below, with what the paper says and what 1 run" in text
    assert "1 of 1" in text
    assert "the run clicks" not in text


def test_every_figure_of_the_table_is_drawn_and_told():
    names = {figure.name for figure in experiments.FIGURES}
    assert MAKERS.keys() == names
    assert SAY.keys() == names
