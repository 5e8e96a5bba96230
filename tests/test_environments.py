"""Environments: settings and their names, nesting, sticky status, traps that say what happened, the IPU's choices."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import (
    Environment,
    Flags,
    FloatingPointTrap,
    InfiniteInput,
    Overflow,
    Rounding,
    Status,
    StochasticRounding,
    Tininess,
    bits,
    current_environment,
    environment,
)
from softfloat.environments import OWN_SETTINGS, SETTINGS, Settings

HALF, SINGLE, BFLOAT = softfloat.float16, softfloat.float32, softfloat.bfloat16
ONE, LARGEST, INFINITY, NAN = HALF.one_code, HALF.max_code, HALF.inf_code, HALF.nan_code
MINUS = HALF.sign_bit
X, U, O, Z, I = Flags.INEXACT, Flags.UNDERFLOW, Flags.OVERFLOW, Flags.DIVBYZERO, Flags.INVALID  # noqa: E741


# -- settings --------------------------------------------------------------------------------------------------------

MEMBERS: dict[str, tuple[Any, str]] = {
    "rounding": (
        Rounding,
        "nearest_even nearest_away toward_zero toward_positive toward_negative to_odd stochastic nearest_zero nearest_up up_or_down",
    ),
    "overflow": (Overflow, "infinity saturate nan"),
    "tininess": (Tininess, "after before"),
    "infinite_input": (InfiniteInput, "default keep saturate nan"),
}
ABBREVIATIONS = ["RNE", "RNA", "RTZ", "RUP", "RDN", "ODD", "SR"]


@pytest.mark.parametrize("setting", MEMBERS)
def test_members_by_name(setting: str) -> None:
    kind, names = MEMBERS[setting]
    assert [member.name.lower() for member in kind] == names.split()
    for name, member in zip(names.split(), kind, strict=True):
        for value in (member, name, name.upper(), name.replace("_", "-")):
            assert getattr(Environment(**{setting: value}), setting) is member
    with pytest.raises(ValueError, match=rf"^{setting} must be one of '{names.split()[0]}'.* got 'nonsense'"):
        Environment(**{setting: "nonsense"})


def test_rounding_abbreviations() -> None:
    for name, member in zip(ABBREVIATIONS, list(Rounding)[:7], strict=True):
        assert Environment(rounding=name).rounding is member
        assert Environment(rounding=name.lower()).rounding is member


REFUSED: list[tuple[type[Exception], str, dict[str, Any]]] = [
    *((TypeError, f"^{name} must be True or False", {name: 1}) for name in ("daz", "ftz", "replica_identical")),
    (ValueError, "^nan must be one of 'canonical', 'riscv', 'x86', 'x86_fma3', 'arm', 'ipu'", {"nan": "quiet"}),
    (ValueError, "^generator must be one of 'philox4x32', 'xoroshiro128aox'", {"generator": "mt19937"}),
    (ValueError, "^sr_bits must be 1 to 52", {"sr_bits": 0}),
    (ValueError, "^sr_bits must be 1 to 52", {"sr_bits": 53}),
    (TypeError, "^sr_bits must be an integer", {"sr_bits": 1.0}),
    (ValueError, "^seed must be 0 to 18446744073709551615", {"seed": -1}),
    (ValueError, "^seed must be", {"seed": 2**64}),
    (TypeError, "^seed must be an integer", {"seed": "1"}),
    (TypeError, "^seed must be an integer", {"seed": True}),
    (ValueError, "^replica must be", {"replica": -1}),
    (TypeError, "^replica must be an integer", {"replica": None}),
    (ValueError, "^traps has no flag 'OVERFLOWS'; accepted: INEXACT", {"traps": "OVERFLOWS"}),
    (ValueError, "^traps=32 is no combination of flags", {"traps": 32}),
    (TypeError, "^traps must be Flags", {"traps": 1.5}),
    (TypeError, "^traps must be Flags", {"traps": True}),
    (TypeError, "sead", {"sead": 1}),
]


@pytest.mark.parametrize(("error", "message", "settings"), REFUSED)
def test_refused_settings(error: type[Exception], message: str, settings: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        Environment(**settings)
    with pytest.raises(error, match=message), environment(**settings):
        pass
    assert current_environment() == Environment()


def test_defaults_and_immutability() -> None:
    env = Environment()
    assert (env.rounding, env.overflow, env.tininess) == (Rounding.NEAREST_EVEN, Overflow.INFINITY, Tininess.AFTER)
    assert (env.daz, env.ftz, env.nan, env.seed, env.sr_bits, env.traps) == (
        False,
        False,
        "canonical",
        None,
        None,
        Flags(0),
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        env.daz = True  # type: ignore[misc]
    assert Environment() == Environment(rounding="RNE") != Environment(rounding="RTZ")
    for traps in ("INV|OFLO", "invalid, overflow", ["INV", "OFLO"], ("Invalid", "Overflow"), I | O, 20):
        assert Environment(traps=traps).traps == I | O


def test_replace() -> None:
    env = Environment(rounding="RTZ", traps="INV")
    env.status.raise_flags(O)
    other = env.replace(daz=True)
    assert (other.rounding, other.traps, other.daz, other.status.flags) == (env.rounding, env.traps, True, Flags(0))
    assert env.status.flags == O
    with pytest.raises(TypeError, match=r"^unknown setting status, sticky; accepted: accumulator, "):
        env.replace(status=Status(), sticky=True)


def test_settings_are_a_value() -> None:
    """However they were named; traps, accumulator and status are the environment's alone."""
    by_name = Environment(rounding="RTZ", sr_bits=np.int64(8), daz=np.True_)
    by_member = Environment(rounding=Rounding.TOWARD_ZERO, sr_bits=8, daz=True, traps="INV")
    assert by_name.settings == by_member.settings
    assert hash(by_name.settings) == hash(by_member.settings)
    assert Environment(rounding="RTZ").settings is Environment(rounding="RTZ", traps="INV").settings
    assert by_name.settings != Environment(rounding="RTZ", sr_bits=8).settings
    assert type(by_name.sr_bits) is type(by_name.settings.sr_bits) is int
    assert by_name.daz is by_name.settings.daz is True
    ipu = Environment.ipu()
    assert ipu.settings.for_format("float32") == ipu.for_format("float32").settings
    assert ipu.settings.replace(rounding=Rounding.TO_ODD) == ipu.replace(rounding="to_odd").settings
    for name in OWN_SETTINGS:
        assert getattr(ipu, name) is getattr(ipu.settings, name)
    codes = np.arange(0, 2**16, 7, dtype=np.uint16)
    for mine, expected in zip(
        bits.add(codes, ONE, HALF, environment=ipu.settings), bits.add(codes, ONE, HALF, environment=ipu), strict=True
    ):
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.parametrize("settings", [{"daz": []}, {"seed": {}}, {"rounding": [1]}, {"nan": ["x86"]}])
def test_settings_that_nothing_is_kept_under_are_refused_by_name(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
        Environment(**settings)


@pytest.mark.parametrize("setting", ["rounding", "overflow", "tininess", "daz", "ftz", "nan", "infinite_input"])
def test_a_setting_and_an_option_are_the_same(setting: str) -> None:
    """An environment handed to a function does what its settings do as options, and nothing in it changes."""
    value = {
        "rounding": "RUP",
        "overflow": "saturate",
        "tininess": "before",
        "nan": "x86",
        "infinite_input": "nan",
    }.get(setting, True)
    below_tiny, infinity = 0x387FFFFF, SINGLE.inf_code
    codes = np.append(np.arange(0, 2**32, 65521, dtype=np.uint32), np.uint32([below_tiny, infinity]))
    env = Environment(**{setting: value}, traps="INV OFLO UNDERFLOW INEXACT")
    for options in ({"environment": env}, {"environment": env, "flags": "any"}):
        mine = bits.convert(codes, SINGLE, HALF, **options)
        for found, expected in zip(
            mine, bits.convert(codes, SINGLE, HALF, **{setting: value}, flags=options.get("flags", "each")), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    plain = bits.convert(codes, SINGLE, HALF)
    found = bits.convert(codes, SINGLE, HALF, environment=env)
    assert any((x != y).any() for x, y in zip(plain, found, strict=True))
    assert not env.status


# -- nesting ---------------------------------------------------------------------------------------------------------


def test_nesting() -> None:
    outside = current_environment()
    with environment(rounding="RTZ") as outer:
        assert current_environment() is outer
        with environment(daz=True, overflow="saturate") as inner:
            assert current_environment() is inner
            assert (inner.rounding, inner.daz, inner.overflow) == (Rounding.TOWARD_ZERO, True, Overflow.SATURATE)
        assert current_environment() is outer
        assert (outer.daz, outer.overflow) == (False, Overflow.INFINITY)
        with environment(Environment(ftz=True), rounding="RUP") as based:
            assert (based.rounding, based.ftz, based.daz) == (Rounding.TOWARD_POSITIVE, True, False)
    assert current_environment() is outside


def test_an_exception_restores_the_environment_and_keeps_the_flags() -> None:
    before = current_environment()
    with environment() as outer:
        with pytest.raises(FloatingPointTrap), environment(traps="DIV0") as inner:
            inner.evaluate(bits.div, ONE, 0, HALF)
        assert outer.status.flags == Z
        assert current_environment() is outer
    assert current_environment() is before
    before.status.clear()


def test_status_of_an_inner_block() -> None:
    """It starts clear, and is added to the outer one at the end."""
    with environment() as outer:
        outer.status.raise_flags(I)
        with environment() as inner:
            assert not inner.status
            inner.evaluate(bits.add, LARGEST, LARGEST, HALF)
            assert inner.status.flags == O | X
            assert outer.status.flags == I
        assert outer.status.flags == O | X | I
        outer.status.clear()
    assert not current_environment().status


def test_an_environment_is_a_block_itself() -> None:
    env, other = Environment(rounding="RTZ"), Environment.ipu()
    before = current_environment()
    with env as entered, other, env:
        assert entered is env is current_environment()
    assert current_environment() is before
    with env, environment(daz=True) as inner:
        assert inner.rounding is Rounding.TOWARD_ZERO


def test_streams_go_on_unless_a_seed_is_named() -> None:
    x = np.full(100, 1 + HALF.eps / 2)

    def codes(env: Environment) -> tuple[int, ...]:
        return tuple(env.evaluate(bits.encode, x, HALF).tolist())

    with environment(rounding="stochastic", seed=4) as outer:
        first, second = codes(outer), codes(outer)
        with environment(overflow="saturate") as inner:
            third = codes(inner)
        fourth = codes(outer)
        assert len({first, second, third, fourth}) == 4
        with environment(seed=4) as again:
            assert (codes(again), codes(again), codes(again)) == (first, second, third)
        assert codes(outer) not in (first, second, third, fourth)
    with pytest.raises(ValueError, match="needs a seed"), environment(rounding="stochastic") as env:
        codes(env)


# -- status ----------------------------------------------------------------------------------------------------------


def test_status_prints_as_the_ipu_does() -> None:
    env = Environment()
    assert str(env.status) == "OFLO 0x0 DIV0 0x0 INV 0x0"
    env.evaluate(bits.mul, LARGEST, LARGEST, HALF)
    assert str(env.status) == "OFLO 0x1 DIV0 0x0 INV 0x0"
    env.evaluate(bits.div, ONE, 0, HALF)
    assert str(env.status) == "OFLO 0x1 DIV0 0x1 INV 0x0"
    env.evaluate(bits.sqrt, ONE | MINUS, HALF)
    assert str(env.status) == "OFLO 0x1 DIV0 0x1 INV 0x1"
    assert repr(env.status) == "Status(INVALID|DIVBYZERO|OVERFLOW|INEXACT)"


def test_flags_are_sticky_until_cleared() -> None:
    env = Environment()
    assert env.evaluate(bits.div, ONE, 0, HALF) == INFINITY
    assert env.evaluate(bits.add, [ONE, ONE], ONE, HALF).tolist() == [0x4000, 0x4000]
    assert env.status.flags == Z
    env.evaluate(bits.encode, [0.1, 1e9], HALF)
    assert env.status.flags == Z | O | X
    env.status.clear("DIV0")
    assert env.status.flags == O | X
    assert "OFLO" in env.status
    assert Z not in env.status
    assert "OVERFLOW|INEXACT" in env.status
    env.status.clear()
    assert not env.status
    assert env.status == Status()
    assert env.evaluate(bits.add, np.zeros(0, np.uint16), 0, HALF).shape == (0,)
    assert not env.status


def test_a_status_is_no_key_and_takes_names_it_knows() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Status())
    assert Status(O) == Status(4) != Status(I)
    with pytest.raises(ValueError, match=r"^flags=64 is no combination"):
        Status(64)
    with pytest.raises(ValueError, match=r"^flags has no flag 'sticky'"):
        Status().clear("sticky")


def test_flag_names() -> None:
    assert [(flag.name, int(flag)) for flag in Flags] == [
        ("INEXACT", 1),
        ("UNDERFLOW", 2),
        ("OVERFLOW", 4),
        ("DIVBYZERO", 8),
        ("INVALID", 16),
    ]
    assert (Flags.INV, Flags.DIV0, Flags.OFLO) == (I, Z, O)
    assert (str(I | X), str(Flags(0))) == ("INVALID|INEXACT", "none")


def test_flags_of_numpys_integers() -> None:
    """Also as the first flags that a program makes."""
    code = (
        "import numpy, softfloat; print(int(softfloat.Flags(numpy.uint8(3))), softfloat.Status(numpy.int64(17)).flags)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "3 INVALID|INEXACT\n"
    for other in (3.5, "INEXACT", None):
        with pytest.raises(ValueError, match="is not a valid Flags"):
            Flags(other)  # type: ignore[arg-type]


def test_settings_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"^overrides has 'half', another name of float16; accepted: Format\.name"):
        Environment(overrides={"half": Environment(ftz=True)})
    for name in ("flags", "environment"):
        with pytest.raises(TypeError, match=f"^{name} is not for evaluate, which sets it itself"):
            Environment().evaluate(bits.add, 1, 1, HALF, **{name: None})
    with pytest.raises(ValueError, match=r"^rounding must be one of"):
        softfloat.environment(rounding="up")
    with pytest.raises(TypeError, match=r"^unknown setting roundin; accepted: "):
        softfloat.environment(roundin="toward_zero")
    with pytest.raises(TypeError, match=r"^base must be a softfloat\.Environment, got str"):
        softfloat.environment("toward_zero")  # type: ignore[arg-type]


def test_what_a_block_leaves_open_is_settled_where_it_begins() -> None:
    made = softfloat.environment(overflow="saturate")
    with softfloat.environment(rounding="toward_zero"), made as env:
        assert (env.rounding, env.overflow) == (Rounding.TOWARD_ZERO, Overflow.SATURATE)

    @softfloat.environment(ftz=True)
    def flags() -> Flags:
        softfloat.array(1e-8, HALF)
        return softfloat.current_environment().status.flags

    with softfloat.environment(rounding="toward_positive", daz=True) as env:
        assert flags() == flags() == Flags.UNDERFLOW | Flags.INEXACT
        softfloat.current_environment().status.clear()
        assert flags() == Flags.UNDERFLOW | Flags.INEXACT
        assert env.status.flags == Flags.UNDERFLOW | Flags.INEXACT


# -- traps -----------------------------------------------------------------------------------------------------------

GRID = np.full((2, 3), ONE, np.uint16)
POKED = GRID.copy()
POKED[1, 1] = POKED[1, 2] = LARGEST

TRAPS: list[tuple[str, Any, tuple[Any, ...], Flags, tuple[int, ...], tuple[Any, ...]]] = [
    ("OFLO", bits.add, (LARGEST, LARGEST, HALF), O, (), (LARGEST, LARGEST)),
    ("DIV0", bits.div, ([ONE, ONE], [ONE, 0], HALF), Z, (1,), (ONE, 0)),
    ("INV", bits.sqrt, (np.array([ONE, MINUS | ONE]), HALF), I, (1,), (MINUS | ONE,)),
    ("INV DIV0", bits.div, ([0, ONE], 0, HALF), I, (0,), (0, 0)),
    ("INV DIV0", bits.div, ([ONE, 0], 0, HALF), Z, (0,), (ONE, 0)),
    ("OFLO", bits.mul, (POKED, np.array([ONE, 0x4000, 0x4000], np.uint16), HALF), O, (1, 1), (LARGEST, 0x4000)),
    ("OFLO", bits.mul, (POKED[::-1, ::-1], 0x4000, HALF), O, (0, 0), (LARGEST, 0x4000)),
    ("INV", bits.fma, (INFINITY, [ONE, 0], ONE, HALF), I, (1,), (INFINITY, 0, ONE)),
    ("INEXACT|OVERFLOW", bits.add, (LARGEST, LARGEST, HALF), O | X, (), (LARGEST, LARGEST)),
    ("UNDERFLOW", bits.mul, ([ONE, 1], 0x3800, HALF), U, (1,), (1, 0x3800)),
    ("INV", bits.eq, (0x7C01, ONE, HALF), I, (), (0x7C01, ONE)),
    ("INV", bits.lt, (ONE, [ONE, NAN], HALF), I, (1,), (ONE, NAN)),
    ("INV", bits.minimum, (ONE, 0x7C01, HALF), I, (), (ONE, 0x7C01)),
    ("INV", bits.next_up, ([ONE, 0x7C01], HALF), I, (1,), (0x7C01,)),
    ("INV", bits.to_integer, (INFINITY, HALF, np.int8), I, (), (INFINITY,)),
    ("OFLO", bits.convert, ([ONE, LARGEST], HALF, softfloat.float8_e4m3fn), O, (1,), (LARGEST,)),
    ("OFLO", bits.encode, (np.array([1.0, -1e6]), HALF), O, (1,), (-1e6,)),
    ("OFLO", bits.encode, ([1.0, 1e6], HALF), O, (1,), (1e6,)),
    ("OFLO", bits.encode, (10**6, "float16"), O, (), (10**6,)),
    ("OFLO", bits.encode, (Fraction(10**6), HALF), O, (), (Fraction(10**6),)),
    ("OFLO", bits.encode, (10**400, HALF), O, (), (10**400,)),
    ("OFLO", bits.encode, ([1, 10**400], HALF), O, (1,), (10**400,)),
    ("INEXACT", bits.encode, ([1, Fraction(1, 3)], HALF), X, (1,), (Fraction(1, 3),)),
]


@pytest.mark.parametrize(("traps", "operation", "operands", "flags", "index", "values"), TRAPS)
def test_traps(traps: str, operation: Any, operands: Any, flags: Flags, index: Any, values: Any) -> None:
    untrapped = Environment()
    untrapped.evaluate(operation, *operands)
    env = Environment(traps=traps)
    with pytest.raises(FloatingPointTrap) as caught:
        env.evaluate(operation, *operands)
    trap = caught.value
    assert (trap.flags, trap.operation, trap.index, trap.operands) == (flags, operation.__name__, index, values)
    assert str(flags) in str(trap)
    assert f"{operation.__name__}(" in str(trap)
    assert str(index) in str(trap)
    assert isinstance(trap, FloatingPointError)
    assert env.status == untrapped.status
    again = pickle.loads(pickle.dumps(trap))
    assert (again.flags, again.operation, again.index, again.operands) == (flags, operation.__name__, index, values)
    assert (str(again), repr(again)) == (str(trap), repr(trap))


def test_a_trap_names_everything() -> None:
    with pytest.raises(FloatingPointTrap, match=r"^OVERFLOW raised by mul\(0x7bff, 0x4000\) at index \(1, 1\)$"):
        Environment(traps="OFLO").evaluate(bits.mul, POKED, [ONE, 0x4000, 0x4000], HALF)


def test_flags_have_their_names_on_the_ipu() -> None:
    env = Environment.ipu(inv=True, div0=True, oflo=True, nanoo=True)
    assert "traps='INV|DIV0|OFLO'" in repr(env)
    with pytest.raises(
        FloatingPointTrap, match=r"^INV\|OFLO raised by add\(0x7bff, 0x7bff\) at index \(0,\)$"
    ) as caught:
        env.evaluate(bits.add, [LARGEST], LARGEST, HALF)
    assert str(env.status) == "OFLO 0x1 DIV0 0x0 INV 0x1"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert str(caught.value.moved((3, 4), "square")) == "INV|OFLO raised by square(0x7bff, 0x7bff) at index (3, 4)"
    assert Flags.INEXACT.named("ipu") == "INEXACT"
    assert [flag.named() for flag in (O | X, Flags(0))] == ["OVERFLOW|INEXACT", "none"]
    with environment(env), pytest.raises(FloatingPointTrap, match=r"^INV\|OFLO raised"):
        softfloat.array(1e6, HALF)


def test_other_flags_do_not_trap() -> None:
    env = Environment(traps="INV DIV0")
    assert env.evaluate(bits.add, LARGEST, LARGEST, HALF) == INFINITY
    assert env.status.flags == O | X
    env.status.raise_flags(I)
    assert env.evaluate(bits.add, ONE, ONE, HALF) == 0x4000


def test_a_trap_comes_after_the_operation() -> None:
    out = np.zeros(2, np.uint16)
    with environment(traps="DIV0") as env:
        with pytest.raises(FloatingPointTrap):
            env.evaluate(bits.div, [ONE, ONE], [0, ONE], HALF, out=out)
        assert out.tolist() == [INFINITY, ONE]
        assert env.status.flags == Z


# -- the IPU ---------------------------------------------------------------------------------------------------------


def test_ipu_takes_graphcores_argument_order() -> None:
    assert Environment.ipu() == Environment.ipu(False, False, False, StochasticRounding.OFF, False)
    for position, flag in enumerate([I, Z, O]):
        arguments = [position == i for i in range(3)]
        assert Environment.ipu(*arguments).traps == flag
    assert Environment.ipu(True, True, True).traps == I | Z | O
    assert Environment.ipu(False, False, False, True, seed=1).rounding is Rounding.STOCHASTIC
    assert Environment.ipu(False, False, False, False, True).overflow is Overflow.NAN
    for esr, identical in [(StochasticRounding.ON, False), (StochasticRounding.REPLICA_IDENTICAL_ONLY, True)]:
        env = Environment.ipu(esr=esr, seed=3, replica=2)
        assert (env.rounding, env.replica_identical, env.seed, env.replica) == (Rounding.STOCHASTIC, identical, 3, 2)
        assert Environment.ipu(esr=esr.name, seed=3, replica=2) == env
    assert Environment.ipu(esr="on", seed=1) == Environment.ipu(esr="ON", seed=1) == Environment.ipu(esr=True, seed=1)
    for bad in (1, None):
        with pytest.raises(TypeError, match=r"^esr must be a bool or one of StochasticRounding.OFF"):
            Environment.ipu(esr=bad)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"^esr must be one of OFF, ON, REPLICA_IDENTICAL_ONLY, got 'of'; did you mean 'OFF'"
    ):
        Environment.ipu(esr="of")


