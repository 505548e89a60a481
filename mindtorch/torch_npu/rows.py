"""Rows of torch_npu's fused functions: one launch of the operator that torch_npu calls.

`lower` is what devices without the operator run, and what gradients are taken of. A row without it
is npu's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch

from .._tensor.dtype import dtype as Dtype, float16, float32, int8, int32, int64
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.fields import Const
from ..ops.namespaces import define
from ..ops.spec import Derivative, aten, call, op
from . import bodies

Rule = Callable[..., Any]
__all__: list[str] = []


def _row(schema: str, infer: Rule, *aclnn: Any, lower: Any = None, differentiable: str = "") -> Any:
    """A row and the function of its name; `differentiable`: the tensors that have a gradient, of
    `lower`'s."""
    name = schema.partition("(")[0]
    fields: dict[str, Any] = {"lower": lower} if lower else {"absent": {"cpu": "an NPU's alone"}}
    if differentiable:
        fields["grad"] = _of_body(schema, lower, differentiable.split())
    row = op(schema, infer=infer, aclnn=tuple(aclnn), surface="none",
             unsampled="judged beside torch_npu: tests/simulator/torch_npu_functions.py",
             **fields)  # fmt: skip
    entry = getattr(aten, name)
    define("npu", name, "default", entry)
    globals()[name] = entry
    __all__.append(name)
    return row


def _of_body(schema: str, body: Callable[..., Any], to: Sequence[str]) -> dict[Any, Derivative]:
    """The derivative of what a body composes, made again from the arguments.

    As in torch_npu, none flows through statistics and what is given beside.
    """
    inside, _, returns = schema.partition("(")[2].partition(") -> ")
    names = [part.split("=")[0].split()[-1] for part in inside.replace("*, ", "").split(", ")]
    results = [part.split()[-1] for part in returns.strip("()").split(", ")]
    through = [i for i, r in enumerate(results) if r not in _BESIDE]
    grads = [f"grad_{results[i]}" for i in through] if len(results) > 1 else ["grad"]
    places = [names.index(n) for n in to]

    def derivative(*values: Any) -> Any:
        upstream, arguments = values[: len(grads)], list(values[len(grads) :])
        recorded = aten._recorded(*(v for v in values if isinstance(v, Tensor)))
        leaves = [i for i in places if arguments[i] is not None]
        with mindtorch.enable_grad():
            for i in leaves:
                value = arguments[i] if recorded else arguments[i].detach()
                arguments[i] = value.view_as(value) if value.requires_grad else _leaf(value)
            out = body(*arguments)
            outs = [out[i] for i in through] if isinstance(out, tuple) else [out]
            pairs = [(o, g) for o, g in zip(outs, upstream, strict=True) if g is not None]
            derivatives = mindtorch.autograd.grad(
                [o for o, _ in pairs], [arguments[i] for i in leaves], [g for _, g in pairs],
                create_graph=recorded, allow_unused=True,
            )  # fmt: skip
        by_place = dict(zip(leaves, derivatives, strict=True))
        result = tuple([by_place.get(i) for i in places])
        return result if len(result) > 1 else result[0]

    key = tuple(to) if len(to) > 1 else to[0]
    return {key: Derivative(derivative, (*grads, *names))}


_BESIDE = frozenset(("rstd", "mean", "gelu", "log_prob", "zloss", "lse_for_zloss",
                     "sorted_indices"))  # fmt: skip


def _leaf(value: Tensor) -> Tensor:
    return value.detach().requires_grad_()


def _reduced(x: Geometry, gamma: Geometry) -> Geometry:
    """[*, 1…] float32: a statistic of each row that `gamma` scales."""
    outer = x.ndim - gamma.ndim
    return x.fresh((*x.shape[:outer], *(1,) * gamma.ndim), float32)


def _halved(x: Geometry, dim: int) -> Geometry:
    shape = list(x.shape)
    shape[dim] //= 2
    return x.fresh(tuple(shape))


