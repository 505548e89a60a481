"""Owns cpu draws that are made one by one, as torch's kernels make them, by `native/module.c`.

How many words of MT19937 most of them take depends on the words, so whole arrays cannot be drawn
at once. `BUILT` is False in a tree that was not built: there draws are those of `rejection` and,
of uniform and normal ones, numpy's by the same rules.
"""

from __future__ import annotations

import numpy as np

from .._autograd.grad_mode import LOCAL, MODES
from .._tensor import dtype as dt
from .._tensor.device import CPU
from .._tensor.tensor import Tensor
from .._tensor.types import Array
from .generator import Generator, default_generator

_NAN = float("nan")

try:
    from . import _sequential as _native

    BUILT = True
    FILLS = hasattr(_native, "fill")  # a library built before these draws lacks them
except ImportError:
    BUILT = FILLS = False

# Distributions by the numbers of `native/module.c`.
_KINDS = {
    name: number
    for number, name in enumerate((
        "uniform", "uniform of 24 digits", "normal one by one", "exponential", "bernoulli",
        "cauchy", "geometric", "log_normal", "normal",
    ))
}  # fmt: skip
_WIDTHS = {dt.float32: 4, dt.float64: 8}
_LEAST_BLOCK = 16


def fill(
    generator: Generator | None, kind: str, tensor: Tensor, a: float = 0.0, b: float = 0.0
) -> bool:
    """Whether a contiguous cpu tensor of float32 or float64 was filled with draws.

    False, with nothing drawn, for other tensors, and where history or a mode looks at the write.
    """
    geom = tensor._geom
    width = _WIDTHS.get(geom.dtype)
    if width is None or not FILLS or geom.device is not CPU or not geom.contiguous:
        return False
    if MODES.active or (tensor._fn is not None and LOCAL.grad):
        return False
    if generator is None:
        generator = default_generator(CPU)
    elif generator.device is not CPU:
        return False
    memory = tensor._storage.memory
    if not memory.flags.writeable:
        return False
    draw_into(generator, kind, memory, geom.offset, geom.numel, width, a, b)
    tensor._storage.value += 1
    return True


def draw_into(
    generator: Generator, kind: str, memory: Array, offset: int, n: int, width: int, a: float,
    b: float,
) -> None:  # fmt: skip
    """Draw `n` elements of `width` bytes into memory, from the element at `offset` on."""
    number = _KINDS[kind]
    if width == 4 and number == 0:
        number = 1
    elif n < _LEAST_BLOCK and kind == "normal":
        number = 2
    spare = generator._spare
    spare = _NAN if spare is None else spare
    spare = generator.step(_native.fill, memory, offset, n, width, number, a, b, spare)
    generator._spare = None if spare != spare else spare


def _operands(*arrays: Array) -> tuple[list[Array], Array]:
    wide = [np.array(a, np.float64, order="C") for a in arrays]  # keeps what has no dims
    return wide, np.empty(wide[0].shape, np.float64)


def uniform(generator: Generator, n: int, single: bool) -> Array:
    """Draws from [0, 1): of 24 digits as float32 where `single`, else of 53 as float64."""
    draws = np.empty(n, np.float32 if single else np.float64)
    draw_into(generator, "uniform", draws, 0, n, draws.itemsize, 0.0, 1.0)
    return draws


def normal(generator: Generator, n: int, mean: float = 0.0, std: float = 1.0) -> Array:
    """Draws from a normal distribution, as float64; a pair's second waits."""
    draws = np.empty(n, np.float64)
    draw_into(generator, "normal one by one", draws, 0, n, 8, mean, std)
    return draws


def integers(generator: Generator, n: int, low: int, span: int, twice: bool) -> Array:
    """int64 draws from `span` numbers from `low` on (0: all), of two words each where `twice`."""
    draws = np.empty(n, np.int64)
    generator.step(_native.integers, draws, n, low, span, twice)
    return draws


def gamma(generator: Generator, concentration: Array, single: bool) -> Array:
    """Gamma draws of rate 1, as float64; `single`: parameters are prepared in float32."""
    (alpha,), draws = _operands(concentration)
    spare = _NAN if generator._spare is None else generator._spare
    spare = generator.step(_native.gamma, alpha, draws, draws.size, single, spare)
    generator._spare = None if spare != spare else spare
    return draws


def poisson(generator: Generator, rates: Array) -> Array:
    """Poisson draws, as float64."""
    (rates,), draws = _operands(rates)
    generator.step(_native.poisson, rates, draws, draws.size)
    return draws


def binomial(generator: Generator, counts: Array, probs: Array, single: bool) -> Array:
    """Binomial draws, as float64; `single`: parameters are prepared in float32."""
    (counts, probs), draws = _operands(counts, probs)
    generator.step(_native.binomial, counts, probs, draws, draws.size, single)
    return draws


def permutation(generator: Generator, n: int) -> Array:
    """0…n-1 in random order: each place swapped with one not before it."""
    order = np.empty(n, np.int64)
    generator.step(_native.permutation, order, n)
    return order
