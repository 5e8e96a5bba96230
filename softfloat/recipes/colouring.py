"""A recipe applied to a graph: which nodes convert and why, how they hang together, and where casts stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from softfloat import markup
from softfloat.checks import check_choice, check_kind
from softfloat.recipes.graph import LOW_TYPES, WIDE, Graph, Node
from softfloat.recipes.recipe import Recipe
from softfloat.recipes.vocabularies import SOURCES, clauses

__all__ = ["AlreadyConvertedError", "Cast", "Colouring", "Decision", "Rule", "colour"]

CASTS = {"tensorflow": "Cast", "onnx": "Cast", "aten": "aten._to_copy"}
"""What a cast is called."""


class AlreadyConvertedError(ValueError):
    """A graph that has tensors in a low precision; what a recipe would make of it is not defined."""


class Rule(Enum):
    """What decides about a node. They are asked in this order; the first that applies decides."""

    NON_CONVERTIBLE = "non_convertible_exceptions"
    NOT_FLOAT32 = "no float32 tensor"
    CONVERTIBLE = "convertible_exceptions"
    ALLOWED = "allowlist"
    STRICT_CONDITIONAL = "strict_conditional_list"
    CONDITIONAL = "conditional_list"
    BLOCKED = "in no list"


@dataclass(frozen=True)
class Decision:
    """What becomes of a node.

    Attributes
    ----------
    node : Node
    converts : bool
        Whether it computes in the low precision; else it is kept in float32.
    rule : Rule
        What decided. A conditional rule decides either way.
    reason : str
        The rule in words, with the entry of the list that applies and, of conditional lists, the neighbour or operand
        that settled it.
    group : int or None
        The number of the group that the node converts in; None where it is kept.
    """

    node: Node
    converts: bool
    rule: Rule
    reason: str
    group: int | None = None


@dataclass(frozen=True)
class Cast:
    """A conversion of a tensor on its way into a group or out of it.

    Attributes
    ----------
    tensor : str
        What is cast.
    result : str
        The name of what comes out, which no other tensor of the graph has.
    to : str
        The low type into a group, "float32" out of it.
    group : int
        The group that it leads into, or out of.
    uses : tuple of (str, int)
        Nodes that take the result instead of the tensor, by name, and at which positions.
    output : bool
        Whether the graph returns the result instead of the tensor.
    """

    tensor: str
    result: str
    to: str
    group: int
    uses: tuple[tuple[str, int], ...]
    output: bool = False


@dataclass(frozen=True, eq=False)
class Colouring(markup.Tabled):
    """What a recipe makes of a graph; `print`, consoles and notebooks show it as a table.

    Attributes
    ----------
    graph : Graph
    recipe : Recipe
    to : str
        The low type.
    decisions : tuple of Decision
        One for each node, in the graph's order. `colouring[name]` is that of a node.
    groups : tuple of tuple of str
        Names of the nodes of each group; groups are numbered by their first node in the graph's order.
    casts : tuple of Cast
        For each tensor those into groups, by their numbers, or the one out of its group; tensors in the order in which the
        graph is given them and makes them.
    """

    graph: Graph
    recipe: Recipe
    to: str
    decisions: tuple[Decision, ...]
    groups: tuple[tuple[str, ...], ...]
    casts: tuple[Cast, ...]

    def __getitem__(self, name: str) -> Decision:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Decision]:
        return {x.node.name: x for x in self.decisions}

    @property
    def converted(self) -> frozenset[str]:
        """Names of the nodes that convert."""
        return frozenset(x.node.name for x in self.decisions if x.converts)

    @cached_property
    def types(self) -> dict[str, str]:
        """By tensor of the graph, the type that it has after the conversion, casts' results among them."""
        changed = {tensor: self.to for x in self.decisions if x.converts for tensor in _narrowed(x.node, self.graph)}
        return {**self.graph.types, **changed, **{x.result: x.to for x in self.casts}}

    def counts(self) -> dict[tuple[Rule, bool], int]:
        """How many nodes each rule decided, and which way: by rule and whether they convert."""
        found = Counter((x.rule, x.converts) for x in self.decisions)
        return {key: found[key] for key in ((rule, way) for rule in Rule for way in (True, False)) if key in found}

    def apply(self) -> Graph:
        """The converted graph: casts are nodes, tensors have their types after the conversion.

        Casts into a group stand before the first node that takes them, casts out of it after the node that makes the tensor.
        Their type is the vocabulary's, "Cast" or "aten._to_copy".
        """
        swaps = {(name, i): x.result for x in self.casts for name, i in x.uses}
        before: dict[str, list[Node]] = {}
        after: dict[str, list[Node]] = {}
        places = {node.name: i for i, node in enumerate(self.graph.nodes)}
        for x, node in zip(self.casts, _cast_nodes(self.casts, self.graph), strict=True):
            if x.to == WIDE:
                after.setdefault(self.graph.producer[x.tensor].name, []).append(node)
            else:
                before.setdefault(min((name for name, _ in x.uses), key=places.__getitem__), []).append(node)
        nodes = []
        for node in self.graph.nodes:
            inputs = tuple(swaps.get((node.name, i), tensor) for i, tensor in enumerate(node.inputs))
            nodes += [*before.get(node.name, ()), replace(node, inputs=inputs), *after.get(node.name, ())]
        returned = {x.tensor: x.result for x in self.casts if x.output}
        return replace(
            self.graph,
            nodes=nodes,
            types=self.types,
            outputs=[returned.get(tensor, tensor) for tensor in self.graph.outputs],
        )

    def verdicts(self) -> dict[str, Any]:
        """Data for a file: the recipe, the nodes before and after with the types of their tensors, and why."""
        return {
            "to": self.to,
            "recipe": self.recipe.to_dict(),
            "verdicts": [
                {
                    "name": x.node.path,
                    "op_type": x.node.op_type,
                    "verdict": "convert" if x.converts else "keep",
                    "rule": x.rule.value,
                    "reason": x.reason,
                    "group": x.group,
                }
                for x in self.decisions
            ],
            "before": _described(self.graph),
            "after": _described(self.apply()),
        }

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        title = (
            f"{len(self.converted)} of {len(self.decisions)} nodes in {self.to}, "
            f"{len(self.groups)} group{'s' * (len(self.groups) != 1)}, {len(self.casts)} cast{'s' * (len(self.casts) != 1)}"
        )
        rows = [
            [
                x.node.path,
                x.node.op_type,
                self.to if x.converts else WIDE,
                "" if x.group is None else str(x.group),
                x.reason,
            ]
            for x in self.decisions
        ]
        return title, ["node", "type", "computes in", "group", "because"], rows


