"""The text of every kind of kernel, compiled where no GPU is: each operation rounds by itself, exactly, and subnormals stay."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra 'cuda'")

from softfloat.cuda import compiling

cuda = compiling.numba_cuda()

from numba import types  # noqa: E402
from softfloat.kernels import fast  # noqa: E402
from softfloat.kernels.loops import OPERATIONS  # noqa: E402
from softfloat.kernels.sums import threads  # noqa: E402
from softfloat.kernels.sums.description import Stage  # noqa: E402

from softfloat.accumulators import amp, tensor_core  # noqa: E402
from softfloat.cuda import elementwise, generated, plain  # noqa: E402
from softfloat.cuda.plain import Sum, Turn  # noqa: E402
from softfloat.engine.programs import program  # noqa: E402
from softfloat.engine.unit_ways import UnitWay  # noqa: E402
from softfloat.environments import Rounding, Settings  # noqa: E402
from softfloat.formats import check_format  # noqa: E402

pytestmark = pytest.mark.skipif(compiling.simulated(), reason="the simulator compiles nothing")

CAPABILITIES = {"sm_80": (8, 0), "sm_90": (9, 0)}
CONTRACTED = re.compile(r"\b(?:mul|add|sub|mad)\.(?:ftz\.|sat\.)*f(?:16|32|64)\b")
"""Without a rounding: ptxas may make one instruction of two."""
WRONG = re.compile(r"\.ftz|\.approx|\.full|\.sat\b")
ROUNDED = re.compile(r"\.r[nzmp]i?(?:\.[a-z]\w*)?\.f(?:32|64)\b")

LAYOUT, WIDTHS, PAIR = (types.UniTuple(types.int64, size) for size in (10, 3, 2))


def line(kind: Any, dimensions: int = 1) -> Any:
    return types.Array(kind, dimensions, "C")


def real(wide: bool) -> tuple[Any, Any]:
    return (types.int64, types.float64) if wide else (types.int32, types.float32)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that kernels call are compiled for the GPU that is there; here for one that is not."""
    from numba.cuda import dispatcher

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(8, 0)))


def check(text: str) -> None:
    assert ".visible .entry" in text
    assert ROUNDED.search(text) or "f64" not in text
    assert not CONTRACTED.findall(text)
    assert not WRONG.findall(text)
    assert not re.findall(r"\.extern \.func.*", text)  # the driver would find nothing of that name
    for operation in ("div", "sqrt"):
        assert not re.search(rf"\b{operation}\.(?!rn\.f|[su]\d)", text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=CAPABILITIES)
@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "operation", sorted({"convert", "convert_wide", "add", "sub", "mul", "div", "sqrt", "fma", "round_to_integral"})
)
def test_operations(operation: str, wide: bool, capability: tuple[int, int]) -> None:
    assert operation in OPERATIONS
    (integer, number), read = real(wide), types.uint16 if operation != "convert_wide" else real(wide)[0]
    kernel = elementwise.nearby(operation, "selected unusual" if wide else "nearest", wide)
    flags = types.uint8 if wide else types.int32
    codes = [line(read)] * 3 + [line(types.uint16), line(flags)]
    check(kernel.ptx(types.void(*codes, number, line(integer), line(number)), capability))


@pytest.mark.parametrize(("family", "operation"), fast.OPERATIONS)
def test_operations_in_few_instructions(family: str, operation: str) -> None:
    read = types.int32 if operation == "convert" else types.uint16
    codes = [line(read)] * 3 + [line(types.uint16), line(types.uint8)]
    text = elementwise.short(family, operation, True).ptx(
        types.void(*codes, types.float32, line(types.int32), line(types.float32)), (9, 0)
    )
    check(text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=CAPABILITIES)
@pytest.mark.parametrize("operation", ["convert", "div", "sqrt", "fma", "round_to_integral", "remainder"])
def test_operations_that_draw(operation: str, capability: tuple[int, int]) -> None:
    kernel = elementwise.drawn(operation, "drawn unusual" if operation == "div" else "drawn", False)
    codes = [line(types.uint16)] * 4 + [line(types.int32)]
    numbers = line(types.int64), line(types.float64)
    check(kernel.ptx(types.void(*codes, types.float64, *numbers, types.uint64, types.uint64, types.int64), capability))


