"""The commands put together, their help pages, and what is said of errors."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import freqsgd


class Command(NamedTuple):
    """A command that is imported when it runs, or when its own help is shown.

    Args:
        about: the first line of its docstring, or the first part of a line that is too long
        place: its module and function, or the commands of a group
        heading: of the part of the list of commands that begins here
    """

    about: str
    place: str | Mapping[str, Command]
    heading: str = ""


_STREAM = {
    "train": Command("Train a model in one pass over days of data, and save it.", "stream:train"),
    "compare": Command(
        "Compare several optimizers in one pass over days of data.", "stream:compare"
    ),
    "generate": Command("Write a click log as Parquet.", "data:generate"),
}
_WORDS = {
    "train": Command("Train word vectors and save them as a folder.", "words:train"),
    "compare": Command(
        "Train word vectors with several optimizers and compare them.", "words:compare"
    ),
    "neighbors": Command(
        "Print the tokens whose vectors are nearest, by cosine.", "models:neighbors"
    ),
    "analogy": Command("Print what is to C as B is to A.", "models:analogy"),
}
_DATA = {
    "list": Command("Name the datasets and where they are.", "data:list_datasets"),
    "get": Command("Download a dataset; go on with a download that was cut off.", "data:get"),
    "info": Command("Describe a dataset.", "data:info"),
}
COMMANDS = {  # in the order in which people need them
    "compare": Command(
        "Train one model with several optimizers and compare them.",
        "tables:compare",
        heading="Train on tables, on days of data, on text",
    ),
    "train": Command("Train a model and save it as a folder.", "tables:train"),
    "tune": Command("Search the best settings of each optimizer.", "tables:tune"),
    "stream": Command("One pass over days of data: train, compare, generate.", _STREAM),
    "words": Command("Word vectors of text: train, compare, neighbors, analogy.", _WORDS),
    "predict": Command(
        "Write the probability of a positive label for each row of a file.",
        "models:predict",
        heading="Use what was trained",
    ),
    "neighbors": Command(
        "Print the tokens whose vectors are nearest, by cosine.", "models:neighbors"
    ),
    "export": Command("Write a model's vectors and their tokens.", "models:export"),
    "convert": Command("Put the tables of torchrec's ranks together.", "models:convert"),
    "data": Command(
        "List, get and describe datasets.", _DATA, heading="Look at data, the paper, machines"
    ),
    "inspect": Command("Describe how unequally frequent tokens are.", "inspect:inspect_data"),
    "theory": Command("Check the paper's theorems by simulation.", "theory:theory"),
    "paper": Command("Measure every figure and table of the paper here.", "paper:paper"),
    "plan": Command(
        "Estimate memory, hosts and training time for tables of any size.", "plan:plan"
    ),
    "bench": Command(
        "Measure the rates of this machine that freqsgd plan predicts from.", "bench:bench"
    ),
}
_MOVED = {
    "freqsgd analogy": "freqsgd words analogy",
    "freqsgd data generate-clicks": "freqsgd stream generate",
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
UsageError: Any = typer.BadParameter.__base__  # of Typer's own copy of click, or of click itself


_ELSEWHERE = {  # commands by their names in groups
    name: f"freqsgd {group} {name}"
    for group, command in COMMANDS.items()
    if not isinstance(command.place, str)
    for name in command.place
} | {name: f"freqsgd {name}" for name in COMMANDS}


class _Panels(TyperCommand):
    """A command whose help lists its options by panel.

    Attributes:
        own: the options of its function; those that it shares stay in the context
    """

    own: frozenset[str] = frozenset()

    def invoke(self, ctx: Any) -> Any:
        """Run the function; in its errors, parameters are options."""
        from freqsgd.errors import DataError

        values = {name: value for name, value in ctx.params.items() if name in self.own}
        try:
            return ctx.invoke(self.callback, **values)
        except DataError as error:
            told = _as_options(str(error), self.params)
            raise (error if told == str(error) else DataError(told)) from error.__cause__

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        panels: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            text = parameter.get_help_record(ctx)
            if text is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                name = getattr(parameter, "rich_help_panel", None) or kind
                panels.setdefault(name, []).append(text)
        for name, texts in panels.items():
            with formatter.section(name):
                formatter.write_dl(texts)


def _made(name: str, command: Command) -> Any:
    about, place, _ = command
    if not isinstance(place, str):
        return _Overview(name=name, help=about, known=place, no_args_is_help=True)
    module, _, name_there = place.partition(":")
    function = getattr(import_module(f"freqsgd.cli.{module}"), name_there)
    made: Any = _typed(name, function)
    made.own = frozenset(parameter.name for parameter in made.params)
    for shared in getattr(function, "shared", ()):
        made.params += _typed(name, shared).params
    return made


def _typed(name: str, function: Callable[..., None]) -> Any:
    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.command(name, cls=_Panels)(function)
    return get_command(program)


def _as_options(message: str, parameters: Sequence[Any]) -> str:
    """Name options where an error names parameters of Python: where a clause begins with one."""
    for each in parameters:
        if each.param_type_name == "option":
            name = each.name.replace("_", "[_ ]")
            places = [
                rf"(?:^|(?<=[:;,] )){name}(?= (?:must|takes|does not go with|is for|is None)\b)",
                rf"(?<=was written with ){name}\b",
                rf"(?<=, now ){name}(?= is )",
                rf"(?<=does not go with ){name}$",
            ]
            if "_" in each.name:  # no word of a sentence
                places.append(rf"(?<![\w'.]){each.name}\b")
            message = re.sub("|".join(places), each.opts[0], message)
    return message


class _Overview(TyperGroup):
    """A group of commands: its help has a line for each, and imports none."""

    def __init__(self, *, known: Mapping[str, Command] = COMMANDS, **options: Any) -> None:
        super().__init__(**options)
        self.known = known

    def list_commands(self, ctx: Any) -> list[str]:
        """Return names in the order in which they are shown."""
        return list(self.known)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, which is imported now; None if there is none of this name."""
        return _made(cmd_name, self.known[cmd_name]) if cmd_name in self.known else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; tell where it is if its name has changed."""
        path, name = ctx.command_path, args[0]
        if new := _MOVED.get(old := f"{path} {name}"):
            ctx.fail(f"{old} is now {new}")
        if name not in self.known and not name.startswith("-"):
            here = {each: f"{path} {each}" for each in self.known}
            close = get_close_matches(name, _ELSEWHERE | here, 1)
            meant = f"; did you mean {(_ELSEWHERE | here)[close[0]]}?" if close else ""
            ctx.fail(f"No such command {name!r}{meant}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        path, known = ctx.command_path, self.known
        width = max(map(len, known))
        version = "" if ctx.parent else "[--version] "
        formatter.write(f"Usage: {path} {version}[--help] COMMAND ...\n\n{self.help}\n")
        formatter.write(f"Options of a command, and an example: {path} COMMAND --help\n\n")
        for name, command in known.items():
            if command.heading:
                formatter.write(f"{command.heading}:\n")
            formatter.write(f"  {name:{width}}  {command.about}\n")


app = typer.Typer(
    cls=_Overview,
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
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
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
    except UsageError as error:
        message = _unknown_option(error) or error.format_message()
        if "\n" in message:  # the whole help, where there is no command
            error.show()
            sys.exit(error.exit_code)
        if not message.endswith("--help"):
            end = "" if message.endswith("?") else ";"
            message = f"{message.rstrip('.')}{end} see {error.ctx.command_path} --help"
        _end(message)
    except ValueError as error:
        from freqsgd.errors import DataError

        if not isinstance(error, DataError):
            raise
        _end(str(error))
    sys.exit(code or 0)


def _unknown_option(error: Any) -> str:
    """Name an option that the command does not have, and what was probably meant."""
    if type(error).__name__ != "NoSuchOption":
        return ""
    option, name = error.option_name, error.ctx.info_name
    if option == "--one-pass" and name in _STREAM:
        now = f"freqsgd stream {name}"
        return f"{error.ctx.command_path} --one-pass is now {now}; see {now} --help"
    known = _options(error.ctx.command, error.ctx)
    meant = _SYNONYMS.get(option, option)
    if meant not in known:
        others = [path for path, it in _namesakes(name) if meant in _options(it, error.ctx)]
        if others:
            told = " and ".join(others)
            return f"No such option: {option}; {told} {'has' if len(others) == 1 else 'have'} it"
        bare = [each.lstrip("-") for each in known]  # dashes are alike in all
        close = get_close_matches(option.lstrip("-"), bare, 1)
        meant = f"--{close[0]}" if close else ""
    return f"No such option: {option}" + (f"; did you mean {meant}?" if meant else "")


def _options(command: Any, context: Any) -> list[str]:
    return [
        name
        for option in command.get_params(context)
        for name in (*option.opts, *option.secondary_opts)
    ]


def _namesakes(name: str) -> list[tuple[str, Any]]:
    """Return the commands of this name, at the top and in groups."""
    found = [("freqsgd", COMMANDS), ("freqsgd stream", _STREAM), ("freqsgd words", _WORDS)]
    return [(f"{path} {name}", _made(name, known[name])) for path, known in found if name in known]


def _end(message: str) -> NoReturn:
    rank = os.environ.get("RANK", "0")  # of torchrun's processes, which may have one error each
    where = "" if rank == "0" else f" on rank {rank}"
    print(f"freqsgd: error{where}: {message}", file=sys.stderr)
    sys.exit(2)
