"""Owns MaskedTensor: elements beside a mask of those that count; by coordinates or compressed rows
both have the same places.

Functions of one element act on all elements, views on both parts, reductions on what counts.
Source of what is allowed: torch.masked.maskedtensor (torch 2.13).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import mindtorch

from .._autograd.node import Node
from .._compat.class_names import name_class
from .._functional.queries import layout as Layout, sparse_coo, sparse_csr, strided
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..sparse._tensor import SparseTensor, with_values
from . import reductions

Operator: TypeAlias = Callable[..., Any]
_UNARY_NAMES = """
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh
    arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv
    exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg
    negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh
    sqrt square tan tanh trunc
"""
_UNARY = frozenset(_UNARY_NAMES.split())
_BINARY_NAMES = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    div divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub
    subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum
    fmax fmin not_equal
"""
_BINARY = frozenset(_BINARY_NAMES.split())
_BOTH_PARTS_NAMES = """
    select transpose split t slice index expand view _unsafe_view _reshape_alias cat unsqueeze
    unfold im2col col2im stack select_backward slice_backward
"""
_BOTH_PARTS = frozenset(_BOTH_PARTS_NAMES.split())
_REDUCTIONS = frozenset(
    ("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std")
)
_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future."
    " Please open a Github issue for features requests and see our documentation on the"
    " torch.masked module for further information about the project."
)
_KINDS = ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64")


class MaskedTensor(Tensor):
    """`data` and a bool `mask` of its shape; where it is false, the element does not count.

    TypeError for other than tensors, dtypes without numbers and masks that are not bool;
    ValueError for a mask of another shape.
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(
        cls: type[MaskedTensor], data: Tensor, mask: Tensor, requires_grad: bool = False
    ) -> MaskedTensor:
        for name, value in (("data", data), ("mask", mask)):
            if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn(_PROTOTYPE, stacklevel=2)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad."
                " To avoid this, you can use data.detach().clone()",
                stacklevel=2,
            )
        data, mask = _refuse(*_of_same_places(data, mask))
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        return _make(data.detach().clone().requires_grad_(requires_grad), mask.clone())

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False):
        """All is done in `__new__`."""

    @property
    def requires_grad(self) -> bool:
        return bool(self._masked_data.requires_grad)

    @property
    def grad_fn(self) -> Node | None:
        return self._masked_data.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._masked_data.is_leaf)

    @property
    def _differentiable(self) -> Tensor:
        """What gradients go to."""
        return self._masked_data

    def _as_gradient(self, gradient: Tensor) -> MaskedTensor:
        return _make(gradient, self._masked_mask)

    @property
    def grad(self) -> MaskedTensor | None:
        gradient = self._masked_data.grad
        return None if gradient is None else self._as_gradient(gradient)

    @grad.setter
    def grad(self, value: MaskedTensor | None) -> None:
        self._masked_data.grad = None if value is None else value._masked_data

    def backward(
        self, gradient: Tensor | None = None, retain_graph: bool | None = None,
        create_graph: bool = False, inputs: Any = None,
    ) -> None:  # fmt: skip
        """Gradients of what led here."""
        self._masked_data.backward(_data_of(gradient), retain_graph, create_graph, inputs)

    def __getitem__(self, key: Any) -> MaskedTensor:
        return _make(self._masked_data[key], self._masked_mask[key])

    def get_data(self) -> Tensor:
        """All elements, those that do not count too."""
        return self._masked_data if self.requires_grad else self._masked_data.detach()

    def get_mask(self) -> Tensor:
        """Which elements count."""
        return self._masked_mask

    def to_tensor(self, value: float) -> Tensor:
        """An ordinary tensor with `value` where an element does not count."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    @property
    def layout(self) -> Layout:
        return self._masked_data.layout

    def is_sparse_coo(self) -> bool:
        return self.layout is sparse_coo

    def _laid_out(self, kind: Layout) -> MaskedTensor:
        data, mask = self._masked_data, self._masked_mask
        if self.layout is kind:
            return self
        if self.layout is sparse_csr:
            raise RuntimeError(
                "sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got"
                " Sparse"
            )
        places = mask.to_sparse(layout=kind)
        return _make(data.sparse_mask(places), places)

    def to_sparse(self, *dims: int) -> MaskedTensor:
        """What counts, by coordinates."""
        return self._laid_out(sparse_coo)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> MaskedTensor:
        """What counts, by compressed rows."""
        return self._laid_out(sparse_csr)

    def to_dense(self) -> MaskedTensor:
        """All elements, zero where none are kept."""
        return _make(self._masked_data.to_dense(), self._masked_mask.to_dense())

    def __repr__(self, *, tensor_contents: object = None) -> str:
        data, mask = self._masked_data.to_dense(), self._masked_mask.to_dense()
        if self.dim() == 0:
            return f"MaskedTensor({_text(data.item()) if mask else '--'}, {mask.item()})"
        lines = _listing(data.tolist(), mask.tolist(), data.dim()).split("\n")
        return "\n".join(["MaskedTensor(", *(f"  {line}" for line in lines), ")"])

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        packet, name, kwargs = func.overloadpacket, func.overloadpacket.__name__, kwargs or {}
        writes = name.endswith("_") and not name.endswith("__")
        base = name.removesuffix("_") if writes else name
        if base in _UNARY or base in _BINARY:
            result = _of_elements(packet, args, kwargs, base in _BINARY)
            if not writes:
                return result
            args[0]._masked_data.copy_(result._masked_data)
            return args[0]
        if name in _BOTH_PARTS:
            parts = [packet(*_parts(args, part), **kwargs) for part in (_data_of, _mask_of)]
            return _wrapped(*parts)
        if name in _REDUCTIONS:
            return _reduced(name, *args, **kwargs)
        if name in _OTHERS:
            return _OTHERS[name](packet, *args, **kwargs)
        warnings.warn(
            f"{name} is not implemented in __torch_dispatch__ for MaskedTensor.\n"
            "If you would like this operator to be supported, please file an issue for a feature"
            " request at https://github.com/pytorch/maskedtensor/issues with a minimal reproducible"
            " code snippet.\nIn the case that the semantics for the operator are not trivial, it"
            " would be appreciated to also include a proposal for the semantics.",
            stacklevel=2,
        )
        raise _nobody(f"torch._ops.{func}", "__torch_dispatch__")


