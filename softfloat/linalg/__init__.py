"""Linear algebra."""

from softfloat.linalg.factors import LDL, LU, cholesky, ldl, lu, qr, solve_triangular

__all__ = ["LDL", "LU", "cholesky", "ldl", "lu", "qr", "solve_triangular"]
