"""The library's functions as C, C++ and SystemVerilog declare them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from softfloat.engine.native import REFUSED, shift_of
from softfloat.environments import InfiniteInput, Overflow, Rounding, Tininess
from softfloat.export.functions import FUNCTIONS, Argument, Prototype, c_type, slug
from softfloat.formats import Format
from softfloat.kernels.spec import NAN_POLICIES
from softfloat.status import Flags

__all__ = ["constants", "cpp_header", "header", "package"]


def constants() -> list[tuple[str, int, str]]:
    """(name, value, meaning) of what rules are made of, and of flags."""
    found = [(f"SF_{x.name}", int(x), "") for x in Rounding]
    for knob, kind in (("overflow", Overflow), ("tininess", Tininess), ("infinite_input", InfiniteInput)):
        found += [(f"SF_{knob.upper()}_{x.name}", int(x) << shift_of(knob), "") for x in kind]
    found.append(("SF_DAZ", 1 << shift_of("daz"), "subnormal operands count as zero"))
    found.append(("SF_FTZ", 1 << shift_of("ftz"), "tiny results become zero"))
    found += [(f"SF_NAN_{name.upper()}", i << shift_of("nan"), "") for i, name in enumerate(NAN_POLICIES)]
    found.append(
        ("SF_NO_INEXACT", 1 << shift_of("quiet_integers"), "round_to_integral and to_integer do not raise INEXACT")
    )
    found.append(("SF_RANDOM_BITS_SHIFT", shift_of("random_width"), "random bits of a rounding, 1 to 52; 0: 52"))
    found += [(f"SF_FLAG_{x.name}", int(x), "") for x in Flags]
    found.append(
        ("SF_REFUSED", REFUSED, "nothing was computed: no rule, no code, no length, or a mode that draws without bits")
    )
    return found


ABOUT = """\
Bit-exact arithmetic on codes, made by softfloat from its own kernels.

A rule is the sum of one SF_ constant of each kind; 0 is nearest even, infinity on overflow, tininess after rounding,
canonical NaN. SF_STOCHASTIC and SF_UP_OR_DOWN need random bits, the latter one: functions ending in _random take them, those ending in _at find them
at an address (seed, stream, position); under other modes these are as those without. n of them: rule + (n << SF_RANDOM_BITS_SHIFT).
Flags are stored where the pointer says, unless it is null. SF_REFUSED among them: nothing was computed, the result is 0.

