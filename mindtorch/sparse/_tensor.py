"""Owns the sparse tensor: its indices and values, what it answers itself, and how it is shown.

Coordinates: `indices` [sparse dims, nnz] beside `values` [nnz, *dense dims]. Compressed rows or
columns: `compressed` [*batch, n + 1] and `plain` [*batch, nnz] beside `values` [*batch, nnz,
*block, *dense dims]. Values are an ordinary tensor, whose history is the sparse tensor's. Functions
without a sparse form are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, cast

import mindtorch

from .._autograd.grad_mode import is_grad_enabled
from .._autograd.layer import refuse_leaf
from .._compat.class_names import name_class
from .._compat.layout_refusals import layout_refusal
from .._compat.refusals import BACKENDS, without_kernel
from .._compat.warn_once import warn_once
from .._dispatch.overrides import OF_OPERATORS
from .._functional.printing import OPTIONS, values_text
from .._functional.queries import (
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
)
from .._tensor.geometry import Size, geometry
from .._tensor.no_memory import NoMemory
from .._tensor.tensor import Tensor

COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
BLOCKED = (sparse_bsr, sparse_bsc)
BY_ROWS = (sparse_csr, sparse_bsr)
# A layout as errors call it.
LAYOUT_NAMES = {sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc",
         sparse_bsr: "SparseBsr", sparse_bsc: "SparseBsc"}  # fmt: skip

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


_BY_OPERATOR = {method: name for name, method in OF_OPERATORS.items()}


class SparseTensor(Tensor):
    """A tensor that keeps what is not zero; made by torch.sparse_coo_tensor and its kin."""

    _layout: layout
    _parts: tuple[Tensor, ...]  # the indices, or the compressed and the plain ones
    _vals: Tensor
    _coalesced: bool
    __getattribute__ = object.__getattribute__  # its methods are its own: only rows ask

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        name = getattr(func, "__name__", str(func))
        name = _BY_OPERATOR.get(name, name)
        handler = HANDLERS.get(name)
        if handler is None:
            tensors = (*args, *(kwargs or {}).values())
            sparse = next((t for t in tensors if isinstance(t, SparseTensor)), None)
            raise refusal(name, sparse, args)
        return handler(*args, **(kwargs or {}))

    @property
    def layout(self) -> layout:
        return self._layout

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return self._layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._layout is sparse_csr

    @property
    def requires_grad(self) -> bool:
        return bool(self._vals.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Make the values record gradients, or not."""
        self._vals.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self) -> Any:
        return self._vals.grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool(self._vals.is_leaf)

    @property
    def _differentiable(self) -> Tensor:
        """What gradients go to."""
        return self._vals

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Let `hook` see the gradient, by this tensor's places, and replace it."""

        def of_values(gradient: Tensor) -> Tensor | None:
            result = hook(self._as_gradient(gradient))
            return result._vals if isinstance(result, SparseTensor) else result

        return self._vals.register_hook(of_values)

    def _as_gradient(self, gradient: Tensor) -> SparseTensor:
        """A gradient of the values as one of this tensor: each place once."""
        whole = make(self._layout, self._parts, gradient, self.shape, self._coalesced)
        once = self._coalesced or self._layout in COMPRESSED
        return whole if once else HANDLERS["_first_of_each"](whole)

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient, of its own indices where one was assigned."""
        arrived = self._vals.grad
        if arrived is not None:
            self._vals.grad = None
            whole = self._as_gradient(arrived)
            self._grad = whole if self._grad is None else self._grad + whole
        return cast("SparseTensor | None", self._grad)

    @grad.setter
    def grad(self, value: SparseTensor | None) -> None:
        if isinstance(value, Tensor) and not isinstance(value, SparseTensor):
            raise RuntimeError(
                "attempting to assign a gradient to a tensor that has data of a different type"
            )
        Tensor.grad.__set__(self, value)
        self._vals.grad = None

    _nnz: Callable[..., int]  # a handler, as other methods

    def stride(self, dim: int | None = None) -> Any:
        if self._layout is sparse_coo:
            return super().stride(dim)
        raise refusal_of_places(self, "strides")

    def is_contiguous(self, *more: object, memory_format: object = None) -> bool:
        if self._layout is sparse_coo:
            return False
        raise refusal_of_places(self, "is_contiguous")

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def tolist(self, *more: object) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self) -> Any:
        raise NotImplementedError(f"Cannot access storage of {_impl(self)}")

    _typed_storage = untyped_storage

    @property
    def nbytes(self) -> int:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent"
            " tensors, add the nbytes of the indices and values.  If you want the size of the "
            " equivalent dense tensor, multiply numel() by element_size()"
        )

    def numpy(self, *more: object, force: bool = False) -> Any:
        raise TypeError(
            f"can't convert {LAYOUT_NAMES[self._layout]} layout tensor to numpy. Use"
            " Tensor.to_dense() first."
        )

    def __array__(self, *_: object, **__: object) -> Any:
        return self.numpy()

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return HANDLERS["to_dense"](self).item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __copy__(self) -> SparseTensor:
        return self._of_class(type(self), self.requires_grad)

    def _of_class(self, cls: type[Tensor], requires_grad: bool) -> SparseTensor:
        """The same places and values outside the graph: a tensor, or a parameter."""
        kind = SparseParameter if getattr(cls, "_is_param", False) else SparseTensor
        tensor = with_values(self, self._vals.detach())
        tensor.__class__ = kind
        return tensor.requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        parts = tuple(p.clone() for p in self._parts)
        vals = self._vals.detach().clone().requires_grad_(self.requires_grad)
        copied = make(self._layout, parts, vals, self.shape, self._coalesced)
        copied.__class__ = type(self)
        copied._grad = deepcopy(self.grad, memo)
        return copied

    def _saved_parts(self) -> tuple[Any, ...]:
        """What files hold of the tensor, as torch writes it."""
        extra = (self._coalesced,) if self._layout is sparse_coo else ()
        return (*self._parts, self._vals.detach(), Size(self.shape), *extra)

    def share_memory_(self) -> Any:
        """Refused: indices and values have memory, each of their own."""
        raise NotImplementedError(f"Cannot access storage of {_impl(self)}")

    def __setitem__(self, *_: object) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    def set_(self, *_: object, **__: object) -> Any:
        """Refused: there is no storage to take."""
        raise refusal("set_", self)

    squeeze_ = unsqueeze_ = set_

    def fill_(self, value: Any) -> SparseTensor:
        """Let compressed places be `value`; refused for coordinates."""
        if self._layout is sparse_coo:
            raise refusal("fill_.Scalar", self)
        self._vals.fill_(value)
        return self

    def apply_(self, *_: object) -> Any:
        """Refused: there is no storage to change."""
        return self.data_ptr()

    def map_(self, *_: object) -> Any:
        """Refused, as `apply_`."""
        return self.data_ptr()

    def __dlpack__(self, *_: object, **__: object) -> Any:
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def t_(self) -> SparseTensor:
        """The transposed matrix, in place."""
        transpose = HANDLERS["t"](self)
        if transpose._layout is not self._layout:
            transpose = HANDLERS["to_sparse"](transpose, layout=self._layout)
        return become(self, transpose)

    def transpose_(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dimensions in each other's place, in place."""
        transpose = HANDLERS["transpose"](self, dim0, dim1)
        if transpose._layout is not self._layout:
            transpose = HANDLERS["to_sparse"](transpose, layout=self._layout)
        return become(self, transpose)

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = (*self._parts, self._vals.detach())
        extra = (self._coalesced,) if self._layout is sparse_coo else ()
        state = (str(self._layout), parts[:-1], parts[-1], tuple(self.shape), *extra)
        return _rebuilt, state

    def resize_(self, *_: object, **__: object) -> Any:
        """Refused: see sparse_resize_."""
        raise refusal("resize_", self)

    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> SparseTensor:
        """Take the shape of a sparse tensor; what lies outside must be nothing."""
        return self.resize_as_sparse_(the_template)

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """The same places in a tensor of another size, which may not leave any of them out."""
        if sparse_dim + dense_dim != len(size) or sparse_dim != self._parts[0].shape[0]:
            raise RuntimeError(
                f"sparse_resize_: {sparse_dim} dims with indices and {dense_dim} others, expected"
                f" {self._parts[0].shape[0]} and {len(size)} in all"
            )
        if self._nnz() and any(
            n < size_here for n, size_here in zip(size, self.shape, strict=False)
        ):
            raise RuntimeError(
                "shrinking the size of sparse dimensions on a non-empty sparse tensor is not"
                " supported"
            )
        values = self._vals if self._nnz() else self._vals.new_zeros((0, *size[sparse_dim:]))
        return become(self, make(self._layout, self._parts, values, size, self._coalesced))

    def resize_as_sparse_(self, the_template: Tensor) -> SparseTensor:
        """The same places in a tensor of the other's size and dimensions with indices."""
        sparse = isinstance(the_template, SparseTensor)
        dims = (the_template.sparse_dim(), the_template.dense_dim()) if sparse else (0, 1)
        one = tuple(self.shape), self.sparse_dim(), self.dense_dim()
        if one == (tuple(the_template.shape), *dims):
            return self
        if not self._nnz():
            size = tuple(the_template.shape)
            dims = dims if sparse else (0, len(size))
            return self.sparse_resize_and_clear_(size, *dims)
        return self.sparse_resize_(the_template.shape, *dims)

    def sparse_resize_and_clear_(
        self, size: Sequence[int], sparse_dim: int, dense_dim: int
    ) -> SparseTensor:
        """Another size, of which the first `sparse_dim` dims have indices, without places."""
        if sparse_dim + dense_dim != len(size):
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}),"
                f" but got {len(size)}"
            )
        places = self._parts[0].new_zeros((sparse_dim, 0))
        values = self._vals.new_zeros((0, *size[sparse_dim:]))
        return become(self, make(self._layout, (places,), values, size))

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return "Parameter containing:\n" * getattr(self, "_is_param", False) + _listing(self)

    __hash__ = Tensor.__hash__


