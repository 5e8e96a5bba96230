"""Recipes of mixed precision: which operations of a graph convert to a low precision, which stay in float32, and why.

A `Recipe` holds Gaudi's five lists, and reads and writes Habana's files. ONNX models and traces of PyTorch are converted to a
`Graph`. `colour` gives each node its verdict with the rule that decided it, gathers those that convert in groups, and puts
casts around them. Names in the lists are TensorFlow's; tables have the names in ONNX and aten for each.

>>> from softfloat.recipes import Graph, Node, Recipe, colour
>>> graph = Graph(
...     [Node("conv", "Conv", ["x", "w"], ["h"]), Node("act", "Relu", ["h"], ["y"], scope="KEEP_FP32_PRECISION")],
...     types=dict.fromkeys("xwhy", "float32"), inputs=["x"], outputs=["y"], parameters=["w"], vocabulary="onnx",
... )
>>> for decision in colour(graph, Recipe.full()).decisions:
...     print(decision.node.path, decision.converts, decision.reason)
conv True allowlist "Conv2D"
KEEP_FP32_PRECISION/act False non_convertible_exceptions [".*KEEP_FP32_PRECISION.*", ""]
"""

from softfloat.recipes.colouring import AlreadyConvertedError, Cast, Colouring, Decision, Rule, colour
from softfloat.recipes.graph import LOW_TYPES, TENSOR_TYPES, Graph, Node
from softfloat.recipes.recipe import Recipe, RecipeError
from softfloat.recipes.variables import as_recipe, dump_used, recipe_from_environment
from softfloat.recipes.vocabularies import VOCABULARIES, Alias, aliases, clauses

__all__ = [
    "LOW_TYPES",
    "TENSOR_TYPES",
    "VOCABULARIES",
    "Alias",
    "AlreadyConvertedError",
    "Cast",
    "Colouring",
    "Decision",
    "Graph",
    "Node",
    "Recipe",
    "RecipeError",
    "Rule",
    "aliases",
    "as_recipe",
    "clauses",
    "colour",
    "dump_used",
    "recipe_from_environment",
]
