"""Numbers that papers of numerical analysis have published about narrow formats, computed again.

A number is reproduced if it prints as published; the exact value is that without rounding errors. Where a paper has a trend and no number, a claim
says what is seen of it. What needs formats of 53 bits is left out: products without limits of the range (Mary and Mikaitis), preconditioners
applied in double precision (Carson and Higham, conditions of 1e8), and columns in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from softfloat import bits
from softfloat.accumulators import Accumulator, exact, fma, mul_add, tensor_core
from softfloat.arrays.softarray import array
from softfloat.environments import environment
from softfloat.experiments.claims import Claims, Progress
from softfloat.experiments.published import Claim, Verdict
from softfloat.formats import Format, float8_e4m3fn, float16, float32
from softfloat.linalg import refine

__all__ = ["heat", "ozaki", "randsvd", "reproduce"]

Values = np.ndarray[Any, Any]


def _claim(source: str, name: str, statement: str, published: str, exact: str, found: str, note: str = "") -> Claim:
    return _trend(source, name, statement, published, found, found == published, note, exact)


def _trend(
    source: str, name: str, statement: str, published: str, found: str, holds: bool, note: str = "", exact: str = "-"
) -> Claim:
    """What a paper says, often in words, beside what is seen of it here."""
    verdict = Verdict.REPRODUCED if holds else Verdict.FAILED
    return Claim(name, source, statement, published, exact, found, verdict, note)


def _rounded(x: Any, fmt: Format | str, **options: Any) -> Any:
    return bits.encode(x, fmt, flags="any", **options)[0]


def _product(a: Any, b: Any, fmt: Format, how: Accumulator, result: Format) -> Values:
    codes = bits.matmul(a, b, fmt, how, out_format=result, flags="any")[0]
    return np.asarray(bits.decode(codes, result))


# -- Higham and Pranesh 2019 -----------------------------------------------------------------------------------------

SIMULATING = "Higham and Pranesh 2019, Simulating low precision floating-point arithmetic (and its programs)"
SUMS = {100: ("1.634766", "1.634766"), 1000: ("1.643555", "1.636719"), 10000: ("1.644531", "1.636719")}
SUMS[100_000] = SUMS[10_000]
"""Sum of 1/k², from the last to the first, in half: with subnormal numbers, without."""

EULER = {
    10: ("1.692729e-04", "1.864391e-04", "1.864391e-04", "1.886046e-04"),
    63: ("1.359029e-04", "2.622178e-05", "1.530690e-04", "2.582830e-05"),
    215: ("5.507427e-04", "8.110496e-06", "6.330971e-03", "4.987392e-06"),
    1359: ("6.330971e-03", "8.821914e-05", "6.330971e-03", "2.238507e-06"),
    2512: ("6.330971e-03", "5.964760e-03", "6.330971e-03", "2.858768e-06"),
    15849: ("6.330971e-03", "6.330971e-03", "6.330971e-03", "3.475070e-06"),
    100000: ("6.330971e-03", "6.330971e-03", "6.330971e-03", "3.660403e-06"),
}
"""Error at 1 of n steps of Euler's method, by the formats below."""
EULER_FORMATS: dict[str, tuple[str, bool]] = {
    "bfloat16": ("bfloat16", False),
    "half": ("float16", False),
    "half without subnormals": ("float16", True),
    "single": ("float32", False),
}

PRODUCTS = {500: ("1.1945e-02", "4.8759e-04"), 1000: ("2.3047e-02", "4.8799e-04"), 1500: ("4.0701e-02", "3.6660e-04")}
PRODUCTS |= {2000: ("4.5976e-02", "4.8803e-04"), 2500: ("6.8770e-02", "4.2930e-04")}
"""Greatest componentwise error of a product of random matrices: all in half, in double and rounded once."""

HARMONIC = {"custom": ("3.5000", 16), "bfloat16": ("5.0625", 65), "float16": ("7.0859", 513)}
"""Where the harmonic series stands still, and after how many terms."""


def sums(seed: int, quick: bool) -> Iterator[Claim]:
    """Sum of 1/k², the square of 1/k rounded, in half; without subnormals small results are flushed."""
    for n, published in SUMS.items():
        whole = f"{float(np.sum(1.0 / np.arange(n, 0, -1.0) ** 2)):.6f}"
        for ftz, text in zip((False, True), published, strict=True):
            x = _rounded(1 / np.arange(n, 0, -1.0), float16, ftz=ftz)
            code = bits.vecdot(x, x, float16, fma(float16), out_format=float16, ftz=ftz, flags="any")[0]
            found, how = f"{float(bits.decode(code, float16)):.6f}", "without" if ftz else "with"
            yield _claim(SIMULATING, "s", f"sum of 1/k² to {n}, reversed, {how} subnormals", text, whole, found)


