"""Owns flex_attention: attention whose scores a Python function changes, computed densely.

`score_mod` and `mask_mod` are called once with index tensors that broadcast, so they must be
elementwise, which is what torch compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ..._tensor.device import DeviceLike
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from ...ops.spec import aten

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "create_nested_block_mask", "flex_attention", "noop_mask", "or_masks"]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature = _mask_mod_signature = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """Which results flex_attention gives beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that were asked for; None for others."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True everywhere."""
    return aten.ones((), dtype=_bool(), device=batch.device)


_identity = noop_mask


def _bool() -> Dtype:
    from ..._tensor import dtype

    return dtype.bool


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """True where all are."""

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = mask_mods[0](b, h, q, kv)
        for mod in mask_mods[1:]:
            result = result & mod(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """True where any is."""

    def either(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = mask_mods[0](b, h, q, kv)
        for mod in mask_mods[1:]:
            result = result | mod(b, h, q, kv)
        return result

    return either


def _indices(sizes: tuple[int, int, int, int], device: DeviceLike | None) -> list[Tensor]:
    """For each of batch, head, query and key its index, shaped to broadcast to [B, H, Q, K]."""
    return [
        aten.arange(0, size, device=device).reshape([-1 if i == d else 1 for i in range(4)])
        for d, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: DeviceLike | None = None, **_: object,
) -> Tensor:  # fmt: skip
    """What a mask function says for every place: bool, [B, H, Q, K]."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return aten.expand(mod_fn(*_indices(sizes, device)), sizes)


class BlockMask:
    """A mask function with the lengths it is for."""

    def __init__(
        self,
        mask_mod: Callable[..., Any],
        seq_lengths: tuple[int, int],
        batch: int = 1,
        heads: int = 1,
        block_size: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        device: DeviceLike | None = None,
    ):
        self.mask_mod = mask_mod
        self.seq_lengths = seq_lengths
        self.BLOCK_SIZE = (block_size, block_size) if isinstance(block_size, int) else block_size
        self._leading = (batch, heads)
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._leading, *self.seq_lengths)

    def numel(self) -> int:
        """Places of the mask."""
        total = 1
        for n in self.shape:
            total *= n
        return total

    def to_dense(self) -> Tensor:
        """1 for each block where something is seen, [B, H, Q blocks, K blocks]."""
        mask = self.dense()
        (rows, columns), (q, kv) = self.BLOCK_SIZE, self.seq_lengths
        padded = aten.constant_pad_nd(mask.int(), (0, -kv % columns, 0, -q % rows))
        shape = (*self._leading, -(-q // rows), rows, -(-kv // columns), columns)
        return (padded.reshape(shape).sum((3, 5)) > 0).int()

    def dense(self) -> Tensor:
        """The mask itself: bool, [B, H, Q, K]."""
        return create_mask(self.mask_mod, *self._leading, *self.seq_lengths, device=self.device)

    def sparsity(self) -> float:
        """The share of blocks that are not seen, in percent."""
        return 100 * (1 - float(self.to_dense().float().mean()))

    def to(self, device: DeviceLike | None) -> BlockMask:
        """The mask on another device."""
        return BlockMask(self.mask_mod, self.seq_lengths, *self._leading, self.BLOCK_SIZE, device)


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    **_: object,
) -> BlockMask:
    """A BlockMask of a mask function."""
    return BlockMask(mask_mod, (Q_LEN, KV_LEN), B or 1, H or 1, BLOCK_SIZE, device)


def create_nested_block_mask(*_: object, **__: object) -> NoReturn:
    """Refused: there are no nested tensors."""
    raise NotImplementedError("create_nested_block_mask: mindtorch has no nested tensors")


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(q·kᵀ·scale))·v over [B, H, L, E]; fully masked rows give zeros."""
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = (aten.repeat_interleave(t, groups, 1) for t in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = aten.matmul(query, aten.transpose(key, -2, -1)) * factor
    sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    places = _indices(sizes, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    scores = scores.float()
    if block_mask is not None:
        scores = aten.where(block_mask.mask_mod(*places), scores, float("-inf"))
    lse = aten.logsumexp(scores, -1)
    weights = aten.exp(scores - aten.where(lse == float("-inf"), 0.0, lse)[..., None])
    result = aten.matmul(weights.to(value.dtype), value)
    if return_aux is not None:
        top = aten.amax(scores, -1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, top)
    return (result, lse) if return_lse else result
