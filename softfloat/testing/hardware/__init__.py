"""This machine's own instructions, and a GPU's, against the model: `softfloat hardware`."""

from softfloat.testing.hardware.model import check_hardware

__all__ = ["check_hardware"]
