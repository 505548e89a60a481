"""Owns torch's second names of what exists: other spellings, `torch.conv2d`, `torch.relu_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._functional import FUNCTIONS, LazyMethod, surface
from ._tensor import Tensor
from .ops.spec import OPS

# new name: the row or surface that it spells (torch's documents: "Alias for …").
SPELLINGS = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "divide": "div",
    "row_stack": "vstack",
}  # fmt: skip

# torch.name for nn.functional.name, where both take the same arguments in the same order.
LAYERS = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "celu",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_similarity", "dropout", "feature_alpha_dropout", "group_norm",
    "hardshrink", "layer_norm", "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "rms_norm", "rrelu", "selu",
)  # fmt: skip

# torch.name_ for Tensor.name_.
WRITERS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max",
    "clamp_min", "clip", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fill", "floor",
    "frac", "index_put", "log", "log10", "log1p", "log2", "neg", "reciprocal", "relu", "round",
    "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "zero", "detach",
)  # fmt: skip


def _layer(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        from .nn import functional

        return getattr(functional, name)(*args, **kwargs)

    call.__name__ = name
    return call


def _writer(name: str) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(input, name)(*args, **kwargs)

    call.__name__ = name
    return call


def _spell(name: str, meant: str) -> None:
    """Surfaces written by hand come first: a row may be only one of their overloads."""
    op = OPS.get(meant)
    FUNCTIONS.setdefault(name, FUNCTIONS.get(meant, op))
    for end, form in (("", "method"), ("_", "inplace")):
        written = Tensor.__dict__.get(meant + end)
        if written is not None:
            setattr(Tensor, name + end, written)
        elif op is not None and (op.inplace or not end):
            setattr(Tensor, name + end, LazyMethod(name + end, op, form))


@surface(method=False, internal=False)
def detach(input: Tensor) -> Tensor:
    """A view of `input` outside the graph."""
    return input.detach()  # type: ignore[no-any-return]


def install() -> None:
    """Publish the names; after this module, rows are published and keep what is here."""
    for name, meant in SPELLINGS.items():
        _spell(name, meant)
    for name in LAYERS:
        FUNCTIONS.setdefault(name, _layer(name))
    for name in WRITERS:
        FUNCTIONS.setdefault(name + "_", _writer(name + "_"))


install()
