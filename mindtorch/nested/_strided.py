"""Owns nested tensors of the strided layout: samples of any sizes, one after another in a buffer.

`_values` [total] is the buffer, to which gradients go; `_shapes` are the samples' sizes. Rows run
on each sample; what torch has not for this layout is refused in its words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import mindtorch

from .._compat.class_names import name_class
from .._compat.layout_refusals import layout_refusal
from .._compat.refusals import without_kernel
from .._compat.warn_once import warn_once
from .._dispatch.overrides import EVERY
from .._functional.queries import strided
from .._tensor.geometry import Size, contiguous_strides, geometry
from .._tensor.tensor import Tensor
from ..ops.spec import Op
from ._rules import _EACH_ELEMENT, _LIKE
from ._tensor import Lengths, NestedTensor

_BATCH_FIRST = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."
# Rows that each sample has with the same arguments, besides those of each element.
_PER_SAMPLE = _EACH_ELEMENT | frozenset(
    ("detach", "double", "float", "half", "cpu", "layer_norm", "linear", "embedding", "masked_fill",
     "native_dropout", "nan_to_num", "to", "type_as", *_LIKE)
)  # fmt: skip
_WITH_DENSE = frozenset(("embedding", "layer_norm", "linear", "masked_fill", "type_as"))
_OF_DIMS = {"softmax": 1, "log_softmax": 1, "transpose": 2, "chunk": 0, "sum": 0, "unsqueeze": 1,
            "squeeze": 1}  # fmt: skip


class StridedNestedTensor(NestedTensor):
    """A batch of samples; made by torch.nested.nested_tensor without a layout."""

    _shapes: tuple[Size, ...]
    _composites = EVERY
    layout = strided

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return _call(getattr(func, "__name__", str(func)), func, args, kwargs or {}, False)

    @staticmethod
    def _row_call(op: Op, form: str, raw: Sequence[Any]) -> Any:
        run = op.entry("aten")
        return _call(op.base_name, run, tuple(raw), {}, op.family == "pointwise", form)

    def parts(self) -> list[Tensor]:
        """Views of the samples."""
        counts = [prod(shape) for shape in self._shapes]
        flat = mindtorch.split(self._values, counts) if counts else ()
        return [f.view(shape) for f, shape in zip(flat, self._shapes, strict=True)]

    def _as_gradient(self, gradient: Tensor) -> StridedNestedTensor:
        return _make(gradient, self._shapes)

    @property
    def shape(self) -> Size:
        raise RuntimeError(_BATCH_FIRST.format("sizes"))

    def size(self, dim: int | None = None) -> Size | int | Lengths:
        if dim is None:
            return self.shape
        if not -self.dim() <= operator.index(dim) < self.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.dim()},"
                f" {self.dim() - 1}], but got {dim})"
            )
        dim %= self.dim()
        sizes = {len(self._shapes)} if dim == 0 else {shape[dim - 1] for shape in self._shapes}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def dim(self) -> int:
        return 1 + (len(self._shapes[0]) if self._shapes else 0)

    ndim = property(dim)

    def stride(self, dim: int | None = None) -> tuple[int | Lengths, ...] | int | Lengths:
        raise RuntimeError(_BATCH_FIRST.format("strides"))

    def numel(self) -> int:
        return self._values.numel()

    nelement = numel

    def __len__(self) -> int:
        return len(self.shape)

    def values(self) -> Tensor:
        return self._values.detach()

    def is_contiguous(self, *more: object, memory_format: object = None) -> bool:
        return True

    def _nested_tensor_size(self) -> Tensor:
        return mindtorch.tensor([list(shape) for shape in self._shapes])

    def _nested_tensor_strides(self) -> Tensor:
        return mindtorch.tensor([list(part.stride()) for part in self.parts()])

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return mindtorch.tensor([part.storage_offset() for part in self.parts()])

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The samples."""
        if dim:
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension"
                               f" {dim} instead.")  # fmt: skip
        return tuple(self.parts())

    def __getitem__(self, key: object) -> Any:
        first = key[0] if isinstance(key, tuple) and key else key
        if isinstance(first, int) and not -len(self._shapes) <= first < len(self._shapes):
            raise IndexError(
                f"index {first} is out of bounds for dimension 0 with size {len(self._shapes)}"
            )
        if isinstance(key, int):
            return self.parts()[key]
        if isinstance(key, tuple) and key and isinstance(key[0], int):
            return self.parts()[key[0]][key[1:]]
        raise _unsupported("slice.Tensor")

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.parts())

    def tolist(self, *more: object) -> object:
        raise RuntimeError(_BATCH_FIRST.format("strides"))

    def numpy(self, *more: object, force: bool = False) -> object:
        raise RuntimeError(_BATCH_FIRST.format("sizes"))

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """The batch [B, *longest] or [*output_size], filled up with `padding`."""
        longest = [max(sizes) for sizes in zip(*self._shapes, strict=True)]
        inner = list(output_size)[1:] if output_size is not None else longest
        if len(inner) != len(longest):
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not"
                " supported."
            )
        if any(a < b for a, b in zip(inner, longest, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not"
                " supported."
            )
        padded = []
        for part in self.parts():
            room = [p for n, s in zip(inner, part.shape, strict=True) for p in (n - s, 0)]
            padded.append(mindtorch.nn.functional.pad(part, room[::-1], value=padding))
        rows = next(iter(output_size)) - len(padded) if output_size is not None else 0
        padded += [mindtorch.full_like(padded[0], padding)] * rows
        return mindtorch.stack(padded)

    def reshape(self, *size: Any) -> StridedNestedTensor:
        """Each sample in another shape; -1 keeps what differs between them."""
        sizes = list(size[0]) if len(size) == 1 and isinstance(size[0], tuple | list) else [*size]
        if not sizes or sizes[0] != len(self._shapes):
            raise RuntimeError(
                "view: For now nested view cannot change or infer the implicit batch dimension"
            )
        inner, views = sizes[1:], []
        for part in self.parts():
            alone = inner.count(-1) == 1
            shape = [part.shape[i] if n == -1 and i < part.ndim and alone else n
                     for i, n in enumerate(inner)]  # fmt: skip
            if -1 not in shape and prod(shape) != part.numel():
                raise RuntimeError(f"shape '{sizes}' is invalid for input of size {part.numel()}")
            views.append(part.reshape(shape))
        return join(views)

    view = reshape

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return _rebuilt, (self._values.detach(), self._shapes, self.requires_grad)

    def _saved_parts(self) -> tuple[Tensor, ...]:
        """The buffer, and the sizes, strides and offsets of its parts."""
        strides = [contiguous_strides(shape) for shape in self._shapes]
        offsets = list(accumulate(map(prod, self._shapes), initial=0))[:-1]
        parts = (list(self._shapes), strides, offsets)
        numbers = (mindtorch.tensor(p, dtype=mindtorch.int64) for p in parts)
        return (self._values.detach(), *numbers)

    def _text(self) -> str:
        body = ",\n".join("  " + repr(p).replace("\n", "\n  ") for p in self._shown())
        end = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ""
        if self.grad_fn is None and self.requires_grad:
            end = ", requires_grad=True"
        return f"nested_tensor([\n{body}\n]{end})"

    def _shown(self) -> list[Tensor]:
        return [p.detach().requires_grad_(self.requires_grad) for p in self.parts()]


def _make(values: Tensor, shapes: Sequence[Size]) -> StridedNestedTensor:
    tensor: StridedNestedTensor = object.__new__(StridedNestedTensor)
    shape = Size((len(shapes), *(shapes[0] if shapes else ())))
    tensor._geom = geometry(shape, (0,) * len(shape), 0, values.dtype, values.device)
    tensor._storage = values._storage
    tensor._fn, tensor._nr, tensor._base = None, 0, None
    tensor._values, tensor._shapes = values, tuple(shapes)
    return tensor


def _rebuilt(values: Tensor, shapes: Sequence[Size], requires: bool) -> StridedNestedTensor:
    return _make(values.requires_grad_(requires), shapes)


def join(samples: Sequence[Tensor]) -> StridedNestedTensor:
    """Samples in one buffer; RuntimeError for samples of different dims."""
    warn_once(
        "The PyTorch API of nested tensors is in prototype stage and will change in the near"
        " future. We recommend specifying layout=torch.jagged when constructing a nested tensor,"
        " as this layout receives active development, has better operator coverage, and works"
        " with torch.compile."
    )
    for i, sample in enumerate(samples):
        if sample.dim() != samples[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension"
                f" {sample.dim()} for Tensor at index {i} and dimension {samples[0].dim()} for"
                " Tensor at index 0."
            )
    flat = [s.reshape(-1) for s in samples]
    values = mindtorch.cat(flat) if flat else mindtorch.empty(0)
    return _make(values, [s.shape for s in samples])


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(without_kernel(name, "NestedTensorCPU"))


def _call(
    name: str, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    each: bool, form: str = "function",
) -> Any:  # fmt: skip
    """A function on each sample; dims that count the batch are one less there."""
    alike = form != "inplace" and name not in _WHOLE and name not in _OF_DIMS
    if alike and (error := layout_refusal("NestedTensor", "CPU", name, args)):
        raise error
    shapes = {a._shapes for a in args if isinstance(a, StridedNestedTensor)}
    if len(shapes) > 1 and (each or form == "inplace"):
        end = "_" if form == "inplace" else ""
        raise RuntimeError(f"{name}{end} does not support broadcasting when given a NestedTensor")
    if form == "inplace" or (name.endswith("_") and not name.endswith("__")):
        for i, part in enumerate(_first(args).parts()):
            _of_sample(run if form != "inplace" else _inplace(run), i, (part, *args[1:]), kwargs)
        return _first(args)
    if name in _WHOLE:
        return _WHOLE[name](*args, **kwargs)
    if name in _OF_DIMS:
        args = _inner_dims(name, args)
    elif name == "equal" or (not each and name not in _PER_SAMPLE):
        raise _unsupported(name)
    if name not in _WITH_DENSE:
        _refuse_dense(args)
    if len({*map(len, shapes)}) > 1:
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    results = [_of_sample(run, i, args, kwargs) for i in range(len(_first(args)._shapes))]
    if results and isinstance(results[0], tuple | list):
        return tuple(join(samples) for samples in zip(*results, strict=True))
    return join(results)


def _inplace(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda part, *args, **kwargs: part.copy_(run(part, *args, **kwargs))


def _first(args: Sequence[Any]) -> StridedNestedTensor:
    flat = [a for v in args for a in (v if isinstance(v, tuple | list) else (v,))]
    return next(a for a in flat if isinstance(a, StridedNestedTensor))


def _of_sample(run: Callable[..., Any], i: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return run(*[a.parts()[i] if isinstance(a, StridedNestedTensor) else a for a in args], **kwargs)


def _refuse_dense(args: Sequence[Any]) -> None:
    """Two operands of which one is dense and more than a number."""
    if any(isinstance(a, Tensor) and not a.is_nested and a.ndim for a in args[:2]):
        raise RuntimeError(
            "Expected both self and other to be nested, but got a nested self and non-nested other"
        )


def _inner_dims(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    self, rest = _first(args), list(args[1:])
    dims = self.dim() + (name == "unsqueeze")
    if name == "sum":
        if not rest or rest[0] in (None, ()):
            raise _unsupported("sum")
        along = rest[0] if isinstance(rest[0], tuple | list) else (rest[0],)
        for d in along:
            if d % dims != dims - 1:
                raise RuntimeError(
                    "NestedTensor can only be reduced across the last dimension for now got"
                    f" dimension {d} instead."
                )
        if len(rest) < 2 or not rest[1]:
            raise RuntimeError("NestedTensor always requires keepdim=True for now.")
        return (self, tuple(d % dims - 1 for d in along), *rest[1:])
    at = 1 if name == "chunk" else 0
    for i in range(at, at + max(1, _OF_DIMS[name])):
        dim = rest[i] % dims
        if dim == 0 and name == "transpose":
            raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
        if name == "chunk" and dim != dims - 1:
            raise RuntimeError(
                "Chunk for nested tensors is currently only supported for the last dimension."
            )
        if dim == 0 and name == "squeeze":
            raise RuntimeError(
                "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the"
                " moment if you need this feature, please open an issue on github describing your"
                " use case."
            )
        if dim == 0:
            raise RuntimeError(f"Cannot apply {name} across nested dimension 0")
        rest[i] = dim - 1
    return (self, *rest)


def _matmul(self: Tensor, other: Tensor) -> StridedNestedTensor:
    if not (isinstance(self, StridedNestedTensor) and isinstance(other, StridedNestedTensor)):
        mine, theirs = ("nested", "non-nested")[:: 1 if self.is_nested else -1]
        raise RuntimeError(f"Expected both to be nested, but got a {mine} self and {theirs} other")
    pairs = zip(self.parts(), other.parts(), strict=True)
    return join([mindtorch.matmul(a, b) for a, b in pairs])


def _attention(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> StridedNestedTensor:
    attend = mindtorch.nn.functional.scaled_dot_product_attention
    return join([attend(*sample, *rest) for sample in zip(query, key, value, strict=True)])


def _cat(tensors: Sequence[StridedNestedTensor], dim: int = 0) -> StridedNestedTensor:
    if dim:
        raise RuntimeError("cat: dim must be 0 for nested tensors")
    return join([part for t in tensors for part in t.parts()])


def _narrow(self: StridedNestedTensor, dim: int, start: int, length: int) -> StridedNestedTensor:
    if dim % self.dim():
        return join([part.narrow(dim % self.dim() - 1, start, length) for part in self.parts()])
    return join(self.parts()[start : start + length])


def _select(self: StridedNestedTensor, dim: int, index: int) -> Any:
    if dim % self.dim() == 0:
        return self.parts()[index]
    return join([part.select(dim % self.dim() - 1, index) for part in self.parts()])


name_class(StridedNestedTensor, "Tensor", Tensor.__module__)
_WHOLE: dict[str, Callable[..., Any]] = {
    "matmul": _matmul, "bmm": _matmul, "scaled_dot_product_attention": _attention, "cat": _cat,
    "select": _select,
    "narrow": _narrow,
}  # fmt: skip
_WHOLE |= {
    name: vars(StridedNestedTensor)[name]
    for name in ("unbind", "to_padded_tensor", "reshape", "view", "values")
}


def _by_function(name: str) -> Callable[..., Any]:
    """A method that the jagged layout has of its own, as the function of torch."""
    return lambda self, *args, **kwargs: getattr(mindtorch, name)(self, *args, **kwargs)


def _absent(name: str) -> property:
    """What the jagged layout alone has."""

    def refuse(self: object) -> object:
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    return property(refuse)


for _name in ("offsets", "lengths"):
    setattr(StridedNestedTensor, _name, _absent(_name))
for _name in {*_OF_DIMS, "matmul", "bmm", "select", "narrow", "split", "flatten", "permute"}:
    setattr(StridedNestedTensor, _name, _by_function(_name))
