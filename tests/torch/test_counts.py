"""Tallies: what each module's operations overflowed and swamped, from a run whose bits are those of any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from softfloat import Environment, Flags, accumulators, bits  # noqa: E402 -- after the skip
from softfloat.torch import Tally, emulate  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 3)
        self.last = torch.nn.Linear(48, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.conv(x).flatten(1)).square().sum()


def trained(environment: Environment, **options: Any) -> tuple[list[Any], Any]:
    """Parameters after one step in half precision, and the emulation."""
    torch.manual_seed(0)
    net, x = Net().half(), torch.randn(4, 2, 6, 6).half()
    optimiser = torch.optim.SGD(net.parameters(), lr=2.0**-6)
    with emulate(environment, accumulators.fma("float16"), accumulators.amp("half"), **options) as emulation:
        net(x).backward()
        optimiser.step()
    return [p.detach().view(torch.uint16).numpy() for p in net.parameters()], emulation


STOCHASTIC = {"rounding": "stochastic", "seed": 5}


@pytest.mark.parametrize("settings", [{}, STOCHASTIC, {"overflow": "saturate"}])
def test_counting_changes_no_bit_and_no_flag(settings: dict[str, Any]) -> None:
    counted, plain = (Environment(**settings) for _ in range(2))
    first, emulation = trained(counted, count=True)
    second, _ = trained(plain)
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, y)
    assert counted.status.flags == plain.status.flags
    assert counted.next_stream() == plain.next_stream()
    assert emulation.tally.results > 0


def test_tallies_are_the_sums_of_each_operations_counts() -> None:
    environment = Environment(overflow="saturate")
    _, emulation = trained(environment, count=True, record=True)
    found: dict[str, Tally] = {}
    for one in emulation.trace:
        sums = any(isinstance(x, accumulators.Accumulator) for x in one.operands)
        options = {**one.options, **({"count": True} if sums else {})}
        result, flags, *counts = getattr(bits, one.function)(
            *one.operands, environment=environment, stream=one.stream, **options
        )
        swamped = [(np.size(result) * x.additions, x.swamped.sum()) for x in counts] or [(0, 0)]
        place = f"{'backward' if one.backward else 'forward'} {one.module}".rstrip()
        overflowed = np.count_nonzero(flags & np.uint8(Flags.OVERFLOW))
        found[place] = found.get(place, Tally()) + Tally(np.size(result), overflowed, *swamped[0])
    assert found == emulation.tallies
    assert {"forward Net.conv", "backward Net.conv", "forward Net.last", "backward Net.last"} < set(found)
    assert emulation.tally.swamped > 0


def test_a_sum_that_stops_growing() -> None:
    """2048 + 1 is 2048."""
    ones = torch.ones(1, 4096).half()
    with emulate(Environment(), accumulators.fma("float16"), count=True) as emulation:
        ones @ ones.T
    assert emulation.tallies == {"forward": Tally(results=1, overflowed=0, additions=4096, swamped=2048)}


@pytest.mark.parametrize(
    "how", [accumulators.fma("float16"), accumulators.mul_add("float16"), accumulators.amp("half")], ids=repr
)
def test_counts_of_sums_are_those_of_dot_products_with_ones(how: accumulators.Accumulator) -> None:
    codes, _ = bits.encode(np.random.default_rng(0).standard_normal((300, 20)) * 10, "float16")
    ones = np.full((1, 300), 0x3C00, np.uint16)
    row = (x[0] if isinstance(x, np.ndarray) else x for x in bits.matmul(ones, codes, "float16", how, count=True))
    found = bits.sum(codes, "float16", how, 0, count=True), tuple(row)
    (sums, flags, counts), (others, other_flags, other_counts) = found
    np.testing.assert_array_equal(sums, others)
    np.testing.assert_array_equal(flags, other_flags)
    for name, value in vars(counts).items():
        np.testing.assert_array_equal(value, np.squeeze(getattr(other_counts, name)))
    assert counts.inexact.sum() > 0


@pytest.mark.parametrize("overflow", ["infinity", "nan", "saturate"])
def test_overflows(overflow: str) -> None:
    x = torch.tensor([60000.0, 1.0, -60000.0]).half()
    with emulate(Environment(overflow=overflow), count=True) as emulation:
        (x + x) * 1
    assert emulation.tally == Tally(results=6, overflowed=2, additions=0, swamped=0)


def test_without_counting_there_is_nothing() -> None:
    _, emulation = trained(Environment())
    assert (emulation.tallies, emulation.tally) == ({}, Tally())
    with pytest.raises(TypeError, match="count must be True or False, got 1"):
        emulate(count=1)
