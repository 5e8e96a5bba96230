"""Lists that come with the package: which op types Gaudi's recipes convert, by the names that TensorFlow gives them.

The facts are those of HabanaAI/Model-References, release 1.3.0, folder TensorFlow: common/bf16_config/basic.json and full.json,
nlp/bert/bf16_config/bert.json, computer_vision/Unet2D/bf16_config/unet.json.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["FORCE", "KEEP", "LISTS", "Pairs"]

Pairs: TypeAlias = tuple[tuple[str, str], ...]

KEEP: Pairs = ((".*KEEP_FP32_PRECISION.*", ""),)
FORCE: Pairs = ((".*FORCE_BF16_PRECISION.*", ""),)

CONVOLUTIONS = """
    Conv2D Conv2DBackpropFilter Conv2DBackpropInput HabanaConv2DWithPadding HabanaConv2DWithPaddingBackpropFilter
    HabanaConv2DWithPaddingBackpropInput
"""
PRODUCTS = "BatchMatMul BatchMatMulV2 MatMul"
CLAMPS = "HabanaClampFwd HabanaClampBwd"
NEAREST = "ResizeNearestNeighbor ResizeNearestNeighborGrad"
POOLS = "MaxPool MaxPoolV2 MaxPoolGrad MaxPoolGradV2"
ALLOCATORS = "_ScopedAllocatorSplit _ScopedAllocatorConcat _ScopedAllocator"
DROPOUT = "HabanaDropout HabanaDropoutGrad"
SOFTMAX = "HabanaSoftmaxGrad HabanaLogSoftmaxGrad LogSoftmax Softmax"
ADDITIONS = "Add AddN AddV2"

LISTS: dict[str, dict[str, str | Pairs]] = {
    "basic": {
        "allowlist": f"{CONVOLUTIONS} {PRODUCTS}",
        "conditional_list": f"{CLAMPS} {NEAREST}",
        "strict_conditional_list": "",
        "convertible_exceptions": FORCE,
    },
    "full": {
        "allowlist": f"""
            {ALLOCATORS} {CONVOLUTIONS} {PRODUCTS} {POOLS} {DROPOUT} {SOFTMAX} HabanaDropoutStateful
            BiasAdd Cumprod Cumsum EuclideanNorm Exp FloorDiv L2Loss Log Log1p Mul Reciprocal Round Rsqrt RsqrtGrad Square
            SquaredDifference Sqrt
            DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput
            FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGradV2 FusedBatchNormGradV3 HabanaFusedBatchNormV3
            HabanaInstanceNorm HabanaInstanceNormGrad HabanaLayerNorm HabanaLayerNormGrad
            HabanaGelu HabanaGeluGrad HabanaMaxPool HabanaMaxPoolGrad PyramidRoiAlign PyramidRoiAlignGradImages
            GatherNd GatherV2 TensorScatterUpdate Greater GreaterEqual Less LessEqual
            Relu Relu6 ReluGrad Relu6Grad Sigmoid SigmoidGrad Tanh TanhGrad
            SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
        """,
        "conditional_list": f"""
            {CLAMPS} {NEAREST} Abs ArgMax ArgMin CollectiveReduceV2 CollectiveReduceV3 DynamicStitch Equal ExpandDims Fill
            HabanaMaxGrad HabanaMinGrad HabanaSparseSegmentSum HabanaRandomUniformWithMaxval HabanaRandomUniformWithScale
            HabanaSize HorovodAllgather HorovodAllreduce HorovodBroadcast HpuCollectiveBcastRecv HpuCollectiveBcastRecvV2
            HpuCollectiveBcastSend HpuCollectiveBcastSendV2 HpuCollectiveGather HpuCollectiveGatherV2 HpuCollectiveReduce
            Identity IdentityN IsFinite MatrixBandPart Maximum Minimum Neg NotEqual Pack Pad PadV2 RandomStandardNormal
            RandomUniform Rank RealDiv Reshape Select SelectV2 Shape ShapeN Sign Size Slice SparseSegmentSumWithNumSegments
            SplitV Split Snapshot Squeeze StridedSlice StridedSliceGrad Tile Transpose Unpack ZerosLike
        """,
        "strict_conditional_list": f"{ADDITIONS} BiasAddGrad Sub",
        "convertible_exceptions": FORCE,
    },
    "bert": {
        "allowlist": f"""
            {ALLOCATORS} {PRODUCTS} {DROPOUT} {SOFTMAX} HabanaDropoutStateful BiasAdd BiasAddGrad EuclideanNorm Exp HabanaGelu
            HabanaGeluGrad HabanaLayerNorm HabanaLayerNormV2 HabanaLayerNormGrad HabanaLayerNormGradV2 HabanaMaskedSoftmax
            HorovodAllgather HorovodAllreduce L2Loss Log Sum Tanh TanhGrad
        """,
        "conditional_list": f"{ADDITIONS} ExpandDims Identity Neg Reshape Slice Split StridedSliceGrad Transpose",
        "strict_conditional_list": "",
        "convertible_exceptions": (
            ("bert/encoder/layer_[0-9]+/attention/self/add", "AddV2"),
            ("bert/encoder/layer_[0-9]+/attention/self/Mul", "Mul"),
            ("clip_by_global_norm/mul", "Mul"),
            ("global_norm/mul", "Mul"),
            ("global_norm/global_norm", "Sqrt"),
            *FORCE,
        ),
    },
    "unet": {
        "allowlist": f"""
            {CONVOLUTIONS} {PRODUCTS} {POOLS} BiasAdd BiasAddGrad Conv3D Conv3DBackpropFilter Conv3DBackpropFilterV2
            Conv3DBackpropInput Conv3DBackpropInputV2 HabanaInstanceNorm HabanaInstanceNormGrad LeakyRelu LeakyReluGrad Relu
            ReluGrad
        """,
        "conditional_list": f"""
            {ADDITIONS} {CLAMPS} {NEAREST} {DROPOUT} CollectiveReduceV2 CollectiveReduceV3 Concat ConcatV2 Equal Exp
            GreaterEqual HorovodAllgather HorovodAllreduce HpuCollectiveGather HpuCollectiveGatherV2 HpuCollectiveReduce
            Identity Log1p L2Loss Max Mean Mul Neg Pad PadV2 Pow RealDiv Reciprocal Reshape Select Shape ShapeN Slice Square
            Tile
        """,
        "strict_conditional_list": "",
        "convertible_exceptions": FORCE,
    },
}
"""By the recipe's name and the file's key; `KEEP` is in each."""
