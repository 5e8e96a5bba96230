"""The names of PyTorch that are not public, or not stable, and that `softfloat.torch` relies on, each with what is relied on."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import softfloat.torch as package  # noqa: E402 -- after the skip
from softfloat.torch import private  # noqa: E402
from softfloat.torch.operators import plans, tables  # noqa: E402
from softfloat.torch.operators.pointwise import STEPS  # noqa: E402
from softfloat.torch.operators.products import CONVOLUTIONS, PRODUCTS  # noqa: E402

ATEN = torch.ops.aten
FOLDER = Path(package.__file__).parent


def test_private_names_live_in_one_module() -> None:
    for path in FOLDER.rglob("*.py"):
        if path.name == "private.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
                parts = [*str(node.module).split("."), *(alias.name for alias in node.names)]
                assert not any(part.startswith("_") for part in parts), f"{path.name} imports {'.'.join(parts)}"
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and isinstance(node.value, ast.Name):
                assert node.value.id != "torch", f"{path.name} uses torch.{node.attr}"


def test_schemas() -> None:
    add_ = ATEN.add_.Tensor
    assert private.schema_name(add_) == "add_"
    assert private.argument_names(add_) == ("self", "other", "alpha")
    assert private.written(add_) == ("self",)
    assert private.written(ATEN.mm.out) == ("out",)
    assert private.written(ATEN.mm.default) == ()
    assert private.is_view(ATEN.t.default)
    assert not private.is_view(ATEN.mm.default)
    assert not private.is_view(add_)
    names = private.argument_names(ATEN.native_batch_norm.default)
    assert names[3:5] == ("running_mean", "running_var")


def test_decompositions() -> None:
    parts = private.decomposition(ATEN.linear.default)
    assert parts is not None
    x = torch.ones(2, 2)
    assert torch.equal(parts(x, x), torch.full((2, 2), 2.0))
    assert private.decomposition(ATEN.mm.default) is None


def test_queries() -> None:
    """Operators of others may compute what they return."""
    assert private.asks(ATEN._has_same_storage_numel.default)
    assert private.asks(torch.ops.prim.device.default)
    assert not private.asks(ATEN.add.Tensor)
    assert not private.asks(ATEN.topk.default)
    assert not private.asks(ATEN._foreach_add_.List)
    with torch.library._scoped_library("softfloat_tests", "FRAGMENT") as library:
        library.define("mean(Tensor x) -> float")
        assert not private.asks(torch.ops.softfloat_tests.mean.default)


def test_what_traces_is_noticed() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x, seen = torch.ones(1), []

    class Spy(private.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if private.schema_name(func) == "neg":
                seen.append(private.tracer(private.dispatching(types)))
            return func(*args, **(kwargs or {}))

    with Spy():
        torch.nn.Parameter(x).neg()
        FakeTensorMode().from_tensor(x).neg()
        with FakeTensorMode():
            torch.empty(1).neg()

    def within(x: Any) -> Any:
        with Spy():
            return x.neg()

    make_fx(within)(x)
    assert seen == ["", "FakeTensor", "FakeTensor", "ProxyTorchDispatchMode"]


def test_nodes_of_the_graph_are_numbered_and_keep_notes() -> None:
    x, seen = torch.ones(2, requires_grad=True), []
    start = torch.autograd._get_sequence_nr()
    y = x * 2
    middle = torch.autograd._get_sequence_nr()
    z = y.sum()
    assert start <= y.grad_fn._sequence_nr() < middle <= z.grad_fn._sequence_nr()
    y.grad_fn.metadata["note"] = "kept"
    y.register_hook(lambda gradient: seen.append(torch._C._current_autograd_node().metadata["note"]))
    z.backward()
    assert seen == ["kept"]


def test_traced_nodes_keep_notes_through_interpreters() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def noted(x: Any) -> Any:
        private.write_note("sin")
        y = x.sin()
        private.write_note("cos")
        return y.cos()

    def notes(module: Any) -> list[Any]:
        return [private.noted(node) for node in module.graph.nodes if node.op == "call_function"]

    with private.noting():
        first = make_fx(noted, tracing_mode="fake")(torch.ones(2))
        second = make_fx(torch.fx.Interpreter(first).run, tracing_mode="fake")(torch.ones(2))
    assert notes(first) == notes(second) == ["sin", "cos"]


def test_nodes_are_numbered_while_they_are_made_and_run() -> None:
    forward, backward = [], []

    class Numbers(private.DispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if private.in_backward():
                backward.append(private.backward_number())
            elif func in (ATEN.sin.default, ATEN.exp.default):
                forward.append(private.forward_number())
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Numbers():
        y = x.sin().exp().sum()
        torch.autograd.grad(y, x)
    assert len(forward) == 2
    assert set(forward) < set(backward)
    assert private.backward_number() == -1


def test_what_is_replaced_is_put_back() -> None:
    with package.emulate():
        replaced = dict(private._PATCH._replaced)
        names = {name for _, name in replaced}
        assert {"CheckpointFunction", "_checkpoint_without_reentrant_generator", "__setitem__", "submit"} <= names
        for (owner, name), (original, _) in replaced.items():
            assert getattr(owner, name) is not original
    for (owner, name), (original, own) in replaced.items():
        assert getattr(owner, name) is original
        assert (name in vars(owner)) == own


def test_backward_is_noticed() -> None:
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: seen.append(private.in_backward()))
    y.sum().backward()
    assert seen == [True]
    assert not private.in_backward()


def test_the_tracker_names_the_innermost_module_in_both_passes() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()))
    seen = []

    class Spy(private.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if private.schema_name(func) in ("addmm", "tanh", "tanh_backward", "mm", "sum"):
                seen.append((private.schema_name(func), tracker.innermost(), private.in_backward()))
            return func(*args, **(kwargs or {}))

    with private.Tracker() as tracker, Spy():
        net(torch.ones(1, 2)).sum().backward()
    forward = [x for x in seen if not x[2]]
    assert forward == [
        ("addmm", "Sequential.0", False),
        ("addmm", "Sequential.1.0", False),
        ("tanh", "Sequential.1.1", False),
        ("sum", "", False),
    ]
    backward = [x[:2] for x in seen if x[2]]
    assert backward[0] == ("tanh_backward", "Sequential.1.1")
    assert set(backward[1:-2]) == {("mm", "Sequential.1.0"), ("sum", "Sequential.1.0")}
    assert {x[1] for x in backward[-2:]} == {"Sequential.0"}


def test_the_tracker_knows_the_module_that_backward_starts_from() -> None:
    net, seen = torch.nn.Sequential(torch.nn.Linear(3, 2)), []

    class Spy(private.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if private.in_backward() and private.schema_name(func) == "mm":
                seen.append(tracker.innermost())
            return func(*args, **(kwargs or {}))

    with private.Tracker() as tracker, Spy():
        net(torch.ones(1, 3)).backward(torch.ones(1, 2))
    assert seen == ["Sequential.0"]


def test_dispatch_does_not_load_the_compiler() -> None:
    script = (
        "import sys, torch, softfloat.torch\n"
        "with softfloat.torch.emulate(): torch.ones(2).half() + 1\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr


TABLES: list[Collection[str]] = [
    STEPS,
    PRODUCTS,
    CONVOLUTIONS,
    *(getattr(tables, name) for name in tables.__all__ if name not in ("OPAQUE", "POLES", "QUOTIENTS", "UNCHOSEN")),
]


def test_every_operator_of_the_tables_exists() -> None:
    """In this version of PyTorch or in another: few names are missing in any."""
    missing = set()
    for name in set().union(*TABLES):
        namespace, _, plain = name.rpartition(".")
        if namespace in ("fsdp", "_dtensor"):
            pytest.importorskip("torch.distributed.fsdp")
            pytest.importorskip("torch.distributed.tensor")
        there = getattr(torch.ops, namespace or "aten")
        if not hasattr(there, plain) and not hasattr(there, f"{plain}_"):
            missing.add(name)
    assert len(missing) <= 12, sorted(missing)


def test_no_operator_stands_in_two_tables() -> None:
    counted = Counter(name for table in TABLES for name in table)
    assert not [name for name, count in counted.items() if count > 1]


def test_fills_say_where_numbers_stand() -> None:
    for name, fill in tables.FILLS.items():
        for argument in fill:
            assert any(argument in private.argument_names(x) for x in overloads(name)), (name, argument)


def overloads(name: str) -> list[Any]:
    """Those of one of aten's operators, and of its variant that works in place, that have to do with tensors."""
    packets = [getattr(ATEN, x) for x in (name, f"{name}_") if hasattr(ATEN, x)]
    found = [getattr(packet, x) for packet in packets for x in packet.overloads()]
    return [x for x in found if any("Tensor" in str(a.type) for a in (*x._schema.arguments, *x._schema.returns))]


