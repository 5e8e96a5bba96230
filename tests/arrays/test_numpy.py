"""NumPy as the model: its functions on float16 arrays and on SoftArrays of float16, compared bit for bit; what is refused; views and overlaps."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import operator
import re
import types
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import hypothesis.extra.numpy as npst
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy_table import EDGES, HALF, LAPACK, OPERANDS, TABLE, Half, compare, dotted, exactly, ordinary, product, summed

import softfloat
from softfloat import SoftArray, arrays, bits, reference
from softfloat.accumulators import amp, chunked, exact, fma, mul_add, pairwise
from softfloat.arrays import FUNCTIONS, UFUNCS, operators, softarray


@pytest.mark.parametrize("name", TABLE)
def test_numpy_in_half(name: str) -> None:
    case = TABLE[name]
    assert bool(case.oracle) == bool(case.reason)
    for operands in OPERANDS[case.operands]():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            wanted = (case.oracle or case.call)(*operands)
        compare(case.call(*map(softfloat.array, operands)), wanted)


# -- what is supported, and what is not ------------------------------------------------------------------------------


def _dispatched() -> dict[str, Any]:
    """NumPy's ufuncs, and its functions that ask their arguments."""
    found = {}
    for prefix, module in (
        ("", np),
        ("linalg.", np.linalg),
        ("fft.", np.fft),
        ("lib.stride_tricks.", np.lib.stride_tricks),
    ):
        for name in dir(module):
            function = getattr(module, name)
            if isinstance(function, np.ufunc) or hasattr(function, "_implementation"):
                found[prefix + name] = function
    return found


DISPATCHED = _dispatched()
SUPPORTED = {name for name, function in DISPATCHED.items() if function in FUNCTIONS or function in UFUNCS}
ELSEWHERE = {"array_repr", "save", "savez", "savez_compressed", "savetxt", "matvec", "vecmat"}
ELSEWHERE |= {f"linalg.{name}" for name in LAPACK.split()}
"""Functions with tests of their own."""


def test_every_supported_function_is_in_the_table() -> None:
    tried = {id(DISPATCHED[name.split()[0]]) for name in TABLE if name.split()[0] in DISPATCHED}
    missing = [name for name in SUPPORTED - ELSEWHERE if id(DISPATCHED[name]) not in tried]
    assert missing == []
    assert all(function in DISPATCHED.values() for function in FUNCTIONS)


@pytest.mark.parametrize("name", sorted(set(DISPATCHED) - SUPPORTED))
def test_what_is_not_supported_says_so(name: str) -> None:
    x = softfloat.ones((3, 3), HALF)
    function = DISPATCHED[name]
    for before, count in itertools.product(([], ["i"], [lambda z: z], [(x, x)]), range(1, 4)):
        try:
            result = function(*before, *[x] * count)
        except (TypeError, ValueError) as error:  # a missing argument; a wrong one
            if re.match(
                rf"numpy\S*\.{function.__name__} is not supported for SoftArray; accepted: .*its \.values", str(error)
            ):
                return
        else:
            pytest.fail(f"numpy.{name} gave {type(result).__name__}")
    pytest.fail(f"numpy.{name} did not say that it is not supported")


SWEPT = """
numpy numpy.linalg numpy.fft numpy.lib.scimath numpy.lib.recfunctions numpy.polynomial.polynomial numpy.ma
numpy.char numpy.testing numpy.rec scipy.cluster.hierarchy scipy.fft scipy.interpolate scipy.linalg
scipy.ndimage scipy.signal scipy.spatial scipy.spatial.distance scipy.special scipy.stats sklearn.metrics
sklearn.preprocessing
"""
BY_NAME = {
    *(f"numpy.{name}" for name in dir(np) if isinstance(getattr(np, name), type) and issubclass(getattr(np, name), np.generic)),
    *("numpy.ma.MaskType", "numpy.ma.bool_", "numpy.char.array", "numpy.char.asarray", "numpy.rec.fromrecords"),
    "scipy.spatial.cKDTree",
}  # fmt: skip
"""Types, what is given a dtype, and compiled functions that ask for float64 and give places."""

UNTRIED = {"test", "seterr", "seterrcall", "setbufsize", "set_printoptions", "info", "savetxt", "save", "savez"}
UNTRIED |= {"savez_compressed", "lookfor", "source", "show_config", "show_runtime", "fromfile", "memmap", "genfromtxt"}
UNTRIED |= {"loadtxt", "load", "run_module_suite", "rundocs", "brute", "differential_evolution", "dual_annealing"}


