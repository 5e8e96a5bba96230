"""Test vectors: operations, distributions of operands, corner rows, coverage, files: `softfloat vectors`, `softfloat coverage`."""

from softfloat.testing.vectors.columns import Column, Number
from softfloat.testing.vectors.corners import Rows
from softfloat.testing.vectors.coverage import Coverage, coverage_of
from softfloat.testing.vectors.distributions import DISTRIBUTIONS, draw, draw_operands, edges
from softfloat.testing.vectors.expressions import parse_accumulator
from softfloat.testing.vectors.files import read_vectors, write_rows, write_vectors
from softfloat.testing.vectors.levels import corners_of
from softfloat.testing.vectors.operations import OPERATIONS, Case, Operation, resolve
from softfloat.testing.vectors.text import Chunk, VectorError

__all__ = [
    "DISTRIBUTIONS",
    "OPERATIONS",
    "Case",
    "Chunk",
    "Column",
    "Coverage",
    "Number",
    "Operation",
    "Rows",
    "VectorError",
    "corners_of",
    "coverage_of",
    "draw",
    "draw_operands",
    "edges",
    "parse_accumulator",
    "read_vectors",
    "resolve",
    "write_rows",
    "write_vectors",
]
