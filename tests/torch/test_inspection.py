"""Tensors looked at while they train: what is printed, recorded and counted, and that nobody else notices."""

from __future__ import annotations

import contextlib
import copy
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from softfloat import Environment, accumulators  # noqa: E402 -- after the skip
from softfloat.torch import emulate  # noqa: E402
from softfloat.torch.practices.inspection import GradientStatistics, Outfeed, gradient_statistics, print_tensor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration:UserWarning")  # of mkldnn's switch
nn, F = torch.nn, torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16
INF, NAN = math.inf, math.nan


def printed(x: Any, name: str = "", **options: Any) -> str:
    out = io.StringIO()
    assert print_tensor(x, name, file=out, **options) is x
    return out.getvalue()


# -- print_tensor ----------------------------------------------------------------------------------------------------

LINES = {
    "half": (
        lambda: torch.tensor([[1.0, -2.5, 0.0], [2.0**-24, INF, NAN]], dtype=HALF),
        "(2, 3) float16, -2.5 to 1, mean magnitude 0.875; 1 zero, 1 subnormal, 1 infinite, 1 NaN: 1 -2.5 0 5.96046e-08 inf nan",
    ),
    "negative zero": (
        lambda: torch.tensor([-0.0], dtype=HALF),
        "(1,) float16, -0 to -0, mean magnitude 0; 1 zero, 0 subnormal, 0 infinite, 0 NaN: -0",
    ),
    "brain": (
        lambda: torch.tensor([2.0**-130, 3.0], dtype=BRAIN),
        "(2,) bfloat16, 7.34684e-40 to 3, mean magnitude 1.5; 0 zero, 1 subnormal, 0 infinite, 0 NaN: 7.34684e-40 3",
    ),
    "float8": (
        lambda: torch.tensor([448.0, -0.5]).to(torch.float8_e4m3fn),
        "(2,) float8_e4m3fn, -0.5 to 448, mean magnitude 224.25; 0 zero, 0 subnormal, 0 infinite, 0 NaN: 448 -0.5",
    ),
    "single": (
        lambda: torch.tensor([1e-40, -2.0]),
        "(2,) float32, -2 to 9.99995e-41, mean magnitude 1; 0 zero, 1 subnormal, 0 infinite, 0 NaN: 9.99995e-41 -2",
    ),
    "double": (
        lambda: torch.tensor([1.5e308, 1.5e308], dtype=torch.float64),
        "(2,) float64, 1.5e+308 to 1.5e+308, mean magnitude inf; 0 zero, 0 subnormal, 0 infinite, 0 NaN: 1.5e+308 1.5e+308",
    ),
    "integers": (
        lambda: torch.tensor([-128, 0, 5], dtype=torch.int8),
        "(3,) int8, -128 to 5, mean magnitude 44.3333; 1 zero: -128 0 5",
    ),
    "bools": (lambda: torch.tensor([True, False]), "(2,) bool, False to True, mean magnitude 0.5; 1 zero: True False"),
    "complex": (
        lambda: torch.tensor([3 + 4j, 0j]).conj(),
        "(2,) complex64, mean magnitude 2.5; 1 zero, 0 subnormal, 0 infinite, 0 NaN: 3-4j 0-0j",
    ),
    "nothing finite": (lambda: torch.tensor([NAN]), "(1,) float32; 0 zero, 0 subnormal, 0 infinite, 1 NaN: nan"),
    "a number": (
        lambda: torch.tensor(7.0, dtype=HALF),
        "() float16, 7 to 7, mean magnitude 7; 0 zero, 0 subnormal, 0 infinite, 0 NaN: 7",
    ),
    "empty": (lambda: torch.empty(0, 3), "(0, 3) float32, empty"),
}


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_a_line_for_each_dtype(name: str, within: bool) -> None:
    make, line = LINES[name]
    x = make()
    with emulate() if within else contextlib.nullcontext():
        assert printed(x, name) == f"{name}: {line}\n"


def test_strided_tensors_are_read_in_their_order() -> None:
    x = torch.arange(6, dtype=HALF).reshape(2, 3)
    with emulate():
        assert printed(x.T, "x").endswith(": 0 3 1 4 2 5\n")
        assert printed(x[:, :1].expand(2, 3), "x").endswith(": 0 0 0 3 3 3\n")


