"""Vectors of carrier values as operands of ordinary expressions, in code that is being generated.

LLVM makes vector code of plain loops, but keeps a tile of running sums in memory where k is the outer loop. Here the vectors are
written out. Those wider than the CPU's are split by LLVM: the code is portable, the width is a matter of speed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from llvmlite import ir
from numba.core import cgutils

ROWS = 8
LANES = {np.float32: 16, np.float64: 8}
"""Numbers in a vector of 512 bits."""

_SUFFIXES = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i16": "i16", "i8": "i8"}
INDEX = ir.IntType(64)
_DIRECTIONS = {"down": 8 | 1, "up": 8 | 2, "zero": 8 | 3}
"""Rounding in an instruction itself, without exceptions (Intel SDM, EVEX.RC)."""


@lru_cache(maxsize=4096)
def _written(kind, count, x, _):
    return ir.Constant(ir.VectorType(kind, count), [x] * count)


def everywhere(kind, count, x):
    """A number in every lane, which is made and written as text once. -0 is not 0 there."""
    return _written(kind, count, x, repr(x))


def _operator(float_name, integer_name):
    """An operator that is an instruction of one name for floats, of another for integers."""

    def operate(self, other):
        return self._binary(other, float_name, integer_name)

    return operate


def _comparison(sign):
    def compare(self, other):
        return self._compare(sign, other)

    return compare


def _intrinsic(name, says):
    """A method that is a function of LLVM's own."""

    def call(self, *others):
        return self._call(name, *others)

    call.__doc__ = says
    return call


def _directed(name, says):
    """A method that is an instruction with a direction: rounded "down", "up" or toward "zero"; it needs AVX-512."""

    def call(self, direction, *others):
        return self._toward(name, direction, *others)

    call.__doc__ = says
    return call


