"""Devices whose products were read: what `emulate(device=...)` says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from softfloat.checks import check_choice, check_whole
from softfloat.environments import Environment, Overflow, Rounding
from softfloat.formats import Format, bfloat16, float16, float32, tfloat32

__all__ = ["ASSUME", "DEVICES", "REFUSE", "Device", "DeviceProduct", "check_device", "check_settings"]

DEVICES = ("H100", "H200")
"""Names that are accepted. The two chips differ on no instruction that was read; they differ in where kernels split k."""
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
        known = read_parts(self.name, product)
        if known is not None or self.split is None:
            return known
        return self.split if isinstance(self.split, int) else check_whole("what split returns", self.split(product), 1)


WHOLE, LONGEST, WHOLE_FP8 = 2560, 16384, 4096
"""k up to which no kernel of halves splits it; up to which it was read; of fp8, up to which none splits it."""
FEW, NARROW = 4096, 256
"""Outputs, and rows or columns, up to which the two devices agree on the parts of a long k."""
MANY = {
    "H100": {6144: 131072, 8192: 393216, 12288: 589824, 14336: 786432, LONGEST: 1048576},
    "H200": {5120: 294912, 6144: 393216, 8192: 524288, 14336: 1048576, LONGEST: 1572864},
}
"""By the device and k: the most outputs of a product whose k was split."""
SIDES = 2048
"""Rows and columns up to which all were read; where there are more, both must be more."""
TILE = 64
"""Products of a kernel's step along k; parts are whole steps."""


def read_parts(device: str, product: DeviceProduct) -> int | None:
    """What was read of how k is cut; None where it was not.

    Read off both devices: of halves, 18 x 18 numbers of rows and columns from 1 to 2048 in three layouts at 16 lengths of k from
    1536 to 16384, and 64 shapes of 2 to 32 products at once; of fp8, 49 shapes at k from 512 to 4096 on an H100.
    """
    operation, fmt, batch, m, n, k = product
    if operation == "scaled_mm_fast":
        return 1 if k <= WHOLE_FP8 else None
    if operation != "mm" or fmt == tfloat32 or k > LONGEST:
        return None
    if batch > 1 or k <= WHOLE:
        return 1
    outputs, longest = m * n, max(m, n)
    if outputs <= FEW and longest <= NARROW:
        tiles = -(-k // TILE)  # lengths that were read tell the tiles of a part to be more than 20, and at most 224/11
        fewest, most = tiles * 11 // 224, (tiles - 1) // 20
        return most if fewest == most else None
    many = outputs > next(most for length, most in MANY[device].items() if k <= length)
    return 1 if many and (longest <= SIDES or min(m, n) >= SIDES) else None


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