NEAR, ANY, DRAWN = (Turn(way) for way in ("nearest", "selected", "drawn"))
SUMS = {
    "quick": Sum(None, Turn("nearest", True), None, False, False, False, False),
    "quick mul_add": Sum(Turn("nearest", True), Turn("nearest", True), NEAR, True, False, True, True),
    "fma": Sum(None, NEAR, None, False, False, False, False),
    "mul_add": Sum(NEAR, ANY, NEAR, True, True, True, True),
    "drawn": Sum(DRAWN, DRAWN, Turn("drawn unusual"), True, False, False, True),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=CAPABILITIES)
@pytest.mark.parametrize("listed", [False, True], ids=["all", "listed"])
@pytest.mark.parametrize("how", SUMS.values(), ids=SUMS)
def test_plain_sums(how: Sum, listed: bool, capability: tuple[int, int]) -> None:
    integer, number = real(how.wide)
    codes = [line(types.uint16)] * 4 + [line(types.uint8 if how.each else types.int32)]
    tallies = line(types.int64), line(types.float64), line(types.int64)
    known = LAYOUT, WIDTHS, line(integer, 2), line(number, 2), types.uint64, types.uint64
    text = plain.plain(how, listed).ptx(types.void(*codes, *tallies, *known), capability)
    check(text)
    if not how.wide:
        assert ".local" not in text  # all that a step knows is in registers


@pytest.mark.parametrize("how", SUMS.values(), ids=SUMS)
def test_what_goes_in_and_out(how: Sum) -> None:
    integer, number = real(how.wide)
    numbers, octets, code = (line(integer, 2), line(number, 2)), line(types.uint8), line(types.uint16)
    three, reals = types.UniTuple(types.int64, 3), types.UniTuple(types.float64, 2)
    for planes, carrier in ((1, types.float32), (2, types.float64)):
        lines = code, line(carrier), octets
        text = generated.entering(planes).ptx(
            types.void(*lines, three, three, PAIR, types.int64, reals, reals, *numbers), (9, 0)
        )
        check(text)
    results = code, octets if how.each else line(types.int32), line(types.int64)
    tail = LAYOUT, WIDTHS, *numbers, types.uint64, types.uint64
    marks = types.UniTuple(octets, 3)
    text = generated.leaving(how, False, True).ptx(
        types.void(line(types.float32), octets, marks, *results, *tail), (9, 0)
    )
    check(text)


GENERATED = {
    "fma": Stage("half"),
    "mul_add": Stage("bfloat16", "toward_negative"),
    "fma of numbers": Stage("float32", "nearest_away"),
    "fma flushed": Stage("narrow", "to_odd", True, True, True),
    "fma drawn": Stage("half", "stochastic"),
    "mul_add drawn": Stage("narrow", "up_or_down", wide=True),
}


@pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=CAPABILITIES)
@pytest.mark.parametrize("counts", [False, True], ids=["flags", "counts"])
@pytest.mark.parametrize("name", GENERATED)
def test_generated_sums(name: str, counts: bool, capability: tuple[int, int]) -> None:
    text = threads.text(threads.ThreadSum(name.split()[0], GENERATED[name], counts, True), capability)
    check(text.replace(" .func", ""))
    assert f".target sm_{capability[0]}{capability[1]}" in text
    assert ".local" not in text


UNITS = {
    "amp": (amp("float16"), "float16", {}),
    "amp drawn": (amp("float16"), "float16", {"rounding": Rounding.STOCHASTIC, "seed": 1}),
    "H100": (tensor_core("H100", "float16"), "float16", {}),
    "H100 of e4m3": (tensor_core("H100", "float8_e4m3fn"), "float8_e4m3fn", {}),
    "V100": (tensor_core("V100", "float16"), "float16", {}),
}


@pytest.mark.parametrize("name", UNITS)
def test_generated_units(name: str) -> None:
    how, fmt, options = UNITS[name]
    read = check_format(fmt)
    planned = program(how, read, read, how.partials, Settings(**options), 64)
    way = generated.way_of(planned, False, False)
    assert isinstance(way, UnitWay)
    text = threads.text(generated.described(way, False, False), (9, 0))
    check(text.replace(" .func", ""))
    assert ".local" not in text


def test_contraction_would_be_seen() -> None:
    """What numba-cuda makes of a kernel that is not told otherwise."""

    def kernel(x, y):  # type: ignore[no-untyped-def]
        x[0] = x[0] * y[0] + x[1]

    text, _ = cuda.compile_ptx(kernel, types.void(line(types.float64), line(types.float64)), cc=(9, 0), device=False)
    assert CONTRACTED.search(text) or "fma.rn" in text
    signature = types.void(line(types.float64), line(types.float64))
    ours = compiling.Kernel(kernel).ptx(signature, (9, 0))
    check(ours)
    assert "fma" not in ours