The compiler makes arguments the types declared here before the library sees them: of an integer that is too large for a code or
a rule the high bits are lost, and one of more than 53 bits that sf_encode_* is given is rounded to a double first, sf_from_integer_*
round it once. -Wconversion (C, C++) tells where that happens."""


def _about(prefix: str) -> str:
    return textwrap.indent(ABOUT, prefix, lambda line: True).rstrip()


def _c(prototype: Prototype) -> str:
    def argument(x: Argument) -> str:
        const = "const " if x.pointer and not x.result else ""
        return f"{const}{x.kind} {'*' if x.pointer else ''}{x.name}"

    return f"{prototype.gives} {prototype.name}({', '.join(map(argument, prototype.arguments))});"


def header(prototypes: Sequence[Prototype]) -> str:
    """sf.h: C99, and C++."""
    lines = [
        "/*",
        _about(" * "),
        " */",
        "#ifndef SF_H",
        "#define SF_H",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
    ]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", "typedef uint32_t sf_rule;", ""]
    lines += [f"#define {name} {value}u" + (f" /* {text} */" if text else "") for name, value, text in constants()]
    lines.append("")
    for prototype in prototypes:
        lines += [f"/* {prototype.text} */", _c(prototype)]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)


# -- C++ ---------------------------------------------------------------------------------------------------------------


def cpp_header(prototypes: Sequence[Prototype]) -> str:
    """sf.hpp: C++17, a class for each format, and numbers with operators."""
    formats = list(dict.fromkeys(x.format for x in prototypes if x.format is not None and x.function in FUNCTIONS))
    lines = ["//", *(_about("// ").split("\n")), "#ifndef SF_HPP", "#define SF_HPP", "", '#include "sf.h"', ""]
    lines += ["namespace sf {", "", "using rule = ::sf_rule;", ""]
    lines += ["template <class Code> struct result {", "    Code code;", "    std::uint8_t flags;", "};", ""]
    for fmt in formats:
        lines += [f"struct {slug(fmt.name)} {{", f"    using code_type = std::{c_type(fmt)};"]
        for prototype in prototypes:
            if prototype.format == fmt and prototype.function in FUNCTIONS and prototype.form in ("", "random", "at"):
                lines += _method(prototype, fmt)
        lines += ["};", ""]
    lines += NUMBERS.split("\n")
    return "\n".join(lines).replace(
        '#include "sf.h"', '#include "sf.h"\n\n#include <cstdint>\n#include <limits>\n#include <type_traits>'
    )


def _method(prototype: Prototype, fmt: Format) -> Iterator[str]:
    name = prototype.name.removeprefix("sf_")
    name = (
        name.replace(f"_{slug(fmt.name)}", "", 1)
        if prototype.function != "convert"
        else name.partition(slug(fmt.name) + "_")[2]
    )
    name = f"convert_{name}" if prototype.function == "convert" else name
    takes = ", ".join(
        (
            "rule rule_ = 0"
            if x.name == "rule" and prototype.form == ""
            else f"rule {x.name}_"
            if x.name == "rule"
            else f"std::{x.kind} {x.name}_"
        )
        if x.kind != "double"
        else f"double {x.name}_"
        for x in prototype.arguments
        if not x.result
    )
    passed = [f"{x.name}_" for x in prototype.arguments if not x.result]
    if prototype.function == "decode":
        yield f"    static double {name}({takes}) {{ return ::{prototype.name}({', '.join(passed)}); }}"
        return
    gives = f"result<std::{prototype.gives}>"
    yield f"    static {gives} {name}({takes}) {{"
    yield f"        {gives} found{{}};"
    yield f"        found.code = ::{prototype.name}({', '.join([*passed, '&found.flags'])});"
    yield "        return found;"
    yield "    }"


NUMBERS = """\
// A code with operators; flags of its operations are OR-ed together, for each thread.
template <class Format, rule Rule = 0> class num {
  public:
    using code_type = typename Format::code_type;
    static inline thread_local std::uint8_t raised = 0;

    num() = default;
    explicit num(double x) : code_(kept(Format::encode(x, Rule))) {}
    // What double does not have would be rounded twice: from_code and Format::from_integer_int64 round once.
    template <class T, std::enable_if_t<(std::numeric_limits<T>::digits > 53), int> = 0> explicit num(T) = delete;
    static num from_code(code_type code) {
        num made;
        made.code_ = code;
        return made;
    }
    code_type code() const { return code_; }
    explicit operator double() const { return Format::decode(code_); }

    friend num operator+(num a, num b) { return from_code(kept(Format::add(a.code_, b.code_, Rule))); }
    friend num operator-(num a, num b) { return from_code(kept(Format::sub(a.code_, b.code_, Rule))); }
    friend num operator*(num a, num b) { return from_code(kept(Format::mul(a.code_, b.code_, Rule))); }
    friend num operator/(num a, num b) { return from_code(kept(Format::div(a.code_, b.code_, Rule))); }
    friend num fma(num a, num b, num c) { return from_code(kept(Format::fma(a.code_, b.code_, c.code_, Rule))); }
    friend num sqrt(num a) { return from_code(kept(Format::sqrt(a.code_, Rule))); }
    friend bool operator==(num a, num b) { return kept(Format::eq(a.code_, b.code_, Rule)) != 0; }
    friend bool operator<(num a, num b) { return kept(Format::lt(a.code_, b.code_, Rule)) != 0; }
    friend bool operator<=(num a, num b) { return kept(Format::le(a.code_, b.code_, Rule)) != 0; }

  private:
    template <class Code> static Code kept(result<Code> found) {
        raised = static_cast<std::uint8_t>(raised | found.flags);
        return found.code;
    }
    code_type code_ = 0;
};

} // namespace sf

#endif
"""

# -- SystemVerilog -----------------------------------------------------------------------------------------------------

SV_TYPES = {
    "uint8_t": "byte unsigned",
    "uint16_t": "shortint unsigned",
    "uint32_t": "int unsigned",
    "uint64_t": "longint unsigned",
    "int8_t": "byte",
    "int16_t": "shortint",
    "int32_t": "int",
    "int64_t": "longint",
    "sf_rule": "int unsigned",
    "double": "real",
}


def package(prototypes: Sequence[Prototype], longest: int) -> str:
    """sf_pkg.sv: imports for DPI-C. Arrays of dot products have `SF_LENGTH` elements, of which k count; functions on arrays are left out."""
    lines = [*_about("// ").split("\n"), "package sf_pkg;", ""]
    if any(x.function == "dot" for x in prototypes):
        lines.append(f"  localparam int unsigned SF_LENGTH = {longest};")
    lines += [f"  localparam int unsigned {name} = {value};" for name, value, _ in constants()]
    lines.append("")
    for prototype in prototypes:
        if not prototype.form.startswith("array"):
            arguments = ", ".join(map(_sv, prototype.arguments))
            lines.append(f'  import "DPI-C" function {SV_TYPES[prototype.gives]} {prototype.name}({arguments});')
    return "\n".join([*lines, "", "endpackage", ""])


def _sv(x: Argument) -> str:
    if x.elements:
        return f"inout {SV_TYPES[x.kind]} {x.name}[{x.elements}]"
    direction = "output" if x.result else "input"
    return f"{direction} {SV_TYPES[x.kind]} {x.name}" + ("[SF_LENGTH]" if x.pointer and not x.result else "")
