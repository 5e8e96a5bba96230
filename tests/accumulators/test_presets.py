"""Dot products against their oracle: every preset and its parameters, every rule, every kind of operand; codes and flags.

`CASES` names them all; `Case.expected` is what the oracle says of one output.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from core_rows import CORE_FORMATS, CORE_SETS, core_rows
from drawn import sampled
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from operands import CUSTOM
from softfloat.kernels.spec import NAN_POLICIES
from tallies import Tally
from vectors import FAMILIES, MODES, Pair, draw_addend, draw_vectors

from softfloat import ROSTER, Environment, Format, bits
from softfloat.accumulators import (
    PRESETS,
    Accumulator,
    Reduction,
    Stage,
    amd_mfma,
    amp,
    amx,
    arm_bfdot,
    arm_bfmlal,
    arm_bfmmla,
    arm_fdot,
    arm_fmmla,
    arm_fp8dot,
    chunked,
    compensated,
    exact,
    fixed_point,
    fma,
    from_poplar_options,
    mul_add,
    pairwise,
    rvbna,
    slic,
    systolic,
    tensor_core,
    torch_mm,
    vdpbf16ps,
    vdpphps,
    zvfbfwma,
)
from softfloat.accumulators.accumulator import COMPENSATIONS
from softfloat.accumulators.roster import ARRAYS
from softfloat.accumulators.units import MFMA
from softfloat.engine import as_environment, elementwise
from softfloat.reference import dots as oracle

F16, BF16, F32, TF32 = (ROSTER[name] for name in ("float16", "bfloat16", "float32", "tfloat32"))
E4M3, E5M2 = ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"]
E4M3FNUZ, E5M2FNUZ = ROSTER["float8_e4m3fnuz"], ROSTER["float8_e5m2fnuz"]
Result = tuple[int, int]


class Case(NamedTuple):
    """An accumulator, its oracle, the formats of operands it is tried with, and those it rounds to."""

    accumulator: Accumulator
    oracle: Callable[..., Result]
    pairs: tuple[Pair, ...]
    targets: tuple[Format, ...]
    shortest: int = 0

    @property
    def partials(self) -> Format:
        """What c comes in."""
        return self.accumulator.partials

    def expected(self, a: Sequence[int], b: Sequence[int], pair: Pair, **options: Any) -> Result:
        """The oracle's (code, flags)."""
        return self.oracle(list(a), list(b), pair, **options)


# -- the registry ----------------------------------------------------------------------------------------------------

SUMS = (F16, BF16, F32, E4M3, E5M2FNUZ, ROSTER["float6_e3m2fn"], *CUSTOM)
MIXED: tuple[Pair, ...] = ((E4M3, E5M2), (BF16, F16), (F32, ROSTER["float4_e2m1fn"]), (F16, ROSTER["float8_e8m0fnu"]))


def pairs_for(fmt: Format) -> tuple[Pair, ...]:
    return ((fmt, fmt), (fmt, fmt), *MIXED)


def simple(function: Callable[..., Result], accumulator: Accumulator, fmt: Format, *parameters: Any) -> Case:
    """An accumulator with one format, and an oracle that takes it and more."""
    return Case(
        accumulator, lambda a, b, pair, **o: function(a, b, pair, fmt, *parameters, **o), pairs_for(fmt), (fmt,)
    )


