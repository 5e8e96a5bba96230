"""NumPy's functions on halves: calls, operands, and what is right where NumPy does not compute in half, rounds twice or errs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
from operands import edges

import softfloat
from softfloat import reference

HALF = softfloat.float16
Half = np.ndarray[Any, np.dtype[np.float16]]

LAPACK = """
cholesky cond det eigh eigvalsh inv lstsq matrix_rank pinv qr slogdet solve svd svdvals tensorinv tensorsolve
"""
"""Functions of `numpy.linalg` that NumPy has in float32 and float64 alone."""

TWICE = "NumPy rounds twice, through float32"
SINGLE = "NumPy sums in float32"
ZEROS = "NumPy takes either zero; here -0 lies below +0"
STARTED = "NumPy keeps a first -0; here sums start from +0"


# -- comparing -------------------------------------------------------------------------------------------------------


def compare(found: Any, wanted: Any) -> None:
    """The same shape and bits, NaNs as one class; halves as SoftArrays of half, everything else as NumPy has it."""
    if isinstance(wanted, (tuple, list)):
        assert isinstance(found, (tuple, list))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            compare(one, other)
    elif isinstance(wanted, (np.ndarray, np.generic)) and wanted.dtype == np.float16:
        assert isinstance(found, softfloat.SoftArray), type(found)
        assert found.format == HALF
        assert found.shape == wanted.shape
        codes = np.asarray(wanted).view(np.uint16)
        wrong = (found.codes != codes) & ~(np.isnan(found.values) & np.isnan(wanted))
        assert not np.any(wrong), (np.argwhere(wrong)[:5], found.values[wrong][:5], np.asarray(wanted)[wrong][:5])
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert isinstance(found, (np.ndarray, np.generic)), type(found)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted or (isinstance(found, np.generic) and bool(found) == wanted)


# -- oracles: MPFR, halves added one after the other, fractions ------------------------------------------------------

MPFR = gmpy2.context(precision=11, emax=16, emin=-23, subnormalize=True)  # half precision, subnormals included
PRECISE = gmpy2.context(precision=300)


def mpfr(function: Callable[..., Any]) -> Callable[..., Half]:
    """A function of MPFR's, elementwise."""

    def oracle(*operands: Half) -> Half:
        arrays = np.broadcast_arrays(*operands)
        with MPFR:
            found = [
                float(function(*map(gmpy2.mpfr, values)))
                for values in zip(*(x.ravel().tolist() for x in arrays), strict=True)
            ]
        return np.array(found, np.float16).reshape(arrays[0].shape)

    return oracle


def scaled(numerator: str, denominator: str) -> Callable[[Any], Any]:
    """Times a ratio, rounded once: the constant has 300 bits."""
    with PRECISE:
        constants = {"pi": gmpy2.const_pi(), "180": gmpy2.mpfr(180)}
        factor = constants[numerator] / constants[denominator]
    return lambda x: x * factor


def codes_of(function: Callable[..., tuple[int, int]]) -> Callable[..., Half]:
    """A function of `softfloat.reference`, elementwise."""
    known = functools.lru_cache(None)(lambda *codes: function(*codes, HALF)[0])

    def oracle(*operands: Half) -> Half:
        arrays = np.broadcast_arrays(*operands)
        flat = [x.ravel().view(np.uint16).tolist() for x in arrays]
        return (
            np.array([known(*codes) for codes in zip(*flat, strict=True)], np.uint16)
            .view(np.float16)
            .reshape(arrays[0].shape)
        )

    return oracle


def exactly(value: Fraction) -> np.float16:
    """A fraction, rounded once."""
    return np.uint16(reference.encode(value, HALF)[0]).view(np.float16)


def summed(x: Half, axis: Any = None, start: Any = 0) -> Half:
    """Numbers added one after the other, each sum a half."""
    moved = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    state = np.full(moved.shape[:-1], start, np.float16)
    for k in range(moved.shape[-1]):
        state = state + moved[..., k]
    return state


def started(function: Callable[..., Half]) -> Callable[..., Half]:
    """Running sums from +0."""
    return lambda x, *arguments, **keywords: function(x + np.float16(0), *arguments, **keywords)


def dotted(x: Half, y: Half) -> Half:
    """Products, each a half, added one after the other, over the last axis of both."""
    return summed(x * y, -1)


def multiplied(x: Half, axis: Any = None) -> Half:
    moved = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    return functools.reduce(np.multiply, np.moveaxis(moved, -1, 0), np.ones(moved.shape[:-1], np.float16))


def divided(x: Half, count: int) -> Half:
    """By an integer, rounded once."""
    x = np.asarray(x)
    return np.array(
        [exactly(Fraction(v) / count) if math.isfinite(v) else v for v in x.ravel().astype(float).tolist()], np.float16
    ).reshape(x.shape)


def meant(x: Half, axis: Any = None) -> Half:
    return divided(summed(x, axis), x.size if axis is None else x.shape[axis])


def covaried(x: Half, ddof: int = 1) -> Half:
    """Of rows."""
    left = x - meant(x, 1)[:, None]
    return divided(np.array([[dotted(one, other) for other in left] for one in left], np.float16), x.shape[1] - ddof)


def varied(x: Half, axis: Any = None, ddof: int = 0) -> Half:
    if axis is None:
        x, axis = x.reshape(-1), 0
    left = x - np.expand_dims(meant(x, axis), axis)
    return divided(summed(left * left, axis), x.shape[axis] - ddof)


def product(x: Half, y: Half) -> Half:
    """A matrix product."""
    return summed(x[..., :, :, None] * y[..., None, :, :], -2)


def in_order(x: Half, axis: Any = -1) -> Half:
    """Sorted, -0 before +0, NaNs last."""
    if axis is None:
        x, axis = x.reshape(-1), -1
    key = lambda v: (math.isnan(v), v, math.copysign(1, v))  # noqa: E731
    return np.apply_along_axis(lambda row: np.array(sorted(row.astype(float).tolist(), key=key), np.float16), axis, x)


def extreme(pick: Callable[..., Any], number: bool = False) -> Callable[..., Half]:
    """The greatest or least along an axis by Python's own comparison; zeros by sign; NaN before all, or after."""

    def one(row: Half) -> np.float16:
        values = row.astype(float).tolist()
        numbers = [v for v in values if not math.isnan(v)]
        if len(numbers) < len(values) and not (number and numbers):
            return np.float16(np.nan)
        return np.float16(pick(numbers, key=lambda v: (v, math.copysign(1, v))))

    def oracle(x: Half, axis: Any = None) -> Half:
        if axis is None:
            x, axis = x.reshape(-1), -1
        return np.asarray(np.apply_along_axis(one, axis, x), np.float16)

    return oracle


