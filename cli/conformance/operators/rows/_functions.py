"""Functions that formulas of several families use."""

from __future__ import annotations

import math

import numpy as np

from ....judge.precision import Array


def swiglu(x: Array, left: bool) -> Array:
    """silu of one half times the other; `left`: the first half is activated."""
    a, b = np.split(x, 2, -1)
    gate, value = (a, b) if left else (b, a)
    return gate / (1 + np.exp(-gate)) * value


def plus(y: Array, *more: Array | None) -> Array:
    for one in more:
        y = y if one is None else y + one
    return y


def gelu(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
