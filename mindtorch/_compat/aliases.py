"""Owns torch's second names of what exists: other spellings, `torch.conv2d`, `torch.relu_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._compat.argument_errors import parsed
from .._functional.publish import FUNCTIONS, LAYERS, LazyMethod, layer, surface, writing
from .._tensor.tensor import Tensor
from ..ops.spec import OPS

# new name: the row that it spells (torch's documents: "Alias for …").
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "divide": "div", "fix": "trunc", "ger": "outer", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "moveaxis": "movedim",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "row_stack": "vstack", "spmm": "mm",
    "subtract": "sub", "swapaxes": "transpose", "swapdims": "transpose", "true_divide": "div",
}  # fmt: skip

# torch.name_ for torch.nn.functional.name_.
LAYER_WRITERS = (
    "alpha_dropout", "celu", "dropout", "feature_alpha_dropout", "rrelu", "selu", "threshold",
)  # fmt: skip

# torch.name_ for Tensor.name_.
WRITERS = (
    "abs", "acos", "acosh", "addmv", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "as_strided", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max", "clamp_min",
    "clip", "conj_physical", "cos", "cosh", "deg2rad", "detach", "embedding_renorm", "erf", "erfc",
    "exp", "exp2", "expm1", "fill", "fix", "floor", "frac", "gcd", "i0", "index_put", "lcm",
    "ldexp", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "negative", "rad2deg",
    "reciprocal", "relu", "resize_as", "round", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "xlogy", "zero",
)  # fmt: skip


def _writer(name: str) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input, name)(*args, **kwargs)

    call.__doc__ = f"`input.{name}(…)`: writes to `input` and returns it."
    return parsed(name)(call)


def _layer_writer(name: str) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any, **options: Any) -> Tensor:
        if name + "_" in LAYERS:
            return layer(name + "_")(input, *args, **options)
        return writing(OPS[name].entry("function"), name + "_")(input, *args, **options)

    call.__doc__ = f"torch.nn.functional.{name}, written to `input`."
    return parsed(name + "_")(call)


def _spell(name: str, row: str) -> None:
    """Each place where the row is, under its second name too."""
    op = OPS[row]
    if "function" in op.places:
        FUNCTIONS[name] = op
    if "method" in op.places:
        setattr(Tensor, name, LazyMethod(name, op, "method"))
        if op.writes.inplace:
            setattr(Tensor, name + "_", LazyMethod(name + "_", op, "inplace"))


@surface(method=False, internal=False)
@parsed()
def detach(input: Tensor) -> Tensor:
    """A view of `input` outside the graph."""
    return input.detach()


def install() -> None:
    """Publish the names; after this module, rows are published and keep what is here."""
    for name, row in ALIASES.items():
        _spell(name, row)
    FUNCTIONS["dsmm"] = OPS["mm"]  # no method of tensors
    for name in WRITERS:
        FUNCTIONS.setdefault(name + "_", _writer(name + "_"))
    for name in LAYER_WRITERS:
        FUNCTIONS.setdefault(name + "_", _layer_writer(name))


install()
