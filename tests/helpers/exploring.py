"""Events and states of the explorer as hypothesis draws them, and JavaScript that answers beside Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import strategies as st

from softfloat import BLOCK_ROSTER, ROSTER
from softfloat.blocks import SCALE_RULES
from softfloat.display import block_exploration, exploration, pages

TYPED = [
    "0.1",
    "-0.0",
    "inf",
    "-inf",
    "nan",
    "1/3",
    "-2/7",
    "1e-8",
    "1e40",
    "65520",
    "448",
    "464",
    "0x1.8p-3",
    "-0x.8p1f",
]
TYPED += ["0.1f", "1e-4000", "-1e-320", ".5", "5.", "7_0", "1e4_0", "0xff", "0b11", "0o17", "0x_f"]
BROKEN = ["", "abc", "1/0", "0x1g", "1e99999", "0b2", "+-inf", "--1", "0x", "1e", "é"]


def typed() -> st.SearchStrategy[str]:
    """Numbers as people type them, most of them of a size that formats have."""
    return st.one_of(
        st.sampled_from(TYPED),
        st.floats(-500, 500).map(repr),
        st.floats(allow_nan=False, allow_infinity=False, width=32).map(float.hex),
        st.builds(lambda n, e: f"{n}e{e}", st.integers(-999, 999), st.integers(-45, 40)),
        st.builds(lambda n, d: f"{n}/{d}", st.integers(-999, 999), st.integers(1, 999)),
        st.integers(0, 2**32 - 1).map(hex),
    )


def formats() -> st.SearchStrategy[Any]:
    """Names and parameters of formats, some of which there are not."""
    optional = {
        "bias": st.one_of(st.none(), st.integers(-20, 40)),
        "nan": st.sampled_from(["ieee", "fn", "fnuz", "none"]),
        **{name: st.booleans() for name in ("infinities", "subnormals", "signed", "zero", "signed_zero")},
    }
    own = st.fixed_dictionaries(
        {"name": st.just("mine"), "exponent_bits": st.integers(0, 9), "mantissa_bits": st.integers(0, 24)},
        optional=optional,
    )
    drafted = [
        f"binary{k}p{p}{kind}"
        for k, p, kind in (
            (8, 3, "se"),
            (8, 4, "sf"),
            (6, 1, "ue"),
            (8, 8, "uf"),
            (2, 1, "se"),
            (16, 2, "sf"),
            (5, 6, "se"),
        )
    ]
    named = st.sampled_from([*ROSTER, *drafted, "half", "e5m7", "e4m3", "E3M9", "none of them"])
    return st.one_of(named, own)


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Events of every kind; some are refused in some states."""
    operand = {"operand": st.integers(0, 1)}
    settings_of = {
        "rounding": st.sampled_from(exploration.ROUNDINGS),
        "overflow": st.sampled_from(exploration.OVERFLOWS),
        "tininess": st.sampled_from(exploration.TININESSES),
        "operation": st.sampled_from([*exploration.SYMBOLS, "pow"]),
        "sr_bits": st.integers(0, 53),
        "random_bits": st.one_of(st.integers(0, 255), st.integers(0, 2**52)),
    }
    block = {
        "format": st.sampled_from([*BLOCK_ROSTER, "mxfp"]),
        "element": st.sampled_from([*block_exploration.ELEMENTS, "float8_e8m0fnu"]),
        "scale": st.sampled_from(list(ROSTER)),
        "tensor_scale": st.sampled_from(["none", "float32", "float16"]),
        "rule": st.sampled_from(list(SCALE_RULES)),
        "size": st.integers(0, 33),
        "fill": st.sampled_from([*block_exploration.FILLS, "nothing"]),
        "number": typed(),
        "numbers": st.just([]),
    }
    names = [*exploration.own(ROSTER["float16"]), *exploration.hardware(), "no such"]
    kinds: list[dict[str, st.SearchStrategy[Any]]] = [
        {"do": st.just("flip"), "bit": st.integers(0, 16), **operand},
        {"do": st.just("step"), "by": st.sampled_from([-1, 1, 2]), **operand},
        {"do": st.just("code"), "value": st.one_of(st.integers(0, 255), st.integers(-1, 2**32)), **operand},
        {"do": st.just("type"), "value": st.one_of(typed(), typed(), st.sampled_from(BROKEN)), **operand},
        {"do": st.just("format"), "value": formats()},
        {"do": st.just("products"), "value": st.integers(0, 17)},
        {"do": st.just("product"), "column": st.sampled_from("ab"), "place": st.integers(0, 8), "value": typed()},
        {"do": st.just("accumulator"), "place": st.integers(0, 1), "value": st.sampled_from(names)},
        *(
            {"do": st.just("block"), "name": st.just(name), "value": value, "place": st.integers(0, 31)}
            for name, value in block.items()
        ),
        *({"do": st.just("set"), "name": st.just(name), "value": value} for name, value in settings_of.items()),
    ]
    return st.one_of([st.fixed_dictionaries(kind) for kind in kinds])


def states() -> st.SearchStrategy[dict[str, Any]]:
    """States that some events lead to."""
    return st.builds(reached, st.sampled_from(list(ROSTER)), st.lists(events(), max_size=6))


def reached(name: str, some: list[dict[str, Any]]) -> dict[str, Any]:
    """The state after some events, those that are refused left out."""
    state = exploration.start(name)
    for event in some:
        state = outcome(state, event)[0]
    return state


def outcome(state: dict[str, Any], event: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The state after an event, and why it was refused."""
    try:
        return exploration.act(state, event), ""
    except (ValueError, TypeError) as error:
        return state, str(error)


SERVER = """
import { act, checkState, view } from MODEL;
import readline from "node:readline";
let data;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer = {};
  if (asked.data) data = asked.data;
  else try {
    const state = act(asked.state, asked.event, data);
    answer = { state, view: view(state, data) };
  } catch (error) {
    answer = error.constructor.name === "Refused" ? { refused: error.message } : { crash: error.stack };
  }
  console.log(JSON.stringify(answer));
}
"""


class Node:
    """`page/model.js` under node, one question after another."""

    def __init__(self, folder: Any) -> None:
        node = shutil.which("node")
        if node is None:
            pytest.skip("node is not installed")
        script = folder / "server.mjs"
        script.write_text(SERVER.replace("MODEL", json.dumps((pages.FOLDER / "model.js").as_uri())), encoding="utf-8")
        self.process = subprocess.Popen(
            [node, "--no-warnings", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.ask({"data": pages.page_data()})

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One line there, one back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process, and its pipes."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()
