"""Known mistakes: what a device that makes one would have answered, and which of them explain what a device did answer.

A `Cause` predicts the results of a device that makes the mistake and no other. `diagnose` compares its predictions with
wrong rows and with a sample of right ones: a cause is named where it explains nearly all wrong rows and contradicts no
right one. `causes_of` lists the causes that make sense for a case, the simplest first; `FAMILIES` is where they come from.

>>> from softfloat.testing.vectors.operations import resolve
>>> [cause.name for cause in causes_of(resolve("add", "float16"))][:3]
['rounding toward_zero', 'rounding nearest_away', 'rounding toward_positive']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from softfloat import accumulators, bits
from softfloat.accumulators import TENSOR_CORES, Accumulator
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

__all__ = ["FAMILIES", "NEARLY_ALL", "Finding", "Rows", "causes_of", "diagnose"]

Codes = np.ndarray[Any, Any]

NEARLY_ALL = 0.99  # of the wrong rows: the rest may be of other causes
WORTH_SHOWING = 0.02  # of the wrong rows
LONGEST_SWAPS = 16  # products of sums in which any two are tried in each other's place
MOST_TOGETHER = 4  # causes at once
HINTED = 32  # wrong rows that one of many causes is tried on before those
SCREENED = 512  # wrong rows that a cause is tried on first


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
    directed = settings.rounding not in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY)
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
        if case.source.kind in ("signed", "unsigned"):
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
    function = _numpy(case.operation.name)
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


# -- dot products ----------------------------------------------------------------------------------------------------


def _reordered(case: Case, order: Codes, operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
    a, b, *c = operands
    return case.run([a[:, order], b[:, order], *c])


def _orders(case: Case) -> Iterator[Cause]:
    if case.operation.result != "sum" or case.length is None or case.length < 2:
        return
    k = case.length
    even = np.arange(k)
    pairs = even ^ 1 if k % 2 == 0 else np.append(even[:-1] ^ 1, k - 1)
    orders = {
        "reversed order": ("products are added from the last to the first", even[::-1]),
        "pairs swapped": ("the two products of each pair are swapped", pairs),
        "even before odd": (
            "products with even k come before those with odd k",
            np.concatenate([even[::2], even[1::2]]),
        ),
        "halves interleaved": (
            "products of the first and the second half take turns",
            np.append(np.arange(k // 2 * 2).reshape(2, -1).T.reshape(-1), np.arange(k // 2 * 2, k)),
        ),
    }
    for name, (meaning, order) in orders.items():
        yield Cause(name, meaning, partial(_reordered, case, order))
    seen = {tuple(even), *(tuple(order) for _, order in orders.values())}
    for name, meaning, order in _rarer_orders(k):
        if tuple(order) not in seen:
            seen.add(tuple(order))
            yield Cause(name, meaning, partial(_reordered, case, order), alone=True)


def _addends(case: Case) -> Iterator[Cause]:
    if case.operation.result == "sum" and case.addend:
        yield Cause("c ignored", "c is not added", lambda o, right: case.run([*o[:2], np.zeros_like(o[2])]))
        assert case.accumulator is not None
        if case.target.format == case.accumulator.partials:
            bare, fmt = case.replace(addend=False), case.target.format

            def last(operands: Sequence[Codes], right: tuple[Codes, Codes]) -> Pair:
                sums, flags = bare.run(operands[:2])
                totals, more = bits.add(sums, operands[2], fmt, environment=case.environment)
                return totals, flags | more

            yield Cause("c last", "c is added at the end", last)


def _rarer_orders(k: int) -> Iterator[tuple[str, str, Codes]]:
    """Orders that wiring mistakes make: strides, groups, rotations; in sums of 16 and less any two products swapped."""
    even = np.arange(k)
    for size in (2, 4, 8, 16):
        if k % size == 0 and size < k:
            grid = even.reshape(-1, size)
            yield f"stride {size}", f"products k, k + {size}, k + {2 * size} ... come first, for each k", grid.T.ravel()
            yield (
                f"groups of {size} reversed",
                f"products of each group of {size} come in reverse",
                grid[:, ::-1].ravel(),
            )
            yield f"order of groups of {size} reversed", f"the last group of {size} comes first", grid[::-1].ravel()
    if k & (k - 1) == 0:
        width = k.bit_length() - 1
        order = np.array([int(f"{i:0{width}b}"[::-1], 2) for i in range(k)])
        yield "bit-reversed order", "products come in bit-reversed order", order
    if k > LONGEST_SWAPS:
        return
    for shift in range(1, k):
        yield f"rotated by {shift}", f"product {shift} comes first, and the first ones last", np.roll(even, -shift)
    for i in range(k):
        for j in range(i):
            order = even.copy()
            order[[i, j]] = j, i
            yield f"products {j} and {i} swapped", f"products {j} and {i} take each other's place", order


def _other_accumulators(case: Case) -> Iterator[Accumulator]:
    """Ways to sum that the one in use may be mistaken for."""
    assert case.accumulator is not None
    formats = [case.accumulator.running.format, case.accumulator.partials, case.target.format, ROSTER["float32"]]
    for fmt in dict.fromkeys(x for x in formats if x is not None):
        yield accumulators.fma(fmt)
        yield accumulators.mul_add(fmt)
        yield accumulators.exact(fmt)
        yield accumulators.pairwise(fmt)
        for chains in (2, 4, 8):
            yield accumulators.fma(fmt).replace(chains=chains, name=f"fma({fmt.name!r}), {chains} chains")
    makers: list[Callable[[], Accumulator]] = [accumulators.vdpbf16ps]
    for partials, mode in product(("half", "float"), ("exact", "aligned", "chained")):
        makers.append(partial(accumulators.amp, partials, inputs=case.format, mode=mode))
    for row, output in product(TENSOR_CORES, ("float32", "float16")):
        makers.append(partial(accumulators.tensor_core, row.architecture, case.format, output))
    for make in makers:
        try:
            yield make()
        except ValueError:  # not with these formats
            continue


def _sums(case: Case) -> Iterator[Cause]:
    if case.accumulator is None or case.source.format is None or case.second.format is None:
        return
    seen = {case.accumulator}
    for how in _other_accumulators(case):
        fits = not case.addend or how.partials == case.accumulator.partials
        takes = not how.inputs or {case.format, case.formats[1]} <= set(how.inputs)
        if how in seen or not fits or not takes:
            continue
        seen.add(how)
        yield Cause(
            f"sums by {how!r}".replace("Accumulator(", "").removesuffix('")'),
            how.describe().partition(": ")[2],
            ran(case.replace(accumulator=how)),
        )


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
    _narrow_operands,
    _comparisons,
    _mistaken,
    _swapped,
    _integers,
    _orders,
    _addends,
    _sums,
    _plumbing,
)
"""Each makes the causes of one kind for a case, in the order in which they are thought of."""


OF_BLOCKS: dict[str, tuple[Callable[[Case], Iterator[Cause]], ...]] = {
    SCALE: (),
    QUANTIZE: (_roundings, _subnormals, _overflows, _tininess, _flags),
    DEQUANTIZE: (),
    PRODUCTS: (_roundings, _subnormals, _overflows, _tininess, _flags, _sums),
}
"""Those that go for operations on blocks, after their own."""


def causes_of(case: Case) -> list[Cause]:
    """The mistakes that a device can make in a case."""
    families = FAMILIES if case.blocks is None else (block_causes, *OF_BLOCKS[case.operation.name], _plumbing)
    return [cause for family in families for cause in family(case)]


# -- diagnosis -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, with the right answers.

    Attributes
    ----------
    operands : list of arrays
    right : pair of arrays
        Results and flags.
    found : pair of arrays
        What the file has; flags may be None.
    """

    operands: list[Codes]
    right: tuple[Codes, Codes]
    found: Pair

    def __len__(self) -> int:
        return len(self.right[0])

    def part(self, chosen: Any) -> Rows:
        """Some of the rows."""
        results, flags = self.found
        return Rows(
            [x[chosen] for x in self.operands],
            (self.right[0][chosen], self.right[1][chosen]),
            (results[chosen], None if flags is None else flags[chosen]),
        )


