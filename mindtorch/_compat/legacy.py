"""Owns names that torch keeps for older programs, and small methods that rows cannot say."""

from __future__ import annotations

import builtins
import itertools
import numbers
from collections.abc import Callable
from typing import Any, NoReturn

from .._functional.creation import kind_of, tensor
from .._functional.publish import FUNCTIONS, attach, surface
from .._tensor import dtype as dt
from .._tensor.device import DeviceLike
from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ..ops.spec import aten
from .argument_errors import parsed
from .class_names import class_name
from .warn_once import warn


@surface(function=False, internal=False)
@parsed(method=True)
def is_nonzero(self: Tensor) -> bool:
    """The truth of a tensor with one element; RuntimeError for others."""
    return bool(self)


_REMOVED = "This function was deprecated since version 1.9 and is now removed."


@surface(internal=False)
def symeig(
    input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: object = None
) -> tuple[Tensor, Tensor]:
    """Always RuntimeError, as in torch: `linalg.eigh` replaces it."""
    raise RuntimeError(
        f"{_REMOVED} The default behavior has changed from using the upper triangular portion of"
        " the matrix by default to using the lower triangular portion.\n\nL, _ = torch.symeig(A,"
        " upper=upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper"
        " else 'L')\n\nand\n\nL, V = torch.symeig(A, eigenvectors=True) should be replaced with:\n"
        "L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )


@surface(internal=False)
def eig(
    self: Tensor, eigenvectors: bool = False, *, e: object = None, v: object = None
) -> tuple[Tensor, Tensor]:
    """Always RuntimeError, as in torch: `linalg.eig` replaces it."""
    raise RuntimeError(
        f"{_REMOVED} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble`"
        " rather than real tensors mimicking complex tensors.\n\nL, _ = torch.eig(A) should be"
        " replaced with:\nL_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A,"
        " eigenvectors=True) should be replaced with:\nL_complex, V_complex = torch.linalg.eig(A)"
    )


@surface(internal=False)
def solve(input: Tensor, other: Tensor, *, out: object = None) -> tuple[Tensor, Tensor]:
    """Always RuntimeError, as in torch: `linalg.solve` replaces it."""
    raise RuntimeError(
        f"{_REMOVED} `torch.solve` is deprecated in favor of `torch.linalg.solve`."
        " `torch.linalg.solve` has its arguments reversed and does not return the LU"
        " factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used with"
        " `torch.lu_solve` or `torch.lu_unpack`.\nX = torch.solve(B, A).solution should be"
        " replaced with:\nX = torch.linalg.solve(A, B)"
    )


@surface(internal=False)
def lstsq(input: Tensor, other: Tensor, *, out: object = None) -> tuple[Tensor, Tensor]:
    """Always RuntimeError, as in torch: `linalg.lstsq` replaces it."""
    raise RuntimeError(
        f"{_REMOVED} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
        "`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition in"
        " the returned tuple (although it returns other information about the problem).\n\nTo get"
        " the QR decomposition consider using `torch.linalg.qr`.\n\nThe returned solution in"
        " `torch.lstsq` stored the residuals of the solution in the last m - n columns of the"
        " returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field"
        " 'residuals' of the returned named tuple.\n\nThe unpacking of the solution, as in\n"
        "X, _ = torch.lstsq(B, A).solution[:A.size(1)]\nshould be replaced with:\n"
        "X = torch.linalg.lstsq(A, B).solution"
    )


@surface(method=False, internal=False)
def matrix_rank(input: Tensor, tol: object = None, symmetric: bool = False) -> Tensor:
    """Always RuntimeError, as in torch: `linalg.matrix_rank` replaces it."""
    raise RuntimeError(
        f"{_REMOVED}\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter"
        " 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )


@surface(function=False, internal=False)
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, to be read only."""
    return self.data_ptr()


@surface(function=False, internal=False)
def storage_type(self: Tensor) -> type | None:
    """The legacy class of the storage; None where there is none."""
    name = self.storage()._legacy_name()
    return None if name is None else FUNCTIONS[name]


@surface(internal=False)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Tensor:  # fmt: skip
    """A view of `input`'s memory as that of `src`, of which it was a slice."""
    return aten.as_strided(input, src.shape, src.stride(), src.storage_offset())


@surface(function=False, internal=False)
def to_mkldnn(self: Tensor, dtype: Dtype | None = None) -> NoReturn:
    """NotImplementedError: there are no tensors in oneDNN's own layout."""
    raise NotImplementedError("to_mkldnn: mindtorch has no tensors in oneDNN's layout")


def _of_a_layout(name: str, words: str) -> None:
    """A method that tensors of another layout have: others have no kernel for it."""

    def call(input: Tensor, *args: object, **named: object) -> Tensor:
        for kind in type(input).__mro__:
            if kind is not Tensor and issubclass(kind, Tensor) and name in vars(kind):
                result: Tensor = vars(kind)[name](input, *args, **named)
                return result
        from .refusals import BACKENDS, without_kernel

        backend = BACKENDS.get(input.device.type, input.device.type.upper())
        raise NotImplementedError(without_kernel(name, backend))

    call.__doc__ = words
    surface(name=name, function=name == "resize_as_sparse_", internal=False)(call)


for _name, _words in {
    "resize_as_sparse_": "Give a sparse tensor another's size.",
    "sparse_resize_": "Give a sparse tensor another size; its places stay.",
    "sparse_resize_and_clear_": "Give a sparse tensor another size and no places.",
    "to_padded_tensor": "A nested tensor as one batch, filled up.",
}.items():
    _of_a_layout(_name, f"{_words} NotImplementedError for tensors of other layouts.")


@surface(internal=False)
@parsed()
def is_distributed(input: Tensor) -> bool:
    """False: a tensor is on one device."""
    return False


@surface(method=False, internal=False)
@parsed()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return input.shape == other.shape


@surface(method=False, internal=False)
@parsed()
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.is_signed()


@surface(method=False, internal=False)
@parsed()
def get_device(input: Tensor) -> int:
    """The index of a tensor's device; -1 on cpu."""
    return int(input.get_device())


@surface(function=False, internal=False)
@parsed(method=True)
def polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return aten.polygamma(n, self)


@surface(function=False, internal=False)
@parsed(method=True)
def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma, in place."""
    return self.copy_(aten.polygamma(n, self))


@surface(function=False, internal=False)
@parsed(method=True)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """float_power, in place; RuntimeError where self is not of the result's dtype."""
    result = aten.float_power(self, exponent)
    if self.dtype is not result.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {_spoken(self.dtype)} but the operation's"
            f" result requires dtype {_spoken(result.dtype)}"
        )
    return self.copy_(result)


def _spoken(dtype: Dtype) -> str:
    return dtype.legacy if not dtype.is_complex else f"Complex{dtype.legacy[7:]}"


@surface(function=False, internal=False)
@parsed(method=True)
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Number]) -> Tensor:
    """Each element becomes `callable` of it and the other's, on cpu, one by one."""
    return _map(self, (tensor,), callable)


