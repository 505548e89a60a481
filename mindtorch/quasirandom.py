"""Owns Sobol sequences: points that fill a cube evenly, scrambled where that is asked for.

Direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30 (2008), as scipy carries them (`new-joe-kuo-6.21201`). Points
in Gray code order: I. A. Antonov and V. M. Saleev (1979). Scrambles: J. Matousek, "On the
L2-discrepancy for anchored boxes", J. Complexity 14 (1998).
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

import mindtorch as torch

from ._random.generator import Generator
from ._tensor.dtype import dtype as Dtype
from ._tensor.tensor import Tensor

__all__ = ["SobolEngine"]

Ints = npt.NDArray[np.int64]


@cache
def _table() -> tuple[Ints, Ints]:
    """Primitive polynomials [D], and the first direction numbers of each [D, 18]."""
    file = resources.files("scipy.stats") / "_sobol_direction_numbers.npz"
    with resources.as_file(file) as path, np.load(path) as numbers:
        return numbers["poly"].astype(np.int64), numbers["vinit"].astype(np.int64)


def _directions(dimension: int, bits: int) -> Ints:
    """Direction numbers [dimension, bits], each shifted to its place."""
    polynomials, first = _table()
    numbers = np.ones((dimension, bits), np.int64)
    for d in range(1, dimension):
        polynomial = int(polynomials[d])
        degree = polynomial.bit_length() - 1
        v = numbers[d]
        v[:degree] = first[d, :degree]
        taps = [k for k in range(degree) if polynomial >> (degree - 1 - k) & 1]
        for j in range(degree, bits):
            v[j] = v[j - degree]
            for k in taps:
                v[j] ^= v[j - k - 1] << (k + 1)
    return numbers << np.arange(bits - 1, -1, -1)


class SobolEngine:
    """Draws Sobol points in `dimension` dimensions, at most 21201; scrambled, of a seed or not."""

    quasi: Tensor
    shift: Tensor
    sobolstate: Tensor

    seed: int | None
    scramble: bool
    dimension: int
    num_generated: int

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = torch.from_numpy(_directions(dimension, self.MAXBIT))
        if scramble:
            self._scramble()
        else:
            self.shift = torch.zeros(dimension, dtype=torch.int64)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """The next `n` points [n, dimension]."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        count = n - int(self.num_generated == 0)
        if isinstance(count, float):
            raise TypeError(
                "_sobol_engine_draw(): argument 'n' (position 2) must be int, not float"
            )
        if count < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {count}:"
                f" [{count}, {self.dimension}]"
            )
        if self.num_generated == 0:
            result = self._first_point.to(dtype)
            if count:
                result = torch.cat((result, self._next(count, 0).to(dtype)), dim=-2)
        else:
            result = self._next(n, self.num_generated - 1).to(dtype)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """The next 2**m points; ValueError where the number drawn so far is no power of 2 then."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2."
                f" {self.num_generated} points have been previously generated, then:"
                f" n={self.num_generated}+2**{m}={total}. If you still want to do this, please use"
                " 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        start = self.num_generated
        first, count = (0, n - 1) if start == 0 else (start - 1, n)
        self.quasi ^= torch.from_numpy(self._between(first, first + count))
        self.num_generated += n
        return self

    def _between(self, first: int, last: int) -> Ints:
        """What the points `first` and `last`, counted from 0, differ in."""
        changed = (first ^ first >> 1) ^ (last ^ last >> 1)
        bits = [j for j in range(self.MAXBIT) if changed >> j & 1]
        state: Ints = self.sobolstate.numpy()
        return np.bitwise_xor.reduce(state[:, bits], axis=1, initial=0)

    def _next(self, n: int, first: int) -> Tensor:
        """The `n` points after the one numbered `first`, as fractions in float64."""
        numbers = np.arange(first + 1, first + n + 1, dtype=np.int64)
        lowest = np.log2(numbers & -numbers).astype(np.int64)
        state: Ints = self.sobolstate.numpy()
        steps = np.bitwise_xor.accumulate(state.T[lowest], axis=0)
        points = steps ^ self.quasi.numpy()
        if n:
            self.quasi = torch.from_numpy(points[-1].copy())
        return torch.from_numpy(points * 2.0**-self.MAXBIT)

    def _scramble(self) -> None:
        generator: Generator | None = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        shape = (self.dimension, self.MAXBIT)
        shifts = torch.randint(2, shape, generator=generator)
        self.shift = torch.mv(shifts, torch.pow(2, torch.arange(0, self.MAXBIT)))
        lower = torch.randint(2, (*shape, self.MAXBIT), generator=generator).tril()
        self._multiply(lower.numpy())

    def _multiply(self, lower: Any) -> None:
        """Direction numbers, as vectors of bits, times a lower triangular matrix per dimension."""
        places = np.arange(self.MAXBIT - 1, -1, -1)
        diagonal = np.arange(self.MAXBIT)
        lower = lower.copy()
        lower[:, diagonal, diagonal] = 1
        rows = (lower << places).sum(-1)  # [D, bits]: each row as a number
        state: Ints = self.sobolstate.numpy()
        both = rows[:, :, None] & state[:, None, :]
        odd = np.zeros_like(both)
        for bit in range(self.MAXBIT):
            odd ^= both >> bit & 1
        self.sobolstate = torch.from_numpy((odd << places[:, None]).sum(1))

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{self.__class__.__name__}({', '.join(words)})"
