"""Models of TorchRec, whose tables are spread over processes, under the law of freqsgd."""

from typing import TYPE_CHECKING

from freqsgd._lazy import lazy_names

if TYPE_CHECKING:
    from freqsgd.distributed.group import agree, check_loss, join, leave
    from freqsgd.distributed.libraries import require_torchrec
    from freqsgd.distributed.sharding import dense_parameters, shard
    from freqsgd.distributed.table_rates import TableRates

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
        {
            "TableRates": "freqsgd.distributed.table_rates",
            "agree": "freqsgd.distributed.group",
            "check_loss": "freqsgd.distributed.group",
            "dense_parameters": "freqsgd.distributed.sharding",
            "join": "freqsgd.distributed.group",
            "leave": "freqsgd.distributed.group",
            "require_torchrec": "freqsgd.distributed.libraries",
            "shard": "freqsgd.distributed.sharding",
        },
    )