def one_format() -> dict[str, Case]:
    made = {}
    for fmt in SUMS:
        made[f"fma {fmt}"] = simple(oracle.fma, fma(fmt), fmt)
        made[f"mul_add {fmt}"] = simple(oracle.mul_add, mul_add(fmt), fmt)
        made[f"exact {fmt}"] = simple(oracle.exact, exact(fmt), fmt)
    for fmt, method in itertools.product((F16, F32, E4M3, SUMS[5]), COMPENSATIONS):
        made[f"compensated {fmt} {method}"] = simple(oracle.compensated, compensated(fmt, method), fmt, method)
    for bits_, last, fmt, overflow, cut in (
        (16, -8, F32, "wrap", "toward_negative"),
        (12, -10, F16, "saturate", "toward_zero"),
        (50, -40, F32, "saturate", "toward_negative"),
        (2, 3, BF16, "wrap", "toward_zero"),
    ):

        def registered(a: Any, b: Any, pair: Pair, given: Any = (bits_, last, fmt, overflow, cut), **o: Any) -> Result:
            return oracle.fixed_point(a, b, pair, *given, **o)

        how = fixed_point(bits_, last, fmt, overflow, cut)
        made[how.name] = Case(how, registered, pairs_for(fmt), (fmt,))
    for fmt in (F16, BF16, F32, E4M3, CUSTOM[0]):
        made[f"pairwise {fmt}"] = simple(oracle.pairwise, pairwise(fmt), fmt)
        for n in (2, 5):
            accumulator = fma(fmt).replace(name=f"{n} chains of {fmt}", chains=n)
            made[accumulator.name] = simple(oracle.chains, accumulator, fmt, n)
        for length, cut in ((2, None), (4, 6), (7, 25), (16, 40)):
            accumulator = Accumulator(
                name=f"blocks of {length} cut {cut} {fmt}", running=Stage(fmt), block=length, fraction_bits=cut
            )
            made[accumulator.name] = simple(oracle.blocks, accumulator, fmt, length, cut)
    return made


def chunks() -> dict[str, Case]:
    return {
        f"chunked {length} {inner} {outer}": Case(
            chunked(length, inner, outer),
            lambda a, b, pair, n=length, inner=inner, outer=outer, **o: oracle.chunked(
                a, b, pair, n, inner, outer, **o
            ),
            pairs_for(inner),
            (inner, outer),
        )
        for length, inner, outer in (
            (1, F16, F32),
            (4, F16, F32),
            (7, F32, BF16),
            (8, E4M3, E5M2),
            (64, BF16, F32),
            (3, CUSTOM[1], CUSTOM[0]),
        )
    }


def cores() -> dict[str, Case]:
    made = {}
    for arch, name, output, instruction in itertools.product(
        ("V100", "T4", "A100", "Ada", "H100", "B200", "RTX Blackwell"),
        oracle.CORE_INPUTS,
        ("float32", "float16"),
        (None, "mma.sync"),
    ):
        fp8 = name.startswith("float8")
        if instruction and not (fp8 and arch in ("H100", "B200")):
            continue
        try:
            accumulator = tensor_core(arch, name, output, instruction)
        except ValueError:
            continue
        made[accumulator.name] = Case(
            accumulator,
            lambda a, b, pair, p=(arch, name, output, instruction), **o: oracle.tensor_core(a, b, pair, *p, **o),
            tuple(itertools.product((E4M3, E5M2), repeat=2)) if fp8 else ((ROSTER[name], ROSTER[name]),),
            (),
        )
    for arch, name, output, instruction, *switches in (
        ("A100", "bfloat16", "float32", None, -126, -132, True),
        ("H100", "float16", "float32", None, -126, None, True),
        ("H100", "float8_e4m3fn", "float32", "mma.sync", -126, -20, True),
        ("B200", "tfloat32", "float32", None, None, -133, False),
        ("V100", "float16", "float16", None, None, -21, True),
        ("Ada", "float8_e5m2", "float32", None, -126, None, True),
    ):
        words = dict(zip(("zero_exponent", "exponent_floor", "positive_zeros"), switches, strict=True))
        accumulator = tensor_core(arch, name, output, instruction, **words)
        made[accumulator.name] = Case(
            accumulator,
            lambda a, b, pair, p=(arch, name, output, instruction, *switches), **o: oracle.tensor_core(
                a, b, pair, *p, **o
            ),
            tuple(itertools.product((E4M3, E5M2), repeat=2)) if "8" in name[:6] else ((ROSTER[name], ROSTER[name]),),
            (),
        )
    return made


