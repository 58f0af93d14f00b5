"""FM and DeepFM as ONNX graphs: from ids to probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

import freqsgd
from freqsgd.errors import DataError
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.tables.columns import Column
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.fields import ABSENT
from freqsgd.vectors.vectors import SavedModel

INPUT, OUTPUT = "ids", "probability"
_OPSET, _IR = 17, 8  # of 2022: what is still in use reads it
_LARGEST = 2**31 - 2**20  # bytes of a file, by the format's own limit; the rest is for the graph


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
            f"the model has {size / 1e9:.1f} GB, and a file of the format onnx holds 2 at most: "
            "use the format safetensors"
        )
    graph = _Graph()
    probability = graph.add("Sigmoid", _log_odds(graph, model, bags), to=OUTPUT)
    return graph.serialize(len(model.columns_start), probability)


class _Graph:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise DataError("the format onnx needs onnx: pip install 'freqsgd[onnx]'") from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """Add a constant; returns its name."""
        array = values.detach().numpy() if isinstance(values, Tensor) else values
        made = self._onnx.numpy_helper.from_array(np.asarray(array, dtype), name)
        self._constants.append(made)
        return name

    def add(self, operator: str, *inputs: str, to: str, **attributes: Any) -> str:
        """Add a node of one output; returns the name of the output."""
        self._nodes.append(
            self._onnx.helper.make_node(operator, inputs, [to], name=to, **attributes)
        )
        return to

    def serialize(self, columns: int, output: str) -> bytes:
        """Return the content of the file."""
        onnx = self._onnx
        tensor, types = onnx.helper.make_tensor_value_info, onnx.TensorProto
        graph = onnx.helper.make_graph(
            self._nodes,
            "freqsgd",
            [tensor(INPUT, types.INT64, ["samples", columns])],
            [tensor(output, types.FLOAT, ["samples"])],
            self._constants,
        )
        whole = onnx.helper.make_model(
            graph,
            producer_name="freqsgd",
            producer_version=freqsgd.__version__,
            opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
            ir_version=_IR,
        )
        content: bytes = whole.SerializeToString()
        return content


def _log_odds(graph: _Graph, model: FM, bags: Sequence[bool]) -> str:
    in_range, row = _find_rows(graph, model, bags)
    weight = model.tokens.weight.detach().numpy()
    padded = np.concatenate([weight, np.zeros_like(weight[:1])])  # the last row is for no token
    across = graph.constant("across_columns", [1], np.int64)

    vectors = graph.constant("token_vectors", padded[:, : model.dim])
    vectors = graph.add("Gather", vectors, row, to="vectors")
    total = graph.add("ReduceSum", vectors, across, to="sum_of_vectors", keepdims=0)
    pairs = graph.add(
        "Sub",
        graph.add("ReduceSumSquare", total, to="square_of_sum", axes=[1], keepdims=0),
        graph.add("ReduceSumSquare", vectors, to="sum_of_squares", axes=[1, 2], keepdims=0),
        to="twice_the_pairs",
    )
    parts = [
        graph.constant("bias", model.bias),
        graph.add("Mul", pairs, graph.constant("half", 0.5), to="pairs"),
    ]

    weights = graph.constant("token_weights", padded[:, model.dim])
    weights = graph.add("Gather", weights, row, to="weights")
    weights = graph.add(
        "Where", in_range, weights, graph.constant("nan", np.nan), to="checked_weights"
    )
    parts.append(graph.add("ReduceSum", weights, across, to="linear", keepdims=0))
    if isinstance(model, DeepFM):
        parts.append(_network(graph, model, vectors))
    return graph.add("Sum", *parts, to="log_odds")


def _find_rows(graph: _Graph, model: FM, bags: Sequence[bool]) -> tuple[str, str]:
    """Return which ids are allowed, and the row of each: the last one for those without a token."""
    fields = model.columns_field.numpy()
    zero = graph.constant("zero", 0, np.int64)
    low = graph.constant("lowest_id", np.where(np.array(bags)[fields], ABSENT, 0), np.int64)
    size = graph.constant("field_size", model.columns_size, np.int64)
    start = graph.constant("field_start", model.columns_start, np.int64)
    below = graph.add("Less", INPUT, size, to="low_enough")
    in_range = graph.add(
        "And", graph.add("GreaterOrEqual", INPUT, low, to="high_enough"), below, to="in_range"
    )
    a_token = graph.add(
        "And", graph.add("GreaterOrEqual", INPUT, zero, to="not_negative"), below, to="a_token"
    )
    row = graph.add(
        "Where",
        a_token,
        graph.add("Add", INPUT, start, to="row_of_token"),
        graph.constant("last_row", sum(model.sizes), np.int64),
        to="row",
    )
    return in_range, row


def _network(graph: _Graph, model: DeepFM, vectors: str) -> str:
    """Return what DeepFM's network adds to the log odds."""
    value = graph.add("Flatten", vectors, to="network_input", axis=1)
    for number, layer in enumerate(_layers_on_columns(model)):
        value = _layer(graph, f"network_{number}", layer, value)
    last = graph.constant("last_axis", [1], np.int64)
    return graph.add("Squeeze", value, last, to="network")


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


def _layer(graph: _Graph, name: str, layer: nn.Module, value: str) -> str:
    if isinstance(layer, nn.Linear):
        weight = graph.constant(f"{name}_weight", layer.weight)
        bias = graph.constant(f"{name}_bias", layer.bias)
        return graph.add("Gemm", value, weight, bias, to=name, transB=1)
    if isinstance(layer, nn.BatchNorm1d):
        inputs = [
            graph.constant(f"{name}_{what}", getattr(layer, what))
            for what in ("weight", "bias", "running_mean", "running_var")
        ]
        return graph.add("BatchNormalization", value, *inputs, to=name, epsilon=layer.eps)
    if isinstance(layer, nn.ReLU):
        return graph.add("Relu", value, to=name)
    assert isinstance(layer, nn.Dropout)  # which is off where a model serves
    return value


FORMAT = 1


def dictionary_bytes(saved: SavedModel) -> bytes:
    """Return the fields in the order of their columns, and the id of every token's text."""
    firsts = np.cumsum([0, *saved.model.widths]).tolist()
    fields = [
        {
            "name": column.name,
            "kind": column.kind,
            **_bins(column),
            "first_column": firsts[number],
            "columns": column.width,
            "size": saved.model.sizes[number],
            "ids": _ids(saved.encoder, number) if saved.encoder else None,
        }
        for number, column in enumerate(saved.columns)
    ]
    whole = {"format": FORMAT, "input": INPUT, "output": OUTPUT, "fields": fields}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode()


def _bins(column: Column) -> dict[str, Any]:
    """Return how a number becomes a token."""
    if not column.is_number:
        return {}
    return {"bins": {"edges": column.edges} if column.edges else "log"}


def _ids(encoder: Encoder, field: int) -> dict[str, int]:
    return {text: number for number, text in enumerate(encoder.texts()[field], start=1)}
