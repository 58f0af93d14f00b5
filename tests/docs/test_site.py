from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from importlib import import_module

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_public_names import LISTED, is_module, public_names

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation: what ``make test`` has just built, or built now."""
    pytest.importorskip("mkdocs")
    if built := os.environ.get("FREQSGD_SITE"):
        return ROOT / built
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


def explained(site) -> set[str]:
    """Functions, classes and constants that the site has a heading for."""
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = [line.split() for line in zlib.decompress(inventory).decode().splitlines()]
    return {name for name, kind, *_ in lines if kind != "py:module"}


def loaded(html: str) -> list[str]:
    """Addresses of what a browser loads to show a page."""
    return re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=(\S+)", html)


def test_the_site_explains_every_public_name_and_loads_nothing_from_the_web(site):
    """A constant without a docstring, which the site leaves out, may be explained in prose."""
    found = explained(site)
    for page, paths in LISTED.items():
        text = page.read_text("utf-8")
        for path in filter(is_module, paths):
            for name in public_names(path):
                made_in = getattr(getattr(import_module(path), name), "__module__", path)
                places = {f"{path}.{name}", f"{made_in}.{name}"}
                assert places & found or f"`{name}`" in text, (path, name)
    addresses = [each for page in site.rglob("*.html") for each in loaded(page.read_text("utf-8"))]
    assert len(addresses) > 100
    assert [address for address in addresses if "//" in address] == []


def test_examples_and_roles_of_docstrings_become_code():
    pytest.importorskip("griffe")
    from docs.docstrings import plain

    text = "See :func:`~freqsgd.watch`.\n\nExample:\n    >>> [1][0]\n    1\n\nMore."
    block = "    ```pycon\n    >>> [1][0]\n    1\n    ```"
    assert plain(text) == f"See `freqsgd.watch`.\n\nExample:\n{block}\n\nMore."


def test_formulas_are_plain_text_without_a_trace_of_tex(site):
    page = (site / "api/freqsgd.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", page)
    assert "c_k &lt;- c_k + occurrences of token k in the batch" in text
    assert "eta_k = min{max_lr, lr / p_k^(power)}" in text
    for left in ("\\", "{aligned}", ".. math", " arrow "):
        assert left not in text.partition("Counter-based frequency-aware SGD")[2][:2000]
