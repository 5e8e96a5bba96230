"""Operations, operands and files of vectors: what is written is read again, and what is no row is told apart from one."""

from __future__ import annotations

import ast
import gzip
import importlib
import inspect
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from commands import not_hanging
from operands import CUSTOM

from softfloat import ROSTER, Environment, accumulators, bits, float16, testing
from softfloat.bits import processors
from softfloat.bits.blocks import codes as block_codes
from softfloat.bits.blocks import quantization
from softfloat.bits.blocks import sums as scaled_sums
from softfloat.bits.sums import splits as split_sums
from softfloat.testing.vectors import levels, operations
from softfloat.testing.vectors.block_operations import BLOCK_OPERATIONS
from softfloat.testing.vectors.distributions import DISTRIBUTIONS, draw, draw_operands, edges
from softfloat.testing.vectors.expressions import parse_accumulator
from softfloat.testing.vectors.files import read_vectors, write_vectors
from softfloat.testing.vectors.operations import OPERATIONS, resolve
from softfloat.testing.vectors.text import (
    Layout,
    TextReader,
    VectorError,
    format_rows,
    normalized,
    parse_line,
    parse_regular,
)
from softfloat.testing.verdicts.check import check_vectors

ADD = resolve("add", "float16")
GOOD = b"3C00 1000 3C00 01\n7BFF 7BFF 7C00 05\n8000 8000 8000 00\n"


def a_case(name: str, fmt: str = "float16", **settings: object) -> operations.Case:
    """A case of any operation."""
    environment = Environment(**settings)
    if name == "convert":
        return resolve(name, "float32", fmt, environment=environment)
    if name == "block_vecdot":
        return resolve(name, "mxfp4", accumulator="fma('float32')", length=40, addend=True, environment=environment)
    if name in BLOCK_OPERATIONS:
        return resolve(name, "mxfp4", environment=environment)
    if name == "vecdot":
        return resolve(name, fmt, accumulator=f"fma('{fmt}')", length=3, addend=True, environment=environment)
    return resolve(name, fmt, environment=environment)


CASES = [
    *(a_case(name) for name in OPERATIONS),
    a_case("add", rounding="stochastic"),
    a_case("add", rounding="up_or_down"),
    a_case("mul", "tfloat32"),
    a_case("div", "float6_e2m3fn"),
    a_case("add", "float4_e2m1fn"),
    resolve("f64_to_f32"),
    resolve("f16_to_f64"),
    resolve("f64_mulAdd"),
    resolve("f64_to_i64_r_odd"),
    resolve("ui64_to_f64"),
    a_case("add", "float64", rounding="stochastic"),
    resolve("ui64_to_f16"),
    resolve("f32_to_i64_rx_minMag"),
    resolve("convert", "bfloat16", "int8"),
    resolve("vecdot", ("float8_e4m3fn", "float8_e5m2"), accumulator='tensor_core("H100", "float8_e4m3fn")', length=32),
    resolve("vecdot", "float16", "float16", accumulator='exact("float32")', length=2),
]


def rows_of(case: operations.Case, count: int, seed: int = 0) -> list[np.ndarray]:
    found = draw_operands(case, "mixed", count, seed)
    return [*found, *case.run(found)]


def read(data: bytes, case: operations.Case = ADD, **options: object) -> list[np.ndarray]:
    """All columns of a file."""
    chunks = list(read_vectors(io.BytesIO(data), case, **options))
    columns = [np.concatenate([chunk.operands[i] for chunk in chunks]) for i in range(len(case.operands))]
    results = np.concatenate([chunk.results for chunk in chunks])
    flags = None if chunks[0].flags is None else np.concatenate([chunk.flags for chunk in chunks])
    return [*columns, results, flags]


# -- operations ------------------------------------------------------------------------------------------------------


