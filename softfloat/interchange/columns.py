"""Columns of codes in Arrow and pandas, whose type is the format.

`CodesType` is an extension type of Arrow: the format stands in the field's metadata (`ARROW:extension:metadata`), goes through slices, joins, IPC
and Parquet, and integer arithmetic on codes is refused, in pandas too. Importing this module makes the type known to Arrow; in a process that
has not, columns read from files are plain unsigned integers.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import pyarrow as pa
except ImportError as missing:
    raise ImportError(
        "softfloat.interchange.columns needs pyarrow, and pandas for its columns; pip install 'numba-softfloat[interchange]' "
        "brings them"
    ) from missing
import numpy as np

from softfloat.arrays import SoftArray, from_codes
from softfloat.checks import check_kind
from softfloat.descriptions import described_format, format_from
from softfloat.formats import Format, check_format

__all__ = ["CodesType", "from_arrow", "from_pandas", "to_arrow", "to_pandas"]

NAME = "softfloat.codes"


class CodesType(pa.ExtensionType):
    """The type of a column of codes.

    Parameters
    ----------
    fmt : Format or str

    Attributes
    ----------
    format : Format

    >>> CodesType("bf16")
    CodesType('bfloat16')
    """

    def __init__(self, fmt: Format | str) -> None:
        self._format = check_format(fmt, wide=True)
        super().__init__(pa.from_numpy_dtype(self._format.dtype), NAME)

    @property
    def format(self) -> Format:
        """What the codes mean."""
        return self._format

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(described_format(self._format), sort_keys=True).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> CodesType:
        made = cls(format_from(json.loads(serialized), f"metadata of a column of {NAME}"))
        if made.storage_type != storage_type:
            raise ValueError(
                f"a column of {NAME} holds {storage_type}, and codes of {made.format} are {made.storage_type}"
            )
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodesType) and self._format == other._format

    def __ne__(self, other: object) -> bool:  # Arrow's own looks at the integers alone
        return not self == other

    def __hash__(self) -> int:
        return hash((NAME, self._format))

    def __str__(self) -> str:
        return f"{NAME}[{self._format}]"

    def __repr__(self) -> str:
        return f"CodesType({self._format.name!r})"

    def to_pandas_dtype(self) -> Any:
        """The dtype of pandas that has the same type."""
        import pandas

        return pandas.ArrowDtype(self)


def _registered() -> None:
    try:
        pa.register_extension_type(CodesType("float16"))
    except pa.ArrowKeyError:  # of an earlier import
        pa.unregister_extension_type(NAME)
        pa.register_extension_type(CodesType("float16"))


_registered()


def to_arrow(x: SoftArray) -> Any:
    """An array as a column of Arrow, on the same memory if that is contiguous.

    Arrow takes its arrays for constant: do not write to `x` afterwards, or hand over a copy.

    Parameters
    ----------
    x : SoftArray
        Of one axis.

    Returns
    -------
    pyarrow.ExtensionArray of `CodesType`

    >>> import softfloat
    >>> to_arrow(softfloat.array([1.0, 2.0], "bfloat16")).type
    CodesType('bfloat16')
    """
    check_kind("x", x, SoftArray)
    if x.ndim != 1:
        raise ValueError(f"x must have one axis, got shape {x.shape}; accepted: its columns, or x.ravel()")
    return pa.ExtensionArray.from_storage(CodesType(x.format), pa.array(x.codes))


def from_arrow(column: Any) -> SoftArray:
    """A column of Arrow as an array: on its memory, which is read-only, if the column lies in one piece.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray of `CodesType`
        Without missing values.

    Raises
    ------
    TypeError, ValueError
        For a column of another type, one with missing values, and integers that are no codes.
    """
    kind = getattr(column, "type", None)
    if not isinstance(kind, CodesType):
        found = kind if kind is not None else type(column).__name__
        raise TypeError(
            f"column must be of Arrow with type CodesType, got {found}; accepted otherwise: softfloat.from_codes(column.to_numpy(), fmt); "
            "columns that were read before softfloat.interchange.columns was imported must be read again"
        )
    if column.null_count:
        raise ValueError(
            f"column has {column.null_count} missing values, which no format has; accepted: without them: column.drop_null()"
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [chunk.storage.to_numpy() for chunk in chunks]
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0, kind.format.dtype)])
    return from_codes(whole, kind.format)


def to_pandas(x: SoftArray, index: Any = None, name: Any = None) -> Any:
    """An array as a Series of pandas, with a dtype that says the format; `index` and `name` are pandas'.

    The dtype is `pandas.ArrowDtype(CodesType(x.format))`. Memory and the shape of `x` are as for `to_arrow`.

    Returns
    -------
    pandas.Series
    """
    import pandas

    column = pandas.arrays.ArrowExtensionArray(pa.chunked_array([to_arrow(x)]))
    return pandas.Series(column, index=index, name=name)


def from_pandas(series: Any) -> SoftArray:
    """A Series of pandas as an array; as `from_arrow`, its errors included.

    Parameters
    ----------
    series : pandas.Series, Index or array
        Of the dtype that `to_pandas` gives.
    """
    dtype = getattr(series, "dtype", None)
    if not isinstance(getattr(dtype, "pyarrow_dtype", None), CodesType):
        found = dtype if dtype is not None else type(series).__name__
        raise TypeError(
            f"series must have the dtype pandas.ArrowDtype(CodesType(fmt)), got {found}; accepted otherwise: "
            "softfloat.from_codes(series.to_numpy(), fmt)"
        )
    return from_arrow(getattr(series, "array", series).__arrow_array__())
