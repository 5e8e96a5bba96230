"""Which operations there are to verify, as one table, and a resolved `Case`: columns of a row, and how to run them.

`OPERATIONS` has every elementwise operation of `softfloat.bits`, conversions of all kinds, and dot products. `resolve`
turns a name, formats and an environment into a `Case`; it knows Berkeley TestFloat's names too.

>>> case = resolve("add", "float16")
>>> [(column.name, column.digits) for column in case.columns]
[('a', 4), ('b', 4), ('result', 4), ('flags', 2)]
>>> results, flags = case.run([np.array([0x3C00]), np.array([0x1000])])
>>> hex(results[0]), int(flags[0]), case.testfloat
('0x3c00', 1, 'f16_add')
>>> resolve("f32_to_i32_r_minMag").title
'convert float32 to int32, toward_zero, exact=False'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import PRESETS, Accumulator
from softfloat.bits.operations import ELEMENTWISE
from softfloat.blocks import BlockFormat
from softfloat.checks import nearest
from softfloat.environments import Environment, Rounding, as_rounding
from softfloat.formats import ROSTER, Format, float64, refuse_wide
from softfloat.testing.vectors.block_operations import (
    BLOCK_OPERATIONS,
    PRODUCTS,
    QUANTIZE,
    SCALE,
    Blocks,
    blocks_of,
    element_number,
)
from softfloat.testing.vectors.columns import BOOLEAN, CLASS, DOUBLE, FLAGS, INTEGERS, Column, Number, as_number
from softfloat.testing.vectors.expressions import parse_accumulator

__all__ = [
    "OPERATIONS",
    "STREAM",
    "Case",
    "Operation",
    "as_rounding_mode",
    "resolve",
]

Codes = np.ndarray[Any, Any]
Pair = tuple[Codes, Codes]

LONGEST_DOT = 1 << 16
"""Products of a dot product; a row is a line of text, and longer ones are of no use."""


# -- the table -------------------------------------------------------------------------------------------------------


class Operation(NamedTuple):
    """One row of `OPERATIONS`."""

    name: str
    operands: tuple[str, ...]
    result: (
        str  # "float": in the operation's format; "bool", "class"; "target": what `to` says; "sum"; "block": of blocks
    )
    run: Callable[[Case, Sequence[Codes]], tuple[Any, Any]]
    rounds: bool
    testfloat: str = ""
    exact: bool = False  # whether it takes `exact`


def _plain(name: str) -> Callable[[Case, Sequence[Codes]], tuple[Any, Any]]:
    """A function of softfloat.bits that takes codes and a format."""
    return lambda case, operands: getattr(bits, name)(*operands, case.format, **case.options)


def _comparison(name: str, signalling: bool) -> Callable[[Case, Sequence[Codes]], tuple[Any, Any]]:
    return lambda case, operands: getattr(bits, name)(*operands, case.format, signalling=signalling, **case.options)


def _flagless(name: str) -> Callable[[Case, Sequence[Codes]], tuple[Any, Any]]:
    return lambda case, operands: (getattr(bits, name)(*operands, case.format), None)


def _round_to_integral(case: Case, operands: Sequence[Codes]) -> tuple[Any, Any]:
    return bits.round_to_integral(operands[0], case.format, exact=case.exact, **case.options)


def _convert(case: Case, operands: Sequence[Codes]) -> tuple[Any, Any]:
    source, target = case.source, case.target
    (codes,) = operands
    if target.kind in ("signed", "unsigned"):
        return bits.to_integer(codes, case.format, np.dtype(target.name), exact=case.exact, **case.options)
    if target.kind == "float64":
        return bits.convert(codes, case.format, float64, **case.options)
    assert target.format is not None
    if source.kind == "float":
        return bits.convert(codes, case.format, target.format, **case.options)
    return bits.encode(codes.view(np.dtype(source.name)), target.format, **case.options)


def _vecdot(case: Case, operands: Sequence[Codes]) -> tuple[Any, Any]:
    a, b, *c = operands
    assert case.accumulator is not None
    return bits.vecdot(
        a, b, case.formats, case.accumulator, *c, out_format=case.target.format, environment=case.environment
    )


def _of_blocks(case: Case, operands: Sequence[Codes]) -> tuple[Any, Any]:
    assert case.blocks is not None
    return case.blocks.run(case.operation.name, operands, case.options, case.accumulator, case.target.format)


OTHER_SIGNALLING = {"eq": ("eq_signaling", True), "lt": ("lt_quiet", False), "le": ("le_quiet", False)}
"""Comparisons as TestFloat has them too: with the other rule for quiet NaNs."""


def _rows() -> Iterator[Operation]:
    for row in ELEMENTWISE.values():
        run = _plain(row.name) if row.flags else _flagless(row.name)
        operation = Operation(row.name, row.operands, row.result, run, row.rounds, row.testfloat)
        exact = row.name == "round_to_integral"
        yield operation._replace(run=_round_to_integral, exact=True) if exact else operation
        if row.name in OTHER_SIGNALLING:
            name, signalling = OTHER_SIGNALLING[row.name]
            yield Operation(name, row.operands, row.result, _comparison(row.name, signalling), False, name)
    yield Operation("convert", ("a",), "target", _convert, True, exact=True)
    yield Operation("vecdot", ("a", "b"), "sum", _vecdot, True)
    for name, operands in BLOCK_OPERATIONS.items():
        yield Operation(name, operands, "block", _of_blocks, name in (QUANTIZE, PRODUCTS))


OPERATIONS = {row.name: row for row in _rows()}
"""Name -> operands, kind of result, how to run, whether results are rounded, TestFloat's name without its format."""

