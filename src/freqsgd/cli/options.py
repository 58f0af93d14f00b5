"""Options that commands share, and objects made of a command's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from freqsgd.cli.app import UsageError
from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTING, OPTIMIZERS, Rule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NAMES = ", ".join(OPTIMIZERS)


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """Make an option with its help, in a panel of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


DATA = "Data"
in_data = partial(option, panel=DATA)
in_model = partial(option, panel="Model and training")
in_rule = partial(option, panel="Optimizer")


def path_option(text: str, name: str, kind: type = str, **more: Any) -> Any:
    """Make an option that names a file or folder, which must not be empty."""

    def named(path: str) -> Any:
        if path == "":  # which Path would take for the current folder
            raise UsageError(f"{name} is empty: name a file or folder")
        return kind(path)

    return option(text, name, parser=named, metavar="PATH", **more)


data_option = partial(path_option, panel=DATA)
target = partial(path_option, name="--out", kind=Path)

# ---- data ----------------------------------------------------------------------------------------
Label = Annotated[str | None, in_data("Column of the label, 0 or 1.")]
Features = Annotated[str, in_data("Columns of categories, a,b,c; lists are bags of tokens.")]
Numeric = Annotated[str, in_data("Columns of numbers, a,b,c, which are binned.")]
NumericRule = Annotated[str, in_data("Binning of numbers: log or quantiles.")]
PositiveAbove = Annotated[
    float | None, in_data("Threshold above which the label's column means 1.")
]
MaxBadRows = Annotated[int, in_data("Number of malformed rows to leave out with a warning.")]
Separator = Annotated[
    str | None,
    in_data("Separator of cells in text files: ';', '::', tab (default: by the file's name)."),
]
Columns = Annotated[
    str | None, in_data("Names of all columns, a,b,c, for text files without a header line.")
]
_HELD_OUT = "(default: a part of the data is held out)"
ValidationPath = Annotated[
    str | None, data_option(f"File to validate on {_HELD_OUT}.", "--validation-data")
]
TestPath = Annotated[str | None, data_option(f"File to test on {_HELD_OUT}.", "--test-data")]
SplitSeed = Annotated[int, in_data("Random seed for the split of the data.")]

# ---- model and training --------------------------------------------------------------------------
Model = Annotated[str, in_model("Model to train: fm or deepfm.")]
Hidden = Annotated[str, in_model("Sizes of deepfm's hidden layers.")]
Dropout = Annotated[float, in_model("Dropout probability of deepfm's hidden layers.")]
InitScale = Annotated[float, in_model("Factor on the Xavier-uniform start of the vectors.")]
BatchSize = Annotated[int, in_model("Batch size, in samples.")]
Seed = Annotated[int, in_model("Random seed for initialization, shuffling and dropout.")]
CheckpointSteps = Annotated[
    int | None, in_model("Number of steps between checkpoints within an epoch (default: none).")
]

# ---- optimizer -----------------------------------------------------------------------------------
Optimizer = Annotated[str, option(f"Optimizer: {NAMES}.")]
Optimizers = Annotated[str, option(f"Optimizers, a,b,c, of {NAMES}.")]
WeightDecay = Annotated[float, in_rule("Strength of the L2 penalty.")]
WeightDecayPower = Annotated[
    float, in_rule("Exponent by which weight decay follows frequency; 1 is ordinary L2.")
]
LinearLrScale = Annotated[float, in_rule("Factor on the learning rate of linear weights.")]
LinearDecayScale = Annotated[float, in_rule("Factor on the weight decay of linear weights.")]

# ---- the run -------------------------------------------------------------------------------------
Resume = Annotated[
    bool, option("Resume the run in --out, given the options that it was begun with.", "--resume")
]
Threads = Annotated[
    int | None, option("Number of threads (default: torch's choice).", min=1, max=1024)
]
Force = Annotated[bool, option("Replace files that exist.", "--force")]
AsJson = Annotated[bool, option("Print JSON.", "--json")]

_Made = TypeVar("_Made", bound="DataclassInstance")
_Command = TypeVar("_Command", bound=Callable[..., None])


def takes(*shared: Callable[..., None]) -> Callable[[_Command], _Command]:
    """Give a command the options of functions, too, which it finds in its context."""

    def give(command: _Command) -> _Command:
        vars(command)["shared"] = shared
        return command

    return give


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