def _euler(fmt: str, ftz: bool, steps: list[int]) -> list[float]:
    """Errors of y(1) for y' = -y, y(0) = 0.01, of so many steps; each multiplication and each addition rounded."""
    with environment(ftz=ftz):
        start = array(0.01, "bfloat16").astype(fmt)
        h = array(-1.0 / np.array(steps), fmt)
        y = array(np.full(len(steps), start.values), fmt)
        ended = np.empty(len(steps))
        for done in range(1, max(steps) + 1):
            y = y + h * y
            if done in steps:
                ended[steps.index(done)] = y[steps.index(done)].values
    return np.abs(ended - np.exp(-1.0) * 1e-2).tolist()


def euler(seed: int, quick: bool) -> Iterator[Claim]:
    """Euler's method."""
    chosen = [n for n in EULER if n <= 3000 or not quick]
    note = (
        "0.01 is rounded to bfloat16 first, in every format: the published numbers have that, and `y0 = chop(y0)` stands in the program's loop over "
        "formats, whose first is bfloat16. An observation; in half, 0.01 has an error of 2e-6 then, which is most of some errors here."
    )
    for column, (name, (fmt, ftz)) in enumerate(EULER_FORMATS.items()):
        for n, found in zip(chosen, _euler(fmt, ftz, chosen), strict=True):
            whole = f"{abs((1 - 1 / n) ** n - np.exp(-1.0)) * 1e-2:.6e}"
            yield _claim(
                SIMULATING,
                "e",
                f"Euler's method, {n} steps, {name}: error",
                EULER[n][column],
                whole,
                f"{found:.6e}",
                note,
            )
            note = ""


def products(seed: int, quick: bool) -> Iterator[Claim]:
    """Matrix products in half."""
    random = np.random.RandomState(1)  # MATLAB's rng(1); rand, column by column
    for n, published in list(PRODUCTS.items())[: 1 if quick else None]:
        a, b = (_rounded(random.random_sample((n, n)).T, float16) for _ in range(2))
        whole = np.asarray(bits.decode(a, float16)) @ np.asarray(bits.decode(b, float16))
        once = np.asarray(bits.decode(_rounded(whole, float16), float16))
        ways = {"all in half": _product(a, b, float16, mul_add(float16), float16), "rounded once": once}
        for (how, c), text in zip(ways.items(), published, strict=True):
            found = f"{np.max(np.abs(c - whole) / whole):.4e}"
            yield _claim(SIMULATING, "p", f"product of random {n} × {n}, {how}: greatest error", text, "0", found)


def harmonic(seed: int, quick: bool) -> Iterator[Claim]:
    """The harmonic series until it stands."""
    custom = Format("custom", exponent_bits=3, mantissa_bits=4)
    for name, (total, terms) in HARMONIC.items():
        fmt = custom if name == "custom" else Format.from_name(name)
        x = _rounded(1 / np.arange(1.0, 2 * terms + 1), fmt)
        running = np.asarray(bits.decode(bits.cumsum(x, fmt, fma(fmt), out_format=fmt, flags="any")[0], fmt))
        still = int(np.argmax(running[1:] == running[:-1])) + 2  # the term that changed nothing
        shown = "5 bits, exponents to 3" if name == "custom" else name
        found = f"{running[still - 1]:.4f}, {still}"
        yield _claim(SIMULATING, "h", f"harmonic series in {shown}: sum, terms", f"{total}, {terms}", "no end", found)


# -- products of scaled random matrices ------------------------------------------------------------------------------

