"""The evaluator around the nodes: what is refused and where, flags and counts by node, random numbers by node, models that are damaged."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402 -- after the skip
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import numbers, one_node, parsed  # noqa: E402

import softfloat  # noqa: E402
from softfloat import Environment, Flags, bits, float16  # noqa: E402
from softfloat.accumulators import fma, tensor_core  # noqa: E402
from softfloat.onnx import Evaluator, NodeTrap, UnemulatedOperatorError  # noqa: E402

HALF = onnx.TensorProto.FLOAT16
RANDOM = {"rounding": "stochastic", "seed": 11}


def nodes_of(kind: str, body: str) -> onnx.ModelProto:
    """A model in which `body`, lines from x to y, stands inside something."""
    if kind == "main":
        return parsed(f"g (float16[4] x, bool c) => (float16[4] y) {{ {body} }}")
    if kind == "function":
        return parsed(
            f'g (float16[4] x, bool c) => (float16[4] y) {{ y = local.f(x) }}\n<domain: "local", opset_import: ["" : 21]>\nf (x) => (y) {{ {body} }}'
        )
    if kind == "function of functions":
        return parsed(
            'g (float16[4] x, bool c) => (float16[4] y) { y = local.outer(x) }\n<domain: "local", opset_import: ["" : 21, "local" : 1]>\n'
            f'outer (x) => (y) {{ y = local.f(x) }}\n<domain: "local", opset_import: ["" : 21]>\nf (x) => (y) {{ {body} }}'
        )
    if kind == "if":
        return parsed(
            f"g (float16[4] x, bool c) => (float16[4] z) {{ z = If (c) <then_branch = t () => (float16[4] y) {{ {body} }}, "
            "else_branch = e () => (float16[4] w) { w = Identity(x) }> }"
        )
    loop = """g (float16[4] start, bool c) => (float16[4] last, float16[3, 4] all) {
        turns = Constant <value = int64 {3}> ()
        last, all = Loop (turns, c, start) <body = b (int64 i, bool go, float16[4] x) => (bool on, float16[4] y, float16[4] out)
            { on = Identity(go) BODY out = Identity(y) }> }"""
    return parsed(loop.replace("BODY", body))


KINDS = ["main", "function", "function of functions", "if", "loop"]


def fed(model: onnx.ModelProto, x: Any) -> dict[str, Any]:
    return {model.graph.input[0].name: x, "c": np.array(True)}


@pytest.mark.parametrize("kind", KINDS)
def test_everywhere_nodes_are_emulated(kind: str) -> None:
    """1/3 and 3 in half round toward zero, which no native implementation does."""
    model = nodes_of(kind, "t = Reciprocal(x) y = Mul(t, x)")
    environment = Environment(rounding="toward_zero")
    evaluator = Evaluator(model, environment)
    found = evaluator.run(None, fed(model, np.array([3, 5, 7, 49], np.float16)))[0]
    x = np.array([3, 5, 7, 49], np.float16).view(np.uint16)
    for _ in range(3 if kind == "loop" else 1):
        t, _ = bits.div(np.full(4, 0x3C00, np.uint16), x, float16, rounding="toward_zero")
        x, _ = bits.mul(t, x, float16, rounding="toward_zero")
    np.testing.assert_array_equal(found.view(np.uint16), x)
    assert environment.status.flags == Flags.INEXACT == evaluator.status.flags
    assert [str(f) for n, f in evaluator.flags_by_node.items() if evaluator.nodes[n].operator == "Mul"] == ["INEXACT"]


@pytest.mark.parametrize("kind", KINDS)
def test_everywhere_what_is_not_emulated_is_refused_at_construction(kind: str) -> None:
    model = nodes_of(kind, "t = Abs(x) y = ReduceProd <keepdims = 1> (t)")
    with pytest.raises(UnemulatedOperatorError, match=r"ReduceProd.*float16.*strict=False") as caught:
        Evaluator(model)
    assert caught.value.operator == "ReduceProd"
    assert caught.value.node.endswith("y")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    evaluator = Evaluator(model, strict=False)
    assert list(evaluator.passed.values()) == ["ReduceProd"]


def test_strict_false_leaves_it_to_onnx() -> None:
    model = parsed("g (float16[4] x) => (float16[1] z) { y = ReduceProd(x) z = Sqrt(y) }")
    x = np.array([2, 3, 1, 1.5], np.float16)
    evaluator = Evaluator(model, strict=False)
    assert evaluator.run(None, {"x": x})[0].item() == 3
    assert evaluator.passed == {"y": "ReduceProd"}
    assert set(evaluator.flags_by_node) == {"z"}


def test_operators_of_other_domains_are_refused() -> None:
    model = parsed("g (float16[4] x) => (float16[4] y) { y = local.gelu2(x) }")
    with pytest.raises(UnemulatedOperatorError, match=r"'y', operator local\.gelu2"):
        Evaluator(model)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_what_nobody_can_run_is_refused_by_name(kind: str, strict: bool) -> None:
    """Of other domains, and of operator sets that onnx has left behind, on float32 too, and where it would be left to onnx."""
    head = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    text = f"g ({kind}[4] x) => ({kind}[4] y) {{ t = Abs(x) y = com.microsoft.Gelu(t) }}"
    with pytest.raises(UnemulatedOperatorError, match=r"'y', operator com\.microsoft\.Gelu: it has no emulation"):
        Evaluator(onnx.parser.parse_model(head + text), strict=strict)
    text = (
        f"g ({kind}[2, 2] a, {kind}[2, 2] b, {kind}[2] c) => ({kind}[2, 2] y) {{ y = Gemm <broadcast = 1> (a, b, c) }}"
    )
    model = onnx.parser.parse_model(f'<ir_version: 3, opset_import: ["": 6]> {text}')
    model.opset_import[0].version = 1
    if kind == "float":
        with pytest.raises(
            UnemulatedOperatorError, match=r"'y', operator Gemm: it has no emulation, and onnx .* version 1"
        ):
            Evaluator(model, strict=strict)
    else:
        assert Evaluator(model, strict=strict).nodes["y"].operator == "Gemm"


def test_what_rounds_nothing_is_served_where_onnx_has_left_it_behind() -> None:
    """Clip as operator set 1 has it."""
    text = (
        '<ir_version: 3, opset_import: ["": 1]> g (float[4] x) => (float[4] y) { y = Clip <min = -1.0, max = 2.0> (x) }'
    )
    x = np.array([-3, -0.5, 1, 7], np.float32)
    assert Evaluator(onnx.parser.parse_model(text)).run(None, {"x": x})[0].tolist() == [-1, -0.5, 1, 2]


def test_float32_nodes_are_onnx_own() -> None:
    text = "g (float[3, 40] x, float[40, 2] w) => (float[3, 2] s) { y = MatMul(x, w) s = Softmax(y) }"
    model, random = parsed(text), np.random.default_rng(0)
    feeds = {"x": random.normal(size=(3, 40)).astype(np.float32), "w": random.normal(size=(40, 2)).astype(np.float32)}
    evaluator = Evaluator(model, Environment(rounding="toward_zero"))
    assert isinstance(evaluator, ReferenceEvaluator)
    np.testing.assert_array_equal(evaluator.run(None, feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0])
    assert not evaluator.flags_by_node
    assert not evaluator.status.flags
    emulated = Evaluator(model, Environment(rounding="toward_zero"), emulate_float32=True)
    assert set(emulated.flags_by_node) == set()
    emulated.run(None, feeds)
    assert set(emulated.flags_by_node) == {"y", "s"}


def test_float32_functions_that_onnx_only_defines() -> None:
    """Gelu has no implementation of its own in ONNX's evaluator."""
    model = parsed("g (float[4] x) => (float[4] y) { y = Gelu(x) }")
    x = np.array([-1, 0, 1, 2], np.float32)
    np.testing.assert_allclose(
        Evaluator(model).run(None, {"x": x})[0], [-0.15865525, 0, 0.8413447, 1.9544997], rtol=1e-5
    )


