"""Known mistakes: what a device that makes one would have answered.

A `Cause` predicts the results of a device that makes the mistake and no other. `causes_of` lists the causes that make sense for a case,
the simplest first; `FAMILIES` is where they come from.

>>> from softfloat.testing.vectors.operations import resolve
>>> [cause.name for cause in causes_of(resolve("add", "float16"))][:3]
['rounding toward_zero', 'rounding nearest_away', 'rounding toward_positive']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from softfloat import bits
from softfloat.bits.operations import ELEMENTWISE
from softfloat.engine import Options
from softfloat.environments import Environment, InfiniteInput, Overflow, Rounding, Tininess, as_rounding
from softfloat.formats import ROSTER, Format
from softfloat.kernels.spec import NAN_POLICIES
from softfloat.status import Flags
from softfloat.testing.vectors.block_operations import DEQUANTIZE, PRODUCTS, QUANTIZE, SCALE
from softfloat.testing.vectors.columns import as_number
from softfloat.testing.vectors.operations import OPERATIONS, Case
from softfloat.testing.verdicts.block_causes import block_causes
from softfloat.testing.verdicts.cause import Cause, Pair, Predict, changed, ran
from softfloat.testing.verdicts.plain_units import unit_causes
from softfloat.testing.verdicts.sum_causes import addends, orders, sums

__all__ = ["FAMILIES", "causes_of"]

Codes = np.ndarray[Any, Any]


def _options(case: Case, operands: Sequence[Codes]) -> Options:
    """Options of a last rounding, with the random numbers that rows bring."""
    options: Options = {"environment": case.environment}
    if case.draws:
        options["random_bits"] = operands[-1]
    return options


def _rounds(case: Case) -> bool:
    return case.operation.rounds and case.target.kind != "float64"


# -- the environment -------------------------------------------------------------------------------------------------

MODE_MEANINGS = {
    "toward_zero": "results are truncated",
    "nearest_away": "ties go away from zero",
    "toward_positive": "results are rounded up",
    "toward_negative": "results are rounded down",
    "to_odd": "results are rounded to odd (a sticky bit kept)",
    "nearest_even": "results are rounded to nearest, ties to even",
}


def _roundings(case: Case) -> Iterator[Cause]:
    if not _rounds(case):
        return
    for name, meaning in MODE_MEANINGS.items():
        if as_rounding(name) != case.environment.rounding:
            yield Cause(f"rounding {name}", meaning, ran(case.under(rounding=name)))


def _subnormals(case: Case) -> Iterator[Cause]:
    settings = case.environment
    if case.operation.result == "float" and not case.operation.rounds and case.operation.name in FLAGLESS:
        return
    choices = [(True, False), (False, True), (True, True), (False, False)]
    meanings = {
        (True, False): "subnormal operands count as zero",
        (False, True): "subnormal results become zero",
        (True, True): "subnormal operands and results become zero",
        (False, False): "subnormal operands and results are kept",
    }
    names = {(True, False): "daz", (False, True): "ftz", (True, True): "daz and ftz", (False, False): "no flushing"}
    for daz, ftz in choices:
        if (daz, ftz) != (settings.daz, settings.ftz):
            yield Cause(names[daz, ftz], meanings[daz, ftz], ran(case.under(daz=daz, ftz=ftz)))
    fmt = case.target.format
    if fmt is not None and fmt.signed_zero and _rounds(case):
        flushing = case.under(ftz=True)

        def positive(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            results, flags = flushing.run(operands)
            tiny = (results == fmt.sign_bit) & (results != right[0])
            return np.where(tiny, 0, results).astype(results.dtype), flags

        yield Cause("ftz without sign", "subnormal results become +0, whatever their sign", positive)


def _overflows(case: Case) -> Iterator[Cause]:
    fmt, settings = case.target.format, case.environment
    if fmt is None or not _rounds(case):
        return
    meanings = {
        Overflow.SATURATE: "overflow gives the largest finite number",
        Overflow.INFINITY: "overflow gives infinity",
        Overflow.NAN: "overflow gives NaN",
    }
    for choice, meaning in meanings.items():
        if choice != settings.overflow and (choice is not Overflow.NAN or fmt.has_nan):
            yield Cause(f"overflow {choice.name.lower()}", meaning, ran(case.under(overflow=choice)))
    directed = not settings.settings.rounding.nearest
    if fmt.infinities and directed and settings.overflow is Overflow.INFINITY:

        def always(results: Codes, flags: Codes) -> tuple[Any, Any]:
            over = (flags & Flags.OVERFLOW) != 0
            return np.where(over, results & fmt.sign_bit | fmt.inf_code, results), flags

        yield Cause("overflow always infinity", "overflow gives infinity in every rounding mode", changed(always))
    if case.operation.name == "convert":
        now = settings.infinite_input
        for kind, meaning in {
            InfiniteInput.KEEP: "infinite operands stay infinite",
            InfiniteInput.SATURATE: "infinite operands become the largest finite number",
            InfiniteInput.NAN: "infinite operands become NaN",
        }.items():
            if kind != now and (kind is not InfiniteInput.NAN or fmt.has_nan):
                yield Cause(f"infinite operands {kind.name.lower()}", meaning, ran(case.under(infinite_input=kind)))


def _tininess(case: Case) -> Iterator[Cause]:
    if case.target.format is not None and _rounds(case):
        other = Tininess.AFTER if case.environment.tininess is Tininess.BEFORE else Tininess.BEFORE
        meaning = f"underflow is detected {other.name.lower()} rounding"
        yield Cause(f"tininess {other.name.lower()}", meaning, ran(case.under(tininess=other)))


def _nan_rules(case: Case) -> Iterator[Cause]:
    if case.operation.name in FLAGLESS:
        return
    for name in NAN_POLICIES:
        if name != case.environment.nan:
            yield Cause(f"nan {name}", f"NaNs follow {name} rules", ran(case.under(nan=name)))


def _exactness(case: Case) -> Iterator[Cause]:
    integral = case.operation.name == "round_to_integral" or case.target.kind in ("signed", "unsigned")
    if case.operation.exact and integral:
        meaning = (
            "inexact is not raised by rounding to integers"
            if case.exact
            else "inexact is raised by rounding to integers"
        )
        yield Cause("exactness", meaning, ran(case.replace(exact=not case.exact)))


FLAGLESS = {row.name for row in ELEMENTWISE.values() if not row.flags}


# -- rounding more than once, or not enough --------------------------------------------------------------------------


INTERMEDIATES = ("float16", "bfloat16", "tfloat32", "float32")
EXACT = Environment()


def _computed_in(case: Case, middle: Format, rounding: Rounding | None = None) -> Predict:
    """The operation in a wider format, then a conversion to the right one."""
    fmt, number = case.format, as_number(middle)
    inner = case.replace(source=number, second=number, target=number)
    if rounding is not None:
        inner = inner.under(rounding=rounding)

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        wide, raised = [], np.zeros(len(right[0]), np.uint8)
        for codes in operands[: len(case.operation.operands)]:
            widened, flags = bits.convert(codes, fmt, middle, environment=case.environment.replace(rounding="RNE"))
            wide.append(widened)
            raised |= flags
        random = operands[len(case.operation.operands) :] if inner.draws else []
        results, flags = inner.run([*wide, *random])
        narrow, more = bits.convert(results, middle, fmt, **_options(case, operands))
        return narrow, raised | flags | more

    return predict


def _converted_through(case: Case, middle: Format) -> Predict:
    number = as_number(middle)
    first = case.replace(target=number).under(rounding="RNE") if case.draws else case.replace(target=number)
    second = case.replace(source=number, second=number)

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        between, flags = first.run(operands[: len(first.operands)])
        results, more = second.run([between, *operands[1:]])
        return results, flags | more

    return predict


def _twice(case: Case) -> Iterator[Cause]:
    """Double rounding, through the formats that other hardware and libraries have."""
    fmt = case.target.format
    if fmt is None or not _rounds(case) or case.operation.result not in ("float", "target"):
        return
    middles = [ROSTER[name] for name in INTERMEDIATES]
    name = "double rounding through {}"
    meaning = "results are rounded to {0}, then to {1}"
    if case.operation.name == "convert":
        for middle in middles:
            if middle not in (case.source.format, fmt):
                yield Cause(name.format(middle), meaning.format(middle, fmt), _converted_through(case, middle))
        if case.source.kind in ("signed", "unsigned") and not fmt.wide:
            yield Cause(name.format("float64"), meaning.format("float64", fmt), _integers_through_float64(case))
        normal = _unbounded(fmt)
        if normal is not None:
            yield Cause("double rounding of subnormals", SUBNORMALS_TWICE, _converted_through(case, normal))
        return
    if not fmt.signed or not fmt.zero:
        return
    for middle in middles:
        if middle != fmt and middle.contains(fmt):
            yield Cause(name.format(middle), meaning.format(middle, fmt), _computed_in(case, middle))
    function = None if fmt.wide else _numpy(case.operation.name)
    if function is not None:
        yield Cause(name.format("float64"), meaning.format("float64", fmt), _by_numpy(case, function, np.float64))
        if case.operation.name not in ARITHMETIC and ROSTER["float32"].contains(fmt):
            text = "the host's float32 function is taken, and its result rounded"
            yield Cause("host float32 function", text, _by_numpy(case, function, np.float32))
    normal = _unbounded(fmt)
    if normal is not None:
        yield Cause("double rounding of subnormals", SUBNORMALS_TWICE, _computed_in(case, normal))


SUBNORMALS_TWICE = "subnormal results are rounded to full precision first, then again where they end"


def _unbounded(fmt: Format) -> Format | None:
    """The format with the widest range of exponents."""
    if fmt.exponent_bits > 6 or not fmt.mantissa_bits or not fmt.subnormals:
        return None
    return Format(f"{fmt.name}_unbounded", exponent_bits=8, mantissa_bits=fmt.mantissa_bits)


ARITHMETIC = {"add", "sub", "mul", "div", "sqrt", "fma"}


HOSTS: dict[str, Callable[..., Any]] = {
    "fma": lambda a, b, c: a * b + c,
    "exp10": lambda a: np.power(a.dtype.type(10), a),
}
"""What a host computes where NumPy has no ufunc."""
NOT_IN_ONE_ROUNDING = {"fmod", "modulo", "floor_divide"}
"""NumPy's are exact, or several steps, each rounded."""


