"""Arrays on a GPU: those of PyTorch, CuPy and Numba as kernels take them, and results as arrays of the same library."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np

from softfloat.checks import is_integer
from softfloat.cuda.compiling import numba_cuda, simulated
from softfloat.engine.arguments import on_device
from softfloat.engine.parameters import Numbers
from softfloat.formats import ROSTER, Format

Shape = tuple[int, ...]
FLOAT64 = np.dtype(np.float64)


class Shown:
    """Memory on a GPU as an array says where it is."""

    __slots__ = ("__cuda_array_interface__",)

    def __init__(self, pointer: int, size: int, dtype: np.dtype[Any]) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": dtype.str, "data": (pointer, False), "version": 2}


def shown(pointer: int, size: int, dtype: np.dtype[Any]) -> Any:
    """So many numbers as kernels take them. Their own array must outlive the kernel's launch, and its memory is of the stream's order."""
    return numba_cuda().as_cuda_array(Shown(pointer, size, dtype), sync=False)


class Arrays:
    """What is asked of a library's arrays. This one: Numba's own, which have no functions: operands must lie as they are to be read."""

    name = "Numba"

    def __init__(self, like: Any) -> None:
        self.like = like

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.device == getattr(other, "device", None)

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return 0 if simulated() else int(numba_cuda().get_current_device().id)

    @property
    def stream(self) -> Any:
        """The stream that the library's own functions would run on now."""
        return 0

    @contextmanager
    def current(self) -> Iterator[None]:
        """The arrays' GPU, as that on which kernels are launched."""
        with nullcontext() if simulated() or self.device == _current() else numba_cuda().gpus[self.device]:
            yield

    def dtype(self, x: Any) -> str:
        """The name of an array's dtype."""
        return str(np.dtype(x.dtype).name)

    def laid_out(self, x: Any, shape: Shape) -> Any:
        """An array broadcast to a shape, its elements one after the other in memory."""
        whole = x if simulated() else numba_cuda().as_cuda_array(x, sync=True)
        if tuple(whole.shape) != shape or not whole.is_c_contiguous():
            raise ValueError(
                f"operands on a GPU that are Numba's own must have the result's shape {shape}, in C order, got {tuple(whole.shape)}; "
                "accepted: tensors of PyTorch and arrays of CuPy, which broadcast"
            )
        return whole

    def moved(self, x: Any, axis: int) -> Any:
        """An array with one axis first."""
        if axis % max(x.ndim, 1):
            raise ValueError(
                "axis must be 0 for arrays on a GPU that are Numba's own; accepted: those of PyTorch and CuPy"
            )
        return x

    def reshaped(self, x: Any, shape: Shape) -> Any:
        """The same array in another shape."""
        return x if tuple(x.shape) == shape else x.reshape(shape)

    def flat(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """What kernels take: an array as one line of elements of a dtype as wide."""
        size = math.prod(x.shape)
        line = x if x.ndim == 1 or not size else x.reshape(size)
        return line if line.dtype == dtype else line.view(dtype)

    def empty(self, shape: Shape, dtype: Any) -> Any:
        """Room for results."""
        return numba_cuda().device_array(shape, np.dtype(dtype))

    def filled(self, shape: Shape, dtype: Any, value: int) -> Any:
        """An array of one number."""
        return numba_cuda().to_device(np.full(shape, value, dtype))

    def number(self, x: Any) -> int:
        """The only number of an array; waits for the GPU."""
        return int(x.copy_to_host()[0])


class TorchArrays(Arrays):
    """Tensors of PyTorch."""

    name = "PyTorch"

    @property
    def _torch(self) -> Any:
        return sys.modules["torch"]

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return int(self.like.device.index)

    @property
    def stream(self) -> Any:
        """PyTorch's current stream."""
        return numba_cuda().external_stream(self._torch.cuda.current_stream(self.like.device).cuda_stream)

    def dtype(self, x: Any) -> str:
        """The name of a tensor's dtype."""
        return str(x.dtype).removeprefix("torch.")

    def _kind(self, dtype: Any) -> Any:
        return getattr(self._torch, np.dtype(dtype).name)

    def laid_out(self, x: Any, shape: Shape) -> Any:
        """A tensor broadcast to a shape, its elements one after the other in memory."""
        signed = getattr(self._torch, f"int{8 * x.element_size()}")  # which all functions of PyTorch take
        return x.detach().view(signed).expand(shape).contiguous()

    def moved(self, x: Any, axis: int) -> Any:
        """A tensor with one axis first."""
        return x.movedim(axis, 0)

    def reshaped(self, x: Any, shape: Shape) -> Any:
        """The same tensor in another shape."""
        return x.reshape(shape)

    def flat(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """What kernels take."""
        return shown(x.data_ptr(), x.numel(), dtype)

    def empty(self, shape: Shape, dtype: Any) -> Any:
        """Room for results."""
        return self._torch.empty(shape, dtype=self._kind(dtype), device=self.like.device)

    def filled(self, shape: Shape, dtype: Any, value: int) -> Any:
        """A tensor of one number."""
        size = np.dtype(dtype).itemsize
        signed = np.array(value, dtype).view(f"i{size}").item()
        return self._torch.full(shape, signed, dtype=self._kind(f"i{size}"), device=self.like.device)

    def number(self, x: Any) -> int:
        """The only number of a tensor; waits for the GPU."""
        return int(x.item())


class CupyArrays(Arrays):
    """Arrays of CuPy."""

    name = "CuPy"

    @property
    def _cupy(self) -> Any:
        return sys.modules["cupy"]

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return int(self.like.device.id)

    @property
    def stream(self) -> Any:
        """CuPy's current stream."""
        return numba_cuda().external_stream(self._cupy.cuda.get_current_stream().ptr)

    def laid_out(self, x: Any, shape: Shape) -> Any:
        """An array broadcast to a shape, its elements one after the other in memory."""
        return self._cupy.ascontiguousarray(self._cupy.broadcast_to(x, shape))

    def moved(self, x: Any, axis: int) -> Any:
        """An array with one axis first."""
        return self._cupy.moveaxis(x, axis, 0)

    def flat(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """What kernels take."""
        return shown(x.data.ptr, x.size, dtype)

    def empty(self, shape: Shape, dtype: Any) -> Any:
        """Room for results."""
        with self._cupy.cuda.Device(self.device):
            return self._cupy.empty(shape, dtype)

    def filled(self, shape: Shape, dtype: Any, value: int) -> Any:
        """An array of one number."""
        with self._cupy.cuda.Device(self.device):
            return self._cupy.full(shape, value, dtype)

    def number(self, x: Any) -> int:
        """The only number of an array; waits for the GPU."""
        return int(x.item())


LIBRARIES = {"torch": TorchArrays, "cupy": CupyArrays}
"""By the package that an array's class is from; any other array goes by what its interface says."""


def _current() -> int:
    return int(numba_cuda().get_current_device().id)


def library_of(operands: Iterable[Any]) -> Arrays:
    """The library of arrays on a GPU, which must be one, and on one GPU.

    Raises
    ------
    ValueError
        If they are of several.
    """
    found = [LIBRARIES.get(type(x).__module__.partition(".")[0], Arrays)(x) for x in operands if on_device(x)]
    first = found[0]
    for other in found[1:]:
        if other != first:
            raise ValueError(
                f"operands must be arrays of one library on one GPU, got {first.name} on {first.device} and {other.name} on {other.device}"
            )
    return first


def refuse_host(x: Any, argument: str) -> None:
    """TypeError for what lies on the CPU, beside operands that do not."""
    if not on_device(x):
        raise TypeError(
            f"{argument} must lie on the GPU, as other operands do, got {type(x).__name__}; accepted: all on one side, or a Python integer"
        )


def codes_on(arrays: Arrays, x: Any, fmt: Format, argument: str) -> Any:
    """Codes of a format: an array on the GPU of its dtype, or of signed integers as wide, whose bits are the codes; or a Python integer.

    Raises
    ------
    TypeError, ValueError
        Naming the argument: another dtype, an array of NumPy's, a number that is no code.
    """
    if is_integer(x):
        if not 0 <= int(x) < 1 << fmt.bits:
            raise ValueError(f"{argument} must be a code of {fmt}: 0 to {hex(2**fmt.bits - 1)}, got {x}")
        return int(x)
    refuse_host(x, argument)
    accepted = fmt.dtype.name, fmt.dtype.name.removeprefix("u")
    if arrays.dtype(x) not in accepted:
        raise TypeError(
            f"{argument} must be codes of {fmt}, as {accepted[0]} or, bit for bit, {accepted[1]}, got {arrays.dtype(x)}; "
            "bits.encode turns numbers into codes, and a tensor's view(torch.uint16) shows those of its halves"
        )
    return x


def numbers_on(arrays: Arrays, x: Any) -> str:
    """The name of the format, or "float64", that an array's numbers come in."""
    name = arrays.dtype(x)
    if name != "float64" and name not in ROSTER:
        raise TypeError(
            f"x must be numbers of a float dtype on a GPU, got {name}; accepted: float64 (x.double()), float32 and narrower ones; "
            "or on the CPU: x.cpu()"
        )
    return name


def shape_of(operands: Mapping[str, Any]) -> Shape:
    """The shape that operands broadcast to."""
    shapes = {name: tuple(getattr(x, "shape", ())) for name, x in operands.items()}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"shapes do not broadcast together: {listed}") from None


@lru_cache(maxsize=256)
def _uploaded(integers: bytes, floats: bytes, wide: bool, rows: int, device: int) -> tuple[Any, Any]:
    cuda = numba_cuda()
    found = []
    for memory, kinds in ((integers, (np.int32, np.int64)), (floats, (np.float32, np.float64))):
        array = np.frombuffer(memory, kinds[wide])
        found.append(cuda.to_device(array.reshape(rows, -1) if rows else array))
    return found[0], found[1]


def uploaded(numbers: Numbers, device: int) -> tuple[Any, Any]:
    """What kernels know of formats and rules, on a GPU, where it stays."""
    integers, floats = numbers
    rows = len(integers) if integers.ndim > 1 else 0
    return _uploaded(integers.tobytes(), floats.tobytes(), integers.dtype == np.int64, rows, device)