class SparseParameter(SparseTensor):
    """A sparse tensor that is a module's parameter; `isinstance` finds it by its mark."""

    _is_param = True
    __getattribute__ = object.__getattribute__


# torch has no classes of their own for them.
name_class(SparseTensor, "Tensor", Tensor.__module__)
name_class(SparseParameter, "Parameter", "torch.nn.parameter")


def refusal_of_places(tensor: SparseTensor, what: str) -> RuntimeError:
    """torch's error of what asks where elements of compressed tensors lie."""
    name = LAYOUT_NAMES[tensor._layout].removeprefix("Sparse").upper()
    return RuntimeError(f"Sparse {name} tensors do not have {what}")


def _rebuilt(name: str, parts: Any, values: Tensor, shape: Any, coalesced: bool = False) -> Tensor:
    kinds = {str(kind): kind for kind in LAYOUT_NAMES}
    return make(kinds[name], parts, values, shape, coalesced)


def _impl(tensor: SparseTensor) -> str:
    return "SparseTensorImpl" if tensor._layout is sparse_coo else "SparseCsrTensorImpl"


def make(
    kind: layout, parts: Sequence[Tensor], values: Tensor, shape: Sequence[int],
    coalesced: bool = False,
) -> SparseTensor:  # fmt: skip
    """A sparse tensor of these parts, unchecked; `coalesced`: indices are sorted and unique."""
    tensor: SparseTensor = object.__new__(SparseTensor)
    geom = geometry(Size(shape), (0,) * len(shape), 0, values.dtype, values.device)
    tensor._geom = geom
    memory: Any = NoMemory("Cannot access storage of SparseTensorImpl")
    tensor._storage = memory
    tensor._fn, tensor._nr, tensor._base = None, 0, None
    tensor._layout = kind
    tensor._parts = tuple(parts)
    tensor._vals = values
    tensor._coalesced = coalesced or (kind is sparse_coo and values.shape[0] < 2)
    if kind in COMPRESSED:
        warn_once(_BETA.format(LAYOUT_NAMES[kind].removeprefix("Sparse").upper()), _BETA)
    return tensor


