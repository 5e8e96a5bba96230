"""What happens to arrays on a GPU where nothing can be done with them: no numba-cuda, or a function that is done on the CPU alone."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np
import pytest

from softfloat import bits, cuda
from softfloat.accumulators import fma
from softfloat.engine.arguments import on_device


class Device:
    """An array that says that it is on a GPU, and that no NumPy should ever see."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {
        "shape": (4,),
        "typestr": "<u2",
        "data": (0, False),
        "version": 3,
    }
    shape, ndim, dtype = (4,), 1, np.dtype(np.uint16)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("copied to the CPU unasked")


def test_what_is_on_a_gpu() -> None:
    assert on_device(Device())
    assert not any(map(on_device, (0, [1], np.zeros(2), None, "x")))


@pytest.mark.parametrize("name", ["lt", "isnan", "exp", "minimum", "to_integer", "negative", "cumsum", "quantize"])
def test_functions_of_the_cpu_name_the_way_out(name: str) -> None:
    x = Device()
    tail: list[Any] = [x] if name in ("lt", "minimum") else []
    tail += ["mxfp8_e4m3"] if name == "quantize" else ["float16"]
    tail += {"to_integer": ["int8"], "cumsum": [fma("float16")]}.get(name, [])
    with pytest.raises(
        TypeError, match=r"\w+ lies on a GPU, where this is not done; accepted: arrays on the CPU \(x.cpu\(\)"
    ):
        getattr(bits, name)(x, *tail)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from softfloat.cuda import compiling

    for name in ("elementwise", "products"):  # as before the first call
        monkeypatch.delattr(cuda, name, raising=False)
        monkeypatch.delitem(sys.modules, f"softfloat.cuda.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    compiling.numba_cuda.cache_clear()
    try:
        assert not cuda.is_available()
        x: Any = Device()
        for call in (
            lambda: bits.add(x, x, "float16"),
            lambda: bits.encode(x, "float16"),
            lambda: bits.decode(x, "float16"),
            lambda: bits.convert(x, "float16", "bfloat16"),
            lambda: bits.matmul(x, x, "float16", fma("float16")),
            lambda: bits.vecdot(x, x, "float16", fma("float16")),
            lambda: bits.sum(x, "float16", fma("float16")),
        ):
            with pytest.raises(ImportError, match=r"a GPU needs numba-cuda: pip install 'numba-softfloat\[cuda\]'"):
                call()
    finally:
        compiling.numba_cuda.cache_clear()
