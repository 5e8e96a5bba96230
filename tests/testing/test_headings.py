"""Files that say what they hold: a first line, an archive's comment, an error report of TestFloat; and what rows look like."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Run

from softfloat import Environment, Format
from softfloat.testing.vectors.coverage import coverage_of
from softfloat.testing.vectors.files import described, read_vectors, write_vectors
from softfloat.testing.vectors.headings import case_from, heading
from softfloat.testing.vectors.operations import Case, resolve
from softfloat.testing.vectors.text import VectorError
from softfloat.testing.verdicts.check import check_vectors
from softfloat.testing.verdicts.likeness import looks_like

E6M9 = Format("e6m9", exponent_bits=6, mantissa_bits=9)
MUL = resolve("mul", "bfloat16")

CASES = {
    "plain": MUL,
    "TestFloat's name": resolve("f32_to_i32_r_minMag"),
    "of integers": resolve("convert", "int8", "bfloat16"),
    "of float64": resolve("f64_to_f16", environment=Environment(tininess="before", nan="x86")),
    "custom format": resolve("add", E6M9),
    "settings": resolve("convert", "float16", E6M9, environment=Environment(overflow="saturate", daz=True, ftz=True)),
    "random bits": resolve("add", "float16", environment=Environment(rounding="stochastic", sr_bits=8)),
    "stream": resolve("mac", "bfloat16", accumulator="fma('float32')"),
    "pair": resolve(
        "vecdot",
        ["float8_e4m3fn", "float8_e5m2"],
        accumulator="tensor_core('H100', 'float8_e4m3fn')",
        addend=True,
        length=32,
    ),
    "blocks": resolve("block_quantize", "nvfp4", rule="te", tensor_scale=0.25, special={"nan_to": "zero"}),
    "blocks, the other overflow": resolve("block_quantize", "mxfp4", environment=Environment()),
    "scales": resolve("block_scale", "mxfp4", rule="rceil"),
    "blocks of two kinds": resolve("block_vecdot", ["mxfp8_e4m3", "mxfp8_e5m2"], accumulator="fma('float32')"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_first_line_is_a_case_and_back(name: str) -> None:
    case = CASES[name]
    found = case_from(heading(case))
    assert found is not None
    assert (found.title, found.columns, found.environment) == (case.title, case.columns, case.environment)
    assert (found.exact, found.accumulator, found.blocks, found.stream) == (
        case.exact,
        case.accumulator,
        case.blocks,
        case.stream,
    )


def test_what_no_first_line_can_say_is_refused() -> None:
    how = resolve("vecdot", "float16", accumulator="fma('float32')").accumulator
    assert how is not None
    case = resolve("vecdot", "float16", accumulator=how.replace(name="mine", chains=2))
    with pytest.raises(ValueError, match=r"preset"):
        heading(case)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("# softfloat mul half", "no JSON"),
        ("# softfloat []", "operation and format"),
        ('# softfloat {"operation": "mul"}', "operation and format"),
        ('# softfloat {"operation": "mul", "format": "half", "speed": 3}', "operation and format"),
        ('# softfloat {"operation": "mull", "format": "half"}', "did you mean 'mul'"),
        ('# softfloat {"operation": "mul", "format": {"name": "x"}}', "must describe a Format"),
        (
            '# softfloat {"operation": "mul", "format": "half", "environment": {"rounding": "up"}}',
            "describes no Environment",
        ),
        ('# softfloat {"operation": ["mul"], "format": "half"}', "describes no rows"),
    ],
)
def test_first_lines_that_say_nonsense(line: str, words: str, tmp_path: Path) -> None:
    """They are refused where they are needed, and named where they are not."""
    with pytest.raises(ValueError, match=words):
        case_from(line)
    path = tmp_path / "rows.txt"
    path.write_text(f"{line}\n3F80 3F80 3F80 00\n", encoding="utf-8")
    Run("check", str(path)).assert_error(words)
    report = check_vectors(path, MUL)
    assert report.passed
    assert words in report.note


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.npz"])
def test_check_needs_no_options(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    options = ("--format", "bfloat16", "--rounding", "toward_zero", "--daz")
    assert Run("vectors", "mul", *options, "-n", "200", "-o", str(path)).status == 0
    run = Run("check", str(path))
    assert (run.status, run.out.partition(":")[0]) == (0, "passed  mul bfloat16, toward_zero, daz")
    assert Run("coverage", str(path)).out.startswith("200 rows of mul bfloat16, toward_zero, daz")
    assert coverage_of(path).rows == check_vectors(path).rows == 200
    with path.open("rb") as stream:
        assert check_vectors(stream).passed
    report = check_vectors(path, MUL)
    assert report.findings[0].name == "rounding toward_zero + daz"
    assert report.note == "the first line of the file says that it holds mul bfloat16, toward_zero, daz"


class Pipe(io.RawIOBase):
    """A stream that comes in pieces and cannot be read twice."""

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self.inner, self.piece = io.BytesIO(data), piece

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(self.piece if size < 0 else min(size, self.piece))

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_streams_say_it_too(pack: type[bytes]) -> None:
    out = io.BytesIO()
    write_vectors(out, MUL, 50, headed=True)
    report = check_vectors(Pipe(pack(out.getvalue())))
    assert (report.passed, report.rows, report.title) == (True, 50, MUL.title)
    assert check_vectors(Pipe(pack(out.getvalue()))).first == ()
    run = Run("check", "-", stdin=pack(out.getvalue()))
    assert run.out.startswith("passed  mul bfloat16")


def test_lines_are_counted_from_the_first() -> None:
    data = b'# softfloat {"operation": "add", "format": "half"}\r\n3C00 3C00 4000 00\r\n3C00 3C00 4001 00\r\n# here\r\n'
    report = check_vectors(io.BytesIO(data))
    assert report.first[0].line == 3
    assert report.malformed[0][0] == 4


@pytest.mark.parametrize("first", [b"# of the unit\n", b"// of the unit\n", b"#\n", b"//" + b"x" * 60_000 + b"\n"])
def test_other_peoples_first_lines_are_passed_over(first: bytes) -> None:
    assert check_vectors(io.BytesIO(first + b"3F80 3F80 3F80 00\n"), MUL).passed
    chunks = list(read_vectors(Pipe(first + b"3F80 3F80 3F80 00\n", 100_000), MUL))
    assert [x.lines.tolist() for x in chunks] == [[2]]
    assert check_vectors(io.BytesIO(first), MUL).failure == "there are no rows"
    with pytest.raises(VectorError, match="does not say"):
        check_vectors(io.BytesIO(first + b"3F80 3F80 3F80 00\n"))


def test_testfloats_names_write_testfloats_files() -> None:
    """testfloat_ver reads rows and nothing else; so do readers that were written for its files."""
    assert Run("vectors", "f16_mul", "-n", "3").out.count("\n") == 3
    assert (
        Run("vectors", "mul", "-f", "half", "-n", "3", "--no-heading").out == Run("vectors", "f16_mul", "-n", "3").out
    )
    first, *rest = Run("vectors", "f16_mul", "-n", "3", "--heading").out.splitlines(keepends=True)
    assert first == '# softfloat {"operation": "mul", "format": "float16"}\n'
    assert "".join(rest) == Run("vectors", "f16_mul", "-n", "3").out
    assert Run("vectors", "mul", "-f", "half", "--cover", "--seed", "1").out.startswith("# softfloat ")


def test_options_without_an_operation_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    write_vectors(path, MUL, 5, headed=True)
    Run("check", str(path), "--daz", "-f", "half").assert_error("--format, --daz", "--op")
    Run("coverage", str(path), "--length", "3").assert_error("--length", "--op")


def test_the_line_is_numpys_to_pass_over(tmp_path: Path) -> None:
    """A # is what NumPy's text reader takes for a comment; an archive's comment it does not see."""
    write_vectors(tmp_path / "a.txt", MUL, 20, headed=True)
    write_vectors(tmp_path / "a.npz", MUL, 20, headed=True)
    table = np.loadtxt(tmp_path / "a.txt", dtype=np.uint64, converters=lambda x: int(x, 16), encoding="ascii")
    with np.load(tmp_path / "a.npz") as archive:
        assert sorted(archive) == ["a", "b", "flags", "result"]
        assert np.array_equal(table, np.stack([archive[x] for x in ("a", "b", "result", "flags")], 1))


