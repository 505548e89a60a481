"""Draws of MT19937 that are made one by one: `native/module.c`."""

from typing import Any

from .._tensor.types import Array

def fill(
    words: Any, out: Array, offset: int, n: int, width: int, kind: int, a: float, b: float,
    spare: float, /,
) -> float: ...  # fmt: skip
def integers(words: Any, out: Array, n: int, low: int, span: int, twice: bool, /) -> None: ...
def gamma(
    words: Any, source: Array, out: Array, n: int, single: bool, spare: float, /
) -> float: ...
def poisson(words: Any, rates: Array, out: Array, n: int, /) -> None: ...
def binomial(
    words: Any, counts: Array, probs: Array, out: Array, n: int, single: bool, /
) -> None: ...
def permutation(words: Any, out: Array, n: int, /) -> None: ...
