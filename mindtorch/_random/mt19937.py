"""Owns turning MT19937 words into numbers as torch's cpu kernels do; refuses to know tensors.

Sources: torch's documents do not say; the rules were found by comparing with torch 2.13's output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor.types import Array
from . import sequential
from .generator import Generator

# Significant bits of a uniform draw; narrower types are drawn as float32 and rounded.
_DOUBLE, _FLOAT = 53, 24
_FLOAT64 = np.dtype(np.float64)
_MASKS = {digits: np.uint64((1 << digits) - 1) for digits in (_DOUBLE, _FLOAT)}


def _wide(generator: Generator, n: int) -> Array:
    """n 64-bit words: each from two, the first one high."""
    pairs = generator.words(2 * n).reshape(n, 2)
    return (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]


def unit(generator: Generator, n: int, dtype: np.dtype[Any]) -> Array:
    """n draws from [0, 1) in `dtype`'s precision, as float64 (float32 for narrower ones)."""
    digits = _DOUBLE if dtype == _FLOAT64 else _FLOAT
    if sequential.FILLS:
        return sequential.uniform(generator, n, digits == _FLOAT)
    raw = _wide(generator, n) if digits == _DOUBLE else generator.words(n)
    mantissa = raw & _MASKS[digits]
    host: Any = np.float64 if digits == _DOUBLE else np.float32
    return mantissa.astype(host) * host(2.0**-digits)


def uniform(generator: Generator, n: int, dtype: np.dtype[Any], low: float, high: float) -> Array:
    """n draws from [low, high)."""
    if sequential.FILLS and dtype.itemsize >= 4:
        return _filled(generator, "uniform", n, dtype, low, high)
    x = unit(generator, n, dtype)
    start, end = (x.dtype.type(bound) for bound in (low, high))
    fused = (x.astype(np.float64) * (end - start) + start).astype(x.dtype)
    draws = fused.astype(dtype)
    draws[draws == dtype.type(high)] = dtype.type(low)  # the end is no part of the range
    return draws


def _filled(
    generator: Generator, kind: str, n: int, dtype: np.dtype[Any], a: float, b: float
) -> Array:
    draws = np.empty(n, dtype)
    sequential.draw_into(generator, kind, draws, 0, n, dtype.itemsize, a, b)
    return draws


def normal(generator: Generator, n: int, dtype: np.dtype[Any], mean: float, std: float) -> Array:
    """n draws from a normal distribution: Box-Muller, in blocks of 16 from 16 numbers on."""
    if sequential.FILLS and dtype.itemsize >= 4:
        return _filled(generator, "normal", n, dtype, mean, std)
    if n < 16:
        return normal_one_by_one(generator, n, dtype, mean, std)
    # Narrow dtypes draw block by block; float32 and float64 all at once, with words for the rest.
    draws = unit(generator, n // 16 * 16 if dtype.itemsize == 2 else n, dtype)
    values = _blocks(draws, mean, std)
    if len(values) < n:
        values = np.resize(values, n)
    if n % 16:
        values[n - 16 :] = _blocks(unit(generator, 16, dtype), mean, std)
    return values.astype(dtype, copy=False)


def _blocks(u: Array, mean: float, std: float) -> Array:
    whole = u.shape[0] // 16 * 16
    kind = u.dtype.type
    rows = u[:whole].reshape(-1, 2, 8)
    radius = np.sqrt(kind(-2) * np.log(kind(1) - rows[:, 0]))
    theta = kind(2 * np.pi) * rows[:, 1]
    normals = u.copy()  # what is beyond the last block stays as it was drawn
    pairs = normals[:whole].reshape(-1, 2, 8)
    np.multiply(radius, np.cos(theta), out=pairs[:, 0])
    np.multiply(radius, np.sin(theta), out=pairs[:, 1])
    pairs *= kind(std)
    pairs += kind(mean)
    return normals


def normal_one_by_one(
    generator: Generator, n: int, dtype: np.dtype[Any], mean: float, std: float
) -> Array:
    """n draws from a normal distribution, made in pairs in float64."""
    if sequential.FILLS:
        return sequential.normal(generator, n, mean, std).astype(dtype)
    return (pairs_of_normals(generator, n) * std + mean).astype(dtype)


def pairs_of_normals(generator: Generator, n: int) -> Array:
    """n float64 draws, two from each pair of uniform ones; an odd one waits for the next call."""
    if sequential.FILLS:
        return sequential.normal(generator, n)
    draws = np.empty(n, np.float64)
    start = 0
    if n and generator._spare is not None:
        draws[0], generator._spare, start = generator._spare, None, 1
    u = unit(generator, 2 * -(-(n - start) // 2), _FLOAT64).reshape(-1, 2)
    radius, theta = np.sqrt(-2.0 * np.log1p(-u[:, 1])), 2.0 * np.pi * u[:, 0]
    pairs = np.stack((radius * np.cos(theta), radius * np.sin(theta)), 1).reshape(-1)
    draws[start:] = pairs[: n - start]
    if (n - start) % 2:
        generator._spare = float(pairs[-1])
    return draws


def integers(
    generator: Generator, n: int, low: int, high: int, double: bool | None = None
) -> Array:
    """n int64 draws from [low, high), of two words each where `double` or the span is wide."""
    span = (high - low) % (1 << 64)
    double = span == 0 or (span >= 1 << 28 if double is None else double)
    if sequential.FILLS:
        return sequential.integers(generator, n, low if span else 0, span, double)
    if span == 0:
        return _wide(generator, n).astype(np.int64)
    raw = _wide(generator, n) if double else generator.words(n)
    return ((raw % np.uint64(span)).astype(np.int64) + np.int64(low)).astype(np.int64)


def permutation(generator: Generator, n: int) -> Array:
    """0…n-1 in random order: each place swapped with one not before it."""
    order = np.arange(n, dtype=np.int64)
    if n < 2:
        return order
    raw = generator.words(n - 1)
    for i, word in enumerate(raw.tolist()):
        j = i + word % (n - i)
        order[i], order[j] = order[j], order[i]
    return order


def bernoulli(generator: Generator, n: int, p: Array | float) -> Array:
    """n draws that are true with probability `p`: a number, or n of them in their own precision."""
    digits = p.dtype if isinstance(p, np.ndarray) else _FLOAT64
    return unit(generator, n, digits) < p


def exponential(generator: Generator, n: int, rate: float) -> Array:
    """n draws from an exponential distribution."""
    return -1.0 / rate * np.log1p(-unit(generator, n, _FLOAT64))
