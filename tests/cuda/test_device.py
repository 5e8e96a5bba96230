"""What a GPU gives is what the CPU gives, code for code and flag for flag; or the same call is refused with the way out.

These run where there is a GPU, and, on few elements, in Numba's simulator (`test_simulated`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softfloat import bits, cuda
from softfloat.accumulators import amp, chunked, exact, fma, mul_add, pairwise, tensor_core
from softfloat.formats import Format, check_format

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the simulator's kernels are Python
    pytest.mark.skipif(not cuda.is_available(), reason="needs numba-cuda and an NVIDIA GPU"),
]

Codes = np.ndarray[Any, np.dtype[Any]]
Send = Callable[[Codes], Any]

NEAREST: dict[str, Any] = {}
SETTINGS: dict[str, dict[str, Any]] = {
    "nearest": NEAREST,
    "together": {"flags": "any"},
    "directed": {"rounding": "toward_negative", "ftz": True, "tininess": "before", "daz": True},
    "stochastic": {"rounding": "stochastic", "seed": 5, "stream": 7},
    "few bits": {"rounding": "stochastic", "seed": 5, "sr_bits": 3, "flags": "any"},
    "by P3109": {"projection": "p3109", "rounding": "to_odd", "overflow": "saturate"},
    "payloads": {"nan": "arm"},
}
OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "remainder": 2, "sqrt": 1, "round_to_integral": 1, "fma": 3}


def simulated() -> bool:
    from softfloat.cuda import compiling

    return compiling.simulated()


@pytest.fixture(params=["numba", "torch", "cupy"])
def send(request: pytest.FixtureRequest) -> Send:
    """What takes an array to the GPU, as one of a library."""
    if request.param == "numba":
        from numba import cuda as numba_cuda

        return numba_cuda.to_device  # type: ignore[no-any-return]
    if simulated():
        pytest.skip("the simulator has arrays of Numba's alone")
    library = pytest.importorskip(request.param)
    if request.param == "cupy":
        return library.asarray  # type: ignore[no-any-return]
    if not library.cuda.is_available():
        pytest.skip("needs a PyTorch that finds the GPU")
    return lambda x: library.from_numpy(x).cuda()


def fetched(x: Any) -> Any:
    """A result as NumPy's."""
    if hasattr(x, "copy_to_host"):
        return x.copy_to_host()
    return x.get() if hasattr(x, "get") else x.cpu().numpy() if hasattr(x, "cpu") else x


def agree(found: Any, wanted: Any) -> None:
    """The same results, down to dtypes and shapes."""
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        if isinstance(want, bits.Counts):
            assert got.additions == want.additions
            names = "overflowed", "inexact", "swamped", "smallest", "largest"
            agree([getattr(got, x) for x in names], [getattr(want, x) for x in names])
        else:
            got = fetched(got)
            assert type(got) is type(want) or isinstance(got, np.ndarray)
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_array_equal(got, want, strict=isinstance(got, np.ndarray))


def some_codes(fmt: Format, shape: int | tuple[int, ...], seed: int = 1) -> Codes:
    """Any codes of a format, infinities, NaNs and subnormals among them."""
    return np.random.default_rng(seed).integers(0, 1 << fmt.bits, shape, dtype=fmt.dtype)


def small_codes(fmt: Format, shape: tuple[int, ...], seed: int = 1) -> Codes:
    """Codes of numbers near 1, whose sums are numbers."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return np.asarray(bits.encode(values, fmt)[0])


def corner_codes(fmt: Format, shape: tuple[int, ...], seed: int = 1) -> Codes:
    """Zeros, the least and the largest numbers, infinities and NaNs, quiet and signalling, each of both signs; few of them NaNs."""
    top = fmt.spec.nan_first if fmt.infinities else fmt.max_code + 1
    common = [0, 0, 1, 2, fmt.one_code, fmt.one_code, fmt.smallest_normal_code, fmt.max_code]
    codes = np.array([*common * 4, fmt.max_code + 1, top, top | fmt.spec.quiet], fmt.dtype)
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, shape, dtype=fmt.dtype) * fmt.dtype.type(fmt.sign_bit)
    return rng.choice(codes, shape) | signs


def tiny_codes(fmt: Format, shape: tuple[int, ...], seed: int = 1) -> Codes:
    """Zeros and numbers whose products are less than the least, of both signs."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, shape, dtype=fmt.dtype) | rng.integers(0, 2, shape, dtype=fmt.dtype) * fmt.dtype.type(
        fmt.sign_bit
    )


