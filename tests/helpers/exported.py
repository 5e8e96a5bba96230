"""Exported libraries called by ctypes, and what softfloat says of the same operands."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import Environment, Format, Rounding, bits
from softfloat.engine.native import rule_bits
from softfloat.export import FUNCTIONS, Prototype
from softfloat.export.headers import SV_TYPES
from softfloat.formats import check_format

Codes = np.ndarray[Any, np.dtype[Any]]

QUIET = {"eq_signaling": ("eq", True), "lt_quiet": ("lt", False), "le_quiet": ("le", False)}


def loaded(folder: Path) -> ModuleType:
    """sf.py of an export."""
    spec = importlib.util.spec_from_file_location(f"sf_{folder.name}", folder / "sf.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def operands(fmt: Format, count: int, size: int, seed: int) -> list[Codes]:
    """Codes around every edge of a format, and random ones; `size` rows at least."""
    draw = np.random.default_rng(seed)
    spec = fmt.spec
    every = 2**fmt.bits
    marks = [
        0,
        1,
        2,
        spec.largest,
        spec.largest - 1,
        spec.largest + 1,
        spec.largest + 2,
        fmt.one_code,
        fmt.one_code - 1,
    ]
    marks += [1 << fmt.mantissa_bits, (1 << fmt.mantissa_bits) - 1, every // 2 - 1, spec.nan]
    signs = (0, every // 2) if fmt.signed else (0,)
    edges = sorted({(mark | sign) % every for mark in marks for sign in signs})
    crossed = np.array(list(itertools.product(edges, repeat=count)), np.uint64)
    drawn = draw.integers(0, every, (max(size - len(crossed), 0), count), np.uint64)
    near = draw.integers(0, every, drawn.shape[0], np.uint64)
    for column in range(1, count):  # half of them near each other, where sums cancel
        close = (near ^ draw.integers(0, 8, near.size, np.uint64)) ^ np.uint64(every // 2 * fmt.signed)
        drawn[::2, column] = close[::2]
    drawn[::2, 0] = near[::2]
    table = np.concatenate([crossed, drawn])
    return [np.ascontiguousarray(column).astype(fmt.dtype) for column in table.T]


def reals(size: int, seed: int) -> Codes:
    """float64 of all kinds."""
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 2**64, size, np.uint64).view(np.float64)
    values[::2] = draw.standard_normal(values[::2].size) * 2.0 ** draw.integers(-40, 40, values[::2].size)
    values[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324
    return values


def integers(size: int, seed: int, dtype: str) -> Codes:
    """Integers of all magnitudes, near powers of two and near halves between numbers of few bits."""
    draw, info = np.random.default_rng(seed), np.iinfo(dtype)
    width = info.bits - (info.min < 0)
    length = draw.integers(0, width + 1, size)
    drawn = draw.integers(0, 2**63, size, np.uint64) << np.uint64(1) | draw.integers(0, 2, size, np.uint64)
    drawn = np.where(length > 0, drawn >> np.uint64(64) - np.maximum(length, 1).astype(np.uint64), np.uint64(0))
    kept = draw.integers(1, 26, size).astype(np.uint64)  # few bits, and a last one far below
    few = drawn & ~(
        np.uint64(2**64 - 1) >> np.minimum(kept + np.uint64(64) - np.maximum(length, 1).astype(np.uint64), 63)
    )
    drawn = np.where(draw.integers(0, 3, size) == 0, few | draw.integers(0, 2, size, np.uint64), drawn)
    drawn[:4] = 0, 1, info.max, info.max - 1
    drawn = np.minimum(drawn, np.uint64(info.max))
    found = drawn.astype(dtype)
    if info.min < 0:
        found[::2] = -found[::2]
        found[4] = info.min
    return found


def wanted(
    function: str,
    columns: Sequence[Codes],
    fmt: Format,
    output: Format,
    environment: Environment,
    integer: str = "",
    **more: Any,
) -> Any:
    """(codes, flags) by softfloat.bits."""
    if function == "encode":
        return bits.encode(columns[0], output, environment=environment, **more)
    if function == "convert":
        return bits.convert(columns[0], fmt, output, environment=environment, **more)
    if function == "from_integer":
        return bits.encode(columns[0], output, environment=environment, **more)
    if function == "to_integer":
        return bits.to_integer(columns[0], fmt, integer, environment=environment, **more)
    name, signalling = QUIET.get(function, (function, None))
    if signalling is not None:
        more["signalling"] = signalling
    return getattr(bits, name)(*columns, fmt, environment=environment, **more)


def output_of(prototype: Prototype) -> Format:
    """The format of a function's results."""
    assert prototype.format is not None
    if prototype.function != "convert":
        return prototype.format
    return check_format(
        prototype.name.partition("_to_")[2].removesuffix("_at").removesuffix("_array").removesuffix("_random")
    )


