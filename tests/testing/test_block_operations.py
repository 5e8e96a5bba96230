"""Vectors of operations on blocks, verdicts on them, and the rule that made a device's scales."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st

import softfloat
from softfloat import bits, reference
from softfloat.blocks import BLOCK_ROSTER, SCALE_RULES, BlockFormat, Fixed
from softfloat.reference.blocks import dequantize_block, over, quantize_block, times
from softfloat.testing import Case, check_vectors, corners_of, draw_operands, resolve, write_vectors
from softfloat.testing.identification.scales import identify_scales
from softfloat.testing.vectors.block_operations import SPECIAL

ACCUMULATORS = ('exact("float32")', 'fma("float32")', 'chunked(32, fma("float32"), "float32", scaling="scales_added")')


def rules_of(fmt: BlockFormat) -> list[str]:
    return [name for name, rule in SCALE_RULES.items() if (rule.kind == "power of two") == fmt.power_of_two_scale]


def rows_of(case: Case, count: int, seed: int = 0) -> list[np.ndarray]:
    """Some corner rows and some random ones."""
    rows = corners_of(case, 1)
    random = np.random.default_rng(seed)
    some = rows.operands(np.sort(random.choice(rows.count, min(count, rows.count), replace=False)))
    drawn = draw_operands(case, "mixed", count, seed)
    return [np.concatenate(pair) for pair in zip(some, drawn, strict=True)]


# -- right results ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8_e5m2", "mxfp6_e2m3", "mxint8", "msfp12", "nvfp4"])
def test_scales_are_the_oracles(name: str) -> None:
    fmt = BlockFormat.from_name(name)
    for rule in rules_of(fmt):
        tensor = {"tensor_scale": 0.375} if fmt.tensor_scale is not None and rule != "amax" else {}
        case = resolve("block_scale", fmt, rule=rule, **tensor)
        (x,) = operands = rows_of(case, 30)
        found, flags = case.run(operands)
        assert not flags.any()
        with np.errstate(invalid="ignore"):  # signalling NaNs
            numbers = x.view(np.float32).astype(float).tolist()
        for row, code in zip(numbers, found.tolist(), strict=True):
            expected = quantize_block(row, fmt, rule, **tensor).scale
            assert code == expected, (rule, row, code, expected)


def exact_element(x: float, code: int, fmt: BlockFormat, rule: str, tensor: float | None) -> tuple[int, int] | None:
    """A finite number under a finite scale above zero."""
    scale = reference.decode(code, fmt.scale)
    if scale.is_nan or not scale.magnitude or not np.isfinite(x) or isinstance(fmt.element, Fixed):
        return None
    shared, factor = scale.magnitude, Fraction(1 if tensor is None else tensor)
    if fmt.power_of_two_scale:
        scaled: Any = Fraction(x) / shared
    elif rule == "te":
        scaled = times(Fraction(x), over(Fraction(1), times(shared, factor)))
    elif rule == "torchao":
        scaled = times(Fraction(x), over(over(Fraction(1), factor), shared))
    else:
        scaled = times(Fraction(x), over(Fraction(1), shared))
    if (isinstance(scaled, float) and not np.isfinite(scaled)) or not scaled:
        return None
    return reference.encode(scaled, fmt.element, overflow="saturate")


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8_e4m3", "mxfp6_e3m2", "nvfp4"])
def test_elements_are_the_oracles(name: str) -> None:
    fmt, held = BlockFormat.from_name(name), 0
    for rule in rules_of(fmt)[:3]:
        tensor = 0.0625 if fmt.tensor_scale is not None and rule != "amax" else None
        case = resolve("block_quantize", fmt, rule=rule, tensor_scale=tensor)
        operands = rows_of(case, 400)
        found = case.run(operands)
        for x, scale, code, flag in zip(operands[0].view(np.float32), operands[1], *found, strict=True):
            expected = exact_element(float(x), int(scale), fmt, rule, tensor)
            if expected is not None:
                assert (int(code), int(flag)) == expected, (x, scale)
                held += 1
    assert held > 500


@pytest.mark.parametrize("name", list(BLOCK_ROSTER))
def test_given_scales_are_taken(name: str) -> None:
    """Quantising again under the scales that quantising made gives the same blocks and flags."""
    random = np.random.default_rng(7)
    x = (random.standard_normal((6, 64)) * np.exp2(random.integers(-140, 120, (6, 64)))).astype(np.float32)
    x[0, 3], x[1, 40], x[2, :32] = np.nan, np.inf, 0
    for rule in rules_of(BLOCK_ROSTER[name]):
        blocks, flags = bits.quantize(x, name, rule)
        more = {} if BLOCK_ROSTER[name].tensor_scale is None else {"tensor_scale": blocks.tensor_scale}
        again, raised = bits.quantize(x, name, rule, scales=blocks.scales, **more)
        np.testing.assert_array_equal(again.elements, blocks.elements)
        np.testing.assert_array_equal(again.scales, blocks.scales)
        np.testing.assert_array_equal(raised, flags)


def test_given_scales_are_checked() -> None:
    x = np.ones((2, 64), np.float32)
    with pytest.raises(ValueError, match=r"scales must have the shape \(2, 2\)"):
        bits.quantize(x, "mxfp4", scales=[127, 127])
    with pytest.raises(ValueError, match="scales holds 0x100, which is no code of float8_e8m0fnu"):
        bits.quantize(x, "mxfp4", scales=np.full((2, 2), 256))
    with pytest.raises(ValueError, match="four_over_six"):
        bits.quantize(x, "nvfp4", four_over_six="mae", scales=np.zeros((2, 4), np.uint8))


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8_e5m2", "mxint8", "nvfp4"])
def test_numbers_are_the_oracles(name: str) -> None:
    fmt = BlockFormat.from_name(name)
    tensor = 3.0 if fmt.tensor_scale is not None else None
    case = resolve("block_dequantize", fmt, tensor_scale=tensor)
    operands = rows_of(case, 300)
    found, flags = case.run(operands)
    assert not flags.any()
    for element, scale, code in zip(*operands, found, strict=True):
        (expected,) = dequantize_block([int(element)], int(scale), fmt, tensor)
        value = np.uint64(code).view(np.float64)
        same = (
            np.isnan(value)
            if expected != expected
            else value == expected and np.signbit(value) == np.signbit(float(expected))
        )
        assert same, (element, scale, value, expected)


@pytest.mark.parametrize("accumulator", ACCUMULATORS)
def test_scaled_products_are_those_of_bits(accumulator: str) -> None:
    case = resolve("block_vecdot", ("mxfp8_e4m3", "mxfp4"), accumulator=accumulator, addend=True)
    a, b, scales_a, scales_b, c = operands = rows_of(case, 50)
    first = bits.BlockCodes(a, scales_a, "mxfp8_e4m3", axis=1)
    second = bits.BlockCodes(b, scales_b, "mxfp4", axis=1)
    codes, flags = bits.vecdot_blocks(first, second, case.accumulator, c)
    found = case.run(operands)
    np.testing.assert_array_equal(found[0], codes)
    np.testing.assert_array_equal(found[1], flags)
    assert {x.name: x.length for x in case.columns} == {
        "a": 64, "b": 64, "scale_a": 2, "scale_b": 2, "c": None, "result": None, "flags": None,
    }  # fmt: skip


# -- files -----------------------------------------------------------------------------------------------------------

CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("block_scale", "mxfp4", {}),
    ("block_scale", "nvfp4", {"rule": "torchao", "tensor_scale": 2.0}),
    ("block_quantize", "mxfp8_e4m3", {}),
    ("block_quantize", "mxint8", {}),
    (
        "block_quantize",
        "mxfp4",
        {"environment": softfloat.Environment(rounding="stochastic", overflow="saturate", sr_bits=5)},
    ),
    ("block_dequantize", "nvfp4", {"tensor_scale": 0.5}),
    ("block_vecdot", "mxfp4", {"accumulator": 'exact("float32")'}),
    ("block_vecdot", "mxint8", {"accumulator": 'fma("float32")', "length": 40}),
]


@pytest.mark.parametrize(
    ("distribution", "suffix"), [("mixed", ".npz"), ("bits", ".txt"), ("normal", ".txt"), ("ties", ".npz")]
)
@pytest.mark.parametrize("case", CASES, ids=[f"{x[0]} {x[1]} {i}" for i, x in enumerate(CASES)])
def test_files_pass(case: tuple[str, Any, dict[str, Any]], suffix: str, distribution: str, tmp_path: Path) -> None:
    name, fmt, options = case
    resolved, path = resolve(name, fmt, **options), tmp_path / f"rows{suffix}"
    assert write_vectors(path, resolved, 300, distribution=distribution) == 300
    report = check_vectors(path, resolved)
    assert (report.rows, report.mismatches, report.well_formed) == (300, 0, True)


def test_corners_are_many_and_the_same() -> None:
    for level, least in ((1, 1000), (2, 20_000)):
        rows = corners_of(resolve("block_quantize", "mxfp4"), level)
        assert rows.count > least
        again = corners_of(resolve("block_quantize", "mxfp4"), level)
        index = np.arange(0, rows.count, 97)
        for x, y in zip(rows.operands(index), again.operands(index), strict=True):
            np.testing.assert_array_equal(x, y)
    scales = corners_of(resolve("block_quantize", "mxfp4"), 2).operands(np.arange(20_000, rows.count))[1]
    assert len(np.unique(corners_of(resolve("block_dequantize", "mxfp4"), 1).operands(np.arange(4096))[1])) == 256
    assert len(np.unique(scales)) > 100


# -- verdicts --------------------------------------------------------------------------------------------------------


def judged(right: Case, wrong: Case | None = None, change: Any = None, level: str = "1") -> Any:
    """The report on a device that is another case, or that changes operands."""
    stream = io.BytesIO()
    write_vectors(stream, right if wrong is None else wrong, level=level)
    if change is not None:
        stream = change(right)
    stream.seek(0)
    return check_vectors(stream, right)


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (("block_scale", "mxfp4"), {"rule": "ceil"}, "rule ceil"),
    (("block_scale", "mxfp8_e4m3"), {"rule": "even"}, "rule even"),
    (("block_scale", "mxfp8_e4m3"), {"rule": "rceil"}, "rule rceil"),
    (("block_scale", "nvfp4"), {"rule": "torchao"}, "rule torchao"),
    (("block_scale", "mxfp4"), {"special": {"zero_block": "one"}}, "zero_block one"),
    (("block_scale", "mxfp4"), {"special": {"nans": "element"}}, "nans element"),
    (("block_scale", "mxfp4"), {"special": {"infinities": "saturate"}}, "infinities saturate"),
    (("block_quantize", "mxfp4"), {"special": {"nan_to": "negative_zero"}}, "nan_to negative_zero"),
]


@pytest.mark.parametrize(("operation", "mistake", "name"), WRONG, ids=[x[2] for x in WRONG])
def test_other_choices_are_named(operation: Any, mistake: dict[str, Any], name: str) -> None:
    report = judged(resolve(*operation), resolve(*operation, **mistake))
    assert report.mismatches
    assert report.findings[0].share == 1
    assert name in [finding.name for finding in report.findings if finding.share == 1]


def device(right: Case, change: Any) -> Any:
    """Rows of level 1, or every so many of them, whose results come from changed operands."""
    rows = corners_of(right, 1)
    index = np.unique(np.linspace(0, rows.count - 1, 3000).astype(np.int64))
    operands = rows.operands(index)
    results, flags = right.run(change(*operands))
    stream = io.BytesIO()
    np.savez(stream, **{x.name: y for x, y in zip(right.columns, [*operands, results, flags], strict=True)})
    stream.seek(0)
    return check_vectors(stream, right)


MISREAD: list[tuple[Any, dict[str, Any], Any, str]] = [
    (("block_quantize", "mxfp4"), {}, lambda x, s: [x, np.maximum(s, 1)], "scale code 0 as 1"),
    (("block_quantize", "mxfp4"), {}, lambda x, s: [x, np.full_like(s, 127)], "scale ignored"),
    (("block_dequantize", "mxfp8_e4m3"), {}, lambda e, s: [e, np.clip(254 - s.astype(int), 0, 254).astype(np.uint8)], "scale inverted"),
    (("block_dequantize", "mxfp4"), {}, lambda e, s: [e, np.minimum(s, 254)], "NaN scale ignored"),
    (("block_vecdot", "mxfp4"), {"accumulator": 'exact("float32")'}, lambda a, b, x, y: [a, b, x, np.full_like(y, 127)], "scales of b ignored"),
    (("block_vecdot", "mxfp4"), {"accumulator": 'exact("float32")'}, lambda a, b, x, y: [a, b, x[:, ::-1], y[:, ::-1]], "scales reversed"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "options", "change", "name"), MISREAD, ids=[x[3] for x in MISREAD])
def test_misread_scales_are_named(operation: Any, options: dict[str, Any], change: Any, name: str) -> None:
    report = device(resolve(*operation, **options), change)
    assert report.mismatches
    assert name in [finding.name for finding in report.findings if finding.share == 1], report.findings


def test_a_logarithm_in_float32_is_named() -> None:
    """microxcaling's: 0x407FFFFF is the predecessor of 4, and its scale in e2m1 that of 4."""
    right = resolve("block_scale", "mxfp4")
    rows = corners_of(right, 1)
    operands = rows.operands(np.arange(rows.count))
    results, flags = right.run(operands)
    amax = np.abs(operands[0].view(np.float32)).max(axis=1)
    ordinary = np.isfinite(amax) & (amax >= 2.0**-126)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log2(amax.astype(np.float64)).astype(np.float32))
    found = np.where(ordinary, np.clip(np.where(ordinary, exponents, 0) - 2 + 127, 0, 254), results).astype(np.uint8)
    stream = io.BytesIO()
    np.savez(stream, x=operands[0], result=found, flags=flags)
    stream.seek(0)
    report = check_vectors(stream, right)
    assert "float32 logarithm" in [finding.name for finding in report.findings if finding.share == 1]
    identified = identify_scales(operands[0].view(np.float32)[ordinary], found[ordinary][:, None], "mxfp4")
    assert [(fit.rule, fit.named) for fit in identified.fits] == [("float32 logarithm", False)]
    predecessor = np.full((1, 32), 0x407FFFFF, np.uint32)
    assert right.run([predecessor])[0].tolist() == [126]


