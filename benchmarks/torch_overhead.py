"""What `softfloat.torch.emulate` adds to the kernels it calls, for each operator, on small tensors.

    python benchmarks/torch_overhead.py [--rounds 40] [--json FILE]

`emulated` is one call of the operator within `emulate`; `kernel` the functions of `softfloat.bits` that it comes down to, and
PyTorch's own operator where that computes inside, on the same codes, under the same environment. Both are the fastest of
many rounds, taken in turn, so that a noisy neighbour disturbs all alike. `adds` is the difference, and `limit` what it is
meant to stay below. `native` is the operator outside. The ratio is emulated over kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from measuring import arguments_of, described, machine, timed, write_json

import softfloat
from softfloat import bits, float16, float32
from softfloat.torch import emulate

LIMIT = 15.0  # microseconds an operator
CALLS = 50  # in a row


@dataclass
class Timing:
    run: Callable[[], Any]
    best: float = float("inf")

    def take(self) -> None:
        self.best = min(self.best, timed(self.run, CALLS) * 1e6)


@dataclass
class Case:
    name: str
    operator: Callable[[], Any]
    kernel: Callable[[], Any] | None

    def __post_init__(self) -> None:
        self.emulated, self.native = Timing(self.operator), Timing(self.operator)
        self.alone = Timing(self.kernel or (lambda: None))


def cases(environment: softfloat.Environment) -> list[Case]:
    torch.manual_seed(0)
    x, y = torch.randn(8, 8).half(), torch.randn(8, 8).half()
    z, single = torch.randn(8, 8).half(), torch.randn(8, 8)
    image, weight = torch.randn(2, 4, 6, 6).half(), torch.randn(4, 4, 3, 3).half()
    a, b, c, f = (t.view(torch.uint16).numpy() for t in (x, y, image, weight))
    numbers, fma = single.numpy(), softfloat.accumulators.fma("float32")

    def kernel(function: Callable[..., Any], *operands: Any, **options: Any) -> Callable[[], Any]:
        return lambda: environment.evaluate(function, *operands, **options)

    spread = np.full((8, 8), 0x3800, np.uint16)

    def four() -> None:
        product = environment.evaluate(bits.mul, a, spread, float16, out_format=float32)
        second, third = (environment.evaluate(bits.convert, x, float16, float32) for x in (a, b))
        environment.evaluate(bits.fma, product, second, third, float32, out_format=float16)

    def wide(operator: Callable[..., Any], dtype: torch.dtype) -> Callable[[], Any]:
        def run() -> Any:
            result = operator(x.to(dtype))
            return environment.evaluate(bits.encode, result.numpy(), float16)

        return run

    layer_norm = torch.nn.functional.layer_norm
    product = {"out_format": float16}
    return [
        Case("relu (as it is)", lambda: torch.relu(x), None),
        Case("view (as it is)", lambda: x.view(64), None),
        Case("float32 add (as it is)", lambda: torch.add(single, single), None),
        Case("add", lambda: torch.add(x, y), kernel(bits.add, a, b, float16)),
        Case("mul_", lambda: z.mul_(y), kernel(bits.mul, a, b, float16)),
        Case("mul by a number", lambda: torch.mul(x, 0.5), kernel(bits.mul, a, spread, float16)),
        Case("tanh", lambda: torch.tanh(x), kernel(bits.tanh, a, float16)),
        Case("cast from float32", lambda: single.half(), kernel(bits.encode, numbers, float16)),
        Case("addcmul_, four steps", lambda: z.addcmul_(x, y, value=0.5), four),
        Case("softmax (in float32)", lambda: torch.softmax(x, 1), wide(lambda t: torch.softmax(t, 1), torch.float32)),
        Case(
            "layer_norm (in float32)", lambda: layer_norm(x, (8,)), wide(lambda t: layer_norm(t, (8,)), torch.float32)
        ),
        Case("sigmoid (in float64)", lambda: torch.sigmoid(x), wide(torch.sigmoid, torch.float64)),
        Case("mm", lambda: torch.mm(x, y), kernel(bits.matmul, a, b, float16, fma, **product)),
        Case("sum", lambda: torch.sum(x, 0), kernel(bits.sum, a, float16, fma, 0, **product)),
        Case(
            "conv2d",
            lambda: torch.conv2d(image, weight),
            kernel(bits.conv2d, c, f, float16, fma, None, stride=[1, 1], padding=[0, 0], layout="NCHW", **product),
        ),
    ]


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    print(described(machine()))
    environment = softfloat.Environment()
    found = cases(environment)
    for _ in range(arguments.rounds):
        for case in found:
            case.native.take()
            case.alone.take()
            with emulate(environment):
                case.emulated.take()
    rows = []
    print(f"{'operator':<28}{'emulated':>10}{'kernel':>10}{'native':>10}{'adds':>8}{'limit':>8}{'ratio':>8}   µs")
    for case in found:
        kernel = case.alone.best if case.kernel else case.native.best
        adds = case.emulated.best - kernel
        row = {
            "operator": case.name, "emulated": case.emulated.best, "kernel": kernel, "native": case.native.best,
            "adds": adds, "limit": LIMIT, "ratio": case.emulated.best / kernel,
        }  # fmt: skip
        rows.append(row)
        mark = " " if adds <= LIMIT else "!"
        print(
            f"{case.name:<28}{case.emulated.best:>10.1f}{kernel:>10.1f}{case.native.best:>10.1f}{adds:>8.1f}"
            f"{LIMIT:>7.0f}{mark}{row['ratio']:>8.2f}"
        )
    if arguments.json:
        write_json(arguments.json, rows=rows)


if __name__ == "__main__":
    main()
