"""Owns torch.nested: batches of samples of different lengths, packed into one tensor (jagged).

A nested tensor of B samples [B, j, *rest] keeps `values` [total, *rest] and `offsets` [B + 1].
Values are an ordinary tensor: gradients go to them, on any device that has their ops. Without a
layout, samples of any sizes are in one buffer (`_strided`), as in torch.
"""

from . import _rules as _rules
from ._build import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip
