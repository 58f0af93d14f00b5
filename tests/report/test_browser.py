"""The page in a browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from freqsgd.report import write_report
from tests.report.conftest import wait_until
from tests.report.made_up import HOSTILE, make_results, make_run, make_study, make_tuned
from tests.report.made_up_one_pass import make_one_pass, make_streamed
from tests.report.made_up_text import make_text_results, make_text_run

pytestmark = pytest.mark.ci


@pytest.fixture
def open_page(open_file, tmp_path) -> Callable[..., Any]:
    """Opens a report."""
    numbers = itertools.count()

    def open_report(results: dict[str, Any] | None = None, **options: Any) -> Any:
        path = tmp_path / f"report-{next(numbers)}.html"
        write_report(results or make_results(), path)
        return open_file(path, **options)

    return open_report


def first_column(page) -> list[str]:
    return page.locator(".sortable tbody th").all_inner_texts()


LINES = (
    "[...document.querySelectorAll('#chart-{} .mark-line path')].filter(e => e.getAttribute('d'))"
)
MARKS = (
    "[...document.querySelectorAll('#chart-{} .mark-symbol path')].filter(e => e.getAttribute('d'))"
)


def count(page, kind: str, name: str) -> int:
    """How many marks of a kind a chart draws, those that show what is pointed at left out."""
    return page.evaluate(
        kind.format(name) + ".filter(e => e.getAttribute('opacity') !== '0').length"
    )


def title_of_x(page, name: str) -> str:
    return page.evaluate(
        f"""[...document.querySelectorAll('#chart-{name} .role-axis-title text')]
        .map(text => text.textContent).join()"""
    )


def test_all_charts_are_drawn(open_page):
    page = open_page()
    assert page.locator(".chart").count() == 4
    assert count(page, LINES, "validation") == count(page, LINES, "training-loss") == 4
    assert page.locator("#chart-state .mark-rect path").count() == 4
    assert count(page, MARKS, "frequency") == 12


def test_one_choice_puts_both_curves_on_seconds(open_page):
    page = open_page()
    names = ["validation", "training-loss"]
    assert [title_of_x(page, name) for name in names] == ["epoch"] * 2
    page.get_by_role("radio", name="epochs").focus()
    page.keyboard.press("ArrowRight")
    drawn = "[...document.querySelectorAll('#chart-validation, #chart-training-loss')]"
    wait_until(page, f"{drawn}.every(chart => chart.dataset.drawn === 'seconds')")
    assert [title_of_x(page, name) for name in names] == ["seconds of training"] * 2


def test_the_legend_hides_a_run_in_every_chart(open_page):
    page = open_page()
    button = page.get_by_role("button", name="Adagrad")
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    wait_until(page, LINES.format("validation") + ".length === 3")
    assert count(page, LINES, "training-loss") == 3
    assert page.locator("#chart-state .mark-rect path").count() == 3
    assert count(page, MARKS, "frequency") == 9
    page.get_by_role("radio", name="seconds").check(force=True)
    drawn = "document.getElementById('chart-validation').dataset.drawn"
    wait_until(page, f"{drawn} === 'seconds'")
    assert count(page, LINES, "validation") == 3  # still
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    wait_until(page, LINES.format("validation") + ".length === 4")
    assert count(page, MARKS, "frequency") == 12


def test_headers_sort_both_ways_and_say_so(open_page):
    runs = [make_run(name) for name in ("sgd", "cfsgd", "adagrad", "adam")]
    for run, auc in zip(runs, (0.81, 0.8, None, 0.82), strict=True):
        run["test_auc"] = auc
    page = open_page(make_results(*runs))
    header = page.locator(".sortable th", has_text="Test AUC")
    assert first_column(page) == ["SGD", "CF-SGD", "Adagrad", "Adam"]
    header.locator("button").focus()
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "descending"
    assert first_column(page) == ["Adam", "SGD", "CF-SGD", "Adagrad"]  # no value: last
    page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert first_column(page) == ["CF-SGD", "SGD", "Adam", "Adagrad"]
    page.locator(".sortable th button", has_text="Optimizer").click()
    assert header.get_attribute("aria-sort") is None
    assert first_column(page) == ["Adagrad", "Adam", "CF-SGD", "SGD"]


LOOK = f"""() => [getComputedStyle(document.body).backgroundColor,
    getComputedStyle({LINES.format("validation")}[3]).stroke,
    getComputedStyle(document.querySelector('#chart-validation .role-axis-label text')).fill]"""


def test_page_and_charts_follow_the_colour_scheme(open_page):
    page = open_page(color_scheme="light")
    light = page.evaluate(LOOK)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(LOOK)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert light[1:2] + dark[1:2] == ["rgb(0, 114, 178)", "rgb(86, 180, 233)"]


def test_a_dark_page_is_printed_light_and_narrow(open_page):
    page = open_page(color_scheme="dark", viewport={"width": 1200, "height": 800})
    width = "document.querySelector('#chart-validation svg').getBoundingClientRect().width"
    dark, wide = page.evaluate(LOOK), page.evaluate(width)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(LOOK)[1] == "rgb(0, 114, 178)"
    assert page.evaluate(width) < 340 < wide
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(LOOK) == dark
    assert abs(page.evaluate(width) - wide) < 2


def test_nothing_sticks_out_of_a_wide_or_a_narrow_screen(open_page):
    page = open_page(viewport={"width": 1280, "height": 800})
    right_edges = """[...document.querySelectorAll(".chart svg, .card, .controls, h1, footer")]
        .map(element => element.getBoundingClientRect().right)"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"Math.max(...{right_edges}) <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_text_model_is_drawn_follows_the_legend_and_fits_a_phone(open_page):
    page = open_page(make_text_results(), viewport={"width": 390, "height": 800})
    assert count(page, LINES, "training-loss") == count(page, LINES, "validation") == 3
    for name in ("frequency", "centre-frequency"):
        assert count(page, MARKS, name) == 9
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="CF-SGD").click()
    wait_until(
        page, MARKS.format("frequency") + ".length === 12"
    )  # of 2 runs and 3 classes, each twice
    assert count(page, MARKS, "frequency") == 6


