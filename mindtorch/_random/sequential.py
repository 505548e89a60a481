"""Owns cpu draws that are made one by one, as torch's kernels make them, by `native/module.c`.

How many words of MT19937 most of them take depends on the words, so whole arrays cannot be drawn
at once. `BUILT` is False in a tree that was not built: there draws are those of `rejection` and,
of uniform and normal ones, numpy's by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor.types import Array
from .generator import Generator

try:
    from . import _sequential as _native

    BUILT = True
    FILLS = hasattr(_native, "normal")  # a library built before these draws lacks them
except ImportError:
    BUILT = FILLS = False


def _operands(*arrays: Array) -> tuple[list[Array], Array]:
    wide = [np.array(a, np.float64, order="C") for a in arrays]  # keeps what has no dims
    return wide, np.empty(wide[0].shape, np.float64)


def _run(generator: Generator, function: Callable[..., Any], *args: Any) -> Any:
    addresses = [a.__array_interface__["data"][0] if a.__class__ is np.ndarray else a for a in args]
    return generator.step(function, *addresses)


def uniform(generator: Generator, n: int, single: bool) -> Array:
    """Draws from [0, 1): of 24 digits as float32 where `single`, else of 53 as float64."""
    draws = np.empty(n, np.float32 if single else np.float64)
    _run(generator, _native.uniform, draws, n, single)
    return draws


def normal(generator: Generator, n: int) -> Array:
    """Draws from the standard normal distribution, as float64; a pair's second waits."""
    draws = np.empty(n, np.float64)
    _keep(generator, _run(generator, _native.normal, draws, n, _spare(generator)))
    return draws


def _spare(generator: Generator) -> float:
    return np.nan if generator._spare is None else generator._spare


def _keep(generator: Generator, spare: float) -> None:
    generator._spare = None if spare != spare else spare


def gamma(generator: Generator, concentration: Array, single: bool) -> Array:
    """Gamma draws of rate 1, as float64; `single`: parameters are prepared in float32."""
    (alpha,), draws = _operands(concentration)
    spare = _spare(generator)
    _keep(generator, _run(generator, _native.gamma, alpha, draws, draws.size, single, spare))
    return draws


def poisson(generator: Generator, rates: Array) -> Array:
    """Poisson draws, as float64."""
    (rates,), draws = _operands(rates)
    _run(generator, _native.poisson, rates, draws, draws.size)
    return draws


def binomial(generator: Generator, counts: Array, probs: Array, single: bool) -> Array:
    """Binomial draws, as float64; `single`: parameters are prepared in float32."""
    (counts, probs), draws = _operands(counts, probs)
    _run(generator, _native.binomial, counts, probs, draws, draws.size, single)
    return draws


def permutation(generator: Generator, n: int) -> Array:
    """0…n-1 in random order: each place swapped with one not before it."""
    order = np.empty(n, np.int64)
    _run(generator, _native.permutation, order, n)
    return order
