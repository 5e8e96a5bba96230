"""Images to classify: scikit-learn's digits, random ones, and Fashion-MNIST and CIFAR-10 from the files they are distributed as.

Files are read as data and nothing else: IDX is an array with a header, CIFAR-10's binary version a list of records.

>>> import tempfile
>>> with tempfile.NamedTemporaryFile() as file:
...     _ = file.write(bytes([0, 0, 0x08, 2, 0, 0, 0, 1, 0, 0, 0, 3, 5, 6, 7]))
...     file.flush()
...     read_idx(file.name)
array([[5, 6, 7]], dtype=uint8)
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from softfloat.checks import check_choice, is_integer

__all__ = ["DATASETS", "Dataset", "load", "read_cifar10", "read_idx"]

DATASETS = ("digits", "random", "fashion-mnist", "cifar10")
"""What `load` knows."""

CLASSES = 10  # of each data set

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and the classes they belong to.

    Attributes
    ----------
    name : str
        One of `DATASETS`.
    train_images, test_images : float32 array of shape (images, channels, height, width)
        From 0 to 1; random ones are normally distributed around 0.
    train_labels, test_labels : int64 array of shape (images,)
        From 0 to 9.
    """

    name: str
    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


def load(
    dataset: str, data_dir: str | os.PathLike[str] | None = None, limit: int | None = None, seed: int = 0
) -> Dataset:
    """A data set, from files on this machine.

    Parameters
    ----------
    dataset : {"digits", "random", "fashion-mnist", "cifar10"}
        "random" has 1024 images of 32 x 32 pixels in one channel, drawn like MindSpore's tutorial on mixed precision does,
        and 256 more to test on, with random labels: there is nothing in them but what a network remembers.
    data_dir : path, optional
        The folder of the files, under the names they are distributed by: for "fashion-mnist"
        train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it
        is or compressed (.gz); for "cifar10" data_batch_1.bin to data_batch_5.bin and test_batch.bin, there or in a
        folder cifar-10-batches-bin. The digits come with scikit-learn.
    limit : int, optional
        Only so many training images, the first ones, and no more test images than that. Files beyond are not read.
    seed : int
        Of the digits' order, whose first 1500 are for training, the other 297 for tests, and of random images. The other
        sets have files of their own for that.

    Raises
    ------
    ValueError
        For an unknown name, a limit that is not positive, a missing or superfluous `data_dir`, or a file that is not
        what its name says.
    FileNotFoundError
        Naming the folder or file.
    ImportError
        If scikit-learn is missing, naming how to install it.
    """
    check_choice("dataset", dataset, DATASETS)
    if limit is not None and (not is_integer(limit) or limit < 1):
        raise ValueError(f"limit must be a positive integer or None, got {limit!r}")
    if dataset in MADE:
        make, origin = MADE[dataset]
        if data_dir is not None:
            raise ValueError(f"data_dir must be None for {origin}, got {str(data_dir)!r}")
        train, test = make(seed)
    else:
        names = "train-images-idx3-ubyte" if dataset == "fashion-mnist" else "data_batch_1.bin"
        if data_dir is None:
            raise ValueError(
                f"{dataset} needs data_dir, the folder of {names} and the other files it is distributed as"
            )
        folder = Path(data_dir)
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        train, test = (_fashion_mnist if dataset == "fashion-mnist" else _cifar10)(folder, limit)
    images = [
        np.divide(pixels[:limit], np.float32(white), dtype=np.float32)
        for pixels, white in ((part.pixels, part.white) for part in (train, test))
    ]
    labels = [part.labels[:limit].astype(np.int64) for part in (train, test)]
    return Dataset(dataset, images[0], labels[0], images[1], labels[1])


@dataclass(frozen=True, eq=False)
class _Part:
    """Pixels of shape (images, channels, height, width) from 0 to `white`."""

    pixels: Array
    labels: Array
    white: int = 255


# -- digits ----------------------------------------------------------------------------------------------------------

TRAINING_DIGITS = 1500  # of 1797


