"""Where pictures are written to: paths that are checked before the work, and files that are complete or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from softfloat.display.drawing import require_matplotlib
from softfloat.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_plot_folder", "check_plot_path", "save"]

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
"""File types that figures are written as."""


def check_plot_path(path: str | os.PathLike[str]) -> Path:
    """The path of a plot, if one can be written there; checked before the work, not after.

    Raises
    ------
    ValueError
        For an unknown suffix.
    OSError
        If the folder does not exist or cannot be written to, or the path is a folder.
    ImportError
        If matplotlib is missing, naming how to install it.
    """
    path = Path(path)
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise ValueError(
            f"cannot write a plot as {path.suffix or 'a file without suffix'!r}; accepted: {', '.join(PLOT_SUFFIXES)}"
        )
    if path.is_dir():
        raise IsADirectoryError(f"cannot write the plot to {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write the plot to {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write the plot to {path}: the folder {path.parent} is not writable")
    require_matplotlib()
    return path


def check_plot_folder(path: str | os.PathLike[str]) -> Path:
    """A folder for plots, made if it is not there; checked before the work, not after.

    Raises
    ------
    OSError, ImportError
        As `check_plot_path` does for files in it.
    """
    path = Path(path)
    require_matplotlib()
    path.mkdir(exist_ok=True)
    check_plot_path(path / "figure.png")
    return path


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure; a file that is there is replaced once the new one is complete.

    Parameters
    ----------
    figure : matplotlib Figure
    path : path
        Ends in .png, .svg or .pdf.

    Raises
    ------
    ValueError, OSError, ImportError
        As `check_plot_path` does.
    """
    path = check_plot_path(path)
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower())
    return path
