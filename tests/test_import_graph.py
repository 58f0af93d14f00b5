"""Imports point one way: no cycles between modules, no import of a part from below it.

Imports inside functions and for type checkers count too.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import freqsgd

SOURCE = Path(freqsgd.__file__).parent
# A part imports from its own level and from those below; CONTRIBUTING.md says the same.
LEVELS = [
    ["cli", "__main__"],
    ["paper"],
    ["report"],
    ["estimators", "sklearn", "vectors", "inspection", "torchrec", "planner"],
    ["compare"],
    ["recommender", "words"],
    ["runs"],
    ["tables", "theory", "nn", "optim"],
    ["kernels", "optimizers"],
    ["documents"],
    ["rates", "files", "errors", "checks", "prefetch", "_lazy"],
]


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "freqsgd":
            module = (node.module or "").removeprefix("freqsgd").removeprefix(".")
            for name in node.names:
                inner = f"{module}.{name.name}".removeprefix(".")
                found.add(inner if inner in known else module)
    return found


KNOWN = modules()
GRAPH = {name: imports_of(path, KNOWN) - {name, ""} for name, path in KNOWN.items() if name}
# The names of a package load when they are used, so a package stands beside its modules.
PACKAGES = {name for name, path in KNOWN.items() if path.name == "__init__.py"}


def test_no_module_imports_itself_through_others():
    graph = {name: found - PACKAGES for name, found in GRAPH.items() if name not in PACKAGES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        raise AssertionError(" -> ".join(reversed(cycle.args[1]))) from None


def test_imports_point_one_way():
    level = {part: number for number, parts in enumerate(LEVELS) for part in parts}
    backward = [
        f"{name} -> {other}"
        for name, found in GRAPH.items()
        for other in found
        if level[other.partition(".")[0]] < level[name.partition(".")[0]]
    ]
    assert not backward, backward


def test_recommenders_and_words_do_not_know_each_other():
    between = [
        f"{name} -> {other}"
        for name, found in GRAPH.items()
        for other in found
        if {name.partition(".")[0], other.partition(".")[0]} == {"recommender", "words"}
    ]
    assert not between, between