def test_functions_without_a_row_are_computed_node_by_node() -> None:
    model, feeds = one_node("ReduceL2", [np.full((3000,), 16, np.float16)], keepdims=0, opset=21)
    evaluator = Evaluator(model, Environment(), reduction=fma("float16"))
    [found] = evaluator.run(None, feeds)
    assert np.isinf(found)  # 256 * 3000: the sum of squares is one of half numbers
    assert {x.operator for x in evaluator.nodes.values()} >= {"Mul", "ReduceSum", "Sqrt"}
    assert any(flags & Flags.OVERFLOW for flags in evaluator.flags_by_node.values())


def test_inner_format_rounds_each_stage() -> None:
    x = numbers((4, 9), float16, 3, 3)
    model, feeds = one_node("Softmax", [x])
    wide, each = (Evaluator(model, Environment(), inner=inner) for inner in ("float32", "format"))
    first, second = wide.run(None, feeds)[0], each.run(None, feeds)[0]
    assert (first != second).any()
    np.testing.assert_allclose(first.astype(float), second.astype(float), rtol=2**-8)
    assert {x.operator for x in each.nodes.values()} >= {"Sub", "Exp", "ReduceSum", "Div"}


def test_a_loop_without_turns_hands_out_nothing() -> None:
    model = nodes_of("loop", "y = Neg(x)")
    last, handed = Evaluator(model).run(None, {"start": np.ones(4, np.float16), "c": np.array(False)})
    assert last.tolist() == [1] * 4
    assert handed.shape == (0, 4)
    assert handed.dtype == np.float16