def test_every_elementwise_operation_of_bits_is_in_the_table() -> None:
    not_elementwise = {"matmul", "sum", "cumsum", "conv1d", "conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"}
    other = {
        "CLASSES",
        "Counts",
        "random_bits",
        "scalar",
        "encode",
        "decode",
        "to_integer",
    }  # convert has the last three
    other |= {
        *block_codes.__all__,
        *quantization.__all__,
        *scaled_sums.__all__,
        *split_sums.__all__,
        *processors.__all__,
        "join_segments",
        "segments",
    }
    assert set(bits.__all__) - not_elementwise - other <= set(OPERATIONS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_case_gives_columns_and_runs(case: operations.Case) -> None:
    operands = draw_operands(case, "mixed", 300, 5)
    assert [x.shape for x in operands] == [column.shape(300) for column in case.operands]
    assert [x.dtype for x in operands] == [column.dtype for column in case.operands]
    results, flags = case.run(operands)
    assert (results.shape, results.dtype) == ((300,), case.target.dtype)
    assert (flags.shape, flags.dtype) == ((300,), np.uint8)
    assert int(results.max()) >> case.target.bits == 0
    assert int(flags.max()) < 32


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("f16_add", "add float16, nearest_even"),
        ("bf16_mulAdd", "fma bfloat16, nearest_even"),
        ("f32_rem", "remainder float32, nearest_even"),
        ("f16_lt_quiet", "lt_quiet float16"),
        ("f16_to_f32", "convert float16 to float32, nearest_even"),
        ("f64_to_bf16", "convert float64 to bfloat16, nearest_even"),
        ("f64_mulAdd", "fma float64, nearest_even"),
        ("f64_to_ui32_r_minMag", "convert float64 to uint32, toward_zero, exact=False"),
        ("i64_to_f64", "convert int64 to float64, nearest_even"),
        ("ui32_to_f16", "convert uint32 to float16, nearest_even"),
        ("f32_to_i32", "convert float32 to int32, nearest_even, exact=False"),
        ("f16_to_ui64_rx_near_maxMag", "convert float16 to uint64, nearest_away"),
        ("f16_roundToInt", "round_to_integral float16, nearest_even, exact=False"),
        ("f16_roundToInt_x", "round_to_integral float16, nearest_even"),
        ("f16_roundToInt_r_max", "round_to_integral float16, toward_positive, exact=False"),
    ],
)
def test_testfloat_names(name: str, title: str) -> None:
    case = resolve(name)
    assert case.title == title
    assert name.startswith(case.testfloat)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plus", "float16"), ("plus", "add", "f16_add")),
        (("add",), ("add", "format")),
        (("add", "float7"), ("float7", "float16", "float64")),
        (("add", "int32"), ("format", "int32")),
        (("add", "float16", "float32"), ("to", "convert")),
        (("convert", "float16"), ("target",)),
        (("convert", "int64", "int32"), ("int64", "int32")),
        (("f128_add",), ("f128_add", "f64")),
        (("vecdot", "float64"), ("vecdot", "24 bits of precision")),
        (("f16_to_f128",), ("f16_to_f128",)),
        (("f16_frobnicate",), ("mulAdd",)),
        (("f16_add", "float32"), ("format", "float16")),
        (("f16_to_f32", None, "bfloat16"), ("to", "float32")),
        (("vecdot", "float16"), ("accumulator", "amp('half')")),
        (("negative", "float8_e8m0fnu"), ("unsigned",)),
    ],
)
def test_resolve_says_what_it_accepts(arguments: tuple, words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        resolve(*arguments)
    for word in words:
        assert word in str(caught.value)


def test_dots_refuse_what_they_cannot_do() -> None:
    for options, word in (
        ({"length": 0}, "length"),
        ({"length": 10**9}, "length"),
        ({"accumulator": "vdpbf16ps()"}, "bfloat16"),
        ({"environment": Environment(rounding="SR")}, "stochastic"),
        ({"to": "int32"}, "to"),
    ):
        with pytest.raises(ValueError, match=word):
            resolve("vecdot", "float16", **({"accumulator": "fma('float16')"} | options))
    with pytest.raises(ValueError, match="accumulator is for vecdot"):
        resolve("add", "float16", accumulator="fma('float16')")


def test_accumulators_as_text() -> None:
    for row in accumulators.PRESETS.values():
        assert repr(parse_accumulator(row.example)).startswith(row.make.__name__)
    assert parse_accumulator(' chunked(64, fma("half"), outer="float32") ').segment == 64
    assert parse_accumulator('fma("half")'.ljust(1000)) == accumulators.fma("half")
    with pytest.raises(ValueError, match="is no call of a preset"):
        parse_accumulator('fma("half")'.ljust(1001))
    assert parse_accumulator('amp("half", mode="aligned")') == accumulators.amp("half", mode="aligned")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fma",
        "fma(",
        "fma()",
        "fma('float16', 1)",
        "fma(float16)",
        "fma('nothing')",
        "open('x')",
        "__import__('os').system('id')",
        "fma(*['float16'])",
        "fma(**{'fmt': 'float16'})",
        "fma(().__class__)",
        "fma(lambda: 0)",
        "fma(f'{1}')",
        "(fma)('float16')()",
        "fma('float16') or 1",
        "chunked(-1, 'float16', 'float16')",
        "chunked(" * 40 + ")" * 40,
        "(" * 500,
        "fma('\x00')",
        "x" * 2000,
        "tensor_core('H100', input=" + "9" * 900 + ")",
        "amp({}, inputs=[])",
    ],
)
def test_text_that_is_no_accumulator(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_accumulator(text)
    assert "\n" not in str(caught.value)


# -- operands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [*ROSTER.values(), *CUSTOM], ids=str)
def test_draw(fmt) -> None:
    for name in DISTRIBUTIONS:
        for arity in (1, 2, 3):
            codes = draw(fmt, name, 200, arity, seed=[1, 2])
            assert [(x.shape, x.dtype) for x in codes] == [((200,), fmt.dtype)] * arity
            assert max(int(x.max()) for x in codes) < 2**fmt.bits
            again = draw(fmt, name, 200, arity, seed=[1, 2])
            assert all(np.array_equal(x, y) for x, y in zip(codes, again, strict=True))
    assert set(edges(fmt).tolist()) >= {0, fmt.max_code}


def test_draw_says_what_it_accepts() -> None:
    for arguments, word in (
        (("float16", "gaussian"), "cancellation"),
        (("float16", "bits", -1), "count"),
        (("float16", "bits", 1, 4), "arity"),
        (("float64", "bits", 1, 2), "arity"),
        (("nothing", "bits"), "float64"),
    ):
        with pytest.raises(ValueError, match=word):
            draw(*arguments)


def shares(name: str, operation: str, fmt: str = "float16") -> tuple[float, float]:
    """How often ties-to-even and ties-away differ, and how often a result is subnormal."""
    case = resolve(operation, fmt)
    operands = draw_operands(case, name, 4000, 7)
    even, _ = case.run(operands)
    away, _ = case.under(rounding="RNA").run(operands)
    return float((even != away).mean()), float(np.mean(bits.issubnormal(even, fmt)))


def test_distributions_are_what_their_names_say() -> None:
    for operation in ("add", "fma"):
        for fmt in ("bfloat16", "float32"):
            assert shares("ties", operation, fmt)[0] > 0.08, (operation, fmt)
            assert shares("subnormal", operation, fmt)[1] > 0.1, (operation, fmt)
    assert shares("subnormal", "div", "bfloat16")[1] > 0.1
    a, b = draw("float16", "cancellation", 2000, 2, 3)
    sums, _ = bits.sub(a & 0x7FFF, b & 0x7FFF, float16)
    assert np.mean(bits.decode(sums & 0x7FFF, float16) <= 2**-7 * bits.decode(a & 0x7FFF, float16)) > 0.8
    for target in ("bfloat16", "float8_e4m3fn"):
        for source in ("float32", "float64"):
            case = resolve("convert", source, target)
            operands = draw_operands(case, "ties", 2000, 3)
            differ = case.run(operands)[0] != case.under(rounding="RNA").run(operands)[0]
            assert differ.mean() > 0.05, (source, target)
    assert np.mean(np.isfinite(draw("float64", "normal", 100, 1, 0)[0].view(float))) == 1


# -- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".npz"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_is_written_is_read_again(case: operations.Case, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"vectors{suffix}"
    assert write_vectors(path, case, 70, seed=3) == 70
    expected = rows_of(case, 70, [3, 0])
    assert all(np.array_equal(x, y) for x, y in zip(read(path.read_bytes(), case), expected, strict=True))
    first = path.read_bytes()
    write_vectors(path, case, 70, seed=3)
    assert path.read_bytes() == first
    assert [x.name for x in tmp_path.iterdir()] == [path.name]
    assert check_vectors(path, case, nan="payload").passed


def test_text_looks_as_testfloat_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_vectors(path, ADD, 40_000)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 40_001
    assert lines[-1] == ""
    assert all(len(line) == 17 and line == line.upper() for line in lines[:-1])
    assert sum(len(chunk) for chunk in read_vectors(path, ADD)) == 40_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_both_parsers_agree(case: operations.Case) -> None:
    """The one for regular blocks and the one for lines read the same numbers, or both refuse."""
    layout = Layout(case.columns)
    arrays = rows_of(case, 50, 11)
    random = np.random.default_rng(0)
    for trial in range(60):
        block = bytearray(format_rows(layout, arrays))
        for _ in range(random.integers(0, 3) if trial else 0):
            block[random.integers(0, len(block) - 1)] = random.choice(list(b"0fFgx \n\r\t\xff"))
        block = bytes(block)
        if trial % 3 == 1:
            block = block.lower()
        if trial % 4 == 2:
            block = block.replace(b" ", b" \t").replace(b"\n", b" \r\n")
        if trial % 7 == 3:
            block = b"0x" + block[:-1].replace(b" ", b" 0X").replace(b"\n", b"\n0x") + block[-1:]
        regular = parse_regular(block, layout, b"\n") or parse_regular(normalized(block), layout, b"\n")
        try:
            lines = [parse_line(line, layout) for line in block[:-1].split(b"\n")]
            plain = layout.arrays(lines)
        except VectorError:
            plain = None
        if regular is not None:  # what is regular is right; what is not may still be accepted line by line
            assert plain is not None
            assert all(np.array_equal(x, y) for x, y in zip(regular, plain, strict=True))
        if trial in (0, 2, 3):
            assert (regular is not None) == (trial == 0 or plain is not None)
        if not trial:
            assert all(np.array_equal(x, y) for x, y in zip(regular, arrays, strict=True))


@pytest.mark.parametrize("size", [1, 7, 17, 18, 19, 1000])
def test_pieces_of_any_size_give_the_same_rows(size: int) -> None:
    data = format_rows(Layout(ADD.columns), rows_of(ADD, 40))
    data = data[:180] + data[180:360].replace(b" ", b"\t ") + data[360:].replace(b"\n", b"\r\n")
    reader, results, lines = TextReader(ADD), [], []
    for start in range(0, len(data), size):
        for chunk in reader.feed(data[start : start + size]):
            results.append(chunk.results)
            lines += chunk.lines.tolist()
    results += [chunk.results for chunk in reader.close()]
    assert np.array_equal(np.concatenate(results), rows_of(ADD, 40)[2])
    assert lines == list(range(1, 41))


@pytest.mark.parametrize(
    "data",
    [
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.lower(),
        GOOD[:-1],
        GOOD + b"\n\r\n  \n",
        GOOD.replace(b" ", b"  \t"),
        GOOD.replace(b"\n", b" \t\n"),
        b"0x3c00 0x1000 0x3C00 0x1\n0X7BFF 0x7BFF 7C00 05\n0x08000 0x8000 8000 0x0\n",
        gzip.compress(GOOD, mtime=0),
        gzip.compress(GOOD[:18], mtime=0) + gzip.compress(GOOD[18:], mtime=0),
    ],
    ids=("CRLF", "lower case", "no end", "empty lines", "tabs", "blanks at the end", "prefixes", "gzip", "two gzips"),
)
def test_forms_of_text_that_are_accepted(data: bytes) -> None:
    a, b, results, flags = read(data)
    assert a.tolist() == [0x3C00, 0x7BFF, 0x8000]
    assert b.tolist() == [0x1000, 0x7BFF, 0x8000]
    assert results.tolist() == [0x3C00, 0x7C00, 0x8000]
    assert flags.tolist() == [1, 5, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", ("line 2", "empty")),
        (b"# a comment", ("line 2", "hexadecimal")),
        (b"3C00 1000 3C00", ("line 2", "3 numbers", "a b result flags")),
        (b"3C00 1000 3C00 01 00", ("5 numbers",)),
        (b"3C00 1000 3C0 01", ("3 digits", "accepted: 4")),
        (b"03C00 1000 3C00 01", ("5 digits",)),
        (b"0x13C00 1000 3C00 01", ("more than 16 bits",)),
        (b"3C00 1000 3C00 1", ("1 digits", "accepted: 2")),
        (b"3C00 1000 3C00 20", ("more than 5 bits",)),
        (b"3C00 1000 3C00 0x", ("no hexadecimal number",)),
        (b"3C00 1000 3C00 -1", ("hexadecimal",)),
        (b"3C00 10_0 3C00 01", ("hexadecimal",)),
        (b"3C00 1000 3C00 \xb2\xb3", ("hexadecimal",)),
        (b"3C00 1000 3C00\x0001", ("hexadecimal",)),
        (b"3C00 1000\x0b3C00 01", ("hexadecimal",)),
        ("3C00 1000 3C00 ０１".encode(), ("hexadecimal",)),
        (b"0x" + b"0" * 50 + b"1 1000 3C00 01", ("0x000",)),
        (b"3C00 1000 3C00 01\r3C00 1000 3C00 01", ("hexadecimal",)),
        (b"9" * 5000, ("line 2",)),
    ],
)
def test_lines_that_are_no_rows(line: bytes, words: tuple[str, ...]) -> None:
    data = GOOD[:18] + line + b"\n" + GOOD[18:]
    with pytest.raises(VectorError) as caught:
        read(data)
    assert caught.value.line == 2
    for word in words:
        assert word in str(caught.value)
    assert str(caught.value).isascii()
    malformed: list[tuple[int, str]] = []
    assert read(data, malformed=malformed)[2].tolist() == [0x3C00, 0x7C00, 0x8000]
    assert [number for number, _ in malformed] == [2]


