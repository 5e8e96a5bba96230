"""Loops over flat arrays: factories over the scalar functions below this floor.

Every loop closes over the digest of all kernel sources, which so becomes part of its cache key. What differs between formats and rules is
passed in; what differs in kind (operation, way of rounding, flags each or together) is closed over, and only that compiles anew.
"""

from functools import lru_cache

import numpy as np

from . import arith, jit, prng, rounding, spec
from .carrier import decode, is_nan, is_signalling

ARITY = {"convert": 1, "add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3, "remainder": 2, "round_to_integral": 1}
OPERATIONS = {
    "convert": arith.identity,
    "add": arith.add,
    "sub": arith.sub,
    "mul": arith.mul,
    "div": arith.div,
    "sqrt": arith.sqrt,
    "fma": arith.fma,
    "remainder": arith.remainder,
    "round_to_integral": arith.integral,
}
ROUNDERS = {
    ("nearest", False): rounding.round_nearest,
    ("selected", False): rounding.round_selected,
    ("drawn", False): rounding.round_drawn,
    ("nearest", True): rounding.round_selected_unusual,
    ("selected", True): rounding.round_selected_unusual,
    ("drawn", True): rounding.round_drawn_unusual,
}
