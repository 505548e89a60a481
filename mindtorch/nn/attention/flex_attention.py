"""Owns flex_attention: attention whose scores a Python function changes, computed densely.

`score_mod` and `mask_mod` are called once with index tensors that broadcast, so they must be
elementwise, which is what torch compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, NoReturn

from ..._compat.warn_once import warn_once
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


def _shade(blocks: Tensor) -> str:
    share = float(blocks.float().mean())
    return {0.0: " ", 1.0: "█"}.get(share, "░")


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
        return (self._seen > 0).int()

    @cached_property
    def _seen(self) -> Tensor:
        """How many places of each block are seen."""
        mask = self.dense()
        (rows, columns), (q, kv) = self.BLOCK_SIZE, self.seq_lengths
        padded = aten.constant_pad_nd(mask.int(), (0, -kv % columns, 0, -q % rows))
        shape = (*self._leading, -(-q // rows), rows, -(-kv // columns), columns)
        return padded.reshape(shape).sum((3, 5))

    def dense(self) -> Tensor:
        """The mask itself: bool, [B, H, Q, K]."""
        return create_mask(self.mask_mod, *self._leading, *self.seq_lengths, device=self.device)

    def sparsity(self) -> float:
        """The share of places outside of blocks that are seen, in percent; blocks at the ends
        count whole."""
        seen = int(self.to_dense().sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - seen / self.numel())

    def to_string(self, grid_size: tuple[int, int] | int = (20, 20), limit: int = 4) -> str:
        """A picture for each batch and head: blocks seen, seen in part of the cell, unseen."""
        dense = self.to_dense()
        size = dense.shape[-2:] if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // most)) for n, most in zip(dense.shape[-2:], size, strict=True)]
        pictures = []
        for count, place in enumerate(product(*map(range, self._leading))):
            if count == limit:
                more = (
                    "To print out more, set BlockMask.to_string(limit=N)\nYou can also index"
                    " (BlockMask[batch, head]) to choose a specific batch or head"
                )
                pictures += ["...", more]
                break
            lines = [
                "".join(2 * _shade(part) for part in aten.split(rows, steps[1], -1)) + "\n"
                for rows in aten.split(dense[place], steps[0], 0)
            ]
            pictures.append(f"{place}\n{''.join(lines)}")
        return "\n".join(pictures)

    def __str__(self) -> str:
        head = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
        return head + self.to_string().strip() + "\n)"

    def _blocks(self, full: bool, of_keys: bool) -> tuple[Tensor, Tensor]:
        """Of each row of blocks (each column, for keys): how many are seen, wholly or in part,
        and all their indices, these first; int32, [B, H, rows] and [B, H, rows, columns]."""
        seen = self._seen
        whole = seen == self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        blocks = (whole if full else (seen > 0) & ~whole).int()
        if of_keys:
            blocks = aten.transpose(blocks, -2, -1)
        order = aten.sort(blocks, dim=-1, descending=True, stable=True)[1]
        return blocks.sum(-1).int(), order.int()

    kv_num_blocks = property(lambda self: self._blocks(False, False)[0])
    kv_indices = property(lambda self: self._blocks(False, False)[1])
    full_kv_num_blocks = property(lambda self: self._blocks(True, False)[0])
    full_kv_indices = property(lambda self: self._blocks(True, False)[1])
    q_num_blocks = property(lambda self: self._blocks(False, True)[0])
    q_indices = property(lambda self: self._blocks(False, True)[1])
    full_q_num_blocks = property(lambda self: self._blocks(True, True)[0])
    full_q_indices = property(lambda self: self._blocks(True, True)[1])

    def __repr__(self) -> str:
        names = [f"{full}{side}_{what}" for side in ("kv", "q") for full in ("", "full_")
                 for what in ("num_blocks", "indices")]  # fmt: skip
        lines = [f"{name}={getattr(self, name).shape}" for name in names]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}"]
        lines += [f"sparsity={self.sparsity():.2f}%"]
        lines += [f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n" + ",\n".join(f"    {line}" for line in lines) + "\n)"

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
    warn_once(
        "flex_attention called without torch.compile() - this will use an unfused implementation"
        " that materializes the full scores matrix instead of generating a fused kernel.\n\n"
        "SOLUTION: Use torch.compile(flex_attention)(...)\n\n"
        "If you want to debug your score_mod/mask_mod, you can set:\n"
        "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True\n\n"
        "This will allow you to use print statements or breakpoints. Note: This doesn't work with"
        " the backwards pass and may produce incorrect results."
    )
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