def colour(graph: Graph, recipe: Recipe, *, to: str = "bfloat16") -> Colouring:
    """Decide which nodes of a graph convert to a low precision.

    Parameters
    ----------
    graph : Graph
    recipe : Recipe
    to : str
        The type that float32 is converted to: one of `LOW_TYPES`.

    Returns
    -------
    Colouring

    Raises
    ------
    AlreadyConvertedError
        A `ValueError`: the graph has a tensor in a low precision.
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    The first rule that applies to a node decides:

    1. It matches a pair of `non_convertible_exceptions`: it is kept. A pair matches by the whole of the node's full name,
       scope included, and by its type, if the pair has one.
    2. It has no float32 tensor that could be converted: it is kept.
    3. It matches a pair of `convertible_exceptions`: it converts.
    4. Its type is in `allowlist`: it converts.
    5. Its type is in `strict_conditional_list`: it converts if it takes something, and all it takes comes from nodes that
       convert, or is a parameter or constant.
    6. Its type is in `conditional_list`: it converts if a neighbour does: a node that makes what it takes, or takes
       what it makes.
    7. Else it is kept.

    This is Gaudi's documentation ("TensorFlow Mixed Precision Training on Gaudi"). What it leaves open is settled here: 1
    comes before 3; 5 comes before 6, as some of Habana's files (transformer.json) name types in both; expressions match as
    a whole; 5 and 6 together hold for the fewest nodes that they can hold for, so that the order of nodes does not matter,
    and nodes that have nothing but each other to convert for stay; only float32 tensors count, as only they change; a tensor
    that the graph is given is no parameter.

    Types are looked up in the recipe by all the names that `clauses` gives them. A type that does the work of several kinds
    (`aten.convolution_backward`: gradients of input and filter) is in no list unless each of its kinds is in one; of these lists
    the strictest counts.

    Nodes that convert and share a tensor belong to one group. A float32 tensor is cast once for each group that it enters,
    and once if it leaves its group, for a node that is kept or because the graph returns it.

    >>> graph = Graph(
    ...     [Node("fc", "Gemm", ["x", "w"], ["h"]), Node("act", "Reshape", ["h", "s"], ["r"]), Node("exp", "Exp", ["r"], ["y"])],
    ...     types={**dict.fromkeys("xwhry", "float32"), "s": "int64"}, inputs=["x"], outputs=["y"], parameters=["w", "s"],
    ... )
    >>> print(colour(graph, Recipe(allowlist=["MatMul"], conditional_list=["Reshape"])))
    2 of 3 nodes in bfloat16, 1 group, 3 casts
    node  type     computes in  group  because
    fc    Gemm     bfloat16     0      allowlist "MatMul"
    act   Reshape  bfloat16     0      conditional_list "Reshape", and fc converts
    exp   Exp      float32             in no list
    """
    check_kind("graph", graph, Graph)
    check_kind("recipe", recipe, Recipe)
    check_choice("to", to, LOW_TYPES)
    _refuse_converted(graph)
    decided = _Decider(graph, recipe).decide()
    groups, group_of = _groups(graph, {name for name, x in decided.items() if x.converts})
    decisions = tuple(replace(decided[x.name], group=group_of.get(x.name)) for x in graph.nodes)
    return Colouring(graph, recipe, to, decisions, groups, tuple(_casts(graph, group_of, to)))