def drawn_operands(prototype: Prototype, size: int, seed: int) -> list[Codes]:
    """Operands of a function."""
    assert prototype.format is not None
    if prototype.function == "encode":
        return [reals(size, seed)]
    if prototype.function == "from_integer":
        return [integers(size, seed, next(x.kind for x in prototype.arguments if x.name == "x").removesuffix("_t"))]
    return operands(prototype.format, len(FUNCTIONS[prototype.function].operands), size, seed)


def called(
    library: ModuleType, prototype: Prototype, columns: Sequence[Codes], rule: int, address: tuple[int, ...] = ()
) -> Any:
    """(results, flags, flags OR-ed) of a function on arrays."""
    size = columns[0].size
    result_type = next(x.kind for x in prototype.arguments if x.name == "results")
    results = np.zeros(size, np.dtype(result_type.removesuffix("_t")))
    flags = np.zeros(size, np.uint8)
    call = getattr(library, prototype.name.removeprefix("sf_"))
    pointers = [x.ctypes.data_as(kind) for x, kind in zip((*columns, results, flags), call.argtypes[1:], strict=False)]
    seen = call(size, *pointers, rule, *address)
    return results, flags, seen


def scalar_loops(prototypes: Sequence[Prototype]) -> str:
    """C, and C++: for each function of single codes a loop that counts the rows on which it differs from results and flags."""
    lines = ['#include "sf.h"', "#include <string.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for prototype in prototypes:
        if prototype.form.startswith("array") or prototype.function in ("dot", "random_bits"):
            continue
        operands = FUNCTIONS[prototype.function].operands
        kinds = {x.name: x.kind for x in prototype.arguments}
        columns = "".join(f"const {kinds[x]} *{x}, " for x in operands)
        each = [f"{x}[i]" for x in operands]
        more = {"": [], "random": ["bits[i]"], "at": ["seed", "stream", "i"]}[prototype.form]
        call = each if prototype.function == "decode" else [*each, "rule", *more, "&raised"]
        differs = "memcmp(&found, &results[i], sizeof found)"
        if prototype.gives == "double":
            differs = f"({differs} && (found == found || results[i] == results[i]))"
        head = (
            f"size_t loop_{prototype.name}(size_t n, {columns}const {prototype.gives} *results, const uint8_t *flags, "
        )
        head += "sf_rule rule, const uint64_t *bits, uint64_t seed, uint64_t stream)"
        lines += [
            f"{head};",
            f"{head} {{",
            "    size_t wrong = 0;",
            "    (void)rule, (void)bits, (void)seed, (void)stream;",
            "    for (size_t i = 0; i < n; i++) {",
            "        uint8_t raised = 0;",
            f"        {prototype.gives} found = {prototype.name}({', '.join(call)});",
            f"        wrong += {differs} || raised != flags[i];",
            "    }",
            "    return wrong;",
            "}",
        ]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ""])


def scalar_differences(
    loops: ctypes.CDLL,
    name: str,
    columns: Sequence[Codes],
    results: Codes,
    flags: Codes,
    rule: int = 0,
    handed: Codes | None = None,
    address: tuple[int, int] = (0, 0),
) -> int:
    """How many rows a function of single codes gets wrong, by its loop."""
    loop = getattr(loops, f"loop_{name}")
    loop.restype = ctypes.c_size_t
    arrays = [ctypes.c_void_p(x.ctypes.data) for x in (*columns, results, flags)]
    bits_at = ctypes.c_void_p(None if handed is None else handed.ctypes.data)
    found = loop(ctypes.c_size_t(flags.size), *arrays, ctypes.c_uint32(rule), bits_at, *map(ctypes.c_uint64, address))
    return int(found)


