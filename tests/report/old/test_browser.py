"""The page in a browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from freqsgd.report.old import write_report
from tests.report.made_up import HOSTILE, make_results, make_run, make_study, make_tuned
from tests.report.made_up_one_pass import make_one_pass, make_streamed
from tests.report.made_up_text import make_text_results, make_text_run
from tests.report.old.conftest import wait_until

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


def test_all_charts_are_drawn(open_page):
    page = open_page()
    assert page.locator(".chart").count() == 4
    assert page.locator("#chart-validation .scatterlayer .trace").count() == 4
    assert page.locator("#chart-training-loss .scatterlayer .trace").count() == 4
    assert page.locator("#chart-state .barlayer .point path").count() >= 3  # SGD has no state
    assert page.locator("#chart-frequency .barlayer .point").count() == 12


def test_one_choice_puts_both_curves_on_seconds(open_page):
    page = open_page()
    ends = "name => document.getElementById(name).data.map(trace => trace.x.at(-1))"
    names = ["chart-training-loss", "chart-validation"]
    runs = make_results()["runs"]
    for name in names:
        assert page.evaluate(ends, name) == [run["epochs"][-1]["epoch"] for run in runs]
        assert page.locator(f"#{name} .xtitle").text_content() == "epoch"
    page.get_by_role("radio", name="epochs").focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, "document.getElementById('chart-validation').data[0].x[0] !== 1")
    for name in names:
        assert page.evaluate(ends, name) == [run["epochs"][-1]["seconds"] for run in runs]
        assert page.locator(f"#{name} .xtitle").text_content() == "seconds of training"


def test_the_legend_hides_a_run_in_every_chart(open_page):
    page = open_page()
    button = page.get_by_role("button", name="Adagrad")
    shown = "[...document.querySelectorAll('.chart')].map(c => c.data.map(t => t.visible))"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert page.evaluate(shown) == [[True, True, False, True]] * 4
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.evaluate(shown) == [[True] * 4] * 4


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


def test_page_and_charts_follow_the_colour_scheme(open_page):
    page = open_page(color_scheme="light")
    look = """() => [getComputedStyle(document.body).backgroundColor,
        document.getElementById('chart-validation').data[3].line.color,
        document.getElementById('chart-validation').layout.font.color]"""
    light = page.evaluate(look)
    page.emulate_media(color_scheme="dark")
    line = "document.getElementById('chart-validation').data[3].line.color"
    wait_until(page, f"{line} !== '{light[1]}'")
    dark = page.evaluate(look)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert light[1:2] + dark[1:2] == ["#0072b2", "#56b4e9"]


def test_a_dark_page_is_printed_light(open_page):
    page = open_page(color_scheme="dark")
    colour = "document.getElementById('chart-validation').data[3].line.color"
    assert page.evaluate(colour) == "#56b4e9"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(colour) == "#0072b2"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(colour) == "#56b4e9"


def test_nothing_sticks_out_of_a_wide_or_a_narrow_screen(open_page):
    page = open_page(viewport={"width": 1280, "height": 800})
    right_edges = """[...document.querySelectorAll(".main-svg, .card, .controls, h1, footer")]
        .map(element => element.getBoundingClientRect().right)"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"Math.max(...{right_edges}) <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_search_is_drawn_follows_the_legend_and_fits_a_phone(open_page):
    page = open_page(
        make_tuned(make_study("cfsgd"), make_study("rowwise-adagrad")),
        viewport={"width": 390, "height": 800},
    )
    assert page.locator("#chart-search .scatterlayer .trace").count() == 2
    assert page.locator("#chart-learning-rates .scatterlayer .trace").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="CF-SGD").click()
    shown = "document.getElementById('chart-learning-rates').data.map(trace => trace.visible)"
    assert page.evaluate(shown) == [False, False, True, True]


def test_a_text_model_is_drawn_follows_the_legend_and_fits_a_phone(open_page):
    page = open_page(make_text_results(), viewport={"width": 390, "height": 800})
    for name in ("training-loss", "validation"):
        assert page.locator(f"#chart-{name} .scatterlayer .trace").count() == 3
    for name in ("frequency", "centre-frequency"):  # SGD is the line that bars start from
        assert page.locator(f"#chart-{name} .barlayer .point").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="CF-SGD").click()
    shown = "document.getElementById('chart-frequency').data.map(trace => trace.visible)"
    assert page.evaluate(shown) == [False, True]


