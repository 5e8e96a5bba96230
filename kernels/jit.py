"""Compile options, in one place.

`fastmath` is never on: contraction and reassociation change bits. Loops release the interpreter lock, so that
ordinary threads run them in parallel; no Numba threading layer is involved, and calls from several Python threads are
safe under every one of them.
"""

import hashlib
import inspect
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, imputils
from numba.extending import lower_builtin, register_jitable, type_callable
from numba.np import arrayobj

from .compile_cache import CompileCache, tell
from .linking import PartCompiler, SimplifiedCompiler, WholeCompiler, interruptible

_UNCALLED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Called by Python or C by no address; wrappers take long to compile."""
KERNEL: Any = {"forceinline": True, "pipeline_class": SimplifiedCompiler, **_UNCALLED}
kernel = register_jitable(**KERNEL)
"""Decorator of scalar functions: plain Python to a debugger and to NUMBA_DISABLE_JIT, machine code always inlined in a loop.

A call that LLVM's own heuristic leaves standing stops vectorisation: half fma ran at 0.037 G/s with it, at 0.5 without."""

DISABLED = bool(getattr(numba.config, "DISABLE_JIT", False))
SLOW_COMPILATION_SECONDS = 5.0
CACHE_LINE = 64  # bytes

row = register_jitable(pipeline_class=PartCompiler, **_UNCALLED)
"""Decorator of loops over a row that other loops call. Those that begin with `stand_alone()` stay calls."""


def stand_alone():
    """Keeps LLVM from copying the function it stands in to every place that calls it, which takes long to compile."""


@row
def copy_row(target, source):
    """target = source. Numba takes long to compile an assignment to a slice, which broadcasts and checks shapes."""
    stand_alone()
    for j in range(target.size):
        target[j] = source[j]


@row
def fill_row(target, value):
    """target = value, everywhere."""
    stand_alone()
    for j in range(target.size):
        target[j] = value


@kernel
def all_of(flags):
    """Flags OR-ed together."""
    seen = 0
    for i in range(flags.size):
        seen |= np.int64(flags[i])
    return seen


def _source_digest() -> int:
    """62 bits of SHA-256 over all kernel sources: what is compiled depends on more of them than the outermost function's."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:8], "little") >> 2


SOURCE_DIGEST = _source_digest()


def compiled(function: Callable, **more: bool) -> Callable:
    """Compile a loop: cached on disk, without the interpreter lock, IEEE division; with `more` of Numba's options.

    Its `by_python` is what Python makes of the same source.
    """

    def interpreted(*arguments: object) -> object:
        with np.errstate(all="ignore"):
            found = function(*arguments)
        return found.item() if isinstance(found, np.generic) else found  # as compiled code gives Python's numbers

    if DISABLED:
        return interpreted

    for cell in function.__closure__ or ():
        inner = cell.cell_contents
        if inspect.isfunction(inner) and getattr(sys.modules[inner.__module__], inner.__qualname__, None) is not inner:
            raise TypeError(f"{function.__qualname__} closes over {inner.__qualname__}, which is to be referable()")

    options: dict[str, Any] = {
        "no_cfunc_wrapper": True,
        "pipeline_class": WholeCompiler,
        **more,
    }  # not all of Numba's own types know
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    dispatcher._cache = kept = CompileCache(function, SOURCE_DIGEST)
    dispatcher.by_python = interpreted
    told = set()  # threads that waited for one compilation saw it too
    compile_for = dispatcher._compile_for_args

    def timed(*arguments: object) -> object:
        before, known = time.perf_counter(), len(dispatcher.overloads)
        with interruptible():
            result = compile_for(*arguments)
        elapsed = time.perf_counter() - before
        if elapsed > SLOW_COMPILATION_SECONDS and len(dispatcher.overloads) > known and known not in told:
            told.add(known)
            promise = "; it is cached from now on" if kept.kept else ""
            tell(f"softfloat: compiling {function.__name__} took {elapsed:.1f} s{promise}")
        return result

    # what Numba's dispatcher calls for types it does not know yet: no function of ours stands in the way of calls
    dispatcher._compile_for_args = timed
    found: Callable = dispatcher
    return found


_ADDRESSED: list[Any] = []  # code is there as long as what it was compiled by


@cache
def address_of(function: Callable, kinds: tuple, arrays: bool = False) -> int:
    """Where the machine code of a function for arguments of these types is, which other code calls. It allocates no memory, nor makes `arrays`."""
    with interruptible():
        dispatcher: Any = compiled(function, _nrt=arrays, no_cpython_wrapper=True)
        dispatcher.compile(kinds)
        _ADDRESSED.append(dispatcher)
        made = dispatcher.overloads[kinds]
        return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def referable(function: Callable, *parameters: object) -> Callable:
    """A kernel made for some parameters, under a name in its module that tells it from those made for others.

    Numba pickles what a loop closes over, for its cache's keys: by name what a module has, else by value, and that
    differs between a function that Python compiled and the same one read from bytecode.
    """
    name = re.sub(r"\W+", "_", " ".join([function.__name__, "for", *map(str, parameters)]))
    function.__qualname__ = name
    setattr(sys.modules[function.__module__], name, function)
    return function


def once(make: Callable) -> Callable:
    """As `functools.cache`, for factories of loops: of several threads one makes the loop, and one compiles it."""
    made, lock = cache(make), threading.Lock()

    @wraps(make)
    def factory(*arguments: object) -> object:
        with lock:
            return made(*arguments)

    return factory


def lowered(function):
    """Decorator of the definition of an intrinsic, (typing context, types) -> (signature, codegen): this is the function in compiled code.

    An overload would be a function around the intrinsic, which Numba compiles anew for all types of arguments.
    """
    parameters = inspect.signature(function)

    def decorate(define):
        @type_callable(function)
        def typed(context):
            def typer(*given):
                found = define(context, *given)
                return None if found is None else found[0]

            typer.__signature__ = parameters
            return typer

        @lower_builtin(function, *[types.Any] * len(parameters.parameters))
        def code(context, builder, signature, arguments):
            _, codegen = define(context.typing_context, *signature.args)
            return codegen(context, builder, signature, arguments)

        return define

    return decorate


@lowered(stand_alone)
def _stand_alone(context):
    def codegen(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


def float_bits(x):
    """The bits of a carrier value as a signed integer of the same width."""
    x = np.asarray(x)[()]
    return x.view(np.int32 if x.dtype == np.float32 else np.int64)


@lowered(float_bits)
def _float_to_bits(context, x):
    result = {types.float32: types.int32, types.float64: types.int64}[x]
    return result(x), lambda context, builder, signature, arguments: builder.bitcast(
        arguments[0], context.get_value_type(result)
    )


def bits_float(bits, like):
    """The carrier value, of the type of `like`, with these bits. Numba widens integers to 64 bits; the narrow carrier's are cut back here."""
    narrow = np.asarray(like).dtype == np.float32
    return np.asarray(bits).astype(np.int32 if narrow else np.int64)[()].view(np.float32 if narrow else np.float64)