IN_BLOCKS = Environment(overflow="saturate")
"""What elements of blocks are rounded in, as `bits.quantize` rounds them."""
OPERATION_ALIASES = {"dot": "vecdot"}
STREAM = "mac"
"""Name of streams of multiply-accumulate rows, which are dot products to everything but files."""


# -- a case ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """An operation on given formats in a given environment. `resolve` makes it.

    Attributes
    ----------
    operation : Operation
    source, second : Number
        Types of the first operand and of the others; they differ in dot products at most.
    target : Number
        Type of the result.
    environment : Environment
    exact : bool
        Whether rounding to an integer raises INEXACT.
    accumulator : Accumulator or None
    length : int or None
        Products of a dot product.
    addend : bool
        Whether a dot product has an operand c.
    stream : bool
        Whether files have a column "clear" in the place of c: see `softfloat.testing.vectors.streams`.
    blocks : Blocks or None
        Block formats, scale rule and tensor scale of operations on blocks.
    """

    operation: Operation
    source: Number
    second: Number
    target: Number
    environment: Environment
    exact: bool = True
    accumulator: Accumulator | None = None
    length: int | None = None
    addend: bool = False
    stream: bool = False
    blocks: Blocks | None = None

    @property
    def format(self) -> Format:
        """Of the first operand, which must have one."""
        assert self.source.format is not None
        return self.source.format

    @property
    def formats(self) -> tuple[Format, Format]:
        """Of the two sides of a dot product."""
        assert self.second.format is not None
        return self.format, self.second.format

    @property
    def draws(self) -> bool:
        """Whether a row brings the random number of its rounding."""
        rounds = self.operation.rounds and self.target.kind != "float64"
        return rounds and self.environment.settings.rounding.draws

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the function of `softfloat.bits`."""
        return {"environment": self.environment, **self._random}

    @property
    def _random(self) -> dict[str, Any]:
        return {}

    @cached_property
    def operands(self) -> tuple[Column, ...]:
        """Columns of operands; with stochastic rounding the last one, "random", has the random number."""
        if self.blocks is not None:
            addend = as_number(self.accumulator.partials) if self.accumulator is not None and self.addend else None
            found = [*self.blocks.columns(self.operation.name, self.length, addend)]
            return tuple(found + ([self._random_column] if self.draws else []))
        if self.operation.result == "sum":
            assert self.accumulator is not None
            columns = [Column("a", self.source, self.length), Column("b", self.second, self.length)]
            return (*columns, *([Column("c", as_number(self.accumulator.partials))] if self.addend else []))
        first, *others = self.operation.operands
        found = [Column(first, self.source), *(Column(name, self.second) for name in others)]
        return tuple(found + ([self._random_column] if self.draws else []))

    @property
    def _random_column(self) -> Column:
        return Column("random", Number("random", "unsigned", int(self.environment.settings.chosen_width or 0)))

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """Columns of a file that operands come from: themselves, but for c of a stream."""
        return (*self.operands[:2], Column("clear", BOOLEAN)) if self.stream else self.operands

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns of a row: operands, "result" and "flags"."""
        return (*self.stored, Column("result", self.target), Column("flags", FLAGS))

    @property
    def operand_bits(self) -> int:
        """Bits of all operands of a row; there are two to that power of them."""
        return sum(column.number.bits * (column.length or 1) for column in self.operands)

    def run(self, operands: Sequence[Codes]) -> Pair:
        """The right results.

        Parameters
        ----------
        operands : sequence of arrays of codes
            One for each of `self.operands`, of shapes (rows,) or (rows, length).

        Returns
        -------
        results : array of unsigned integers
            Codes, or the two's complement of integers; of `self.target.dtype`, shape (rows,).
        flags : array of uint8, shape (rows,)
        """
        case: Case = self
        if self.draws:
            *operands, random = operands
            attributes = {name: getattr(self, name) for name in Case.__dataclass_fields__}
            case = _Drawing(**attributes, random=random)
        results, flags = self.operation.run(case, operands)
        results = np.asarray(results)
        if flags is None:
            flags = np.zeros(results.shape, np.uint8)
        if results.dtype.kind != "u":
            unsigned = np.dtype(f"u{results.dtype.itemsize}")
            results = results.view(unsigned)
        return results.astype(self.target.dtype, copy=False), np.asarray(flags)

    def replace(self, **changes: Any) -> Case:
        """The same with some attributes changed."""
        return replace(self, **changes)

    def under(self, **settings: Any) -> Case:
        """The same in an environment with some settings changed."""
        return replace(self, environment=self.environment.replace(**settings))

    @property
    def testfloat(self) -> str:
        """Berkeley TestFloat's name of the operation, or "" where it has none."""
        names = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"} | {
            number.name: ("ui" if number.kind == "unsigned" else "i") + str(number.bits)
            for number in INTEGERS.values()
            if number.bits >= 32
        }
        source, target = names.get(self.source.name), names.get(self.target.name)
        if self.operation.name == "convert":
            return f"{source}_to_{target}" if source and target else ""
        return f"{source}_{self.operation.testfloat}" if source and self.operation.testfloat else ""

    @property
    def title(self) -> str:
        """Operation, formats and environment in a line."""
        words = f"{'mac' if self.stream else self.operation.name} {self.source.name}"
        if self.second != self.source:
            words += f" {self.second.name}"
        if self.blocks is not None:
            words = f"{self.operation.name} {self.blocks}"
        if self.operation.result in ("target", "sum") or self.operation.name == PRODUCTS:
            words += f" to {self.target.name}"
        if self.accumulator is not None:
            words += f", {self.length} products{' and c' if self.addend else ''} by {self.accumulator!r}"
        default, settings = IN_BLOCKS if self.operation.name == QUANTIZE else Environment(), self.environment
        parts = [as_rounding(settings.rounding).name.lower()] if self.operation.rounds else []
        if self.blocks is not None and self.operation.name in (SCALE, QUANTIZE):
            parts.insert(0, f"rule {self.blocks.rule}")
        for name in ("overflow", "tininess", "infinite_input"):
            value = getattr(settings, name)
            if value != getattr(default, name):
                parts.append(f"{name}={value.name.lower()}")
        parts += [name for name in ("daz", "ftz") if getattr(settings, name)]
        if settings.nan != default.nan:
            parts.append(f"nan={settings.nan}")
        if self.draws:
            parts.append(f"{settings.settings.chosen_width} random bits")
        if (
            not self.exact
            and self.operation.exact
            and (self.target.kind != "float" or self.operation.name != "convert")
        ):
            parts.append("exact=False")
        return ", ".join([words, *parts])


