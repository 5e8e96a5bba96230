"""Parts that loops call by address, each compiled when one first does, and named tuples that are passed to them by their place."""

import hashlib
import inspect
import threading
from functools import cache, cached_property, partial
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, imputils
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_getattr_generic, models, register_model
from numba.np import numpy_support

from .jit import DISABLED, address_of, lowered, row


class Reference(types.Type):
    """Where a named tuple lies. What is passed by it takes one register, and of what is read there one load, however many fields there are."""

    def __init__(self, dtype):
        digest = hashlib.sha256(str(dtype).encode()).hexdigest()[:8]  # LLVM takes no names as long as that of the type
        super().__init__(f"Reference({dtype.instance_class.__name__} {digest})")
        self.dtype = dtype


register_model(Reference)(models.PointerModel)


@infer_getattr
class _Fields(AttributeTemplate):
    """A field's value; of one that is a named tuple, where that lies."""

    key = Reference

    def generic_resolve(self, reference, name):
        """Its type."""
        kind = reference.dtype
        if name not in kind.fields:
            return None
        field = kind[kind.fields.index(name)]
        return Reference(field) if isinstance(field, types.BaseNamedTuple) else field


def _field(context, builder, reference, place, name):
    kind = reference.dtype
    number = kind.fields.index(name)
    found = cgutils.gep_inbounds(builder, place, 0, number)
    if isinstance(kind[number], types.BaseNamedTuple):
        return found
    return imputils.impl_ret_borrowed(context, builder, kind[number], builder.load(found))


lower_getattr_generic(Reference)(_field)


def reference(fields):
    """Where a named tuple lies, in compiled code: on the stack of the function that asks."""
    return fields


@lowered(reference)
def _reference(context, fields):
    def codegen(context, builder, signature, arguments):
        kind = context.get_data_type(fields)
        assert kind == context.get_value_type(fields)
        place = cgutils.alloca_once(builder, kind)
        builder.store(arguments[0], place)
        return place

    return Reference(fields)(fields), codegen


@cache
def _arrays_of(kind):
    """Of each field (type of numbers, axes) of an array, None of others."""
    arrays = (field if isinstance(field, types.Array) else None for field in kind.dtype)
    return [field and (numpy_support.as_dtype(field.dtype), field.ndim) for field in arrays]


def referred(fields, kind):
    """A named tuple for `Reference`, as words of 64 bits, which compiled code is passed; they hold where its arrays are, not these."""
    if DISABLED:
        return fields
    words: list[int] = []
    for value, array in zip(fields, _arrays_of(kind), strict=True):
        if array:
            assert (value.dtype, value.ndim) == array
            assert value.flags.c_contiguous
            place = value.__array_interface__["data"][0]
            words += [0, 0, value.size, value.itemsize, place, *value.shape, *value.strides]
        else:
            words += value if isinstance(value, tuple) else [value]
    return np.array([int(word) % 2**64 for word in words], np.uint64)


def referring(kind):
    """The function that makes such words, in compiled code, the reference that they are; it takes one, too."""

    def referred_to(words):
        return words

    @lowered(referred_to)
    def define(context, words):
        def codegen(context, builder, signature, arguments):
            data = context.make_array(words)(context, builder, arguments[0]).data
            return builder.bitcast(data, context.get_value_type(kind))

        if isinstance(words, Reference):
            return words(words), lambda context, builder, signature, arguments: arguments[0]
        return kind(words), codegen

    return referred_to


def _call(context, builder, returned, kinds, address, arguments):
    """What Numba's code at an address returns, of arguments of these types."""
    convention = context.call_conv
    kind = convention.get_function_type(returned, kinds)
    callee, result = builder.inttoptr(address, kind.as_pointer()), cgutils.alloca_once(builder, kind.args[0].pointee)
    raised, given = convention._get_excinfo_argument(builder.function), convention._get_arg_packer(kinds)
    code = builder.call(callee, [result, raised, *given.as_arguments(builder, arguments)])
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, code)):
        builder.ret(code)
    return builder.load(result)


