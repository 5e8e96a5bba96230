"""Dot products against their oracle: every preset and its parameters, every rule, every kind of operand; codes and flags.

`CASES` names them all; `Case.expected` is what the oracle says of one output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operands import CUSTOM, edges, operands

from softfloat import ROSTER, Environment, Format, bits, reference
from softfloat import reference_dot as oracle
from softfloat.accumulators import (
    Accumulator,
    Reduction,
    Stage,
    amp,
    chunked,
    exact,
    fma,
    mul_add,
    pairwise,
    slic,
    tensor_core,
    vdpbf16ps,
)
from softfloat.kernels.spec import NAN_POLICIES

F16, BF16, F32, TF32 = (ROSTER[name] for name in ("float16", "bfloat16", "float32", "tfloat32"))
E4M3, E5M2 = ROSTER["float8_e4m3fn"], ROSTER["float8_e5m2"]
E4M3FNUZ, E5M2FNUZ = ROSTER["float8_e4m3fnuz"], ROSTER["float8_e5m2fnuz"]

Pair = tuple[Format, Format]
Result = tuple[int, int]


class Case(NamedTuple):
    """An accumulator, its oracle, the formats of operands it is tried with, and those it rounds to."""

    accumulator: Accumulator
    oracle: Callable[..., Result]
    pairs: tuple[Pair, ...]
    targets: tuple[Format, ...]

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
        oracle.CORES, oracle.CORE_INPUTS, ("float32", "float16"), (None, "mma.sync")
    ):
        try:
            accumulator = tensor_core(arch, name, output, instruction)
        except ValueError:
            continue
        pairs = (
            tuple(itertools.product((E4M3, E5M2), repeat=2)) if name.startswith("float8") else ((ROSTER[name],) * 2,)
        )
        made[accumulator.name] = Case(
            accumulator,
            lambda a, b, pair, p=(arch, name, output, instruction), **o: oracle.tensor_core(a, b, pair, *p, **o),
            pairs,
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
            options = {"mode": mode, "rounding": rounding, "stochastic": stochastic}
            accumulator = amp(partials, inputs=inputs, **options)
            made[accumulator.name] = Case(
                accumulator,
                lambda a, b, pair, p=partials, w=options, **o: oracle.amp(a, b, pair, p, **w, **o),
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
        accumulator = Accumulator.from_poplar_options(
            {"partialsType": partials, "partialsType.interTile": between}, splits=splits, stages=stages, mode=mode
        )
        parameters = (names[partials], names[between], splits, stages, mode)
        made[f"poplar {parameters}"] = Case(
            accumulator,
            lambda a, b, pair, p=parameters, **o: oracle.reduced_amp(a, b, pair, *p, **o),
            ((F16, F16),),
            (F16, F32),
        )
    return made


CASES: dict[str, Case] = {
    **one_format(),
    **chunks(),
    "vdpbf16ps": Case(vdpbf16ps(), oracle.vdpbf16ps, ((BF16, BF16),), ()),
    **cores(),
    **ipu(),
    **poplar(),
}
"""Name -> case."""


# -- operands by construction ----------------------------------------------------------------------------------------

FAMILIES = ("spread", "near", "tiny", "huge", "cancelling", "zeros", "one special", "any")


def with_exponents(fmt: Format, exponents: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Codes of about these exponents, as far as the format goes, of any sign and fraction."""
    assert fmt.bias is not None
    field = np.clip(exponents + fmt.bias, 0, fmt.max_code >> fmt.mantissa_bits)
    codes = np.minimum(field << fmt.mantissa_bits | random.integers(0, 2**fmt.mantissa_bits, field.shape), fmt.max_code)
    return codes | np.where(random.random(field.shape) < 0.5, fmt.sign_bit, 0)


def specials(fmt: Format) -> list[int]:
    found = [code for code in edges(fmt).tolist() if reference.decode(code, fmt).kind is not reference.Kind.FINITE]
    return found or [fmt.max_code]


