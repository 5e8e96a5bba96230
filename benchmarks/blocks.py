"""Quantising to block formats beside memcpy, all in one process.

    python benchmarks/blocks.py [--only REGEX] [--quick] [--plain] [--json FILE] [--markdown PAGE]

A rate is elements per second of a matrix of 1024 x 1024 normally distributed float32. The share is that rate over the rate
at which NumPy copies float32. Flags are OR-ed together unless `each` makes a byte for each element. torchao makes no flags;
it is left out, and said so, where it is not installed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from alone import alone

if __name__ == "__main__":
    alone()

import numpy as np
from measuring import STOCHASTIC, Benchmark, Missing, Row, Work, memcpy, normal, optional

from softfloat import bits, set_num_threads

SIDE = 1024


def numbers() -> np.ndarray:
    return np.asarray(normal(SIDE, SIDE), np.float32)


def quantized(fmt: str, **options: Any) -> Work:
    set_num_threads(1)
    x, given = numbers(), {"flags": "any"} | options
    return Work(lambda: bits.quantize(x, fmt, **given), x.size)


def dequantized(fmt: str) -> Work:
    set_num_threads(1)
    blocks, _ = bits.quantize(numbers(), fmt, flags="any")
    return Work(lambda: bits.dequantize(blocks), blocks.size)


def torchao(element: str) -> Work:
    torch, library = optional("torch"), optional("torchao.prototype.mx_formats.mx_tensor")
    if torch is None or library is None:
        raise Missing("torchao is not installed")
    torch.set_num_threads(1)
    x = torch.from_numpy(numbers())
    return Work(lambda: library.to_mx(x, getattr(torch, element), 32), x.numel())


CASES: tuple[tuple[str, str, dict[str, Any], float | None], ...] = (
    ("mxfp8_e4m3", "mxfp8_e4m3", {}, 0.10),
    ("mxfp8_e4m3, flags each", "mxfp8_e4m3", {"flags": "each"}, None),
    ("mxfp8_e4m3, rceil", "mxfp8_e4m3", {"rule": "rceil"}, 0.10),
    ("mxfp8_e5m2", "mxfp8_e5m2", {}, 0.10),
    ("mxfp6_e2m3", "mxfp6_e2m3", {}, 0.10),
    ("mxfp4_e2m1", "mxfp4", {}, 0.10),
    ("mxfp4_e2m1, along columns", "mxfp4", {"axis": 0}, None),
    ("nvfp4, te", "nvfp4", {"recipe": "te"}, 0.07),
    ("nvfp4, torchao", "nvfp4", {"recipe": "torchao"}, 0.07),
    ("nvfp4, 16x16", "nvfp4", {"block": (16, 16)}, None),
    ("nvfp4, 4over6", "nvfp4", {"four_over_six": "mae"}, None),
    ("mxfp8_e4m3, stochastic", "mxfp8_e4m3", STOCHASTIC, None),
    ("mxint8", "mxint8", {}, None),
)
"""Name, block format, options, and the share of memcpy that is meant to be reached."""

BENCHMARK = Benchmark(
    "blocks",
    {
        "Quantising to block formats": (
            *(Row(name, partial(quantized, fmt, **given), "G/s", "memcpy", share) for name, fmt, given, share in CASES),
            Row("mxfp4_e2m1 to float64", partial(dequantized, "mxfp4"), "G/s", "memcpy"),
            Row("mxfp8_e4m3, torchao", partial(torchao, "float8_e4m3fn"), "G/s", "memcpy"),
        )
    },
    {"memcpy": memcpy},
)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
