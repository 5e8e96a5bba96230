"""The explorer as one page without Python behind it: its parts, and what Python tells it.

`page/` holds the parts, and the page made from them, which is installed as it is; `python -m softfloat.display.pages` writes it anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from softfloat.accumulators import Accumulator, Stage
from softfloat.display import exploration
from softfloat.files import replacing
from softfloat.formats import ALIASES, ROSTER, Format
from softfloat.kernels.spec import NAN_POLICIES

__all__ = ["PAGE", "page_data", "page_html", "part", "widget_module"]

FOLDER = Path(__file__).parent / "page"
PAGE = FOLDER / "explorer.html"
"""The page, as it is installed."""

HERE = "{format}"
"""In the page's accumulators, the format of their operands."""


def part(name: str) -> str:
    """The text of one of the page's parts."""
    return (FOLDER / name).read_text(encoding="utf-8")


def page_data() -> dict[str, Any]:
    """What the page knows from Python: formats by all their names, accumulators, and the state that it opens with."""
    own = {
        name: _accumulator(x) for name, x in exploration.own(Format(HERE, exponent_bits=5, mantissa_bits=10)).items()
    }
    return {
        "roster": {name: _parameters(fmt) for name, fmt in ROSTER.items()},
        "aliases": ALIASES,
        "own": own,
        "hardware": {name: _accumulator(x) for name, x in exploration.hardware().items()},
        "start": exploration.start(),
    }


def _parameters(fmt: Format) -> dict[str, Any]:
    return {name: getattr(fmt, name) for name in exploration.FORMAT_FIELDS}


def _named(fmt: Format) -> str | dict[str, Any]:
    return fmt.name if fmt.name == HERE or ROSTER.get(fmt.name) == fmt else _parameters(fmt)


def _stage(stage: Stage | None) -> dict[str, Any] | None:
    if stage is None:
        return None
    found = {name: getattr(stage, name) for name in ("rounding", "overflow", "daz", "ftz", "tininess")}
    words = {name: x.name.lower() if hasattr(x, "name") else x for name, x in found.items()}
    return {"format": _named(stage.format), **words, "always_infinite": stage.always_infinite}


def _accumulator(how: Accumulator) -> dict[str, Any]:
    plain = ("block", "fraction_bits", "store_every", "order", "tree", "segment", "daz", "note")
    policy = NAN_POLICIES[how.nan or "canonical"]
    return {
        "describe": how.describe(),
        "inputs": [fmt.name for fmt in how.inputs],
        **{name: getattr(how, name) for name in plain},
        "running": _stage(how.running),
        "product": _stage(how.product),
        "store": _stage(how.store),
        "reduction": [{"running": _stage(x.running), "store": _stage(x.store)} for x in how.reduction],
        "unpacked": how.unpacked.name if how.unpacked else None,
        "result": _named(how.result) if isinstance(how.result, Format) else how.result,
        "policy": {
            "negative_default": policy.negative_default,
            "any_nan_signals": policy.any_nan_signals,
            "all_ones": policy.all_ones,
        },
    }


def _inlined(*names: str) -> str:
    """Modules as one: no imports from each other."""
    text = "\n".join(part(name) for name in names)
    return re.sub(r"^import \{[^}]*\} from \"\./\w+\.js\";\n", "", text, flags=re.MULTILINE)


def widget_module() -> str:
    """The module that draws in notebooks."""
    return _inlined("drawing.js", "widget.js")


def page_html() -> str:
    """The page: one file, which asks nothing of the network."""
    data = json.dumps(page_data(), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    parts = {
        "STYLE": part("style.css"),
        "DATA": data,
        "SCRIPT": _inlined("numbers.js", "model.js", "drawing.js", "page.js"),
    }
    return re.sub(r"<!--(\w+)-->", lambda found: parts[found[1]], part("template.html"))


def main() -> None:
    """Write the page."""
    with replacing(PAGE) as file:
        file.write(page_html().encode())


if __name__ == "__main__":
    main()
