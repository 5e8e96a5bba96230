"""What recipes decide of graphs: the laws that verdicts, groups and casts obey, and the rules one by one."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from drawn import sampled
from hypothesis import given
from hypothesis import strategies as st

from softfloat.recipes import (
    LOW_TYPES,
    AlreadyConvertedError,
    Colouring,
    Graph,
    Node,
    Recipe,
    Rule,
    colour,
)

TYPES = ["MatMul", "Conv2D", "Reshape", "Relu", "Add", "Sub", "Exp", "Log"]
SCOPES = ["", "a", "a/KEEP_FP32_PRECISION", "FORCE_BF16_PRECISION/b", "KEEP_FP32_PRECISION/FORCE_BF16_PRECISION"]
KEEP = [(".*KEEP_FP32_PRECISION.*", "")]
FORCE = [(".*FORCE_BF16_PRECISION.*", "")]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to ten nodes in a topological order; some tensors are integers, some operands and results stay wide."""
    given_tensors, parameters = ["x0", "x1"], ["p0", "p1"]
    types = {"x0": "float32", "x1": draw(sampled(["float32", "int64"])), "p0": "float32", "p1": "int32"}
    nodes: list[Node] = []
    there = [*given_tensors, *parameters]
    for i in range(draw(st.integers(0, 10))):
        inputs = draw(st.lists(sampled([*there, ""]), max_size=3))
        outputs = [f"t{i}_{j}" for j in range(draw(st.integers(1, 2)))]
        types |= {x: draw(sampled(["float32", "float32", "float32", "bool"])) for x in outputs}
        wide = draw(st.booleans()) and draw(st.booleans())
        nodes.append(
            Node(
                f"n{i}",
                draw(sampled(TYPES)),
                inputs,
                outputs,
                draw(sampled(SCOPES)),
                wide_inputs=[draw(st.integers(0, len(inputs) - 1))] if wide and inputs else [],
                wide_outputs=[draw(st.integers(0, len(outputs) - 1))] if wide else [],
            )
        )
        there += outputs
    outputs = draw(st.lists(sampled(there), max_size=4))
    return Graph(nodes, types, given_tensors, outputs, parameters, "tensorflow")


def type_lists() -> st.SearchStrategy[list[str]]:
    return st.lists(sampled(TYPES), unique=True, max_size=4)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    pairs = st.lists(st.tuples(sampled(["n[0-4]", ".*n7", "a/.*"]), sampled(["", *TYPES])), max_size=2)
    return Recipe(
        draw(type_lists()),
        draw(type_lists()),
        draw(type_lists()),
        [*KEEP, *draw(pairs)],
        [*FORCE, *draw(pairs)],
    )


def matches(pairs: object, node: Node) -> bool:
    assert isinstance(pairs, tuple)
    return any(re.fullmatch(name, node.path) and kind in ("", node.op_type) for name, kind in pairs)


def counted(graph: Graph, node: Node, outputs: bool) -> list[str]:
    tensors, wide = (node.outputs, node.wide_outputs) if outputs else (node.inputs, node.wide_inputs)
    return [x for i, x in enumerate(tensors) if x and graph.types[x] == "float32" and i not in wide]


def verdicts(graph: Graph, recipe: Recipe) -> set[str]:
    """The rules as they are written, applied over and over until nothing changes."""
    makers = {x: node for node in graph.nodes for x in counted(graph, node, True)}
    found: set[str] = set()
    before: set[str] | None = None
    while before != found:
        before = set(found)
        for node in graph.nodes:
            takes, makes = counted(graph, node, False), counted(graph, node, True)
            if matches(recipe.non_convertible_exceptions, node) or not (takes or makes):
                continue
            beside = {makers[x].name for x in takes if x in makers}
            beside |= {other.name for other in graph.nodes if set(makes) & set(counted(graph, other, False))}
            if (
                matches(recipe.convertible_exceptions, node)
                or node.op_type in recipe.allowlist
                or (
                    node.op_type in recipe.conditional_list
                    and node.op_type not in recipe.strict_conditional_list
                    and beside & before
                )
                or (
                    node.op_type in recipe.strict_conditional_list
                    and takes
                    and all(x in graph.parameters or (x in makers and makers[x].name in before) for x in takes)
                )
            ):
                found.add(node.name)
    return found


