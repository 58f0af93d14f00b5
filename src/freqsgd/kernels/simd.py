"""Eight float32 numbers as one value, and small matrices of these that stay in registers."""

from __future__ import annotations

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, register_model

from freqsgd.kernels.machine import LANES, compiled, sum_of_lanes

__all__ = [
    "LANES",
    "add_dots",
    "add_outer",
    "exp_of_minus_abs",
    "load",
    "number_at",
    "put",
    "put_sums",
    "root",
    "set_number",
    "splat",
    "store",
    "total",
    "zeros",
]

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)


class _Vector(types.Type):
    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"float32x{lanes}")


vector = _Vector(LANES)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(FLOAT, fe_type.lanes))


@intrinsic(prefer_literal=True)
def load(typingctx, address, lanes=LANES):
    """Load eight numbers at an address, or as many as the constant ``lanes`` says."""
    result = _Vector(getattr(lanes, "literal_value", lanes))

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(result)
        return builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=4)

    return result(types.int64, types.literal(result.lanes)), codegen


@intrinsic
def store(typingctx, address, value):
    """Write the numbers of a vector to an address."""

    def codegen(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, value), codegen


@intrinsic
def number_at(typingctx, address):
    """One number at an address."""

    def codegen(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], FLOAT.as_pointer()))

    return types.float32(types.int64), codegen


@intrinsic
def set_number(typingctx, address, number):
    """Write one number to an address."""

    def codegen(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], FLOAT.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.float32), codegen


@intrinsic(prefer_literal=True)
def splat(typingctx, number, lanes=LANES):
    """Repeat a number eight times, or as often as the constant ``lanes`` says."""
    result = _Vector(getattr(lanes, "literal_value", lanes))

    def codegen(context, builder, signature, args):
        return splat_value(builder, args[0], result.lanes)

    return result(types.float32, types.literal(result.lanes)), codegen


def splat_value(builder, number, lanes=LANES):
    """The instructions of :func:`splat`."""
    nothing = ir.Constant(ir.VectorType(FLOAT, lanes), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, nothing, mask)


@intrinsic
def root(typingctx, value):
    """The square roots."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(VECTOR, [VECTOR])
        name = f"llvm.sqrt.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return vector(vector), codegen


@intrinsic
def total(typingctx, value):
    """The sum of the eight, in a fixed order: halves, quarters, eighths."""

    def codegen(context, builder, signature, args):
        return sum_of_lanes(builder, args[0])

    return types.float32(vector), codegen


def _define(symbol, name):
    """Give vectors an operator. A product that is added becomes one instruction."""

    @infer_global(symbol)
    class Operator(AbstractTemplate):
        def generic(self, args, kws):
            a, b = args
            return a(a, a) if isinstance(a, _Vector) and a == b else None

    @lower_builtin(symbol, _Vector, _Vector)
    def instruction(context, builder, signature, args):
        return getattr(builder, name)(*args, flags=["contract"])


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


# A small matrix of vectors that stays in registers: what fast matrix products are made of.
#
# Twelve vectors of sums, with what is read for them, are all that a processor with sixteen vector
# registers can hold. Numbers of rows and columns are constants of the program.


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


@compiled
def exp_of_minus_abs(x, length, bits, out):
    """``out = exp(-abs(x))`` to float32's precision, in a form that the compiler vectorises."""
    power_of_two = bits.view(np.float32)
    for i in range(length):
        y = max(np.float32(-126), -abs(x[i]) * np.float32(1.44269504089))  # in powers of 2
        whole = np.floor(y)
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        r = (y - whole - np.float32(0.5)) * np.float32(0.69314718056)  # 2**f = sqrt(2) e**r
        t = np.float32(1 / 5040)
        t = t * r + np.float32(1 / 720)
        t = t * r + np.float32(1 / 120)
        t = t * r + np.float32(1 / 24)
        t = t * r + np.float32(1 / 6)
        t = t * r + np.float32(1 / 2)
        t = t * r + np.float32(1)
        t = t * r + np.float32(1)
        out[i] = np.float32(1.41421356237) * t
    for i in range(length):
        out[i] *= power_of_two[i]
