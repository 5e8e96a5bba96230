"""Faster ways for products of operands with scales: the same codes and flags as the loop that takes scales."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from softfloat import ROSTER, BlockFormat, Environment, Flags, Format, bits
from softfloat.accumulators import (
    Accumulator,
    Alignment,
    Reduction,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    tensor_core,
)
from softfloat.bits import BlockCodes
from softfloat.bits.blocks import sums as scaled_sums
from softfloat.engine import available, block_units, elementwise, joined, scaled_segments, segments, small, unit_ways

E2M1, E4M3, E5M2, E2M3, E8M0, F16, BF16, F32 = (
    ROSTER[name]
    for name in (
        "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float8_e8m0fnu", "float16", "bfloat16", "float32",
    )
)  # fmt: skip
CORE = tensor_core("B200", input="float4_e2m1fn", instruction="mxf4nvf4")


def repeated(examples: int) -> Any:
    """The same examples in each run."""

    def decorate(check: Any) -> Any:
        quiet = settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        return seed(7)(quiet(check))

    return decorate


def drawn(fmt: Any, shape: tuple[int, ...], random: np.random.Generator, kind: str) -> np.ndarray:
    """Any codes; codes around 1, some of them zero; or those of normally distributed numbers."""
    if kind == "any":
        return random.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
    near = np.clip(fmt.one_code + random.integers(-(1 << fmt.mantissa_bits) * 3, 5, shape), 0, fmt.max_code)
    signed = near | np.where(random.random(shape) < 0.5, fmt.sign_bit, 0)
    return np.where(random.random(shape) < 0.2, 0, signed).astype(fmt.dtype)


def operand(fmt: Any, scale: Any, block: int, shape: tuple[int, int], axis: int, number: int, kinds: Any) -> BlockCodes:
    random = np.random.default_rng(number)
    blocks = tuple(-(-n // block) if i == axis else n for i, n in enumerate(shape))
    described = BlockFormat("drawn", element=fmt, scale=scale, block=block)
    return BlockCodes(drawn(fmt, shape, random, kinds[0]), drawn(scale, blocks, random, kinds[1]), described, axis=axis)


def both(
    call: Any, monkeypatch: pytest.MonkeyPatch, module: Any = scaled_sums, name: str = "_faster"
) -> tuple[bool, Any, Any]:
    """(whether a faster way, a module's function, served the call, what it gave, what the loop gives)."""
    served = []
    faster = getattr(module, name)

    def watched(*arguments: Any) -> Any:
        found = faster(*arguments)
        served.append(found is not None)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(module, name, watched)
        quick = call()
        patch.setattr(module, name, lambda *_: None)
        plain = call()
    return bool(served) and all(served), quick, plain


def by_unit(call: Any, monkeypatch: pytest.MonkeyPatch, permuted: bool = False) -> tuple[bool, Any, Any]:
    """The same, of a loop that is written for the accumulator: operands laid out from their codes, unless they are `permuted`, and spread out."""
    with monkeypatch.context() as patch:
        patch.setattr(unit_ways, "LEAST_WORK", 0)
        patch.setattr(unit_ways, "WORTH_LOOPS", 0)
        served, quick, _ = both(call, monkeypatch, block_units, "run")
        patch.setattr(block_units, "run", lambda *_: None)
        also_served, spread_out, plain = both(call, monkeypatch, block_units, "spread")
        same(quick, spread_out)
        assert served == (also_served and not permuted)
    return also_served, quick, plain


def same(quick: Any, plain: Any) -> None:
    for one, other in zip(quick, plain, strict=True):
        np.testing.assert_array_equal(one, other)


kinds = st.tuples(st.sampled_from(("near", "any")), st.sampled_from(("near", "near", "any")))
numbers = st.integers(0, 2**32 - 1)


@repeated(60)
@given(st.sampled_from((E4M3, E8M0)), st.sampled_from((16, 32)), st.integers(1, 150), numbers, kinds, st.booleans())
def test_exact_groups(scale: Any, block: int, length: int, number: int, kind: Any, addend: bool) -> None:
    """NVIDIA's product of 4-bit elements, in every length; scales of every size, zeros and NaN among them."""
    a = operand(E2M1, scale, block, (5, length), 1, number, kind)
    b = operand(E2M1, scale, block, (length, 3), 0, number + 1, kind)
    random = np.random.default_rng(number)
    c = (random.normal(size=(5, 3)) * 2.0 ** random.integers(-30, 30)).astype(np.float32).view(np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        _, quick, plain = by_unit(lambda: bits.matmul_blocks(a, b, CORE, c if addend else None), patch)
    same(quick, plain)


def test_exact_groups_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary operands, with and without scales of tensors; whole pieces, and rows that no piece fills."""
    x = np.random.default_rng(1).normal(size=(700, 96)).astype(np.float32)
    y = np.random.default_rng(2).normal(size=(96, 130)).astype(np.float32)
    for options in ({}, {"tensor_scale": None, "recipe": "torchao"}):
        a, b = (bits.quantize(v, "nvfp4", axis=axis, **options)[0] for v, axis in ((x, 1), (y, 0)))
        served, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, CORE), monkeypatch)
        assert served
        same(quick, plain)


@pytest.mark.parametrize("name", ["nvfp4", "mxfp8_e4m3"])
def test_many_products_of_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, of which one operand or the other may be the same for all; squares; products that fill no block."""
    how = CORE if name == "nvfp4" else tensor_core("B200", input="float8_e4m3fn", instruction="mxf8f6f4")
    random = np.random.default_rng(6)
    for first, second, block in (
        ((3, 5, 40), (3, 40, 9), None), ((3, 5, 40), (40, 9), None), ((1, 9, 32), (4, 32, 5), None), ((20, 48), (48, 24), (16, 16)),
    ):  # fmt: skip
        x, y = (random.normal(size=shape).astype(np.float32) for shape in (first, second))
        a = bits.quantize(x, name, axis=-1)[0]
        b = bits.quantize(y, name, axis=-2, block=block)[0]
        c = random.normal(size=(*np.broadcast_shapes(first[:-2], second[:-2]), first[-2], second[-1])).astype(
            np.float32
        )
        for options in ({}, {"c": c.view(np.uint32)}):
            served, quick, plain = by_unit(lambda a=a, b=b, o=options: bits.matmul_blocks(a, b, how, **o), monkeypatch)
            assert served
            same(quick, plain)


def test_tiny_scales_beside_what_fills_blocks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros at the end have exponents of their own, which may be the largest of a block."""
    for element, how in ((E2M1, CORE), (E4M3, tensor_core("B200", input="float8_e4m3fn", instruction="mxf8f6f4"))):
        fmt = BlockFormat("tiny", element=element, scale=E8M0, block=16 if element == E2M1 else 32)
        random = np.random.default_rng(2)
        for code in (0, 3, 40, 60, 64, 70):
            for length in (3, 16, 33, 70):
                blocks = -(-length // fmt.block)  # type: ignore[operator]
                x, y = random.integers(0, 1 << element.bits, (2, 4, length)) & (element.max_code | element.sign_bit)
                x, y = (np.where(v & (element.sign_bit - 1) > element.max_code, 1, v) for v in (x, y))
                a = BlockCodes(x, np.full((4, blocks), code), fmt)
                b = BlockCodes(y.T, np.full((blocks, 4), 127), fmt, axis=0)
                _, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, how), monkeypatch)  # noqa: B023
                same(quick, plain)


CORE8 = tensor_core("B200", input="float8_e4m3fn", instruction="mxf8f6f4")


@pytest.mark.parametrize(
    "how",
    [
        CORE8,
        CORE8.replace(daz=True),
        CORE8.replace(order=tuple(reversed(range(64)))),
        CORE8.replace(alignment=Alignment(25, zeros=3)),
    ],
    ids=["plain", "daz", "backwards", "large zeros"],
)
def test_subnormal_elements(how: Accumulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their exponent is the format's least; whole blocks of them, zeros among them, and orders that go from block to block."""
    random = np.random.default_rng(7)
    fmt = BlockFormat("mx", element=E4M3, scale=E8M0, block=32)
    for length in (64, 70):
        blocks = -(-length // 32)
        x = (
            random.integers(0, 1 << E4M3.mantissa_bits, (9, length))
            | random.integers(0, 2, (9, length)) * E4M3.sign_bit
        )
        x[4:, ::3] = E4M3.one_code
        y = drawn(E4M3, (length, 5), random, "near")
        a = BlockCodes(x, random.integers(118, 136, (9, blocks)), fmt)
        b = BlockCodes(y, random.integers(118, 136, (blocks, 5)), fmt, axis=0)
        permuted = len(how.order) > 1
        served, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, how), monkeypatch, permuted)
        assert served
        same(quick, plain)


def test_terms_of_too_many_bits_are_left_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of products of elements, times scales of seven bits each, need more than float64 has."""
    fine = Format("fine", exponent_bits=2, mantissa_bits=6, nan="none", signed=False)
    fmt = BlockFormat("fine", element=E4M3, scale=fine, block=16)
    how = CORE.replace(inputs=(), alignment=Alignment(12, group=16, zeros=-126))
    random = np.random.default_rng(5)
    a = BlockCodes(drawn(E4M3, (4, 64), random, "near"), random.integers(1, 256, (4, 4)), fmt)
    b = BlockCodes(drawn(E4M3, (64, 3), random, "near"), random.integers(1, 256, (4, 3)), fmt, axis=0)
    served, quick, plain = by_unit(lambda: bits.matmul_blocks(a, b, how), monkeypatch)
    assert not served
    same(quick, plain)


def test_sums_beyond_normal_numbers_are_left_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (57, 254):
        a = BlockCodes(np.full((1, 16), 7), [[code]], BlockFormat("mx", element=E2M1, scale=E8M0, block=16))
        b = BlockCodes(np.full((16, 1), 7), [[code]], BlockFormat("mx", element=E2M1, scale=E8M0, block=16), axis=0)
        served, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, CORE), monkeypatch)
        assert not served
        same(quick, plain)


def test_negative_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = BlockFormat("nv", element=E2M1, scale=E4M3, block=16)
    for length in (2, 16, 17, 66):
        a = BlockCodes(np.full((1, length), 8), np.full((1, -(-length // 16)), 0x38), fmt)
        b = BlockCodes(np.full((length, 1), 2), np.full((-(-length // 16), 1), 0x38), fmt, axis=0)
        served, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, CORE, [[0x80000000]]), monkeypatch)
        assert served
        same(quick, plain)


ALIGNED = Alignment(30, group=8, zeros=-126)
TRUNCATED = CORE.running


@pytest.mark.parametrize(
    "how",
    [
        CORE.replace(block=32, alignment=ALIGNED),
        CORE.replace(block=16, alignment=Alignment(12, group=16, zeros=-20)),
        CORE.replace(block=16, alignment=Alignment(12, group=16, zeros=9)),
        CORE.replace(block=16, alignment=Alignment(35, group=16, zeros=-126, cut="to_odd")),
        CORE.replace(block=16, alignment=Alignment(35, group=16)),
        CORE.replace(running=Stage(F32, "toward_zero")),
        CORE.replace(running=Stage(BF16, "toward_zero", "infinity", daz=False, ftz=False)),
        CORE.replace(chains=2),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [("near", "near"), ("any", "near")])
def test_other_accumulators_of_groups(how: Accumulator, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are served, others are not; the results are the loop's. A block that k leaves short is filled up with zeros."""
    for number, length in enumerate((80, 80, 70, 41)):
        a = operand(E2M1, E4M3, 16, (4, length), 1, number, kind)
        b = operand(E2M1, E4M3, 16, (length, 3), 0, number + 9, kind)
        _, quick, plain = by_unit(lambda a=a, b=b: bits.matmul_blocks(a, b, how), monkeypatch)
        same(quick, plain)


HOWS = [
    fma("float32"), fma("bfloat16"), exact("float32"), mul_add("float16"), pairwise("float32"), amp("half"), amp("float"),
    chunked(8, "bfloat16", "float32"), exact("float16").replace(inputs=(E4M3,)),
]  # fmt: skip
MODES = ("nearest_even", "toward_negative", "to_odd", "stochastic")


@repeated(60)
@given(
    st.sampled_from(HOWS), st.sampled_from((E2M1, E4M3, E5M2, E2M3)), st.sampled_from((E8M0, E4M3)), st.integers(1, 70), numbers,
    kinds, st.sampled_from(MODES), st.booleans(), st.booleans(),
)  # fmt: skip
def test_values_without_scales(
    how: Accumulator, fmt: Any, scale: Any, length: int, number: int, kind: Any, mode: str, addend: bool, paired: bool
) -> None:
    fmt = E4M3 if how.inputs == (E4M3,) else fmt
    if how.inputs and fmt not in how.inputs:
        how = how.replace(inputs=())
    a = operand(fmt, scale, 16, (4, length), 1, number, kind)
    b = operand(fmt, scale, 16, (4, length) if paired else (length, 3), int(paired), number + 1, kind)
    c = np.random.default_rng(number).normal(size=(4,) if paired else (4, 3))
    environment = Environment(rounding=mode, seed=number, sr_bits=9)  # whose settings some accumulators fix
    options: dict[str, Any] = {"environment": environment, "stream": 3, "out_format": how.partials}
    if addend:
        options["c"] = bits.encode(c, how.partials)[0]
    function = bits.vecdot_blocks if paired else bits.matmul_blocks
    with pytest.MonkeyPatch.context() as patch:
        served, quick, plain = both(lambda: function(a, b, how, **options), patch)
    same(quick, plain)
    flushes = any(x.daz for x in (how.product, how.running, how.store) if x is not None)
    if kind == ("near", "near") and not flushes:
        assert served


def test_flags_any_and_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).normal(size=(4, 64)).astype(np.float32)
    a, b = bits.quantize(x, "nvfp4", tensor_scale=None, recipe="torchao")[0], bits.quantize(
        x.T, "nvfp4", axis=0, tensor_scale=None, recipe="torchao"
    )[0]  # fmt: skip
    for how in (CORE, fma("float32")):
        out = np.empty((4, 4), np.uint32)
        way = by_unit if how is CORE else both
        served, quick, plain = way(lambda how=how, out=out: bits.matmul_blocks(a, b, how, flags="any"), monkeypatch)
        assert served
        same(quick, plain)
        into, raised = bits.matmul_blocks(a, b, how, flags="any", out=out)
        assert into is out
        np.testing.assert_array_equal(out, plain[0])
        assert raised == plain[1]