# -- error reports ---------------------------------------------------------------------------------------------------

MUL_ERRORS = """\
Testing f32_mul, rounding near_even, tininess after rounding.
Errors found in f32_mul, rounding near_even, tininess after rounding:
+01.000000  +7E.7FFFFF  => +01.000000 ....x  expected +01.000000 ...ux
+01.000000  -7E.7FFFFF  => -01.000000 ....x  expected -01.000000 ...ux
+01.7FFFFF  +7E.000000  => +01.000000 ....x  expected +01.000000 ...ux
\r10000 tests performed; 3 errors found.
"""
FMA_ERRORS = """\
Errors found in f32_mulAdd, rounding min:
+54.61FFFE  -02.70001F  -00.7FFFFF
\t=> -01.000000 ....x  expected -01.000000 ...ux
+00.000001  -7D.7FBFFF  -00.7FFFFF
\t=> -01.000000 ....x  expected -01.000000 ...ux
"""


def test_testfloats_error_reports_are_rows() -> None:
    """As testfloat prints them, with what it writes to standard error between; of issue 94 of openhwgroup/cvfpu."""
    report = check_vectors(io.BytesIO(MUL_ERRORS.encode()))
    assert (report.title, report.rows, report.mismatches) == ("mul float32, nearest_even", 3, 3)
    assert [x.line for x in report.first] == [3, 4, 5]
    assert [x.code for x in report.first[1].operands] == ["0x00800000", "0xbf7fffff"]
    assert (report.first[1].actual.code, str(report.first[1].actual_flags)) == ("0x80800000", "INEXACT")
    assert "UNDERFLOW by the delivered result" in [x.name for x in report.findings]
    assert "report of errors" in report.note
    run = Run("check", "-", stdin=FMA_ERRORS.encode())
    assert run.status == 1
    assert run.out.startswith("FAILED  fma float32, toward_negative")
    assert "line 2: flags only" in run.out


