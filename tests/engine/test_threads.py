"""Results do not depend on how many threads share an array or call at once, on Numba's layer, or on the task."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import softfloat
from softfloat import Environment, Flags, FloatingPointTrap, bits, current_environment, environment

SIZE = (1 << 18) + 12345  # four shares and a rest that is no multiple of anything
HALF = softfloat.float16


@pytest.fixture
def threads() -> Iterator[None]:
    before = softfloat.get_num_threads()
    yield
    softfloat.set_num_threads(before)


def operands(count: int = 3) -> list[np.ndarray]:
    draw = np.random.default_rng(8)
    return [draw.integers(0, 1 << 16, SIZE, dtype=np.uint16) for _ in range(count)]


A, B, C = operands()
X = np.random.default_rng(9).normal(size=SIZE) * 1e4
DRAWN: dict[str, Any] = {"rounding": "stochastic", "seed": 5, "stream": 3}
RANDOM = np.random.default_rng(10).integers(0, 1 << 16, SIZE, dtype=np.uint16)
CALLS = {
    "add": lambda **k: bits.add(A, B, HALF, **k),
    "fma": lambda **k: bits.fma(A, B, C, HALF, **k),
    "sqrt": lambda **k: bits.sqrt(A, HALF, **k),
    "div upward": lambda **k: bits.div(A, B, HALF, rounding="RUP", **k),
    "encode": lambda **k: bits.encode(X, HALF, **k),
    "le": lambda **k: bits.le(A, B, HALF, **k),
    "maximum": lambda **k: bits.maximum(A, B, HALF, **k),
    "to_integer drawn": lambda **k: bits.to_integer(A, HALF, np.int16, **DRAWN, **k),
    "encode drawn": lambda **k: bits.encode(X, HALF, **DRAWN, **k),
    "encode drawn by one bit": lambda **k: bits.encode(X, HALF, sr_bits=1, **DRAWN, **k),
    "encode drawn by xoroshiro": lambda **k: bits.encode(X, HALF, generator="xoroshiro128aox", **DRAWN, **k),
    "encode drawn by hand": lambda **k: bits.encode(X, HALF, rounding="stochastic", random_bits=RANDOM, **k),
    "fma drawn": lambda **k: bits.fma(A, B, C, HALF, **DRAWN, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_shares_do_not_matter(name: str, threads: None) -> None:
    softfloat.set_num_threads(1)
    codes, flags = CALLS[name]()
    for count in (1, 2, 3):
        softfloat.set_num_threads(count)
        assert softfloat.get_num_threads() == count
        found, raised = CALLS[name]()
        np.testing.assert_array_equal(found, codes)
        np.testing.assert_array_equal(raised, flags)
        found, together = CALLS[name](flags="any")
        np.testing.assert_array_equal(found, codes)
        assert together == np.bitwise_or.reduce(flags)


def test_shares_of_what_has_no_flags(threads: None) -> None:
    results = []
    for count in (1, 2, 3):
        softfloat.set_num_threads(count)
        results.append((bits.decode(A, HALF), bits.random_bits(SIZE, seed=1, stream=1)))
    for values, random in results[1:]:
        np.testing.assert_array_equal(values.view(np.uint64), results[0][0].view(np.uint64))
        np.testing.assert_array_equal(random, results[0][1])


def test_a_lone_flag_in_the_last_share(threads: None) -> None:
    codes = np.full(SIZE, HALF.one_code, np.uint16)
    for place in (0, SIZE // 2, SIZE - 1):
        spoiled = codes.copy()
        spoiled[place] = 0
        for count in (1, 2, 3):
            softfloat.set_num_threads(count)
            assert bits.div(codes, spoiled, HALF, flags="any")[1] == Flags.DIVBYZERO
            with pytest.raises(FloatingPointTrap) as caught:
                Environment(traps="DIV0").evaluate(bits.div, codes, spoiled, HALF)
            assert caught.value.index == (place,)


def test_bad_counts(threads: None) -> None:
    before = softfloat.get_num_threads()
    for bad in (0, -1, 1.5, True, "2", None):
        with pytest.raises(ValueError, match=r"^count must be a positive integer"):
            softfloat.set_num_threads(bad)  # type: ignore[arg-type]
    assert softfloat.get_num_threads() == before


# -- callers ---------------------------------------------------------------------------------------------------------


def test_callers_at_once(threads: None) -> None:
    softfloat.set_num_threads(2)
    names = ["add", "fma", "encode drawn", "le"]
    expected = {name: CALLS[name]() for name in names}
    with ThreadPoolExecutor(8) as pool:
        for name, found in zip(names * 6, pool.map(lambda name: CALLS[name](), names * 6), strict=True):
            for x, y in zip(found, expected[name], strict=True):
                np.testing.assert_array_equal(x, y)


def test_the_count_may_change_while_others_compute(threads: None) -> None:
    expected = CALLS["add"]()
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            for count in (2, 3):
                softfloat.set_num_threads(count)

    with ThreadPoolExecutor(4) as pool:
        changing = pool.submit(change)
        try:
            calls = [pool.submit(CALLS["add"]) for _ in range(60)]
            for call in calls:
                for x, y in zip(call.result(), expected, strict=True):
                    np.testing.assert_array_equal(x, y)
        finally:
            done.set()
        changing.result()


def test_callers_raise_into_one_status() -> None:
    env = Environment()
    one, most = HALF.one_code, HALF.max_code
    work = [(bits.div, one, 0), (bits.add, most, most), (bits.add, one, 1), (bits.div, 0, 0)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda job: env.evaluate(job[0], *job[1:], HALF), work * 50))
    assert env.status.flags == Flags.DIVBYZERO | Flags.OVERFLOW | Flags.INEXACT | Flags.INVALID


def test_streams_of_callers_differ() -> None:
    """Whatever the order of the calls, no two operations of an environment draw the same numbers."""
    env = Environment(rounding="stochastic", seed=1)
    x = np.full(200, 1 + HALF.eps / 2)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: tuple(env.evaluate(bits.encode, x, HALF).tolist()), range(64)))
    expected = {tuple(bits.encode(x, HALF, rounding="stochastic", seed=1, stream=i)[0].tolist()) for i in range(64)}
    assert set(found) == expected
    assert len(expected) == 64


def test_threads_have_environments_of_their_own() -> None:
    barrier = threading.Barrier(4)

    def work(rounding: str) -> tuple[int, bool]:
        assert current_environment() == Environment()
        with environment(rounding=rounding) as env:
            barrier.wait(timeout=30)
            code = current_environment().evaluate(bits.encode, 1 + 2.0**-12, HALF)
            barrier.wait(timeout=30)
            if rounding == "RUP":
                env.status.raise_flags(Flags.INVALID)
            barrier.wait(timeout=30)
            assert current_environment() is env
            return int(code), Flags.INVALID in env.status

    with environment(rounding="ODD", daz=True) as outer, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, ["RUP", "RDN", "RNE", "RTZ"]))
        assert found == [(0x3C01, True), (0x3C00, False), (0x3C00, False), (0x3C00, False)]
        assert not outer.status


def test_tasks_have_environments_of_their_own() -> None:
    async def work(rounding: str, flag: Flags) -> tuple[int, Flags]:
        with environment(rounding=rounding) as env:
            for _ in range(3):
                await asyncio.sleep(0)
                assert current_environment() is env
                code = current_environment().evaluate(bits.encode, 1 + 2.0**-12, HALF)
            env.status.raise_flags(flag)
            await asyncio.sleep(0)
            return int(code), env.status.flags

    async def all_tasks() -> list[tuple[int, Flags]]:
        return await asyncio.gather(work("RUP", Flags.INVALID), work("RDN", Flags.OVERFLOW), work("ODD", Flags(0)))

    with environment(ftz=True) as outer:
        found = asyncio.run(all_tasks())
        assert current_environment() is outer
    assert [code for code, _ in found] == [0x3C01, 0x3C00, 0x3C01]
    assert [flags & ~Flags.INEXACT for _, flags in found] == [Flags.INVALID, Flags.OVERFLOW, Flags(0)]


# -- processes -------------------------------------------------------------------------------------------------------

CALLERS = """
import os
import threading
import numpy as np
import softfloat
from softfloat import bits

