"""Rows of scaled dot product attention and of the multi-head attention forward."""

from __future__ import annotations

import math

from ...._compat.warn_once import warn
from ...costs import attention
from ...rules import HALVES, c_name, preserved
from ...spec import OPS
from ...words import *
from . import flash
from .attention_kernels import ENABLED, runs_fused
from .gates import softmax
from .noise import dropout
from .pad import pad


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
    "attn_mask=None, float dropout_p=0.0, bool is_causal=False, float? scale=None, bool "
    "enable_gqa=False) -> Tensor",
    samples=calls(
        (Arg((2, 2, 3, 4)), Arg((2, 2, 5, 4)), Arg((2, 2, 5, 3))),
        (Arg((2, 3, 4)), Arg((2, 5, 4)), Arg((2, 5, 3)), Arg((3, 5))),
        Sample((Arg((2, 3, 4)), Arg((2, 3, 4)), Arg((2, 3, 4))), {"is_causal": True}),
    ),
    tolerance="chained",
    cost=attention,
    autocast="lower",
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q kᵀ scale + mask) v; query `[*, L, E]`, key `[*, S, E]`, value `[*, S, Ev]`.

    A bool mask keeps where True, a floating one is added. `enable_gqa` repeats key and value heads
    (dim -3).
    """
    _check_operands(query, key, value)
    if attn_mask is not None:
        _check_dtype_of_mask(query, attn_mask)
    fused = runs_fused(query, key, value, attn_mask, dropout_p)
    if attn_mask is not None and is_causal and not fused:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when"
            " is_causal=True"
        )
    heads = key, value
    if enable_gqa:
        key, value = _shared_heads(query, key, value)
    if dropout_p > 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if fused and dropout_p < 0.0:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0"
        )
    if fused and key.size(-2) > value.size(-2):
        key, attn_mask = _as_long_as(value, query, key, attn_mask)
    values = query, key, value, attn_mask, dropout_p, is_causal, scale
    on_npu = query, *heads, *values[3:]
    result: Any = NotImplemented
    if ENABLED["flash"] and flash.runs(*on_npu, enable_gqa):
        result = flash.attended(*on_npu)
    elif fused and aten._watched():
        result = _seen_whole(*values)
    if result is NotImplemented:
        result = (_fused if fused else _attended)(*values)
    if result._fn is not None:
        result._fn.label = _node(fused, query, value)
    return result


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None,
) -> Tensor:  # fmt: skip
    result = _attended(query, key, value, mask, dropout_p, is_causal, scale, fused=True)
    return _laid_out_like(query, result)


def _seen_whole(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None,
) -> Any:  # fmt: skip
    """What a dispatch mode makes of attention, a mask of bools a sum's before; NotImplemented where
    it sees the parts."""
    if mask is not None and mask.dtype is dt.bool:
        mask = aten.where(mask, aten.zeros((), dtype=query.dtype, device=query.device), -math.inf)
    named: dict[str, Any] = {} if mask is None else {"attn_mask": mask}
    named.update({} if scale is None else {"scale": scale})
    args = (query, key, value, *((dropout_p, True) if is_causal else ()))
    return aten._seen_flash_attention(*args[:3], args[3:], named)


def _attended(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, fused: bool = False,
) -> Tensor:  # fmt: skip
    width = query.size(-1)
    factor = (1.0 / math.sqrt(width) if width else math.inf) if scale is None else scale
    if fused and query.dtype not in (dt.float16, dt.bfloat16):
        scores = query * factor @ key.transpose(-2, -1)
    else:  # a root of the scale on each side keeps products in range, as torch does
        root = math.sqrt(abs(factor))
        scores = query * math.copysign(root, factor) @ (key.transpose(-2, -1) * root)
    if attn_mask is not None and is_causal:
        attn_mask, is_causal = _causal(attn_mask, query.size(-2), key.size(-2)), False
    if is_causal:  # each row has something to attend to: its first element at least
        sizes = (query.size(-2), key.size(-2))
        later = aten.ones(sizes, dtype=dt.bool, device=query.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    elif attn_mask is None:
        weights = _softmax(scores, not fused)
    else:
        weights = flash.masked_softmax(scores, attn_mask)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _node(fused: bool, query: Tensor, value: Tensor) -> str:
    """What torch calls the node of the last operator."""
    if fused:
        return "ScaledDotProductFlashAttentionForCpuBackward0"
    return "MmBackward0" if query.dim() == value.dim() == 2 else "UnsafeViewBackward0"


def _shared_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Key and value with each head as often as queries share it."""
    heads, keys, values = query.size(-3), key.size(-3), value.size(-3)
    if heads % keys or heads % values:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    key, value = (
        key.repeat_interleave(heads // keys, -3),
        value.repeat_interleave(heads // values, -3),
    )
    return key, value


def _as_long_as(
    value: Tensor, query: Tensor, key: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The first keys and their mask: torch's fused kernel counts keys by the values."""
    count = value.size(-2)
    if mask is not None:
        mask = mask[(None,) * (4 - mask.dim())].expand(*query.shape[:2], query.size(-2), count)
    return key[..., :count, :], mask


def _laid_out_like(query: Tensor, result: Tensor) -> Tensor:
    """The result in the order of the query's dims in memory, as torch's fused kernel writes it."""
    strides = preserved(query._geom).strides
    order = sorted(range(4), key=lambda d: (-strides[d], d))
    if order == [0, 1, 2, 3]:
        return result
    back = sorted(range(4), key=order.__getitem__)
    return result.permute(order).contiguous().permute(back)


def _check_operands(query: Tensor, key: Tensor, value: Tensor) -> None:
    """RuntimeError in torch's words for several dtypes, then for vectors."""
    if len({query.dtype, key.dtype, value.dtype}) > 1:
        q, k, v = (c_name(t.dtype) for t in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype:"
            f" {q} key.dtype: {k} and value.dtype: {v} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim:"
            f" {query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )


def _check_dtype_of_mask(query: Tensor, mask: Tensor) -> None:
    """torch's refusals of masks by their dtype and dims."""
    if mask.dtype not in (dt.bool, dt.float32, query.dtype) and query.dtype not in HALVES:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got"
            f" attn_mask.dtype: {c_name(mask.dtype)} and  query.dtype: {c_name(query.dtype)}"
            " instead."
        )
    mask.size(-2)


def _causal(mask: Tensor, rows: int, columns: int) -> Tensor:
    """The mask that hides later places too: torch applies both on cpu."""
    earlier = aten.ones((rows, columns), dtype=dt.bool, device=mask.device).tril()
    if mask.dtype == dt.bool:
        return mask.logical_and(earlier)
    return aten.where(earlier, mask, float("-inf"))


def _softmax(scores: Tensor, apart: bool) -> Tensor:
    """Softmax of the last dim; `apart`: modes see torch's operator of unfused attention."""
    if apart and aten._watched():
        seen: Tensor = aten._asked_recorded(
            "_safe_softmax.default", lambda scores, dim: scores.softmax(dim), (scores, -1)
        )
        if seen._fn is not None:  # which is kept for backward
            aten._asked("detach", (seen,), {})
        return seen
    return scores.softmax(-1)


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Dtype | None, other_name: str,
    target_type: Dtype, check_other: bool = True,
) -> Tensor | None:  # fmt: skip
    """What is added to scores: a bool mask of multi-head attention hides where it is True."""
    if mask is None:
        return None
    if mask.dtype != dt.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for"
            " both instead.",
        )
    if mask.is_floating_point():
        return mask
    return aten.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: object) -> Dtype | None:
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _in_projection_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Any, Any, Any]:
    """The three input projections; one product of what is the same tensor."""
    width = query.size(-1)
    if query is key and key is value:
        q, k, v = _parts(aten.linear(query, weight, bias), 3)
        return q, k, v
    if key is value:
        w_q, w_kv = weight.split([width, 2 * width])
        b_q, b_kv = (None, None) if bias is None else bias.split([width, 2 * width])
        q = aten.linear(query, w_q, b_q)
        k, v = _parts(aten.linear(key, w_kv, b_kv), 2)
        return q, k, v
    biases = (None, None, None) if bias is None else bias.chunk(3)
    triples = zip((query, key, value), weight.chunk(3), biases, strict=True)
    q, k, v = (aten.linear(x, w, b) for x, w, b in triples)
    return q, k, v