def test_reading_gives_up_after_many_malformed_lines() -> None:
    malformed: list[tuple[int, str]] = []
    with pytest.raises(VectorError, match="20th malformed line"):
        read(GOOD + b"x\n" * 10**5, malformed=malformed)
    assert len(malformed) == 20


def test_a_line_without_end_is_refused_early() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size: int = -1) -> bytes:
            self.taken += size
            return b"\0" * size

        def seekable(self) -> bool:
            return False

    stream = Endless()
    with pytest.raises(VectorError, match=r"line 1: .* is longer than any row"):
        list(read_vectors(stream, ADD))
    assert stream.taken < 10**7


def test_rows_without_flags() -> None:
    short = b"".join(line[:14] + b"\n" for line in GOOD.splitlines())
    with pytest.raises(VectorError, match=r"line 1: .* has 3 numbers"):
        read(short)
    assert read(short, flags=False)[-1] is None
    assert read(GOOD, flags=False)[-1].tolist() == [1, 5, 0]
    assert read(short.lower().replace(b" ", b"  "), flags=False)[-1] is None
    with pytest.raises(VectorError, match=r"line 4: .* has 4 numbers"):
        read(short + GOOD, flags=False)


@pytest.mark.parametrize("damage", [lambda x: x[:-9], lambda x: x[:30] + b"????" + x[34:], lambda x: x[:5]])
def test_damaged_compressed_text(damage) -> None:
    with pytest.raises(VectorError, match="damaged"):
        read(damage(gzip.compress(format_rows(Layout(ADD.columns), rows_of(ADD, 100)))))


