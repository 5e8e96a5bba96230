"""Who reads an array right now: libraries that draw get float64, those that would compute in it unasked are refused."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np

__all__ = ["COMPUTING", "DRAWING", "drawing", "reader"]

DRAWING = frozenset({"matplotlib", "mpl_toolkits"})
"""Packages that may read numbers unasked: they draw them."""
COMPUTING = frozenset({"numpy.ma", "scipy", "sklearn"})
"""Packages whose own code asks for float64 by name and computes in it, which their callers did not ask for."""


def drawing(depth: int = 3) -> bool:
    """Whether the code so many calls up draws: its sums and products of what it draws are not the array's own."""
    if "matplotlib" not in sys.modules:  # without which none of them is there
        return False
    module = sys._getframe(depth).f_globals.get("__name__") or ""
    return module.partition(".")[0] in DRAWING


def reader() -> tuple[str, str]:
    """(package, public function) of the library code that reads an array right now; empty where the caller's own does."""
    frame: FrameType | None = sys._getframe(2)  # past __array__
    package = function = ""
    while frame is not None:
        module, name = frame.f_globals.get("__name__") or "", frame.f_code.co_name
        top = "numpy.ma" if module.startswith("numpy.ma.") else module.partition(".")[0]
        if top in DRAWING | COMPUTING and package in ("", "numpy.ma", top):
            package = top
        elif top not in ("numpy", "numpy.ma"):  # which may stand between
            break
        if "._lib." in module:  # SciPy's decorators, which read for the function f that they wrap
            wrapped = frame.f_locals.get("f")
            module, name = getattr(wrapped, "__module__", module), getattr(wrapped, "__name__", "_")
        elif name not in frame.f_globals:
            name = "_"
        if not name.startswith("_"):
            home = "numpy" if hasattr(np, name) and top == "numpy" else module
            function = ".".join([*(part for part in home.split(".") if not part.startswith("_")), name])
        frame = frame.f_back
    return package, function or package
