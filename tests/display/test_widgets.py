"""The widget around the explorer's states; what it draws is `test_exploration`'s and `test_explorer_page`'s matter."""

import sys

import pytest

from softfloat import display
from softfloat.display import exploration, widgets


def test_without_anywidget_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    widgets._widget.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r'needs anywidget: pip install "numba-softfloat\[notebook\]"'):
        display.explorer("float16", 0.1)


@pytest.fixture
def explorer():
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    widgets._widget.cache_clear()
    return display.explorer("float8_e4m3fn", 0.1)


def test_events_become_states_and_views(explorer) -> None:
    before = explorer.state
    explorer.send_event({"do": "flip", "bit": 0})
    assert explorer.view == exploration.view(explorer.state)
    assert explorer.view["number"]["code"] == "0x1c"
    explorer.send_event({"do": "flip", "bit": 8})
    assert explorer.message.startswith("bit must be one of")
    explorer.send_event({"do": "flip"})
    assert "bit" in explorer.message
    explorer.send_event({"do": "flip", "bit": 0})
    assert (explorer.state, explorer.message) == (before, "")


def test_messages_from_the_screen_are_events(explorer) -> None:
    explorer._handle_custom_msg({"do": "step", "by": 1}, [])
    assert explorer.view["number"]["code"] == "0x1e"


def test_states_are_saved_restored_and_linked(explorer) -> None:
    traitlets = pytest.importorskip("traitlets")
    other = display.explorer(state=explorer.state)
    traitlets.link((explorer, "state"), (other, "state"))
    explorer.send_event({"do": "type", "value": "3"})
    assert other.view["number"]["value"] == "3"
    saved = explorer.state
    explorer.send_event({"do": "format", "value": "float16"})
    explorer.state = saved
    assert other.view == exploration.view(saved)
    with pytest.raises(ValueError, match="a state must be"):
        explorer.state = {}
    assert explorer.state == saved
