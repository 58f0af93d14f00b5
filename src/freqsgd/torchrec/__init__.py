"""Models of TorchRec, whose tables are spread over processes, under the law of freqsgd."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.torchrec.group import agree, check_loss, join, leave
    from freqsgd.torchrec.limits import require_torchrec
    from freqsgd.torchrec.sharding import dense_parameters, shard
    from freqsgd.torchrec.table_rates import TableRates

__all__ = [
    "TableRates",
    "agree",
    "check_loss",
    "dense_parameters",
    "join",
    "leave",
    "require_torchrec",
    "shard",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        group="agree check_loss join leave",
        limits="require_torchrec",
        sharding="dense_parameters shard",
        table_rates="TableRates",
    )
