"""Owns what a call must move and compute at least; rows say which of these counts is theirs.

A count takes the arguments by the schema's names and the results; of a tensor only `shape` and
`nbytes` are read. A floating-point multiply with its add counts as two operations, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol


class Sized(Protocol):
    """What has a shape and a size: a tensor of any library, or its description."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes read and written at least, and floating-point operations."""

    nbytes: int
    flops: int


# The arguments by the schema's names, and the results.
Count = Callable[[Mapping[str, Any], Sequence[Sized]], Cost]


def sized(values: Any) -> Iterator[Sized]:
    """The tensors among arguments, those in lists too."""
    for value in values:
        if isinstance(value, list | tuple) and not hasattr(value, "shape"):
            yield from sized(value)
        elif hasattr(value, "shape"):
            yield value


def elements(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """Everything read and written once, an operation for each element of the largest tensor."""
    tensors = [*sized(args.values()), *outs]
    return Cost(_bytes(tensors), max((prod(t.shape) for t in tensors), default=0))


def lookup(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """Of the table, the first tensor, only what is looked up is read, once; the indices whole."""
    _, *indices = sized(args.values())
    return Cost(2 * _bytes(outs) + _bytes(indices), sum(prod(t.shape) for t in outs))


def product(left: str, summed: bool = False) -> Count:
    """2 m n k of matrix products; the last dimension of argument `left` is k.

    `summed`: the products of a batch, the first dimension of `left`, are summed.
    """

    def count(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
        shape = args[left].shape or (1,)
        terms = shape[-1] * (shape[0] if summed else 1)
        return Cost(elements(args, outs).nbytes, 2 * terms * sum(prod(t.shape) for t in outs))

    return count


def convolution(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """Every element of the result, or of a transposed one's input, meets one filter."""
    return _filtered(args["input"] if args.get("transposed") else outs[0], args, outs)


def transposed_convolution(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """Every element of the input meets one filter."""
    return _filtered(args["input"], args, outs)


def time_first_convolution(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """Every element of the result meets one filter `[K, C]` of the weight `[K, C, O]`."""
    flops = 2 * prod(outs[0].shape) * prod(args["weight"].shape[:2])
    return Cost(elements(args, outs).nbytes, flops)


def weight_gradient(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """As many as the convolution took, whose result `grad_output` is like."""
    return _filtered(args["grad_output"], args, outs)


def _filtered(meets: Sized, args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    flops = 2 * prod(meets.shape) * prod(args["weight"].shape[1:])
    return Cost(elements(args, outs).nbytes, flops)


def attention(args: Mapping[str, Any], outs: Sequence[Sized]) -> Cost:
    """The two products: of queries with keys, and of what they weigh with values."""
    query, key, value = (args[n].shape for n in ("query", "key", "value"))
    flops = 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    return Cost(elements(args, outs).nbytes, flops)


def _bytes(tensors: Iterable[Sized]) -> int:
    return sum(t.nbytes for t in tensors)
