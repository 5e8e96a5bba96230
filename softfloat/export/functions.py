"""What a library offers: functions by name, their arguments, and the rule as one integer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from softfloat.accumulators import Accumulator
from softfloat.bits.functions.table import FUNCTIONS as TABULATED
from softfloat.bits.functions.values import tabulated
from softfloat.bits.functions.ways import TABLE_BITS
from softfloat.bits.operations import ELEMENTWISE
from softfloat.engine.native import FLOAT64, Job
from softfloat.formats import Format

__all__ = ["FUNCTIONS", "Argument", "Dot", "Prototype", "Request", "prototypes"]


class Function(NamedTuple):
    """One row of `FUNCTIONS`: a function's kernel, and what it gives: a code ("float"), a truth value ("bool"), a number ("double") or an integer.

    `widest` is the most bits that the codes of a format may have; 0: any.
    """

    kernel: str
    operands: tuple[str, ...]
    gives: str = "float"
    draws: bool = True
    widest: int = 0


def _rounded(name: str) -> Function:
    return Function(f"selected {name}", ELEMENTWISE[name].operands)


def _compared(relation: str, signalling: bool) -> Function:
    kind = "signalling" if signalling else "quiet"
    return Function(f"compare {relation} {kind}", ELEMENTWISE[relation].operands, "bool", False)


def _chosen(name: str) -> Function:
    return Function(f"extremum {name.replace('_', ' ')}", ELEMENTWISE[name].operands, draws=False)


def _tabled(name: str) -> Function:
    operands = ELEMENTWISE[name].operands
    return Function("table", operands, draws=False, widest=TABLE_BITS // len(operands))


FUNCTIONS = {
    **{
        name: _rounded(name)
        for name in (
            *("add", "sub", "mul", "div", "remainder", "fmod", "modulo", "floor_divide", "hypot"),
            *("sqrt", "fma", "round_to_integral"),
        )
    },
    "encode": Function("selected convert_wide", ("x",)),
    "decode": Function("decode", ("a",), "double", False),
    "convert": Function("selected convert", ("a",)),
    "eq": _compared("eq", False),
    "lt": _compared("lt", True),
    "le": _compared("le", True),
    "eq_signaling": _compared("eq", True),
    "lt_quiet": _compared("lt", False),
    "le_quiet": _compared("le", False),
    "to_integer": Function("selected to_integer", ("a",), "integer"),
    "from_integer": Function("selected from_integer", ("x",)),
    **{name: _chosen(name) for name in ("minimum", "maximum", "minimum_number", "maximum_number")},
    **{name: _tabled(name) for name in TABULATED if name in ELEMENTWISE},
}
"""Name -> row. The names are those of `softfloat.bits`; those of comparisons with the other rule for quiet NaNs are Berkeley SoftFloat's."""


INTEGERS = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
"""What "to_integer" makes: the names of C's types without _t."""
TAKEN = "int32", "int64", "uint32", "uint64"
"""What "from_integer" takes; shorter integers are numbers of these."""


class Argument(NamedTuple):
    """An argument in C: a type, a name, whether it is a pointer, and one to results; `elements`: to so many elements that are read as well;
    `bits`: of a code."""

    kind: str
    name: str
    pointer: bool = False
    result: bool = False
    elements: int = 0
    bits: int = 0


@dataclass(frozen=True)
class Prototype:
    """A function of the library.

    Attributes
    ----------
    name : str
        In C.
    gives : str
        The result's type in C.
    arguments : tuple of Argument
    text : str
        What it does, one line.
    function, form : str
        The row of `FUNCTIONS`, "dot" or "random_bits"; "", "random", "at", "array" or "array_at".
    format : Format or None
        Of operands.
    """

    name: str
    gives: str
    arguments: tuple[Argument, ...]
    text: str
    function: str
    form: str
    format: Format | None = None


class Dot(NamedTuple):
    """A dot product: its name in functions, how it sums, what it sums, and what comes out."""

    name: str
    accumulator: Accumulator
    format: Format
    output: Format

    @property
    def symbol(self) -> str:
        """The start of its functions' names."""
        return f"sf_dot_{self.name}_{slug(self.format.name)}"


class Request(NamedTuple):
    """What a library is to have."""

    functions: tuple[str, ...]
    formats: tuple[Format, ...]
    dots: tuple[Dot, ...]
    lengths: tuple[int, ...]


def slug(text: str) -> str:
    """Text as a part of a name in C."""
    return re.sub(r"\W+", "_", text).strip("_").lower()


def c_type(fmt: Format) -> str:
    """The type of codes of a format."""
    return f"uint{8 * fmt.dtype.itemsize}_t"


RULE = Argument("sf_rule", "rule")
FLAGS = Argument("uint8_t", "flags", pointer=True, result=True)
ADDRESS = Argument("uint64_t", "seed"), Argument("uint64_t", "stream"), Argument("uint64_t", "position")
BITS = Argument("uint64_t", "bits")
SCALARS = {"": (), "random": (BITS,), "at": ADDRESS}


