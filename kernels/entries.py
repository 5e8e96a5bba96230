"""Entry functions for others: kernels as functions of integers and of pointers to tables, a scalar or a dot product at a time.

Rules and tables are those of `rules`. A result has the code in its low 32 bits and flags above; REFUSED is among them where the
rule or a code is not accepted. `exported` makes object code of them.
"""

from functools import cache, partial

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from . import comparisons, dots, loops
from .carrier import decode, integer_to_odd, is_signalling
from .dot_state import CHOICES as HOW_FIELDS
from .dot_state import Call, Choices, on_the_way
from .jit import bits_float, fixed_tuple, float_bits, kernel, row
from .parts import reference
from .prng import LOW_WORD, bits_at, unit_fraction, xoroshiro128aox
from .rules import ALL_BITS, KNOBS, REFUSED, Length, Plan, StageRow, groups
from .spec import (
    INTEGER_INDEFINITE,
    INTEGER_SHORT_ZERO,
    INTEGER_ZERO,
    NAN_POLICIES,
    Overflow,
    Rounding,
)
from .targets import Source, Target, count_fields, names_of


@cache
def _gathering(numbers, kind):
    """gather(rule, table): the numbers of one kind under a rule. A group has a row for each combination of its knobs, the last one fastest."""
    layout, names = groups(numbers, kind), names_of(kind, numbers)
    result = types.UniTuple(types.int64 if kind is int else types.float64, len(names))

    @intrinsic
    def gather(context, rule, table):
        def codegen(context, builder, signature, arguments):
            (rule, table), integer, found = arguments, partial(context.get_constant, types.int64), {}
            for group in layout:
                row = integer(0)
                for name in group.knobs:
                    knob = KNOBS[name]
                    chosen = builder.and_(builder.lshr(rule, integer(knob.shift)), integer(knob.bits))
                    row = builder.add(builder.mul(row, integer(knob.values)), chosen)
                start = builder.add(builder.mul(row, integer(len(group.fields))), integer(group.base))
                for place, name in enumerate(group.fields):
                    found[name] = builder.load(builder.gep(table, [builder.add(start, integer(place))]))
            return context.make_tuple(builder, result, [found[name] for name in names])

        return result(types.int64, table), codegen

    return gather


STOCHASTIC, UP_OR_DOWN, NAN_RESULT = int(Rounding.STOCHASTIC), int(Rounding.UP_OR_DOWN), int(Overflow.NAN)
ROUNDING_SHIFT, OVERFLOW_SHIFT, NAN_SHIFT, QUIET_SHIFT, WIDTH_SHIFT = (
    KNOBS[name].shift for name in ("rounding", "overflow", "nan", "quiet_integers", "random_width")
)
MODES, POLICIES = KNOBS["rounding"].values, KNOBS["nan"].values
MODE_BITS, NAN_BITS = KNOBS["rounding"].bits, KNOBS["nan"].bits

source_ints, source_reals = _gathering(Source, int), _gathering(Source, float)
target_ints, target_reals = _gathering(Target, int), _gathering(Target, float)


@kernel
def source_under(rule, integers, floats):
    """A format's Source under a rule, from its tables."""
    return Source(*(source_ints(rule, integers) + source_reals(rule, floats)))


@kernel
def target_under(rule, integers, floats):
    """A format's Target under a rule, from its tables."""
    return Target(*(target_ints(rule, integers) + target_reals(rule, floats)))


# -- entry functions ---------------------------------------------------------------------------------------------------
#
# Each returns an integer of 64 bits. `limits`: bits of a code, 0 for any, and from bit 8 on whether the results' format has a NaN.


@kernel
def overlarge(rule, name_shift, bits, count):
    """Whether a knob has a value that is none of its own."""
    return ((rule >> name_shift) & bits) >= count


@kernel
def refused(rule, has_nan):
    """Whether a rule means nothing, or asks for a NaN that the format lacks."""
    unknown = (rule & ~ALL_BITS) != 0
    unknown |= overlarge(rule, ROUNDING_SHIFT, MODE_BITS, MODES) | overlarge(rule, OVERFLOW_SHIFT, 3, 3)
    unknown |= overlarge(rule, NAN_SHIFT, NAN_BITS, POLICIES) | overlarge(rule, WIDTH_SHIFT, 63, 53)
    return unknown | ((((rule >> OVERFLOW_SHIFT) & 3) == NAN_RESULT) & (has_nan == 0))


@kernel
def no_code(code, limits):
    """Whether an integer is no code of a format of so many bits."""
    width = limits & 255
    return (width != 0) & ((code >> width) != 0)


