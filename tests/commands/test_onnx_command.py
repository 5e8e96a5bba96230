"""`softfloat onnx run`: the table, JSON, plots, and errors of one line that leave no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from commands import Run  # noqa: E402 -- after the skip
from onnx_models import parsed  # noqa: E402

import softfloat  # noqa: E402
from softfloat.accumulators import amp  # noqa: E402
from softfloat.onnx import Evaluator  # noqa: E402
from softfloat.onnx.comparison import compare_nodes, in_float32, relative_error  # noqa: E402

NET = """net (float16[2, 300] x, float16[300, 4] w) => (float16[2, 4] s)
    { h = MatMul(x, w) r = Relu(h) b = Mul(r, r) s = Softmax(b) }"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, its inputs, and what is wrong with some others."""
    random = np.random.default_rng(0)
    (tmp_path / "net.onnx").write_bytes(parsed(NET).SerializeToString())
    np.save(tmp_path / "x.npy", random.normal(0, 40, (2, 300)))
    np.save(tmp_path / "w.npy", random.normal(0, 1, (300, 4)).astype(np.float16))
    np.save(tmp_path / "short.npy", np.ones((2, 3), np.float16))
    np.save(tmp_path / "whole.npy", np.ones((2, 300), np.int64))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "text.npy").write_text("1 2 3")
    (tmp_path / "damaged.onnx").write_bytes(parsed(NET).SerializeToString()[:-20])
    (tmp_path / "refused.onnx").write_bytes(
        parsed("g (float16[2] x) => (float16[1] y) { y = ReduceProd(x) }").SerializeToString()
    )
    newer = parsed(NET)
    newer.ir_version = 999
    (tmp_path / "newer.onnx").write_bytes(newer.SerializeToString())
    return tmp_path


def given(folder: Path, x: str = "x.npy", w: str = "w.npy") -> list[str]:
    return ["--input", f"x={folder / x}", "--input", f"w={folder / w}"]


def run(folder: Path, *options: str, model: str = "net.onnx") -> Run:
    return Run("onnx", "run", str(folder / model), *options)


def test_json_is_what_the_evaluator_says(folder: Path) -> None:
    options = [
        "--accumulator",
        'amp("half")',
        "--rounding",
        "stochastic",
        "--seed",
        "3",
        "--compare",
        "float32",
        "--json",
    ]
    done = run(folder, *given(folder), *options)
    assert (done.status, done.err) == (0, "")
    environment = softfloat.Environment(rounding="stochastic", seed=3)
    evaluator = Evaluator(folder / "net.onnx", environment, matmul=amp("half"), reduction=amp("half"), count=True)
    feeds = {"x": np.load(folder / "x.npy").astype(np.float16), "w": np.load(folder / "w.npy")}
    _, reports = compare_nodes(evaluator, feeds)
    nodes = done.document["nodes"]
    assert [x["node"] for x in nodes] == [x.node for x in reports]
    assert {x["node"]: x["counts"]["swamped"] for x in nodes} == {x.node: x.counts.swamped for x in reports}
    assert [float(x["error"]) for x in nodes] == [x.error for x in reports]
    assert nodes[0]["node"] == "b"  # whose squares overflow
    assert nodes[0]["counts"]["overflowed"] > 0
    assert "OVERFLOW" in nodes[0]["flags"]
    assert done.document["flags"] == ["INEXACT", "OVERFLOW"]
    assert done.document["rounding"] == "stochastic"


def test_the_table_has_the_worst_first(folder: Path) -> None:
    done = run(folder, *given(folder), "--compare", "float32")
    assert done.status == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert next(line[0] for line in lines if line and line[0] in "hrbs") == "b"
    assert "inf" in next(line for line in lines if line and line[0] == "b")
    assert " of 2 400 " in done.out
    quick = run(folder, *given(folder), "--no-count")
    assert quick.status == 0
    assert " of " not in quick.out


PATHS = """net (float16[2, 300] x, float16[300, 4] w) => (float16[2, 4] s)
    { h = MatMul(x, w) b = Mul(h, h) s = Softmax(b) }"""


@pytest.mark.parametrize("width", ["30", "80", "100", "200", None])
def test_node_names_stay_in_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch, width: str | None) -> None:
    """Names as PyTorch's exporter makes them, on terminals, and in a pipe, where nothing is broken."""
    model = parsed(PATHS)
    names = [f"/model/layers.{i}/self_attn/{x.op_type}" for i, x in enumerate(model.graph.node)]
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    (folder / "paths.onnx").write_bytes(model.SerializeToString())
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", width)
    done = run(folder, *given(folder), "--compare", "float32", model="paths.onnx")
    lines = [line.rstrip() for line in done.out.splitlines()]
    if width != "30":
        assert all(sum(line.split()[:1] == [name] for line in lines) == 1 for name in names)
    if width is not None:
        assert max(map(len, lines)) <= int(width)
    shown = " ".join(done.out.split())
    assert all(words in shown for words in (" of 2 400", "OVERFLOW", "Softmax", "float16", "inf"))
    if width in ("200", None):
        assert sum(name in line and "float16" in line for line in lines for name in names) == len(names)