_BETA = (
    "Sparse {} tensor support is in beta state. If you miss a functionality in the sparse tensor"
    " support, please submit a feature request to https://github.com/pytorch/pytorch/issues."
)


def batch_dim(tensor: SparseTensor) -> int:
    """How many dimensions stand before those that have indices: those of a batch of matrices."""
    return 0 if tensor._layout is sparse_coo else tensor._parts[0].dim() - 1


def block_of(tensor: SparseTensor) -> tuple[int, ...]:
    """The rows and the columns of a block; nothing where there are no blocks."""
    at = batch_dim(tensor) + 1
    return tuple(tensor._vals.shape[at : at + 2]) if tensor._layout in BLOCKED else ()


def become(target: SparseTensor, source: SparseTensor) -> SparseTensor:
    """Let `target` be what `source` is: the end of a call that writes; RuntimeError for a leaf."""
    if target.requires_grad and is_grad_enabled():
        refuse_leaf(target._vals)
    if target._layout is not source._layout:
        source = HANDLERS["to_sparse"](source, layout=target._layout)
    values = source._vals
    if values.dtype is not target.dtype:
        values = values.to(target.dtype)
    if target.requires_grad and not values.requires_grad:  # written without a record
        values = values.detach().requires_grad_()
    target._geom = make(source._layout, (), values, source.shape)._geom
    target._parts, target._vals = source._parts, values
    target._coalesced = source._coalesced
    target._storage.value += 1
    return target


