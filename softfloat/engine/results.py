"""Where results and flags go: fresh arrays or the caller's, written whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from softfloat.engine.arguments import Codes, refuse_mask


class Output:
    """Where a result goes: a fresh array, or the caller's, written directly if nothing it overlaps is read, else at the end."""

    def __init__(
        self, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any], argument: str, operands: Sequence[Codes]
    ) -> None:
        self.given, self.shape = given, shape
        if given is None:
            self.flat = np.empty(math.prod(shape), dtype)
            return
        refuse_mask(given, argument)
        if not isinstance(given, np.ndarray) or given.dtype != dtype or given.shape != shape:
            found = f"{given.dtype} of shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
            raise ValueError(f"{argument} must be an array of dtype {dtype} and shape {shape}, got {found}")
        if not given.flags.writeable:
            raise ValueError(f"{argument} is read-only; accepted: a writeable array of dtype {dtype} and shape {shape}")
        direct = given.flags.c_contiguous and not any(np.may_share_memory(given, x) for x in operands)
        self.flat = given.reshape(-1) if direct else np.empty(given.size, dtype)

    def finish(self) -> Any:
        """The result as the caller sees it: the given array, a new one, or a scalar for operands without dimensions."""
        if self.given is None:
            return self.flat.reshape(self.shape)[()]
        if not np.may_share_memory(self.given, self.flat):
            self.given[...] = self.flat.reshape(self.shape)
        return self.given


def outputs(
    out: Any, flags: str, shape: tuple[int, ...], dtype: np.dtype[Any], operands: Sequence[Codes]
) -> tuple[Output, Output | None]:
    """The places for a result and its flags. `out` is an array for the result, or a pair of arrays for both."""
    if not isinstance(flags, str) or flags not in ("each", "any"):
        raise ValueError(f"flags must be 'each' (a uint8 per element) or 'any' (one integer), got {flags!r}")
    given, given_flags = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
    if given_flags is not None and flags == "any":
        raise ValueError(
            "out holds an array for flags, but flags='any' returns one integer; accepted: flags='each', or an array alone"
        )
    if given is not None and given_flags is not None and np.may_share_memory(given, given_flags):
        raise ValueError("out holds two arrays that share memory")
    result = Output(given, shape, dtype, "out", operands)
    return result, Output(given_flags, shape, np.dtype(np.uint8), "out[1]", operands) if flags == "each" else None


def flag_bytes(raised: Output | None) -> Codes:
    """Where a loop puts a byte of flags for each element; nothing, if it ORs them together."""
    return raised.flat if raised is not None else np.empty(0, np.uint8)


def finished(result: Output, raised: Output | None, seen: int) -> tuple[Any, Any]:
    """(result, flags) as the caller sees them; `seen` is what the loops OR-ed together."""
    return result.finish(), raised.finish() if raised is not None else seen