@surface(function=False, internal=False)
@parsed(method=True)
def map2_(
    self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Number]
) -> Tensor:
    """As map_, of two other tensors."""
    return _map(self, (x, y), callable)


def _map(self: Tensor, others: tuple[Tensor, ...], function: Callable[..., Number]) -> Tensor:
    if self.requires_grad or any(t.requires_grad for t in others):
        raise RuntimeError(
            "Can't call map_() on Variable that requires grad. Use var.detach().map_() instead."
        )
    if any(t.device.type != "cpu" for t in (self, *others)):
        raise TypeError("map_ is only implemented on CPU tensors")
    if any(t.dtype is not self.dtype for t in others):
        raise TypeError(f"map_: expected tensors of {self.dtype}")
    columns = [aten.reshape(aten.expand(t, self.shape), (-1,)).tolist() for t in (self, *others)]
    values = [function(*row) for row in zip(*columns, strict=True)]
    wrong = next((v for v in values if not isinstance(v, numbers.Number)), None)
    if wrong is not None:
        raise TypeError(f"must be real number, not {class_name(wrong)}")
    return self.copy_(FUNCTIONS["tensor"](values, dtype=self.dtype).reshape(self.shape))


@surface(function=False, internal=False)
def dim_order(self: Tensor, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost.

    `ambiguity_check`: RuntimeError where strides leave the order open; for a list of memory
    formats, where not exactly one of them fits, too.
    """
    if not isinstance(ambiguity_check, bool | list):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if self.is_sparse:
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to"
            " a dense tensor first."
        )
    strides = self.stride()
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    fitting = [f for f in formats if self.is_contiguous(memory_format=f)]
    open_ = 1 in self.shape or any(a == b for a, b in itertools.pairwise(strides))
    if (ambiguity_check or formats is ambiguity_check) and open_ and len(fitting) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given"
            " memory formats."
        )
    return tuple(sorted(builtins.range(self.ndim), key=lambda d: -strides[d]))


@surface(function=False, internal=False)
def reinforce(self: Tensor, reward: Any) -> None:
    """Refused, as in torch: stochastic nodes are gone."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead.\n"
        "See https://pytorch.org/docs/main/distributions.html"
    )


