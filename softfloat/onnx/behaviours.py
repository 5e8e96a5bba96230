"""How converters of float32 models behave, one row each: softfloat's own, Paddle's transpiler, onnxconverter-common's and onnxruntime's.

The converter is one, in `softfloat.onnx.conversion`; a row says what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

__all__ = ["BEHAVIOURS", "Behaviour", "Kernels", "Spread", "Weights"]


class Weights(StrEnum):
    """Which type a weight gets that is used by nodes of both kinds."""

    EACH = "each"
    """A copy of each type."""
    UNLESS_KEPT = "unless kept"
    """float32 if any node that stays in float32 uses it."""
    IF_CONVERTED = "if converted"
    """The narrow type if any converted node uses it."""


class Spread(StrEnum):
    """Where an input of the model that stays in float32 is converted."""

    NEEDED = "needed"
    """Where a converted node uses it, once; other nodes use the input itself."""
    TENSOR = "tensor"
    """Once, for every node that uses it."""
    NODE = "node"
    """Once for each node that uses it."""


class Kernels(StrEnum):
    """What becomes of a node whose operator ONNX has no kernel of the narrow type for."""

    KEPT = "kept"
    """It stays in float32."""
    REFUSED = "refused"
    """An error, which lists the types that there are kernels for."""
    ASSUMED = "assumed"
    """Nothing: the original does not look."""


NAMES = {
    "input": ("{tensor}_{to}", "Cast_{tensor}_{to}"),
    "output": ("{tensor}_{to}", "Cast_{tensor}_float32"),
    "entering": ("{tensor}_float32", "Cast_{tensor}_float32"),
    "leaving": ("{tensor}_float32", "Cast_{tensor}_{to}"),
    "weight": ("{tensor}_{to}", ""),
}


@dataclass(frozen=True)
class Behaviour:
    """A converter.

    Attributes
    ----------
    name, source : str
        What it is called, and where its rules come from.
    formats : tuple of str
        What it converts to.
    blocked : frozenset of str
        Types of operators that stay in float32 unless the caller names others.
    float32_inputs : mapping of str to tuple of int
        Type of operator -> places of inputs that stay in float32 beside those that ONNX's schemas fix.
    clamp : (float, float) or None
        Magnitudes between 0 and the first become the first, finite ones above the second become the second, before
        weights are rounded.
    weights, kernels
        As the enumerations say.
    inputs, outputs
        The casts of inputs and outputs of the model that stay float32: where they are needed, or always.
    returns : bool
        Whether what a kept node makes is converted at once, so that other kept nodes convert it back.
    shares : bool
        Whether nodes of one kind share the cast of a tensor.
    joins : bool
        Whether a cast to the narrow type that feeds nothing but one cast to float32 is removed together with it.
    drops : bool
        Whether weights that nothing uses are removed.
    names : mapping
        What a cast is for -> the names of the tensor and of the node that it adds.
    """

    name: str
    source: str
    formats: tuple[str, ...] = ("float16",)
    blocked: frozenset[str] = frozenset()
    float32_inputs: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    clamp: tuple[float, float] | None = None
    weights: Weights = Weights.EACH
    inputs: Spread = Spread.NEEDED
    outputs: Spread = Spread.NEEDED
    kernels: Kernels = Kernels.KEPT
    returns: bool = False
    shares: bool = True
    joins: bool = False
    drops: bool = False
    names: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType(NAMES))


CLASSICAL = """
ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder LinearClassifier LinearRegressor
Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
"""
"""Operators of ai.onnx.ml, which have no kernels of narrow types."""

BOTH = frozenset(f"{CLASSICAL} CumSum Max Min NonMaxSuppression RandomUniformLike Range RoiAlign TopK Upsample".split())
"""What both of Microsoft's converters leave in float32."""

BEHAVIOURS = {
    row.name: row
    for row in (
        Behaviour(
            "softfloat", "every operator that ONNX has kernels of the type for; no clamps", ("float16", "bfloat16")
        ),
        Behaviour(
            "paddle",
            "PaddlePaddle float16 design document; paddle/contrib/float16/float16_transpiler.py",
            float32_inputs=MappingProxyType({"BatchNormalization": (1, 2, 3, 4)}),
            inputs=Spread.TENSOR,
            kernels=Kernels.REFUSED,
            drops=True,
            names=MappingProxyType(
                NAMES
                | {
                    "input": ("{tensor}.fp16", "cast_{tensor}"),
                    "output": ("{tensor}.fp16", "cast_{tensor}"),
                    "weight": ("{tensor}.fp16", ""),
                }
            ),
        ),
        Behaviour(
            "onnxconverter",
            "onnxconverter-common 1.16, float16.convert_float_to_float16",
            blocked=BOTH | {"Resize"},
            clamp=(1e-7, 1e4),
            weights=Weights.UNLESS_KEPT,
            inputs=Spread.NODE,
            kernels=Kernels.ASSUMED,
            returns=True,
            shares=False,
            joins=True,
            names=MappingProxyType(
                NAMES
                | {
                    "input": ("{tensor}_cast_to_{node}", "{tensor}_cast_to_{node}"),
                    "output": ("{node}_cast_to_{tensor}", "{node}_cast_to_{tensor}"),
                    "entering": ("{node}_input_cast_{place}", "{node}_input_cast{place}"),
                    "leaving": ("{node}_output_cast_{place}", "{node}_output_cast{place}"),
                }
            ),
        ),
        Behaviour(
            "onnxruntime",
            "onnxruntime 1.31, transformers.float16.convert_float_to_float16",
            blocked=BOTH | {"TreeEnsemble"},
            float32_inputs=MappingProxyType({"GroupNorm": (1, 2), "SkipGroupNorm": (1, 2)}),
            clamp=(5.96e-8, 65504.0),
            weights=Weights.IF_CONVERTED,
            inputs=Spread.TENSOR,
            outputs=Spread.TENSOR,
            kernels=Kernels.ASSUMED,
            returns=True,
            names=MappingProxyType(
                NAMES
                | {
                    "input": ("graph_input_cast_{place}", "graph_input_cast{place}"),
                    "output": ("graph_output_cast_{place}", "graph_output_cast{place}"),
                    "entering": ("{tensor}_cast_to_fp32", "{tensor}_cast_to_fp32_node"),
                    "leaving": ("{tensor}_cast_to_fp16", "{tensor}_cast_to_fp16_node"),
                }
            ),
        ),
    )
}
"""Name -> converter."""