IPU_CASES: list[tuple[bool, Any, Any, int, Flags]] = [
    (False, bits.add, (LARGEST, LARGEST, HALF), LARGEST, O | X),
    (True, bits.add, (LARGEST, LARGEST, HALF), NAN, O | X | I),
    (False, bits.add, (LARGEST | MINUS, LARGEST | MINUS, HALF), LARGEST | MINUS, O | X),
    (False, bits.add, (NAN, ONE, HALF), NAN, I),
    (False, bits.div, (ONE, 0, HALF), INFINITY, Z),
    (False, bits.encode, (1e6, HALF), LARGEST, O | X),
    (False, bits.encode, (np.inf, HALF), INFINITY, Flags(0)),
    (True, bits.encode, (np.inf, HALF), NAN, I),
    (False, bits.mul, (1, ONE, HALF), 1, Flags(0)),
    (False, bits.add, (SINGLE.max_code, SINGLE.max_code, SINGLE), SINGLE.inf_code, O | X),
    (True, bits.add, (SINGLE.max_code, SINGLE.max_code, SINGLE), SINGLE.inf_code, O | X),
    (False, bits.mul, (1, SINGLE.one_code, SINGLE), 0, Flags(0)),
]


@pytest.mark.parametrize(("nanoo", "operation", "operands", "code", "flags"), IPU_CASES)
def test_ipu_results(nanoo: bool, operation: Any, operands: Any, code: int, flags: Flags) -> None:
    env = Environment.ipu(nanoo=nanoo)
    assert env.evaluate(operation, *operands) == code
    assert env.status.flags == flags


