"""Compare optimizers for embedding tables on ten models.

    FREQSGD_DATA=... python -m benchmarks.zoo [--quick] [--models fm,dlrm] [--question a|b|both]

Question (a), untuned: Adam against CFAdam for the whole model, both at 1e-3. Question (b), equal
tuning: eight optimizers for the tables, six rates each. `benchmarks/zoo/protocol.py` states what
was fixed beforehand. Results are kept in OUT/results.jsonl, so that an interrupted benchmark
continues; tables are printed and written to OUT/zoo.md and OUT/zoo.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.zoo.contenders import CONTENDERS
from benchmarks.zoo.data import MissingDataError, find
from benchmarks.zoo.models import MODELS
from benchmarks.zoo.protocol import VERSION
from benchmarks.zoo.questions import tuned, untuned
from benchmarks.zoo.report import document
from benchmarks.zoo.runner import Runner


def main() -> None:
    options = _parser().parse_args()
    if options.data is not None:
        os.environ["FREQSGD_DATA"] = str(options.data)
    models = [name for name in options.models if _has_data(name)]
    if not models:
        sys.exit("no model has its data")
    run = Runner(options.out, options.workers)
    arguments = (run, models, options.contenders, options.quick)
    first = untuned(*arguments) if options.question in ("a", "both") else []
    second = tuned(*arguments) if options.question in ("b", "both") else []
    text = document(first, second, options.quick)
    print("\n" + text)
    (options.out / "zoo.md").write_text(text)
    answers = {"untuned": first, "tuned": second}
    content = {name: [asdict(cell) for cell in cells] for name, cells in answers.items()}
    content_with_protocol = {"version": VERSION, "quick": options.quick, **content}
    (options.out / "zoo.json").write_text(json.dumps(content_with_protocol, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks.zoo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", type=_names(MODELS), default=[*MODELS], help="comma-separated; default: all"
    )
    parser.add_argument(
        "--contenders",
        type=_names(CONTENDERS),
        default=[*CONTENDERS],
        help="comma-separated; default: all. Question (a) has adam and cfadam only",
    )
    parser.add_argument("--question", choices=("a", "b", "both"), default="both")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="half the epochs; (a) with two seeds, (b) with one seed and every other rate",
    )
    parser.add_argument("--out", type=Path, default=Path("build/zoo"), help="folder of results")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--data", type=Path, help="folder of datasets, instead of FREQSGD_DATA")
    return parser


def _names(known: Mapping[str, object]) -> Callable[[str], list[str]]:
    """Return a parser of comma-separated names that lists the known ones on error."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            message = f"unknown: {', '.join(unknown)}; known: {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return names

    return parse


def _has_data(model: str) -> bool:
    """Return whether a model's dataset is here; print why it is skipped otherwise."""
    try:
        find(MODELS[model].source)
    except MissingDataError as error:
        print(f"skipped {model}: {error}", flush=True)
        return False
    return True


if __name__ == "__main__":
    main()
