"""Segments and chains of sums that stand in a line go side by side, with the bits of the plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faster import both, same

from softfloat import Accumulator, Environment, Format, Position, bits, float16
from softfloat.accumulators import (
    FixedPoint,
    Reduction,
    Stage,
    amp,
    chunked,
    compensated,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.engine import available, elementwise, joined, lines, plain, segments, small, unit_ways
from softfloat.engine.programs import program
from softfloat.environments import Overflow, Settings

WIDE, NARROW, BELOW = Stage("float32"), Stage("float16"), Stage("float16", rounding="toward_positive")
HOW = {
    "two levels": fma("float16").replace(segments=6, reduction=(Reduction(NARROW, sections=2), Reduction(NARROW))),
    "two levels, stored": fma("float16").replace(
        segments=6, reduction=(Reduction(WIDE, sections=3, store=BELOW), Reduction(WIDE, store=NARROW))
    ),
    "three levels": mul_add("float16").replace(
        segments=5, reduction=(Reduction(NARROW, sections=3), Reduction(WIDE, sections=2), Reduction(WIDE))
    ),
    "a stored level": chunked(8, "float16", "float32").replace(reduction=(Reduction(WIDE, store=NARROW),)),
    "chunks of 5": chunked(5, "float16", "float16"),
    "chunks of 5, single outside": chunked(5, "float16", "float32"),
    "chunks of 1": chunked(1, "float16", "float16"),
    "chunks of pairs": chunked(8, exact("float16").replace(block=2), "float16"),
    "three chains": fma("float16").replace(chains=3),
    "two chains of products": mul_add("bfloat16").replace(chains=2),
}
LENGTHS = (0, 1, 2, 4, 5, 23, 64)


def operands(length: int, outputs: int, specials: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(length * 1000 + outputs)
    a, b = (bits.encode(random.standard_normal((outputs, length)), "float16")[0] for _ in range(2))
    if specials and length:
        a[0, length // 2], b[outputs // 2, 0] = 0x7C00, 0x7E01
    return a, b


@pytest.mark.parametrize("together", [1, 40, segments.SIDE_BY_SIDE])
@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_vecdot(monkeypatch: pytest.MonkeyPatch, how: Accumulator, together: int) -> None:
    monkeypatch.setattr(segments, "SIDE_BY_SIDE", together)
    rules: list[dict[str, Any]] = [{}, {"rounding": "toward_zero", "nan": "x86"}]
    for length in LENGTHS:
        if isinstance(how.segments, int) and 0 < length < how.segments:
            continue
        for specials, rule in ((False, rules[0]), (True, rules[1])):
            a, b = operands(length, 21, specials)
            c = bits.encode(np.linspace(-2, 2, 21), how.partials)[0]
            same(both(monkeypatch, lambda a=a, b=b, r=rule: bits.vecdot(a, b, "float16", how, **r)))
            same(both(monkeypatch, lambda a=a, b=b, c=c, r=rule: bits.vecdot(a, b, "float16", how, c, **r)))


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_matrix_products(monkeypatch: pytest.MonkeyPatch, how: Accumulator) -> None:
    for length, specials in ((23, False), (64, True)):
        (a, b), rule = operands(length, 21, specials), {"rounding": "toward_negative"} if specials else {}
        c = bits.encode(np.linspace(-2, 2, 21 * 21).reshape(21, 21), how.partials)[0]
        same(both(monkeypatch, lambda a=a, b=b, c=c, r=rule: bits.matmul(a, b.T, "float16", how, c, **r)))


DRAWN = {
    **HOW,
    "nine chains": mul_add("float16").replace(chains=9),
    "chunks of amp": chunked(16, amp("half"), "float16"),
    "chunks of amp in float": chunked(32, amp("float"), "float32"),
    "a stage of its own draws": chunked(8, "float16", "float32").replace(
        reduction=(Reduction(WIDE, store=Stage("float16", rounding="stochastic")),)
    ),
}
DRAWS: dict[str, dict[str, Any]] = {
    "all bits": {"rounding": "stochastic", "seed": 1},
    "16 bits, another stream": {"rounding": "stochastic", "seed": 2, "sr_bits": 16, "stream": 5},
    "7 bits, largest for overflows": {"rounding": "stochastic", "seed": 3, "sr_bits": 7, "overflow": "saturate"},
}
"""Of segments that begin within the eight numbers of a block of random bits, and at its start."""
PLACE = Position((2, 3), (40, 50))
SERVED = {name: how for name, how in DRAWN.items() if name != "chunks of pairs"}


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Joins short sums as well, and lists those that were joined to the end."""
    ended, kept = [], segments.Joining.finished

    def finished(joined: segments.Joining, level: int = -1) -> Any:
        if level == -1:
            ended.append(1)
        return kept(joined, level)

    monkeypatch.setattr(segments, "WORTH_CALLS", 0)
    monkeypatch.setattr(segments.Joining, "finished", finished)
    return ended


