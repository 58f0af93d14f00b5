"""Eight float32 numbers as one value, with the operators that one expects.

Numba has no such type, and left alone the compiler vectorises short rows badly.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

from freqsgd.kernels.machine import LANES, sum_of_lanes

__all__ = ["LANES", "load", "number_at", "root", "set_number", "splat", "store", "total"]

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


vector = _Vector()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, VECTOR)


@intrinsic
def load(typingctx, address):
    """Eight numbers at an address."""

    def codegen(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], VECTOR.as_pointer()), align=4)

    return vector(types.int64), codegen


@intrinsic
def store(typingctx, address, value):
    """Write eight numbers to an address."""

    def codegen(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, vector), codegen


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


@intrinsic
def splat(typingctx, number):
    """Eight times the same number."""

    def codegen(context, builder, signature, args):
        return splat_value(builder, args[0])

    return vector(types.float32), codegen


def splat_value(builder, number):
    """The instructions of :func:`splat`."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
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

    @intrinsic
    def instruction(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(*args, flags=["contract"])

        return vector(vector, vector), codegen

    @overload(symbol)
    def apply(a, b):
        if a is vector and b is vector:
            return lambda a, b: instruction(a, b)
        return None


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")