def test_scan() -> None:
    model = parsed("""g (float16[2] zero, float16[3, 2] x) => (float16[2] last, float16[3, 2] sums) {
        last, sums = Scan <num_scan_inputs = 1, body = b (float16[2] s, float16[2] v) => (float16[2] t, float16[2] u)
            { t = Add(s, v) u = Identity(t) }> (zero, x) }""")
    x = np.array([[2048, 1], [1, 1], [1, 1]], np.float16)
    last, sums = Evaluator(model, Environment(rounding="toward_positive")).run(
        None, {"zero": np.zeros(2, np.float16), "x": x}
    )
    assert last.tolist() == [2052, 3]
    assert sums[:, 0].tolist() == [2048, 2050, 2052]


def without_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference finds out nothing."""
    from dataclasses import replace

    from softfloat.onnx import evaluator as module
    from softfloat.onnx.graphs import Prepared, prepare

    def blind(*arguments: Any) -> Prepared:
        found = prepare(*arguments)
        unknown = {
            name: replace(x, inputs=(-1,) * len(x.inputs), outputs=(-1,) * len(x.outputs))
            for name, x in found.nodes.items()
        }
        return Prepared(found.model, unknown)

    monkeypatch.setattr(module, "prepare", blind)


def test_types_that_inference_leaves_open_are_looked_at_when_running(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([3, 5, 7, 49], np.float16)
    model = nodes_of("if", "t = Reciprocal(x) y = Mul(t, x)")
    wanted = Evaluator(model, Environment(rounding="toward_zero")).run(None, fed(model, x))[0]
    without_types(monkeypatch)
    found = Evaluator(model, Environment(rounding="toward_zero")).run(None, fed(model, x))[0]
    np.testing.assert_array_equal(found, wanted)
    model = nodes_of("if", "t = Abs(x) y = ReduceProd <keepdims = 1> (t)")
    blind = Evaluator(model)
    with pytest.raises(UnemulatedOperatorError, match="ReduceProd"):
        blind.run(None, fed(model, x))
    single = parsed("g (float[4] x) => (float[1] y) { y = ReduceProd(x) }")
    assert Evaluator(single).run(None, {"x": x.astype(np.float32)})[0].item() == 3 * 5 * 7 * 49


# -- random numbers --------------------------------------------------------------------------------------------------

CHAIN = "g (float16[500] x) => (float16[500] z) { a = Exp(x) z = Sin(a) }"
LONGER = "g (float16[500] x) => (float16[500] z) { b = Log(x) c = Mul(b, b) a = Exp(x) z = Sin(a) }"


def test_random_numbers_go_by_node() -> None:
    x = numbers((500,), float16)
    x = np.abs(x)
    evaluator = Evaluator(parsed(CHAIN), Environment(**RANDOM))
    [first], [second] = evaluator.run(None, {"x": x}), evaluator.run(None, {"x": x})
    np.testing.assert_array_equal(first, second)
    [longer] = Evaluator(parsed(LONGER), Environment(**RANDOM)).run(None, {"x": x})
    np.testing.assert_array_equal(first, longer)
    [other] = Evaluator(parsed(CHAIN), Environment(rounding="stochastic", seed=12)).run(None, {"x": x})
    assert (first != other).any()


def test_nodes_and_turns_draw_numbers_of_their_own() -> None:
    model = parsed("g (float16[2000] x) => (float16[2000] a, float16[2000] b) { a = Exp(x) b = Exp(x) }")
    x = numbers((2000,), float16)
    a, b = Evaluator(model, Environment(**RANDOM)).run(None, {"x": x})
    assert 0.2 < np.mean(a != b) < 0.6
    text = """g (float16[2000] x) => (float16[3, 2000] all) {
        turns = Constant <value = int64 {3}> () on = Constant <value = bool {1}> ()
        all = Loop (turns, on) <body = b (int64 i, bool go) => (bool stay, float16[2000] y) { stay = Identity(go) y = Exp(x) }> }"""
    [turns] = Evaluator(parsed(text), Environment(**RANDOM)).run(None, {"x": x})
    assert turns.shape == (3, 2000)
    assert 0.2 < np.mean(turns[0] != turns[1]) < 0.6
    assert 0.2 < np.mean(turns[1] != turns[2]) < 0.6


def test_a_function_called_twice_is_two_nodes() -> None:
    model = parsed(
        "g (float16[2000] x) => (float16[2000] a, float16[2000] b) { a = local.f(x) b = local.f(x) }\n"
        '<domain: "local", opset_import: ["" : 21]>\nf (x) => (y) { y = Exp(x) }'
    )
    evaluator = Evaluator(model, Environment(**RANDOM))
    a, b = evaluator.run(None, {"x": numbers((2000,), float16)})
    assert len(evaluator.flags_by_node) == 2
    assert (a != b).any()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_no_bit(threads: int) -> None:
    before = softfloat.get_num_threads()
    x, w = numbers((70, 300), float16, 1), numbers((300, 60), float16, 2)
    model = parsed(
        "g (float16[70, 300] x, float16[300, 60] w) => (float16[70, 60] z) { y = MatMul(x, w) z = Sigmoid(y) }"
    )
    try:
        softfloat.set_num_threads(threads)
        [found] = Evaluator(model, Environment(**RANDOM), matmul=fma("float16")).run(None, {"x": x, "w": w})
        softfloat.set_num_threads(1)
        [alone] = Evaluator(model, Environment(**RANDOM), matmul=fma("float16")).run(None, {"x": x, "w": w})
    finally:
        softfloat.set_num_threads(before)
    np.testing.assert_array_equal(found, alone)


# -- flags, counts, traps --------------------------------------------------------------------------------------------


def test_flags_and_counts_are_of_the_last_run() -> None:
    model = parsed("g (float16[2] x) => (float16[2] y) { y = Add(x, x) }")
    evaluator = Evaluator(model, Environment(), count=True)
    evaluator.run(None, {"x": np.array([60000, 1], np.float16)})
    assert evaluator.flags_by_node == {"y": Flags.OVERFLOW | Flags.INEXACT}
    counts = evaluator.counts_by_node["y"]
    assert (counts.results, counts.overflowed, counts.inexact, counts.additions) == (2, 1, 1, 0)
    evaluator.run(None, {"x": np.array([1, 1], np.float16)})
    assert evaluator.flags_by_node == {"y": Flags(0)}
    assert evaluator.counts_by_node["y"].overflowed == 0
    assert evaluator.status.flags == Flags.OVERFLOW | Flags.INEXACT


def test_counting_changes_no_bit() -> None:
    x, w = numbers((20, 90), float16, 1, 30), numbers((90, 20), float16, 2, 30)
    model = parsed(
        "g (float16[20, 90] x, float16[90, 20] w) => (float16[20, 20] z) { y = MatMul(x, w) z = Softmax(y) }"
    )
    plain, counting = (
        Evaluator(model, Environment(**RANDOM), matmul=fma("float16"), count=count) for count in (False, True)
    )
    np.testing.assert_array_equal(*(e.run(None, {"x": x, "w": w})[0] for e in (plain, counting)))
    assert counting.counts_by_node["y"].additions == 20 * 20 * 90
    assert not plain.counts_by_node


def test_traps_name_the_node() -> None:
    model = nodes_of("function", "t = Mul(x, x) y = Sqrt(t)")
    evaluator = Evaluator(model, Environment(traps="OVERFLOW"))
    with pytest.raises(NodeTrap, match=r"mul.*Mul") as caught:
        evaluator.run(None, fed(model, np.array([1, 2, 300, 4], np.float16)))
    assert caught.value.index == (2,)
    assert caught.value.operator == "Mul"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_environment_in_force_is_the_default() -> None:
    model = parsed("g (float16[1] x) => (float16[1] y) { y = Add(x, x) }")
    evaluator = Evaluator(model)
    with softfloat.environment(overflow="saturate") as inside:
        assert evaluator.run(None, {"x": np.array([60000], np.float16)})[0].item() == 65504
        assert inside.status.flags & Flags.OVERFLOW


def test_accumulators_that_do_not_take_a_format_say_so() -> None:
    x, w = numbers((16, 32), softfloat.bfloat16, 1), numbers((32, 8), softfloat.bfloat16, 2)
    model, feeds = one_node("MatMul", [x, w])
    with pytest.raises(ValueError, match="matmul must take bfloat16"):
        Evaluator(model, matmul=tensor_core("V100")).run(None, feeds)


# -- what goes in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("feeds", "message"), [
    ({}, "input x is missing; the model's inputs: x"), ({"x": np.ones(4, np.float16), "z": 1}, "there is no input z"),
    ({"x": np.ones(4, np.float32)}, "input x must be an array of float16, got float32"), ({"x": [1.0] * 4}, "got list"),
    ({"x": np.ones(5, np.float16)}, r"input x must have the shape \(4\), got \(5,\)"), ({"x": np.ones((4, 1), np.float16)}, "shape"),
])  # fmt: skip
def test_inputs_are_checked_by_name(feeds: dict[str, Any], message: str) -> None:
    evaluator = Evaluator(parsed("g (float16[4] x) => (float16[4] y) { y = Neg(x) }"))
    with pytest.raises((ValueError, TypeError), match=message):
        evaluator.run(None, feeds)
    with pytest.raises(ValueError, match="outputs must be among y, got q"):
        evaluator.run(["q"], {"x": np.ones(4, np.float16)})


@pytest.mark.parametrize(("options", "message"), [
    ({"environment": "half"}, "environment"), ({"matmul": 3}, "matmul"), ({"convolution": "fma"}, "convolution"), ({"strict": 1}, "strict"),
    ({"count": None}, "count"), ({"inner": "half"}, "inner"), ({"reduction": 1.0}, "reduction"), ({"emulate_float32": 0}, "emulate_float32"),
])  # fmt: skip
def test_arguments_are_checked_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Evaluator(parsed("g (float16[4] x) => (float16[4] y) { y = Neg(x) }"), **options)


def saved(folder: Path, location: str) -> Path:
    """A model with external data under a name."""
    weights = np.arange(300, dtype=np.float16)
    tensor = numpy_helper.from_array(weights, "w")
    onnx.external_data_helper.set_external_data(tensor, location=location, offset=0, length=600)
    tensor.ClearField("raw_data")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", HALF, [300])], [helper.make_tensor_value_info("y", HALF, [300])], [tensor],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_stay_inside_the_folder(tmp_path: Path) -> None:
    data = np.arange(300, dtype=np.float16).tobytes()
    path = saved(tmp_path / "models", "weights.bin")
    with pytest.raises(ValueError, match=r"'weights.bin', which is missing"):
        Evaluator(path)
    (tmp_path / "models" / "weights.bin").write_bytes(data)
    x = np.ones(300, np.float16)
    np.testing.assert_array_equal(Evaluator(path).run(None, {"x": x})[0], np.arange(300) + np.float16(1))
    with pytest.raises(ValueError, match="give the path"):
        Evaluator(path.read_bytes())
    (tmp_path / "secret.bin").write_bytes(data)
    for location in ("../secret.bin", str(tmp_path / "secret.bin"), "models/../../secret.bin"):
        with pytest.raises(ValueError, match=r"outside of its folder|missing"):
            Evaluator(saved(tmp_path / "models", location))
    (tmp_path / "models" / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ValueError, match="outside of its folder"):
        Evaluator(saved(tmp_path / "models", "link.bin"))


def test_damaged_and_new_models(tmp_path: Path) -> None:
    good = parsed("g (float16[4] x) => (float16[4] y) { y = Neg(x) }")
    path = tmp_path / "model.onnx"
    path.write_bytes(good.SerializeToString()[:-7])
    with pytest.raises(ValueError, match=r"model\.onnx is damaged"):
        Evaluator(path)
    with pytest.raises(ValueError, match="damaged"):
        Evaluator(b"")
    with pytest.raises(FileNotFoundError):
        Evaluator(tmp_path / "none.onnx")
    with pytest.raises(TypeError, match=r"model must be an onnx\.ModelProto"):
        Evaluator(3)
    newer = onnx.ModelProto()
    newer.CopyFrom(good)
    newer.ir_version = 1000
    with pytest.raises(ValueError, match="IR version 1000"):
        Evaluator(newer)
    newer.CopyFrom(good)
    newer.opset_import[0].version = 900
    with pytest.raises(ValueError, match="operator set 900"):
        Evaluator(newer)
    newer.CopyFrom(good)
    newer.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ValueError, match="no valid model"):
        Evaluator(newer)


def test_the_model_given_is_left_alone() -> None:
    model = nodes_of("function", "y = Gelu(x)")
    before = model.SerializeToString()
    Evaluator(model).run(None, fed(model, np.ones(4, np.float16)))
    assert model.SerializeToString() == before


def test_without_onnx_the_way_out_is_named() -> None:
    script = """
import sys
sys.modules["onnx"] = None
from softfloat.commands import main
try:
    import softfloat.onnx
except ImportError as error:
    print(error)
sys.exit(main(["onnx", "run", "model.onnx"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    needed = "softfloat.onnx needs onnx 1.19 or later; pip install 'numba-softfloat[onnx]' brings it\n"
    assert (done.stdout, done.stderr, done.returncode) == (needed, f"softfloat: error: {needed}", 2)


def test_importing_softfloat_does_not_import_onnx() -> None:
    script = "import sys, softfloat, softfloat.commands.parser; print('onnx' in sys.modules, 'softfloat.onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False False\n"
