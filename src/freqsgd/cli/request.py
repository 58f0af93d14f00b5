"""What is to be trained on what: a recommender or word vectors, as --model says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from freqsgd.cli.options import chosen, data_options, is_given, settings, takes
from freqsgd.cli.text_options import text_data, text_settings
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.data.text_files import has_text_name
from freqsgd.data.text_options import TextOptions
from freqsgd.training.presets import preset, text_preset
from freqsgd.training.rules import Rule
from freqsgd.training.settings import MODELS, Settings
from freqsgd.training.text_rules import check_rule
from freqsgd.training.text_settings import LOSSES, TEXT_MODELS, TextSettings

__all__ = ["PresetName", "Request", "plans", "request"]

PresetName = Annotated[
    str, typer.Option("--preset", help="paper (rates; auto for other data) or best (all options).")
]


_FOR_LOSS = {"negatives": "negative", "max_norm": "softmax", "weight_decay_power": "softmax"}
_CAPPED = ("fasgd", "cfsgd")


class Request(NamedTuple):
    """What is asked for, whatever the optimizer."""

    data: DataOptions | TextOptions
    settings: Settings | TextSettings

    @property
    def optimizers(self) -> str:
        """Those that are compared unless others are named."""
        if isinstance(self.settings, Settings):
            return "sgd,cfsgd,adagrad,adam"
        return "sgd,cfsgd,adam" if self.settings.loss == "softmax" else "sgd,cfsgd"


@takes(data=data_options, settings=settings)
def _recommender(*, data: DataOptions, settings: Settings) -> Request:
    return Request(data, settings)


@takes(data=text_data, settings=text_settings)
def _words(*, data: TextOptions, settings: TextSettings) -> Request:
    return Request(data, settings)


def request(context: typer.Context, model: str, **options: Any) -> Request:
    """Make what --model needs of the options that were given; refuse those of other models."""
    kinds = {**dict.fromkeys(MODELS, _recommender), **dict.fromkeys(TEXT_MODELS, _words)}
    if model not in kinds:
        raise DataError(f"unknown model {model!r}; known: {', '.join(kinds)}")
    known = inspect.signature(kinds[model]).parameters
    given = {name: value for name, value in options.items() if is_given(context, name)}
    for name in given:
        if name not in known:
            raise DataError(f"{_flag(context, name)} does not go with --model {model}")
    for name in ("path", "validation_data", "test_data"):
        if given.get(name) == "":
            raise DataError(f"{_flag(context, name)} names no file or folder")
    if model in TEXT_MODELS:
        _check_loss(context, given.get("loss", "negative"))
    elif "label" not in given and has_text_name(given.get("path") or ""):
        raise DataError(
            f"{given['path']}: name the column that holds the label (--label); if this is text, "
            f"choose --model {' or '.join(TEXT_MODELS)}"
        )
    return kinds[model](model=model, **given)


def _check_loss(context: typer.Context, loss: str) -> None:
    """Refuse options that are for the other loss."""
    for name, other in _FOR_LOSS.items():
        if loss in LOSSES and loss != other and is_given(context, name):
            raise DataError(f"{_flag(context, name)} does not go with --loss {loss}")


def _options_of_both() -> inspect.Signature:
    """Those of either kind; where their defaults differ, None stands for both."""
    one, other = (inspect.signature(kind).parameters for kind in (_recommender, _words))
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    both = {**one, **other}
    for name in one.keys() & other.keys():
        if one[name].default != other[name].default:
            both[name] = both[name].replace(default=None)
    both["model"] = both["model"].replace(default="fm")
    return inspect.Signature([context, *both.values()])


request.__signature__ = _options_of_both()  # type: ignore[attr-defined]


def _plan(
    context: typer.Context,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
    optimizer: str,
    lr: str,
    preset_name: str,
) -> tuple[Rule, Settings | TextSettings]:
    shared = asked.settings
    if isinstance(shared, Settings):
        values = preset(preset_name, asked.data.name, shared.model, optimizer) or {}
        return chosen(rule, optimizer, lr, shared, values, context)
    if lr == "auto":
        raise DataError(
            "--lr auto is for recommenders: word vectors have default rates; leave --lr out to "
            "use them"
        )
    values = text_preset(preset_name, shared.model, shared.loss, optimizer)
    its_rule, shared = chosen(rule, optimizer, lr, shared, values, context)
    check_rule(its_rule, shared)
    return its_rule, shared


def plans(
    context: typer.Context,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
    lrs: Sequence[tuple[str, str]],
    preset_name: str,
) -> list[tuple[Rule, Settings | TextSettings]]:
    """The rules and settings of optimizers, each with its rate as it was given."""
    names, text = [name for name, _ in lrs], isinstance(asked.settings, TextSettings)
    if text and is_given(context, "max_lr") and not set(_CAPPED) & set(names):
        raise DataError(f"--max-lr is for {' and '.join(_CAPPED)}, not for {', '.join(names)}")
    return [_plan(context, asked, rule, name, lr, preset_name) for name, lr in lrs]


def _flag(context: typer.Context, name: str) -> str:
    """An option as it is written on the command line."""
    return next(p.opts[0] for p in context.command.params if p.name == name)