def test_ipu_traps() -> None:
    env = Environment.ipu(True, True, True, nanoo=True)
    for operation, operands, flags in [
        (bits.add, (NAN, ONE), I),
        (bits.div, (ONE, 0), Z | I),  # infinity, narrowed under nanoo, is NaN
        (bits.add, (LARGEST, LARGEST), O | I),
    ]:
        with pytest.raises(FloatingPointTrap) as caught:
            env.evaluate(operation, *operands, HALF)
        assert caught.value.flags == flags


def test_overrides_go_by_format() -> None:
    env = Environment(rounding="RUP", overrides={"bfloat16": Environment(rounding="RTZ")})
    assert env.for_format("bfloat16").rounding is Rounding.TOWARD_ZERO
    assert env.for_format("float16") is env
    for fmt in (BFLOAT, "bfloat16", "bf16"):
        assert env.evaluate(bits.encode, 1 + 2.0**-20, fmt) == BFLOAT.one_code
    assert env.evaluate(bits.encode, 1 + 2.0**-20, HALF) == ONE + 1


def test_an_ipu_half_is_never_infinite_under_nanoo() -> None:
    env = Environment.ipu(nanoo=True)
    assert env.evaluate(bits.div, ONE, 0, HALF) == NAN
    assert env.evaluate(bits.add, HALF.inf_code, ONE, HALF) == NAN
    assert env.status.flags == Z | I
    assert Environment.ipu(nanoo=False).evaluate(bits.div, ONE, 0, HALF) == HALF.inf_code


