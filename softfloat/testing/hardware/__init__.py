"""This machine's own instructions against the model."""

__all__ = []
