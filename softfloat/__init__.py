"""Bit-exact software floating point for narrow formats."""
from softfloat.formats import ROSTER, Format, float16
