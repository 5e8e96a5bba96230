"""Ties toward zero, ties up, and up or down by one random bit: small formats whole, and every way of computing beside the plain one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Format, Position, Rounding, accumulators, bits, engine, reference
from softfloat.accumulators import Accumulator, Stage
from softfloat.formats import ROSTER
from softfloat.reference import dots

MODES = ("nearest_zero", "nearest_up", "up_or_down")
OPERATIONS = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "sqrt": 1,
    "round_to_integral": 1,
    "fma": 3,
    "hypot": 2,
    "exp": 1,
    "log": 1,
}
SMALL = (
    ROSTER["float4_e2m1fn"],
    Format("five bits", exponent_bits=3, mantissa_bits=1, nan="ieee"),
    Format("one bit of precision", exponent_bits=4, mantissa_bits=0, nan="fn"),
    Format("unsigned, no zero", exponent_bits=3, mantissa_bits=2, nan="fn", signed=False, zero=False, subnormals=False),
    Format("flushed", exponent_bits=3, mantissa_bits=2, nan="fnuz", subnormals=False),
)
HALF, SINGLE, FP8 = (ROSTER[name] for name in ("float16", "float32", "float8_e4m3fn"))


def handed(mode: str, shape: tuple[int, ...], seed: int = 1) -> dict[str, Any]:
    """Random bits of a mode that draws."""
    return {"random_bits": np.random.default_rng(seed).integers(0, 2, shape, np.uint8)} if mode == "up_or_down" else {}


def seeded(mode: str) -> dict[str, Any]:
    return {"rounding": mode, "seed": 5} if mode == "up_or_down" else {"rounding": mode}


def assert_as_the_oracle(
    name: str, fmt: Format, columns: list[Any], options: dict[str, Any], own: dict[str, Any]
) -> None:
    codes, flags = getattr(bits, name)(*columns, fmt, **options, **own)
    drawn = own.get("random_bits", itertools.repeat(None))
    for row, found, raised, bit in zip(zip(*columns, strict=True), codes.tolist(), flags.tolist(), drawn, strict=False):
        extra = {} if bit is None else {"random_bits": int(bit)}
        wanted = getattr(reference, name)(*map(int, row), fmt, **options, **extra)
        assert (found, raised) == wanted, (name, row, options, extra)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_small_formats(fmt: Format, mode: str, request: pytest.FixtureRequest) -> None:
    """All operands of one and two, some of three, with each random bit: each operation under both rules, in modes that draw and that do not,
    and in both kinds of formats, of which half of the loops show each two."""
    whole, every = request.config.getoption("--exhaustive"), np.arange(1 << fmt.bits, dtype=fmt.dtype)
    kind = (mode == "up_or_down") + engine.is_unusual(fmt.spec)
    rules: tuple[dict[str, Any], ...] = {}, {"tininess": "before", "ftz": True, "overflow": "saturate"}
    for number, (name, arity) in enumerate(OPERATIONS.items()):
        if not whole and (number + kind) % 2:
            continue
        columns = [x.reshape(-1) for x in np.meshgrid(*[every] * min(arity, 2))]
        if arity == 3:
            columns.append(np.random.default_rng(2).permutation(columns[0]))
        turn = (MODES.index(mode) + SMALL.index(fmt)) % 2
        for rule in rules if whole else rules[turn : turn + 1]:
            assert_as_the_oracle(name, fmt, columns, {"rounding": mode} | rule, handed(mode, columns[0].shape))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("projection", ["ieee", "p3109"])
def test_eight_bits(mode: str, projection: str) -> None:
    """Every code beside some: of each format in one operation, of the next projection or mode in the other."""
    every = np.arange(256, dtype=np.uint8)
    some, turn = every[3::17], MODES.index(mode) + (projection == "p3109")
    for number, fmt in enumerate((FP8, ROSTER["float8_e5m2fnuz"], ROSTER["float8_e8m0fnu"])):
        name = ("add", "mul")[(number + turn) % 2]
        columns = [x.reshape(-1) for x in np.meshgrid(every, some)]
        options = {"rounding": mode, "projection": projection}
        assert_as_the_oracle(name, fmt, columns, options, handed(mode, columns[0].shape))


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_all_pairs_of_eight_bits(name: str, mode: str) -> None:
    columns = [x.reshape(-1) for x in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2)]
    for fmt in (FP8, ROSTER["float8_e5m2"], ROSTER["float8_e8m0fnu"]):
        assert_as_the_oracle(name, fmt, columns, {"rounding": mode}, handed(mode, columns[0].shape))


def test_ties() -> None:
    """Half way between 1 and 1 + eps, and between it and the next, of either sign; and half way to what would follow the largest number."""
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65520.0, 2.0**-25, 2.0**-14 - 2.0**-25])
    x = np.concatenate([x, -x])
    below = bits.decode(bits.encode(x, "float16", rounding="toward_zero")[0], "float16")
    beyond = bits.decode(bits.encode(x, "float16", rounding="nearest_away")[0], "float16")
    assert (softfloat.round(x, "float16", "nearest_zero") == below).all()
    assert (softfloat.round(x, "float16", "nearest_up") == np.where(x > 0, beyond, below)).all()
    with softfloat.environment(rounding="nearest_zero") as env:
        assert softfloat.round(65520.0, "float16") == 65504.0  # a tie is no overflow
        assert not env.status.flags & softfloat.Flags.OVERFLOW
        assert softfloat.round(np.nextafter(65520.0, 1e9), "float16") == np.inf


def test_up_or_down_is_a_coin() -> None:
    """Whatever is not exact goes either way as often; what is exact stays; the bit is the first of those that stochastic rounding draws."""
    for x in (1 + 2.0**-50, 1 + 2.0**-11, 2 - 2.0**-50, 2.0**-200):
        codes, _ = bits.encode(np.full(4000, x), "float16", rounding="up_or_down", seed=1)
        assert set(np.unique(codes)) == {codes.min(), codes.min() + 1}
        assert 1800 < (codes == codes.min()).sum() < 2200
    exact = np.arange(0x7C00, dtype=np.uint16)
    assert (bits.convert(exact, "float16", "float16", rounding="up_or_down", seed=2)[0] == exact).all()
    assert (bits.mul(exact, exact * 0 + np.uint16(0x3C00), "float16", rounding="up_or_down", seed=2)[0] == exact).all()
    numbers = np.random.default_rng(3).standard_normal(300)
    first = bits.random_bits(300, seed=4, stream=6) >> np.uint64(51)
    wanted = bits.encode(numbers, "bfloat16", rounding="up_or_down", random_bits=first.astype(np.uint8))[0]
    found = bits.encode(numbers, "bfloat16", rounding="up_or_down", seed=4, stream=6)[0]
    assert (found == wanted).all()
    half = bits.encode(numbers[100:], "bfloat16", rounding="up_or_down", seed=4, stream=6, position=Position(100))[0]
    assert (half == wanted[100:]).all()


@pytest.mark.parametrize("mode", MODES)
def test_numbers_of_every_kind(mode: str) -> None:
    """What values lack beyond the carrier decides too: integers of 64 bits, fractions, functions, numbers of other formats."""
    own = {"random_bits": 1} if mode == "up_or_down" else {}
    taken = {"random_bits": np.array(1, np.uint8)} if own else {}
    for x in (2**62 + 2**51 + 1, 2**62 + 2**51, -(2**62) - 2**51, 2**53 + 1, -(2**63)):
        found = bits.encode(np.int64(x), "float16", rounding=mode, overflow="saturate", **taken)
        assert tuple(map(int, found)) == reference.encode(x, HALF, rounding=mode, overflow="saturate", **own)
        found = bits.encode(np.int64(x), "bfloat16", rounding=mode, **taken)
        assert tuple(map(int, found)) == reference.encode(x, ROSTER["bfloat16"], rounding=mode, **own)
    codes = np.random.default_rng(5).integers(0, 1 << 32, 60, np.uint32)
    for name in ("exp", "sin", "log1p", "tanh"):
        assert_as_the_oracle(name, SINGLE, [codes], {"rounding": mode}, handed(mode, codes.shape))
    for dtype, exact in itertools.product((np.int8, np.uint64), (True, False)):
        shape = codes.shape
        found, raised = bits.to_integer(codes, SINGLE, dtype, exact=exact, rounding=mode, **handed(mode, shape))
        drawn = handed(mode, shape).get("random_bits", [None] * 60)
        for code, number, flag, bit in zip(codes.tolist(), found.tolist(), raised.tolist(), drawn, strict=True):
            extra = {} if bit is None else {"random_bits": int(bit)}
            info = np.iinfo(dtype)
            wanted = reference.to_integer(code, SINGLE, info.bits, info.min < 0, exact, rounding=mode, **extra)
            assert (number, flag) == wanted


# -- sums --------------------------------------------------------------------------------------------------------------

SUMS: dict[str, tuple[Accumulator, Callable[..., tuple[int, int]] | None]] = {
    "fma": (accumulators.fma("float16"), dots.fma),
    "mul_add": (accumulators.mul_add("float16"), dots.mul_add),
    "pairwise": (accumulators.pairwise("float16"), dots.pairwise),
    "exact": (accumulators.exact("float16"), dots.exact),
    "kahan": (accumulators.compensated("float16", method="kahan"), partial(dots.compensated, method="kahan")),
    "chunked": (accumulators.chunked(8, accumulators.fma("float16"), "float32"), None),
    "chains": (accumulators.fma("float16").replace(chains=2), None),
    "stored": (accumulators.amp("half"), None),
    "register": (accumulators.fixed_point(24, -16, "float16"), None),
}
"""Accumulator, and the oracle of it; those without are beside it in the tests of presets."""


def operands(shape: tuple[int, ...], seed: int) -> Any:
    """Halves of few bits, whose products and sums often tie."""
    random = np.random.default_rng(seed)
    return bits.encode(random.integers(-40, 41, shape) * np.exp2(random.integers(-9, 1, shape)), "float16")[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_the_oracles_in_every_way(
    name: str, mode: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grid, and by the plain way alone; counted, or a row of outputs, of which each sum and each mode has both. With --exhaustive both."""
    (how, oracle), options = SUMS[name], seeded(mode)
    every, other = request.config.getoption("--exhaustive"), ([*SUMS].index(name) + MODES.index(mode)) % 2
    a, b = operands((9, 32), 6), operands((32, 33), 7)
    codes, flags = bits.matmul(a, b, "float16", how, out_format="float16", **options)
    for i, j in ((0, 0), (3, 17), (8, 32)) if oracle is not None else ():
        row, column, index = a[i].tolist(), b[:, j].tolist(), i * b.shape[1] + j
        wanted = oracle(row, column, (HALF, HALF), HALF, rounding=mode, seed=5, stream=0, index=index)
        assert (int(codes[i, j]), int(flags[i, j])) == wanted, (i, j)
    if every or not other:
        counted = bits.matmul(a, b, "float16", how, out_format="float16", count=True, **options)
        assert (counted[0] == codes).all()
        assert (counted[1] == flags).all()
    if every or other:
        lines = bits.vecdot(np.repeat(a, 33, 0), np.tile(b.T, (9, 1)), "float16", how, out_format="float16", **options)
        assert (lines[0].reshape(codes.shape) == codes).all()
    monkeypatch.setattr(engine.elementwise, "FAST", False)
    plain = bits.matmul(a, b, "float16", how, out_format="float16", **options)
    assert (plain[0] == codes).all()
    assert (plain[1] == flags).all()