def with_values(tensor: SparseTensor, values: Tensor) -> SparseTensor:
    """The same places with other values, on their device."""
    parts = tensor._parts
    if values is tensor._vals:
        return tensor
    if parts[0].device != values.device:
        parts = tuple(p.to(values.device) for p in parts)
    return make(tensor._layout, parts, values, tensor.shape, tensor._coalesced)


def refusal(name: str, tensor: SparseTensor | None, args: Sequence[object] = ()) -> Exception:
    """torch's error of a function without a form for the layout, mostly NotImplementedError."""
    kind = sparse_coo if tensor is None else tensor._layout
    where = BACKENDS.get("cpu" if tensor is None else tensor.device.type, "CPU")
    kind_name = "Sparse" if kind is sparse_coo else "SparseCsr"
    error = layout_refusal(kind_name, where, name, args or (tensor,))
    if error is None:
        error = NotImplementedError(without_kernel(name, kind_name + where))
    if not isinstance(error, NotImplementedError):
        name = LAYOUT_NAMES[kind].removeprefix("Sparse")
        text = str(error).replace("SparseCsr", f"Sparse{name}").replace("CSR", name.upper())
        return type(error)(text)
    return error


def named_parts(tensor: SparseTensor) -> list[tuple[str, Tensor]]:
    """The indices with the names that they are shown by."""
    if tensor._layout is sparse_coo:
        return [("indices", tensor._parts[0])]
    first, second = ("crow", "col") if tensor._layout in BY_ROWS else ("ccol", "row")
    names = (f"{first}_indices", f"{second}_indices")
    return list(zip(names, tensor._parts, strict=True))


def _listing(tensor: SparseTensor) -> str:
    """What `print` shows: the parts, a line each, then what else there is to say."""
    blocks = []
    for name, part in (*named_parts(tensor), ("values", tensor._vals.detach())):
        head = f"{name}=tensor("
        text = values_text(part, 7 + len(head)) if part.numel() else "[]"
        size = "" if part.numel() else f", size={tuple(part.shape)}"
        blocks.append(f"{head}{text}{size})")
    suffixes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if tensor.device.type != "cpu":
        suffixes.insert(0, f"device='{tensor.device}'")
    default = mindtorch.get_default_dtype()
    if tensor.dtype not in (default, mindtorch.int64, mindtorch.bool, default.to_complex()):
        suffixes.append(f"dtype={tensor.dtype!r}")
    suffixes.append(f"layout={tensor._layout}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    text = "tensor(" + (",\n" + " " * 7).join(blocks)
    forced = tensor._layout is sparse_coo
    length = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if (forced and i == 0) or length + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * 7 + suffix
            length = 7 + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"