@dataclass(frozen=True, eq=False)
class _Drawing(Case):
    """A case while it runs with random numbers handed in."""

    random: Any = None

    @property
    def _random(self) -> dict[str, Any]:
        return {"random_bits": self.random}


# -- names to cases --------------------------------------------------------------------------------------------------

TESTFLOAT_MODES = {
    "near_even": "nearest_even",
    "near_maxMag": "nearest_away",
    "minMag": "toward_zero",
    "min": "toward_negative",
    "max": "toward_positive",
    "odd": "to_odd",
}
"""TestFloat's names of rounding modes."""

TESTFLOAT_NAME = re.compile(r"(ui32|ui64|i32|i64|b?f16|f32|f64|extF80|f128)_(\w+)")
TESTFLOAT_SUFFIX = re.compile(rf"(\w+?)_(?:(rx?)_({'|'.join(TESTFLOAT_MODES)})|x)")


def as_rounding_mode(value: Rounding | str, argument: str = "rounding") -> Rounding:
    """As `softfloat.environments.as_rounding`, and TestFloat's names: "near_even", "minMag" ..., with or without an r before."""
    if isinstance(value, str):
        value = TESTFLOAT_MODES.get(value, TESTFLOAT_MODES.get(value.removeprefix("r"), value))
    return as_rounding(value, argument)


