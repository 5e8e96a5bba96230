"""Data sets: arrays come back from IDX and CIFAR-10 files as they were written, and damage of every kind is named."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import TYPES, arrays, cifar10, fashion_mnist, records
from hypothesis import given
from hypothesis import strategies as st

from softfloat.examples.data import load, read_cifar10, read_idx


def idx(array: Any) -> bytes:
    """An array as an IDX file, element by element."""
    kind = f"{array.dtype.kind}{array.dtype.itemsize}"
    letter = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "f4": "f", "f8": "d"}[kind]
    code = next(code for code, name in TYPES.items() if name == kind)
    header = bytes([0, 0, code, array.ndim]) + b"".join(struct.pack(">I", size) for size in array.shape)
    return header + b"".join(struct.pack(f">{letter}", x) for x in array.ravel().tolist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("idx")


@given(array=arrays, compressed=st.booleans())
def test_idx_round_trip(folder: Path, array: Any, compressed: bool) -> None:
    path = folder / ("array.gz" if compressed else "array")
    path.write_bytes(gzip.compress(idx(array), 1) if compressed else idx(array))
    found = read_idx(path)
    assert found.dtype == array.dtype
    assert found.dtype.isnative
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def test_idx_is_read_as_documented(tmp_path: Path) -> None:
    """Bytes by hand, for each type."""
    for code, payload, expected in (
        (0x08, "ff 01", [255, 1]),
        (0x09, "ff 01", [-1, 1]),
        (0x0B, "01 02 ff fe", [258, -2]),
        (0x0C, "00 01 00 00 ff ff ff ff", [65536, -1]),
        (0x0D, "3f 80 00 00 c0 00 00 00", [1.0, -2.0]),
        (0x0E, "3f f0 00 00 00 00 00 00 c0 00 00 00 00 00 00 00", [1.0, -2.0]),
    ):
        path = tmp_path / f"{code:02x}"
        path.write_bytes(bytes([0, 0, code, 1, 0, 0, 0, 2]) + bytes.fromhex(payload))
        found = read_idx(path)
        assert (found.dtype, found.tolist()) == (np.dtype(TYPES[code]), expected)


def test_compression_goes_by_content_where_the_name_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "train-labels-idx1-ubyte"
    path.write_bytes(gzip.compress(idx(np.arange(3, dtype=np.uint8))))
    assert read_idx(path).tolist() == [0, 1, 2]


WHOLE = idx(np.arange(6, dtype=np.int16).reshape(2, 3))  # a header of 12 bytes, 12 of data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((WHOLE[:n], "ends within the first four bytes") for n in range(4)),
        *((WHOLE[:n], "ends within its header") for n in range(4, 12)),
        *((WHOLE[:n], f"is truncated: its header says 2 × 3 elements of int16, 12 bytes, {n - 12} follow") for n in range(12, 24)),
        (WHOLE + b"\0", "has trailing bytes: its header says 2 × 3 elements of int16, 12 bytes, more follow"),
        (WHOLE + WHOLE, "has trailing bytes"),
        (b"\1" + WHOLE[1:], "is no IDX file: it begins with 01 00 0b 02, not with 00 00 and one of 08, 09, 0b, 0c, 0d, 0e"),
        (b"\0\1" + WHOLE[2:], "is no IDX file"),
        *((b"\0\0" + bytes([code]) + WHOLE[3:], "is no IDX file") for code in (0x00, 0x07, 0x0A, 0x0F, 0xFF)),
        (b"\0\0\x0b\0" + WHOLE[4:], "must have 1 to 64 dimensions, its header says 0"),
        (b"\0\0\x0b\x41" + 65 * b"\0\0\0\1" + b"\0\0", "must have 1 to 64 dimensions, its header says 65"),
        (WHOLE[:4] + b"\xff" * 8 + WHOLE[12:], "4294967295 × 4294967295 elements of int16, 36893488130239234050 bytes, 12 follow"),
        (b"\0\0\x08\3" + 2 * b"\xff\xff\xff\xff" + b"\0\0\0\0", "has dimensions that no array can have"),
        (b"P5\n28 28\n255\n", "is no IDX file: it begins with 50 35 0a 32"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_idx(tmp_path: Path, content: bytes, message: str, compressed: bool) -> None:
    path = tmp_path / "images-idx"
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(ValueError, match="images-idx") as error:
        read_idx(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_compression(tmp_path: Path) -> None:
    """Every truncation, and every byte changed, gives the array or a ValueError that names the file."""
    whole = gzip.compress(WHOLE, mtime=0)
    path = tmp_path / "images-idx.gz"
    expected = np.arange(6, dtype=np.int16).reshape(2, 3)
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"more"]
    damaged += [whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :] for n in range(len(whole))]
    messages = []
    for content in damaged:
        path.write_bytes(content)
        try:
            assert np.array_equal(read_idx(path), expected)
        except ValueError as error:
            messages.append(str(error))
    assert all("images-idx.gz" in message and "\n" not in message for message in messages)
    assert len(damaged) - len(messages) < 10  # gzip's header has a time, a level and a system, which tell nothing


def test_a_name_that_promises_compression(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(WHOLE)
    with pytest.raises(ValueError, match=r"labels\.gz is not compressed by gzip, which its name says"):
        read_idx(path)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.gz"):
        read_idx(tmp_path / "nowhere.gz")


def test_random_images() -> None:
    """1024 and 256 of them, standard normal, with labels that are equally likely; no two alike."""
    found = load("random", seed=3)
    assert (found.train_images.shape, found.test_images.shape) == ((1024, 1, 32, 32), (256, 1, 32, 32))
    assert (found.train_images.dtype, found.train_labels.dtype) == (np.float32, np.int64)
    for images, labels in (
        (found.train_images, found.train_labels),
        (found.test_images, found.test_labels),
    ):
        assert abs(images.mean()) < 5 / np.sqrt(images.size)
        assert abs(images.std() - 1) < 5 / np.sqrt(images.size)
        assert np.bincount(labels, minlength=10).min() > len(labels) / 10 - 5 * np.sqrt(len(labels) / 10)
        assert len(np.bincount(labels)) == 10
    both = np.concatenate([found.train_images, found.test_images]).reshape(1280, -1)
    assert len(np.unique(both, axis=0)) == 1280
    again, other, part = load("random", seed=3), load("random", seed=4), load("random", None, 100, 3)
    assert np.array_equal(again.test_images, found.test_images)
    assert not np.array_equal(other.train_images, found.train_images)
    assert np.array_equal(part.train_images, found.train_images[:100])
    assert np.array_equal(part.test_labels, found.test_labels[:100])


def test_cifar10_round_trip(tmp_path: Path) -> None:
    images, labels, content = records(5)
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(content)
    found = read_cifar10(path)
    assert np.array_equal(found[0], images)
    assert np.array_equal(found[1], labels)
    pixel = content[3073 + 1 + 1024 + 32 * 7 + 9]  # of the second image the green plane, row 7, column 9
    assert found[0][1, 1, 7, 9] == pixel


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[:-1], "must be records of 3073 bytes, has 3072 beyond 1"),
        (lambda content: content[:100], "must be records of 3073 bytes, has 100 beyond 0"),
        (lambda content: content + b"\0", "must be records of 3073 bytes, has 1 beyond 2"),
        (lambda content: content[:3073] + b"\x0a" + content[3074:], "labels must be 0 to 9, number 1 is 10"),
        (lambda content: b"\xff" + content[1:], "labels must be 0 to 9, number 0 is 255"),
    ],
)
def test_damaged_cifar10(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "test_batch.bin"
    path.write_bytes(change(records(2)[2]))
    with pytest.raises(ValueError, match=r"test_batch\.bin") as error:
        read_cifar10(path)
    assert message in str(error.value)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_fashion_mnist(tmp_path: Path, suffix: str) -> None:
    arrays = fashion_mnist(tmp_path, suffix=suffix)
    found = load("fashion-mnist", tmp_path)
    assert (found.name, found.train_images.shape, found.test_images.shape) == (
        "fashion-mnist",
        (6, 1, 28, 28),
        (3, 1, 28, 28),
    )
    assert found.train_images.dtype == np.float32
    assert found.train_labels.dtype == np.int64
    exact = arrays["t10k-images-idx3-ubyte"].astype(np.float64) / 255
    assert np.array_equal(found.test_images[:, 0], exact.astype(np.float32))
    assert np.array_equal(found.train_labels, arrays["train-labels-idx1-ubyte"])
    limited = load("fashion-mnist", str(tmp_path), limit=4)
    assert (len(limited.train_images), len(limited.test_labels)) == (4, 3)
    assert np.array_equal(limited.train_images, found.train_images[:4])


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-bin"])
def test_cifar10(tmp_path: Path, inside: str) -> None:
    (tmp_path / inside).mkdir(exist_ok=True)
    files = cifar10(tmp_path / inside)
    found = load("cifar10", tmp_path)
    assert (found.train_images.shape, found.test_images.shape) == ((10, 3, 32, 32), (2, 3, 32, 32))
    exact = np.concatenate([images for images, _, _ in files[:5]]).astype(np.float64) / 255
    assert np.array_equal(found.train_images, exact.astype(np.float32))
    assert np.array_equal(found.train_labels, np.concatenate([labels for _, labels, _ in files[:5]]))
    assert np.array_equal(found.test_labels, files[5][1])
    assert 0 <= found.train_images.min() < 0.01 < 0.99 < found.train_images.max() <= 1


def test_a_limit_leaves_files_unread(tmp_path: Path) -> None:
    cifar10(tmp_path)
    (tmp_path / "data_batch_2.bin").write_bytes(b"damaged")
    found = load("cifar10", tmp_path, limit=2)
    assert (len(found.train_labels), len(found.test_labels)) == (2, 2)
    with pytest.raises(ValueError, match=r"data_batch_2\.bin"):
        load("cifar10", tmp_path, limit=3)


@pytest.mark.parametrize(
    ("dataset", "name"), [("fashion-mnist", "t10k-labels-idx1-ubyte"), ("cifar10", "data_batch_4.bin")]
)
def test_missing_files(tmp_path: Path, dataset: str, name: str) -> None:
    fashion_mnist(tmp_path)
    cifar10(tmp_path)
    (tmp_path / name).unlink()
    other = f"{name}.gz" if dataset == "fashion-mnist" else f"cifar-10-batches-bin/{name}"
    with pytest.raises(FileNotFoundError) as error:
        load(dataset, tmp_path)
    assert str(error.value) == f"{tmp_path} has no file {name} or {other}"
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load(dataset, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("train-images-idx3-ubyte", np.zeros((6, 28, 28), np.int16), "must have 3 dimensions of uint8, has 3 of int16"),
        ("train-images-idx3-ubyte", np.zeros((6, 784), np.uint8), "must have 3 dimensions of uint8, has 2 of uint8"),
        ("train-images-idx3-ubyte", np.zeros((6, 32, 28), np.uint8), "must have images of 28 × 28 pixels, has 32 × 28"),
        ("train-images-idx3-ubyte", np.zeros((5, 28, 28), np.uint8), "has 5 images"),
        ("t10k-labels-idx1-ubyte", np.zeros((3, 1), np.uint8), "must have 1 dimension of uint8, has 2 of uint8"),
        ("t10k-labels-idx1-ubyte", np.array([0, 9, 10], np.uint8), "labels must be 0 to 9, number 2 is 10"),
    ],
)
def test_idx_files_that_are_something_else(tmp_path: Path, name: str, array: Any, message: str) -> None:
    fashion_mnist(tmp_path)
    (tmp_path / name).write_bytes(idx(array))
    with pytest.raises(ValueError, match=name) as error:
        load("fashion-mnist", tmp_path)
    assert message in str(error.value)


def test_a_set_without_images(tmp_path: Path) -> None:
    fashion_mnist(tmp_path, train=0)
    with pytest.raises(ValueError, match="train-images-idx3-ubyte has no images"):
        load("fashion-mnist", tmp_path)


def test_digits() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    found = load("digits")
    assert (found.train_images.shape, found.test_images.shape) == ((1500, 1, 8, 8), (297, 1, 8, 8))
    whole = np.concatenate([found.train_images, found.test_images]) * 16
    source = datasets.load_digits()
    order = lambda images: sorted(image.tobytes() for image in images.reshape(len(images), -1).astype(np.uint8))  # noqa: E731
    assert order(whole) == order(source.images)
    assert (found.train_images.min(), found.train_images.max()) == (0, 1)
    assert np.array_equal(load("digits").train_images, found.train_images)
    assert not np.array_equal(load("digits", seed=1).train_images, found.train_images)
    limited = load("digits", limit=50)
    assert np.array_equal(limited.train_labels, found.train_labels[:50])
    assert len(limited.test_images) == 50


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r'pip install "numba-softfloat\[examples\]"'):
        load("digits")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mnist",), "dataset must be one of 'digits', 'random', 'fashion-mnist', 'cifar10', got 'mnist'"),
        (("cifar10",), r"cifar10 needs data_dir, the folder of data_batch_1\.bin and the other files"),
        (("fashion-mnist",), "fashion-mnist needs data_dir, the folder of train-images-idx3-ubyte"),
        (("digits", "."), r"data_dir must be None for the digits, which come with scikit-learn, got '\.'"),
        (("random", "."), r"data_dir must be None for random images, which are drawn, got '\.'"),
        (("digits", None, 0), "limit must be a positive integer or None, got 0"),
        (("digits", None, True), "limit must be a positive integer or None, got True"),
        (("digits", None, 1.5), r"limit must be a positive integer or None, got 1\.5"),
    ],
)
def test_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(*arguments)


def test_headers_cost_no_memory(tmp_path: Path) -> None:
    """A header that claims 2^62 bytes reads what is there."""
    path = tmp_path / "huge.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\2" + 2 * struct.pack(">I", 2**31) + bytes(100)))
    with pytest.raises(ValueError, match=f"{2**62} bytes, 100 follow"):
        read_idx(path)
