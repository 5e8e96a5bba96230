"""Every field of an accumulator, in any combination that is accepted, against the evaluator in `direct_sums`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from convolutions import PRODUCTS, Case
from convolutions import Trial as ConvolutionTrial
from direct_sums import Output
from drawn import formats, optional, sampled
from hypothesis import HealthCheck, assume, given, note, seed, settings
from hypothesis import strategies as st
from operands import CUSTOM
from softfloat.kernels.spec import NAN_POLICIES, PROJECTIONS, SR_METHODS, Overflow
from vectors import FAMILIES, MODES, draw_addend, draw_vectors

from softfloat import ROSTER, Environment, Format, bits, reference
from softfloat.accumulators import Accumulator, Alignment, FixedPoint, Reduction, Stage, fma, pairwise
from softfloat.accumulators.accumulator import ALL, COMPENSATIONS
from softfloat.engine.programs import check_groups

F16, BF16, F32, TF32 = (ROSTER[name] for name in ("float16", "bfloat16", "float32", "tfloat32"))
E4M3, E5M2, E5M2FNUZ = (ROSTER[f"float8_{name}"] for name in ("e4m3fn", "e5m2", "e5m2fnuz"))
SUMS = (F16, BF16, F32, E4M3, E5M2FNUZ, ROSTER["float6_e3m2fn"], *CUSTOM)
OPERANDS = (*SUMS, TF32, ROSTER["float4_e2m1fn"], ROSTER["float8_e8m0fnu"])
NANS = tuple(
    name for name, row in NAN_POLICIES.items() if not row.propagate
)  # of those that propagate payloads, `test_accumulators` holds the codes
OVERFLOWS = ("infinity", "saturate", "nan")
LONGEST = 13
NAMES = (*(fmt.name for fmt in SUMS), "drawn")
LENGTHS = st.integers(0, 4) | st.integers(0, LONGEST)


@st.composite
def stages(draw: st.DrawFn, fmt: Format | None = None) -> Stage:
    """Every field of a stage, most of them open in most; of any format, or a given one."""
    fmt = draw(SUMMED) if fmt is None else fmt
    return Stage(
        fmt,
        draw(optional(sampled(MODES))),
        draw(optional(sampled(OVERFLOWS if fmt.has_nan else OVERFLOWS[:2]))),
        daz=draw(optional(st.booleans())),
        ftz=draw(optional(st.booleans())),
        tininess=draw(optional(sampled(("after", "before")))),
        always_infinite=draw(st.booleans()),
    )


SUMMED = sampled(SUMS) | formats(summed=True)
MULTIPLIED = sampled(OPERANDS) | formats()
STAGES = stages()  # made once: Hypothesis looks at each strategy that is new


@st.composite
def reductions(draw: st.DrawFn, sums: int) -> tuple[Reduction, ...]:
    """One to three levels over so many sums of segments."""
    levels = []
    for _ in range(draw(st.integers(0, 2)) if sums else 0):
        sums = draw(st.integers(1, sums))
        levels.append(Reduction(draw(STAGES), sums, draw(optional(STAGES))))
    return (*levels, Reduction(draw(STAGES), None, draw(optional(STAGES))))


@st.composite
def fixed_points(draw: st.DrawFn) -> FixedPoint:
    """Registers that products of narrow formats fill, and others."""
    cut, overflow = sampled(("toward_zero", "toward_negative")), sampled(("wrap", "saturate"))
    bits = draw(sampled((2, 8, 12, 24, 50)))
    return FixedPoint(bits, draw(st.integers(-bits, 2) | sampled((-300, -150, 60))), draw(overflow), draw(cut))


@st.composite
def alignments(draw: st.DrawFn, block: int, rounded: bool, alone: bool, narrow: bool) -> Alignment:
    """Every field of an alignment of blocks; of products rounded first, or of blocks that are summed alone."""
    cuts = sampled(("toward_zero", "toward_negative", "to_odd"))
    inside = not alone and draw(st.booleans())
    fields: dict[str, Any] = {"terms": draw(st.integers(1, 30)), "cut": draw(cuts), "includes_addend": inside}
    fields["limit"] = draw(optional(st.integers(1, 20)))
    fields["least"] = draw(optional(st.integers(-20, 4)))
    if not rounded:
        fields["zeros"] = draw(optional(st.integers(-20, 3)))
    if not inside and not rounded and block % 2 == 0:
        fields["halves"] = draw(st.booleans())
    if not inside and not alone:
        fields |= {"sum": draw(st.integers(1, 40)), "addend": draw(st.integers(1, 40))}
        fields["drop_addend_below"] = draw(optional(st.integers(1, 30)))
    if fields.get("halves") or "sum" in fields:
        fields["sum_cut"] = draw(cuts)
    if narrow and not rounded:
        whole = block // 2 if fields.get("halves") else block
        fields["group"] = draw(sampled([n for n in range(1, block + 1) if whole % n == 0]))
    return Alignment(**fields)


@st.composite
def accumulators(draw: st.DrawFn, length: int, pair: tuple[Format, Format]) -> Accumulator:
    """Any accumulator that `length` products allow."""
    block = draw(sampled((1, 1, 1, 2, 3, 4, ALL)))
    fields: dict[str, Any] = {"name": "drawn", "running": draw(STAGES), "block": block}
    single = draw(sampled((None, None, "fixed", "compensation"))) if block == 1 else None
    fields["tree"] = block != ALL and not single and draw(st.integers(0, 3)) == 0
    whole_tree = block == 1 and fields["tree"]
    if block == 1 or fields["tree"]:
        if single == "fixed":
            fields["fixed"] = draw(fixed_points())
        else:
            fields["product"] = draw(STAGES if fields["tree"] or single else optional(STAGES))
            fields["unsigned_zeros"] = fields["product"] is not None and draw(st.booleans())
        if single == "compensation":
            fields["compensation"] = draw(sampled(COMPENSATIONS))
        if block > 1 and not fields["unsigned_zeros"]:
            fields["leaf"] = draw(sampled([n for n in (1, 2, 4) if block % n == 0]))
            fields["keeps_zero_sign"] = fields["leaf"] > 1 and draw(st.booleans())
    elif block != ALL:
        fields["block_sum"] = draw(optional(STAGES))
    if block != ALL:
        fields["chains"] = 1 if whole_tree or single else draw(sampled((1, 1, 2, 3)))
        fields["order"] = tuple(draw(st.permutations(range(draw(sampled((1, 1, 2, 3, 4)))))))
    narrow = sum(fmt.emax - fmt.emin + fmt.p for fmt in pair) <= 50 and sum(fmt.emax for fmt in pair) <= 16
    # narrow: whose products the loops add exactly
    kinds = ("exact",) if block == ALL or fields["tree"] or single else ("exact", "fraction_bits", "alignment")
    kind = draw(sampled(kinds))
    if kind == "fraction_bits" and fields.get("block_sum") is None:
        fields["fraction_bits"] = draw(st.integers(1, 30))
    elif kind == "alignment":
        fields["alignment"] = draw(
            alignments(block, fields.get("product") is not None, fields.get("block_sum") is not None, narrow)
        )
    aligned = fields.get("fraction_bits") or fields.get("alignment")
    if aligned and fields.get("product") is None and getattr(aligned, "group", 1) == 1:
        fields["unpacked"] = draw(optional(sampled((F16, F32, CUSTOM[0]))))
    if aligned and fields.get("block_sum") is None:
        fields["positive_zeros"] = draw(st.booleans())
    if block != 1 and not aligned and not fields["tree"]:
        fields["keeps_zero_sign"] = draw(st.booleans())
    fields["scale_exponent"] = draw(sampled((0, 0, 0, 1, -3, 20, -127, 127)))
    if block != ALL:
        if not whole_tree and not single and fields["chains"] == 1:
            fields["store"] = draw(optional(STAGES))
        if fields.get("store") is not None:
            fields["store_every"] = block * draw(st.integers(1, 4))
        split = draw(sampled((None, "length", "count", "lengths")))
        if split == "length":
            fields |= {"segment": draw(st.integers(1, 6)), "reduction": draw(reductions(0))}
        elif split and length:
            count = draw(st.integers(1, length))
            lengths = np.diff([0, *sorted(draw(st.permutations(range(1, length)))[: count - 1]), length])
            fields["segments"] = count if split == "count" else tuple(map(int, lengths))
            fields["reduction"] = draw(reductions(count))
    return Accumulator(
        **fields,
        inputs=draw(sampled(((), pair))),
        daz=draw(optional(st.booleans())),
        result=draw(sampled(("partials", "partials", "inputs", *SUMS[:5]))),
        nan=draw(optional(sampled(NANS))),
    )


@st.composite
def environments(draw: st.DrawFn, overrides: bool = True) -> Environment:
    """What a call can say."""
    method = draw(sampled(("truncate", *SR_METHODS)))
    return Environment(
        rounding=draw(sampled(MODES)),
        overflow=draw(sampled(OVERFLOWS)),
        tininess=draw(sampled(("after", "before"))),
        infinite_input=draw(sampled(("default", "keep", "saturate", "nan"))),
        daz=draw(st.booleans()),
        ftz=draw(st.booleans()),
        converts_subnormals=draw(st.booleans()),
        nan=draw(sampled(NANS)),
        sr_bits=draw(sampled((1, 3, 16) if method != "truncate" else (1, 3, 16, 17, 20))),
        sr_method=method,
        projection=draw(sampled(PROJECTIONS)),
        seed=draw(sampled((0, 1, 2**40 + 7))),
        overrides={draw(sampled(NAMES)): draw(environments(False))} if overrides and draw(st.booleans()) else {},
    )


@st.composite
def ordinary(draw: st.DrawFn, length: int, pair: tuple[Format, Format]) -> Accumulator:
    """Accumulators of few fields, which faster ways serve: sums in one format, whose stages are alike, or differ in what they fix."""
    fmt = draw(SUMMED)
    of_format = stages(fmt) | st.just(Stage(fmt))
    running = draw(of_format)
    fields: dict[str, Any] = {"name": "drawn", "running": running}
    kind = draw(sampled(("fused", "rounded", "rounded", "tree", "tree", *COMPENSATIONS, "exact", "aligned", "fixed")))
    if kind in ("rounded", "tree", *COMPENSATIONS):
        fields["product"] = draw(st.just(running) | of_format)
    if kind in COMPENSATIONS:
        fields["compensation"] = kind
    fields["tree"] = kind == "tree"
    if kind in ("exact", "aligned"):
        fields["block"] = draw(sampled((2, 4, 8)))
    if kind == "aligned":
        fields["fraction_bits"] = draw(st.integers(1, 30))
    if kind == "fixed":
        fields["fixed"] = draw(fixed_points())
    more = draw(sampled(("", "", "", "chains", "segment", "store")))
    if more == "chains" and kind in ("fused", "rounded", "exact", "aligned"):
        fields["chains"] = draw(sampled((2, 3)))
    elif more == "segment":
        fields |= {"segment": draw(sampled((2, 8))), "reduction": (Reduction(draw(of_format | STAGES)),)}
    elif more == "store" and kind in ("fused", "rounded", "exact", "aligned"):
        fields |= {"store": draw(of_format | STAGES), "store_every": fields.get("block", 1) * draw(sampled((1, 2)))}
    return Accumulator(**fields, daz=draw(sampled((None, None, False, True))))


@st.composite
def usual(draw: st.DrawFn) -> Environment:
    """What a call can say that faster ways serve."""
    return Environment(
        rounding=draw(sampled(MODES)),
        overflow=draw(sampled(("infinity", *OVERFLOWS))),
        tininess=draw(sampled(("after", "before"))),
        daz=draw(st.booleans()),
        ftz=draw(st.booleans()),
        nan=draw(sampled((*NANS, *NAN_POLICIES))),
        sr_bits=draw(sampled((None, 3, 16))),
        seed=draw(sampled((0, 2**40 + 7))),
    )


class Trial(NamedTuple):
    """A call of one accumulator."""

    accumulator: Accumulator
    pair: tuple[Format, Format]
    environment: Environment
    family: str
    length: int
    seed: int
    addend: bool
    out_format: Format | None
    stream: int

    @property
    def output(self) -> Format:
        """The format of results."""
        return self.out_format or self.accumulator.output(*self.pair)

    @property
    def stages(self) -> list[Stage]:
        """All stages of the accumulator."""
        how = self.accumulator
        stages = [how.running, how.product, how.block_sum, how.store]
        stages += [stage for level in self.accumulator.reduction for stage in (level.running, level.store)]
        return [stage for stage in stages if stage is not None]

    @property
    def allowed(self) -> bool:
        """Whether results have a zero, and whatever becomes NaN where it overflows a NaN."""
        named = [self.output, *(stage.format for stage in self.stages)]
        settings = [self.environment.for_format(fmt.name) for fmt in named]
        return self.output.zero and all(
            fmt.has_nan or options.overflow is not Overflow.NAN for fmt, options in zip(named, settings, strict=True)
        )

    def vectors(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of operands."""
        random = np.random.default_rng(self.seed)
        partials = self.accumulator.partials
        drawn = [draw_vectors(self.family, self.pair, partials, self.length, random) for _ in range(count)]
        a, b = (np.array([row[i] for row in drawn], np.int64).reshape(count, self.length) for i in (0, 1))
        return a, b

    def addends(self, *shape: int) -> np.ndarray | None:
        """Codes of c."""
        random = np.random.default_rng(self.seed + 1)
        if not self.addend:
            return None
        return np.array([draw_addend(self.accumulator.partials, random) for _ in np.ndindex(shape)]).reshape(shape)

    def direct(
        self, a: Sequence[int], b: Sequence[int], c: int | None, index: int, pair: tuple[Format, Format] | None = None
    ) -> tuple[tuple[int, int], Output]:
        """(code, flags), and what else is known of output `index`."""
        one = Output(self.accumulator, pair or self.pair, self.environment, self.stream, index)
        codes = ([int(x) for x in v] for v in (a, b))
        return one.sum(*codes, None if c is None else int(c), self.output), one

    def options(self) -> dict[str, Any]:
        """Keywords of a call."""
        return {"out_format": self.output, "environment": self.environment, "stream": self.stream}