def _parts(product: Tensor, count: int) -> list[Tensor]:
    """`[*, count E]` as `count` tensors `[*, E]` in one memory."""
    parts = product.unflatten(-1, (count, product.size(-1) // count)).unsqueeze(0)
    parts = parts.transpose(0, -2).squeeze(-2).contiguous()
    return [parts[i] for i in range(count)]


def _in_projection(
    query: Tensor, key: Tensor, value: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The three input projections by weights of their own, checked as torch does."""
    width, names = query.size(-1), ("query", "key", "value")
    inputs, weights, biases = (query, key, value), (w_q, w_k, w_v), (b_q, b_k, b_v)
    for name, x, weight in zip(names, inputs, weights, strict=True):
        _check_shape(f"{name} weights", weight, (width, x.size(-1)))
    for name, part in zip(names, biases, strict=True):
        _check_shape(f"{name} bias", part, (width,))
    q, k, v = (aten.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
    return q, k, v


def _check_shape(name: str, tensor: Tensor | None, shape: tuple[int, ...]) -> None:
    if tensor is not None and tensor.shape != shape:
        raise AssertionError(f"expecting {name} shape of {shape}, but got {tensor.shape}")


@composite(
    "multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int "
    "embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? "
    "bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, "
    "Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool "
    "need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? "
    "q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? "
    "static_k=None, Tensor? static_v=None, bool average_attn_weights=True, bool "
    "is_causal=False) -> (Tensor, Tensor)",
    samples=calls(
        (
            Arg((3, 2, 4)),
            Arg((3, 2, 4)),
            Arg((3, 2, 4)),
            4,
            2,
            Arg((12, 4)),
            Arg((12,)),
            None,
            None,
            False,
            0.0,
            Arg((4, 4)),
            Arg((4,)),
        ),
    ),
    tolerance="chained",
    rule="products",
    fixed_shape=True,
)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """query `[L, N, E]`, key and value `[S, N, E]` (or without N) →
    output `[L, N, E]`, weights or None."""
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    # What hides is given on as it is where the operator takes it, else it is added to scores.
    masks = [m for m in (key_padding_mask, attn_mask) if m is not None]
    hides = not need_weights and query.device.type == "npu" and not aten._watched()
    hides = hides and all(m.dtype is dt.bool for m in masks)
    padding = key_padding_mask
    if not hides:
        other = _none_or_dtype(attn_mask)
        padding = _canonical_mask(padding, "key_padding_mask", other, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module"
            " method `generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if is_causal else attn_mask
    if not hides:
        mask = _canonical_mask(mask, "attn_mask", None, "", query.dtype)
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    _check_sizes(key, value, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights: list[Any] = [q_proj_weight, k_proj_weight, v_proj_weight]
        for name, weight in zip("qkv", weights, strict=True):
            if weight is None:
                raise AssertionError(
                    f"use_separate_proj_weight is True but {name}_proj_weight is None"
                )
        biases = () if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, *weights, *biases)
    elif in_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if mask is not None:
        _check_mask(mask, length, key.size(0), batch * num_heads)
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
    if bias_k is not None and bias_v is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k = aten.cat([k, bias_k.repeat(1, batch, 1)])
        v = aten.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = _one_more(mask), _one_more(padding)
    elif bias_k is not None or bias_v is not None:
        which = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{which[0]} is set but {which[1]} is None")
    q = q.reshape(length, batch * num_heads, head).transpose(0, 1)
    k = _heads(k, static_k, "static_k", batch * num_heads, head)
    v = _heads(v, static_v, "static_v", batch * num_heads, head)
    if add_zero_attn:
        zeros = aten.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = aten.cat([k, zeros], 1), aten.cat([v, zeros], 1)
        mask, padding = _one_more(mask), _one_more(padding)
    if padding is not None:
        source = k.size(1)
        _check_padding(padding, batch, source)
        spread = padding.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(batch * num_heads, 1, source)
        mask = spread if mask is None else mask + spread
    if hides and mask is not None:
        mask = mask.logical_not()
    p = dropout_p if training else 0.0
    sizes = batch, num_heads
    out, attention = _attend(q, k, v, mask, p, is_causal, need_weights, sizes)
    out = aten.linear(out.reshape(length * batch, embed), out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out.size(-1))
    if attention is not None:
        attention = attention.reshape(batch, num_heads, *attention.shape[1:])
        attention = attention.mean(1) if average_attn_weights else attention
    if batched:
        return out, attention
    return out.squeeze(1), None if attention is None else attention.squeeze(0)


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None,
    heads: int,
) -> bool:  # fmt: skip
    """Whether inputs have a batch; AssertionError for other dims than the query's allow."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    if key.dim() != ndim or value.dim() != ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key.dim()}-D"
            f" and {value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but"
            f" found {padding.dim()}-D tensor instead"
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found"
            f" {mask.dim()}-D tensor instead"
        )
    if ndim == 2 and mask is not None and mask.dim() == 3:
        expected = (heads, query.shape[0], key.shape[0])
        if mask.shape != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {mask.shape}"
            )
    return ndim == 3


def _check_sizes(key: Tensor, value: Tensor, separate: bool) -> None:
    """AssertionError in torch's words where key and value do not fit."""
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's"
                f" {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_padding(padding: Tensor, batch: int, source: int) -> None:
    for at, size in enumerate((batch, source)):
        if padding.shape[at] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{at}] to be {size}, but got {padding.shape[at]}"
            )


