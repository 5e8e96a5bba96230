"""Compiled code beside the oracle, whatever the operation."""

from __future__ import annotations

from typing import Any

import numpy as np
from softfloat.kernels.spec import NAN_POLICIES

from softfloat import Format, bits, reference

MODES = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd", "stochastic")
COUNT = 60


def options_of(seed: int, fmt: Format, mode: str) -> dict[str, object]:
    """One combination of everything else; with the cases' seeds, all are met."""
    random = np.random.default_rng(seed)
    overflows = ["infinity", "saturate", "nan"] if fmt.has_nan else ["infinity", "saturate"]
    options: dict[str, object] = {
        "rounding": mode,
        "overflow": str(random.choice(overflows)),
        "tininess": str(random.choice(["after", "before"])),
        "infinite_input": str(random.choice(["default", "keep", "saturate", "nan"])),
        "daz": bool(random.random() < 0.2),
        "ftz": bool(random.random() < 0.2),
        "nan": str(random.choice(list(NAN_POLICIES))),
    }
    if mode == "stochastic":
        options["sr_bits"] = int(random.choice([1, 3, 8, 13, 16, 24, 32, 52]))
    return options


def drawn(options: dict[str, object], seed: int) -> np.ndarray | None:
    if options["rounding"] != "stochastic":
        return None
    return np.random.default_rng(seed).integers(0, 2 ** int(options["sr_bits"]), COUNT, dtype=np.uint64)


def agree(
    name: str, ours, theirs, columns: list[np.ndarray], options: dict[str, object], random: np.ndarray | None
) -> None:
    """`ours` is what the compiled function gives for whole columns, `theirs` what the oracle gives for one row."""
    codes, flags = ours(options if random is None else {**options, "random_bits": random})
    for i in range(len(columns[0])):
        row = [int(column[i]) for column in columns]
        extra = {} if random is None else {"random_bits": int(random[i])}
        expected = theirs(*row, {**options, **extra})
        found = (int(codes[i]), int(flags[i]))
        assert found == expected, f"{name}({', '.join(map(hex, row))}) {options} {extra}: {found}, oracle {expected}"


def assert_rounds_up_where_the_oracle_does(name: str, fmt: Format, columns: list[np.ndarray]) -> None:
    """Of 2^52 random numbers for each row, the one at which the oracle starts to round up, and the one before it."""
    oracle = getattr(reference, name)
    rows, random, expected = [], [], []
    for row in zip(*(column.tolist() for column in columns), strict=True):

        def at(number: int, row: tuple[int, ...] = row) -> tuple[int, int]:
            return oracle(*row, fmt, rounding="stochastic", random_bits=number)

        low, high = 0, 2**52 - 1
        if at(low) == at(high):
            continue
        below = at(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle) == below else (low, middle)
        rows += [row, row]
        random += [low, high]
        expected += [at(low), at(high)]
    assert len(rows) > 30
    columns = list(np.array(rows, fmt.dtype).T)
    drawn = {"rounding": "stochastic", "sr_bits": 52, "random_bits": np.array(random, np.uint64)}
    codes, flags = getattr(bits, name)(*columns, fmt, **drawn)
    for row, number, found, wanted in zip(rows, random, zip(codes, flags, strict=True), expected, strict=True):
        assert tuple(map(int, found)) == wanted, ([hex(code) for code in row], number)


def assert_as_the_oracle(name: str, fmt: Format, operands: list[tuple[int, ...]], options: dict[str, Any]) -> None:
    """A function whose results are codes."""
    codes, flags = getattr(bits, name)(*np.array(operands, fmt.dtype).T, fmt, **options)
    for row, code, flag in zip(operands, codes, flags, strict=True):
        expected = getattr(reference, name)(*row, fmt, **options)
        assert (int(code), int(flag)) == expected, (name, [hex(x) for x in row], fmt, options)


def assert_integers(
    fmt: Format, operands: list[tuple[int, ...]], dtype: str, exact: bool, options: dict[str, Any]
) -> None:
    """Conversions to integers."""
    found = bits.to_integer(np.array(operands, fmt.dtype).ravel(), fmt, dtype, exact=exact, **options)
    info = np.iinfo(dtype)
    for (operand,), integer, flag in zip(operands, *found, strict=True):
        expected = reference.to_integer(operand, fmt, info.bits, info.min < 0, exact=exact, **options)
        assert (int(integer), int(flag)) == expected, (hex(operand), fmt, options)


def assert_comparisons(fmt: Format, operands: list[tuple[int, ...]], nan: str, daz: bool) -> None:
    """Comparisons, and what they choose."""
    a, b = np.array(operands, fmt.dtype).T
    for name in ("minimum", "maximum", "minimum_number", "maximum_number"):
        assert_as_the_oracle(name, fmt, operands, {"nan": nan, "daz": daz})
    for name in ("eq", "lt", "le"):
        for signalling in (False, True):
            found = getattr(bits, name)(a, b, fmt, signalling=signalling, nan=nan, daz=daz)
            oracle = getattr(reference, name + "_signalling" * signalling)
            for row, result, flag in zip(operands, *found, strict=True):
                assert (bool(result), int(flag)) == oracle(*row, fmt, nan=nan, daz=daz), (name, row, fmt)
