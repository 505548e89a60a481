"""Owns how tensors are shown: torch's text for values, sizes and suffixes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from .._autograd.forward import tangent_of
from .._autograd.grad_mode import LOCAL
from .._tensor import dtype as dt
from .._tensor.eight_bits import readable
from .._tensor.tensor import Tensor
from .._tensor.types import Array
from ..ops.spec import aten


@dataclass
class __PrinterOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = __PrinterOptions()
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are shown (torch.set_printoptions); widths in characters."""
    selection = dict(_PROFILES.get(profile or "", {}))
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth}  # fmt: skip
    selection.update({k: v for k, v in options.items() if v is not None})
    for name, value in selection.items():
        setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


class _Formatter:
    """Chooses one notation and width for all elements of an array."""

    def __init__(self, array: Array):
        self.floating = array.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max((len(str(v)) for v in array.reshape(-1).tolist()), default=1)
            return
        values = np.abs(array[np.isfinite(array) & (array != 0)].astype(np.float64))
        if values.size == 0:
            return
        low, high = float(values.min()), float(values.max())
        self.whole = bool(np.all(values == np.ceil(values)))
        self.scientific = high / low > 1000.0 or high > 1.0e8
        if not self.whole:
            self.scientific = self.scientific or low < 1.0e-4
        if OPTIONS.sci_mode is not None:
            self.scientific = OPTIONS.sci_mode
        finite = array[np.isfinite(array) & (array != 0)].reshape(-1).tolist()
        self.width = max(1, *(len(self._text(v)) for v in finite))

    def _text(self, value: float) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.whole:
            tail = "" if math.isinf(value) or math.isnan(value) else "."
            return f"{value:.0f}{tail}"
        return f"{value:.{OPTIONS.precision}f}"

    def format(self, value: float) -> str:
        return self._text(value).rjust(self.width)


class _ComplexFormatter:
    def __init__(self, array: Array):
        self.real = _Formatter(array.real)
        self.imaginary = _Formatter(array.imag)
        self.width = self.real.width + self.imaginary.width + 1

    def format(self, value: complex) -> str:
        real, imaginary = self.real.format(value.real), self.imaginary.format(value.imag).lstrip()
        sign = "" if imaginary[0] in "+-" else "+"
        return f"{real}{sign}{imaginary}j"


# What writes one element.
Formatter: TypeAlias = _Formatter | _ComplexFormatter


def _edges(array: Array) -> Array:
    """The parts of an array that a summary shows."""
    for axis in range(array.ndim):
        if array.shape[axis] > 2 * OPTIONS.edgeitems:
            n = OPTIONS.edgeitems
            first, last = np.take(array, range(n), axis), np.take(array, range(-n, 0), axis)
            array = np.concatenate([first, last], axis)
    return array


def _row(array: Array, indent: int, short: bool, formatter: Formatter) -> str:
    per_line = max(1, (OPTIONS.linewidth - indent) // (formatter.width + 2))
    values = array.tolist()
    n = OPTIONS.edgeitems
    if short and len(values) > 2 * n:
        texts = [formatter.format(v) for v in values[:n]]
        texts += [" ..."] + [formatter.format(v) for v in values[-n:]]
    else:
        texts = [formatter.format(v) for v in values]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _block(array: Array, indent: int, short: bool, formatter: Formatter) -> str:
    if array.ndim == 0:
        return str(formatter.format(array.item()))
    if array.ndim == 1:
        return _row(array, indent, short, formatter)
    n = OPTIONS.edgeitems
    if short and len(array) > 2 * n:
        parts = [_block(a, indent + 1, short, formatter) for a in array[:n]]
        parts += ["..."] + [_block(a, indent + 1, short, formatter) for a in array[-n:]]
    else:
        parts = [_block(a, indent + 1, short, formatter) for a in array]
    between = "," + "\n" * int(array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def values_text(tensor: Tensor, indent: int) -> str:
    """The elements as brackets show them, lines after the first indented by `indent`."""
    array = readable(aten._unseen(lambda: tensor.detach().cpu())._array)
    if array.dtype.kind not in "fiubc" or array.dtype == np.float16:
        array = array.astype(np.float32)
    short = array.size > OPTIONS.threshold
    visible = _edges(array) if short else array
    formatter = _ComplexFormatter(visible) if array.dtype.kind == "c" else _Formatter(visible)
    return _block(array, indent, short, formatter)


def _suffixes(tensor: Tensor) -> list[str]:
    geom = tensor._geom
    suffixes = []
    if geom.device.type != "cpu":
        suffixes.append(f"device='{geom.device}'")
    default = dt.get_default_dtype()
    without = geom.device.type == "meta" or not geom.numel  # values to tell the dtype by
    complex_default = dt.complex128 if default is dt.float64 else dt.complex64
    usual = [default, *(() if without else (dt.bool, dt.int64, complex_default))]
    if geom.device.type == "meta" or (geom.numel == 0 and geom.ndim != 1):
        suffixes.append(f"size={tuple(geom.shape)}")
    if geom.dtype not in usual:
        suffixes.append(f"dtype={geom.dtype!r}")
    fn = tensor.grad_fn
    if fn is not None:
        suffixes.append(f"grad_fn=<{fn.name().rpartition('::')[2]}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    tangent = tangent_of(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return suffixes


# Classes that are shown as `tensor(...)`; instances of others show their class.
PLAIN: set[type] = {Tensor}


def tensor_text(tensor: Tensor) -> str:
    """What `print(tensor)` shows."""
    plain = type(tensor) in PLAIN
    prefix = "tensor(" if plain else f"{type(tensor).__name__}("
    if tensor._geom.device.type == "meta":
        body = "..."
    elif tensor._geom.numel == 0:
        body = "[]"
    else:
        body = values_text(tensor, len(prefix))
    text = _add_suffixes(prefix + body, _suffixes(tensor), len(prefix))
    return f"Parameter({text})" if not plain and getattr(tensor, "_is_param", False) else text


def _add_suffixes(
    text: str, suffixes: Sequence[str], indent: int, force_newline: bool = False
) -> str:
    """The values' text and what follows it, on a line of its own where the line would be long."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or length + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
            force_newline = False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


# Set by torch.func: the text of a tensor inside of a function that is being differentiated.
TRANSFORMED: list[Callable[[Tensor], str]] = []


def _repr(self: Tensor, *, tensor_contents: object | None = None) -> str:
    if LOCAL.derivatives and self.requires_grad and TRANSFORMED:
        return TRANSFORMED[0](self)
    return tensor_text(self)


def _format(self: Tensor, spec: str) -> str:
    if self._geom.ndim == 0 and not self.is_meta and self.__class__ is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


Tensor.__repr__ = _repr  # type: ignore[method-assign,assignment]
Tensor.__format__ = _format  # type: ignore[method-assign,assignment]


# torch._tensor_str's names, which libraries print their own tensors with.
PRINT_OPTS = OPTIONS
_tensor_str = values_text
_str_intern = _repr


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Inside, tensors are shown by other options."""
    before = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        for name, value in before.items():
            setattr(OPTIONS, name, value)


def get_printoptions() -> dict[str, Any]:
    """How tensors are shown now."""
    return asdict(OPTIONS)
