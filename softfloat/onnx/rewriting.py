"""The converter: types of every tensor, weights rounded, casts where types differ, as a row of `softfloat.onnx.behaviours` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.defs import onnx_opset_version

from softfloat.formats import Format
from softfloat.onnx.behaviours import Behaviour, Kernels, Spread, Weights
from softfloat.onnx.reports import CastReport, ConversionReport, Decision
from softfloat.onnx.scopes import (
    ASKED,
    FLOAT,
    TYPE_ATTRIBUTES,
    Parameters,
    Scope,
    element_name,
    first_float,
    label,
    opsets,
    scopes,
    sort,
    subgraphs,
    type_of,
    unique,
)
from softfloat.onnx.tensors import NARROW
from softfloat.onnx.weights import WeightReport, as_tensor, converted

__all__ = ["Converter", "KernelError"]

OWN_TYPE = {"LayerNormalization": "U"}
"""Type of operator -> type variable of outputs that stay float32: the stage that LayerNormalization computes in."""

UNLIKE = {
    "BitCast": "the bits of another format are others",
    "FlexAttention": "its graphs take the types that they name",
}
"""Operators that have kernels of narrow types, but for other purposes -> why they stay in float32."""

LOOKING = {"Shape", "Size"}
"""Operators that look at a tensor's dimensions alone; the type does not matter to them."""


CAST_VERSION = 13
"""The version of ONNX's own operators in a model that has none of them but casts."""


class KernelError(ValueError):
    """An operator that has no kernel for the type that reaches it."""


@dataclass
class Use:
    """What takes a tensor: an input of a node, or (node None) an output of a graph."""

    scope: Scope
    node: NodeProto | None
    place: int

    def take(self, name: str) -> None:
        """Take another tensor instead."""
        if self.node is None:
            self.scope.graph.output[self.place].name = name
        else:
            self.node.input[self.place] = name


@dataclass
class Tensor:
    """A tensor of the model.

    Attributes
    ----------
    scope, name : Scope, str
    was, type : str
        Its type before the conversion, and at present.
    maker : NodeProto or None
        The node that makes it; None for inputs and initializers.
    place : int
        Which of the maker's outputs it is, or of the graph's inputs.
    uses : list of Use
    weight : bool
        Whether it is an initializer, or a Constant's where weights get a copy of each type.
    """

    scope: Scope
    name: str
    was: str
    type: str
    maker: NodeProto | None
    place: int
    uses: list[Use]
    weight: bool = False


