"""Sums on their way out of tiles: numbers of a format as its codes, by how these are made, the inverse of what `reading` does."""

from .language import BYTE, LONG, SHORT, WORD

WRITTEN = "size", "tiny", "quanta", "rebias", "from_number", "sign", "zero", "above", "beneath", "nan"
"""What writes codes, as integers: how many bytes each has; bits of the carrier's least number that becomes a code by a shift, and what brings the
code of smaller ones to the lowest places once it is added; what is taken from exponents before, and how far the shift is; the bit of the sign;
the codes of -0, of both infinities, of NaN."""
FRACTION, INFINITY = {32: 23, 64: 52}, {32: 0xFF << 23, 64: 0x7FF << 52}
"""Of the carrier's numbers of so many bits: how many are the fraction's, and the code of infinity."""


class Writer:
    """Code that writes sums, in words of the carrier, as the array of WRITTEN at a place says."""

    def __init__(self, code, pointer, word):
        self._code, known = code, {name: code.get(pointer, n) for n, name in enumerate(WRITTEN)}
        self._size = known.pop("size")
        self._known = {name: code.splat(x if word == LONG else x.cut(word)) for name, x in known.items()}

    def _codes(self, x):
        """Codes of numbers of the format, and of what is no number."""
        bits, known = x.bits(), self._known
        width = bits.element.width
        magnitude, negative = bits & (1 << width - 1) - 1, bits < 0
        small = (magnitude.floats() + known["quanta"].floats()).bits() & (1 << FRACTION[width]) - 1
        usual = (magnitude - known["rebias"]).logical_right(known["from_number"])
        found = magnitude.below(known["tiny"]).choose(small, usual)
        found = negative.choose(magnitude.is_zero().choose(known["zero"], found | known["sign"]), found)
        beyond = (magnitude > INFINITY[width]).choose(known["nan"], negative.choose(known["beneath"], known["above"]))
        return magnitude.below(INFINITY[width]).choose(found, beyond)

    def place(self, results, where):
        """The place of the code after so many others."""
        return self._code.at(results, where * self._size)

    def put(self, x, results, where):
        """Codes of sums to a place of results, after so many others."""
        code, found = self._code, self._codes(x)
        for kind in (BYTE, SHORT, WORD, LONG):
            if kind.width <= found.element.width:
                with code.when(self._size.same(kind.width // 8)):
                    some = found if kind == found.element else found.cut(kind)
                    code.store(some, code.builder.bitcast(results, kind.as_pointer()), where)