def test_one_environment_in_two_contexts() -> None:
    """Entered in one thread and, before that leaves, in another: each restores its own."""
    env = Environment(rounding="toward_zero")
    inside, seen = threading.Barrier(2), []

    def enter(order: int) -> None:
        with env:
            inside.wait()
            if order:
                first_left.wait()
        seen.append(current_environment().rounding)
        first_left.set()

    first_left = threading.Event()
    threads = [threading.Thread(target=enter, args=(order,)) for order in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [Rounding.NEAREST_EVEN] * 2
    with env, env:
        assert current_environment() is env
    assert current_environment() is not env


def test_named_settings_reach_overrides() -> None:
    with Environment.ipu(), softfloat.environment(rounding="toward_negative") as env:
        assert env.evaluate(bits.encode, 0.1, SINGLE) == 0x3DCCCCCC
        assert env.for_format("float32").daz


@pytest.mark.parametrize("overrides", [{"float16": "toward_zero"}, {HALF: Environment()}, ["float16"]])
def test_bad_overrides(overrides: Any) -> None:
    with pytest.raises(TypeError, match=r"^overrides must map names of formats to Environments"):
        Environment(overrides=overrides)


def test_environments_travel() -> None:
    env = Environment.ipu(inv=True, esr=True, nanoo=True, seed=3)
    env.status.raise_flags(I)
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    for other in copies:
        assert other == env
        assert hash(other) == hash(env)
        assert not other.status
    assert pickle.loads(pickle.dumps(env.status)) == env.status


def test_evaluate_takes_what_the_function_takes() -> None:
    codes, flags = np.zeros(2, np.uint16), np.zeros(2, np.uint8)
    Environment().evaluate(bits.add, [LARGEST, ONE], LARGEST, HALF, out=(codes, flags))
    assert flags.tolist() == [5, 1]
    with pytest.raises(FloatingPointTrap) as caught:
        Environment(traps="INV").evaluate(bits.sub, a=HALF.inf_code, b=HALF.inf_code, fmt=HALF)
    assert caught.value.operands == (HALF.inf_code, HALF.inf_code)
    with pytest.raises(TypeError, match="decode returns none"):
        Environment().evaluate(bits.decode, ONE, HALF)


def test_status_refuses_what_is_no_flag() -> None:
    with pytest.raises(ValueError, match="flags=64"):
        Environment().status.raise_flags(64)


def test_settings_and_environments_have_the_same_names_and_defaults() -> None:
    settings, env = Settings(), Environment()
    of_conversions = {"payloads"}  # what `Settings.between` finds
    own = {field.name for field in dataclasses.fields(Settings) if field.init} - of_conversions
    assert own == set(SETTINGS) - {"traps", "accumulator", "position"}
    assert own == {*OWN_SETTINGS, "overrides"}
    assert all(getattr(env, name) == getattr(settings, name) for name in own)
    assert env.settings == settings


@pytest.mark.parametrize(
    "env",
    [
        Environment(),
        Environment.ipu(),
        Environment.ipu(True, True, True, True, True, seed=2**40, replica=3),
        Environment.arm("RZ", fz16=True, ah=True),
        Environment.x86(0x9FC0),
        Environment.p3109("StochasticC", bits=3, seed=1),
        Environment(traps="INVALID", position=softfloat.Position(3), sr_method="half"),
    ],
    ids=range(7),
)
def test_what_is_printed_makes_it_again(env: Environment) -> None:
    """Settings that are not the default ones, in words: `Environment.ipu()` took 790 characters."""
    names = {"Environment": Environment, "Position": softfloat.Position}
    assert eval(repr(env), names) == env
    assert len(repr(env)) < 300
    assert "Environment(" in repr(env)


def test_default_settings_are_not_printed() -> None:
    assert repr(Environment()) == "Environment()"
    assert repr(Environment(daz=True, rounding="RTZ")) == "Environment(rounding='toward_zero', daz=True)"


@pytest.mark.parametrize(
    ("settings", "meant"),
    [
        ({"rounding": "nearest-evn"}, "nearest_even"),
        ({"rounding": "towards_zero"}, "toward_zero"),
        ({"overflow": "saturated"}, "saturate"),
        ({"nan": "canonicl"}, "canonical"),
        ({"sr_method": "truncated"}, "truncate"),
        ({"generator": "philox"}, "philox4x32"),
    ],
)
def test_what_was_meant(settings: dict[str, str], meant: str) -> None:
    for call in (Environment, lambda **options: bits.add(1, 1, "float16", **options)):
        with pytest.raises(ValueError, match=rf"did you mean '{meant}'\?$"):
            call(**settings)  # type: ignore[arg-type]


def test_options_and_accumulators_that_were_meant() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'roundng'.*did you mean 'rounding'\?$"):
        bits.add(1, 1, "float16", roundng="RNE")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"unknown setting roundng.*did you mean 'rounding'\?$"):
        Environment().replace(roundng="RNE")
    with pytest.raises(TypeError, match=r"accumulator must be .*got 'tensorcore'; did you mean 'tensor_core'\?$"):
        bits.vecdot([1], [1], "float16", "tensorcore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"arch must be .*got 'H10O'; did you mean 'H100'\?$"):
        softfloat.accumulators.tensor_core("H10O")