def test_the_widest_table_of_a_text_model_fits_a_wide_screen(open_page):
    names = ("sgd", "cfsgd", "adagrad", "rowwise-adagrad", "adam")
    page = open_page(
        make_text_results(*map(make_text_run, names)), viewport={"width": 1200, "height": 800}
    )
    table = "document.querySelector('.scroll:has(.sortable)')"
    assert page.evaluate(f"{table}.scrollWidth - {table}.clientWidth") == 0


def test_hovering_tells_run_value_epoch_and_second(open_page):
    page = open_page(make_results(make_run("cfsgd")), viewport={"width": 1280, "height": 1600})
    page.locator("#chart-validation .mark-symbol path").nth(2).hover(force=True)
    wait_until(page, "document.querySelector('#vg-tooltip-element.visible') !== null")
    text = page.locator("#vg-tooltip-element").inner_text()
    words = text.split()
    assert words[:6] == ["optimizer", "CF-SGD", "epoch", "3", "validation", "AUC"]
    assert words[7:] == ["seconds", "1.08"]


def labels_of(page, name: str) -> set[str]:
    found = page.evaluate(
        f"""[...document.querySelectorAll('#chart-{name} .role-axis-label text')]
        .filter(text => text.getAttribute('opacity') !== '0').map(text => text.textContent)"""
    )
    return set(found)


