"""Rows of activations as layers call them: with `inplace`, and from a few rows each."""

from __future__ import annotations

from ...._compat.unsupported_dtypes import Refusal, kernel, several_dtypes
from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...words import *


def _applied(name: str, input: Tensor, inplace: bool, *args: Any, node: str = "") -> Tensor:
    """A row's result; `inplace` writes it to the input, of which backward then has a copy.

    `node` is what torch calls the node of the form in place, where it has another name.
    """
    function = getattr(aten, name)
    if inplace:
        return _write_back(input, function(input.clone(), *args), node)
    return function(input, *args)


def _write_back(input: Tensor, result: Tensor, node: str = "") -> Tensor:
    """The input with the result in it; its node bears the name of the result's."""
    before = result._fn
    input.copy_(result)
    if before is not None and hasattr(input._fn, "op"):
        input._fn.label = node or before.name()
    return input


@composite(
    "relu.nn(Tensor input, bool inplace=False) -> Tensor",
    surface="nn nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    tolerance="exact",
)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), elementwise."""
    return input.relu_() if inplace else aten.relu(input)


@composite(
    "relu6(Tensor input, bool inplace=False) -> Tensor",
    unsupported={"bool": Refusal("Bool inputs not supported for hardtanh")},
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), elementwise."""
    return hardtanh(input, 0.0, 6.0, inplace)


@composite(
    "hardtanh.nn(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False) -> "
    "Tensor",
    unsupported={"bool": Refusal("Bool inputs not supported for hardtanh")},
    surface="nn nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="extremum",
)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Clamps to [min_val, max_val]; ValueError when they cross."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _applied("hardtanh", input, inplace, min_val, max_val)


@composite(
    "silu.nn(Tensor input, bool inplace=False) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="activation",
)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return _applied("silu", input, inplace)


@composite(
    "mish.nn(Tensor input, bool inplace=False) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="activation",
)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x))."""
    return _applied("mish", input, inplace)


@composite(
    "logsigmoid(Tensor input) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="activation",
)
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    return aten.log_sigmoid(input)


@composite(
    "leaky_relu.nn(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor",
    surface="nn nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4), 0.3)),
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    return _applied("leaky_relu", input, inplace, negative_slope, node="LeakyReluBackward1")


@composite(
    "elu.nn(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
    surface="nn nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4), 0.3)),
    rule="activation",
)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha (exp(x) - 1)."""
    return _applied("elu", input, inplace, alpha, node="EluBackward1")


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@composite(
    "selu(Tensor input, bool inplace=False) -> Tensor",
    surface="nn function nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="activation",
)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · elu(x, alpha), with the constants of self-normalizing networks."""
    return _applied("elu", input, inplace, _SELU_ALPHA, _SELU_SCALE, node="EluBackward1")


@composite(
    "celu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor",
    surface="nn function nn_",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4), 0.5)),
    rule="activation",
)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)); RuntimeError for alpha 0."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _applied("elu", input, inplace, alpha, 1.0, 1.0 / alpha, node="CeluBackward1")


@composite(
    "hardswish.nn(Tensor input, bool inplace=False) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    rule="activation",
)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x relu6(x + 3) / 6."""
    return _applied("hardswish", input, inplace)


@composite(
    "hardsigmoid.nn(Tensor input, bool inplace=False) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    # torch's own has no second derivative; this says the same with one.
    oracle=lambda torch: lambda x, inplace=False: (x + 3).clamp(0, 6) / 6,
    rule="activation",
)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    return _applied("hardsigmoid", input, inplace)


@composite(
    "softsign(Tensor input) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
)
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@composite(
    "tanhshrink(Tensor input) -> Tensor",
    samples=calls((Arg((3, 4)),), (Arg((2, 3), "float64", -4, 4),)),
    tolerance="chained",
)
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