# -- archives --------------------------------------------------------------------------------------------------------

COLUMNS = {"a": [0x3C00, 0x8000], "b": [0x1000, 0x8000], "result": [0x3C00, 0x8000], "flags": [1, 0]}


def archive(**changes: object) -> bytes:
    """An archive of two rows with some columns changed, or left out."""
    columns = {name: np.array(x, np.uint8 if name == "flags" else np.uint16) for name, x in COLUMNS.items()}
    kept = {name: x for name, x in (columns | changes).items() if x is not None}
    data = io.BytesIO()
    np.savez(data, **kept)
    return data.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"result": np.array([1.0, -0.0], np.float16)},
        {"a": np.array([0x3C00, 0x8000 - 0x10000], np.int16)},
        {"a": np.array([0x3C00, 0x8000], ">u2")},
        {"a": np.array([0x3C00, 0x8000], np.uint64)},
        {"flags": np.array([1, 0], np.uint32)},
    ],
)
def test_archives_that_are_accepted(changes: dict[str, object]) -> None:
    found = read(archive(**changes))
    assert [x.tolist() for x in found] == list(COLUMNS.values())


def test_ml_dtypes_in_archives() -> None:
    import ml_dtypes

    data = io.BytesIO()
    one = np.ones(1, ml_dtypes.bfloat16)
    np.savez(data, a=one, b=one, result=one + one, flags=np.zeros(1, np.uint8))
    assert check_vectors(io.BytesIO(data.getvalue()), resolve("bf16_add")).passed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"a": np.array([{}, []], object)}, ("column a", "objects")),
        ({"a": np.array(["x", "y"])}, ("column a", "<U1")),
        ({"a": np.array([1.0, 2.0])}, ("column a", "float64", "uint16")),
        ({"a": np.array([1, 2], np.int32)}, ("column a", "int32")),
        ({"a": np.array([1, 0x10000], np.uint32)}, ("row 2", "16 bits")),
        ({"flags": np.array([1, 32], np.uint8)}, ("row 2", "5 bits")),
        ({"a": np.zeros((2, 2), np.uint16)}, ("column a", "shape")),
        ({"a": np.zeros((), np.uint16)}, ("column a", "shape")),
        ({"a": np.zeros(3, np.uint16)}, ("as many rows",)),
        ({"flags": None}, ("a b result", "accepted: a b result flags")),
        ({"z": np.zeros(2, np.uint16)}, ("accepted",)),
    ],
)
def test_archives_that_are_refused(changes: dict[str, object], words: tuple[str, ...]) -> None:
    with pytest.raises(VectorError) as caught:
        read(archive(**changes))
    for word in words:
        assert word in str(caught.value).replace("line", "row")
    assert not check_vectors(io.BytesIO(archive(**changes)), ADD).passed


