"""The few machine instructions that Numba has no name for."""

from __future__ import annotations

import os
import platform
import zlib
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import np_cfarray

from freqsgd import optimizers, rates
from freqsgd.kernels.compiled import tell_of_compiling

tell_of_compiling()

CACHE_LINE = 64
BLOCK = 32  # rows that are fetched ahead of their use
AHEAD = 128  # the same for loops that do little with each place

# Of all that kernels are made of: a kernel kept on disk must not outlive a change to it.
SOURCES = zlib.crc32(
    b"".join(
        path.read_bytes()
        for path in [
            Path(rates.__file__),
            Path(optimizers.__file__),
            *sorted(Path(__file__).parent.rglob("*.py")),
        ]
    )
)

# Of a function that only kernels call: what Python needs to call it is not compiled.
_OPTIONS = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

compiled = numba.njit(**_OPTIONS)

inlined = numba.njit(**_OPTIONS, forceinline=True)


def kernel(job: np.dtype[Any], *kinds: Any) -> Any:
    """Compile a function of one job record for :func:`freqsgd.kernels.threads.run`.

    The result is kept on disk, beside the package or in the user's cache folder. ``kinds`` are the
    types that the function was made for: they and the sources are part of its name there, so that
    processes which compile different kernels at the same time do not share a file.
    """
    signature = types.void(types.CPointer(numba.from_dtype(job)))
    options = {"nopython": True, "error_model": "numpy"}

    def compile_kernel(function: Any) -> Any:
        words = [function.__name__, *(kind.__name__ for kind in kinds), f"{SOURCES:08x}"]
        function.__qualname__ = "_".join(words)
        try:
            return numba.cfunc(signature, cache=True, **options)(function)
        except Exception:  # no folder can be written, the disk is full, or a file is damaged
            return numba.cfunc(signature, **options)(function)

    return compile_kernel


@intrinsic
def pointer(typingctx, address):
    """Turn an address into a pointer that ``carray`` takes."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


@intrinsic
def array_at(typingctx, address, shape, kind):
    """Return the array of a shape and a type of numbers at an address, as ``carray`` does."""
    dimensions = shape.count if isinstance(shape, types.BaseTuple) else 1
    result = types.Array(kind.dtype, dimensions, "C")

    def codegen(context, builder, signature, args):
        start = builder.inttoptr(args[0], cgutils.voidptr_t)
        carray = result(types.voidptr, shape)
        return np_cfarray(context, builder, carray, (start, args[1]))

    return result(types.int64, shape, kind), codegen


def _prefetch(write, doc):
    @intrinsic
    def prefetch(typingctx, address):
        def codegen(context, builder, signature, args):
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            line = builder.inttoptr(args[0], cgutils.voidptr_t)
            builder.call(function, [line, i32(write), i32(3), i32(1)])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    prefetch.__doc__ = doc
    return prefetch


prefetch = _prefetch(1, "Ask for the cache line at an address, to be written soon.")
prefetch_only = _prefetch(0, "Ask for the cache line at an address, to be read soon.")


@compiled
def prefetch_row(address, row_bytes):
    """Ask for all cache lines of a row."""
    for offset in range(0, row_bytes, CACHE_LINE):
        prefetch(address + offset)


@compiled
def prefetch_row_only(address, row_bytes):
    """The same for a row that is only read."""
    for offset in range(0, row_bytes, CACHE_LINE):
        prefetch_only(address + offset)


@intrinsic
def take(typingctx, jobs):
    """Take the next work unit of a job: add 1 to its first field and return the old value."""

    def codegen(context, builder, signature, args):
        i64 = ir.IntType(64)
        counter = builder.bitcast(args[0], i64.as_pointer())
        return builder.atomic_rmw("add", counter, i64(1), "monotonic")

    return types.int64(jobs), codegen


@intrinsic
def increment(typingctx, address):
    """Add 1 to the int64 at an address and return the old value; what was written stays before."""

    def codegen(context, builder, signature, args):
        i64 = ir.IntType(64)
        counter = builder.inttoptr(args[0], i64.as_pointer())
        return builder.atomic_rmw("add", counter, i64(1), "acq_rel")

    return types.int64(types.int64), codegen


@intrinsic
def read(typingctx, address):
    """The int64 at an address, as last written by any thread."""

    def codegen(context, builder, signature, args):
        counter = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(counter, "acquire", 8)

    return types.int64(types.int64), codegen


def _call(name, result):
    """A function of no arguments that the process or the processor has."""

    @intrinsic
    def function(typingctx):
        def codegen(context, builder, signature, args):
            nothing = result is types.void
            kind = ir.FunctionType(ir.VoidType() if nothing else context.get_value_type(result), [])
            called = cgutils.get_or_insert_function(builder.module, kind, name)
            value = builder.call(called, [])
            return context.get_dummy_value() if nothing else value

        return result(), codegen

    return function


_pause = _call("llvm.x86.sse2.pause", types.void)
_yield = _call("sched_yield", types.int32)
_CAN_PAUSE = platform.machine() in ("x86_64", "AMD64")
_CAN_YIELD = os.name == "posix"


@intrinsic
def _replace(typingctx, address, old, new):
    """Replace the int64 at an address if it is ``old``; returns whether it was."""

    def codegen(context, builder, signature, args):
        counter = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        pair = builder.cmpxchg(counter, args[1], args[2], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


@compiled
def take_ready(address, unit, needed):
    """Take ``unit`` from the counter at an address, if it is the next one and is ready.

    It is ready when the counter of finished units, 64 bytes on, has come to ``needed``. A thread
    that waits holds no unit, so one that the system has stopped seldom keeps others waiting.
    """
    return read(address + 64) >= needed and _replace(address, unit, unit + 1)


@compiled
def wait_for(address, value):
    """Wait until the int64 at an address is at least ``value``: spin, and soon give way."""
    spins = 0
    while read(address) < value:
        spins = idle(spins)


@compiled
def idle(spins):
    """Do nothing for a moment; after many of them give way to other threads."""
    if _CAN_YIELD and spins > 4096:
        _yield()
    elif _CAN_PAUSE:
        _pause()
    return spins + 1


LANES = (
    8  # numbers that the next five handle at once; the compiler's own choice suits long rows only
)


def _vector(builder, address, kind):
    return builder.inttoptr(address, ir.VectorType(kind, LANES).as_pointer())


def _splat(builder, number, kind):
    lanes = ir.Constant(ir.VectorType(kind, LANES), ir.Undefined)
    for lane in range(LANES):
        lanes = builder.insert_element(lanes, number, ir.IntType(32)(lane))
    return lanes


@intrinsic
def add_scaled(typingctx, target, source, scale):
    """``target[:LANES] += scale * source[:LANES]``, given addresses of numbers of scale's type."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(signature.args[2])
        into, size = _vector(builder, args[0], kind), context.get_abi_sizeof(kind)
        added = builder.load(_vector(builder, args[1], kind), align=size)
        total = builder.load(into, align=size)
        product = builder.fmul(_splat(builder, args[2], kind), added, flags=["contract"])
        builder.store(builder.fadd(total, product, flags=["contract"]), into, align=size)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, scale), codegen


