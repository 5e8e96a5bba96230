"""Every keyword of every NumPy function that SoftArrays have: applied as NumPy applies it to halves, or refused by name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_table import HALF, LAPACK, compare

import softfloat
from softfloat import SoftArray
from softfloat.arrays import FUNCTIONS, UFUNCS

X = np.array([[3, 1, 2, 0], [5, -4, 7, 6], [2, 2.5, -1, 8]], np.float16)
ROW, OTHER = X[1].copy(), np.array([7, 3, 5, -4, 2], np.float16)
ZEROS = np.array([0.0, -0.0, 1.0, -0.0, 0.0, -1.0], np.float16)
NANS = np.array([np.nan, 1.0, np.nan, 2.0], np.float16)
TRUE = X > 0
SQUARE = X[:, :3].copy()
LAST = np.zeros((3, 4), np.float16)
LAST[0, 3] = 1  # where TRUE is not

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "linalg.cross": (SQUARE, SQUARE[::-1]),
    "linalg.outer": (ROW, OTHER),
    "linalg.matmul": (X, X.T.copy()),
    "linalg.tensordot": (SQUARE, SQUARE),
    "linalg.vecdot": (SQUARE, SQUARE),
    "linalg.matrix_power": (SQUARE, 2),
    "linalg.multi_dot": ([SQUARE, SQUARE, SQUARE[0]],),
    "lib.stride_tricks.sliding_window_view": (X, (2, 2)),
    "lib.stride_tricks.sliding_window_view axis": (X, 2),
    "append": (X, X),
    "apply_along_axis": (np.flip, 0, X),
    "any": (LAST,),
    "argpartition": (SQUARE, 1),
    "array2string": (X / 8,),
    "array2string legacy": (np.abs(X),),
    "array_str": (X / 8,),
    "choose mode": (np.array([0, 1, 2, -3]), [X[0], X[1]]),
    "clip min": (X,),
    "clip max": (X,),
    "cumulative_sum axis": (X,),
    "cumulative_prod axis": (X[:2],),
    "put mode": (X, [1, 20], [7, 8]),
    "take mode": (X, [1, 20]),
    "array_split": (X, 2),
    "split": (X[:2], 2),
    "hsplit": (X, 2),
    "vsplit": (X[:2], 2),
    "dsplit": (X[None, :, :2], 2),
    "block": ([X, X],),
    "column_stack": ([X, X],),
    "concatenate": ([X, X],),
    "dstack": ([X, X],),
    "hstack": ([X, X],),
    "stack": ([X, X],),
    "vstack": ([X, X],),
    "broadcast_to": (X, (2, 3, 4)),
    "choose": (np.array([0, 1, 0, 1]), [X[0], X[1]]),
    "clip": (X, 1, 3),
    "compress": ([True, False, True], X),
    "convolve": (ROW, OTHER),
    "copyto": (X, X + 1),
    "correlate": (ROW, OTHER),
    "cov": (np.array([[1, 3, 5, 7], [2, 2, 4, 0]], np.float16),),
    "cross": (SQUARE, SQUARE[::-1]),
    "cumulative_sum": (ROW,),
    "cumulative_prod": (X[0],),
    "delete": (X, 1),
    "diag_indices_from": (SQUARE,),
    "digitize": (X, np.sort(ROW)),
    "dot": (SQUARE, SQUARE),
    "einsum": ("ij->i", X),
    "expand_dims": (X, 0),
    "extract": (TRUE, X),
    "fill_diagonal": (np.concatenate([X, X]).reshape(8, 3), 9),
    "full_like": (X, 7),
    "insert": (X, 1, 9),
    "interp": (ROW, np.arange(4, dtype=np.float16), ROW),
    "intersect1d": (ROW, OTHER),
    "setdiff1d": (OTHER, ROW[:1]),
    "setxor1d": (ROW, OTHER),
    "union1d": (ROW, OTHER),
    "inner": (X, X),
    "isin": (X, ROW),
    "isclose": (np.array([1, 1.5, np.nan], np.float16), np.array([1, 2, np.nan], np.float16)),
    "allclose": (np.array([1, 1.5], np.float16), np.array([1, 2], np.float16)),
    "allclose equal_nan": (NANS, NANS),
    "array_equal": (NANS, NANS),
    "array_equiv": (X, X),
    "kron": (SQUARE, SQUARE),
    "lexsort": (np.stack([X, X[::-1]]),),
    "meshgrid": (ROW, OTHER),
    "moveaxis": (X, 0, 1),
    "nan_to_num": (np.array([np.nan, np.inf, -np.inf, 1], np.float16),),
    "nanpercentile": (NANS.reshape(2, 2), 25),
    "nanquantile": (NANS.reshape(2, 2), 0.25),
    "percentile": (X, 25),
    "quantile": (X, 0.25),
    "outer": (ROW, OTHER),
    "pad": (X, 2),
    "partition": (SQUARE, 1),
    "piecewise": (X, [TRUE], [1, 2]),
    "place": (X, TRUE, [1, 2]),
    "polyval": (ROW, X),
    "prod initial": (ROW,),
    "nanprod initial": (ROW,),
    "put": (X, [1, 2], [7, 8]),
    "put_along_axis": (X, np.zeros((3, 1), int), 9, 1),
    "putmask": (X, TRUE, ROW),
    "repeat": (X, 2),
    "reshape": (X, (4, 3)),
    "resize": (X, (2, 2)),
    "roll": (X, 1),
    "rollaxis": (X, 1),
    "round": (X / 4,),
    "around": (X / 4,),
    "searchsorted": (np.sort(OTHER), OTHER),
    "select": ([TRUE], [X]),
    "may_share_memory": (X, X[1:]),
    "shares_memory": (X, X[1:]),
    "squeeze": (X[None, :, None],),
    "swapaxes": (X, 0, 1),
    "take": (X, [1, 2]),
    "take_along_axis axis": (X, np.array([5, 1])),
    "take_along_axis": (X, np.zeros((3, 1), int)),
    "tensordot": (SQUARE, SQUARE),
    "tile": (X, 2),
    "trapezoid": (X,),
    "trim_zeros": (np.array([0, -0.0, 1, 0, -1, -0.0], np.float16),),
    "trim_zeros axis": (np.pad(X, 1),),
    "unique": (NANS,),
    "vander": (ROW[:3],),
    "vdot": (ROW, ROW),
    "where": (TRUE, X, -X),
    "broadcast_arrays": (X, X[0]),
    "ediff1d": (ROW,),
    "sort": (ZEROS.reshape(2, 3),),
    "sort axis": (X,),
    "argsort": (ZEROS.reshape(2, 3),),
    "astype": (X, HALF),
}
"""What functions are called with that take more than X, or tell more of something else."""

VALUES: dict[str, Any] = {
    "axis": 1,
    "keepdims": True,
    "dtype": np.float32,
    "initial": 9,
    "where": TRUE,
    "weights": X + 5,
    "ddof": 1,
    "correction": 0.5,
    "mean": np.ones((1, 1), np.float16),
    "order": "F",
    "shape": (2, 2),
    "overwrite_input": True,
    "subok": True,
    "copy": False,
    "casting": "no",
    "device": "gpu",
    "k": 1,
    "offset": 1,
    "equal_nan": True,
    "rtol": 1.0,
    "atol": 1.0,
    "assume_unique": True,
    "kind": "heapsort",
    "stable": True,
    "include_initial": True,
    "method": "higher",
    "max_line_width": 12,
    "precision": 1,
    "suppress_small": True,
    "max_work": 1,
    "mode": "wrap",
}
"""A value of a keyword that is not its default."""

SPECIAL: dict[str, dict[str, Any]] = {
    "array2string": {"separator": ";", "prefix": "xxx", "formatter": {"float": str}, "threshold": 3, "edgeitems": 1, "sign": "+",
                     "floatmode": "fixed", "suffix": "x" * 60, "legacy": "1.13"},
    "average": {"returned": True},
    "cov": {"y": X[0], "rowvar": False, "bias": True, "ddof": 2, "fweights": [1, 2, 1, 2], "aweights": [1, 2, 1, 2]},
    "histogram": {"bins": 3, "range": (0, 4), "density": True},
    "clip": {"min": 2, "max": 2, "where": TRUE, "dtype": np.float32},
    "convolve": {"mode": "same"},
    "correlate": {"mode": "same"},
    "cross": {"axisa": 0, "axisb": 0, "axisc": 0, "axis": 0},
    "linalg.cross": {"axis": 0},
    "linalg.vecdot": {"axis": 0},
    "linalg.tensordot": {"axes": 1},
    "linalg.vector_norm": {"ord": 1},
    "linalg.norm": {"ord": 1},
    "linalg.matrix_norm": {"ord": 1},
    "tensordot": {"axes": 1},
    "diagonal": {"axis1": 1, "axis2": 0},
    "trace": {"axis1": 1, "axis2": 0},
    "diff": {"n": 2, "prepend": X[:, :1], "append": X[:, :2], "axis": 0},
    "digitize": {"right": True},
    "ediff1d": {"to_end": [7], "to_begin": [8, 9]},
    "einsum": {"optimize": True, "dtype": np.float32, "order": "F", "casting": "no"},
    "fill_diagonal": {"wrap": True},
    "gradient": {"edge_order": 2},
    "interp": {"left": -9, "right": 9, "period": 4},
    "intersect1d": {"return_indices": True},
    "isin": {"invert": True, "kind": "sort"},
    "linalg.trace": {"offset": 1},
    "lib.stride_tricks.sliding_window_view": {"writeable": True, "axis": 1},
    "meshgrid": {"sparse": True, "indexing": "ij"},
    "nan_to_num": {"nan": 5, "posinf": 6, "neginf": 7},
    "pad": {"mode": "reflect", "constant_values": 5, "reflect_type": "odd", "stat_length": 1, "end_values": 3},
    "repeat": {"axis": 0},
    "reshape": {"copy": True},
    "roll": {"axis": 0},
    "rollaxis": {"start": 2},
    "rot90": {"k": 2, "axes": (1, 0)},
    "round": {"decimals": 1},
    "around": {"decimals": 1},
    "searchsorted": {"side": "right", "sorter": np.arange(5)[::-1].copy()},
    "select": {"default": 5},
    "squeeze": {"axis": 0},
    "stack": {"axis": 1},
    "take": {"mode": "clip"},
    "choose": {"mode": "clip"},
    "compress": {"axis": 1},
    "put": {"mode": "clip"},
    "transpose": {"axes": (0, 1)},
    "trapezoid": {"x": X * 2, "dx": 4.0, "axis": 0},
    "trim_zeros": {"trim": "f", "axis": 0},
    "unique": {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": False, "sorted": False, "axis": 0},
    "vander": {"N": 2, "increasing": True},
    "astype": {"dtype": None},
    "sort": {"axis": None, "kind": "stable"},
    "argsort": {"axis": 0, "kind": "stable"},
    "expand_dims": {},
    "partition": {"kind": "introselect", "axis": 0},
    "argpartition": {"kind": "introselect", "axis": 0},
    "take_along_axis": {"axis": None},
    "cumulative_sum": {"axis": 0},
    "cumulative_prod": {"axis": 0},
    "fft.fftshift": {"axes": 1},
    "fft.ifftshift": {"axes": 1},
    "nanpercentile": {"axis": 0, "weights": NANS},
    "nanquantile": {"axis": 0, "weights": NANS},
    "lexsort": {"axis": 0},
    **{name: {"where": X < 5} for name in ("max", "amax", "nanmax")},
    **{name: {"initial": -9} for name in ("min", "amin", "nanmin")},
}  # fmt: skip
"""Values of one function's keywords."""

