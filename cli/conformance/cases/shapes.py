"""Owns edge shapes: a sample's sizes replaced alike, so that products and joins still fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

from mindtorch.ops.samples import Arg

_ODD: Final = (31, 33, 17, 65, 7, 9)
_LARGE: Final = (255, 257, 129, 65, 33, 31)
_LEAST: Final = 5  # sizes are not halved below it


class NotApplicableError(Exception):
    """The edge has no meaning for this sample; the message says why."""


def sizes_of(args: Sequence[Any]) -> list[int]:
    """The different sizes above 1 that may change, in order of appearance.

    Sizes of inputs whose values are fixed (indices) stay as they are.
    """
    fixed = {n for arg in args if arg.values is not None for n in arg.shape}
    sizes: list[int] = []
    for arg in args:
        sizes += [n for n in arg.shape if n > 1 and n not in sizes and n not in fixed]
    return sizes


def _mapped(arg: Arg, sizes: dict[int, int]) -> Arg:
    shape = tuple(sizes.get(n, n) for n in arg.shape)
    if arg.values is None or shape == arg.shape:
        return replace(arg, shape=shape)
    raise NotApplicableError("an input's values are fixed, so its shape is")


def _resizing(sizes: Sequence[int], most: int) -> Callable[[Any, Sequence[Any]], Any]:
    """Other sizes, the largest halved until no input has more than `most` elements."""

    def change(arg: Arg, args: Sequence[Any]) -> Arg:
        new = dict(zip(sizes_of(args), sizes, strict=False))
        while new and max(prod(new.get(n, n) for n in a.shape) for a in args) > most:
            longest = max(new, key=lambda n: new[n])
            if new[longest] <= _LEAST:
                break
            new[longest] = new[longest] // 2 | 1
        return _mapped(arg, new)

    return change


def _to_one(arg: Arg, args: Sequence[Any]) -> Arg:
    return _mapped(arg, dict.fromkeys(sizes_of(args), 1))


def _empty(arg: Arg, args: Sequence[Any]) -> Arg:
    sizes = sizes_of(args)
    if not sizes:
        raise NotApplicableError("no dimension to empty")
    return _mapped(arg, {sizes[0]: 0})


def _uniform(shape: tuple[int, ...]) -> Callable[[Any, Sequence[Any]], Any]:
    def change(arg: Arg, args: Sequence[Any]) -> Arg:
        if any(a.shape != args[0].shape or a.values is not None for a in args):
            raise NotApplicableError("the inputs' shapes differ")
        return replace(arg, shape=shape)

    return change


def _stretched(place: int, least: int) -> Callable[[Any, Sequence[Any]], Any]:
    """One size of the first input at least `least`: a multiple of what it was, so that halves,
    heads and groups still divide it."""

    def change(arg: Arg, args: Sequence[Any]) -> Arg:
        first = args[0].shape
        size = first[place] if first else 1
        if size not in sizes_of(args) or (place == 0 and len(first) < 2):
            raise NotApplicableError("this size is fixed")
        new = {size: -(-least // size) * size}
        if max(prod(new.get(n, n) for n in a.shape) for a in args) > _MOST:
            raise NotApplicableError(f"more than {_MOST} elements")
        return _mapped(arg, new)

    return change


def _grown(arg: Arg, args: Sequence[Any]) -> Arg:
    """Every size of the first input beyond 64 at once: some limits show in no size alone."""
    sizes = [n for n in sizes_of(args) if n in args[0].shape]
    if len(sizes) < 1 or len(args[0].shape) < 2:
        raise NotApplicableError("fewer than two sizes may change")
    new = {n: -(-_BEYOND // n) * n for n in sizes}
    if max(prod(new.get(n, n) for n in a.shape) for a in args) > _MOST:
        raise NotApplicableError(f"more than {_MOST} elements")
    return _mapped(arg, new)


_BEYOND: Final = 66
_MOST: Final = 1 << 18
_EDGES: Final[dict[str, Callable[[Any, Sequence[Any]], Any]]] = {
    "sample": lambda arg, _args: arg,
    "empty": _empty,
    "scalar": _uniform(()),
    "ones": _to_one,
    "odd": _resizing(_ODD, 1 << 14),
    "large": _resizing(_LARGE, 1 << 20),
    "long": _stretched(-1, 1032),
    "tall": _stretched(0, 132),
    "grown": _grown,
    "rank8": _uniform((1, 2, 1, 3, 2, 1, 2, 2)),
}


def reshaped(shape: str, arg: Arg, args: Sequence[Any]) -> Arg:
    """`arg`, one of a sample's `args`, with the edge shape; NotApplicableError if it has none."""
    return _EDGES[shape](arg, args)