# Normalisation.
_row("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-6) -> (Tensor y, Tensor rstd)",
     lambda x, gamma, epsilon: (x.fresh(), _reduced(x, gamma)),
     call("aclnnRmsNorm", "self", "gamma", "epsilon", "y", "rstd"),
     lower=bodies.rms_norm, differentiable="self gamma")  # fmt: skip
_row("npu_gemma_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-6)"
     " -> (Tensor y, Tensor rstd)",
     lambda x, gamma, epsilon: (x.fresh(), _reduced(x, gamma)),
     call("aclnnGemmaRmsNorm", "self", "gamma", "epsilon", "y", "rstd"),
     lower=bodies.gemma_rms_norm, differentiable="self gamma")  # fmt: skip
_row("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-6)"
     " -> (Tensor y, Tensor rstd, Tensor x)",
     lambda x1, x2, gamma, epsilon: (x1.fresh(), _reduced(x1, gamma), x1.fresh()),
     call("aclnnAddRmsNorm", "x1", "x2", "gamma", "epsilon", "y", "rstd", "x"),
     lower=bodies.add_rms_norm, differentiable="x1 x2 gamma")  # fmt: skip
_row("npu_deep_norm(Tensor x, Tensor gx, Tensor beta, Tensor gamma, float alpha=0.3,"
     " float epsilon=1e-6) -> (Tensor mean, Tensor rstd, Tensor y)",
     lambda x, gx, beta, gamma, alpha, epsilon: (
         _reduced(x, gamma), _reduced(x, gamma), x.fresh()),
     call("aclnnDeepNorm", "x", "gx", "beta", "gamma", "alpha", "epsilon", "mean", "rstd", "y"),
     lower=bodies.deep_norm, differentiable="x gx beta gamma")  # fmt: skip
_row("npu_group_norm_silu(Tensor input, Tensor? weight, Tensor? bias, int group, float eps=1e-5)"
     " -> (Tensor out, Tensor mean, Tensor rstd)",
     lambda x, weight, bias, group, eps: (
         x.fresh(), *[x.fresh((x.shape[0], group)) for _ in range(2)]),
     call("aclnnGroupNormSilu", "input", "weight", "bias", "group", "eps", "out", "mean", "rstd"),
     lower=bodies.group_norm_silu, differentiable="input weight bias")  # fmt: skip

# Activations.
_row("npu_swiglu(Tensor self, int dim=-1) -> Tensor", _halved,
     call("aclnnSwiGlu", "self", "dim", "out"),
     lower=bodies.swiglu, differentiable="self")  # fmt: skip
_row("npu_geglu(Tensor self, int dim=-1, int approximate=1, bool activate_left=False)"
     " -> (Tensor out, Tensor gelu)",
     lambda x, dim, approximate, left: (_halved(x, dim), _halved(x, dim)),
     call("aclnnGeGluV3", "self", "dim", "approximate", "activate_left", "out", "gelu"),
     lower=bodies.geglu, differentiable="self")  # fmt: skip
for _name in ("fast_gelu", "npu_fast_gelu"):
    _row(f"{_name}(Tensor self) -> Tensor", lambda x: x.fresh(),
         call("aclnnFastGelu", "self", "out"),
         lower=bodies.fast_gelu, differentiable="self")  # fmt: skip

_row("npu_add_rms_norm_cast(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-6)"
     " -> (Tensor y1, Tensor y2, Tensor rstd, Tensor x)",
     lambda x1, x2, gamma, epsilon: (
         x1.fresh(dtype=float32), x1.fresh(), _reduced(x1, gamma), x1.fresh()),
     call("aclnnAddRmsNormCast", "x1", "x2", "gamma", "epsilon", "y1", "y2", "rstd",
          "x"))  # fmt: skip
_row("npu_group_norm_swish(Tensor input, int num_groups, Tensor weight, Tensor bias,"
     " float? eps=1e-5, float? swish_scale=1.) -> (Tensor out, Tensor mean, Tensor rstd)",
     lambda x, groups, *rest: (
         x.fresh(), *[x.fresh((x.shape[0], groups)) for _ in range(2)]),
     call("aclnnGroupNormSwish", "input", "weight", "bias", "num_groups", Const("NCHW"),
          lambda a: 1e-5 if a["eps"] is None else a["eps"], True,
          lambda a: 1.0 if a["swish_scale"] is None else a["swish_scale"], "out", "mean",
          "rstd"))  # fmt: skip

