"""The explorer as one page without Python behind it: its parts, and what Python tells it.

`page/` holds the parts. The page is made of them where it is asked for: a build would need this package's own dependencies before it is installed.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from softfloat.accumulators import Accumulator, Stage
from softfloat.blocks import SCALE_RULES, BlockFormat, check_rule
from softfloat.blocks.formats import BLOCK_ROSTER
from softfloat.display import block_exploration, exploration
from softfloat.display.block_exploration import HERE
from softfloat.files import kept
from softfloat.formats import ALIASES, ROSTER, Format
from softfloat.kernels.spec import NAN_POLICIES

__all__ = ["page", "page_data", "page_html", "part", "widget_module"]

FOLDER = Path(__file__).parent / "page"


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
        "aliases": {name: fmt for name, fmt in ALIASES.items() if fmt in ROSTER},
        "own": own,
        "hardware": {name: _accumulator(x) for name, x in exploration.hardware().items()},
        "blocks": _blocks(),
        "start": exploration.start(),
    }


def _blocks() -> dict[str, Any]:
    """Block formats, elements of fixed point, scale rules and numbers to begin with."""
    plain = ("kind", "meaning", "source", "divides", "carry", "lowest", "highest", "infinities", "zero_block")
    fixed = ("name", "bits", "fraction_bits", "coding", "symmetric", "layout")
    one = {scale: BlockFormat("block", element="float4_e2m1fn", scale=ROSTER[scale], block=1) for scale in ROSTER}
    return {
        "roster": {name: block_exploration.settings_of(fmt) for name, fmt in BLOCK_ROSTER.items()},
        "fixed": {name: {key: getattr(x, key) for key in fixed} for name, x in block_exploration.FIXED.items()},
        "rules": {
            name: {**{key: getattr(rule, key) for key in plain}, "minimum": rule.minimum.hex()}
            for name, rule in SCALE_RULES.items()
        },
        "kinds": {scale: fmt.power_of_two_scale for scale, fmt in one.items()},
        "defaults": {
            scale: [check_rule(None, x).name for x in (fmt, replace(fmt, tensor_scale="float32"))]
            for scale, fmt in one.items()
        },
        "fills": block_exploration.FILLS,
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
    plain = ("block", "positive_zeros", "store_every", "order", "tree", "segment", "daz", "note")
    policy = NAN_POLICIES[how.nan or "canonical"]
    return {
        "describe": how.describe(),
        "inputs": [fmt.name for fmt in how.inputs],
        **{name: getattr(how, name) for name in plain},
        "aligned": how.aligned and {"terms": how.aligned.terms, "least": how.aligned.least},
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
        "SCRIPT": _inlined("numbers.js", "blocks.js", "model.js", "drawing.js", "page.js"),
    }
    return re.sub(r"<!--(\w+)-->", lambda found: parts[found[1]], part("template.html"))


def page() -> Path:
    """The page as a file, which a browser can open: always the same one, for its address keeps what was set."""
    return kept("explorer.html", page_html().encode())