def resolve(
    operation: str,
    format: Number | Format | BlockFormat | str | Sequence[Format | BlockFormat | str] | None = None,
    to: Number | Format | str | None = None,
    *,
    environment: Environment | None = None,
    exact: bool | None = None,
    accumulator: Accumulator | str | None = None,
    length: int | None = None,
    addend: bool = False,
    rule: str | None = None,
    tensor_scale: float | None = None,
    special: Mapping[str, str] | None = None,
) -> Case:
    """An operation by its name.

    Parameters
    ----------
    operation : str
        A name in `OPERATIONS`, "mac", or one of Berkeley TestFloat's, which says the format too: "f16_add", "f16_mulAdd",
        "f32_to_f16", "f32_to_i32", "f32_to_i32_rx_minMag", "bf16_lt_quiet", "f64_rem" ...
    format : Format, Number or str
        Of the operands. "convert" takes "float64" and integers ("int8" ... "uint64") too; "vecdot" also a pair. Operations on
        blocks take a block format, "block_vecdot" also a pair.
    to : Format, Number or str, optional
        What "convert" converts to, and, of "vecdot", the format of the output.
    environment : Environment, optional
        Default `Environment()`, of "block_quantize" Environment(overflow="saturate").
        Under stochastic rounding rows have a column of random numbers, each of `sr_bits` bits
        (default: the width of the unsigned integer that holds a result).
    exact : bool, optional
        Whether rounding to an integer raises INEXACT. Default True; False under TestFloat's names, as there.
    accumulator : Accumulator or str
        Of "vecdot"; a string is read by `parse_accumulator`.
    length : int, optional
        Products of "vecdot", default 16; of a row of "mac", default 1.
    addend : bool
        Whether rows of "vecdot" have a column c.
    rule : str
        Of "block_scale" and "block_quantize", a name of `softfloat.blocks.SCALE_RULES`; default as of `bits.quantize`.
    tensor_scale : float
        Of operations on blocks whose tensor has a scale, a number of float32; None: there is none.
    special : mapping
        Options of `bits.quantize` for special numbers in blocks, such as {"zero_block": "one"}.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    if not isinstance(operation, str):
        raise TypeError(f"operation must be a string, got {operation!r}")
    if environment is None:
        environment = IN_BLOCKS if operation == QUANTIZE else Environment()
    if not isinstance(environment, Environment):
        raise TypeError(f"environment must be a softfloat.Environment, got {type(environment).__name__}")
    name, found = operation, TESTFLOAT_NAME.fullmatch(operation)
    if found:
        name, format, to, rounding, said = _from_testfloat(operation, found, format, to)
        if rounding is not None:
            environment = environment.replace(rounding=rounding)
        exact = said if exact is None else exact
    name = OPERATION_ALIASES.get(name, name)
    stream = name == STREAM
    if stream:
        name, length, addend = "vecdot", 1 if length is None else length, True
    if name not in OPERATIONS:
        raise ValueError(
            f"unknown operation {operation!r}; accepted: {', '.join(OPERATIONS)}, {STREAM}, "
            "and Berkeley TestFloat's names, such as f16_add, f16_mulAdd, f32_to_f16, f32_to_i32"
            f"{nearest(operation, [*OPERATIONS, STREAM])}"
        )
    row = OPERATIONS[name]
    if format is None:
        such = "a block format, such as mxfp4" if row.result == "block" else "a format, such as float16"
        raise ValueError(f"{name} needs a format; accepted: the name of {such}")
    if row.result == "block":
        blocks = blocks_of(format, rule, tensor_scale, special)
        return _blocks(row, blocks, to, environment, accumulator, length, addend)
    if rule is not None or tensor_scale is not None or special is not None:
        raise ValueError(
            f"rule, tensor_scale and special are for {', '.join(BLOCK_OPERATIONS)}, and the operation is {name}"
        )
    if row.result == "sum":
        case = _dot(row, format, to, environment, accumulator, length, addend)
        if stream and case.target.format != case.operands[-1].number.format:
            partials = case.operands[-1].number.name
            raise ValueError(
                f"to must be {partials} for {STREAM}, whose results are partial sums, got {case.target.name}"
            )
        return case.replace(stream=stream)
    for argument, given in (("accumulator", accumulator), ("length", length), ("addend", addend or None)):
        if given is not None:
            raise ValueError(f"{argument} is for vecdot, and the operation is {name}")
    if not isinstance(format, (str, Format, Number)):
        raise TypeError(f"format must be a softfloat.Format or a name, got {format!r}; only vecdot takes a pair")
    source = as_number(format)
    if name != "convert":
        source = _computed(source)
    if name != "convert" and source.kind != "float":
        raise ValueError(f"format must be that of floating-point numbers for {name}, got {source.name}")
    if row.result == "target":
        if to is None:
            raise ValueError("convert needs a target; accepted: a format, float64 or an integer type")
        target = as_number(to, "to")
        if source.kind != "float" and target.kind != "float":
            source, target = _computed(source), _computed(target)
        if source.kind != "float" and target.kind != "float":
            raise ValueError(
                f"convert from {source.name} to {target.name} rounds to no format of this package; accepted: either side such a format"
            )
    elif to is not None:
        raise ValueError(f"to is for convert and vecdot, and the operation is {name}")
    else:
        target = {"float": source, "bool": BOOLEAN, "class": CLASS}[row.result]
    if name == "negative" and source.format is not None and not source.format.signed:
        raise ValueError(f"negative needs a signed format, and {source.name} is unsigned")
    if environment.settings.rounding.draws and row.rounds:
        width = environment.settings.chosen_width or 8 * target.dtype.itemsize
        environment = environment.replace(sr_bits=min(width, 52))
    return Case(row, source, source, target, environment, True if exact is None else exact)


def _computed(number: Number) -> Number:
    """float64 as a format like any other, where it is more than what is read or written."""
    return DOUBLE if number.kind == "float64" else number


def _from_testfloat(
    operation: str, found: re.Match[str], format: Any, to: Any
) -> tuple[str, Number, Number | None, str | None, bool]:
    """Name, format, target, rounding mode and exactness that one of TestFloat's names stands for."""
    prefix, rest = found.groups()
    rounding, exact = None, False
    suffix = TESTFLOAT_SUFFIX.fullmatch(rest)
    if suffix and (suffix[1].startswith("to_") or suffix[1] == "roundToInt"):
        rest, exact = suffix[1], suffix[2] != "r"
        rounding = TESTFLOAT_MODES[suffix[3]] if suffix[3] else None
    unsupported = f"{operation!r} is beyond this package; accepted: operations on f16, bf16, f32 and f64, conversions from and to them"
    if prefix in ("extF80", "f128") or rest in ("to_extF80", "to_f128"):
        raise ValueError(unsupported)
    source, target = as_number(prefix), None
    if rest.startswith("to_"):
        name, target = "convert", as_number(rest.removeprefix("to_"), "operation")
    else:
        names = {row.testfloat: row.name for row in OPERATIONS.values() if row.testfloat}
        if rest not in names:
            meant = nearest(rest, names)
            raise ValueError(f"unknown operation {operation!r}; TestFloat's are: {', '.join(names)}{meant}")
        name, source = names[rest], _computed(source)
        if source.kind != "float":
            raise ValueError(unsupported)
    for argument, given, implied in (("format", format, source), ("to", to, target)):
        if given is not None and (implied is None or as_number(given, argument).name != implied.name):
            raise ValueError(f"{argument} contradicts {operation!r}; accepted: {implied.name if implied else 'none'}")
    return name, source, target, rounding, exact