@kernel
def mode_of(rule):
    """The rounding mode."""
    return (rule >> ROUNDING_SHIFT) & MODE_BITS


@kernel
def takes_bits(rule):
    """Whether a rounding takes random bits."""
    return (mode_of(rule) == STOCHASTIC) | (mode_of(rule) == UP_OR_DOWN)


@kernel
def random_width(rule):
    """How many."""
    width = np.int64(1) if mode_of(rule) == UP_OR_DOWN else (rule >> WIDTH_SHIFT) & 63
    return width if width != 0 else 52


@kernel
def packed(code, flags):
    """Code and flags in one integer."""
    return (np.int64(code) & np.int64(LOW_WORD)) | (np.int64(flags) << 32)


REFUSAL = REFUSED << 32


def _entry(apply, operands, drawn=None, any_nan=False):
    """entry(a, b, c, rule, bits, limits, source's tables, target's tables): what apply(a, b, c, rule, random, limits, source, target) gives, code
    and flags; `bits` are the random ones.

    So many `operands` are to be codes. `drawn`: whether the rule is to draw, None if it does not matter; `any_nan`: the results' format needs none.
    """

    def entry(a, b, c, rule, bits, limits, source_i, source_f, target_i, target_f):
        wrong = refused(rule, np.int64(1) if any_nan else limits >> 8)
        if operands > 0:
            wrong |= no_code(a, limits)
        if operands > 1:
            wrong |= no_code(b, limits)
        if operands > 2:
            wrong |= no_code(c, limits)
        if drawn is not None:
            wrong |= takes_bits(rule) != drawn
        width = random_width(rule)
        if drawn:
            wrong |= (bits >> width) != 0
        if wrong:
            return np.int64(REFUSAL)
        source, target = source_under(rule, source_i, source_f), target_under(rule, target_i, target_f)
        random = unit_fraction(bits, width) if drawn else target.zero
        code, flags = apply(a, b, c, rule, random, limits, source, target)
        return packed(code, flags)

    return entry


@kernel
def is_quiet(rule):
    """Whether integers are rounded without INEXACT."""
    return ((rule >> QUIET_SHIFT) & 1) != 0


def _way(drawn):
    return "drawn unusual" if drawn else "selected unusual"


@cache
def element_entry(operation, drawn):
    """As `_entry` has it: one element."""
    rounded = loops.rounded(operation, _way(drawn))

    @kernel
    def apply(a, b, c, rule, random, limits, source, target):
        extra = target.zero if is_quiet(rule) else target.one
        return rounded(a, b, c, extra, target.zero, random, source, target)

    return _entry(apply, 3, drawn)


ALL_INTEGERS, ALL_FLOATS = (sum(counts) for counts in zip(count_fields(Source), count_fields(Target), strict=True))


@cache
def compare_entry(relation, signalling):
    """As `_entry` has it: 1 where the relation holds."""
    compare = comparisons.compared(relation)

    @kernel
    def apply(a, b, c, rule, random, limits, source, target):
        return compare(a, b, b, signalling | (target.any_nan_signals != 0), random, 0, source, target)

    return _entry(apply, 2, any_nan=True)


@cache
def extremum_entry(largest, number):
    """As `_entry` has it: the greater or lesser code."""
    choose = comparisons.extreme(largest, number)

    @kernel
    def apply(a, b, c, rule, random, limits, source, target):
        return choose(a, b, b, False, random, 0, source, target)

    return _entry(apply, 2, any_nan=True)


INTEGER_NAN = np.array([policy.integer_nan for policy in NAN_POLICIES.values()])


def _table_at(kind):
    @intrinsic
    def table_at(context, address):
        """A table whose address comes as an integer."""
        table = types.CPointer(kind)
        return table(types.int64), lambda context, builder, signature, arguments: builder.inttoptr(
            arguments[0], context.get_value_type(table)
        )

    return table_at


words_at, values_at = _table_at(types.int64), _table_at(types.float64)


@cache
def integer_entry(width, signed, drawn):
    """As `_entry` has it: an integer; one of 64 bits is stored at the address b."""
    integer = comparisons.integer(drawn)
    least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    lowest, bound, indefinite = float(least), float(most + 1), least or most
    long = width == 64
    widest = np.int64(-(1 << 63)) if long else np.int64(0)
    least, most, indefinite = (np.int64(x - (1 << 64) if x >> 63 == 1 else x) for x in (least, most, indefinite))

    @kernel
    def apply(a, b, c, rule, random, _, source, target):
        policy = INTEGER_NAN[(rule >> NAN_SHIFT) & NAN_BITS]
        replaced = policy == INTEGER_INDEFINITE
        low, high = indefinite if replaced else least, indefinite if replaced else most
        nan = 0 if policy == INTEGER_ZERO else widest if policy == INTEGER_SHORT_ZERO else high
        limits = lowest, bound, nan, low, high, not is_quiet(rule)
        result, raised = integer(a, a, a, limits, random, 0, source, target)
        if long:
            words_at(b)[0] = np.int64(result)
        return result, raised

    return _entry(apply, 1, drawn, any_nan=True)


