"""What formats, codes and arrays look like: the data behind every figure, and figures and tables that can be read."""

import io
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise

import ml_dtypes
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from operands import CUSTOM
from rich.console import Console

import softfloat
from softfloat import ROSTER, Environment, Format, Rounding, arrays, bits, display, experiments, markup, reference
from softfloat.accumulators import chunked, fma
from softfloat.display.drawing import LINES, percent_text
from softfloat.experiments import figures
from softfloat.formats import bit_fields, code_text, fields_html, fields_rich, special_values

NARROW = [fmt for fmt in (*ROSTER.values(), *CUSTOM) if fmt.bits <= 16]
DETERMINISTIC = [mode for mode in Rounding if not mode.draws]
E6M9 = CUSTOM[0]
BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"


def finite_values(fmt: Format) -> np.ndarray:
    """All finite values of a format, each once, in order, by decoding every code."""
    values = bits.decode(np.arange(1 << fmt.bits).astype(fmt.dtype), fmt)
    return np.unique(values[np.isfinite(values)] + 0.0)


def half_exp(x: np.ndarray) -> np.ndarray:
    return np.exp(x.astype(np.float32)).astype(np.float16).astype(float)


def numbers_of_many_sizes() -> np.ndarray:
    random = np.random.default_rng(0)
    values = random.normal(0, 1, 4000) * 2.0 ** random.normal(-20, 6, 4000)
    values[:100] = 0
    return values


# -- text as numbers -------------------------------------------------------------------------------------------------


def test_constants_of_c_are_numbers():
    assert display.parse_value("0.5f") == display.parse_value(".5L") == display.parse_value("0x1p-1F") == 0.5
    assert display.parse_value("-25e-1f") == -2.5
    assert display.parse_value("0x1f") == 31  # a code: C has no suffix there
    assert display.parse_value("0x1.8f") == 1 + 0x8F / 256
    for text in ("f", "1ff", "inff", "+-inf"):
        with pytest.raises(ValueError, match="neither a code nor a number"):
            display.parse_value(text)


def test_a_number_is_inspected_under_every_option_of_encode():
    assert display.inspect_number("1e9", "float16", overflow="saturate").code == 0x7BFF
    drawn = [display.inspect_number("0.1", "float16", "SR", sr_bits=1, random_bits=x).code for x in (0, 1)]
    assert drawn == [0x2E66, 0x2E66]
    drawn = [display.inspect_number("0.1", "float16", "SR", sr_bits=3, random_bits=x).code for x in (0, 7)]
    assert drawn == [0x2E66, 0x2E67]


# -- figures that can be read ----------------------------------------------------------------------------------------


def drawn_by(render: Callable[[], object]) -> list[Text]:
    """The texts that are really drawn."""
    drawn: list[Text] = []
    draw = Text.draw

    def record(self, *args, **options):
        if self.get_visible() and self.get_text().strip() and self not in drawn:
            drawn.append(self)
        return draw(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", record)
        render()
    return drawn


def rendered(figure: Figure) -> tuple[np.ndarray, list[Text]]:
    """A figure's picture as integers, and the texts in it."""
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    drawn = drawn_by(canvas.draw)
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int), drawn


def assert_readable(figure: Figure) -> np.ndarray:
    """No text is cut off by the figure's edge, and no two overlap. Returns the picture."""
    pixels, drawn = rendered(figure)
    width, height = figure.bbox.size
    boxes = [(text.get_text(), text.get_window_extent()) for text in drawn]
    assert boxes
    for text, box in boxes:
        inside = box.x0 >= -1 and box.x1 <= width + 1 and box.y0 >= -1 and box.y1 <= height + 1
        assert inside, f"{text!r} at {box} is cut off by a figure of {width} x {height}"
    for (one, a), (other, b) in combinations(boxes, 2):
        across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 1 or down < 1, f"{one!r} at {a} and {other!r} at {b} overlap"
    return pixels


def labels(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in drawn_by(figure.draw_without_rendering))


def sums(*rows, **options):
    return [experiments.running_sum(fmt, rounding=mode, count=400, increment=0.01, **options) for fmt, mode in rows]


