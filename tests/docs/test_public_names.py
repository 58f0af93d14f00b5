from __future__ import annotations

import inspect
import pkgutil
import re
from importlib import import_module

import pytest

import freqsgd
from tests.docs.pages import DOCS

API = [page for page in sorted(DOCS.glob("api/*.md")) if page.name != "index.md"]
LISTED = {page: re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE) for page in API}
LAZY = {"DeepFMClassifier", "FMClassifier", "Word2Vec"}  # names of freqsgd that load when used
INSIDE = {  # parts of the package that no page lists, and why
    "_lazy": "imports names of packages",
    "checks": "may change",
    "cli": "docs/cli.md shows its commands",
    "documents": "docs/results.md says what is in them",
    "files": "may change",
    "kernels": "may change",
    "optim": "its names are those of freqsgd",
    "prefetch": "may change",
    "rates": "its names are those of freqsgd",
    "runs": "may change",
}


def is_module(path: str) -> bool:
    """Not a function that has the name of the module which it is in."""
    *_, before, last = ["", *path.split(".")]
    return before != last


MODULES = [path for paths in LISTED.values() for path in paths if is_module(path)]


def public_names(path: str) -> list[str]:
    return getattr(import_module(path), "__all__", [])  # a package may be but a place


@pytest.mark.parametrize("path", MODULES)
def test_public_names_have_docstrings(path):
    module = import_module(path)
    assert module.__doc__
    for name in public_names(path):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert vars(thing).get("__doc__", thing.__doc__), name
            assert not thing.__doc__.startswith(f"{name}("), f"{name} has what dataclass wrote"


def test_names_of_the_package_itself_are_listed():
    known = {name for path in MODULES for name in public_names(path)}
    assert {*freqsgd.__all__, *LAZY} <= known
    assert all(hasattr(freqsgd, name) for name in LAZY)


def test_every_part_of_the_package_is_listed_or_inside():
    parts = {part.name for part in pkgutil.iter_modules(freqsgd.__path__)} - {"__main__"}
    listed = {path.split(".")[1] for path in MODULES if "." in path}
    assert parts - listed == set(INSIDE)


def test_the_table_lists_the_modules_of_each_page():
    rows = re.findall(r"\| \[.*\]\((.*)\) \| (.*) \|", (DOCS / "api/index.md").read_text("utf-8"))
    table = {page: re.findall(r"`(.*?)`", modules) for page, modules in rows}
    assert table == {page.name: [*filter(is_module, LISTED[page])] for page in API}
