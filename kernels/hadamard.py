"""Runs of numbers times diag(signs) * H / sqrt(n) as a tensor core sums them, by butterflies of integers.

An aligned sum cuts each term toward zero to a grid that the largest one sets, and is exact from there on. Here every entry of the
matrix is a power of two up to its sign, so all sums of a run have the same terms but for signs, and the same grid: terms are
cut once and added as integers, a run in a vector. Runs with numbers at the ends of the range are left to the plain way, and marked.
"""

from typing import NamedTuple

from llvmlite import ir

from .sums.language import BYTE, LONG, WORD, Code, Int
from .vectors import Vector

LOWEST, HIGHEST = 64, 240
"""Exponent fields of the largest number of a run, so that no sum leaves the normal range."""
MAGNITUDE, FRACTION, LEADING = 0x7FFFFFFF, 0x007FFFFF, 1 << 23
FARTHEST = 31
LANES = 64
"""Numbers that go together, runs that do not wait for each other."""
TRANSFORM_POINTERS = {"numbers": WORD, "results": WORD, "left": BYTE, "signs": WORD}
TRANSFORM_FIELDS = *TRANSFORM_POINTERS, "runs", "cut_bits", "dropped", "root"
"""What a call hands over: addresses of bits of float32, run after run, of marks and signs; how many runs there are; how far below float32's last bit
the grid of the largest number lies; bits that numbers and results are rounded by, to nearest even; the binary logarithm of sqrt(n)."""


class Transform(NamedTuple):
    """A transform of runs of so many numbers, as a value: `kernels.sums.target` makes the loop."""

    n: int

    @property
    def draws(self):
        """As `target` asks."""
        return False


class Hadamard:
    """The loop of a transform: `loop` takes TRANSFORM_FIELDS, and returns bits that are not 0 where anything was rounded."""

    def __init__(self, what):
        self.module = ir.Module("transform")
        function = ir.Function(self.module, ir.FunctionType(LONG, [LONG.as_pointer()]), "loop")
        code, self.n = Code(function, what.n), what.n
        self.call = {name: code.get(function.args[0], number) for number, name in enumerate(TRANSFORM_FIELDS)}
        for name, kind in TRANSFORM_POINTERS.items():
            self.call[name] = code.builder.inttoptr(self.call[name].value, kind.as_pointer())
        runs, together, seen = self.call["runs"], max(LANES // self.n, 1), code.variable(code.int(0))
        whole = runs // together * together
        self._some(code.of(together * self.n), code.int(0), whole, seen)
        self._some(code, whole, runs, seen)
        code.builder.ret(seen.get().value)

    def _some(self, code, first, stop, seen):
        """Code of runs first ... stop - 1, as many together as a vector holds."""
        together, call = code.lanes // self.n, self.call
        self.cut_bits, self.dropped, self.root = (code.splat(call[x].cut(WORD)) for x in TRANSFORM_FIELDS[-3:])
        self.mask = (code.everywhere(1, WORD) << self.dropped) - 1
        signs = code.of(self.n).load(call["signs"]) >> 31
        lanes = ir.Constant(ir.VectorType(WORD, code.lanes), [lane % self.n for lane in range(code.lanes)])
        self.signs = Vector(code.builder, code.builder.shuffle_vector(signs.value, signs.value, lanes))
        lost_so_far = code.variable(code.everywhere(0, WORD))
        with code.loop((stop - first) // together) as number:
            run = first + number * together
            made, lost, ordinary = self._run(code.load(call["numbers"], run * self.n))
            code.store(made, call["results"], run * self.n)
            lost_so_far.set(lost_so_far.get() | ordinary.choose(lost, 0))
            with code.when(Int(code.builder, (~ordinary).anywhere()), rarely=True):
                for n in range(together):
                    left = code.builder.extract_element((~ordinary).value, ir.Constant(WORD, n * self.n))
                    code.put(Int(code.builder, code.builder.zext(left, BYTE)), call["left"], run + n)
        seen.set(seen.get() | code.united(lost_so_far.get()).long())

    def _across(self, x, step):
        """The numbers that lie so far from each, on the other side of a butterfly."""
        lanes = x.value.type.count
        places = ir.Constant(ir.VectorType(WORD, lanes), [lane ^ step for lane in range(lanes)])
        return Vector(x.builder, x.builder.shuffle_vector(x.value, x.value, places))

    def _rounded(self, magnitude):
        """Bits of a magnitude, rounded to nearest even."""
        half, odd = self.mask.logical_right(1), magnitude.logical_right(self.dropped) & self.mask & 1
        return (magnitude + half + odd) & ~self.mask

    def _run(self, bits):
        """(results of a run, bits that were lost, whether the run is ordinary) of the bits of its numbers."""
        steps = [1 << n for n in range(self.n.bit_length() - 1)]
        magnitude = bits & MAGNITUDE
        kept = self._rounded(magnitude)
        lost = kept ^ magnitude
        largest = (lost.nonzero() & magnitude.below(LEADING)).choose(-1, kept)  # what rounds there is tiny
        for step in steps:
            largest = largest.at_least(self._across(largest, step))
        ordinary = (largest - (LOWEST << 23)).below((HIGHEST + 1 - LOWEST) << 23) | largest.is_zero()
        most, exponent = (x.logical_right(23) for x in (largest, kept))
        whole = ((kept & FRACTION) | exponent.nonzero().choose(kept.all_of(LEADING), 0)) << self.cut_bits
        far = (most - exponent).at_most(FARTHEST)
        term = whole.logical_right(far)
        lost, negative = lost | ((term << far) ^ whole), (bits >> 31) ^ self.signs
        total = (term ^ negative) - negative
        for step in steps:
            second = ir.Constant(total.value.type, [-(lane & step != 0) for lane in range(total.value.type.count)])
            second = Vector(total.builder, second)
            total = self._across(total, step) + ((total ^ second) - second)
        negative = total >> 31
        whole = (total ^ negative) - negative
        nearest = whole.numbers()
        kept = nearest.bits() - (nearest.integers() > whole).long(WORD)
        rounded = self._rounded(kept)
        lost = lost | (nearest.integers() ^ whole) | (rounded ^ kept)
        field = (most - self.cut_bits - self.root - 150) << 23
        return whole.nonzero().choose(rounded + field, 0) | (negative & (1 << 31)), lost, ordinary