@st.composite
def trials(draw: st.DrawFn, length: int | None = None) -> Trial:
    pair = draw(MULTIPLIED), draw(MULTIPLIED)
    if length is None:
        length = draw(LENGTHS)
    trial = Trial(
        accumulator=draw(accumulators(length, pair)),
        pair=pair,
        environment=draw(environments()),
        family=draw(sampled(FAMILIES)),
        length=length,
        seed=draw(st.integers(0, 2**32 - 1)),
        addend=draw(st.booleans()),
        out_format=draw(optional(SUMMED)),
        stream=draw(sampled((0, 3, 2**33 + 1))),
    )
    assume(trial.allowed)
    return trial


@st.composite
def described(draw: st.DrawFn) -> Trial:
    """What some faster way may serve."""
    fmt = draw(MULTIPLIED)
    pair = fmt, draw(st.just(fmt) | MULTIPLIED)
    length = draw(sampled((1, 2, 3, 8, 16, 45)))
    how = draw(ordinary(length, pair))
    pair = draw(sampled((pair, (how.running.format,) * 2)))
    trial = Trial(
        accumulator=how,
        pair=pair,
        environment=draw(usual()),
        family=draw(sampled(FAMILIES)),
        length=length,
        seed=draw(st.integers(0, 2**32 - 1)),
        addend=draw(st.booleans()),
        out_format=draw(sampled((None, None, F32))),
        stream=draw(sampled((0, 2**33 + 1))),
    )
    assume(trial.allowed)
    return trial