def torch_products() -> dict[str, Case]:
    made = {}
    for operation, name, *parts in (
        ("mm", "bfloat16"),
        ("mm", "tfloat32"),
        ("mm", "float16", 4096, 3),
        ("mm", "float16", 100, 2),
        ("mm", "tfloat32", 30, 3),
        ("linear", "float16"),
        ("addmm", "bfloat16"),
        ("fp16_accumulation", "float16"),
        ("fp16_accumulation", "float16", 24, 3),
        ("scaled_mm", "float8_e4m3fn"),
        ("scaled_mm_fast", "float8_e5m2"),
    ):
        words = dict(zip(("k", "split"), parts, strict=False))
        accumulator = torch_mm(operation, name, **words)
        fp8 = name.startswith("float8")
        made[accumulator.name] = Case(
            accumulator,
            lambda a, b, pair, p=(operation, name), w=words, **o: oracle.torch_mm(a, b, pair, *p, **w, **o),
            tuple(itertools.product((E4M3, E5M2), repeat=2)) if fp8 else ((ROSTER[name], ROSTER[name]),),
            (),
        )
    return made


QUARTERS = tuple(itertools.product((E4M3FNUZ, E5M2FNUZ), repeat=2))


def ipu() -> dict[str, Case]:
    made = {}
    for inputs, partials, mode in itertools.product(
        ("float16", "float32", "float8_e4m3fnuz"), ("float32", "float16"), ("exact", "aligned", "chained")
    ):
        pairs = QUARTERS if inputs.startswith("float8") else ((ROSTER[inputs],) * 2,)
        if (partials == "float32") == inputs.startswith("float8") or (inputs, partials) == ("float32", "float16"):
            continue
        ways = [("nearest_even", True)] if mode == "aligned" else [("nearest_even", False), ("toward_zero", True)]
        targets = (F16,) if partials == "float16" else ()
        for rounding, stochastic in ways:
            accumulator = amp(partials, inputs=inputs, mode=mode, rounding=rounding, stochastic=stochastic)
            made[accumulator.name] = Case(
                accumulator,
                lambda a, b, pair, p=(partials, mode, rounding, stochastic), **o: oracle.amp(a, b, pair, *p, **o),
                pairs,
                targets,
            )
        for window in (3, 4):
            accumulator = slic(partials, window=window, inputs=inputs, mode=mode)
            made[accumulator.name] = Case(
                accumulator,
                lambda a, b, pair, p=partials, w=window, m=mode, **o: oracle.slic(a, b, pair, p, w, m, **o),
                pairs,
                targets,
            )
    return made


def poplar() -> dict[str, Case]:
    made = {}
    for partials, between, splits, stages, mode in (
        ("half", "half", 5, (), "exact"),
        ("half", "float", 3, (), "chained"),
        ("float", "half", 16, (4,), "exact"),
        ("half", "half", 20, (6, 3), "aligned"),
        ("float", "float", 9, (5, 2), "exact"),
    ):
        names = {"half": "float16", "float": "float32"}
        accumulator = from_poplar_options(
            {"partialsType": partials, "partialsType.interTile": between}, splits=splits, stages=stages, mode=mode
        )
        parameters = (names[partials], names[between], splits, stages, mode)
        made[f"poplar {parameters}"] = Case(
            accumulator,
            lambda a, b, pair, p=parameters, **o: oracle.reduced_amp(a, b, pair, *p, **o),
            ((F16, F16),),
            (F16, F32),
            splits,
        )
    return made