def test_an_archive_without_flags_and_one_without_rows() -> None:
    assert read(archive(flags=None), flags=False)[-1] is None
    empty = archive(**{name: np.zeros(0, np.uint16) for name in COLUMNS})
    report = check_vectors(io.BytesIO(empty), ADD)
    assert (report.passed, report.status, report.failure) == (False, 2, "there are no rows")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "exploded"),)

    report = check_vectors(io.BytesIO(archive(a=np.array([Bomb(), Bomb()], object))), ADD)
    assert report.status == 2
    assert not (tmp_path / "exploded").exists()


def test_headers_that_promise_too_much() -> None:
    for shape in ("(10**18,)", "(1000000000000000000,)", "(-2,)", "(3,)", "(1,)"):
        members = {}
        with zipfile.ZipFile(io.BytesIO(archive())) as source:
            for info in source.infolist():
                members[info.filename] = source.read(info).replace(b"(2,)", shape.encode())
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as target:
            for name, content in members.items():
                head, _, rest = content.partition(b"\n")
                length = int.from_bytes(head[8:10], "little")
                del length
                fixed = head[:8] + (len(head) - 10 + 1).to_bytes(2, "little") + head[10:] + b"\n" + rest
                target.writestr(name, fixed)
        assert check_vectors(io.BytesIO(data.getvalue()), ADD).status == 2, shape