@composite(
    "softshrink.nn(Tensor input, float lambd=0.5) -> Tensor",
    samples=calls(
        (Arg((3, 4)),), (Arg((2, 3), "float64"), 0.3), Sample((Arg((2,)), -1.0), error=True)
    ),
)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x shrunk towards 0 by lambd, 0 inside; RuntimeError for a negative lambd."""
    if lambd < 0:
        most = float(getattr(dt.finfo(input.dtype), "max"))  # noqa: B009 - set by name
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {input.dtype.legacy}, but"
            f" found {lambd:g}"
        )
    return aten.softshrink(input, lambd)


@composite(
    "threshold.nn(Tensor input, float threshold, float value, bool inplace=False) -> Tensor",
    surface="nn nn_",
    samples=calls((Arg((3, 4)), 0.1, 20.0)),
)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    return _applied("threshold", input, inplace, threshold, value, node="ThresholdBackward1")


@composite(
    "prelu(Tensor input, Tensor weight) -> Tensor",
    unsupported={"bool whole complex": kernel("prelu_cpu", unless=several_dtypes)},
    autocast="lower",
    surface="nn both",
    samples=calls(
        (Arg((2, 3, 4)), Arg((3,))),
        (Arg((4,)), Arg((1,))),
        Sample((Arg((2, 3)), Arg((2,))), error=True),
    ),
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x >= 0, else weight · x; weight `[1]` or one entry per channel (dim 1)."""
    if not isinstance(weight, Tensor):
        kind = type(weight).__name__
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {kind}")
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            "prelu: Type promoting not supported. Got"
            f" {scalar_name(input.dtype)} and {scalar_name(weight.dtype)}"
        )
    channels = weight.numel()
    if channels != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        size = input.size(1) if input.dim() >= 2 else 1
        if size != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter "
                f"numbers = {channels} and channel size = {size}."
            )
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    if weight.dim() == 1 and input.dim() != 1:
        shape = [1] * input.dim()
        if input.dim() >= 2:
            shape[1] = channels
        weight = weight.reshape(shape)
    return aten._prelu_kernel(input, weight)


@composite(
    "rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, bool "
    "training=False, bool inplace=False) -> Tensor",
    surface="nn function nn_",
    samples=calls((Arg((3, 4)),), (Arg((3, 4)), 0.1, 0.3)),
)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu; in training its slope is drawn from [lower, upper] for each element."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        slope = (lower + upper) / 2
        return _applied("leaky_relu", input, inplace, slope, node="RreluWithNoiseBackward1")
    if input.device.type == "cpu":  # where torch draws for the elements up to 0 alone, in float64
        if input.dtype not in (dt.float32, dt.float64):
            raise NotImplementedError(
                f"\"rrelu_with_noise_out_cpu\" not implemented for '{input.dtype.legacy}'"
            )
        leaks, slope = aten.le(input, 0)._array, aten.ones_like(input)
        count = (int(leaks.sum()),)
        slope._array[leaks] = aten.empty(count, dtype=dt.float64).uniform_(lower, upper)._array
        result = aten.contiguous(input * slope)
    else:
        slope = aten.empty_like(input).uniform_(lower, upper)
        result = aten.where(input > 0, input, input * slope)
    return _write_back(input, result, "RreluWithNoiseBackward1") if inplace else result


@composite(
    "glu(Tensor input, int dim=-1) -> Tensor",
    unsupported={"bool whole complex": "glu_cpu"},
    samples=calls((Arg((3, 4)),), (Arg((4, 3)), 0), Sample((Arg((3, 3)),), error=True)),
)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Splits in two along `dim`: a · sigmoid(b); RuntimeError for an odd size."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        at = dim % input.dim()
        raise RuntimeError(f"Halving dimension must be even, but dimension {at} is size {size}")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def _softmax_dim(name: str, ndim: int) -> int:
    unrepeatable()
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
    )
    return 0 if ndim in (0, 1, 3) else 1


@composite(
    "softmax.nn(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    samples=calls((Arg((3, 4)), 1), Sample((Arg((2, 3)),), {"dim": 0, "dtype": "float64"})),
    rule="softmax",
)
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None
) -> Tensor:
    """exp(x) over its sum along `dim`; `dtype` casts first."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@composite(
    "softmin(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    samples=calls((Arg((3, 4)), 1), Sample((Arg((2, 3)),), {"dim": 0, "dtype": "float64"})),
    rule="softmax",
)
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None
) -> Tensor:
    """softmax of -x."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim())
    return softmax(-input, dim, dtype=dtype)


@composite(
    "log_softmax.nn(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> "
    "Tensor",
    samples=calls((Arg((3, 4)), 1), Sample((Arg((2, 3)),), {"dim": 0, "dtype": "float64"})),
    rule="log_softmax",
)
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None
) -> Tensor:
    """log(softmax(x)) along `dim`; `dtype` casts first."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@composite(
    "gumbel_softmax(Tensor logits, float tau=1, bool hard=False, float eps=1e-10, int dim=-1) "
    "-> Tensor",
    samples=calls((Arg((3, 4)),), Sample((Arg((3, 4)),), {"hard": True})),
    tolerance="random",
)
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from the Gumbel-softmax distribution; `hard` gives
    one-hot samples with soft gradients."""
    if eps != 1e-10:
        unrepeatable()
        warn("`eps` parameter is deprecated and has no effect.")
    plain = aten.empty_like(logits).contiguous()
    gumbels = -plain.exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = aten.zeros_like(logits).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft
