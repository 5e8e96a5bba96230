"""Devices whose products were read: what `emulate(device=...)` says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from softfloat.checks import check_choice, check_whole
from softfloat.environments import Environment, Overflow, Rounding
from softfloat.formats import Format, bfloat16, float8_e4m3fn, float8_e5m2, float16, float32, tfloat32

__all__ = ["ASSUME", "DEVICES", "REFUSE", "Device", "DeviceProduct", "check_device", "check_settings"]

DEVICES = ("H100", "H200")
"""Names that are accepted. The two chips differ on no row that was read."""
REFUSE, ASSUME = "refuse", "assume"


class DeviceProduct(NamedTuple):
    """A matrix product, as `split` is asked about it.

    Attributes
    ----------
    operation : str
        What `torch_mm` calls it: "mm" (`linear`, `addmm` and `bmm` too), "fp16_accumulation" or "scaled_mm_fast".
    input : Format
        Of the operands; tfloat32 of float32 ones.
    batch, m, n, k : int
        So many products of (m, k) by (k, n).
    """

    operation: str
    input: Format
    batch: int
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Device:
    """A device, and what is chosen where it was not read.

    Attributes
    ----------
    name : str
        One of `DEVICES`.
    split : int, or callable from DeviceProduct to int, optional
        Parts that k is cut into where kernels may do so.
    unread : str
        "refuse" or "assume".
    """

    name: str
    split: int | Callable[[DeviceProduct], int] | None = None
    unread: str = REFUSE

    @property
    def assumes(self) -> bool:
        """Whether what was not read is computed as without a device."""
        return self.unread == ASSUME

    def parts(self, product: DeviceProduct) -> int | None:
        """How many parts k is cut into. None: that was not read, and nobody said."""
        known = read_parts(product)
        if known is not None or self.split is None:
            return known
        return self.split if isinstance(self.split, int) else check_whole("what split returns", self.split(product), 1)


LONG = {tfloat32: 1024, float16: 4096, bfloat16: 4096, float8_e4m3fn: 4096, float8_e5m2: 4096}
"""The k from which kernels of few outputs may split it, by the operands' format."""
MANY = 2048 * 2048
"""Outputs from which no kernel splits k."""
PARTS = {
    ("mm", 64, 64, 4096): 3,
    ("mm", 256, 256, 4096): 3,
    ("mm", 128, 128, 16384): 12,
    ("scaled_mm_fast", 128, 128, 16384): 6,
}
"""Operation, m, n and k -> parts that were read, of halves and fp8."""


def read_parts(product: DeviceProduct) -> int | None:
    """What was read of how k is cut; None where it was not."""
    operation, fmt, batch, m, n, k = product
    if batch * m * n >= MANY or (operation != "fp16_accumulation" and k < LONG[fmt]):
        return 1
    if operation == "fp16_accumulation":
        return -(-k // (8 if k <= 32 else 64))
    return None if fmt == tfloat32 or batch > 1 else PARTS.get((operation, m, n, k))


def check_device(name: object, split: object, unread: object) -> Device | None:
    """The device of three arguments of `emulate`; None without one.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    check_choice("unread", unread, (REFUSE, ASSUME))
    if name is None:
        for argument, value, default in (("split", split, None), ("unread", unread, REFUSE)):
            if value != default:
                raise ValueError(f"{argument} must be {default!r} without a device, got {value!r}")
        return None
    check_choice("device", name, DEVICES)
    if split is not None and not callable(split):
        check_whole("split", split, 1)
    return Device(str(name), split, str(unread))  # type: ignore[arg-type]


def check_settings(device: Device, environment: Environment) -> None:
    """Refuse an environment that rounds in another way than the device."""
    wanted = {
        "rounding": Rounding.NEAREST_EVEN,
        "overflow": Overflow.INFINITY,
        "daz": False,
        "ftz": False,
        "nan": "nvidia",
    }
    for fmt in (float16, bfloat16, float32, tfloat32):
        found = environment.for_format(fmt.name)
        for name, value in wanted.items():
            if getattr(found, name) != value:
                raise ValueError(
                    f"environment must compute as an {device.name} does, Environment(nan='nvidia') with traps or without; of {fmt.name} "
                    f"{name} must be {value!r}, got {getattr(found, name)!r}"
                )
