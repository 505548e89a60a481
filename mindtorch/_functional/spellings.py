"""Owns torch's second names of what exists: other spellings, `torch.conv2d`, `torch.relu_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor.tensor import Tensor
from ..ops.spec import OPS
from .publish import FUNCTIONS, LazyMethod, surface

# new name: the row that it spells (torch's documents: "Alias for …").
SPELLINGS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "divide": "div", "fix": "trunc", "ger": "outer", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "moveaxis": "movedim",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "row_stack": "vstack", "spmm": "mm",
    "subtract": "sub", "swapaxes": "transpose", "swapdims": "transpose", "true_divide": "div",
}  # fmt: skip

# torch.name_ for Tensor.name_.
WRITERS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max",
    "clamp_min", "clip", "cos", "cosh", "embedding_renorm", "erf", "erfc", "exp", "exp2",
    "expm1", "fill", "floor", "frac", "index_put", "log", "log10", "log1p", "log2", "neg",
    "reciprocal", "relu", "round", "resize_as", "rsqrt", "sigmoid", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "zero", "detach",
)  # fmt: skip


def _writer(name: str) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input, name)(*args, **kwargs)

    call.__name__ = name
    return call


def _spell(name: str, meant: str) -> None:
    """Each place where the row is, under its second name too."""
    op = OPS[meant]
    if "function" in op.places:
        FUNCTIONS[name] = op
    if "method" in op.places:
        setattr(Tensor, name, LazyMethod(name, op, "method"))
        if op.inplace:
            setattr(Tensor, name + "_", LazyMethod(name + "_", op, "inplace"))


@surface(method=False, internal=False)
def detach(input: Tensor) -> Tensor:
    """A view of `input` outside the graph."""
    return input.detach()


def install() -> None:
    """Publish the names; after this module, rows are published and keep what is here."""
    for name, meant in SPELLINGS.items():
        _spell(name, meant)
    for name in WRITERS:
        FUNCTIONS.setdefault(name + "_", _writer(name + "_"))


install()