TOGETHER: dict[str, dict[str, Any]] = {
    "array2string threshold": {"edgeitems": 1},
    "array2string edgeitems": {"threshold": 3},
    "diagonal axis1": {"axis2": 0},
    "diagonal axis2": {"axis1": 1},
    "trace axis1": {"axis2": 0},
    "trace axis2": {"axis1": 1},
    **{f"{name} where": {"initial": -9} for name in ("max", "amax", "nanmax")},
    **{f"{name} where": {"initial": 9} for name in ("min", "amin", "nanmin")},
}
"""What a keyword has beside it."""

REFUSED = {
    ("clip", "where"),
    ("cov", "aweights"),
    ("cov", "fweights"),
    ("histogram", "density"),
    ("histogram", "weights"),
    ("argpartition", "order"),
    ("argsort", "order"),
    ("clip", "dtype"),
    ("einsum", "dtype"),
    ("einsum", "order"),
    ("einsum", "casting"),
    ("gradient", "edge_order"),
    ("interp", "period"),
    ("nanpercentile", "weights"),
    ("nanquantile", "weights"),
    ("nanstd", "mean"),
    ("nanvar", "mean"),
    ("pad", "end_values"),
    ("pad", "reflect_type"),
    ("pad", "stat_length"),
    ("partition", "order"),
    ("percentile", "weights"),
    ("quantile", "weights"),
    ("sort", "order"),
    ("unique", "axis"),
}
"""What no SoftArray takes, by name; `dtype`, wherever there is one, and `device` besides."""

