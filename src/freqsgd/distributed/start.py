"""The same start as in one process, wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from freqsgd.data.fields import Field
from freqsgd.distributed.layout import Layout
from freqsgd.distributed.model import ShardedFM
from freqsgd.distributed.tables import Rows
from freqsgd.nn.fm import DeepFM, deep_network, draw_rows, is_huge, start_bound
from freqsgd.training.prepare import new_model
from freqsgd.training.settings import Settings

__all__ = ["draw_start"]

_SOME = 1 << 20  # rows that are drawn at a time


@torch.no_grad()
def draw_start(
    fields: Sequence[Field], settings: Settings, held: list[Rows], model: ShardedFM, layout: Layout
) -> None:
    """Give a new model the weights that :func:`~freqsgd.training.prepare.new_model` would."""
    for rows in held:
        rows.weight.zero_()
    if is_huge((sum(layout.sizes), layout.dim + 1)):
        _draw(settings, held, model, layout)
        return
    whole = new_model(fields, settings)
    for rows in held:
        first = layout.starts[rows.table] + rows.first
        drawn = whole.tokens.weight[first : first + len(rows.weight)]
        rows.weight[:, : layout.dim + 1] = drawn
    if model.network is not None:
        assert isinstance(whole, DeepFM)
        model.network.load_state_dict(whole.network.state_dict())


def _draw(settings: Settings, held: list[Rows], model: ShardedFM, layout: Layout) -> None:
    """The same for tables that a rank need not have as a whole."""
    bound = start_bound(layout.sizes, layout.dim, settings.init_scale)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        seed = draw_rows(torch.empty(0, layout.dim + 1), bound)
        if model.network is not None:
            fresh = deep_network(len(layout.sizes) * layout.dim, settings.hidden, settings.dropout)
            model.network.load_state_dict(fresh.state_dict())
    for rows in held:
        first = layout.starts[rows.table] + rows.first
        for begin in range(0, len(rows.weight), _SOME):
            some = rows.weight[begin : begin + _SOME]
            drawn = torch.empty(len(some), layout.dim + 1)
            draw_rows(drawn, bound, first + begin, seed)
            some[:, : layout.dim] = drawn[:, : layout.dim]