@pytest.mark.parametrize(
    ("summarize", "end"),
    [(-1, "NaN: 0 1 2 3 4"), (3, "NaN: 0 1 2 3 4"), (2, "NaN: 0 1 ... 3 4"), (1, "NaN: 0 ... 4"), (0, "0 NaN")],
)
def test_values_at_both_ends(summarize: int, end: str) -> None:
    assert printed(torch.arange(5.0), summarize=summarize).endswith(end + "\n")


def test_standard_output_and_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_tensor(torch.ones(1, dtype=HALF))
    assert capsys.readouterr().out.startswith("tensor: (1,) float16, 1 to 1")


@pytest.mark.parametrize("within", [False, True])
def test_gradients_come_back(within: bool) -> None:
    out = io.StringIO()
    w = torch.tensor([1.0, 2.0], dtype=HALF, requires_grad=True)
    with emulate() if within else contextlib.nullcontext():
        y = print_tensor(w * 3, "y", file=out)
        (y * torch.tensor([5.0, 0.0], dtype=HALF)).sum().backward()
    first, second = out.getvalue().splitlines()
    assert first.startswith("y: (2,) float16, 3 to 6,")
    assert second == "y_grad: (2,) float16, 0 to 5, mean magnitude 2.5; 1 zero, 0 subnormal, 0 infinite, 0 NaN: 5 0"


def test_parameters_are_printed_once_for_each_call() -> None:
    """A hook on a leaf would stay for all later steps; and evaluation leaves none behind."""
    out, w = io.StringIO(), torch.ones(1, requires_grad=True)
    with torch.no_grad():
        print_tensor(w, "unseen", file=out)
    for step in range(3):
        (print_tensor(w, f"w{step}", file=out) * 2).sum().backward()
    (w * 2).sum().backward()
    names = [line.split(":")[0] for line in out.getvalue().splitlines()]
    assert names == ["unseen", "w0", "w0_grad", "w1", "w1_grad", "w2", "w2_grad"]


# -- nobody notices --------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Convolution, norm, a module that is called twice, a recurrent one with a tuple, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True))
        self.twice = nn.Linear(8, 8)
        self.lstm = nn.LSTM(8, 4, batch_first=True)
        self.last = nn.Sequential(nn.Dropout(0.25), nn.Linear(4, 3))

    def forward(self, x: Any, look: Callable[[str, Any], Any] = lambda name, x: x) -> Any:
        x = look("stem", self.stem(x)).mean(1)
        x = look("twice", self.twice(self.twice(x)))
        with torch.backends.mkldnn.flags(enabled=False):  # else one fused operator
            x = self.lstm(x)[0][:, -1]
        return look("logits", self.last(x))


def trained(watch: str, method: str) -> tuple[list[Any], int, str, list[str]]:
    """Parameters, the next number of the stream, the status and the trace after three steps, looked at in some way."""
    torch.manual_seed(0)
    net, x, labels = Net(), torch.randn(4, 1, 8, 8), torch.arange(4) % 3
    env = Environment(rounding="stochastic", seed=7, overflow="saturate")
    if method == "half":
        net, x = net.half(), x.half()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
    out, trace = io.StringIO(), []
    feed = Outfeed(net, parameters=True) if watch == "outfeed" else None

    def look(name: str, x: Any) -> Any:
        if watch == "print":
            return print_tensor(x, name, file=out)
        return feed.outfeed("by hand: " + name, x) if feed is not None else x

    def record(operation: Any) -> None:
        trace.append(f"{operation.operator} {operation.module} {operation.backward} {operation.stream}")

    with emulate(env, matmul=accumulators.fma("float16"), record=record):
        for _ in range(3):
            optimiser.zero_grad()
            with torch.autocast("cpu", dtype=HALF, enabled=method == "autocast"):
                loss = F.cross_entropy(net(x, look), labels)
            loss.backward()
            if watch == "print":
                for name, parameter in net.named_parameters():
                    print_tensor(parameter.grad, name, file=out)
            if feed is not None:
                gradient_statistics(net)
                feed.enqueue()
            optimiser.step()
    if watch == "print":
        assert out.getvalue().count("twice_grad:") == 3
    if feed is not None:
        found = feed.dequeue()
        assert {len(tensors) for tensors in found.values()} == {3}
        assert found["twice#2_grad"][0].dtype == HALF
    return [p.detach() for p in [*net.parameters(), *net.buffers()]], env.next_stream(), str(env.status), trace