def test_the_widest_table_of_a_text_model_fits_a_wide_screen(open_page):
    names = ("sgd", "cfsgd", "adagrad", "rowwise-adagrad", "adam")
    page = open_page(
        make_text_results(*map(make_text_run, names)), viewport={"width": 1200, "height": 800}
    )
    table = "document.querySelector('.scroll:has(.sortable)')"
    assert page.evaluate(f"{table}.scrollWidth - {table}.clientWidth") == 0


def test_no_text_of_a_table_lies_over_its_neighbour_on_a_phone(open_page):
    scales = {"linear_lr_scale": 0.3, "linear_decay_scale": 3.5, "weight_decay_power": 0.8}
    options = {"rule": {**scales, "a_long_name_that_nobody_has_thought_of": 1}}
    study = make_study("cfsgd")
    study["best"]["params"] |= scales
    run = make_run("cfsgd", options=options)
    page = open_page(make_tuned(study, runs=[run]), viewport={"width": 420, "height": 800})
    sticking_out = """() => {
        const text = document.createRange();
        return [...document.querySelectorAll(".settings th, .settings td")].map(cell => {
            text.selectNodeContents(cell);
            const [inner, outer] = [text, cell].map(each => each.getBoundingClientRect().right);
            return [cell.innerText, inner - outer];
        });
    }"""
    cells = page.evaluate(sticking_out)
    assert [text for text, beyond in cells if beyond > 0] == []
    names = [text for text, _ in cells if "of linear weights" in text]
    assert len(names) == len(set(names)) == 4  # among the settings and the best of them


def test_hovering_tells_run_value_epoch_and_second(open_page):
    page = open_page(make_results(make_run("cfsgd")), viewport={"width": 1280, "height": 1600})
    page.locator("#chart-validation .points path").nth(2).hover(force=True)
    text = page.locator("#chart-validation .hoverlayer").text_content()
    assert "CF-SGD" in text
    assert "epoch 3, 1.08 s" in text


def test_names_cannot_run_code(open_page):
    hostile = make_run("sgd", optimizer=HOSTILE)
    page = open_page(make_results(hostile, make_run("adam"), dataset={"name": HOSTILE}))
    page.get_by_role("radio", name="seconds").check(force=True)
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("h1").inner_text()


def test_a_diverged_run_leaves_a_page_that_works(open_page):
    failed = make_run("sgd", epochs=[], best_epoch=None, stopped="diverged", state_bytes=None)
    page = open_page(make_results(failed, make_run("cfsgd")))
    assert page.locator("#chart-validation .scatterlayer .trace").count() >= 1
    assert "SGD diverged in its first epoch." in page.locator(".summary").inner_text()


def test_one_pass_runs_are_drawn_over_examples_or_seconds(open_page):
    page = open_page(make_one_pass())
    assert page.locator(".chart").count() == 7
    ends = "name => document.getElementById(name).data.map(trace => trace.x.at(-1))"
    runs = make_one_pass()["runs"]
    assert page.evaluate(ends, "chart-difference") == [1_800_000] * 3
    page.get_by_role("radio", name="examples").focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, "document.getElementById('chart-auc').data[0].x[0] !== 100000")
    seconds = [run["windows"][-1]["seconds"] for run in runs]
    for name in ("chart-window-ne", "chart-lifetime-ne", "chart-calibration", "chart-auc"):
        assert page.evaluate(ends, name) == seconds
        assert page.locator(f"#{name} .xtitle").text_content() == "seconds of training"
    assert page.locator("#chart-rates .xtitle").text_content() == "learning rate"


def test_the_axis_of_one_pass_runs_follows_those_that_are_shown(open_page):
    page = open_page(make_one_pass())
    span = "document.getElementById('chart-difference')._fullLayout.yaxis.range"
    low, high = page.evaluate(span)
    assert low < 0 < 5 < high
    page.get_by_role("button", name="SGD", exact=True).click()
    wait_until(page, f"{span}[1] < 2")
    assert page.evaluate(span)[0] < 0 < page.evaluate(span)[1]
    page.get_by_role("button", name="SGD", exact=True).click()
    wait_until(page, f"{span}[1] > 5")
    assert page.evaluate(span) == [low, high]


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
