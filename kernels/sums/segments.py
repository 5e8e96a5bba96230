"""Sums of segments, or of chains, added up in the loop that sums them, maybe times their scales: what `dot_steps.scaled_addition` and its like do.

Without scales all is as ordinary as the numbers of a sum in order. With scales what is not is seen, and the sums are nothing then: a scale, product
or sum that is infinite or NaN, subnormal or may have been rounded there. So no result hangs on what a host does with subnormals.
"""

from functools import reduce
from operator import or_

from ..accumulate import PRODUCT, RUNNING
from ..fast import INFINITE_BITS, SMALLEST_BITS
from ..steps import INEXACT, LEFT_OPEN, VALUE, Numbers, without_subnormals
from .arithmetics import careful
from .description import Sum
from .language import SINGLE, WORD, Int
from .loop import SAVED, Seen, Turn, is_directed
from .observers import Flags
from .orders import JOIN

FUSED = {
    "scales_fused": (("x", "y"), "sum"), "first_fused": (("sum", "x"), "y"), "second_fused": (("sum", "y"), "x"),
}  # fmt: skip
"""Of an order of `Reduction.scaling`, x and y being a row's and a column's scale: which two are multiplied first, and by what the product is,
in one rounding with the addition. Of all others: "scales_fused" in two."""
MOST_CHAINS = 16
"""That draw, for whose random numbers there is room: more are each drawn for themselves."""
UNUSUAL = 1 << 7
"""What is seen beside the flags of tiles in which something is not ordinary."""


def _unusual(x):
    """Lanes in which a float32 number is subnormal, infinite or NaN."""
    magnitude = x.bits() & 0x7FFFFFFF
    normal = (magnitude - int(SMALLEST_BITS)).below(int(INFINITE_BITS - SMALLEST_BITS))
    return ~(normal | magnitude.is_zero())


def _may_be_tiny(x, lost):
    """Lanes in which a result is beyond the normal numbers, or may have been rounded there."""
    magnitude = x.bits() & 0x7FFFFFFF
    above = (magnitude - int(SMALLEST_BITS) - 1).below(int(INFINITE_BITS - SMALLEST_BITS) - 1)
    return ~(above | (magnitude.is_zero() & ~lost))


class _Addition(Seen):
    """What an arithmetic sees: the CPU, and the numbers of a stage."""

    def __init__(self, code, numbers):
        self._code, self._numbers, self.directed = code, numbers, is_directed(code.lanes)

    def parameter(self, name):
        """A number of the stage."""
        return self._code.splat(self._code.get(self._numbers, Numbers._fields.index(name))).floats()


def _scaled(seen, how, known, total):
    """(total and a part's sum times scales; lanes in which bits were lost; lanes in which not all is ordinary), of numbers known by name."""
    state = {INEXACT: total.bits() & 0}
    steps, lost, wild = (
        careful(how.stage)(seen, how.stage, Flags(), state),
        [],
        [_unusual(known["x"]), _unusual(known["y"])],
    )

    def looked_at(x):
        lost.append(state[INEXACT].bits().nonzero())
        wild.append(_may_be_tiny(x, lost[-1]))
        state[INEXACT] = total.bits() & 0
        return x

    (one, other), last = FUSED.get(how.scaling, FUSED["scales_fused"])
    product = looked_at(steps.product(known[one], known[other]))
    if how.scaling in FUSED:
        total = looked_at(steps.fused(product, known[last], total))
    else:
        total = looked_at(steps.total(total, looked_at(steps.product(product, known[last]))))
    return total, reduce(or_, lost), reduce(or_, wild)