def test_reports_on_several_functions_are_read_for_one() -> None:
    both = (MUL_ERRORS + FMA_ERRORS).encode()
    Run("check", "-", stdin=both).assert_error("f32_mul, rounding near_even", "f32_mulAdd, rounding min", "--op")
    assert check_vectors(io.BytesIO(both), resolve("f32_mul")).rows == 3
    down = resolve("f32_mulAdd", environment=Environment(rounding="toward_negative"))
    assert check_vectors(io.BytesIO(both), down).rows == 2
    assert "none of add float32" in check_vectors(io.BytesIO(both), resolve("f32_add")).failure
    bare = "\n".join(x for x in MUL_ERRORS.splitlines() if "=>" in x).encode()
    assert check_vectors(io.BytesIO(bare), resolve("f32_mul")).rows == 3
    with pytest.raises(VectorError, match="does not say"):
        check_vectors(io.BytesIO(bare))


@pytest.mark.parametrize(
    ("text", "title", "codes"),
    [
        ("f16_to_i32, rounding minMag, exact:\n-10.200  => FFFFFFFE .....  expected FFFFFFFD ....x", "convert", ["0xc200"]),
        ("f16_sqrt, rounding max:\n-1F.3FF  => +00.001 v...x  expected +1F.200 v....", "sqrt", ["0xffff"]),
        ("f16_lt:\n+00.000  +00.001  => 0 .....  expected 1 .....", "lt", ["0x0000", "0x0001"]),
        ("f64_to_f16, rounding near_even, tininess before rounding:\n+3FF.0000000000000  => +0F.001 .i...  expected +0F.000 .....",
         "convert float64 to float16, nearest_even, tininess=before", ["0x3ff0000000000000"]),
        ("i64_to_f16, rounding odd:\n8000000000000000  => -1E.3FF ..o..  expected -1E.3FF ..o.x", "convert int64", ["0x8000000000000000"]),
        ("f32_to_bf16, rounding near_maxMag:\n+7F.7FFFFF  => +7F.7F ....x  expected +80.00 ....x", "convert float32 to bfloat16", ["0x3fffffff"]),
    ],
)  # fmt: skip
def test_numbers_as_testfloat_prints_them(text: str, title: str, codes: list[str]) -> None:
    report = check_vectors(io.BytesIO(f"Errors found in {text}\n".encode()), causes=False)
    assert report.title.startswith(title)
    assert report.malformed == ()
    assert [x.code for x in report.first[0].operands] == codes


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("+01.000000  => +01.000000 ....x  expected +01.000000 ...ux", "has 3 numbers"),
        ("+01.000000  +7E.7FFFFF  => +01.000000 ....y  expected +01.000000 ...ux", "vioux"),
        ("+01.000000  +7E.8FFFFF  => +01.000000 ....x  expected +01.000000 ...ux", "no float32"),
        ("+01.000000  +7E.7FFFFF  => 00800000 ....x  expected +01.000000 ...ux", "no float32"),
        ("+01.000000  +7E.7FFFFF  => +01.000000 ....x  expected", "no line of TestFloat"),
        ("+01.000000  +7E.7FFFFF  => +01.000000", "ends within a row"),
    ],
)
def test_malformed_lines_of_reports(line: str, reason: str) -> None:
    report = check_vectors(io.BytesIO(f"Errors found in f32_mul, rounding near_even:\n{line}\n".encode()))
    assert (report.status, report.rows) == (2, 0)
    assert report.malformed[0][0] == 2
    assert reason in report.malformed[0][1]


