"""Before anything else: libraries look at their variables when they are imported."""

from __future__ import annotations

import os


def alone() -> None:
    """One thread for every library, and the kernels they choose for this CPU themselves; call it before NumPy is imported."""
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ.pop("OPENBLAS_CORETYPE", None)