def row_program(prototypes: Sequence[Prototype], cases: Sequence[Any], rule: int) -> str:
    """C: the n-th function's operands, result and flags on random codes, as TestFloat writes them; n is the argument."""
    lines = ['#include "sf.h"', "#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
    lines += ["static uint64_t state = 1;", "static uint64_t next(int width) {"]
    lines += [f"    state = state * {LCG[0]}u + {LCG[1]}u;", "    return state >> (64 - width);", "}"]
    lines += ["static void put(const void *x, size_t size, int digits, char end) {", "    uint64_t code = 0;"]
    lines += ["    memcpy(&code, x, size);", '    printf("%0*llX%c", digits, (unsigned long long)code, end);', "}"]
    lines += ["int main(int count, char **arguments) {", "    int chosen = count > 1 ? atoi(arguments[1]) : -1;"]
    lines.append("    for (int i = 0; i < 200; i++) {")
    for number, (prototype, case) in enumerate(zip(prototypes, cases, strict=True)):
        kinds = {x.name: x.kind for x in prototype.arguments}
        operands = FUNCTIONS[prototype.function].operands
        lines += [f"        if (chosen == {number}) {{", "            uint8_t flags = 0;"]
        for x, column in zip(operands, case.columns, strict=False):
            lines += [f"            uint64_t drawn_{x} = next({column.number.bits});", f"            {kinds[x]} {x};"]
            lines.append(f"            memcpy(&{x}, &drawn_{x}, sizeof {x});")
            lines.append(f"            put(&{x}, sizeof {x}, {column.digits}, ' ');")
        lines.append(
            f"            {prototype.gives} result = {prototype.name}({', '.join(operands)}, {rule}u, &flags);"
        )
        lines.append(f"            put(&result, sizeof result, {case.columns[-2].digits}, ' ');")
        lines += ["            put(&flags, 1, 2, '\\n');", "        }"]
    return "\n".join([*lines, "    }", "    return 0;", "}", ""])


LCG, START = (6364136223846793005, 1442695040888963407), 0xCBF29CE484222325
PRIME, WORD = 0x100000001B3, 2**64
BENCH_ROWS, HANDED_BITS = 60, 11


def benched(prototypes: Sequence[Prototype]) -> list[Prototype]:
    """The functions of single codes."""
    left_out = "dot", "random_bits"
    return [x for x in prototypes if not x.form.startswith("array") and x.function not in left_out]


def bench_environments(prototype: Prototype) -> list[Environment]:
    """What a function is tried under."""
    if prototype.function == "decode":
        return [Environment()]
    if prototype.form:
        return [Environment(rounding="stochastic", seed=3, sr_bits=HANDED_BITS)]
    return list(environments(output_of(prototype), 3))


def drawn_words(count: int) -> Codes:
    """The words that a bench draws, from the first on."""
    words, state = [], 1
    for _ in range(count):
        state = (state * LCG[0] + LCG[1]) % WORD
        words.append(state)
    return np.array(words, np.uint64)


def dpi_bench(prototypes: Sequence[Prototype]) -> str:
    """SystemVerilog: each function on random operands under some rules, and a hash of its results and flags on a line."""
    tasks, calls = [], []
    for prototype in benched(prototypes):
        assert prototype.format is not None
        name, kinds = prototype.name, {x.name: x.kind for x in prototype.arguments}
        operands, lines = FUNCTIONS[prototype.function].operands, []
        for x in operands:
            word = f"next() >> {64 - prototype.format.bits}"
            if prototype.function == "from_integer":
                lines.append("bits = next();")
                word = "bits >> (next() >> 58)"
            lines.append(
                f"{x} = $bitstoreal(next());"
                if kinds[x] == "double"
                else f"{x} = {SV_TYPES[kinds[x]].split()[0]}'({word});"
            )
        more = {"": "", "random": ", bits", "at": ", 3, 4, longint'(i)"}[prototype.form]
        if prototype.form == "random":
            lines.append(f"bits = next() >> {64 - HANDED_BITS};")
        real = prototype.gives == "double"
        arguments = ", ".join(operands) + ("" if prototype.function == "decode" else f", rules[j]{more}, f")
        result = "64'($unsigned(r))"
        if real:  # every NaN as one
            result = "$realtobits(r) << 1 > 64'hffe0000000000000 ? 64'd1 : $realtobits(r)"
        rules = [str(rule(x)) for x in bench_environments(prototype)]
        declared = "\n".join(f"    {SV_TYPES[kinds[x]]} {x};" for x in operands)
        body = "\n        ".join(lines)
        tasks.append(f"""
  task automatic run_{name}();
    int unsigned rules[{len(rules)}];
    longint unsigned hash, bits;
    byte unsigned f;
    {SV_TYPES[prototype.gives]} r;
{declared}
    rules = '{{{", ".join(rules)}}};
    state = 1;
    hash = 64'h{START:x};
    for (int j = 0; j < {len(rules)}; j++)
      for (int i = 0; i < {BENCH_ROWS}; i++) begin
        f = 0;
        {body}
        r = {name}({arguments});
        hash = (hash ^ ({result})) * 64'h{PRIME:x};
        hash = (hash ^ 64'(f)) * 64'h{PRIME:x};
      end
    $display("{name} %016x", hash);
  endtask""")
        calls.append(f"    run_{name}();")
    return "\n".join(
        [
            "module bench;",
            "  import sf_pkg::*;",
            "  longint unsigned state;",
            "  function automatic longint unsigned next();",
            f"    state = state * 64'd{LCG[0]} + 64'd{LCG[1]};",
            "    return state;",
            "  endfunction",
            *tasks,
            "  initial begin",
            *calls,
            "    $finish;",
            "  end",
            "endmodule",
            "",
        ]
    )


def bench_hash(prototype: Prototype, words: Codes) -> str:
    """What the bench is to print of a function, by softfloat.bits."""
    assert prototype.format is not None
    kinds = {x.name: x.kind for x in prototype.arguments}
    operands = FUNCTIONS[prototype.function].operands
    integers, handed = prototype.function == "from_integer", prototype.form == "random"
    each = 2 if integers else len(operands)
    hashed, first, output = START, 0, output_of(prototype)
    for environment in bench_environments(prototype):
        last = first + BENCH_ROWS * (each + handed)
        drawn, first = words[first:last].reshape(BENCH_ROWS, -1).copy(), last
        if integers:
            drawn[:, 0] >>= drawn[:, 1] >> np.uint64(58)
        columns = []
        for number, x in enumerate(operands):
            if kinds[x] == "double":
                columns.append(drawn[:, number].copy().view(np.float64))
            elif integers:
                columns.append(drawn[:, 0].astype(f"u{kinds[x].removeprefix('u')[:-2]}").view(kinds[x][:-2]))
            else:
                shift = np.uint64(64 - prototype.format.bits)
                columns.append((drawn[:, number] >> shift).astype(prototype.format.dtype))
        more: dict[str, Any] = {"at": {"stream": 4}}.get(prototype.form, {})
        if handed:
            more["random_bits"] = drawn[:, -1] >> np.uint64(64 - HANDED_BITS)
        if prototype.function == "to_integer":
            more["integer"] = prototype.gives.removesuffix("_t")
        if prototype.function == "decode":
            values = np.asarray(bits.decode(columns[0], prototype.format))
            found = np.where(np.isnan(values), np.uint64(1), values.view(np.uint64))
            flags = np.zeros(BENCH_ROWS, np.uint8)
        else:
            found, flags = wanted(prototype.function, columns, prototype.format, output, environment, **more)
            found = np.asarray(found).view(f"u{np.asarray(found).itemsize}")
        for code, flag in zip(found.tolist(), flags.tolist(), strict=True):
            hashed = (hashed ^ code) * PRIME % WORD
            hashed = (hashed ^ flag) * PRIME % WORD
    return f"{hashed:016x}"


def environments(fmt: Format, extra: int, seed: int = 0) -> Iterator[Environment]:
    """Every rounding mode, and `extra` environments with all knobs drawn; none that needs a NaN where there is none."""
    deterministic = [mode.name.lower() for mode in Rounding if not mode.draws]
    for rounding in deterministic:
        yield Environment(rounding=rounding)
    draw = np.random.default_rng(seed)
    for _ in range(extra):
        overflows = ("infinity", "saturate", "nan") if fmt.has_nan else ("infinity", "saturate")
        yield Environment(
            rounding=str(draw.choice(deterministic)),
            overflow=str(draw.choice(overflows)),
            tininess=str(draw.choice(["after", "before"])),
            infinite_input=str(draw.choice(["default", "keep", "saturate", *(["nan"] if fmt.has_nan else [])])),
            daz=bool(draw.integers(2)),
            ftz=bool(draw.integers(2)),
            nan=str(draw.choice(list(NAN_POLICIES))),
        )


def rule(environment: Environment) -> int:
    """An environment as a rule."""
    return rule_bits(environment.settings)
