"""The library's functions on doubles, for MATLAB, Octave and Julia: arrays rounded to a format, and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from softfloat.export.functions import Dot, Prototype, Request, c_type, slug
from softfloat.export.headers import constants
from softfloat.formats import Format

__all__ = ["julia", "mex"]


class Offered(NamedTuple):
    """What there is on doubles: formats that numbers are rounded to, and dot products between such formats."""

    formats: tuple[Format, ...]
    dots: tuple[Dot, ...]


def offered(request: Request, found: Sequence[Prototype]) -> Offered:
    """Formats with "encode" and "decode", and dot products of these whose result is one of them."""
    names = {x.name for x in found}
    formats = tuple(
        fmt for fmt in request.formats if {f"sf_encode_{slug(fmt.name)}_at", f"sf_decode_{slug(fmt.name)}"} <= names
    )
    return Offered(formats, tuple(x for x in request.dots if x.format in formats and x.output in formats))


MEX = """\
/*
 * softfloat for MATLAB and Octave, on doubles: mkoctfile --mex sf_mex.c libsf.o, or in MATLAB mex sf_mex.c libsf.o
 *
 *     [y, flags] = sf_mex('round', format, x, rule, seed, stream)
 *     [c, flags] = sf_mex('gemm', accumulator, a, b, rule, seed, stream)
 *     value = sf_mex('SF_TOWARD_ZERO')
 *
 * rule, seed and stream may be left out: 0. A rule is the sum of one SF_ constant of each kind (sf.h). In modes that draw, the random number
 * of an element is that of its place in memory, and of an output of a product that of its place row by row, as in softfloat.bits.matmul.
 * Operands of a product must be numbers of the format: round them first. flags: 1 inexact, 2 underflow, 4 overflow, 8 divide-by-zero,
 * 16 invalid, all OR-ed together.
 */
#include "mex.h"

#include <string.h>

#include "sf.h"

#define ROUND(FORMAT, CODE)                                                                                            \\
    static int round_##FORMAT(size_t n, const double *x, double *y, sf_rule rule, uint64_t seed, uint64_t stream) {{     \\
        int flags = 0;                                                                                                 \\
        for (size_t i = 0; i < n; i++) {{                                                                                \\
            uint8_t raised = 0;                                                                                        \\
            CODE code = sf_encode_##FORMAT##_at(x[i], rule, seed, stream, i, &raised);                                 \\
            y[i] = sf_decode_##FORMAT(code);                                                                           \\
            flags |= raised;                                                                                           \\
        }}                                                                                                              \\
        return flags;                                                                                                  \\
    }}

/* -1: an operand is no number of the format. */
#define GEMM(NAME, FORMAT, CODE, OUTPUT)                                                                               \\
    static int gemm_##NAME(size_t m, size_t k, size_t n, const double *a, const double *b, double *y, sf_rule rule,    \\
                           uint64_t seed, uint64_t stream) {{                                                           \\
        CODE *x = mxMalloc((m + n) * k * sizeof(CODE) + 1), *z = x + m * k;                                            \\
        int flags = 0;                                                                                                 \\
        for (size_t i = 0; i < (m + n) * k; i++) {{                                                                      \\
            int first = i < m * k;                                                                                     \\
            double value = first ? a[i / k + i % k * m] : b[i - m * k];                                                \\
            x[i] = sf_encode_##FORMAT(value, 0, 0);                                                                    \\
            double kept = sf_decode_##FORMAT(x[i]);                                                                    \\
            if (kept != value && (kept == kept || value == value)) flags = -1;                                         \\
        }}                                                                                                              \\
        for (size_t i = 0; i < m * n && flags >= 0; i++) {{                                                              \\
            uint8_t raised = 0;                                                                                        \\
            size_t row = i / n, column = i % n;                                                                        \\
            y[row + column * m] = sf_decode_##OUTPUT(                                                                  \\
                sf_dot_##NAME##_at((uint32_t)k, x + row * k, z + column * k, rule, seed, stream, i, &raised));         \\
            flags |= raised;                                                                                           \\
        }}                                                                                                              \\
        mxFree(x);                                                                                                     \\
        return flags;                                                                                                  \\
    }}

{functions}

static double number(int count, const mxArray **given, int place) {{
    if (count <= place) return 0;
    double x = mxGetScalar(given[place]);
    if (!(x >= 0 && x <= 9007199254740992.0 && x == (double)(uint64_t)x))
        mexErrMsgIdAndTxt("softfloat:argument", "rule, seed and stream must be integers from 0 to 2^53");
    return x;
}}