def _check_mask(mask: Tensor, length: int, source: int, heads: int) -> None:
    expected = (length, source) if mask.dim() == 2 else (heads, length, source)
    if mask.dim() not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )


def _one_more(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else pad(mask, (0, 1))


def _heads(x: Tensor, static: Tensor | None, name: str, count: int, head: int) -> Tensor:
    """`[S, N, E]` -> `[N h, S, d]`; a static one stands in its place."""
    if static is None:
        return x.reshape(x.shape[0], count, head).transpose(0, 1)
    for at, size in ((0, count), (2, head)):
        if static.size(at) != size:
            raise AssertionError(
                f"expecting {name}.size({at}) of {size}, but got {static.size(at)}"
            )
    return static


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, is_causal: bool,
    need_weights: bool, sizes: tuple[int, int],
) -> tuple[Any, Any]:  # fmt: skip
    """q `[N h, L, d]`, k and v `[N h, S, d]`, a mask as it takes them, `sizes` (N, h) → output
    `[L, N h, d]` or `[L, N, h, d]`, weights or None."""
    if not need_weights:
        q, k, v = (x.reshape(*sizes, *x.shape[1:]) for x in (q, k, v))
        if mask is not None:
            one = mask.size(0) == 1
            mask = mask.unsqueeze(0) if one else mask.reshape(*sizes, *mask.shape[1:])
        attend = OPS["scaled_dot_product_attention"].entry("function")  # as profilers see it
        return attend(q, k, v, mask, p, is_causal).permute(2, 0, 1, 3), None
    scaled = q * math.sqrt(1.0 / q.size(-1))
    scores = aten.bmm(scaled, k.transpose(-2, -1))
    scores = scores if mask is None else scores + mask
    weights = softmax(scores, -1)
    if p > 0.0:
        weights = dropout(weights, p)
    return aten.bmm(weights, v).transpose(0, 1), weights
