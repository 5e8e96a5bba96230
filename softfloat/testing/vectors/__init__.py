"""Test vectors: operations, distributions of operands, files."""

__all__ = []
