"""Owns flex_attention: attention whose scores a Python function changes, computed densely.

`score_mod` and `mask_mod` are called once with index tensors that broadcast, so they must be
elementwise, which is what torch compiles.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from ..._compat.warn_once import warn_once
from ..._tensor import dtype as dt
from ..._tensor.device import DeviceLike
from ..._tensor.tensor import Tensor
from ...ops.spec import aten
from ._block_mask import DEFAULT_BLOCK_SIZE, BlockMask, _sliced_mask_mod_error, noop_mask
from ._utils import _validate_sdpa_input

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "create_nested_block_mask", "flex_attention", "noop_mask", "or_masks"]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE
_score_mod_signature = _mask_mod_signature = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """Which results flex_attention gives beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that were asked for; None for others."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


_identity = noop_mask


def _masks(mask_mods: tuple[Callable[..., Any], ...], start: bool) -> Callable[..., Any]:
    """All mask functions in one; RuntimeError for what cannot be called."""
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = aten.full((), start, dtype=dt.bool, device=b.device)
        for mod in mask_mods:
            seen = mod(b, h, q_idx, kv_idx)
            result = result & seen if start else result | seen
        return result

    mask.__name__ = "and_mask" if start else "or_mask"
    return mask


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """True where all are."""
    return _masks(mask_mods, True)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """True where any is."""
    return _masks(mask_mods, False)


def _indices(sizes: tuple[int, int, int, int], device: DeviceLike | None) -> list[Tensor]:
    """For each of batch, head, query and key its index, shaped to broadcast to [B, H, Q, K]."""
    return [
        aten.arange(0, size, device=device).reshape([-1 if i == d else 1 for i in range(4)])
        for d, size in enumerate(sizes)
    ]


def _takes_scores(mod: Callable[..., Any]) -> bool:
    """Whether a function is a score_mod, which takes 5 arguments; AssertionError for neither."""
    if isinstance(mod, FunctionType):
        count = mod.__code__.co_argcount - len(mod.__defaults__ or ())
    else:
        parameters = inspect.signature(mod).parameters.values()
        count = sum(p.default is p.empty for p in parameters)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return bool(count == 5)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: DeviceLike | None = None,
) -> Tensor:  # fmt: skip
    """Where a mask function is True, or a score function not -inf: bool, [B, H, Q, K]."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _indices(sizes, device)
    if not _takes_scores(mod_fn):
        return aten.expand(mod_fn(*places), sizes)
    scores = mod_fn(aten.zeros(sizes, device=device), *places)
    return aten.expand(scores != float("-inf"), sizes)


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = False,
) -> BlockMask:
    """The BlockMask of a mask function; AssertionError for a score function."""
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order is not supported")
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    return BlockMask.of_places(mask, mask_mod, sizes, separate_full_blocks)


def create_nested_block_mask(*_: object, **__: object) -> NoReturn:
    """Refused: there are no nested tensors."""
    raise NotImplementedError("create_nested_block_mask: mindtorch has no nested tensors")


def _check(
    query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, enable_gqa: bool
) -> None:
    """torch's refusals of operands and of the mask, in its order."""
    _validate_sdpa_input(query, key, value, allow_lowp_kv=True)
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got"
            f" E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.device.type == "cpu" and any(t.requires_grad for t in (query, key, value)):
        raise NotImplementedError(
            "FlexAttention does not support backward on CPU. Please set the input requires_grad to"
            " False or use another device."
        )
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    queries, keys = query.size(1), key.size(1)
    if not enable_gqa and queries != keys:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={queries} and"
            f" Hkv={keys}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and queries % keys:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got"
            f" Hq={queries} and Hkv={keys}."
        )
    if query.size(0) != key.size(0) and mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but"
            f" got block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    if mask is not None:
        _check_mask(query, key, mask)


def _check_mask(query: Tensor, key: Tensor, mask: BlockMask) -> None:
    batch = mask.kv_num_blocks.size(0)
    if query.size(0) != key.size(0) and batch != query.size(0):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to"
            f" have the same batch size, but got Bq={query.size(0)}, Bkv={key.size(0)},"
            f" B_block_mask={batch}."
        )
    if mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    lengths = query.size(-2), key.size(-2)
    if lengths != mask.seq_lengths:
        short = any(n > most for n, most in zip(lengths, mask.seq_lengths, strict=True))
        advice = (
            "As the block mask was created for a smaller length than you're using it for, you"
            " likely need to create a new block mask."
            if short
            else "As the block mask was created for a larger length than you're using it for, you"
            " can either 1. create a new block mask with the correct length, or 2. 'adjust' the"
            " existing block mask to the correct length by calling block_mask._adjust(q_len,"
            " kv_len). This essentially 'crops' the block mask to the upper left corner, which does"
            " not work for all mask_mods!"
        )
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got q_len={lengths[0]}"
            f" and kv_len={lengths[1]}. {advice}"
        )
    if query.device != mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device but got"
            f" {query.device} and {mask.kv_num_blocks.device}."
        )


def _check_results(query: Tensor, return_lse: bool, return_aux: AuxRequest | None) -> None:
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use"
            " return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warn_once(
            "return_lse is deprecated and will be removed in v2.10. Please use"
            " return_aux=AuxRequest(lse=True) instead.",
            category=FutureWarning,
        )
    if return_aux is not None and return_aux.max_scores and query.device.type == "cpu":
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(q·kᵀ·scale))·v over [B, H, L, E]; fully masked rows give zeros."""
    _check(query, key, value, block_mask, enable_gqa)
    _check_results(query, return_lse, return_aux)
    warn_once(
        "flex_attention called without torch.compile() - this will use an unfused implementation"
        " that materializes the full scores matrix instead of generating a fused kernel.\n\n"
        "SOLUTION: Use torch.compile(flex_attention)(...)\n\n"
        "If you want to debug your score_mod/mask_mod, you can set:\n"
        "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True\n\n"
        "This will allow you to use print statements or breakpoints. Note: This doesn't work with"
        " the backwards pass and may produce incorrect results."
    )
    key, value = key.to(query.dtype), value.to(query.dtype)
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = (aten.repeat_interleave(t, groups, 1) for t in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = aten.matmul(query, aten.transpose(key, -2, -1)) * factor
    sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    places = _indices(sizes, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if scores.element_size() < 4:
        scores = scores.float()
    if block_mask is not None:
        scores = aten.where(block_mask.mask_mod(*places), scores, float("-inf"))
    unseen = aten.amax(scores, -1, keepdim=True) == float("-inf")
    weights = aten.where(unseen, 0.0, aten.softmax(scores, -1))
    result = aten.matmul(weights.to(value.dtype), value)
    wants_lse = return_lse or (return_aux is not None and return_aux.lse)
    lse = aten.logsumexp(scores, -1) if wants_lse else None
    if return_aux is not None:
        top = aten.amax(scores, -1) if return_aux.max_scores else None
        return result, AuxOutput(lse, top)
    return (result, lse) if return_lse else result