def _dot(
    row: Operation,
    format: Any,
    to: Any,
    environment: Environment,
    accumulator: Accumulator | str | None,
    length: int | None,
    addend: bool,
) -> Case:
    if isinstance(format, (str, Format, Number)):
        pair = [format, format]
    else:
        pair = list(format)
    if len(pair) != 2:
        raise ValueError(f"format must be one or a pair, got {format!r}")
    first, second = (as_number(x) for x in pair)
    for number in (first, second):
        if number.format is None:
            raise ValueError(f"format must be one of at most 24 bits of precision for vecdot, got {number.name}")
        refuse_wide(number.format, "format", "vectors of vecdot")
    assert first.format is not None
    assert second.format is not None
    how, length = _summing(row, accumulator, 16 if length is None else length, environment)
    target = as_number(how.output(first.format, second.format) if to is None else to, "to")
    if target.format is None:
        raise ValueError(f"to must be a format of at most 24 bits of precision for vecdot, got {target.name}")
    case = Case(row, first, second, target, environment, True, how, length, bool(addend))
    _try(case)
    return case


def _summing(
    row: Operation, accumulator: Accumulator | str | None, length: int, environment: Environment
) -> tuple[Accumulator, int]:
    """How a dot product is summed, and its products."""
    if accumulator is None:
        examples = ", ".join(x.example for x in PRESETS.values())
        raise ValueError(f"{row.name} needs an accumulator; accepted: {examples} ...")
    how = parse_accumulator(accumulator) if isinstance(accumulator, str) else accumulator
    if not isinstance(how, Accumulator):
        raise TypeError(f"accumulator must be a softfloat.Accumulator or a string, got {how!r}")
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or not 1 <= length <= LONGEST_DOT:
        raise ValueError(f"length must be an integer from 1 to {LONGEST_DOT}, got {length!r}")
    if environment.settings.rounding.draws:
        raise ValueError(f"rounding must not be stochastic for {row.name}: a row cannot bring all its random numbers")
    return how, int(length)