@intrinsic
def add_scaled_product(typingctx, target, source, columns, scale):
    """``target[:LANES] += scale * source[:LANES] * columns[:LANES]``, likewise."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(signature.args[3])
        into, size = _vector(builder, args[0], kind), context.get_abi_sizeof(kind)
        added, factors = (
            builder.load(_vector(builder, arg, kind), align=size) for arg in args[1:3]
        )
        total = builder.load(into, align=size)
        product = builder.fmul(
            _splat(builder, args[3], kind), builder.fmul(added, factors), flags=["contract"]
        )
        builder.store(builder.fadd(total, product, flags=["contract"]), into, align=size)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, scale), codegen


@intrinsic
def sum_squared_products(typingctx, source, columns, length, like):
    """Sum ``(source * columns) ** 2`` over ``length`` numbers, a multiple of LANES, likewise."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(signature.args[3])
        size = context.get_abi_sizeof(kind)
        zero = ir.Constant(ir.VectorType(kind, LANES), [0.0] * LANES)
        total = cgutils.alloca_once_value(builder, zero)
        step = ir.IntType(64)(LANES)
        with cgutils.for_range(builder, builder.udiv(args[2], step)) as loop:
            skip = builder.mul(loop.index, ir.IntType(64)(LANES * size))
            a, b = (
                builder.load(_vector(builder, builder.add(arg, skip), kind), align=size)
                for arg in args[:2]
            )
            product = builder.fmul(a, b)
            square = builder.fmul(product, product, flags=["contract"])
            builder.store(builder.fadd(builder.load(total), square, flags=["contract"]), total)
        return sum_of_lanes(builder, builder.load(total))

    return like(types.int64, types.int64, types.int64, like), codegen


@intrinsic
def add_squares(typingctx, target, source, rows, row_bytes, like):
    """Add the squares of the first LANES numbers of each row to the float64 numbers of target.

    Rows in odd places have a sum of their own: an addition need not wait for the one before it.
    """

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(signature.args[4])
        size = context.get_abi_sizeof(kind)
        into = _vector(builder, args[0], ir.DoubleType())
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), LANES), [0.0] * LANES)
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(2)]

        def add(row, total):
            address = builder.add(args[1], builder.mul(row, args[3]))
            value = builder.load(_vector(builder, address, kind), align=size)
            if size < 8:
                value = builder.fpext(value, ir.VectorType(ir.DoubleType(), LANES))
            square = builder.fmul(value, value, flags=["contract"])
            builder.store(builder.fadd(builder.load(total), square, flags=["contract"]), total)

        one = ir.IntType(64)(1)
        with cgutils.for_range(builder, builder.lshr(args[2], one)) as loop:
            for place, total in enumerate(totals):
                add(builder.add(builder.shl(loop.index, one), ir.IntType(64)(place)), total)
        with builder.if_then(builder.trunc(args[2], ir.IntType(1))):
            add(builder.sub(args[2], one), totals[0])
        total = builder.fadd(*map(builder.load, totals))
        builder.store(builder.fadd(builder.load(into, align=8), total), into, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64, like), codegen


def sum_of_lanes(builder, value):
    """The instructions that sum a vector in a fixed order: halves, quarters, eighths."""
    width = LANES
    while width > 1:
        width //= 2
        kind = ir.VectorType(ir.IntType(32), width)
        halves = [
            builder.shuffle_vector(value, value, ir.Constant(kind, list(range(k, k + width))))
            for k in (0, width)
        ]
        value = builder.fadd(*halves)
    return builder.extract_element(value, ir.IntType(32)(0))


@intrinsic
def copy(typingctx, target, source, like):
    """``target[:LANES] = source[:LANES]``, given addresses of numbers of the type of ``like``."""

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(signature.args[2])
        size = context.get_abi_sizeof(kind)
        value = builder.load(_vector(builder, args[1], kind), align=size)
        builder.store(value, _vector(builder, args[0], kind), align=size)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, like), codegen
