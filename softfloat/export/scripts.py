"""The library's functions in Python without softfloat, and an example of a test bench on them."""

from __future__ import annotations

from collections.abc import Sequence

from softfloat.export.functions import Prototype
from softfloat.export.headers import constants

__all__ = ["bench", "module"]

CTYPES = {
    **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)},
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "size_t": "c_size_t",
    "sf_rule": "c_uint32",
    "double": "c_double",
}

MODULE = '''\
"""The functions of libsf.so, which lies beside this file, by ctypes: nothing but Python's own library is needed.

A function's name is C's without `sf_`. Scalar functions leave out C's last argument and return (result, flags); dot products take
sequences of codes a and b in place of k, a and b; functions on arrays take pointers as C does. TypeError for what is no integer or no
number, Refused for one that an argument cannot be: ctypes would cut it to fit.
"""

import ctypes
import operator
from pathlib import Path

{constants}

FUNCTIONS = {{
{functions}
}}
"""Name -> result, then arguments: name, type (a star stands for a pointer), and the bits of a code."""

library = ctypes.CDLL(str(Path(__file__).resolve().with_name("libsf.so")))


class Refused(ValueError):
    """The rule, a code or a length is none that the function takes."""


def _kind(name):
    kind = getattr(ctypes, name.rstrip("*"))
    return ctypes.POINTER(kind) if name.endswith("*") else kind


def _number(name, x):
    try:
        value = ctypes.c_double(x).value
    except (TypeError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else Refused
        raise kind(f"{{name}} must be a number that float64 has, got {{x!r:.40}}") from None
    if value != x and x == x:
        raise Refused(f"{{name}} must be a number that float64 has, got {{x!r:.40}}; from_integer functions take wider integers")
    return value


def _integer(name, kind, bits, x):
    try:
        value = None if isinstance(x, bool) else operator.index(x)
    except TypeError:
        value = None
    if value is None:
        raise TypeError(f"{{name}} must be an integer, got {{x!r}}")
    signed = kind.startswith("c_int")
    most = (1 << (bits or 8 * ctypes.sizeof(_kind(kind)) - signed)) - 1
    least = -most - 1 if signed else 0
    if not least <= value <= most:
        shown = str if signed else hex
        raise Refused(f"{{name}} must be {{least}} to {{shown(most)}}, got {{shown(value)}}")
    return value


def _passed(name, kind, bits, x):
    if kind.endswith("*"):
        return x
    return _number(name, x) if kind == "c_double" else _integer(name, kind, bits, x)


def _function(name, gives, takes):
    call = getattr(library, "sf_" + name)
    call.restype, call.argtypes = _kind(gives), [_kind(kind) for _, kind, _ in takes]
    names = [x[0] for x in takes]
    sums, flagged = names[0] == "k", names[-1] == "flags" and names[0] != "n"
    given = takes[sums : len(takes) - flagged]

    def vector(name, kind, bits, x):
        code = kind.rstrip("*")
        return (_kind(code) * len(x))(*[_integer(f"{{name}}[{{i}}]", code, bits, y) for i, y in enumerate(x)])

    def function(*arguments):
        if len(arguments) != len(given):
            raise TypeError(f"{{name}} takes {{', '.join(x[0] for x in given)}}, got {{len(arguments)}} arguments")
        passed = []
        if sums:
            a, b, *arguments = arguments
            if len(a) != len(b):
                raise ValueError(f"a and b must be of one length, got {{len(a)}} and {{len(b)}}")
            passed = [len(a), vector(*given[0], a), vector(*given[1], b)]
        passed += [_passed(*kind, x) for kind, x in zip(given[2 * sums :], arguments)]
        if not flagged:
            return call(*passed)
        flags = ctypes.c_uint8()
        result = call(*passed, ctypes.byref(flags))
        if flags.value & SF_REFUSED:
            told = [f"{{x}} {{y}}" for x, y in zip(names, passed) if x == "k" or names.index(x) >= names.index("rule")]
            raise Refused(f"{{name}} does not take {{', '.join(told)}}")
        return result, flags.value

    function.__name__, function.argtypes = name, call.argtypes
    return function


globals().update({{name: _function(name, *kinds) for name, kinds in FUNCTIONS.items()}})
'''


def module(prototypes: Sequence[Prototype]) -> str:
    """sf.py."""
    rows = []
    for prototype in prototypes:
        takes = [(x.name, CTYPES[x.kind] + ("*" if x.pointer else ""), x.bits) for x in prototype.arguments]
        rows.append(f'    "{prototype.name.removeprefix("sf_")}": ("{CTYPES[prototype.gives]}", {takes}),')
    values = [f"{name} = {value}" for name, value, _ in constants()]
    return MODULE.format(constants="\n".join(values), functions="\n".join(rows))


BENCH = '''\
"""A cocotb test of a unit against libsf.so: copy it, and put in the names of your ports.

The unit has the operands {operands}, a rounding mode `rm`, a clock `clk`, and, LATENCY cycles later, `result` and `flags`.
"""

import random
from collections import deque

import cocotb
import sf
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

LATENCY, COUNT = 1, 10000
MODES = sf.SF_NEAREST_EVEN, sf.SF_TOWARD_ZERO, sf.SF_TOWARD_POSITIVE, sf.SF_TOWARD_NEGATIVE


@cocotb.test()
async def agrees(dut):
    """Every result and flag of random operands."""
    cocotb.start_soon(Clock(dut.clk, 10).start())
    draw, waiting = random.Random(1), deque()
    for _ in range(COUNT + LATENCY):
        await FallingEdge(dut.clk)
        if len(waiting) == LATENCY:
            operands, mode = waiting.popleft()
            got = int(dut.result.value), int(dut.flags.value)
            wanted = sf.{name}(*operands, mode)
            assert got == wanted, f"{{[hex(x) for x in operands]}}, mode {{mode}}: got {{got}}, wanted {{wanted}}"
        operands, mode = [draw.randrange(1 << {bits}) for _ in range({count})], draw.choice(MODES)
        for port, code in zip(({ports}), operands):
            port.value = code
        dut.rm.value = mode
        waiting.append((operands, mode))
'''


def bench(prototypes: Sequence[Prototype]) -> str | None:
    """sf_cocotb.py, for the function with most operands; None where no function is of codes alone."""
    suited = [x for x in prototypes if x.form == "" and x.format and x.function not in ("encode", "decode", "dot")]
    if not suited:
        return None
    chosen = max(suited, key=lambda x: len(x.arguments))
    operands = [x.name for x in chosen.arguments[:-2]]
    assert chosen.format is not None
    return BENCH.format(
        operands=", ".join(f"`{name}`" for name in operands),
        ports=", ".join(f"dut.{name}" for name in operands) + ("," if len(operands) == 1 else ""),
        bits=chosen.format.bits,
        count=len(operands),
        name=chosen.name.removeprefix("sf_"),
    )
