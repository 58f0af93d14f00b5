"""A whole paper to write pages of. Every number in it is made up: nothing was run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from freqsgd.report.page import Page
from freqsgd.report.paper import paper_page, read_paper
from tests.report.made_up import make_results, make_study, make_tuned
from tests.report.made_up_diagnosis import make_diagnosed
from tests.report.made_up_inspection import make_field, make_inspection
from tests.report.made_up_one_pass import make_one_pass
from tests.report.made_up_text import make_cbow_run, make_text_results
from tests.report.made_up_theory import make_theory

FOUR = ("sgd", "cfsgd", "adagrad", "adam")
FIGURES = {  # name: its number and title, its runs
    "fig1": ("Figure 1", "How often users and movies occur", ["ml-tokens"]),
    "fig2": ("Figure 2", "MovieLens-1M, FM and DeepFM", ["ml-fm", "ml-deepfm"]),
    "fig3ab": ("Figure 3a-b", "Second moments against counts", ["ml-fm", "ml-deepfm"]),
    "fig3cd": ("Figure 3c-d", "Criteo, FM", ["criteo-fm"]),
    "fig4ab": ("Figure 4a-b", "Criteo, DeepFM", ["criteo-deepfm"]),
    "table1": ("Figure 4c-d, Table 1", "One pass over ten days of clicks", ["clicks"]),
    "table2": ("Table 2", "Learning rates for MovieLens-1M", ["ml-tuned"]),
    "table3": ("Table 3", "Learning rates for Criteo", ["criteo-tuned"]),
    "memory": ("Section 4, memory", "What optimizers keep beside the weights", ["ml-fm"]),
    "fig5": ("Figure 5", "Word2Vec on WikiText-2", ["cbow", "skipgram"]),
    "appendix-c": ("Appendix C", "How often the tokens of 28 features occur", ["criteo-tokens"]),
    "theory": (
        "Theorems 1-3, corollaries",
        "Bounds against a simulation",
        ["theory-exponential", "theory-polynomial", "theory-uniform"],
    ),
}
DATASETS = {
    "ml": "movielens-1m",
    "criteo": "criteo",
    "cbow": "wikitext-2",
    "skipgram": "wikitext-2",
}


def make_documents(fields: int = 3) -> dict[str, dict[str, Any]]:
    """What every run wrote, by its name; Criteo has so many fields."""
    tuned = make_tuned(*map(make_study, FOUR))
    deep = make_results(model={"name": "deepfm", "dim": 16, "hidden": [400, 400]})
    return {
        "ml-tokens": make_inspection(),
        "ml-fm": make_diagnosed(),
        "ml-deepfm": deep,
        "criteo-fm": make_results(dataset={"name": "criteo"}),
        "criteo-deepfm": deep,
        "clicks": make_one_pass(),
        "ml-tuned": tuned,
        "criteo-tuned": tuned,
        "cbow": make_text_results(*map(make_cbow_run, ("sgd", "cfsgd", "adam"))),
        "skipgram": make_text_results(),
        "criteo-tokens": make_inspection(
            *(make_field(f"C{place}", 40 + place) for place in range(1, fields + 1))
        ),
        "theory-exponential": make_theory(),
        "theory-polynomial": make_theory("polynomial", 2.0),
        "theory-uniform": make_theory("uniform", None),
    }


def make_figure(figure: str, /, *answers: bool | None, **changes: Any) -> dict[str, Any]:
    """A figure of which something was asked of its runs in turn; by default two things hold."""
    number, title, runs = FIGURES[figure]
    rules = [
        {
            "run": runs[place % len(runs)],
            "says": f"question {place} of {figure}",
            "holds": holds,
            "measured": f"measured {place} of {figure}",
        }
        for place, holds in enumerate(answers or (True, True))
    ]
    entry = {
        "name": figure,
        "number": number,
        "title": title,
        "claim": f"The paper says this of {figure}.",
        "brief": f"brief of {figure}",
        "private": "",
        "data": "real",
        "verdict": "agrees",
        "rules": rules,
        "runs": runs,
        "command": f"freqsgd paper --only {figure}",
    }
    return {**entry, **changes}


def make_entry(name: str, **changes: Any) -> dict[str, Any]:
    """A run that was done; where its document is, ``write_runs`` says."""
    entry = {
        "title": f"the run {name}",
        "command": f"freqsgd something --out {name}",
        "stand_in": False,
        "dataset": DATASETS.get(name.partition("-")[0]),
        "smaller": "",
        "status": "done",
        "why": "",
        "seconds": 12.5,
        "budget": 60,
        "document": f"runs/{name}/document.json",
        "report": f"runs/{name}/report.html",
    }
    return {**entry, **changes}


def make_paper(*figures: dict[str, Any], runs: Any = None, **changes: Any) -> dict[str, Any]:
    """The content of a ``paper.json`` of all figures or of those given, and of their runs.

    ``runs`` are changes of runs, by name.
    """
    listed = list(figures) or [make_figure(name) for name in FIGURES]
    names = dict.fromkeys(name for figure in listed for name in figure["runs"])
    document = {
        "schema": 1,
        "kind": "paper",
        "created": "2024-05-01T12:00:00+00:00",
        "mode": "quick",
        "command": "freqsgd paper --out paper",
        "machine": {"cpu": "Made-up CPU", "cores": 2, "threads": 2},
        "seconds": 420.0,
        "figures": listed,
        "runs": {name: make_entry(name, **(runs or {}).get(name, {})) for name in names},
    }
    return {**document, **changes}


def write_runs(folder: Path, documents: dict[str, Any] | None = None) -> None:
    """Write the documents of runs to where a made-up paper has them; text is written as it is."""
    for name, content in (make_documents() if documents is None else documents).items():
        path = folder / "runs" / name / "document.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.with_name("report.html").write_text("<html>")


def page_of(document: dict[str, Any], folder: Path) -> Page:
    """The page of a made-up paper."""
    return paper_page(read_paper(document, folder))
