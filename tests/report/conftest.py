"""A browser for pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def wait_until(page, expression: str) -> None:
    """Wait for a change of the page; Playwright's own way needs eval, which the page forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"still not so after 10 seconds: {expression}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def open_file(browser) -> Iterator[Callable[..., Any]]:
    """Opens a page; at the end none has complained or asked for anything but itself."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts = []

    def opened(path: Path, **options: Any) -> Any:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        wait_until(page, "[...document.querySelectorAll('.chart')].every(c => c.dataset.drawn)")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert len(requests) == len(contexts)
    assert all(url.startswith("file:") for url in requests)


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch, request):
    """Spares tests the time that pictures take, unless they are about pictures."""
    if "picture" not in request.node.name:
        monkeypatch.setattr("freqsgd.report.page.picture", lambda charts: b"")