# -- which rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mxfp4", "mxfp8_e4m3", "nvfp4"])
def test_every_rule_is_recovered(name: str) -> None:
    fmt = BlockFormat.from_name(name)
    tensor = 0.25 if fmt.tensor_scale is not None else None
    known = {} if tensor is None else {"tensor_scale": tensor}
    x = np.concatenate(
        [rows_of(resolve("block_scale", fmt, rule=rule, tensor_scale=tensor), 200)[0] for rule in rules_of(fmt)[:2]]
    )
    x = x.view(np.float32)
    magnitudes = np.abs(x).max(axis=1)
    ordinary = np.isfinite(magnitudes) & (magnitudes >= 2.0**-126)
    made = {rule: bits.quantize(x, fmt, rule, flags="any", **known)[0].scales for rule in rules_of(fmt)}
    for rule, scales in made.items():
        fits = [fit.rule for fit in identify_scales(x, scales, fmt, **known).fits]
        assert rule in fits
        # an option of special blocks may make another rule the same
        assert set(fits) <= {other for other in made if (made[other] == scales)[ordinary].all()}, (rule, fits)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(["floor", "even", "rceil"]))
def test_options_are_recovered(data: st.DataObject, rule: str) -> None:
    chosen = {name: data.draw(st.sampled_from(SPECIAL[name]), name) for name in ("zero_block", "nans", "infinities")}
    x = np.random.default_rng(3).normal(size=(40, 32)).astype(np.float32)
    x[0] = 0
    x[1, 4], x[2, 5] = np.nan, np.inf
    scales = bits.quantize(x, "mxfp4", rule, flags="any", **chosen)[0].scales
    found = identify_scales(x, scales, "mxfp4")
    fit = next(fit for fit in found.fits if fit.rule == rule)
    options, undecided = dict(fit.options), dict(fit.open)
    for name, value in chosen.items():
        assert options.get(name) == value or value in undecided[name]
    assert found.blocks == {"ordinary": 37, "subnormal": 0, "zeros": 1, "infinite": 1, "NaN": 1}


