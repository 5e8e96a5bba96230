"""Masks of numpy.ma are refused by name at every door that takes arrays: codes cannot be masked, and what is dropped is lost silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softfloat
import softfloat.jit
import softfloat.scaling
import softfloat.testing
from softfloat import bits
from softfloat.bits.processors import avx10_convert
from softfloat.scaling.tensors import amax_numbers

NUMBERS = np.ma.masked_array([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0])
INTEGERS = np.ma.masked_array([0, 1, 2, 3], [0, 1, 0, 0])
TRUTHS = np.ma.masked_array([True, False, True, True], [0, 1, 0, 0])
X = softfloat.array([1, 2, 3, 4], "float16")
MATRIX = softfloat.array([[1, 2, 3, 4]], "float16")
BLOCKS = bits.quantize(np.arange(4.0), "mxfp4")[0]

DOORS: dict[str, Callable[[Any], Any]] = {
    "array": lambda m: softfloat.array(m(NUMBERS), "float16"),
    "asarray": lambda m: softfloat.asarray(m(NUMBERS), "float16"),
    "beside a SoftArray": lambda m: softfloat.array([X, m(NUMBERS)], "float16"),
    "SoftArray": lambda m: softfloat.SoftArray(m(NUMBERS), "float16"),
    "array_namespace": lambda m: softfloat.array_namespace("float16").asarray(m(INTEGERS)),
    "from_codes": lambda m: softfloat.from_codes(m(INTEGERS), "float16"),
    "full": lambda m: softfloat.full((1, 4), m(NUMBERS), "float16"),
    "full_like": lambda m: softfloat.full_like(m(NUMBERS), 1, "float16"),
    "zeros_like": lambda m: softfloat.zeros_like(m(NUMBERS), "float16"),
    "encode": lambda m: bits.encode(m(NUMBERS), "float16"),
    "decode": lambda m: bits.decode(m(INTEGERS), "float16"),
    "add": lambda m: bits.add(m(INTEGERS), 0, "float16"),
    "random_bits": lambda m: bits.encode(np.arange(4.0), "float16", rounding="stochastic", random_bits=m(INTEGERS)),
    "quantize": lambda m: bits.quantize(m(NUMBERS), "mxfp4"),
    "BlockCodes": lambda m: bits.BlockCodes(m(INTEGERS), [127], "mxfp4"),
    "spread": lambda m: BLOCKS.spread(m(NUMBERS)),
    "avx10_convert": lambda m: avx10_convert(np.arange(4), "float8_e5m2", m(INTEGERS)),
    "scaling": lambda m: amax_numbers(m(NUMBERS)),
    "identify_scales, numbers": lambda m: softfloat.testing.identify_scales(m(NUMBERS), [127], "mxfp4"),
    "identify_scales, scales": lambda m: softfloat.testing.identify_scales(np.arange(4.0), m(INTEGERS[:1]), "mxfp4"),
    "assert_bits_equal": lambda m: softfloat.testing.assert_bits_equal(m(INTEGERS), INTEGERS.data, "float16"),
    "operator": lambda m: X + m(NUMBERS),
    "comparison": lambda m: np.less(X, m(NUMBERS)),
    "in place": lambda m: X.copy().__iadd__(m(NUMBERS)),
    "assignment": lambda m: X.copy().__setitem__(..., m(NUMBERS)),
    "index": lambda m: X[m(INTEGERS)],
    "place of an assignment": lambda m: X.copy().__setitem__(m(INTEGERS), 1),
    "index of a matrix": lambda m: MATRIX[0, m(INTEGERS)],
    "index of flat": lambda m: X.flat[m(INTEGERS)],
    "truths as an index": lambda m: X[m(TRUTHS)],
    "where=": lambda m: np.sum(MATRIX, where=m(TRUTHS)),
    "where= of a method": lambda m: MATRIX.sum(where=m(TRUTHS)),
    "where= of a ufunc": lambda m: np.add(MATRIX, 1, where=m(TRUTHS)),
    "where": lambda m: np.where(m(TRUTHS), X, 0),
    "choose": lambda m: np.choose(m(INTEGERS), [X, X, X, X]),
    "take": lambda m: np.take(X, m(INTEGERS)),
    "put": lambda m: np.put(X.copy(), m(INTEGERS), 1),
    "insert": lambda m: np.insert(X, m(INTEGERS), 1),
    "take of a method": lambda m: X.take(m(INTEGERS)),
    "quantile": lambda m: np.quantile(X, m(NUMBERS / 4)),
    "weights": lambda m: np.average(MATRIX, weights=m(NUMBERS)),
    "repeat": lambda m: np.repeat(X, m(INTEGERS)),
    "concatenate": lambda m: np.concatenate([MATRIX[0], m(NUMBERS)]),
    "searchsorted": lambda m: np.searchsorted(X, m(NUMBERS)),
    "ldexp": lambda m: np.ldexp(X, m(INTEGERS)),
}
"""What takes arrays, called with a masked one as m hands it on."""


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("hand", [lambda x: x, lambda x: [x], lambda x: [(x, x.data)]], ids=["bare", "list", "nested"])
def test_masks_are_refused(name: str, hand: Callable[[Any], Any]) -> None:
    """TypeError naming the way out, for the array itself and in lists, in which NumPy drops the mask."""
    with pytest.raises(TypeError, match=r"must have no mask: codes cannot be masked; accepted: x\.filled\(\.\.\.\)"):
        DOORS[name](hand)


@pytest.mark.parametrize("masked", [NUMBERS, np.ma.masked_array([1.0, 2.0])], ids=["masked", "of an empty mask"])
def test_the_way_out(masked: Any) -> None:
    """An array whose mask holds nothing is refused as well: what is accepted does not depend on the data."""
    with pytest.raises(TypeError, match="no mask"):
        softfloat.array(masked, "float16")
    assert softfloat.array(masked.filled(np.nan), "float16").shape == masked.shape


def test_masked_blocks_of_dask() -> None:
    """Where the array is made, not once it is computed."""
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("softfloat.dask")
    for x in (NUMBERS, [NUMBERS], da.from_array(NUMBERS)):
        with pytest.raises(TypeError, match=r"^x must have no mask"):
            dask.from_array(x, "float16")
    codes = da.from_array(INTEGERS.astype(np.uint16))
    for x in (INTEGERS, codes):
        with pytest.raises(TypeError, match=r"^codes must have no mask"):
            dask.from_codes(x, "float16")
    half = dask.from_array(np.arange(4.0), "float16")
    with pytest.raises(TypeError, match=r"^what numpy\.where takes must have no mask"):
        np.where(da.from_array(TRUTHS), half, half)


def test_masked_tensors() -> None:
    """PyTorch's own, with PyTorch's own way out."""
    torch = pytest.importorskip("torch")
    masked = pytest.importorskip("torch.masked")
    with pytest.warns(UserWarning, match="prototype"):
        tensor = masked.masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
    with pytest.raises(TypeError, match=r"^x must have no mask: .*accepted: x\.to_tensor"):
        softfloat.array(tensor, "float16")
