"""torch.nn.attention.bias: causal masks by their shape, for scaled_dot_product_attention."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import mindtorch

from ..._tensor.device import DeviceLike
from ..._tensor.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """In which corner the diagonal of a mask that is not square ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask [queries, keys] that is made when attention is computed; other functions refuse it."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        empty = mindtorch.empty((seq_len_q, seq_len_kv), device="meta")
        bias = Tensor._make_subclass(cls, empty)
        assert isinstance(bias, CausalBias)
        return bias

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def _materialize(self, device: DeviceLike | None = None) -> Tensor:
        """Which keys each query sees, as booleans."""
        right = self.variant is CausalVariant.LOWER_RIGHT
        shift = self.seq_len_kv - self.seq_len_q if right else 0
        ones = mindtorch.ones(
            self.seq_len_q, self.seq_len_kv, dtype=mindtorch.bool, device=device
        )  # fmt: skip
        return ones.tril(shift)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        raise NotImplementedError(
            "CausalBias only supports scaled_dot_product_attention, got"
            f" {getattr(func, '__name__', func)}"
        )

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return self._materialize().__repr__()


def causal_upper_left(*size: int) -> CausalBias:
    """A mask whose diagonal starts at the first query and key."""
    rows, columns = size
    return CausalBias(CausalVariant.UPPER_LEFT, rows, columns)


def causal_lower_right(*size: int) -> CausalBias:
    """A mask whose diagonal ends at the last query and key."""
    rows, columns = size
    return CausalBias(CausalVariant.LOWER_RIGHT, rows, columns)
