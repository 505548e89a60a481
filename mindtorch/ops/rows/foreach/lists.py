"""Rows of `_foreach_*`: one op over each tensor of a list, as optimizers and clipping call them.

A list of tensors or numbers goes with the list element by element; a number or tensor with each.
"""

from __future__ import annotations

from ...words import *

_LIST = [Arg((2, 3), low=0.1, high=0.9), Arg((2,), low=0.1, high=0.9)]
# Functions that round nothing: their inputs lie far apart.
_EXACT = frozenset(("abs", "ceil", "clone", "floor", "frac", "neg", "round", "sign", "trunc"))
_SIGNED = [Arg((2, 3), low=-9, high=9), Arg((2,), low=-9, high=9)]

UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1",
    "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
BINARY = ("add", "clamp_max", "clamp_min", "copy", "div", "maximum", "minimum", "mul", "pow", "sub")
# Options after the second argument, as schemas write them.
OPTIONS = {"add": ", *, Scalar alpha=1", "sub": ", *, Scalar alpha=1",
           "copy": ", bool non_blocking=False"}  # fmt: skip
POINTWISE = ("addcdiv", "addcmul")


def _one_by_one(name: str, value: Tensor | Number | Sequence[Any], count: int) -> Sequence[Any]:
    """`value` for each tensor: itself, or its elements where it is a list."""
    if isinstance(value, list | tuple):
        _refuse_length(value, count)
        return value
    if isinstance(value, Tensor) and name in POINTWISE:
        if value.ndim != 1 or value.shape[0] != count:
            raise RuntimeError(
                f"Expected length of scalars to match input of length {count} but got"
                f" {value.numel()} instead."
            )
        return value.tolist()
    if isinstance(value, Tensor) and (value.ndim or value.numel() != 1):
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {value.ndim} dimensions and"
            f" {value.numel()} elements."
        )
    return [value] * count


def _refuse_length(values: Sequence[Any], count: int) -> None:
    if len(values) == count:
        return
    if values and not isinstance(values[0], Tensor):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    raise RuntimeError(
        f"Tensor lists must have the same number of tensors, got {count} and {len(values)}"
    )


def _filled(tensors: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    if not len(tensors):
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in others:
        _refuse_length(other, len(tensors))


def _binary(name: str) -> Callable[..., Any]:
    def one(a: Tensor, b: Tensor | Number, **options: Any) -> Tensor:
        if name in ("maximum", "minimum") and not isinstance(b, Tensor):
            if a.requires_grad:  # at a tie each side gets half
                return getattr(aten, name)(a, aten.full_like(a, b))
            return getattr(aten, "clamp_min" if name == "maximum" else "clamp_max")(a, b)
        if name == "copy":
            return aten.add(aten.zeros_like(a), aten.to(b, a.device, a.dtype))
        return getattr(aten, name)(a, b, **options)

    def body(self: Any, other: Any, alpha: Number = 1) -> tuple[Tensor, ...]:
        if name == "pow" and not isinstance(self, list | tuple):
            return tuple(aten.pow(self, t) for t in other)
        _filled(self)
        options = {"alpha": alpha} if name in ("add", "sub") and alpha != 1 else {}
        others = _one_by_one(name, other, len(self))
        return tuple(one(a, b, **options) for a, b in zip(self, others, strict=True))

    return body


def _unary(name: str) -> Callable[..., Any]:
    def body(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
        _filled(self)
        return tuple(getattr(aten, name)(t) for t in self)

    return body


for _name in UNARY:
    composite(
        f"_foreach_{_name}(Tensor[] self) -> Tensor[]",
        _unary(_name),
        samples=calls((_SIGNED if _name in _EXACT else _LIST,)),
        tolerance="exact" if _name in _EXACT else "composite",
        surface="function",
    )
for _name in BINARY:
    composite(
        f"_foreach_{_name}({'Any' if _name == 'pow' else 'Tensor[]'} self, Any other"
        f"{OPTIONS.get(_name, '')}) -> Tensor[]",
        _binary(_name),
        samples=calls((_LIST, [Arg((2, 3), low=0.5), Arg((2,), low=0.5)])),
        # torch has the writing form alone.
        surface="none" if _name == "copy" else "function",
    )


def _pointwise(name: str) -> Callable[..., Any]:
    def body(
        self: Sequence[Tensor],
        tensor1: Sequence[Tensor],
        tensor2: Sequence[Tensor],
        value: Tensor | Number | Sequence[Any] = 1,
        scalars: Tensor | Sequence[Number] | None = None,
    ) -> tuple[Tensor, ...]:
        _filled(self, tensor1, tensor2)
        values = _one_by_one(name, value if scalars is None else scalars, len(self))
        return tuple(
            getattr(aten, name)(a, b, c, value=v)
            for a, b, c, v in zip(self, tensor1, tensor2, values, strict=True)
        )

    return body


for _name in POINTWISE:
    composite(
        f"_foreach_{_name}(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Any value=1,"
        " Any scalars=None) -> Tensor[]",
        _pointwise(_name),
        samples=calls((_LIST, _LIST, _LIST, 0.5)),
        surface="function",
        tolerance="gradient",
    )


@composite(
    "_foreach_lerp(Tensor[] self, Tensor[] tensors1, Any weight) -> Tensor[]",
    samples=calls((_LIST, [Arg((2, 3)), Arg((2,))], 0.5)),
    tolerance="gradient",
    surface="function",
)
def _foreach_lerp(
    self: Sequence[Tensor], tensors1: Sequence[Tensor], weight: Tensor | Number | Sequence[Any]
) -> tuple[Tensor, ...]:
    """Between each tensor and its partner, by a weight for all or one for each."""
    _filled(self, tensors1)
    weights = _one_by_one("lerp", weight, len(self))
    return tuple(aten.lerp(a, b, w) for a, b, w in zip(self, tensors1, weights, strict=True))


@composite(
    "_foreach_norm(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    samples=calls((_LIST,), (_LIST, 1)),
    tolerance="accumulated",
    surface="function",
)
def _foreach_norm(
    self: Sequence[Tensor], ord: Number = 2, dtype: Dtype | None = None
) -> tuple[Tensor, ...]:
    """The vector norm of each tensor."""
    _filled(self)
    return tuple(aten.linalg_vector_norm(t, ord, None, False, dtype=dtype) for t in self)


@composite(
    "_foreach_max(Tensor[] self) -> Tensor[]",
    samples=calls((_LIST,)),
    tolerance="exact",
    surface="function",
)
def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    _filled(self)
    return tuple(aten.max(t) for t in self)


@composite(
    "_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]",
    samples=calls(([Arg((2, 3))], [Arg((3, 2))])),
    tolerance="accumulated",
    surface="function",
)
def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The product of each pair of matrices."""
    _filled(self)
    if len(mat2) != len(self):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    return tuple(aten.mm(a, b) for a, b in zip(self, mat2, strict=True))
