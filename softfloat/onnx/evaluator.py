"""`Evaluator`: ONNX's reference evaluator, whose nodes on narrow numbers compute in emulated arithmetic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError

from softfloat.accumulators import Accumulator
from softfloat.checks import check_choice, check_kind, check_switch
from softfloat.engine import refuse_mask
from softfloat.environments import Environment
from softfloat.formats import Format
from softfloat.onnx.graphs import NodeTypes, load, prepare
from softfloat.onnx.moves import looped
from softfloat.onnx.operators import OPERATORS, Operator
from softfloat.onnx.tensors import NARROW, is_narrow
from softfloat.onnx.unit import Call, NodeCounts, NodeKey, UnemulatedOperatorError, Unit, addresses
from softfloat.status import Flags, Status

__all__ = ["Evaluator"]

OWN_DOMAIN = ("", "ai.onnx")

SAME_IN_FLOAT32 = ("moved", "exact", "cast")
"""Kinds of operators that make of float32 what ONNX's own implementation makes, and serve old operator sets that it has left behind."""


class Session:
    """What an evaluator shares with those of its subgraphs: the unit, the nodes, and how each is computed."""

    def __init__(self, unit: Unit, nodes: dict[str, NodeTypes], strict: bool, single: bool) -> None:
        self.unit, self.nodes, self.strict, self.single = unit, nodes, strict, single
        self.elements = frozenset(NARROW) | ({onnx.TensorProto.FLOAT} if single else set())
        self.passed: dict[str, str] = {}
        unit.address = addresses(nodes)

    def concerns(self, value: Any) -> bool:
        """Whether a value holds numbers whose arithmetic is emulated."""
        return is_narrow(value) or (self.single and isinstance(value, np.ndarray) and value.dtype == np.float32)

    def refuse(self, types: NodeTypes) -> None:
        """Raise for a node without emulation, or note it."""
        if self.strict:
            formats = sorted({NARROW[x].name for x in (*types.inputs, *types.outputs) if x in NARROW})
            of = f" on {', '.join(formats)}" if formats else ""
            raise UnemulatedOperatorError(
                f"it has no emulation{of}; keep it in float32 with casts around it, or give strict=False, which leaves it "
                "to ONNX's own implementation",
                types.name,
                types.operator,
            )
        self.passed[types.name] = types.operator

    def implementation(
        self, node: onnx.NodeProto, opsets: Mapping[str, int], native: Callable[[], Any]
    ) -> Callable[[onnx.NodeProto, dict[str, Any]], Any]:
        """What makes the object that runs a node."""
        types = self.nodes.get(node.name)
        if types is None:  # inside a function that ONNX's evaluator makes of a node left to it
            return native()
        row = OPERATORS.get(node.op_type) if node.domain in OWN_DOMAIN else None
        nests = any(x.HasField("g") or x.graphs for x in node.attribute)
        touches, open_types = types.touches(self.elements), -1 in (*types.inputs, *types.outputs)
        if touches and row is None and not nests:
            self.refuse(types)
        alone = row is not None and not row.native and not nests
        made = None
        if not (alone and touches):
            try:
                made = native()
            except RuntimeContextError:  # it is asked for once more, with types
                raise
            except RuntimeError as error:  # NotImplementedError is one
                if not alone or row is None or row.kind not in SAME_IN_FLOAT32:
                    said = " ".join(str(error).split()).rstrip(".")
                    reason = f"it has no emulation, and onnx {onnx.__version__} cannot run it: {said}"
                    raise UnemulatedOperatorError(reason, types.name, types.operator) from None
        if not touches and not open_types and not nests and made is not None:
            return made

        def make(proto: onnx.NodeProto, run_params: dict[str, Any]) -> Node:
            inner = {**run_params, "evaluator_cls": partial(Body, session=self)}
            return Node(self, types, row, proto, opsets[node.domain], None if made is None else made(proto, inner))

        return make