def called(row, arguments):
    """What a row of a `Composed` loop returns, an integer."""
    return row(*arguments)


@lowered(called)
def _called(context, row, arguments):
    def codegen(context, builder, signature, given):
        operands = cgutils.unpack_tuple(builder, given[1])
        return _call(context, builder, types.int64, list(arguments), given[0], operands)

    return types.int64(row, arguments), codegen


class Composed:
    """A loop and the rows that it calls: its first argument has where they are, and what else is `known`. They are compiled when it first runs.

    `kinds` has the types of rows' arguments by name. A row is compiled once for all loops. It allocates nothing.
    """

    def __init__(self, loop, rows, kinds, *known):
        self._loop, self._rows, self._kinds, self._known = loop, rows, kinds, known
        self.by_python = partial(getattr(loop, "by_python", loop), (*rows, *known))
        self.overloads = DISABLED

    @cached_property
    def compiled(self):
        """The loop, once rows are compiled."""
        if DISABLED:
            return self.by_python
        kinds = [tuple(self._kinds[name] for name in inspect.signature(row).parameters) for row in self._rows]
        found = partial(self._loop, np.array([*map(address_of, self._rows, kinds), *self._known]))
        self.overloads = True
        return found


class Absent(Exception):
    """A loop called a part, of this number, that is not compiled yet."""


_PARTS: list[Any] = []
LINKS = np.zeros(64, np.int64)
"""Addresses of parts, by their number; 0 of those that no loop has called. Their own is `links`."""
links = LINKS.ctypes.data
_linking = threading.RLock()


def apart(kinds, returned):
    """Decorator of what loops call by an address in the `links` of its last argument, a named tuple; `kinds` has the types of arguments by name.
    It returns a number of the type `returned`, or none.
    Code on disk has their numbers, so that files of parts import each other in one order.

    It is compiled once for all loops, when one first calls it: what a call takes to compile is what it needs. It allocates nothing.
    Where `links` is None, loops are compiled with what they call.
    """

    def decorate(function):
        if DISABLED:
            return function
        number, known = len(_PARTS), [kinds[name] for name in inspect.signature(function).parameters]
        _PARTS.append((function, known))

        own = FunctionType(
            function.__code__, function.__globals__, f"own_{function.__name__}", None, function.__closure__
        )
        row(own)

        @lowered(function)
        def define(context, *given):
            kind = given[-1].dtype
            if kind[kind.fields.index("links")] is not types.none:
                return returned(*known), codegen
            called = context.resolve_value_type(own)
            return called.get_call_type(context, [types.unliteral(x) for x in given], {}), within(called)

        def within(called):
            def codegen(context, builder, signature, arguments):
                found = context.get_function(called, signature)
                context.add_linking_libs(getattr(found, "libs", ()))
                return found(builder, arguments)

            return codegen

        def codegen(context, builder, signature, arguments):
            kept = _field(context, builder, known[-1], arguments[-1], "links")
            links = builder.inttoptr(kept, ir.IntType(64).as_pointer())
            address = builder.load(builder.gep(links, [context.get_constant(types.intp, number)]))
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, address)):
                context.call_conv.return_user_exc(builder, Absent, (number,))
            found = _call(context, builder, returned, known, address, arguments)
            return context.get_dummy_value() if returned is types.none else found

        return function

    return decorate


def linked(loop):
    """A loop that begins anew, once what it lacks is compiled: it must not change what it reads."""

    def call(*arguments):
        while True:
            try:
                return loop(*arguments)
            except Absent as absent:
                _link(*absent.args)

    call.whole, call.overloads = loop, getattr(loop, "overloads", True)
    if not DISABLED:
        call.by_python = loop.by_python
    return call


def _link(number):
    with _linking:
        if LINKS[number]:
            return
        function, known = _PARTS[number]
        LINKS[number] = address_of(function, tuple(known))
