"""The explorer in notebooks: a widget that hands events to `exploration` and views to the screen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from softfloat.formats import Format

__all__ = ["explorer"]


@lru_cache(maxsize=1)
def _widget() -> type:
    """The widget's class, made when anywidget is first needed, with what loads the oracle."""
    from softfloat.display import exploration, pages

    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError('the explorer needs anywidget: pip install "numba-softfloat[notebook]"') from None

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """An explorer of formats.

        Attributes
        ----------
        state : dict
            Plain data: save it, restore it by setting it, link it to another explorer's with `traitlets.link`.
        view : dict
            What is drawn, made of the state.
        message : str
            Why the last event was refused; empty if it was not.
        """

        _esm = pages.widget_module()
        _css = pages.part("style.css")
        state = traitlets.Dict().tag(sync=True)
        view = traitlets.Dict().tag(sync=True)
        message = traitlets.Unicode("").tag(sync=True)

        def __init__(self, state: Mapping[str, Any]) -> None:
            super().__init__(state=exploration.check_state(state))
            self.view = exploration.view(self.state)
            self.on_msg(self._receive)

        @traitlets.validate("state")
        def _check(self, proposal: Mapping[str, Any]) -> dict[str, Any]:
            return exploration.check_state(proposal["value"])

        @traitlets.observe("state")
        def _draw(self, change: Mapping[str, Any]) -> None:
            self.view, self.message = exploration.view(self.state), ""

        def _receive(self, _: object, event: Mapping[str, Any], buffers: object) -> None:
            self.send_event(event)

        def send_event(self, event: Mapping[str, Any]) -> None:
            """Do what a click does; what is refused becomes the message."""
            try:
                self.state = exploration.act(self.state, event)
            except (TypeError, ValueError, KeyError) as error:
                self.message = f"the event lacks {error}" if isinstance(error, KeyError) else str(error)
            else:
                self.message = ""

    return Explorer


def explorer(
    fmt: Format | str = "float8_e4m3fn", value: object = 0.1, *, state: Mapping[str, Any] | None = None
) -> Any:
    """An explorer of a format in a notebook: click bits, step by an ulp, type numbers, choose how they are rounded.

    It shows fields, value, neighbours, flags and all codes of up to 8 bits; two operands and every rounding of what an
    operation makes of them; a dot product of at most 16 numbers under two accumulators, step by step; a block of at most 32
    numbers under one scale, by every scale rule. `softfloat explore` opens the same without a notebook.

    Parameters
    ----------
    fmt : Format or str
    value : str, int, float or Fraction
        A number, or as text what `parse_value` reads. A float is taken for the decimal number that it prints as.
    state : mapping, optional
        The `state` of another explorer, instead of format and value.

    Returns
    -------
    anywidget.AnyWidget
        With the attribute `state`, plain data: it can be saved, set, and linked with `traitlets.link`.

    Raises
    ------
    ImportError
        Without anywidget, naming the extra that brings it.
    ValueError, TypeError
        Naming the argument and the accepted values.
    """
    make = _widget()
    from softfloat.display import exploration

    return make(exploration.start(fmt, value) if state is None else state)
