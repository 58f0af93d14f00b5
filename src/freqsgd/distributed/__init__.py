"""Models of TorchRec, whose tables are spread over processes, under the law of freqsgd."""

from freqsgd.distributed.group import agree, any_rank, check_loss, gather_texts, join, lost_rank
from freqsgd.distributed.libraries import require_torchrec
from freqsgd.distributed.limits import check_rule_options
from freqsgd.distributed.sharding import dense_parameters, shard
from freqsgd.distributed.table_rates import TableRates

__all__ = [
    "TableRates",
    "agree",
    "any_rank",
    "check_loss",
    "check_rule_options",
    "dense_parameters",
    "gather_texts",
    "join",
    "lost_rank",
    "require_torchrec",
    "shard",
]