@cache
def from_integer_entry(signed, drawn):
    """As `_entry` has it: the code of an integer a of 64 bits."""
    rounded = loops.rounded("convert_more", _way(drawn))

    @kernel
    def apply(a, b, c, rule, random, limits, source, target):
        odd, more = integer_to_odd(a, signed)
        code = np.int64(float_bits(odd))
        return rounded(code, code, code, target.zero, more, random, source, target)

    return _entry(apply, 0, drawn)


@cache
def tabled_entry(operands):
    """As `_entry` has it: a function of one or two codes, by its value at each. c is the address of a table.

    The table has a value for each code, and after these for +0 and -0, which stand for subnormals that count as zero; of two
    operands a row for each a.
    """
    rounded, binary = loops.rounded("given", _way(False)), operands == 2

    @kernel
    def apply(a, b, c, rule, random, limits, source, target):
        every = np.int64(1) << (limits & 255)
        place = place_of(a, every, source)
        if binary:
            place = place * (every + 2) + place_of(b, every, source)
        second = b if binary else a
        return rounded(a, second, second, values_at(c)[place], target.zero, random, source, target)

    return _entry(apply, 2, False)


@kernel
def place_of(code, every, source):
    """Where the value at a code is."""
    x = decode(code, source)
    return every + np.int64(float_bits(x) < 0) if x == 0.0 else code


def xoroshiro_entry(state, width, seed, modifier):
    """The next random bits of the IPU's generator, whose two words lie at the address `state`; width 0 seeds it as poprand does."""
    if width > 52:
        return np.int64(-1)
    words = words_at(state)
    if width < 1:
        first, second = np.uint64(seed), np.uint64(SEEDED | ((modifier & LOW_WORD) ^ 0x55555555) << 32)
        for _ in range(SKIPPED):
            _, first, second = xoroshiro128aox(first, second)
        output = np.uint64(0)
    else:
        output, first, second = xoroshiro128aox(np.uint64(words[0]), np.uint64(words[1]))
    words[0], words[1] = np.int64(first), np.int64(second)
    return np.int64(output >> np.uint64(64 - width)) if width > 0 else np.int64(0)


SEEDED, SKIPPED = 0xAAAAAAA0, 15  # `engine.draws.poplar_state`, of tile 0 and worker 0


def decode_entry(a, b, c, rule, bits, limits, source_i, source_f, target_i, target_f):
    """As `_entry` has it: the bits of the float64."""
    if no_code(a, limits):
        return np.int64(0x7FF8000000000000)
    return np.int64(float_bits(decode(a, source_under(np.int64(0), source_i, source_f))))


def random_entry(key, stream, position, width):
    """Random bits of an address; all ones where the width or the position has none."""
    if width < 1 or width > 52 or position < 0 or position >= 1 << 62:
        return np.int64(-1)
    return np.int64(bits_at(np.uint64(position), np.uint64(key), np.uint64(stream), width))


# -- dot products ------------------------------------------------------------------------------------------------------


PLAN, LENGTH, STAGE = len(Plan._fields), len(Length._fields), len(StageRow._fields)
HOW_KIND, HOW_BLOCK, HOW_ADDEND, HOW_FIRST, HOW_PAYLOADS = (
    Choices._fields.index(name) for name in ("kind", "block", "has_addend", "first", "payloads")
)
DAZ_BIT = KNOBS["daz"].mask


@intrinsic
def _moved(context, pointer, count):
    """A pointer, so many elements on."""
    return pointer(pointer, count), lambda context, builder, signature, arguments: builder.gep(
        arguments[0], [arguments[1]]
    )


@row
def floats_at(floats, start):
    """Two numbers of a table."""
    found = numba.carray(_moved(floats, start), (2,))
    return found[0], found[1]


@row
def code_at(data, i, size):
    """A code of `size` bytes, the lowest first."""
    code = np.int64(0)
    for byte in range(size):
        code |= np.int64(data[i * size + byte]) << (8 * byte)
    return code


@row
def stage_rule(rule, stage):
    """A caller's rule as it holds at a stage."""
    return (rule & stage.keep) | stage.fixed


