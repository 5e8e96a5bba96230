"""The array API standard: names, dtypes and results of a format's namespace; the standard's own tests on float32 where they lie."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import DType, SoftArray
from softfloat.arrays.standard import NOT_THERE

XP: Any = softfloat.array_namespace("float32")
HALVES: Any = softfloat.array_namespace("float16")

# Of the standard, 2024.12: the functions of its chapters, and the attributes and methods of an array.
FUNCTIONS = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and bitwise_invert
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos
cosh count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like equal exp expand_dims expm1 eye finfo flip floor
floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag isdtype isfinite isinf isnan less less_equal linspace log
log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum
moveaxis multiply negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod real reciprocal remainder repeat
reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis
tan tanh tensordot tile tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like
__array_namespace_info__ e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32
"""
ATTRIBUTES = """
dtype device mT ndim shape size T __abs__ __add__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
__floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __le__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __pos__ __pow__
__setitem__ __sub__ __truediv__ to_device
"""


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_names(name: str) -> None:
    """Every function, constant and dtype, of a format that the standard knows and of one that it does not."""
    assert hasattr(XP, name)
    assert hasattr(HALVES, name)


def test_attributes() -> None:
    x = XP.ones(3)
    assert [name for name in ATTRIBUTES.split() if not hasattr(type(x), name)] == []
    assert (x.device, x.to_device("cpu") is x, x.__array_namespace__(api_version="2024.12") is XP) == (
        "cpu",
        True,
        True,
    )
    assert complex(x[0]) == 1
    for refused in (
        lambda: x.to_device("gpu"),
        lambda: XP.zeros(1, device="gpu"),
        lambda: x.to_device("cpu", stream=1),
    ):
        with pytest.raises(ValueError, match=r"(device|stream) must be"):
            refused()
    with pytest.raises(ValueError, match="api_version must be"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(TypeError, match=r"^SoftArrays are numbers, not indices"):
        range(3)[x[0]]


@pytest.mark.parametrize("name", NOT_THERE)
def test_what_is_missing_says_why(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no {name}: .*; accepted: "):
        getattr(XP, name)
    with pytest.raises(AttributeError, match=r"array_namespace\('float32'\) has no nothing$"):
        XP.nothing  # noqa: B018


def test_dtypes() -> None:
    """Equal to their format and to nothing that NumPy has; accepted wherever a format is, refused by NumPy."""
    x = softfloat.ones(2, "bfloat16")
    assert x.dtype == softfloat.bfloat16 == x.dtype
    assert x.dtype == XP.bfloat16 != XP.float32
    assert x.dtype != np.dtype(np.uint16)
    assert {x.dtype: 1}[DType("bfloat16")] == 1
    assert (str(x.dtype), x.dtype.name) == ("softfloat.DType('bfloat16')", "bfloat16")
    assert pickle.loads(pickle.dumps(x.dtype)) == x.dtype
    assert softfloat.zeros(2, XP.float16).format == softfloat.float16
    assert x.astype(XP.float16).format == softfloat.float16
    assert np.zeros_like(x, dtype=x.dtype).format == np.sum(x, dtype=x.dtype).format == softfloat.bfloat16
    for refused in (lambda: np.zeros(2, x.dtype), lambda: np.dtype(x.dtype)):
        with pytest.raises(TypeError):
            refused()
    mine = softfloat.Format("e6m9", exponent_bits=6, mantissa_bits=9)
    own: Any = softfloat.array_namespace(mine)
    assert own.zeros(2).dtype == own.e6m9 == mine
    assert pickle.loads(pickle.dumps(own)) is own


def test_views_by_dtype() -> None:
    x = softfloat.ones(2, "float16")
    assert x.view(dtype=np.uint16).tolist() == x.codes.tolist()
    assert x.view(dtype="bfloat16").format == x.view(dtype=XP.bfloat16).format == softfloat.bfloat16


def test_kinds_of_dtypes() -> None:
    for kind, wanted in {
        "real floating": True,
        "numeric": True,
        "integral": False,
        "bool": False,
        "complex floating": False,
    }.items():
        assert XP.isdtype(XP.float32, kind) is wanted
    assert XP.isdtype(XP.int8, ("bool", "signed integer"))
    assert XP.isdtype(XP.float32, softfloat.float32)
    assert not XP.isdtype(XP.float32, XP.float16)
    with pytest.raises(ValueError, match="kind"):
        XP.isdtype(XP.float32, "decimal")
    x, integers = XP.ones(2), XP.asarray([1, 2])
    assert XP.result_type(x, XP.float32, 1, 2.0) == XP.float32
    assert XP.result_type(XP.int8, XP.uint8) == XP.int16
    assert (XP.can_cast(x, XP.float32), XP.can_cast(XP.int8, XP.int16), XP.can_cast(x, XP.int8)) == (True, True, False)
    for refused in (lambda: XP.result_type(x, XP.float16), lambda: XP.result_type(x, integers)):
        with pytest.raises(TypeError, match=r"have no common dtype; accepted: after astype"):
            refused()
    limits = XP.finfo(x)
    numpys: Any = np.finfo(np.float32)
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(limits, name) == getattr(numpys, name)
    assert limits.dtype == XP.float32
    assert XP.iinfo(integers).max == 2**63 - 1
    information = XP.__array_namespace_info__()
    assert information.default_dtypes()["real floating"] == XP.float32
    assert set(information.dtypes(kind="real floating")) == {"float32"}
    assert (information.default_device(), information.devices()) == ("cpu", ["cpu"])


def test_arrays_that_are_made() -> None:
    """Floats in the format, integers and truths in NumPy's types, every other in the dtype that is named."""
    for made in (
        XP.zeros(2),
        XP.ones(2),
        XP.empty(2),
        XP.full(2, 0.5),
        XP.linspace(0, 1, 2),
        XP.arange(0.0, 2),
        XP.eye(2),
        XP.asarray([0.1, 1]),
    ):
        assert isinstance(made, SoftArray)
        assert made.dtype == XP.float32
    for made, kind in (
        (XP.full(2, 1), XP.int64),
        (XP.arange(3), XP.int64),
        (XP.asarray([True]), XP.bool),
        (XP.full(2, True), XP.bool),
    ):
        assert made.dtype == kind
    assert XP.asarray([1, 2], dtype=XP.bfloat16).dtype == XP.bfloat16
    assert XP.ones(2, dtype=XP.int8).dtype == XP.int8
    assert XP.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    half = softfloat.ones(2, "float16")
    assert XP.asarray(half) is half
    assert XP.zeros_like(half).dtype == XP.full_like(half, 3).dtype == HALVES.float16
    assert not np.shares_memory(XP.asarray(half, copy=True), half)
    assert XP.sum(XP.asarray([1, 2]), dtype=XP.float32).dtype == XP.float32
    single = np.ones(2, np.float32)
    assert np.shares_memory(XP.from_dlpack(single).codes, single)
    for refused in (lambda: XP.asarray([0.1], copy=False), lambda: XP.asarray(half, dtype=XP.float32, copy=False)):
        with pytest.raises(ValueError, match="copy"):
            refused()
    for refused in (lambda: XP.sqrt(2.0), lambda: XP.zeros(2, dtype=float), lambda: XP.zeros(2, dtype="nothing")):
        with pytest.raises(TypeError, match=r"float64|must be a dtype of the namespace"):
            refused()
    for integers in (XP.sqrt, XP.mean, lambda x: XP.divide(x, x)):
        with pytest.raises(TypeError, match=r"of int64 would be float64; accepted: after astype"):
            integers(XP.asarray([1, 2]))


def test_tensors_become_arrays() -> None:
    """PyTorch's halves keep their format and their memory, its integers are NumPy's."""
    torch = pytest.importorskip("torch")
    brain, integers = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.int32)
    for function in (XP.asarray, XP.from_dlpack):
        found = function(brain)
        found[0] = 3
        assert (found.dtype == XP.bfloat16, brain[0].item()) == (True, 3)
        assert function(integers).dtype == XP.int32


def test_unique_values() -> None:
    """Each NaN counts for itself, and both zeros as one, as the standard says."""
    x = softfloat.array([2, np.nan, 0, 2, np.nan, -0.0], "float16")
    found = np.unique_all(x)
    wanted = np.unique_all(np.array([2, np.nan, 0, 2, np.nan, -0.0]))
    assert type(found) is type(wanted)
    assert found.values.tolist()[:2] == [0, 2]
    assert found.values.shape == (4,)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        assert one.tolist() == other.tolist()
    assert np.unique_counts(x).counts.tolist() == found.counts.tolist()
    assert np.unique_inverse(x).inverse_indices.tolist() == found.inverse_indices.tolist()
    assert np.unique_values(x).shape == (4,)


def test_descending_orders_are_stable() -> None:
    x = softfloat.array([1, 0, -0.0, 2, 1], "float16")
    assert HALVES.argsort(x, descending=True).tolist() == [3, 0, 4, 1, 2]
    assert HALVES.sort(x, descending=True).codes.tolist() == x[[3, 0, 4, 1, 2]].codes.tolist()
    assert HALVES.sort(x).codes.tolist() == x[HALVES.argsort(x)].codes.tolist()


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_libraries_that_ask_for_a_namespace(library: str) -> None:
    """SciPy and scikit-learn compute in the format where they dispatch."""
    pytest.importorskip(library, minversion={"scipy": "1.15", "sklearn": "1.7"}[library])
    program = {
        "scipy": """
            from scipy.constants import convert_temperature
            x = softfloat.array([0.1, 300.0], "bfloat16")
            y = convert_temperature(x, "C", "K")
            assert (y.format, y.tolist()) == (softfloat.bfloat16, (x + 273.15).tolist())
        """,
        "sklearn": """
            import sklearn
            from sklearn.preprocessing import MinMaxScaler
            x = softfloat.array([[0, 1], [1, 2], [2, 3]], "float16")
            with sklearn.config_context(array_api_dispatch=True):
                y = MinMaxScaler().fit_transform(x)
            assert (y.format, y.tolist()) == (softfloat.float16, [[0, 0], [0.5, 0.5], [1, 1]])
        """,
    }[library]
    command = [sys.executable, "-W", "ignore", "-c", f"import softfloat\n{textwrap.dedent(program)}"]
    subprocess.run(command, check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"}, timeout=600)


# -- the standard's own tests ------------------------------------------------------------------------------------------

NO_COMPLEX = "no format is complex"
PYTHONS = "floor_divide pairs with remainder, as Python's does and as the standard allows"
REFUSED: dict[str, str] = {
    r"test_has_names\[fft-": "transforms are complex",
    r"test_linalg\.py::test_vecdot_conj": NO_COMPLEX,
    r"test_unary\[\w+\(.*(real|imag)\(x_i\)": NO_COMPLEX,
    r"test_has_names\[array_method-__(and|invert|lshift|or|rshift|xor)__\]": "numbers have no operators on bits",
    r"\[(floor_divide|__floordiv__|__ifloordiv__)\(.*infinity": PYTHONS,
    r"test_unary\[signbit\(x_i is -NaN\)": "a NaN that comes in has the sign of the environment's NaN rule",
}
"""Which of the standard's tests fail, and why."""
SOMETIMES: dict[str, str] = {
    r"test_unary\[(ceil|floor|round|trunc)\(x_i\.is_integer\(\)\)": "draws integers of float64, of which float32 has the nearest",
}
"""Which fail if Hypothesis draws so; all others pass."""

ADAPTER = """
import softfloat
class Skipped:
    pass
names = vars(softfloat.array_namespace("float32"))
globals().update({name: names[name] for name in names if name != "__name__"})
float64, complex64, complex128 = Skipped(), Skipped(), Skipped()
"""
"""The module that the suite tries: the namespace, and dtypes that the suite names before it skips them."""


def test_the_suite_of_the_standard(tmp_path: Path) -> None:
    """data-apis/array-api-tests on float32: what fails is what REFUSED says, and everything that it says fails."""
    folder = os.environ.get("ARRAY_API_TESTS")
    if folder is None:
        pytest.skip("ARRAY_API_TESTS does not name a checkout of data-apis/array-api-tests, with its submodule")
    pytest.importorskip("ndindex")
    suite = tmp_path / "suite"
    shutil.copytree(folder, suite, ignore=shutil.ignore_patterns(".git", "__pycache__", ".hypothesis"))
    helpers = suite / "array_api_tests" / "dtype_helpers.py"
    text = helpers.read_text(encoding="utf-8")  # which takes the widest complex type of a library that has none
    assert text.count("for dt in complex_dtypes]") == 1
    helpers.write_text(
        text.replace("for dt in complex_dtypes]", "for dt in complex_dtypes or real_float_dtypes]"), encoding="utf-8"
    )
    (tmp_path / "float32_of_softfloat.py").write_text(ADAPTER, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "ARRAY_API_TESTS_MODULE": "float32_of_softfloat",
        "ARRAY_API_TESTS_SKIP_DTYPES": "float64,complex64,complex128",
        "ARRAY_API_TESTS_MAX_ARRAY_SIZE": "64",
    }
    options = [
        "-q",
        "-rf",
        "--max-examples=5",
        "--disable-deadline",
        "--derandomize",
        "--tb=line",
        "-p",
        "no:cacheprovider",
    ]
    command = [sys.executable, "-m", "pytest", *options, "array_api_tests"]
    run = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, timeout=3600)
    assert " passed" in run.stdout, run.stdout[-3000:] + run.stderr[-3000:]
    failed = re.findall(r"^FAILED (.*?)(?: - .*)?$", run.stdout, re.M)
    known = [*REFUSED, *SOMETIMES]
    unknown = [name for name in failed if not any(re.search(pattern, name) for pattern in known)]
    assert unknown == [], "\n".join(line for line in run.stdout.splitlines() if line.startswith("/"))
    assert [pattern for pattern in REFUSED if not any(re.search(pattern, name) for name in failed)] == []
