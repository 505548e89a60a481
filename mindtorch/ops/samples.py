"""Owns sample inputs of rows: described once, made on any device and for torch too.

A row's `samples` is a function without arguments that gives a list of `Sample`. Tensors in them
are `Arg`s (shape, dtype, range, layout), so that one description serves every device
and the oracle.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from .._tensor.tensor import Tensor
from .._tensor.types import Array

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True, slots=True)
class Arg:
    """A tensor to be made: values drawn from [low, high) by a fixed seed.

    `layout`: "contiguous", "strided" (every second element of a larger one), "transposed",
    "offset" (starts inside its storage), "expanded" (stride 0 in dimension 0). `values`, when
    given, are the elements. `grad` false marks an input that is never differentiated.
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    layout: str = "contiguous"
    values: Any = None
    grad: bool = True

    def array(self) -> Array:
        """The elements as a numpy array; bfloat16 as float32."""
        host = {"bfloat16": "float32"}.get(self.dtype, self.dtype)
        if self.values is not None:
            return np.array(self.values, host)
        seed = zlib.crc32(repr((self.shape, self.dtype, self.low, self.high)).encode())
        values = np.random.default_rng(seed).uniform(self.low, self.high, self.shape)
        if host == "bool":
            return values > (self.low + self.high) / 2
        if host.startswith(("int", "uint")):
            low = max(self.low, 0) if host == "uint8" else self.low
            whole = np.random.default_rng(seed).integers(
                int(low), int(self.high) + 1, self.shape, "int8" if host == "int4" else host
            )
            return whole.astype(host, copy=False)
        if host.startswith("complex"):
            return (values + 1j * values[..., ::-1] if values.ndim else values + 1j).astype(host)
        return values.astype(host)

    def make(self, torch: ModuleType, device: str = "cpu") -> Any:
        """The tensor, from mindtorch or torch, in its layout."""
        array = self.array()
        flat = torch.tensor(
            array.reshape(-1).tolist(), dtype=torch.float64 if array.dtype.kind == "f" else None
        )
        whole = flat.to(getattr(torch, self.dtype)).reshape(self.shape)
        return _LAYOUTS[self.layout](torch, whole.to(device))


def _strided(torch: ModuleType, t: Tensor) -> Tensor:
    if not t.ndim:
        return t
    wide = torch.zeros((*t.shape[:-1], t.shape[-1] * 2), dtype=t.dtype, device=t.device)
    wide[..., ::2] = t
    return wide[..., ::2]


def _transposed(torch: ModuleType, t: Tensor) -> Tensor:
    if t.ndim < 2:
        return t
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def _offset(torch: ModuleType, t: Tensor) -> Tensor:
    wide = torch.zeros((t.numel() + 3,), dtype=t.dtype, device=t.device)
    wide[3:] = t.reshape(-1)
    return wide[3:].view(t.shape)


_LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "contiguous": lambda torch, t: t,
    "strided": _strided,
    "transposed": _transposed,
    "offset": _offset,
}
LAYOUTS = tuple(_LAYOUTS)


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: positional and keyword arguments, with `Arg` (or lists of them) for tensors.
    `dtypes`, where given, are all that its first tensors may have."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    error: bool = False
    dtypes: tuple[str, ...] = ()

    def map(self, change: Callable[[Arg], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with `change` applied to every Arg."""
        return (
            [_walk(a, change) for a in self.args],
            {k: _walk(v, change) for k, v in self.kwargs.items()},
        )

    def make(self, torch: ModuleType, device: str = "cpu") -> tuple[list[Any], dict[str, Any]]:
        """The arguments for mindtorch or torch; dtype names in keywords become its dtypes."""
        args, kwargs = self.map(lambda a: a.make(torch, device))
        return args, {k: _dtype_of(torch, k, v) for k, v in kwargs.items()}

    def with_layout(self, layout: str) -> Sample:
        """The same values in another layout."""
        args, kwargs = self.map(lambda a: replace(a, layout=layout))
        return Sample(tuple(args), kwargs, self.error)


def _dtype_of(torch: ModuleType, name: str, value: Any) -> Any:
    return getattr(torch, value) if name == "dtype" and isinstance(value, str) else value


def _walk(value: Any, change: Callable[[Arg], Any]) -> Any:
    if isinstance(value, Arg):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_walk(v, change) for v in value)
    return value


def unary(
    low: float = -2.0, high: float = 2.0, dtypes: Sequence[str] = FLOATS
) -> Callable[..., Any]:
    """Samples of pointwise ops of one tensor, values in [low, high)."""

    def make() -> list[Sample]:
        samples = [Sample((Arg((3, 4), d, low, high),)) for d in dtypes]
        return [
            *samples,
            *(Sample((Arg(s, dtypes[0], low, high),)) for s in ((), (0, 3), (2, 1, 5))),
        ]

    return make


def binary(
    low: float = -2.0, high: float = 2.0, dtypes: Sequence[str] = (*FLOATS, "int64", "uint8")
) -> Callable[..., Any]:
    """Samples of pointwise ops of two tensors or a tensor and a number."""

    def make() -> list[Sample]:
        samples = [
            Sample((Arg((3, 4), d, low, high), Arg((3, 4), d, low, high + 0.5))) for d in dtypes
        ]
        first = dtypes[0]
        shapes = [((3, 1), (4,)), ((), (2, 3)), ((0, 3), (3,)), ((2, 3), (1, 3)), ((), ())]
        samples += [Sample((Arg(a, first, low, high), Arg(b, first, low, high))) for a, b in shapes]
        samples += [Sample((Arg((2, 3), first, low, high), number)) for number in (2, 1.5)]
        if len(dtypes) > 1:
            samples.append(Sample((Arg((2, 3), dtypes[-1], 1, 4), Arg((2, 3), first, low, high))))
        return samples

    return make


def reduction(dtypes: Sequence[str] = ("float32", "float64", "float16")) -> Callable[..., Any]:
    """Samples of `(self, dim, keepdim)` reductions."""

    def make() -> list[Sample]:
        samples = [Sample((Arg((3, 4), d),)) for d in dtypes]
        samples += [Sample((Arg((2, 3, 4), dtypes[0]), dim)) for dim in (0, -1, (0, 2))]
        samples += [Sample((Arg((2, 3), dtypes[0]), 1, True)), Sample((Arg((), dtypes[0]),))]
        return samples

    return make


def views(*calls: tuple[Any, ...]) -> Callable[..., Any]:
    """Samples of view ops: each call is a shape and the other arguments."""

    def make() -> list[Sample]:
        return [Sample((Arg(shape), *rest)) for shape, *rest in calls]

    return make


def calls(*calls: Any) -> Callable[..., Any]:
    """Samples as they are called: tuples of positional arguments, or `Sample`s with keywords."""

    def make() -> list[Sample]:
        return [c if isinstance(c, Sample) else Sample(tuple(c)) for c in calls]

    return make