@pytest.mark.parametrize("method", ["half", "autocast"])
def test_training_has_the_same_bits(method: str) -> None:
    """Stochastic rounding: one number more or less from the stream, and all that follows would differ."""
    parameters, *rest = trained("", method)
    for watch in ("print", "outfeed"):
        again, *other = trained(watch, method)
        assert all(torch.equal(a, b) for a, b in zip(parameters, again, strict=True))
        assert rest == other


# -- Outfeed ---------------------------------------------------------------------------------------------------------


def chain() -> Any:
    """y = relu(2*x), z = 3*y."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(inplace=True), nn.Linear(1, 1))
    for layer, weight in ((model[0], 2.0), (model[2], 3.0)):
        nn.init.constant_(layer.weight, weight)
    nn.init.zeros_(model[2].bias)
    return model.half()


def listed(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [t.flatten().tolist() for t in tensors] for name, tensors in found.items()}


def test_what_is_recorded_and_in_which_order() -> None:
    model = chain()
    with emulate(), Outfeed(model, parameters=True) as feed:
        for x in (1.0, -1.0):
            model(torch.tensor([[x]], dtype=HALF)).sum().backward()
            feed.enqueue()
    found = feed.dequeue()
    assert listed(found) == {
        "0": [[2], [-2]],  # although the next module writes over it
        "1": [[2], [0]],
        "2": [[6], [0]],
        "Sequential": [[6], [0]],
        "2_grad": [[1], [1]],
        "Sequential_grad": [[1], [1]],
        "2.bias_grad": [[1], [1]],
        "2.weight_grad": [[2], [0]],
        "1_grad": [[3], [3]],
        "0_grad": [[3], [0]],
        "0.weight_grad": [[3], [0]],
    }
    backward = [name for name in found if name.endswith("_grad")]
    assert backward.index("2_grad") < backward.index("2.weight_grad") < backward.index("1_grad")
    assert backward.index("1_grad") < backward.index("0_grad") < backward.index("0.weight_grad")
    assert {t.dtype for tensors in found.values() for t in tensors} == {HALF}
    assert feed.dequeue() == {}


def test_parameter_gradients_are_those_of_each_backward_pass() -> None:
    """Not the sums in `.grad`."""
    layer = nn.Linear(1, 1, bias=False)
    with Outfeed(layer, activations=False, gradients=False, parameters=True) as feed:
        for x in (1.0, 2.0):
            layer(torch.tensor([[x]])).sum().backward()
    assert layer.weight.grad.item() == 3
    assert listed(feed.dequeue()) == {"weight_grad": [[1]], "weight_grad#2": [[2]]}


def test_records_are_copies() -> None:
    x, feed = torch.ones(1, 1, dtype=HALF), Outfeed()
    with emulate():
        assert feed.outfeed("x", x) is x
        expanded = feed.outfeed("expanded", x.expand(1, 3))
        x += 1
    assert expanded.tolist() == [[2, 2, 2]]
    assert listed(feed.dequeue()) == {"x": [[1]], "expanded": [[1, 1, 1]]}
    feed.outfeed("w", torch.ones(1, requires_grad=True))
    assert not feed.dequeue()["w"][0].requires_grad


def test_one_module_called_twice_and_one_tensor_recorded_twice() -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 2.0)
    with Outfeed(layer) as feed:
        for _ in range(2):
            y = feed.outfeed("y", layer(layer(torch.ones(1, 1))))
            feed.outfeed("y", y).sum().backward()
            feed.enqueue()
    assert listed(feed.dequeue()) == {
        "Linear": [[2]] * 2,
        "Linear#2": [[4]] * 2,
        "y": [[4]] * 2,
        "y#2": [[4]] * 2,
        "Linear#2_grad": [[1]] * 2,
        "y_grad": [[1]] * 2,
        "y#2_grad": [[1]] * 2,
        "Linear_grad": [[2]] * 2,
    }


def test_backward_twice() -> None:
    layer = nn.Linear(1, 1)
    with Outfeed(layer, activations=False) as feed:
        loss = layer(torch.ones(1, 1)).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert list(feed.dequeue()) == ["Linear_grad", "Linear_grad#2"]


def test_outputs_of_several_tensors() -> None:
    class Several(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"first": x + 1, "rest": [x * 2, None, 5]}

    lstm = nn.Sequential(nn.LSTM(2, 3))
    with Outfeed(lstm) as feed:
        y, _ = lstm(torch.ones(4, 1, 2))
        y.sum().backward()
    names = ["0[0]", "0[1][0]", "0[1][1]", "Sequential[0]", "Sequential[1][0]", "Sequential[1][1]"]
    assert list(feed.dequeue()) == [*names, "0[0]_grad", "Sequential[0]_grad"]
    with Outfeed(Several()) as feed:
        Several()(torch.ones(1))
        feed.outfeed("nothing else", torch.ones(1))
    assert list(feed.dequeue()) == ["nothing else"]
    model = Several()
    with Outfeed(model) as feed:
        model(torch.ones(1))
    assert listed(feed.dequeue()) == {"Several[first]": [[2]], "Several[rest][0]": [[2]]}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"filters": ["0"]}, ["0", "0_grad"]),
        ({"filters": ["2", "al_grad"], "parameters": True}, ["2", "2_grad", "Sequential_grad", "2.bias_grad", "2.weight_grad"]),
        ({"filters": []}, []),
        ({"filters": ("_grad",)}, ["2_grad", "Sequential_grad", "1_grad", "0_grad"]),
        ({"gradients": False}, ["0", "1", "2", "Sequential"]),
        ({"activations": False, "gradients": False}, []),
    ],
)  # fmt: skip
def test_filters(options: dict[str, Any], names: list[str]) -> None:
    model = chain()
    with emulate(), Outfeed(model, **options) as feed:
        model(torch.ones(1, 1, dtype=HALF)).sum().backward()
    assert sorted(feed.dequeue()) == sorted(names)


def test_remove_and_clear() -> None:
    model = nn.Linear(1, 1)
    feed = Outfeed(model, parameters=True)
    loss, copied = model(torch.ones(1, 1)).sum(), copy.deepcopy(model)
    feed.remove()
    loss.backward()  # through hooks that are in the graph
    model(torch.ones(1, 1)).sum().backward()
    assert list(feed.dequeue()) == ["Linear"]
    copied(torch.ones(1, 1))  # which has the hooks still
    assert feed.dequeue() == {}
    feed.outfeed("x", torch.ones(1))
    feed.clear()
    assert feed.dequeue() == {}
    assert not model._forward_hooks


def test_frozen_parameters_and_evaluation() -> None:
    model = chain()
    model[0].requires_grad_(False)
    with Outfeed(model, parameters=True) as feed:
        model(torch.ones(1, 1, dtype=HALF)).sum().backward()
        with torch.no_grad():
            model(torch.ones(1, 1, dtype=HALF))
    found = feed.dequeue()
    assert {"2_grad", "2#2"} < set(found)
    assert not {"0.weight_grad", "0_grad", "2#2_grad"} & set(found)


# -- gradient_statistics ---------------------------------------------------------------------------------------------


def test_the_bounds_are_strict() -> None:
    """2^-24 is half's smallest number; at 2^-25 a tie goes to zero, and just above it does not."""
    values = [2.0**-24, 2.0**-25, math.nextafter(2.0**-25, 1), math.nextafter(2.0**-25, 0), 2.0**-26, -(2.0**-25), 1.0]
    found = gradient_statistics(torch.tensor(values, dtype=torch.float64))
    assert (found.count, found.nonzero, found.zeros, found.nonfinite) == (7, 7, 0, 0)
    assert found.below_smallest == 5 / 7
    assert found.below_half == 2 / 7
    shares = found.shares()
    assert (shares.underflow, shares.subnormal, shares.normal, shares.overflow) == (4, 2, 1, 0)
    assert dict(zip(found.exponents.tolist(), found.counts.tolist(), strict=True)) == {-26: 2, -25: 3, -24: 1, 0: 1}