# Positions.
_MODES = {"half": 0, "interleave": 1, "quarter": 2, "interleave-half": 3}
_row("npu_rotary_mul(Tensor self, Tensor r1, Tensor r2, str rotary_mode='half') -> Tensor",
     lambda x, r1, r2, rotary_mode: x.fresh(),
     call("aclnnRotaryPositionEmbedding", "self", "r1", "r2",
          lambda a: _MODES[a["rotary_mode"]], "out",
          when=lambda a: a["self"].ndim == 4 and a["self"].dtype is a["r1"].dtype),
     lower=bodies.rotary_mul, differentiable="self r1 r2")  # fmt: skip

# Routing to experts.
_row("npu_moe_gating_top_k_softmax(Tensor x, Tensor? finished=None, int k=1)"
     " -> (Tensor y, Tensor expert_idx, Tensor row_idx)",
     lambda x, finished, k: tuple(
         [x.fresh((*x.shape[:-1], k), d) for d in (x.dtype, int32, int32)]),
     call("aclnnMoeGatingTopKSoftmax", "x", "finished", "k", "y", "expert_idx",
          "row_idx"))  # fmt: skip
_row("npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num)"
     " -> (Tensor expanded_x, Tensor expanded_row_idx, Tensor expanded_expert_idx)",
     lambda x, row, expert, active: (
         x.fresh((min(x.shape[0], active) * row.shape[1], x.shape[1])),
         *[row.fresh((row.numel,)) for _ in range(2)]),
     call("aclnnMoeInitRouting", "x", "row_idx", "expert_idx", "active_num", "expanded_x",
          "expanded_row_idx", "expanded_expert_idx"))  # fmt: skip
_row("npu_moe_compute_expert_tokens(Tensor sorted_expert_for_source_row, int num_expert) -> Tensor",
     lambda experts, number: experts.fresh((number,)),
     call("aclnnMoeComputeExpertTokens", "sorted_expert_for_source_row", "num_expert",
          "out"))  # fmt: skip
_row("npu_moe_finalize_routing(Tensor expanded_permuted_rows, Tensor? skip1, Tensor? skip2,"
     " Tensor? bias, Tensor? scales, Tensor expanded_src_to_dst_row,"
     " Tensor? export_for_source_row, int? drop_pad_mode=0, int? k=1) -> Tensor",
     lambda rows, skip1, skip2, bias, scales, at, export, drop, k: rows.fresh(
         ((skip1 or scales).shape[0] if skip1 or scales else at.numel // (k or 1),
          rows.shape[-1])),
     call("aclnnMoeFinalizeRoutingV2", "expanded_permuted_rows", "expanded_src_to_dst_row", "skip1",
          "skip2", "bias", "scales", "export_for_source_row",
          lambda a: a["drop_pad_mode"] or 0, "out"))  # fmt: skip
_row("npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None,"
     " bool padded_mode=False) -> (Tensor permuted_tokens, Tensor sorted_indices)",
     lambda tokens, indices, number, padded: (
         tokens.fresh((_rows_left(indices, number), tokens.shape[1])),
         indices.fresh((indices.numel,), int32)),
     call("aclnnMoeTokenPermute", "tokens", "indices",
          lambda a: _rows_left(a["indices"], a["num_out_tokens"]), "padded_mode", "permuted_tokens",
          "sorted_indices"),
     lower=bodies.token_permute, differentiable="tokens")  # fmt: skip