def general() -> dict[str, Case]:
    """What no preset has: random rounding on every level of a reduction, stores between blocks, an order of products."""

    def reduced(a: list[int], b: list[int], pair: Pair, c: int | None = None, **options: Any) -> Result:
        output, running = oracle.Output(options), oracle.Site(oracle.RUNNING, F16)
        additions = [oracle.Site(oracle.LEVEL + 2 * level, fmt) for level, fmt in enumerate((BF16, F16, F32))]
        stores = [oracle.Site(oracle.LEVEL + 2 * level + 1, fmt) for level, fmt in enumerate((F16, BF16))]
        total = output.start(c, additions[2])
        sums = []
        for part in oracle._sections(output.terms(a, b, pair, output.daz(running)), 6):
            chain = output.start(None, running)
            for term in part:
                chain = output.fuse(running, term, chain)
            sums.append(chain)
        for addition, store, sections in zip(additions, stores, (4, 2), strict=False):
            stage = []
            for section in oracle._sections(sums, sections):
                subtotal = output.start(None, addition)
                for x in section:
                    subtotal = output.add(addition, subtotal, x)
                stage.append(output.convert(store, subtotal))
            sums = stage
        for x in sums:
            total = output.add(additions[2], total, x)
        return output.deliver(total)

    def stored(a: list[int], b: list[int], pair: Pair, c: int | None = None, **options: Any) -> Result:
        output = oracle.Output(options)
        running, store = oracle.Site(oracle.RUNNING, F32), oracle.Site(oracle.STORE, BF16)
        total = output.start(c, store)
        blocks = list(oracle.groups(output.terms(a, b, pair, output.daz(running)), 2))
        for i, block in enumerate(blocks, 1):
            total = output.block(running, block, total)
            if i % 2 == 0 or i == len(blocks):
                total = output.convert(store, total)
        return output.deliver(total)

    def ordered(a: list[int], b: list[int], pair: Pair, c: int | None = None, **options: Any) -> Result:
        output = oracle.Output(options)
        product, running = oracle.Site(oracle.PRODUCT, BF16), oracle.Site(oracle.RUNNING, F16)
        total = output.start(c, running)
        for group in oracle.groups(output.terms(a, b, pair, output.daz(product)), 3):
            for k in (2, 0, 1):
                total = output.add(running, total, output.multiply(product, group[k]))
        return output.deliver(total)

    levels = (Reduction(Stage(BF16), 4, Stage(F16)), Reduction(Stage(F16), 2, Stage(BF16)), Reduction(Stage(F32)))
    accumulators = {
        "three levels": (fma("float16").replace(segments=6, reduction=levels), reduced, 6),
        "stored": (
            Accumulator(name="stored", running=Stage(F32), block=2, store=Stage(BF16), store_every=4),
            stored,
            0,
        ),
        "ordered": (Accumulator(name="ordered", running=Stage(F16), product=Stage(BF16), order=(2, 0, 1)), ordered, 0),
    }
    return {
        name: Case(accumulator.replace(name=name), function, pairs_for(F16), (F16, BF16, F32), shortest)
        for name, (accumulator, function, shortest) in accumulators.items()
    }


FP8 = tuple(itertools.product((E4M3, E5M2), repeat=2))
RMODES = ("nearest_even", "toward_zero", "toward_positive", "toward_negative")


