"""Rows of scaled dot product attention and of the multi-head attention forward."""

from __future__ import annotations

import math

from ...costs import attention
from ...rules import HALVES, c_name
from ...words import *
from .gates import softmax
from .noise import dropout
from .pad import pad


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
    "attn_mask=None, float dropout_p=0.0, bool is_causal=False, float? scale=None, bool "
    "enable_gqa=False) -> Tensor",
    surface="nn",
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
    if attn_mask is not None and hasattr(
        attn_mask, "_materialize"
    ):  # a mask that is known by its shape
        attn_mask = attn_mask._materialize(query.device)
    _check_operands(query, key, value)
    if attn_mask is not None:
        _check_dtype_of_mask(query, attn_mask)
        if is_causal and (dropout_p > 0 or not _fused_by_torch(query, key, value, attn_mask)):
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when"
                " is_causal=True"
            )
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if dropout_p > 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    if query.dtype in (dt.float16, dt.bfloat16):
        # A root of the scale on each side keeps products in range, as torch does.
        root = math.sqrt(abs(factor))
        query, key = query * math.copysign(root, factor), key * root
    else:
        query = query * factor
    scores = query @ key.transpose(-2, -1)
    if attn_mask is not None and is_causal:
        attn_mask, is_causal = _causal(attn_mask, query.size(-2), key.size(-2)), False
    if is_causal:  # each row has something to attend to: its first element at least
        sizes = (query.size(-2), key.size(-2))
        later = aten.ones(sizes, dtype=dt.bool, device=query.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    elif attn_mask is None:
        weights = scores.softmax(-1)
    else:
        weights = _masked_softmax(scores, attn_mask)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _check_operands(query: Tensor, key: Tensor, value: Tensor) -> None:
    """RuntimeError in torch's words for vectors."""
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim:"
            f" {query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if len({query.dtype, key.dtype, value.dtype}) > 1:
        q, k, v = (c_name(t.dtype) for t in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype:"
            f" {q} key.dtype: {k} and value.dtype: {v} instead."
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


def _fused_by_torch(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> bool:
    """Whether torch's fused kernel on cpu takes the call: it alone has a mask and is causal."""
    if {query.dim(), key.dim(), value.dim()} != {4} or mask.requires_grad:
        return False
    whole = (query.size(0), query.size(1), query.size(2), key.size(2))
    sizes = whole if mask.dim() == 4 else whole[2:]
    fits = mask.dim() == len(sizes) and all(
        n in (1, size) for n, size in zip(mask.shape, sizes, strict=True)
    )
    ends = {t.size(-1) for t in (query, key, value)}
    return fits and len(ends) == 1 and all(t.stride(-1) == 1 for t in (query, key, value))


def _causal(mask: Tensor, rows: int, columns: int) -> Tensor:
    """The mask that hides later places too: torch applies both on cpu."""
    earlier = aten.ones((rows, columns), dtype=dt.bool, device=mask.device).tril()
    if mask.dtype == dt.bool:
        return mask.logical_and(earlier)
    return aten.where(earlier, mask, float("-inf"))


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of the last dim; zeros, and no gradient, in rows with nothing to attend to."""
    least = float("-inf")
    away = mask.logical_not() if mask.dtype == dt.bool else mask == least
    idle = away.all(-1, keepdim=True)
    if mask.dtype == dt.bool:
        scores = scores.masked_fill(away.logical_and(idle.logical_not()), least)
    else:
        scores = scores + mask.masked_fill(idle, 0.0)
    return scores.softmax(-1).masked_fill(idle, 0.0)


def _as_float_mask(mask: Tensor | None, dtype: Dtype, name: str) -> Tensor | None:
    """A bool mask of multi-head attention hides where True; gives what is added to the scores."""
    if mask is None:
        return None
    if mask.dtype != dt.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if mask.is_floating_point():
        return mask
    return aten.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None
) -> tuple[Any, Any, Any]:
    """The three input projections; one product when all three inputs are the same tensor."""
    if isinstance(weights, Tensor):
        if query is key and key is value:
            q, k, v = aten.linear(query, weights, bias).chunk(3, -1)
            return q, k, v
        weights = weights.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    pairs = zip((query, key, value), weights, biases, strict=True)
    q, k, v = (aten.linear(x, w, b) for x, w, b in pairs)
    return q, k, v


@composite(
    "multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int "
    "embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? "
    "bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, "
    "Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool "
    "need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? "
    "q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? "
    "static_k=None, Tensor? static_v=None, bool average_attn_weights=True, bool "
    "is_causal=False) -> (Tensor, Tensor)",
    surface="nn",
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
    _check_ranks(query, key, value, key_padding_mask, attn_mask)
    batched = query.dim() == 3
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module"
            " method `generate_square_subsequent_mask` to create this mask."
        )
    _check_sizes(key, value, key_padding_mask, use_separate_proj_weight)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    mask = _as_float_mask(attn_mask, q.dtype, "attn_mask")
    padding = _as_float_mask(key_padding_mask, q.dtype, "key_padding_mask")
    if mask is not None:
        _check_mask(mask, length, key.size(0), batch * num_heads)
        mask = mask.unsqueeze(0) if mask.dim() == 2 else mask
    if bias_k is not None and bias_v is not None:
        k = aten.cat([k, bias_k.repeat(1, batch, 1)])
        v = aten.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = _one_more(mask), _one_more(padding)
    q = q.reshape(length, batch * num_heads, head).transpose(0, 1)
    k = static_k if static_k is not None else _heads(k, batch * num_heads, head)
    v = static_v if static_v is not None else _heads(v, batch * num_heads, head)
    if add_zero_attn:
        zeros = aten.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = aten.cat([k, zeros], 1), aten.cat([v, zeros], 1)
        mask, padding = _one_more(mask), _one_more(padding)
    if padding is not None:
        source = k.size(1)
        spread = padding.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(batch * num_heads, 1, source)
        mask = spread if mask is None else mask + spread
    out, attention = _attend(q, k, v, mask, dropout_p if training else 0.0, need_weights)
    out = out.transpose(0, 1).reshape(length * batch, embed)
    out = aten.linear(out, out_proj_weight, out_proj_bias).reshape(length, batch, -1)
    if attention is not None:
        attention = attention.reshape(batch, num_heads, length, -1)
        attention = attention.mean(1) if average_attn_weights else attention
    if batched:
        return out, attention
    return out.squeeze(1), None if attention is None else attention.squeeze(0)


def _check_ranks(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None
) -> None:
    """AssertionError in torch's words for tensors of other dims than the query's allow."""
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


def _check_sizes(key: Tensor, value: Tensor, padding: Tensor | None, separate: bool) -> None:
    """AssertionError in torch's words where key, value and the mask of padding do not fit."""
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's"
                f" {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if padding is not None:
        for at, size in enumerate((key.shape[1], key.shape[0])):
            if padding.shape[at] != size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{at}] to be {size}, but got"
                    f" {padding.shape[at]}"
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


def _heads(x: Tensor, count: int, head: int) -> Tensor:
    return x.reshape(x.size(0), count, head).transpose(0, 1)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, need_weights: bool
) -> tuple[Any, Any]:
    """q `[N h, L, d]`, k and v `[N h, S, d]`, an additive mask → output, weights or None."""
    if not need_weights:
        added = None if mask is None else mask.unsqueeze(0)
        out = scaled_dot_product_attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), added, p)
        return out.squeeze(0), None
    scaled = q * math.sqrt(1.0 / q.size(-1))
    scores = aten.bmm(scaled, k.transpose(-2, -1))
    scores = scores if mask is None else scores + mask
    weights = softmax(scores, -1)
    if p > 0.0:
        weights = dropout(weights, p)
    return aten.bmm(weights, v), weights
