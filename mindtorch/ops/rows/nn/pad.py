"""Rows of padding by constant, reflection, replication and wrapping."""

from __future__ import annotations

from functools import lru_cache

from ...limits import reserve
from ...rules import as_images
from ...samples import FLOATS
from ...words import *

Sizes = tuple[int, ...]
_MOST_SHAPES = 1 << 6


class Edges:
    """How the last dims of an array of `ndim` are continued by `padding`, last dim first."""

    sides: list[tuple[int, int, int]]

    def __init__(self, kind: str, ndim: int, padding: Sizes):
        self.kind = kind
        pairs = zip(padding[::2], padding[1::2], strict=True)
        self.sides = [(ndim - 1 - i, left, right) for i, (left, right) in enumerate(pairs)]
        self._places: dict[Sizes, tuple[Any, ...]] = {}

    def shape(self, shape: Sequence[int]) -> Sizes:
        """The padded shape."""
        sizes = list(shape)
        for dim, left, right in self.sides:
            sizes[dim] += left + right
        return tuple(sizes)

    def inner(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Where an array of `shape` stands in the padded one."""
        places = [slice(None)] * len(shape)
        for dim, left, _ in self.sides:
            places[dim] = slice(left, left + shape[dim])
        return tuple(places)

    def parts(self, shape: Sequence[int]) -> list[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """(where it is continued, by what), in an order in which what continues is there."""
        places, parts = list(self.inner(shape)), []
        for dim, left, right in self.sides:
            end = left + shape[dim]
            if self.kind == "reflection":
                first, last = slice(2 * left, left, -1), _backwards(end - 2, end - 2 - right)
            else:
                first, last = slice(left, left + 1), slice(end - 1, end)
            for size, edge, by in ((left, slice(0, left), first), (right, slice(end, None), last)):
                if size:
                    edges, sources = list(places), list(places)
                    edges[dim], sources[dim] = edge, by
                    parts.append((tuple(edges), tuple(sources)))
            places[dim] = slice(None)
        return parts

    def places(self, shape: Sizes) -> tuple[Any, ...]:
        """The padded shape, where an array stands in it, and its parts; remembered."""
        if shape not in self._places:
            if len(self._places) >= _MOST_SHAPES:
                self._places.clear()
            self._places[shape] = self.shape(shape), self.inner(shape), self.parts(shape)
        return self._places[shape]

    def pad(self, x: Array) -> Array:
        """`x` with its edges continued."""
        shape, inner, parts = self.places(x.shape)
        out = np.empty(shape, x.dtype)
        out[inner] = x
        for edge, by in parts:
            out[edge] = out[by]
        return out

    def fold(self, grad: Array, shape: Sizes) -> Array:
        """The adjoint of `pad` for an array of `shape`."""
        sums = grad.copy()
        _, inner, parts = self.places(shape)
        for edge, by in reversed(parts):
            part = sums[edge]
            if self.kind == "replication":  # one element continued over the whole edge
                dim = next(d for d, (a, b) in enumerate(zip(edge, by, strict=True)) if a != b)
                part = part.sum(axis=dim, keepdims=True)
            sums[by] += part
        return sums[inner].copy()


_edges = lru_cache(1 << 8)(Edges)


def _sides(kind: str, like: Tensor, padding: Sizes) -> list[tuple[int, int, Tensor]]:
    """(dim, its size, the place of each padded element in it), last dim first."""
    place = _reflect if kind == "reflection" else _replicate
    sides = []
    for dim, left, right in Edges(kind, like.ndim, padding).sides:
        size = like.shape[dim]
        at = [place(i, size) for i in range(-left, size + right)]
        sides.append((dim, size, aten.tensor(at, device=like.device)))
    return sides


def _continued(kind: str, x: Tensor, padding: Sizes) -> Tensor:
    """`Edges.pad` by calls."""
    for dim, _, places in _sides(kind, x, padding):
        x = aten.index_select(x, dim, places)
    return x


def _folded(kind: str, grad: Tensor, like: Tensor, padding: Sizes) -> Tensor:
    """`Edges.fold` by calls."""
    for dim, size, places in reversed(_sides(kind, like, padding)):
        shape = (*grad.shape[:dim], size, *grad.shape[dim + 1 :])
        zeros = aten.zeros(shape, dtype=grad.dtype, device=grad.device)
        grad = aten.index_add(zeros, dim, places, grad)
    return grad


def _backwards(first: int, stop: int) -> slice:
    return slice(first, stop if stop >= 0 else None, -1)


def _edge_rows(kind: str, n: int) -> None:
    """`reflection_pad1d` and its like, with the gradient that torch has as a row too."""
    name, ascend = f"{kind}_pad{n}d", f"aclnn{kind.capitalize()}Pad{n}d"
    sides = f"int[{2 * n}] padding"
    base = (1, *(4, 3, 4)[:n], 5)

    def padded(self: Geometry, padding: Sizes) -> Geometry:
        if self.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and"
                f" other non-zero dimensions for input, but got: {list(self.shape)}"
            )
        shape = Edges(kind, self.ndim, padding).shape(self.shape)
        return as_images(shape, self) if self.ndim == n + 2 else self.fresh(shape)

    def samples(with_grad: bool) -> list[Sample]:
        return [
            Sample((*([Arg(Edges(kind, n + 2, p).shape(base), d)] if with_grad else []),
                    Arg(base, d), p))
            for p in ((2, 1) * n, (0, 1) * n) for d in FLOATS
        ]  # fmt: skip

    op(
        f"{name}(Tensor self, {sides}) -> Tensor",
        infer=padded,
        cpu=lambda x, padding: _edges(kind, x.ndim, padding).pad(x),
        unsupported={"bool": f"{kind}_pad{n}d"},
        compute="raw",
        lower=lambda x, padding: _continued(kind, x, padding),
        aclnn=call(ascend, "self", "padding", "out"),
        grad={"self": lambda grad, self, padding: getattr(aten, f"{name}_backward")(
            grad, self, padding
        )},
        samples=lambda: samples(False),
        oracle=lambda torch: getattr(torch.ops.aten, name),
        autocast="" if (kind, n) == ("reflection", 3) else "float32 on cpu",
        tolerance="exact",
        surface="none",
        fixed_shape=True,
    )  # fmt: skip
    op(
        f"{name}_backward(Tensor grad_output, Tensor self, {sides}) -> Tensor",
        infer=lambda grad_output, self, padding: (
            as_images(self.shape, self) if self.ndim == n + 2 else self.fresh()
        ),
        cpu=lambda grad, x, padding: _edges(kind, x.ndim, padding).fold(grad, x.shape),
        lower=lambda grad, x, padding: _folded(kind, grad, x, padding),
        aclnn=call(f"{ascend}Backward", "grad_output", "self", "padding", "out"),
        grad={"grad_output": lambda grad, padding: getattr(aten, name)(grad, padding)},
        samples=lambda: samples(True),
        tolerance="accumulated",
        surface="none",
        fixed_shape=True,
    )


for _kind in ("reflection", "replication"):
    for _n in (1, 2, 3):
        _edge_rows(_kind, _n)


@composite(
    "pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
    samples=calls(
        (Arg((2, 3)), (1, 2), "constant", 1.5),
        *((Arg((1, 2, 4)), (2, 1), mode) for mode in ("reflect", "replicate", "circular")),
        Sample((Arg((2, 3)), (1, 1, 1)), error=True),
    ),
    tolerance="accumulated",
)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pads by (left, right) pairs, last dimension first; modes
    constant, reflect, replicate, circular."""
    sizes = tuple(int(size) for size in pad)
    if len(sizes) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(sizes) // 2 > input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(sizes)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return aten.constant_pad_nd(input, sizes, 0.0 if value is None else _as_float(value))
    if mode not in _INDEX:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if (len(sizes), input.dim()) not in _SHAPES:
        raise NotImplementedError(
            f"Padding size {len(sizes)} is not supported for {input.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    row = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if row and min(sizes) >= 0 and input.numel():
        if row == "reflection":
            for i in range(len(sizes) // 2):
                _refuse_reflection(input, input.dim() - 1 - i, *sizes[2 * i : 2 * i + 2])
        padded: Tensor = getattr(aten, f"{row}_pad{len(sizes) // 2}d")(input, sizes)
        return padded
    for i in range(len(sizes) // 2):
        input = _extended(input, input.dim() - 1 - i, sizes[2 * i], sizes[2 * i + 1], mode)
    return input


def _as_float(value: float) -> float:
    """The value as torch's parser hands it on; TypeError in its words for what is none."""
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, complex) or not isinstance(value, int | float):
        kind = type(value).__name__
        raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {kind}")
    return float(value)


_SHAPES = {(2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)}


def _extended(input: Tensor, dim: int, left: int, right: int, mode: str) -> Tensor:
    size = input.size(dim)
    if mode == "reflect":
        _refuse_reflection(input, dim, left, right)
    if mode == "circular" and not (left <= size and right <= size):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if left == 0 and right == 0:
        return input
    if mode == "circular" and min(left, right) < 0:
        input = input.narrow(dim, max(-left, 0), size + min(left, 0) + min(right, 0))
        return _extended(input, dim, max(left, 0), max(right, 0), mode)
    reserve((*input.shape[:dim], size + left + right, *input.shape[dim + 1 :]), input)
    places = [_INDEX[mode](i, size) for i in range(-left, size + right)]
    return input.index_select(dim, aten.tensor(places, device=input.device))


def _refuse_reflection(input: Tensor, dim: int, left: int, right: int) -> None:
    if left >= input.size(dim) or right >= input.size(dim):
        raise RuntimeError(
            f"Argument #{4 + 2 * (input.ndim - 1 - dim)}: Padding size should be less than the"
            " corresponding input dimension, "
            f"but got: padding ({left}, {right}) at dimension {dim} of input {list(input.shape)}"
        )


def _reflect(i: int, size: int) -> int:
    i = abs(i)
    return i if i < size else 2 * (size - 1) - i


def _replicate(i: int, size: int) -> int:
    return min(max(i, 0), size - 1)


def _circular(i: int, size: int) -> int:
    return i % size


_INDEX = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