PERMISSIONS = {"overwrite_input", "subok", "copy", "assume_unique", "kind", "optimize", "max_work", "order", "sorted", "writeable", "stable",
               "suppress_small", "correction", "casting"}  # fmt: skip
"""Keywords that may be given and change no number, of the calls here."""

ELSEWHERE = {"save", "savez", "savez_compressed", "savetxt", "array_repr", "empty_like"}
ELSEWHERE |= {f"linalg.{name}" for name in LAPACK.split()}
"""Functions that are refused whatever they are given, one whose text is not NumPy's, and one whose elements are anything there."""


GONE = {"style", "interpolation", "newshape"}
"""Keywords that older versions of NumPy have."""


def _named(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def _cases() -> list[tuple[str, str]]:
    """(function, keyword) of every parameter with a default, and of what a function takes beside its parameters."""
    found = []
    for function in FUNCTIONS:
        name = _named(function)
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:  # some of the built-in ones before NumPy 2.4
            continue
        keywords = [
            key for key, p in parameters.items() if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
        ]
        given = list(parameters)[: len(ARGUMENTS.get(name, (X,)))]
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            keywords += SPECIAL.get(name, {})
        found += [(name, key) for key in keywords if key not in {*given, *GONE} and name not in ELSEWHERE]
    return sorted(set(found))


FOUND = {_named(function): function for function in FUNCTIONS}


def _copied(x: Any, convert: Callable[[Any], Any]) -> Any:
    """Arguments of a call's own, halves among them converted."""
    if isinstance(x, (list, tuple)):
        return type(x)(_copied(item, convert) for item in x)
    if isinstance(x, np.ndarray):
        return convert(x.copy()) if x.dtype == np.float16 else x.copy()
    return x


def _called(name: str, keyword: str, convert: Callable[[Any], Any], keywords: dict[str, Any]) -> Any:
    """The result, and the first argument as the call leaves it: some functions write there."""
    arguments = _copied(ARGUMENTS.get(f"{name} {keyword}", ARGUMENTS.get(name, (X,))), convert)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if name == "astype":
            arguments = (arguments[0], np.float16 if convert is _same else HALF)
        found = FOUND[name](*arguments, **{key: _copied(value, convert) for key, value in keywords.items()})
    return (found, arguments[0]) if found is None else found


def _same(x: Any) -> Any:
    return x


def _told(name: str, keyword: str, keywords: dict[str, Any]) -> Any:
    """NumPy's result, by shapes and bytes; or what it raises."""

    def told(x: Any) -> Any:
        return [told(item) for item in x] if isinstance(x, (list, tuple)) else (np.shape(x), np.asarray(x).tobytes())

    try:
        return told(_called(name, keyword, _same, keywords))
    except (ValueError, IndexError) as error:
        return repr(error)


@pytest.mark.parametrize(("name", "keyword"), _cases())
def test_every_keyword(name: str, keyword: str) -> None:
    """A keyword with another value than its default has the effect that it has in NumPy, or is refused by its name."""
    if keyword == "out":
        return _filled(name)
    value = SPECIAL.get(name, {}).get(keyword, VALUES.get(keyword, KeyError))
    assert value is not KeyError, f"{name} has a keyword {keyword} without a value here"
    beside = TOGETHER.get(f"{name} {keyword}", {})
    keywords = {keyword: value, **beside}
    if keyword in ("dtype", "device") or (name, keyword) in REFUSED:
        with pytest.raises((TypeError, ValueError), match=keyword if keyword != "device" else "[Dd]evice"):
            _called(name, keyword, softfloat.array, keywords)
        return None
    has_an_effect = _told(name, keyword, keywords) != _told(name, keyword, beside)
    assert has_an_effect or keyword in PERMISSIONS
    found, wanted = (_called(name, keyword, convert, keywords) for convert in (softfloat.array, _same))
    if (
        isinstance(found, SoftArray) and wanted.dtype == np.float64
    ):  # into which NumPy widens; all numbers here are halves
        wanted = wanted.astype(np.float16)
    compare(found, wanted)
    if keyword == "order":
        assert found.strides == wanted.strides
    return None


def _filled(name: str) -> None:
    """An array for the result holds it, and is what the call returns."""
    wanted = _called(name, "out", _same, {})
    out: Any = softfloat.zeros(np.shape(wanted), HALF) if wanted.dtype == np.float16 else np.zeros_like(wanted)
    arguments = _copied(ARGUMENTS.get(name, (X,)), softfloat.array)
    assert FOUND[name](*arguments, out=out) is out
    compare(out if isinstance(out, SoftArray) else out[()], wanted if isinstance(out, SoftArray) else wanted[()])


def test_texts_of_a_repr() -> None:
    """Widths, digits and small numbers as `numpy.printoptions` has them."""
    x = softfloat.array(X / 8 + np.float16(0.001))
    for keyword, option, value in (
        ("max_line_width", "linewidth", 40), ("precision", "precision", 2), ("suppress_small", "suppress", True)
    ):  # fmt: skip
        with np.printoptions(**{option: value}):
            wanted = repr(x), str(x)
        assert (np.array_repr(x, **{keyword: value}), np.array_str(x, **{keyword: value})) == wanted
        assert wanted[0] != repr(x) or keyword == "suppress_small"


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_whatever(order: Any) -> None:
    """`empty_like` has the layout and the shape that are asked for."""
    x = softfloat.array(X)
    found = np.empty_like(x, order=order, shape=(2, 5))
    wanted = np.empty_like(X, order=order, shape=(2, 5))
    assert (found.format, found.shape, found.strides) == (HALF, wanted.shape, wanted.strides)
    assert np.empty_like(x.T).strides == np.empty_like(X.T).strides
    assert np.zeros_like(x.T).strides == np.zeros_like(X.T).strides


def test_nans_that_count_for_themselves() -> None:
    """`numpy.unique` of NaNs as NumPy has it, with places, inverse and counts."""
    x = np.array([np.nan, 1, np.nan, 1], np.float16)
    for equal_nan in (True, False):
        found = np.unique(softfloat.array(x), True, True, True, equal_nan=equal_nan)
        compare(found, np.unique(x, True, True, True, equal_nan=equal_nan))
    assert np.unique(softfloat.array([np.nan, np.nan], HALF), equal_nan=False).shape == (2,)


EMPTY: dict[str, Callable[[Any], Any]] = {
    "nansum": lambda x: np.nansum(x, axis=0),
    "nanprod": lambda x: np.nanprod(x, axis=0),
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "nanvar": lambda x: np.nanvar(x, axis=0),
    "nanstd": lambda x: np.nanstd(x, axis=0),
    "nanmedian": lambda x: np.nanmedian(x, axis=0),
    "nanquantile": lambda x: np.nanquantile(x, 0.25, axis=0),
    "nanpercentile": lambda x: np.nanpercentile(x, 25, axis=0),
    "sum, kept": lambda x: np.nansum(x, axis=0, keepdims=True),
    "sum of lanes without elements": lambda x: np.sum(x.T, axis=1, where=np.ones((3, 0), bool)),
    "product": lambda x: np.prod(x, axis=0, where=np.ones(3, bool)),
    "mean": lambda x: np.mean(x, axis=0, where=np.ones(3, bool)),
    "variance": lambda x: np.var(x, axis=0, where=np.ones(3, bool)),
    "maximum": lambda x: np.max(x, axis=0, initial=2, where=np.ones(3, bool)),
    "no lanes": lambda x: np.nansum(x, axis=1),
    "quantile of no lanes": lambda x: np.nanquantile(x, 0.25, axis=1),
    "sum of no lanes": lambda x: np.sum(x, axis=1, where=np.ones(3, bool)),
}


FEW: dict[str, Callable[[Any], Any]] = {
    "running sums of no axis": lambda x: np.cumulative_sum(x[0, 0], include_initial=True),
    "running sums of nothing": lambda x: np.cumulative_sum(x[:, :0], axis=-1, include_initial=True),
    "running products of nothing": lambda x: np.cumulative_prod(x[:0], axis=0, include_initial=True),
    "no differences": lambda x: [np.diff(x, 0, prepend=1), np.diff(x[0, 0], 0, append=2)],
    "no powers": lambda x: [np.vander(x[0], 0).shape, np.vander(x[0, :0]).shape],
}


@pytest.mark.parametrize("name", FEW)
def test_few_elements(name: str) -> None:
    """What has no axis, no elements or nothing to do: IndexError, one power too many, differences of none with numbers put before."""
    x = np.arange(1, 7, dtype=np.float16).reshape(2, 3)
    compare(FEW[name](softfloat.array(x)), FEW[name](x))


@pytest.mark.parametrize("value", [0, 1])
def test_zeros_at_the_ends_of_no_axis(value: float) -> None:
    """There are none to trim: NumPy 2.2 and later have it so, before it is a TypeError."""
    found = np.trim_zeros(softfloat.array(value, HALF))
    assert (found.shape, found.item()) == ((), value)


@pytest.mark.parametrize("name", EMPTY)
def test_masked_reductions_of_nothing(name: str) -> None:
    """Shapes and starts of reductions of what a mask leaves, along an axis without elements and beside one."""
    x = np.zeros((0, 3), np.float16)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = EMPTY[name](x).astype(np.float16)
    compare(EMPTY[name](softfloat.array(x)), wanted)


def test_several_quantiles_of_nothing() -> None:
    """Each share has its results, NaN in each; NumPy leaves their axis out."""
    x = softfloat.zeros((0, 3), HALF)
    assert np.isnan(np.nanquantile(x, [0.25, 0.5], axis=0)).tolist() == [[True] * 3] * 2
    assert np.nanquantile(x, [0.25, 0.5], axis=1).shape == (2, 0)
    with pytest.raises(ValueError, match="no elements"):
        np.quantile(x, 0.25, axis=0)


@pytest.mark.parametrize("ddof", [1, 2, 3, 1.5, 2.5])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_degrees_of_freedom(name: str, ddof: float) -> None:
    """None left: infinite without NaN in the name, NaN with it, as NumPy has it; shares of one are served, the quotient rounded once."""
    x = np.array([1, 2], np.float16)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = getattr(np, name)(x.astype(float), ddof=ddof).astype(np.float16)
    compare(getattr(np, name)(softfloat.array(x), ddof=ddof), wanted)
    compare(getattr(np, name)(softfloat.array(x), correction=ddof), wanted)
    assert softfloat.array([0, 2, 4], HALF).var(correction=0.5).tolist() == float(np.float16(8 / 2.5))


@pytest.mark.parametrize("how", [{"stable": True}, {"kind": "stable"}, {"kind": "mergesort"}])
def test_stable_orders_agree(how: dict[str, Any]) -> None:
    """Both zeros are equal in a stable order, so that they and NaNs stay as they stand: `sort` is what `argsort` says."""
    codes = np.array([0x0000, 0x8000, 0x7E01, 0x3C00, 0x8000, 0xFE02, 0x0000, 0xBC00, 0x7E00], np.uint16)
    x = softfloat.from_codes(codes, HALF)
    ordered = np.sort(x, **how)
    assert ordered.codes.tolist() == [0xBC00, 0, 0x8000, 0x8000, 0, 0x3C00, 0x7E01, 0xFE02, 0x7E00]
    assert x[np.argsort(x, **how)].codes.tolist() == ordered.codes.tolist()
    compare(np.sort(softfloat.array(ZEROS), **how), np.sort(ZEROS, **how))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.sort(x, kind="bogus"), "kind"),
        (lambda x: np.sort(x, kind="stable", stable=True), "kind"),
        (lambda x: np.partition(x, 9), "kth"),
        (lambda x: np.partition(x, 1, kind="bogus"), "kind"),
        (lambda x: np.trim_zeros(x, "x"), "trim"),
        (lambda x: np.copyto(x, 0.1, casting="safe"), "casting='safe'"),
        (lambda x: np.subtract.reduce(x, where=[True, False, True, True]), "where="),
        (lambda x: np.pad(x, 2, "reflect", reflect_type="odd"), "reflect_type='odd'"),
        (lambda x: np.quantile(x[:1], 1.5), r"q of numpy\.quantile must be 0 to 1, got 1\.5"),
        (lambda x: np.percentile(x, np.nan), r"q of numpy\.percentile must be 0 to 100, got nan"),
        (lambda x: np.nanquantile(x[:0], 1.5), r"q of numpy\.quantile must be 0 to 1, got 1\.5"),
        (lambda x: np.vander(x.reshape(2, -1)), r"numpy\.vander needs x of one axis"),
        (lambda x: np.vander(x, -1), r"N of at least 0, got shape \(4,\) and N=-1"),
        (lambda x: np.diff(x[0], prepend=1), r"numpy\.diff needs an array of at least one axis"),
        (lambda x: np.linalg.norm(x.reshape(2, -1)[:0], -2), r"numpy\.linalg\.norm with ord=-2 of no elements"),
    ],
)
def test_values_that_no_keyword_has(call: Callable[[Any], Any], message: str) -> None:
    """What NumPy refuses, or nobody can apply here, is refused: nothing is swallowed."""
    with pytest.raises((TypeError, ValueError), match=message):
        call(softfloat.array(ROW))


