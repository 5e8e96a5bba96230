"""Machine code of descriptions: what was made once is found in memory, or on disk."""

import ctypes
import gc
import hashlib
import threading
from contextlib import contextmanager
from functools import cache

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core.registry import cpu_target

from .. import compile_cache
from ..blocks import BLOCK, BLOCK_FIELDS, FLAG_BITS, Blocks, Elementwise
from ..hadamard import TRANSFORM_FIELDS, Hadamard, Transform
from ..jit import SOURCE_DIGEST, once
from ..linking import brief_passes
from .in_order import InOrder
from .language import LONG, WORD
from .loop import FEW_NUMBERS, FIELDS, MANY_NUMBERS, SLOTS
from .noise import Filler, Noise
from .orders import ORDERS
from .reading import NARROW, READ_FIELDS, Reader, Reading
from .segments import MOST_CHAINS, UNUSUAL
from .trees import Trees
from .units import Units, UnitSum, spanned
from .whole import address
from .writing import WRITTEN

__all__ = [
    "BLOCK",
    "BLOCK_FIELDS",
    "FEW_NUMBERS",
    "FLAG_BITS",
    "MANY_NUMBERS",
    "MOST_CHAINS",
    "NARROW",
    "READ_FIELDS",
    "SLOTS",
    "TRANSFORM_FIELDS",
    "UNUSUAL",
    "WRITTEN",
    "spanned",
]
"""Names that callers find here beside those that are defined below."""

_lock = threading.Lock()


def _processor():
    """(triple, CPU, features) that code is made for: Numba's own, which NUMBA_CPU_NAME and NUMBA_CPU_FEATURES set."""
    return cpu_target.target_context.codegen().magic_tuple()


def _machine():
    """A new one each time: it belongs to the engine that gets it."""
    triple, cpu, features = _processor()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2, jit=True)


def _maker(what):
    if isinstance(what, Elementwise):
        return Blocks
    if isinstance(what, Reading):
        return Reader
    if isinstance(what, Noise):
        return Filler
    if isinstance(what, Transform):
        return Hadamard
    if isinstance(what, UnitSum):
        return Units
    return InOrder if ORDERS[what.order](what.stage.draws).in_order else Trees


def compiled(module):
    """The object file of a module."""
    machine = _machine()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    brief_passes(builder).run(parsed, builder)
    return machine.emit_object(parsed)


@contextmanager
def _uncollected():
    """Without collections of garbage, which of the many small objects of a module find none before it is done."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _path(what):
    """Where it is kept; None if there is no place."""
    parts = what, _processor(), llvmlite.__version__
    try:
        return compile_cache.folder(SOURCE_DIGEST) / f"sum-{hashlib.sha256(repr(parts).encode()).hexdigest()[:40]}.o"
    except RuntimeError:
        return None


def linked(content):
    """The function `loop` of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    address = engine.get_function_address("loop")
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)
    function.address, function.engine = address, engine  # which owns the code
    return function


@cache
def _found(what):
    path = _path(what)
    content = path and compile_cache.read(path)
    compile_cache.begin_loop(kept=bool(content))
    if not content:
        with _uncollected():
            content = compiled(_maker(what)(what).module)
        compile_cache.end_loop()
        if path is not None:
            compile_cache.write(path, content)
    return linked(content)


def loop_of(what):
    """loop(address of words of 64 bits, in the order of FIELDS) -> flags seen, of a Sum. It holds no interpreter lock.

    Its own `address` is that of its code.
    """
    with _lock:
        return _found(what)


@once
def _spared(name):
    """(a word, code that sets it to 1) for a function of `whole`, which takes seconds to compile, and which sums of few numbers hardly ever call."""
    word, module = np.zeros(1, np.int64), ir.Module("spared")
    function = ir.Function(module, ir.FunctionType(WORD, []), "loop")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.store(ir.Constant(LONG, 1), builder.inttoptr(ir.Constant(LONG, word.ctypes.data), LONG.as_pointer()))
    builder.ret(ir.Constant(WORD, 0))
    return word, linked(compiled(module))


def again_address(what):
    """(where is what rounds a sum's stores or roundings with all random bits, 0 where nothing draws; whether that stays).

    Before roundings have called it for the first time it is what tells that they did: a sum after which it is another has to be done once more.
    """
    if not what.draws:
        return 0, True
    if isinstance(what, UnitSum):
        return address("stores"), True
    name = "wide" if what.stage.double else "rounding"
    word, spared = _spared(name)
    return (address(name), True) if word[0] else (spared.address, False)


def noise_address(what):
    """Where is what makes the random numbers of a sum's tiles; 0 where nothing draws."""
    return loop_of(Noise(what.rows, what.lanes)).address if what.draws else 0


PLACES = {name: number for number, name in enumerate(FIELDS)}
"""Where each of FIELDS stands."""