class Convolved(NamedTuple):
    """A convolution or one of its gradients, by the name of the function, and a call as long as its sums."""

    name: str
    case: Case
    trial: Trial


CONVOLUTIONS = (
    Case((1, 3, 3, 2), (2, 2), 2, padding=((1, 0), (0, 1))),
    Case((2, 4, 3, 3), (2, 1), 3, (2, 1), "same", groups=3),
    Case((1, 3, 4, 3), (1, 2), 2, dilation=(1, 2)),
)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolved:
    name, case = draw(sampled(sorted(PRODUCTS))), draw(sampled(CONVOLUTIONS))
    channel_group = draw(optional(st.integers(1, 4)))
    shaped = ConvolutionTrial(name, case, fma(F16).replace(channel_group=channel_group), F16)
    length = len(list(PRODUCTS[name](shaped.first, shaped.second, case, shaped.accumulator, (0, 0, 0, 0))))
    trial = draw(trials(length))
    assume(all(fmt.zero for fmt in trial.pair))
    how = trial.accumulator.replace(channel_group=channel_group)
    return Convolved(name, case, trial._replace(accumulator=how))


def repeated(examples: int, *strategies: st.SearchStrategy[Any]) -> Any:
    """The same examples in each run."""

    def decorate(check: Any) -> Any:
        quiet = settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        return seed(11)(quiet(given(*strategies)(check)))

    return decorate