def test_contradictions_are_shown() -> None:
    x = np.random.default_rng(5).normal(size=(8, 64)).astype(np.float32)
    scales = bits.quantize(x, "mxfp4", flags="any")[0].scales.copy()
    scales[3, 1] += 2
    found = identify_scales(x, scales, "mxfp4")
    assert found.fits == []
    nearest = found.nearest[0]
    assert (nearest.rule, nearest.mismatches, nearest.wrong["ordinary"]) == ("floor", 1, 1)
    (example,) = nearest.examples
    assert example["block"] == [3, 1]
    assert example["found"] == example["expected"] + 2
    assert float.fromhex(example["amax"]) == np.abs(x[3, 32:]).max()


def test_blocks_that_decide_are_proposed() -> None:
    x = np.random.default_rng(5).normal(size=(4, 64)).astype(np.float32)
    found = identify_scales(x, bits.quantize(x, "mxfp4", "rceil", flags="any")[0].scales, "mxfp4")
    names = {fit.rule for fit in found.fits}
    assert {"rceil", "smallest"} <= names
    for entry in found.undecided:
        amax = np.zeros((1, 32), np.float32)
        amax[0, 0] = float.fromhex(entry["amax"])
        for name, code in entry["codes"].items():
            assert int(bits.quantize(amax, "mxfp4", name, flags="any")[0].scales[0, 0]) == code
        assert len(set(entry["codes"].values())) > 1
    assert found.undecided


