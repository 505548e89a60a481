"""Owns operators of torch.ops.aten that take other arguments than their rows, or are no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .._tensor import dtype as dt
from .._tensor.device import device as Device
from .._tensor.geometry import format_name
from .._tensor.tensor import Tensor
from .spec import OPS, aten

Sizes = Sequence[int]
_REDUCTIONS = ("none", "mean", "sum")


def _batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    return aten.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _legit_functional(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, training: bool, momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Batch norm with its statistics, and the running ones as results."""
    mean, var = aten.clone(running_mean), aten.clone(running_var)
    out = aten.batch_norm(input, mean, var, weight, bias, training, momentum, eps)
    dims = [0, *range(2, input.dim())]
    variance = aten.var(input, dims, correction=0)
    return out, aten.mean(input, dims), aten.rsqrt(variance + eps), mean, var


def _legit_no_training(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    out = aten.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    empty = aten.empty((0,), dtype=input.dtype, device=input.device)
    return out, empty, empty


def _to_copy(
    self: Tensor, *, dtype: Any = None, layout: object = None, device: Any = None,
    pin_memory: bool | None = None, non_blocking: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """A copy; what is left out stays as it is."""
    name = format_name(memory_format or "preserve")
    target = self.device if device is None else Device(device)
    return aten._to_copy(self, dtype or self.dtype, target, None if name == "preserve" else name)


def _layer_norm(
    input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5, cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    return aten.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


def _group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    return aten.group_norm(input, num_groups, weight, bias, eps)


def _cross_entropy_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    return aten.cross_entropy(
        self, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def _with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Any:  # fmt: skip
    return aten.binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)


# What a loss's arguments are called in torch's operator, by the row's name for each.
_LOSSES = {
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "hinge_embedding_loss": "input target margin reduction",
    "kl_div": "input target reduction log_target",
    "l1_loss": "input target reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction",
    "multi_margin_loss": "input target p margin weight reduction",
    "multilabel_margin_loss": "input target reduction",
    "nll_loss": "input target weight reduction ignore_index",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
}


def _loss(name: str, arguments: str) -> Callable[..., Any]:
    """A loss whose operator takes a number for what is made of its elements."""
    names = arguments.split()

    def run(*args: Any, **kwargs: Any) -> Any:
        values = dict(zip(names, args, strict=False)) | kwargs
        if "self" in values:
            values["input"] = values.pop("self")
        reduction = values.pop("reduction", 1)
        values["reduction"] = reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]
        if name == "kl_div" and values["reduction"] == "mean":  # by elements, of which it warns
            values["reduction"] = "none"
            return aten.mean(aten.kl_div(**values))
        return getattr(aten, name)(**values)

    return run


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The bags; the bag of each index and how many each has, unless they are summed."""
    word = ("sum", "mean", "max")[mode]
    bags = aten.embedding_bag(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, word, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    if mode == 0:
        counts = aten.zeros_like(offsets)
        return bags, aten.zeros((0,), dtype=offsets.dtype, device=offsets.device), counts, counts
    starts = offsets[:-1] if include_last_offset else offsets
    ends = aten.cat([starts[1:], aten.zeros_like(starts[:1]) + indices.numel()])
    sizes = ends - starts
    bag_of = aten.repeat_interleave(aten.zeros_like(starts).add_(1).cumsum(0) - 1, sizes)
    return bags, bag_of, sizes, sizes


def _upsample(dims: int, mode: str) -> Callable[..., Any]:
    """Nearest elements in `dims` dimensions of space: a size, and scales where they are given."""

    def run(input: Tensor, output_size: Sizes | None = None, *scales: Any) -> Any:
        factors = scales[0] if len(scales) == 1 and isinstance(scales[0], list | tuple) else scales
        if output_size is None or (len(factors) == dims and None not in factors):
            return aten.interpolate(input, None, tuple(map(float, factors)), mode)
        return aten.interpolate(input, tuple(output_size), None, mode)

    return run


def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """Different elements, where each is, and how often; what is not asked for is empty."""
    values, inverse, counts = aten.unique(self, sorted, True, True)
    empty = aten.zeros((0,), dtype=dt.int64, device=self.device)
    return (
        values,
        inverse if return_inverse or return_counts else empty,
        counts if return_counts else empty,
    )


def _unpool(dims: int) -> Callable[..., Any]:
    def run(self: Tensor, indices: Tensor, output_size: Sizes, *_: Sizes) -> Tensor:
        """Each element at its place in planes of `output_size`, zeros elsewhere."""
        lead = self.shape[:-dims]
        plane = aten.zeros((*lead, prod(output_size)), dtype=self.dtype, device=self.device)
        places = indices.reshape((*lead, -1))
        flat: Tensor = plane.scatter(-1, places, self.reshape((*lead, -1)))
        return flat.view((*lead, *output_size))

    return run


def _consecutive(
    self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Tensor, ...]:
    values, inverse, counts = aten.unique_consecutive(self, True, True, dim)
    empty = aten.zeros((0,), dtype=dt.int64, device=self.device)
    every = dim is not None
    return (
        values, inverse if return_inverse or every else empty,
        counts if return_counts or every else empty,
    )  # fmt: skip


def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes,
    dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int,
) -> Any:  # fmt: skip
    name = f"conv{'_transpose' * transposed}{len(stride)}d"
    run = getattr(aten, name)
    if transposed:
        return run(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return run(input, weight, bias, stride, padding, dilation, groups)


def _convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Sizes | None, stride: Sizes,
    padding: Sizes, dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `convolution` by its row's derivatives, those that the mask asks for."""
    by: Any = OPS["convolution"].grad
    sizes = (tuple(v) for v in (stride, padding, dilation))
    rest = (*sizes, transposed, tuple(output_padding), groups)
    wants = tuple(output_mask)
    return (
        by["input"](grad_output, input._geom, weight, *rest) if wants[0] else None,
        by["weight"](grad_output, input, weight, *rest) if wants[1] else None,
        by["bias"](grad_output) if wants[2] else None,
    )


def _assert_scalar(self: object, assert_msg: str) -> None:
    """RuntimeError with the message for a number that is zero."""
    if not self:
        raise RuntimeError(assert_msg)


def _sym_size(self: Tensor, dim: int | None = None) -> int | list[int]:
    return list(self.shape) if dim is None else self.shape[dim]


def _assert_tensor_metadata(a: Tensor, *_: object, **expected: object) -> None:
    """Nothing: it holds where inputs are as those of the example."""


def _same(self: Tensor) -> Tensor:
    return self


def _select_backward(grad_output: Tensor, sizes: Sequence[int], dim: int, index: int) -> Tensor:
    zeros = aten.zeros(tuple(sizes), dtype=grad_output.dtype, device=grad_output.device)
    return aten.select_scatter(zeros, grad_output, dim, index)


def _slice_backward(
    grad_output: Tensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    zeros = aten.zeros(tuple(sizes), dtype=grad_output.dtype, device=grad_output.device)
    return aten.slice_scatter(zeros, grad_output, dim, start, end, step)


def _new_empty_strided(
    self: Tensor, size: Sizes, stride: Sizes, *, dtype: Any = None, device: Any = None,
    **_: object,
) -> Any:  # fmt: skip
    dtype, device = dtype or self.dtype, device or self.device
    return aten.empty_strided(tuple(size), tuple(stride), dtype=dtype, device=device)


def _flash_attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention, and the logarithm of each row's sum of exponentials `[N, h, L]`."""
    result = aten.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return result, aten.logsumexp(_scores(query, key, factor, is_causal, attn_mask), -1)


def _flash_attention_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
    dropout_p: float, is_causal: bool, *, attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of attention by query, key and value, from what the forward gave."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    sums = logsumexp.unsqueeze(-1)
    weights = aten.exp(_scores(query, key, factor, is_causal, attn_mask) - sums).to(query.dtype)
    weights = weights.masked_fill(sums == float("-inf"), 0.0)  # rows that attend to nothing
    spread = grad_out @ value.transpose(-2, -1) - (grad_out * out).sum(-1, keepdim=True)
    steps = weights * spread * factor
    return steps @ key, steps.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ grad_out


def _scores(
    query: Tensor, key: Tensor, factor: float, is_causal: bool, mask: Tensor | None
) -> Tensor:
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        later = aten.ones(scores.shape[-2:], dtype=dt.bool, device=query.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores if mask is None else scores + mask


def _factored(self: Tensor, determinant: bool = False) -> tuple[Tensor, Tensor]:
    """LU and pivots of matrices that may be singular; for a determinant, as torch has them, of
    real matrices by rows the transposed one's."""
    if determinant and self.is_contiguous() and not self.is_complex():
        self = self.mT
    factors, pivots, _ = aten.linalg_lu_factor_ex(self)
    return factors, pivots


def _svd(
    self: Tensor, full_matrices: bool = False, compute_uv: bool = True, **kwargs: Any
) -> Any:  # fmt: skip
    if compute_uv:
        return aten.linalg_svd(self, full_matrices, **kwargs)
    empty = aten.empty((0,), dtype=self.dtype, device=self.device)
    return empty, aten.linalg_svdvals(self, **kwargs), empty


def _solve_ex(self: Tensor, other: Tensor, **options: bool) -> tuple[Tensor, ...]:
    result, info = aten.linalg_solve_ex(self, other, **options)
    return result, *_factored(self), info


def _check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """LinAlgError in torch's words where a factorization failed."""
    from .rows.matrix.decompositions import singular

    codes: list[int] = [] if info.is_meta else info.flatten().tolist()
    for at, code in enumerate(codes):
        if code:
            raise singular(api_name, None if is_matrix else at, code)


def _plain(name: str) -> Callable[..., Any]:
    """A factory that is a row: where its memory would be pinned is no argument of it."""

    def make(*args: Any, pin_memory: object = None, layout: object = None, **kwargs: Any) -> Any:
        return getattr(aten, name)(*args, **kwargs)

    return make


def _new(name: str) -> Callable[..., Any]:
    def new(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, f"new_{name}")(*args, **kwargs)

    return new


def _to(self: Tensor, *args: Any, layout: object = None, **kwargs: Any) -> Tensor:
    """A cast by an overload's places, of which a memory format is the last."""
    count = 4 if args and isinstance(args[0], Device) else 3
    if len(args) > count:
        kwargs["memory_format"] = args[count]
    return self.to(*args[:count], **kwargs)


FORMS: dict[str, Callable[..., Any]] = {
    **{name: _loss(name, arguments) for name, arguments in _LOSSES.items()},
    **{
        f"{start}{dims}d": _upsample(dims, mode)
        for start, mode in (("upsample_nearest", "nearest"),
                            ("_upsample_nearest_exact", "nearest-exact"))
        for dims in (1, 2, 3)
    },
    "embedding_bag": _embedding_bag, "_unique2": _unique2,
    "unique_dim": lambda self, dim, sorted=True, return_inverse=False, return_counts=False: (
        aten.unique(self, sorted, True, True, dim)
    ),
    "is_same_size": lambda self, other: self.shape == other.shape,
    "size": lambda self, dim=None: list(self.shape) if dim is None else self.shape[dim],
    "sym_numel": lambda self: self.numel(),
    "sym_storage_offset": lambda self: self.storage_offset(),
    "sym_stride": lambda self, dim=None: list(self.stride()) if dim is None else self.stride(dim),
    "stride": lambda self, dim=None: list(self.stride()) if dim is None else self.stride(dim),
    "elu_backward": lambda grad_output, alpha, scale, input_scale, is_result, self_or_result: (
        aten.elu_backward(grad_output, self_or_result, alpha, scale, input_scale)
    ),
    "leaky_relu_backward": lambda grad_output, self, negative_slope, self_is_result: (
        aten.leaky_relu_backward(grad_output, self, negative_slope)
    ),
    "_cdist_forward": lambda x1, x2, p, compute_mode=None: aten._cdist_forward(x1, x2, p),
    "_adaptive_avg_pool2d": lambda self, size: aten.adaptive_avg_pool2d(self, tuple(size)),
    "_assert_tensor_metadata": _assert_tensor_metadata, "_to_copy": _to_copy,
    "_native_batch_norm_legit_functional": _legit_functional,
    "_native_batch_norm_legit_no_training": _legit_no_training,
    "alias": lambda self: aten.alias(self),
    "batch_norm": _batch_norm, "binary_cross_entropy_with_logits": _with_logits,
    "convolution": _convolution, "convolution_backward": _convolution_backward,
    "native_batch_norm_backward": lambda *args: aten._batch_norm_backward(*args),
    **{name: _plain(name) for name in ("eye", "linspace", "logspace", "randint", "randperm")},
    **{f"new_{name}": _new(name) for name in ("empty", "full", "ones", "zeros")},
    "cross_entropy_loss": _cross_entropy_loss, "detach_": _same, "group_norm": _group_norm,
    "layer_norm": _layer_norm, "lift_fresh_copy": lambda self: aten.clone(self),
    "lift_fresh": _same, "_local_scalar_dense": lambda self: self.item(),
    "native_layer_norm_backward": lambda *args: tuple(
        grad if wants else None
        for grad, wants in zip(aten._layer_norm_backward(*args), args[-1], strict=True)
    ),
    "scatter_": lambda self, *args, **kwargs: self.scatter_(*args, **kwargs),
    "resize_": lambda self, size, memory_format=None: self.resize_(tuple(size)),
    "resize_as_": lambda self, the_template, memory_format=None: self.resize_as_(the_template),
    "tril_indices": _plain("tril_indices"), "triu_indices": _plain("triu_indices"),
    **{f"max_unpool{dims}d": _unpool(dims) for dims in (2, 3)},
    "unique_consecutive": lambda self, return_inverse=False, return_counts=False, dim=None: (
        _consecutive(self, return_inverse, return_counts, dim)
    ),
    "native_group_norm_backward": lambda *args: aten._group_norm_backward(*args),
    "select_backward": _select_backward, "slice_backward": _slice_backward,
    "_is_all_true": lambda self: aten.all(self),
    "_unsafe_view": lambda self, size: self.view(tuple(size)),
    "new_empty_strided": _new_empty_strided,
    "numpy_T": lambda self: self.T, "rsub": lambda self, other, alpha=1: other - self * alpha,
    "item": lambda self: self.item(), "_assert_scalar": _assert_scalar, "sym_size": _sym_size,
    "view_as": lambda self, other: self.view(other.shape),
    "expand_as": lambda self, other: self.expand(other.shape),
    "__and__": lambda self, other: aten.bitwise_and(self, other),
    "__or__": lambda self, other: aten.bitwise_or(self, other),
    "__xor__": lambda self, other: aten.bitwise_xor(self, other),
    "to": _to, "type_as": lambda self, other: self.type_as(other),
    "reshape_as": lambda self, other: self.reshape(other.shape),
    "detach": lambda self: self.detach(),
    "_scaled_dot_product_flash_attention_for_cpu": _flash_attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _flash_attention_backward,
    "_linalg_check_errors": _check_errors, "_linalg_solve_ex": _solve_ex, "_linalg_svd": _svd,
    "_linalg_det": lambda self: (aten.linalg_det(self), *_factored(self, True)),
    "_linalg_slogdet": lambda self: (*aten.linalg_slogdet(self), *_factored(self, True)),
    "_linalg_eigh": lambda self, half="L", _=True: tuple(aten.linalg_eigh(self, half)),
    "log_sigmoid_forward": lambda self: (aten.log_sigmoid(self), aten.exp(-aten.abs(self))),
}  # fmt: skip