def _digits(seed: int) -> tuple[_Part, _Part]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError('the digits come with scikit-learn: pip install "numba-softfloat[examples]"') from None
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    pixels, labels = pixels[order].reshape(-1, 1, 8, 8), labels[order]
    return (
        _Part(pixels[:TRAINING_DIGITS], labels[:TRAINING_DIGITS], 16),
        _Part(pixels[TRAINING_DIGITS:], labels[TRAINING_DIGITS:], 16),
    )


# -- random images ---------------------------------------------------------------------------------------------------

RANDOM_IMAGES = 1024, 256  # for training, for tests


def _random(seed: int) -> tuple[_Part, _Part]:
    rng = np.random.default_rng(seed)
    train, test = (
        _Part(
            rng.standard_normal((count, 1, SIDE, SIDE)).astype(np.float32), rng.integers(0, CLASSES, count, np.uint8), 1
        )
        for count in RANDOM_IMAGES
    )
    return train, test


MADE = {
    "digits": (_digits, "the digits, which come with scikit-learn"),
    "random": (_random, "random images, which are drawn"),
}


# -- IDX -------------------------------------------------------------------------------------------------------------

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"
MOST_DIMENSIONS = 64  # of an array in NumPy
CHUNK = 1 << 20  # bytes: a header may claim any size, so memory grows with what is there


def read_idx(path: str | os.PathLike[str]) -> Array:
    """The array in an IDX file, compressed by gzip or not.

    Parameters
    ----------
    path : path

    Returns
    -------
    array of uint8, int8, int16, int32, float32 or float64
        In this machine's byte order.

    Raises
    ------
    ValueError
        Naming the file and what is wrong with it.
    OSError
        If it cannot be read.

    Notes
    -----
    Two zero bytes, one for the type (08 to 0e), one for the number of dimensions, each dimension as a big-endian
    integer of 32 bits, the elements, big-endian, last dimension fastest; nothing after them.

    Source: Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits, "The IDX file format".
    """
    path = Path(path)
    with closing(_opened(path)) as file:
        try:
            return _idx(file, path)
        except (EOFError, zlib.error, gzip.BadGzipFile) as damage:
            raise ValueError(f"{path} is damaged: {damage}") from None


def _opened(path: Path) -> BinaryIO | gzip.GzipFile:
    file = path.open("rb")
    try:
        compressed = file.read(2) == GZIP_MAGIC
        if path.suffix == ".gz" and not compressed:
            raise ValueError(f"{path} is not compressed by gzip, which its name says")
    except BaseException:
        file.close()
        raise
    if not compressed:
        file.seek(0)
        return file
    file.close()
    return gzip.GzipFile(path)


