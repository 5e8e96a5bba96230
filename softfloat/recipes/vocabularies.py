"""One operation, three names: TensorFlow's, ONNX's, aten's; so that lists in one vocabulary speak of graphs in another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from softfloat.checks import check_choice, nearest

__all__ = ["SOURCES", "VOCABULARIES", "Alias", "aliases", "clauses", "suggestion", "vocabulary_of"]

VOCABULARIES = ("tensorflow", "onnx", "aten")
"""TensorFlow's op types, ONNX's operators of the default domain, PyTorch's operators as "aten.mm", without their overload."""

ROWS = """
    MatMul | MatMul Gemm | mm addmm mv addmv dot vdot linear
    BatchMatMul BatchMatMulV2 | MatMul | bmm baddbmm matmul
    Einsum | Einsum | einsum
    @3,4 Conv2D HabanaConv2DWithPadding | Conv | convolution conv1d conv2d
    @3,4 Conv2DBackpropInput HabanaConv2DWithPaddingBackpropInput | ConvTranspose | convolution_backward \
convolution_backward+input convolution+transposed conv_transpose1d conv_transpose2d
    @3,4 Conv2DBackpropFilter HabanaConv2DWithPaddingBackpropFilter | | convolution_backward convolution_backward+filter
    @5 Conv3D | Conv | convolution conv3d
    @5 Conv3DBackpropInput Conv3DBackpropInputV2 | ConvTranspose | convolution_backward convolution_backward+input \
convolution+transposed conv_transpose3d
    @5 Conv3DBackpropFilter Conv3DBackpropFilterV2 | | convolution_backward convolution_backward+filter
    DepthwiseConv2dNative | Conv+depthwise | convolution+depthwise
    DepthwiseConv2dNativeBackpropInput | | convolution_backward+depthwise
    DepthwiseConv2dNativeBackpropFilter | | convolution_backward+depthwise

    FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 HabanaFusedBatchNormV3 | BatchNormalization | native_batch_norm \
_native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training \
_batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update batch_norm cudnn_batch_norm
    FusedBatchNormGradV2 FusedBatchNormGradV3 | | native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward
    HabanaInstanceNorm | InstanceNormalization | instance_norm
    HabanaInstanceNormGrad | |
    HabanaLayerNorm HabanaLayerNormV2 | LayerNormalization | native_layer_norm layer_norm
    HabanaLayerNormGrad HabanaLayerNormGradV2 | | native_layer_norm_backward

    Relu | Relu | relu
    ReluGrad | | threshold_backward
    Relu6 | | relu6 hardtanh+relu6
    Relu6Grad | | hardtanh_backward+relu6
    LeakyRelu | LeakyRelu | leaky_relu
    LeakyReluGrad | | leaky_relu_backward
    Elu | Elu | elu
    EluGrad | | elu_backward
    Selu | Selu | selu
    Softplus | Softplus | softplus
    SoftplusGrad | | softplus_backward
    Softsign | Softsign |
    Sigmoid | Sigmoid | sigmoid
    SigmoidGrad | | sigmoid_backward
    Tanh | Tanh | tanh
    TanhGrad | | tanh_backward
    HabanaGelu | Gelu | gelu
    HabanaGeluGrad | | gelu_backward
    Softmax | Softmax | _softmax softmax _safe_softmax
    HabanaMaskedSoftmax | | _masked_softmax
    HabanaSoftmaxGrad | | _softmax_backward_data _masked_softmax_backward
    LogSoftmax | LogSoftmax | _log_softmax log_softmax
    HabanaLogSoftmaxGrad | | _log_softmax_backward_data
    SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits | SoftmaxCrossEntropyLoss | cross_entropy_loss
    HabanaDropout HabanaDropoutStateful | Dropout | native_dropout dropout
    HabanaDropoutGrad | | native_dropout_backward
    HabanaClampFwd | Clip | clamp clamp_min clamp_max hardtanh
    HabanaClampBwd | | hardtanh_backward

    MaxPool MaxPoolV2 HabanaMaxPool | MaxPool | max_pool2d max_pool2d_with_indices max_pool1d
    MaxPoolGrad MaxPoolGradV2 HabanaMaxPoolGrad | | max_pool2d_with_indices_backward max_pool2d_backward
    MaxPool3D | MaxPool+3d | max_pool3d max_pool3d_with_indices
    MaxPool3DGrad | | max_pool3d_with_indices_backward
    AvgPool | AveragePool | avg_pool1d avg_pool2d
    AvgPoolGrad | | avg_pool2d_backward
    AvgPool3D | | avg_pool3d
    AvgPool3DGrad | | avg_pool3d_backward
    ResizeNearestNeighbor HabanaResizeNearestNeighbor | Resize+nearest Upsample+nearest | upsample_nearest1d \
upsample_nearest2d upsample_nearest3d
    ResizeNearestNeighborGrad HabanaResizeNearestNeighborGrad | | upsample_nearest1d_backward \
upsample_nearest2d_backward upsample_nearest3d_backward
    ResizeBilinear | Resize Upsample | upsample_bilinear2d
    ResizeBilinearGrad | | upsample_bilinear2d_backward
    PyramidRoiAlign | RoiAlign |
    PyramidRoiAlignGradImages | |

    Add AddV2 | Add | add
    AddN | Sum |
    BiasAdd | |
    BiasAddGrad | |
    Sub | Sub | sub rsub
    Mul | Mul | mul
    RealDiv Div | Div | div true_divide
    FloorDiv | | floor_divide div+floor
    FloorMod Mod | Mod | remainder fmod
    Neg | Neg | neg
    Abs | Abs | abs
    Sign | Sign | sign sgn
    Square | | square pow+2
    SquaredDifference | |
    Sqrt | Sqrt | sqrt
    Rsqrt | | rsqrt
    RsqrtGrad | |
    Reciprocal Inv | Reciprocal | reciprocal
    Pow | Pow | pow
    Exp | Exp | exp
    Expm1 | | expm1
    Log | Log | log
    Log1p | | log1p
    Erf | Erf | erf
    Erfc | | erfc
    Sin | Sin | sin
    Cos | Cos | cos
    Tan | Tan | tan
    Asin | Asin | asin
    Acos | Acos | acos
    Atan | Atan | atan
    Atan2 | | atan2
    Sinh | Sinh | sinh
    Cosh | Cosh | cosh
    Asinh | Asinh | asinh
    Acosh | Acosh | acosh
    Atanh | Atanh | atanh
    Round Rint | Round | round
    Floor | Floor | floor
    Ceil | Ceil | ceil
    Maximum | Max | maximum max+other fmax
    Minimum | Min | minimum min+other fmin
    L2Loss | |

    Sum | ReduceSum | sum
    Mean | ReduceMean GlobalAveragePool | mean _adaptive_avg_pool2d adaptive_avg_pool2d
    Max | ReduceMax GlobalMaxPool | max amax
    Min | ReduceMin | min amin
    Prod | ReduceProd | prod
    EuclideanNorm | ReduceL2 | norm linalg_vector_norm
    HabanaMaxGrad | |
    HabanaMinGrad | |
    All | | all
    Any | | any
    ArgMax | ArgMax | argmax
    ArgMin | ArgMin | argmin
    Cumsum | CumSum | cumsum
    Cumprod | CumProd | cumprod
    TopK TopKV2 | TopK | topk

    Equal | Equal | eq
    NotEqual | | ne
    Greater | Greater | gt
    GreaterEqual | GreaterOrEqual | ge
    Less | Less | lt
    LessEqual | LessOrEqual | le
    IsFinite | | isfinite
    IsNan | IsNaN | isnan
    IsInf | IsInf | isinf
    LogicalAnd | And | logical_and bitwise_and
    LogicalOr | Or | logical_or bitwise_or
    LogicalNot | Not | logical_not bitwise_not
    Select SelectV2 | Where | where

    Identity Snapshot | Identity | alias clone detach contiguous lift_fresh_copy expand+same
    IdentityN | |
    Reshape | Reshape Flatten | reshape view _unsafe_view _reshape_alias flatten
    Transpose | Transpose | permute transpose t
    ExpandDims | Unsqueeze | unsqueeze
    Squeeze | Squeeze | squeeze
    Slice StridedSlice | Slice | slice select
    StridedSliceGrad | | slice_backward select_backward
    Split SplitV | Split | split split_with_sizes chunk
    Unpack | | unbind
    Pack | | stack
    Concat ConcatV2 | Concat | cat
    Pad PadV2 | Pad | constant_pad_nd
    MirrorPad | | reflection_pad1d reflection_pad2d reflection_pad3d
    Tile | Tile | repeat
    BroadcastTo | Expand | expand
    Gather GatherV2 ResourceGather | Gather | embedding index_select
    UnsortedSegmentSum | | embedding_dense_backward
    GatherNd | GatherND | index
    ScatterNd TensorScatterUpdate | ScatterND | index_put scatter
    DynamicStitch | |
    MatrixBandPart | Trilu | tril triu
    DepthToSpace | DepthToSpace | pixel_shuffle
    SpaceToDepth | SpaceToDepth | pixel_unshuffle
    OneHot | OneHot | one_hot
    Shape ShapeN | Shape | sym_size
    Size HabanaSize | Size | numel
    Rank | |
    Fill | ConstantOfShape | full
    ZerosLike | | zeros_like zeros new_zeros
    OnesLike | | ones_like ones new_ones
    Range | Range | arange
    RandomUniform HabanaRandomUniformWithMaxval HabanaRandomUniformWithScale | RandomUniform RandomUniformLike | rand \
rand_like uniform
    RandomStandardNormal | RandomNormal RandomNormalLike | randn randn_like normal
    Cast | Cast CastLike | _to_copy
    StopGradient | |
    Const Placeholder | Constant |
    Variable VariableV2 VarHandleOp ReadVariableOp | |
    SparseSegmentSumWithNumSegments HabanaSparseSegmentSum | | _embedding_bag
    CollectiveReduceV2 CollectiveReduceV3 HpuCollectiveReduce HpuCollectiveReduceV2 HorovodAllreduce | |
    HorovodAllgather HpuCollectiveGather HpuCollectiveGatherV2 | |
    HorovodBroadcast HpuCollectiveBcastRecv HpuCollectiveBcastRecvV2 HpuCollectiveBcastSend HpuCollectiveBcastSendV2 | |
    _ScopedAllocator _ScopedAllocatorConcat _ScopedAllocatorSplit | |
"""
"""A kind of operation in each line: its types in TensorFlow | ONNX | aten. Types have variants, such as `Conv+depthwise`; `@3,4`
says of how many dimensions the first operand is. What a vocabulary writes as several operations has no name in it."""

