"""Linear algebra."""

from softfloat.linalg import numpys as numpys  # fills the table in which SoftArrays look NumPy's functions up
from softfloat.linalg.factors import LDL, LU, cholesky, ldl, lu, qr, solve_triangular

__all__ = ["LDL", "LU", "cholesky", "ldl", "lu", "qr", "solve_triangular"]
