"""IEEE P3109, draft 4.0: its value tables, and projections restated in exact rationals, in every mode and saturation."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tallies import Tally

from softfloat import Environment, Format, bits, reference

METHODS = "ABC"
EVERY = 16
"""Of so many formats one is tried with random numbers by default."""


@lru_cache
def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


def file(vectors: Path, name: str) -> dict[str, np.ndarray]:
    path = vectors / f"p3109_{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return load(path)


@pytest.mark.conformance("P3109, draft 4.0: value tables")
def test_values(vectors: Path, tally: Tally) -> None:
    data = file(vectors, "values")
    columns = [data[name].tolist() for name in ("names", "width", "precision", "offsets")]
    for name, width, precision, start in zip(*(x[: len(columns[0])] for x in columns), strict=True):
        stop = start + (1 << width)
        fmt, values = Format.from_name(name), data["values"][start:stop]
        codes = np.arange(values.size, dtype=fmt.dtype)
        assert (fmt.bits, fmt.p, fmt.p3109_name, values.size) == (width, precision, name.lower(), 1 << width)
        wrong = ~((bits.decode(codes, fmt) == values) | (np.isnan(bits.decode(codes, fmt)) & np.isnan(values)))
        wrong |= bits.encode(values, fmt)[0] != codes
        wrong |= bits.issubnormal(codes, fmt) != data["subnormal"][start:stop]
        tally("value", fmt, "exact", values.size, int(wrong.sum()))
        assert not wrong.any(), name


def assert_projected(
    fmt: Format, environment: Environment, x: np.ndarray, expected: np.ndarray, random: np.ndarray | None = None
) -> None:
    """Codes as they are expected; some of them the oracle's too, with flags."""
    codes, flags = bits.encode(x, fmt, environment=environment, random_bits=random)
    assert not np.flatnonzero(codes != expected).size, (fmt, environment)
    names = ("rounding", "overflow", "infinite_input", "projection", "sr_method", "sr_bits")
    options = {name: getattr(environment, name) for name in names}
    for i in range(0, x.size, 10):
        own = {} if random is None else {"random_bits": int(random[i])}
        assert reference.encode(float(x[i]), fmt, **options, **own) == (codes[i], flags[i]), (fmt, x[i], environment)


@pytest.mark.conformance("P3109, draft 4.0: projections in exact rationals")
def test_projections(vectors: Path, tally: Tally) -> None:
    data = file(vectors, "projection")
    key = (data["format"].astype(int) * 6 + data["mode"]) * 3 + data["saturation"]
    order = np.argsort(key, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        number, mode, saturation = (int(data[name][rows[0]]) for name in ("format", "mode", "saturation"))
        fmt, rounding = Format.from_name(str(data["format_names"][number])), str(data["mode_names"][mode])
        environment = Environment.p3109(rounding, saturation=str(data["saturation_names"][saturation]))
        assert_projected(fmt, environment, data["x"][rows], data["code"][rows])
        tally("encode", fmt, rounding, rows.size)


def stochastic(data: dict[str, np.ndarray], tally: Tally, numbers: range) -> None:
    key = (data["sr_method"].astype(int) * 64 + data["sr_bits"]) * 3 + data["sr_saturation"]
    for number in numbers:
        fmt, own = Format.from_name(str(data["format_names"][number])), np.flatnonzero(data["sr_format"] == number)
        for group in np.unique(key[own]):
            rows = own[key[own] == group]
            method, width, saturation = (int(data[f"sr_{x}"][rows[0]]) for x in ("method", "bits", "saturation"))
            environment = Environment.p3109(
                f"Stochastic{METHODS[method]}", saturation=str(data["saturation_names"][saturation]), bits=width
            )
            assert_projected(fmt, environment, data["sr_x"][rows], data["sr_code"][rows], data["sr_random"][rows])
            tally("encode", fmt, f"stochastic {METHODS[method]}", rows.size)


@pytest.mark.conformance("P3109, draft 4.0: projections in exact rationals")
def test_stochastic_projections(vectors: Path, tally: Tally) -> None:
    stochastic(file(vectors, "projection"), tally, range(3, 64, EVERY))


@pytest.mark.exhaustive
@pytest.mark.conformance("P3109, draft 4.0: projections in exact rationals")
def test_stochastic_projections_of_every_format(vectors: Path, tally: Tally) -> None:
    stochastic(file(vectors, "projection"), tally, range(64))