def join(driver, state, i, j, part):
    """Code of all parts of a tile one after the other, each by part(products before which it ends) from 0 in VALUE on, and of their total there."""
    code, call, maker, what = driver.code, driver.call, driver.maker, driver.maker.sum
    how, lanes, total = what.joins, what.lanes, code.room(what.cells)
    nothing, zero = code.everywhere(0.0, maker.item), code.everywhere(0, WORD)
    stage, inner = (_Addition(code, call[name]) for name in ("joining", "numbers"))
    flags, wild_so_far = (INEXACT, *how.stage.slots), code.variable(zero)
    observer = maker.observer if what.counts else Flags()

    def begins(row):
        found = code.load(state, maker.place(VALUE, row))
        return found if found.element == SINGLE else found.single()

    def sums(number):
        with code.loop(what.rows) as row:
            code.store(nothing, state, maker.place(VALUE, row))
        part(code.get(call["ends"], code.int(number) + 1))

    def value(row):
        return without_subnormals(inner, begins(row), maker.stage) if isinstance(what, Sum) else begins(row)

    def add(number):
        if what.counts:
            driver.count_roundings(state, 1)
        with code.loop(what.rows) as row:
            so_far, own = code.load(total, row * lanes), dict.fromkeys(flags, zero)
            if how.scaling:
                of_row = code.get(call["scales_a"], number * call["tall"] + i * what.rows + row)
                of_columns = code.load(call["scales_b"], number * call["wide"] + j * lanes)
                known = {"x": code.splat(of_row).floats(), "y": of_columns.floats(), "sum": value(row)}
                found, lost, wild = _scaled(stage, how, known, so_far)
                own[INEXACT] = lost.choose(1, zero)
                wild_so_far.set(wild_so_far.get() | wild.choose(1, zero))
            else:
                own |= {slot: code.load(state, maker.place(slot, row)) for slot in observer.slots}
                found = careful(how.stage)(stage, how.stage, observer, own).total(so_far, value(row))
            code.store(found, total, row * lanes)
            for slot, x in own.items():
                if slot in flags:
                    noted = code.load(state, maker.place(slot, row)).bits()
                    x = noted | x.bits().nonzero().choose(1, noted & 0)
                code.store(x, state, maker.place(slot, row))

    if how.late:
        sums(0)
    else:
        driver.begin_with_c(state)
    with code.loop(what.rows) as row:
        code.store(begins(row), total, row * lanes)
    with code.loop(call["parts"], int(how.late)) as number:
        sums(number)
        add(number)
    if how.late:
        with code.when(call["has_c"].differs(0)):
            driver.begin_with_c(state)
            add(0)
    with code.loop(what.rows) as row:
        found = code.load(total, row * lanes)
        code.store(found if nothing.element == found.element else found.double(), state, maker.place(VALUE, row))
    if not how.scaling:
        return
    unusual = Int(code.builder, wild_so_far.get().nonzero().anywhere()).choose(code.int(UNUSUAL), code.int(0))
    driver.seen.set(driver.seen.get() | code.splat(unusual if maker.word.width == 64 else unusual.cut(WORD)))


def join_drawn(driver, states, size):
    """Code of the total, in the first, of chains whose states follow each other: additions that draw the numbers after those of all products."""
    code, call, maker, what = driver.code, driver.call, driver.maker, driver.maker.sum
    total, masks, zero = code.room(what.cells, maker.item), maker.masks(call["mask"]), code.everywhere(0.0, maker.item)
    places = {"a": states, "b": states, "noise": driver.noise, "below": total}

    def slot_of(slot, row, state=states):
        return code.load(state, maker.place(slot, row)).bits()

    def restore(cell):
        code.put(code.get(states, cell + maker.place(SAVED)), states, cell + maker.place(VALUE))

    def add(number):
        step = call["step"] + call["length"] + number
        driver.random(RUNNING, step, step + 1, masks[RUNNING])
        with code.loop(what.rows) as row:
            own = dict.fromkeys(maker.noted, zero) | {VALUE: slot_of(VALUE, row).floats()}
            code.store(own[VALUE], states, maker.place(SAVED, row))
            turn = Turn(code, maker, places, row, {RUNNING: step, PRODUCT: code.int(0)}, call["numbers"], masks)
            maker.row(turn, JOIN, careful(maker.stage), Flags(), own)
            opened = own[LEFT_OPEN].bits() < 0
            for slot in (VALUE, *maker.noted):
                so_far = 0 if slot in (VALUE, LEFT_OPEN) else slot_of(slot, row)
                found = own[slot].bits() if slot in (VALUE, LEFT_OPEN) else opened.choose(0, own[slot].bits())
                code.store(found | so_far, states, maker.place(slot, row))
            with code.when(Int(code.builder, opened.anywhere()), rarely=True):
                driver.settle("join", row, places, states, (1, 1, call["mask"], step, 0), restore)
            code.store(slot_of(VALUE, row), total, row * what.lanes)

    with code.loop(what.rows) as row:
        code.store(slot_of(VALUE, row), total, row * what.lanes)
    with code.loop(call["chains"], 1) as chain:
        with code.loop(what.rows) as row:
            for slot in (VALUE, *maker.noted):
                so_far = 0 if slot == VALUE else slot_of(slot, row)
                code.store(slot_of(slot, row, code.at(states, chain * size)) | so_far, states, maker.place(slot, row))
        add(chain - 1)
    with code.when(call["has_c"].differs(0)):
        driver.begin_with_c(states)
        add(call["chains"] - 1)
