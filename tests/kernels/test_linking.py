"""Functions that loops call become machine code in loops alone."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite.binding import ffi
from numba.core.codegen import JITCodeLibrary
from softfloat.kernels import jit, linking, parts

import softfloat.jit
from softfloat import bits
from softfloat.accumulators import Accumulator, fma, pairwise
from softfloat.engine import elementwise
from softfloat.engine import threads as workers

pytestmark = pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")


@jit.kernel
def successor(x):  # type: ignore[no-untyped-def]
    return x + 1


@jit.row
def doubled(values):  # type: ignore[no-untyped-def]
    jit.stand_alone()
    for i in range(values.size):
        values[i] = 2 * values[i]


@jit.row
def refused(values):  # type: ignore[no-untyped-def]
    jit.stand_alone()
    if values[0] < 0:
        raise ValueError("below zero", values[0])
    doubled(values)


@jit.row
def stepped(values):  # type: ignore[no-untyped-def]
    jit.stand_alone()
    refused(values)
    doubled(values)
    for i in range(values.size):
        values[i] = successor(values[i])


def stepping_loop(values):  # type: ignore[no-untyped-def]
    stepped(values)
    doubled(values)


def expected(values: np.ndarray) -> list[float]:
    return [float(2 * (4 * x + 1)) for x in values]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_loop_is_compiled_with_what_it_calls(cache: Path) -> None:
    for found in (False, True):
        loop, values = jit.compiled(stepping_loop), np.array([3.0, -0.0, 0.5])
        result = expected(values)
        loop(values)
        assert values.tolist() == result
        assert bool(loop.stats.cache_hits) is found
        with pytest.raises(ValueError, match=r"below zero") as error:
            loop(np.array([-7.0]))
        assert error.value.args == ("below zero", -7.0)


def test_parts_have_no_machine_code_and_are_linked_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[str] = []
    own = linking.Part.__dict__["own_module"]

    def noted(part: linking.Part) -> Any:
        if type(part) is linking.Part:
            linked.append(part.name)
        return own.fget(part)

    monkeypatch.setattr(linking.Part, "own_module", property(noted))
    loop = jit.compiled(stepping_loop)
    loop(np.ones(2, np.float32))
    (made,) = loop.overloads.values()
    assert type(made.library) is linking.Whole
    assert sorted(linked) == ["doubled", "refused", "stepped"]
    defined = {function.name for function in made.library._final_module.functions if not function.is_declaration}
    assert sum("doubled" in name for name in defined) == 1  # and stays a call
    parts = [x for x in linking.linked([made.library]) if isinstance(x, linking.Part)]
    assert all(part.get_pointer_to_function(name) == 0 for part in parts for name in defined)


def test_functions_of_others_link_a_part_with_all_it_calls() -> None:
    @numba.njit
    def foreign(values):  # type: ignore[no-untyped-def]
        stepped(values)
        doubled(values)
        return successor(values.sum())

    values = np.array([1, 2, 3])
    result = expected(values)
    assert foreign(values) == sum(result) + 1
    assert values.tolist() == result


@pytest.mark.parametrize("collecting", [True, False])
def test_compiling_leaves_garbage_collection_as_it_was(
    collecting: bool, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    finalize = linking.Whole.finalize
    monkeypatch.setattr(linking.Whole, "finalize", lambda whole: (seen.append(gc.isenabled()), finalize(whole)))
    (gc.enable if collecting else gc.disable)()
    try:
        jit.compiled(stepping_loop)(np.ones(2))
        assert gc.isenabled() is collecting
    finally:
        gc.enable()
    assert seen == [False]


@jit.row
def filled(values, first):  # type: ignore[no-untyped-def]
    jit.stand_alone()
    for i in range(values.size):
        values[i] = first + i


ROOM = 5


def scratching_loop(line):  # type: ignore[no-untyped-def]
    address = 0
    for start in range(0, line.size, ROOM):
        room = jit.scratch(ROOM, np.float32)
        address |= room.ctypes.data
        filled(room, start)
        for i in range(ROOM):
            line[start + i] += room[i]
    return address


def test_room_on_the_stack(cache: Path) -> None:
    line = np.arange(30, dtype=np.float32)
    address = jit.compiled(scratching_loop)(line)
    assert line.tolist() == (2.0 * np.arange(30)).tolist()
    assert address % jit.CACHE_LINE == 0


def comprehending_loop(values):  # type: ignore[no-untyped-def]
    return sum([2 * x for x in values])


def test_functions_inside_others_are_still_taken_in(cache: Path) -> None:
    assert jit.compiled(comprehending_loop)(np.arange(4)) == 12


@jit.row
def incremented(values):  # type: ignore[no-untyped-def]
    jit.stand_alone()
    for i in range(values.size):
        values[i] = successor(values[i])


def idle_loop(values):  # type: ignore[no-untyped-def]
    for i in range(values.size, values.size):
        values[i] = successor(values[i])
    incremented(values)


def test_what_the_loop_itself_turns_out_not_to_call_is_there_for_others(cache: Path) -> None:
    """LLVM leaves a part out that nothing refers to when it is linked: it was null where `incremented`, linked later, called it."""
    loop = jit.compiled(idle_loop)
    loop.compile((numba.float64[::1],))
    (made,) = loop.overloads.values()
    missing = [x.name for x in made.library._final_module.functions if x.is_declaration and "successor" in x.name]
    assert not missing
    values = np.arange(3.0)
    loop(values)
    assert values.tolist() == [1.0, 2.0, 3.0]


# -- signals -----------------------------------------------------------------------------------------------------------


def by_callback(patch: pytest.MonkeyPatch) -> None:
    """The signal comes in a callback, of which ctypes drops what it raises."""
    callback, finalize = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM)), JITCodeLibrary.finalize
    patch.setattr(JITCodeLibrary, "finalize", lambda library: (finalize(library), callback()))


def by_lock(patch: pytest.MonkeyPatch) -> None:
    """The signal comes while functions compile, when LLVM's lock was just taken."""
    enter, signals = ffi._LLVMLock.__enter__, iter([signal.SIGTERM])

    def entered(lock: Any) -> None:
        enter(lock)
        if "look" in vars(linking.waiting):
            for number in signals:
                signal.raise_signal(number)

    patch.setattr(ffi._LLVMLock, "__enter__", entered)