static const double *doubles(const mxArray *x, const char *name) {{
    if (!mxIsDouble(x) || mxIsComplex(x) || mxIsSparse(x) || mxGetNumberOfDimensions(x) < 2)
        mexErrMsgIdAndTxt("softfloat:argument", "%s must be a real, full array of doubles", name);
    return mxGetPr(x);
}}

void mexFunction(int results, mxArray **out, int count, const mxArray **given) {{
    char what[16] = "", name[128] = "";
    static const struct {{ const char *name; double value; }} known[] = {{
{constants}
    }};
    if (count < 1 || mxGetString(given[0], count == 1 ? name : what, count == 1 ? sizeof name : sizeof what))
        mexErrMsgIdAndTxt("softfloat:argument", "the first argument must be 'round', 'gemm' or the name of a constant");
    if (count == 1) {{
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(name, known[i].name)) {{
                out[0] = mxCreateDoubleScalar(known[i].value);
                return;
            }}
        mexErrMsgIdAndTxt("softfloat:argument", "there is no constant %s; sf.h lists them", name);
    }}
    int product = !strcmp(what, "gemm"), flags = -2, first = product ? 4 : 3;
    if ((!product && strcmp(what, "round")) || count < first || count > first + 3)
        mexErrMsgIdAndTxt("softfloat:argument",
                          "accepted: sf_mex('round', format, x, rule, seed, stream), sf_mex('gemm', accumulator, a, b, rule, seed, stream)");
    mxGetString(given[1], name, sizeof name);
    sf_rule rule = (sf_rule)number(count, given, first);
    uint64_t seed = (uint64_t)number(count, given, first + 1), stream = (uint64_t)number(count, given, first + 2);
    const double *x = doubles(given[2], product ? "a" : "x");
    if (!product) {{
        out[0] = mxCreateNumericArray(mxGetNumberOfDimensions(given[2]), mxGetDimensions(given[2]), mxDOUBLE_CLASS, mxREAL);
        size_t n = mxGetNumberOfElements(given[2]);
        double *y = mxGetPr(out[0]);
{rounds}
    }} else {{
        const double *b = doubles(given[3], "b");
        size_t m = mxGetM(given[2]), k = mxGetN(given[2]), n = mxGetN(given[3]);
        if (mxGetM(given[3]) != k) mexErrMsgIdAndTxt("softfloat:argument", "a must have as many columns as b has rows");
        out[0] = mxCreateDoubleMatrix(m, n, mxREAL);
        double *y = mxGetPr(out[0]);
{gemms}
    }}
    if (flags == -2) mexErrMsgIdAndTxt("softfloat:argument", "%s is not in this library; accepted: %s", name, product ? {dots} : {formats});
    if (flags == -1) mexErrMsgIdAndTxt("softfloat:argument", "a and b must be numbers of the format: round them first");
    if (flags & SF_REFUSED) mexErrMsgIdAndTxt("softfloat:refused", "there is no such rule, or no product of so many columns");
    if (results > 1) out[1] = mxCreateDoubleScalar(flags);
}}
"""


def mex(request: Request, found: Sequence[Prototype]) -> str | None:
    """sf_mex.c; None where no format has "encode" and "decode"."""
    have = offered(request, found)
    if not have.formats:
        return None
    rounds = [f"ROUND({slug(x.name)}, {c_type(x)})" for x in have.formats]
    gemms = [f"GEMM({_name(x)}, {slug(x.format.name)}, {c_type(x.format)}, {slug(x.output.name)})" for x in have.dots]
    return MEX.format(
        functions="\n".join([*rounds, *gemms]),
        constants="\n".join(f'        {{"{name}", {value}}},' for name, value, _ in constants()),
        rounds="\n".join(
            f'        if (!strcmp(name, "{x}")) flags = round_{x}(n, x, y, rule, seed, stream);'
            for x in (slug(fmt.name) for fmt in have.formats)
        ),
        gemms="\n".join(
            f'        if (!strcmp(name, "{x}")) flags = gemm_{x}(m, k, n, x, b, y, rule, seed, stream);'
            for x in map(_name, have.dots)
        )
        or "        (void)b; (void)y;",
        formats='"' + ", ".join(slug(x.name) for x in have.formats) + '"',
        dots='"' + (", ".join(map(_name, have.dots)) or "none") + '"',
    )


def _name(dot: Dot) -> str:
    return dot.symbol.removeprefix("sf_dot_")


JULIA = '''\
"""
softfloat on doubles: `include("sf.jl")`, then `Softfloat.round_float16(x; rule = Softfloat.SF_TOWARD_ZERO)`.