def elementwise_extreme(pick: Callable[..., Any], number: bool = False) -> Callable[..., Half]:
    return lambda x, y: extreme(pick, number)(np.stack(np.broadcast_arrays(x, y)), 0)


def slid(x: Half, y: Half, places: range) -> Half:
    """Sums of products x[place - i] * y[i], over growing places of the longer array."""
    if y.size > x.size:
        x, y = y, x
    n, k = x.size, y.size
    return np.array(
        [
            dotted(
                *(
                    np.array(z, np.float16)
                    for z in zip(*[(x[j], y[p - j]) for j in range(max(0, p - k + 1), min(p, n - 1) + 1)], strict=True)
                )
            )
            for p in places
        ],
        np.float16,
    )


def without(x: Half) -> Half:
    return np.where(np.isnan(x), np.float16(0), x)


def halfway(x: Half, axis: Any = None, keepdims: bool = False) -> Half:
    """The median, its one sum rounded to half."""
    flat = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    ordered = in_order(flat)
    n = ordered.shape[-1]
    middle = ordered[..., n // 2] if n % 2 else (ordered[..., n // 2 - 1] + ordered[..., n // 2]) / np.float16(2)
    found = np.where(np.isnan(ordered[..., -1]), np.float16(np.nan), middle)
    return np.expand_dims(found, axis) if keepdims else found


def powers(x: Half, count: int) -> Half:
    """Of each element, each a half."""
    return np.stack(list(itertools.accumulate([x] * (count - 1), np.multiply, initial=np.ones_like(x))), 1)


def interpolated(x: Half, xp: Half, fp: Half) -> Half:
    """From the point to the left, each step a half; 0.1 before the first point."""
    i = np.clip(np.searchsorted(xp, x, "right") - 1, 0, xp.size - 2)
    found = (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i]) * (x - xp[i]) + fp[i]
    return np.where(x < xp[0], np.float16(0.1), np.where(x >= xp[-1], fp[-1], found))


# -- operands --------------------------------------------------------------------------------------------------------

EDGES = np.unique(np.r_[edges(HALF), np.array([0x3555, 0xB555, 0x4248, 0xC000, 0x4000, 0x1400], np.uint16)]).view(
    np.float16
)
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def pairs() -> list[Half]:
    random = np.random.default_rng(1)
    grid = [z.ravel() for z in np.meshgrid(EDGES, EDGES)]
    near = random.standard_normal((2, 2000)).astype(np.float16)
    codes = random.integers(0, 1 << 16, (2, 2000), dtype=np.uint16).view(np.float16)
    return [np.concatenate(parts) for parts in zip(grid, near, codes, strict=True)]


def ordinary() -> list[Half]:
    random = np.random.default_rng(2)
    return [random.standard_normal(shape).astype(np.float16) for shape in ((4, 6), (4, 6), (6,), (6, 6))]


def edged() -> list[Half]:
    random = np.random.default_rng(3)
    found = ordinary()
    for x in found:
        places = random.random(x.shape) < 0.4
        x[places] = random.choice(EDGES, int(places.sum()))
    return found


OPERANDS: dict[str, Callable[[], list[list[Half]]]] = {
    "all": lambda: [[ALL]],
    "pairs": lambda: [pairs()],
    "arrays": lambda: [ordinary(), edged()],
    "ordinary": lambda: [ordinary()],
}


# -- the table -------------------------------------------------------------------------------------------------------


def quarters(x: Any) -> Any:
    """The nearest multiples of 1/4."""
    return np.rint(x * 4) / 4


@dataclass(frozen=True)
class Case:
    """A call, the operands it is tried on, and, where NumPy is not the oracle, what is and why."""

    call: Callable[..., Any]
    operands: str = "arrays"
    oracle: Callable[..., Any] | None = None
    reason: str = ""


def changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """A call that changes a copy of its first operand."""

    def call(x: Any, *others: Any) -> Any:
        z = x.copy()
        change(z, *others)
        return z

    return call


def unary(name: str, oracle: Callable[..., Any] | None = None, reason: str = "") -> tuple[str, Case]:
    return name, Case(getattr(np, name), "all", oracle, reason)


def binary(name: str, oracle: Callable[..., Any] | None = None, reason: str = "") -> tuple[str, Case]:
    return name, Case(getattr(np, name), "pairs", oracle, reason)


PLACES = np.array([2, 0, 1])
MASK = np.array([True, False, True, True])

THROUGH_SINGLE = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt"
INVERSE = "sin cos tan sinh cosh tanh"
UNARY = """
sqrt square reciprocal rint floor ceil trunc negative positive absolute fabs sign conjugate isnan isinf isfinite signbit
logical_not frexp modf isposinf isneginf isreal iscomplex real imag fix nan_to_num
"""
BINARY = """
add subtract multiply divide fmod remainder floor_divide divmod copysign heaviside equal not_equal less less_equal
greater greater_equal logical_and logical_or logical_xor
"""


def unit_in_the_last_place(x: Any) -> Any:
    """The distance from a half to the next one away from zero."""
    if not gmpy2.is_finite(x):
        return gmpy2.nan()
    return math.copysign(2.0 ** (max(math.frexp(x)[1] - 1 if x else -14, -14) - 10), x)


