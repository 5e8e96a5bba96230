"""Numbers that papers of numerical analysis have published about narrow formats, computed again.

A number is reproduced if it prints as published; the exact value is that without rounding errors. Where a paper has a trend and no number, a claim
says what is seen of it. What is double precision in a paper and enters as a reference is left out: products without limits of the range (Mary and
Mikaitis), and columns of errors in double precision.
"""

from __future__ import annotations

import re
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
from softfloat.formats import Format, float8_e4m3fn, float16, float32, float64
from softfloat.linalg import refine

__all__ = ["heat", "ozaki", "randsvd", "reproduce"]

Values = np.ndarray[Any, Any]


def _claim(
    statement: str, published: str, found: str, exact: str = "-", note: str = "", holds: bool | None = None
) -> Claim:
    """What a paper says, in numbers, or in words that `holds` judges, beside what is seen of it here. Its `Stage` knows the source."""
    verdict = Verdict.REPRODUCED if (found == published if holds is None else holds) else Verdict.FAILED
    return Claim("", "", statement, published, exact, found, verdict, note)


def _rounded(x: Any, fmt: Format | str, **options: Any) -> Any:
    return bits.encode(x, fmt, flags="any", **options)[0]


def _product(a: Any, b: Any, fmt: Format, how: Accumulator, result: Format) -> Values:
    codes = bits.matmul(a, b, fmt, how, out_format=result, flags="any")[0]
    return np.asarray(bits.decode(codes, result))


def _table(text: str) -> dict[str, str]:
    """Name -> numbers; a line that begins with a blank goes on."""
    rows = re.split(r"\n(?! )", text.strip())
    return {name: " ".join(numbers.split()) for name, _, numbers in (row.partition(":") for row in rows)}


# -- Higham and Pranesh 2019 -----------------------------------------------------------------------------------------

SIMULATING = "Higham and Pranesh 2019, Simulating low precision floating-point arithmetic (and its programs)"
SUMS = {100: ("1.634766", "1.634766"), 1000: ("1.643555", "1.636719"), 10000: ("1.644531", "1.636719")}
SUMS[100_000] = SUMS[10_000]
"""Sum of 1/k², from the last to the first, in half: with subnormal numbers, without."""

EULER_STEPS = np.logspace(1, 5, 16).round().astype(int).tolist()
EULER = _table(
    """
bfloat16: 1.692729e-04 1.234966e-04 4.720261e-05 1.359029e-04 4.105611e-04 5.507427e-04 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03
    6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03
half: 1.864391e-04 9.870103e-05 5.101731e-05 2.622178e-05 1.096299e-05 8.110496e-06 4.529527e-05 3.333596e-06 8.821914e-05 5.964760e-03 6.330971e-03
    6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03
half without subnormals: 1.864391e-04 9.870103e-05 5.101731e-05 1.530690e-04 3.427987e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03
    6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03 6.330971e-03
single: 1.886046e-04 1.011315e-04 5.123315e-05 2.582830e-05 1.219769e-05 4.987392e-06 1.036023e-06 1.092281e-06 2.238507e-06 2.858768e-06
    3.194276e-06 3.375884e-06 3.475070e-06 3.524430e-06 3.582405e-06 3.660403e-06
"""
)
"""Error at 1 of that many steps of Euler's method, by the formats below."""
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
            yield _claim(f"sum of 1/k² to {n}, reversed, {how} subnormals", text, found, whole)


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
    chosen = [n for n in EULER_STEPS if n <= 3000 or not quick]
    note = (
        "0.01 is rounded to bfloat16 first, in every format: the published numbers have that, and `y0 = chop(y0)` stands in the program's loop over "
        "formats, whose first is bfloat16. An observation; in half, 0.01 has an error of 2e-6 then, which is most of some errors here."
    )
    for name, (fmt, ftz) in EULER_FORMATS.items():
        for n, found, published in zip(chosen, _euler(fmt, ftz, chosen), EULER[name].split(), strict=False):
            whole = f"{abs((1 - 1 / n) ** n - np.exp(-1.0)) * 1e-2:.6e}"
            yield _claim(f"Euler's method, {n} steps, {name}: error", published, f"{found:.6e}", whole, note)
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
            yield _claim(f"product of random {n} × {n}, {how}: greatest error", text, found, "0")


def harmonic(seed: int, quick: bool) -> Iterator[Claim]:
    """The harmonic series until it stands."""
    custom = Format("custom", exponent_bits=3, mantissa_bits=4)
    for name, (total, terms) in HARMONIC.items():
        fmt = custom if name == "custom" else Format.from_name(name)
        x = _rounded(1 / np.arange(1.0, 2 * terms + 1), fmt)
        running = np.asarray(bits.decode(bits.cumsum(x, fmt, fma(fmt), out_format=fmt, flags="any")[0], fmt))
        still = int(np.argmax(running[1:] == running[:-1])) + 2  # the term that changed nothing
        shown = "5 bits, exponents to 3" if name == "custom" else name
        statement, found = f"harmonic series in {shown}: sum, terms", f"{running[still - 1]:.4f}, {still}"
        yield _claim(statement, f"{total}, {terms}", found, "no end")


