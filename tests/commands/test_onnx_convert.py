"""`softfloat onnx convert`: files in, a file out that is whole or not there, errors of one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Run

onnx = pytest.importorskip("onnx")

from saved_models import MODELS, drawn, info, made, node, weight  # noqa: E402

from softfloat.onnx import convert  # noqa: E402


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODELS["perceptron"]().SerializeToString())
    return path


def files(folder: Path) -> set[str]:
    return {x.name for x in folder.iterdir()}


def test_a_model_is_converted(saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "half.onnx"
    run = Run("onnx", "convert", str(saved), str(out), "--to", "float16")
    assert run.status == 0, run.err
    wanted, report = convert(saved)
    assert out.read_bytes() == wanted.SerializeToString()
    assert report.recipe == "softfloat"
    for word in ("4 of 4 nodes in float16", "w0", "b0", "input 'x' stays float32"):
        assert word in run.out
    assert files(tmp_path) == {"model.onnx", "half.onnx"}


def test_recipes_blocks_and_clamps_reach_the_converter(saved: Path, tmp_path: Path) -> None:
    lists = tmp_path / "full.json"
    lists.write_text(json.dumps({"allowlist": ["MatMul"]}))
    out = tmp_path / "out.onnx"
    document = Run(
        "onnx", "convert", str(saved), str(out), "--recipe", str(lists), "--to", "bfloat16", "--json"
    ).document
    assert document["output"] == str(out)
    assert {x["op_type"] for x in document["report"]["decisions"] if x["converts"]} == {"Gemm", "MatMul"}
    options = ["--block-op", "Softmax", "--block-node", "a_", "--clamp", "1e-7", "1e4", "--convert-io", "--json"]
    document = Run("onnx", "convert", str(saved), str(out), *options).document
    assert [x["node"] for x in document["report"]["decisions"] if not x["converts"]] == ["a_", "y_"]
    assert next(x for x in document["report"]["weights"] if x["name"] == "w0")["clamped"] == 8
    found = onnx.load(out)
    assert found.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    named = Run("onnx", "convert", str(saved), str(out), "--recipe", "onnxconverter", "--json").document
    assert named["report"]["recipe"] == "onnxconverter"


def test_errors_leave_no_file(saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    data = saved.read_bytes()
    damaged, empty, text = tmp_path / "damaged.onnx", tmp_path / "empty.onnx", tmp_path / "text.onnx"
    damaged.write_bytes(data[: len(data) // 2])
    empty.write_bytes(b"")
    text.write_text("no model at all")
    before = files(tmp_path)
    for path in (damaged, empty, text):
        Run("onnx", "convert", str(path), str(out)).assert_error(path.name)
    Run("onnx", "convert", str(tmp_path / "missing.onnx"), str(out)).assert_error("cannot read", "missing.onnx")
    Run("onnx", "convert", str(tmp_path), str(out)).assert_error("cannot read")
    Run("onnx", "convert", str(saved), str(out), "--to", "float8_e4m3fn").assert_error("to must be float16 or bfloat16")
    Run("onnx", "convert", str(saved), str(out), "--recipe", "nobody's").assert_error("recipe must be", "nobody's")
    Run("onnx", "convert", str(saved), str(out), "--block-node", "nobody").assert_error("node_block_list", "nobody")
    Run("onnx", "convert", str(saved), str(out), "--clamp", "2", "1").assert_error("clamp")
    Run("onnx", "convert", str(saved), str(tmp_path / "no" / "folder.onnx")).assert_error("cannot write")
    assert files(tmp_path) == before


def test_a_failed_conversion_leaves_what_was_there(saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    out.write_text("kept")
    Run("onnx", "convert", str(saved), str(out), "--recipe", "onnxruntime", "--to", "bfloat16").assert_error(
        "to must be"
    )
    assert out.read_text() == "kept"


def newer(model: Any) -> bytes:
    model.ir_version = 99
    return model.SerializeToString()


def test_models_that_are_too_new(tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    path.write_bytes(newer(MODELS["perceptron"]()))
    Run("onnx", "convert", str(path), str(tmp_path / "out.onnx")).assert_error("IR version 99")


def test_external_data_stay_inside_the_models_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    model = made([node("MatMul", "x w", "y")], [info("x", (1, 64))], [info("y", (1, 64))], [weight("w", drawn(64, 64))])
    path, out = folder / "model.onnx", tmp_path / "out.onnx"
    wanted = convert(model)[0].SerializeToString()
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert Run("onnx", "convert", str(path), str(out)).status == 0
    assert out.read_bytes() == wanted
    out.unlink()
    (folder / "weights.bin").rename(tmp_path / "weights.bin")
    Run("onnx", "convert", str(path), str(out)).assert_error("weights.bin")
    outside = onnx.load(path, load_external_data=False)
    outside.graph.initializer[0].external_data[0].value = "../weights.bin"
    path.write_bytes(outside.SerializeToString())
    Run("onnx", "convert", str(path), str(out)).assert_error("weights.bin")
    assert not out.exists()


def test_without_onnx_the_command_says_what_to_install(saved: Path, tmp_path: Path) -> None:
    script = f"""
import sys
sys.modules["onnx"] = None
from softfloat.commands import main
sys.exit(main(["onnx", "convert", {str(saved)!r}, {str(tmp_path / "out.onnx")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "pip install 'numba-softfloat[onnx]'" in done.stderr
    assert done.stderr.count("\n") == 1
