"""Models of TorchRec, whose tables are spread over processes, under the law of freqsgd."""

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