# -- products of scaled random matrices ------------------------------------------------------------------------------

NARROW = "Mary and Mikaitis 2024, hal-04671474 (and its data): fp8-e4m3 by fp8-e4m3, sums in half"
NARROW_ERRORS = _table(
    """
without: 1.792245e-03 6.174656e-03 2.023212e-02 5.662695e-03 1.311423e-02 6.257477e-03 4.494583e-03 1.507560e-02 8.858919e-03 3.102424e-03
    4.881442e-03 6.974720e-03 3.934148e-03 3.190834e-03 4.190118e-03 2.325980e-03 3.533543e-03 2.178431e-03 1.756374e-03 1.326176e-03 1.587465e-03
    1.320383e-03 9.773310e-04 9.711917e-04 6.376703e-04 7.219619e-04 4.217687e-04 3.543298e-04 3.306868e-04 3.096908e-04 3.359329e-04 2.616822e-04
    2.499535e-04 1.593558e-04 1.847493e-04 2.099321e-04 1.448385e-04 1.545192e-04 9.837480e-05 1.570865e-04
with: 1.167516e-02 1.312582e-02 2.076302e-02 9.138021e-03 1.535951e-02 5.157619e-03 7.088451e-03 1.049548e-02 7.433034e-03 7.030749e-03 5.343621e-03
    3.808756e-03 5.701101e-03 5.667397e-03 2.992039e-03 1.750073e-03 2.750264e-03 2.256384e-03 1.623863e-03 1.745954e-03 1.200950e-03 9.932089e-04
    9.488021e-04 8.047815e-04 6.937843e-04 6.360922e-04 6.508371e-04 3.438325e-04 4.538297e-04 3.128623e-04 2.932234e-04 2.716945e-04 1.660417e-04
    1.733398e-04 1.509774e-04 1.028786e-04 1.071926e-04 9.294155e-05 5.548260e-05 7.924010e-05
"""
)
"""Errors at each of 40 sizes: without subnormal numbers, with them."""
CORES = "Khattak and Mikaitis 2026, ACM TACO (and its data): models of tensor cores, sums in single"
CORE_ERRORS = _table(
    """
V100 float16: 2.533386e-05 1.508825e-04 2.227115e-04 1.484188e-04 1.434194e-04 2.140825e-04 1.483552e-04 9.194010e-05 4.736983e-05 2.906118e-05
    2.049522e-05 1.832907e-05
A100 float16: 1.283168e-04 1.508825e-04 2.227363e-04 1.484215e-04 1.434364e-04 2.140915e-04 1.484317e-04 9.200353e-05 4.744350e-05 2.911445e-05
    2.054896e-05 1.844587e-05
B200 float16: 1.283168e-04 1.508825e-04 2.227364e-04 1.484161e-04 1.434395e-04 2.140915e-04 1.484374e-04 9.201701e-05 4.745446e-05 2.912409e-05
    2.056001e-05 1.846911e-05
A100 bfloat16: 1.469606e-03 3.555061e-03 1.424942e-03 1.121651e-03 9.231988e-04 1.191711e-03 1.168148e-03 6.131915e-04 3.561456e-04 2.296391e-04
    1.666999e-04 1.293470e-04
B200 bfloat16: 1.469606e-03 3.555061e-03 1.424950e-03 1.121651e-03 9.231993e-04 1.191709e-03 1.168169e-03 6.132106e-04 3.561488e-04 2.296500e-04
    1.667126e-04 1.293651e-04
L40S float8_e5m2: 1.456549e-02 1.204863e-01 4.384558e-02 4.370685e-02 3.418907e-02 4.126766e-02 3.079070e-02 1.776387e-02 8.073948e-03 7.319770e-03
    5.161573e-03 3.557425e-03
H100 float8_e5m2: 1.026486e-02 1.204863e-01 4.384564e-02 4.371811e-02 3.418907e-02 4.126769e-02 3.079078e-02 1.776513e-02 8.073880e-03 7.319594e-03
    5.161813e-03 3.557250e-03
B200 float8_e5m2: 1.456549e-02 1.204863e-01 4.384427e-02 4.370109e-02 3.420082e-02 4.126824e-02 3.078509e-02 1.775784e-02 8.072230e-03 7.315400e-03
    5.162285e-03 3.551166e-03
"""
)
"""Errors of one word, at the first 12 of 20 sizes."""
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
    for subnormals in (False,) if quick else (False, True):
        fmt = Format("fp8", exponent_bits=4, mantissa_bits=3, nan="fn", subnormals=subnormals)
        wide = Format("wide", exponent_bits=5, mantissa_bits=10, subnormals=subnormals)
        how = "with" if subnormals else "without"
        for n, published in zip(_sizes(40), NARROW_ERRORS[how].split(), strict=True):
            if quick and n > 100:
                break
            error = _scaled_error(*_drawn(random, n), fmt, mul_add(wide), wide, "nearest_even")
            yield _claim(f"10 × {n} × 10, {how} subnormals: error", published, f"{error:.6e}", "0")


