"""Options that commands share: each group is a function that makes something of its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, TypeVar

import typer

from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTING, OPTIMIZERS, Rule
from freqsgd.recommender.settings import AnySettings, Settings, with_preset
from freqsgd.tables.spec import DataOptions
from freqsgd.words.settings import TEXT_MODELS

__all__ = [
    "COLUMNS",
    "DATA",
    "MODEL",
    "ONE_PASS",
    "SEPARATOR",
    "chosen",
    "column_names",
    "counting_flags",
    "data_options",
    "is_given",
    "option",
    "rate",
    "rates",
    "rule_options",
    "settings",
    "shared_settings",
    "takes",
    "words",
]

_Made = TypeVar("_Made")


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., _Made]], Callable[..., _Made]]:
    """Give a command, or a group, the options of some groups; it gets what they make of them.

    Groups may share options. An option that a group is not given takes the group's own default.
    """

    def decorate(command: Callable[..., _Made]) -> Callable[..., _Made]:
        own = inspect.signature(command, eval_str=True).parameters
        wanted = {
            name: inspect.signature(make, eval_str=True).parameters for name, make in groups.items()
        }

        @wraps(command)
        def whole(**given: Any) -> _Made:
            made = {}
            for name, make in groups.items():
                try:
                    made[name] = make(**{k: given[k] for k in wanted[name] if k in given})
                except ValueError as error:
                    raise DataError(str(error)) from error
            return command(**{k: value for k, value in given.items() if k in own}, **made)

        parameters = {name: p for name, p in own.items() if name not in groups}
        for group in wanted.values():
            parameters |= {name: p for name, p in group.items() if name not in parameters}
        ordered = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters.values()]
        whole.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        whole.__annotations__ = {p.name: p.annotation for p in ordered}
        return whole

    return decorate


def option(text: str, *names: str, panel: str) -> Any:
    """An option with its help, in a panel of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=panel)


DATA, MODEL, _RATES = "Data", "Model and training", "Optimizer"
ONE_PASS = "One pass over days of data (--one-pass)"
SEPARATOR = "What stands between cells of text files: ';', '::', tab (default: by the file's name)."
COLUMNS = "Names of all columns, a,b,c, of text files without a header line."


def data_options(
    dataset: Annotated[
        str | None, option("synthetic (default), movielens-1m or criteo.", panel=DATA)
    ] = None,
    path: Annotated[
        str | None,
        option("Your own .csv, .tsv, .inter, .parquet or a folder of these.", "--data", panel=DATA),
    ] = None,
    label: Annotated[str | None, option("Column of the label, 0 or 1.", panel=DATA)] = None,
    features: Annotated[
        str, option("Columns of categories, a,b,c; lists are bags.", panel=DATA)
    ] = "",
    numeric: Annotated[str, option("Columns of numbers, to be binned.", panel=DATA)] = "",
    numeric_rule: Annotated[str, option("log or quantiles.", panel=DATA)] = "log",
    positive_above: Annotated[
        float | None, option("The label is 1 where its column is above this.", panel=DATA)
    ] = None,
    min_count: Annotated[
        int | None,
        option("Rarer tokens share an id (default: 10 for criteo, else 1).", panel=DATA),
    ] = None,
    max_bad_rows: Annotated[
        int, option("Malformed rows that are left out with a warning.", panel=DATA)
    ] = 0,
    split: Annotated[str, option("random, time:COLUMN or column:COLUMN.", panel=DATA)] = "random",
    validation_data: Annotated[str | None, option("A file to validate on.", panel=DATA)] = None,
    test_data: Annotated[str | None, option("A file to test on.", panel=DATA)] = None,
    split_seed: Annotated[int, option("Of the random split.", panel=DATA)] = 0,
    tail: Annotated[
        str, option("Of synthetic tokens: polynomial or exponential.", panel=DATA)
    ] = "polynomial",
    samples: Annotated[int, option("How many synthetic ones.", panel=DATA)] = 450_000,
    separator: Annotated[str | None, option(SEPARATOR, panel=DATA)] = None,
    columns: Annotated[str | None, option(COLUMNS, panel=DATA)] = None,
) -> DataOptions:
    """The data."""
    return DataOptions(
        dataset=dataset,
        path=path,
        label=label,
        features=words(features),
        numeric=words(numeric),
        numeric_rule=numeric_rule,
        positive_above=positive_above,
        min_count=min_count,
        max_bad_rows=max_bad_rows,
        split=split,
        validation_path=validation_data,
        test_path=test_data,
        split_seed=split_seed,
        tail=tail,
        samples=samples,
        separator=separator,
        columns=column_names(columns),
    )


def shared_settings(
    model: Annotated[str, option("fm or deepfm.", panel=MODEL)] = "fm",
    dim: Annotated[
        int | None, option("Size of the vectors (default: 64, deepfm 16).", panel=MODEL)
    ] = None,
    hidden: Annotated[str, option("Hidden layers of deepfm.", panel=MODEL)] = "16,16",
    dropout: Annotated[float, option("Of deepfm.", panel=MODEL)] = 0.2,
    epochs: Annotated[int, option("At most.", panel=MODEL)] = 60,
    patience: Annotated[
        int, option("Epochs without a better validation AUC before it ends.", panel=MODEL)
    ] = 5,
    batch_size: Annotated[int, option("Samples of a step.", panel=MODEL)] = 1024,
    seed: Annotated[int, option("Of start, order and dropout.", panel=MODEL)] = 0,
    checkpoint_steps: Annotated[
        int | None, option("Checkpoints within epochs too, after so many steps.", panel=MODEL)
    ] = None,
) -> Settings:
    """What all optimizers share, also in a search."""
    if model in TEXT_MODELS:
        raise DataError(
            f"there is no search of settings for {model}: compare several rates (compare --lr)"
        )
    return Settings(
        model=model,
        dim=dim,
        hidden=_layers(hidden),
        dropout=dropout,
        epochs=epochs,
        patience=patience,
        batch_size=batch_size,
        seed=seed,
        checkpoint_steps=checkpoint_steps,
    )


