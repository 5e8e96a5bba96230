"""Functions that only loops call: their code is linked once, where a loop needs it, and becomes machine code there alone.

Numba would make machine code of each function, and of everything that it calls once more, though none is called by address.
"""

import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import ConfigStack


class Waiting(threading.local):
    """Who waits for what this thread compiles: `look`, between two steps of that, raises what is to end it."""

    look: Callable[[], None] = staticmethod(lambda: None)


waiting = Waiting()


class _Environments:
    """A code generator whose environments are kept for the loops that a part is linked to."""

    def __init__(self, codegen: Any, kept: dict[str, Any]) -> None:
        self._codegen, self._kept = codegen, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """What Numba asks for once code has an address."""
        self._kept[name] = environment


class Defined:
    """A module of which only those functions are seen that it defines. Numba's passes would be built for each that it declares, too."""

    def __init__(self, module: Any) -> None:
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    @property
    def functions(self) -> list[Any]:
        """Those that are defined."""
        return [function for function in self._module.functions if not function.is_declaration]


class Part(JITCodeLibrary):
    """The code of a function that has no address."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.environments: dict[str, Any] = {}

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _Environments(self._codegen, self.environments)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Of the function alone: vectors of what it is linked to depend on it."""
        waiting.look()
        super()._optimize_functions(Defined(ll_module))

    def finalize(self) -> None:
        """Nothing more is added."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    def _get_module_for_linking(self) -> Any:
        """The code with all that it calls, for libraries that know of no parts."""
        self._ensure_finalized()
        if self._shared_module is None:
            whole = self._final_module.clone()
            for library in linked(self._linking_libraries):
                module = library._final_module if isinstance(library, Part) else library._get_module_for_linking()
                whole.link_in(module, preserve=True)
            self._shared_module = whole
        return self._shared_module

    @property
    def own_module(self) -> Any:
        """The code without what it calls."""
        return self._final_module


def linked(libraries: Iterable[Any]) -> list[Any]:
    """Libraries and what parts among them are linked to, each once, those that call before those that they call.

    LLVM's linker leaves out a part that nothing refers to yet, though one that is linked later may.
    """
    seen, called_first = set(), []

    def visit(library: Any) -> None:
        if library in seen:
            return
        seen.add(library)
        if isinstance(library, Part):
            for called in library._linking_libraries:
                visit(called)
        called_first.append(library)

    for library in libraries:
        visit(library)
    return called_first[::-1]


PASSES = "always_inliner", "sroa", "instruction_combine", "simplify_cfg", "loop_rotate", "instruction_combine"


def brief_passes(builder: Any) -> Any:
    """What code needs that is optimised once more, or was written as it is to run: all passes take six times as long, and loops are no faster."""
    passes: Any = llvm.create_new_module_pass_manager()
    if not hasattr(passes, "add_sroa_pass"):  # llvmlite 0.44
        return builder.getModulePassManager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


class Simplified(Part):
    """A part that is simplified with all that it calls before it is linked: what is inlined into an inner loop is short by then."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Not before all is linked."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Briefly: loops that inline it are optimised with it, and those of stochastic rounding are a third faster than after all passes."""
        builder = llvm.create_pass_builder(self._codegen._tm, llvm.create_pipeline_tuning_options(speed_level=1))
        brief_passes(builder).run(self._final_module, builder)

    def finalize(self) -> None:
        """Link, simplify."""
        for library in linked(self._linking_libraries):
            self._final_module.link_in(
                library.own_module if isinstance(library, Part) else library._get_module_for_linking(), preserve=True
            )
        self._linking_libraries = []
        self._optimize_final_module()
        super().finalize()


SCATTERING, UNDERSTOOD = "+avx512f", 17
"""The instructions that store a vector's numbers apart from each other; the version of LLVM from which on it can be told not to use them."""