# -- writing ---------------------------------------------------------------------------------------------------------


def test_exhaustive_vectors_have_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    case = resolve("add", "float4_e2m1fn")
    assert write_vectors(path, case, level="exhaustive") == 256
    a, b, _, _ = read(path.read_bytes(), case)
    assert (16 * a + b).tolist() == list(range(256))
    unary = resolve("f16_to_f32")
    assert write_vectors(path, unary, level="exhaustive") == 65536
    assert read(path.read_bytes(), unary)[0].tolist() == list(range(65536))
    dot = resolve("vecdot", "float4_e2m1fn", accumulator="fma('float32')", length=2)
    assert write_vectors(path, dot, level="exhaustive") == 65536
    assert check_vectors(path, dot).passed


def test_exhaustive_vectors_that_nobody_has_room_for(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    for case, number in ((resolve("f32_add"), "18 446 744 073 709 551 616"), (resolve("f32_mulAdd"), "2^96")):
        with pytest.raises(ValueError, match="accepted") as caught:
            write_vectors(path, case, level="exhaustive")
        assert number in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"count": 0}, "count"),
        ({"count": 1.5}, "count"),
        ({"count": True}, "count"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"distribution": "none"}, "cancellation"),
        ({"level": "3"}, "exhaustive"),
        ({"level": True}, "exhaustive"),
        ({"level": 1, "count": 5}, "count"),
        ({"level": "exhaustive", "count": 5}, "count"),
    ],
)
def test_write_vectors_says_what_it_accepts(options: dict, word: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=word):
        write_vectors(tmp_path / "x", ADD, **options)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_only_by_a_complete_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("precious", encoding="utf-8")

    def stop(rows: int) -> None:
        raise KeyboardInterrupt

    for name in ("a.txt", "a.npz", "a.txt.gz"):
        with pytest.raises(KeyboardInterrupt):
            write_vectors(tmp_path / name, ADD, 10, progress=stop)
    assert path.read_text(encoding="utf-8") == "precious"
    assert [x.name for x in tmp_path.iterdir()] == ["a.txt"]
    write_vectors(os.devnull, ADD, 10)
    assert not Path(os.devnull).is_file()