def _resized(name: str) -> Callable[..., Tensor]:
    def call(self: Tensor, *args: Any) -> Tensor:
        warn(f"non-inplace {name} is deprecated")
        view = aten.alias(self.detach())
        return view.resize_as_(*args) if name == "resize_as" else view.resize_(*args)

    call.__name__ = name
    call.__doc__ = f"{name}_ of a view, with a warning."
    return call


for _name in ("resize", "resize_as"):
    attach(_name, _resized(_name))
attach("name", None)


@surface(method=False, internal=False)
@parsed()
def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step … up to and with `end`; torch.arange leaves the end out."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is"
        " inconsistent with Python's range builtin. Instead, use torch.arange, which produces"
        " values in [start, end).",
    )
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    kind = kind_of("range", dtype, out) or dt.get_default_dtype()
    count = int((end - start) // step) + 1
    return FUNCTIONS["arange"](
        start, start + (count - 0.5) * step, step, out=out, dtype=kind, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


@surface(method=False, internal=False)
def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """RuntimeError where a tensor of one element is zero."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@surface(method=False, internal=False)
def _shape_as_tensor(input: Tensor) -> Tensor:
    """The shape `[N]`, int64 on cpu."""
    return tensor(list(input.shape), dtype=dt.int64)


def _cast(name: str, dtype: Dtype) -> None:
    @surface(name=f"_cast_{name}", method=False, internal=False)
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype, non_blocking=non_blocking)

    cast.__doc__ = f"The tensor as {dtype}."


for _name, _dtype in (("Byte", dt.uint8), ("Char", dt.int8), ("Double", dt.float64),
                      ("Float", dt.float32), ("Int", dt.int32), ("Long", dt.int64),
                      ("Short", dt.int16), ("Half", dt.float16)):  # fmt: skip
    _cast(_name, _dtype)


@surface(method=False, internal=False)
def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Sorted rows `[N]` as the starts of each row `[size + 1]`."""
    starts = aten.cumsum(aten.bincount(self, None, size), 0)
    starts = aten.constant_pad_nd(starts, (1, 0), 0)
    return starts.to(dt.int32 if out_int32 else dt.int64)


@surface(method=False, internal=False)
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor,
    col_indices: Tensor,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> Tensor:
    """Starts of rows `[R + 1]` and columns `[N]` as rows and columns `[2, N]`."""
    counts = crow_indices[1:] - crow_indices[:-1]
    rows = aten.repeat_interleave(aten.arange(0, len(counts), device=counts.device), counts)
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    return aten.stack([p.to(dt.int32 if out_int32 else dt.int64) for p in pair])