NARROWER = {
    "single into half": chunked(5, "float32", "float16"),
    "half into bfloat16": chunked(6, mul_add("float16"), "bfloat16"),
    "tf32 pairs into e5m2": chunked(8, pairwise("tfloat32"), "float8_e5m2"),
    "stored": chunked(7, "float16", "float32").replace(reduction=(Reduction(Stage("float8_e4m3fn"), store=NARROW),)),
}


@pytest.mark.parametrize("how", NARROWER.values(), ids=NARROWER)
def test_sums_of_segments_that_are_wider_than_their_total(
    monkeypatch: pytest.MonkeyPatch, joins: list[int], how: Accumulator
) -> None:
    for length, specials in ((5, False), (23, True), (64, False)):
        (a, b), rule = operands(length, 21, specials), {"rounding": "toward_negative"} if specials else {}
        c = bits.encode(np.linspace(-2, 2, 21), how.partials)[0]
        same(both(monkeypatch, lambda a=a, b=b, r=rule: bits.matmul(a, b.T, "float16", how, **r)))
        same(both(monkeypatch, lambda a=a, b=b, c=c, r=rule: bits.vecdot(a, b, "float16", how, c, **r)))
    assert joins


@pytest.mark.parametrize("store", [None, NARROW], ids=["to the output", "to a store"])
def test_a_subnormal_that_counts_as_zero_keeps_its_sign_on_the_way_out(store: Stage | None) -> None:
    """-2^-9 of e4m3fnuz, which has no -0: under DAZ it is -0 in half, however segments' sums are put together."""
    how = fma("float32").replace(segment=2, reduction=(Reduction(Stage("float8_e4m3fnuz", daz=True), store=store),))
    found = bits.vecdot([0x9800], [0x3C00], "float16", how, out_format="float16")  # -2^-9 * 1
    joined = bits.join_segments([0xBB000000], "float16", how, k=1, out_format="float16")
    assert found == joined == (0x8000, 0)


def test_a_signalling_addend_that_is_read_in_another_format_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """c = 0x7D of e5m2 becomes half on its way, and quiet: in all ways, counted or not."""
    for name in ("LEAST_WORK", "LEAST_IN_ALL", "LEAST_LINE"):
        monkeypatch.setattr(unit_ways, name, 0)
    level = Reduction(Stage("float16", ftz=False), store=Stage("float8_e5m2", overflow="infinity", daz=True, ftz=False))
    how = Accumulator(
        name="t", running=Stage("float6_e3m2fn", overflow="saturate", daz=True), segment=2, reduction=(level,), daz=False,
        fixed=FixedPoint(4, 0, "wrap", "toward_zero"), result="float32", nan="nvidia",
    )  # fmt: skip
    pair = "float8_e4m3fn", Format("e2m8", exponent_bits=2, mantissa_bits=8, bias=17)
    environment = Environment(rounding="toward_positive", daz=True)
    a, b = [0x1, 0x82, 0x83, 0x8C, 0x90], [0x649, 0x2D3, 0x241, 0x643, 0x211]
    for count in (False, True):
        found = bits.vecdot(a, b, pair, how, 0x7D, environment=environment, count=count)
        assert found[:2] == (0x7FFFFFFF, 17)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("how", DRAWN.values(), ids=DRAWN)
