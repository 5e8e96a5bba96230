"""What a conversion did, as data and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from softfloat import markup
from softfloat.onnx.weights import WeightReport

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["CastReport", "ConversionReport", "Decision"]

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A title, headings, and rows of text."""


@dataclass(frozen=True)
class Decision:
    """What becomes of a node.

    Attributes
    ----------
    node, op_type : str
        Its name, or that of the first tensor it makes; the type of its operator.
    converts : bool
        Whether it computes in the narrow format.
    reason : str
        The rule that decided.
    """

    node: str
    op_type: str
    converts: bool
    reason: str


@dataclass(frozen=True)
class CastReport:
    """A cast that the conversion has put in.

    Attributes
    ----------
    node, tensor, result : str
        The names of the cast, of what it takes and of what it makes.
    source, to : str
        The formats.
    reason : str
        Why the types differ there.
    """

    node: str
    tensor: str
    result: str
    source: str
    to: str
    reason: str


@dataclass(frozen=True)
class ConversionReport:
    """What a conversion did; `print`, consoles and notebooks show it as tables.

    Attributes
    ----------
    to, recipe : str
        The format, and the converter or recipe.
    decisions : tuple of Decision
        One for each node that has float32 tensors, in the model's order. Constants are weights.
    weights : tuple of WeightReport
        One for each weight that was converted.
    casts : tuple of CastReport
    joined : int
        How many pairs of casts were removed again.
    """

    to: str
    recipe: str
    decisions: tuple[Decision, ...]
    weights: tuple[WeightReport, ...]
    casts: tuple[CastReport, ...]
    joined: int = 0

    @property
    def kept(self) -> tuple[Decision, ...]:
        """The nodes that stay in float32."""
        return tuple(x for x in self.decisions if not x.converts)

    def _tables(self) -> Iterator[Table]:
        yield (
            "kept in float32",
            ("node", "operator", "reason"),
            [(x.node, x.op_type, x.reason) for x in self.kept],
        )
        yield (
            "weights out of range",
            ("weight", "numbers", "overflow", "underflow", "subnormal", "to zero", "clamped"),
            [
                (
                    x.name,
                    *(markup.grouped(n) for n in (x.size, x.overflow, x.underflow, x.subnormal, x.zero, x.clamped)),
                )
                for x in self.weights
                if x.changed
            ],
        )
        yield "casts", ("tensor", "to", "reason"), [(x.tensor, x.to, x.reason) for x in self.casts]

    def _title(self) -> str:
        converting = len(self.decisions) - len(self.kept)
        joined = f", {self.joined} pairs of casts removed" if self.joined else ""
        return (
            f"{self.recipe}: {converting} of {len(self.decisions)} nodes in {self.to}, {len(self.weights)} weights converted, "
            f"{len(self.casts)} casts{joined}"
        )

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        tables = (markup.rendered(f"\n{title}", headings, rows) for title, headings, rows in self._tables() if rows)
        return Group(Text(self._title(), "bold"), *tables)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self._title())}</b></p>"]
        for title, headings, rows in self._tables():
            if rows:
                parts.append(markup.table_html(([escape(x) for x in row] for row in rows), headings, title))
        return "".join(parts)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120, highlight=False, emoji=False, markup=False, color_system=None)
        with console.capture() as caught:
            console.print(self)
        return "\n".join(line.rstrip() for line in caught.get().splitlines())