STAIRCASES = [ROSTER[name] for name in ("float16", "float32", "float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn")]
STAIRCASES += CUSTOM
FIGURES = {
    "number line of e4m3fn": lambda: display.number_line("e4m3fn"),
    "number line of narrow formats": lambda: display.number_line("e2m1", "e2m3", "e3m2"),
    "number line of half and bfloat16": lambda: display.number_line("float16", "bfloat16", "tf32"),
    "number line of powers of two": lambda: display.number_line("e8m0"),
    "number line of float32 next to 1": lambda: display.number_line("float32"),
    "number line of float32, dense": lambda: display.number_line("float32", E6M9, low=-1, high=3),
    "number line of subnormals": lambda: display.number_line("float16", low=0, high=2**-14),
    "number line far out": lambda: display.number_line("bfloat16", low=1e38, high=1.1e38),
    "number line, logarithmic": lambda: display.number_line("e4m3fn", "e5m2", "float16", E6M9, scale="log"),
    "number line, logarithmic, of 8 exponent bits": lambda: display.number_line("bfloat16", "e8m0", scale="log"),
    "number line of seven": lambda: display.number_line(*list(ROSTER)[4:11]),
    "spacing of one": lambda: display.spacing("e2m1"),
    "spacing of several": lambda: display.spacing("float16", "bfloat16", "e4m3fn", "e5m2"),
    "spacing of seven": lambda: display.spacing(*CUSTOM),
    "spacing of 8 exponent bits": lambda: display.spacing("float32", "e8m0"),
    "spacing of a part": lambda: display.spacing("float16", "e5m2", low=0.5, high=1e9),
    **{f"staircase of {fmt}": lambda fmt=fmt: display.staircase(fmt) for fmt in STAIRCASES},
    "staircase to infinity": lambda: display.staircase("e5m2", 40_000, 70_000),
    "staircase next to 1": lambda: display.staircase("bfloat16", 1, 1.1, ["nearest_even", "stochastic", "to_odd"]),
    "staircase of float32 next to 1": lambda: display.staircase("float32", 1 - 2**-22, 1 + 2**-21),
    "staircase of one mode": lambda: display.staircase("e4m3fn", 0.5, 4, "stochastic"),
    "staircase of five modes": lambda: display.staircase("e3m4", 10, 20, list(Rounding)[:5]),
    "error of exp": lambda: display.function_error(half_exp, "float16", -12, 11, reference="exp", points=3000),
    "error of sqrt": lambda: display.function_error("sqrt", "float16", points=3000),
    "error of sqrt toward zero": lambda: display.function_error("sqrt", "e4m3fn", 1, 4, rounding="toward_zero"),
    "error of sin": lambda: display.function_error("sin", "bfloat16", scale="log", points=500),
    "error of tanh": lambda: display.function_error("tanh", E6M9, scale="symlog", points=500),
    "error of log": lambda: display.function_error("log", "e8m0"),
    "histogram": lambda: display.exponent_histogram(numbers_of_many_sizes(), "float16", [1, 1024, 2.0**20]),
    "histogram of fp8": lambda: display.exponent_histogram(numbers_of_many_sizes(), "e4m3fn"),
    "histogram of fp4": lambda: display.exponent_histogram(numbers_of_many_sizes(), "e2m1", 4.0 ** np.arange(0, 12, 2)),
    "histogram of powers of two": lambda: display.exponent_histogram(numbers_of_many_sizes(), "e8m0", [1, 1 / 3]),
    "histogram of a custom format": lambda: display.exponent_histogram([1e-3, 1e30, -1e-30, np.inf, 0], E6M9, [1e5]),
    "running sums": lambda: figures.running_sums(
        *sums(("float16", "nearest_even")), *sums(("float16", "stochastic"), runs=5)
    ),
    "running sums, formats": lambda: figures.running_sums(
        *sums(*((name, "nearest_even") for name in ("float16", "bfloat16", "e5m2", "float32")))
    ),
    "running sums, environments and accumulators": lambda: figures.running_sums(
        *sums(("e5m2", "nearest_even")),
        experiments.running_sum(
            "e5m2",
            environment=Environment(rounding="stochastic", sr_bits=4),
            accumulator=chunked(8, "float8_e5m2", "float16"),
            count=400,
            increment=0.01,
            runs=3,
        ),
    ),
    "dot swamping, an environment": lambda: figures.dot_swamping(
        experiments.dot_swamping(
            [16, 64, 256], dots=2, accumulators=[fma("float16")], environment=Environment(rounding="toward_zero")
        )
    ),
    "running sums, modes": lambda: figures.running_sums(*sums(*(("float16", mode) for mode in DETERMINISTIC[:6]))),
    "running sum": lambda: figures.running_sums(*sums(("e5m2", "toward_positive"))),
    "dot swamping": lambda: figures.dot_swamping(experiments.dot_swamping([16, 64, 256, 4096], dots=2)),
    "chunking": lambda: figures.chunking(experiments.chunking(256, dots=2)),
    "block FMA": lambda: figures.block_fma(experiments.block_fma_bounds([16, 64, 256], dots=2)),
    "stochastic sums": lambda: figures.stochastic_sums(experiments.stochastic_sums([16, 64, 256], runs=4)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_read(name):
    figure = FIGURES[name]()
    assert isinstance(figure, Figure)
    assert isinstance(figure.canvas, FigureCanvasAgg)
    pixels = assert_readable(figure)
    for axes in figure.axes:
        if axes.get_visible() and axes.get_subplotspec().is_last_row():
            assert axes.get_xlabel()
    assert pixels.shape[1] == 1200
    assert (pixels[:, [0, -1]] == 255).all()
    assert (pixels[[0, -1]] == 255).all()
    assert len(np.unique(pixels[::2, ::2] @ (1 << 16, 1 << 8, 1))) > 10


def test_labels_follow_their_accumulator_and_not_its_place():
    rows = experiments.dot_swamping([16, 64], dots=2)[::-1]
    rows += tuple(replace(row, accumulator="pairwise('float16')") for row in rows[:2])
    labels = figures.dot_swamping(rows).axes[0].get_legend_handles_labels()[1]
    known = ["multiply-adds in half", "AMP, float partials", "AMP, half partials"]
    assert labels == [*known, "pairwise('float16')"]
    rows = experiments.block_fma_bounds([16, 64], dots=2)[::-1]
    rows += tuple(replace(row, output="bfloat16") for row in rows[:2])
    labels = figures.block_fma(rows).axes[0].get_legend_handles_labels()[1]
    known = ["V100, result in single", "V100, rounded to half at the end", "multiply-adds in half"]
    assert labels[::2] == [*known, f"{rows[0].accumulator} to bfloat16"]
    assert labels[1::2] == ["its bound, 2.5·n·u32", "its bound, u16 + 2.5·n·u32", "its bound, n·u16", "its bound"]


def test_the_title_of_chunks_is_of_the_curve_it_fits():
    """Errors are least in the middle where sums of chunks are added in half, among the shortest where in single."""
    rows = experiments.chunking(2**12, dots=2)
    best = {row.outer: row.chunk for row in sorted(rows, key=lambda row: -row.error)}
    assert 2**4 <= best["float16"] <= 2**8
    assert best["float32"] <= 2**4
    title = figures.chunking(rows).axes[0].get_title()
    assert title == "With all sums in float16, chunks of about √n lose least: n = 4096 products"


def test_the_check_of_readability_sees_what_is_wrong():
    figure = display.spacing("e2m1")
    figure.axes[0].set_title("x" * 200)
    with pytest.raises(AssertionError, match="cut off"):
        assert_readable(figure)
    figure = display.spacing("e2m1")
    figure.text(0.5, 0.5, "one")
    figure.text(0.5, 0.51, "other")
    with pytest.raises(AssertionError, match="overlap"):
        assert_readable(figure)


def test_lines_differ_in_more_than_colour():
    assert len({color for color, _, _ in LINES}) == len({str(dash) for _, dash, _ in LINES}) == len(LINES)
    assert len({marker for _, _, marker in LINES}) == len(LINES)


def test_figures_need_no_pyplot_and_notebooks_show_them():
    script = """
import sys
from softfloat import display
assert "matplotlib" not in sys.modules
figure = display.number_line("e2m1")
data, metadata = figure._repr_mimebundle_()
print(data["image/png"][:4], metadata["image/png"], "matplotlib.pyplot" in sys.modules, type(figure).__name__)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "b'\\x89PNG' {'width': 800} False Figure\n", done.stderr


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (lambda: display.number_line("e2m1"), lambda: display.staircase("e2m1")):
        with pytest.raises(ImportError, match=r'pip install "numba-softfloat\[plot\]"'):
            draw()


def test_saving(tmp_path):
    figure = display.number_line("e2m1")
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = tmp_path / f"line{suffix}"
        assert display.save(figure, str(path)) == path
        assert path.read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"\.gif.*\.png, \.svg, \.pdf"):
        display.save(figure, tmp_path / "line.gif")
    with pytest.raises(FileNotFoundError, match="no folder"):
        display.save(figure, tmp_path / "missing" / "line.png")
    assert {path.name for path in tmp_path.iterdir()} == {"line.png", "line.svg", "line.pdf"}


ERRORS = [
    (lambda: display.number_line(), ValueError, "formats must be one or more"),
    (lambda: display.number_line(*["e2m1"] * 8), ValueError, "formats must be at most 7"),
    (lambda: display.number_line("e2m4"), ValueError, "unknown format 'e2m4'; accepted: float16"),
    (lambda: display.number_line(8), TypeError, "formats must be a softfloat.Format"),
    (lambda: display.number_line("e2m1", scale="cubic"), ValueError, "scale must be one of 'linear', 'log'"),
    (lambda: display.number_line("e2m1", low=2, high=1), ValueError, "low must be less than high"),
    (lambda: display.number_line("e2m1", low=math.nan), ValueError, "low must be finite"),
    (lambda: display.number_line("e2m1", high="far"), TypeError, "high must be a number"),
    (lambda: display.number_line("e2m1", low=-1, scale="log"), ValueError, "low must be greater than 0"),
    (lambda: display.spacing(), ValueError, "formats must be one or more"),
    (lambda: display.spacing("e2m1", low=0), ValueError, "low must be greater than 0"),
    (lambda: display.spacing("e2m1", low=1e9, high=1e10), ValueError, "low to high must meet"),
    (lambda: display.spacing_steps("e2m1", -1), ValueError, "low must be greater than 0"),
    (lambda: display.staircase("half", 0, 1), ValueError, "low to high must hold at most 96 numbers of float16"),
    (lambda: display.staircase("half", roundings="up"), ValueError, "roundings must be one of 'nearest_even'"),
    (lambda: display.staircase("half", roundings=[]), ValueError, "roundings must be one or more"),
    (lambda: display.staircase("half", 1, 1), ValueError, "low must be less than high"),
    (lambda: display.steps("half", 0, 1e-7, "stochastic"), ValueError, "rounding must be one of the deterministic"),
    (lambda: display.function_error("sqr", "half"), ValueError, "function must be a callable or one of .*sqrt"),
    (lambda: display.function_error(3, "half"), TypeError, "function must be the name"),
    (lambda: display.function_error(lambda x: x, "half"), ValueError, "reference must be a callable or one of exp"),
    (lambda: display.function_error(abs, "half", reference=3), TypeError, "reference must be a name or a callable"),
    (lambda: display.function_error("sqrt", "half", rounding="SR"), ValueError, "rounding must be one of the determ"),
    (lambda: display.function_error("sqrt", "half", points=0), ValueError, "points must be a positive integer"),
    (lambda: display.function_error("sqrt", "half", points=True), ValueError, "points must be a positive integer"),
    (lambda: display.function_error("sqrt", "half", scale="lin"), ValueError, "scale must be one of .*'symlog'"),
    (lambda: display.function_error("sqrt", "half", -4, -1), ValueError, "exact value is finite, got none"),
    (lambda: display.function_error("sqrt", "e2m1", 1.1, 1.2), ValueError, "low to high must hold numbers of float4"),
    (lambda: display.function_error(np.sqrt, "e2m1"), ValueError, "numbers of float4_e2m1fn, rounded to it, and gave"),
    (lambda: display.function_error(lambda x: x[:1], "e2m1", reference="exp"), ValueError, "array of shape"),
    (lambda: display.exponent_histogram([1.0], "half", []), ValueError, "scales must be 1 to 6 numbers, got 0"),
    (lambda: display.exponent_histogram([1.0], "half", [1] * 7), ValueError, "scales must be 1 to 6 numbers, got 7"),
    (lambda: display.exponent_histogram([1.0], "half", [0]), ValueError, "scales must be greater than 0"),
    (lambda: display.exponent_histogram([0.0], "half"), ValueError, "values must hold finite numbers other than zero"),
    (lambda: display.exponent_shares(["x"], "half"), TypeError, "values must be an array of numbers"),
    (lambda: display.exponent_shares([1.0], "half", -1), ValueError, "scale must be greater than 0"),
    (lambda: display.exponent_shares([1.0], "half", "x"), TypeError, "scale must be a number"),
    (lambda: figures.running_sums(), ValueError, "sums must be 1 to 7"),
    (
        lambda: figures.running_sums(*sums(("half", "RNE")), experiments.running_sum(count=3)),
        ValueError,
        "same increment and count",
    ),
    (lambda: display.value_table("e2m4"), ValueError, "unknown format"),
    (lambda: display.value_table(None), TypeError, "fmt must be a softfloat.Format"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors_name_the_argument(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


# -- number line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_values_between_against_all_codes(fmt):
    values = finite_values(fmt)
    random = np.random.default_rng(1)
    ends = [(-fmt.max, fmt.max), (0.0, 1.0), (-1.0, 0.0), (fmt.tiny, 2 * fmt.tiny), (-fmt.tiny / 2, fmt.tiny / 3)]
    ends += [tuple(sorted(random.choice(values, 2) * random.uniform(0.9, 1.1, 2))) for _ in range(50)]
    for low, high in ends:
        expected = values[(values >= low) & (values <= high)]
        assert np.array_equal(display.values_between(fmt, low, high), expected)
        assert display.count_between(fmt, low, high) == len(expected)


def test_counts_of_float32():
    assert display.count_between("float32", 1, 2) == 2**23 + 1
    assert (
        display.count_between("float32", -np.inf, np.inf) == 2**32 - 2 * 2**23 - 1
    )  # NaN, infinities and one zero less


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_labels_of_the_number_line_count_codes(fmt):
    codes = np.arange(1 << fmt.bits).astype(fmt.dtype)
    figure = display.number_line(fmt, low=0 if fmt.mantissa_bits else None)
    found = labels(figure).replace(" ", "").replace(fmt.name, "")
    assert f"{len(finite_values(fmt))}numbers" in found
    nans = int(bits.isnan(codes, fmt).sum())
    assert (f"{nans}NaNcode" in found) == (nans > 0)
    assert ("±inf" in found, "inf" in found.replace("noinf", "").replace("±inf", "")) == (
        fmt.infinities and fmt.signed,
        fmt.infinities and not fmt.signed,
    )


@pytest.mark.parametrize("name", ["float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "e5m3_unsigned"])
def test_ticks_of_the_number_line(name):
    fmt = ROSTER.get(name) or next(fmt for fmt in CUSTOM if fmt.name == name)
    (axes,) = display.number_line(fmt).axes
    ticks = {}
    for lines in axes.collections:
        assert isinstance(lines, LineCollection)
        (color,) = {to_hex(color) for color in lines.get_colors()}
        ticks[color] = [segment[0][0] for segment in lines.get_segments()]
    values = finite_values(fmt)
    sizes = abs(values)
    assert ticks[BLUE] == values[sizes >= fmt.tiny].tolist()
    assert ticks[VERMILLION] == values[(sizes < fmt.tiny) & (sizes > 0)].tolist()
    assert ticks["#000000"] == [0.0]
    heights = {to_hex(lines.get_colors()[0]): np.ptp(lines.get_segments()[0][:, 1]) for lines in axes.collections}
    assert heights[VERMILLION] < heights[BLUE] < heights["#000000"]


def test_a_dense_number_line_shows_gaps_where_they_can_be_seen():
    (axes,) = display.number_line("float16", low=-1, high=3).axes
    (normal,) = (x for x in axes.collections if to_hex(x.get_colors()[0]) == BLUE)
    ticks = np.array([segment[0][0] for segment in normal.get_segments()])
    assert 3000 < len(ticks) < 6000  # of 31 743
    assert np.diff(ticks).max() < 0.002
    assert set(ticks.tolist()) <= set(finite_values(ROSTER["float16"]).tolist())
    assert "merge into a band" in axes.get_xlabel()
    assert "32 257 of 63 487 numbers" in labels(axes.figure)
    (axes,) = display.number_line("bfloat16", low=1, high=2**40, scale="log").axes
    (normal,) = axes.collections
    assert len(normal.get_segments()) > 2500


def test_windows_of_the_number_line():
    def ends(*formats, **options):
        (axes,) = display.number_line(*formats, **options).axes
        places = [segment[0][0] for lines in axes.collections for segment in lines.get_segments()]
        return min(places), max(places)

    assert ends("e4m3fn") == (-448, 448)
    assert ends("e4m3fn", "e2m1") == (-6, 6)
    assert ends("bfloat16", "float16") == (1 - 2**-4, 1 + 2**-4)
    assert ends("e8m0") == (2.0**-127, 2.0**127)
    assert ends("e4m3fn", scale="log") == (2.0**-9, 448)
    assert ends("e4m3fn", "bfloat16", scale="log") == (2.0**-9, 448)
    assert ends("e4m3fn", low=-2.1, high=3) == (-2, 3)
    assert ends("float16", low=-3e8, high=3e8) == (-65504, 65504)


def test_units_of_the_number_line():
    (axes,) = display.number_line("float32").axes
    figure = axes.figure
    assert "from 1 in units of" in axes.get_xlabel()
    found = dict(zip(axes.get_xticks().tolist(), (x.get_text() for x in axes.get_xticklabels()), strict=True))
    assert found[1.0] == "0"
    (exponent,) = {int(x) for x in axes.get_xlabel().split("{")[1].split("}")[:1]}
    for place, text in found.items():
        if place != 1:
            assert place == 1 + int(text.replace("\N{MINUS SIGN}", "-")) * 2.0**exponent
    assert figure.axes[0] is axes


# -- spacing ---------------------------------------------------------------------------------------------------------


def spacing_at(fmt: Format, x: np.ndarray, **options) -> np.ndarray:
    magnitudes, spacings = display.spacing_steps(fmt, **options)
    return spacings[np.searchsorted(magnitudes, x, side="right") - 1]


def test_spacing_against_numpy():
    values = np.arange(1, 0x7C00, dtype=np.uint16).view(np.float16)
    with np.errstate(over="ignore"):
        expected = np.spacing(values).astype(float)
    expected[-1] = 32  # NumPy counts the infinity
    assert np.array_equal(spacing_at(ROSTER["float16"], values.astype(float)), expected)
    values = 2.0 ** np.arange(-149, 128) * 1.25
    values = values[values >= 2**-149].astype(np.float32)
    expected = np.spacing(values).astype(float)
    assert np.array_equal(spacing_at(ROSTER["float32"], values.astype(float)), expected)


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_spacing_is_the_distance_to_the_next_number(fmt):
    values = finite_values(fmt)
    values = values[values > 0]
    assert np.array_equal(spacing_at(fmt, values[:-1]), np.diff(values))
    magnitudes, spacings = display.spacing_steps(fmt)
    assert (magnitudes[0], magnitudes[-1]) == (fmt.smallest_subnormal, fmt.max)
    assert len(magnitudes) == len(spacings)
    assert (np.diff(magnitudes) >= 0).all()


def test_spacing_of_a_part():
    magnitudes, spacings = display.spacing_steps("float16", 3.0, 9.0)
    assert magnitudes.tolist() == [3.0, 4.0, 8.0, 9.0]
    assert spacings.tolist() == [2**-9, 2**-8, 2**-7, 2**-7]
    assert [x.tolist() for x in display.spacing_steps("float16", 1e6, 1e7)] == [[], []]
    assert display.spacing_steps("float16", 1e-9, 1e9)[0][[0, -1]].tolist() == [2**-24, 65504]


def test_the_picture_of_spacing():
    (axes,) = display.spacing("float16", "bfloat16").axes
    half, brain = (line for line in axes.lines if line.get_drawstyle() == "steps-post")
    assert half.get_xdata()[-1] == 65504
    assert half.get_linestyle() != brain.get_linestyle()
    (mark,) = (line for line in axes.lines if line.get_drawstyle() != "steps-post")
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (65504, 32)  # bfloat16 ends beyond the picture
    assert brain.get_ydata()[0] == 2.0**-31
    assert {"float16: largest 65504", "bfloat16: largest 3.3895e+38"} <= set(labels(axes.figure).split("\n"))


# -- staircase -------------------------------------------------------------------------------------------------------

WINDOWS = [
    ("float4_e2m1fn", -7.0, 9.0),
    ("float8_e4m3fn", -0.01, 0.02),
    ("float8_e4m3fn", 380.0, 500.0),
    ("float8_e5m2", -80_000.0, -40_000.0),
    ("float8_e4m3fnuz", -0.003, 0.003),
    ("float8_e8m0fnu", 2.0**-127, 2.0**-124),
    ("float8_e8m0fnu", 0.4, 5.0),
    ("float16", -3e-7, 3e-7),
    ("float16", 1.99, 2.01),
    ("bfloat16", 1.0, 1.05),
    ("float32", 1.0, 1.000001),
    ("e5m7_no_subnormals", -(2.0**-14), 2.0**-14),
]


@pytest.mark.parametrize("mode", DETERMINISTIC, ids=lambda mode: mode.name)
@pytest.mark.parametrize(("name", "low", "high"), WINDOWS)
def test_steps_against_the_reference(name, low, high, mode):
    fmt = ROSTER.get(name) or next(fmt for fmt in CUSTOM if fmt.name == name)
    found = display.steps(fmt, low, high, mode)
    assert (found[0].first, found[-1].last) == (low, high)
    for one, following in pairwise(found):
        assert math.nextafter(one.last, math.inf) == following.first
        assert one.value != following.value
    for step in found:
        for x in {step.first, step.last, (step.first + step.last) / 2}:
            code, _ = reference.encode(x, fmt, rounding=mode)
            value = float(bits.decode(code, fmt))
            assert value == step.value or (math.isnan(value) and math.isnan(step.value))


def test_steps_take_the_options_of_encode():
    values = [step.value for step in display.steps("float8_e5m2", 5e4, 9e4, overflow="saturate")]
    assert values == [49152.0, 57344.0]
    assert [step.value for step in display.steps("float8_e5m2", 5e4, 9e4)] == [49152.0, 57344.0, math.inf]


def test_the_picture_of_a_staircase():
    figure = display.staircase("float4_e2m1fn", -6, 6, ["nearest_even", "to_odd"])
    for axes, mode in zip(figure.axes, ("nearest_even", "to_odd"), strict=True):
        found = display.steps("float4_e2m1fn", -6, 6, mode)
        drawn = [line for line in axes.lines if line.get_linestyle() == "-" and to_hex(line.get_color()) == BLUE]
        assert [tuple(line.get_xdata()) for line in drawn] == [(step.first, step.last) for step in found]
        assert [line.get_ydata()[0] for line in drawn] == [step.value for step in found]
        open_dots, full_dots = sorted(
            (line for line in axes.lines if line.get_marker() == "o"),
            key=lambda line: to_hex(line.get_markerfacecolor()) == BLUE,
        )
        for x, y in zip(full_dots.get_xdata(), full_dots.get_ydata(), strict=True):
            assert float(bits.decode(bits.encode(x, "e2m1", rounding=mode)[0], "e2m1")) == y
        for x, y in zip(open_dots.get_xdata(), open_dots.get_ydata(), strict=True):
            assert float(bits.decode(bits.encode(x, "e2m1", rounding=mode)[0], "e2m1")) != y
        jumps = {math.nextafter(a.last, 9) if a.last < b.first - 1 else a.last for a, b in pairwise(found)}
        assert len(full_dots.get_xdata()) + len(open_dots.get_xdata()) == 2 * len(jumps)


def test_a_staircase_hatches_what_is_lost():
    figure = display.staircase("float8_e5m2", 40_000, 70_000, ["nearest_even", "toward_zero", "stochastic"])
    nearest, zero, stochastic = figure.axes
    assert [len(axes.patches) for axes in figure.axes] == [1, 0, 1]
    assert nearest.patches[0].get_x() == 61440
    assert stochastic.patches[0].get_x() == pytest.approx(61440, abs=125)
    assert "infinity or NaN" in labels(figure)
    assert "infinity or NaN" not in labels(display.staircase("float8_e5m2", 40_000, 50_000))
    assert zero.get_title() == "toward zero"


@pytest.mark.parametrize(
    ("fmt", "low", "high", "said"),
    [
        ("float16", 65380, 65580, "P(infinity) > 0 from 65504 on"),
        ("float16", -65580, -65380, "P(infinity) > 0 from -65504 on"),
        ("float8_e4m3fn", 420, 500, "P(NaN) > 0 from 448 on"),
    ],
)
def test_a_stochastic_staircase_says_where_results_begin_to_be_lost(fmt, low, high, said):
    figure = display.staircase(fmt, low, high, "stochastic")
    assert said in labels(figure)
    begin = float(said.split()[-2])
    (axes,) = figure.axes
    assert begin in [line.get_xdata()[0] for line in axes.lines]
    for x, some in ((begin, False), (begin * (1 + 2**-8), True)):
        codes, _ = bits.encode(np.full(2000, x), fmt, rounding="stochastic", seed=0)
        assert np.any(~bits.isfinite(codes, fmt)) == some
    assert "P(" not in labels(display.staircase("float8_e5m2", 40_000, 50_000, "stochastic"))


def test_stochastic_candidates():
    found = softfloat.display.measures.candidates(ROSTER["float8_e4m3fn"], 1.0, 2.0, 96)
    assert np.array_equal(found.above - found.below, np.full(96, 0.125))
    expected = (found.middle - found.below) / 0.125
    assert abs(found.rising - expected).max() <= 1 / 256
    assert np.allclose(found.rising + found.falling, 1)
    assert not found.lost.any()
    found = softfloat.display.measures.candidates(ROSTER["float8_e4m3fn"], 440.0, 500.0, 60)
    assert found.lost[0] == 0
    assert found.lost[-1] == 1
    half = np.argmin(abs(found.middle - 464))  # half way from 448 to 480, which is no number
    assert found.lost[half] == pytest.approx(0.5, abs=0.03)
    assert found.rising[half] == pytest.approx(0.5, abs=0.03)


def test_the_picture_of_stochastic_rounding():
    (axes,) = display.staircase("e2m1", 1, 2, "stochastic").axes
    shades = {}
    for lines in axes.collections:
        for segment, color in zip(lines.get_segments(), lines.get_colors(), strict=True):
            shades.setdefault(segment[0][1], []).append((segment[:, 0].mean(), color[3]))
    assert sorted(shades) == [1.0, 1.5, 2.0]
    for x, alpha in shades[1.5]:
        assert alpha == pytest.approx(1 - abs(x - 1.5) / 0.5, abs=1 / 128)


# -- errors of functions ---------------------------------------------------------------------------------------------


def test_errors_of_a_function_with_known_faults():
    fmt = ROSTER["float16"]
    faults = np.array([2.0, 3.0, 0.1, 1000.0]).astype(np.float16).astype(float)

    def faulty(x):
        codes, _ = bits.sqrt(bits.encode(x, fmt)[0], fmt)
        return bits.decode(np.where(np.isin(x, faults), codes + 1, codes).astype(np.uint16), fmt)

    found = display.function_errors(faulty, fmt, 0, 2000, reference="sqrt")
    assert found.x[found.wrong].tolist() == sorted(faults.tolist())
    assert len(found.x) == display.count_between(fmt, 0, 2000)
    assert (abs(found.error[found.wrong]) >= 0.5).all()
    assert (abs(found.error[~found.wrong]) <= 0.5).all()
    two = found.error[found.x == 2.0][0]
    assert two == pytest.approx((1.4150390625 - math.sqrt(2)) / 2**-10, abs=1e-10)  # 0x3da9; sqrt(2) is 0x3da8
    figure = display.function_error(faulty, fmt, 0, 2000, reference="sqrt")
    assert "not correctly rounded: 4" in labels(figure)
    assert f"correctly rounded: {len(found.x) - 4:,}".replace(",", " ") in labels(figure)
    (crosses,) = (line for line in figure.axes[0].lines if line.get_marker() == "x")
    assert crosses.get_xdata().tolist() == sorted(faults.tolist())
    assert to_hex(crosses.get_color()) == VERMILLION


@pytest.mark.parametrize("mode", ["nearest_even", "toward_zero", "toward_positive", "toward_negative"])
@pytest.mark.parametrize("name", ["sqrt", "exp", "tanh", "expm1", "log2", "cbrt", "sin"])
def test_functions_of_bits_are_correctly_rounded_here_too(name, mode):
    for fmt in ("float8_e4m3fn", "float8_e5m2", "bfloat16"):
        found = display.function_errors(name, fmt, rounding=mode, points=300)
        assert not found.wrong.any()
        assert len(found.x) > 50
        errors = found.error[np.isfinite(found.error)]
        assert np.ptp(errors) > 0.4
        assert abs(errors).max() <= (0.5 if mode == "nearest_even" else 1)
        if mode == "toward_negative":
            assert errors.max() <= 0


def test_errors_beyond_the_range():
    found = display.function_errors("exp", "float16", 10, 200)
    last = math.log(65536)
    assert np.array_equal(np.isnan(found.error), found.x > last)
    assert (found.rounded[found.x > math.log(65520)] == math.inf).all()
    assert not found.wrong.any()
    beyond = display.function_errors(lambda x: np.full_like(x, 65504.0), "float16", 12, 13, reference="exp")
    assert beyond.wrong.all()
    assert np.isnan(beyond.error).all()
    assert "not correctly rounded: 129 (129 not drawn)" in labels(
        display.function_error(lambda x: np.full_like(x, 65504.0), "float16", 12, 13, reference="exp")
    )


def test_points_are_spread_over_the_range():
    found = display.function_errors("sqrt", "float16", points=1000)
    assert len(found.x) == 500  # as many negative numbers, and no roots of them
    assert 0 < found.x[0] < 64 * 2**-24
    assert found.x[-1] == 65504
    codes, _ = bits.encode(found.x, "float16")
    assert set(np.diff(codes.astype(int)).tolist()) <= {63, 64}
    whole = display.function_errors("sqrt", "float8_e4m3fn")
    assert np.array_equal(whole.x, finite_values(ROSTER["float8_e4m3fn"])[126:])
    both = display.function_errors("exp", "float8_e4m3fn", -1, 1)
    assert np.array_equal(both.x, display.values_between("float8_e4m3fn", -1, 1))


def test_names_of_numpy():
    def arcsin(x):
        return np.arcsin(x.astype(np.float16)).astype(float)

    found = display.function_errors(arcsin, "float16", -2, 2, points=200)
    assert found.name == "arcsin"
    assert abs(found.x).max() <= 1
    assert abs(found.error).max() < 0.51


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(1, 8, "linear"), (1, 100, "log"), (0, 100, "symlog"), (-1, 5, "symlog")]
)
def test_the_scale_of_arguments(low, high, scale):
    (axes,) = display.function_error("exp2", "e4m3fn", low, high).axes
    assert axes.get_xscale() == scale


# -- exponents -------------------------------------------------------------------------------------------------------


def test_shares_by_hand():
    values = [0.0, -0.0, 2.0**-26, -(2.0**-25), 2.0**-24, 2.0**-15, 2.0**-14, 1.0, 65504.0, -65520.0, 1e300]
    values += [math.inf, math.nan]
    found = display.exponent_shares(values, "float16")
    counts = (found.underflow, found.subnormal, found.normal, found.overflow, found.zeros, found.excluded)
    assert counts == (2, 2, 3, 2, 2, 2)  # 2^-25 is a tie and becomes zero; 65520 is the least that overflows
    assert (found.count, found.format, found.scale) == (9, "float16", 1.0)
    assert found.share("underflow") == pytest.approx(2 / 9)
    assert display.exponent_shares([0.0], "float16").share("normal") == 0
    scaled = display.exponent_shares(values, "float16", 2.0**10)
    counts = (scaled.underflow, scaled.subnormal, scaled.normal, scaled.overflow, scaled.zeros, scaled.excluded)
    assert counts == (0, 2, 4, 3, 2, 2)
    assert display.exponent_shares([[1e300, 1.0]], "float16", 1e300).overflow == 2


def test_shares_without_a_zero_or_a_sign():
    found = display.exponent_shares([2.0**-130, 2.0**-127, 1.0, 2.0**128, -1.0, 0.0], "float8_e8m0fnu")
    counts = (found.underflow, found.subnormal, found.normal, found.overflow, found.zeros, found.excluded)
    assert counts == (1, 0, 2, 1, 1, 1)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_shares_against_ml_dtypes(name):
    values = numbers_of_many_sizes() * 2.0**18
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    with np.errstate(over="ignore"):
        cast = values.astype(np.float32).astype(dtype).astype(float)
    fmt = ROSTER[name]
    found = display.exponent_shares(values, name)
    nonzero = values != 0
    assert found.underflow == (nonzero & (cast == 0)).sum()
    assert found.subnormal == ((cast != 0) & (abs(cast) < fmt.tiny)).sum()
    assert found.zeros == 100
    over = (abs(values) > fmt.max) & ~(abs(cast) == fmt.max) if fmt.has_nan else abs(values) >= 7
    assert found.overflow == over.sum()
    assert found.underflow + found.subnormal + found.normal + found.overflow == found.count == 3900


def test_the_picture_of_exponents():
    values = np.array([2.0**-30, 2.0**-26, 1.5 * 2.0**-26, 2.0**-20, 1.0, 1.5, 3.0, 1e6, 0.0])
    figure = display.exponent_histogram(values, "float16", [1, 2.0**-20])
    first, second = figure.axes
    bars = {(bar.get_x(), to_hex(bar.get_facecolor())): bar.get_height() for bar in first.patches}
    assert bars == {
        (-30, VERMILLION): 1,
        (-26, VERMILLION): 2,  # the smallest number is 2^-24, and half of it would become zero too
        (-20, "#e69f00"): 1,
        (0, BLUE): 2,
        (1, BLUE): 1,
        (19, "#cc79a7"): 1,
    }
    assert first.get_title("left") == "× 1: 37.50% become zero, 12.50% subnormal, 37.50% normal, 12.50% overflow"
    assert second.get_title("left").startswith("× $2^{-20}$: 50.00% become zero")
    assert "What becomes of 8 numbers in float16; not counted: 1 zeros" in labels(figure)
    hatches = {to_hex(bar.get_facecolor()): bar.get_hatch() for bar in first.patches}
    assert len(set(hatches.values())) == 4
    lines = [line.get_xdata()[0] for line in first.lines]
    assert lines == [-24, -14, math.log2(65504)]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (1, "100%"), (1e-9, "<0.01%"), (1 - 1e-9, ">99.99%"), (0.12345, "12.35%"), (0.0001, "0.01%")],
)
def test_percentages(share, text):
    assert percent_text(share) == text


# -- running sums ----------------------------------------------------------------------------------------------------


def test_the_picture_of_running_sums():
    nearest, stochastic = *sums(("float16", "nearest_even")), *sums(("float16", "stochastic"), runs=3)
    figure = figures.running_sums(nearest, stochastic)
    above, below = figure.axes
    colours = [to_hex(line.get_color()) for line in above.lines]
    assert colours.count(VERMILLION) == 1 + (nearest.stalled_after is not None)
    assert colours.count("#56b4e9") == 3
    flat = next(line for line in above.lines if to_hex(line.get_color()) == VERMILLION)
    assert np.array_equal(flat.get_ydata(), nearest.trajectory[:, 0])
    assert VERMILLION not in [to_hex(line.get_color()) for line in below.lines]
    mean = next(line for line in below.lines if to_hex(line.get_color()) == BLUE)
    exact = np.arange(401) * stochastic.increment
    assert np.allclose(mean.get_ydata(), stochastic.trajectory.mean(axis=1) - exact, atol=1e-12)
    thin = [line.get_ydata() for line in below.lines if to_hex(line.get_color()) == "#56b4e9"]
    assert np.allclose(np.transpose(thin), stochastic.trajectory - exact[:, None], atol=1e-12)
    assert "their mean" in labels(figure)
    assert below.get_ylabel() == "stochastic sum less exact sum"


def test_running_sums_of_several_formats():
    rows = sums(("float16", "nearest_even"), ("float8_e5m2", "nearest_even"))
    figure = figures.running_sums(*rows)
    found = labels(figure)
    assert rows[1].stalled_after is not None
    assert f"nearest even, float8_e5m2: {rows[1].final[0]:.5g} at the end, stalls after" in found
    assert "exact: 4 at the end" in found
    dashes = {str(line.get_linestyle()) + to_hex(line.get_color()) for line in figure.axes[1].lines}
    assert len(dashes) == 3


# -- tables of values ------------------------------------------------------------------------------------------------


def shown(renderable, width=120) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize("name", [name for name, fmt in ROSTER.items() if fmt.bits <= 8])
def test_whole_tables_against_ml_dtypes(name):
    fmt = ROSTER[name]
    table = display.value_table(name)
    assert table.whole
    assert [row.code for row in table.rows] == list(range(1 << fmt.bits))
    values = np.arange(1 << fmt.bits, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(float)
    assert np.array_equal([row.value for row in table.rows], values, equal_nan=True)
    for row, value in zip(table.rows, values.tolist(), strict=True):
        assert int(row.pattern.replace(".", ""), 2) == row.code
        assert [len(x) for x in row.pattern.split(".")] == [len(x) for x in fmt.layout.split(".")]
        assert row.kind.endswith("NaN") == math.isnan(value)
        if row.kind.endswith("ormal"):
            assert ("Subnormal" in row.kind) == (abs(value) < fmt.tiny)


@pytest.mark.parametrize("fmt", [fmt for fmt in (*ROSTER.values(), *CUSTOM) if fmt.bits <= 8], ids=str)
def test_the_grid_of_a_table_names_the_bits_of_each_value(fmt):
    table = display.value_table(fmt)
    down, along, cells, note = table._grid()
    assert len(along) <= 16
    seen = set()
    for row, line in zip(down, cells, strict=True):
        for column, text in zip(along, line, strict=True):
            parts = {}
            for field, digits in sorted((*row, *column), key=lambda part: list(markup.FIELD_STYLES).index(part[0])):
                parts[field] = parts.get(field, "") + digits
            code = int("".join(parts.values()), 2)
            seen.add(code)
            value = table.rows[code].value
            given = 2.0 ** int(text[2:]) if text.startswith("2^") else float(text)
            assert given == pytest.approx(value, rel=1e-3, nan_ok=True)
            assert given == value or value != np.trunc(value) or abs(value) >= 1e8 or text.startswith("2^")
    assert seen == set(range(len(table.rows) >> fmt.signed))
    assert ("negative" in note) == fmt.signed
    assert ("is NaN" in note) == (fmt.nan == "fnuz")
    caption = parsed(table._repr_html_()).find("caption")
    assert "white-space:nowrap" in caption.get("style")
    assert caption.text == fmt.name + (f" ({note})" if note else "")


def test_landmarks():
    found = {row.name: row for row in display.value_table("float16").rows}
    finfo = np.finfo(np.float16)
    assert not display.value_table("float16").whole
    assert list(found) == [
        *("zero", "smallest subnormal", "largest subnormal", "smallest normal", "below 1", "1", "above 1"),
        *("largest number", "infinity", "NaN"),
    ]
    assert found["smallest subnormal"].value == finfo.smallest_subnormal
    assert found["smallest normal"].value == finfo.tiny
    assert found["largest subnormal"].value == finfo.tiny - finfo.smallest_subnormal
    assert found["largest number"].value == finfo.max
    assert (found["below 1"].value, found["1"].value, found["above 1"].value) == (1 - finfo.epsneg, 1, 1 + finfo.eps)
    assert found["infinity"].value == math.inf
    assert math.isnan(found["NaN"].value)
    assert found["1"].pattern == "0.01111.0000000000"
    plain = [row.name for row in display.value_table(CUSTOM[3]).rows]
    assert "smallest subnormal" not in plain
    values = [row.value for row in display.value_table("float32").rows[:-1]]
    assert values == sorted(values)


@pytest.mark.parametrize("name", [*ROSTER, *(fmt.name for fmt in CUSTOM)])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_tables_fit_the_console(name, width):
    fmt = ROSTER.get(name) or next(fmt for fmt in CUSTOM if fmt.name == name)
    for renderable in (fmt, display.value_table(fmt), display.inspect_code(0, fmt)):
        text = shown(renderable, width)
        assert name in text.split("\n")[0]
        assert max(map(len, text.split("\n"))) <= width


# -- HTML and rich text ----------------------------------------------------------------------------------------------


def parsed(html: str) -> ElementTree.Element:
    """Well-formed, or this raises."""
    return ElementTree.fromstring(html)


def text_of(html: str) -> str:
    return " ".join(" ".join(parsed(html).itertext()).split())


def coloured(element: ElementTree.Element) -> list[tuple[str, str, str]]:
    """Field, digits and colour of spans that have a title."""
    spans = [span for span in element.iter("span") if span.get("title")]
    return [(span.get("title"), span.text, span.get("style").split("solid ")[1].lower()) for span in spans]


@pytest.mark.parametrize("fmt", [*ROSTER.values(), *CUSTOM], ids=str)
def test_fields_of_codes(fmt):
    for code in {0, 1, fmt.max_code, (1 << fmt.bits) - 1}:
        fields = bit_fields(code, fmt)
        assert "".join(digits for _, digits in fields) == f"{code:0{fmt.bits}b}"
        assert [name[0] * len(digits) for name, digits in fields] == fmt.layout.split(".")
        spans = coloured(parsed(fields_html(code, fmt)))
        colours = {"sign": VERMILLION, "exponent": GREEN, "fraction": BLUE}
        assert spans == [(name, digits, colours[name]) for name, digits in fields]
        assert text_of(fields_html(code, fmt)) == " ".join(digits for _, digits in fields)
        rich = fields_rich(np.uint32(code), fmt)
        assert rich.plain == " ".join(digits for _, digits in fields)
        styles = [(rich.plain[span.start : span.end], str(span.style).lower()) for span in rich.spans]
        assert styles == [(digits, colours[name]) for name, digits in fields]
        assert int(code_text(code, fmt), 16) == code
        assert len(code_text(code, fmt)) == 2 + math.ceil(fmt.bits / 4)


@pytest.mark.parametrize("fmt", [*ROSTER.values(), *CUSTOM], ids=str)
def test_formats_as_tables(fmt):
    html = text_of(fmt._repr_html_())
    rich = " ".join(shown(fmt).split())
    for text in (html, rich):
        assert text.startswith(f"{fmt.name} layout {fmt.layout.replace('.', ' ')} bits {fmt.bits}")
        assert f"max {fmt.max:.9g} smallest normal {fmt.tiny:.6g} = 2^{fmt.emin}" in text
        assert f"bias {fmt.bias}" in text
        assert f"p = {fmt.p}" in text
        assert f"eps {fmt.eps:.6g}" in text
        has_subnormals = fmt.smallest_subnormal < fmt.tiny
        assert ("smallest subnormal none" in text) == (not has_subnormals)
        assert (f"{fmt.smallest_subnormal:.6g} = 2^" in text) == has_subnormals or not has_subnormals
        if fmt.has_nan:
            assert f"code of NaN {code_text(fmt.nan_code, fmt)}" in text
        assert ("code of inf" in text) == fmt.infinities
    names = [name for name, _, _ in coloured(parsed(fmt._repr_html_()))]
    assert names == [name for name, _ in bit_fields(0, fmt)]


def test_special_values():
    found = {fmt.name: special_values(fmt) for fmt in (*ROSTER.values(), *CUSTOM)}
    assert found["float16"] == "inf, NaN"
    assert found["float8_e4m3fn"] == "NaN (±0x7f)"
    assert found["float8_e4m3fnuz"] == "NaN (0x80), no -0"
    assert found["float4_e2m1fn"] == "no inf, no NaN"
    assert found["float8_e8m0fnu"] == "NaN (0xff), unsigned, no zero"
    assert found["e5m7_no_subnormals"] == "inf, NaN, no subnormals"
    assert found["e4m3_p3109"] == "inf, NaN (0x80), no -0"
    assert found["e5m3_unsigned"] == "inf, NaN, unsigned"


def test_markup_is_escaped():
    odd = Format("<b>&[bold]", exponent_bits=4, mantissa_bits=3)
    array = np.array([1, 2], np.uint8)
    texts = np.array(["<i>", "[red]&"], object)
    for html in (
        odd._repr_html_(),
        display.value_table(odd)._repr_html_(),
        display.inspect_code(1, odd)._repr_html_(),
        arrays.array_html(array, odd, texts),
        arrays.array_html(array.reshape(1, 2), odd, texts.reshape(1, 2)),
    ):
        assert parsed(html).find("caption").text.startswith("<b>&[bold]")
        assert "<b>" not in html
        assert "<i>" not in html
    for renderable in (odd, display.value_table(odd), arrays.array_rich(array, odd, texts)):
        assert "<b>&[bold]" in shown(renderable)
    assert "[red]&" in shown(arrays.array_rich(array, odd, texts))
    assert "[red]&" in shown(arrays.array_rich(array.reshape(1, 2), odd, texts.reshape(1, 2)))


@pytest.mark.parametrize("shape", [(), (3,), (30,), (2, 3), (2, 30), (2, 2, 2)])
def test_columns_of_arrays_have_names(shape):
    codes = np.zeros(shape, np.uint16)
    assert not re.search("<th[^>]*></th>", arrays.array_html(codes, ROSTER["float16"], codes.astype(object)))


@pytest.mark.parametrize("fmt", [ROSTER["float16"], ROSTER["float4_e2m1fn"], ROSTER["float8_e8m0fnu"]], ids=str)
def test_columns_of_values_have_names(fmt):
    assert not re.search("<th[^>]*></th>", display.value_table(fmt)._repr_html_())


def test_text_in_fields_is_escaped():
    assert text_of(markup.spans([("sign", "<&>")])) == "<&>"


def test_an_inspection_in_a_notebook():
    found = display.inspect_number("0.1", "float16")
    html = found._repr_html_()
    assert parsed(html).find("caption").text == "float16 s.eeeee.ffffffffff"
    text = text_of(html)
    for word in ("0x2e66", "0 01011 1001100110", "0.0999755859375", "INEXACT", "-0.4 ulp", "nearest even"):
        assert word in text
    fields = coloured(parsed(html))
    assert [name for name, _, _ in fields] == ["sign", "exponent", "fraction"] * 2
    console = shown(found)
    assert [line.split()[0] for line in console.split("\n")[1:] if line.strip()] == [
        cell.text for cell in parsed(html).iter("th")
    ]


def elements(shape: tuple[int, ...], fmt: Format) -> tuple[np.ndarray, np.ndarray]:
    """Codes that are all different as far as there are enough, and their values as text."""
    codes = (np.arange(math.prod(shape)) % (1 << fmt.bits)).astype(fmt.dtype).reshape(shape)
    texts = np.empty(shape, object)
    for place in np.ndindex(shape):
        texts[place] = f"v{int(codes[place])}"
    return codes, texts


def test_a_scalar_and_vectors():
    fmt = ROSTER["float8_e4m3fn"]
    (code,), (text,) = elements((1,), fmt)
    for codes, texts in ((np.asarray(code), np.asarray(text, object)), elements((1,), fmt)):
        for found in (text_of(arrays.array_html(codes, fmt, texts)), shown(arrays.array_rich(codes, fmt, texts))):
            assert " ".join(found.split()).endswith("v0 0x00 0 0000 000")
    for size in (5, 20):
        codes, texts = elements((size,), fmt)
        html, rich = arrays.array_html(codes, fmt, texts), shown(arrays.array_rich(codes, fmt, texts))
        assert parsed(html).find("caption").text == f"float8_e4m3fn, shape ({size},)"
        rows = [" ".join(" ".join(row.itertext()).split()) for row in parsed(html).find("tbody")]
        expected = [f"{i} v{i} 0x{i:02x} 0 {i >> 3:04b} {i & 7:03b}" for i in range(size)]
        assert rows == expected
        assert [" ".join(line.split()) for line in rich.strip().split("\n")[2:]] == expected


@pytest.mark.parametrize("size", [21, 200])
def test_long_vectors_are_cut(size):
    fmt = ROSTER["float8_e5m2"]
    codes, texts = elements((size,), fmt)
    kept = [0, 1, 2, size - 3, size - 2, size - 1]
    html = arrays.array_html(codes, fmt, texts)
    heads = [row[0].text for row in parsed(html).find("tbody")]
    assert heads == ["0", "1", "2", "…", *map(str, kept[3:])]
    rich = shown(arrays.array_rich(codes, fmt, texts)).strip().split("\n")
    assert [line.split()[0] for line in rich[2:]] == heads
    assert str(size) in parsed(html).find("caption").text


@pytest.mark.parametrize(("shape", "rows", "columns"), [((3, 4), 3, 4), ((21, 40), 7, 7), ((20, 2), 20, 2)])
def test_matrices(shape, rows, columns):
    fmt = ROSTER["float8_e4m3fn"]
    codes, texts = elements(shape, fmt)
    table = parsed(arrays.array_html(codes, fmt, texts))
    body = table.find("tbody")
    assert (len(body), len(body[0])) == (rows, 1 + columns)
    assert text_of(ElementTree.tostring(body[1][2], encoding="unicode")).startswith(f"v{shape[1] + 1} 0 ")
    last = " ".join(body[-1][-1].itertext())
    assert last.startswith(f"v{int(codes[-1, -1])} ")
    assert body[-1][0].text == str(shape[0] - 1)
    for width in (50, 80, 200):
        text = shown(arrays.array_rich(codes, fmt, texts), width)
        assert max(map(len, text.split("\n"))) <= width
        assert f"v{int(codes[0, 0])} " in text
        assert f"v{int(codes[-1, -1])} " in text
        assert ("…" in text.split("\n")[1]) == (shape[1] > 20 or (shape[1] == 4 and width == 50))


def test_matrices_of_wide_formats_are_cut_earlier():
    codes, texts = elements((2, 12), ROSTER["float32"])
    assert len(parsed(arrays.array_html(codes, ROSTER["float32"], texts)).find("tbody")[0]) == 1 + 7
    codes, texts = elements((2, 12), ROSTER["float8_e4m3fn"])
    assert len(parsed(arrays.array_html(codes, ROSTER["float8_e4m3fn"], texts)).find("tbody")[0]) == 1 + 12


def test_more_dimensions_and_none():
    fmt = ROSTER["float8_e4m3fn"]
    codes, texts = elements((2, 3, 4), fmt)
    html = arrays.array_html(codes, fmt, texts)
    assert parsed(html).find("caption").text == "float8_e4m3fn, shape (2, 3, 4); shown: [0, :, :]"
    assert "v11" in html
    assert "v12" not in html
    assert "shape (2, 3, 4)" in shown(arrays.array_rich(codes, fmt, texts))
    for shape in ((0,), (0, 3), (2, 0, 3)):
        codes, texts = np.zeros(shape, np.uint8), np.zeros(shape, object)
        assert parsed(arrays.array_html(codes, fmt, texts)).find("caption").text == f"float8_e4m3fn, shape {shape}"
        assert shown(arrays.array_rich(codes, fmt, texts)).strip() == f"float8_e4m3fn, shape {shape}"


def test_arrays_show_themselves():
    x = softfloat.array([[1.0, -2.5], [0.1, np.inf]], softfloat.float16)
    html = x._repr_html_()
    assert "0 01111 0000000000" in text_of(html)
    assert "-2.5" in text_of(html)
    assert "0 01111 0000000000" in shown(x)
