"""A pytest plugin: an environment as a fixture, and a marker that fails a test on raised flags.

It is loaded wherever this package is installed; `-p no:softfloat` leaves it out.

`softfloat_environment`
    A fresh `softfloat.Environment`, in force during the test. `@pytest.mark.softfloat(rounding="toward_zero")` gives its
    settings.
`@pytest.mark.softfloat_no_flags("OVERFLOW", "INVALID")`
    The test fails if it raises one of these; by default INVALID, DIVBYZERO or OVERFLOW. Counted are flags that reach the
    environment around the test, that of the fixture too, whether or not the test looks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from softfloat.environments import Environment, environment
from softfloat.status import Flags, as_flags

FORBIDDEN = ("INVALID", "DIVBYZERO", "OVERFLOW")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for line in (
        "softfloat(**settings): settings of the environment that the fixture softfloat_environment makes",
        "softfloat_no_flags(*flags): fail the test if it raises one of these floating-point flags",
    ):
        config.addinivalue_line("markers", line)


@pytest.fixture
def softfloat_environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """An environment in force during the test, its status clear; `@pytest.mark.softfloat(...)` gives its settings."""
    marker = request.node.get_closest_marker("softfloat")
    with environment(Environment(), **(marker.kwargs if marker else {})) as env:
        yield env


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run the test, then look at the flags it raised."""
    marker = item.get_closest_marker("softfloat_no_flags")
    if marker is None:
        return (yield)
    forbidden = as_flags(marker.args or FORBIDDEN, "softfloat_no_flags")
    fixture = getattr(item, "funcargs", {}).get("softfloat_environment")
    before = fixture.status.flags if fixture is not None else Flags(0)
    with environment() as around:
        result = yield
        raised = around.status.flags
    if fixture is not None:
        raised |= fixture.status.flags & ~before
    if raised & forbidden:
        pytest.fail(f"the test raised {raised & forbidden}; softfloat_no_flags forbids {forbidden}", pytrace=False)
    return result
