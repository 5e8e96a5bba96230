"""Arrays that compute in a format: SoftArray, and NumPy's ufuncs and functions on it."""

from softfloat.arrays import namespace as namespace  # fills the list of what makes functions of the array API standard
from softfloat.arrays import products as products
from softfloat.arrays import statistics as statistics
from softfloat.arrays import (
    ufuncs as ufuncs,  # with these two fills the tables in which SoftArrays look NumPy's functions up
)
from softfloat.arrays.creation import (
    arange,
    empty,
    empty_like,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from softfloat.arrays.held import FUNCTIONS, UFUNCS
from softfloat.arrays.operands import constant, constants
from softfloat.arrays.softarray import SoftArray, array, asarray, from_codes
from softfloat.arrays.standard import DType, array_namespace
from softfloat.arrays.sums import quotient
from softfloat.arrays.views import array_html, array_rich

__all__ = [
    "FUNCTIONS",
    "UFUNCS",
    "DType",
    "SoftArray",
    "arange",
    "array",
    "array_html",
    "array_namespace",
    "array_rich",
    "asarray",
    "constant",
    "constants",
    "empty",
    "empty_like",
    "from_codes",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "quotient",
    "zeros",
    "zeros_like",
]
