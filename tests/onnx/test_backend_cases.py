"""ONNX's backend node tests: casts bit for bit, everything narrow within its tolerance or refused, float32 as a sweep; and docs/onnx.md."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import onnx_cases  # noqa: E402 -- after the skip
from onnx_cases import NARROW, cases, close, element_of, narrow_cases, outputs, verdicts  # noqa: E402

KNOWN = "1.23.2"
"""The onnx whose cases docs/onnx.md counts."""


def casts() -> list[str]:
    """Cases that cast into a narrow format and are not made of others."""
    return [
        name
        for name, case in narrow_cases().items()
        if case.model.graph.node[0].op_type in ("Cast", "CastLike")
        and not name.endswith("_expanded")
        and element_of(case.model.graph.output[0].type) in NARROW
    ]


def test_casts_into_formats_bit_for_bit() -> None:
    names = casts()
    assert len(names) >= 38 or onnx.__version__ != KNOWN, len(names)
    for name in names:
        for found, wanted in outputs(cases()[name]):
            integers = np.uint16 if wanted[0].dtype.itemsize == 2 else np.uint8
            made, data = found[0].view(integers), wanted[0].view(integers)
            if "FNUZ_to_FLOAT16" in name:  # whose one NaN has no sign: ml_dtypes gives it one
                data = np.where(np.isnan(wanted[0]), np.uint16(0x7E00), data)
            np.testing.assert_array_equal(made, data, err_msg=name)


def test_narrow_cases_pass_or_are_refused() -> None:
    found = verdicts(False)
    assert len(found) > 130
    assert not {name: x for name, x in found.items() if x.outcome not in ("passed", "refused")}
    if onnx.__version__ == KNOWN:
        assert {name for name, x in found.items() if x.outcome == "refused"} == {
            name for name in found if name.startswith("test_qlinearmatmul")
        }


@pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")  # of softmax on float32 rows without a finite number
def test_stages_in_float32_differ_from_stages_in_the_format_by_two_units_at_most() -> None:
    """The cases that only pass with stages in the format and sums as NumPy's are those with a softmax."""
    for name, case in narrow_cases().items():
        if verdicts(False)[name].outcome != "passed":
            continue
        for found, wanted in outputs(case):
            if not all(close(a, b, case) for a, b in zip(found, wanted, strict=True)):
                assert "attention" in name, name
                for a, b in zip(found, wanted, strict=True):
                    distance = np.abs(a.view(np.int16).astype(int) - b.view(np.int16).astype(int))
                    assert distance.max() <= 2, name


@pytest.mark.exhaustive
def test_float32_cases_pass_or_are_refused() -> None:
    found = verdicts(True)
    assert len(found) > 1000
    assert not {name: x for name, x in found.items() if x.outcome == "failed"}
    assert sum(x.outcome == "passed" for x in found.values()) > 1000


SOME = """
    test_relu test_softmax_axis_0 test_matmul_2d test_layer_normalization_default_axis test_conv_with_strides_padding
    test_maxpool_2d_pads test_averagepool_2d_ceil test_gemm_all_attributes test_clip test_reduce_mean_keepdims_example
    test_loop11 test_if test_pow test_batchnorm_example test_instancenorm_example test_cumsum_1d_exclusive
"""


@pytest.mark.parametrize("name", sorted(SOME.split()))
def test_some_float32_cases(name: str) -> None:
    assert onnx_cases.verdict(cases()[name], emulate_float32=True).outcome == "passed"


# -- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    if not onnx_cases.PAGE.exists():
        pytest.skip("not in a checkout")
    return onnx_cases.PAGE.read_text(encoding="utf-8")


def test_the_page_lists_the_operators() -> None:
    assert onnx_cases.operators_table() in page()


def test_the_page_counts_narrow_cases() -> None:
    text = page()
    assert f"cases of onnx {KNOWN}" in text
    if onnx.__version__ != KNOWN:
        pytest.skip(f"docs/onnx.md counts the cases of onnx {KNOWN}, and {onnx.__version__} is installed")
    assert onnx_cases.cases_row(False) in text


@pytest.mark.exhaustive
def test_the_page_counts_float32_cases() -> None:
    text = page()
    if onnx.__version__ != KNOWN:
        pytest.skip(f"docs/onnx.md counts the cases of onnx {KNOWN}, and {onnx.__version__} is installed")
    assert onnx_cases.cases_row(True) in text
