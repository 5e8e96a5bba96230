"""Codes in block formats: how they are held, quantization, sums of their products. `softfloat.bits` offers what is public."""
