"""PyTorch's low-precision operators: what each does here."""

__all__ = []