def test_segments_and_chains_that_draw(
    monkeypatch: pytest.MonkeyPatch, joins: list[int], how: Accumulator, draw: dict[str, Any]
) -> None:
    for length, specials in ((5, False), (23, True), (64, False)):
        if isinstance(how.segments, int) and length < how.segments:
            continue
        a, b = operands(length, 21, specials)
        c = bits.encode(np.linspace(-2, 2, 21 * 21).reshape(21, 21), how.partials)[0]
        same(both(monkeypatch, lambda a=a, b=b: bits.matmul(a, b.T, "float16", how, **draw)))
        same(both(monkeypatch, lambda a=a, b=b, c=c: bits.matmul(a, b.T, "float16", how, c, **draw)))
        same(both(monkeypatch, lambda a=a, b=b, c=c: bits.vecdot(a, b, "float16", how, c[3], **draw)))
        same(both(monkeypatch, lambda a=a, b=b: bits.vecdot(a, b, "float16", how, position=Position(1000), **draw)))
        same(both(monkeypatch, lambda a=a, b=b: bits.matmul(a, b.T, "float16", how, position=PLACE, **draw)))
    assert how not in SERVED.values() or len(joins) > 5 or not all(available())


@pytest.mark.parametrize("shares", [True, False], ids=["drawn once", "for each"])
@pytest.mark.parametrize("chains", [2, 3, 8, 9, 16])
@pytest.mark.parametrize("multiplied", ["float16", "float8_e4m3fnuz"])
def test_chains_take_the_random_numbers_of_their_products(
    monkeypatch: pytest.MonkeyPatch, joins: list[int], chains: int, multiplied: str, shares: bool
) -> None:
    """As many as some blocks of random numbers hold, fewer, and more; of formats without a negative zero as well."""
    random, where = np.random.default_rng(chains), Position(5)
    monkeypatch.setattr(small, "product", lambda *_: None)
    if not shares:
        monkeypatch.setattr(joined, "in_one", lambda *_: None)
    for make, length in ((fma, 64), (mul_add, 97), (fma, 200)):
        how = make("float16").replace(chains=chains)
        a, b = (bits.encode(random.standard_normal(shape), multiplied)[0] for shape in ((21, length), (length, 33)))
        draw: dict[str, Any] = {"rounding": "stochastic", "seed": length, "stream": 2}
        same(both(monkeypatch, lambda a=a, b=b, h=how, d=draw: bits.matmul(a, b, multiplied, h, **d)))
        same(both(monkeypatch, lambda a=a, b=b, h=how, d=draw: bits.matmul(a, b, multiplied, h, position=where, **d)))
        same(both(monkeypatch, lambda a=a, b=b, h=how, d=draw: bits.vecdot(a[:20], b[:, :20].T, multiplied, h, **d)))
    assert len(joins) == (3 if shares else 9) or not all(available())


def test_chains_that_end_early_keep_negative_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills up shorter chains is not added: -2^-26 rounded to -0, and then +0, would be +0."""
    a = np.full((40, 5), bits.encode(-(2.0**-13), "float16")[0])
    b = np.full((5, 64), bits.encode(2.0**-13, "float16")[0])
    how = fma("float16").replace(chains=3)
    pair = both(monkeypatch, lambda: bits.matmul(a, b, "float16", how, rounding="stochastic", seed=3))
    same(pair)
    assert (pair[1][0] == 0x8000).any()


@pytest.mark.parametrize("make", [fma, mul_add])
def test_chains_of_which_some_hang_on_more_random_bits(
    monkeypatch: pytest.MonkeyPatch, joins: list[int], make: Callable[[str], Accumulator]
) -> None:
    """One rounding in 2^16 or so, of many: of a tile, of a line, and of a tile whose additions are counted."""
    random, how = np.random.default_rng(7), make("float8_e5m2").replace(chains=3)
    draw: dict[str, Any] = {"rounding": "stochastic", "seed": 11}
    a, b = (bits.encode(random.standard_normal(shape), "float16")[0] for shape in ((200, 60), (60, 256)))
    same(both(monkeypatch, lambda: bits.matmul(a, b, "float16", how, **draw)))
    same(tuple(x[:2] for x in both(monkeypatch, lambda: bits.matmul(a, b, "float16", how, count=True, **draw))))
    few = random.uniform(1, 2, (300, 16)) * 2.0 ** np.where(np.arange(16), -7, 12)  # next to nothing beside the first
    few, many = bits.encode(few, "float16")[0], np.full((16, 512), 0x3C00, np.uint16)
    how_many = how.replace(chains=16)  # of one product each: all roundings but theirs are those of the total
    same(both(monkeypatch, lambda: bits.matmul(few, many, "float16", how_many, **draw)))
    x, y = (bits.encode(random.standard_normal((50000, 60)), "float16")[0] for _ in range(2))
    same(both(monkeypatch, lambda: bits.vecdot(x, y, "float16", how, **draw)))
    assert len(joins) == 2 or not all(available())  # but the first, which is joined in its loop


def test_chains_keep_a_negative_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is next to nothing becomes -0 in each of them: 0x8000, INEXACT and UNDERFLOW."""
    a, b = np.full((21, 40), 0x0001, np.uint16), np.full((40, 21), 0x8001, np.uint16)
    how = fma("float16").replace(chains=3)
    found = both(monkeypatch, lambda: bits.matmul(a, b, "float16", how, rounding="stochastic", seed=1))
    same(found)
    assert set(found[0][0].reshape(-1).tolist()) == {0x8000}
    assert set(found[0][1].reshape(-1).tolist()) == {3}