OTHERS = {
    "tensorflow": """
        AddSign ApplyAdam ApplyGradientDescent ApplyMomentum Assign AssignAdd AssignAddVariableOp AssignSubVariableOp
        AssignVariableOp BatchToSpaceND Bincount Bitcast ClipByValue Conj CropAndResize Cross Diag Digamma DivNoNan Dilation2D
        FakeQuantWithMinMaxVars Fingerprint FractionalMaxPool FusedBatchNormGrad InTopK InvGrad InvertPermutation
        LRN LRNGrad Lgamma LinSpace LogUniformCandidateSampler LogicalXor MatrixDiag MatrixInverse MulNoNan Multinomial NoOp
        NonMaxSuppressionV3 NonMaxSuppressionV4 Polygamma Print Qr RandomShuffle ReciprocalGrad ResourceApplyAdam
        ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum ReverseV2 ReverseSequence Roll SelfAdjointEigV2
        SegmentSum SpaceToBatchND SoftsignGrad SeluGrad SqrtGrad Svd TensorScatterAdd TruncatedNormal Unique Where Xdivy Xlogy
    """,
    "onnx": """
        AffineGrid Attention Bernoulli BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow
        CausalConvWithState Celu CenterCropPad Col2Im Compress ConcatFromSequence ConvInteger DFT DeformConv DequantizeLinear Det
        DynamicQuantizeLinear EyeLike GRU GatherElements GlobalLpPool GridSample GroupNormalization HammingWindow HannWindow
        HardSigmoid HardSwish Hardmax If ImageDecoder LRN LSTM LinearAttention Loop LpNormalization LpPool MatMulInteger
        MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Mish Multinomial NegativeLogLikelihoodLoss
        NonMaxSuppression NonZero Optional OptionalGetElement OptionalHasElement PRelu QLinearConv QLinearMatMul QuantizeLinear
        RMSNormalization RNN ReduceL1 ReduceLogSum ReduceLogSumExp ReduceSumSquare RegexFullMatch ReverseSequence RotaryEmbedding
        STFT Scan Scatter ScatterElements SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
        SequenceMap Shrink SplitToSequence StringConcat StringNormalizer StringSplit SwiGLU Swish TensorScatter TfIdfVectorizer
        ThresholdedRelu Unique Xor
    """,
    "aten": """
        addbmm addcdiv addcmul addr bernoulli bilinear binary_cross_entropy binary_cross_entropy_backward
        binary_cross_entropy_with_logits cdist col2im copy cross diag diagonal elu_backward erfinv exp2 fill flip gather
        glu glu_backward group_norm hardsigmoid hardsigmoid_backward hardswish hardswish_backward huber_loss huber_loss_backward
        im2col index_add kl_div l1_loss lerp lgamma log10 log2 log_sigmoid_backward log_sigmoid_forward logit logsumexp masked_fill
        mish mish_backward mse_loss mse_loss_backward native_group_norm native_group_norm_backward nll_loss nll_loss_backward
        nll_loss_forward nll_loss2d_backward nll_loss2d_forward roll scaled_dot_product_attention scatter_add silu silu_backward
        smooth_l1_loss smooth_l1_loss_backward soft_margin_loss softshrink sort std threshold trunc unfold var var_mean
        _adaptive_avg_pool2d_backward _fused_rms_norm _prelu_kernel _prelu_kernel_backward
    """,
}
"""Types without a counterpart that lists may name, too."""