def test_reports_beyond_this_package_are_refused() -> None:
    one, off = "+3FF.0000000000000", "+400.0000000000001"
    text = f"Errors found in f128_add, rounding near_even:\n{one}  {one}  => {off} .....  expected +400.0000000000000 .....\n"
    Run("check", "-", stdin=text.encode()).assert_error("f128_add")
    assert described(io.BytesIO(text.encode())).case is None


# -- what rows look like ---------------------------------------------------------------------------------------------


def text_of(case: Case, count: int = 300) -> bytes:
    out = io.BytesIO()
    write_vectors(out, case, count)
    return out.getvalue()


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        (resolve("add", "bfloat16"), resolve("mul", "float16")),
        (resolve("mul", "bfloat16"), resolve("mul", "float16")),
        (resolve("add", "float8_e5m2"), resolve("add", "float8_e4m3fn")),
        (resolve("sqrt", "float16"), resolve("convert", "bfloat16", "float16")),
        (resolve("f16_to_f32"), resolve("f16_to_i32")),
        (resolve("convert", "float16", "int32"), resolve("f16_to_f32")),
        (resolve("fma", "float16"), resolve("mul", "float16")),
        (resolve("lt", "float16"), resolve("add", "float16")),
        (resolve("div", "float32", environment=Environment(rounding="toward_positive")), resolve("sqrt", "float32")),
    ],
    ids=lambda case: case.title.replace(" ", "-"),
)
def test_files_of_another_operation_or_format_are_recognised(held: Case, asked: Case) -> None:
    """Whether they have the columns of the one that was asked for, or not; and where nothing was."""
    report = check_vectors(io.BytesIO(text_of(held)), asked)
    assert not report.passed
    assert [x.case.title for x in report.likenesses] == [held.title]
    assert report.likenesses[0].share == 1
    if not report.malformed:
        assert report.mismatches > report.rows / 2
    with pytest.raises(VectorError, match=r"it looks like") as caught:
        check_vectors(io.BytesIO(text_of(held)))
    assert f"{held.title}: --op {held.operation.name} --format {held.source.name}" in str(caught.value)
    out = Run("check", "-", "--op", asked.operation.name, *options_of(asked), stdin=text_of(held)).out
    assert f"looks like {held.title}: 100% of the rows are right as that" in out
    assert "No known mistake" not in out


def options_of(case: Case) -> list[str]:
    return ["-f", case.source.name, *(["--to", case.target.name] if case.operation.name == "convert" else [])]


def test_wrong_devices_look_like_no_other_operation() -> None:
    """A unit that is wrong in most rows keeps its own name, and noise has none."""
    operands = next(iter(read_vectors(io.BytesIO(text_of(MUL)), MUL))).operands
    random = np.random.default_rng(0)
    rows = [[f"{x:04x}" for x in (*row, random.integers(0, 1 << 16))] + ["00"] for row in zip(*operands, strict=True)]
    assert looks_like(rows) == []
    assert looks_like([]) == []
    assert looks_like([["3F80", "3F80", "4000", "00"]] * 2) == []  # two rows say nothing
    assert looks_like([["3F80", "3F80", "4000", "00"], ["3F80", "4000", "00"]] * 3) == []


def test_half_of_the_rows_are_enough_to_guess_what_nobody_said() -> None:
    lines = text_of(MUL).splitlines()
    broken = b"\n".join(x if i % 3 else x[:10] + b"1234 00" for i, x in enumerate(lines)) + b"\n"
    with pytest.raises(VectorError, match="it looks like mul bfloat16"):
        check_vectors(io.BytesIO(broken))


def test_nothing_is_folded_in_a_pipe(tmp_path: Path) -> None:
    """Patterns of float32 stand in one line at 80 columns, too; those of float64 in a line of their own."""
    path = tmp_path / "rows.txt"
    path.write_bytes(
        b'# softfloat {"operation": "add", "format": "float32"}\n' + b"3DFFFFFF 3DFFFFFF 3E7FFFFF 03\n" * 4
    )
    script = [sys.executable, "-m", "softfloat", "check", str(path)]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False, env=environment)
    pattern = "0 01111100 11111111111111111111111"
    assert done.stdout.count(pattern) == 8
    long = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert long == [f"FAILED  add float32, nearest_even: {path}"]


def test_patterns_are_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = Run("check", "-", "--op", "add", "-f", "float32", stdin=b"3DFFFFFF 807FFFFF 007FFFFE 1F\n")
    assert "0 01111011 11111111111111111111111" in run.out
    assert "1 00000000 11111111111111111111111" in run.out
    assert max(map(len, run.out.splitlines())) <= 80
    run = Run("check", "-", "--op", "f32_to_f64", stdin=b"3F800000 3FF0000000000001 00\n")
    assert f"0 01111111111 {1:052b}" in run.out
    assert max(map(len, run.out.splitlines())) <= 80