FLUSHING: list[dict[str, Any]] = [
    {"daz": True},
    {"daz": True, "ftz": True, "rounding": "toward_negative"},
    {"daz": True, "rounding": "stochastic", "seed": 4},
]


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_segments_and_chains_that_flush(monkeypatch: pytest.MonkeyPatch, joins: list[int], how: Accumulator) -> None:
    """Numbers whose products, and sums of segments, are about as small as half's smallest normal number."""
    for length, rule in zip((24, 23, 64), FLUSHING, strict=True):
        random = np.random.default_rng(length)
        a, b = (bits.encode(random.standard_normal((21, length)) * 2.0**-8, "float16")[0] for _ in range(2))
        c = bits.encode(random.standard_normal((21, 21)) * 2.0**-14, how.partials)[0]
        c[:7] = bits.encode(random.integers(-3, 4, (7, 21)) * how.partials.smallest_subnormal, how.partials)[0]
        for start in (None, c):
            same(both(monkeypatch, lambda a=a, b=b, s=start, r=rule: bits.matmul(a, b.T, "float16", how, s, **r)))
        same(both(monkeypatch, lambda a=a, b=b, c=c, r=rule: bits.vecdot(a, b, "float16", how, c[:, 3], **r)))
    assert how == HOW["chunks of pairs"] or joins or not all(available())


LOW = Format("e2m3_low", exponent_bits=2, mantissa_bits=3, bias=8)
"""Whose smallest normal number is 2^-7."""
ABOVE = Format("e4m10", exponent_bits=4, mantissa_bits=10)
"""Of which that is a subnormal one."""
READ_AS_ZEROS: dict[str, tuple[Accumulator, dict[str, Any]]] = {
    "all": (chunked(5, "float16", "float32"), {"daz": True}),
    "all, flushed": (chunked(7, pairwise("float16"), "float16"), {"daz": True, "ftz": True, "rounding": "toward_zero"}),
    "chains": (mul_add("float16").replace(chains=3), {"daz": True, "overflow": "saturate"}),
    "stored": (HOW["two levels, stored"], {"daz": True}),
    "stored in a wider range": (
        chunked(5, "float16", "float16").replace(reduction=(Reduction(NARROW, store=Stage("bfloat16")),)),
        {"daz": True},
    ),
    "errors": (chunked(6, compensated("float16"), "float32"), {"daz": True}),
    "totals alone": (chunked(5, "float16", "float16").replace(reduction=(Reduction(Stage("float16", daz=True)),)), {}),
    "segments alone": (
        chunked(5, "float16", "float16").replace(reduction=(Reduction(Stage("float16", daz=False)),)),
        {"daz": True},
    ),
    "what is subnormal above alone": (chunked(4, LOW, ABOVE), {"daz": True}),
    "what is subnormal below alone": (chunked(4, "float16", "float32"), {"daz": True, "tininess": "before"}),
}