PLACES = tables.names("""
    a assume_unique axis b boundaries ceil_mode chunks condition copy correct_unbiased descending destination device diagonal
    dilation dim dim0 dim1 dim2 dimension dimension_out dims downscale_factor dtype el element elements end exponent generator
    grad_input grad_out grad_output groups implicit index indices input input_sizes invert k keepdim kernel_size largest layout
    length m mantissa mask max_values memory_format min_indices n names non_blocking num_chunks num_samples offset out out0 out1
    out2 out_int32 output output_size pad padding padding_idx physical_layout pin_memory random_samples repeats replacement
    requires_grad return_counts return_inverse reverse right scale_factors scale_grad_by_freq scales scales_d scales_h scales_w
    self shape shifts side size sizes sorted sorted_sequence sorter source sparse sparse_grad split_size split_sizes src stable
    start step storage_offset stride tensor tensors test_element test_elements the_template to upscale_factor values weight
""")
"""Arguments that say which elements, where, how many and in what memory."""
MORE_PLACES = {
    ("logical_and", "logical_or", "logical_xor", "equal", "is_same_size", "is_set_to"): tables.names("other"),
    ("max", "min", "aminmax"): tables.names("max min"),  # where results go
    ("nonzero_static",): tables.names("fill_value"),  # a place
    ("bernoulli", "exponential", "geometric", "normal_", "random", "random_", "uniform", "uniform_", "bernoulli_", "exponential_"):
        tables.names("from to lambd mean std p"),
    ("randint", "randint_like"): tables.names("high low"),  # random numbers are as they are
}  # fmt: skip
"""More such arguments of some operators."""


