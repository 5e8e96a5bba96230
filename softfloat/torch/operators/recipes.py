"""What an emulation with recipes keeps: which recipe a module has, what its scales remember, what became of its operands."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch

from softfloat.checks import nearest
from softfloat.scaling import AmaxHistory, DelayedScaling, Operand, Quantized, Recipe, check_recipe
from softfloat.status import Flags

__all__ = ["Choice", "Quantising", "Roles", "ScalingReport", "check_choices"]

Choice = Recipe | str | Mapping[str, Recipe | str | None] | Callable[[str], Recipe | str | None] | None
"""One recipe for all modules; one for each pattern of names, the first that fits; or a function of the name."""
REMEMBERED = 1 << 16  # products whose gradients may be to come


@dataclass(frozen=True)
class ScalingReport:
    """What became of one operand of one product of a module.

    Attributes
    ----------
    calls : int
        Products that it was quantised for.
    amax : float
        The largest magnitude that scales were made of, the last time.
    largest : float
        The largest of all calls.
    scales : tuple of float
        The smallest and the largest that elements were multiplied by to read them, the last time.
    elements : int
        Of all calls.
    saturated, underflowed : int or None
        Of them, those that raised OVERFLOW and UNDERFLOW; None without `count`.
    flags : Flags
        All that was raised.
    """

    calls: int
    amax: float
    largest: float
    scales: tuple[float, float]
    elements: int
    saturated: int | None
    underflowed: int | None
    flags: Flags

    @property
    def saturated_share(self) -> float | None:
        """Of the elements."""
        return None if self.saturated is None else self.saturated / max(self.elements, 1)

    @property
    def underflowed_share(self) -> float | None:
        """Of the elements."""
        return None if self.underflowed is None else self.underflowed / max(self.elements, 1)


class Roles(NamedTuple):
    """Where the operands of a forward product lie in memory, (..., m, k) and (..., k, n), by which those of its gradients are known again."""

    first: tuple[int, int]
    second: tuple[int, int]
    sizes: tuple[int, int, int]

    def of_gradient(self, a: torch.Tensor, b: torch.Tensor) -> tuple[str, bool] | None:
        """(the product of a gradient that has these operands, whether they are in the other order than a recipe names them).

        By their places; of a checkpointed function's last product, which is not computed again, by their sizes. None where
        neither tells.
        """
        m, k, n = self.sizes
        rows = [
            (place_of(b) == self.second, ((m, n), (n, k)), ("input_gradient", False)),
            (place_of(a) == self.first, ((k, m), (m, n)), ("weight_gradient", True)),
            (place_of(a) == self.second, ((k, n), (n, m)), ("input_gradient", True)),
            (place_of(b) == self.first, ((n, m), (m, k)), ("weight_gradient", False)),
        ]
        for there, _, found in rows:
            if there:
                return found
        shapes = tuple(a.shape[-2:]), tuple(b.shape[-2:] if b.ndim > 1 else (*b.shape, 1))
        fits = [found for _, sizes, found in rows if sizes == shapes]
        return fits[0] if len(fits) == 1 else None


def place_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The memory that a tensor begins in; a transposed view has the same."""
    return tensor.untyped_storage().data_ptr(), int(tensor.storage_offset())


def own_name(path: str) -> str:
    """What `named_modules` calls the module that a `Tracker` has a path for; of the outermost one, and outside of modules, empty."""
    return path.partition(".")[2]


