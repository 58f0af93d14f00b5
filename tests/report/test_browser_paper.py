"""The page of ``freqsgd paper`` in a browser."""

from __future__ import annotations

import pytest

from freqsgd.report.page import render
from tests.report.conftest import wait_until
from tests.report.made_up import HOSTILE
from tests.report.made_up_paper import (
    FIGURES,
    make_documents,
    make_figure,
    make_paper,
    page_of,
    write_runs,
)
from tests.report.test_browser import LINES, count, title_of_x

pytestmark = pytest.mark.ci

RIGHT_EDGES = """[...document.querySelectorAll(".card, .controls, h1, h2, footer")]
    .map(element => element.getBoundingClientRect().right)"""


def write(path, document):
    path.write_text(render(page_of(document, path.parent)), encoding="utf-8")
    return path


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
    return write(folder / "paper.html", make_paper(*figures))


def first_column(page) -> list[str]:
    return page.locator("#figures tbody th").all_inner_texts()


def test_the_legend_hides_an_optimizer_in_the_charts_of_all_runs(open_file, written):
    page = open_file(written)
    button = page.get_by_role("button", name="Adam", exact=True)
    before = {"fig2-1-validation": 4, "fig5-1-validation": 3, "leading": 3, "fig1-polynomial": 1}
    for name, lines in before.items():
        wait_until(page, f"{LINES.format(name)}.length === {lines}")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    for name, lines in before.items():
        shown = lines - (name != "fig1-polynomial")
        wait_until(page, f"{LINES.format(name)}.length === {shown}")
    button.click()
    wait_until(page, f"{LINES.format('fig2-1-validation')}.length === 4")


def test_one_choice_puts_all_curves_on_seconds(open_file, written):
    page = open_file(written)
    curves = ("leading", "fig2-1-validation", "fig3cd-0-training-loss", "fig5-1-validation")
    assert {title_of_x(page, name) for name in curves} == {"epoch"}
    page.get_by_role("radio", name="epochs").focus()
    page.keyboard.press("ArrowRight")
    for name in curves:
        axis = f"document.querySelector('#chart-{name} .role-axis-title').textContent"
        wait_until(page, f"document.querySelector('#chart-{name}').textContent.includes('seconds')")
        assert page.evaluate(axis)
    assert title_of_x(page, "fig1-exponential").startswith("rank")


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


def test_nothing_sticks_out_of_a_wide_or_a_narrow_screen(open_file, written):
    page = open_file(written, viewport={"width": 1280, "height": 800})
    beyond = "(table => table.scrollWidth - table.clientWidth)"
    assert page.evaluate(f"{beyond}(document.querySelector('#figures .scroll'))") == 0
    assert count(page, LINES, "appendix-c-0-ranks-27") > 0
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"Math.max(...{RIGHT_EDGES}) <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_strings_from_outside_cannot_run_code_and_long_words_do_not_widen_the_page(
    open_file, tmp_path
):
    documents = make_documents()
    documents["ml-fm"]["runs"][0]["optimizer"] = HOSTILE
    documents["ml-tokens"]["fields"][0]["name"] = HOSTILE
    write_runs(tmp_path, documents)
    words = dict.fromkeys(("number", "title", "claim", "private", "command"), HOSTILE)
    long = "wordswithoutspaces" * 20
    figures = [
        make_figure("fig2", **words),
        make_figure("fig1", **words),
        make_figure("table1", claim=long, command=long),
    ]
    figures[2]["rules"][0].update(says=long, measured=long)
    runs = {
        "ml-fm": dict.fromkeys(("title", "command", "why", "smaller"), HOSTILE),
        "clicks": dict.fromkeys(("command", "why", "smaller"), long),
    }
    page = open_file(
        write(tmp_path / "paper.html", make_paper(*figures, runs=runs, command=HOSTILE)),
        viewport={"width": 390, "height": 800},
    )
    page.get_by_role("radio", name="seconds").check(force=True)
    page.locator("#figures th button").first.click()
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("#fig2 h2").inner_text()
    wait_until(page, "document.documentElement.scrollWidth <= 390")