class Node:
    """Runs one node: emulated where narrow numbers come in or go out, else as ONNX's evaluator does."""

    def __init__(
        self,
        session: Session,
        types: NodeTypes,
        row: Operator | None,
        proto: onnx.NodeProto,
        version: int,
        native: Any,
    ) -> None:
        self.session, self.types, self.row, self.native = session, types, row, native
        self.onnx_node, self.version = proto, version
        self.op_type, self.domain, self.input, self.output = proto.op_type, proto.domain, proto.input, proto.output
        self.has_linked_attribute = bool(native is not None and native.has_linked_attribute)
        self.attributes = _attributes(proto, version)
        self._key = NodeKey(types.name, types.operator)
        self._makes = bool(session.elements & set(types.outputs))

    def need_context(self) -> bool:
        """Whether it takes what its graph has computed, for subgraphs."""
        return bool(self.native is not None and self.native.need_context())

    def run(self, *inputs: Any, **more: Any) -> tuple[Any, ...]:
        """Outputs from inputs; `more` is for ONNX's own implementation."""
        session = self.session
        inputs = tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in inputs)
        concerned = self._makes or any(map(session.concerns, inputs))
        if self.row is None or self.row.kind == "control" or (not concerned and self.native is not None):
            if concerned and self.row is None and not self.need_context():
                session.refuse(self.types)
            if self.types.operator == "Loop":
                return looped(self.native.body, more.get("context") or {}, *inputs)
            return tuple(self.native.run(*inputs, **more))
        call = Call(
            session.unit,
            self._key,
            list(inputs),
            self.attributes,
            self.version,
            len(self.output),
            lambda *x: tuple(self.native.run(*x, **more)),
        )
        return self.row.way(call)


def _attributes(node: onnx.NodeProto, version: int) -> dict[str, Any]:
    """A node's attributes, and the defaults of those that it leaves out."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        defaults = {
            name: onnx.helper.get_attribute_value(x.default_value)
            for name, x in schema.attributes.items()
            if x.default_value.name
        }
    except onnx.defs.SchemaError:
        defaults = {}
    return defaults | {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute if not x.ref_attr_name}


class Body(ReferenceEvaluator):
    """The evaluator of a graph within a node. Without a session it is ONNX's own."""

    def __init__(self, proto: Any, *args: Any, session: Session | None = None, **options: Any) -> None:
        self._session = session
        super().__init__(proto, *args, **options)

    def _load_impl(self, node: Any, input_types: Any = None) -> Any:
        native = partial(super()._load_impl, node, input_types)
        return native() if self._session is None else self._session.implementation(node, self.opsets_, native)


How = Accumulator | Callable[[Format], Accumulator] | None