def units() -> dict[str, Case]:
    """Units of processors with a public definition."""
    made: dict[str, Case] = {}

    def enter(accumulator: Accumulator, function: Callable[..., Result], pairs: tuple[Pair, ...], *given: Any) -> None:
        def expected(a: list[int], b: list[int], pair: Pair, **options: Any) -> Result:
            return function(a, b, pair, *given, **options)

        targets = () if accumulator.running.rounding is not None else (F32,)
        made[accumulator.name] = Case(accumulator, expected, pairs, targets)

    def widening(nan: str | None, tininess: str, **flushed: bool) -> Callable[..., Result]:
        def chain(a: list[int], b: list[int], pair: Pair, **options: Any) -> Result:
            own: dict[str, Any] = {"tininess": tininess, **flushed} | ({"nan": nan} if nan else {})
            overrides = {"float32": {**options, **options["overrides"].get("float32", {}), **own}}
            names = ("c", "index", "seed", "stream", "out_format", "overrides")
            policy = {"nan": nan} if nan else {}
            if "daz" in flushed:  # operands are read as their own formats' settings say
                for fmt in pair:
                    overrides[fmt.name] = {
                        **options,
                        **options["overrides"].get(fmt.name, {}),
                        **policy,
                        "daz": flushed["daz"],
                    }
            overrides = {fmt: {x: v for x, v in own.items() if x not in names} for fmt, own in overrides.items()}
            every = {x: {**v, **policy} for x, v in options["overrides"].items()}
            return oracle.fma(a, b, pair, F32, **{**options, **policy, "overrides": {**every, **overrides}})

        return chain

    for n in (2, 4, 7, 16, 32):
        enter(rvbna(n), oracle.rvbna, ((BF16, BF16),), n)
    enter(rvbna(8, E5M2), oracle.rvbna, FP8, 8)
    enter(zvfbfwma(), widening("riscv", "after", daz=False, ftz=False), ((BF16, BF16),))
    enter(zvfbfwma("float16"), widening("riscv", "after", daz=False, ftz=False), ((F16, F16),))
    enter(arm_bfmlal(), widening(None, "before"), ((BF16, BF16),))
    for fmt, tile in ((BF16, None), (BF16, 4), (F16, 6), (E4M3, None), (E5M2, 8)):
        enter(amx(fmt, tile), oracle.amx, FP8 if fmt.bits == 8 else ((fmt, fmt),), tile)
    enter(vdpphps(), oracle.vdpphps, ((F16, F16),))
    for function in (arm_bfdot, arm_bfmmla):
        enter(function(), oracle.arm_bfdot, ((BF16, BF16),))
        for mode in RMODES:
            enter(function(True, mode), oracle.arm_bfdot, ((BF16, BF16),), True, mode)
    for ways, output, lscale, saturate in (
        (1, F16, 3, False), (2, F16, 15, True), (4, F16, 0, True), (1, F32, 0, False), (4, F32, 127, False), (8, F32, 9, True),
    ):  # fmt: skip
        enter(arm_fp8dot(ways, output, lscale, saturate), oracle.arm_fp8dot, FP8, ways, output, lscale, saturate)
    for fz16 in (False, True):
        enter(arm_fdot(fz16), oracle.arm_fdot, ((F16, F16),), fz16)
        enter(arm_fmmla(fz16=fz16), oracle.arm_fmmla, ((F16, F16),), fz16)
    enter(arm_fmmla(F32), oracle.arm_fmmla, ((F32, F32),))
    for fmt, depth, out, flush in ((BF16, None, F32, False), (F16, 5, F32, True), (E4M3, 3, F16, False)):
        enter(systolic(fmt, depth, out, flush), oracle.systolic, ((fmt, fmt),), depth, out, flush)
    for array in ARRAYS:
        for name in array.inputs:
            pair = ROSTER[name], ROSTER[name]
            enter(PRESETS[array.name].make(name), oracle.systolic, (pair,), None, F32, array.flush)
    for row in MFMA:
        fmt = {"bfloat16_1k": BF16}.get(row.input) or ROSTER[row.input]
        pairs = QUARTERS if row.how == "halves" else ((fmt, fmt),)
        enter(amd_mfma(row.architecture, row.input), oracle.amd_mfma, pairs, row.architecture, row.group)
    return made


CASES: dict[str, Case] = {
    **one_format(),
    **chunks(),
    "vdpbf16ps": Case(vdpbf16ps(), oracle.vdpbf16ps, ((BF16, BF16),), ()),
    **cores(),
    **torch_products(),
    **ipu(),
    **poplar(),
    **general(),
    **units(),
}
"""Name -> case."""
OUTPUTS = (F16, BF16, F32, E4M3, E5M2FNUZ, ROSTER["float4_e2m1fn"], *CUSTOM[:2])


@st.composite
def rules(draw: st.DrawFn, targets: Sequence[Format], nan: str | None = None) -> dict[str, Any]:
    """Options that formats allow."""
    overflows = ("infinity", "saturate", "nan") if all(fmt.has_nan for fmt in targets) else ("infinity", "saturate")
    return {
        "rounding": draw(sampled(MODES)),
        "overflow": draw(sampled(overflows)),
        "tininess": draw(sampled(("after", "before"))),
        "infinite_input": draw(sampled(("default", "keep", "saturate", "nan"))),
        "daz": draw(sampled((False, False, True))),
        "ftz": draw(sampled((False, False, True))),
        "nan": nan or draw(sampled(tuple(NAN_POLICIES))),
        "sr_bits": draw(sampled((None, 1, 3, 16, 17, 20, 52))),
    }