class Converter:
    """One conversion of one model, which it changes.

    Parameters
    ----------
    model : onnx.ModelProto
        Without model-local functions.
    fmt : Format
        To what.
    row : Behaviour
    clamp : (float, float) or None
    kept_io : frozenset of str
        Inputs and outputs of the model that stay float32.
    """

    def __init__(
        self, model: ModelProto, fmt: Format, row: Behaviour, clamp: tuple[float, float] | None, kept_io: frozenset[str]
    ) -> None:
        self.model, self.fmt, self.row, self.clamp, self.kept_io = model, fmt, row, clamp, kept_io
        self.element = next(element for element, known in NARROW.items() if known == fmt)
        self.low = f"tensor({element_name(self.element)})"
        self.top = scopes(model)
        self.scopes = list(self.top.walk())
        self.versions = opsets(model)
        self.nodes = [(scope, node) for scope in self.scopes for node in scope.graph.node]
        self.parameters = {id(node): Parameters(node, self.versions) for _, node in self.nodes}
        self.verdicts: dict[int, Decision] = {}
        self.decisions: list[Decision] = []
        self.blocked: dict[int, str] = {}
        self.groups: dict[int, int] = {}
        self.weights: list[WeightReport] = []
        self.casts: list[CastReport] = []
        self.shared: dict[tuple[int, str, str, int | None], str] = {}
        self.names = {name for scope in self.scopes for name in scope.types} | {""}
        self.node_names = {node.name for _, node in self.nodes} | {""}
        self.ranks = {id(node): float(i) for scope in self.scopes for i, node in enumerate(scope.graph.node)}
        self.added: list[tuple[Scope, float, NodeProto]] = []
        self._refuse()
        self.tensors = self._tensors()

    def _refuse(self) -> None:
        """Models that are not of float32, or whose types nobody knows."""
        narrow = [element_name(element) for element in NARROW]
        for scope in self.scopes:
            for name, made in scope.types.items():
                if not made:
                    raise ValueError(f"model has a tensor {name!r} whose type is not known; declare it in value_info")
                if any(f"({x})" in made for x in narrow):
                    raise ValueError(f"model has {name!r} of type {made} already; convert takes models of float32")
            for sparse in scope.graph.sparse_initializer:
                if sparse.values.data_type == TensorProto.FLOAT:
                    raise ValueError(f"model has the sparse initializer {sparse.values.name!r}; make it dense")

    def _tensors(self) -> dict[tuple[int, str], Tensor]:
        """All tensors of float32, sequences of them too, with what takes them."""
        made: dict[tuple[int, str], Tensor] = {}

        def add(scope: Scope, name: str, maker: NodeProto | None, place: int, weight: bool = False) -> None:
            kind = scope.types[name]
            if FLOAT in kind:
                made[id(scope), name] = Tensor(scope, name, kind, kind, maker, place, [], weight)

        def use(scope: Scope, name: str, found: Use) -> None:
            home = scope.find(name)
            if home is None:
                raise ValueError(f"model uses {name!r}, which nothing in it makes")
            if (id(home), name) in made:
                made[id(home), name].uses.append(found)

        for scope in self.scopes:
            for place, value in enumerate(scope.graph.input):
                add(scope, value.name, None, place)
            for tensor in scope.graph.initializer:
                add(scope, tensor.name, None, 0, True)
            for node in scope.graph.node:
                constant = node.op_type == "Constant" and self.row.weights is Weights.EACH
                for place, name in enumerate(node.output):
                    if name:
                        add(scope, name, node, place, constant)
        for scope in self.scopes:
            for node in scope.graph.node:
                for place, name in enumerate(node.input):
                    if name:
                        use(scope, name, Use(scope, node, place))
            for place, value in enumerate(scope.graph.output):
                use(scope, value.name, Use(scope, None, place))
        return made

    # -- verdicts --------------------------------------------------------------------------------------------------

    def kernel(self, scope: Scope, node: NodeProto) -> str:
        """Why a node cannot compute in the format: the first float32 tensor it takes, or else makes, decides. "" if it can."""
        first = first_float(node, scope)
        if first is None or node.op_type in UNLIKE or self.row.kernels is Kernels.ASSUMED:
            return UNLIKE.get(node.op_type, "") if first else ""
        for name in (*node.input, *node.output):
            if name and FLOAT in scope.type(name) != FLOAT:
                return f"{name!r} is a {scope.type(name)}, which cannot be cast"
        place, output = first
        parameters = self.parameters[id(node)]
        fixed = self._fixed(node)
        if not output and parameters.variable(place) in fixed - {""}:
            return (
                f"no kernel that takes inputs {sorted(self.row.float32_inputs[node.op_type])} in float32 beside others"
            )
        known = parameters.kernels(place, output)
        wanted = self.lowered(scope.type((node.output if output else node.input)[place]))
        if wanted in known:
            return ""
        exist = ", ".join(sorted(known)) or "none that is known"
        later = self._later(node, first, wanted)
        return f"no kernel for {wanted}; there are kernels for {exist}{later}"

    def _later(self, node: NodeProto, first: tuple[int, bool], wanted: str) -> str:
        """Which operator set is the first to have a kernel, if one has."""
        for version in range(self.versions.get("", 0) + 1, onnx_opset_version() + 1):
            if wanted in Parameters(node, {**self.versions, "": version}).kernels(*first):
                return f"; operator set {version} has one"
        return ""

    def block(self, blocked: frozenset[str], names: frozenset[str]) -> None:
        """Keep nodes in float32, before others are decided about: those named, all inside them, and those without a kernel.

        Parameters
        ----------
        blocked, names : frozenset of str
            Types of operators, and names of nodes.
        """
        missing = names - {x for _, node in self.nodes for x in (node.name, label(node))}
        if missing:
            raise ValueError(f"node_block_list names {min(missing)!r}, and no node of the model is called that")
        closed: set[int] = set()
        for scope, node in self.nodes:
            reason = ""
            if node.op_type in blocked:
                reason = f"{node.op_type} is blocked"
            elif {node.name, label(node)} & names:
                reason = "its name is blocked"
            elif scope.owner is not None and id(scope.owner) in closed:
                reason = f"it is inside {label(scope.owner)!r}, which is kept"
            if reason:
                closed.add(id(node))
            else:
                reason = self.kernel(scope, node)
                if reason and self.row.kernels is Kernels.REFUSED:
                    raise KernelError(f"{node.op_type} {label(node)!r} cannot compute in {self.fmt.name}: {reason}")
            if reason:
                self.blocked[id(node)] = reason

    def decide(self, verdict: Callable[[NodeProto], tuple[bool, str]]) -> None:
        """Settle which nodes convert: of those that are not blocked, the ones for which `verdict` says so, with its reason."""
        for scope, node in self.nodes:
            converts, reason = (False, self.blocked[id(node)]) if id(node) in self.blocked else verdict(node)
            decision = Decision(label(node), node.op_type, converts, reason)
            self.verdicts[id(node)] = decision
            weight = node.op_type == "Constant" and self.row.weights is Weights.EACH
            if not weight and (first_float(node, scope) or any(True for _ in subgraphs(node))):
                self.decisions.append(decision)

    def _fixed(self, node: NodeProto) -> set[str]:
        """The type variables of inputs that the row leaves in float32."""
        places = self.row.float32_inputs.get(node.op_type, ())
        return {self.parameters[id(node)].variable(place) for place in places}

    def converts(self, node: NodeProto | None) -> bool:
        """Whether a node computes in the format."""
        return node is not None and self.verdicts[id(node)].converts

    # -- types -----------------------------------------------------------------------------------------------------

    def lowered(self, kind: str) -> str:
        """A type of float32 as it is in the format."""
        return kind.replace(FLOAT, self.low)

    def wanted(self, use: Use, kind: str) -> str:
        """The type in which something takes what was a float32 tensor; "" if it does not matter."""
        if use.node is None:
            if use.scope.parent is None:
                return kind if use.scope.graph.output[use.place].name in self.kept_io else self.lowered(kind)
            return self.lowered(kind) if self.converts(use.scope.owner) else kind
        node = use.node
        if node.op_type in LOOKING and self.row.inputs is Spread.NEEDED:
            return ""
        return self.taken(node, use.place, kind) if self.converts(node) else kind

    def taken(self, node: NodeProto, place: int, kind: str) -> str:
        """The type in which a node that converts takes what was a float32 tensor."""
        if place in self.row.float32_inputs.get(node.op_type, ()):
            return kind
        return self._if_known(self.parameters[id(node)], place, False, kind)

    def given(self, node: NodeProto, place: int, kind: str) -> str:
        """The type in which a node that converts makes what was a float32 tensor."""
        parameters = self.parameters[id(node)]
        variable = parameters.variable(place, True)
        if variable in {OWN_TYPE.get(node.op_type), *self._fixed(node)} - {""}:
            return kind
        return self._if_known(parameters, place, True, kind)

    def _if_known(self, parameters: Parameters, place: int, output: bool, kind: str) -> str:
        lower = self.lowered(kind)
        return lower if not parameters.known or lower in parameters.kernels(place, output) else kind

    # -- the conversion --------------------------------------------------------------------------------------------

    def run(self, recipe: str) -> ConversionReport:
        """Convert, once `decide` has decided."""
        tensors = list(self.tensors.values())
        for tensor in tensors:
            if tensor.weight:
                continue
            if tensor.maker is not None:
                if self.converts(tensor.maker):
                    tensor.type = self.given(tensor.maker, tensor.place, tensor.was)
            elif tensor.scope.parent is None:
                tensor.type = tensor.was if tensor.name in self.kept_io else self.lowered(tensor.was)
            elif self.converts(tensor.scope.owner):
                tensor.type = self.lowered(tensor.was)
        for tensor in tensors:
            if tensor.weight:
                self._weight(tensor)
        for scope, node in self.nodes:
            if self.converts(node) and not (node.op_type == "Constant" and self.row.weights is Weights.EACH):
                self._attributes(scope, node)
        for tensor in tensors:
            if tensor.maker is None and tensor.scope is self.top and not tensor.weight and tensor.name in self.kept_io:
                self._input(tensor)
        for tensor in tensors:
            if tensor.maker is not None and tensor.scope is self.top and not tensor.weight:
                self._output(tensor)
        if self.row.returns:
            for tensor in list(self.tensors.values()):
                self._return(tensor)
        for tensor in list(self.tensors.values()):
            for use in list(tensor.uses):
                self._edge(tensor, use)
        joined = self._join() if self.row.joins else 0
        self._finish()
        return ConversionReport(
            self.fmt.name, recipe, tuple(self.decisions), tuple(self.weights), tuple(self.casts), joined
        )

    # -- weights ---------------------------------------------------------------------------------------------------

    def _round(self, tensor: TensorProto, name: str) -> TensorProto:
        made, report = converted(tensor, name, self.fmt, self.element, self.clamp)
        self.weights.append(report)
        return made

    def _weight(self, tensor: Tensor) -> None:
        """Settle the type of a weight, by the row's rule, and add a copy of the other type where nodes want both."""
        wants = [(use, self.wanted(use, tensor.was)) for use in tensor.uses]
        low = [use for use, kind in wants if kind == self.low]
        high = [use for use, kind in wants if kind == tensor.was]
        if self.row.weights is Weights.UNLESS_KEPT:
            if not any(use.node is not None and not self.converts(use.node) for use in tensor.uses):
                self._lower_weight(tensor)
        elif self.row.weights is Weights.IF_CONVERTED:
            if any(use.node is not None for use in low):
                self._lower_weight(tensor)
        elif low and not high and not self.row.drops:
            self._lower_weight(tensor)
        elif low:
            self._copy_weight(tensor, low)
        if self.row.drops and not tensor.uses and tensor.maker is None:
            self._remove(tensor)

    def _lower_weight(self, tensor: Tensor) -> None:
        tensor.type = self.low
        if tensor.maker is not None:
            self._lower_constant(tensor.maker)
            return
        kept = next(x for x in tensor.scope.graph.initializer if x.name == tensor.name)
        kept.CopyFrom(self._round(kept, tensor.name))

    def _copy_weight(self, tensor: Tensor, low: list[Use]) -> None:
        """Give those that want it a copy in the narrow type."""
        name = self._named("weight", tensor, None, 0)[0]
        if tensor.maker is not None:
            node = _copied(tensor.maker)
            node.output[0], node.name = name, unique(f"Constant_{name}", self.node_names)
            self.parameters[id(node)] = self.parameters[id(tensor.maker)]
            self.verdicts[id(node)] = self.verdicts[id(tensor.maker)]
            self._lower_constant(node)
            self.added.append((tensor.scope, self.ranks[id(tensor.maker)] + 0.1, node))
        else:
            given = next(x for x in tensor.scope.graph.initializer if x.name == tensor.name)
            made = self._round(given, tensor.name)
            made.name = name
            tensor.scope.graph.initializer.append(made)
            for value in [
                x for x in tensor.scope.graph.input if x.name == tensor.name
            ]:  # as models before version 4 must
                declared = tensor.scope.graph.input.add()
                declared.CopyFrom(value)
                declared.name = name
        tensor.scope.types[name] = self.low
        copy = Tensor(tensor.scope, name, self.low, self.low, tensor.maker, 0, low, True)
        self.tensors[id(tensor.scope), name] = copy
        for use in low:
            use.take(name)
            tensor.uses.remove(use)

    def _lower_constant(self, node: NodeProto) -> None:
        for attribute in list(node.attribute):
            given = as_tensor(attribute)
            if given is not None:
                made = self._round(given, node.output[0])
                node.attribute.remove(attribute)
                node.attribute.append(helper.make_attribute("value", made))

    def _remove(self, tensor: Tensor) -> None:
        graph = tensor.scope.graph
        graph.initializer.remove(next(x for x in graph.initializer if x.name == tensor.name))
        for value in [x for x in graph.input if x.name == tensor.name]:
            graph.input.remove(value)
        del self.tensors[id(tensor.scope), tensor.name]

    def _attributes(self, scope: Scope, node: NodeProto) -> None:
        """Types and tensors that a converted node has as attributes."""
        if node.op_type == "Constant":
            self._lower_constant(node)
            return
        first = self.tensors.get((id(scope), next(iter(node.output), "")))
        if first is None or first.type == first.was:
            return
        names = {x.name for x in node.attribute}
        for attribute in node.attribute:
            if attribute.name in TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
                attribute.i = self.element
            if attribute.type == AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(self._round(attribute.t, f"{label(node)}.{attribute.name}"))
            if attribute.type == AttributeProto.TYPE_PROTO and FLOAT in type_of(attribute.tp):
                _retype(attribute.tp, self.element)
            for tensor in attribute.tensors:
                if tensor.data_type == TensorProto.FLOAT:
                    tensor.CopyFrom(self._round(tensor, f"{label(node)}.{attribute.name}"))
        asked = ASKED.get(node.op_type)
        if asked and asked not in names:
            zero = helper.make_tensor("value", self.element, [1], [0.0])
            node.attribute.append(helper.make_attribute(asked, zero if asked == "value" else self.element))

    # -- casts -----------------------------------------------------------------------------------------------------

    def _named(self, purpose: str, tensor: Tensor, node: NodeProto | None, place: int) -> tuple[str, str]:
        """Names for a cast's result and its node."""
        words = {"tensor": tensor.name, "node": label(node) if node else "", "place": place, "to": self.fmt.name}
        result, name = (x.format(**words) for x in self.row.names[purpose])
        return unique(result, self.names), unique(name, self.node_names) if name else ""

    def _cast(self, scope: Scope, rank: float, taken: str, result: str, name: str, to: str, reason: str) -> NodeProto:
        low = to == self.low
        node = helper.make_node("Cast", [taken], [result], name=name, to=self.element if low else TensorProto.FLOAT)
        self.added.append((scope, rank, node))
        scope.types[result] = to
        formats = ("float32", self.fmt.name)
        self.casts.append(CastReport(name, taken, result, formats[not low], formats[low], reason))
        return node

    def _move(self, tensor: Tensor, uses: list[Use], name: str, kind: str, maker: NodeProto | None) -> Tensor:
        """Let some uses of a tensor take another, which is new."""
        made = Tensor(tensor.scope, name, tensor.was, kind, maker, 0, uses)
        self.tensors[id(tensor.scope), name] = made
        for use in uses:
            use.take(name)
            tensor.uses.remove(use)
        return made

    def _input(self, tensor: Tensor) -> None:
        """The casts of an input of the model, where they do not wait for something that needs them."""
        if self.row.inputs is not Spread.NEEDED:
            self._plain(tensor)
        reason = f"input {tensor.name!r} stays float32"
        of_nodes = [use for use in tensor.uses if use.node is not None]
        if self.row.inputs is Spread.TENSOR:
            result, name = self._named("input", tensor, None, tensor.place)
            cast = self._cast(self.top, -1.0, tensor.name, result, name, self.low, reason)
            self._move(tensor, of_nodes, result, self.low, cast)
        elif self.row.inputs is Spread.NODE:
            nodes = {id(use.node): use.node for use in of_nodes if use.scope is self.top}
            inside = [use for use in of_nodes if use.scope is not self.top]
            for i, node in enumerate(nodes.values()):
                result, name = self._named("input", tensor, node, tensor.place)
                rank = self.ranks[id(node)] - 0.5
                cast = self._cast(self.top, rank, tensor.name, result, name, self.low, reason)
                uses = [use for use in of_nodes if use.node is node]
                self._move(tensor, uses + (inside if i == len(nodes) - 1 else []), result, self.low, cast)

    def _output(self, tensor: Tensor) -> None:
        """Give an output of the model the type it must have, under its own name."""
        node = tensor.maker
        outputs = [use for use in tensor.uses if use.node is None and use.scope is self.top]
        if not outputs or node is None:
            return
        wanted = self.wanted(outputs[0], tensor.was)
        always = self.row.outputs is Spread.TENSOR and wanted == tensor.was
        if (wanted == tensor.type and not always) or (
            self.row.returns and wanted == self.low and not self.converts(node)
        ):
            return
        self._plain(tensor)
        purpose = "output" if wanted == tensor.was else "leaving"
        result, name = self._named(purpose, tensor, node, outputs[0].place)
        if wanted == tensor.was:
            reason = f"output {tensor.name!r} stays {self._spoken(wanted)}"
        else:
            reason = f"output {tensor.name!r} is {self.fmt.name}, and {self._why_made(tensor)}"
        node.output[tensor.place] = result
        inner = self._move(tensor, [use for use in tensor.uses if use not in outputs], result, tensor.type, node)
        inner.place = tensor.place
        self.top.types[result] = tensor.type
        cast = self._cast(self.top, self.ranks[id(node)] + 0.3, result, tensor.name, name, wanted, reason)
        tensor.maker, tensor.type, tensor.place = cast, wanted, 0
        inner.uses.append(Use(self.top, cast, 0))
        if not self.row.returns:
            self.shared[id(self.top), result, wanted, None] = tensor.name

    def _return(self, tensor: Tensor) -> None:
        """Convert at once what a kept node makes."""
        node = tensor.maker
        if node is None or id(node) not in self.verdicts or self.converts(node) or tensor.type != tensor.was:
            return
        if any(self._settled(use) for use in tensor.uses):
            return
        self._plain(tensor)
        result, name = self._named("leaving", tensor, node, tensor.place)
        node.output[tensor.place] = result
        tensor.scope.types[result] = tensor.was
        self._cast(
            tensor.scope, self.ranks[id(node)] + 0.2, result, tensor.name, name, self.low, self._why_made(tensor)
        )
        tensor.type = self.low

    def _settled(self, use: Use) -> bool:
        """Whether something is an output of the model that stays float32."""
        return use.node is None and use.scope is self.top and use.scope.graph.output[use.place].name in self.kept_io

    def _edge(self, tensor: Tensor, use: Use) -> None:
        """A cast where something wants another type."""
        if use.node is not None and id(use.node) not in self.verdicts:  # a cast
            return
        wanted = self.wanted(use, tensor.was)
        if not wanted or wanted == tensor.type or tensor.was == self.low:
            return
        self._plain(tensor)
        if use.node is None and use.scope is self.top:
            raise ValueError(f"output {tensor.name!r} is an input or a weight of the model; put an Identity between")
        group = self.groups.get(id(use.node), 0) if wanted == self.low else -1
        if self.row.shares:
            known = self._known(use.scope, tensor.name, wanted, group)
            if known:
                use.take(known)
                return
        purpose = "entering" if wanted == tensor.was else "input"
        result, name = self._named(purpose, tensor, use.node, use.place)
        rank = self.ranks[id(use.node)] - 0.4 if use.node is not None else float(len(use.scope.graph.node))
        self._cast(use.scope, rank, tensor.name, result, name, wanted, self._why(tensor, use, wanted))
        self.shared[id(use.scope), tensor.name, wanted, group] = result
        use.take(result)

    def _known(self, scope: Scope | None, name: str, wanted: str, group: int) -> str:
        """The result of a cast that is seen from a scope, for one group or for all; "" if there is none."""
        while scope is not None:
            for key in (group, None):
                if (id(scope), name, wanted, key) in self.shared:
                    return self.shared[id(scope), name, wanted, key]
            scope = scope.parent
        return ""

    def _plain(self, tensor: Tensor) -> None:
        if tensor.was != FLOAT:
            raise ValueError(
                f"{tensor.name!r} is a {tensor.was}, which cannot be cast, and it passes between nodes that convert and"
                " nodes that are kept; block both or neither"
            )

    # -- words -----------------------------------------------------------------------------------------------------

    def _spoken(self, kind: str) -> str:
        return kind.replace(FLOAT, "float32").replace(self.low, self.fmt.name)

    def _why_made(self, tensor: Tensor) -> str:
        if tensor.weight:
            return f"weight {tensor.name!r} is {self._spoken(tensor.type)}"
        node = tensor.maker
        if node is None:
            return f"input {tensor.name!r} {'stays' if tensor.type == tensor.was else 'is'} {self._spoken(tensor.type)}"
        if id(node) not in self.verdicts:
            return f"{tensor.name!r} has been cast"
        return self._spoken_of(node, tensor.type, "makes")

    def _spoken_of(self, node: NodeProto, kind: str, verb: str) -> str:
        decision = self.verdicts[id(node)]
        words = f"{node.op_type} {decision.node!r}"
        if not decision.converts:
            return f"{words} is kept: {decision.reason}"
        return f"{words} {verb} {self._spoken(kind)}"

    def _why(self, tensor: Tensor, use: Use, wanted: str) -> str:
        if use.node is not None:
            taker = self._spoken_of(use.node, wanted, "takes")
        else:
            owner = use.scope.owner
            taker = self._spoken_of(owner, wanted, "makes") if owner else f"output is {self._spoken(wanted)}"
        return f"{self._why_made(tensor)}, and {taker}"

    # -- the end ---------------------------------------------------------------------------------------------------

    def _join(self) -> int:
        """Remove casts to the narrow type that feed nothing but one cast back, both of them."""
        top = [node for scope, _, node in self.added if scope is self.top]
        casts = {node.output[0]: node for node in top}
        uses: dict[str, list[NodeProto | None]] = {}
        everything = [node for _, node in self.nodes] + [node for _, _, node in self.added]
        for node in everything:
            for name in node.input:
                uses.setdefault(name, []).append(node)
        for scope in self.scopes:
            for value in scope.graph.output:
                uses.setdefault(value.name, []).append(None)
        makers = {name: node.op_type for node in everything for name in node.output}
        gone: set[str] = set()
        for back in top:
            first = casts.get(back.input[0])
            if first is None or back.attribute[0].i != TensorProto.FLOAT or first.attribute[0].i != self.element:
                continue
            if (
                len(uses[first.output[0]]) > 1
                or makers.get(first.input[0]) == "Constant"
                or None in uses.get(back.output[0], ())
            ):
                continue
            for node in uses.get(back.output[0], ()):
                assert node is not None
                for place, name in enumerate(node.input):
                    if name == back.output[0]:
                        node.input[place] = first.input[0]
            gone |= {first.output[0], back.output[0]}
        self.added = [x for x in self.added if x[2].output[0] not in gone]
        self.casts = [x for x in self.casts if x.result not in gone]
        return len(gone) // 2

    def _finish(self) -> None:
        """Declare the types, and put the nodes into an order that runs."""
        for tensor in self.tensors.values():
            tensor.scope.types[tensor.name] = tensor.type
        for scope in reversed(self.scopes):
            graph = scope.graph
            for value in (*graph.input, *graph.output, *graph.value_info):
                kind = scope.type(value.name)
                if FLOAT in kind or self.low in kind:
                    _retype(value.type, self.element if self.low in kind else TensorProto.FLOAT)
            nodes = [(self.ranks[id(node)], node) for node in graph.node]
            nodes += [(rank, node) for home, rank, node in self.added if home is scope]
            ordered = [_copied(node) for _, node in sorted(nodes, key=lambda x: x[0])]
            graph.ClearField("node")
            graph.node.extend(ordered)
        if self.added and "" not in opsets(self.model):
            self.model.opset_import.append(helper.make_opsetid("", CAST_VERSION))
        sort(self.model.graph)
        order = {name: i for i, name in enumerate(_made(self.model.graph))}
        self.casts.sort(key=lambda x: order[x.result])


def _made(graph: GraphProto) -> Iterator[str]:
    """The names of what nodes make, in order, those inside subgraphs before what their node makes."""
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _made(inner)
        yield from node.output


def _retype(kind: TypeProto, element: int) -> None:
    """Give a type another element type."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        kind.tensor_type.elem_type = element
    elif which in ("sequence_type", "optional_type"):
        _retype(getattr(kind, which).elem_type, element)


def _copied(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
