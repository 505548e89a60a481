"""Owns patterns of contents: how indices, lengths, masks and routing maps are laid out.

Each maker takes a generator, the pattern's name and numbers, and gives an integer array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.random import Generator

Array = np.ndarray[Any, Any]

PARTS: Final = ("even", "ragged", "empty_first", "empty_middle", "empty_last", "one_has_all",
                "ones")  # fmt: skip


def lengths(rng: Generator, pattern: str, count: int, total: int) -> Array:
    """`count` lengths that sum to `total`."""
    if count == 0:
        return np.zeros(0, np.int64)
    if pattern == "even":
        own = np.full(count, total // count)
        own[: total % count] += 1
        return own
    if pattern == "one_has_all":
        own = np.zeros(count, np.int64)
        own[count // 2] = total
        return own
    if pattern == "ones":
        own = np.minimum(1, np.maximum(0, total - np.arange(count)))
        own[-1] += total - own.sum()
        return own
    own = rng.multinomial(total, rng.dirichlet(np.full(count, 2.0)))
    empty = {"empty_first": 0, "empty_middle": count // 2, "empty_last": count - 1}.get(pattern)
    if empty is not None and count > 1:
        own[(empty + 1) % count] += own[empty]
        own[empty] = 0
    return own


INDICES: Final = ("random", "edges", "sorted", "reversed", "repeated", "gaps")


def indices(rng: Generator, pattern: str, shape: tuple[int, ...], size: int) -> Array:
    """Indices into [0, size)."""
    count = int(np.prod(shape))
    if size <= 0:
        return np.zeros(shape, np.int64)
    own = rng.integers(0, size, count)
    if pattern == "edges" and count:
        own[:: max(1, count - 1)] = 0
        own[-1] = size - 1
    elif pattern == "sorted":
        own = np.sort(own)
    elif pattern == "reversed":
        own = np.sort(own)[::-1]
    elif pattern == "repeated":
        own = np.full(count, own[0] if count else 0)
    elif pattern == "gaps":
        own = own // 2 * 2
    return np.asarray(own).reshape(shape)


SLOTS: Final = ("shuffled", "in_order", "holes", "last")


def slots(
    rng: Generator, pattern: str, shape: tuple[int, ...], size: int, hole: int | None
) -> Array:
    """Places in [0, size), none twice; `holes` leaves some out (`hole` stands there)."""
    count = int(np.prod(shape))
    order = np.arange(size) if pattern == "in_order" else rng.permutation(size)
    if pattern == "last":
        order = np.arange(size)[::-1]
    own = np.resize(order, count) if count > size else order[:count]
    if pattern == "holes" and hole is not None and count:
        own = own.copy()
        own[rng.permutation(count)[: max(1, count // 3)]] = hole
    return np.asarray(own).reshape(shape)


ROUTING: Final = ("random", "skewed", "one_expert", "no_first", "no_last", "in_order")


def routing(rng: Generator, pattern: str, shape: tuple[int, ...], experts: int) -> Array:
    """Experts of tokens, [..., k]: no expert twice in a row of the last axis where k allows it."""
    k = shape[-1] if shape else 1
    tokens = int(np.prod(shape[:-1]))
    first, last = 0, experts
    if pattern == "no_first" and experts > k:
        first = 1
    if pattern == "no_last" and experts > k:
        last = experts - 1
    span = last - first
    if pattern == "one_expert":
        own = np.tile(np.arange(k) % experts, (tokens, 1))
    elif pattern == "in_order":
        own = (np.arange(tokens)[:, None] + np.arange(k)) % experts
    else:
        weights = rng.random((tokens, span)) * (
            np.geomspace(1, 50, span) if pattern == "skewed" else 1.0
        )
        own = first + np.argsort(-weights, axis=1)[:, :k]
        own = np.concatenate([own] * -(-k // max(span, 1)), 1)[:, :k]
    return np.asarray(own).reshape(shape)


MASKS: Final = ("random", "none", "causal", "whole_row", "all_but_one")


def mask(rng: Generator, pattern: str, shape: tuple[int, ...]) -> Array:
    """A mask of 0 and 1 (1: masked)."""
    own = np.zeros(shape, np.int64)
    if pattern == "random":
        own = rng.integers(0, 2, shape)
    elif pattern == "causal" and len(shape) > 1:
        own = np.broadcast_to(np.triu(np.ones(shape[-2:], np.int64), 1), shape).copy()
    elif pattern == "whole_row" and own.size:
        own[..., :1, :] = 1
    elif pattern == "all_but_one" and own.size:
        own[...] = 1
        own[..., 0] = 0
    if pattern in ("random", "all_but_one") and own.size and len(shape):
        own[..., 0] = 0
    return own


def permutation(rng: Generator, pattern: str, count: int) -> Array:
    """0 to count - 1 in some order."""
    own = np.arange(count)
    return (
        own[::-1].copy()
        if pattern == "reversed"
        else rng.permutation(own)
        if pattern == "random"
        else own
    )


Maker = Callable[..., Any]
PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "parts": PARTS, "index": INDICES, "slots": SLOTS, "routing": ROUTING, "mask": MASKS,
    "permutation": ("in_order", "reversed", "random"),
}  # fmt: skip
