"""Which operator is computed how: each stands in one table. What stands in none is refused.

`MOVES` compute nothing that needs rounding: they move, select and compare elements, flip signs, round to integers. They
run as they are, and raise no flags. `INSIDE` operators are computed by PyTorch, wide, and what comes out is rounded
once. `products` and `pointwise` define the others.
"""

from __future__ import annotations

__all__ = [
    "ADVICE",
    "FACTORIES",
    "FILLS",
    "INSIDE_DOUBLE",
    "INSIDE_SINGLE",
    "JOINS",
    "MOVES",
    "NORMS",
    "OPAQUE",
    "POLES",
    "PUTS",
    "QUOTIENTS",
    "UNCHOSEN",
]


def names(text: str) -> frozenset[str]:
    """Names, with white space between them."""
    return frozenset(text.split())


MOVES = names("""
    alias alias_copy as_strided as_strided_ as_strided_copy clone contiguous detach detach_
    detach_copy diag diag_embed diagonal diagonal_backward diagonal_copy expand expand_copy flip
    lift lift_fresh lift_fresh_copy movedim narrow_copy permute permute_copy pixel_shuffle pixel_unshuffle
    channel_shuffle repeat reshape resize resize_ resize_as_ roll rot90 select select_backward select_copy
    set set_ slice slice_backward slice_copy split split_copy split_with_sizes split_with_sizes_copy
    squeeze squeeze_ squeeze_copy t t_ t_copy transpose transpose_ transpose_copy tril triu unbind unbind_copy unfold
    unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ unsqueeze_copy view view_as_copy
    view_copy _pin_memory _reshape_alias _reshape_alias_copy _reshape_copy _unsafe_view _chunk_cat frexp
    masked_scatter_backward
    new_empty new_empty_strided new_ones new_zeros ones ones_like zeros zeros_like zero zero_ empty empty_like
    empty_permuted empty_strided eye _efficientzerotensor _neg_view _conj resolve_neg resolve_conj
    _local_scalar_dense is_same_size is_set_to

    embedding gather index index_copy index_select masked_scatter masked_select take
    _unsafe_index unique_dim _unique _unique2 unique_consecutive nonzero nonzero_static argwhere
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d im2col

    abs neg positive relu relu6 sign sgn signbit heaviside floor ceil trunc round frac
    equal isnan isinf isposinf isneginf isfinite logical_and logical_not logical_or logical_xor
    all any count_nonzero argmax argmin argsort isin searchsorted bucketize is_nonzero
    max min amax amin aminmax cummax cummin max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d
    adaptive_max_pool3d fractional_max_pool2d max_unpool2d median nanmedian mode kthvalue sort topk
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d

    bernoulli exponential geometric normal_ rand rand_like randn randn_like random random_ uniform uniform_ bernoulli_
    exponential_ multinomial randint randint_like randperm

    c10d.broadcast_ c10d.allgather_ c10d._allgather_base_ c10d.scatter_ c10d.gather_ c10d.alltoall_ c10d.alltoall_base_
    c10d.send c10d.recv_ c10d.recv_any_source_ c10d.allgather_coalesced_ c10d.allgather_into_tensor_coalesced_ c10d.barrier
    c10d.monitored_barrier_ c10d.check_for_nan
    _c10d_functional.all_gather_into_tensor _c10d_functional.all_gather_into_tensor_coalesced
    _c10d_functional.all_gather_into_tensor_out _c10d_functional.all_to_all_single _c10d_functional.batch_p2p_ops
    _c10d_functional.broadcast _c10d_functional.irecv _c10d_functional.isend _c10d_functional.wait_tensor
    _c10d_functional._wrap_tensor_autograd _c10d_functional_autograd.all_gather_into_tensor
    _c10d_functional_autograd.all_to_all_single _dtensor.shard_dim_alltoall
    fsdp.all_gather_copy_in fsdp.chunk_cat fsdp.copy_ fsdp.split_with_sizes_copy
""")
"""Names without the underscore that marks in-place variants; those with one are listed where the plain name computes."""

FILLS = {
    "fill": ("value",),
    "masked_fill": ("value",),
    "index_fill": ("value",),
    "scatter": ("value",),
    "constant_pad_nd": ("value",),
    "full": ("fill_value",),
    "full_like": ("fill_value",),
    "new_full": ("fill_value",),
    "scalar_tensor": ("s",),
    "_unsafe_masked_index": ("fill",),
    **dict.fromkeys(("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"), ("src",)),
    "where": ("self", "other"),
    "clamp": ("self", "min", "max"),
    "clamp_min": ("self", "min"),
    "clamp_max": ("self", "max"),
    "hardtanh": ("min_val", "max_val"),
    "hardtanh_backward": ("min_val", "max_val"),
    "threshold": ("threshold", "value"),
    "threshold_backward": ("threshold",),
    "hardshrink": ("lambd",),
    "hardshrink_backward": ("lambd",),
    "copysign": ("self", "other"),
    "nextafter": ("self", "other"),
    "nan_to_num": ("nan", "posinf", "neginf"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), ("self", "other")),
}
"""Moves that take numbers, or tensors of another dtype, which are rounded into the format of the first tensor first: the arguments' names.

Where `self` is among them, the dtype is that to which all of them are promoted.
"""