def cores(seed: int, quick: bool) -> Iterator[Claim]:
    """Models of tensor cores."""
    note = (
        "Numbers are cut toward zero; those of n = 10 of V100 and H100 are rounded to nearest. This is what the data show: options "
        "of CPFloat persist, and the model ends with round = 4. An observation; to nearest, errors are 1.3 to 10 times smaller."
    )
    for row in list(CORE_ERRORS)[: 2 if quick else None]:
        gpu, name = row.split()
        random, fmt = np.random.RandomState(1), Format.from_name(name)
        how = tensor_core(gpu, input=fmt, output=float32)
        for n, published in zip(_sizes(20), CORE_ERRORS[row].split(), strict=False):
            if quick and n > 1300:
                break
            a, b = _drawn(random, n)
            nearest = n == 10 and gpu in ("V100", "H100")
            error = _scaled_error(a, b, fmt, how, float32, "nearest_even" if nearest else "toward_zero")
            yield _claim(f"{gpu}, {fmt}, 10 × {n} × 10: error", published, f"{error:.6e}", "0", note)
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
    """LU-IR and GMRES-IR: factors in half, x in single, residuals as if in double; the factors are applied in double, or for less in single."""
    cases = [("lu", 3, None), ("lu", 5, None), ("gmres", 5, None), ("gmres", 7, None), ("gmres", 8, float64)]
    for solver, power, applied in cases[: 2 if quick else None]:
        a, b = randsvd(100, 10.0**power, 1), np.random.default_rng(1).standard_normal(100)
        found = refine(a, b, factor=float16, working=float32, residual="exact", solver=solver, apply=applied)
        name, most = ("GMRES-IR", 8) if solver == "gmres" else ("LU-IR", 4)
        text = f"{'converges' if found.converged else 'does not'}, {found.steps} steps"
        published = f"{'converges to' if power <= most else 'not beyond'} 1e{most}"
        note = "GMRES in single, by which the paper has double." if power == 7 else ""
        holds = found.converged is (power <= most)
        yield _claim(f"{name}, condition 1e{power}, n = 100", published, text, note=note, holds=holds)


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
    yield _claim(f"to nearest, Δt = {steps}: error", "grows as 1/Δt", text, holds=grows)
    text = ", ".join(f"{x:.1f} u" for x in drawn)
    yield _claim("the same, stochastic", "next to none", text, holds=max(drawn) < 6 < min(nearest))


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
    yield _claim(statement, published, f"{drawn:.1e}", holds=drawn < limit)
    yield _claim("the same, to nearest", "grows as n u", f"{nearest:.1e}", holds=nearest > 2 * limit)


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
            yield _claim(statement + "exact sums", "double precision", text, holds=errors[1] < 1e-15)
            continue
        note = "No paper has this number: the sums of an H100 keep 13 bits of fraction, and more slices do not help."
        yield _claim(statement + "H100", "needs exact sums", text, note=note, holds=errors[1] > 1e-4)


class Stage(NamedTuple):
    """One table: its letter, name and source, its claims; tenths of a second on one core, loops compiled on the way, in full and quickly."""

    letter: str
    name: str
    source: str
    claims: Callable[[int, bool], Iterator[Claim]]
    tenths: int
    quickly: int


STAGES = (
    Stage("s", "sums of 1/k²", SIMULATING, sums, 60, 130),
    Stage("e", "Euler's method", SIMULATING, euler, 140, 135),
    Stage("p", "matrix products", SIMULATING, products, 90, 25),
    Stage("h", "the harmonic series", SIMULATING, harmonic, 20, 28),
    Stage("m", "products of fp8 in half", NARROW, narrow, 800, 150),
    Stage("t", "tensor cores", CORES, cores, 370, 100),
    Stage("g", "iterative refinement", REFINEMENT, refinement, 230, 35),
    Stage("c", "the heat equation", HEAT, warming, 55, 120),
    Stage("d", "inner products", PROBABILISTIC, dots, 10, 18),
    Stage("o", "slices of fp8", SLICES, slicing, 2, 60),
)


def reproduce(
    seed: int = 0, progress: Progress | None = None, told: Callable[[Claim], None] | None = None, *, quick: bool = False
) -> Claims:
    """As `softfloat.experiments.reproduce`; quickly means fewer and smaller numbers of each table."""
    lasting = [stage.quickly if quick else stage.tenths for stage in STAGES]
    found: list[Claim] = []
    for place, stage in enumerate(STAGES):
        if progress is not None:
            progress(stage.name, sum(lasting[:place]) / sum(lasting))
        for number, claim in enumerate(stage.claims(seed, quick), 1):
            found.append(replace(claim, id=f"{stage.letter}{number}", source=stage.source))
            if told is not None:
                told(found[-1])
    return Claims(seed, tuple(found))