def test_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old", encoding="utf-8")
    try:
        link.symlink_to(path)
    except OSError:
        pytest.skip("the platform refuses symbolic links")
    write_vectors(link, ADD, 10)
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") != "old"


def test_a_longer_file_begins_with_a_shorter_one() -> None:
    short, long = io.BytesIO(), io.BytesIO()
    write_vectors(short, ADD, levels.CHUNK + 100)
    write_vectors(long, ADD, levels.CHUNK * 2 + 5)
    assert long.getvalue().startswith(short.getvalue())


def test_the_package_offers_its_parts() -> None:
    for name in testing.__all__:
        assert getattr(testing, name).__name__ if name.islower() or name[0].islower() else getattr(testing, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = testing.nothing
    assert set(testing.__all__) <= set(dir(testing))


def test_type_checkers_know_the_parts_of_the_package() -> None:
    """They see an import for each part, or of all of a product, and nothing that would make up others."""
    module = ast.parse(inspect.getsource(testing))
    (seen,) = (node for node in module.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    parts = {
        (node.module, name.asname) for node in seen.body if isinstance(node, ast.ImportFrom) for name in node.names
    }
    offered = set()
    for home, names in testing._EXPORTS.items():
        product = importlib.import_module(f"softfloat.testing.{home}")
        if home in ("vectors", "verdicts", "hardware", "identification"):
            assert set(names) == set(product.__all__), home
            assert all(getattr(testing, name) is getattr(product, name) for name in names)
            names = [None]
        offered |= {(product.__name__, name) for name in names}
    assert parts == offered
    assert not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in module.body)


# -- fuzzing ---------------------------------------------------------------------------------------------------------


def right_rows(data: bytes, case: operations.Case) -> bool:
    """Whether text is nothing but right rows, by the simplest reading there is."""
    rows = []
    for line in data.decode("latin-1").split("\n"):
        words = line.strip(" \t\r").upper().replace("\t", " ").split(" ")
        rows.append([int(word.removeprefix("0X"), 16) for word in words if word])
    while rows and not rows[-1]:
        rows.pop()
    columns = [np.array(x, np.uint64) for x in zip(*rows, strict=True)]
    operands = [x.astype(column.dtype) for x, column in zip(columns, case.operands, strict=False)]
    results, flags = case.run(operands)
    target = case.target.format
    nan = np.asarray(bits.isnan(results, target)) & np.asarray(bits.isnan(columns[-2].astype(results.dtype), target))
    return bool((((results == columns[-2]) | nan) & (flags == columns[-1])).all())


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """The same with something done to it."""
    content = bytearray(data)
    for _ in range(random.integers(1, 4)):
        if not content:
            break
        place = int(random.integers(0, len(content)))
        kind = random.integers(0, 9)
        if kind == 0:
            content[place] = random.integers(0, 256)
        elif kind == 1:
            content[place] ^= 1 << int(random.integers(0, 8))
        elif kind == 2:
            del content[place:]
        elif kind == 3:
            del content[place : place + int(random.integers(1, 30))]
        elif kind == 4:
            other = int(random.integers(0, len(content)))
            content[place:place] = content[other : other + int(random.integers(1, 60))]
        elif kind == 5:
            content[place:place] = bytes(
                random.choice([b"\0", b" ", b"\n", b"\r", b"\xff", b"0x", b"-", b"_", b"9" * 400])
            )
        elif kind == 6:
            content[place:place] = "é １".encode()
        elif kind == 7:
            lines = bytes(content).split(b"\n")
            random.shuffle(lines)
            content = bytearray(b"\n".join(lines))
        else:
            content[place : place + 4] = b"%04X" % int(random.integers(0, 1 << 16))
    return bytes(content)


def fuzz_text(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    cases = [ADD, resolve("f16_mulAdd"), resolve("add", "float4_e2m1fn"), resolve("f16_to_f32")]
    clean = [format_rows(Layout(case.columns), rows_of(case, 12, i)) for i, case in enumerate(cases)]
    outcomes = {0: 0, 1: 0, 2: 0}
    for trial in range(count):
        which = int(random.integers(0, len(cases)))
        data = mutated(clean[which], random)
        data = gzip.compress(data, 1) if trial % 37 == 0 else data
        report = check_vectors(io.BytesIO(data), cases[which], causes=trial % 97 == 0 and cases[which] is ADD)
        outcomes[report.status] += 1
        if report.passed:
            plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            assert right_rows(plain, cases[which]), data
        else:
            assert report.mismatches or report.malformed or report.failure
    assert min(outcomes.values()) > count // 200


def fuzz_archives(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    good = io.BytesIO()
    write_vectors(good, ADD, 30)
    path = io.BytesIO()
    columns = dict(zip(("a", "b", "result", "flags"), rows_of(ADD, 30), strict=True))
    np.savez(path, **columns)
    clean = path.getvalue()
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    passed = 0
    for trial in range(count):
        if trial % 2:
            data = mutated(clean, random)
        else:  # with checksums that are right
            changed, packed = str(random.choice(list(members))), io.BytesIO()
            with zipfile.ZipFile(packed, "w") as target:
                for name, content in members.items():
                    target.writestr(name, mutated(content, random) if name == changed else content)
            data = packed.getvalue()
        report = check_vectors(io.BytesIO(data), ADD, causes=False)
        passed += report.passed
        if report.passed:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                results, flags = bits.add(archive["a"].view(np.uint16), archive["b"].view(np.uint16), float16)
                nan = bits.isnan(results, float16) & bits.isnan(archive["result"].view(np.uint16), float16)
                assert ((results == archive["result"].view(np.uint16)) | nan).all()
                assert (flags == archive["flags"]).all()
    assert passed < count // 2


def test_mutated_files_are_never_passed_nor_crash() -> None:
    with not_hanging():
        fuzz_text(1200, 1)
        fuzz_archives(500, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_many_mutated_files(seed: int) -> None:
    with not_hanging():
        fuzz_text(8_000, 100 + seed)
        fuzz_archives(2_000, 200 + seed)


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.npz"])
def test_progress_counts_rows(name: str, tmp_path: Path) -> None:
    told: list[int] = []
    count = levels.CHUNK + 100
    assert write_vectors(tmp_path / name, ADD, count, progress=told.append) == count
    assert told == sorted(told)
    assert told[-1] == count
    assert len(told) > 1