JOINS = frozenset({"block_diag", "cat", "stack"})
"""Moves of several tensors, which may differ in dtype."""

PUTS = frozenset({"index_put", "_index_put_impl", "put", "_unsafe_index_put"})
"""Moves, unless they are to add to what is there."""

FACTORIES = frozenset({"arange", "linspace", "logspace", "range"})
"""Numbers made wide, and rounded once."""

INSIDE_DOUBLE = names("""
    sigmoid sigmoid_backward tanh_backward gelu gelu_backward silu silu_backward mish mish_backward softplus
    softplus_backward elu elu_backward celu selu leaky_relu leaky_relu_backward _prelu_kernel _prelu_kernel_backward
    hardswish hardswish_backward hardsigmoid hardsigmoid_backward log_sigmoid_forward log_sigmoid_backward softshrink
    softshrink_backward glu glu_backward glu_jvp logit logit_backward rsqrt erf erfc erfinv lgamma digamma polygamma
    sinc i0 xlogy special_xlog1py special_entr special_ndtri special_log_ndtr special_i0e special_i1 special_i1e
    special_erfcx native_dropout native_dropout_backward
""")
"""Elementwise, computed in float64, whose own rounding stays far below what a low format or a random number shows."""

INSIDE_SINGLE = names("""
    _softmax _softmax_backward_data _log_softmax _log_softmax_backward_data _safe_softmax _masked_softmax
    _masked_softmax_backward
    mean nansum prod var std var_mean std_mean linalg_vector_norm norm dist renorm logsumexp logcumsumexp cumsum cumprod
    trace allclose isclose
    mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward l1_loss
    binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits soft_margin_loss
    soft_margin_loss_backward nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward
    multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward
    _ctc_loss _ctc_loss_backward
    embedding_dense_backward embedding_renorm index_add scatter_add scatter_reduce index_reduce
    _unsafe_masked_index_put_accumulate
    avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
    _adaptive_avg_pool3d _adaptive_avg_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward
    adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward
    replication_pad2d_backward replication_pad3d_backward col2im unfold_backward
    upsample_linear1d upsample_linear1d_backward upsample_bilinear2d upsample_bilinear2d_backward upsample_bicubic2d
    upsample_bicubic2d_backward upsample_trilinear3d upsample_trilinear3d_backward upsample_nearest1d_backward
    upsample_nearest2d_backward upsample_nearest3d_backward _upsample_nearest_exact1d_backward
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward grid_sampler_2d grid_sampler_2d_backward
""")
"""Reductions, norms, losses, pools: computed in float32 by one thread, so that sums have one order."""

NORMS: dict[str, tuple[int | None, ...]] = {
    "native_layer_norm": (0, None, None),
    "native_layer_norm_backward": (1, 5, 5),
    "native_group_norm": (0, None, None),
    "native_group_norm_backward": (1, 4, 4),
    "native_batch_norm": (0, None, None),
    "native_batch_norm_backward": (1, 2, 2),
    "_native_batch_norm_legit": (0, None, None),
    "_native_batch_norm_legit_no_training": (0, None, None),
    "_batch_norm_with_update": (0, None, None, None),
    "_batch_norm_no_update": (0, None, None, None),
    "batch_norm_backward": (1, 2, 2),
    "_weight_norm_interface": (0, None),
    "_weight_norm_interface_backward": (1, 2),
    "_fused_rms_norm": (0, None),
    "_fused_rms_norm_backward": (1, 4),
}
"""Norms, in float32 like the others: for each result the argument whose dtype it gets. Statistics stay float32 (None)."""

POLES = names("""
    div rsqrt logit logit_backward lgamma digamma erfinv xlogy special_xlog1py special_entr special_ndtri special_log_ndtr
    logsumexp _ctc_loss
""")
"""Of those computed wide: operators that no finite numbers overflow in the wide dtype, so that infinities come of poles."""

QUOTIENTS = frozenset({"var", "std", "var_mean", "std_mean"})
"""Those that may overflow, and divide by zero where there are no more numbers than `correction` says."""

UNCHOSEN = "name no recipe for the module, by quantize={'name': None, '*': recipe}"

SDPA = "use sdpa_kernel(SDPBackend.MATH) of torch.nn.attention, so that attention is made of matrix products"
UNBAGGED = "use nn.Embedding and a sum"
REDUCED = (
    "keep parameters in float32 (softfloat.torch.float32_parameters), whose gradients are, reduce in float32 "
    "(fully_shard's MixedPrecisionPolicy(reduce_dtype=torch.float32)), or train in one process with softfloat.torch.Replicas"
)
UNFUSED = "make the optimiser with fused=False"