TABLE: dict[str, Case] = dict(
    [
        *(unary(name, mpfr(getattr(gmpy2, name)), TWICE) for name in THROUGH_SINGLE.split()),
        *(unary(f"arc{name}", mpfr(getattr(gmpy2, f"a{name}")), TWICE) for name in INVERSE.split()),
        *(unary(name, mpfr(scaled("180", "pi")), TWICE) for name in ("degrees", "rad2deg")),
        *(unary(name, mpfr(scaled("pi", "180")), TWICE) for name in ("radians", "deg2rad")),
        *(unary(name) for name in UNARY.split()),
        unary("spacing", mpfr(unit_in_the_last_place), "NumPy errs for negative halves"),
        *(binary(name) for name in BINARY.split()),
        binary(
            "nextafter",
            lambda x, y: np.where(x == y, y, np.nextafter(x, y)),
            "NumPy takes x of equal halves; C takes y",
        ),
        binary("power", codes_of(reference.pow), TWICE),
        binary("float_power", codes_of(reference.pow), "NumPy has it of float64 alone"),
        binary("hypot", codes_of(reference.hypot), "a signalling NaN beats infinity; NumPy has no signalling ones"),
        binary("arctan2", mpfr(gmpy2.atan2), TWICE),
        binary("logaddexp", codes_of(reference.logaddexp), TWICE),
        binary("logaddexp2", codes_of(reference.logaddexp2), TWICE),
        binary("maximum", elementwise_extreme(max), ZEROS),
        binary("minimum", elementwise_extreme(min), ZEROS),
        binary("fmax", elementwise_extreme(max, True), ZEROS),
        binary("fmin", elementwise_extreme(min, True), ZEROS),
    ]
)
TABLE |= {
    # ufuncs' options and methods
    "ldexp": Case(lambda x, y, v, m: np.ldexp(x, np.array([-30, -3, 0, 1, 5, 40]))),
    "add where out": Case(lambda x, y, v, m: np.add(x, y, where=x > 0, out=y.copy())),
    "frexp out": Case(lambda x, y, v, m: np.frexp(x, out=(y.copy(), np.empty(x.shape, np.int32)))),
    "less out": Case(lambda x, y, v, m: np.less(x, y, out=np.empty(x.shape, bool))),
    "add accumulate": Case(
        lambda x, y, v, m: np.add.accumulate(x, axis=1),
        "arrays",
        lambda x, y, v, m: started(np.add.accumulate)(x, axis=1),
        STARTED,
    ),
    "multiply accumulate": Case(lambda x, y, v, m: np.multiply.accumulate(x)),
    "subtract accumulate": Case(lambda x, y, v, m: np.subtract.accumulate(x, axis=1)),
    "power accumulate": Case(lambda x, y, v, m: np.power.accumulate(abs(x), axis=1), "ordinary"),
    "maximum accumulate": Case(lambda x, y, v, m: np.maximum.accumulate(x, axis=1), "ordinary"),
    "subtract reduce": Case(
        lambda x, y, v, m: np.subtract.reduce(x, axis=0),
        "arrays",
        lambda x, y, v, m: functools.reduce(np.subtract, x),
        SINGLE,
    ),
    "maximum reduce": Case(lambda x, y, v, m: np.maximum.reduce(x, axis=(0, 1)), "ordinary"),
    "logical_and reduce": Case(lambda x, y, v, m: np.logical_and.reduce(x, axis=1)),
    "maximum reduceat": Case(lambda x, y, v, m: np.maximum.reduceat(x, [0, 3, 2, 5], axis=1), "ordinary"),
    "add at": Case(
        changed(
            lambda z, y, v, m: np.add.at(z, np.array([0, 0, 1, 3, 0]), y[:3, :1].reshape(-1)[[0, 1, 2, 0, 1]][:, None])
        )
    ),
    "negative at": Case(changed(lambda z, *_: np.negative.at(z, (PLACES, PLACES)))),
    "multiply outer": Case(lambda x, y, v, m: np.multiply.outer(v, x)),
    # operators
    "add operator": Case(lambda x, y, v, m: (x + y, x + 1, 0.1 + x, x + v, True + x)),
    "subtract operator": Case(lambda x, y, v, m: (x - y, x - 1, 0.1 - x, v - x)),
    "multiply operator": Case(lambda x, y, v, m: (x * y, x * 3, 0.1 * x, v * x)),
    "divide operator": Case(lambda x, y, v, m: (x / y, x / 3, 0.1 / x, v / x)),
    "floor_divide operator": Case(lambda x, y, v, m: (x // y, x // 3, 10 // x)),
    "remainder operator": Case(lambda x, y, v, m: (x % y, x % 3, 10 % x, divmod(x, 3))),
    "absolute operator": Case(lambda x, y, v, m: (abs(x), -x, +x)),
    "less operator": Case(lambda x, y, v, m: (x < y, x <= 0.1, x > y, x <= 0, x == y, x != 0, x == 0.1)),
    "power operator": Case(lambda x, y, v, m: (x**2, x**0.5, x**-1), "ordinary"),
    "subtract in place": Case(
        changed(lambda z, y, v, m: (z.__isub__(y), z.__imul__(0.3), z.__itruediv__(y), z.__iadd__(v)))
    ),
    # shapes
    "reshape": Case(lambda x, *_: (np.reshape(x, (6, 4)), x.reshape(3, -1), x.reshape((2, 12), order="F"))),
    "ravel": Case(lambda x, *_: (np.ravel(x), x.ravel(), x.T.ravel(), x.flatten("F"))),
    "transpose": Case(lambda x, *_: (np.transpose(x), x.T, x.transpose(1, 0), x.mT)),
    "permute_dims": Case(lambda x, *_: np.permute_dims(x[None], (2, 0, 1))),
    "matrix_transpose": Case(lambda x, *_: np.matrix_transpose(x)),
    "linalg.matrix_transpose": Case(lambda x, *_: np.linalg.matrix_transpose(x)),
    "swapaxes": Case(lambda x, *_: (np.swapaxes(x, 0, 1), x.swapaxes(0, 1))),
    "moveaxis": Case(lambda x, *_: np.moveaxis(x[None], 0, -1)),
    "rollaxis": Case(lambda x, *_: np.rollaxis(x, 1)),
    "expand_dims": Case(lambda x, *_: np.expand_dims(x, (0, 2))),
    "squeeze": Case(lambda x, *_: (np.squeeze(x[None, :, None]), x[None].squeeze(0))),
    "broadcast_to": Case(lambda x, y, v, m: np.broadcast_to(v, (3, 6))),
    "broadcast_arrays": Case(lambda x, y, v, m: np.broadcast_arrays(x, v, np.arange(4, dtype=np.uint16)[:, None])),
    "flip": Case(lambda x, *_: (np.flip(x, 1), np.flip(x), np.flip(x[0, 0]))),
    "fliplr": Case(lambda x, *_: np.fliplr(x)),
    "flipud": Case(lambda x, *_: np.flipud(x)),
    "roll": Case(lambda x, *_: (np.roll(x, 2), np.roll(x, 1, axis=0))),
    "rot90": Case(lambda x, *_: np.rot90(x)),
    "tile": Case(lambda x, *_: np.tile(x, (2, 1))),
    "repeat": Case(lambda x, *_: (np.repeat(x, 2, axis=0), x.repeat([1, 0, 2, 1], 0))),
    "take": Case(
        lambda x, *_: (
            np.take(x, PLACES, axis=1),
            x.take([5, 0]),
            np.take(x, 5),
            np.take(x, PLACES, axis=1, out=x[:, 3:].copy()),
        )
    ),
    "take_along_axis": Case(lambda x, *_: np.take_along_axis(x, PLACES[:, None], 0)),
    "delete": Case(lambda x, *_: np.delete(x, 1, 0)),
    "resize": Case(lambda x, *_: np.resize(x, (3, 3))),
    "diagonal": Case(lambda x, *_: (np.diagonal(x), x.diagonal(1))),
    "linalg.diagonal": Case(lambda x, *_: np.linalg.diagonal(x[None])),
    "copy": Case(lambda x, *_: (np.copy(x), x.copy("F"))),
    "atleast_1d": Case(lambda x, *_: np.atleast_1d(x[0, 0])),
    "atleast_2d": Case(lambda x, y, v, m: np.atleast_2d(v, x)),
    "atleast_3d": Case(lambda x, *_: np.atleast_3d(x)),
    "split": Case(lambda x, *_: np.split(x, 2)),
    "array_split": Case(lambda x, *_: np.array_split(x, 4, axis=1)),
    "hsplit": Case(lambda x, *_: np.hsplit(x, [1, 3])),
    "vsplit": Case(lambda x, *_: np.vsplit(x, 2)),
    "dsplit": Case(lambda x, *_: np.dsplit(x.reshape(2, 3, 4), 2)),
    "unstack": Case(lambda x, *_: np.unstack(x)),
    "fft.fftshift": Case(lambda x, *_: np.fft.fftshift(x)),
    "fft.ifftshift": Case(lambda x, *_: np.fft.ifftshift(x)),
    "lib.stride_tricks.sliding_window_view": Case(lambda x, *_: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)),
    "compress": Case(lambda x, *_: (np.compress(MASK, x, axis=0), np.compress(x[:, 0], x, axis=0), x.compress([0, 1]))),
    "extract": Case(lambda x, y, v, m: (np.extract(x > 0, x), np.extract(y, x))),
    "trim_zeros": Case(
        lambda x, y, v, m: (
            np.trim_zeros(v),
            np.trim_zeros(-v * (v > 0)),
            np.trim_zeros(v * (v > 0), "f"),
            np.trim_zeros(v * 0, "b"),
        ),
        "ordinary",
    ),
    "concatenate": Case(
        lambda x, y, v, m: (
            np.concatenate([x, y], axis=1),
            np.concatenate((x, v), axis=None),
            np.concatenate(x),
            np.concatenate([x, y], out=np.concatenate([y, x])),
        )
    ),
    "stack": Case(lambda x, y, v, m: (np.stack([x, y], 1), np.stack(list(x)))),
    "vstack": Case(lambda x, y, v, m: np.vstack([x, v])),
    "hstack": Case(lambda x, y, v, m: np.hstack((x, y))),
    "dstack": Case(lambda x, y, v, m: np.dstack((x, y))),
    "column_stack": Case(lambda x, y, v, m: np.column_stack((v, v))),
    "block": Case(lambda x, y, v, m: np.block([[x, y], [y, x]])),
    "append": Case(lambda x, y, v, m: (np.append(x, y), np.append(x, y, axis=0))),
    "meshgrid": Case(lambda x, y, v, m: np.meshgrid(v, v[:2], indexing="ij")),
    "diag": Case(lambda x, y, v, m: (np.diag(v), np.diag(x, 1))),
    "diagflat": Case(lambda x, y, v, m: np.diagflat(v)),
    "tril": Case(lambda x, *_: np.tril(x, 1)),
    "triu": Case(lambda x, *_: np.triu(x)),
    "insert": Case(lambda x, y, v, m: (np.insert(x, 1, v, axis=0), np.insert(v, [1, 3], 0.1))),
    "pad": Case(
        lambda x, *_: [
            np.pad(x, ((1, 2), (0, 1)), mode, **options)
            for mode, options in (
                ("constant", {}),
                ("constant", {"constant_values": 0.1}),
                ("edge", {}),
                ("reflect", {}),
                ("symmetric", {}),
                ("wrap", {}),
            )
        ]
    ),
    "shape": Case(lambda x, *_: (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1), len(x), x.shape, x.ndim, x.size)),
    "ndim": Case(lambda x, *_: np.ndim(x)),
    "size": Case(lambda x, *_: np.size(x, 0)),
    "shares_memory": Case(
        lambda x, y, v, m: (np.shares_memory(x[::2], x[1::2]), np.shares_memory(x, x[1:]), np.shares_memory(x, y))
    ),
    "may_share_memory": Case(lambda x, y, v, m: (np.may_share_memory(x[::2], x[1::2]), np.may_share_memory(x, y))),
    "zeros_like": Case(lambda x, *_: (np.zeros_like(x), np.zeros_like(x, shape=3))),
    "ones_like": Case(lambda x, *_: np.ones_like(x)),
    "full_like": Case(lambda x, *_: np.full_like(x, 0.1)),
    "empty_like": Case(lambda x, *_: np.empty_like(x).shape),
    "diag_indices_from": Case(lambda x, y, v, m: np.diag_indices_from(m)),
    "tril_indices_from": Case(lambda x, *_: np.tril_indices_from(x)),
    "triu_indices_from": Case(lambda x, *_: np.triu_indices_from(x, 1)),
    "apply_along_axis": Case(
        lambda x, y, v, m: (
            np.apply_along_axis(lambda row: row[::-1] * 2, 0, x),
            np.apply_along_axis(lambda row: row[0], 1, x),
        )
    ),
    # choosing and setting
    "where": Case(
        lambda x, y, v, m: (
            np.where(x > y, x, y),
            np.where(x > 0, x, 0.1),
            np.where(x, v, x),
            np.where(x),
            np.where(x, 1, 2),
        )
    ),
    "select": Case(lambda x, y, v, m: np.select([x > 0, y > 0], [x, y], 0.5)),
    "choose": Case(lambda x, y, v, m: np.choose(np.array([0, 1, 0, 1, 1, 0]), [x, y])),
    "piecewise": Case(lambda x, *_: np.piecewise(x, [x < 0, x > 1], [lambda z: -z, 0.1, lambda z: z + 1])),
    "copyto": Case(changed(lambda z, y, v, m: (np.copyto(z, v, where=z > 0), np.copyto(z[:1], 0.1)))),
    "put": Case(changed(lambda z, y, v, m: (np.put(z, [0, 2], [7, 0.1]), z.put([5, 9], v)))),
    "putmask": Case(changed(lambda z, y, v, m: np.putmask(z, y > 0, v))),
    "place": Case(changed(lambda z, y, v, m: np.place(z, y > 0, v))),
    "put_along_axis": Case(changed(lambda z, y, v, m: np.put_along_axis(z, PLACES[:, None], 0.1, 0))),
    "fill_diagonal": Case(changed(lambda z, *_: np.fill_diagonal(z, 0.1))),
    "nan_to_num options": Case(lambda x, *_: np.nan_to_num(x, nan=0.1, posinf=2, neginf=-3)),
    "indexing": Case(
        lambda x, y, v, m: (
            x[1],
            x[1, 2],
            x[:, None, ::-2],
            x[[2, 0]],
            x[MASK],
            x[..., 0],
            x[x > 0],
            x[()],
            list(x),
            x.flat[3],
            x.flat[::5],
            list(x.flat),
        )
    ),
    "assignment": Case(
        changed(
            lambda z, y, v, m: (
                z.__setitem__((slice(None), 1), 0.1),
                z.__setitem__(0, v),
                z.__setitem__(z > 1, 1),
                z.flat.__setitem__([3, 4], [1, 0.1]),
                z[2:].fill(3),
            )
        )
    ),
    # order
    "max": Case(
        lambda x, *_: (np.max(x), x.max(1), np.max(x, axis=0, keepdims=True), np.max(x, axis=0, initial=0.1)),
        "arrays",
        lambda x, *_: (
            extreme(max)(x),
            extreme(max)(x, 1),
            extreme(max)(x, 0)[None],
            extreme(max)(np.vstack([np.full((1, 6), 0.1, np.float16), x]), 0),
        ),
        ZEROS,
    ),
    "min": Case(
        lambda x, *_: (np.min(x), x.min(1), np.min(x, axis=0, keepdims=True)),
        "arrays",
        lambda x, *_: (extreme(min)(x), extreme(min)(x, 1), extreme(min)(x, 0)[None]),
        ZEROS,
    ),
    "amax": Case(lambda x, *_: (np.amax(x), np.amin(x, 0)), "ordinary"),
    "amin": Case(lambda x, *_: np.amin(x, 0), "ordinary"),
    "max where": Case(
        lambda x, y, v, m: (np.max(x, axis=1, where=x < 9, initial=-9), np.min(x, axis=0, where=x > -9, initial=9)),
        "ordinary",
    ),
    "nanmax": Case(
        lambda x, *_: (np.nanmax(x), np.nanmax(x, axis=1)),
        "arrays",
        lambda x, *_: (extreme(max, True)(x), extreme(max, True)(x, 1)),
        ZEROS,
    ),
    "nanmin": Case(
        lambda x, *_: (np.nanmin(x), np.nanmin(x, axis=1)),
        "arrays",
        lambda x, *_: (extreme(min, True)(x), extreme(min, True)(x, 1)),
        ZEROS,
    ),
    "ptp": Case(lambda x, *_: (np.ptp(x), np.ptp(x, axis=0))),
    "sort": Case(
        lambda x, *_: (np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None), changed(lambda z: z.sort(0))(x)),
        "arrays",
        lambda x, *_: (in_order(x), in_order(x, 0), in_order(x, None), in_order(x, 0)),
        ZEROS,
    ),
    "partition": Case(
        lambda x, *_: (np.partition(x, 2, axis=1)[:, 2], changed(lambda z: z.partition(3))(x)[:, 3]), "ordinary"
    ),
    "argsort": Case(lambda x, *_: (np.argsort(x, axis=1, kind="stable"), x.argsort(0, kind="stable"))),
    "argpartition": Case(lambda x, *_: np.take_along_axis(x, np.argpartition(x, 2, axis=1)[:, 2:3], 1), "ordinary"),
    "argmax": Case(lambda x, *_: (np.argmax(x), x.argmax(1), np.argmax(x, axis=0, keepdims=True))),
    "argmin": Case(lambda x, *_: (np.argmin(x), x.argmin(1))),
    "nanargmax": Case(lambda x, *_: np.nanargmax(x, axis=1)),
    "nanargmin": Case(lambda x, *_: np.nanargmin(x, axis=1)),
    "count_nonzero": Case(lambda x, *_: (np.count_nonzero(x), np.count_nonzero(x, axis=0))),
    "nonzero": Case(lambda x, *_: (np.nonzero(x), x.nonzero())),
    "flatnonzero": Case(lambda x, *_: np.flatnonzero(x)),
    "argwhere": Case(lambda x, *_: np.argwhere(x)),
    "all": Case(lambda x, *_: (np.all(x), x.all(0))),
    "any": Case(lambda x, *_: (np.any(x), x.any(0), np.any(x, axis=1, out=np.empty(4, bool)))),
    "isrealobj": Case(lambda x, *_: np.isrealobj(x)),
    "iscomplexobj": Case(lambda x, *_: np.iscomplexobj(x)),
    "lexsort": Case(lambda x, y, v, m: np.lexsort((x[0], np.floor(y[0]))), "ordinary"),
    "searchsorted": Case(
        lambda x, y, v, m: (np.searchsorted(np.sort(v), x), np.sort(v).searchsorted(0.1, "right")), "ordinary"
    ),
    "digitize": Case(lambda x, y, v, m: (np.digitize(x, np.sort(v)), np.digitize(x, [0, 1])), "ordinary"),
    "isin": Case(lambda x, y, v, m: (np.isin(x, x[1]), np.isin(x, np.concatenate([v, x[0]])))),
    "isclose": Case(
        lambda x, y, v, m: (np.isclose(x, y), np.isclose(x, x, equal_nan=True), np.isclose(x, x * 1.01, rtol=0.02))
    ),
    "allclose": Case(lambda x, y, v, m: (np.allclose(x, y), np.allclose(x, x))),
    "array_equal": Case(
        lambda x, y, v, m: (np.array_equal(x, y), np.array_equal(x, x), np.array_equal(x, x, equal_nan=True))
    ),
    "array_equiv": Case(lambda x, y, v, m: np.array_equiv(v, np.stack([v, v]))),
    "unique": Case(
        lambda x, y, v, m: (
            np.unique(np.concatenate([v, v])),
            *np.unique(np.round(x), return_index=True, return_inverse=True, return_counts=True),
        )
    ),
    "unique_all": Case(lambda x, y, v, m: tuple(np.unique_all(np.round(x)))),
    "unique_counts": Case(
        lambda x, y, v, m: tuple(np.unique_counts(np.round(x))),
        "arrays",
        lambda x, y, v, m: (np.unique_all(np.round(x)).values, np.unique_all(np.round(x)).counts),
        "NumPy takes either zero, where it does not say the places",
    ),
    "unique_inverse": Case(lambda x, y, v, m: tuple(np.unique_inverse(np.round(x)))),
    "unique_values": Case(
        lambda x, y, v, m: np.unique_values(np.round(x)),
        "arrays",
        lambda x, y, v, m: np.unique_all(np.round(x)).values,
        "NumPy takes either zero, where it does not say the places",
    ),
    "histogram": Case(
        lambda x, y, v, m: (
            np.histogram(x, np.sort(v)),
            np.histogram(x, [-1, 0, 0.5, 2])[0],
            np.histogram(x, 5, (0, 4))[0].sum(),
        ),
        "ordinary",
    ),
    "union1d": Case(lambda x, y, v, m: np.union1d(x, v)),
    "intersect1d": Case(lambda x, y, v, m: np.intersect1d(x, np.concatenate([v, x[0]]))),
    "setdiff1d": Case(lambda x, y, v, m: np.setdiff1d(x, x[0])),
    "setxor1d": Case(lambda x, y, v, m: np.setxor1d(np.round(x), np.round(y)), "ordinary"),
    "median": Case(
        lambda x, y, v, m: (np.median(x), np.median(x, axis=0), np.median(v[:5]), np.median(x, axis=1, keepdims=True)),
        "arrays",
        lambda x, y, v, m: tuple(halfway(*args) for args in ((x,), (x, 0), (v[:5],), (x, 1, True))),
        SINGLE,
    ),
    "quantile": Case(
        lambda x, y, v, m: (
            np.quantile(v[:5], 0.25),
            np.quantile(x, 0.5, axis=1, method="lower"),
            np.quantile(m[:, :5], 0.75, axis=1, keepdims=True),
        ),
        "ordinary",
    ),
    "percentile": Case(
        lambda x, y, v, m: [
            np.percentile(m[:5], 25, axis=0, method=method)
            for method in ("linear", "lower", "higher", "nearest", "midpoint")
        ],
        "ordinary",
    ),
    "clip": Case(
        lambda x, y, v, m: (
            np.clip(x, -0.5, 0.3),
            x.clip(min=0.1),
            np.clip(x, None, v),
            np.clip(x, 0.1, 1, out=y.copy()),
            np.clip(x, min=v, max=1),
        ),
        "ordinary",
    ),
    # sums
    "sum": Case(
        lambda x, *_: (
            np.sum(x),
            x.sum(0),
            np.sum(x, axis=1, keepdims=True),
            np.sum(x, axis=(0, 1)),
            np.sum(x, axis=-1, initial=0.1),
            np.add.reduce(x),
        ),
        "arrays",
        lambda x, *_: (summed(x), summed(x, 0), summed(x, 1)[:, None], summed(x), summed(x, -1, 0.1), summed(x, 0)),
        SINGLE,
    ),
    "sum where": Case(
        lambda x, *_: (np.sum(x, axis=1, where=x > 0), np.sum(x, axis=0, where=MASK[:, None], out=x[0].copy())),
        "arrays",
        lambda x, *_: (summed(np.where(x > 0, x, 0), 1), summed(x[MASK], 0)),
        SINGLE,
    ),
    "nansum": Case(
        lambda x, *_: (np.nansum(x), np.nansum(x, axis=1)),
        "arrays",
        lambda x, *_: (summed(without(x)), summed(without(x), 1)),
        SINGLE,
    ),
    "cumsum": Case(
        lambda x, *_: (np.cumsum(x), x.cumsum(1), np.cumsum(x, axis=0, out=x.copy())),
        "arrays",
        lambda x, *_: (started(np.cumsum)(x), started(np.cumsum)(x, 1), started(np.cumsum)(x, 0)),
        STARTED,
    ),
    "nancumsum": Case(
        lambda x, *_: np.nancumsum(x, axis=1), "arrays", lambda x, *_: started(np.nancumsum)(x, axis=1), STARTED
    ),
    "cumulative_sum": Case(
        lambda x, *_: (np.cumulative_sum(x, axis=1), np.cumulative_sum(x, axis=0, include_initial=True)),
        "arrays",
        lambda x, *_: (started(np.cumsum)(x, 1), np.cumsum(np.vstack([np.zeros((1, 6), np.float16), x]), 0)),
        STARTED,
    ),
    "prod": Case(
        lambda x, *_: (np.prod(x), x.prod(0), np.prod(x, axis=1, keepdims=True)),
        "arrays",
        lambda x, *_: (multiplied(x), multiplied(x, 0), multiplied(x, 1)[:, None]),
        "NumPy multiplies in float32",
    ),
    "nanprod": Case(
        lambda x, *_: np.nanprod(x, axis=1),
        "arrays",
        lambda x, *_: multiplied(np.where(np.isnan(x), np.float16(1), x), 1),
        "NumPy multiplies in float32",
    ),
    "cumprod": Case(lambda x, *_: (np.cumprod(x), x.cumprod(1))),
    "nancumprod": Case(lambda x, *_: np.nancumprod(x, axis=1)),
    "cumulative_prod": Case(
        lambda x, *_: (np.cumulative_prod(x, axis=1), np.cumulative_prod(x, axis=0, include_initial=True))
    ),
    "mean": Case(
        lambda x, *_: (
            np.mean(x),
            x.mean(0),
            np.mean(x, axis=1, keepdims=True),
            np.mean(x, axis=1, where=np.isfinite(x)),
        ),
        "arrays",
        lambda x, *_: (
            meant(x),
            meant(x, 0),
            meant(x, 1)[:, None],
            np.array([meant(row[np.isfinite(row)]) for row in x]),
        ),
        SINGLE,
    ),
    "nanmean": Case(
        lambda x, *_: np.nanmean(x, axis=1, keepdims=True),
        "arrays",
        lambda x, *_: np.array([[meant(row[~np.isnan(row)])] for row in x]),
        SINGLE,
    ),
    "average": Case(
        lambda x, y, v, m: (
            np.average(x, axis=0),
            np.average(x, axis=1, weights=abs(v)),
            np.average(x, weights=abs(y)),
        ),
        "arrays",
        lambda x, y, v, m: (
            meant(x, 0),
            dotted(x, np.broadcast_to(abs(v), x.shape)) / summed(abs(v)),
            dotted(x.ravel(), abs(y).ravel()) / summed(abs(y)),
        ),
        SINGLE,
    ),
    "var": Case(
        lambda x, *_: (np.var(x), x.var(0), np.var(x, axis=1, ddof=1)),
        "arrays",
        lambda x, *_: (varied(x), varied(x, 0), varied(x, 1, 1)),
        SINGLE,
    ),
    "nanvar": Case(
        lambda x, *_: np.nanvar(x, axis=1),
        "arrays",
        lambda x, *_: np.array([varied(row[~np.isnan(row)]) for row in x]),
        SINGLE,
    ),
    "cov": Case(
        lambda x, y, v, m: (np.cov(x), np.cov(x, ddof=0), np.cov(v)),
        "ordinary",
        lambda x, y, v, m: (covaried(x), covaried(x, 0), covaried(v[None])[0, 0]),
        SINGLE,
    ),
    "std": Case(
        lambda x, *_: (np.std(x), x.std(0), np.std(x, axis=1, ddof=1)),
        "arrays",
        lambda x, *_: (np.sqrt(varied(x)), np.sqrt(varied(x, 0)), np.sqrt(varied(x, 1, 1))),
        SINGLE,
    ),
    "nanstd": Case(
        lambda x, *_: np.nanstd(x, axis=1),
        "arrays",
        lambda x, *_: np.array([np.sqrt(varied(row[~np.isnan(row)])) for row in x]),
        SINGLE,
    ),
    "nanmedian": Case(
        lambda x, *_: np.nanmedian(x, axis=1),
        "arrays",
        lambda x, *_: np.array([halfway(row[~np.isnan(row)]) for row in x]),
        SINGLE,
    ),
    "nanquantile": Case(lambda x, y, v, m: np.nanquantile(m[:, :5], 0.25, axis=1), "ordinary"),
    "nanpercentile": Case(lambda x, y, v, m: np.nanpercentile(m[:, :5], 75, axis=1, keepdims=True), "ordinary"),
    "dot": Case(
        lambda x, y, v, m: (np.dot(v, v), np.dot(x, v), x.dot(m), np.dot(v, 0.1), np.dot(m, np.stack([m, m]))),
        "arrays",
        lambda x, y, v, m: (
            dotted(v, v),
            dotted(x, v),
            product(x, m),
            v * np.float16(0.1),
            np.stack([product(m, m)] * 2, 1),
        ),
        SINGLE,
    ),
    "vdot": Case(lambda x, y, v, m: np.vdot(x, y), "arrays", lambda x, y, v, m: dotted(x.ravel(), y.ravel()), SINGLE),
    "vecdot": Case(
        lambda x, y, v, m: (np.vecdot(x, y), np.vecdot(x, y, axis=0), np.vecdot(x, v)),
        "arrays",
        lambda x, y, v, m: (dotted(x, y), dotted(x.T, y.T), dotted(x, v)),
        SINGLE,
    ),
    "linalg.vecdot": Case(
        lambda x, y, v, m: np.linalg.vecdot(x, y, axis=0), "arrays", lambda x, y, v, m: dotted(x.T, y.T), SINGLE
    ),
    "inner": Case(
        lambda x, y, v, m: (np.inner(v, v), np.inner(x, y)),
        "arrays",
        lambda x, y, v, m: (dotted(v, v), product(x, y.T)),
        SINGLE,
    ),
    "outer": Case(lambda x, y, v, m: np.outer(v, x)),
    "linalg.outer": Case(lambda x, y, v, m: np.linalg.outer(v, v)),
    "matmul": Case(
        lambda x, y, v, m: (np.matmul(x, m), x @ v, v @ m, np.stack([x, y]) @ m, np.matmul(m, m, out=m.copy())),
        "arrays",
        lambda x, y, v, m: (
            product(x, m),
            dotted(x, v),
            product(v[None], m)[0],
            product(np.stack([x, y]), m),
            product(m, m),
        ),
        SINGLE,
    ),
    "linalg.matmul": Case(
        lambda x, y, v, m: np.linalg.matmul(x, m), "arrays", lambda x, y, v, m: product(x, m), SINGLE
    ),
    "linalg.matrix_power": Case(
        lambda x, y, v, m: [np.linalg.matrix_power(m, n) for n in (0, 1, 2, 3, 5)],
        "arrays",
        lambda x, y, v, m: [
            np.eye(6, dtype=np.float16),
            m,
            product(m, m),
            product(product(m, m), m),
            product(m, product(product(m, m), product(m, m))),
        ],
        SINGLE,
    ),
    "linalg.multi_dot": Case(
        lambda x, y, v, m: (
            np.linalg.multi_dot([x, m, v]),
            np.linalg.multi_dot([v, x.T, y, m]),
            np.linalg.multi_dot([x, m, m, x.T]),
        ),
        "arrays",
        lambda x, y, v, m: (
            dotted(x, dotted(m, v)),
            product(product(product(v[None], x.T), y), m)[0],
            product(x, product(m, product(m, x.T))),
        ),
        SINGLE,
    ),
    "tensordot": Case(
        lambda x, y, v, m: (np.tensordot(x, m, 1), np.tensordot(x, y), np.tensordot(x, y, (0, 0))),
        "arrays",
        lambda x, y, v, m: (product(x, m), dotted(x.ravel(), y.ravel()), product(x.T, y)),
        SINGLE,
    ),
    "linalg.tensordot": Case(
        lambda x, y, v, m: np.linalg.tensordot(x, y, axes=([1], [1])),
        "arrays",
        lambda x, y, v, m: product(x, y.T),
        SINGLE,
    ),
    "kron": Case(lambda x, y, v, m: (np.kron(v, v), np.kron(x, v))),
    "trace": Case(
        lambda x, y, v, m: (np.trace(m), m.trace(1), np.trace(np.stack([m, m]), axis1=1, axis2=2)),
        "arrays",
        lambda x, y, v, m: (summed(np.diagonal(m)), summed(np.diagonal(m, 1)), np.array([summed(np.diagonal(m))] * 2)),
        SINGLE,
    ),
    "linalg.trace": Case(
        lambda x, y, v, m: np.linalg.trace(np.stack([m, m])),
        "arrays",
        lambda x, y, v, m: np.array([summed(np.diagonal(m))] * 2),
        SINGLE,
    ),
    "linalg.norm": Case(
        lambda x, y, v, m: (
            np.linalg.norm(x),
            np.linalg.norm(v, 1),
            np.linalg.norm(x, math.inf, axis=1),
            np.linalg.norm(x, -math.inf, 0),
            np.linalg.norm(v, 0),
            np.linalg.norm(x, "fro", keepdims=True),
            np.linalg.norm(x, 1),
            np.linalg.norm(x, -math.inf),
        ),
        "ordinary",
        lambda x, y, v, m: (
            np.sqrt(dotted(x.ravel(), x.ravel())),
            summed(abs(v)),
            abs(x).max(1),
            abs(x).min(0),
            np.float16(6),
            np.sqrt(dotted(x.ravel(), x.ravel())).reshape(1, 1),
            summed(abs(x), 0).max(),
            summed(abs(x), 1).min(),
        ),
        SINGLE,
    ),
    "linalg.vector_norm": Case(
        lambda x, y, v, m: (np.linalg.vector_norm(x), np.linalg.vector_norm(x, axis=1, ord=1)),
        "ordinary",
        lambda x, y, v, m: (np.sqrt(dotted(x.ravel(), x.ravel())), summed(abs(x), 1)),
        SINGLE,
    ),
    "linalg.matrix_norm": Case(
        lambda x, y, v, m: np.linalg.matrix_norm(np.stack([x, y]), ord=1),
        "ordinary",
        lambda x, y, v, m: np.array([summed(abs(z), 0).max() for z in (x, y)]),
        SINGLE,
    ),
    "einsum": Case(
        lambda x, y, v, m: (
            np.einsum("ij->ji", x),
            np.einsum("ii->i", m),
            np.einsum("ij,ij->ij", x, y),
            np.einsum("i,j", v, v),
        )
    ),
    "einsum summed": Case(
        lambda x, y, v, m: (
            np.einsum("ij,jk", x, m),
            np.einsum("ij,ij->", x, y),
            np.einsum("ij->j", x),
            np.einsum("ii", m),
            np.einsum("...j,j->...", x, v),
        ),
        "arrays",
        lambda x, y, v, m: (
            product(x, m),
            dotted(x.ravel(), y.ravel()),
            summed(x, 0),
            summed(np.diagonal(m)),
            dotted(x, v),
        ),
        SINGLE,
    ),
    "convolve": Case(
        lambda x, y, v, m: (np.convolve(v, x[0, :3]), np.convolve(x[0, :4], v, "same"), np.convolve(v, v[:2], "valid")),
        "arrays",
        lambda x, y, v, m: (slid(v, x[0, :3], range(8)), slid(x[0, :4], v, range(1, 7)), slid(v, v[:2], range(1, 6))),
        SINGLE,
    ),
    "correlate": Case(
        lambda x, y, v, m: (
            np.correlate(v, x[0, :3]),
            np.correlate(v, x[0, :3], "full"),
            np.correlate(x[0, :3], v, "same"),
        ),
        "arrays",
        lambda x, y, v, m: (
            slid(v, x[0, 2::-1], range(2, 6)),
            slid(v, x[0, 2::-1], range(8)),
            slid(v, x[0, 2::-1], range(1, 7))[::-1],
        ),
        SINGLE,
    ),
    # other arithmetic
    "round": Case(lambda x, *_: (np.round(x), x.round(1), np.round(x, -1))),
    "around": Case(lambda x, *_: np.around(x, 2), "ordinary"),
    "diff": Case(
        lambda x, y, v, m: (
            np.diff(x, axis=0),
            np.diff(x, 2),
            np.diff(v, prepend=v[3], append=v[:2]),
            np.diff(x, axis=0, append=x[0, 1]),
        )
    ),
    "ediff1d": Case(lambda x, *_: np.ediff1d(x)),
    "gradient": Case(lambda x, y, v, m: (np.gradient(v), *np.gradient(x), np.gradient(x, 0.5, axis=1))),
    "trapezoid": Case(
        lambda x, y, v, m: (np.trapezoid(v), np.trapezoid(x, dx=0.1, axis=0), np.trapezoid(x, v)),
        "arrays",
        lambda x, y, v, m: (
            summed(np.float16(1) * (v[1:] + v[:-1]) / 2),
            summed(np.float16(0.1) * (x[1:] + x[:-1]) / 2, 0),
            summed(np.diff(v) * (x[:, 1:] + x[:, :-1]) / 2, 1),
        ),
        SINGLE,
    ),
    "cross": Case(lambda x, y, v, m: (np.cross(x[:, :3], y[:, 3:]), np.cross(x[:3], y[:3], axis=0))),
    "linalg.cross": Case(lambda x, y, v, m: np.linalg.cross(x[:, :3], y[:, 3:])),
    "interp": Case(
        lambda x, y, v, m: np.interp(x, np.cumsum(abs(v)), v, left=0.1),
        "ordinary",
        lambda x, y, v, m: interpolated(x, np.cumsum(abs(v)), v),
        "NumPy computes and answers in float64",
    ),
    "vander": Case(
        lambda x, y, v, m: (np.vander(v), np.vander(v, 3, increasing=True), np.vander(v, 1)),
        "arrays",
        lambda x, y, v, m: (powers(v, 6)[:, ::-1], powers(v, 3), powers(v, 1)),
        "NumPy answers in float64",
    ),
    "polyval": Case(lambda x, y, v, m: np.polyval(v, x)),
    "sinc": Case(
        lambda x, *_: np.sinc(x),
        "arrays",
        lambda x, *_: np.where(
            x == 0,
            np.float16(1),
            mpfr(gmpy2.sin)(x * np.float16(math.pi)) / np.where(x == 0, np.float16(1), x * np.float16(math.pi)),
        ),
        TWICE,
    ),
    "astype": Case(
        lambda x, *_: (np.astype(x, np.float64), np.astype(x, bool), np.astype(np.rint(x), np.int32)), "ordinary"
    ),
    # text, of numbers of few digits: of others NumPy's is the shortest that reads back, where these are written exactly
    "array_str": Case(lambda x, *_: (np.array_str(quarters(x)), str(quarters(x)), str(quarters(x)[0, 0])), "ordinary"),
    "array2string": Case(
        lambda x, *_: (np.array2string(quarters(x)), np.array2string(quarters(x), precision=2, separator=", ")),
        "ordinary",
    ),
}