@pytest.mark.parametrize("mode", MODES)
def test_large_grids_and_sums_along_axes(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which the faster ways serve, with the plain way's bits."""
    options = seeded(mode)
    a, b = operands((70, 64), 8), operands((64, 80), 9)
    singles = bits.convert(operands((3000,), 10), "float16", "float32")[0]
    how = accumulators.fma("float16")

    def computed() -> list[Any]:
        found = [bits.matmul(a, b, "float16", sums, **options) for sums in (how, accumulators.pairwise("float16"))]
        for sums in (accumulators.mul_add("float32"), accumulators.pairwise("float32")):
            found.append(bits.sum(singles, "float32", sums, **options))
            found.append(bits.cumsum(singles[:300], "float32", sums, **options))
        found.append(bits.add(singles, singles[::-1].copy(), "float32", **options))
        found.append(bits.mul(a, a[::-1].copy(), "float16", **options))
        found.append(bits.convert(singles, "float32", "bfloat16", **options))
        found.append(bits.encode(np.random.default_rng(11).standard_normal(40000), "float16", **options))
        return found

    fast = computed()
    monkeypatch.setattr(engine.elementwise, "FAST", False)
    for (codes, flags), (wanted, raised) in zip(fast, computed(), strict=True):
        assert np.array_equal(codes, wanted)
        assert np.array_equal(flags, raised)


@pytest.mark.parametrize("mode", MODES)
def test_faster_ways_of_operations(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers of half and of an eight-bit format, what lies half way between two, just below that and just above; pairs, some of which
    are ordinary in every block, some tiny, some of any kind; flags of each and of all in turn."""
    random = np.random.default_rng(15)
    every = np.arange(0x7C00, dtype=np.uint16)
    near = bits.decode(every, "float16").astype(np.float64) + np.exp2(np.maximum(every >> 10, 1) - 26.0)
    near = np.concatenate([sign * near * (1 + move * 2.0**-23) for sign in (1, -1) for move in (-1, 0, 1)])
    single = near.astype(np.float32).view(np.uint32)
    wide = random.standard_normal((3, 1 << 13)) * np.array([[1.0], [1e-5], [2e4]])
    anything = random.integers(0, 1 << 32, 1 << 13, np.uint32)

    calls: list[tuple[Callable[..., Any], Any]] = [(bits.encode, (near, fmt)) for fmt in ("float16", "float8_e5m2")]
    calls += [(bits.convert, (single, "float32", name)) for name in ("float16", "bfloat16", "float8_e5m2", "tfloat32")]
    for name in ("float16", "bfloat16", "float32"):
        pairs = [*(bits.encode(x, name)[0] for x in wide), anything.astype(ROSTER[name].dtype)]
        calls += [(f, (x, x[::-1].copy(), name)) for x, f in itertools.product(pairs, (bits.add, bits.sub, bits.mul))]
    for name in ("float16", "float8_e5m2"):
        codes = np.arange(1 << ROSTER[name].bits, dtype=ROSTER[name].dtype)
        calls += [(bits.sqrt, (codes, name)), (bits.convert, (codes, name, "float8_e4m3fn"))]

    def computed() -> list[Any]:
        flags = itertools.cycle(("any", "each") if MODES.index(mode) % 2 else ("each", "any"))
        return [function(*given, flags=next(flags), **seeded(mode)) for function, given in calls]

    fast = computed()
    monkeypatch.setattr(engine.elementwise, "FAST", False)
    for (codes, raised), (wanted, flagged) in zip(fast, computed(), strict=True):
        assert np.array_equal(codes, wanted)
        assert np.array_equal(raised, flagged)


@pytest.mark.parametrize("mode", [*MODES, "nearest_away"])
def test_just_below_half_of_the_smallest_number(mode: str) -> None:
    """2^-25 - 2^-49 is no tie: a half is added to it in float32 only by a rounding."""
    x = np.zeros((16, 4), np.float32)
    x[:, 0] = np.float32(2.0**-12 - 2.0**-36)
    y = np.full((4, 32), np.float32(2.0**-13))
    for how in (accumulators.mul_add("float16"), accumulators.fma("float16")):
        found, flags = bits.matmul(x.view(np.uint32), y.view(np.uint32), "float32", how, **seeded(mode))
        assert flags.max() == 3
        assert found.max() == (1 if mode == "up_or_down" else 0)


@pytest.mark.skipif(not engine.elementwise.quick(), reason="nothing is compiled")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", [HALF, SINGLE], ids=str)
def test_faster_ways_serve_sums(fmt: Format, mode: str) -> None:
    settings = softfloat.Environment(**seeded(mode)).settings
    planned = engine.program(accumulators.fma(fmt), fmt, fmt, fmt, settings, 32)
    assert engine.choose(planned) is not None


def test_stages_have_modes_of_their_own() -> None:
    """A stage rounds by its mode, whatever the call's is."""
    a, b = operands((4, 16), 12), operands((16, 4), 13)
    for mode in MODES:
        how = accumulators.fma("float16").replace(running=Stage("float16", mode))
        own = bits.matmul(a, b, "float16", how, **({"seed": 5} if mode == "up_or_down" else {}))
        whole = bits.matmul(a, b, "float16", accumulators.fma("float16"), **seeded(mode))
        assert (own[0] == whole[0]).all()


# -- what they take ----------------------------------------------------------------------------------------------------


def test_random_bits_are_one_each() -> None:
    one = np.uint16(0x3C00)
    for words, options in (
        ("needs a seed", {}),
        ("0 to 2\\^1 - 1", {"random_bits": np.array(2)}),
        ("sr_bits has no effect", {"seed": 1, "sr_bits": 8}),
        ("sr_method has no effect", {"seed": 1, "sr_method": "half"}),
    ):
        with pytest.raises(ValueError, match=words):
            bits.add(one, one, "float16", rounding="up_or_down", **options)
    env = softfloat.Environment(rounding="up_or_down", seed=1, sr_bits=8, sr_method="nearest")  # of stochastic rounding
    x = np.full(100, 0.1)
    found = bits.encode(x, "float16", environment=env)[0]
    assert (found == bits.encode(x, "float16", rounding="up_or_down", seed=1)[0]).all()
    with pytest.raises(ValueError, match="random_bits are for rounding='stochastic' or 'up_or_down'"):
        bits.add(one, one, "float16", rounding="nearest_up", random_bits=np.array(1))
    with pytest.raises(ValueError, match="did you mean 'nearest_zero'"):
        softfloat.Environment(rounding="nearest_zeros")


@pytest.mark.parametrize("mode", MODES)
def test_arrays_and_scalars(mode: str) -> None:
    """Operators, functions, sums and settled calls under an environment, beside the functions on codes."""
    x = np.random.default_rng(14).standard_normal(50)
    codes = bits.encode(x, "float8_e5m2")[0]
    with softfloat.environment(rounding=mode, seed=3 if mode == "up_or_down" else None):
        array = softfloat.array(x, "float8_e5m2")
        found = array * 3 + array
    options = {"rounding": mode} | ({"seed": 3} if mode == "up_or_down" else {})
    streams = iter(range(9))

    def stream() -> dict[str, int]:
        return {"stream": next(streams)} if mode == "up_or_down" else {}

    fmt = ROSTER["float8_e5m2"]
    codes = bits.encode(x, fmt, **options, **stream())[0]
    three = bits.encode(3.0, fmt)[0]
    product = bits.mul(codes, three, fmt, **options, **stream())[0]
    assert (found.codes == bits.add(product, codes, fmt, **options, **stream())[0]).all()
    call = bits.scalar("div", fmt, **options)
    own = {} if mode != "up_or_down" else {"seed": 3}
    for a, b in zip(codes.tolist(), product.tolist(), strict=True):
        assert call(a, b) == tuple(map(int, bits.div(a, b, fmt, rounding=mode, **own)))


assert {Rounding[name.upper()] for name in MODES} == set(Rounding) - set(list(Rounding)[:7])