@pytest.mark.parametrize(("how", "options"), READ_AS_ZEROS.values(), ids=READ_AS_ZEROS)
def test_sums_that_are_read_as_zeros(
    monkeypatch: pytest.MonkeyPatch, how: Accumulator, options: dict[str, Any]
) -> None:
    """By some stages or by all: numbers whose sums are subnormal, or just not; one output and some."""
    random, multiplied = np.random.default_rng(81), "float16"
    for outputs, length in ((1, 64), (3, 200), (21, 33)):
        a = bits.encode(random.standard_normal((outputs, length)) * 2.0**-8, multiplied)[0]
        b = bits.encode(random.standard_normal((outputs, length)) * 2.0**-7, multiplied)[0]
        x = bits.encode(random.standard_normal((outputs, length)) * 2.0**-14, multiplied)[0]
        c = bits.encode(random.integers(-9, 10, outputs) * how.partials.tiny / 4.0, how.partials)[0]
        same(both(monkeypatch, lambda a=a, b=b: bits.vecdot(a, b, multiplied, how, **options)))
        same(both(monkeypatch, lambda a=a, b=b, c=c: bits.vecdot(a, b, multiplied, how, c, **options)))
        for codes in (a, x):
            same(both(monkeypatch, lambda x=codes: bits.sum(x, multiplied, how, 1, **options)))
            if how.segments is None:  # of segments that do not hang on the length
                same(both(monkeypatch, lambda x=codes: bits.cumsum(x, multiplied, how, 1, **options)))


def test_a_lone_sum_that_reads_zeros_needs_no_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes twenty times longer."""
    called: list[Any] = []
    monkeypatch.setattr(plain, "run", lambda *_: called.append(1))
    x, _ = operands(3000, 1, False)
    for how in (chunked(64, "float16", "float32"), fma("float16").replace(chains=4)):
        bits.sum(x, "float16", how, 1, daz=True)
        bits.cumsum(x, "float16", how, 1, daz=True)
    assert not called or not all(available())


COUNTED: list[dict[str, Any]] = [
    {"seed": 1},
    {"seed": 2, "rounding": "toward_zero"},
    {"seed": 3, "rounding": "stochastic"},
    {"seed": 4, "overflow": "saturate"},
    {"seed": 5, "overflow": "nan", "daz": True},
]


def same_counts(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> None:
    """Of the faster way, its parts put together in their loop if it does that, and apart, and of the plain loop."""
    quick, plain = both(monkeypatch, call)
    monkeypatch.setattr(elementwise, "FAST", True)
    with monkeypatch.context() as patch:
        patch.setattr(joined, "in_one", lambda *_: None)
        apart = call()
    for found in (quick, apart):
        same((found[:2], plain[:2]))
        assert found[2].additions == plain[2].additions
        for name in ("overflowed", "inexact", "swamped", "smallest", "largest"):
            np.testing.assert_array_equal(getattr(found[2], name), getattr(plain[2], name), name)


@pytest.mark.parametrize("how", DRAWN.values(), ids=DRAWN)
def test_segments_and_chains_that_are_counted(
    monkeypatch: pytest.MonkeyPatch, joins: list[int], how: Accumulator
) -> None:
    for length, outputs, rule in zip((5, 23, 64, 64, 24), (21, 32, 40, 21, 32), COUNTED, strict=True):
        if isinstance(how.segments, int) and length < how.segments:
            continue
        a, b = operands(length, outputs, False)
        a[1:3] = bits.mul(a[1:3], np.uint16(0x7000), "float16")[0]  # overflows
        b[5] = bits.mul(b[5], np.uint16(0x1400), "float16")[0]  # is swamped
        c = bits.encode(np.linspace(-2, 2, outputs**2).reshape(outputs, outputs), how.partials)[0]
        for start in (None, c):
            same_counts(
                monkeypatch,
                lambda a=a, b=b, s=start, r=rule: bits.matmul(a, b.T, "float16", how, s, count=True, **r),
            )
        x, y = (np.tile(operand, (9, 1)) for operand in (a, b))
        x[7, 2] = x[30, 0] = 0x7C00  # two that do not go with the others
        for start in (None, c[:9].reshape(-1)):
            same_counts(
                monkeypatch,
                lambda a=x, b=y, s=start, r=rule: bits.vecdot(a, b, "float16", how, s, count=True, **r),
            )
    assert how not in SERVED.values() or len(joins) > 2 or not all(available())


def test_matrix_times_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = operands(64, 21, True)
    for how in (*HOW.values(), pairwise("float16")):
        same(both(monkeypatch, lambda how=how: bits.matmul(a, b[:1].T, "float16", how)))
        same(both(monkeypatch, lambda how=how: bits.matmul(a[1:2], b.T, "float16", how)))


def test_many_short_segments_are_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """65 536 sums of one product are one call of the loop."""
    calls = []
    kept = lines.run
    monkeypatch.setattr(lines, "run", lambda *arguments: calls.append(1) or kept(*arguments))
    a = np.full((1, 2**16), 0x3C00, np.uint16)
    codes, flags = bits.vecdot(a, a, "float16", chunked(1, "float16", "float16"))
    assert (codes.tolist(), flags.tolist()) == ([0x6800], [1])
    assert len(calls) == 1


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lists the sums whose parts the faster way adds up outside their loop."""
    found, kept = [], segments.run

    def run(*given: Any) -> Any:
        done = kept(*given)
        if done is not None:
            found.append(1)
        return done

    monkeypatch.setattr(segments, "run", run)
    return found


