"""Sums of products: products of matrices, convolutions, operands split into parts. `softfloat.bits` offers what is public."""