softfloat.set_num_threads(2)
draw = np.random.default_rng(0)
a, b = draw.normal(size=(2, 150_000)).astype(np.float16)
codes = a.view(np.uint16), b.view(np.uint16)
drawn = {"rounding": "stochastic", "seed": 1}
with np.errstate(all="ignore"):
    expected = {"add": (a + b).view(np.uint16), "mul": (a * b).view(np.uint16)}
failures = []
def call():
    try:
        for _ in range(3):
            for name, codes_expected in expected.items():
                np.testing.assert_array_equal(getattr(bits, name)(*codes, "float16")[0], codes_expected)
            drawn_codes.append(bits.add(*codes, "float16", **drawn)[0])
    except BaseException as error:
        failures.append(error)
drawn_codes = []
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
assert len(drawn_codes) == 24 and all((x == drawn_codes[0]).all() for x in drawn_codes)
"""

FORKING = (
    CALLERS
    + """
child = os.fork()
if child == 0:
    failures.clear()
    call()
    os._exit(bool(failures))
assert os.waitpid(child, 0)[1] == 0
"""
)


def python(script: str, **settings: str) -> None:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("layer", ["default", "workqueue", "omp"])
def test_first_calls_from_eight_threads(layer: str) -> None:
    """Imports, compilations and calls race in a fresh process, under whatever layer Numba is told to use."""
    python(CALLERS, NUMBA_THREADING_LAYER=layer)


def test_numba_num_threads_is_the_first_count() -> None:
    python("import softfloat; assert softfloat.get_num_threads() == 1", NUMBA_NUM_THREADS="1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_forked_process_has_threads_again() -> None:
    python(FORKING)


def test_a_thread_may_outlive_the_script() -> None:
    """The pool takes no more work once the interpreter leaves; the calling thread then does it all."""
    script = """
import threading, time
import numpy as np
from softfloat import bits, set_num_threads
set_num_threads(2)
codes = np.full(1 << 18, 0x3C00, np.uint16)
def job():
    time.sleep(0.5)
    for _ in range(3):
        assert (bits.add(codes, codes, "float16")[0] == 0x4000).all()
    print("done")
threading.Thread(target=job).start()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (result.stdout.strip(), result.returncode) == ("done", 0), result.stderr
