"""Files of data sets as their makers write them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}


arrays = st.sampled_from(sorted(TYPES.values())).flatmap(
    lambda name: hnp.arrays(
        np.dtype(name),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5),
        elements={"allow_nan": False} if name.startswith("f") else None,
    )
)


# -- CIFAR-10 --------------------------------------------------------------------------------------------------------


def records(count: int, seed: int = 0) -> tuple[Any, Any, bytes]:
    """Images, labels, and the file of them."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    content = b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels.tolist(), strict=True))
    return images, labels, content


# -- data sets -------------------------------------------------------------------------------------------------------


def fashion_mnist(folder: Path, train: int = 6, test: int = 3, suffix: str = "") -> dict[str, Any]:
    """A folder as it is distributed, of few images, and the arrays in it by name."""
    rng = np.random.default_rng(1)
    arrays: dict[str, Any] = {}
    for which, count in (("train", train), ("t10k", test)):
        arrays[f"{which}-images-idx3-ubyte"] = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        arrays[f"{which}-labels-idx1-ubyte"] = rng.integers(0, 10, count, dtype=np.uint8)
    for name, array in arrays.items():
        content = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    return arrays


def cifar10(folder: Path, count: int = 2) -> list[tuple[Any, Any, bytes]]:
    """A folder as it is distributed, of few images, and what is in its files."""
    files = [records(count, seed) for seed in range(6)]
    names = [f"data_batch_{n}.bin" for n in range(1, 6)] + ["test_batch.bin"]
    for name, (_, _, content) in zip(names, files, strict=True):
        (folder / name).write_bytes(content)
    return files