NARROW = "Mary and Mikaitis 2024, hal-04671474 (and its data): fp8-e4m3 by fp8-e4m3, sums in half"
NARROW_ERRORS = {
    10: ("1.792245e-03", "1.167516e-02"),
    24: ("5.662695e-03", "9.138021e-03"),
    78: ("1.507560e-02", "1.049548e-02"),
    257: ("6.974720e-03", "3.808756e-03"),
    837: ("2.325980e-03", "1.750073e-03"),
    2728: ("1.326176e-03", "1.745954e-03"),
}
"""Errors by n: without subnormal numbers, with them."""
CORES = "Khattak and Mikaitis 2026, ACM TACO (and its data): models of tensor cores, sums in single"
CORE_ERRORS = {
    ("V100", "float16"): {10: "2.533386e-05", 18: "1.508825e-04", 33: "2.227115e-04", 206: "2.140825e-04", 1274: "4.736983e-05"},
    ("A100", "float16"): {10: "1.283168e-04", 18: "1.508825e-04", 33: "2.227363e-04", 206: "2.140915e-04", 1274: "4.744350e-05"},
    ("B200", "float16"): {10: "1.283168e-04", 18: "1.508825e-04", 33: "2.227364e-04", 206: "2.140915e-04", 1274: "4.745446e-05"},
    ("A100", "bfloat16"): {10: "1.469606e-03", 18: "3.555061e-03", 33: "1.424942e-03", 206: "1.191711e-03", 1274: "3.561456e-04"},
    ("L40S", "float8_e5m2"): {10: "1.456549e-02", 18: "1.204863e-01", 33: "4.384558e-02", 206: "4.126766e-02", 1274: "8.073948e-03"},
    ("H100", "float8_e5m2"): {10: "1.026486e-02", 18: "1.204863e-01", 33: "4.384564e-02", 206: "4.126769e-02", 1274: "8.073880e-03"},
    ("B200", "float8_e5m2"): {10: "1.456549e-02", 18: "1.204863e-01", 33: "4.384427e-02", 206: "4.126824e-02", 1274: "8.072230e-03"},
}  # fmt: skip
"""Errors by n of one word, for the first sizes of the data, and some."""
SIDE = 10  # A is 10 × n, B is n × 10


def _sizes(count: int) -> list[int]:
    """The sizes of the experiments: 10 to a million."""
    return np.floor(np.logspace(1, 6, count)).astype(int).tolist()


def _drawn(random: np.random.RandomState, n: int) -> tuple[Values, Values]:
    """MATLAB's 10.^(rand*20-10) with signs of randi(2): A and B."""
    columns = lambda rows, side: random.random_sample(rows * side).reshape(side, rows).T  # noqa: E731
    a, b = 10.0 ** (columns(SIDE, n) * 20 - 10), 10.0 ** (columns(n, SIDE) * 20 - 10)
    a *= np.floor(columns(SIDE, n) * 2) * 2 - 1
    b *= np.floor(columns(n, SIDE) * 2) * 2 - 1
    return a, b


def _scaled_error(a: Values, b: Values, fmt: Format, how: Accumulator, result: Format, rounding: str) -> float:
    """The normwise error of a product whose rows and columns are scaled by powers of two to the range."""
    top = min(float(fmt.max), np.sqrt(float(result.max) / a.shape[1]))
    left, right = (2.0 ** np.floor(np.log2(top / np.abs(x).max(axis))) for x, axis in ((a, 1), (b, 0)))
    first, second = (_rounded(x, fmt, rounding=rounding) for x in (left[:, None] * a, b * right))
    c = _product(first, second, fmt, how, result) / left[:, None] / right
    return float(np.abs(c - a @ b).sum(1).max() / np.abs(a).sum(1).max() / np.abs(b).sum(1).max())


def narrow(seed: int, quick: bool) -> Iterator[Claim]:
    """Products of fp8 in half, without subnormal numbers and with."""
    random = np.random.RandomState(1)
    chosen = [n for n in NARROW_ERRORS if n <= 100 or not quick]
    for place, subnormals in enumerate((False, True)[: 1 if quick else 2]):
        fmt = Format("fp8", exponent_bits=4, mantissa_bits=3, nan="fn", subnormals=subnormals)
        wide = Format("wide", exponent_bits=5, mantissa_bits=10, subnormals=subnormals)
        for n in _sizes(40):
            if n > max(chosen) and (place or quick):
                break
            if n not in chosen:
                for _ in range(n):  # 40 numbers at a time: those of the last sizes would not fit
                    random.random_sample(4 * SIDE)
                continue
            error = _scaled_error(*_drawn(random, n), fmt, mul_add(wide), wide, "nearest_even")
            how = "with subnormals" if subnormals else "without subnormals"
            yield _claim(NARROW, "m", f"10 × {n} × 10, {how}: error", NARROW_ERRORS[n][place], "0", f"{error:.6e}")


