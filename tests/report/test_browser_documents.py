"""Pages of simulations and inspections in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freqsgd.report import write_inspection, write_theory
from tests.report.conftest import wait_until
from tests.report.made_up import HOSTILE
from tests.report.made_up_inspection import make_field, make_inspection
from tests.report.made_up_theory import make_theory

pytestmark = pytest.mark.ci

MANY = make_inspection(*(make_field(f"field {place}", 40 + place) for place in range(39)))


@pytest.fixture
def open_document(open_file, tmp_path, monkeypatch) -> Callable[..., Any]:
    """Opens the page of a document, without its pictures."""
    monkeypatch.setattr("freqsgd.report.page.picture", lambda charts: b"")

    def opened(document: dict[str, Any], **options: Any) -> Any:
        write = write_theory if document["kind"] == "theory" else write_inspection
        return open_file(write(document, tmp_path), **options)

    return opened


def count(page, chart: str, mark: str) -> int:
    """How many marks of a kind a chart draws, those that show what is pointed at left out."""
    return page.evaluate(
        f"[...document.querySelectorAll('#chart-{chart} .role-mark.mark-{mark} :is(path, line)')]"
        ".filter(e => e.getAttribute('d') !== '' && e.getAttribute('opacity') !== '0').length"
    )


def test_a_simulation_is_drawn_and_follows_the_legend(open_document):
    page = open_document(make_theory())
    assert page.locator(".chart").count() == 6
    assert count(page, "error-user", "symbol") == 4 * 12
    assert count(page, "error-user", "rule") == 4 * 12
    assert count(page, "error-user", "line") == 3 + 1
    page.get_by_role("button", name="FA-SGD").click()
    wait_until(page, "document.querySelectorAll('#chart-error-user .mark-line path').length < 4")
    assert count(page, "error-user", "symbol") == 3 * 12
    assert count(page, "distribution-user", "symbol") == 12


def test_39_fields_fit_a_wide_and_a_narrow_screen(open_document):
    page = open_document(MANY, viewport={"width": 1280, "height": 800})
    assert page.locator(".chart").count() == 41
    tops = "[...document.querySelectorAll('.small > *')].map(card => card.offsetTop)"
    right_edges = """[...document.querySelectorAll(".chart svg, .card")]
        .map(element => element.getBoundingClientRect().right)"""
    for width, beside in ((1280, 4), (390, 1)):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"Math.max(...{right_edges}) <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = page.evaluate(tops)
        assert found.count(found[0]) == beside


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_do_not_widen_the_page(open_document, width):
    names = [letter * 300 for letter in "abcdefgh"]
    fields = [make_field(name, most_frequent=[[name, 3]]) for name in names]
    page = open_document(make_inspection(*fields), viewport={"width": width, "height": 800})
    page.get_by_text("8 fields", exact=True).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    fits = (
        "[...document.querySelectorAll('h3')].every(each => each.scrollWidth <= each.clientWidth)"
    )
    assert page.evaluate(fits)


def test_names_cannot_run_code(open_document):
    document = make_inspection(make_field(HOSTILE), make_field("b"))
    document["dataset"]["name"] = HOSTILE
    page = open_document(document)
    assert page.evaluate("window.hacked") is None
    assert HOSTILE in page.locator("h1").inner_text()
    theory = make_theory(checks=[{"statement": HOSTILE, "holds": False, "detail": HOSTILE}])
    theory["runs"][1]["optimizer"] = theory["improvements"][0]["optimizer"] = HOSTILE
    page = open_document(theory)
    assert page.evaluate("window.hacked") is None
