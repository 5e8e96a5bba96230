"""Arrays of other libraries become SoftArrays and the other way round, on the same memory and without a word on the format.

PyTorch and JAX are what is right: they read and write DLPack's types by themselves.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import ROSTER, Format, SoftArray
from softfloat.arrays import exchange
from softfloat.testing import strategies

TORCH = [
    "float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
"""Formats that PyTorch 2.13 takes and gives by DLPack."""

JAX = [name for name in ROSTER if name not in ("tfloat32", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")]
"""Formats that JAX 0.10 takes by DLPack."""


class Foreign:
    """Another library's array, of which nothing is known but that it hands over its memory."""

    def __init__(self, x: Any, device: tuple[int, int] = (1, 0), **changed: int) -> None:
        self.x, self.device, self.changed = x, device, changed

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.x.__dlpack__(**options)
        tensor, managed = exchange._opened(capsule)
        for name, value in self.changed.items():
            setattr(managed if name in ("flags", "major") else tensor, name, value)
        return capsule


class Old(Foreign):
    """One of before DLPack 1.0."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return super().__dlpack__()


def all_codes(fmt: Format) -> SoftArray:
    codes = np.arange(min(2**fmt.bits, 2**16), dtype=fmt.dtype).reshape(2, -1)
    return softfloat.from_codes(codes if fmt.bits <= 16 else codes * 65535, fmt)


# -- by DLPack -------------------------------------------------------------------------------------------------------


WRITEABLE = np.from_dlpack(np.zeros(1)).flags.writeable
"""Whether this NumPy lets what it takes by DLPack be written to; 2.1 does not."""


@pytest.mark.parametrize("name", exchange.KINDS)
@settings(max_examples=15)
@given(st.data())
def test_dlpack_both_ways(name: str, data: st.DataObject) -> None:
    fmt = ROSTER[name]
    whole = data.draw(strategies.soft_arrays(fmt, data.draw(st.sampled_from([(), (0,), (4,), (3, 4), (2, 1, 3)]))))
    x = whole[..., ::2].T if whole.ndim else whole
    found = softfloat.asarray(Foreign(x))
    assert (found.format, found.codes.dtype, found.shape) == (fmt, fmt.dtype, x.shape)
    np.testing.assert_array_equal(found.codes, x.codes)
    assert found.codes.flags.writeable == WRITEABLE
    assert np.shares_memory(found.codes, x.codes) == bool(x.size)
    assert not np.shares_memory(softfloat.array(Foreign(x)).codes, x.codes)


@pytest.mark.parametrize("name", TORCH)
def test_pytorch_takes_what_is_handed_over(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name, None)
    if dtype is None or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        pytest.skip(f"this PyTorch has no {name}, or does not take it by DLPack")
    x = all_codes(ROSTER[name])
    tensor = torch.from_dlpack(x.T)
    assert tensor.dtype == dtype
    assert tensor.shape == x.T.shape
    np.testing.assert_array_equal(tensor.view(getattr(torch, x.format.dtype.name)).numpy(), x.codes.T)
    for back in (tensor, Foreign(tensor), Old(tensor)):
        found = softfloat.asarray(back)
        assert found.format == x.format
        np.testing.assert_array_equal(found.codes, x.codes.T)
        assert np.shares_memory(found.codes, x.codes)
        assert found.codes.flags.writeable == (
            type(back) is not Old
        )  # what is not known to be writable is not written to
    x.codes[1, 0] = 0
    assert tensor.view(getattr(torch, x.format.dtype.name))[0, 1] == 0


@pytest.mark.parametrize("name", sorted(set(exchange.KINDS) - set(TORCH)))
def test_pytorch_refuses_the_others(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((BufferError, RuntimeError)):
        torch.from_dlpack(all_codes(ROSTER[name]))


@pytest.mark.parametrize("name", JAX)
def test_jax_takes_what_is_handed_over(name: str) -> None:
    jax = pytest.importorskip("jax")
    x = all_codes(ROSTER[name])
    array = jax.dlpack.from_dlpack(x)
    assert array.dtype.name == name
    found = softfloat.asarray(array)
    assert found.format == x.format
    np.testing.assert_array_equal(found.codes, x.codes)
    assert not found.codes.flags.writeable
    assert softfloat.array(array).codes.flags.writeable


def test_jax_hands_over_float4() -> None:
    jax = pytest.importorskip("jax")
    x = all_codes(softfloat.float4_e2m1fn)
    found = softfloat.asarray(jax.numpy.asarray(np.asarray(x, dtype=ml_dtypes.float4_e2m1fn)))
    np.testing.assert_array_equal(found.codes, x.codes)
    with pytest.raises(BufferError, match=r"capsules say so from DLPack 1\.1 on"):
        jax.dlpack.from_dlpack(x)


def test_memory_is_released_once() -> None:
    """By its owner, when the last who looks at it has gone; whether a capsule was taken or not."""
    codes = np.arange(5, dtype=np.uint8)
    owner = weakref.ref(codes)
    capsule: Any = softfloat.from_codes(codes, "float8_e5m2").__dlpack__(max_version=(1, 1))
    taken = softfloat.asarray(Foreign(softfloat.from_codes(codes, "float8_e5m2")))
    del codes
    gc.collect()
    assert owner() is not None
    del capsule
    assert taken.codes.tolist() == [0, 1, 2, 3, 4]
    assert owner() is not None
    del taken
    gc.collect()
    assert owner() is None


def test_versions_and_flags() -> None:
    e5m2, e2m1, half = (all_codes(ROSTER[name]) for name in ("float8_e5m2", "float4_e2m1fn", "float16"))
    for x, version, flags in ((e5m2, (1, 1), 0), (e2m1, (1, 1), 4), (half, (1, 0), 0)):
        capsule: Any = x.__dlpack__(max_version=(1, 1))
        _, managed = exchange._opened(capsule)
        assert managed is not None
        assert (managed.major, managed.minor) >= version
        assert managed.flags & 4 == flags
    assert ctypes.sizeof(exchange.Tensor) == 48
    assert exchange.Versioned.tensor.offset == 32
    with pytest.raises(BufferError, match=r"float4_e2m1fn has a byte for each element"):
        e2m1.__dlpack__()
    mine = softfloat.zeros(3, Format("float16", exponent_bits=6, mantissa_bits=9))
    with pytest.raises(BufferError, match=r"DLPack has no float16; accepted: its \.codes"):  # of that kind
        mine.__dlpack__()
    for x in (half[:, ::-1], half[::-1]):
        with pytest.raises(BufferError, match=r"x runs backwards along an axis, .*; accepted: x\.copy\(\)"):
            x.__dlpack__(max_version=(1, 1))
        np.testing.assert_array_equal(softfloat.asarray(Foreign(x.copy())).codes, x.codes)
        x.__dlpack__(max_version=(1, 1), copy=True)
    half[:1][::-1].__dlpack__()
    frozen = softfloat.zeros(3, "bfloat16")
    frozen.codes.flags.writeable = False
    with pytest.raises(BufferError):
        frozen.__dlpack__()
    assert not softfloat.asarray(Foreign(frozen)).codes.flags.writeable


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lanes": 2}, "elements of 4 bits that share bytes"),
        ({"flags": 0}, "elements of 4 bits that share bytes"),
        ({"major": 2}, "of version 2; accepted"),
        ({"device": (2, 0)}, r"x is on a device \(CUDA\); accepted: .*x\.cpu\(\)"),
        ({"device": (99, 0)}, "of DLPack's type 99"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        softfloat.asarray(Foreign(all_codes(softfloat.float4_e2m1fn), **changed))


def test_codes_beyond_the_format_are_refused() -> None:
    """Padding need not be zero, and codes are."""
    raw = np.array([0x03, 0xF3], np.uint8)
    for x in (raw.view(ml_dtypes.float4_e2m1fn), Foreign(raw, code=17, bits=4, flags=4)):
        with pytest.raises(ValueError, match="x holds 0xf3, which is no code of float4_e2m1fn"):
            softfloat.asarray(x)


def test_numbers_without_a_format_stay_numbers() -> None:
    """float64 and integers are rounded into the format that is named, and have none."""
    x = Foreign(np.array([0.1, 2.0]))
    assert softfloat.array(x, "bfloat16").codes.tolist() == softfloat.array([0.1, 2.0], "bfloat16").codes.tolist()
    with pytest.raises(TypeError, match="fmt is needed: ndarray has no format"):
        softfloat.asarray(Foreign(np.arange(3)))


# -- of PyTorch ------------------------------------------------------------------------------------------------------


def test_tensors_that_are_refused() -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(2, 2, dtype=torch.float16)
    with pytest.raises(TypeError, match=r"a tensor on meta; accepted: tensors in the host's memory: x\.cpu\(\)"):
        softfloat.asarray(ones.to("meta"))
    with pytest.raises(TypeError, match=r"layout torch.sparse_coo; accepted: dense ones: x\.to_dense\(\)"):
        softfloat.array(ones.to_sparse())
    negated = torch.view_as_complex(torch.ones(2, 2)).conj().imag
    assert negated.is_neg()
    with pytest.raises(TypeError, match=r"accepted: x\.resolve_neg\(\)"):
        softfloat.asarray(negated)
    assert softfloat.asarray(negated.resolve_neg()).tolist() == [-1.0, -1.0]
    assert softfloat.asarray(ones.requires_grad_()).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    if hasattr(torch, "float4_e2m1fn_x2"):
        packed = torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        with pytest.raises(TypeError, match=r"float4_e2m1fn_x2, whose elements share bytes; accepted: .*unpacked"):
            softfloat.asarray(packed)


# -- of NumPy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_byte_order(name: str, order: str) -> None:
    numbers = np.array([1.5, -2.0, np.nan], np.dtype(name).newbyteorder(order))
    found = softfloat.asarray(numbers)
    assert found.codes.dtype.isnative
    np.testing.assert_array_equal(found.codes, numbers.astype(name).view(found.format.dtype))