@row
def stage_at(stages, site):
    """A stage."""
    return StageRow(*fixed_tuple(stages[site], STAGE))


@row
def stage_source(rule, stage, integers, floats):
    """What codes of a stage mean."""
    return source_under(rule, _moved(integers, stage.source_integers), _moved(floats, stage.source_floats))


@row
def load_operands(data, size, limits, source, values, codes, index, given, filled, signals):
    """Operands along k in the order of the sum: values, codes; OR-ed: 1 for a signalling NaN, 2 for what is no code."""
    found = signals
    for i in range(given):
        code = code_at(data, i, size)
        if no_code(code, limits):
            found |= 2
        if is_signalling(code, source):
            found |= 1
    for i in range(filled):
        place = index[i] if index.size else i
        values[i] = 0.0
        codes[i] = 0
        if place >= 0:
            code = code_at(data, place, size)
            values[i] = decode(code, source)
            codes[i] = code
    return found


@kernel
def lead(value, tiny, of_zero):
    """2^exponent of a factor, a subnormal's that of its format; 0 for an infinity and a NaN, which set no grid."""
    power = bits_float(float_bits(value) & 0x7FF0000000000000, value)
    return (max(power, tiny) if value != 0.0 else of_zero) if abs(value) < np.inf else 0.0


def dot_entry(k, a, b, c, has_c, rule, key, stream, position, start, integers, floats, data):
    """One dot product of k products, numbered `position` among outputs; its plan is `start` integers into the table."""
    plan = Plan(*fixed_tuple(numba.carray(_moved(integers, start), (PLAN,)), PLAN))
    if refused(rule, np.int64(1)) or k < 1 or k > plan.longest or position < 0 or position >= 1 << 32:
        return np.int64(REFUSAL)
    length = Length(*fixed_tuple(numba.carray(_moved(integers, plan.lengths + k * LENGTH), (LENGTH,)), LENGTH))
    choices = numba.carray(_moved(integers, plan.choices), (HOW_FIELDS,)).copy()
    filled, sites, planned = length.filled, plan.sites, Choices(*fixed_tuple(choices, HOW_FIELDS))
    if filled < 0 or (has_c != 0 and no_code(c, plan.limits_c)):
        return np.int64(REFUSAL)
    stages = numba.carray(_moved(integers, plan.stages), (sites + 1, STAGE))
    ints, reals = np.empty((sites + 2, ALL_INTEGERS), np.int64), np.empty((sites + 2, ALL_FLOATS))
    draws = np.zeros(sites, np.int64)
    for site in range(sites + 2):
        stage = stage_at(stages, min(site, sites))
        own = stage_rule(rule, stage)
        if refused(own, stage.has_nan):
            return np.int64(REFUSAL)
        from_i, from_f = _moved(integers, stage.source_integers), _moved(floats, stage.source_floats)
        to_i, to_f = _moved(integers, stage.target_integers), _moved(floats, stage.target_floats)
        its_ints = source_ints(own, from_i) + target_ints(own, to_i)
        its_reals = source_reals(own, from_f) + target_reals(own, to_f)
        for i in range(ALL_INTEGERS):
            ints[site, i] = its_ints[i]
        for i in range(ALL_FLOATS):
            reals[site, i] = its_reals[i]
        if site < sites and stage.present != 0 and takes_bits(own):
            draws[site] = random_width(own)
    arithmetic = stage_rule(rule, stage_at(stages, plan.arithmetic))
    reading = (arithmetic & DAZ_BIT) if plan.daz < 0 else plan.daz * DAZ_BIT
    carries = length.carries != 0 and NAN_CARRIED[(arithmetic >> NAN_SHIFT) & NAN_BITS] != 0
    index = numba.carray(_moved(integers, max(length.order, 0)), (filled if length.order >= 0 else 0,))
    x, y = np.zeros((1, filled)), np.zeros((1, filled))
    codes_x, codes_y = np.zeros((1, filled), np.uint32), np.zeros((1, filled), np.uint32)
    source = stage_source(reading, stage_at(stages, sites), integers, floats)
    found = load_operands(a, plan.size, plan.limits, source, x[0], codes_x[0], index, k, filled, 0)
    found = load_operands(b, plan.size, plan.limits, source, y[0], codes_y[0], index, k, filled, found)
    if found & 2:
        return np.int64(REFUSAL)
    value, entry = np.zeros((1, 1)), np.zeros((1, 1), np.uint32)
    if has_c != 0:
        entered = stage_at(stages, planned.entered)
        rule_c = stage_rule(rule, entered)
        source_c = stage_source(rule_c, entered, integers, floats)
        value[0, 0], entry[0, 0] = decode(c, source_c), c
        if (
            planned.unsigned_products != 0
            and (rule_c & DAZ_BIT) != 0
            and value[0, 0] == 0.0
            and decode(c, stage_source(rule_c ^ DAZ_BIT, entered, integers, floats)) != 0.0
        ):
            value[0, 0] = 0.0
        found |= 1 if is_signalling(c, source_c) else 0
    choices[HOW_KIND], choices[HOW_BLOCK], choices[HOW_ADDEND] = length.kind, length.block, has_c
    choices[HOW_FIRST], choices[HOW_PAYLOADS] = position, 1 if carries else 0
    codes, flags = np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.uint8)
    flags[0, 0] = 16 if found & 1 else 0
    counts, extremes = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0))
    stores = numba.carray(_moved(data, length.stores), (length.blocks,))
    closes = numba.carray(_moved(data, length.closes), (length.blocks,))
    stored = numba.carray(_moved(data, plan.stored), (planned.levels,))
    magics = numba.carray(_moved(floats, plan.magics), (plan.bins,))
    tiny = numba.carray(_moved(floats, plan.magics + plan.bins), (3,))
    of_zero, scale = floats_at(floats, plan.magics + plan.bins + 3)
    leads_x, leads_y, scales = np.ones((1, filled)), np.ones((1, filled)), np.zeros((0, 0))
    for i in range(filled):
        if planned.group == 1:
            leads_x[0, i], leads_y[0, i] = lead(x[0, i], tiny[0], of_zero), lead(y[0, i], tiny[1], of_zero)
        x[0, i] *= scale
        leads_x[0, i] *= scale
    begun, how = np.zeros(sites, np.int64), Choices(*fixed_tuple(choices, HOW_FIELDS))
    numbers, running, totals, stack, parts, words, payloads = on_the_way(how, magics.size, sites)
    call = reference(
        Call(
            how, x, y, value, entry, leads_x, leads_y, scales, scales, codes_x, codes_y, codes, flags, counts, extremes, stores, closes,
            stored, draws, begun, np.zeros((0, 0), np.int64), ints, reals, tiny, magics, np.uint64(key), np.uint64(stream), None,
            numbers, running, totals, stack, parts, words, payloads,
        )
    )  # fmt: skip
    contraction(0, 1, call)
    return packed(codes[0, 0], flags[0, 0])