def prototypes(request: Request, job: Job) -> list[Prototype]:
    """The functions of a library, in the order of its header; each is entered into the job."""
    found: list[Prototype] = []
    for name in request.functions:
        for fmt in request.formats:
            if name == "to_integer":
                for kind in INTEGERS:
                    found += _element(job, name, f"sf_to_integer_{slug(fmt.name)}_{kind}", fmt, fmt, kind)
            elif name == "from_integer":
                for kind in TAKEN:
                    found += _element(job, name, f"sf_from_integer_{slug(fmt.name)}_{kind}", fmt, fmt, kind)
            elif name == "convert":
                for other in request.formats:
                    if other != fmt:
                        title = f"sf_convert_{slug(fmt.name)}_to_{slug(other.name)}"
                        found += _element(job, name, title, fmt, other)
            else:
                found += _element(job, name, f"sf_{name}_{slug(fmt.name)}", fmt, fmt)
    for dot in request.dots:
        found += _dot(job, dot, request.lengths)
    job.random_bits("sf_random_bits")
    arguments = (*ADDRESS, Argument("uint32_t", "width"))
    text = "the random bits of an address, width (1 to 52) of them; UINT64_MAX where there are none"
    found.append(Prototype("sf_random_bits", "uint64_t", arguments, text, "random_bits", ""))
    return found + _generator(job)


def _generator(job: Job) -> list[Prototype]:
    state = Argument("uint64_t", "state", pointer=True, result=True, elements=2)
    found = []
    for ending, arguments, text in (
        (
            "_seed",
            (*ADDRESS[:1], Argument("uint32_t", "stream")),
            "state of the IPU's generator, as poprand seeds it; 0",
        ),
        (
            "",
            (Argument("uint32_t", "width"),),
            "its next random bits, width (1 to 52) of them; UINT64_MAX where there are none",
        ),
    ):
        name = f"sf_xoroshiro128aox{ending}"
        job.generator(name, bool(ending))
        found.append(Prototype(name, "uint64_t", (state, *arguments), text, "random_bits", ""))
    return found


def _element(job: Job, name: str, title: str, fmt: Format, output: Format, integer: str = "") -> Iterator[Prototype]:
    row = FUNCTIONS[name]
    takes = "double" if name == "encode" else c_type(fmt)
    if name == "to_integer":
        row = row._replace(kernel=f"selected to_{integer}")
    elif name == "from_integer":
        row, takes = row._replace(kernel=f"selected from_{integer.rstrip('0123456789')}64"), f"{integer}_t"
    kinds = {"float": c_type(output), "bool": "uint8_t", "double": "double", "integer": f"{integer}_t"}
    gives = kinds[row.gives]
    numbers = name in ("encode", "from_integer")
    codes = tuple(Argument(takes, operand, bits=0 if numbers else fmt.bits) for operand in row.operands)
    source = FLOAT64 if numbers else fmt.spec
    origin = {"encode": "float64", "convert": fmt.name}.get(name, "")

    def entered(symbol: str, form: str) -> None:
        kinds = [takes] * len(codes)
        if row.kernel == "table":
            job.by_table(symbol, form, kinds, fmt, f"{name} {fmt.spec}", partial(tabulated, name, len(codes), fmt))
        else:
            job.element(symbol, row.kernel, form, kinds, gives, source, output, origin)

    what = f"{name}({', '.join(row.operands)})"
    if name == "decode":
        job.element(title, row.kernel, "decoding", [takes], gives, source, fmt)
        yield Prototype(title, gives, codes, "the value of a code, NaN for what is no code", name, "", fmt)
        return
    endings = {"": "", "random": ", with random bits", "at": ", random bits by address"}
    for form in endings if row.draws else ("",):
        symbol = title + (f"_{form}" if form else "")
        entered(symbol, form)
        yield Prototype(symbol, gives, (*codes, RULE, *SCALARS[form], FLAGS), what + endings[form], name, form, fmt)
    arrays = tuple(Argument(takes, operand, pointer=True) for operand in row.operands)
    results = (Argument(gives, "results", pointer=True, result=True), FLAGS)
    for form in ("array", "array_at") if row.draws else ("array",):
        symbol = f"{title}_{form}"
        entered(symbol, form)
        arguments = (Argument("size_t", "n"), *arrays, *results, RULE, *(ADDRESS if form == "array_at" else ()))
        text = f"{what} of n elements; returns their flags OR-ed"
        text += "; element i draws at position + i" if form == "array_at" else ""
        yield Prototype(symbol, "uint8_t", arguments, text, name, form, fmt)


def _dot(job: Job, dot: Dot, lengths: Sequence[int]) -> Iterator[Prototype]:
    codes, gives, entry = c_type(dot.format), c_type(dot.output), c_type(dot.accumulator.partials)
    _, always = job.plan(dot.accumulator, dot.format, dot.output, lengths)
    vectors = (Argument(codes, name, pointer=True, bits=dot.format.bits) for name in "ab")
    operands = Argument("uint32_t", "k"), *vectors
    for addend in (False, True):
        for form in ("at",) if always else ("", "at"):
            symbol = dot.symbol + ("_add" if addend else "") + (f"_{form}" if form else "")
            job.dot(
                symbol, form, [codes, codes, entry], gives, dot.accumulator, dot.format, dot.output, lengths, addend
            )
            extra = (Argument(entry, "c", bits=dot.accumulator.partials.bits),) if addend else ()
            arguments = (*operands, *extra, RULE, *SCALARS[form], FLAGS)
            text = f"{'c + ' if addend else ''}a . b of k products by {dot.accumulator!r}"
            text += "; position numbers the output" if form else ""
            yield Prototype(symbol, gives, arguments, text, "dot", form, dot.format)