@given(graphs(), recipes())
def test_verdicts_are_the_least_that_the_rules_allow(graph: Graph, recipe: Recipe) -> None:
    assert colour(graph, recipe).converted == verdicts(graph, recipe)


@given(graphs(), recipes(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(graph: Graph, recipe: Recipe, chance: random.Random) -> None:
    shuffled = list(graph.nodes)
    chance.shuffle(shuffled)
    one, other = colour(graph, recipe), colour(replace(graph, nodes=shuffled), recipe)
    assert {x.node.name: (x.converts, x.rule, x.reason) for x in one.decisions} == {
        x.node.name: (x.converts, x.rule, x.reason) for x in other.decisions
    }
    assert {frozenset(x) for x in one.groups} == {frozenset(x) for x in other.groups}

    def casts(colouring: Colouring) -> set[tuple[object, ...]]:
        return {(x.tensor, x.to, frozenset(x.uses), x.output) for x in colouring.casts}

    assert casts(one) == casts(other)


@given(graphs(), recipes(), st.sampled_from(TYPES))
def test_a_type_more_on_the_allowlist_never_keeps_what_converted(graph: Graph, recipe: Recipe, more: str) -> None:
    extended = replace(recipe, allowlist=[*recipe.allowlist, more])
    assert colour(graph, recipe).converted <= colour(graph, extended).converted


@given(graphs(), recipes())
def test_twice_is_once(graph: Graph, recipe: Recipe) -> None:
    """What converted, forced to, changes nothing more; and a converted graph is refused."""
    once = colour(graph, recipe)
    forced = [(re.escape(node.path), "") for node in graph.nodes if node.name in once.converted]
    twice = colour(graph, replace(recipe, convertible_exceptions=forced))
    assert twice.converted == once.converted
    assert twice.groups == once.groups
    assert twice.casts == once.casts
    after = once.apply()
    if any(kind in LOW_TYPES for kind in after.types.values()):
        with pytest.raises(AlreadyConvertedError, match="is bfloat16; a conversion of what is converted already"):
            colour(after, recipe)
    else:
        assert colour(after, recipe).converted == once.converted


@given(graphs(), recipes())
def test_keep_beats_all(graph: Graph, recipe: Recipe) -> None:
    everything = replace(recipe, allowlist=TYPES, convertible_exceptions=[(".*", "")])
    for node in graph.nodes:
        if "KEEP_FP32_PRECISION" in node.path:
            found = colour(graph, everything)[node.name]
            assert (found.converts, found.rule) == (False, Rule.NON_CONVERTIBLE)


@given(graphs(), recipes(), st.sampled_from(["bfloat16", "float16", "float8_e4m3fn"]))
def test_every_mixed_edge_has_one_cast_and_no_other_has_any(graph: Graph, recipe: Recipe, to: str) -> None:
    """Nodes of the converted graph take what they compute in; a tensor is cast once for a group."""
    done = colour(graph, recipe, to=to)
    after = done.apply()
    made_by = {x: node for node in after.nodes for x in node.outputs}
    casts = [node for node in after.nodes if node.op_type == "Cast"]
    assert {x.result for x in done.casts} == {node.outputs[0] for node in casts}
    names = {node.name: node for node in graph.nodes}
    used = {x for node in after.nodes for x in node.inputs} | set(after.outputs)
    for node in after.nodes:
        if node.op_type == "Cast":
            (source,), (result,) = node.inputs, node.outputs
            assert {after.types[source], after.types[result]} == {"float32", to}
            assert source not in made_by or made_by[source].op_type != "Cast"
            assert result in used
            continue
        old = names[node.name]
        for i, (new, tensor) in enumerate(zip(node.inputs, old.inputs, strict=True)):
            if not tensor:
                assert not new
                continue
            converts = node.name in done.converted and graph.types[tensor] == "float32" and i not in old.wide_inputs
            assert after.types[new] == (to if converts else graph.types[tensor])
            assert (new != tensor) == (after.types[tensor] != after.types[new])
            assert new == tensor or made_by[new].inputs == (tensor,)
        for i, tensor in enumerate(node.outputs):
            converts = node.name in done.converted and graph.types[tensor] == "float32" and i not in old.wide_outputs
            assert after.types[tensor] == (to if converts else graph.types[tensor])
    assert [after.types[x] for x in after.outputs] == [graph.types[x] for x in graph.outputs]
    assert len({(x.tensor, x.group) for x in done.casts}) == len(done.casts)
    assert len({x.tensor for x in done.casts if x.to == "float32"}) == sum(x.to == "float32" for x in done.casts)


@given(graphs(), recipes())
def test_a_converted_graph_stands_in_a_topological_order(graph: Graph, recipe: Recipe) -> None:
    after = colour(graph, recipe).apply()
    there = {*after.inputs, *after.parameters, ""}
    for node in after.nodes:
        assert set(node.inputs) <= there
        there |= set(node.outputs)


@given(graphs(), recipes())
def test_groups_are_what_hangs_together(graph: Graph, recipe: Recipe) -> None:
    done = colour(graph, recipe)
    edges = {
        (node.name, other.name)
        for node in graph.nodes
        for other in graph.nodes
        if set(counted(graph, node, True)) & set(counted(graph, other, False))
        and {node.name, other.name} <= done.converted
    }
    parts = {name: {name} for name in done.converted}
    for a, b in edges:
        joined = parts[a] | parts[b]
        parts |= dict.fromkeys(joined, joined)
    assert {frozenset(x) for x in done.groups} == {frozenset(x) for x in parts.values()}
    assert all(done[name].group == i for i, group in enumerate(done.groups) for name in group)


# -- the rules, one by one -------------------------------------------------------------------------------------------


def chain(*types: str, scopes: tuple[str, ...] = (), vocabulary: str = "tensorflow") -> Graph:
    """x -> n0 -> n1 ... -> y."""
    tensors = ["x", *(f"t{i}" for i in range(len(types) - 1)), "y"]
    nodes = [
        Node(f"n{i}", kind, [tensors[i]], [tensors[i + 1]], scopes[i] if scopes else "") for i, kind in enumerate(types)
    ]
    return Graph(nodes, dict.fromkeys(tensors, "float32"), ["x"], ["y"], vocabulary=vocabulary)


def decided(graph: Graph, recipe: Recipe) -> list[tuple[bool, str]]:
    return [(x.converts, x.reason) for x in colour(graph, recipe).decisions]


def test_conditional_types_convert_along_a_chain() -> None:
    recipe = Recipe(["MatMul"], ["Reshape"])
    assert decided(chain("Reshape", "Reshape", "MatMul", "Exp", "Reshape"), recipe) == [
        (True, 'conditional_list "Reshape", and n1 converts'),
        (True, 'conditional_list "Reshape", and n2 converts'),
        (True, 'allowlist "MatMul"'),
        (False, "in no list"),
        (False, 'conditional_list "Reshape", but no neighbour converts'),
    ]


def test_strict_types_ask_for_all_that_they_take() -> None:
    recipe = Recipe(["MatMul"], [], ["Add"])
    nodes = [
        Node("m", "MatMul", ["x", "w"], ["a"]),
        Node("bias", "Add", ["a", "b"], ["c"]),
        Node("residual", "Add", ["c", "x"], ["d"]),
        Node("of_parameters", "Add", ["w", "b"], ["e"]),
        Node("of_nothing", "Add", [], ["f"]),
    ]
    types = dict.fromkeys("xwbacdef", "float32")
    graph = Graph(nodes, types, ["x"], ["d", "e", "f"], ["w", "b"], "tensorflow")
    assert decided(graph, recipe) == [
        (True, 'allowlist "MatMul"'),
        (True, 'strict_conditional_list "Add", and all that it takes converts or is a parameter'),
        (False, 'strict_conditional_list "Add", but x stays in float32'),
        (True, 'strict_conditional_list "Add", and all that it takes converts or is a parameter'),
        (False, 'strict_conditional_list "Add", but it takes nothing that could convert'),
    ]


def test_a_type_on_both_conditional_lists_is_strict() -> None:
    """As Add is in Habana's transformer.json, where the strict list would mean nothing otherwise."""
    recipe = Recipe(["MatMul"], ["Add"], ["Add"])
    assert decided(chain("Add", "MatMul", "Add"), recipe) == [
        (False, 'strict_conditional_list "Add", but x stays in float32'),
        (True, 'allowlist "MatMul"'),
        (True, 'strict_conditional_list "Add", and all that it takes converts or is a parameter'),
    ]


@pytest.mark.parametrize(
    ("kind", "vocabulary"), [("Const", "tensorflow"), ("ReadVariableOp", "tensorflow"), ("Constant", "onnx")]
)
def test_nodes_that_hold_constants_are_parameters(kind: str, vocabulary: str) -> None:
    nodes = [Node("c", kind, [], ["a"]), Node("sum", "Add", ["a", "a"], ["b"])]
    graph = Graph(nodes, dict.fromkeys("ab", "float32"), outputs=["b"], vocabulary=vocabulary)
    assert colour(graph, Recipe(strict_conditional_list=["Add"])).converted == {"sum"}


def test_scopes_force_and_keep() -> None:
    scopes = ("", "net/KEEP_FP32_PRECISION/fc", "net/FORCE_BF16_PRECISION", "KEEP_FP32_PRECISION/FORCE_BF16_PRECISION")
    found = colour(chain("MatMul", "MatMul", "Exp", "Exp", scopes=scopes), Recipe.basic())
    assert [x.rule for x in found.decisions] == [
        Rule.ALLOWED,
        Rule.NON_CONVERTIBLE,
        Rule.CONVERTIBLE,
        Rule.NON_CONVERTIBLE,
    ]


def test_patterns_match_whole_names_and_types() -> None:
    """The example of Gaudi's documentation."""
    recipe = Recipe(
        ["BatchMatMul", "BatchMatMulV2", "MatMul"],
        non_convertible_exceptions=[("gradients/bert/encoder/layer_0/attention/self/key/MatMul_grad/MatMul_1", "")],
        convertible_exceptions=[("bert/encoder/layer_[0-9]+/attention/self/add", "AddV2")],
    )
    key = "gradients/bert/encoder/layer_0/attention/self/key/MatMul_grad"
    nodes = [
        Node("MatMul_1", "MatMul", ["x", "x"], ["a"], key),
        Node("MatMul_12", "MatMul", ["x", "x"], ["b"], key),
        Node("bert/encoder/layer_11/attention/self/add", "AddV2", ["x", "x"], ["c"]),
        Node("bert/encoder/layer_0/attention/self/add", "Add", ["x", "x"], ["d"]),
        Node("my/bert/encoder/layer_0/attention/self/add", "AddV2", ["x", "x"], ["e"]),
    ]
    graph = Graph(nodes, dict.fromkeys("xabcde", "float32"), ["x"], list("abcde"), vocabulary="tensorflow")
    assert [x.converts for x in colour(graph, recipe).decisions] == [False, True, True, False, False]


def test_integers_neither_convert_nor_pass_anything_on() -> None:
    nodes = [
        Node("m", "MatMul", ["x", "x"], ["a"]),
        Node("shape", "Shape", ["a"], ["s"]),
        Node("part", "Slice", ["s"], ["u"]),
        Node("r", "Reshape", ["z", "u"], ["y"]),
    ]
    types = {**dict.fromkeys("xazy", "float32"), "s": "int64", "u": "int64"}
    done = colour(Graph(nodes, types, ["x", "z"], ["y"], vocabulary="tensorflow"), Recipe.full())
    assert [x.converts for x in done.decisions] == [True, True, False, False]
    assert done["part"].rule is Rule.NOT_FLOAT32
    assert [x.tensor for x in done.casts] == ["x"]
    assert done.types["s"] == "int64"


def test_one_cast_for_all_that_take_a_tensor_in_a_group() -> None:
    nodes = [
        Node("a", "MatMul", ["x", "x"], ["t"]),
        Node("b", "MatMul", ["t", "x"], ["u"]),
        Node("c", "MatMul", ["x", "x"], ["v"]),
        Node("d", "Exp", ["u"], ["w"]),
        Node("e", "Log", ["u"], ["y"]),
    ]
    graph = Graph(nodes, dict.fromkeys("xtuvwy", "float32"), ["x"], ["u", "v", "w", "y"], vocabulary="tensorflow")
    done = colour(graph, Recipe.basic())
    assert done.groups == (("a", "b"), ("c",))
    assert [(x.tensor, x.group, x.to, x.uses, x.output) for x in done.casts] == [
        ("x", 0, "bfloat16", (("a", 0), ("a", 1), ("b", 1)), False),
        ("x", 1, "bfloat16", (("c", 0), ("c", 1)), False),
        ("u", 0, "float32", (("d", 0), ("e", 0)), True),
        ("v", 1, "float32", (), True),
    ]
    assert [node.name for node in done.apply().nodes] == [
        "cast_x_bfloat16", "a", "b", "cast_u_float32", "cast_x_bfloat16_1", "c", "cast_v_float32", "d", "e",
    ]  # fmt: skip


def test_statistics_of_norms_stay_wide() -> None:
    nodes = [
        Node("norm", "FusedBatchNormV3", ["x", "mean"], ["y", "saved"], wide_inputs=[1], wide_outputs=[1]),
        Node("grad", "FusedBatchNormGradV3", ["y", "saved"], ["g"], wide_inputs=[1]),
        Node("show", "Identity", ["saved"], ["z"]),
    ]
    graph = Graph(
        nodes, dict.fromkeys(["x", "mean", "y", "saved", "g", "z"], "float32"), ["x", "mean"], ["g", "z"], vocabulary="tensorflow"
    )  # fmt: skip
    done = colour(graph, Recipe.full())
    assert done.converted == {"norm", "grad"}
    assert [(x.tensor, x.to) for x in done.casts] == [("x", "bfloat16"), ("g", "float32")]


def test_a_type_of_two_kinds_is_listed_when_both_are() -> None:
    node = Node("back", "aten.convolution_backward", ["x"], ["y"], rank=4)
    graph = Graph([node], {"x": "float32", "y": "float32"}, ["x"], ["y"], vocabulary="aten")
    one, both = ["Conv2DBackpropInput"], ["Conv2DBackpropInput", "Conv2DBackpropFilter"]
    assert not colour(graph, Recipe(one)).converted
    assert colour(graph, Recipe(both)).converted
    assert colour(graph, Recipe(both)).decisions[0].reason == (
        'allowlist "Conv2DBackpropInput" and allowlist "Conv2DBackpropFilter"'
    )
    assert colour(graph, Recipe(one, both[1:])).decisions[0].rule is Rule.CONDITIONAL
    assert colour(graph, Recipe([], one, both[1:])).decisions[0].rule is Rule.STRICT_CONDITIONAL
    assert colour(graph, Recipe([], one)).decisions[0].rule is Rule.BLOCKED
    assert colour(graph, Recipe(["aten.convolution_backward"])).converted
    assert not colour(graph, Recipe(both, non_convertible_exceptions=[(".*", one[0])])).converted
    assert not colour(graph, Recipe(convertible_exceptions=[(".*", one[0])])).converted


def test_results_do_not_take_names_that_are_there() -> None:
    graph = Graph(
        [Node("cast_x_bfloat16_1", "MatMul", ["x", "x_bfloat16"], ["y"])],
        dict.fromkeys(["x", "x_bfloat16", "y"], "float32"), ["x", "x_bfloat16"], ["y"],
    )  # fmt: skip
    after = colour(graph, Recipe.basic()).apply()
    assert len({node.name for node in after.nodes}) == 4
    assert [x.result for x in colour(graph, Recipe.basic()).casts] == [
        "x_bfloat16_1", "x_bfloat16_bfloat16", "y_float32",
    ]  # fmt: skip


# -- what is refused ------------------------------------------------------------------------------------------------


def test_converted_graphs_are_refused_by_tensor_and_node() -> None:
    graph = chain("MatMul", "Cast")
    with pytest.raises(AlreadyConvertedError, match="tensor 'y', which node 'n1' makes, is float16"):
        colour(replace(graph, types={**graph.types, "y": "float16"}), Recipe.basic())


X = {"x": "float32", "y": "float32"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([Node("a", "Add", ["x"], ["y"])] * 2, X, ["x"]), "names of nodes must be different, got 'a' twice"),
        (lambda: Graph([Node("a", "Add", [], ["x"])], X, ["x"]), "tensor 'x', which node 'a' makes, is made or given"),
        (lambda: Graph([Node("a", "Add", ["z"], ["y"])], X, ["x"]), "node 'a' takes tensor 'z', which no node makes"),
        (lambda: Graph([], X, ["x"], ["y"]), "the graph returns tensor 'y', which no node makes"),
        (lambda: Graph([Node("a", "Add", ["x"], ["z"])], X, ["x"]), "types must have all tensors, got none of 'z'"),
        (lambda: Graph([], {"x": "half"}), "type of tensor 'x' must be one of .*, got 'half'"),
        (lambda: Graph([], {}, vocabulary="jax"), "vocabulary must be one of 'tensorflow', 'onnx', 'aten', got 'jax'"),
        (lambda: Node("", "Add", [], []), "must not be empty"),
        (lambda: Node("a", "Add", ["x"], ["y"], wide_inputs=[1]), "wide_inputs of node 'a' must be positions from 0 to 0"),
        (lambda: Node("a", "Add", ["x"], ["y"], rank=-1), "rank of node 'a' must be None or an integer"),
        (lambda: colour(chain("Add"), Recipe(), to="float32"), "to must be one of 'float16'"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused_by_name(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


def test_arguments_of_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="inputs of node 'a' must be a sequence of strings, got 'xy'"):
        Node("a", "Add", "xy", ["z"])
    with pytest.raises(TypeError, match="graph must be Graph"):
        colour([], Recipe())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="recipe must be Recipe"):
        colour(chain("Add"), {})  # type: ignore[arg-type]


# -- as text --------------------------------------------------------------------------------------------------------


def test_tables_escape_names() -> None:
    done = colour(chain("MatMul", "Exp", scopes=("<b>", "[red]")), Recipe.basic())
    assert "&lt;b&gt;/n0" in done._repr_html_()
    assert "1 of 2 nodes in bfloat16, 1 group, 2 casts" in str(done)
    assert done.counts() == {(Rule.ALLOWED, True): 1, (Rule.BLOCKED, False): 1}


def test_verdicts_hold_both_graphs() -> None:
    found = colour(chain("MatMul", "Exp"), Recipe.basic()).verdicts()
    assert [x["verdict"] for x in found["verdicts"]] == ["convert", "keep"]
    assert found["before"][0] == {
        "name": "n0", "op_type": "MatMul", "inputs": [["x", "float32"]], "outputs": [["t0", "float32"]],
    }  # fmt: skip
    assert [x["name"] for x in found["after"]] == ["cast_x_bfloat16", "n0", "cast_t0_float32", "n1"]
    assert found["after"][1]["outputs"] == [["t0", "bfloat16"]]
