"""What a device made of vectors: comparison, and the causes of mismatches."""

__all__ = []
