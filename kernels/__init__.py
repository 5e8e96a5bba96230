"""Compiled arithmetic on codes. Nothing here imports the public package; nothing here is part of the public interface."""
