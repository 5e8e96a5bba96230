"""Which elementwise operations there are, and what others call them: one row each, by the name in `softfloat.bits`.

NumPy's ufuncs on SoftArrays, PyTorch's operators, the operations of test vectors and the references of error figures
are made from these rows. What only one of them needs to know stands there.

>>> ELEMENTWISE["modulo"].numpy, ELEMENTWISE["fma"].testfloat
(('remainder',), 'mulAdd')
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ELEMENTWISE", "Operation"]


class Operation(NamedTuple):
    """One row of `ELEMENTWISE`.

    Attributes
    ----------
    name : str
        In `softfloat.bits`; in `softfloat.reference` too, where an oracle has it.
    operands : tuple of str
        Names of the columns of test vectors.
    numpy : tuple of str
        The ufuncs that are this function.
    mpmath : str
        The exact function of one operand, if mpmath has it.
    torch : str
        PyTorch's operator that is this step, if its further arguments are left alone.
    testfloat : str
        Berkeley TestFloat's name, without its format.
    result : str
        "float": a code of the operands' format; "bool"; "class": a place in `CLASSES`.
    rounds : bool
        Whether results are rounded.
    flags : bool
        Whether the function takes options and gives flags.
    """

    name: str
    operands: tuple[str, ...]
    numpy: tuple[str, ...] = ()
    mpmath: str = ""
    torch: str = ""
    testfloat: str = ""
    result: str = "float"
    rounds: bool = True
    flags: bool = True


ONE, TWO, THREE = ("a",), ("a", "b"), ("a", "b", "c")

ELEMENTWISE = {
    row.name: row
    for row in (
        Operation("add", TWO, ("add",), torch="add", testfloat="add"),
        Operation("sub", TWO, ("subtract",), torch="sub", testfloat="sub"),
        Operation("mul", TWO, ("multiply",), torch="mul", testfloat="mul"),
        Operation("div", TWO, ("divide",), torch="div", testfloat="div"),
        Operation("remainder", TWO, testfloat="rem"),
        Operation("fmod", TWO, ("fmod",), torch="fmod"),
        Operation("modulo", TWO, ("remainder",), torch="remainder"),
        Operation("floor_divide", TWO, ("floor_divide",), torch="floor_divide"),
        Operation("hypot", TWO, ("hypot",), torch="hypot"),
        Operation("atan2", TWO, ("arctan2",), torch="atan2"),
        Operation("pow", TWO, ("power",), torch="pow"),
        Operation("logaddexp", TWO, ("logaddexp",), torch="logaddexp"),
        Operation("logaddexp2", TWO, ("logaddexp2",), torch="logaddexp2"),
        Operation("sqrt", ONE, ("sqrt",), "sqrt", "sqrt", "sqrt"),
        Operation("fma", THREE, testfloat="mulAdd"),
        Operation("round_to_integral", ONE, testfloat="roundToInt"),
        Operation("exp", ONE, ("exp",), "exp", "exp"),
        Operation("exp2", ONE, ("exp2",), torch="exp2"),
        Operation("exp10", ONE),
        Operation("expm1", ONE, ("expm1",), "expm1", "expm1"),
        Operation("log", ONE, ("log",), "log", "log"),
        Operation("log2", ONE, ("log2",), torch="log2"),
        Operation("log10", ONE, ("log10",), torch="log10"),
        Operation("log1p", ONE, ("log1p",), "log1p", "log1p"),
        Operation("sin", ONE, ("sin",), "sin", "sin"),
        Operation("cos", ONE, ("cos",), "cos", "cos"),
        Operation("tan", ONE, ("tan",), "tan", "tan"),
        Operation("asin", ONE, ("arcsin",), "asin", "asin"),
        Operation("acos", ONE, ("arccos",), "acos", "acos"),
        Operation("atan", ONE, ("arctan",), "atan", "atan"),
        Operation("sinh", ONE, ("sinh",), "sinh", "sinh"),
        Operation("cosh", ONE, ("cosh",), "cosh", "cosh"),
        Operation("tanh", ONE, ("tanh",), "tanh", "tanh"),
        Operation("asinh", ONE, ("arcsinh",), "asinh", "asinh"),
        Operation("acosh", ONE, ("arccosh",), "acosh", "acosh"),
        Operation("atanh", ONE, ("arctanh",), "atanh", "atanh"),
        Operation("cbrt", ONE, ("cbrt",)),
        Operation("degrees", ONE, ("degrees", "rad2deg"), "degrees", "rad2deg"),
        Operation("radians", ONE, ("radians", "deg2rad"), "radians", "deg2rad"),
        Operation("eq", TWO, ("equal",), testfloat="eq", result="bool", rounds=False),
        Operation("lt", TWO, ("less",), testfloat="lt", result="bool", rounds=False),
        Operation("le", TWO, ("less_equal",), testfloat="le", result="bool", rounds=False),
        Operation("minimum", TWO, ("minimum",), torch="minimum", rounds=False),
        Operation("maximum", TWO, ("maximum",), torch="maximum", rounds=False),
        Operation("minimum_number", TWO, ("fmin",), torch="fmin", rounds=False),
        Operation("maximum_number", TWO, ("fmax",), torch="fmax", rounds=False),
        Operation("next_up", ONE, rounds=False),
        Operation("next_down", ONE, rounds=False),
        Operation("negative", ONE, ("negative",), rounds=False, flags=False),
        Operation("abs", ONE, ("absolute", "fabs"), rounds=False, flags=False),
        Operation("copysign", TWO, ("copysign",), rounds=False, flags=False),
        Operation("classify", ONE, result="class", rounds=False, flags=False),
        Operation("isnan", ONE, ("isnan",), result="bool", rounds=False, flags=False),
        Operation("issnan", ONE, result="bool", rounds=False, flags=False),
        Operation("isinf", ONE, ("isinf",), result="bool", rounds=False, flags=False),
        Operation("isfinite", ONE, ("isfinite",), result="bool", rounds=False, flags=False),
        Operation("isnormal", ONE, result="bool", rounds=False, flags=False),
        Operation("issubnormal", ONE, result="bool", rounds=False, flags=False),
        Operation("iszero", ONE, result="bool", rounds=False, flags=False),
        Operation("signbit", ONE, ("signbit",), result="bool", rounds=False, flags=False),
    )
}
"""Name -> row: arithmetic, functions, comparisons, and what only looks at codes."""
