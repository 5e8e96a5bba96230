"""Streams of multiply-accumulate rows: running sums as one writes the loop, rows judged one by one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from commands import Run

from softfloat import bits
from softfloat.testing.vectors import streams
from softfloat.testing.vectors.coverage import coverage_of
from softfloat.testing.vectors.files import read_vectors, write_vectors
from softfloat.testing.vectors.levels import corners_of, count_rows
from softfloat.testing.vectors.operations import Case, resolve
from softfloat.testing.verdicts.check import check_vectors

MAC = resolve("mac", "bfloat16", accumulator="fma('float32')")
QUADS = resolve("mac", "float16", accumulator="tensor_core('V100')", length=4)


def written(case: Case, count: int | None, **options: object) -> bytes:
    stream = io.BytesIO()
    write_vectors(stream, case, count, **options)
    return stream.getvalue()


@pytest.mark.parametrize("case", [MAC, QUADS], ids=["one product", "four"])
def test_results_are_the_running_sum(case: Case) -> None:
    data = written(case, streams.ROWS + 300)  # into the second piece
    running, cleared = 0, 0
    for number, line in enumerate(data.splitlines()):
        *products, clear, result, flags = (int(x, 16) for x in line.split())
        if number % 37 and number < streams.ROWS:  # some rows, by themselves
            running = result
            continue
        running = 0 if clear else running
        cleared += clear
        a, b = (np.array([x], case.format.dtype) for x in (products[: case.length], products[case.length :]))
        partial = np.array([running], np.uint32)
        sums, raised = bits.vecdot(a, b, case.formats, case.accumulator, partial)
        assert (int(sums[0]), int(raised[0])) == (result, flags), number
        running = result
    assert cleared > 20
    assert all(x.passed for x in [check_vectors(io.BytesIO(data), case)])


def test_a_mac_is_a_dot_product_in_the_end() -> None:
    data = written(MAC, 16 * 50)
    rows = [[int(x, 16) for x in line.split()] for line in data.splitlines()]
    a, b = (np.array([x[i] for x in rows], np.uint16).reshape(50, 16) for i in (0, 1))
    sums, _ = bits.vecdot(a, b, "bfloat16", MAC.accumulator)
    last = [x[3] for x in rows[15::16]]
    assert sums.tolist() == last
    assert [x[2] for x in rows] == [1, *[0] * 15] * 50


def test_a_wrong_row_is_one_wrong_row() -> None:
    """Those after it are right, given what it said."""
    lines = written(MAC, 2000).splitlines()
    fields = lines[100].split()
    result = int(fields[3], 16) ^ 0x100
    fields[3] = b"%08X" % result
    lines[100] = b" ".join(fields)
    for number in range(101, 112):  # the device goes on from its own sum
        a, b, clear, _, _ = (int(x, 16) for x in lines[number].split())
        assert not clear
        sums, raised = bits.vecdot(
            np.array([[a]], np.uint16),
            np.array([[b]], np.uint16),
            "bfloat16",
            MAC.accumulator,
            np.array([result], np.uint32),
        )
        result = int(sums[0])
        lines[number] = b"%04X %04X %X %08X %02X" % (a, b, clear, result, int(raised[0]))
    report = check_vectors(io.BytesIO(b"\n".join(lines)), MAC)
    assert (report.mismatches, report.first[0].line) == (1, 101)


def test_a_unit_that_does_not_accumulate_is_told_its_name() -> None:
    chunks = list(read_vectors(io.BytesIO(written(MAC, 3000)), MAC))
    operands = [np.concatenate(x) for x in zip(*(chunk.operands for chunk in chunks), strict=True)]
    results, flags = MAC.run([*operands[:2], np.zeros_like(operands[2])])
    clear = np.concatenate([[1], np.zeros(2999, int)])  # never cleared: c is the row before
    stream = io.BytesIO(
        b"\n".join(
            b"%04X %04X %X %08X %02X" % (a[0], b[0], s, r, f)
            for a, b, s, r, f in zip(*operands[:2], clear, results, flags, strict=True)
        )
    )
    assert "c ignored" in [x.name for x in check_vectors(stream, MAC).findings]


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".npz"])
def test_files_of_streams(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    rows = write_vectors(path, MAC, 40_000)
    assert rows == 40_000
    assert check_vectors(path, MAC).passed
    assert coverage_of(path, MAC).rows == rows
    wrong = resolve("mac", "bfloat16", accumulator="mul_add('float16')")
    assert not check_vectors(path, wrong).passed


def test_corner_streams_have_the_corner_rows_of_sums() -> None:
    case = resolve("mac", "float8_e4m3fn", accumulator="fma('float16')")
    sums = resolve("vecdot", "float8_e4m3fn", accumulator="fma('float16')", length=16)
    rows = corners_of(sums, 1)
    assert count_rows(case, "1") == 16 * rows.count
    a, b, clear, results, flags = next(streams.corner_streams(case, 1))
    count = len(results) // 16
    operands = rows.operands(np.arange(count))
    assert np.array_equal(a.reshape(count, 16), operands[0])
    assert np.array_equal(b.reshape(count, 16), operands[1])
    assert np.array_equal(results[15::16], sums.run(operands)[0])
    assert np.array_equal(np.bitwise_or.reduce(flags.reshape(count, 16), axis=1), sums.run(operands)[1])
    assert clear.reshape(count, 16).sum(axis=1).tolist() == [1] * count


def test_a_longer_stream_begins_with_a_shorter_one() -> None:
    assert written(MAC, streams.ROWS + 50).startswith(written(MAC, 1000))


def test_the_command_line(tmp_path: Path) -> None:
    path = str(tmp_path / "mac.txt")
    options = ("--format", "bfloat16", "--accumulator", "fma('float32')")
    assert Run("vectors", "mac", *options, "-n", "500", "-o", path).status == 0
    assert Run("check", path, "--op", "mac", *options).status == 0
    assert Run("coverage", path, "--op", "mac", *options).status in (0, 1)
    Run("vectors", "mac", *options, "--cover").assert_error("vecdot")
    Run("vectors", "mac", *options, "--level", "exhaustive").assert_error("mac", "accepted")
    Run("vectors", "mac", *options, "--to", "float16").assert_error("to", "float32")