def _blocks(
    row: Operation,
    blocks: Blocks,
    to: Any,
    environment: Environment,
    accumulator: Accumulator | str | None,
    length: int | None,
    addend: bool,
) -> Case:
    name, how, target = row.name, None, None
    if name == PRODUCTS:
        formats = [x.format or ROSTER["float32"] for x in (blocks.element, element_number(blocks.second))]
        longest = max(blocks.format.elements, blocks.second.elements)
        how, length = _summing(row, accumulator, 2 * longest if length is None else length, environment)
        target = as_number(how.output(*formats) if to is None else to, "to")
        if target.format is None:
            raise ValueError(f"to must be a format of at most 24 bits of precision for {name}, got {target.name}")
    else:
        refused = {"to": to, "accumulator": accumulator, "length": length, "addend": addend or None}
        for argument, value in refused.items():
            if value is not None:
                raise ValueError(f"{argument} is for vecdot and {PRODUCTS}, and the operation is {name}")
        if blocks.second != blocks.format:
            raise ValueError(f"format must be one block format for {name}, got a pair; only {PRODUCTS} takes two")
    target = target or blocks.target(name)
    if environment.settings.rounding.draws and name == QUANTIZE:
        width = environment.settings.chosen_width or 8 * target.dtype.itemsize
        environment = environment.replace(sr_bits=min(width, 52))
    second = element_number(blocks.second) if name == PRODUCTS else blocks.source(name)
    case = Case(row, blocks.source(name), second, target, environment, True, how, length, bool(addend), blocks=blocks)
    _try(case)
    return case


def _try(case: Case) -> None:
    """Refuse formats that the accumulator or the operation does not take."""
    try:
        case.run([np.zeros(column.shape(1), column.dtype) for column in case.operands])
    except (OverflowError, MemoryError) as error:
        raise ValueError(f"accumulator {case.accumulator!r} is beyond this machine: {error}") from None