def _refuse_converted(graph: Graph) -> None:
    for tensor, kind in graph.types.items():
        if kind in LOW_TYPES:
            node = graph.producer.get(tensor)
            made = f", which node {node.name!r} makes," if node else ""
            raise AlreadyConvertedError(
                f"graph must be in float32 before a recipe converts it, but tensor {tensor!r}{made} is {kind}; "
                "a conversion of what is converted already is not defined"
            )


def _takes(node: Node, graph: Graph) -> list[str]:
    """Tensors that a conversion changes on their way in."""
    return [x for i, x in enumerate(node.inputs) if x and graph.types[x] == WIDE and i not in node.wide_inputs]


def _narrowed(node: Node, graph: Graph) -> list[str]:
    """Tensors that a conversion changes on their way out."""
    return [x for i, x in enumerate(node.outputs) if x and graph.types[x] == WIDE and i not in node.wide_outputs]


def _neighbours(graph: Graph) -> dict[str, set[str]]:
    """By node, those that it shares a tensor with that both would convert."""
    makers = {tensor: node.name for node in graph.nodes for tensor in _narrowed(node, graph)}
    found: dict[str, set[str]] = {node.name: set() for node in graph.nodes}
    for node in graph.nodes:
        for tensor in _takes(node, graph):
            if tensor in makers:
                found[node.name].add(makers[tensor])
                found[makers[tensor]].add(node.name)
    return found


class _Decider:
    """One call of `colour`: verdicts, from rules about a node alone to those about its neighbours."""

    def __init__(self, graph: Graph, recipe: Recipe) -> None:
        self.graph, self.recipe = graph, recipe
        self.neighbours = _neighbours(graph)
        self.makers = {tensor: node.name for node in graph.nodes for tensor in _narrowed(node, graph)}
        self.parameters = {*graph.parameters} | {
            tensor for node in graph.nodes if (graph.vocabulary, node.op_type) in SOURCES for tensor in node.outputs
        }
        self.converted: set[str] = set()

    def decide(self) -> dict[str, Decision]:
        found: dict[str, Decision] = {}
        waiting: dict[str, Decision] = {}
        for node in self.graph.nodes:
            decision = self._alone(node)
            conditional = decision.rule in (Rule.CONDITIONAL, Rule.STRICT_CONDITIONAL)
            (waiting if conditional else found)[node.name] = decision
        self.converted = {name for name, x in found.items() if x.converts}
        asked = set(waiting)
        while asked:
            reasons = {name: self._met(waiting[name]) for name in asked}
            met = {name: reason for name, reason in reasons.items() if reason}
            for name, reason in met.items():
                decision = waiting.pop(name)
                found[name] = replace(decision, converts=True, reason=f"{decision.reason}, and {reason}")
            self.converted |= set(met)
            asked = {x for name in met for x in self.neighbours[name] if x in waiting}
        for name, decision in waiting.items():
            found[name] = replace(decision, reason=f"{decision.reason}, but {self._unmet(decision)}")
        return found

    # -- rules about a node alone -------------------------------------------------------------------------------------

    def _alone(self, node: Node) -> Decision:
        names = clauses(node.op_type, self.graph.vocabulary, variant=node.variant, rank=node.rank)
        names = tuple(x | {("", node.op_type)} for x in names)
        kept = self._exception("non_convertible_exceptions", node, any, names)
        if kept:
            return Decision(node, False, Rule.NON_CONVERTIBLE, kept)
        if not _takes(node, self.graph) and not _narrowed(node, self.graph):
            return Decision(node, False, Rule.NOT_FLOAT32, Rule.NOT_FLOAT32.value)
        forced = self._exception("convertible_exceptions", node, all, names)
        if forced:
            return Decision(node, True, Rule.CONVERTIBLE, forced)
        found = [self._listed(clause, node.op_type) for clause in names]
        for rule in (Rule.BLOCKED, Rule.STRICT_CONDITIONAL, Rule.CONDITIONAL, Rule.ALLOWED):
            if any(each is rule for each, _ in found):
                reason = rule.value if rule is Rule.BLOCKED else " and ".join(place for _, place in found)
                return Decision(node, rule is Rule.ALLOWED, rule, reason)
        raise AssertionError(f"{node.op_type} is of no kind")

    def _listed(self, clause: frozenset[tuple[str, str]], op_type: str) -> tuple[Rule, str]:
        """The first list that names a clause, and where: by the type's own name if it has it, else by the first that it has."""
        for rule in (Rule.ALLOWED, Rule.STRICT_CONDITIONAL, Rule.CONDITIONAL):
            listed = self.recipe.types[rule.value]
            found = [x for x in listed if x in clause]
            if found:
                return rule, listed[next((x for x in found if x[1] == op_type), found[0])]
        return Rule.BLOCKED, ""

    def _exception(self, key: str, node: Node, how: Any, names: Iterable[frozenset[tuple[str, str]]]) -> str:
        for pattern, kind, place in self.recipe.patterns[key]:
            if pattern.fullmatch(node.path) and (kind is None or how(kind in clause for clause in names)):
                return place
        return ""

    # -- rules that ask others -----------------------------------------------------------------------------------------

    def _met(self, decision: Decision) -> str:
        """Why the condition holds, as far as is known; empty where it does not."""
        node = decision.node
        if decision.rule is Rule.CONDITIONAL:
            converting = self.neighbours[node.name] & self.converted
            return f"{min(map(self._path, converting))} converts" if converting else ""
        taken = _takes(node, self.graph)
        if not taken or any(map(self._stays, taken)):
            return ""
        return "all that it takes converts or is a parameter"

    def _unmet(self, decision: Decision) -> str:
        if decision.rule is Rule.CONDITIONAL:
            return "no neighbour converts"
        staying = [x for x in _takes(decision.node, self.graph) if self._stays(x)]
        return f"{min(staying)} stays in {WIDE}" if staying else "it takes nothing that could convert"

    def _stays(self, tensor: str) -> bool:
        return tensor not in self.parameters and self.makers.get(tensor) not in self.converted

    def _path(self, name: str) -> str:
        return self._paths[name]

    @cached_property
    def _paths(self) -> dict[str, str]:
        return {node.name: node.path for node in self.graph.nodes}