def _arguments(mixed: bool) -> list[tuple[Any, ...]]:
    v, m = softfloat.array([0.5, 0.25, 0.125], HALF), softfloat.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], HALF)
    n = np.array([0.1, 0.2, 0.4])
    one = [(v,), (m,), (v[0],), ([v, v],), ([v[0], v[1]],), (v, v), (m, m), (m, v), (v[0], v[1]), (v, v, v), (m, 2)]
    return [*one, (v, 2), (v, n), (n, v), (2, v), (v, n, n), (n, v, n), (n, n, v), (1, 2, v)] if mixed else one


@pytest.mark.parametrize("module", SWEPT.split())
def test_nothing_goes_on_in_float64(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No public function of NumPy and SciPy reads an array's numbers on its own account and returns."""
    read: list[Any] = []
    plainly = SoftArray.__array__

    def recording(self: SoftArray, dtype: Any = None, copy: bool | None = None) -> Any:
        found = plainly(self, dtype, copy)
        read.append(dtype)
        return found

    namespace = {**globals(), "__name__": "numpy.recording"}  # what stands between must not look like a caller
    seen = types.FunctionType(recording.__code__, namespace, None, (None, None), recording.__closure__)
    monkeypatch.setattr(SoftArray, "__array__", seen)
    owner = pytest.importorskip(module)
    wrong, refused = [], 0
    with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for name in sorted({*getattr(owner, "__all__", dir(owner))} - UNTRIED):
            function = getattr(owner, name, None)
            if name.startswith("_") or not callable(function) or f"{module}.{name}" in BY_NAME:
                continue
            for arguments in _arguments(module.startswith("numpy")):  # compiled code of SciPy crashes on some
                read.clear()
                try:
                    function(*arguments)
                except Exception as error:
                    refused += "is not supported for SoftArray" in str(error) or softarray.UNASKED in str(error)
                else:
                    wrong += [(name, arguments, read[0])] if read else []
    assert not wrong
    assert refused


def test_refusals_name_the_function() -> None:
    x = softfloat.ones((3, 3), HALF)
    linalg, special = pytest.importorskip("scipy.linalg"), pytest.importorskip("scipy.special")
    for name, call in {
        "scipy.linalg.expm": lambda: linalg.expm(x),
        "scipy.special.logsumexp": lambda: special.logsumexp(x),
        "erf": lambda: special.erf(x),
        "numpy.fft.fft": lambda: np.fft.fft(x),
        "numpy.polyfit": lambda: np.polyfit(x[0], x[0], 1),
        "numpy.ma.core.masked_where": lambda: np.ma.masked_where([True], x),
    }.items():
        with pytest.raises(TypeError, match=rf"^{name} is not supported for SoftArray; accepted: its \.values"):
            call()
    for name, twin, call in (
        ("scipy.linalg.solve", "numpy.linalg.solve", lambda: linalg.solve(x, x)),
        ("scipy.linalg.lu_factor", "softfloat.linalg.lu", lambda: linalg.lu_factor(x)),
        ("numpy.linalg.eig", "numpy.linalg.eigh, of symmetric matrices", lambda: np.linalg.eig(x)),
    ):
        with pytest.raises(TypeError, match=rf"^{name} is not supported for SoftArray; accepted: {twin}, its \.values"):
            call()


def test_methods_of_ufuncs_that_are_not_supported() -> None:
    x = softfloat.ones((3, 3), HALF)
    for call in (
        lambda: np.matmul.reduce(x),
        lambda: np.frexp.at(x, 0),
        lambda: np.equal.reduce(x),
        lambda: np.less.accumulate(x),
        lambda: np.matmul.outer(x, x),
        lambda: np.vecdot.at(x, 0, x),
        lambda: np.sqrt.reduce(x),
    ):
        with pytest.raises(
            (TypeError, ValueError, RuntimeError),
            match=r"not supported for SoftArray|Reduction not defined|only supported for binary|single output|non-trivial signature",
        ):
            call()


REFUSED: dict[str, tuple[Callable[[SoftArray], Any], str]] = {
    "another dtype": (lambda x: np.add(x, x, dtype=np.float32), r"numpy\.add of a SoftArray takes no dtype="),
    "sum in another dtype": (lambda x: np.sum(x, dtype=np.float32), r"numpy\.sum .* stays in float16, got dtype="),
    "mean in another dtype": (lambda x: x.mean(dtype=float), r"numpy\.mean .* stays in float16"),
    "casting": (lambda x: np.add(x, x, casting="unsafe"), r"takes no casting='unsafe'"),
    "out of NumPy's": (
        lambda x: np.add(x, x, out=np.zeros(3)),
        r"out of numpy\.add must be a SoftArray of float16, got ndarray",
    ),
    "out of halves": (lambda x: np.add(x, x, out=np.zeros(3, np.float16)), "out of numpy.add must be a SoftArray"),
    "out of another format": (
        lambda x: np.add(x, x, out=x.astype("bfloat16")),
        "has format bfloat16 that does not match format float16",
    ),
    "out of a sum": (
        lambda x: np.sum(x, out=np.zeros(())),
        r"out of numpy\.sum must be a SoftArray of float16 and shape \(\), got ndarray",
    ),
    "out of another shape": (
        lambda x: np.sum(x, out=x),
        r"out of numpy\.sum must be a SoftArray of float16 and shape \(\), got float16 of shape \(3,\)",
    ),
    "out of a comparison": (lambda x: np.less(x, x, out=x), r"out of numpy\.less must be a NumPy array, got SoftArray"),
    "ndarray in place": (lambda x: np.zeros(3).__iadd__(x), "has format float64"),
    "float64 array": (
        lambda x: x + np.zeros(3),
        "operand 2 of 'add' has format float64 that does not match format float16 of operand 1",
    ),
    "float64 array, left": (lambda x: np.zeros(3) + x, "operand 1 of 'add' has format float64 .* operand 2"),
    "float64 without axes": (
        lambda x: np.array(1.0) + x,
        r"operand 1 of 'add' has format float64 .*; \.item\(\) makes",
    ),
    "float32 scalar": (lambda x: x * np.float32(1), r"operand 2 of 'multiply' has format float32 .*; \.item\(\) makes"),
    "float32 scalar, left": (lambda x: np.float32(1) * x, "operand 1 of 'multiply' has format float32"),
    "another float scalar": (lambda x: x * ml_dtypes.bfloat16(1), "operand 2 of 'multiply' has format bfloat16"),
    "longdouble scalar": (lambda x: x * np.longdouble(1), "operand 2 of 'multiply' has format"),
    "a code": (lambda x: x * x.codes[0], "operand 2 of 'multiply' has format uint16"),
    "integer array": (lambda x: x + np.arange(3), "operand 2 of 'add' has format int64"),
    "integer scalar": (lambda x: np.int64(1) + x, "operand 1 of 'add' has format int64"),
    "another format": (
        lambda x: x + x.astype("bfloat16"),
        r"operand 2 of 'add' has format bfloat16 that does not match format float16 of operand 1; astype\(\)",
    ),
    "another format, in place": (lambda x: x.__iadd__(x.astype("bfloat16")), "operand 2 of 'add' has format bfloat16"),
    "another format, joined": (
        lambda x: np.concatenate([x, x.astype("bfloat16")]),
        "operand 2 of 'concatenate' has format bfloat16",
    ),
    "another format, chosen": (
        lambda x: np.where(x > 0, x, x.astype("bfloat16")),
        "operand 2 of 'where' has format bfloat16",
    ),
    "another format, multiplied": (lambda x: x @ x.astype("bfloat16"), "operand 2 of 'matmul' has format bfloat16"),
    "another format, assigned": (lambda x: x.__setitem__(0, x[0].astype("bfloat16")), "has format bfloat16"),
    "a masked array": (lambda x: x + np.ma.masked_array(np.zeros(3, np.float16), [1, 0, 0]), "codes cannot be masked"),
    "a masked array converted": (
        lambda x: softfloat.array(np.ma.masked_array(np.zeros(3, np.float16), [1, 0, 0])),
        "codes cannot be masked",
    ),
    "complex": (lambda x: x + 1j, "unsupported operand"),
    "text": (lambda x: x + "1", "unsupported operand"),
    "text in a list": (lambda x: x * ["1"], "is str; accepted: SoftArray of float16, numbers, bool arrays"),
    "objects": (lambda x: x + np.array([1, 2, 3], object), "has format object"),
    "bits": (lambda x: x & x, "unsupported operand"),
    "bits of a ufunc": (
        lambda x: np.bitwise_and(x, x),
        r"numpy\.bitwise_and is not supported for SoftArray; accepted: its \.values",
    ),
    "integers by ldexp": (lambda x: np.ldexp(x, 1.5), "operand 2 of 'ldexp' must be integers"),
    "places that are numbers": (lambda x: np.take(x, x), r"numpy\.take takes a SoftArray as its first argument only"),
    "counts that are numbers": (
        lambda x: np.repeat(x, x),
        r"numpy\.repeat takes a SoftArray as its first argument only",
    ),
    "places of NumPy's": (
        lambda x: np.take_along_axis(np.arange(3), x, 0),
        r"numpy\.take_along_axis of ndarray takes no SoftArray",
    ),
    "sum of NumPy's": (lambda x: np.sum(np.zeros(3), where=x), r"numpy\.sum of ndarray takes no SoftArray"),
    "put into NumPy's": (lambda x: np.put(np.zeros(3), [0], x), r"numpy\.put of ndarray takes no SoftArray"),
    "copied into NumPy's": (lambda x: np.copyto(np.zeros(3), x), r"numpy\.copyto into ndarray"),
    "chosen by numbers": (lambda x: np.choose(x, [x, x]), r"a of numpy\.choose must be integers"),
    "inserted by numbers": (lambda x: np.insert(x, x[0], 1), r"obj of numpy\.insert must be integers"),
    "pad modes": (lambda x: np.pad(x, 1, "mean"), r"numpy\.pad of a SoftArray has no mode='mean'; accepted: constant"),
    "norms": (lambda x: np.linalg.norm(x[None], 3), "has no ord=3; accepted: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf"),
    "quantile methods": (lambda x: np.quantile(x, 0.5, method="hazen"), "has no method='hazen'; accepted: linear"),
    "einsum of three": (lambda x: np.einsum("i,i,i", x, x, x), "one or two operands, got 3"),
    "einsum by numbers": (lambda x: np.einsum(x, [0]), "subscripts as a string"),
    "files": (lambda x: np.save("x.npy", x), r"save x\.codes"),
    "unequal distances": (lambda x: np.gradient(x, x), "takes one distance, or one for each axis"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, message = REFUSED[name]
    x = softfloat.ones(3, HALF)
    with pytest.raises(TypeError, match=message):
        call(x)
    assert x.tolist() == [1.0, 1.0, 1.0]


# -- sums, by any accumulator ----------------------------------------------------------------------------------------

ACCUMULATORS: dict[str, tuple[Any, Any]] = {
    "default": (None, (mul_add(HALF), fma(HALF))),
    "amp": (amp("half"), (amp("half"),) * 2),
    "exact": (exact("float32"), (exact("float32"),) * 2),
    "chunked": (chunked(4, "float16", "float32"), (chunked(4, "float16", "float32"),) * 2),
    "callable": (pairwise, (pairwise(HALF),) * 2),
}


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("name", ACCUMULATORS)
def test_sums_are_those_of_bits(name: str, rounding: str) -> None:
    given, (products, sums) = ACCUMULATORS[name]
    random = np.random.default_rng(4)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((3, 5, 40), (3, 40, 2)))
    x, y = softfloat.array(a), softfloat.array(b)
    p, q = x.codes, y.codes
    settings: dict[str, Any] = {"out_format": HALF, "rounding": rounding, "seed": 7, "stream": 0, "flags": "any"}

    def check(call: Callable[[], SoftArray], wanted: tuple[Any, int]) -> None:
        with softfloat.environment(accumulator=given, rounding=rounding, seed=7) as env:
            found = call()
        assert found.format == HALF
        np.testing.assert_array_equal(found.codes, wanted[0])
        assert int(env.status.flags) == wanted[1]

    check(lambda: np.sum(x, axis=1), bits.sum(p, HALF, sums, 1, **settings))
    check(lambda: x.sum(), bits.sum(p, HALF, sums, **settings))
    check(lambda: np.sum(x, axis=(0, 2)), bits.sum(np.moveaxis(p, 1, 0).reshape(5, -1), HALF, sums, 1, **settings))
    check(lambda: np.vecdot(x, x), bits.vecdot(p, p, HALF, products, **settings))
    check(lambda: np.dot(x[0, 0], y[0, :, 0]), bits.vecdot(p[0, 0], q[0, :, 0], HALF, products, **settings))
    check(lambda: x @ y, bits.matmul(p, q, HALF, products, **settings))
    check(lambda: x[0] @ y[0, :, 1], bits.matmul(p[0], q[0, :, 1], HALF, products, **settings))
    check(lambda: np.einsum("bij,bjk->bik", x, y), bits.matmul(p, q, HALF, products, **settings))
    check(lambda: np.tensordot(x[0], y[0], 1), bits.matmul(p[0], q[0], HALF, products, **settings))
    if name == "default":
        check(lambda: np.cumsum(x, axis=2), bits.cumsum(p, HALF, sums, 2, **settings))


def test_matvec_and_vecmat() -> None:
    if not hasattr(np, "matvec"):
        pytest.skip("NumPy 2.2")
    _, _, v, m = map(softfloat.array, ordinary())
    compare(np.matvec(m, v), product(ordinary()[3], ordinary()[2][:, None])[:, 0])
    compare(np.vecmat(v, m), product(ordinary()[2][None], ordinary()[3])[0])


def test_an_accumulator_that_is_none() -> None:
    with (
        softfloat.environment(accumulator=lambda fmt: fmt),
        pytest.raises(TypeError, match=r"accumulator of the environment must give a softfloat\.Accumulator"),
    ):
        np.sum(softfloat.ones(3, HALF))


def test_sums_swamp_as_hardware_does() -> None:
    assert float(np.sum(softfloat.full(10_000, 0.0001, HALF))) == 0.25
    assert float(np.sum(softfloat.ones(4096, HALF))) == 2048.0
    with softfloat.environment(accumulator=exact("float16")):
        assert float(np.sum(softfloat.ones(4096, HALF))) == 4096.0


def test_means_are_rounded_once() -> None:
    ones = softfloat.ones(3000, "float8_e4m3fn")  # sums swamp at 16; the format has no 3000
    assert float(np.mean(ones)) == float(reference_value(Fraction(16, 3000), softfloat.float8_e4m3fn))
    for count in (1, 3, 7, 10, 641, 6_700_417, (1 << 26) - 1, 1 << 26, (1 << 26) + 1, 10**12):
        for fmt in (HALF, softfloat.float32, softfloat.bfloat16):
            codes = np.array([fmt.one_code, fmt.max_code, 1, fmt.one_code + 1, fmt.sign_bit | 3], fmt.dtype)
            for rounding in ("nearest_even", "toward_positive", "to_odd"):
                with softfloat.environment(rounding=rounding):
                    found = arrays.quotient(codes, count, fmt, "mean").tolist()
                wanted = [
                    reference.encode(
                        reference.decode(code, fmt).magnitude
                        / count
                        * (-1 if reference.decode(code, fmt).negative else 1),
                        fmt,
                        rounding=rounding,
                    )[0]
                    for code in codes.tolist()
                ]
                assert found == wanted, (count, fmt, rounding)


def test_stochastic_means_see_every_bit() -> None:
    """Half of an ulp and 2^-20 of one: in single precision, too."""
    fmt = softfloat.float32
    codes = np.full(20_000, fmt.one_code + 1, fmt.dtype)  # a third of it has its fraction at 1/3 of an ulp
    with softfloat.environment(rounding="stochastic", seed=1):
        found = arrays.quotient(codes, 3, fmt, "mean")
    exact_value = (1 + Fraction(1, 2**23)) / 3
    low = reference.encode(exact_value, fmt, rounding="toward_zero")[0]
    share = (exact_value - Fraction(float(bits.decode(low, fmt)))) / Fraction(1, 2**25)
    assert abs(np.mean(found != low) - float(share)) < 0.02


def reference_value(x: Fraction, fmt: softfloat.Format) -> float:
    return float(bits.decode(reference.encode(x, fmt)[0], fmt))


EMPTY: dict[str, tuple[Callable[[SoftArray], Any], Any, str]] = {
    "sum": (np.sum, 0.0, ""),
    "prod": (np.prod, 1.0, ""),
    "mean": (np.mean, math.nan, "INVALID"),
    "var": (np.var, math.nan, "INVALID"),
    "std": (np.std, math.nan, "INVALID"),
    "median": (np.median, math.nan, "INVALID"),
    "dot": (lambda x: np.dot(x, x), 0.0, ""),
    "norm": (np.linalg.norm, 0.0, ""),
    "einsum": (lambda x: np.einsum("i,i", x, x), 0.0, ""),
    "matmul": (lambda x: (x[None] @ x[:, None])[0, 0], 0.0, ""),
    "add.reduce": (np.add.reduce, 0.0, ""),
}


@pytest.mark.parametrize("name", EMPTY)
def test_reductions_of_nothing(name: str) -> None:
    call, wanted, flags = EMPTY[name]
    with softfloat.environment() as env:
        found = call(softfloat.zeros(0, HALF))
    np.testing.assert_array_equal(found.values, wanted)
    assert str(env.status.flags) == (flags or "0") or (not flags and not env.status.flags)


def test_nothing_in_arrays_with_axes() -> None:
    x = softfloat.zeros((3, 0, 2), HALF)
    assert np.sum(x, axis=1).tolist() == [[0.0, 0.0]] * 3
    assert np.sum(x, axis=0).shape == (0, 2)
    assert np.cumsum(x, axis=1).shape == np.cumprod(x, axis=1).shape == np.sort(x, axis=1).shape == x.shape
    assert np.isnan(np.mean(x, axis=1)).all()
    assert np.prod(x, axis=(0, 1)).tolist() == [1.0, 1.0]
    for call in (
        np.max,
        np.min,
        np.nanmax,
        np.maximum.reduce,
        np.subtract.reduce,
        np.argmax,
        lambda z: np.quantile(z, 0.5),
    ):
        with pytest.raises(ValueError, match=r"no elements|empty|zero-size"):
            call(softfloat.zeros(0, HALF))
    assert float(np.max(softfloat.zeros(0, HALF), initial=2)) == 2.0
    assert (x + x).shape == np.sqrt(x).shape == (x < x).shape == x.shape
    assert (x @ softfloat.zeros((2, 4), HALF)).shape == (3, 0, 4)
    assert (softfloat.zeros((2, 0), HALF) @ softfloat.zeros((0, 1), HALF)).tolist() == [[0.0], [0.0]]
    assert np.unique(softfloat.zeros(0, HALF)).shape == (0,)


def test_what_numpy_counts_as_true() -> None:
    x = softfloat.ones((2, 3), HALF)
    for call in (np.sum, np.mean, np.max, np.prod, np.std, np.median, np.nansum, np.linalg.norm, np.add.reduce):
        assert call(x, axis=1, keepdims=1).shape == (2, 1)
        assert call(x, axis=1, keepdims=0).shape == (2,)
    with pytest.raises(IndexError, match=r"indices of numpy\.add\.reduceat must be 0 to 1, got \[0, 2\]"):
        np.add.reduceat(x, [0, 2])


def test_quantiles_of_several_shares() -> None:
    x = softfloat.array(ordinary()[0])
    shares = [[0.0, 0.3], [0.5, 1.0]]
    found = np.quantile(x, shares, axis=1)
    assert found.shape == (2, 2, 4)
    for place in np.ndindex(2, 2):
        compare(found[place], np.quantile(x, shares[place[0]][place[1]], axis=1).view(np.float16))
    assert np.quantile(x, shares, keepdims=True).shape == (2, 2, 1, 1)
    assert np.percentile(x, [25, 75], axis=(0, 1)).shape == (2,)
    np.testing.assert_array_equal(np.nanquantile(x, shares, axis=1).codes, found.codes)
    holes = x.copy()
    holes[1, 2:] = math.nan
    found = np.nanpercentile(holes, [20, 50], axis=1, keepdims=True)
    assert found.shape == (2, 4, 1)
    compare(found[:, 1, 0], np.percentile(x[1, :2], [20, 50]).view(np.float16))
    with pytest.raises(ValueError, match=r"q of numpy\.percentile must be 0 to 100, got 101"):
        np.percentile(x, 101)


def test_comparing_functions_round_numbers() -> None:
    x = softfloat.array([0.1, 0.2], HALF)
    assert np.array_equal(x, [0.1, 0.2])
    assert np.isin(x, 0.1).tolist() == [True, False]
    assert np.isclose(x, 0.1, rtol=0, atol=0).tolist() == [True, False]
    assert np.isclose(a=x, b=0.1, rtol=0, atol=0).tolist() == [True, False]
    with softfloat.environment() as env:
        assert (x == 0.1).tolist() == (x == [0.1, 0.1]).tolist() == [True, False]
        assert np.allclose(x, [0.1, 0.2])
    assert not env.status.flags


# -- any shape, any view, any overlap --------------------------------------------------------------------------------

often = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
CODES = st.one_of(st.sampled_from(sorted(EDGES.view(np.uint16).tolist())), st.integers(0, (1 << 16) - 1))
EXACT_IN_HALF = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
IN_PLACE = {"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv}


def halves(shape: Any) -> st.SearchStrategy[Half]:
    return npst.arrays(np.uint16, shape, elements=CODES).map(lambda codes: codes.view(np.float16))


def silently(call: Callable[[], Any]) -> Any:
    with np.errstate(all="ignore"):
        return call()


@often
@given(st.data())
def test_broadcasting(data: st.DataObject) -> None:
    shapes = data.draw(
        npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4, min_side=0)
    ).input_shapes
    x, y = (data.draw(halves(shape)) for shape in shapes)
    a, b = softfloat.array(x), softfloat.array(y)
    for operation in EXACT_IN_HALF.values():
        compare(operation(a, b), silently(lambda o=operation: o(x, y)))
    compare(a <= b, silently(lambda: x <= y))
    number = data.draw(st.sampled_from([0.1, 2, True, Fraction(1, 3), 10**6, -(10**400), -0.0, math.inf]))
    half = exactly(Fraction(number)) if number and abs(number) != math.inf else np.float16(number)
    compare(a * number, silently(lambda: x * half))
    compare(number - a, silently(lambda: half - x))


@often
@given(st.data())
def test_indexing_and_views(data: st.DataObject) -> None:
    x = data.draw(halves(npst.array_shapes(max_dims=3, max_side=5, min_side=0)))
    a = softfloat.array(x)
    index = data.draw(npst.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
    turned = data.draw(st.booleans())
    found, wanted = ((z[index].T if turned else z[index]) for z in (a, x))
    compare(found, np.asarray(wanted))
    if isinstance(wanted, np.ndarray):
        assert found.strides == wanted.strides
        assert np.shares_memory(found, a) == np.shares_memory(wanted, x)
        for name in ("+", "*"):
            compare(EXACT_IN_HALF[name](found, found), silently(lambda n=name, w=wanted: EXACT_IN_HALF[n](w, w)))
        compare(np.sqrt(found), silently(lambda: np.sqrt(wanted)))
        found[...] = 0.1
        wanted[...] = 0.1
        compare(a, x)
    if x.size:
        fancy = data.draw(npst.integer_array_indices(x.shape))
        compare(a[fancy], x[fancy])
        mask = data.draw(npst.arrays(bool, x.shape))
        compare(a[mask], x[mask])
        a[mask] = 2
        x[mask] = 2
        a[fancy] = a[fancy] + 1
        x[fancy] = silently(lambda: x[fancy] + np.float16(1))
        compare(a, x)


@often
@given(st.data())
@pytest.mark.parametrize("small", [True, False])
def test_in_place_with_overlap(small: bool, data: st.DataObject) -> None:
    """Operands that are other views of the array written to are read before it is."""
    shape = data.draw(st.sampled_from([(7,), (4, 4), (2, 3, 3)]))
    x = data.draw(halves(shape))
    a = softfloat.array(x)
    cut = data.draw(st.integers(0, 2))
    slices = {
        "same": (np.s_[:], np.s_[:]),
        "shifted": (np.s_[cut:], np.s_[: shape[0] - cut]),
        "reversed": (np.s_[:], np.s_[::-1]),
        "row": (np.s_[:], np.s_[cut % shape[0]]),
        "thinned": (np.s_[:: 1 + cut], np.s_[:: 1 + cut]),
    }
    to, of = slices[data.draw(st.sampled_from(sorted(slices)))]
    turned = data.draw(st.booleans())
    look = (lambda z: z.T) if turned and len(set(shape)) == 1 else (lambda z: z)
    name = data.draw(st.sampled_from(sorted(IN_PLACE)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "SMALL", operators.SMALL if small else -1)
        target = a[to]
        result = IN_PLACE[name](target, look(a)[of])
        assert result is target
        wanted = x[to]
        silently(lambda: IN_PLACE[name](wanted, look(x)[of]))
        compare(a, x)
        np.add(a[to], 1, out=a[to])
        silently(lambda: np.add(x[to], np.float16(1), out=x[to]))
        compare(a, x)


@often
@given(st.data())
def test_where_and_out(data: st.DataObject) -> None:
    shapes = data.draw(npst.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4))
    x, y = (data.draw(halves(shape)) for shape in shapes.input_shapes[:2])
    mask = data.draw(npst.arrays(bool, shapes.input_shapes[2]))
    place = data.draw(halves(shapes.result_shape))
    a, b, room = softfloat.array(x), softfloat.array(y), softfloat.array(place)
    for ufunc in (np.add, np.divide, np.copysign):
        assert ufunc(a, b, out=room, where=mask) is room
        silently(lambda u=ufunc: u(x, y, out=place, where=mask))
        compare(room, place)
        ufunc(a, b, out=room)
        silently(lambda u=ufunc: u(x, y, out=place))
        compare(room, place)
    found = np.less(a, b, out=np.zeros(shapes.result_shape, bool), where=mask)
    np.testing.assert_array_equal(
        found, silently(lambda: np.less(x, y, out=np.zeros(shapes.result_shape, bool), where=mask))
    )


@often
@given(st.data())
def test_methods_of_ufuncs(data: st.DataObject) -> None:
    x = data.draw(halves(npst.array_shapes(min_dims=1, max_dims=3, max_side=4)))
    a = softfloat.array(x)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    axes = data.draw(st.sets(st.integers(0, x.ndim - 1)).map(tuple))
    keepdims = data.draw(st.booleans())
    others = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(*others, *sorted(axes)).reshape([x.shape[i] for i in others] + [-1])
    wanted = silently(lambda: summed(rows, -1))
    found = np.add.reduce(a, axis=axes, keepdims=keepdims)
    compare(found.reshape(wanted.shape), wanted)
    assert found.shape == np.add.reduce(np.zeros(x.shape), axis=axes, keepdims=keepdims).shape
    for ufunc in (np.add, np.subtract, np.multiply, np.divide):
        first = silently(lambda: x + np.float16(0)) if ufunc is np.add else x
        compare(ufunc.accumulate(a, axis=axis), silently(lambda u=ufunc, f=first: u.accumulate(f, axis=axis)))
        compare(ufunc.outer(a, a), silently(lambda u=ufunc: u.outer(x, x)))
    powers = data.draw(npst.arrays(np.int32, 3, elements=st.integers(-30, 30)))
    compare(np.ldexp.outer(a, powers), silently(lambda: np.ldexp.outer(x, powers)))
    compare(np.multiply.outer(a, [0.5, 3.0]), silently(lambda: np.multiply.outer(x, np.array([0.5, 3.0], np.float16))))
    count = data.draw(st.integers(0, 8))
    places = data.draw(npst.arrays(np.int64, count, elements=st.integers(-len(x), len(x) - 1)))
    values = data.draw(halves((count, *x.shape[1:])))
    ufunc = data.draw(st.sampled_from([np.add, np.multiply]))
    ufunc.at(a, places, softfloat.array(values))
    silently(lambda: ufunc.at(x, places, values))
    compare(a, x)


EINSUMS = """
ij,jk->ik ij,jk->ki ij,ij-> ij,ij->i i,j->ij ii-> ii->i ijk->k bij,bjk->bik ij,kj ijk,jl->kil ...i,i->... i...,i...->...
ij,kl-> iij,j->i
"""


@often
@given(st.data())
def test_einsum(data: st.DataObject) -> None:
    """Products and sums, each rounded, over the summed indices in the order in which they first appear."""
    subscripts = data.draw(st.sampled_from(EINSUMS.split()))
    how, fused = data.draw(st.sampled_from([(None, False), (fma(HALF), True)]))
    written = subscripts.replace("...", "z")
    terms = written.partition("->")[0].split(",")
    sizes = {letter: data.draw(st.integers(1, 3)) for letter in sorted(set(written) - set(",->"))}
    operands = [data.draw(halves(tuple(sizes[c] for c in term))) for term in terms]
    with softfloat.environment(accumulator=how):
        found = np.einsum(subscripts, *map(softfloat.array, operands))
    letters = "".join(terms)
    wanted = (
        written.partition("->")[2]
        if "->" in written
        else "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    )
    over = [c for c in dict.fromkeys(letters) if c not in wanted]
    assert found.shape == tuple(sizes[c] for c in wanted)
    for place in np.ndindex(found.shape):
        known = dict(zip(wanted, place, strict=True))
        total = 0
        for step in np.ndindex(*(sizes[c] for c in over)):
            at = {**known, **dict(zip(over, step, strict=True))}
            factors = [
                int(x[tuple(at[c] for c in term)].view(np.uint16)) for x, term in zip(operands, terms, strict=True)
            ]
            if not over:
                total = bits.mul(*factors, HALF)[0] if len(factors) > 1 else factors[0]
            elif len(factors) == 1:
                total = bits.add(total, factors[0], HALF)[0]
            elif fused:
                total = bits.fma(*factors, total, HALF)[0]
            else:
                total = bits.add(total, bits.mul(*factors, HALF)[0], HALF)[0]
        compare(found[place], np.uint16(total).view(np.float16))


@often
@given(st.data())
def test_tensordot(data: st.DataObject) -> None:
    shared = data.draw(npst.array_shapes(min_dims=0, max_dims=2, max_side=3))
    left, right = (data.draw(npst.array_shapes(min_dims=0, max_dims=2, max_side=3)) for _ in range(2))
    x, y = data.draw(halves(left + shared)), data.draw(halves(shared + right))
    found = np.tensordot(softfloat.array(x), softfloat.array(y), len(shared))
    flat_x, flat_y = x.reshape(*left, -1), y.reshape(-1, *right)
    wanted = silently(
        lambda: np.array(
            [dotted(flat_x[i], flat_y[(slice(None), *j)]) for i in np.ndindex(left) for j in np.ndindex(right)],
            np.float16,
        )
    )
    compare(found, wanted.reshape(left + right))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "median"])
def test_reductions_without_nans_take_the_keywords_of_those_with_them(name: str) -> None:
    def array(values: Any) -> softfloat.SoftArray:
        return softfloat.array(np.array(values, np.float16))

    x = array([[1.0, np.nan, 3.0], [4.0, 5.0, 7.0]])
    keywords = {"ddof": 1} if name in ("var", "std") else {}
    flat = getattr(np, f"nan{name}")(x, axis=1, **keywords)
    kept = getattr(np, f"nan{name}")(x, axis=1, keepdims=True, **keywords)
    assert kept.shape == (2, 1)
    assert kept.codes.ravel().tolist() == flat.codes.tolist()
    assert flat.tolist() == [float(getattr(np, name)(array(row), **keywords)) for row in ([1.0, 3.0], [4.0, 5.0, 7.0])]