@pytest.mark.parametrize(
    ("name", "smallest"),
    [("float16", -24), ("bfloat16", -133), ("float32", -149), ("float8_e5m2", -16), ("float8_e4m3fn", -9)],
)
def test_other_formats_have_their_own_bounds(name: str, smallest: int) -> None:
    values = torch.tensor([2.0 ** (smallest + k) for k in (-3, -2, -1, 0, 1)], dtype=torch.float64)
    found = gradient_statistics(values, format=name)
    assert (found.smallest, found.below_smallest, found.below_half) == (2.0**smallest, 0.6, 0.4)
    assert f"< 2^{smallest}" in found._repr_html_().replace("&lt;", "<")


@pytest.mark.parametrize("dtype", [HALF, BRAIN, torch.float32, torch.float64])
def test_zeros_infinities_and_nan(dtype: Any) -> None:
    found = gradient_statistics(torch.tensor([0.0, -0.0, INF, -INF, NAN, 2.0**-24, -3.0], dtype=dtype))
    assert (found.count, found.zeros, found.nonfinite, found.nonzero) == (7, 2, 3, 2)
    assert found.zero_share == 2 / 7
    assert (found.exponents.tolist(), found.counts.tolist()) == ([-24, 1], [1, 1])
    assert (found.shares().zeros, found.shares().excluded) == (2, 3)