def draw_vectors(
    family: str, pair: Pair, partials: Format, length: int, random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """a and b, whose products are of the kind that the family's name says, seen from the partials format."""
    if family == "any":
        return tuple(operands(fmt, length, 1, int(random.integers(2**31)))[0].tolist() for fmt in pair)
    if family == "zeros":
        few = [[0, fmt.sign_bit, fmt.smallest_subnormal_code, fmt.smallest_normal_code] for fmt in pair]
        return tuple(random.choice(codes, length, p=[0.4, 0.4, 0.1, 0.1]).tolist() for codes in few)
    low, high = {
        "spread": (-partials.p - 3, 4),
        "near": (-2, 3),
        "tiny": (partials.emin - partials.p - 1, partials.emin + 3),
        "huge": (partials.emax - 3, partials.emax + 1),
    }.get(family, (-partials.p - 3, 4))
    target = random.integers(low, high, length)
    first = target // 2 + random.integers(-3, 4, length)
    a, b = with_exponents(pair[0], first, random), with_exponents(pair[1], target - first, random)
    if family == "cancelling":
        half = length // 2
        a[length - half :] = a[:half] ^ pair[0].sign_bit
        b[length - half :] = b[:half]
        b[length - half :] ^= random.random(half) < 0.2
        order = random.permutation(length)
        a, b = a[order], b[order]
    if family == "one special" and length:
        where = random.integers(0, length, 2)
        a[where[0]] = random.choice(specials(pair[0]))
        if random.random() < 0.5:
            b[where[random.integers(0, 2)]] = random.choice([*specials(pair[1]), 0])
    return a.tolist(), b.tolist()


def draw_addend(fmt: Format, random: np.random.Generator) -> int:
    kind = random.integers(0, 4)
    if kind == 0:
        return int(random.choice(edges(fmt)))
    if kind == 1:
        return int(random.choice([0, fmt.sign_bit]))
    low, high = ((-4, 5), (fmt.emin - fmt.p, fmt.emax + 1))[kind - 2]
    return int(with_exponents(fmt, random.integers(low, high, 1), random)[0])


MODES = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic")
OUTPUTS = (F16, BF16, F32, E4M3, E5M2FNUZ, ROSTER["float4_e2m1fn"], *CUSTOM[:2])


@st.composite
def rules(draw: st.DrawFn, targets: Sequence[Format], nan: str | None = None) -> dict[str, Any]:
    """Options that formats allow."""
    overflows = ("infinity", "saturate", "nan") if all(fmt.has_nan for fmt in targets) else ("infinity", "saturate")
    return {
        "rounding": draw(st.sampled_from(MODES)),
        "overflow": draw(st.sampled_from(overflows)),
        "tininess": draw(st.sampled_from(("after", "before"))),
        "infinite_input": draw(st.sampled_from(("default", "keep", "saturate", "nan"))),
        "daz": draw(st.sampled_from((False, False, True))),
        "ftz": draw(st.sampled_from((False, False, True))),
        "nan": nan or draw(st.sampled_from(tuple(NAN_POLICIES))),
        "sr_bits": draw(st.sampled_from((None, 1, 3, 16, 17, 20, 52))),
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
        if not self.overrides:
            return {**self.options, "seed": self.address["seed"], "stream": self.address["stream"]}
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
    out_format = draw(st.sampled_from((None, None, *OUTPUTS)))
    written = (*case.targets, *((out_format,) if out_format else ()))
    options = draw(rules(written))
    overrides = {}
    if written and draw(st.integers(0, 3)) == 0:
        overrides[draw(st.sampled_from(written)).name] = draw(rules(written, options["nan"]))
    return Trial(
        pair=draw(st.sampled_from(case.pairs)),
        family=draw(st.sampled_from(FAMILIES)),
        length=draw(st.integers(0, 6) | st.integers(0, longest)),
        seed=draw(st.integers(0, 2**32 - 1)),
        addend=draw(st.booleans()),
        out_format=out_format,
        options=options,
        overrides=overrides,
        address={
            "seed": draw(st.sampled_from((0, 1, 2**40 + 7))),
            "stream": draw(st.sampled_from((0, 3, 2**33 + 1))),
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


def examine(name: str, examples: int) -> None:
    case = CASES[name]

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(trial=trials(case))
    def check(trial: Trial) -> None:
        compare(case, trial)

    check()


@pytest.mark.parametrize("name", CASES)
def test_vecdot(name: str) -> None:
    examine(name, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_vecdot_at_length(name: str) -> None:
    examine(name, 1500)


MATRICES = [name for i, name in enumerate(CASES) if i % 4 == 0]


@pytest.mark.parametrize("name", MATRICES)
def test_matmul(name: str) -> None:
    """Outputs are numbered in C order; operands and addend broadcast as NumPy's."""
    case = CASES[name]

    @settings(max_examples=8, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(trial=trials(case, longest=20), shape=st.sampled_from(((2, 1, 3), (1, 2, 2), (1, 4, 1), (3, 2, 1))))
    def check(trial: Trial, shape: tuple[int, int, int]) -> None:
        batch, rows, columns = shape
        a, b, c = trial.vectors(case.partials, max(batch * rows, batch * columns))
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

    check()


def test_every_preset_has_cases() -> None:
    from softfloat.accumulators import PRESETS

    assert {name for name in PRESETS for case in CASES if case.startswith(name)} == set(PRESETS)
    names = {case.accumulator.name for case in CASES.values()}
    for arch, output in itertools.product(oracle.CORES, ("float32", "float16")):
        assert tensor_core(arch, output=output).name in names


def test_several_levels_count_apart() -> None:
    """Three levels, all rounding stochastically: each addition and each store has numbers of its own."""
    rounded = Stage("float16")
    accumulator = fma("float16").replace(
        segments=8, reduction=(Reduction(rounded, 4, rounded), Reduction(rounded, 2), Reduction(rounded))
    )
    ones = np.full((64, 32), F16.one_code)
    values = np.random.default_rng(0).integers(0x3000, 0x4000, (64, 32))
    options = {"rounding": "stochastic", "seed": 5}
    codes, _ = bits.vecdot(values, ones, "float16", accumulator, **options)
    again, _ = bits.vecdot(values[:7], ones[:7], "float16", accumulator, **options)
    np.testing.assert_array_equal(again, codes[:7])