@pytest.mark.parametrize(
    "options", [{"daz": True}, {"environment": Environment(overrides={"float32": Environment(daz=True)})}]
)
def test_flushed_operands_are_left_to_the_loop(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subnormal element counts as zero there, and is none with its scale."""
    fmt = BlockFormat("one", element=E4M3, scale=E8M0, block=4)
    a = BlockCodes([[0x01, 0x38]], [[0x90]], fmt)
    b = BlockCodes([[0x38], [0x38]], [[0x90]], fmt, axis=0)
    served, quick, plain = both(lambda: bits.matmul_blocks(a, b, fma("float32"), **options), monkeypatch)
    assert not served
    same(quick, plain)


UNKNOWN: dict[str, dict[str, Any]] = {
    "block_sum": {"block_sum": Stage("float32")},
    "scale_exponent": {"scale_exponent": 1},
    "keeps_zero_sign": {"keeps_zero_sign": True},
    "unsigned_zeros": {"unsigned_zeros": True},
    "positive_zeros": {"positive_zeros": False},
    "store": {"store": Stage("float32"), "store_every": 64},
    "least": {"least": -10},
    "halves": {"halves": True, "includes_addend": False},
    "sum": {"sum": 30},
    "sum and addend": {"sum": 30, "addend": 30, "drop_addend_below": 3},
    "cut": {"cut": "to_odd"},
}
"""What an accumulator of groups may have beside."""
REFUSED = {"block_sum", "keeps_zero_sign", "unsigned_zeros", "halves", "sum", "sum and addend"}
"""What no accumulator has beside groups that the running sum is one term of."""


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_fields_beside_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Served or not, the results are those of the loop."""
    fields = UNKNOWN[name]

    def changed() -> Accumulator:
        if set(fields) & {field.name for field in dataclasses.fields(Alignment)}:
            return CORE.replace(alignment=Alignment(35, **({"group": 16, "zeros": -126} | fields)))
        return CORE.replace(**fields)

    if name in REFUSED:
        with pytest.raises(ValueError, match=r"need|come together|must be None"):
            changed()
        return
    how = changed()
    assert how != CORE
    a = operand(E2M1, E4M3, 16, (4, 80), 1, 1, ("near", "near"))
    b = operand(E2M1, E4M3, 16, (80, 3), 0, 2, ("near", "near"))
    _, quick, plain = by_unit(lambda: bits.matmul_blocks(a, b, how), monkeypatch)
    same(quick, plain)


# -- segments that are multiplied by scales --------------------------------------------------------------------------

HOPPER = tensor_core("H100", input="float8_e4m3fn")
ORDERS = ("scales_fused", "first_fused", "second_fused", "scales_added")


def sections(inner: Accumulator, order: str) -> Accumulator:
    """Sums of segments of 16, scaled, in two sections that are added in bfloat16."""
    above = Reduction(Stage("bfloat16"))
    return inner.replace(segments=4, reduction=(Reduction(Stage("float32"), sections=2, scaling=order), above))


@repeated(40)
@given(
    st.sampled_from(ORDERS),
    st.sampled_from([fma("float32"), fma("bfloat16")]),
    st.booleans(),
    st.sampled_from([E8M0, F32, BF16]),
    st.sampled_from([(9, 40, 12), (16, 64, 16), (3, 17, 33)]),
    st.sampled_from(["near", "any"]),
    st.sampled_from(["near", "any"]),
    st.booleans(),
    st.sampled_from([{}, {"rounding": "toward_negative"}, {"ftz": True}, {"daz": True}, {"overflow": "saturate"}]),
    st.integers(0, 2**32),
)
def test_scaled_segments(
    order: str,
    inner: Accumulator,
    sectioned: bool,
    scale: Any,
    shape: Any,
    kind: str,
    of_scales: str,
    addend: bool,
    options: Any,
    number: int,
) -> None:
    how = sections(inner, order) if sectioned else chunked(16, inner, "float32", scaling=order)
    (rows, length, columns), random = shape, np.random.default_rng(number)
    length = 64 if sectioned else length  # whose sections are of whole blocks
    a = operand(E4M3, scale, 16, (rows, length), 1, number, (kind, of_scales))
    b = operand(E4M3, scale, 16, (length, columns), 0, number + 1, (kind, of_scales))
    c = drawn(how.partials, (rows, columns), random, kind) if addend else None
    with pytest.MonkeyPatch.context() as patch:
        _, quick, plain = both(
            lambda: bits.matmul_blocks(a, b, how, c, **options), patch, scaled_segments, "scaling_of"
        )
    same(quick, plain)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", [E8M0, F32], ids=str)
def test_scaled_segments_of_a_tensor_core(scale: Any, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of fp8_blocks and deepseek_v3, by the loops of units: segments of 128 and a last one that is shorter."""
    a, b = (
        operand(E4M3, scale, 128, shape, axis, 3, ("near", "near")) for shape, axis in (((24, 300), 1), ((300, 40), 0))
    )
    how = chunked(128, HOPPER, "float32", scaling=order)
    with monkeypatch.context() as patch:
        runs: list[Any] = []
        run = segments.run
        patch.setattr(segments, "run", lambda *arguments: runs.append(run(*arguments)) or runs[-1])
        patch.setattr(joined, "in_one", lambda *_: None)
        apart = bits.matmul_blocks(a, b, how)
        assert [x is not None for x in runs] == [True]
    served, quick, plain = both(lambda: bits.matmul_blocks(a, b, how), monkeypatch, scaled_segments, "scaling_of")
    assert served
    same(quick, plain)
    same(apart, plain)


UNITS = {
    "H100": chunked(128, HOPPER, "float32"),
    "H100, halves": chunked(32, tensor_core("H100", input="float16"), "float32"),
    "B200": chunked(64, tensor_core("B200", input=E4M3, instruction="mxf8f6f4"), "float32"),
    "exact": chunked(16, exact("float32").replace(block=4), "float32"),
    "amp": chunked(64, amp("float"), "float32"),
}


def in_one_and_apart(call: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, Any, Any]:
    """(whether segments were added up in the loop that sums them, what the call gave, what it gives of segments one by one)."""
    runs: list[Any] = []
    run = segments.run
    with monkeypatch.context() as patch:
        patch.setattr(segments, "run", lambda *arguments: runs.append(run(*arguments)) or runs[-1])
        quick = call()
        one = not runs
        patch.setattr(joined, "in_one", lambda *_: None)
        return one, quick, call()


SPREADS = {"near": 1.0, "any": 1.0, "small": 2.0**-65, "tiny": 2.0**-64, "subnormal": 2.0**-130, "large": 2.0**63}
"""Of scales."""


@pytest.mark.parametrize("scales", [None, "scales_fused", "first_fused", "second_fused"], ids=str)
@pytest.mark.parametrize("addend", [False, True], ids=["", "c"])
@pytest.mark.parametrize("name", UNITS)
def test_segments_of_units_in_one_loop(
    name: str, addend: bool, scales: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums are added up in the same loop where all is ordinary: the bits of segments one by one, and of the plain loop."""
    how, random = UNITS[name], np.random.default_rng(5)
    how = how.replace(reduction=(dataclasses.replace(how.reduction[0], scaling=scales),))
    fmt = next(iter(how.inputs), F16)
    if scales and fmt.bits > 8:
        fmt = E4M3 if not how.inputs else fmt
    monkeypatch.setattr(unit_ways, "LEAST_WORK", 0)
    served = []
    for shape, kind in itertools.product(((24, 300, 40), (7, 150, 33), (5, 16, 16)), SPREADS):
        rows, length, columns = shape
        near = "any" if kind == "any" else "near"
        a, b = drawn(fmt, (rows, length), random, near), drawn(fmt, (length, columns), random, near)
        if kind in ("tiny", "subnormal"):  # products of scales are tiny, and sums times them are not
            a, b = (np.where(x & (fmt.sign_bit - 1), x + (4 << fmt.mantissa_bits), x).astype(fmt.dtype) for x in (a, b))
        c = drawn(F32, (rows, columns), random, near) if addend else None
        if c is not None and kind == "small":
            c[rows // 2, columns // 2] = 5  # subnormal
        if scales:
            described = BlockFormat("drawn", element=fmt, scale=F32, block=how.segment)
            grids = [(rows, -(-length // how.segment)), (-(-length // how.segment), columns)]
            x, y = ((random.random(grid) + 0.5).astype(np.float32) * np.float32(SPREADS[kind]) for grid in grids)
            y = y if kind != "subnormal" else np.full_like(y, 2.0**20)
            x[0, 0], y[-1, 0] = 0.0, 3.0
            first = BlockCodes(a, x.view(np.uint32), described, axis=1)
            second = BlockCodes(b, y.view(np.uint32), described, axis=0)

            def call(first: Any = first, second: Any = second, c: Any = c) -> Any:
                return bits.matmul_blocks(first, second, how, c)
        else:

            def call(a: Any = a, b: Any = b, c: Any = c) -> Any:
                return bits.matmul(a, b, fmt, how, c)

        with monkeypatch.context() as patch:
            patch.setattr(small, "product", lambda *_: None)
            one, quick, apart = in_one_and_apart(call, monkeypatch)
        same(quick, call())
        served.append((kind, one))
        same(quick, apart)
        with monkeypatch.context() as patch:
            patch.setattr(elementwise, "FAST", False)
            same(quick, call())
    assert (("near", True) in served) == available()[0]
    left = {"subnormal", "large", *(("tiny",) if scales == "scales_fused" else ())} if scales else set()
    assert left <= {kind for kind, one in served if not one}
    assert not scales or ("subnormal", True) not in served


def test_segments_of_units_that_overflow_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """No segment does, but their sum: it is left to the way of segments one by one."""
    how = chunked(32, tensor_core("H100", input=BF16), "float32")
    a, b = (np.full(shape, BF16.one_code + (59 << 7) + 0x7F, BF16.dtype) for shape in ((6, 1024), (1024, 16)))
    b[:, 3:] = BF16.one_code  # columns that are far from it
    short = bits.matmul(a, b, BF16, how)
    monkeypatch.setattr(small, "product", lambda *_: None)
    one, quick, apart = in_one_and_apart(lambda: bits.matmul(a, b, BF16, how), monkeypatch)
    assert not one
    same(quick, short)
    same(quick, apart)
    assert quick[0][0, 0] == 0x7F800000
    assert quick[1][0, 0] & Flags.OVERFLOW
    assert not quick[1][0, 5] & Flags.OVERFLOW