Functions give (result, flags). A rule is the sum of one SF_ constant of each kind (sf.h); 0 is nearest even. In modes that draw, the random
number of an element is that of its place in memory, and of an output of a product that of its place row by row, as in softfloat.bits.matmul.
Operands of a product must be numbers of the format: round them first. flags: 1 inexact, 2 underflow, 4 overflow, 8 divide-by-zero,
16 invalid, all OR-ed together.
"""
module Softfloat

const libsf = joinpath(@__DIR__, "libsf.so")
{constants}

function accepted(flags::UInt8)
    flags & SF_REFUSED == 0 || throw(ArgumentError("there is no such rule, or no product of so many columns"))
    return flags
end

{functions}

end
'''

JULIA_ROUND = '''\
"""Numbers rounded to {fmt}."""
function round_{name}(x::AbstractArray{{<:Real}}; rule::Integer = 0, seed::Integer = 0, stream::Integer = 0)
    y, flags, raised = Array{{Float64}}(undef, size(x)), 0x00, Ref{{UInt8}}(0)
    for (i, value) in enumerate(x)
        code = ccall((:sf_encode_{name}_at, libsf), {code}, (Cdouble, UInt32, UInt64, UInt64, UInt64, Ref{{UInt8}}),
                     value, rule, seed, stream, i - 1, raised)
        y[i] = ccall((:sf_decode_{name}, libsf), Cdouble, ({code},), code)
        flags |= raised[]
    end
    return y, accepted(flags)
end

function exactly_{name}(x::AbstractArray{{<:Real}})
    y, _ = round_{name}(x)
    isequal(y .+ 0.0, x .+ 0.0) || throw(ArgumentError("a and b must be numbers of {fmt}: round them first"))
    return [ccall((:sf_encode_{name}, libsf), {code}, (Cdouble, UInt32, Ptr{{UInt8}}), value, 0, C_NULL) for value in x]
end
'''

JULIA_GEMM = '''\
"""a * b by {accumulator}."""
function gemm_{name}(a::AbstractMatrix{{<:Real}}, b::AbstractMatrix{{<:Real}}; rule::Integer = 0, seed::Integer = 0, stream::Integer = 0)
    size(a, 2) == size(b, 1) || throw(DimensionMismatch("a must have as many columns as b has rows"))
    x, z = permutedims(exactly_{fmt}(a)), exactly_{fmt}(b)
    y, flags, raised = Array{{Float64}}(undef, size(a, 1), size(b, 2)), 0x00, Ref{{UInt8}}(0)
    for i in 1:size(a, 1), j in 1:size(b, 2)
        code = ccall((:sf_dot_{name}_at, libsf), {output_code},
                     (UInt32, Ptr{{{code}}}, Ptr{{{code}}}, UInt32, UInt64, UInt64, UInt64, Ref{{UInt8}}),
                     size(a, 2), x[:, i], z[:, j], rule, seed, stream, (i - 1) * size(b, 2) + j - 1, raised)
        y[i, j] = ccall((:sf_decode_{output}, libsf), Cdouble, ({output_code},), code)
        flags |= raised[]
    end
    return y, accepted(flags)
end
'''


def julia(request: Request, found: Sequence[Prototype]) -> str | None:
    """sf.jl; None where no format has "encode" and "decode"."""
    have = offered(request, found)
    if not have.formats:
        return None
    parts = [JULIA_ROUND.format(fmt=x.name, name=slug(x.name), code=_julia_type(x)) for x in have.formats]
    for dot in have.dots:
        parts.append(
            JULIA_GEMM.format(
                accumulator=repr(dot.accumulator),
                name=_name(dot),
                fmt=slug(dot.format.name),
                code=_julia_type(dot.format),
                output=slug(dot.output.name),
                output_code=_julia_type(dot.output),
            )
        )
    values = [f"const {name} = 0x{value:08x}" for name, value, _ in constants()]
    return JULIA.format(constants="\n".join(values), functions="\n".join(parts).rstrip())


def _julia_type(fmt: Format) -> str:
    return f"UInt{8 * fmt.dtype.itemsize}"