def test_every_overload_of_a_move_is_one() -> None:
    """Every argument says no more than which elements go where, or is rounded; an overload that computes is not taken for a move."""
    computing = {plans.inside, plans.pointwise}
    for name in (x for x in {*tables.MOVES, *tables.FILLS} if "." not in x):
        known = PLACES.union(*(more for several, more in MORE_PLACES.items() if name in several))
        for operator in overloads(name):
            plan = plans.planned(operator)
            if getattr(plan, "func", plan) not in computing:
                fill = getattr(plan, "keywords", {}).get("fill", ())
                unknown = {*private.argument_names(operator)} - known - {*fill}
                assert not unknown, (str(operator), unknown)
    assert getattr(plans.planned(ATEN.round.decimals), "func", None) is plans.inside
    assert plans.planned(ATEN.round.default) is plans.native


def test_importing_softfloat_does_not_import_torch() -> None:
    script = "import sys, softfloat; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60).stdout == "False\n"
    )


def test_without_torch_the_error_names_the_extra() -> None:
    script = "import sys; sys.modules['torch'] = None\nimport softfloat.torch"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "ImportError: softfloat.torch needs PyTorch" in done.stderr
    assert "numba-softfloat[torch]" in done.stderr


def test_tensors_of_derived_classes_are_plain_within() -> None:
    class Derived(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Derived)
    assert type(x + x) is Derived
    with private.plain():
        assert type(x + x) is torch.Tensor


def test_memory() -> None:
    x = torch.ones(2, 2)
    assert private.memory(x) == private.memory(x[1]) == x.data_ptr()
    assert private.memory(x.to_sparse()) == 0
    seen = []

    def noted(v: torch.Tensor) -> torch.Tensor:
        seen.append(private.memory(v))
        return v

    torch.func.vmap(noted)(x)
    assert seen == [0]