numbers = st.tuples(st.sampled_from([-1.0, 1.0]), st.integers(0, 2**23 - 1), st.integers(-60, 10), st.integers(1, 4))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(numbers, max_size=12),
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from([-3, 0, 10]),
    st.integers(0, 9),
)
def test_numbers_of_known_exponents(drawn: list[Any], zeros: int, nonfinite: int, scale: int, cut: int) -> None:
    """sign * (1 + fraction/2^23) * 2^exponent, some of them several times: what is where follows from the exponents alone."""
    values = [s * (1 + f / 2**23) * 2.0**e for s, f, e, often in drawn for _ in range(often)]
    exponents = [e + scale for _, _, e, often in drawn for _ in range(often)]
    tensor = torch.tensor([*values, *[0.0] * zeros, *[NAN] * nonfinite])
    found = gradient_statistics([tensor[:cut], tensor[cut:]], scale=2.0**scale)
    assert (found.count, found.zeros, found.nonfinite) == (tensor.numel(), zeros, nonfinite)
    assert found.exponents.tolist() == sorted(set(exponents))
    assert found.counts.tolist() == [exponents.count(e) for e in sorted(set(exponents))]
    for share, bound in ((found.below_smallest, -24), (found.below_half, -25)):
        assert share == (sum(e < bound for e in exponents) / len(exponents) if exponents else 0)
    parts = [found.parts["0"], found.parts["1"]]
    assert sum(part.count for part in parts) == found.count
    added = sum(parts)
    assert np.array_equal(added.magnitudes, found.magnitudes)
    assert np.array_equal(added.multiplicities, found.multiplicities)


def test_a_scale_beyond_double_keeps_its_ends() -> None:
    values = torch.tensor([1e300, 1e-300], dtype=torch.float64)
    assert gradient_statistics(values, scale=1e100).exponents.tolist() == [-665, 1023]
    assert gradient_statistics(values, scale=1e-100).exponents.tolist() == [-1074, 664]


def test_what_statistics_are_taken_of() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    model[1].bias.requires_grad_(False)
    with Outfeed(model, activations=False) as feed:
        for _ in range(2):
            model(torch.ones(3, 2)).sum().backward()
            feed.enqueue()
    assert {name: part.count for name, part in gradient_statistics(model).parts.items()} == {
        "0.weight": 2,
        "0.bias": 1,
        "1.weight": 1,
    }
    queue = feed.dequeue()
    found = gradient_statistics(queue)
    assert {name: part.count for name, part in found.parts.items()} == {"1_grad": 6, "Sequential_grad": 6, "0_grad": 6}
    assert found.count == 18
    stacked = {name: torch.stack(tensors).numpy() for name, tensors in queue.items()}
    assert gradient_statistics(stacked).counts.tolist() == found.counts.tolist()
    assert gradient_statistics(t for t in queue["0_grad"]).count == 6
    assert (
        gradient_statistics([]).count == gradient_statistics([]).below_half == gradient_statistics([]).zero_share == 0
    )
    assert gradient_statistics([]).exponents.tolist() == gradient_statistics([]).counts.tolist() == []


def test_statistics_of_steps_add_up() -> None:
    first = gradient_statistics({"a": torch.tensor([1.0, 0.0]), "b": torch.tensor([2.0**-30])})
    second = gradient_statistics({"b": torch.tensor([2.0**-30, NAN]), "c": torch.tensor([4.0])})
    found = sum([first, second])
    assert isinstance(found, GradientStatistics)
    assert {name: part.count for name, part in found.parts.items()} == {"a": 2, "b": 3, "c": 1}
    assert (found.count, found.zeros, found.nonfinite) == (6, 1, 1)
    assert (found.exponents.tolist(), found.counts.tolist()) == ([-30, 0, 2], [2, 1, 1])
    assert (first.count, second.count) == (3, 3)
    with pytest.raises(ValueError, match="one format and scale, got float16 at 1 and bfloat16 at 1"):
        first + gradient_statistics([], format="bfloat16")
    with pytest.raises(TypeError, match="unsupported operand"):
        first + 1