def test_scales_of_tiles_and_other_axes() -> None:
    x = np.random.default_rng(6).normal(size=(32, 48)).astype(np.float32)
    for where in ({"axis": 0}, {"block": (16, 16)}, {"block": 8}):
        scales = bits.quantize(x, "nvfp4", flags="any", **where)[0].scales
        assert "te" in [fit.rule for fit in identify_scales(x, scales, "nvfp4", **where).fits]
    with pytest.raises(ValueError, match=r"scales must be 96 codes"):
        identify_scales(x, np.zeros(5, np.uint8), "nvfp4")
    with pytest.raises(ValueError, match="float32 numbers"):
        identify_scales(np.array([0.1]), np.zeros(1, np.uint8), "mxfp4")


# -- the command line ------------------------------------------------------------------------------------------------


def test_commands(tmp_path: Path) -> None:
    rows, archive = str(tmp_path / "rows.txt"), tmp_path / "scales.npz"
    assert Run("vectors", "block_scale", "-f", "mxfp4", "--rule", "even", "--level", "1", "-o", rows).status == 0
    assert Run("check", rows, "--op", "block_scale", "-f", "mxfp4", "--rule", "even").status == 0
    report = Run("check", rows, "--op", "block_scale", "-f", "mxfp4", "--json")
    assert report.status == 1
    assert report.document["causes"][0]["name"] == "rule even"
    found = Run("identify", "--scales", rows, "-f", "mxfp4", "--json")
    assert found.status == 0
    assert [fit["rule"] for fit in found.document["fits"]] == ["even"]
    x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    blocks, _ = bits.quantize(x, "nvfp4", "torchao")
    np.savez(archive, x=x, scales=blocks.scales, tensor_scale=blocks.tensor_scale)
    text = Run("identify", "--scales", str(archive), "-f", "nvfp4")
    assert text.status == 0
    assert "torchao" in text.out
    np.savez(archive, x=x, scales=blocks.scales ^ 1, tensor_scale=blocks.tensor_scale)
    text = Run("identify", "--scales", str(archive), "-f", "nvfp4")
    assert text.status == 1
    assert "no rule explains every scale" in text.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("vectors", "block_scale", "-f", "float16"), ("unknown block format", "mxfp4")),
        (("vectors", "block_scale"), ("needs a format", "block format")),
        (("vectors", "block_scale", "-f", "mxfp4", "--rule", "te"), ("rule", "accepted")),
        (("vectors", "block_scale", "-f", "mxfp4", "--tensor-scale", "2"), ("tensor_scale", "nvfp4")),
        (("vectors", "block_quantize", "-f", "nvfp4", "--tensor-scale", "0.1"), ("tensor_scale", "float32")),
        (("vectors", "block_quantize", "-f", "mxfp4", "--special", "zero_block"), ("NAME=VALUE",)),
        (("vectors", "block_quantize", "-f", "mxfp4", "--special", "zero_block=two"), ("zero_block", "smallest")),
        (("vectors", "block_quantize", "-f", "mxfp4,nvfp4"), ("block_vecdot",)),
        (("vectors", "block_vecdot", "-f", "mxfp4"), ("accumulator",)),
        (("vectors", "block_dequantize", "-f", "mxfp4", "--length", "3"), ("length", "vecdot")),
        (("vectors", "block_quantize", "-f", "mxfp4", "--level", "exhaustive"), ("exhaustive", "1 099 511 627 776")),
        (("vectors", "add", "-f", "half", "--rule", "floor"), ("rule", "block_scale")),
        (("identify", "--scales", "nothing.npz", "-f", "mxfp4"), ("nothing.npz",)),
        (("identify", "--scales", "nothing.npz"), ("--format", "mxfp4")),
    ],
)
def test_refusals(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    Run(*arguments).assert_error(*words)