def _shown(names: Collection[str], most: int = 8) -> str:
    """Some of them, for a message."""
    listed = [repr(name) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def check_choices(quantize: Any) -> Choice:
    """Refuse what is no choice of recipes."""
    if quantize is None or (callable(quantize) and not isinstance(quantize, Recipe)):
        return quantize
    if isinstance(quantize, Mapping):
        for pattern, recipe in quantize.items():
            if not isinstance(pattern, str):
                raise TypeError(f"quantize must map patterns of modules' names to recipes, got {pattern!r}")
            if recipe is not None:
                check_recipe(recipe, f"quantize[{pattern!r}]")
        return quantize
    if not isinstance(quantize, (Recipe, str)):
        raise TypeError(
            "quantize must be a softfloat.scaling.Recipe, the name of one, a mapping of patterns of modules' names to them, a function "
            f"from a module's name to one, or None; got {quantize!r}"
        )
    return check_recipe(quantize, "quantize")


class Quantising:
    """The recipes of an emulation, and what it learns with them.

    Parameters
    ----------
    choice : Choice
        Checked.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._settled = not isinstance(choice, Mapping)
        self._chosen: dict[str, Recipe | None] = {}
        self.histories: dict[tuple[Any, ...], AmaxHistory] = {}
        self._told: dict[str, _Told] = {}
        self._by_node: OrderedDict[int, list[Roles]] = OrderedDict()
        self._by_number: OrderedDict[int, list[Roles]] = OrderedDict()

    def recipe(self, module: str) -> Recipe | None:
        """That of a module's products, by its path."""
        if module not in self._chosen:
            self._chosen[module] = self._found(own_name(module))
        return self._chosen[module]

    def _found(self, module: str) -> Recipe | None:
        choice = self._choice
        if isinstance(choice, Mapping):
            pattern = self._pattern(module)
            found: Any = None if pattern is None else choice[pattern]
        elif callable(choice) and not isinstance(choice, Recipe):
            found = choice(module)
        else:
            found = choice
        if found is not None and not isinstance(found, (Recipe, str)):
            # no TypeError: PyTorch's operators would turn it into one of their own, without the message
            raise ValueError(f"quantize must return a recipe, the name of one or None, got {found!r} for {module!r}")
        return None if found is None else check_recipe(found, "quantize")

    def _pattern(self, module: str) -> str | None:
        """The first that fits a module's name."""
        assert isinstance(self._choice, Mapping)
        return next((pattern for pattern in self._choice if fnmatchcase(module, pattern)), None)

    def matched(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """By pattern, those of the modules that it chooses for; empty without patterns."""
        if not isinstance(self._choice, Mapping):
            return {}
        chosen = [(self._pattern(name), name) for name in names]
        return {pattern: tuple(name for by, name in chosen if by == pattern) for pattern in self._choice}

    def settle(self, names: Collection[str]) -> None:
        """Refuse a pattern that chooses for none of the modules that were met, if any were; asked once.

        Raises
        ------
        ValueError
            Naming the pattern.
        """
        if self._settled or not names:
            return
        for pattern, modules in self.matched(names).items():
            if not modules:
                earlier = [self._pattern(name) for name in names if fnmatchcase(name, pattern)]
                advice = nearest(pattern, names) or nearest(own_name(pattern), filter(None, names))
                reason = (
                    f"comes after {earlier[0]!r}, which fits the same modules: put it before, the first that fits counts"
                    if earlier
                    else f"fits no module of {_shown(names)}{advice}; names are those of named_modules()"
                )
                raise ValueError(
                    f"quantize[{pattern!r}] {reason}. Modules that are not called before the first backward pass need an "
                    "emulation of their own, or quantize= a function of the name"
                )
        self._settled = True

    # -- whose gradient a product is ---------------------------------------------------------------------------------

    def remember(self, node: int, number: int | None, roles: Roles) -> None:
        """The operands of a forward product, by the number of its node in the graph; `number` is the operation's within a checkpointed function."""
        known = None if number is None else self._by_number.get(number)
        if known is not None:  # computed again: gradients see the new operands
            known[0] = roles
            self._by_node.setdefault(node, known)
            return
        entry = [roles]  # an operator without a node has the number of an earlier one, which keeps its own
        self._by_node.setdefault(node, entry)
        if number is not None:
            self._by_number[number] = entry
        for kept in (self._by_node, self._by_number):
            if len(kept) > REMEMBERED:
                kept.popitem(last=False)

    def roles(self, node: int) -> Roles | None:
        """Those of the forward product that a node of the graph is of."""
        found = self._by_node.get(node)
        return None if found is None else found[0]

    # -- scales ------------------------------------------------------------------------------------------------------

    def history(self, key: tuple[Any, ...], operand: Operand) -> AmaxHistory | None:
        """What the scale of an operand remembers."""
        if not isinstance(operand.scaling, DelayedScaling):
            return None
        key = (*key, operand.scaling)
        if key not in self.histories:
            self.histories[key] = AmaxHistory(operand.scaling)
        return self.histories[key]

    def report(self, key: str, found: Quantized) -> None:
        """What became of an operand."""
        calls, largest, elements, saturated, underflowed, flags, *_ = self._told.get(key, NOTHING)
        self._told[key] = (
            calls + 1, max(largest, found.amax) if calls else found.amax, elements + found.elements, _added(saturated, found.saturated),
            _added(underflowed, found.underflowed), flags | found.flags, found.amax, found.scales,
        )  # fmt: skip

    @property
    def reports(self) -> dict[str, ScalingReport]:
        """What became of all operands."""
        return {
            key: ScalingReport(calls, amax, largest, scales, elements, saturated, underflowed, Flags(flags))
            for key, (calls, largest, elements, saturated, underflowed, flags, amax, scales) in self._told.items()
        }


_Told = tuple[int, float, int, int | None, int | None, int, float, tuple[float, float]]
"""Calls, the largest magnitude, elements, those that raised OVERFLOW and UNDERFLOW, and flags of all calls; amax and scales of the last."""
NOTHING: _Told = (0, 0.0, 0, 0, 0, 0, 0.0, (1.0, 1.0))


def _added(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y
