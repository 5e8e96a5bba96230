"""Code of a thread of a GPU: single numbers in the place of vectors, and what the threads of a block share."""

from llvmlite import ir
from numba.core import cgutils

from ..vectors import Number
from .language import LONG, SINGLE, WORD, Code, Int
from .language import SIZES as SIZES_OF

_DIRECTIONS = {"down": "rm", "up": "rp", "zero": "rz"}
"""Roundings in an instruction itself (PTX ISA, rounding modifiers)."""
_NAMES = {"vfmadd": "fma", "add": "add", "mul": "mul"}
_SUFFIXES = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


class Scalar(Number):
    """A number of a thread, in the place of a vector."""

    def _call(self, name, *others):
        return self._called(f"llvm.{name}.{_SUFFIXES[str(self.element)]}", *others)

    def _toward(self, name, direction, *others):
        last = {"float": "f", "double": "d"}[str(self.element)]
        return self._called(f"llvm.nvvm.{_NAMES[name]}.{_DIRECTIONS[direction]}.{last}", *others)

    def _whole(self, direction):
        """A whole number, with this one's sign, of less than a quarter of those that have no fraction: by an addition, as GPUs have few units
        that round to integers."""
        most = 1.5 * 2.0 ** {"float": 23, "double": 52}[str(self.element)]
        return (self.plus_toward(direction, most) - most).with_sign(self)

    def truncated(self):
        """Rounded toward zero to an integer."""
        return self.magnitude()._whole("zero").with_sign(self)

    def floored(self):
        """Rounded down to an integer."""
        return self._whole("down")

    def ceiled(self):
        """Rounded up to an integer."""
        return self._whole("up")

    def _reduced(self, operation):
        return self.value


class ThreadCode(Code):
    """Where a thread's code is written."""

    def __init__(self, function):
        super().__init__(function, 1)

    def everywhere(self, x, kind=SINGLE):
        """A number known by now."""
        return Scalar(self.builder, ir.Constant(kind, x))

    def splat(self, scalar):
        """A number."""
        return Scalar(self.builder, getattr(scalar, "value", scalar))

    def only(self, vector):
        """A number's value."""
        return vector.value

    def load(self, pointer, where=0):
        """A number."""
        return Scalar(self.builder, self.builder.load(self.at(pointer, where)))

    def store(self, vector, pointer, where=0):
        """A number."""
        self.builder.store(vector.value, self.at(pointer, where))

    def register(self, name):
        """A number that the GPU tells each thread (PTX ISA, special registers)."""
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(WORD, []), f"llvm.nvvm.read.ptx.sreg.{name}"
        )
        return Int(self.builder, self.builder.zext(self.builder.call(function, []), LONG))

    def together(self):
        """Wait for all threads of the block."""
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.nvvm.barrier0"
        )
        self.builder.call(function, [])

    def some(self, pointer, where, count):
        """So many numbers side by side, which lie where so many do."""
        item = pointer.type.pointee
        kind = ir.VectorType(item, count)
        place = self.builder.bitcast(self.at(pointer, where), kind.as_pointer())
        found = self.builder.load(place, align=SIZES_OF[item] * count)
        lanes = [self.builder.extract_element(found, ir.Constant(WORD, n)) for n in range(count)]
        return [Scalar(self.builder, lane) for lane in lanes]

    def move(self, source, at, target, to, count):
        """So many numbers from one memory to another."""
        item = source.type.pointee
        kind, align = ir.VectorType(item, count).as_pointer(), SIZES_OF[item] * count
        here, there = (self.builder.bitcast(self.at(*x), kind) for x in ((source, at), (target, to)))
        self.builder.store(self.builder.load(here, align=align), there, align=align)
