"""A small staged language: Python that runs while code is written, in LLVM's terms. LLVM makes registers of its variables.

Numba would type and lower the same code for seconds; what is written here is LLVM's own language from the start.
"""

from contextlib import contextmanager
from copy import copy

from llvmlite import ir
from numba.core import cgutils

from ..vectors import Number, Vector, everywhere

BIT, BYTE, SHORT, WORD, LONG = (ir.IntType(width) for width in (1, 8, 16, 32, 64))
SINGLE, DOUBLE = ir.FloatType(), ir.DoubleType()
SIZES = {BYTE: 1, SHORT: 2, WORD: 4, LONG: 8, SINGLE: 4, DOUBLE: 8}
CACHE_LINE = 64


class Int(Number):
    """An integer, or a bit, in code being written. Numbers beside it are of its type."""

    def __rshift__(self, x):
        """Zeros moving in."""
        return self.logical_right(x)

    def __floordiv__(self, x):
        return self._binary(x, "", "udiv")

    def __mod__(self, x):
        return self._binary(x, "", "urem")

    same, differs = Number.equals, Number.apart_from

    def least(self, x):
        """The lesser."""
        return (self < x).choose(self, x)

    def trailing_zeros(self):
        """Zeros after the last bit that is set."""
        return self._new(self.builder.cttz(self.value, ir.Constant(BIT, 0)))


class Variable:
    """A place for a value, which becomes a register."""

    def __init__(self, place, kind, builder):
        self._place, self._kind, self._builder = place, kind, builder

    def get(self):
        """What it holds."""
        return self._kind(self._builder, self._builder.load(self._place))

    def set(self, x):
        """Hold another."""
        self._builder.store(x.value, self._place)


class Code:
    """Where code is written: a function. Vectors have so many lanes."""

    def __init__(self, function, lanes):
        self.builder, self.lanes = ir.IRBuilder(function.append_basic_block("entry")), lanes

    def of(self, lanes):
        """The same, of vectors that have so many lanes."""
        made = copy(self)
        made.lanes = lanes
        return made

    def int(self, x):
        """A number of 64 bits."""
        return x if isinstance(x, Int) else Int(self.builder, ir.Constant(LONG, x & 0xFFFFFFFFFFFFFFFF))

    def truth(self, holds):
        """A bit."""
        return Int(self.builder, ir.Constant(BIT, int(holds)))

    def everywhere(self, x, kind=SINGLE):
        """A number known by now, in every lane."""
        return Vector(self.builder, everywhere(kind, self.lanes, x))

    def splat(self, scalar):
        """A number in every lane."""
        scalar = getattr(scalar, "value", scalar)
        nothing = ir.Constant(ir.VectorType(scalar.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(WORD, 0))
        return Vector(self.builder, self.builder.shuffle_vector(first, nothing, everywhere(WORD, self.lanes, 0)))

    def only(self, vector):
        """The number of a vector of one lane."""
        return self.builder.extract_element(vector.value, ir.Constant(WORD, 0))

    def united(self, vector):
        """Bits that some lane has."""
        found = None
        for lane in range(self.lanes):
            word = Int(self.builder, self.builder.extract_element(vector.value, ir.Constant(WORD, lane)))
            found = word if found is None else found | word
        return found

    def variable(self, x):
        """A variable that begins as an Int or a Vector."""
        made = Variable(self._room(x.value.type), type(x), self.builder)
        made.set(x)
        return made

    def _room(self, kind):
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def room(self, count, kind=SINGLE):
        """Memory for so many numbers, on lines of the cache."""
        place = self._room(ir.ArrayType(kind, count))
        place.align = CACHE_LINE
        return self.builder.bitcast(place, kind.as_pointer())

    def at(self, pointer, where):
        """The place of the number after so many others."""
        return self.builder.gep(pointer, [self.int(where).value])

    def there(self, pointer):
        """Whether a place is any."""
        return Int(self.builder, self.builder.ptrtoint(pointer, LONG)).differs(0)

    def as_words(self, pointer):
        """A place of numbers as one of words."""
        return self.builder.bitcast(pointer, WORD.as_pointer())

    def load(self, pointer, where=0):
        """A vector."""
        kind = pointer.type.pointee
        place = self.builder.bitcast(self.at(pointer, where), ir.VectorType(kind, self.lanes).as_pointer())
        return Vector(self.builder, self.builder.load(place, align=SIZES[kind]))

    def store(self, vector, pointer, where=0):
        """A vector, of words as of floats."""
        place = self.builder.bitcast(self.at(pointer, where), vector.value.type.as_pointer())
        self.builder.store(vector.value, place, align=SIZES[vector.element])

    def gather(self, pointer, places):
        """A vector of the numbers at these places."""
        kind, all_lanes = pointer.type.pointee, ir.VectorType(BIT, self.lanes)
        wanted, pointers = ir.VectorType(kind, self.lanes), ir.VectorType(pointer.type, self.lanes)
        at = self.splat(self.builder.ptrtoint(pointer, LONG)) + places * SIZES[kind]
        at = self.builder.inttoptr(at.value, pointers)
        name = f"llvm.masked.gather.v{self.lanes}f{8 * SIZES[kind]}.v{self.lanes}p0"
        signature = ir.FunctionType(wanted, [pointers, WORD, all_lanes, wanted])
        function = cgutils.get_or_insert_function(self.builder.module, signature, name)
        given = (
            at,
            ir.Constant(WORD, SIZES[kind]),
            ir.Constant(all_lanes, [1] * self.lanes),
            ir.Constant(wanted, ir.Undefined),
        )
        return Vector(self.builder, self.builder.call(function, given))

    def get(self, pointer, where=0):
        """A number, as an Int of whatever type it has."""
        return Int(self.builder, self.builder.load(self.at(pointer, where)))

    def put(self, x, pointer, where=0):
        """A number."""
        self.builder.store(x.value, self.at(pointer, where))

    def copy(self, source, target, count):
        """So many numbers, whole vectors."""
        with self.loop(count // self.lanes) as n:
            self.store(self.load(source, n * self.lanes), target, n * self.lanes)

    @contextmanager
    def when(self, condition, rarely=False):
        """Code for where a bit is set."""
        weights = {"likely": False} if rarely else {}
        with self.builder.if_then(condition.value, **weights):
            yield

    @contextmanager
    def loop(self, stop, first=0):
        """Code for first, first + 1 ... below stop."""
        stop, i = self.int(stop), self.variable(self.int(first))
        with self.while_(lambda: i.get() < stop):
            yield i.get()
            i.set(i.get() + 1)

    @contextmanager
    def while_(self, holds):
        """Code for as long as holds() says."""
        head, body, done = (self.builder.append_basic_block(part) for part in ("head", "body", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(holds().value, body, done)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(head)
        self.builder.position_at_end(done)

    def call(self, function, *arguments):
        """What a function returns."""
        found = [self.int(x).value if isinstance(x, int) else getattr(x, "value", x) for x in arguments]
        return Int(self.builder, self.builder.call(function, found))
