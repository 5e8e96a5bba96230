"""`softfloat.chop`: the options of chop, CPFloat and pychop, held against results that CPFloat computed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Flags, bits
from softfloat.chop import Chop, Options, chop, defaults, float_params

GOLDEN = np.load(Path(__file__).with_name("cpfloat.npz"))
"""Inputs, options and results of CPFloat 3583976. A row of options: p, emin, emax, subnormal, round, explim, infinity, saturation."""
NAMES = sorted(name.removesuffix("_inputs") for name in GOLDEN if name.endswith("_inputs"))


def same(found: Any, wanted: Any) -> Any:
    return (found == wanted) | (np.isnan(found) & np.isnan(wanted))


@pytest.mark.parametrize("name", NAMES)
def test_results_of_cpfloat(name: str) -> None:
    """All are equal, but for the sign of zeros, and infinite operands where there are no infinities and the mode is no nearest one."""
    x = GOLDEN[f"{name}_inputs"]
    for options, results in zip(GOLDEN[f"{name}_options"], GOLDEN[f"{name}_results"].view(np.float64), strict=True):
        p, emin, emax, subnormal, mode, explim, infinity, saturation = (int(number) for number in options)
        asked = Options(
            format="c", params=(p, emin, emax), subnormal=subnormal, round=mode, explim=explim, infinity=infinity, saturation=saturation
        )  # fmt: skip
        compared = np.isfinite(x) if infinity == 0 and mode != 1 else np.ones(x.size, bool)
        found = chop(x, asked)
        assert same(found, results)[compared].all(), (options, x[compared & ~same(found, results)])
        zeros = compared & (found == 0)
        assert (np.signbit(found) == np.signbit(x))[zeros].all()


@pytest.mark.parametrize(
    ("format_", "name"),
    [("h", "h"), ("bfloat16", "b"), ("fp8-e5m2", "q52"), ("tf32", "t"), ("single", "s"), ("q43", "c4")],
)
def test_names_are_precision_and_exponents(format_: str, name: str) -> None:
    x = GOLDEN[f"{name}_inputs"]
    p, emin, emax = (int(number) for number in GOLDEN[f"{name}_options"][0][:3])
    for mode in (1, 4):
        custom = chop(x, Options(format="c", params=(p, emin, emax), round=mode, subnormal=0 if name == "b" else 1))
        assert same(chop(x, Options(format=format_, round=mode)), custom).all()
    assert float_params(format_)[4:] == (p, emin - p + 1, emin, emax)


def test_what_stands_at_what() -> None:
    """chop's documentation, and CPFloat's where chop has no such field."""
    assert Options() == Options(
        format="h", round=1, flip=0, p=0.5, explim=1, params=None, infinity=None, saturation=None, seed=None
    )
    assert chop(1e-39, Options(format="b")) == 0.0 != chop(1e-39, Options(format="b", subnormal=1))
    assert chop(1e-7, Options(format="h")) == 2 * 2.0**-24
    assert chop(250.0, Options(format="q43")) == math.inf
    assert chop(460.0, Options(format="E4M3")) == 448.0
    assert math.isnan(chop(470.0, Options(format="E4M3")))
    assert chop(1e300, Options(format="E4M3", saturation=1)) == 448.0
    assert chop([0.1, 3.0], Options(format="d")).tolist() == [0.1, 3.0]
    assert chop(1e-310, Options(format="d", subnormal=0)) == 0.0
    assert chop(np.pi * 1e200, Options(format="h", explim=0)) == softfloat.round(np.pi * 1e200, (11, 1023))
    assert chop(np.float32(1e30), Options(format="h", explim=0)).dtype == np.float32


def test_single_precision_stays() -> None:
    x = np.array([0.1, 3.4e38, 1e-42, -math.inf], np.float32)
    for options in (Options(format="d"), Options(format="c", params=(30, 200)), Options(format="s")):
        found = chop(x, options)
        assert found.dtype == np.float32
        assert found.tobytes() == x.tobytes()
    assert chop(x[1], Options(format="c", params=(8, 500), round=2)) == np.float32(math.inf)


def test_options_come_with_the_call_or_around_it() -> None:
    with pytest.raises(TypeError, match=r"softfloat\.chop\.defaults"):
        chop(0.1)
    with defaults(format="b", round=2) as outer:
        assert chop(0.1) == chop(0.1, outer) == 0.10009765625
        with defaults({"format": "h"}):
            assert chop(0.1) == 0.0999755859375
        assert chop(0.1, {"format": "b", "round": 3}) == 0.099609375
        assert chop(0.1) == 0.10009765625
    with pytest.raises(TypeError, match="options"):
        chop(0.1)


def test_environments_change_no_number() -> None:
    odd = softfloat.Environment(overflow="saturate", ftz=True, daz=True)
    with softfloat.environment(
        rounding="toward_zero", overflow="saturate", ftz=True, projection="p3109", overrides={"float16": odd}
    ) as env:
        assert chop(70000.0, Options(format="h")) == math.inf
        assert chop(1e-6, Options(format="h")) == 17 * 2.0**-24
        assert env.status.flags & Flags.OVERFLOW


def test_seeds() -> None:
    x = np.full(1000, 0.1)
    options = Options(format="b", round=5, seed=1)
    first, second = chop(x, options), chop(x, options)
    assert (first != second).any()
    wanted = bits.decode(bits.encode(x, "bfloat16", rounding="stochastic", seed=1)[0], "bfloat16")
    assert (first == wanted).all()
    assert (chop(x, Options(format="b", round=5, seed=1)) == first).all()
    with softfloat.environment(seed=1):
        assert (chop(x, Options(format="b", round=5)) == first).all()
        assert (chop(x, Options(format="b", round=5)) == second).all()
    with pytest.raises(TypeError, match="counts the calls"):
        chop(x, {"round": 5, "seed": 1})
    with pytest.raises(ValueError, match="seed"):
        chop(x, Options(round=5))


def test_random_numbers_of_ones_own() -> None:
    """chop goes up where the number is no more than the fraction that is dropped."""
    x = np.array([1.0, 1.25, 1.25, 1.25, -1.25, 1.5]) * 2.0**-24
    own = Options(format="h", round=5, randfunc=lambda n: np.array([0.0, 0.25, 0.2500001, 0.0, 0.25, 0.75])[:n])
    assert (chop(x, own) * 2.0**24).tolist() == [1.0, 2.0, 1.0, 2.0, -2.0, 1.0]
    either = Options(format="h", round=6, randfunc=lambda n: np.array([0.0, 0.5, 0.5000001, 0.0, 0.25, 0.75])[:n])
    assert (chop(x, either) * 2.0**24).tolist() == [1.0, 2.0, 1.0, 2.0, -2.0, 1.0]
    with pytest.raises(ValueError, match="randfunc must give 6 numbers"):
        chop(x, Options(format="h", round=5, randfunc=lambda n: [0.5]))


def test_bit_errors() -> None:
    x = np.linspace(1, 2, 500)
    plain = chop(x, Options(format="h"))
    for flip, width in ((1, 10), (2, 16)):
        codes, before = (
            bits.encode(v, "float16")[0] for v in (chop(x, Options(format="h", flip=flip, p=1.0, seed=3)), plain)
        )
        numbers = ~bits.isnan(codes, "float16")
        assert (np.bitwise_count(codes ^ before)[numbers] == 1).all()
        assert int((codes ^ before)[numbers].max()).bit_length() == width
    assert (chop(x, Options(format="h", flip=1, p=0.0, seed=3)) == plain).all()


def test_pychops_class() -> None:
    x = np.concatenate([np.random.default_rng(1).standard_normal(500), [70000.0, 65520.0, -1e-9]])
    for rmode, rounding in {
        1: "nearest_even",
        2: "toward_positive",
        3: "toward_negative",
        4: "toward_zero",
        7: "nearest_zero",
        8: "nearest_away",
        9: "to_odd",
    }.items():
        for subnormal in (True, False):
            found = Chop(5, 10, rmode, subnormal)(x)
            assert (found == softfloat.round(x, (11, 15), rounding, subnormals=subnormal)).all()
    half = Chop(exp_bits=5, sig_bits=10, rmode=5)
    assert half.u == 2.0**-11
    first = half(x)
    assert (half(x) != first).any()
    assert (Chop(5, 10, 5)(x) == first).all()
    assert (Chop(5, 10, 5, random_state=7)(x) != first).any()
    assert Chop(11, 52)(0.1) == 0.1
    third = np.full(1000, 1 / 3)
    assert 400 < (Chop(5, 10, 6)(third) > third).sum() < 600
    assert (Chop(5, 10, 6)(third) == Chop(5, 10, 10)(third)).all()
    assert eval(repr(half))(0.5) == 0.5


def test_float_params() -> None:
    """chop's table."""
    assert float_params("q43") == (2.0**-4, 2.0**-9, 2.0**-6, 240.0, 4, -9, -6, 7)
    assert float_params() == (2.0**-53, 5e-324, 2.0**-1022, 1.7976931348623157e308, 53, -1074, -1022, 1023)
    assert float_params("q")[1:] == (0.0, 0.0, math.inf, 113, -16494, -16382, 16383)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "haf"}, "did you mean 'half'"),
        ({"round": 8}, "no rounding"),
        ({"round": 9}, "round must be one of -1, 0, 1"),
        ({"round": True}, "round must be"),
        ({"flip": 3}, "flip must be"),
        ({"flip": 1}, "seed"),
        ({"p": 1.5}, "probability"),
        ({"subnormal": 2}, "subnormal must be"),
        ({"format": "c"}, r"params must be \(precision, emax\)"),
        ({"format": "c", "params": (11.5, 15)}, "params must be"),
        ({"format": "c", "params": (60, 15)}, "p must be 1 to 53"),
        ({"format": "E4M3", "infinity": 1}, "no infinities"),
        ({"rounding": 1}, "did you mean 'round'"),
        ({"drcheck": 1}, "unknown option"),
        ({"randfunc": 3}, "randfunc must be"),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        chop([0.5], options)


def test_refusals_of_pychops_class() -> None:
    for arguments, words in (
        ((12, 10), "exp_bits"),
        ((5, 53), "sig_bits"),
        ((5, 10, 0), "rmode"),
        ((5, 10, 11), "rmode"),
    ):
        with pytest.raises(ValueError, match=words):
            Chop(*arguments)
    with pytest.raises(TypeError, match="not both"), defaults(Options(), format="h"):
        pass