@pytest.mark.parametrize("name", ["validation", "difference"])
def test_a_chart_is_zoomed_and_moved_and_two_clicks_undo_that(open_page, name):
    results = make_results() if name == "validation" else make_one_pass()
    page = open_page(results, viewport={"width": 1200, "height": 1400})
    before = labels_of(page, name)
    box = page.locator(f"#chart-{name}").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Shift")
    page.wait_for_timeout(300)
    zoomed = labels_of(page, name)
    assert zoomed != before
    page.mouse.down()
    page.mouse.move(middle[0] + 150, middle[1] + 100, steps=5)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert labels_of(page, name) != zoomed
    page.mouse.dblclick(*middle)
    page.wait_for_timeout(300)
    assert labels_of(page, name) == before


def test_what_is_hovered_over_cannot_run_code(open_page):
    page = open_page(make_results(make_run("cfsgd", optimizer=HOSTILE)))
    page.locator("#chart-validation .mark-symbol path").nth(2).hover(force=True)
    wait_until(page, "document.querySelector('#vg-tooltip-element.visible') !== null")
    assert HOSTILE in page.locator("#vg-tooltip-element").inner_text()
    assert page.evaluate("window.hacked") is None


def test_names_cannot_run_code(open_page):
    hostile = make_run("sgd", optimizer=HOSTILE)
    page = open_page(make_results(hostile, make_run("adam"), dataset={"name": HOSTILE}))
    page.get_by_role("radio", name="seconds").check(force=True)
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("h1").inner_text()


def test_a_diverged_run_leaves_a_page_that_works(open_page):
    failed = make_run("sgd", epochs=[], best_epoch=None, stopped="diverged", state_bytes=None)
    page = open_page(make_results(failed, make_run("cfsgd")))
    assert count(page, LINES, "validation") == 1
    assert "SGD diverged at its start." in page.locator(".summary").first.inner_text()


def test_a_search_is_drawn_follows_the_legend_and_fits_a_phone(open_page):
    page = open_page(
        make_tuned(make_study("cfsgd"), make_study("rowwise-adagrad")),
        viewport={"width": 390, "height": 800},
    )
    assert count(page, LINES, "search") == count(page, LINES, "learning-rates") == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="CF-SGD").click()
    wait_until(page, LINES.format("learning-rates") + ".length === 1")


def test_one_pass_runs_are_drawn_over_examples_or_seconds(open_page):
    page = open_page(make_one_pass())
    assert page.locator(".chart").count() == 7
    assert count(page, LINES, "difference") == 3
    page.get_by_role("radio", name="examples").focus()
    page.keyboard.press("ArrowRight")
    names = ("window-ne", "lifetime-ne", "difference", "calibration", "auc")
    drawn = "[...document.querySelectorAll('.chart')].filter(c => c.dataset.drawn === 'seconds')"
    wait_until(page, f"{drawn}.length === {len(names)}")
    assert {title_of_x(page, name) for name in names} == {"seconds of training"}
    assert title_of_x(page, "rates") == "learning rate"


def test_the_axis_of_one_pass_runs_follows_those_that_are_shown(open_page):
    page = open_page(make_one_pass())
    top = """Math.max(...[...document.querySelectorAll('#chart-difference .role-axis-label text')]
        .map(text => Number(text.textContent)).filter(value => value < 1000))"""
    assert page.evaluate(top) >= 5
    page.get_by_role("button", name="SGD", exact=True).click()
    wait_until(page, f"{top} < 2")
    page.get_by_role("button", name="SGD", exact=True).click()
    wait_until(page, f"{top} >= 5")


@pytest.mark.parametrize("width", [1200, 390])
def test_one_pass_runs_fit_the_screen(open_page, width):
    page = open_page(make_one_pass(), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = "(table => table.scrollWidth - table.clientWidth)(document.querySelector('.scroll'))"
    assert width == 390 or page.evaluate(beyond) == 0


def test_names_of_one_pass_runs_cannot_run_code(open_page):
    hostile = make_streamed("adagrad", optimizer=HOSTILE, skipped=[HOSTILE])
    page = open_page(make_one_pass(hostile, make_streamed("cfsgd"), dataset={"name": HOSTILE}))
    page.get_by_role("radio", name="seconds").check(force=True)
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("h1").inner_text()