def cores(seed: int, quick: bool) -> Iterator[Claim]:
    """Models of tensor cores."""
    note = (
        "Numbers are cut toward zero; those of n = 10 of V100 and H100 are rounded to nearest. This is what the data show: options "
        "of CPFloat persist, and the model ends with round = 4. An observation; to nearest, errors are 1.3 to 10 times smaller."
    )
    for gpu, name in list(CORE_ERRORS)[: 2 if quick else None]:
        random, fmt, published = np.random.RandomState(1), Format.from_name(name), CORE_ERRORS[gpu, name]
        how = tensor_core(gpu, input=fmt, output=float32)
        for n in (n for n in _sizes(20) if n <= max(published)):
            a, b = _drawn(random, n)
            if n not in published:
                continue
            nearest = n == 10 and gpu in ("V100", "H100")
            error = _scaled_error(a, b, fmt, how, float32, "nearest_even" if nearest else "toward_zero")
            yield _claim(CORES, "t", f"{gpu}, {fmt}, 10 × {n} × 10: error", published[n], "0", f"{error:.6e}", note)
            note = ""


# -- trends ----------------------------------------------------------------------------------------------------------

REFINEMENT = "Carson and Higham 2018, Accelerating the solution of linear systems by refinement in three precisions"
HEAT = "Croci and Giles 2022, Effects of round-to-nearest and stochastic rounding in the numerical solution of the heat equation"
PROBABILISTIC = "Connolly, Higham and Mary 2021, Stochastic rounding and its probabilistic backward error analysis"
SLICES = "Ozaki, Ogita, Oishi and Rump 2012, Error-free transformations of matrix multiplication; slices in fp8"


def randsvd(n: int, condition: float, seed: int) -> Values:
    """A random matrix of singular values from 1 down to 1 / condition, in equal ratios."""
    random = np.random.default_rng(seed)
    u, v = (np.linalg.qr(random.standard_normal((n, n)))[0] for _ in range(2))
    return np.asarray((u * condition ** (-np.arange(n) / (n - 1))) @ v.T)


def refinement(seed: int, quick: bool) -> Iterator[Claim]:
    """LU-IR and GMRES-IR: factors in half, x in single, residuals as if in double."""
    cases = [("lu", 3, True), ("lu", 5, False), ("gmres", 5, True), ("gmres", 7, True)]
    for solver, power, wanted in cases[: 2 if quick else None]:
        a, b = randsvd(100, 10.0**power, 1), np.random.default_rng(1).standard_normal(100)
        found = refine(a, b, factor=float16, working=float32, residual="exact", solver=solver)
        name, most = ("GMRES-IR", "1e8") if solver == "gmres" else ("LU-IR", "1e4")
        text = f"{'converges' if found.converged else 'does not'}, {found.steps} steps"
        published = f"converges to {most}" if wanted else f"not beyond {most}"
        note = "Here GMRES multiplies by the factors in single, for 1e8 the paper has double." if power == 7 else ""
        statement, holds = f"{name}, condition 1e{power}, n = 100", found.converged is wanted
        yield _trend(REFINEMENT, "g", statement, published, text, holds, note)


def heat(cells: int, fmt: Format | str = "bfloat16", **settings: Any) -> float:
    """The greatest rounding error, in units of u, of the heat equation at 0.5 by forward Euler with Δt = Δx²/4, in the delta form."""
    x = np.linspace(0, 1, cells + 1)
    start = array(1 + np.sin(np.pi * x) * (1 + x), fmt)

    def marched(u: Any) -> Any:
        for _ in range(2 * cells**2):
            d = u[1:] - u[:-1]
            u[1:-1] += (d[1:] - d[:-1]) * 0.25
        return u

    with environment(**settings):
        found = marched(start.copy())
    return float(np.abs(found.values - marched(start.values)).max() * 2.0**start.format.p)


def warming(seed: int, quick: bool) -> Iterator[Claim]:
    """The heat equation in bfloat16."""
    cells = (8, 16) if quick else (8, 16, 32)
    nearest = [heat(n) for n in cells]
    drawn = [float(np.mean([heat(n, rounding="stochastic", seed=seed + run) for run in range(3)])) for n in cells]
    steps = ", ".join(f"{0.25 / n**2:.1e}" for n in cells)
    text = ", ".join(f"{x:.0f} u" for x in nearest)
    grows = all(y > 3 * x for x, y in pairwise(nearest))
    yield _trend(HEAT, "c", f"to nearest, Δt = {steps}: error", "grows as 1/Δt", text, grows)
    text = ", ".join(f"{x:.1f} u" for x in drawn)
    yield _trend(HEAT, "c", "the same, stochastic", "next to none", text, max(drawn) < 6 < min(nearest))


