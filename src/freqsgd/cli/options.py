"""Options that commands share, and objects made of a command's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTING, OPTIMIZERS, Rule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

UsageError: Any = typer.BadParameter.__base__  # of Typer's own copy of click, or of click itself
DATA, MODEL, OPTIMIZER = "Data", "Model and training", "Optimizer"  # panels of help pages
NAMES = ", ".join(OPTIMIZERS)


def option(text: str, *names: str, panel: str | None = None) -> Any:
    """Make an option with its help, in a panel of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=panel)


def path_option(text: str, *names: str) -> Any:
    """Make an option that names data, which must not be empty."""

    def named(path: str) -> str:
        if path == "":
            raise UsageError(f"{names[0]} names no file or folder")
        return path

    return typer.Option(*names, help=text, rich_help_panel=DATA, parser=named, metavar="PATH")


# ---- data ----------------------------------------------------------------------------------------
_TABLES = "Your own files: .csv, .tsv, .inter or .parquet, a folder of these, or a pattern"
TablePath = Annotated[str | None, path_option(f"{_TABLES} such as 'logs/day-*'.", "--data")]
Label = Annotated[str | None, option("Column that holds the label, 0 or 1.", panel=DATA)]
Features = Annotated[
    str, option("Columns of categories, comma-separated; lists are bags of tokens.", panel=DATA)
]
Numeric = Annotated[
    str, option("Columns of numbers, comma-separated; they are binned.", panel=DATA)
]
NumericRule = Annotated[
    str, option("Binning of the columns of numbers: log or quantiles.", panel=DATA)
]
PositiveAbove = Annotated[
    float | None, option("Label a row 1 where the label's column is above this value.", panel=DATA)
]
MaxBadRows = Annotated[
    int, option("Number of malformed rows to leave out with a warning.", panel=DATA)
]
Separator = Annotated[
    str | None,
    option(
        "Separator between the cells of text files, such as ';', '::' or tab "
        "(default: by the file's name).",
        panel=DATA,
    ),
]
Columns = Annotated[
    str | None,
    option(
        "Names of all columns, comma-separated, for text files without a header line.", panel=DATA
    ),
]
ValidationPath = Annotated[
    str | None,
    path_option(
        "File to validate on (default: a part of the data that is held out).", "--validation-data"
    ),
]
TestPath = Annotated[
    str | None,
    path_option("File to test on (default: a part of the data that is held out).", "--test-data"),
]
SplitSeed = Annotated[int, option("Random seed for the split of the data.", panel=DATA)]

# ---- model and training --------------------------------------------------------------------------
Recommender = Annotated[str, option("Model to train: fm or deepfm.", panel=MODEL)]
Hidden = Annotated[str, option("Sizes of deepfm's hidden layers, comma-separated.", panel=MODEL)]
Dropout = Annotated[float, option("Dropout probability of deepfm's hidden layers.", panel=MODEL)]
InitScale = Annotated[
    float, option("Factor on the Xavier-uniform initialization of the vectors.", panel=MODEL)
]
BatchSize = Annotated[int, option("Batch size, in samples.", panel=MODEL)]
Seed = Annotated[int, option("Random seed for initialization, shuffling and dropout.", panel=MODEL)]
CheckpointSteps = Annotated[
    int | None,
    option("Write a checkpoint every so many steps (default: after each epoch only).", panel=MODEL),
]

# ---- optimizer -----------------------------------------------------------------------------------
OptimizerName = Annotated[str, option(f"Optimizer: {NAMES}.")]
WeightDecay = Annotated[float, option("Strength of the L2 penalty.", panel=OPTIMIZER)]
WeightDecayPower = Annotated[
    float,
    option(
        "Exponent by which weight decay follows token frequency; 1 is ordinary L2, 0 decays with "
        "each occurrence.",
        panel=OPTIMIZER,
    ),
]
LinearLrScale = Annotated[
    float, option("Learning rate of linear weights, relative to --lr.", panel=OPTIMIZER)
]
LinearDecayScale = Annotated[
    float, option("Weight decay of linear weights, relative to --weight-decay.", panel=OPTIMIZER)
]

# ---- the run -------------------------------------------------------------------------------------
Resume = Annotated[bool, option("Resume the run in --out.", "--resume")]
Threads = Annotated[
    int | None, option("Number of threads of kernels and torch (default: torch's own choice).")
]
Force = Annotated[bool, option("Replace files that exist.", "--force")]
AsJson = Annotated[bool, option("Print JSON.", "--json")]

_Made = TypeVar("_Made", bound="DataclassInstance")


def words(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def column_names(text: str | None) -> tuple[str, ...]:
    """Return the names that --columns gives to the columns of a file, in their order."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def layers(text: str) -> tuple[int, ...]:
    """Return the sizes that --hidden lists."""
    try:
        return tuple(int(number) for number in words(text))
    except ValueError:
        raise DataError(f"--hidden takes sizes such as 16,16, not {text!r}") from None


_LISTS: dict[str, Callable[[str], Any]] = {
    "features": words,
    "numeric": words,
    "columns": column_names,
    "hidden": layers,
}


def made(kind: type[_Made], context: typer.Context, **values: Any) -> _Made:
    """Make an object of the command's options that are called as its fields, and of values.

    An option that is None leaves the field's own default.
    """
    for field in fields(kind):
        value = context.params.get(field.name)
        if field.name not in values and value is not None:
            read = _LISTS.get(field.name)
            values[field.name] = read(value) if read else value
    try:
        return kind(**values)
    except ValueError as error:
        raise DataError(str(error)) from error


def given(context: typer.Context) -> set[str]:
    """Return the names of the parameters that are on the command line."""
    return {
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }


def flag(context: typer.Context, name: str) -> str:
    """Return an option as it is written on the command line."""
    return next(p.opts[0] for p in context.command.params if p.name == name)


_COUNTING = ("halflife", "count", "dense_lr")


def rule_of(context: typer.Context, optimizer: str, lr: str) -> Rule:
    """Make the rule of an optimizer; what only some optimizers take is left out for others."""
    others = () if optimizer in COUNTING else _COUNTING
    default = {name: getattr(Rule, name) for name in others}
    return made(Rule, context, optimizer=optimizer, lr=rate(lr), **default)


def compared(text: str) -> tuple[str, ...]:
    """Return the optimizers that --optimizers names."""
    names = words(text)
    if not names:
        raise DataError(f"--optimizers names none of {NAMES}")
    return names


def rates(text: str, optimizers: Sequence[str]) -> dict[str, str]:
    """Return learning rates by optimizer, from ``sgd=10,cfsgd=auto`` or one for all."""
    if text and "=" not in text:
        return dict.fromkeys(optimizers, text)
    found = dict.fromkeys(optimizers, "")
    for part in words(text):
        name, _, rate = (piece.strip() for piece in part.partition("="))
        if not rate or name not in OPTIMIZERS:
            raise DataError(
                f"--lr takes auto or pairs such as sgd=10,cfsgd=auto of {NAMES}; {part!r} is none"
            )
        if name not in optimizers:
            raise DataError(f"--lr names {name}, which --optimizers does not")
        if found[name]:
            raise DataError(f"--lr names {name} twice")
        found[name] = rate
    return found


def rate(lr: str) -> float | None:
    """Return a learning rate; None if it is to be found."""
    try:
        number = float(lr) if lr not in ("", "auto") else None
    except ValueError:
        raise DataError(f"--lr takes a number or auto, not {lr!r}") from None
    if number == 0:
        raise DataError("--lr 0 would learn nothing")
    return number
