"""The page of ``freqsgd paper`` in a browser."""

from __future__ import annotations

import pytest

from tests.report.made_up import HOSTILE, make_results
from tests.report.made_up_paper import (
    FIGURES,
    make_documents,
    make_figure,
    make_paper,
    page_of,
    write_runs,
)
from tests.report.old.conftest import wait_until

pytestmark = pytest.mark.ci

ALIKE = "[...document.querySelectorAll('.chart')].every(chart => chart.data.every(trace => {}))"
RIGHT_EDGES = """[...document.querySelectorAll(".main-svg, .card, .controls, h1, h2, footer")]
    .map(element => element.getBoundingClientRect().right)"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page of a whole paper, in which verdicts are mixed."""
    folder = tmp_path_factory.mktemp("paper")
    write_runs(folder, make_documents(fields=28))
    verdicts = {"fig2": "differs", "table1": "not measured", "fig5": "agrees in part"}
    figures = [
        make_figure(name, *[name != "fig2"] * 4, verdict=verdicts.get(name, "agrees"))
        for name in FIGURES
    ]
    path = folder / "paper.html"
    path.write_text(page_of(make_paper(*figures), folder), encoding="utf-8")
    return path


def first_column(page) -> list[str]:
    return page.locator("#figures tbody th").all_inner_texts()


def test_every_chart_is_drawn_and_nothing_is_loaded(open_file, written):
    page = open_file(written)
    assert page.locator(".chart").count() == 55
    for chart, traces in (
        ("leading", 3),
        ("fig1-exponential", 1),
        ("fig1-0-ranks-0", 3),
        ("fig2-1-validation", 4),
        ("fig5-0-validation", 3),
        ("appendix-c-0-ranks-27", 3),
    ):
        assert page.locator(f"#chart-{chart} .scatterlayer .trace").count() == traces, chart
    assert page.locator("#chart-memory-0-state .barlayer .point").count() == 3
    empty = "[...document.querySelectorAll('.chart')].filter(c => !c.querySelector('.main-svg'))"
    assert page.evaluate(f"{empty}.length") == 0


def test_the_legend_hides_one_optimizer_in_all_charts_and_shows_it_again(open_file, written):
    page = open_file(written)
    button = page.get_by_role("button", name="Adam", exact=True)
    place = button.get_attribute("data-run")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    wait_until(page, ALIKE.format(f"trace.visible === (trace.meta.run !== {place})"))
    gone = """[...document.querySelectorAll('.chart')].filter(
        chart => chart.data.some(trace => !trace.visible)).map(chart => chart.id)"""
    hidden = page.evaluate(gone)
    for name in ("leading", "fig2-0-validation", "fig2-1-training-loss", "fig3ab-0-moments-2",
                 "fig5-1-validation", "memory-0-state", "table2-0-learning-rates"):  # fmt: skip
        assert f"chart-{name}" in hidden
    assert "chart-fig1-0-ranks-0" not in hidden
    assert page.locator("#chart-fig2-1-validation .scatterlayer .trace").count() == 3
    button.click()
    wait_until(page, ALIKE.format("trace.visible"))
    assert page.locator("#chart-fig2-1-validation .scatterlayer .trace").count() == 4


def test_one_choice_puts_all_curves_on_seconds(open_file, written):
    page = open_file(written)
    title = "name => document.querySelector(`#chart-${name} .xtitle`).textContent"
    last = "name => document.getElementById(`chart-${name}`).data.map(trace => trace.x.at(-1))"
    runs = make_results()["runs"]
    curves = ("fig2-1-validation", "fig3cd-0-training-loss", "fig4ab-0-validation")
    for name in curves:
        assert page.evaluate(title, name) == "epoch"
        assert page.evaluate(last, name) == [run["epochs"][-1]["epoch"] for run in runs]
    ranks = page.evaluate(title, "fig1-0-ranks-0")
    page.get_by_role("radio", name="epochs").focus()
    page.keyboard.press("ArrowRight")
    for name in ("leading", *curves, "fig5-1-validation", "table1-0-difference"):
        wait_until(
            page,
            f"document.querySelector('#chart-{name} .xtitle').textContent.startsWith('seconds of')",
        )
    for name in curves:
        assert page.evaluate(last, name) == [run["epochs"][-1]["seconds"] for run in runs]
    assert page.evaluate(title, "fig1-0-ranks-0") == ranks == "rank"


