"""Linear algebra in a format: factorizations, solvers, refinement, each operation rounded as the environment says.

Functions of `numpy.linalg` take SoftArrays as well; what NumPy has no name for is here. Nothing is scaled, promoted or refined unasked, and no
operation is made in float64 but for comparisons: which pivot, which order, when to stop. Sums of products are by the
environment's accumulator; c - l u is c + (-l) u. Flags go to the environment's status, and results that have `flags` have them too.

>>> import softfloat
>>> found = lu(softfloat.array([[4, 3], [6, 3]], "bfloat16"))
>>> found.solve([1, 0])
SoftArray([-0.5,  1. ], bfloat16)
"""

import numpy as np

from softfloat.arrays.held import FUNCTIONS
from softfloat.linalg import numpys as numpys  # fills the table in which SoftArrays look NumPy's functions up
from softfloat.linalg.factors import LDL, LU, ldl, lu, solve_triangular
from softfloat.linalg.krylov import Solved, cg, gmres
from softfloat.linalg.refinement import Refined, refine
from softfloat.linalg.scalings import Squeezed, equilibrate, squeeze

__all__ = [
    "LDL",
    "LU",
    "Refined",
    "Solved",
    "Squeezed",
    "cg",
    "equilibrate",
    "gmres",
    "ldl",
    "lu",
    "refine",
    "solve_triangular",
    "squeeze",
]


def __getattr__(name: str) -> object:
    """AttributeError, which says where NumPy's functions are."""
    known = getattr(np.linalg, name, None) in FUNCTIONS
    raise AttributeError(
        f"softfloat.linalg has no {name!r}" + (f"; numpy.linalg.{name} takes SoftArrays" if known else "")
    )
