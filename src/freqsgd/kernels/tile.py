"""A small matrix of vectors that stays in registers: what fast matrix products are made of.

Twelve vectors of sums, with what is read for them, are all that a processor with sixteen vector
registers can hold. Numbers of rows and columns are constants of the program.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

from freqsgd.kernels.machine import sum_of_lanes
from freqsgd.kernels.vector import FLOAT, LANES, VECTOR, splat_value

__all__ = ["add_dots", "add_outer", "put", "put_sums", "zeros"]


class _Tile(types.Type):
    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        super().__init__(name=f"tile({rows}, {columns})")


@register_model(_Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.ArrayType(VECTOR, fe_type.rows * fe_type.columns))


@intrinsic(prefer_literal=True)
def zeros(typingctx, rows, columns):
    """A tile of so many rows and columns of vectors."""
    tile = _Tile(rows.literal_value, columns.literal_value)

    def codegen(context, builder, signature, args):
        return ir.Constant(context.get_value_type(tile), None)

    return tile(rows, columns), codegen


@intrinsic
def add_dots(typingctx, tile, a, a_stride, b, b_stride):
    """Add the product of vectors: row r's at ``a + r * a_stride`` and column c's likewise."""

    def codegen(context, builder, signature, args):
        value, a, a_stride, b, b_stride = args
        left = [_load(builder, VECTOR, a, a_stride, r) for r in range(tile.rows)]
        for c in range(tile.columns):
            right = _load(builder, VECTOR, b, b_stride, c)
            for r in range(tile.rows):
                value = _add_product(builder, value, r * tile.columns + c, left[r], right)
        return value

    return tile(tile, *[types.int64] * 4), codegen


@intrinsic
def add_outer(typingctx, tile, vectors, numbers, stride):
    """Add the product of vector c, of those in a row, and the number at ``numbers + r * stride``"""

    def codegen(context, builder, signature, args):
        value, vectors, numbers, stride = args
        size = ir.IntType(64)(4 * LANES)
        row = [_load(builder, VECTOR, vectors, size, c) for c in range(tile.columns)]
        for r in range(tile.rows):
            number = splat_value(builder, _load(builder, FLOAT, numbers, stride, r))
            for c in range(tile.columns):
                value = _add_product(builder, value, r * tile.columns + c, number, row[c])
        return value

    return tile(tile, *[types.int64] * 3), codegen


@intrinsic
def put(typingctx, tile, address, stride):
    """Write row r to ``address + r * stride``."""
    return types.void(tile, types.int64, types.int64), _writer(
        tile, VECTOR, lambda _, vector: vector
    )


@intrinsic
def put_sums(typingctx, tile, address, stride):
    """Write the sum of the numbers of each vector; those of row r to ``address + r * stride``."""
    return types.void(tile, types.int64, types.int64), _writer(tile, FLOAT, sum_of_lanes)


def _writer(tile, kind, turned):
    """The instructions that write what each vector is turned into, which is of a kind."""
    size = 4 * LANES if kind is VECTOR else 4

    def codegen(context, builder, signature, args):
        value, address, stride = args
        for r in range(tile.rows):
            for c in range(tile.columns):
                at = builder.add(_address(builder, address, stride, r), ir.IntType(64)(size * c))
                number = turned(builder, builder.extract_value(value, r * tile.columns + c))
                builder.store(number, builder.inttoptr(at, kind.as_pointer()), align=4)
        return context.get_dummy_value()

    return codegen


def _address(builder, start, stride, k):
    return builder.add(start, builder.mul(stride, ir.IntType(64)(k)))


def _load(builder, kind, start, stride, k):
    at = _address(builder, start, stride, k)
    return builder.load(builder.inttoptr(at, kind.as_pointer()), align=4)


def _add_product(builder, value, k, x, y):
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    total = builder.call(fma, [x, y, builder.extract_value(value, k)])
    return builder.insert_value(value, total, k)
