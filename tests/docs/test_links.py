from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, name, prose

LINKING = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("api/*.md"))]


def links(page: Path) -> list[str]:
    """Targets of a page that are no addresses of the web; code has none."""
    text = re.sub(r"`[^`\n]*`", "code", prose(page))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)


def python_markdown_slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def github_slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


SLUGS = python_markdown_slug, github_slug  # pages are read on both


@pytest.mark.parametrize("page", LINKING, ids=name)
def test_links_lead_to_files_and_headings_that_exist(page):
    for link in links(page):
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        assert path.exists(), link
        if anchor:
            slugs = [{rule(text) for text in headings(path)} for rule in SLUGS]
            assert all(anchor in made for made in slugs), link


def test_links_are_found():
    found = [link for page in LINKING for link in links(page)]
    assert len(found) > 100
    assert any("#" in link for link in found)