def _searched_settings(
    init_scale: Annotated[
        float, option("Times the xavier-uniform start of the vectors.", panel=MODEL)
    ] = 1.0,
    lr_decay: Annotated[
        str, option("constant, or linear: to 0 over all epochs.", panel=MODEL)
    ] = "constant",
) -> dict[str, Any]:
    return {"init_scale": init_scale, "lr_decay": lr_decay}


@takes(shared=shared_settings, searched=_searched_settings)
def settings(*, shared: Settings, searched: dict[str, Any]) -> Settings:
    """What all optimizers of a comparison share."""
    return replace(shared, **searched)


def rule_options(
    weight_decay: Annotated[float, option("Strength of the L2 penalty.", panel=_RATES)] = 0.0,
    weight_decay_power: Annotated[
        float, option("How it follows frequency; 1 is ordinary L2.", panel=_RATES)
    ] = 1.0,
    max_lr: Annotated[
        float | None,
        option(
            "Cap on a token's rate, for fasgd and cfsgd (default with --lr auto: 100 lr; one pass: "
            "0.03 lr times batch size, none with --count batch).",
            panel=_RATES,
        ),
    ] = None,
    linear_lr_scale: Annotated[
        float, option("Learning rate of linear weights, times that of vectors.", panel=_RATES)
    ] = 1.0,
    linear_decay_scale: Annotated[
        float, option("Weight decay of linear weights, times that of vectors.", panel=_RATES)
    ] = 1.0,
    halflife: Annotated[
        float | None,
        option("Examples after which cfsgd counts an occurrence half.", panel=ONE_PASS),
    ] = None,
    count: Annotated[
        str,
        option(
            "What cfsgd counts: occurrence, or batch: a token counts once per batch that holds it, "
            "as on TorchRec. Rates do not transfer: start from lr times the root of --batch-size.",
            panel=ONE_PASS,
        ),
    ] = "occurrence",
    dense_lr: Annotated[
        float | None,
        option(
            "Rate of bias and network with --count batch: the one they had with occurrence. "
            "Default: lr over the root of --batch-size.",
            panel=ONE_PASS,
        ),
    ] = None,
) -> Callable[[str, float | None], Rule]:
    """A function from an optimizer's name and learning rate to its rule."""

    def rule(optimizer: str, lr: float | None) -> Rule:
        counting: dict[str, Any] = {"halflife": halflife, "count": count, "dense_lr": dense_lr}
        try:
            return Rule(
                optimizer,
                lr,
                weight_decay=weight_decay,
                weight_decay_power=weight_decay_power,
                max_lr=max_lr,
                linear_lr_scale=linear_lr_scale,
                linear_decay_scale=linear_decay_scale,
                **(counting if optimizer in COUNTING else {}),
            )
        except ValueError as error:
            raise DataError(str(error)) from error

    rule(COUNTING[0], None)  # refuses what is out of range
    return rule


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in words(text))
    except ValueError:
        raise DataError(f"--hidden takes sizes such as 16,16, not {text!r}") from None


def words(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def column_names(text: str | None) -> tuple[str, ...]:
    """The names that --columns gives to the columns of a file, in their order."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def rates(text: str, optimizers: Sequence[str]) -> dict[str, str]:
    """Learning rates by optimizer, from ``sgd=10,cfsgd=auto`` or one for all."""
    if text and "=" not in text:
        return dict.fromkeys(optimizers, text)
    found = {}
    for part in words(text):
        name, _, rate = (piece.strip() for piece in part.partition("="))
        if not rate or name not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise DataError(
                f"--lr takes auto or pairs such as sgd=10,cfsgd=auto of {known}; {part!r} is none"
            )
        if name not in optimizers:
            raise DataError(f"--lr names {name}, which --optimizers does not")
        if name in found:
            raise DataError(f"--lr names {name} twice")
        found[name] = rate
    return found


def chosen(
    rule: Callable[[str, float | None], Rule],
    optimizer: str,
    lr: str,
    shared: AnySettings,
    values: Mapping[str, Any],
    context: typer.Context,
) -> tuple[Rule, AnySettings]:
    """The rule and settings of an optimizer: what was given goes before what a preset says."""
    given = {"lr"} if lr else set()
    given |= {name for name in values.keys() - {"lr"} if is_given(context, name)}
    open_ = {name: value for name, value in values.items() if name not in given}
    return with_preset(rule(optimizer, rate(lr)), shared, open_)


def rate(lr: str) -> float | None:
    """A learning rate; None if it is to be found."""
    try:
        number = float(lr) if lr not in ("", "auto") else None
    except ValueError:
        raise DataError(f"--lr takes a number or auto, not {lr!r}") from None
    if number == 0:
        raise DataError("--lr 0 would learn nothing")
    return number


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def counting_flags(context: typer.Context) -> list[str]:
    """Options on the command line that say how cfsgd counts in one pass."""
    return [f"--{name}" for name in ("halflife", "count") if is_given(context, name)]