ONE_LOOP = {
    "fma": fma("float16"),
    "products rounded": mul_add("float16"),
    "pairs": pairwise("float16"),
    "pairs of exact products": pairwise("float32"),
    "bfloat16": fma("bfloat16"),
    "float32": fma("float32"),
    "tf32": mul_add("tfloat32"),
}
"""In each order, of each family."""
LEVELS: dict[str, tuple[Callable[[Accumulator], Stage], dict[str, Any]]] = {
    "float32": (lambda how: Stage("float32"), {}),
    "the same": (lambda how: how.running, {"rounding": "toward_negative"}),
    "float32 up": (lambda how: Stage("float32", rounding="toward_positive"), {}),
    "to odd": (lambda how: Stage("float32", rounding="to_odd"), {"rounding": "nearest_away"}),
    "the same, flushed": (lambda how: how.running, {"daz": True, "ftz": True}),
    "the same, saturating": (lambda how: how.running, {"overflow": "saturate", "rounding": "toward_zero"}),
    "flushed below": (lambda how: Stage("float32", daz=False), {"daz": True}),
}
FEW, LAST, UNEVEN = {"segment": 7}, {"segment": 64}, {"segments": (1, 30, 2, 40)}
"""Products of segments; all of them are not as long, and some no multiple of anything."""


@pytest.mark.parametrize("cut", [FEW, LAST, UNEVEN], ids=str)
@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("inner", ONE_LOOP.values(), ids=ONE_LOOP)
def test_segments_of_a_grid_are_one_call_of_one_loop(
    monkeypatch: pytest.MonkeyPatch, apart: list[int], inner: Accumulator, level: Any, cut: dict[str, Any]
) -> None:
    """Ordinary numbers, those next to half's smallest, and those whose sums overflow, both ways; with counts, and without."""
    stage, rule = level[0](inner), level[1]
    how = inner.replace(reduction=(Reduction(stage),), **cut)
    monkeypatch.setattr(small, "product", lambda *_: None)
    random = np.random.default_rng(7)
    for scale in (1.0, 2.0**-10, 2.0**7):
        a, b = (bits.encode(random.standard_normal(shape) * scale, "float16")[0] for shape in ((19, 73), (73, 35)))
        c = bits.encode(random.standard_normal((19, 35)) * min(scale, 1.0), how.partials)[0]
        for start in (None, c):
            same(both(monkeypatch, lambda a=a, b=b, c=start: bits.matmul(a, b, "float16", how, c, **rule)))
            assert not apart or not all(available())
        same_counts(monkeypatch, lambda a=a, b=b, c=c: bits.matmul(a, b, "float16", how, c, count=True, **rule))
        apart.clear()