OPAQUE = names("""
    _trilinear _embedding_bag _embedding_bag_forward_only _embedding_bag_backward _embedding_bag_dense_backward
    _embedding_bag_per_sample_weights_backward _cdist_forward _cdist_backward _euclidean_dist affine_grid_generator cudnn_affine_grid_generator
    cudnn_affine_grid_generator_backward linalg_matrix_exp _compute_linear_combination
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_fused_attention_overrideable _scaled_dot_product_fused_attention_overrideable_backward
    _scaled_dot_product_attention_math_for_mps _flash_attention_forward _flash_attention_backward
    _flash_attention_forward_no_dropout_inplace _efficient_attention_forward _efficient_attention_backward
    _cudnn_attention_forward _cudnn_attention_backward
    _transformer_encoder_layer_fwd _native_multi_head_attention _triton_multi_head_attention _triton_scaled_dot_attention
    mkldnn_rnn_layer mkldnn_rnn_layer_backward _cudnn_rnn _cudnn_rnn_backward miopen_rnn miopen_rnn_backward _lstm_mps
    lstm_mps_backward quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_rnn_relu_cell
    quantized_rnn_tanh_cell
    _addmm_activation linear_backward matmul_backward mkldnn_linear mkldnn_linear_backward mkldnn_linear_backward_input
    mkldnn_linear_backward_weights _mixed_dtypes_linear _weight_int8pack_mm _weight_int4pack_mm _weight_int4pack_mm_for_cpu
    _weight_int4pack_mm_with_scales_and_zeros _dyn_quant_matmul_4bit _wrapped_quantized_linear_prepacked
    fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
    fbgemm_linear_int8_weight_fp32_activation
    conv_tbc conv_tbc_backward _conv_depthwise2d conv_depthwise3d _slow_conv2d_forward _slow_conv2d_backward slow_conv3d_forward
    slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d _nnpack_spatial_convolution
    mkldnn_convolution cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
    miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
    miopen_depthwise_convolution _mps_convolution _mps_convolution_transpose mps_convolution_backward
    mps_convolution_transpose_backward
    _sparse_addmm sspaddmm hspmm sparse_sampled_addmm _sparse_sparse_matmul _sparse_mm_reduce_impl
    _sparse_mm_reduce_impl_backward _cslt_sparse_mm _cslt_sparse_mm_search _sparse_semi_structured_addmm _sparse_semi_structured_linear
    _sparse_semi_structured_mm
    _scaled_grouped_mm _scaled_grouped_mm_v2
""")
"""Products within other operators. They are refused in a module whose products a recipe quantises, whatever their tensors' dtype."""

NAMESPACES = names(
    "aten prim prims c10d _c10d_functional _c10d_functional_autograd _dtensor fsdp profiler debugprims rngprims"
)
"""PyTorch's own, in which products are known. What others compute is refused in such modules."""

SPARSE = "make its operands dense"

ADVICE = {
    "_scaled_dot_product_flash_attention_for_cpu": SDPA,
    "_scaled_dot_product_flash_attention_for_cpu_backward": SDPA,
    "_scaled_dot_product_fused_attention_overrideable": SDPA,
    "_scaled_dot_product_attention_math_for_mps": SDPA,
    "_transformer_encoder_layer_fwd": "use torch.backends.mha.set_fastpath_enabled(False)",
    "_native_multi_head_attention": "use torch.backends.mha.set_fastpath_enabled(False)",
    "mkldnn_rnn_layer": "use torch.backends.mkldnn.flags(enabled=False)",
    "_fused_adam": UNFUSED,
    "_fused_adamw": UNFUSED,
    "_fused_sgd": UNFUSED,
    "_fused_adagrad": UNFUSED,
    "_scaled_dot_product_flash_attention": SDPA,
    "_scaled_dot_product_efficient_attention": SDPA,
    "_scaled_dot_product_cudnn_attention": SDPA,
    **dict.fromkeys(("_cdist_forward", "_euclidean_dist"), "write distances as (x*x).sum(-1) and a product of x and y"),
    **dict.fromkeys(("_sparse_addmm", "sspaddmm", "hspmm", "sparse_sampled_addmm", "_sparse_sparse_matmul"), SPARSE),
    "_addmm_activation": "use addmm and the activation",
    "conv_tbc": "use conv1d of transposed tensors",
    "_trilinear": "write nn.Bilinear as torch.einsum",
    "_amp_foreach_non_finite_check_and_unscale": "keep parameters in float32, or divide by the scale with an optimiser's learning rate",
    **dict.fromkeys(
        (
            "c10d.allreduce_",
            "c10d.allreduce_coalesced_",
            "c10d.reduce_",
            "c10d.reduce_scatter_",
            "c10d._reduce_scatter_base_",
            "c10d.reduce_scatter_tensor_coalesced_",
            "_c10d_functional.all_reduce",
            "_c10d_functional.all_reduce_coalesced",
            "_c10d_functional.reduce_scatter_tensor",
            "_c10d_functional.reduce_scatter_tensor_coalesced",
            "_c10d_functional.reduce_scatter_tensor_out",
            "_c10d_functional_autograd.reduce_scatter_tensor",
        ),
        REDUCED,
    ),
    "_embedding_bag": UNBAGGED,
    "_embedding_bag_forward_only": UNBAGGED,
}
"""What to do instead of some operators that are refused."""
