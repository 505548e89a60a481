"""Owns patterns of contents: how indices, lengths, masks and routing maps are laid out.

Each maker takes a generator, the pattern's name and numbers, and gives an integer array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
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
        result = np.full(count, total // count)
        result[: total % count] += 1
        return result
    if pattern == "one_has_all":
        result = np.zeros(count, np.int64)
        result[count // 2] = total
        return result
    if pattern == "ones":
        result = np.minimum(1, np.maximum(0, total - np.arange(count)))
        result[-1] += total - result.sum()
        return result
    result = rng.multinomial(total, rng.dirichlet(np.full(count, 2.0)))
    empty = {"empty_first": 0, "empty_middle": count // 2, "empty_last": count - 1}.get(pattern)
    if empty is not None and count > 1:
        result[(empty + 1) % count] += result[empty]
        result[empty] = 0
    return result


INDICES: Final = ("random", "edges", "sorted", "reversed", "repeated", "gaps")


def indices(rng: Generator, pattern: str, shape: tuple[int, ...], size: int) -> Array:
    """Indices into [0, size); `negative`: into [-size, size)."""
    count = int(np.prod(shape))
    if size <= 0:
        return np.zeros(shape, np.int64)
    result = rng.integers(0, size, count)
    if pattern == "edges" and count:
        result[:: max(1, count - 1)] = 0
        result[-1] = size - 1
    elif pattern == "sorted":
        result = np.sort(result)
    elif pattern == "reversed":
        result = np.sort(result)[::-1]
    elif pattern == "repeated":
        result = np.full(count, result[0] if count else 0)
    elif pattern == "gaps":
        result = result // 2 * 2
    elif pattern == "negative":
        result = np.where(np.arange(count) % 2 == 0, result - size, result)
    return np.asarray(result).reshape(shape)


SLOTS: Final = ("shuffled", "in_order", "holes", "last")


def slots(
    rng: Generator, pattern: str, shape: tuple[int, ...], size: int, hole: int | None
) -> Array:
    """Places in [0, size), none twice where there is a `hole` for what has no place; the pattern
    `holes` leaves some more out."""
    count = int(np.prod(shape))
    order = np.arange(size) if pattern == "in_order" else rng.permutation(size)
    if pattern == "last":
        order = np.arange(size)[::-1]
    result = order[:count]
    if count > size:
        result = np.resize(order, count) if hole is None else np.r_[order, [hole] * (count - size)]
    if pattern == "holes" and hole is not None and count:
        result = result.copy()
        result[rng.permutation(count)[: max(1, count // 3)]] = hole
    return np.asarray(result).reshape(shape)


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
        result = np.tile(np.arange(k) % experts, (tokens, 1))
    elif pattern == "in_order":
        result = (np.arange(tokens)[:, None] + np.arange(k)) % experts
    else:
        weights = rng.random((tokens, span)) * (
            np.geomspace(1, 50, span) if pattern == "skewed" else 1.0
        )
        result = first + np.argsort(-weights, axis=1)[:, :k]
        result = np.concatenate([result] * -(-k // max(span, 1)), 1)[:, :k]
    return np.asarray(result).reshape(shape)


MASKS: Final = ("random", "none", "causal", "whole_row", "all_but_one", "padding")


def mask(rng: Generator, pattern: str, shape: tuple[int, ...]) -> Array:
    """A mask of 0 and 1 (1: masked), which differs along every axis where the pattern lets it; also
    `some`, `all`, and `last`: one element."""
    result = np.zeros(shape, np.int64)
    if not result.size:
        return result
    if pattern in ("random", "some"):
        result = rng.integers(0, 2, shape)
    elif pattern == "causal" and len(shape) > 1:
        result = np.broadcast_to(np.triu(np.ones(shape[-2:], np.int64), 1), shape).copy()
    elif pattern == "whole_row" and len(shape) > 1:
        rows = result.reshape(-1, *shape[-2:])
        rows[np.arange(len(rows)), np.arange(len(rows)) % shape[-2]] = 1
    elif pattern == "padding" and shape:
        ends = rng.integers(1, shape[-1] + 1, (shape[0], *(1,) * (len(shape) - 1)))
        result[...] = np.arange(shape[-1]) >= ends
    elif pattern in ("all", "all_but_one"):
        result[...] = 1
    elif pattern == "last":
        result.reshape(-1)[-1] = 1
    if pattern in ("random", "all_but_one") and shape:
        rows = result.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), np.arange(len(rows)) % shape[-1]] = 0
    return result


@lru_cache(4)
def above_diagonal(shape: tuple[int, ...]) -> Array:
    """True above the diagonal; made once, for its usual size is 2048 x 2048."""
    rows, columns = shape
    result: Array = np.arange(rows)[:, None] < np.arange(columns)
    result.flags.writeable = False
    return result


def permutation(rng: Generator, pattern: str, count: int) -> Array:
    """0 to count - 1 in some order."""
    result = np.arange(count)
    return (
        result[::-1].copy()
        if pattern == "reversed"
        else rng.permutation(result)
        if pattern == "random"
        else result
    )


Maker = Callable[..., Any]
PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "parts": PARTS, "index": INDICES, "slots": SLOTS, "routing": ROUTING, "mask": MASKS,
    "permutation": ("in_order", "reversed", "random"),
}  # fmt: skip