class Vector:
    """A vector in code being generated. Numbers beside it are the same in every lane."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    @property
    def element(self):
        """LLVM's type of a lane."""
        return self.value.type.element

    @property
    def is_float(self):
        """Whether lanes are floating-point numbers."""
        return isinstance(self.element, (ir.FloatType, ir.DoubleType, ir.HalfType))

    def _like(self, other):
        if isinstance(other, Vector):
            return other.value
        return everywhere(self.element, self.value.type.count, other)

    def _new(self, value):
        return Vector(self.builder, value)

    def _typed(self, element):
        return ir.VectorType(element, self.value.type.count)

    def _binary(self, other, float_name, integer_name):
        name = float_name if self.is_float else integer_name
        return self._new(getattr(self.builder, name)(self.value, self._like(other)))

    __add__, __sub__, __mul__ = _operator("fadd", "add"), _operator("fsub", "sub"), _operator("fmul", "mul")
    __truediv__ = _operator("fdiv", "")
    __and__, __or__, __xor__ = _operator("", "and_"), _operator("", "or_"), _operator("", "xor")
    __lshift__, __rshift__ = _operator("", "shl"), _operator("", "ashr")

    def __neg__(self):
        return self._new(self.builder.fneg(self.value) if self.is_float else self.builder.neg(self.value))

    def __invert__(self):
        return self ^ -1

    def logical_right(self, other):
        """Shifted right, zeros moving in."""
        return self._binary(other, "", "lshr")

    def _compare(self, sign, other):
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self._new(compare(sign, self.value, self._like(other)))

    __lt__, __gt__, __ge__, __le__ = (_comparison(sign) for sign in ("<", ">", ">=", "<="))

    def words(self, width=16):
        """The bits of lanes as two integers of this width each, the low half first: an instruction compares both halves of all of them."""
        if not self.is_float and self.element.width == width:
            return self
        return self._new(self.builder.bitcast(self.value, ir.VectorType(ir.IntType(width), 2 * self.value.type.count)))

    def low_halves(self, other):
        """Of lanes of 64 bits the low halves, alternately of this and of another."""
        count = 2 * self.value.type.count
        places = [lane if lane % 2 == 0 else count + lane - 1 for lane in range(count)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), count), places)
        return self._new(self.builder.shuffle_vector(self.words(32).value, other.words(32).value, mask))

    def cut(self, element):
        """The low bits of integers."""
        return self._new(self.builder.trunc(self.value, self._typed(element)))

    def long(self, element=INDEX):
        """Integers without sign, or lanes that hold, as ones of 64 bits or of another type."""
        return self._new(self.builder.zext(self.value, self._typed(element)))

    def all_of(self, number):
        """A vector of this type with a number in every lane."""
        return self._new(self._like(number))

    def alternately(self, even, odd):
        """A vector of this type with one number in the first lane and every other one, and another in those between."""
        return self._new(ir.Constant(self.value.type, [even, odd] * (self.value.type.count // 2)))

    def is_zero(self):
        """Lanes that are zero."""
        return self._compare("==", 0.0 if self.is_float else 0)

    def equals(self, other):
        """Lanes of equal numbers."""
        return self._compare("==", other)

    def differs(self, other):
        """Lanes of unequal floats, or with NaN."""
        return self._new(self.builder.fcmp_unordered("!=", self.value, self._like(other)))

    def apart_from(self, other):
        """Lanes of unequal numbers, neither of them NaN."""
        return self._compare("!=", other)

    def nonzero(self):
        """Lanes that are neither zero nor NaN."""
        return self.apart_from(0.0 if self.is_float else 0)

    def _reduced(self, operation):
        """All lanes in one."""
        kind = self.value.type
        name = f"llvm.vector.reduce.{operation}.v{kind.count}i{kind.element.width}"
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(kind.element, [kind]), name)
        return self.builder.call(function, [self.value])

    def anywhere(self):
        """Whether this holds in any lane."""
        return self._reduced("or")

    def nowhere(self):
        """Whether this holds in no lane."""
        return self.builder.not_(self.anywhere())

    def least(self):
        """The least of all lanes, integers without sign."""
        return self._reduced("umin")

    def greatest(self):
        """The greatest."""
        return self._reduced("umax")

    def below(self, other):
        """Lanes that are less, of integers without sign."""
        return self._new(self.builder.icmp_unsigned("<", self.value, self._like(other)))

    def choose(self, chosen, otherwise):
        """Lane by lane: `chosen` where this holds."""
        kind = chosen if isinstance(chosen, Vector) else otherwise
        return self._new(self.builder.select(self.value, kind._like(chosen), kind._like(otherwise)))

    def bits(self):
        """Floats as integers of the same width; integers as they are."""
        if not self.is_float:
            return self
        integer = {"float": ir.IntType(32), "double": ir.IntType(64)}[str(self.element)]
        return self._new(self.builder.bitcast(self.value, self._typed(integer)))

    def floats(self):
        """Integers as floats of the same width, pairs of words as one; floats as they are."""
        if self.is_float:
            return self
        if self.element.width == 16:
            return self._new(
                self.builder.bitcast(self.value, ir.VectorType(ir.FloatType(), self.value.type.count // 2))
            )
        kind = {32: ir.FloatType(), 64: ir.DoubleType()}[self.element.width]
        return self._new(self.builder.bitcast(self.value, self._typed(kind)))

    def _called(self, name, *others, last=()):
        """What a function of LLVM's makes of this, others like it, and what comes `last`."""
        values = [self.value, *map(self._like, others), *last]
        kind = ir.FunctionType(self.value.type, [x.type for x in values])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self._new(self.builder.call(function, values))

    def _call(self, name, *others):
        return self._called(f"llvm.{name}.v{self.value.type.count}{_SUFFIXES[str(self.element)]}", *others)

    def _toward(self, name, direction, *others):
        suffix = {"float": "ps", "double": "pd"}[str(self.element)]
        mode = ir.Constant(ir.IntType(32), _DIRECTIONS[direction])
        return self._called(f"llvm.x86.avx512.{name}.{suffix}.512", *others, last=(mode,))

    fused = _intrinsic("fma", "self * b + c, rounded once.")
    fused_toward = _directed("vfmadd", "self * b + c in a direction.")
    plus_toward = _directed("add", "self + other in a direction.")
    times_toward = _directed("mul", "self * other in a direction.")
    truncated = _intrinsic("trunc", "Rounded toward zero to an integer.")
    floored = _intrinsic("floor", "Rounded down to an integer.")
    ceiled = _intrinsic("ceil", "Rounded up to an integer.")
    nearest = _intrinsic("rint", "Rounded to the nearest integer, of two to the even one.")
    root = _intrinsic("sqrt", "The square root, nearest even.")
    magnitude = _intrinsic("fabs", "Without the sign.")
    with_sign = _intrinsic("copysign", "The magnitude with another's sign.")
    at_least_signed = _intrinsic("smax", "The greater, lane by lane, of integers with sign.")
    at_most_signed = _intrinsic("smin", "The lesser, lane by lane, of integers with sign.")

    def integers(self):
        """Numbers rounded toward zero, of which integers of the same width hold every one."""
        kind = {32: ir.IntType(32), 64: ir.IntType(64)}[self.bits().element.width]
        return self._new(self.builder.fptosi(self.value, self._typed(kind)))

    def numbers(self):
        """Integers as the nearest floats of the same width."""
        kind = {32: ir.FloatType(), 64: ir.DoubleType()}[self.element.width]
        return self._new(self.builder.sitofp(self.value, self._typed(kind)))

    def doubles(self):
        """Integers as float64, which has those of 32 bits."""
        return self._new(self.builder.sitofp(self.value, self._typed(ir.DoubleType())))

    def at_least(self, other):
        """The greater, lane by lane, of integers that are not negative or of numbers; never of NaN."""
        if self.is_float:
            return (self > other).choose(self, other)
        return self._call("umax", other)

    def at_most(self, other):
        """The lesser, lane by lane, of integers without sign, or of numbers; the other where this is NaN."""
        if self.is_float:
            return (self < other).choose(self, other)
        return self._call("umin", other)

    def single(self):
        """float64 to float32, nearest even."""
        return self._new(self.builder.fptrunc(self.value, self._typed(ir.FloatType())))

    def double(self):
        """float32 to float64."""
        return self._new(self.builder.fpext(self.value, self._typed(ir.DoubleType())))

    def singles(self, reading):
        """Codes of 16 bits, "half" (needs F16C) or "bfloat16", as float32."""
        if reading == "half":
            half = self.builder.bitcast(self.value, self._typed(ir.HalfType()))
            return self._new(self.builder.fpext(half, self._typed(ir.FloatType())))
        return (self._new(self.builder.zext(self.value, self._typed(ir.IntType(32)))) << 16).floats()

    def halves(self):
        """float32 that half has as codes of it; needs F16C."""
        half = self.builder.fptrunc(self.value, self._typed(ir.HalfType()))
        return self._new(self.builder.bitcast(half, self._typed(ir.IntType(16))))

    def through_half(self):
        """float32 to half and back by the CPU, nearest even; needs F16C."""
        half = self.builder.fptrunc(self.value, self._typed(ir.HalfType()))
        return self._new(self.builder.fpext(half, self.value.type))


class Number(Vector):
    """One number in code being generated, as a vector of one lane that has no vector's type."""

    @property
    def element(self):
        """LLVM's type of it."""
        return self.value.type

    def _like(self, other):
        return other.value if isinstance(other, Vector) else ir.Constant(self.value.type, other)

    def _new(self, value):
        return type(self)(self.builder, value)

    def _typed(self, element):
        return element


def load(builder, pointer, where, element, lanes):
    """A vector from memory of any alignment."""
    vector = ir.VectorType(element, lanes)
    loaded = builder.load(builder.bitcast(builder.gep(pointer, [where]), vector.as_pointer()))
    loaded.align = 2 if element == ir.IntType(16) else 4
    return Vector(builder, loaded)
