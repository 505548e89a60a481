"""Attention over sequences in float64, the reference of several kernels."""

from typing import Any

import numpy as np


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    hidden: np.ndarray | None = None,
    shift: Any = 0,
    sink: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of one sequence [rows, heads, depth]: the value, and each row's maximum and sum."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t.astype(np.float64), group, 1) for t in (k, v))
    s = np.einsum("qnd,knd->nqk", q.astype(np.float64), k) * scale + shift
    if hidden is not None:
        s = np.where(hidden, -np.inf, s)
    top = s.max(-1) if s.size else np.zeros(s.shape[:2])
    extra = 0.0
    if sink is not None:
        top = np.maximum(top, sink[:, None])
        extra = np.exp(sink[:, None] - top)
    p = np.exp(s - top[..., None])
    total = p.sum(-1) + extra
    return np.einsum("nqk,knd->qnd", p / total[..., None], v), top, total


def causal(queries: int, keys: int) -> np.ndarray:
    return np.arange(keys)[None] > np.arange(queries)[:, None] + keys - queries
