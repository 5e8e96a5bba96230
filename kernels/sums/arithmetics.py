"""Which arithmetic a stage has in an order: with care, and quickly where that is less work."""

from ..fast import has_feature
from .careful import Careful, CarefulDraws, Whole
from .guarded import guarded
from .native import CarefulSingle, CarefulSingleDraws, QuickSingleDraws
from .quick import LIFT, Lifted, Quick, QuickDraws, Split, read_as_zero

__all__ = [
    "Lifted",
    "QuickDraws",
    "Split",
    "careful",
    "is_lifted",
    "lift",
    "mends",
    "quick",
    "splits",
    "unfit",
    "whole",
]


def careful(stage):
    """The arithmetic of a stage that has every bit that decides."""
    if stage.draws:
        found = CarefulSingleDraws if stage.native else CarefulDraws
    else:
        found = CarefulSingle if stage.native else Careful
    return guarded(found) if stage.specials else found


def whole(stage):
    """That of one output, which has all random bits."""
    return guarded(Whole) if stage.specials else Whole


def quick(stage, order, counts, grid=False):
    """The quick one, if there is one: of sums rounded to nearest, those of products that are rounded, and of bfloat16, are quick with care."""
    if stage.specials:
        return None
    if stage.draws:
        return QuickSingleDraws if stage.native else QuickDraws
    if grid and not counts and is_lifted(order, stage):
        return Lifted
    plain = stage.nearest and not (stage.daz or stage.ftz)
    if stage.native or order.compensates or (plain and not counts and not (order.fuses and stage.family != "bfloat16")):
        return None
    return Quick


def splits(order, stage):
    """Whether `Split` does for sums that no overflow threatens."""
    rounds = order.in_order and order.multiplies and not (order.fuses or order.compensates)
    plain = stage.nearest and not (stage.daz or stage.ftz or stage.wide or stage.specials)
    return rounds and plain and (stage.family == "bfloat16" or (stage.family == "half" and not stage.noted))


def is_lifted(order, stage):
    """Whether `Lifted` and `Split` ask about the least numbers of turns: for halves, times LIFT, whose overflows are float32's then."""
    return stage.family == "half" and splits(order, stage)


def lift(stage, order, observer):
    """What sums may be multiplied by: halves by as much as tells small ones from zero for one instruction less. With care, where nothing is
    flushed to nearest, their overflow is float32's then."""
    most = LIFT if stage.family == "half" else 1.0
    if stage.specials:
        return 1.0
    if order.compensates and not stage.draws:
        return most if stage.keeps_errors and not stage.wide else 1.0
    return 1.0 if observer.looks else most


def unfit(stage):
    """unfit(turn, sums): which sums a quick one cannot begin with, as a bit: those that read as zero, and are none; None: it can with all.

    What it makes itself is watched.
    """
    return read_as_zero if stage.daz else None


def mends(stage, order, counts, lifted):
    """Whether ties that went wrong are all that goes wrong, mostly, and are put right by themselves: of halves where the CPU has directions."""
    return lifted and not (stage.draws or counts) and order.fuses and stage.nearest and has_feature("avx512f")
