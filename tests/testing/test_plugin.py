"""The pytest plugin, in test runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from softfloat.kernels.compile_cache import root

import softfloat

pytest_plugins = ["pytester"]

CACHE = str(root().parent)
"""Where compiled code lies for a process with another home, which pytester gives its own."""

CONFIGURATION = "[pytest]\naddopts = -p no:xdist -p no:cacheprovider --strict-markers\n"


def run(pytester: pytest.Pytester, source: str, monkeypatch: pytest.MonkeyPatch) -> pytest.RunResult:
    """In a process of its own: one in this process would forget the modules that it was the first to import, which others then hold."""
    monkeypatch.setenv("PYTHONPATH", str(Path(softfloat.__file__).parent.parent))
    monkeypatch.setenv("NUMBA_CACHE_DIR", CACHE)
    pytester.makeini(CONFIGURATION)
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-q")


def test_the_plugin_is_installed(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.has_plugin("softfloat")


def test_the_fixture_is_an_environment_in_force(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(
        pytester,
        """
        import pytest, softfloat

        def test_plain(softfloat_environment):
            assert softfloat.current_environment() is softfloat_environment
            x = softfloat.array([65504.0], "float16") + 65504
            assert "OVERFLOW" in softfloat_environment.status and x.values[0] == float("inf")

        def test_clear(softfloat_environment):
            assert not softfloat_environment.status

        @pytest.mark.softfloat(rounding="toward_zero", overflow="saturate")
        def test_settings(softfloat_environment):
            assert float((softfloat.array([65504.0], "float16") + 65504)[0]) == 65504.0
        """,
        monkeypatch,
    )
    result.assert_outcomes(passed=3)


def test_the_marker_fails_tests_that_raise_flags(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(
        pytester,
        """
        import pytest, softfloat

        def overflow():
            return softfloat.array([65504.0], "float16") * 2

        @pytest.mark.softfloat_no_flags
        def test_overflow():
            overflow()

        @pytest.mark.softfloat_no_flags("INVALID")
        def test_another_flag():
            overflow()

        @pytest.mark.softfloat_no_flags
        def test_inexact():
            softfloat.array([1.0], "float16") / 3

        @pytest.mark.softfloat_no_flags("INEXACT")
        def test_inexact_is_forbidden():
            softfloat.array([1.0], "float16") / 3

        @pytest.mark.softfloat_no_flags
        def test_in_a_block():
            with softfloat.environment(rounding="toward_zero"):
                overflow()

        @pytest.mark.softfloat_no_flags
        def test_through_the_fixture(softfloat_environment):
            softfloat_environment.evaluate(softfloat.bits.div, 0x3C00, 0, "float16")

        @pytest.mark.softfloat_no_flags
        def test_that_fails_by_itself():
            overflow()
            assert 1 == 2

        @pytest.mark.softfloat_no_flags("SOMETHING")
        def test_unknown_flag():
            pass
        """,
        monkeypatch,
    )
    result.assert_outcomes(passed=2, failed=6)
    result.stdout.fnmatch_lines_random(
        [
            "*the test raised OVERFLOW; softfloat_no_flags forbids INVALID|DIVBYZERO|OVERFLOW*",
            "*the test raised INEXACT; softfloat_no_flags forbids INEXACT*",
            "*the test raised DIVBYZERO;*",
            "*assert 1 == 2*",
            "*softfloat_no_flags has no flag 'SOMETHING'*",
        ]
    )
