"""The accumulator of an unknown dot-product unit."""

__all__ = []
