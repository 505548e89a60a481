"""Owns BlockMask: which blocks of a mask are seen, in part or wholly, and the function behind it.

It holds the mask by rows of blocks: how many blocks of each row are seen, and their columns first
in a list of all. flex_attention reads the function alone; blocks are what kernels would skip by.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, NoReturn

from ..._tensor import dtype as dt
from ..._tensor.device import DeviceLike
from ..._tensor.tensor import Tensor
from ...ops.spec import aten

DEFAULT_BLOCK_SIZE = 128
_TENSORS = tuple(
    f"{full}{side}_{what}"
    for side in ("kv", "q") for full in ("", "full_") for what in ("num_blocks", "indices")
)  # fmt: skip
_UNBUILT = ("dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt")


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True everywhere."""
    return aten.ones((), dtype=dt.bool, device=batch.device)


def _sliced_mask_mod_error(
    batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> NoReturn:
    """The function of a part of a mask: its indices are not those of the whole."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the"
        " mask_mod attribute is reset. You must set it from the original BlockMask's mask_mod."
        "\n\nIncorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(sliced_mask.mask_mod, offset)  # WRONG!"
        "\n\nCorrect usage:"
        "\n  base_mask = create_block_mask(my_mask_fn, ...)"
        "\n  sliced_mask = base_mask[:, :, block_idx]"
        "\n  sliced_mask.mask_mod = apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
    )


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of blocks: how many are seen, and all columns, these first; int32."""
    dense = dense.int()
    order = aten.sort(dense, dim=-1, descending=True, stable=True)[1]
    return dense.sum(-1).int().contiguous(), order.int().contiguous()


def _dense(counts: Tensor, columns: Tensor) -> Tensor:
    """1 for each block that is among the first of its row's columns; int32."""
    seen = aten.arange(0, columns.shape[-1], device=columns.device) < counts.unsqueeze(-1)
    return aten.scatter(aten.zeros_like(columns), -1, columns.long(), seen.int())


def _cropped(counts: Tensor, columns: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """The upper left corner of a mask by rows."""
    columns, counts = columns[:, :, :rows, :width], counts[:, :, :rows].clamp(max=width)
    return (columns < counts.unsqueeze(-1)).sum(-1).int(), columns


def _shade(blocks: Tensor) -> str:
    share = float(blocks.float().mean())
    return {0.0: " ", 1.0: "█"}.get(share, "░")


class BlockMask:
    """A mask [B, H, Q, K] by blocks of `BLOCK_SIZE` places, and the function it was made of.

    `kv_num_blocks` [B, H, rows] and `kv_indices` [B, H, rows, columns] have the blocks seen in
    part; the `full_` ones those seen wholly; the `q_` ones both by columns of blocks.
    """

    __module__ = "mindtorch.nn.attention.flex_attention"
    dq_write_order = dq_write_order_full = dq_kv_order = dq_kv_order_spt = None
    kv_num_blocks: Tensor
    kv_indices: Tensor

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
        mask_mod: Callable[..., Any] = noop_mask,
        **orders: object,
    ):
        _refuse_orders(orders)
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if kv_num_blocks is None:
            raise AssertionError("kv_num_blocks must be provided")
        _check_pair("kv", full_kv_num_blocks, full_kv_indices)
        _check_pair("q", full_q_num_blocks, full_q_indices)
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        **orders: object,
    ) -> BlockMask:
        """A mask of its rows of blocks; RuntimeError for indices of one dimension."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pair("kv", full_kv_num_blocks, full_kv_indices)
        parts = ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices))
        columns: Any = []
        for counts, indices in parts:
            if compute_q_blocks and counts is not None and indices is not None:
                columns += _ordered(aten.transpose(_dense(counts, indices), -2, -1))
            else:
                columns += [None, None]
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        rows = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        tensors: Any = dict(zip(_TENSORS, (*rows, *columns), strict=True))
        function = noop_mask if mask_mod is None else mask_mod
        _refuse_orders(orders)
        return cls(seq_lengths, **tensors, BLOCK_SIZE=sizes, mask_mod=function)

    @classmethod
    def of_places(
        cls, mask: Tensor, mask_mod: Callable[..., Any], sizes: tuple[int, int], separate: bool
    ) -> BlockMask:
        """The blocks of a mask of booleans [B, H, Q, K]."""
        *leading, q, kv = mask.shape
        rows, columns = sizes
        padded = aten.constant_pad_nd(mask.int(), (0, -kv % columns, 0, -q % rows))
        shape = (*leading, -(-q // rows), rows, -(-kv // columns), columns)
        seen = padded.reshape(shape).sum((3, 5))
        whole = seen == rows * columns
        parts = [*_ordered((seen > 0) & ~whole), *_ordered(whole)]
        rows_of: Any = dict(zip(_TENSORS, parts if separate else _ordered(seen > 0), strict=False))
        return cls.from_kv_blocks(
            **rows_of, BLOCK_SIZE=sizes, mask_mod=mask_mod, seq_lengths=(q, kv)
        )

    def _of(
        self, part: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        mask_mod: Callable[..., Any], lengths: tuple[int, int],
    ) -> BlockMask:  # fmt: skip
        """A mask of parts of the rows."""
        rows = [*part(self.kv_num_blocks, self.kv_indices)]
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            rows += part(self.full_kv_num_blocks, self.full_kv_indices)
        tensors: Any = dict(zip(_TENSORS, rows, strict=False))
        return self.from_kv_blocks(
            **tensors, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod, seq_lengths=lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks; numbers keep their dimension."""
        index = index if isinstance(index, tuple) else (index,)
        padded = (*index, slice(None), slice(None), slice(None))[:3]
        places = tuple(
            slice(i + n * (i < 0), i + n * (i < 0) + 1) if isinstance(i, int) and i >= -n
            else slice(i, i + 1) if isinstance(i, int) else i
            for i, n in zip(padded, self.kv_num_blocks.shape[:3], strict=True)
        )  # fmt: skip
        return self._of(
            lambda counts, columns: (counts[places], columns[places]), _sliced_mask_mod_error,
            self.seq_lengths,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for shorter sequences."""
        rows, width = (
            -(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True)
        )
        return self._of(
            lambda counts, columns: _cropped(counts, columns, rows, width), self.mask_mod,
            (new_q_len, new_kv_len),
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, tensors, sizes of a block and the function; pairs stay pairs without flatten."""
        lengths, sizes = (
            pair if flatten else (pair,) for pair in (self.seq_lengths, self.BLOCK_SIZE)
        )
        tensors = (getattr(self, name) for name in (*_TENSORS, *_UNBUILT))
        return (*lengths, *tensors, *sizes, self.mask_mod)

    def numel(self) -> int:
        """Places of the mask."""
        return prod(self.shape)

    def to_dense(self) -> Tensor:
        """1 for each block where something is seen, [B, H, Q blocks, K blocks]."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self) -> float:
        """The share of places outside of blocks that are seen, in percent; blocks at the ends
        count whole."""
        counts = (self.kv_num_blocks, self.full_kv_num_blocks)
        seen = sum(int(count.sum()) for count in counts if count is not None)
        return 100 * (1 - seen * prod(self.BLOCK_SIZE) / self.numel())

    def to_string(self, grid_size: tuple[int, int] | int = (20, 20), limit: int = 4) -> str:
        """A picture for each batch and head: blocks seen, seen in part of the cell, unseen."""
        dense = self.to_dense()
        size = dense.shape[-2:] if isinstance(grid_size, int) else grid_size
        steps = [max(1, -(-n // most)) for n, most in zip(dense.shape[-2:], size, strict=True)]
        pictures = []
        for count, place in enumerate(product(*map(range, dense.shape[:-2]))):
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

    def __repr__(self) -> str:
        shapes = {name: getattr(getattr(self, name), "shape", None) for name in _TENSORS}
        lines = [f"{name}={shape}" for name, shape in shapes.items()]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}"]
        lines += [f"sparsity={self.sparsity():.2f}%"]
        lines += [f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n" + ",\n".join(f"    {line}" for line in lines) + "\n)"

    def to(self, device: DeviceLike | None) -> BlockMask:
        """The mask on another device."""
        tensors: Any = {name: getattr(self, name) for name in _TENSORS}
        moved: Any = {name: None if t is None else t.to(device) for name, t in tensors.items()}
        sizes, function = self.BLOCK_SIZE, self.mask_mod
        return BlockMask(self.seq_lengths, **moved, BLOCK_SIZE=sizes, mask_mod=function)


def _check_pair(side: str, counts: Tensor | None, indices: Tensor | None) -> None:
    if (counts is None) != (indices is None):
        raise AssertionError(
            f"full_{side}_num_blocks and full_{side}_indices must be both provided or omitted"
        )


def _refuse_orders(orders: dict[str, object]) -> None:
    """NotImplementedError for the orders that CUDA's gradient kernels take."""
    for name, order in orders.items():
        if name not in _UNBUILT:
            raise TypeError(f"BlockMask.__init__() got an unexpected keyword argument '{name}'")
        if order is not None:
            raise NotImplementedError(f"BlockMask: {name} is for kernels that mindtorch has not")
