"""A golden model outside Python: a shared library of softfloat's arithmetic for C, C++, SystemVerilog (DPI-C) and cocotb.

`write` makes a folder with `libsf.so`, the object behind it, and `sf.h`, `sf.hpp`, `sf_pkg.sv`, `sf.py`. The library is compiled from the
kernels that `softfloat.bits` runs, so results and flags are the same; it needs neither Python nor Numba. The command line has the
same: `softfloat export`.
"""

from softfloat.export.functions import FUNCTIONS, Prototype
from softfloat.export.library import LONGEST, write
from softfloat.export.targets import TARGETS

__all__ = ["FUNCTIONS", "LONGEST", "TARGETS", "Prototype", "write"]