class Evaluator(Body):
    """Runs an ONNX model; nodes on numbers narrower than float32 compute in emulated arithmetic, each rounding declared.

    Parameters
    ----------
    model : onnx.ModelProto, bytes, str or path
        The model. External data lie in files inside its folder.
    environment : Environment, optional
        How to round, what overflow does, which flags trap. Its status collects the flags. None: the one in force when
        a node runs.
    matmul, convolution, reduction : Accumulator, or callable from Format to Accumulator, optional
        How products, convolutions, and sums are summed. None: the environment's `accumulator`, else `fma("float32")`,
        which is one fused multiply-add in single for each k, to nearest even where rounding is stochastic. The sum is
        rounded to the tensors' format at the end.
    strict : bool
        True: a node without emulation is refused. False: it is left to ONNX's own implementation, whose roundings
        are not documented, and listed in `passed`.
    count : bool
        Keep `counts_by_node`. Costs most of the speed: sums are added up by the loop that can look at each addition.
    emulate_float32 : bool
        Compute nodes on float32 here too, in the format float32.
    inner : "float32" or "format"
        Where the stages of softmax and norms are rounded: in float32, and once to the format at the end; or "format": as
        ONNX defines the operator by others, node by node, each rounded to the format (those of norms that it defines in
        float32 stay so). What the model's operator set defines in no such way, BatchNormalization and AveragePool say, or
        Softmax before operator set 13, is in float32 always.

    Attributes
    ----------
    environment : Environment
        The one in force.
    status : Status
        The environment's.
    nodes : dict of str to NodeTypes
        Every node, by name, with its operator and element types. Nodes without a name are called by their first output;
        those of subgraphs and functions by the path to them, a function's once for each place where it is called.
    flags_by_node : dict of str to Flags
        What each node that was emulated raised in the last run.
    counts_by_node : dict of str to NodeCounts
        What became of each node's results in the last run; empty without `count`.
    model : onnx.ModelProto
        The model as it is evaluated: functions inlined, nodes named.
    passed : dict of str to str
        With `strict=False`, the nodes left to ONNX's own implementation, and their operators.

    Raises
    ------
    UnemulatedOperatorError
        At construction, naming node and operator: an operator on narrow numbers that is not emulated, in subgraphs and
        functions too. At a run: attributes that are not emulated.
    ValueError, TypeError, OSError
        A model that is damaged, invalid, too new for the installed onnx, or cannot be read.

    Notes
    -----
    A node is emulated if it takes or makes numbers in float16, bfloat16 or a format of 8 or 4 bits; others, those in float32
    above all, run as in ONNX's evaluator. What each operator computes stands in `softfloat.onnx.OPERATORS`. An operator
    that has no row there, and that ONNX defines as a function of others, is computed as that function, node by node.

    Stochastic rounding addresses random numbers by the environment's seed and the node's name: nodes put in elsewhere
    change no bit, and equal feeds give equal bits in every run. Other random numbers take another seed. The operations
    between, of a loop's body say, count within the run. One run is under way at a time; others wait.

    >>> import numpy as np, onnx
    >>> from softfloat.accumulators import fma
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 10, opset_import: ["": 21]>
    ...     ones (float16[1, 4096] x, float16[4096, 1] w) => (float16[1, 1] y) { y = MatMul(x, w) }''')
    >>> ones = np.ones((1, 4096), np.float16)
    >>> evaluator = Evaluator(model, matmul=fma("float16"), count=True)
    >>> evaluator.run(None, {"x": ones, "w": ones.T})[0].item()
    2048.0
    >>> evaluator.flags_by_node, evaluator.counts_by_node["y"].swamped
    ({'y': <Flags.INEXACT: 1>}, 2048)
    """

    def __init__(
        self,
        model: Any,
        environment: Environment | None = None,
        *,
        matmul: How = None,
        convolution: How = None,
        reduction: How = None,
        strict: bool = True,
        count: bool = False,
        emulate_float32: bool = False,
        inner: str = "float32",
    ) -> None:
        if isinstance(model, onnx.FunctionProto):  # ONNX's evaluator makes its own of functions that operators are
            super().__init__(model)
            return
        check_kind("environment", environment, Environment, optional=True)
        for name, how in (("matmul", matmul), ("convolution", convolution), ("reduction", reduction)):
            if not (how is None or isinstance(how, Accumulator) or callable(how)):
                raise TypeError(
                    f"{name} must be a softfloat.Accumulator, a function from Format to one, or None, got {how!r}"
                )
        check_choice("inner", inner, ("float32", "format"))
        for name, switch in (("strict", strict), ("count", count), ("emulate_float32", emulate_float32)):
            check_switch(name, switch)
        unit = Unit(environment, matmul, convolution, reduction, count)
        elements = frozenset(NARROW) | ({onnx.TensorProto.FLOAT} if emulate_float32 else set())

        def expands(types: NodeTypes) -> bool:
            row = OPERATORS.get(types.operator) if types.domain in OWN_DOMAIN else None
            return types.touches(elements) and (row is None or (row.kind == "staged" and inner == "format"))

        prepared = prepare(load(model), expands)
        self._lock = threading.Lock()
        super().__init__(prepared.model, session=Session(unit, prepared.nodes, strict, emulate_float32))

    @property
    def _shared(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def environment(self) -> Environment:
        """The one given, else the one in force."""
        return self._shared.unit.environment

    @property
    def status(self) -> Status:
        """The environment's status, which collects flags."""
        return self.environment.status

    @property
    def model(self) -> onnx.ModelProto:
        """The model as it is evaluated: functions inlined, nodes named."""
        return self.proto_

    @property
    def counts(self) -> bool:
        """Whether `counts_by_node` is kept."""
        return self._shared.unit.count

    @property
    def watch(self) -> Callable[[str], None] | None:
        """What is told of each emulated node before it runs; None: nothing."""
        return self._shared.unit.watch

    @watch.setter
    def watch(self, told: Callable[[str], None] | None) -> None:
        self._shared.unit.watch = told

    @property
    def nodes(self) -> dict[str, NodeTypes]:
        """Every node by name, in order."""
        return dict(self._shared.nodes)

    @property
    def passed(self) -> dict[str, str]:
        """Nodes left to ONNX's own implementation."""
        return dict(self._shared.passed)

    @property
    def flags_by_node(self) -> dict[str, Flags]:
        """What each emulated node raised in the last run."""
        return {name: Flags(flags) for name, flags in self._shared.unit.flags.items()}

    @property
    def counts_by_node(self) -> dict[str, NodeCounts]:
        """What became of each node's results in the last run."""
        return dict(self._shared.unit.counts)

    def run(
        self, output_names: Sequence[str] | None, feed_inputs: Mapping[str, Any], *args: Any, **options: Any
    ) -> Any:
        """Compute outputs.

        Parameters
        ----------
        output_names : sequence of str, or None
            Which; None: all.
        feed_inputs : mapping of str to array
            Inputs, in their own dtypes: nothing is cast on the way in.
        intermediate : bool
            Return every value of the main graph by name instead.

        Returns
        -------
        list of array, or dict

        Raises
        ------
        ValueError, TypeError
            Inputs that are missing, unknown, or of another dtype or shape than the model says, by name.
        UnemulatedOperatorError
            A node that is not emulated with its attributes.
        NodeTrap
            A flag whose trap is on; a `FloatingPointTrap` that names the node.
        """
        if self._session is None:
            return super().run(output_names, feed_inputs, *args, **options)
        unknown = sorted(set(output_names or ()) - set(self.output_names))
        if unknown and not options.get("intermediate"):
            raise ValueError(f"outputs must be among {', '.join(self.output_names)}, got {', '.join(unknown)}")
        feeds = self._checked(feed_inputs)
        with self._lock:
            self._session.unit.begin()
            return super().run(output_names, feeds, *args, **options)

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs, all that are needed and nothing else."""
        check_kind("feed_inputs", feeds, Mapping)
        needed = [name for name in self.input_names if name not in self.rt_inits_]
        missing, unknown = [x for x in needed if x not in feeds], [x for x in feeds if x not in self.input_names]
        if missing or unknown:
            what = f"input {', '.join(missing)} is missing" if missing else f"there is no input {', '.join(unknown)}"
            raise ValueError(f"{what}; the model's inputs: {', '.join(self.input_names)}")
        kinds = dict(zip(self.input_names, self.input_types, strict=True))
        for name, value in feeds.items():
            if kinds[name].HasField("tensor_type"):
                _check_tensor(name, value, kinds[name].tensor_type)
        return dict(feeds)


def _check_tensor(name: str, value: Any, kind: Any) -> None:
    wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"input {name} must be an array of {wanted}, got {type(value).__name__}")
    refuse_mask(value, f"input {name}")
    if value.dtype != wanted and not (wanted.kind in "OU" and value.dtype.kind in "OU"):
        raise TypeError(f"input {name} must be an array of {wanted}, got {value.dtype}")
    if kind.HasField("shape"):
        sizes = [x.dim_value if x.HasField("dim_value") else None for x in kind.shape.dim]
        fits = len(sizes) == value.ndim and all(a in (None, b) for a, b in zip(sizes, value.shape, strict=False))
        if not fits:
            shown = ", ".join("any" if x is None else str(x) for x in sizes)
            raise ValueError(f"input {name} must have the shape ({shown}), got {value.shape}")