class Trial(NamedTuple):
    """Options of one call, and everything else about it."""

    pair: Pair
    family: str
    length: int
    seed: int
    addend: bool
    out_format: Format | None
    options: dict[str, Any]
    overrides: dict[str, dict[str, Any]]
    address: dict[str, int]

    def call(self) -> dict[str, Any]:
        """Keywords for `bits`."""
        mode = self.options["rounding"]
        if not self.overrides and mode in ("stochastic", "up_or_down"):
            settings = as_environment({**self.options, "seed": self.address["seed"]})
            return {**settings, "stream": self.address["stream"]}
        seed = self.address["seed"]
        environment = Environment(
            **self.options,
            seed=seed,
            overrides={name: Environment(**options, seed=seed) for name, options in self.overrides.items()},
        )
        return {"environment": environment, "stream": self.address["stream"]}

    def oracle(self) -> dict[str, Any]:
        """Keywords for the oracle."""
        return {**self.options, **self.address, "overrides": self.overrides, "out_format": self.out_format}

    def vectors(self, partials: Format, rows: int) -> tuple[list[list[int]], list[list[int]], list[int] | None]:
        random = np.random.default_rng(self.seed)
        drawn = [draw_vectors(self.family, self.pair, partials, self.length, random) for _ in range(rows)]
        c = [draw_addend(partials, random) for _ in range(rows)] if self.addend else None
        return [a for a, _ in drawn], [b for _, b in drawn], c


@st.composite
def trials(draw: st.DrawFn, case: Case, longest: int = 40) -> Trial:
    out_format = draw(sampled((None, None, *OUTPUTS)))
    written = (*case.targets, *((out_format,) if out_format else ()))
    options = draw(rules(written))
    overrides = {}
    if written and draw(st.integers(0, 3)) == 0:
        overrides[draw(sampled(written)).name] = draw(rules(written, options["nan"]))
    return Trial(
        pair=draw(sampled(case.pairs)),
        family=draw(sampled(FAMILIES)),
        length=case.shortest + draw(st.integers(0, 6) | st.integers(0, longest - case.shortest)),
        seed=draw(st.integers(0, 2**32 - 1)),
        addend=draw(st.booleans()),
        out_format=out_format,
        options=options,
        overrides=overrides,
        address={
            "seed": draw(sampled((0, 1, 2**40 + 7))),
            "stream": draw(sampled((0, 3, 2**33 + 1))),
        },
    )


# -- the comparison --------------------------------------------------------------------------------------------------

ROWS = 3


def compare(case: Case, trial: Trial) -> None:
    a, b, c = trial.vectors(case.partials, ROWS)
    out_format = trial.out_format
    shapes = [np.array(x, np.int64).reshape(ROWS, trial.length) for x in (a, b)]
    codes, flags = bits.vecdot(*shapes, trial.pair, case.accumulator, c, out_format=out_format, **trial.call())
    for i in range(ROWS):
        addend = None if c is None else c[i]
        expected = case.expected(a[i], b[i], trial.pair, c=addend, index=i, **trial.oracle())
        found = int(codes[i]), int(flags[i])
        assert found == expected, (
            f"row {i}: {[hex(x) for x in found]}, oracle {[hex(x) for x in expected]}\n"
            f"a={list(map(hex, a[i]))}\nb={list(map(hex, b[i]))}\nc={addend if addend is None else hex(addend)}"
        )


def examine(name: str, examples: int, compare: Callable[..., None], *more: st.SearchStrategy[Any]) -> None:
    """Hypothesis, started differently for each case and alike in each run."""

    @seed(zlib.crc32(name.encode()))
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(drawn=st.tuples(trials(CASES[name]), *more))
    def check(drawn: tuple[Any, ...]) -> None:
        compare(CASES[name], *drawn)

    check()