# Tensor's own answer other questions: a property is a method here.
setattr(MaskedTensor, "is_sparse", property(MaskedTensor.is_sparse_coo))  # noqa: B010
setattr(MaskedTensor, "is_sparse_csr", lambda self: self.layout is sparse_csr)  # noqa: B010
name_class(MaskedTensor, "MaskedTensor", "torch.masked.maskedtensor.core")


def _nobody(what: str, handler: str) -> TypeError:
    """torch's error of a call that no class answers."""
    return TypeError(
        f"Multiple dispatch failed for '{what}'; all {handler} handlers returned NotImplemented:"
        f"\n\n  - tensor subclass {MaskedTensor}\n\nFor more information, try re-running with"
        " TORCH_LOGS=not_implemented"
    )


def _of_same_places(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both parts with places in order, the data without those that the mask has not."""
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout is sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if _elements(data).shape != _elements(mask).shape and data.layout is not strided:
        data = data.sparse_mask(mask)
    return data, mask


def _refuse(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not mindtorch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype._name not in _KINDS:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    for what, one, two in (("dim", data.dim(), mask.dim()), ("size", data.shape, mask.shape)):
        if one != two:
            raise ValueError(f"data.{what}() must equal mask.{what}()")
    if not _alike(data, mask):
        kind, what = "COO", "have the same indices"
        if data.layout is sparse_csr:
            kind, what = "CSR", "share either crow or col indices"
        raise ValueError(f"data and mask are both sparse {kind} tensors but do not {what}.")
    return data, mask


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of a layout have the same places."""
    if not isinstance(one, SparseTensor) or not isinstance(other, SparseTensor):
        return True
    return all(map(mindtorch.equal, one._parts, other._parts))


def _make(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor of these parts, unchecked."""
    steps = data.stride() if data.layout is strided else None
    masked: MaskedTensor = Tensor._make_wrapper_subclass(
        MaskedTensor, data.size(), strides=steps, dtype=data.dtype, device=data.device
    )
    masked._masked_data, masked._masked_mask = data, mask
    return masked


def _elements(value: Any) -> Any:
    """The elements that are kept of either part, of a masked tensor those of its data."""
    value = _data_of(value)
    return value._vals if isinstance(value, SparseTensor) else value


def _with(part: Tensor, values: Tensor) -> Tensor:
    """Other elements at the places of a part."""
    return with_values(part, values) if isinstance(part, SparseTensor) else values


def _data_of(value: Any) -> Any:
    return value._masked_data if isinstance(value, MaskedTensor) else value


def _mask_of(value: Any) -> Any:
    return value._masked_mask if isinstance(value, MaskedTensor) else value


def _parts(args: Sequence[Any], part: Callable[[Any], Any]) -> list[Any]:
    return [_parts(a, part) if isinstance(a, list | tuple) else part(a) for a in args]


def _wrapped(data: Any, mask: Any) -> Any:
    if isinstance(data, list | tuple):
        return type(data)(map(_wrapped, data, mask))
    return _make(data, mask)


def _of_elements(
    function: Operator, args: Sequence[object], kwargs: dict[str, object], two: bool
) -> MaskedTensor:
    """A function of one element, or of two of which one is masked or both alike."""
    masked = [a for a in args[: 1 + two] if isinstance(a, MaskedTensor)]
    mask = masked[0]._masked_mask
    other = masked[-1]._masked_mask
    if mask.layout is not other.layout:
        raise ValueError(
            f"`a` and `b` must have the same layout. Got {mask.layout} and {other.layout}"
        )
    same = mask.dim() == other.dim() and _alike(mask, other)
    if not same or not bool((_elements(mask) == _elements(other)).all()):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    data = function(*_parts(args, _elements), **kwargs)
    if isinstance(mask, SparseTensor):
        return _make(_with(masked[0]._masked_data, data), mask)
    return _make(data, mask.expand_as(data))


def _reduced(name: str, input: MaskedTensor, dim: Any = None, *more: Any, **options: Any) -> Tensor:
    """What counts, reduced; a result counts where any of its elements did."""
    data, mask = _elements(input.get_data()), _elements(input.get_mask())
    if dim is not None and input.layout is not strided:
        raise _nobody(f"torch.Tensor.{name}", "__torch_function__")
    keepdim = bool(more[0]) if more else bool(options.get("keepdim", False))
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if name == "all":
        filled = data.masked_fill(~mask, True)
        result = filled.all() if dim is None else filled.all(dim, keepdim)
    else:
        function = getattr(reductions, name)
        ord = (2.0,) if name == "norm" else ()
        result = function(data, *ord, *(() if dim is None else (dim, *more)), mask=mask, **options)
    some = mask.any() if dim is None else mask
    for d in sorted((d % mask.dim() for d in dims), reverse=True):
        some = some.any(d, keepdim)
    return _make(result, some)


def _text(value: Number) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _listing(data: list[Any], mask: list[Any], dims: int) -> str:
    if dims == 1:
        texts = [_text(v) for v in data]
        width = max((len(t) if m else 8 for t, m in zip(texts, mask, strict=True)), default=0)
        cells = [t if m else "--".rjust(width) for t, m in zip(texts, mask, strict=True)]
        return f"[{', '.join(cells)}]"
    blocks = [_listing(d, m, dims - 1) for d, m in zip(data, mask, strict=True)]
    inside = ["\n".join(f"  {line}" for line in block.split("\n")) for block in blocks]
    return "[\n" + ",\n".join(inside) + "\n]"


# ---- operators of which each has a rule of its own


def _same_mask(function: Operator, input: Tensor, *args: object, **kwargs: object) -> MaskedTensor:
    data = _with(_data_of(input), function(_elements(input), *args, **kwargs))
    return _make(data, _mask_of(input).to(data.device))


def _where(function: Operator, condition: Tensor, *values: Tensor) -> MaskedTensor:
    masks = [v._masked_mask if isinstance(v, MaskedTensor) else mindtorch.ones_like(
        v, dtype=mindtorch.bool) for v in values]  # fmt: skip
    data = function(condition, *map(_data_of, values))
    return _make(data, function(condition, *masks))


def _softmax(function: Operator, input: Tensor, dim: int, half_to_float: bool) -> MaskedTensor:
    mask = _mask_of(input)
    data = _data_of(input).masked_fill(~mask, float("-inf")).softmax(dim)
    return _make(data.masked_fill(~mask, 0), mask)


def _softmax_backward(
    function: Operator, grad: Tensor, output: Tensor, dim: int, dtype: object
) -> MaskedTensor:
    mask, shares = _mask_of(output), _data_of(output)
    slope = _data_of(grad).masked_fill(~mask, 0)
    return _make(shares * (slope - (slope * shares).sum(dim, True)), mask)


def _item(function: Operator, input: Tensor) -> Number:
    number: Number = function(_data_of(input))
    return number


def _copy(function: Operator, target: Tensor, source: Tensor, *_: object) -> Tensor:
    function(_data_of(target), _data_of(source))
    return target


_OTHERS: dict[str, Callable[..., Any]] = {
    "detach": _same_mask, "clone": _same_mask, "ones_like": _same_mask, "_to_copy": _same_mask,
    "where": _where, "_softmax": _softmax, "_softmax_backward_data": _softmax_backward,
    "_local_scalar_dense": _item, "copy_": _copy, "contiguous": _same_mask, "alias": _same_mask,
}  # fmt: skip


def is_masked_tensor(obj: object, /) -> bool:
    """Whether a value is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A new leaf of elements and a mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> Tensor:
    """A masked tensor to whose elements gradients go on."""
    _refuse(data, mask)
    if data.requires_grad:
        data = data.view_as(data)
        data.register_hook(lambda g: None if g is None else _make(g, mask))
    return _make(data, mask)
