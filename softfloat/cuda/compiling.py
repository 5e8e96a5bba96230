"""What is asked of numba-cuda, in one place: kernels without contracted arithmetic, and the two functions of NumPy that it lacks.

A multiplication and an addition that ptxas makes one instruction of round once where the source rounds twice. NVVM's option fma=0
writes each as an instruction that rounds (.rn), which ptxas leaves alone. numba-cuda has no argument for that option.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np

EXTRA = "a GPU needs numba-cuda: pip install 'numba-softfloat[cuda]'"


def is_available() -> bool:
    """Whether numba-cuda is installed and finds a GPU, or simulates one."""
    try:
        return bool(numba_cuda().is_available())
    except ImportError:
        return False


@cache
def numba_cuda() -> Any:
    """`numba.cuda`, ready for kernels.

    Raises
    ------
    ImportError
        Without numba-cuda.
    """
    gone = "row_stack"
    lacks = not hasattr(np, gone)
    if lacks:  # NumPy 2.5 has it no more, and a module of numba-cuda 0.30 asks for it when it is imported
        setattr(np, gone, np.vstack)
    try:
        import numba_cuda as installed
        from numba import cuda

        if lacks and not simulated():
            importlib.import_module("numba.cuda.np.arrayobj")
    except ImportError as error:
        raise ImportError(EXTRA) from error
    finally:
        if lacks:
            delattr(np, gone)
    del installed
    if not simulated():
        _prepare()
    return cuda


def simulated() -> bool:
    """Whether kernels run as Python, by Numba's simulator (NUMBA_ENABLE_CUDASIM=1)."""
    from numba.core import config

    return bool(getattr(config, "ENABLE_CUDASIM", False))


EXACTLY = threading.local()
"""Whether this thread compiles a kernel of ours: kernels of others keep the options that they have."""


def _prepare() -> None:
    """Teach numba-cuda what its tables lack, and NVVM's option."""
    from llvmlite import ir
    from numba.cuda import ufuncs
    from numba.cuda.cudadrv import nvvm
    from numba.cuda.np import ufunc_db

    def by_library(name: str, kind: Any) -> Callable[..., Any]:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            found = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(kind, [kind]), name)
            return builder.call(found, arguments)

        return code

    table = ufuncs.ufunc_db()
    for function in (np.floor, np.fmod):
        table.setdefault(function, ufunc_db.get_ufunc_info(function))
    # what LLVM has for CPUs NVVM refuses, or leaves as a call of nothing; libdevice's functions are one instruction
    for instruction in (np.rint, np.sqrt):
        name = f"__nv_{instruction.__name__}"
        table[instruction] = {"f->f": by_library(f"{name}f", ir.FloatType()), "d->d": by_library(name, ir.DoubleType())}
    before = nvvm.compile_ir

    def compile_ir(source: Any, **options: Any) -> Any:
        if getattr(EXACTLY, "asked", False):
            options["fma"] = False
        return before(source, **options)

    setattr(nvvm, "compile_ir", compile_ir)  # noqa: B010 -- a function in the place of another


@contextmanager
def uncontracted() -> Iterator[None]:
    """What this thread compiles here rounds after every operation."""
    EXACTLY.asked = True
    try:
        yield
    finally:
        EXACTLY.asked = False


UNREMARKABLE = 128
"""Blocks from which on numba-cuda does not warn that there are few: small arrays have few, and their users did not choose."""


class Kernel:
    """A function that each of many threads runs; compiled for the types of arguments that it is launched with."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    @cached_property
    def _compiled(self) -> Any:
        return numba_cuda().jit(self.function)

    def launch(self, blocks: int, threads: int | tuple[int, int], stream: Any, *arguments: Any) -> None:
        """Run it on so many blocks of so many threads, after what the stream has to do."""
        configured = self._compiled[blocks if simulated() else max(blocks, UNREMARKABLE), threads, stream]
        configured.griddim = (blocks, 1, 1)
        with uncontracted():
            configured(*arguments)

    def ptx(self, signature: Any, capability: tuple[int, int]) -> str:
        """Its text for GPUs of a compute capability, which need not be here."""
        with uncontracted():
            text, _ = numba_cuda().compile_ptx(self.function, signature, cc=capability, device=False)
        return str(text)


class Written:
    """A kernel that is PTX: `text(compute capability)`; compiled by the driver for each GPU that it is launched on."""

    def __init__(self, name: str, text: Callable[[tuple[int, int]], str]) -> None:
        self._name, self._text = name, text
        self._loaded: dict[int, Any] = {}

    def launch(self, blocks: int, threads: int, stream: Any, arguments: Sequence[Any]) -> None:
        """Run it on so many blocks of so many threads, after what the stream has to do; arguments are numbers of ctypes."""
        driver, dispatcher = (
            importlib.import_module(f"numba.cuda.{name}") for name in ("cudadrv.driver", "dispatcher")
        )
        context = numba_cuda().current_context()
        device = context.device
        if device.id not in self._loaded:
            module = context.create_module_ptx(self._text(tuple(device.compute_capability)))
            self._loaded[device.id] = module.get_function(self._name)
        config = dispatcher.LaunchConfig(grid=blocks, block=threads)
        dispatcher.launch(driver._to_core_stream(stream), config, self._loaded[device.id].kernel, *arguments)
