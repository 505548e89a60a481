"""Owns NestedTensor: its values and offsets, the symbol for its lengths, what it answers itself.

The shape shown is [B, *outer, j, *inner]: `j` stands for lengths that differ from sample to sample.
`_values` has the shape [*outer, total, *inner]: sample i is at `offsets[i]` of the packed dim, for
`lengths[i]` places, or up to `offsets[i + 1]`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import mindtorch

from .._compat.checks import SymInt
from .._compat.class_names import name_class
from .._functional.queries import jagged
from .._tensor.geometry import Size, geometry
from .._tensor.tensor import Tensor
from .._tensor.untyped_storage import UntypedStorage
from ..utils.weak import WeakIdKeyDictionary

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}  # base names of rows, and of functions that are none
_numbers = itertools.count(1)
SYMBOLS: Any = WeakIdKeyDictionary()
# By offsets that came without it: what the longest sample was said to be, None where nothing was.
BOUNDS: Any = WeakIdKeyDictionary()


class Lengths(SymInt):
    """The size of the ragged dim, printed `j1`: equal to itself alone, whatever the lengths."""

    factor: int
    number: int

    __slots__ = ("factor", "number")

    def __init__(self, number: int, factor: int = 1):
        self.number, self.factor = number, factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lengths) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return hash((self.number, self.factor))

    def __mul__(self, other: int) -> Lengths:
        return Lengths(self.number, self.factor * other)

    __rmul__ = __mul__

    def _compare(self, other: object, least: int) -> bool:
        """Whether it is above a bound: a length of samples is at least 0, torch says 2."""
        if isinstance(other, int) and other <= least:
            return True
        raise ValueError("nested int ordering is indeterminate")

    def __ge__(self, other: object) -> bool:
        return self == other or self._compare(other, 2)

    def __gt__(self, other: object) -> bool:
        return self != other and self._compare(other, 1)

    def __lt__(self, other: object) -> bool:
        return not self >= other

    def __le__(self, other: object) -> bool:
        return not self > other


class NestedTensor(Tensor):
    """A batch of samples of different lengths; made by torch.nested.nested_tensor and its kin."""

    _values: Tensor
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _symbol: Lengths
    _extent: tuple[list[int], list[int]] | None
    _composites: Container[str] = frozenset(
        ("contiguous", "layer_norm", "rms_norm", "scaled_dot_product_attention")
    )
    is_nested = True
    layout = jagged
    __getattribute__ = object.__getattribute__  # its methods are its own: only rows ask
    __hash__ = Tensor.__hash__

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        name = getattr(func, "__name__", str(func))
        if name not in HANDLERS:
            raise NotImplementedError(f"aten.{name}.default")
        return HANDLERS[name](*args, **(kwargs or {}))

    @property
    def shape(self) -> Size:
        packed = self._values.shape
        at = self._ragged_idx
        batch = self._offsets.shape[0] - 1
        return tuple.__new__(Size, (batch, *packed[: at - 1], self._symbol, *packed[at:]))

    def size(self, dim: int | None = None) -> Size | int | Lengths:
        return self.shape if dim is None else self.shape[operator.index(dim)]

    def dim(self) -> int:
        return self._values.dim() + 1

    ndim = property(dim)

    def stride(self, dim: int | None = None) -> tuple[int | Lengths, ...] | int | Lengths:
        packed = self._values.stride()
        strides = (self._symbol * packed[self._ragged_idx - 1], *packed)
        return strides if dim is None else strides[dim]

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """The batch [B, *outer, longest, *inner], filled up with `padding`."""
        padded: Tensor = HANDLERS["to_padded_tensor"](self, padding, output_size)
        return padded

    def numel(self) -> int:
        if self._lengths is None:
            return self._values.numel()
        outer = self._values.numel() // max(1, self._values.shape[self._ragged_idx - 1])
        return sum(self.spans()[1]) * outer

    nelement = numel
    nbytes = property(lambda self: self.numel() * self.element_size())

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    def spans(self) -> tuple[list[int], list[int]]:
        """Where each sample starts in the packed dim, and how long it is."""
        if self._extent is None:
            ends = self._offsets.tolist()
            sizes = [b - a for a, b in itertools.pairwise(ends)]
            lengths = sizes if self._lengths is None else self._lengths.tolist()
            self._extent = ends[:-1], lengths
        return self._extent

    def values(self) -> Tensor:
        return self._values

    def offsets(self) -> Tensor:
        return self._offsets

    def lengths(self) -> Tensor | None:
        return self._lengths

    @property
    def _max_seqlen(self) -> int:
        if self._maybe_max_seqlen is None:
            BOUNDS[self._offsets] = max(self.spans()[1], default=0)
        return self._maybe_max_seqlen or 0

    @property
    def _maybe_max_seqlen(self) -> int | None:
        """The longest sample, None where nobody asked for it."""
        if self._offsets in BOUNDS:
            known: int | None = BOUNDS[self._offsets]
            return known
        return max(self.spans()[1], default=0)

    def padded_length(self) -> int:
        """To what torch pads: the longest sample, all places where it is not known."""
        known = self._maybe_max_seqlen
        return self._values.shape[self._ragged_idx - 1] if known is None else known

    @property
    def _min_seqlen(self) -> int:
        return min(self.spans()[1], default=0)

    def is_contiguous(self, *more: object, memory_format: object = None) -> bool:
        return self._lengths is None and self._values.is_contiguous()

    # Where gradients go is asked of the values.
    @property
    def requires_grad(self) -> bool:
        return bool(self._values.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        """Make the values record gradients, or not."""
        self._values.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keep the gradient of values that were computed."""
        self._values.retain_grad()

    @property
    def grad_fn(self) -> Any:
        return self._values.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._values.is_leaf)

    @property
    def _differentiable(self) -> Tensor:
        """What gradients go to."""
        return self._values

    def _as_gradient(self, gradient: Tensor) -> NestedTensor:
        """A gradient of the values as one of this tensor."""
        return with_values(self, gradient)

    @property
    def grad(self) -> NestedTensor | None:
        gradient = self._values.grad
        return None if gradient is None else self._as_gradient(gradient)

    @grad.setter
    def grad(self, value: NestedTensor | None) -> None:
        self._values.grad = None if value is None else value._values

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """Gradients of the values, for a nested gradient of the same lengths."""
        values = gradient._values if isinstance(gradient, NestedTensor) else gradient
        self._values.backward(values, *args, **kwargs)

    def detach(self) -> NestedTensor:
        return self._as_gradient(self._values.detach())

    data = property(detach)

    def data_ptr(self) -> int:
        return self._values.data_ptr()

    def untyped_storage(self) -> UntypedStorage:
        return self._values.untyped_storage()

    def tolist(self, *more: object) -> object:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *more: object, force: bool = False) -> object:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __array__(self, *_: object, **__: object) -> object:
        return self.numpy()

    def item(self) -> object:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._values.item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(HANDLERS["unbind"](self))

    def __deepcopy__(self, memo: dict[int, object]) -> NestedTensor:
        return self._as_gradient(self._values.detach().clone().requires_grad_(self.requires_grad))

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return _rebuilt, (self._jagged_parts(),)

    def _jagged_parts(self) -> dict[str, Any]:
        """What files of torch's call its parts."""
        return {
            "values": self._values.detach(), "offsets": self._offsets, "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx, "_metadata_cache": {},
            "requires_grad": self.requires_grad,
        }  # fmt: skip

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return self._text()

    def _text(self) -> str:
        history = ""
        if self.grad_fn is not None:
            history = f" grad_fn={self.grad_fn},"
        elif self.requires_grad:
            history = " requires_grad=True,"
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self._offsets},{history}"
            f" contiguous={self.is_contiguous()})"
        )