def test_as_a_table() -> None:
    from rich.console import Console

    found = gradient_statistics(
        {"<w>": torch.tensor([0.0, 2.0**-24, 2.0**-26, 1.0, INF]), "b": torch.zeros(0)}, scale=2
    )
    out = io.StringIO()
    Console(file=out, width=100).print(found)
    title, headings, *rows = (line.split() for line in out.getvalue().splitlines())
    assert " ".join(title) == "gradients times 2 in float16"
    assert " ".join(headings) == "name numbers zero < 2^-24 < 2^-25 not finite exponents"
    shares = "20 % 33.3 % 0 % 1 -25 to 1"
    assert [" ".join(row) for row in rows] == [f"<w> 5 {shares}", "b 0 0 % 0 % 0 % 0", f"all 5 {shares}"]
    printed = str(found).splitlines()
    assert [" ".join(line.split()) for line in printed] == [" ".join(words) for words in (title, headings, *rows)]
    assert "></th>" not in found._repr_html_()
    assert len({line.index("%") for line in printed[2:]}) == 1
    html = found._repr_html_()
    assert "&lt;w&gt;" in html
    assert "<w>" not in html
    assert "magnitudes" not in repr(found)


def test_as_a_figure() -> None:
    pytest.importorskip("matplotlib")
    values = [0.0, NAN, *[2.0**-26] * 3, 2.0**-20]
    found = gradient_statistics(torch.tensor(values))
    figure = found.figure((1.0, 2.0**10))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "× 1: 75.00% become zero, 25.00% subnormal, 0% normal, 0% overflow"
    assert titles[1].endswith(": 0% become zero, 75.00% subnormal, 25.00% normal, 0% overflow")
    assert figure._suptitle.get_text() == "What becomes of 4 numbers in float16; not counted: 1 zeros, 1 others"
    (axes,) = gradient_statistics(torch.tensor(values), scale=64).figure().axes
    assert axes.get_title(loc="left").startswith("× 64: 0% become zero")
    with pytest.raises(ValueError, match="values must hold finite numbers other than zero"):
        gradient_statistics(torch.zeros(3)).figure()


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: print_tensor([1.0]), "x must be a torch.Tensor, got list"),
        (lambda: print_tensor(torch.ones(1), 5), "name must be a str, got int"),
        (lambda: print_tensor(torch.ones(1), summarize=-2), "summarize must be an integer from -1 on, got -2"),
        (lambda: print_tensor(torch.ones(1), summarize=True), "summarize must be an integer from -1 on, got True"),
        (lambda: print_tensor(torch.ones(2).to_sparse()), "tensors must be dense, got one laid out as torch.sparse_coo"),
        (lambda: print_tensor(torch.empty(2, dtype=torch.complex32)), "a dtype other than torch.complex32"),
        (lambda: Outfeed("net"), "model must be a torch.nn.Module or None, got str"),
        (lambda: Outfeed(filters="conv"), "filters must be a sequence of str or None, got 'conv'"),
        (lambda: Outfeed(filters=[1]), r"filters must be a sequence of str or None, got \[1\]"),
        (lambda: Outfeed().outfeed("x", 1.0), "tensor must be a torch.Tensor, got float"),
        (lambda: gradient_statistics(nn.Linear(1, 1)), r"gradients must be those of a module that has some; call backward\(\)"),
        (lambda: gradient_statistics(5), "gradients must be a torch.nn.Module, a mapping of names to tensors"),
        (lambda: gradient_statistics("net"), "gradients must be a torch.nn.Module, a mapping of names to tensors"),
        (lambda: gradient_statistics([None]), "gradients must consist of tensors, got NoneType"),
        (lambda: gradient_statistics(torch.ones(2).long()), "gradients must be of floating point, got a tensor of torch.int64"),
        (lambda: gradient_statistics([], scale=0), "scale must be greater than 0, got 0"),
        (lambda: gradient_statistics([], format="float17"), "float17"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()
