"""The commands put together, and what they do about errors."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

import freqsgd
from freqsgd.cli import (
    analogy,
    bench,
    compare,
    convert,
    data,
    export,
    inspect,
    neighbors,
    plan,
    predict,
    theory,
    train,
    tune,
)
from freqsgd.cli.panels import Panels
from freqsgd.data.dataset import DataError, DataWarning

__all__ = ["app", "run"]

_UsageError: Any = typer.BadParameter.__base__  # of typer's own copy of click, or of click itself

app = typer.Typer(
    help="Train recommenders and word vectors with a learning rate per token that follows its "
    "frequency.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(cls=Panels)(compare.compare)
app.command(cls=Panels)(train.train)
app.command(cls=Panels)(tune.tune)
app.command()(predict.predict)
app.command()(export.export)
app.command()(convert.convert)
app.command()(neighbors.neighbors)
app.command()(analogy.analogy)
app.command("inspect")(inspect.inspect_data)
app.command()(theory.theory)
app.command(cls=Panels)(plan.plan)
app.command()(bench.bench)
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        print(freqsgd.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


def _say_warning(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
    if issubclass(category, DataWarning):
        print(f"freqsgd: warning: {message}", file=sys.stderr)


def run() -> None:
    """Run the command that ``sys.argv`` names."""
    warnings.showwarning = _say_warning
    try:
        code = app(prog_name="freqsgd", standalone_mode=False)
    except DataError as error:
        _end(str(error))
    except _UsageError as error:
        message = error.format_message()
        if "\n" in message:  # the whole help, where there is no command
            error.show()
            sys.exit(error.exit_code)
        _end(f"{message.rstrip('.')}; see {error.ctx.command_path} --help")
    sys.exit(code or 0)


def _end(message: str) -> NoReturn:
    rank = os.environ.get("RANK", "0")  # of torchrun's processes, which may have one error each
    where = "" if rank == "0" else f" on rank {rank}"
    print(f"freqsgd: error{where}: {message}", file=sys.stderr)
    sys.exit(2)