def count() -> int:
    """Elements: some tiles of random numbers, and not whole ones."""
    return 40 if simulated() else 3001


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_on_halves(operation: str, settings: str, send: Send) -> None:
    fmt, options = check_format("float16"), SETTINGS[settings]
    operands = [some_codes(fmt, count(), seed) for seed in range(OPERATIONS[operation])]
    call = getattr(bits, operation)
    agree(call(*map(send, operands), fmt, **options), call(*operands, fmt, **options))


@pytest.mark.parametrize("settings", ["nearest", "stochastic"])
@pytest.mark.parametrize("operation", ["fma", "div", "sqrt"])
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float32", "float6_e2m3fn", "float8_e5m2fnuz"])
def test_operations_in_other_formats(name: str, operation: str, settings: str, send: Send) -> None:
    fmt, options = check_format(name), SETTINGS[settings]
    operands = [some_codes(fmt, count(), seed) for seed in range(OPERATIONS[operation])]
    call = getattr(bits, operation)
    agree(call(*map(send, operands), fmt, **options), call(*operands, fmt, **options))


@pytest.mark.parametrize("settings", ["nearest", "directed", "stochastic"])
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float8_e8m0fnu", "bfloat16"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_numbers_to_codes_and_back(dtype: type, name: str, settings: str, send: Send) -> None:
    words = np.random.default_rng(3).integers(0, 256, count() * np.dtype(dtype).itemsize, dtype=np.uint8)
    numbers = np.concatenate([words.view(dtype)[: count() // 2], np.linspace(-9, 9, count() // 2).astype(dtype)])
    found, wanted = (bits.encode(x, name, **SETTINGS[settings]) for x in (send(numbers), numbers))
    agree(found, wanted)
    agree([bits.decode(found[0], name)], [bits.decode(wanted[0], name)])


@pytest.mark.parametrize("settings", ["nearest", "stochastic", "payloads"])
@pytest.mark.parametrize(
    ("read", "written"), [("float16", "float8_e5m2"), ("float8_e4m3fn", "float16"), ("float32", "tfloat32")]
)
def test_conversions(read: str, written: str, settings: str, send: Send) -> None:
    codes, options = some_codes(check_format(read), count()), SETTINGS[settings]
    agree(bits.convert(send(codes), read, written, **options), bits.convert(codes, read, written, **options))


def test_scalars_and_shapes(send: Send) -> None:
    codes = some_codes(check_format("float16"), (2, 3, 5))
    agree(bits.add(send(codes), 0x3C00, "float16"), bits.add(codes, 0x3C00, "float16"))
    with pytest.raises(ValueError, match="a must be a code of float16: 0 to 0xffff, got 65536"):
        bits.add(1 << 16, send(codes), "float16")
    agree(bits.mul(send(codes[:0]), 1, "float16", flags="any"), bits.mul(codes[:0], 1, "float16", flags="any"))


def test_libraries_broadcast(send: Send) -> None:
    a, b = some_codes(check_format("float16"), (4, 1, 5)), some_codes(check_format("float16"), (3, 5))
    if type(send(a)).__module__.startswith("numba"):  # whose arrays have no functions
        with pytest.raises(ValueError, match=r"must have the result's shape \(4, 3, 5\), in C order, got \(4, 1, 5\)"):
            bits.add(send(a), send(b), "float16")
        return
    found = bits.add(send(a), send(b), "float16")
    agree(found, bits.add(a, b, "float16"))
    agree(bits.add(send(a[:, 0].copy().T), 0, "float16"), bits.add(a[:, 0].T, 0, "float16"))


# -- sums ------------------------------------------------------------------------------------------------------------

SUMS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "fma": ("float16", fma("float16"), NEAREST),
    "fma of e4m3": ("float8_e4m3fn", fma("float8_e4m3fn"), {"flags": "any"}),
    "fma to float32": ("bfloat16", fma("float32"), NEAREST),
    "fma, converted": ("float16", fma("float32"), {"out_format": "float16"}),
    "fma, directed": ("float16", fma("float16"), SETTINGS["directed"]),
    "fma, stochastic": ("float16", fma("float16"), SETTINGS["stochastic"]),
    "mul_add": ("float16", mul_add("float16"), NEAREST),
    "mul_add, few bits": ("float16", mul_add("float16"), SETTINGS["few bits"]),
    "mul_add of bfloat16": ("bfloat16", mul_add("bfloat16"), SETTINGS["stochastic"]),
    "fma, counted": ("float16", fma("float16"), {"count": True}),
    "fma of tf32, to odd": ("tfloat32", fma("tfloat32"), {"rounding": "to_odd", "overflow": "saturate"}),
    "mul_add of bfloat16, up": ("bfloat16", mul_add("bfloat16"), {"rounding": "toward_positive", "count": True}),
    "fma of e5m2, stochastic, counted": ("float8_e5m2", fma("float8_e5m2"), SETTINGS["stochastic"] | {"count": True}),
    "mul_add of float32, a coin": ("float32", mul_add("float32"), {"rounding": "up_or_down", "seed": 2}),
}


@pytest.mark.parametrize(
    "codes", [some_codes, small_codes, corner_codes, tiny_codes], ids=["any", "near 1", "corners", "tiny"]
)
@pytest.mark.parametrize("case", SUMS)
def test_matrix_products(case: str, codes: Callable[..., Codes], send: Send) -> None:
    name, how, options = SUMS[case]
    fmt, (m, k, n) = check_format(name), (5, 11, 3) if simulated() else (37, 150, 41)
    a, b = codes(fmt, (2, m, k), 1), codes(fmt, (k, n), 2)
    agree(bits.matmul(send(a), send(b), fmt, how, **options), bits.matmul(a, b, fmt, how, **options))


UNITS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "amp": ("float16", amp("float16"), NEAREST),
    "amp, stochastic": ("float16", amp("float16"), SETTINGS["stochastic"]),
    "amp, toward zero": ("float16", amp("float16"), {"rounding": "toward_zero", "flags": "any"}),
    "H100": ("float16", tensor_core("H100", "float16"), NEAREST),
    "H100 of e4m3": ("float8_e4m3fn", tensor_core("H100", "float8_e4m3fn"), NEAREST),
    "H100 of tf32": ("tfloat32", tensor_core("H100", "tfloat32"), NEAREST),
    "A100": ("bfloat16", tensor_core("A100", "bfloat16"), NEAREST),
    "V100": ("float16", tensor_core("V100", "float16"), NEAREST),
}


@pytest.mark.skipif(simulated(), reason="the simulator has no kernels of units")
@pytest.mark.parametrize("begins", [False, True], ids=["from zero", "from c"])
@pytest.mark.parametrize("codes", [small_codes, tiny_codes], ids=["near 1", "tiny"])
@pytest.mark.parametrize("case", UNITS)
def test_units(case: str, codes: Callable[..., Codes], begins: bool, send: Send) -> None:
    name, how, options = UNITS[case]
    fmt = check_format(name)
    a, b = codes(fmt, (2, 37, 150), 1), codes(fmt, (150, 41), 2)
    c = small_codes(how.partials, (2, 37, 41), 3) if begins else None
    sent = None if c is None else send(c)
    agree(bits.matmul(send(a), send(b), fmt, how, sent, **options), bits.matmul(a, b, fmt, how, c, **options))
    rows = small_codes(fmt, (6, 40), 4)
    agree(bits.vecdot(send(rows), send(rows), fmt, how, **options), bits.vecdot(rows, rows, fmt, how, **options))
    a[0, 3, 7] = fmt.spec.nan_first if not fmt.infinities else fmt.max_code + 1
    with pytest.raises(ValueError, match=r"must be finite on a GPU.*on the CPU, x.cpu\(\)"):
        bits.matmul(send(a), send(b), fmt, how, sent, **options)


@pytest.mark.parametrize("case", ["fma", "fma, stochastic"])
def test_outputs_that_are_no_grid(case: str, send: Send) -> None:
    name, how, options = SUMS[case]
    fmt = check_format(name)
    a, b, c = (small_codes(fmt, shape, seed) for seed, shape in enumerate([(6, 20), (6, 20), (6,)]))
    found = bits.vecdot(send(a), send(b), fmt, how, send(c), **options)
    agree(found, bits.vecdot(a, b, fmt, how, c, **options))
    agree(bits.sum(send(a), fmt, how, 0, **options), bits.sum(a, fmt, how, 0, **options))
    agree(bits.sum(send(a), fmt, how, **options), [np.asarray(x) for x in bits.sum(a, fmt, how, **options)])
    row = bits.matmul(send(a[0].copy()), send(a.T.copy()), fmt, how, **options)
    agree(row, bits.matmul(a[0], a.T, fmt, how, **options))


@pytest.mark.parametrize("how", [fma("float16"), mul_add("float16")])
def test_an_infinity_times_zero_after_a_nan(how: Any, send: Send) -> None:
    nan, infinity, one = 0x7E00, 0x7C00, 0x3C00
    a, b = np.array([[nan, infinity]], np.uint16), np.array([[one], [0]], np.uint16)
    wanted = bits.matmul(a, b, "float16", how)
    assert wanted[1] == [[16]]
    agree(bits.matmul(send(a), send(b), "float16", how), wanted)


@pytest.mark.parametrize("how", [pairwise("float16"), exact("float16"), chunked(4, fma("float16"), "float32")])
def test_other_sums_are_refused(how: Any, send: Send) -> None:
    a = send(small_codes(check_format("float16"), (2, 8)))
    with pytest.raises(ValueError, match=r"accumulator must add one product at a time on a GPU.*on the CPU: x.cpu\(\)"):
        bits.vecdot(a, a, "float16", how)


def test_what_is_not_done_is_refused(send: Send) -> None:
    host = some_codes(check_format("float16"), 8)
    a = send(host)
    drawn = SETTINGS["stochastic"]
    for options, words in (
        ({"out": host}, "out must be None for arrays on a GPU"),
        ({"position": 3, **drawn}, "position must be None for arrays on a GPU"),
        ({"random_bits": host, "rounding": "stochastic"}, "random_bits must be None for arrays on a GPU"),
        ({"generator": "xoroshiro128aox", **drawn}, "generator must be 'philox4x32' on a GPU"),
    ):
        with pytest.raises(ValueError, match=words):
            bits.sqrt(a, "float16", **options)
    with pytest.raises(TypeError, match="a lies on a GPU, where this is not done; accepted: arrays on the CPU"):
        bits.lt(a, a, "float16")
    with pytest.raises(TypeError, match="b must lie on the GPU, as other operands do, got ndarray"):
        bits.add(a, host, "float16")
    with pytest.raises(TypeError, match="a must lie on the GPU, as other operands do, got list"):
        bits.matmul([1], a, "float16", fma("float16"))
    with pytest.raises(ValueError, match="axis must be None or an integer from -1 to 0, got 1"):
        bits.sum(a, "float16", fma("float16"), 1)
    with pytest.raises(TypeError, match=r"a must be codes of float16, as uint16 or, bit for bit, int16, got uint8"):
        bits.add(send(host.view(np.uint8)), 1, "float16")
    with pytest.raises(ValueError, match="a holds what is no code of float6_e2m3fn; accepted: 0 to 0x3f"):
        bits.sqrt(send(np.array([3, 64], np.uint8)), "float6_e2m3fn")
    with pytest.raises(ValueError, match="nan must be a policy that passes no payloads on"):
        bits.sum(a, "float16", fma("float16"), nan="arm")
