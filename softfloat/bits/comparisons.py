"""Comparisons and selections of codes."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from softfloat import engine
from softfloat.bits.arithmetic import Result
from softfloat.engine import Call, Options, calls, check_boolean, check_codes
from softfloat.formats import Format, check_format

__all__ = ["eq", "le", "lt", "maximum", "maximum_number", "minimum", "minimum_number"]


# -- comparisons -----------------------------------------------------------------------------------------------------


def _compare(relation: str, a: Any, b: Any, fmt: Format | str, signalling: bool, options: Options) -> Result:
    fmt = check_format(fmt, wide=True)
    signalling = check_boolean("signalling", signalling)
    found = calls.comparison(relation, (a, b), fmt, options, signalling)
    if found is not None:
        return found
    call = Call(options, fmt, uses=engine.uses_of(relation))
    call.draws_nothing()
    operands = [check_codes(a, fmt, "a"), check_codes(b, fmt, "b")]
    (x, y), shape = engine.broadcast(operands, ["a", "b"])
    result, raised = engine.outputs(call.out, call.flags, shape, np.dtype(bool), operands)
    raises = engine.flag_bytes(raised)
    compare = calls.relation(relation, fmt, call.settings.daz, call.settings.nan, signalling)

    def work(start: int, stop: int) -> int:
        return compare(x[start:stop], y[start:stop], result.flat[start:stop], raises[start:stop])

    return engine.finished(result, raised, engine.share(x.size, work))


def eq(a: Any, b: Any, fmt: Format | str, *, signalling: bool = False, **options: Unpack[Options]) -> Result:
    """a == b, as bool; -0 equals +0, NaN equals nothing. INVALID for signalling NaNs, and for any NaN if `signalling`.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareQuietEqual, compareSignalingEqual).
    """
    return _compare("eq", a, b, fmt, signalling, options)


def lt(a: Any, b: Any, fmt: Format | str, *, signalling: bool = True, **options: Unpack[Options]) -> Result:
    """a < b, as bool; false for NaN. INVALID for any NaN if `signalling` (the default), else for signalling NaNs.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareSignalingLess, compareQuietLess).
    """
    return _compare("lt", a, b, fmt, signalling, options)


def le(a: Any, b: Any, fmt: Format | str, *, signalling: bool = True, **options: Unpack[Options]) -> Result:
    """a <= b, as bool; false for NaN. INVALID for any NaN if `signalling` (the default), else for signalling NaNs.

    Source: IEEE 754-2019 5.6.1, 5.11 (compareSignalingLessEqual, compareQuietLessEqual).
    """
    return _compare("le", a, b, fmt, signalling, options)


def _extremum(name: str, a: Any, b: Any, fmt: Format | str, options: Options, flushes: bool = True) -> Result:
    fmt = check_format(fmt, wide=True)
    call = Call(options, fmt, uses=engine.uses_of(name))
    call.draws_nothing()
    operands = [check_codes(a, fmt, "a"), check_codes(b, fmt, "b")]
    (x, y), shape = engine.broadcast(operands, ["a", "b"])
    result, raised = engine.outputs(call.out, call.flags, shape, fmt.dtype, operands)
    raises = engine.flag_bytes(raised)
    settings = call.settings
    choose = calls.extremum(name, fmt, settings.daz, settings.ftz and flushes, settings.nan)

    def work(start: int, stop: int) -> int:
        return choose(x[start:stop], y[start:stop], result.flat[start:stop], raises[start:stop])

    return engine.finished(result, raised, engine.share(x.size, work))


def quieted(codes: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """Operands as operations take them: NaNs quiet, INVALID for signalling ones; under `daz`, subnormals zero."""
    return _extremum("maximum_number", codes, codes, fmt, options, flushes=False)


def minimum(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The lesser operand, -0 below +0; NaN if either is NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6.

    Under `nan="arm_ah"` and `"arm_ah_dn"`, the second operand where both are zeros, and, raising INVALID, as it is, where either is a
    NaN: Arm ARM, FPMin with FPCR.AH = 1. So `maximum`.
    """
    return _extremum("minimum", a, b, fmt, options)


def maximum(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The greater operand, +0 above -0; NaN if either is NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum("maximum", a, b, fmt, options)


def minimum_number(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The lesser operand, a number before a NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6.

    Under Arm's policies a signalling NaN goes before a number, and `ftz` flushes the result: Arm ARM, FPMinNum. So `maximum_number`.
    """
    return _extremum("minimum_number", a, b, fmt, options)


def maximum_number(a: Any, b: Any, fmt: Format | str, **options: Unpack[Options]) -> Result:
    """The greater operand, a number before a NaN. INVALID for signalling NaNs. Source: IEEE 754-2019 9.6."""
    return _extremum("maximum_number", a, b, fmt, options)