@pytest.mark.parametrize("make", [fma, mul_add])
@pytest.mark.parametrize("rule", [{}, {"rounding": "toward_negative"}, {"daz": True}], ids=str)
def test_chains_of_a_grid_are_one_call_of_one_loop(
    monkeypatch: pytest.MonkeyPatch, apart: list[int], make: Callable[[str], Accumulator], rule: dict[str, Any]
) -> None:
    """More chains than products, and sums that cancel, whose zeros have the sign of the direction; c comes last."""
    monkeypatch.setattr(small, "product", lambda *_: None)
    random = np.random.default_rng(8)
    for chains, length, scale in ((2, 6, 1.0), (3, 50, 2.0**-9), (9, 4, 1.0), (16, 64, 8.0)):
        how = make("float16").replace(chains=chains)
        a, b = (
            bits.encode(random.standard_normal(shape) * scale, "float16")[0] for shape in ((9, length), (length, 20))
        )
        a[:, 1::2] = a[:, ::2][:, : length // 2] ^ 0x8000 if chains == 2 else a[:, 1::2]
        b[1::2] = b[::2][: length // 2] if chains == 2 else b[1::2]
        c = bits.encode(random.standard_normal((9, 20)) * scale, "float16")[0]
        for start in (None, c):
            same(both(monkeypatch, lambda a=a, b=b, c=start, h=how: bits.matmul(a, b, "float16", h, c, **rule)))
            assert not apart or not all(available())
        same_counts(monkeypatch, lambda a=a, b=b, c=c, h=how: bits.matmul(a, b, "float16", h, c, count=True, **rule))
        apart.clear()


def test_a_later_chain_alone_may_raise_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 and then 2^-26, which is rounded to 0 or to 2^-24: 1 with INEXACT and UNDERFLOW, or the same after an addition that rounds as well."""
    a, b = np.array([[0x3C00, 0x0800]] * 20, np.uint16), np.array([[0x3C00] * 20, [0x0800] * 20], np.uint16)
    how = fma("float16").replace(chains=2)
    for rule in ({"rounding": "stochastic", "seed": 1}, {"rounding": "toward_negative"}):
        found = both(monkeypatch, lambda r=rule: bits.matmul(a, b, "float16", how, **r))
        same(found)
        assert set(found[0][1].reshape(-1).tolist()) == {3}


def test_totals_that_overflow_where_the_largest_number_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^124 * 1.5 twelve times, toward zero: 0x7F7FFFFF, though no segment is rounded that way."""
    how = fma("float32").replace(segment=1, reduction=(Reduction(Stage("float32", rounding="toward_zero")),))
    a, b = np.full((20, 12), 0x5DC0, np.uint16), np.full((12, 20), 0x5F80, np.uint16)  # 1.5 * 2^60, 2^64
    found = both(monkeypatch, lambda: bits.matmul(a, b, "bfloat16", how))
    same(found)
    assert set(found[0][0].reshape(-1).tolist()) == {0x7F7FFFFF}


def test_segments_that_overflow_though_no_product_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 800 sixty-four times is infinite in half: 0x7F800000."""
    a, b = np.full((40, 128), 0x5800, np.uint16), np.full((128, 64), 0x5640, np.uint16)
    found = both(monkeypatch, lambda: bits.matmul(a, b, "float16", chunked(64, mul_add("float16"), "float32")))
    same(found)
    assert set(found[0][0].reshape(-1).tolist()) == {0x7F800000}


def test_what_is_joined_apart() -> None:
    """Stages that do not hold the sums of segments, levels above levels, stores, and overflows that are NaN, or differ."""
    half, usual = fma("float16"), Settings()
    for how, rule, served in (
        (chunked(8, "float16", "float32"), usual, True),
        (chunked(8, "float32", "float16"), usual, False),
        (HOW["two levels"], usual, False),
        (HOW["a stored level"], usual, False),
        (chunked(8, half, "float32"), usual.replace(overflow=Overflow.NAN), False),
        (half.replace(segment=8, reduction=(Reduction(Stage("float32", overflow="saturate")),)), usual, False),
    ):
        planned = program(how, float16, float16, how.partials, rule, 64)
        assert (joined.in_one(planned, rule, False) is not None) == (served and all(available()))


def test_scales_that_are_not_there_are_not_asked_for() -> None:
    """An accumulator that would multiply sums of segments by scales, of operands without any: 64 products of 1 are 64.0."""
    for inner, fmt in ((fma("float32"), "float16"), (tensor_core("H100", input="float8_e4m3fn"), "float8_e4m3fn")):
        how = chunked(32, inner, "float32", scaling="scales_fused")
        ones = np.full((64, 64), Format.from_name(fmt).one_code, Format.from_name(fmt).dtype)
        assert {x.tobytes() for x in bits.matmul(ones, ones, fmt, how)[0].reshape(-1)} == {
            np.uint32(0x42800000).tobytes()
        }
