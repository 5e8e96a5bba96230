"""Pictures of the order of sums."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softfloat import Format, bits, display
from softfloat.accumulators import PRESETS, Accumulator, Reduction, Stage, amp, amx, chunked, fma, pairwise
from softfloat.commands.accumulators import example_of
from softfloat.display.orders import MOST, Meeting
from softfloat.display.summation import sum_in_steps

EXAMPLES = {name: example_of(name) for name in PRESETS}
LEVELS = (Reduction(Stage("float32"), sections=2), Reduction(Stage("float16"), store=Stage("bfloat16")))
OTHERS = {
    "two levels": Accumulator(name="levels", running=Stage("float16"), segments=4, reduction=LEVELS),
    "lengths": Accumulator(name="lengths", running=Stage("float16"), segments=(3, 1, 5), reduction=LEVELS[1:]),
}


def leaves(meeting: Meeting) -> Iterator[int]:
    for part in meeting.parts:
        yield from (part,) if isinstance(part, int) else leaves(part)


def roundings(meeting: Meeting) -> Iterator[Meeting]:
    yield meeting
    for part in meeting.parts:
        if not isinstance(part, int):
            yield from roundings(part)


@pytest.mark.parametrize("how", [*EXAMPLES.values(), *OTHERS.values()], ids=[*EXAMPLES, *OTHERS])
@given(count=st.none() | st.integers(1, 70))
def test_every_product_is_in_it_once(how: Accumulator, count: int | None) -> None:
    if isinstance(how.segments, tuple):
        count = None
    found = display.summation_order(how, count)
    assert sorted(leaves(found.meeting)) == list(range(found.products))
    picture = ET.fromstring(found.svg)
    marks = Counter(x.get("fill") for x in picture.iter() if x.get("fill", "").startswith("#"))
    assert sum(marks.values()) == len(list(roundings(found.meeting))) + len(found.meanings)
    assert all(text in picture.get("aria-label", "") for text in found.meanings.values())
    assert not any("None" in text for text in found.meanings.values())


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_roundings_are_those_of_the_steps(name: str) -> None:
    """Steps are walked with numbers; the picture knows the accumulator alone."""
    how = EXAMPLES[name]
    fmt = how.inputs[0] if how.inputs else Format.from_name("float16")
    rng = np.random.default_rng(3)
    a, b = (bits.encode(rng.uniform(1, 2, 24), fmt)[0].tolist() for _ in range(2))
    others = how.keeps_zero_sign or how.unsigned_zeros or (how.tree and how.block > 1)
    cut = how.aligned is not None and how.kept_bits is None
    if others or cut or how.block_sum or how.compensation or how.fixed or how.chains > 1 or len(how.reduction) > 1:
        with pytest.raises(ValueError, match="is not shown step by step"):
            sum_in_steps(a, b, fmt, how)
        return
    steps = sum_in_steps(a, b, fmt, how).steps
    assert len(steps) == len(list(roundings(display.summation_order(how, len(a)).meeting)))


def kinds(how: Accumulator, count: int) -> Counter[str]:
    return Counter(meeting.kind for meeting in roundings(display.summation_order(how, count).meeting))


def test_what_meets_what() -> None:
    assert kinds(fma("float16"), 8) == {"running": 8}
    assert kinds(pairwise("float16"), 7) == {"product": 7, "pair": 6}
    assert kinds(chunked(4, "float16", "float32"), 8) == {"running": 8, "reduction": 2}
    assert kinds(amp("half"), 32) == {"running": 8, "stored": 2}
    two_chains = display.summation_order(amx("bfloat16"), 8).meeting
    (section,) = two_chains.parts
    assert not isinstance(section, int)
    assert [sorted(leaves(part)) for part in section.parts if not isinstance(part, int)] == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=f"products must be 1 to {MOST}, which a picture can hold, got 1000"):
        display.summation_order(fma("float16"), 1000)
    with pytest.raises(TypeError, match="accumulator must be"):
        display.summation_order("fma")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_steps_are_those_of_the_sum_or_refused(name: str) -> None:
    """arm_fdot() of 16 products was shown with steps of fused sums, compensated sums without their compensation."""
    how = EXAMPLES[name]
    fmt: Any = how.inputs[0] if how.inputs else Format.from_name("float16")
    rng = np.random.default_rng(5)
    for _ in range(8):
        x = rng.standard_normal(16) * np.exp2(rng.integers(-4, 5, 16))
        a, b = (bits.encode(numbers, fmt)[0] for numbers in (x, rng.standard_normal(16)))
        try:
            found = sum_in_steps(a.tolist(), b.tolist(), fmt, how)
        except ValueError:
            continue
        code, flags = bits.vecdot(a, b, fmt, how, out_format=found.format)
        assert (found.code, int(found.flags)) == (int(code), int(flags))
