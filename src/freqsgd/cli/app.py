"""The commands put together, and what they do about errors."""

from __future__ import annotations

import os
import sys
import warnings
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer

import freqsgd
from freqsgd.cli.panels import Command, Overview

__all__ = ["COMMANDS", "app", "run"]

_ABOUT = {  # in the order in which people need them
    "Train and compare": {
        "compare": "Train one model with several optimizers and compare them.",
        "train": "Train a model and save it as a folder.",
        "tune": "Search the best settings of each optimizer.",
    },
    "Use what was trained": {
        "predict": "Write the probability of a positive label for each row of a file.",
        "neighbors": "Print the tokens whose vectors are nearest, by cosine.",
        "analogy": "Print what is to C as B is to A.",
        "export": "Write a model's vectors and their tokens.",
        "convert": "Put the tables of torchrec's ranks together.",
    },
    "Look at data and at the paper": {
        "data": "List, get and describe datasets.",
        "inspect": "Say how unequally frequent tokens are.",
        "theory": "Check the paper's theorems by simulation.",
        "paper": "Measure every figure and table of the paper here.",
    },
    "Look ahead": {
        "plan": "Estimate memory, hosts and training time for tables of any size.",
        "bench": "Measure the rates of this machine that freqsgd plan predicts from.",
    },
}
_OTHER_NAMES = {"inspect": "inspect_data", "data": "app"}  # of functions

COMMANDS = {
    name: Command(group, about, f"freqsgd.cli.{name}", _OTHER_NAMES.get(name, name))
    for group, commands in _ABOUT.items()
    for name, about in commands.items()
}
_SYNONYMS = {  # names of options elsewhere, and ours
    "--output": "--out",
    "--input": "--data",
    "--overwrite": "--force",
    "--learning-rate": "--lr",
    "--embedding-dim": "--dim",
    "--target": "--label",
    "--jobs": "--threads",
    "--sep": "--separator",
    "--delimiter": "--separator",
}
_UsageError: Any = typer.BadParameter.__base__  # of typer's own copy of click, or of click itself


class _Freqsgd(Overview):
    known = COMMANDS


app = typer.Typer(
    cls=_Freqsgd,
    help="Train embeddings with a learning rate per token that follows its frequency.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
    from freqsgd.errors import DataWarning

    if issubclass(category, DataWarning):
        print(f"freqsgd: warning: {message}", file=sys.stderr)


def run() -> None:
    """Run the command that ``sys.argv`` names."""
    warnings.showwarning = _say_warning
    try:
        code = app(prog_name="freqsgd", standalone_mode=False)
    except _UsageError as error:
        message = _unknown_option(error) or error.format_message()
        if "\n" in message:  # the whole help, where there is no command
            error.show()
            sys.exit(error.exit_code)
        end = "" if message.endswith("?") else ";"
        _end(f"{message.rstrip('.')}{end} see {error.ctx.command_path} --help")
    except ValueError as error:
        from freqsgd.errors import DataError

        if not isinstance(error, DataError):
            raise
        _end(str(error))
    sys.exit(code or 0)


def _unknown_option(error: Any) -> str:
    """Name an option that the command does not have, and the one that was probably meant."""
    if type(error).__name__ != "NoSuchOption":
        return ""
    known = [name for option in error.ctx.command.get_params(error.ctx) for name in option.opts]
    other = _SYNONYMS.get(error.option_name)
    bare = [name.lstrip("-") for name in known]  # dashes are alike in all
    close = get_close_matches(error.option_name.lstrip("-"), bare, 1)
    meant = other if other in known else f"--{close[0]}" if close else None
    hint = f"; did you mean {meant}?" if meant else ""
    return f"No such option: {error.option_name}{hint}"


def _end(message: str) -> NoReturn:
    rank = os.environ.get("RANK", "0")  # of torchrun's processes, which may have one error each
    where = "" if rank == "0" else f" on rank {rank}"
    print(f"freqsgd: error{where}: {message}", file=sys.stderr)
    sys.exit(2)