UFUNC_VALUES: dict[str, Any] = {
    "dtype": np.float32,
    "casting": "unsafe",
    "order": "F",
    "subok": False,
    "signature": "ff->f",
    "axes": [0, 0],
    "keepdims": True,
    "axis": 0,
}


@pytest.mark.parametrize("ufunc", sorted(UFUNCS, key=str), ids=lambda ufunc: ufunc.__name__)
def test_keywords_of_ufuncs(ufunc: Any) -> None:
    """A call takes `where` and `out`, and refuses every other keyword by name, but for the axis of vecdot."""
    x = softfloat.array(SQUARE)
    arguments = (x, np.full((3, 3), 2)) if ufunc is np.ldexp else (x,) * ufunc.nin
    for keyword, value in UFUNC_VALUES.items():
        if (ufunc, keyword) == (np.vecdot, "axis"):
            assert ufunc(*arguments, axis=0).tolist() == np.vecdot(SQUARE, SQUARE, axis=0).tolist()
            continue
        with pytest.raises(TypeError, match=keyword):
            ufunc(*arguments, **{keyword: value})


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "subtract", "hypot"])
def test_keywords_of_reductions(name: str) -> None:
    """Of a ufunc's method: applied as NumPy applies them, or refused by name."""
    ufunc, x = getattr(np, name), softfloat.array(SQUARE)
    for keywords in ({}, {"axis": 1}, {"keepdims": True}, {"initial": 9}, {"where": TRUE[:, :3], "initial": 0}):
        if name in ("subtract", "hypot") and "where" in keywords:
            with pytest.raises(TypeError, match="where"):
                ufunc.reduce(x, **keywords)
        elif name in ("subtract", "hypot") and "initial" in keywords:
            continue  # NumPy starts with no number there
        else:
            compare(ufunc.reduce(x, **keywords), ufunc.reduce(SQUARE, **keywords))
    with pytest.raises(TypeError, match="dtype"):
        ufunc.reduce(x, dtype=np.float32)
    with pytest.raises(TypeError, match="dtype"):
        ufunc.accumulate(x, dtype=np.float32)
    out = softfloat.zeros(3, HALF)
    assert ufunc.reduce(x, out=out) is out
    compare(out, ufunc.reduce(SQUARE))