name_class(Lengths, "SymInt", "torch")
name_class(NestedTensor, "NestedTensor", "torch.nested._internal.nested_tensor")


def make(
    values: Tensor, offsets: Tensor, lengths: Tensor | None = None, ragged_idx: int = 1,
    symbol: Lengths | None = None,
) -> NestedTensor:  # fmt: skip
    """A nested tensor of these parts, unchecked; without a symbol its lengths are new ones."""
    tensor: NestedTensor = object.__new__(NestedTensor)
    shape = (offsets.shape[0] - 1, *values.shape)
    geom = geometry(Size(shape), (0,) * len(shape), 0, values.dtype, values.device)
    tensor._geom = geom
    tensor._storage = values._storage
    tensor._fn, tensor._nr, tensor._base = None, 0, None
    tensor._values, tensor._offsets, tensor._lengths = values, offsets, lengths
    tensor._ragged_idx, tensor._extent = ragged_idx, None
    tensor._symbol = symbol or _symbol_of(offsets if lengths is None else lengths)
    return tensor


def _symbol_of(source: Tensor) -> Lengths:
    """The lengths that offsets or lengths stand for: the same for the same tensor."""
    if source not in SYMBOLS:
        SYMBOLS[source] = Lengths(next(_numbers))
    symbol: Lengths = SYMBOLS[source]
    return symbol


def with_values(
    source: NestedTensor, values: Tensor, ragged_idx: int | None = None
) -> NestedTensor:
    """Other values for the same lengths, on their device."""
    offsets, lengths = source._offsets, source._lengths
    if offsets.device != values.device:
        offsets = offsets.to(values.device)
        lengths = None if lengths is None else lengths.to(values.device)
    ragged_idx = source._ragged_idx if ragged_idx is None else ragged_idx
    tensor = make(values, offsets, lengths, ragged_idx, source._symbol)
    tensor._extent = source._extent
    return tensor


def _rebuilt(parts: dict[str, Any]) -> NestedTensor:
    values = parts["values"].requires_grad_(parts["requires_grad"])
    return make(values, parts["offsets"], parts["lengths"], parts["_ragged_idx"])


def offsets_of(lengths: Sequence[int], device: object) -> Tensor:
    """Where samples of these lengths begin and end [B + 1]."""
    ends = [0, *itertools.accumulate(lengths)]
    return mindtorch.tensor(ends, dtype=mindtorch.int64, device=device)


def places(tensor: NestedTensor) -> tuple[Tensor, Tensor]:
    """For each place that a sample has: where it is packed, and in a [B * longest] batch."""
    starts, lengths = tensor.spans()
    longest = tensor.padded_length()
    packed = [a + i for a, n in zip(starts, lengths, strict=True) for i in range(n)]
    padded = [b * longest + i for b, n in enumerate(lengths) for i in range(n)]
    device = tensor._values.device
    return (
        mindtorch.tensor(packed, dtype=mindtorch.int64, device=device),
        mindtorch.tensor(padded, dtype=mindtorch.int64, device=device),
    )


def samples_of(tensor: NestedTensor) -> Tensor:
    """Which sample each packed place belongs to [total]."""
    starts, lengths = tensor.spans()
    total = tensor._values.shape[tensor._ragged_idx - 1]
    numbers = [0] * total
    for sample, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        numbers[start : start + length] = [sample] * length
    return mindtorch.tensor(numbers, dtype=mindtorch.int64, device=tensor._values.device)