def spelled(how: Accumulator) -> str:
    """The fields that are not as they are by default."""
    given = {field.name: getattr(how, field.name) for field in dataclasses.fields(how)}
    plain = {field.name: field.default for field in dataclasses.fields(how)}
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value != plain[name])


def check_rows(trial: Trial) -> None:
    note(spelled(trial.accumulator))
    a, b = trial.vectors(3)
    c = trial.addends(3)
    codes, flags, counts = bits.vecdot(a, b, trial.pair, trial.accumulator, c, count=True, **trial.options())
    for i in range(3):
        expected, one = trial.direct(a[i], b[i], None if c is None else c[i], i)
        assert (int(codes[i]), int(flags[i])) == expected, (i, [hex(x) for x in (codes[i], expected[0])], a[i], b[i], c)
        tally = one.tally
        found = counts.overflowed[i], counts.inexact[i], counts.swamped[i], counts.smallest[i], counts.largest[i]
        np.testing.assert_array_equal(found, (tally.overflowed, tally.inexact, tally.swamped, *tally.extremes()))
    plain = bits.vecdot(a, b, trial.pair, trial.accumulator, c, **trial.options())
    np.testing.assert_array_equal(plain[0], codes)
    np.testing.assert_array_equal(plain[1], flags)


def check_matrices(trial: Trial) -> None:
    note(spelled(trial.accumulator))
    a, b = trial.vectors(70)
    c = trial.addends(1, 70)
    codes, flags = bits.matmul(a[:1], b.T, trial.pair, trial.accumulator, c, **trial.options())
    for j in (0, 1, 63, 64, 69):
        expected, _ = trial.direct(a[0], b[j], None if c is None else c[0, j], j)
        assert (int(codes[0, j]), int(flags[0, j])) == expected, (j, hex(codes[0, j]), hex(expected[0]), a[0], b[j], c)