SOURCES = frozenset(
    {("tensorflow", name) for name in ("Const", "Variable", "VariableV2", "VarHandleOp", "ReadVariableOp")}
    | {("onnx", "Constant")}
)
"""Types whose results are Variables or Consts."""

BOTH = frozenset({("aten", "aten.convolution_backward")})
"""Types that do the work of several kinds: a list names them when it names each."""

ASSUMED_RANK = 4


@dataclass(frozen=True)
class Alias:
    """A kind of operation.

    Attributes
    ----------
    names : dict of str to tuple of str
        By vocabulary, the types that are of this kind.
    ranks : tuple of int
        How many dimensions the first operand has; empty: any.
    """

    names: dict[str, tuple[str, ...]]
    ranks: tuple[int, ...] = ()


def _full(vocabulary: str, name: str) -> str:
    return f"aten.{name}" if vocabulary == "aten" else name


def _rows() -> Iterator[Alias]:
    for line in filter(None, map(str.strip, ROWS.split("\n"))):
        ranks: tuple[int, ...] = ()
        if line.startswith("@"):
            head, _, line = line.partition(" ")
            ranks = tuple(map(int, head[1:].split(",")))
        columns = [column.split() for column in line.split("|")]
        yield Alias(
            {v: tuple(_full(v, x) for x in column) for v, column in zip(VOCABULARIES, columns, strict=True)}, ranks
        )