def _idx(file: BinaryIO | gzip.GzipFile, path: Path) -> Array:
    header = _read(file, 4)
    if len(header) < 4:
        raise ValueError(f"{path} is no IDX file: it ends within the first four bytes")
    code, dimensions = header[2], header[3]
    if header[:2] != b"\0\0" or code not in IDX_TYPES:
        raise ValueError(
            f"{path} is no IDX file: it begins with {header.hex(' ')}, not with 00 00 and one of "
            + ", ".join(f"{known:02x}" for known in IDX_TYPES)
        )
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ValueError(f"{path} must have 1 to {MOST_DIMENSIONS} dimensions, its header says {dimensions}")
    sizes = _read(file, 4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise ValueError(f"{path} is truncated: it ends within its header")
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    dtype = np.dtype(IDX_TYPES[code])
    length = math.prod(shape) * dtype.itemsize
    data = _read(file, length + 1)  # one more, so that whatever follows is seen, and gzip's checksum
    words = f"{' × '.join(map(str, shape))} elements of {dtype.newbyteorder('=')}, {length} bytes"
    if len(data) < length:
        raise ValueError(f"{path} is truncated: its header says {words}, {len(data)} follow")
    if len(data) > length:
        raise ValueError(f"{path} has trailing bytes: its header says {words}, more follow")
    try:
        return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    except ValueError:  # no elements, and dimensions whose product NumPy cannot hold
        raise ValueError(f"{path} has dimensions that no array can have: {' × '.join(map(str, shape))}") from None


def _read(file: BinaryIO | gzip.GzipFile, length: int) -> bytes:
    """So many bytes, or all there are."""
    parts: list[bytes] = []
    while length > 0 and (part := file.read(min(length, CHUNK))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _fashion_mnist(folder: Path, limit: int | None) -> tuple[_Part, _Part]:
    return _idx_pair(folder, "train"), _idx_pair(folder, "t10k")


def _idx_pair(folder: Path, which: str) -> _Part:
    images_path, labels_path = (
        _found(folder, (f"{which}-{name}", f"{which}-{name}.gz")) for name in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    images, labels = read_idx(images_path), read_idx(labels_path)
    for path, array, dimensions in ((images_path, images, 3), (labels_path, labels, 1)):
        if array.dtype != np.uint8 or array.ndim != dimensions:
            raise ValueError(
                f"{path} must have {dimensions} dimension{'s' * (dimensions > 1)} of uint8, has {array.ndim} of {array.dtype}"
            )
    if images.shape[1:] != (28, 28):
        raise ValueError(
            f"{images_path} must have images of 28 × 28 pixels, has {' × '.join(map(str, images.shape[1:]))}"
        )
    if len(images) != len(labels):
        raise ValueError(f"{images_path} has {len(images)} images, {labels_path} {len(labels)} labels")
    if not len(images):
        raise ValueError(f"{images_path} has no images")
    _check_labels(labels, labels_path)
    return _Part(images[:, None], labels)


# -- CIFAR-10 --------------------------------------------------------------------------------------------------------

SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE  # bytes: a label, then the planes red, green and blue


def read_cifar10(path: str | os.PathLike[str]) -> tuple[Array, Array]:
    """Images and labels in a file of CIFAR-10's binary version.

    Parameters
    ----------
    path : path

    Returns
    -------
    images : uint8 array of shape (images, 3, 32, 32)
    labels : uint8 array of shape (images,)
        From 0 to 9.

    Raises
    ------
    ValueError
        Naming the file and what is wrong with it.
    OSError
        If it cannot be read.

    Notes
    -----
    Records of 3073 bytes: the label, 1024 bytes each of red, green and blue, row by row. There is no header.

    Source: A. Krizhevsky, The CIFAR-10 dataset, "Binary version".
    """
    path = Path(path)
    data = path.read_bytes()
    if not data:
        raise ValueError(f"{path} is empty")
    if len(data) % RECORD:
        raise ValueError(
            f"{path} must be records of {RECORD} bytes, has {len(data) % RECORD} beyond {len(data) // RECORD}"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    labels = records[:, 0].copy()
    _check_labels(labels, path)
    return records[:, 1:].reshape(-1, 3, SIDE, SIDE), labels


def _cifar10(folder: Path, limit: int | None) -> tuple[_Part, _Part]:
    train = _records(folder, [f"data_batch_{index}.bin" for index in range(1, 6)], limit)
    return train, _records(folder, ["test_batch.bin"], limit)


def _records(folder: Path, names: Sequence[str], limit: int | None) -> _Part:
    """The files' records, of as many files as it takes."""
    images: list[Array] = []
    labels: list[Array] = []
    for name in names:
        if limit is not None and sum(len(some) for some in labels) >= limit:
            break
        some, their_labels = read_cifar10(_found(folder, (name, f"cifar-10-batches-bin/{name}")))
        images.append(some)
        labels.append(their_labels)
    return _Part(np.concatenate(images), np.concatenate(labels))


# -- files -----------------------------------------------------------------------------------------------------------


def _found(folder: Path, names: Iterable[str]) -> Path:
    """The first of the names that is a file in the folder."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{folder} has no file {' or '.join(names)}")


def _check_labels(labels: Array, path: Path) -> None:
    wrong = np.flatnonzero(labels >= CLASSES)
    if len(wrong):
        raise ValueError(f"{path}: labels must be 0 to {CLASSES - 1}, number {wrong[0]} is {labels[wrong[0]]}")