contraction = row(dots.contraction().whole.py_func)
NAN_CARRIED = np.array([policy.propagate for policy in NAN_POLICIES.values()])


# -- entries by their names ---------------------------------------------------------------------------------------------


TABLES = (types.CPointer(types.int64), types.CPointer(types.float64))
ELEMENT_SIGNATURE = types.int64(*(types.int64,) * 6, *TABLES, *TABLES)
RANDOM_SIGNATURE = types.int64(*(types.int64,) * 4)
CODES = types.CPointer(types.uint8)
DOT_SIGNATURE = types.int64(types.int64, CODES, CODES, *(types.int64,) * 7, *TABLES, CODES)

INTEGERS = {
    f"to_{'' if signed else 'u'}int{bits}": (bits, signed) for signed in (True, False) for bits in (8, 16, 32, 64)
}
"""Kernels that make integers: bits, whether they have a sign."""
LONG = "to_int64", "to_uint64"
"""Those whose integers do not fit beside flags."""
FROM = {"from_int64": True, "from_uint64": False}
"""Kernels that take integers: whether these have a sign."""


def entry_of(kernel_name):
    """(function, signature) of a kernel by its name: its kind and what it is made for, with spaces between."""
    kind, *made_for = kernel_name.split()
    others = {"xoroshiro": (xoroshiro_entry, RANDOM_SIGNATURE), "random": (random_entry, RANDOM_SIGNATURE)}
    others["dot"] = dot_entry, DOT_SIGNATURE
    if kind in others:
        return others[kind]
    name, drawn = (made_for or [""])[0], kind == "drawn"
    if kind == "compare":
        made = compare_entry(name, made_for[1] == "signalling")
    elif kind == "extremum":
        made = extremum_entry(name == "maximum", made_for[1:] == ["number"])
    elif kind == "table":
        made = tabled_entry(int(name))
    elif kind == "decode":
        made = decode_entry
    elif name in INTEGERS:
        made = integer_entry(*INTEGERS[name], drawn)
    else:
        made = from_integer_entry(FROM[name], drawn) if name in FROM else element_entry(name, drawn)
    return made, ELEMENT_SIGNATURE
