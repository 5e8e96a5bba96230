"""Rules as one integer, and formats under every rule as tables, for functions that others call: standard library only.

    bits 0-3 rounding, 4-5 overflow, 6 tininess, 7-8 infinite_input, 9 daz, 10 ftz, 11-14 NaN policy, 15 integers rounded
    without INEXACT, 16-21 random bits of a rounding (0: 52)

Each number of a `Source` or `Target` hangs on few of these knobs, so a table has a short row for each combination of them alone.
"""

from typing import NamedTuple

from .spec import NAN_POLICIES, InfiniteInput, Overflow, Rounding, Tininess
from .targets import names_of

REFUSED = 0x80
"""Among flags: nothing was computed."""


class Knob(NamedTuple):
    """A choice of a rule."""

    shift: int
    values: int

    @property
    def bits(self):
        """Those that a value may have, before they are shifted."""
        return (1 << (self.values - 1).bit_length()) - 1

    @property
    def mask(self):
        """Where it lies in a rule."""
        return self.bits << self.shift


KNOBS = {
    "rounding": Knob(0, len(Rounding)),
    "overflow": Knob(4, len(Overflow)),
    "tininess": Knob(6, len(Tininess)),
    "infinite_input": Knob(7, len(InfiniteInput)),
    "daz": Knob(9, 2),
    "ftz": Knob(10, 2),
    "nan": Knob(11, len(NAN_POLICIES)),
    "quiet_integers": Knob(15, 2),
    "random_width": Knob(16, 53),
}
"""Name -> where it lies in a rule, and how many values it has."""

ALL_BITS = sum(knob.mask for knob in KNOBS.values())

BY_KNOBS = {
    ("daz",): ("flush_below",),
    ("ftz",): ("ftz",),
    ("overflow",): ("overflow_flags",),
    ("tininess",): ("late",),
    ("infinite_input",): ("infinity_flags",),
    ("random_width",): ("window_low", "window_high"),
    ("nan",): ("nan", "any_nan_signals", "product_invalid", "addend_first", "number_signalling", "second_operand"),
    ("rounding",): (
        *("downward", "stochastic", "up_positive_even", "up_positive_odd", "up_negative_even", "up_negative_odd"),
        *("sticky_unit", "draw_least"),
    ),
    ("rounding", "nan"): ("propagate", "quieting"),
    ("rounding", "tininess"): ("tiny_positive", "tiny_negative"),
    ("rounding", "overflow", "nan"): ("overflow_positive", "overflow_negative", "beneath"),
    ("overflow", "infinite_input", "nan"): ("infinity_positive", "infinity_negative"),
}
"""Which numbers of a Source or Target hang on which knobs; those not listed on none."""
DEPENDS = {name: knobs for knobs, names in BY_KNOBS.items() for name in names}


class Group(NamedTuple):
    """Numbers of one kind that hang on the same knobs: a row of them for each combination."""

    knobs: tuple
    fields: tuple
    base: int

    def rows(self):
        """Combinations of knobs, in the order of the rows."""
        found = [{}]
        for name in self.knobs:
            found = [{**row, name: value} for row in found for value in range(KNOBS[name].values)]
        return found


def groups(numbers, kind):
    """The groups of the integers or floats of a Source or Target."""
    members: dict[tuple, list] = {}
    for name in names_of(kind, numbers):
        members.setdefault(DEPENDS.get(name, ()), []).append(name)
    found, base = [], 0
    for knobs, fields in sorted(members.items()):
        found.append(Group(knobs, tuple(fields), base))
        base += len(found[-1].rows()) * len(fields)
    return found


def table(numbers, kind, make):
    """One kind of numbers for every rule; `make` gives a Source or Target for some knobs, the others as they are by default."""
    found = []
    for group in groups(numbers, kind):
        for knobs in group.rows():
            made = make(knobs)
            found += [getattr(made, name) for name in group.fields]
    return found


class Plan(NamedTuple):
    """An accumulator for the codes of two formats, as integers at the start of its part of a table."""

    choices: int  # where in the integers: those of `dots.Choices` that no call and no length moves
    arithmetic: int  # the stage whose policy counts
    sites: int
    bins: int
    longest: int
    size: int  # bytes of an operand's code
    limits: int  # bits of it
    limits_c: int
    daz: int  # of operands: 0, 1, or -1 for that of `arithmetic`
    lengths: int  # where in the integers: for each k a `Length`
    stages: int  # where in the integers: a `StageRow` for each stage, then for operands
    magics: int  # where in the floats: the bins' grids, the three of `Call.tiny`, the lead of a zero, what products are multiplied by
    stored: int  # where in the bytes


class Length(NamedTuple):
    """A program for one length of k; `filled` is -1 where there is none."""

    filled: int
    kind: int
    carries: int  # whether payloads of NaNs pass, if the policy lets them
    block: int
    order: int  # where in the integers, -1: as they are
    blocks: int
    stores: int  # where in the bytes
    closes: int


class StageRow(NamedTuple):
    """Where a stage rounds: `keep` are the bits of the caller's rule that hold there, `fixed` the others."""

    present: int
    keep: int
    fixed: int
    has_nan: int
    source_integers: int
    source_floats: int
    target_integers: int
    target_floats: int
