"""What is to be trained on what: a recommender or word vectors (--model), in one pass or many."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from freqsgd.cli.one_pass_options import one_pass_plan, stream_data, stream_settings
from freqsgd.cli.options import (
    ONE_PASS,
    chosen,
    counting_flags,
    data_options,
    is_given,
    option,
    settings,
    takes,
)
from freqsgd.cli.text_options import text_data, text_settings
from freqsgd.errors import DataError
from freqsgd.optimizers import CAPPED, Rule
from freqsgd.recommender.models import MODELS
from freqsgd.recommender.settings import Pass, Settings, preset, text_preset
from freqsgd.tables.spec import DataOptions, StreamOptions
from freqsgd.words.files import has_text_name
from freqsgd.words.settings import LOSSES, TEXT_MODELS, TextSettings, check_rule
from freqsgd.words.spec import TextOptions

__all__ = ["PresetName", "Request", "plans", "request"]

PresetName = Annotated[
    str, typer.Option("--preset", help="paper (rates; auto for other data) or best (all options).")
]


_FOR_LOSS = {"negatives": "negative", "max_norm": "softmax", "weight_decay_power": "softmax"}


class Request(NamedTuple):
    """What is asked for, whatever the optimizer."""

    data: DataOptions | TextOptions | StreamOptions
    settings: Settings | TextSettings
    plan: Pass | None = None  # of one-pass training

    @property
    def optimizers(self) -> str:
        """Those that are compared unless others are named."""
        if self.plan is not None:
            return "cfsgd,adagrad,rowwise-adagrad,sgd"
        if isinstance(self.settings, Settings):
            return "sgd,cfsgd,adagrad,adam"
        return "sgd,cfsgd,adam" if self.settings.loss == "softmax" else "sgd,cfsgd"


@takes(data=data_options, settings=settings)
def _recommender(*, data: DataOptions, settings: Settings) -> Request:
    return Request(data, settings)


@takes(data=text_data, settings=text_settings)
def _words(*, data: TextOptions, settings: TextSettings) -> Request:
    return Request(data, settings)


@takes(data=stream_data, settings=stream_settings, plan=one_pass_plan)
def _stream(*, data: StreamOptions, settings: Settings, plan: Pass) -> Request:
    return Request(data, settings, plan)


def request(context: typer.Context, model: str, one_pass: bool, **options: Any) -> Request:
    """Make what --model or --one-pass needs of the options; refuse those of other training."""
    kinds = {**dict.fromkeys(MODELS, _recommender), **dict.fromkeys(TEXT_MODELS, _words)}
    if model not in kinds:
        raise DataError(f"unknown model {model!r}; known: {', '.join(kinds)}")
    if one_pass and model in TEXT_MODELS:
        known = " and ".join(MODELS)
        raise DataError(f"--one-pass does not go with --model {model}: it is for {known}")
    kind = _stream if one_pass else kinds[model]
    given = {name: value for name, value in options.items() if is_given(context, name)}
    _check_known(context, given, kind, "--one-pass" if one_pass else f"--model {model}")
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
    return kind(model=model, **given)


def _check_known(
    context: typer.Context, given: Mapping[str, Any], kind: Callable[..., Request], what: str
) -> None:
    """Refuse options that are for another kind of training."""
    known, of_stream, of_words = (
        inspect.signature(each).parameters for each in (kind, _stream, _words)
    )
    for name in given.keys() - known.keys():
        if kind is _recommender and name in of_stream.keys() - of_words.keys():
            raise DataError(f"{_flag(context, name)} needs --one-pass")
        raise DataError(f"{_flag(context, name)} does not go with {what}")


def _check_loss(context: typer.Context, loss: str) -> None:
    """Refuse options that are for the other loss."""
    for name, other in _FOR_LOSS.items():
        if loss in LOSSES and loss != other and is_given(context, name):
            raise DataError(f"{_flag(context, name)} does not go with --loss {loss}")


def _options_of_all() -> inspect.Signature:
    """Those of any kind; where their defaults differ, None stands for all."""
    kinds = [inspect.signature(kind).parameters for kind in (_recommender, _words, _stream)]
    every = {**kinds[0], **kinds[1], "one_pass": _ONE_PASS}  # words say what they mean for others
    every |= {name: p for name, p in kinds[2].items() if name not in every}
    for name, parameter in every.items():
        defaults = [kind[name].default for kind in kinds if name in kind]
        if any(default != parameter.default for default in defaults):
            every[name] = parameter.replace(default=None)
    every["model"] = every["model"].replace(default="fm")
    return inspect.Signature([_keyword("context", typer.Context), *every.values()])


def _keyword(name: str, annotation: Any, **default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, **default)


_ONE_PASS = _keyword(
    "one_pass",
    Annotated[
        bool,
        option("See every example once, in the order of days.", "--one-pass", panel=ONE_PASS),
    ],
    default=False,
)
request.__signature__ = _options_of_all()  # type: ignore[attr-defined]


def _plan(
    context: typer.Context,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
    optimizer: str,
    lr: str,
    preset_name: str,
) -> tuple[Rule, Settings | TextSettings]:
    shared = asked.settings
    assert not isinstance(asked.data, StreamOptions)
    if isinstance(shared, Settings):
        values = preset(preset_name, asked.data.name, shared.model, optimizer) or {}
        return chosen(rule, optimizer, lr, shared, values, context)
    if lr == "auto":
        raise DataError(
            "--lr auto is for recommenders: word vectors have default rates; leave --lr out to "
            "use them"
        )
    values = text_preset(preset_name, shared.model, shared.loss, optimizer)
    its_rule, its_settings = chosen(rule, optimizer, lr, shared, values, context)
    check_rule(its_rule, its_settings)
    return its_rule, its_settings


def plans(
    context: typer.Context,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
    lrs: Sequence[tuple[str, str]],
    preset_name: str,
) -> list[tuple[Rule, Settings | TextSettings]]:
    """The rules and settings of optimizers, each with its rate as it was given."""
    if flags := counting_flags(context):
        raise DataError(f"{flags[0]} needs --one-pass")
    names, text = [name for name, _ in lrs], isinstance(asked.settings, TextSettings)
    if text and is_given(context, "max_lr") and not set(CAPPED) & set(names):
        raise DataError(f"--max-lr is for {' and '.join(CAPPED)}, not for {', '.join(names)}")
    return [_plan(context, asked, rule, name, lr, preset_name) for name, lr in lrs]


def _flag(context: typer.Context, name: str) -> str:
    """An option as it is written on the command line."""
    return next(p.opts[0] for p in context.command.params if p.name == name)