@lowered(bits_float)
def _bits_to_float(context, bits, like):
    field = {types.float32: types.int32, types.float64: types.int64}[like]

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(context.cast(builder, arguments[0], bits, field), context.get_value_type(like))

    return like(bits, like), codegen


def cut(value, like):
    """An integer in the type of `like`.

    Numba widens every integer operation to 64 bits. Cut back after each, LLVM sees that the narrow carrier needs 32
    and doubles the lanes.
    """
    return np.asarray(value).astype(np.asarray(like).dtype)[()]


@lowered(cut)
def _cut(context, value, like):
    return like(value, like), lambda context, builder, signature, arguments: context.cast(
        builder, arguments[0], value, like
    )


def shift_left(value, count):
    """value << count in the type of `value`; 0 <= count < width. Numba's own shift would be done in 64 bits whatever the lanes."""
    return cut(value << count, value)


def shift_right(value, count):
    """value >> count, arithmetic, in the type of `value`; 0 <= count < width."""
    return cut(value >> count, value)


def _shift(instruction):
    def shift(context, value, count):
        def codegen(context, builder, signature, arguments):
            amount = context.cast(builder, arguments[1], count, value)
            return getattr(builder, instruction)(arguments[0], amount)

        return value(value, count), codegen

    return shift


lowered(shift_left)(_shift("shl"))
lowered(shift_right)(_shift("ashr"))


def leading_zeros(word):
    """How many zeros stand before the first bit of a uint64; 64 of 0."""
    return np.int64(64 - int(word).bit_length())


@lowered(leading_zeros)
def _leading_zeros(context, word):
    def codegen(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(word), codegen


def opaque(builder, number):
    """The same number or address, of which LLVM does not know it: what is loaded with it is loaded again, and takes no registers meanwhile."""
    return builder.asm(ir.FunctionType(number.type, [number.type]), "", "=r,0", [number], False)


def read_only(array):
    """The same flat array, as one that nobody writes to: what takes it and others of that kind is compiled once."""
    array = array.view()
    array.flags.writeable = False
    return array


@lowered(read_only)
def _read_only(context, array):
    result = types.Array(array.dtype, 1, "C", readonly=True)

    def codegen(context, builder, signature, arguments):
        return imputils.impl_ret_borrowed(context, builder, result, arguments[0])

    return result(array), codegen


def scratch(count, dtype):
    """Room for some thousand numbers at most, on lines of the cache; `count` is known to the compiler.

    It lies on the stack, as code that allocates memory takes long to compile: the function that asks for it must not return it.
    """
    return np.empty(count, dtype)


@lowered(scratch)
def _scratch(context, count, dtype):
    if not isinstance(count, types.Literal):
        return None
    result = types.Array(dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type, 1, "C")

    def codegen(context, builder, signature, arguments):
        kind, size = context.get_data_type(result.dtype), context.get_abi_sizeof(context.get_data_type(result.dtype))
        room = cgutils.alloca_once(builder, ir.ArrayType(kind, count.literal_value))
        room.align = CACHE_LINE
        made = context.make_array(result)(context, builder)
        arrayobj.populate_array(
            made,
            data=builder.bitcast(room, kind.as_pointer()),
            shape=[context.get_constant(types.intp, count.literal_value)],
            strides=[context.get_constant(types.intp, size)],
            itemsize=context.get_constant(types.intp, size),
            meminfo=None,
        )
        return made._getvalue()

    return result(count, dtype), codegen


def fixed_tuple(array, count):
    """The first `count` numbers of an array as a tuple of a length known to the compiler.

    A loop takes its some fifty numbers as two arrays: Numba's dispatcher needs 7 microseconds to look at named tuples of that
    size, and less than one to look at arrays.
    """
    return tuple(array[:count])


@lowered(fixed_tuple)
def _fixed_tuple(context, array, count):
    """Loads, and nothing else: Numba's own to_fixed_tuple takes half a microsecond for 80 numbers."""
    if not isinstance(count, types.Literal):
        return None
    assert array.layout == "C"
    length = count.literal_value

    def codegen(context, builder, signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        places = (builder.gep(data, [context.get_constant(types.intp, i)]) for i in range(length))
        return context.make_tuple(builder, signature.return_type, [builder.load(place) for place in places])

    return types.UniTuple(array.dtype, length)(array, count), codegen