def test_outputs_and_plots(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run(
        folder, *given(folder), "--compare", "float32", "--plot", str(folder / "p.svg"), "-o", str(folder / "y.npz")
    )
    assert done.status == 0
    assert (folder / "p.svg").read_bytes().startswith(b"<?xml")
    with np.load(folder / "y.npz") as found:
        assert found["s"].dtype == np.float16
        assert found["s"].shape == (2, 4)


def test_models_without_narrow_numbers_say_so(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }").SerializeToString())
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    done = Run("onnx", "run", str(tmp_path / "m.onnx"), "-i", f"x={tmp_path / 'x.npy'}")
    assert done.status == 0
    assert "No node computes on numbers narrower than float32" in done.out


@pytest.mark.parametrize(("model", "x", "options", "words"), [
    ("none.onnx", "x.npy", [], ["cannot read", "none.onnx"]), ("damaged.onnx", "x.npy", [], ["damaged.onnx is damaged"]),
    ("newer.onnx", "x.npy", [], ["IR version 999"]), ("net.onnx", "short.npy", [], ["input x must have the shape (2, 300)"]),
    ("net.onnx", "whole.npy", [], ["input x must be an array of float16, got int64"]), ("net.onnx", "text.npy", [], ["text.npy"]),
    ("net.onnx", "objects.npy", [], ["objects.npy"]), ("net.onnx", "gone.npy", [], ["gone.npy"]), ("x.npy", "x.npy", [], ["damaged"]),
    ("net.onnx", "x.npy", ["--accumulator", "amp(3)"], ["partials"]), ("net.onnx", "x.npy", ["--overflow", "wrap"], ["--overflow", "saturate"]),
    ("net.onnx", "x.npy", ["--rounding", "up"], ["rounding"]), ("net.onnx", "x.npy", ["--seed", "-1"], ["seed"]),
    ("net.onnx", "x.npy", ["--plot", "p.png"], ["--compare"]), ("net.onnx", "x.npy", ["--input", "x"], ["NAME=FILE.npy"]),
    ("net.onnx", "x.npy", ["--input", "x=x.npy"], ["x is given twice"]), ("net.onnx", "x.npy", ["--input", "q=w.npy"], ["no input q"]),
    ("refused.onnx", "x.npy", [], ["'y', operator ReduceProd"]), ("net.onnx", "x.npy", ["--reduction", "sum()"], ["accumulator 'sum()'"]),
])  # fmt: skip
def test_errors_are_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, x: str, options: list[str], words: list[str]
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    run(folder, *given(folder, x), "-o", str(folder / "y.npz"), *options, model=model).assert_error(*words)
    assert sorted(folder.iterdir()) == before


def test_missing_inputs_are_named(folder: Path) -> None:
    run(folder, "--input", f"x={folder / 'x.npy'}").assert_error("input w is missing")


# -- comparisons -----------------------------------------------------------------------------------------------------


def test_errors_are_relative() -> None:
    assert relative_error(np.float16([3, 4]), np.float32([3, 4])) == 0
    assert relative_error(np.float16([3, 5]), np.float32([3, 4])) == pytest.approx(0.2)
    assert relative_error(np.float16([np.inf, 1]), np.float32([1e6, 1])) == np.inf
    assert relative_error(np.float16([np.inf, np.nan, 2]), np.float32([np.inf, np.nan, 4])) == pytest.approx(0.5)
    assert relative_error(np.float16([0]), np.float32([0])) == 0
    assert relative_error(np.float16([1]), np.float32([0])) == np.inf


def test_in_float32_everything_narrow_is_widened() -> None:
    model = parsed(
        "g (float16[2] x, bool c) => (float16[2] z) { w = Cast <to = 10> (k) "
        "z = If (c) <then_branch = t () => (float16[2] y) { y = Add(x, w) }, else_branch = e () => (float16[2] v) { v = Identity(x) }> }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float16), "k"))
    wide = in_float32(model)
    text = onnx.printer.to_text(wide)
    assert "float16" not in text
    onnx.checker.check_model(wide)
    assert "float16" in onnx.printer.to_text(model)
    quantised = parsed("g (float[2] x, float s, float8e4m3fn z) => (float8e4m3fn[2] y) { y = QuantizeLinear(x, s, z) }")
    with pytest.raises(ValueError, match="no QuantizeLinear"):
        in_float32(quantised)