@cache
def aliases() -> tuple[Alias, ...]:
    """All kinds of operations that have names."""
    return tuple(_rows())


@cache
def _index() -> dict[tuple[str, str], tuple[Alias, ...]]:
    found: dict[tuple[str, str], tuple[Alias, ...]] = {}
    for alias in aliases():
        for vocabulary, names in alias.names.items():
            for name in names:
                found[vocabulary, name] = (*found.get((vocabulary, name), ()), alias)
    return found


@cache
def _known() -> dict[str, frozenset[str]]:
    return {
        v: frozenset(_full(v, x) for x in OTHERS[v].split())
        | {name.partition("+")[0] for found, name in _index() if found == v}
        | {name for found, name in _index() if found == v}
        for v in VOCABULARIES
    }


def vocabulary_of(name: str, vocabulary: str) -> str | None:
    """Which vocabulary a name is of: the one given where it has the name, else the first that has; None: none has."""
    check_choice("vocabulary", vocabulary, VOCABULARIES)
    return next((v for v in (vocabulary, *VOCABULARIES) if name in _known()[v]), None)


def suggestion(name: str, vocabulary: str) -> str:
    """What may have been meant, as the end of a sentence; empty where nothing is alike."""
    for v in (vocabulary, *VOCABULARIES):
        close = nearest(name, sorted(_known()[v]))
        if close:
            return close
    return ""


def clauses(
    op_type: str, vocabulary: str, *, variant: str = "", rank: int | None = None
) -> tuple[frozenset[tuple[str, str]], ...]:
    """What a list has to name for a type to be in it: one name out of each clause.

    Parameters
    ----------
    op_type : str
        In the vocabulary, such as "Conv", "aten.mm".
    vocabulary : {"tensorflow", "onnx", "aten"}
    variant : str
        What attributes make of the type, such as "depthwise".
    rank : int, optional
        How many dimensions the first operand has, which tells 2d convolutions from 3d ones. None: 4.

    Returns
    -------
    tuple of frozenset of (vocabulary, name)
        One clause, except for types that do the work of several kinds. Other names of the type's own vocabulary are in none:
        there a list says what it means.

    >>> sorted(name for _, name in clauses("Gemm", "onnx")[0])
    ['Gemm', 'MatMul', 'aten.addmm', 'aten.addmv', 'aten.dot', 'aten.linear', 'aten.mm', 'aten.mv', 'aten.vdot']
    >>> [len(clauses(name, "aten")) for name in ("aten.mm", "aten.convolution_backward")]
    [1, 2]
    """
    check_choice("vocabulary", vocabulary, VOCABULARIES)
    return _clauses(op_type, vocabulary, variant, ASSUMED_RANK if rank is None else rank)


@cache
def _clauses(op_type: str, vocabulary: str, variant: str, rank: int) -> tuple[frozenset[tuple[str, str]], ...]:
    own = {(vocabulary, op_type)}
    found: tuple[Alias, ...] = ()
    if variant:
        own.add((vocabulary, f"{op_type}+{variant}"))
        found = _index().get((vocabulary, f"{op_type}+{variant}"), ())
    found = found or _index().get((vocabulary, op_type), ())
    kinds = [alias for alias in found if not alias.ranks or rank in alias.ranks]
    foreign = [{(v, name) for v in VOCABULARIES if v != vocabulary for name in alias.names[v]} for alias in kinds]
    if (vocabulary, op_type) in BOTH:
        return tuple(frozenset(own | names) for names in foreign) or (frozenset(own),)
    return (frozenset(own.union(*foreign)),)