_row("npu_moe_token_unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None,"
     " bool padded_mode=False, int[]? restore_shape=None) -> Tensor",
     lambda tokens, at, probs, padded, shape: tokens.fresh(
         (at.numel // (probs.shape[1] if probs else 1), tokens.shape[1])),
     call("aclnnMoeTokenUnpermute", "permuted_tokens", "sorted_indices", "probs", "padded_mode",
          lambda a: a["restore_shape"] or (1,), "out"),
     lower=bodies.token_unpermute, differentiable="permuted_tokens probs")  # fmt: skip


def _rows_left(indices: Geometry, number: int | None) -> int:
    """How many rows remain of those that tokens are copied to."""
    if number is None or number > indices.numel:
        return indices.numel
    return number if number > 0 else indices.numel + number


_row("npu_moe_gating_top_k(Tensor x, int k, *, Tensor? bias=None, int k_group=1, int group_count=1,"
     " int group_select_mode=0, int renorm=0, int norm_type=0, bool out_flag=False,"
     " float routed_scaling_factor=1., float eps=1e-20)"
     " -> (Tensor y, Tensor expert_idx, Tensor out)",
     lambda x, k, *rest: (
         x.fresh((x.shape[0], k)), x.fresh((x.shape[0], k), int32), x.fresh(dtype=float32)),
     call("aclnnMoeGatingTopK", "x", "bias", "k", "k_group", "group_count", "group_select_mode",
          "renorm", "norm_type", "out_flag", "routed_scaling_factor", "eps", "y", "expert_idx",
          "out"))  # fmt: skip


def _expanded(x: Geometry, experts: Geometry, scale: Any, offset: Any, active: int, capacity: int,
              number: int, drop: int, kind: int, counted: bool, quant: int, *rest: Any,
              ) -> tuple[Geometry, ...]:  # fmt: skip
    """Rows for the experts, their places, tokens of each expert, and a scale of each row."""
    rows = experts.numel if active <= 0 else min(active, experts.numel)
    counts = (number, 2) if kind == 2 else (number,)
    return (x.fresh((rows, x.shape[1]), x.dtype if quant == -1 else int8),
            experts.fresh((experts.numel,)), x.fresh(counts, int64),
            x.fresh((rows,), float32))  # fmt: skip


_row("npu_moe_init_routing_v2(Tensor x, Tensor expert_idx, *, Tensor? scale=None,"
     " Tensor? offset=None, int active_num=-1, int expert_capacity=-1, int expert_num=-1,"
     " int drop_pad_mode=0, int expert_tokens_num_type=0, bool expert_tokens_num_flag=False,"
     " int quant_mode=-1, int[] active_expert_range=[], int row_idx_type=0)"
     " -> (Tensor expanded_x, Tensor expanded_row_idx, Tensor expert_tokens,"
     " Tensor expanded_scale)",
     _expanded,
     call("aclnnMoeInitRoutingV3", "x", "expert_idx", "scale", "offset", "active_num",
          "expert_capacity", "expert_num", "drop_pad_mode", "expert_tokens_num_type",
          "expert_tokens_num_flag", "quant_mode", "active_expert_range", "row_idx_type",
          "expanded_x", "expanded_row_idx", "expert_tokens", "expanded_scale"))  # fmt: skip


# Quantised products.
def _int8_of(shape: Sequence[int], like: Geometry) -> Geometry:
    return like.fresh(tuple(shape), int8)


_row("npu_dynamic_quant(Tensor input, *, Tensor? smooth_scales=None) -> (Tensor y, Tensor scale)",
     lambda x, smooth: (_int8_of(x.shape, x), x.fresh(x.shape[:-1], float32)),
     call("aclnnDynamicQuant", "input", "smooth_scales", "y", "scale"))  # fmt: skip
_row("npu_trans_quant_param(Tensor scale, Tensor? offset=None, int? round_mode=0) -> Tensor",
     lambda scale, offset, mode: scale.fresh(dtype=int64),
     call("aclnnTransQuantParamV2", "scale", "offset", "out"))  # fmt: skip
_row("_npu_quantized(Tensor self, Tensor scales, Tensor? zero_points, int axis) -> Tensor",
     lambda x, scales, zero_points, axis: _int8_of(x.shape, x),
     call("aclnnAscendQuantV3", "self", "scales", "zero_points", False, Const("round"), 2, "axis",
          "out"))  # fmt: skip
_row("_npu_quant_matmul(Tensor x1, Tensor x2, Tensor scale, Tensor? offset, Tensor? pertoken_scale,"
     " Tensor? bias, ScalarType output_dtype) -> Tensor",
     lambda x1, x2, scale, offset, pertoken, bias, dtype: x1.fresh(
         (*x1.shape[:-1], x2.shape[-1]), dtype),
     call("aclnnQuantMatmulV4", "x1", "x2", "scale", "offset", "pertoken_scale", "bias", False,
          False, "out"))  # fmt: skip
_row("npu_weight_quant_batchmatmul(Tensor x, Tensor weight, Tensor antiquant_scale,"
     " Tensor? antiquant_offset=None, Tensor? quant_scale=None, Tensor? quant_offset=None,"
     " Tensor? bias=None, int antiquant_group_size=0) -> Tensor",
     lambda x, weight, *rest: x.fresh((*x.shape[:-1], weight.shape[-1])),
     call("aclnnWeightQuantBatchMatmulV2", "x", "weight", "antiquant_scale", "antiquant_offset",
          "quant_scale", "quant_offset", "bias", "antiquant_group_size", "out"))  # fmt: skip
_row("npu_anti_quant(Tensor x, Tensor scale, *, Tensor? offset=None,"
     " ScalarType? dst_dtype=None) -> Tensor",
     lambda x, scale, offset, dtype: x.fresh(dtype=dtype or float16),
     call("aclnnAscendAntiQuant", "x", "scale", "offset",
          lambda a: a["dst_dtype"] or float16, False, "out"))  # fmt: skip
_row("_npu_swiglu_quantized(Tensor x, Tensor? weight_scale, Tensor? activation_scale, Tensor? bias,"
     " Tensor? quant_scale, Tensor? quant_offset, Tensor? group_index, bool activate_left,"
     " str quant_mode) -> (Tensor y, Tensor scale)",
     lambda x, *rest: (
         x.fresh((*x.shape[:-1], x.shape[-1] // 2), int8), x.fresh(x.shape[:-1], float32)),
     call("aclnnDequantSwigluQuant", "x", "weight_scale", "activation_scale", "bias", "quant_scale",
          "quant_offset", "group_index", "activate_left", "quant_mode", "y",
          "scale"))  # fmt: skip
_row("_npu_add_rms_norm_quantized(Tensor x1, Tensor x2, Tensor gamma, Tensor scales1,"
     " Tensor? scales2, Tensor? zero_points1, Tensor? zero_points2, int axis, float epsilon,"
     " bool div_mode) -> (Tensor y1, Tensor y2, Tensor x)",
     lambda x1, *rest: (_int8_of(x1.shape, x1), _int8_of(x1.shape, x1), x1.fresh()),
     call("aclnnAddRmsNormQuant", "x1", "x2", "gamma", "scales1", "scales2", "zero_points1",
          "zero_points2", "axis", "epsilon", "div_mode", "y1", "y2", "x"))  # fmt: skip
_row("npu_rms_norm_quant(Tensor x, Tensor gamma, Tensor beta, Tensor scale, Tensor offset,"
     " float epsilon=1e-6) -> Tensor",
     lambda x, *rest: _int8_of(x.shape, x),
     call("aclnnRmsNormQuant", "x", "gamma", "beta", "scale", "offset", "epsilon",
          "out"))  # fmt: skip
for _name, _bias in (("_npu_grouped_matmul", None), ("_npu_grouped_matmul_biased", "bias")):
    _row(f"{_name}(Tensor[] x, Tensor[] weight, {'Tensor[] bias, ' if _bias else ''}"
         "Tensor? group_list, int split_item, int group_type, int group_list_type, int act_type)"
         " -> Tensor",
         lambda x, weight, *rest: x[0].fresh((x[0].shape[0], weight[0].shape[-1])),
         call("aclnnGroupedMatmulV4", "x", "weight", _bias, None, None, None, None, None,
              "group_list", None, None, None, "split_item", "group_type", "group_list_type",
              "act_type", ("out",), None, None))  # fmt: skip

# Attention.
_row("npu_prompt_flash_attention(Tensor query, Tensor key, Tensor value, *,"
     " Tensor? padding_mask=None, Tensor? atten_mask=None, Tensor? pse_shift=None,"
     " int[]? actual_seq_lengths=None, Tensor? deq_scale1=None, Tensor? quant_scale1=None,"
     " Tensor? deq_scale2=None, Tensor? quant_scale2=None, Tensor? quant_offset2=None,"
     " int num_heads=1, float scale_value=1., int pre_tokens=2147483647, int next_tokens=0,"
     " str input_layout='BSH', int num_key_value_heads=0, int[]? actual_seq_lengths_kv=None,"
     " int sparse_mode=0) -> Tensor",
     lambda query, *rest: query.fresh(),
     call("aclnnPromptFlashAttentionV3", "query", "key", "value", "pse_shift", "atten_mask",
          lambda a: a["actual_seq_lengths"] or (), lambda a: a["actual_seq_lengths_kv"] or (),
          "deq_scale1", "quant_scale1", "deq_scale2", "quant_scale2", "quant_offset2",
          "num_heads", "scale_value", "pre_tokens", "next_tokens", "input_layout",
          "num_key_value_heads", "sparse_mode", 1, "out"))  # fmt: skip
_row("npu_incre_flash_attention(Tensor query, Tensor key, Tensor value, *,"
     " Tensor? padding_mask=None, Tensor? atten_mask=None, Tensor? pse_shift=None,"
     " int[]? actual_seq_lengths=None, Tensor? antiquant_scale=None,"
     " Tensor? antiquant_offset=None, Tensor? block_table=None, Tensor? dequant_scale1=None,"
     " Tensor? quant_scale1=None, Tensor? dequant_scale2=None, Tensor? quant_scale2=None,"
     " Tensor? quant_offset2=None, Tensor? kv_padding_size=None, int num_heads=1,"
     " float scale_value=1., str input_layout='BSH', int num_key_value_heads=0,"
     " int block_size=0, int inner_precise=1) -> Tensor",
     lambda query, *rest: query.fresh(),
     call("aclnnIncreFlashAttentionV4", "query", ("key",), ("value",), "pse_shift", "atten_mask",
          "actual_seq_lengths", "dequant_scale1", "quant_scale1", "dequant_scale2", "quant_scale2",
          "quant_offset2", "antiquant_scale", "antiquant_offset", "block_table",
          "kv_padding_size", "num_heads", "scale_value", "input_layout", "num_key_value_heads",
          "block_size", "inner_precise", "out"))  # fmt: skip
_row("npu_fused_infer_attention_score(Tensor query, Tensor key, Tensor value, *,"
     " Tensor? pse_shift=None, Tensor? atten_mask=None, int[]? actual_seq_lengths=None,"
     " int[]? actual_seq_lengths_kv=None, Tensor? block_table=None, int num_heads=1,"
     " float scale=1., int pre_tokens=2147483647, int next_tokens=2147483647,"
     " str input_layout='BSH', int num_key_value_heads=0, int sparse_mode=0,"
     " int inner_precise=0, int block_size=0) -> (Tensor attention, Tensor softmax_lse)",
     lambda query, *rest: (query.fresh(), query.fresh((0,), float32)),
     call("aclnnFusedInferAttentionScoreV2", "query", ("key",), ("value",), "pse_shift",
          "atten_mask", "actual_seq_lengths", "actual_seq_lengths_kv", None, None, None, None,
          None, None, None, "block_table", None, None, None, None, None, None, None, None, None,
          "num_heads", "scale", "pre_tokens", "next_tokens", "input_layout",
          "num_key_value_heads", "sparse_mode", "inner_precise", "block_size", 0, False, 0, 0,
          "attention", "softmax_lse"))  # fmt: skip

_row("_npu_attention_update(Tensor[] lse, Tensor[] local_out) -> Tensor",
     lambda lse, parts: parts[0].fresh(),
     call("aclnnAttentionUpdate", "lse", "local_out", 0, "out", None))  # fmt: skip

# The rest.
_row("npu_top_k_top_p(Tensor logits, Tensor? p=None, Tensor? k=None) -> Tensor",
     lambda logits, p, k: logits.fresh(),
     call("aclnnApplyTopKTopP", "logits", "p", "k", "out"))  # fmt: skip
_row("npu_scatter_nd_update(Tensor self, Tensor indices, Tensor updates) -> Tensor",
     lambda x, indices, updates: x.fresh(),
     call("aclnnScatterNdUpdate", "self", "indices", "updates", inplace=True),
     lower=bodies.scatter_nd_update)  # fmt: skip
_row("_npu_cross_entropy(Tensor input, Tensor target, Tensor? weight, str reduction,"
     " int ignore_index, float label_smoothing)"
     " -> (Tensor loss, Tensor log_prob, Tensor zloss, Tensor lse_for_zloss)",
     lambda x, target, weight, reduction, *rest: (
         x.fresh((x.shape[0] if reduction == "none" else 1,)), x.fresh(), x.fresh((0,)),
         x.fresh((0,))),
     call("aclnnCrossEntropyLoss", "input", "target", "weight", "reduction", "ignore_index",
          "label_smoothing", 0.0, False, "loss", "log_prob", "zloss", "lse_for_zloss"),
     lower=bodies.cross_entropy, differentiable="input weight")  # fmt: skip
_row("npu_ffn(Tensor x, Tensor weight1, Tensor weight2, str activation, *,"
     " int[]? expert_tokens=None, Tensor? bias1=None, Tensor? bias2=None,"
     " int? inner_precise=None) -> Tensor",
     lambda x, weight1, weight2, *rest: x.fresh((*x.shape[:-1], weight2.shape[-1])),
     call("aclnnFFN", "x", "weight1", "weight2", lambda a: a["expert_tokens"] or (), "bias1",
          "bias2", None, None, None, None, None, None, None, None, "activation",
          lambda a: a["inner_precise"] or 0, "out"))  # fmt: skip


def npu_quantize(
    self: Tensor, scales: Tensor, zero_points: Tensor | None, dtype: Dtype, axis: int = 1,
    div_mode: bool = True,
) -> Tensor:  # fmt: skip
    """int8: round(self / scales + zero_points), or self times scales without `div_mode`."""
    if dtype not in (mindtorch.qint8, int8):
        raise NotImplementedError(f"npu_quantize: dtype is qint8 or int8 here, not {dtype}")
    factors = 1 / scales if div_mode else scales
    return aten._npu_quantized(self, factors, zero_points, axis)


def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND",
    rotary_mode: str = "half",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(`query` and `key` `[B, S, N, D]`, both turned by the angles of their positions)."""
    return (aten.npu_rotary_mul(query, cos, sin, rotary_mode),
            aten.npu_rotary_mul(key, cos, sin, rotary_mode))  # fmt: skip


def npu_attention_update(
    lse: Sequence[Tensor], local_out: Sequence[Tensor], update_type: int
) -> tuple[Tensor, None]:
    """(parts of an attention over keys that lie apart, put together; None)."""
    if update_type != 0:
        raise NotImplementedError(f"npu_attention_update: update_type is 0, not {update_type}")
    return aten._npu_attention_update(list(lse), list(local_out)), None


def npu_dequant_swiglu_quant(
    x: Tensor, *, weight_scale: Tensor | None = None, activation_scale: Tensor | None = None,
    bias: Tensor | None = None, quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None, group_index: Tensor | None = None,
    activate_left: bool = False, quant_mode: int = 0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(int8 of swiglu, a scale of each row); `quant_mode` 1 finds scales, 0 is given them."""
    operands = (weight_scale, activation_scale, bias, quant_scale, quant_offset, group_index)
    mode = "dynamic" if quant_mode else "static"
    pair: tuple[Tensor, Tensor] = aten._npu_swiglu_quantized(x, *operands, activate_left, mode)
    return pair


def npu_add_rms_norm_quant(
    x1: Tensor, x2: Tensor, gamma: Tensor, scales1: Tensor, zero_points1: Tensor | None,
    beta: Tensor | None = None, scales2: Tensor | None = None,
    zero_points2: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-6,
    div_mode: bool = True,
) -> tuple[Tensor, ...]:  # fmt: skip
    """(int8 by the first scales, by the second, the sum)."""
    if beta is not None:
        raise NotImplementedError("npu_add_rms_norm_quant: beta is None here")
    operands = (gamma, scales1, scales2, zero_points1, zero_points2)
    three: tuple[Tensor, ...] = aten._npu_add_rms_norm_quantized(
        x1, x2, *operands, axis, epsilon, div_mode
    )
    return three


def npu_quant_matmul(
    x1: Tensor, x2: Tensor, scale: Tensor, *, offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None, bias: Tensor | None = None,
    output_dtype: Dtype | None = None,
) -> Tensor:  # fmt: skip
    """int8 `[*, M, K]` times `[K, N]`, scaled, in int8, float16 or bfloat16."""
    dtype = output_dtype or int8
    if scale.dtype is float32 and pertoken_scale is None and dtype in (int8, float16):
        scale, offset = aten.npu_trans_quant_param(scale, offset), None
    return aten._npu_quant_matmul(x1, x2, scale, offset, pertoken_scale, bias, dtype)


def npu_grouped_matmul(
    x: Sequence[Tensor], weight: Sequence[Tensor], *, bias: Sequence[Tensor] | None = None,
    group_list: Tensor | Sequence[int] | None = None, split_item: int = 0,
    group_type: int | None = None, group_list_type: int = 0, act_type: int = 0,
) -> list[Tensor]:  # fmt: skip
    """Products of groups of rows with a weight each.

    With `split_item` 2 or 3 one result holds the groups one behind the other; `group_list` says
    where each ends (`group_list_type` 0) or how many rows it has (1). Otherwise `x` and `weight`
    are lists of one length and each pair gives a result.
    """
    if group_type is None:
        raise RuntimeError("Requires manual passing group_type, current is None.")
    if split_item in (2, 3):
        if group_list is not None and not isinstance(group_list, Tensor):
            group_list = mindtorch.tensor(list(group_list), device=x[0].device)
        settings = (group_list, split_item, group_type, group_list_type, act_type)
        if bias:
            return [aten._npu_grouped_matmul_biased(list(x), list(weight), list(bias), *settings)]
        return [aten._npu_grouped_matmul(list(x), list(weight), *settings)]
    if group_type != -1 or act_type:
        raise NotImplementedError(
            "npu_grouped_matmul: with split_item 0 and 1, group_type -1 and act_type 0 are here; "
            f"got group_type={group_type}, act_type={act_type}"
        )
    biases: Sequence[Tensor | None] = bias or [None] * len(x)
    pairs = zip(x, weight, biases, strict=True)
    return [a @ b if c is None else a @ b + c for a, b, c in pairs]


def npu_cross_entropy_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    ignore_index: int = -100, label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0, return_zloss: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """(loss `[1]` or `[N]`, log-probabilities, two empty tensors)."""
    if lse_square_scale_for_zloss or return_zloss:
        raise NotImplementedError("npu_cross_entropy_loss: there is no z-loss here")
    settings = (reduction, ignore_index, label_smoothing)
    results: tuple[Tensor, ...] = aten._npu_cross_entropy(input, target, weight, *settings)
    return results


def npu_scatter_nd_update_(self: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """`npu_scatter_nd_update` into the tensor itself."""
    return self.copy_(aten.npu_scatter_nd_update(self, indices, updates))


__all__ += ["npu_add_rms_norm_quant", "npu_apply_rotary_pos_emb", "npu_attention_update",
            "npu_cross_entropy_loss", "npu_dequant_swiglu_quant",
            "npu_grouped_matmul", "npu_quant_matmul", "npu_quantize",
            "npu_scatter_nd_update_"]  # fmt: skip