def _numpy(name: str) -> Callable[..., Any] | None:
    """The host's function of an operation."""
    if name in HOSTS:
        return HOSTS[name]
    row = ELEMENTWISE[name]
    return getattr(np, row.numpy[0]) if row.numpy and name not in NOT_IN_ONE_ROUNDING else None


def _by_numpy(case: Case, function: Callable[..., Any], dtype: Any) -> Predict:
    fmt = case.format

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        values = [np.asarray(bits.decode(x, fmt)).astype(dtype) for x in operands[: len(case.operation.operands)]]
        with np.errstate(all="ignore"):
            found = function(*values)
        return bits.encode(found, fmt, **_options(case, operands))[0], None

    return predict


def _integers_through_float64(case: Case) -> Predict:
    assert case.target.format is not None
    fmt = case.target.format

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        values = operands[0].view(np.dtype(case.source.name)).astype(np.float64)
        return bits.encode(values, fmt, **_options(case, operands))[0], None

    return predict


def _unfused(case: Case) -> Iterator[Cause]:
    if case.operation.name != "fma":
        return
    environment = case.environment if not case.draws else case.environment.replace(rounding="RNE")

    def predict(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        a, b, c = operands[:3]
        products, flags = bits.mul(a, b, case.format, environment=environment)
        sums, more = bits.add(products, c, case.format, environment=environment)
        return sums, flags | more

    yield Cause("unfused", "the product is rounded before c is added", predict)


def _sticky_lost(case: Case) -> Iterator[Cause]:
    """Bits beyond a few guard bits do not count."""
    fmt = case.format if case.source.format is not None else None
    arithmetic = case.operation.name in ARITHMETIC
    if fmt is None or not arithmetic or not fmt.signed or not fmt.zero or not fmt.subnormals or not fmt.mantissa_bits:
        return
    for extra in (1, 2, 3):
        if fmt.mantissa_bits + extra > 23:
            return
        name = f"{fmt.name}_and_{extra}"
        wide = dataclasses.replace(fmt, name=name, mantissa_bits=fmt.mantissa_bits + extra)
        plural = "bit" if extra == 1 else "bits"
        meaning = f"what lies more than {extra} {plural} beyond the last does not count: there is no sticky bit"
        yield Cause(f"no sticky bit, {extra} guard {plural}", meaning, _computed_in(case, wide, Rounding.TOWARD_ZERO))


def _narrow_operands(case: Case) -> Iterator[Cause]:
    """float32 operands read by hardware for narrower ones."""
    both = case.source.name == case.second.name == "float32"
    if not both or case.operation.result not in ("float", "sum") or not case.operation.rounds:
        return
    count = 2 if case.operation.result == "sum" else len(case.operation.operands)
    for name in ("tfloat32", "bfloat16"):
        for rounding, how in (("nearest_even", "rounded"), ("toward_zero", "cut")):

            def predict(
                operands: Sequence[Codes], right: tuple[Codes, Codes], name: str = name, rounding: str = rounding
            ) -> Pair:
                narrow = []
                for codes in operands[:count]:
                    less, _ = bits.convert(codes, "float32", name, rounding=rounding, nan="x86")
                    narrow.append(np.asarray(bits.convert(less, name, "float32", nan="x86")[0]))
                return case.run([*narrow, *operands[count:]])

            yield Cause(f"operands {how} to {name}", f"operands are {how} to {name} first", predict)


# -- other operations, other plumbing --------------------------------------------------------------------------------

SIBLINGS = (
    ("remainder", "fmod", "modulo"),
    ("minimum", "minimum_number"),
    ("maximum", "maximum_number"),
    ("eq", "eq_signaling"),
    ("lt", "lt_quiet", "le", "le_quiet"),
    ("floor_divide", "div"),
    ("add", "sub", "mul", "div"),
    ("exp", "exp2", "exp10", "expm1"),
    ("log", "log2", "log10", "log1p"),
    ("logaddexp", "logaddexp2"),
    ("next_up", "next_down"),
)
"""Operations taken for each other."""


def _mistaken(case: Case) -> Iterator[Cause]:
    for group in SIBLINGS:
        if case.operation.name in group:
            for name in group:
                if name != case.operation.name:
                    yield Cause(
                        f"computes {name}", f"the operation is {name}", ran(case.replace(operation=OPERATIONS[name]))
                    )


def _swapped(case: Case) -> Iterator[Cause]:
    names = case.operation.operands
    if case.operation.result == "sum":
        return
    if len(names) == 2:
        meaning = "a and b are swapped"
        yield Cause("operands swapped", meaning, lambda o, right: case.run([o[1], o[0], *o[2:]]))
    if case.operation.name == "fma" and case.format.signed:
        sign = case.format.dtype.type(case.format.sign_bit)
        yield Cause("c subtracted", "a * b - c is computed", lambda o, right: case.run([*o[:2], o[2] ^ sign, *o[3:]]))
        yield Cause("product negated", "c - a * b is computed", lambda o, right: case.run([o[0] ^ sign, *o[1:]]))


def _comparisons(case: Case) -> Iterator[Cause]:
    name = case.operation.name
    if name in ("lt", "lt_quiet", "le", "le_quiet"):
        fmt = case.format

        def unordered(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            nan = bits.isnan(operands[0], fmt) | bits.isnan(operands[1], fmt)
            return np.where(nan, 1, right[0]).astype(right[0].dtype), right[1]

        yield Cause("NaN compares true", "the opposite of the opposite relation is taken: NaN compares true", unordered)
    if name in ("minimum", "maximum", "minimum_number", "maximum_number"):
        fmt, least = case.format, name.startswith("min")

        def second(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            a, b = operands[:2]
            less, flags = bits.lt(a, b, fmt) if least else bits.lt(b, a, fmt)
            return np.where(less, a, b), flags

        yield Cause("x86 minimum", "the second operand is taken if either is NaN, or both are zero", second)


def _integers(case: Case) -> Iterator[Cause]:
    if case.operation.name != "convert" or case.target.kind not in ("signed", "unsigned"):
        return
    fmt, width = case.format, case.target.bits
    environment = case.environment if not case.draws else case.environment.replace(rounding="RNE")

    def wrapped(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
        whole, _ = bits.round_to_integral(operands[0], fmt, environment=environment)
        values = np.nan_to_num(np.asarray(bits.decode(whole, fmt)), nan=0.0, posinf=0.0, neginf=0.0)
        rest = np.fmod(values, 2.0**width)
        unsigned = np.where(rest < 0, -rest, rest).astype(np.uint64)
        unsigned = np.where(rest < 0, np.uint64(0) - unsigned, unsigned)
        return (unsigned & np.uint64((1 << width) - 1)).astype(right[0].dtype), None

    yield Cause("integers wrap", "integers that do not fit lose their high bits", wrapped)


def _zeros(case: Case) -> Iterator[Cause]:
    fmt = case.target.format
    if fmt is None or not fmt.signed_zero:
        return
    minus = fmt.sign_bit

    def positive(results: Codes, flags: Codes) -> tuple[Any, Any]:
        return np.where(results == minus, 0, results), flags

    yield Cause("no negative zero", "results -0 become +0", changed(positive))
    if case.environment.rounding is Rounding.TOWARD_NEGATIVE and case.operation.name in ("add", "sub", "fma"):
        nearest = case.under(rounding="RNE")

        def cancelled(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
            results, flags = right
            plus = nearest.run(operands)[0] == 0
            return np.where((results == minus) & plus, 0, results).astype(results.dtype), flags

        yield Cause("zero sums positive", "x - x is +0 toward negative too", cancelled)


def _without(flag: Flags, results: Codes, flags: Codes) -> tuple[Codes, Codes]:
    return results, flags & np.uint8(31 & ~int(flag))


def _flags(case: Case) -> Iterator[Cause]:
    yield Cause("no flags", "no flags are raised", changed(lambda results, flags: (results, flags & 0)))
    for flag in Flags:
        yield Cause(f"no {flag.name}", f"{flag.name} is never raised", changed(partial(_without, flag)))
    fmt = case.target.format
    if fmt is not None and _rounds(case):

        def always(results: Codes, flags: Codes) -> tuple[Any, Any]:
            tiny = np.asarray(bits.issubnormal(results, fmt))
            return results, flags | np.where(tiny, Flags.UNDERFLOW, 0).astype(np.uint8)

        yield Cause("UNDERFLOW when exact", "UNDERFLOW is raised by exact subnormal results too", changed(always))

        def delivered(zeros: bool, exact: bool, results: Codes, flags: Codes) -> tuple[Any, Any]:
            zero = np.asarray(bits.iszero(results, fmt)) & (flags & Flags.INEXACT != 0)
            tiny = np.asarray(bits.issubnormal(results, fmt))
            raised = tiny & (exact | (flags & Flags.INEXACT != 0)) | zeros & zero
            return results, flags & np.uint8(31 & ~int(Flags.UNDERFLOW)) | np.where(raised, Flags.UNDERFLOW, 0)

        for rest, meaning, zeros, exact in (
            ("", "subnormal or zero, and inexact", True, False),
            (", not by zeros", "subnormal and inexact", False, False),
            (", exact or not", "subnormal, exact ones too, or zero and inexact", True, True),
        ):
            yield Cause(
                f"UNDERFLOW by the delivered result{rest}",
                f"UNDERFLOW is raised where the delivered result is {meaning}; tininess is not asked",
                changed(partial(delivered, zeros, exact)),
            )

        def alone(results: Codes, flags: Codes) -> tuple[Any, Any]:
            over = (flags & Flags.OVERFLOW) != 0
            return results, np.where(over, flags & np.uint8(30), flags)

        yield Cause("OVERFLOW alone", "OVERFLOW comes without INEXACT", changed(alone))


def _plumbing(case: Case) -> Iterator[Cause]:
    width = case.target.bits
    if width in (16, 32, 64):
        yield Cause(
            "bytes reversed", "results have their bytes in the other order", changed(lambda r, f: (r.byteswap(), f))
        )
    if case.operation.result == "float" and len(case.operation.operands) > 1:
        yield Cause("first operand", "results are the first operand", lambda o, right: (o[0], None))
    if case.draws:
        mask = case.operands[-1].dtype.type((1 << case.operands[-1].number.bits) - 1)
        meaning = "random numbers are taken from the other end: up where random < fraction"
        yield Cause("random numbers inverted", meaning, lambda o, right: case.run([*o[:-1], o[-1] ^ mask]))


FAMILIES: tuple[Callable[[Case], Iterator[Cause]], ...] = (
    _roundings,
    _subnormals,
    _overflows,
    _tininess,
    _nan_rules,
    _exactness,
    _flags,
    _zeros,
    _unfused,
    _twice,
    _sticky_lost,
    unit_causes,
    _narrow_operands,
    _comparisons,
    _mistaken,
    _swapped,
    _integers,
    orders,
    addends,
    sums,
    _plumbing,
)
"""Each makes the causes of one kind for a case, in the order in which they are thought of."""


OF_BLOCKS: dict[str, tuple[Callable[[Case], Iterator[Cause]], ...]] = {
    SCALE: (),
    QUANTIZE: (_roundings, _subnormals, _overflows, _tininess, _flags),
    DEQUANTIZE: (),
    PRODUCTS: (_roundings, _subnormals, _overflows, _tininess, _flags, sums),
}
"""Those that go for operations on blocks, after their own."""


def causes_of(case: Case) -> list[Cause]:
    """The mistakes that a device can make in a case."""
    families = FAMILIES if case.blocks is None else (block_causes, *OF_BLOCKS[case.operation.name], _plumbing)
    return [cause for family in families for cause in family(case)]