@dataclass(frozen=True)
class Finding:
    """How well a cause explains wrong rows.

    Attributes
    ----------
    name, meaning : str
        Of the cause.
    share : float
        Of the wrong rows that it explains, flags included (where it says something of flags).
    result_share : float
        Of the rows with wrong results, those whose result it explains; NaN if there are none.
    contradictions : int
        Right rows, of those looked at, that a device with this mistake would have got wrong.
    named : bool
        Whether this is what the device does, as far as these rows can tell: alone, or with the other findings.
    """

    name: str
    meaning: str
    share: float
    result_share: float
    contradictions: int
    named: bool

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        document = dataclasses.asdict(self)
        if self.result_share != self.result_share:
            document["result_share"] = None
        return document


Differ: TypeAlias = Callable[[Pair, Pair], tuple[Codes, Codes]]
"""(expected, found) -> where results differ, where flags differ."""


def diagnose(case: Case, wrong: Rows, right: Rows, differ: Differ) -> tuple[list[Finding], float]:
    """The causes that explain wrong rows and contradict no right ones, the best first.

    Parameters
    ----------
    case : Case
    wrong, right : Rows
        All of the file's, or samples.
    differ : callable
        What counts as different.

    Returns
    -------
    findings : list of Finding
        Those that explain nearly all wrong rows, if there are any: they cannot be told apart by these rows. Else
        several that explain most together.
    share : float
        Of the wrong rows that these findings explain together.
    """
    if not len(wrong):
        return [], 0.0
    bad_results, _ = differ(wrong.right, wrong.found)
    some = np.zeros(len(wrong), bool)
    some[:: max(1, len(wrong) // SCREENED)] = True
    few = wrong.part(some)
    found: list[tuple[Finding, Codes]] = []
    causes = causes_of(case)
    for cause in causes:
        if not cause.alone:
            found += _tried(cause, wrong, right, few, some, differ, bad_results)
    if not any(_whole(x) for x, _ in found):
        hint = np.zeros(len(wrong), bool)
        hint[:: max(1, len(wrong) // HINTED)] = True
        for cause in causes:
            if cause.alone and _explained(cause, wrong.part(hint), differ, bad_results[hint])[0].mean() >= NEARLY_ALL:
                found += _tried(cause, wrong, right, few, some, differ, bad_results)
    whole_causes = [x for x, _ in found if _whole(x)]
    if whole_causes:
        whole_causes.sort(key=lambda x: -x.share)
        return whole_causes, whole_causes[0].share
    covered = np.zeros(len(wrong), bool)
    chosen: list[Finding] = []
    while found and len(chosen) < MOST_TOGETHER:
        gains = [float((explains & ~covered).mean()) for _, explains in found]
        best = max(range(len(found)), key=lambda i: (round(gains[i], 9), found[i][0].named, -i))
        if gains[best] < WORTH_SHOWING:
            break
        finding, explains = found.pop(best)
        chosen.append(finding)
        covered |= explains
    together = float(covered.mean())
    if together >= NEARLY_ALL:
        chosen = [dataclasses.replace(x, named=True) for x in chosen]
    return chosen, together


def _whole(x: Finding) -> bool:
    """Whether a cause explains nearly everything, and contradicts nothing."""
    return x.named and x.share >= NEARLY_ALL and not x.contradictions


def _tried(
    cause: Cause, wrong: Rows, right: Rows, few: Rows, some: Codes, differ: Differ, bad_results: Codes
) -> list[tuple[Finding, Codes]]:
    """What a cause explains, and which wrong rows; nothing where it explains none. `few` are `some` of the wrong rows."""
    try:
        if len(wrong) > len(few) and not any(x.any() for x in _explained(cause, few, differ, bad_results[some])):
            return []
        whole, results = _explained(cause, wrong, differ, bad_results)
        if not whole.any() and not results.any():
            return []
        worse, other = differ(cause.predict(right.operands, right.right), right.found)
    except (ValueError, TypeError):  # settings that the operation refuses
        return []
    share, result_share = float(whole.mean()), float("nan")
    if bad_results.any():
        result_share = float(results.sum() / bad_results.sum())
    contradictions, explains = int((worse | other).sum()), whole
    named = share >= NEARLY_ALL and not contradictions
    if not worse.any():  # right about results, whatever becomes of flags
        explains = (whole if not contradictions else whole & bad_results) | results
        named = named or result_share >= NEARLY_ALL
    elif contradictions:
        return []
    return [(Finding(cause.name, cause.meaning, share, result_share, contradictions, named), explains)]


def _explained(cause: Cause, rows: Rows, differ: Differ, bad_results: Codes) -> tuple[Codes, Codes]:
    """Which wrong rows a cause explains; and of those with wrong results, which results."""
    predicted = cause.predict(rows.operands, rows.right)
    results, flags = differ(predicted, rows.found)
    whole = ~(results | flags)
    if predicted[1] is None:
        whole &= bad_results
    return whole, ~results & bad_results