SIDE = 40
"""Rows and columns of a grid that is large enough for the faster ways."""
TOLD = "overflowed", "inexact", "swamped", "smallest", "largest"


def check_ways(trial: Trial) -> None:
    """Of a large grid."""
    note(spelled(trial.accumulator))
    (a, _), (_, b) = trial.vectors(SIDE), trial._replace(seed=trial.seed ^ 1).vectors(SIDE)
    same_every_way(trial, a, b, trial.addends(SIDE, SIDE))


def same_every_way(trial: Trial, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> None:
    """A grid, rows and columns, single outputs, batches, outputs in a line, each counted or not: one description, one result.

    Rows of a and of b are SIDE vectors each.
    """
    draws = any(
        any(
            mode is not None and mode.draws
            for mode in (stage.rounding, trial.environment.for_format(stage.format.name).rounding)
        )
        for stage in trial.stages
    )

    def summed(function: Any, x: Any, y: Any, start: Any, count: bool) -> tuple[Any, ...]:
        start = None if c is None else start
        codes, flags, *counts = function(x, y, trial.pair, trial.accumulator, start, count=count, **trial.options())
        return codes, flags, *(getattr(counts[0], name) for name in TOLD if counts)

    propagates = NAN_POLICIES[trial.environment.nan].propagate
    every = {count: summed(bits.matmul, a, b.T, c, count) for count in (False, True)}
    for i, j in ((0, 0), (0, 1), (3, 5), (SIDE - 1, SIDE - 1)):
        expected, one = trial.direct(a[i], b[j], None if c is None else c[i, j], i * SIDE + j)
        known = (
            *expected,
            *(getattr(one.tally, name) for name in ("overflowed", "inexact", "swamped")),
            *one.tally.extremes(),
        )
        found = [x[i, j] for x in every[True]]
        if propagates and reference.decode(known[0], trial.output).is_nan:  # with whatever payload
            assert reference.decode(int(found[0]), trial.output).is_nan
            found[0] = known[0]
        np.testing.assert_array_equal(found, known, f"{i} {j} {a[i]} {b[j]} {c}")

    def same(name: str, found: Any, place: Any, count: bool) -> None:
        for what, (one, other) in enumerate(zip(found, every[count], strict=True)):
            other = other[place]
            np.testing.assert_array_equal(np.asarray(one).reshape(other.shape), other, f"{name} {what} {count}")

    same("counted", every[True][:2], ..., False)
    for count in (False, True):
        same("line", summed(bits.vecdot, a[:, None], b[None], c, count), ..., count)
        stacked = a.reshape(5, 8, trial.length), None if c is None else c.reshape(5, 8, SIDE)
        same("batch", summed(bits.matmul, stacked[0], b.T, stacked[1], count), ..., count)
        both = [np.stack([x, x]) for x in (a, b.T)]
        found = summed(bits.matmul, *both, None if c is None else np.stack([c, c]), count)
        same("batches", [x[0] for x in found], ..., count)
        rows = a[:, None], None if c is None else c[:, None]
        same("small batch", summed(bits.matmul, rows[0], b.T, rows[1], count), ..., count)
        one = None if c is None else c[0, 0]
        same("one of a line", summed(bits.vecdot, a[0], b[0], one, count), (0, 0), count)
        same("one", summed(bits.matmul, a[:1], b[:1].T, one, count), (0, 0), count)
        same("row", summed(bits.matmul, a[:1], b.T, None if c is None else c[:1], count), 0, count)
        if not draws:
            last = SIDE - 1
            same("column", summed(bits.matmul, a, b[:1].T, None if c is None else c[:, :1], count), (..., 0), count)
            one = None if c is None else c[last, last]
            same("last", summed(bits.vecdot, a[last], b[last], one, count), (last, last), count)


def check_convolution(drawn: Convolved) -> None:
    name, case, trial = drawn
    how = trial.accumulator
    note(f"{name} {case} {spelled(how)}")
    shaped = ConvolutionTrial(name, case, how, trial.pair)
    size = max(shaped.first.size, shaped.second.size)
    for operand, codes in zip((shaped.first, shaped.second), trial._replace(length=size).vectors(1), strict=True):
        operand.reshape(-1)[...] = codes[0, : operand.size]
    c = trial.addends(*shaped.shape)
    shape = () if name == "conv2d" else (shaped.shape,)
    function = getattr(bits, name)
    codes, flags = function(shaped.first, shaped.second, *shape, trial.pair, how, c, **case.options, **trial.options())
    for index, place in list(enumerate(np.ndindex(*shaped.shape)))[::5]:
        products = list(PRODUCTS[name](shaped.first, shaped.second, case, how, place))
        a, b = zip(*products, strict=True)
        expected, _ = trial.direct(a, b, None if c is None else c[place], index)
        assert (int(codes[place]), int(flags[place])) == expected, (place, hex(codes[place]), hex(expected[0]), a, b)


def adds_groups(how: Accumulator, pair: tuple[Format, Format]) -> bool:
    """Whether products of these formats, as many as a group has, add up exactly: the pair that was drawn does, others may not."""
    try:
        check_groups(how, pair)
    except ValueError:
        return False
    return True


def check_sums(trial: Trial) -> None:
    note(spelled(trial.accumulator))
    fmt = trial.pair[0]
    trial = trial._replace(pair=(fmt, fmt))
    assume(trial.allowed and all(adds_groups(trial.accumulator, pair) for pair in (trial.pair, (fmt, F32))))
    x, _ = trial.vectors(3)
    options = trial.options() | {"out_format": trial.out_format}
    codes, flags = bits.sum(x, fmt, trial.accumulator, 1, **options)
    ones = [F32.one_code] * trial.length
    for i in range(3):
        expected, _ = trial.direct(x[i], ones, None, i, (fmt, F32))
        assert (int(codes[i]), int(flags[i])) == expected, (hex(codes[i]), hex(expected[0]), x[i])


def check_cumulative(trial: Trial) -> None:
    """Each is the sum of so many; a tree's last merges take other random numbers than they would in a longer one."""
    how, fmt = trial.accumulator, trial.pair[0]
    assume(how.block == 1 and len(how.order) == 1 and not how.store and how.segments is None)
    drawn = any(trial.environment.for_format(x.name).rounding.draws for x in SUMS)
    assume(not (how.tree and (drawn or (how.running.rounding is not None and how.running.rounding.draws))))
    trial = trial._replace(pair=(fmt, fmt))
    assume(trial.allowed)
    note(spelled(how))
    x, _ = trial.vectors(2)
    codes, flags = bits.cumsum(x, fmt, how, 1, **trial.options())
    for i, k in np.ndindex(*x.shape):
        expected, _ = trial.direct(x[i, : k + 1], [F32.one_code] * (k + 1), None, i, (fmt, F32))
        assert (int(codes[i, k]), int(flags[i, k])) == expected, (k, hex(codes[i, k]), hex(expected[0]), x[i])


@repeated(400, trials())
def test_dot_products(trial: Trial) -> None:
    """Codes, flags and counts."""
    check_rows(trial)


@repeated(5, described())
def test_every_way(trial: Trial) -> None:
    """Of what the faster ways serve."""
    check_ways(trial)


@repeated(150, trials())
def test_matrix_products(trial: Trial) -> None:
    """Rows wider than the lanes of a loop; where there is a faster way, by it."""
    check_matrices(trial)


@repeated(120, convolutions())
def test_convolutions_and_gradients(drawn: Convolved) -> None:
    check_convolution(drawn)


@repeated(150, trials())
def test_sums(trial: Trial) -> None:
    check_sums(trial)


@repeated(60, trials())
def test_cumulative_sums(trial: Trial) -> None:
    check_cumulative(trial)


@pytest.mark.exhaustive
@repeated(20_000, trials())
def test_dot_products_at_length(trial: Trial) -> None:
    check_rows(trial)


@pytest.mark.exhaustive
@repeated(500, described())
def test_every_way_at_length(trial: Trial) -> None:
    check_ways(trial)


@pytest.mark.exhaustive
@repeated(5_000, trials())
def test_matrix_products_at_length(trial: Trial) -> None:
    check_matrices(trial)


@pytest.mark.exhaustive
@repeated(5_000, convolutions())
def test_convolutions_and_gradients_at_length(drawn: Convolved) -> None:
    check_convolution(drawn)


@pytest.mark.exhaustive
@repeated(5_000, trials())
def test_sums_at_length(trial: Trial) -> None:
    check_sums(trial)


@pytest.mark.exhaustive
@repeated(2_000, trials())
def test_cumulative_sums_at_length(trial: Trial) -> None:
    check_cumulative(trial)


def test_an_infinite_overflow_without_infinities_below_zero_is_invalid() -> None:
    """P3109's projection of -6.07 into an unsigned format: toward zero it would stay 0, and an overflow that is always infinite is NaN."""
    unsigned = Format("e5m3_unsigned", exponent_bits=5, mantissa_bits=3, signed=False)
    how = fma("float16").replace(store=Stage(unsigned, always_infinite=True), store_every=1)
    environment = Environment(rounding="toward_zero", projection="p3109")
    half = ROSTER["float16"]
    trial = Trial(how, (half, half), environment, "spread", 8, 0, False, None, 0)
    assert bits.vecdot([0xC612], [0x3C00], "float16", how, environment=environment) == (0xFC, 16)
    a, b = trial.vectors(20)
    codes, flags = bits.vecdot(a, b, trial.pair, how, **trial.options())
    for i, found in enumerate(zip(codes.tolist(), flags.tolist(), strict=True)):
        assert found == trial.direct(a[i], b[i], None, i)[0]


def of_one_row(how: Accumulator, pair: tuple[Format, Format], length: int, **options: Any) -> Trial:
    """A call whose operands are known."""
    return Trial(how, pair, Environment(**options), "any", length, 0, False, None, 0)


@pytest.mark.parametrize(
    ("rounding", "x", "y", "infinity"),
    [
        ("nearest_away", [1e6, -1], [-1e6, 1], 0x7E),
        ("toward_positive", [1e6, 1], [1e6, 1], 0x3E),
        ("stochastic", [1e6, -1], [-1e6, 1], 0x7E),
    ],
)
def test_a_sum_that_has_overflowed_stays_infinite(rounding: str, x: list[float], y: list[float], infinity: int) -> None:
    """With one fraction bit, of which few loops know: an infinity is scaled by its own exponent's reciprocal, which must not be 0."""
    one_bit = Format("e5m1_fn_inf", exponent_bits=5, mantissa_bits=1, bias=12, nan="fn", infinities=True)
    trial = of_one_row(Accumulator(name="t", running=Stage(one_bit)), (F32, F32), 2, rounding=rounding, seed=0)
    options, how = trial.options(), trial.accumulator
    a, b = (np.float32(values).view(np.uint32) for values in (x, y))
    assert trial.direct(a, b, None, 0)[0] == (infinity, 5)
    rows, columns = np.tile(a, (SIDE, 1)), np.tile(b[:, None], (1, SIDE))
    assert bits.vecdot(a, b, F32, how, **options) == (infinity, 5)
    for codes, flags in (
        bits.matmul(rows[:1], columns[:, :1], F32, how, **options),
        bits.matmul(rows, columns, F32, how, **options),
        bits.vecdot(rows, b, F32, how, **options),
    ):
        assert (codes == infinity).all()
        assert (flags == 5).all()


def test_a_product_stage_reads_subnormals_in_its_own_way() -> None:
    """In pairs, where sums are read in another."""
    fmt = Format("e6m23_inf", exponent_bits=6, mantissa_bits=23, bias=71, nan="none", infinities=True)
    product = Stage(fmt, rounding="nearest_away", daz=True)
    how = Accumulator(name="t", running=Stage(fmt, rounding="nearest_even", daz=False), product=product, tree=True)
    trial = of_one_row(how, (fmt, fmt), 5, rounding="to_odd", tininess="before")
    a = [873079276, 124595403, 540649629, 545259522, 8388608]
    b = [11366657, 432996354, 768514846, 4807139, 536870913]
    x, y = (np.tile(np.array(codes), (SIDE, 1)) for codes in (a, b))
    same_every_way(trial, x, y, np.full((SIDE, SIDE), 537741148))
    assert bits.vecdot(a, b, fmt, how, 537741148, **trial.options())[0] == 0x200D475C
    for first, second in ((False, True), (True, True), (None, True), (True, None)):
        other = how.replace(product=Stage(fmt, daz=first), running=Stage(fmt, daz=second))
        same_every_way(trial._replace(accumulator=other), x, y)


@pytest.mark.parametrize("daz", [False, True])
def test_codes_of_a_format_without_subnormals_are_zeros_of_their_sign(daz: bool) -> None:
    """And no subnormals of c, which `unsigned_zeros` would make +0."""
    fmt = Format("e8m6_no_subnormals", exponent_bits=8, mantissa_bits=6, bias=-18, nan="none", subnormals=False)
    how = Accumulator(name="t", running=Stage(fmt), product=Stage(fmt), unsigned_zeros=True)
    trial = of_one_row(how, (fmt, fmt), 1, rounding="toward_negative", daz=daz)
    found = bits.vecdot([0x4002], [2], fmt, how, 0x4002, **trial.options())
    assert found == trial.direct([0x4002], [2], 0x4002, 0)[0] == (0x4000, 0)


def test_factors_that_are_all_one_number_in_a_format_without_1() -> None:
    """Sums in pairs, which have a shorter way where that is 1."""
    far = Format("e5m3_far", exponent_bits=5, mantissa_bits=3, bias=88)
    codes = np.tile(np.array([0x40, 7, 0x31], far.dtype), (SIDE, 1))
    same = np.broadcast_to(far.dtype.type(0x52), codes.shape)
    for rounding in ("nearest_even", "stochastic"):
        trial = of_one_row(pairwise(far), (far, far), 3, rounding=rounding, seed=0)
        for length in (1, 3):
            a, b = codes[:, :length], same[:, :length]
            found = bits.vecdot(a, b, far, trial.accumulator, **trial.options())
            assert (found[0][7], found[1][7]) == trial.direct(a[7], b[7], None, 7)[0]