def test_the_verdict_table_sorts_and_its_links_lead_to_figures(open_file, written):
    page = open_file(written)
    numbers = [number for number, _, _ in FIGURES.values()]
    assert first_column(page) == numbers
    header = page.locator("#figures th", has_text="Verdict")
    header.locator("button").focus()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    last = ["Figure 5", "Figure 2", "Figure 4c-d, Table 1"]  # in part, differs, not measured
    agree = [number for number in numbers if number not in last]
    assert first_column(page) == [*agree, *last]
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "descending"
    assert first_column(page) == [*last[::-1], *agree]
    page.locator("#figures th button", has_text="Rules that hold").click()
    assert first_column(page)[0] == "Figure 2"  # of which nothing holds
    page.locator("#figures th button").first.click()
    assert first_column(page) == numbers
    page.locator("#figures").get_by_role("link", name="Figure 5").click()
    assert page.evaluate("location.hash") == "#fig5"
    wait_until(page, "Math.abs(document.querySelector('#fig5').getBoundingClientRect().top) < 200")


def test_tables_of_numbers_sort_too(open_file, written):
    page = open_file(written)
    names = page.locator("#memory tbody th[data-value]")
    page.locator("#memory th button", has_text="State, bytes").click()
    assert names.all_inner_texts() == ["Adam", "CF-SGD", "SGD"]
    page.locator("#memory th button", has_text="State, bytes").click()
    assert names.all_inner_texts() == ["SGD", "CF-SGD", "Adam"]


def test_nothing_sticks_out_of_a_wide_or_a_narrow_screen(open_file, written):
    page = open_file(written, viewport={"width": 1280, "height": 800})
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"Math.max(...{RIGHT_EDGES}) <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    beside = "(cards => cards.filter(card => card.offsetTop === cards[0].offsetTop).length)"
    small = "[...document.querySelectorAll('#appendix-c .small > *')]"
    assert page.evaluate(f"{beside}({small})") == 1
    page.set_viewport_size({"width": 1280, "height": 800})
    wait_until(page, f"{beside}({small}) === 4")


def test_the_verdict_table_fits_a_wide_screen(open_file, written):
    page = open_file(written, viewport={"width": 1280, "height": 800})
    beyond = "(table => table.scrollWidth - table.clientWidth)"
    assert page.evaluate(f"{beyond}(document.querySelector('#figures .scroll'))") == 0


def test_page_and_charts_follow_the_colour_scheme(open_file, written):
    page = open_file(written, color_scheme="dark")
    colour = """name => document.getElementById(`chart-${name}`).data
        .find(trace => trace.name.startsWith('Adam')).line.color"""
    charts = ("leading", "fig2-1-validation", "fig5-1-validation")
    assert [page.evaluate(colour, name) for name in charts] == ["#56b4e9"] * 3
    tail = "document.getElementById('chart-fig1-polynomial').data[0].line.color"
    assert page.evaluate(tail) == "#f0803c"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    wait_until(page, f"({colour})('fig5-1-validation') === '#0072b2'")
    wait_until(page, f"({colour})('leading') === '#0072b2'")
    wait_until(page, f"{tail} === '#d55e00'")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_strings_from_outside_cannot_run_code(open_file, tmp_path):
    documents = make_documents()
    documents["ml-fm"]["runs"][0]["optimizer"] = HOSTILE
    documents["ml-tokens"]["fields"][0]["name"] = HOSTILE
    write_runs(tmp_path, documents)
    words = dict.fromkeys(("number", "title", "claim", "private", "command"), HOSTILE)
    paper = make_paper(
        make_figure("fig2", **words),
        make_figure("fig1", **words),
        runs={"ml-fm": dict.fromkeys(("title", "command", "why", "smaller"), HOSTILE)},
        command=HOSTILE,
    )
    path = tmp_path / "paper.html"
    path.write_text(page_of(paper, tmp_path), encoding="utf-8")
    page = open_file(path)
    page.get_by_role("radio", name="seconds").check(force=True)
    page.locator("#figures th button").first.click()
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("#fig2 h2").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_words_do_not_widen_the_page(open_file, tmp_path, width):
    write_runs(tmp_path)
    long = "wordswithoutspaces" * 20
    figures = [
        make_figure("fig2", claim=long, command=long),
        make_figure("table1", private=long),
    ]
    runs = dict.fromkeys(("ml-fm", "clicks"), dict.fromkeys(("command", "why", "smaller"), long))
    paper = make_paper(*figures, runs=runs)
    for rule in figures[0]["rules"]:
        rule.update(says=long, measured=long)
    path = tmp_path / "paper.html"
    path.write_text(page_of(paper, tmp_path), encoding="utf-8")
    page = open_file(path, viewport={"width": width, "height": 800})
    wait_until(page, f"document.documentElement.scrollWidth <= {width}")
