"""torch.nn.attention.bias: causal masks by their shape, for scaled_dot_product_attention."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import mindtorch

from ..._tensor.device import DeviceLike
from ..._tensor.tensor import Tensor
from ._utils import _validate_sdpa_input

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """In which corner the diagonal of a mask that is not square ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask [queries, keys] that is made when attention is computed."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        bias = Tensor._make_subclass(cls, mindtorch.empty((variant, seq_len_q, seq_len_kv)))
        assert isinstance(bias, CausalBias)
        return bias

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q >"
                " seq_len_kv!",
                stacklevel=2,
            )

    def _materialize(self, device: DeviceLike | None = None) -> Tensor:
        """Which keys each query sees, as booleans."""
        right = self.variant is CausalVariant.LOWER_RIGHT
        shift = self.seq_len_kv - self.seq_len_q if right else 0
        ones = mindtorch.ones(
            self.seq_len_q, self.seq_len_kv, dtype=mindtorch.bool, device=device
        )  # fmt: skip
        return ones.tril(shift)

    @staticmethod
    def _dispatch(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: CausalBias, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        """Attention under the mask; ValueError where it is to be causal too."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        upper = square or attn_mask.variant is CausalVariant.UPPER_LEFT
        if not upper:
            _validate_sdpa_input(query, key, value)
        return mindtorch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=None if upper else attn_mask._materialize(query.device),
            dropout_p=dropout_p, is_causal=upper, scale=scale, enable_gqa=enable_gqa,
        )  # fmt: skip

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if func is mindtorch.nn.functional.scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        plain: Any = super()
        return plain.__torch_function__(func, types, args, kwargs or {})

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return self._materialize().__repr__()


def causal_upper_left(*size: int) -> CausalBias:
    """A mask whose diagonal starts at the first query and key."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    rows, columns = size
    return CausalBias(CausalVariant.UPPER_LEFT, rows, columns)


def causal_lower_right(*size: int) -> CausalBias:
    """A mask whose diagonal ends at the last query and key."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    rows, columns = size
    return CausalBias(CausalVariant.LOWER_RIGHT, rows, columns)
