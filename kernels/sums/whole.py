"""Roundings of one output by the plain functions, for generated code: compiled by Numba once, called by address."""

from functools import cache

from numba import carray, types

from .. import jit
from ..accumulate import RUNNING
from ..carrier import SOURCE_FLOATS, SOURCE_INTEGERS, source_of
from ..redrawn import product_again, sum_again
from ..rounding import TARGET_FLOATS, TARGET_INTEGERS, target_of

NUMBERS = types.CPointer(types.int64), types.CPointer(types.float64)
ARGUMENTS = (
    types.int64, types.float64, types.float64, types.uint32, types.uint64, types.int64, *NUMBERS, types.int64, types.uint64, types.uint64,
    types.CPointer(types.float64),
)  # fmt: skip


def _rounding(site, x, y, noise, output, number, integers, floats, width, key, stream, total):
    """Flags of x + y at the site of sums, of x * y at the other, rounded to `total` with all random bits, the first 16 of which are in `noise`."""
    ints = carray(integers, (SOURCE_INTEGERS + TARGET_INTEGERS,))
    reals = carray(floats, (SOURCE_FLOATS + TARGET_FLOATS,))
    source, target = source_of(ints, reals), target_of(ints, reals)
    if site == RUNNING:
        found, raised = sum_again(x, y, noise, output, number, source, target, width, key, stream)
    else:
        found, raised = product_again(x * y, noise, output, number, source, target, width, key, stream)
    carray(total, (1,))[0] = found
    return raised


@cache
def _compiled():
    dispatcher = jit.compiled(_rounding)
    dispatcher.compile(ARGUMENTS)
    return dispatcher.overloads[ARGUMENTS]


def address():
    """Where its machine code is. It takes, before its arguments, where its result goes, and where what is raised would; nothing is."""
    made = _compiled()
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