@pytest.mark.parametrize(
    ("when", "operation", "raised"),
    [
        (by_callback, "minimum", SystemExit(143)),
        (by_callback, "maximum", TimeoutError("of an alarm")),
        (by_lock, "eq", KeyboardInterrupt()),
    ],
)
def test_a_signal_ends_the_call_and_nothing_more(
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    when: Callable[[pytest.MonkeyPatch], None],
    operation: str,
    raised: BaseException,
) -> None:
    def handle(number: int, frame: Any) -> None:
        raise raised

    before = signal.signal(signal.SIGTERM, handle)
    try:
        loop, values = jit.compiled(stepping_loop), np.arange(4.0)
        function = softfloat.jit.function(operation, "float8_e4m3fnuz", daz=True)
        for call in (lambda: loop(values), lambda: function(1, 1)):
            with monkeypatch.context() as patch:
                when(patch)
                with pytest.raises(type(raised)) as told:
                    call()
            assert told.value is raised
            assert signal.getsignal(signal.SIGTERM) is handle
        taken = threading.Thread(target=lambda: ffi.lib._lock.__enter__() or ffi.lib._lock.__exit__())
        taken.start()
        taken.join(60)
        assert not taken.is_alive()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "ignored" not in capsys.readouterr().err
    wanted = expected(values)
    loop(values)
    assert values.tolist() == wanted


def test_what_nobody_waits_for_is_not_compiled_by_other_threads(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that was interrupted waits for the others, which may not take a minute for loops that nobody needs."""
    monkeypatch.setattr(workers._workers, "count", 2)
    monkeypatch.setattr(workers, "SMALLEST_SHARE", 1)
    loop, values, begun = jit.compiled(stepping_loop), np.arange(4.0), threading.Event()
    define = linking._Into.define_pipelines

    def wait(compiler: Any) -> Any:
        begun.set()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            linking.waiting.look()
            time.sleep(0.01)
        return define(compiler)

    def work(start: int, stop: int) -> int:
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(60)
            raise KeyboardInterrupt
        loop(values)
        return 0

    monkeypatch.setattr(linking._Into, "define_pipelines", wait)
    with pytest.raises(KeyboardInterrupt):
        workers.share(2 * workers.ALIGNMENT, work)
    assert not loop.overloads
    assert values.tolist() == [0.0, 1.0, 2.0, 3.0]
    monkeypatch.undo()
    wanted = expected(values)
    loop(values)
    assert values.tolist() == wanted


@pytest.mark.parametrize(
    ("how", "options", "needed"),
    [
        (fma("float16"), {}, {"fused", "rounded"}),
        (fma("float16"), {"projection": "p3109"}, {"fused", "rounded"}),
        (fma("float16"), {"rounding": "stochastic", "seed": 1}, {"fused", "drawn"}),
        (pairwise("float16"), {}, {"rounded_product", "leaf", "joined", "added", "rounded"}),
    ],
)
def test_a_sum_compiles_the_parts_that_it_calls(
    how: Accumulator, options: dict[str, Any], needed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By several threads, too, that find one missing at once."""
    monkeypatch.setattr(elementwise, "FAST", False)
    one = np.full((4, 200), 0x3C00, np.uint16)
    expected = bits.matmul(one[:, :4], one, "float16", how, **options)
    before, count = parts.LINKS.copy(), softfloat.get_num_threads()
    parts.LINKS[:] = 0
    try:
        softfloat.set_num_threads(3)
        found = bits.matmul(one[:, :4], one, "float16", how, **options)
        names = {parts._PARTS[number][0].__name__ for number in np.flatnonzero(parts.LINKS)}
    finally:
        softfloat.set_num_threads(count)
        parts.LINKS[:] = np.where(parts.LINKS, parts.LINKS, before)
    assert (found[0] == 0x4400).all()
    assert np.array_equal(found, expected)
    assert names == needed