def _groups(graph: Graph, converted: set[str]) -> tuple[tuple[tuple[str, ...], ...], dict[str, int]]:
    """Components of what converts, in the graph's order, and the number of each node's."""
    neighbours = _neighbours(graph)
    number: dict[str, int] = {}
    count = 0
    for node in graph.nodes:
        if node.name not in converted or node.name in number:
            continue
        reached = [node.name]
        while reached:
            name = reached.pop()
            if name not in number:
                number[name] = count
                reached.extend(neighbours[name] & converted)
        count += 1
    members: list[list[str]] = [[] for _ in range(count)]
    for node in graph.nodes:
        if node.name in number:
            members[number[node.name]].append(node.name)
    return tuple(map(tuple, members)), number


def _casts(graph: Graph, group_of: dict[str, int], to: str) -> Iterator[Cast]:
    made = {t: x.name for x in graph.nodes if x.name in group_of for t in _narrowed(x, graph)}
    taken = set(graph.types)
    returned = set(graph.outputs)

    def named(stem: str) -> str:
        name, i = stem, 1
        while name in taken:
            name, i = f"{stem}_{i}", i + 1
        taken.add(name)
        return name

    tensors = dict.fromkeys([*graph.inputs, *sorted(graph.parameters), *graph.producer])
    for tensor in tensors:
        if graph.types[tensor] != WIDE:
            continue
        low: dict[int, list[tuple[str, int]]] = {}
        wide: list[tuple[str, int]] = []
        for node, i in graph.uses.get(tensor, ()):
            if node.name in group_of and i not in node.wide_inputs:
                low.setdefault(group_of[node.name], []).append((node.name, i))
            else:
                wide.append((node.name, i))
        if tensor in made:
            if wide or tensor in returned:
                yield Cast(
                    tensor, named(f"{tensor}_{WIDE}"), WIDE, group_of[made[tensor]], tuple(wide), tensor in returned
                )
        else:
            for group, uses in sorted(low.items()):
                yield Cast(tensor, named(f"{tensor}_{to}"), to, group, tuple(uses))


def _cast_nodes(casts: Iterable[Cast], graph: Graph) -> Iterator[Node]:
    names = {node.name for node in graph.nodes}
    for cast in casts:
        name = f"cast_{cast.result}"
        while name in names:
            name += "_"
        names.add(name)
        yield Node(name, CASTS[graph.vocabulary], [cast.tensor], [cast.result])


def _described(graph: Graph) -> list[dict[str, Any]]:
    return [
        {
            "name": node.path,
            "op_type": node.op_type,
            "inputs": [[x, graph.types.get(x, "")] for x in node.inputs],
            "outputs": [[x, graph.types.get(x, "")] for x in node.outputs],
        }
        for node in graph.nodes
    ]
