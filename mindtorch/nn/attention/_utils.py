"""Owns what attention's functions refuse of their operands before any kernel sees them."""

from __future__ import annotations

from ..._tensor.tensor import Tensor


def _validate_sdpa_input(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    allow_lowp_kv: bool = False,
) -> None:  # fmt: skip
    """ValueError for operands of several dtypes (unless `allow_lowp_kv`), devices, or vectors."""
    operands = {"query": query, "key": key, "value": value}
    if not allow_lowp_kv and len({t.dtype for t in operands.values()}) > 1:
        _refuse(operands, "dtype", "to have the same dtype")
    if len({t.device for t in operands.values()}) > 1:
        _refuse(operands, "device", "to have the same device type")
    if min(t.dim() for t in operands.values()) < 2:
        raise ValueError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim:"
            f" {query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )


def _refuse(operands: dict[str, Tensor], what: str, wish: str) -> None:
    query, key, value = (f"{name}.{what}: {getattr(t, what)}" for name, t in operands.items())
    raise ValueError(
        f"Expected query, key, and value {wish}, but got {query}, {key}, and {value} instead."
    )