def dots(seed: int, quick: bool) -> Iterator[Claim]:
    """Inner products of uniform numbers in half."""
    random, n = np.random.default_rng(1), 10_000
    x, y = (_rounded(random.random(n), float16) for _ in range(2))
    whole = float(np.asarray(bits.decode(x, float16)) @ np.asarray(bits.decode(y, float16)))

    def error(**options: Any) -> float:
        code = bits.vecdot(x, y, float16, mul_add(float16), out_format=float16, flags="any", **options)[0]
        return abs(float(bits.decode(code, float16)) - whole) / whole

    drawn = float(np.mean([error(rounding="stochastic", seed=seed + run) for run in range(10)]))
    nearest, limit = error(), np.sqrt(n) * 2.0**-11
    statement, published = f"inner product of {n}, half, stochastic: error", f"below √n u = {limit:.1e}"
    yield _trend(PROBABILISTIC, "d", statement, published, f"{drawn:.1e}", drawn < limit)
    yield _trend(PROBABILISTIC, "d", "the same, to nearest", "grows as n u", f"{nearest:.1e}", nearest > 2 * limit)


def ozaki(a: Values, b: Values, slices: int, how: Accumulator) -> Values:
    """a b in float64 from products of slices: digits of radix 16 of rows and columns, in fp8 e4m3, each pair multiplied by an accumulator."""
    down, codes = [], []
    for x, axis in ((a, 1), (b, 0)):
        exponent = np.ceil(np.log2(np.abs(x).max(axis, keepdims=True))) + 1
        rest, found = x / 2.0**exponent, []
        for _ in range(slices):
            digit = np.rint(rest * 16)
            rest = rest * 16 - digit
            found.append(_rounded(digit, float8_e4m3fn))
        down.append(exponent)
        codes.append(found)
    total = np.zeros((len(a), b.shape[1]))
    for level in range(slices - 1, -1, -1):
        for i in range(level + 1):
            total += _product(codes[0][i], codes[1][level - i], float8_e4m3fn, how, float32) * 16.0 ** -(level + 2)
    return np.asarray(total * 2.0 ** down[0] * 2.0 ** down[1])


def slicing(seed: int, quick: bool) -> Iterator[Claim]:
    """Ozaki's scheme by sums that are exact, and by those of an H100, which keep 13 bits of fraction."""
    random = np.random.default_rng(0)
    a, b = random.random((16, 1024)), random.random((1024, 16))
    whole = a.astype(np.longdouble) @ b
    for how in (exact(float32), tensor_core("H100", input=float8_e4m3fn, output=float32)):
        errors = [float(np.max(np.abs(ozaki(a, b, slices, how) - whole) / whole)) for slices in (8, 14)]
        text, statement = ", ".join(f"{x:.1e}" for x in errors), "16 × 1024 × 16 by 8 and 14 slices, "
        if how == exact(float32):
            yield _trend(SLICES, "o", statement + "exact sums", "double precision", text, errors[1] < 1e-15)
            continue
        note = "No paper has this number: the sums of an H100 keep 13 bits of fraction, and more slices do not help."
        yield _trend(SLICES, "o", statement + "H100", "needs exact sums", text, errors[1] > 1e-4, note)


class Stage(NamedTuple):
    """One table: its name, tenths of a second on one core with loops compiled, in full and quickly, and its claims."""

    name: str
    tenths: int
    quickly: int
    claims: Callable[[int, bool], Iterator[Claim]]


STAGES = (
    Stage("sums of 1/k²", 1, 1, sums),
    Stage("Euler's method", 60, 4, euler),
    Stage("matrix products", 60, 2, products),
    Stage("the harmonic series", 1, 1, harmonic),
    Stage("products of fp8 in half", 15, 1, narrow),
    Stage("tensor cores", 10, 4, cores),
    Stage("iterative refinement", 60, 4, refinement),
    Stage("the heat equation", 9, 5, warming),
    Stage("inner products", 2, 2, dots),
    Stage("slices of fp8", 4, 4, slicing),
)


def reproduce(
    seed: int = 0,
    progress: Progress | None = None,
    told: Callable[[Claim], None] | None = None,
    *,
    quick: bool = False,
) -> Claims:
    """As `softfloat.experiments.reproduce`; quickly means fewer and smaller numbers of each table."""
    lasting = [stage.quickly if quick else stage.tenths for stage in STAGES]
    found: list[Claim] = []
    for place, stage in enumerate(STAGES):
        if progress is not None:
            progress(stage.name, sum(lasting[:place]) / sum(lasting))
        for number, claim in enumerate(stage.claims(seed, quick), 1):
            found.append(replace(claim, id=f"{claim.id}{number}"))
            if told is not None:
                told(found[-1])
    return Claims(seed, tuple(found))
