"""FM and DeepFM as ONNX graphs: from ids to probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

import freqsgd
from freqsgd.errors import DataError
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.runs.machine import byte_size
from freqsgd.tables.fields import ABSENT
from freqsgd.vectors.vectors import SavedModel

INPUT, OUTPUT = "ids", "probability"
_OPSET, _IR = 17, 8  # of 2022: what is still in use reads it
_LARGEST = 2**31 - 2**20  # bytes of a file, by the format's own limit; the rest is for the graph


_FM = """
    low_enough = Less (ids, field_size)
    high_enough = GreaterOrEqual (ids, lowest_id)
    in_range = And (high_enough, low_enough)
    not_negative = GreaterOrEqual (ids, zero)
    a_token = And (not_negative, low_enough)
    row_of_token = Add (ids, field_start)
    row = Where (a_token, row_of_token, last_row)

    vectors = Gather (token_vectors, row)
    sum_of_vectors = ReduceSum <keepdims = 0> (vectors, across_columns)
    square_of_sum = ReduceSumSquare <axes = [1], keepdims = 0> (sum_of_vectors)
    sum_of_squares = ReduceSumSquare <axes = [1, 2], keepdims = 0> (vectors)
    twice_the_pairs = Sub (square_of_sum, sum_of_squares)
    pairs = Mul (twice_the_pairs, half)

    weights = Gather (token_weights, row)
    checked_weights = Where (in_range, weights, nan)
    linear = ReduceSum <keepdims = 0> (checked_weights, across_columns)
"""


def onnx_bytes(model: FM, bags: Sequence[bool]) -> bytes:
    """Return an ONNX file of a model.

    The graph takes ``ids`` (int64, samples x columns) and gives ``probability`` (float32, samples).
    An id of -1 in a column of a bag adds nothing. Any other id outside a field's range makes the
    sample's probability NaN, and no other sample's.

    Args:
        model: as it predicts, without dropout and with the saved statistics of batch norm
        bags: which fields are bags
    """
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    if size > _LARGEST:
        raise DataError(
            f"the model has {byte_size(size)}, and a file of the format onnx holds 2 at most: "
            "use the format safetensors"
        )
    try:
        import onnx
        from onnx import parser
    except ImportError as error:
        raise DataError("the format onnx needs onnx: pip install 'freqsgd[onnx]'") from error
    weight, of_bags = model.tokens.weight.detach(), np.array(bags)[model.columns_field.numpy()]
    padded = torch.cat([weight, torch.zeros_like(weight[:1])])  # the last row is for no token
    constants = {
        "lowest_id": np.where(of_bags, ABSENT, 0),
        "field_size": model.columns_size,
        "field_start": model.columns_start,
        "last_row": np.array(len(weight)),
        "zero": np.array(0),
        "across_columns": np.array([1]),
        "token_vectors": padded[:, : model.dim],
        "token_weights": padded[:, model.dim],
        "half": np.float32(0.5),
        "nan": np.float32(np.nan),
        "bias": model.bias.detach(),
    }
    parts, nodes = ["bias", "pairs", "linear"], [_FM]
    if isinstance(model, DeepFM):
        parts.append("network")
        nodes += _network(model, constants)
    columns = len(model.columns_start)
    graph = parser.parse_graph(
        f"freqsgd (int64[samples, {columns}] {INPUT}) => (float[samples] {OUTPUT}) {{"
        + "\n".join(nodes)
        + f"log_odds = Sum ({', '.join(parts)})\n{OUTPUT} = Sigmoid (log_odds) }}"
    )
    for name, values in constants.items():
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    whole = onnx.helper.make_model(
        graph,
        producer_name="freqsgd",
        producer_version=freqsgd.__version__,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    content: bytes = whole.SerializeToString()
    return content


def _network(model: DeepFM, constants: dict[str, Any]) -> Iterator[str]:
    """Yield the nodes of DeepFM's network, and add its weights to the constants."""
    yield "network_input = Flatten <axis = 1> (vectors)"
    value = "network_input"
    for number, layer in enumerate(_layers_on_columns(model)):
        if isinstance(layer, nn.Linear):
            operator, names = "Gemm <transB = 1>", ["weight", "bias"]
        elif isinstance(layer, nn.BatchNorm1d):
            operator = f"BatchNormalization <epsilon = {layer.eps}>"
            names = ["weight", "bias", "running_mean", "running_var"]
        elif isinstance(layer, nn.ReLU):
            operator, names = "Relu", []
        else:
            assert isinstance(layer, nn.Dropout)  # which is off where a model serves
            continue
        before, value = value, f"network_{number}"
        constants |= {f"{value}_{name}": getattr(layer, name).detach() for name in names}
        yield f"{value} = {operator} ({', '.join([before, *(f'{value}_{n}' for n in names)])})"
    yield f"network = Squeeze ({value}, across_columns)\n"


def _layers_on_columns(model: DeepFM) -> list[nn.Module]:
    """Return the network's layers, the first one for a vector per column instead of one per field.

    The vectors of a bag's columns would be summed first; it is the same to weigh each as their sum.
    """
    first, *rest = model.network
    assert isinstance(first, nn.Linear)
    weight = first.weight.detach().unflatten(1, (len(model.sizes), model.dim))
    weight = weight[:, model.columns_field].flatten(1)
    wide = nn.Linear(weight.shape[1], len(weight))
    wide.weight, wide.bias = nn.Parameter(weight), first.bias
    return [wide, *rest]


FORMAT = 1


def dictionary_bytes(saved: SavedModel) -> bytes:
    """Return the fields in the order of their columns, and the id of every token's text."""
    firsts = np.cumsum([0, *saved.model.widths]).tolist()
    texts = saved.encoder.texts() if saved.encoder else None
    fields = []
    for number, column in enumerate(saved.columns):
        bins = {"edges": column.edges} if column.edges else "log"  # how a number becomes a token
        field = {
            "name": column.name,
            "kind": column.kind,
            **({"bins": bins} if column.is_number else {}),
            "first_column": firsts[number],
            "columns": column.width,
            "size": saved.model.sizes[number],
            "ids": {text: k for k, text in enumerate(texts[number], start=1)} if texts else None,
        }
        fields.append(field)
    whole = {"format": FORMAT, "input": INPUT, "output": OUTPUT, "fields": fields}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode()