@pytest.mark.parametrize("name", CASES)
def test_vecdot(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the plain loop, which serves them all: each example would compile a faster loop of its own, which tests of the engine hold against it."""
    monkeypatch.setattr(elementwise, "FAST", False)
    examine(name, 5, compare)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_vecdot_at_length(name: str) -> None:
    examine(name, 1500, compare)


def compare_matrices(case: Case, trial: Trial, shape: tuple[int, int, int]) -> None:
    batch, rows, columns = shape
    a, b, c = trial.vectors(case.partials, batch * max(rows, columns))
    left = np.array(a[: batch * rows], np.int64).reshape(batch, rows, trial.length)
    right = np.array(b[: batch * columns], np.int64).reshape(batch, columns, trial.length)
    addend = None if c is None else np.array(c[:columns])
    codes, flags = bits.matmul(
        left,
        right.swapaxes(1, 2),
        trial.pair,
        case.accumulator,
        addend,
        out_format=trial.out_format,
        **trial.call(),
    )
    assert codes.shape == flags.shape == (batch, rows, columns)
    for index, (n, i, j) in enumerate(np.ndindex(batch, rows, columns)):
        one = None if addend is None else int(addend[j])
        expected = case.expected(
            left[n, i].tolist(), right[n, j].tolist(), trial.pair, c=one, index=index, **trial.oracle()
        )
        assert (int(codes[n, i, j]), int(flags[n, i, j])) == expected, (n, i, j)


SHAPES = ((1, 2, 2), (1, 4, 1), (2, 1, 3), (3, 2, 1))


@pytest.mark.parametrize("name", [name for i, name in enumerate(CASES) if i % 5 == 0])
def test_matmul(name: str) -> None:
    """By whatever loop serves them. Outputs are numbered in C order; operands and addend broadcast as NumPy's."""
    examine(name, 4, compare_matrices, sampled(SHAPES))


# -- hardware --------------------------------------------------------------------------------------------------------


@pytest.mark.conformance("results read off tensor cores")
@pytest.mark.parametrize("name", CORE_SETS)
def test_tensor_cores(vectors: Path, tally: Tally, name: str) -> None:
    rows, fmt, instruction = core_rows(vectors, name)
    arch, _, target = name.split("_")
    a, b, c, d = (np.array(column) for column in zip(*rows, strict=True))
    accumulator = tensor_core(arch, fmt, CORE_FORMATS[target], instruction)
    codes, _ = bits.vecdot(a, b, fmt, accumulator, c)
    tally(f"dot product, {arch}", f"{fmt} to {CORE_FORMATS[target]}", "as built", codes.size, (codes != d).sum())
    np.testing.assert_array_equal(codes, d)


@pytest.mark.conformance("results read off x86 hardware")
@pytest.mark.parametrize("family", ["uniform", "close", "tiny", "huge", "special", "ftzprobe"])
def test_vdpbf16ps(vectors: Path, tally: Tally, family: str) -> None:
    with np.load(vectors / "x86_hw_small.npz") as archive:
        c, a, b, d = (archive[f"vdpbf16ps_{family}_{column}"] for column in "cabd")
    codes, _ = bits.vecdot(a, b, "bfloat16", vdpbf16ps(), c)
    tally("VDPBF16PS", "bfloat16 to float32", "nearest_even", codes.size, (codes != d).sum())
    np.testing.assert_array_equal(codes, d)


# -- the registry is whole -------------------------------------------------------------------------------------------


def test_every_preset_has_cases() -> None:
    assert {name for name in PRESETS for case in CASES if case.startswith(name)} == set(PRESETS)


ALIASES = {"A2": "A100", "L40S": "Ada", "H200": "H100"}


@pytest.mark.parametrize("name", CORE_SETS)
def test_architectures_with_cores_alike(name: str) -> None:
    arch, source, target = name.split("_")
    fmt, output = CORE_FORMATS[source], CORE_FORMATS[target]
    own = tensor_core(arch, fmt, output)
    assert own == tensor_core(ALIASES.get(arch, arch), fmt, output)
    if not source.startswith("e"):
        assert own == tensor_core(arch, fmt, output, "mma.sync")