class Whole(JITCodeLibrary):
    """The code of a loop with that of all parts it calls, optimised once."""

    def add_ir_module(self, ir_module: Any) -> None:
        """With stores of single numbers where they lie apart: a loop of Hadamard transforms takes six times as long on Zen 5 with vectors of them."""
        features = self._codegen._tm_features
        if SCATTERING in features.split(",") and llvm.llvm_version_info[0] >= UNDERSTOOD:
            for function in ir_module.functions:
                if not function.is_declaration:  # llvmlite has no name for attributes with values
                    set.add(function.attributes, f'"target-features"="{features},+prefer-no-scatter"')
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Of the loop alone, before all is linked: vectors depend on it."""
        waiting.look()
        super()._optimize_functions(Defined(ll_module))

    def _optimize_final_module(self) -> None:
        """Of all."""
        waiting.look()
        super()._optimize_final_module()

    def _finalize_specific(self) -> None:
        """Machine code."""
        waiting.look()
        super()._finalize_specific()

    def finalize(self) -> None:
        """Link, optimise, make machine code."""
        self._raise_if_finalized()
        found = linked(self._linking_libraries)
        parts = [library for library in found if isinstance(library, Part)]
        for part in parts:
            self._final_module.link_in(part.own_module, preserve=True)
        self._linking_libraries = [library for library in found if not isinstance(library, Part)]
        super().finalize()
        codegen: Any = self._codegen
        for part in parts:
            for name, environment in part.environments.items():
                if codegen._engine.get_global_value_address(name):
                    codegen.set_env(name, environment)


UNNEEDED = {"NopythonRewrites", "InlineOverloads"}
"""Numba's passes that look, for long, for what no loop here has: expressions of arrays, overloads that ask to be inlined."""
FLAT_UNNEEDED = UNNEEDED | {"InlineClosureLikes"}
"""Those of functions without others inside, comprehensions among them."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """What handlers of signals do, they do between two steps of what is compiled, or at the end.

    They raise exceptions. In a callback of LLVM's, which is the first Python code to run after machine code was made, ctypes prints and
    drops them; and a lock of llvmlite's that was just taken stays locked.
    """
    if threading.current_thread() is not threading.main_thread() or "look" in vars(waiting):
        yield
        return
    every = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
    handlers = {number: handler for number, handler in every.items() if callable(handler)}
    came: list[tuple[int, Any]] = []
    over = False

    def note(number: int, frame: Any) -> None:
        came.append((number, frame))
        if over:
            look()

    def look() -> None:
        while came:
            number, frame = came.pop(0)
            handlers[number](number, frame)

    try:
        for number in handlers:
            signal.signal(number, note)
        waiting.look = look
        yield
    finally:
        over = True
        vars(waiting).pop("look", None)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        look()


class _Into(Compiler):
    """A compiler into libraries of a class of its own."""

    library: Any

    def define_pipelines(self) -> Any:
        """Numba's own passes. What is called is known to them by the caller's flags too; these differ between loops and parts."""
        waiting.look()
        state, shown = self.state, ConfigStack().top()
        shown.release_gil = shown.forceinline = False
        shown.no_cpython_wrapper = shown.no_cfunc_wrapper = True
        if state.library is None:
            state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        pipelines = super().define_pipelines()
        nested = any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts)
        for pipeline in pipelines:
            pipeline.passes[:] = [
                item for item in pipeline.passes if item[0].__name__ not in (UNNEEDED if nested else FLAT_UNNEEDED)
            ]
        return pipelines


class PartCompiler(_Into):
    """The compiler of functions that loops call."""

    library = Part


class SimplifiedCompiler(_Into):
    """The compiler of scalar functions that loops inline."""

    library = Simplified


class WholeCompiler(_Into):
    """The compiler of loops. It makes millions of objects and drops few: to look for cycles among them takes a tenth of the time."""

    library = Whole

    def compile_extra(self, func: Any) -> Any:
        """The whole of it."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with interruptible():
                return super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()
