"""Rows of normalizations as layers call them."""

from __future__ import annotations

from ...._compat.warn_once import warn_once
from ...._tensor.device import CPU
from ...._tensor.recording import RECORDING, unrepeatable
from ...rules import c_name
from ...words import *
from .constants import refuse_gradients
from .norm import trailing
from .pad import pad
from .pools import avg_pool2d, avg_pool3d
from .rms import kernel_takes


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((3, 4)), (4,), Arg((4,)), Arg((4,))), Sample((Arg((3, 4)), (3,)), error=True)
    ),
    tolerance="composite",
)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes over the trailing dims `normalized_shape`; weight and bias have that shape."""
    shape = trailing(input.shape, normalized_shape)
    return aten.native_layer_norm(input, shape, weight, bias, eps)[0]


@composite(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
    "Tensor",
    unsupported={"bool whole": "rms_norm"},
    surface="nn function",
    samples=calls((Arg((3, 4)), (4,), Arg((4,))), (Arg((2, 3, 4)), (3, 4))),
    tolerance="composite",
)
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight over the trailing dims; eps None is the dtype's epsilon."""
    shape = tuple(normalized_shape)
    if not shape:
        trailing(input.shape, normalized_shape)  # which refuses
    if tuple(input.shape[-len(shape) :]) != shape:
        # torch's text lacks the comma behind the star here.
        sizes = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{sizes}], but got"
            f" input of size{list(input.shape)}"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape"
            f" {list(weight.shape)} and normalized_shape = {list(shape)}"
        )
    if weight is not None and weight.dtype is not input.dtype and not input.is_complex():
        warn_once(
            f"Mismatch dtype between input and weight: input dtype = {c_name(input.dtype)}, weight"
            f" dtype = {c_name(weight.dtype)}, Cannot dispatch to fused implementation. ",
            "rms_norm",
        )
    if input.device.type == "npu" and kernel_takes(input, weight):
        fused: Tensor = aten._fused_rms_norm(input, shape, weight, eps)[0]
        if fused._fn is not None:  # as torch's steps on cpu end
            half = input.dtype in (dt.float16, dt.bfloat16)
            fused._fn.label = "ToCopyBackward0" if half else "MulBackward0"
        return fused
    wide = input.float() if input.dtype in (dt.float16, dt.bfloat16) else input
    if eps is None:
        info: Any = dt.finfo(wide.dtype)
        eps = info.eps
    dims = tuple(range(-len(shape), 0))
    normal = wide * aten.rsqrt(wide.pow(2).mean(dims, keepdim=True).add_(eps))
    normal = normal if weight is None else normal * weight
    return normal if normal.dtype == input.dtype else normal.to(input.dtype)


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1e-05) -> Tensor",
    surface="nn function",
    samples=calls((Arg((2, 4, 3)), 2, Arg((4,)), Arg((4,))), Sample((Arg((2, 3)), 2), error=True)),
    tolerance="composite",
)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes `[N, C, *]` over each group of C / num_groups channels; weight and bias `[C]`."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    n, c = input.size(0), input.size(1)
    _check_batch([n * c // num_groups, num_groups, *input.shape[2:]])
    if num_groups < 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    area = 1
    for size in input.shape[2:]:
        area *= size
    return aten.native_group_norm(input, weight, bias, n, c, area, num_groups, eps)[0]


def _check_batch(size: Sequence[int]) -> None:
    values = size[0]
    for extent in size[2:]:
        values *= extent
    if values == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


@composite(
    "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
    "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls(
        (Arg((3, 2, 4)), None, None, Arg((2,)), Arg((2,)), True),
        (Arg((3, 2)), Arg((2,), grad=False), Arg((2,), low=0.5, grad=False)),
    ),
    tolerance="chained",
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel (dim 1) over batch and space; in
    training updates the running statistics."""
    if training:
        _check_batch(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if not training and (running_mean is None or running_var is None):
        absent = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{absent} must be defined in evaluation mode")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    refuse_gradients("native_batch_norm", running_mean=running_mean, running_var=running_var)
    return normalized_by(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _moved(running: Tensor, batch: Tensor, momentum: float) -> None:
    """Moves a running statistic towards a batch's by `momentum`, outside autograd."""
    if batch._geom.dtype is not running._geom.dtype:
        batch = batch.to(running.dtype)
    _plain(running).mul_(1 - momentum).add_(batch, alpha=momentum)


def _beside(running: Tensor | None, batch: Tensor) -> bool:
    """Whether numpy may move a statistic: on cpu, where nothing looks on."""
    if running is None:
        return True
    geom = running._geom
    return (
        running.__class__ is batch.__class__ is Tensor
        and geom.device is CPU
        and geom.contiguous  # an expanded one is refused
        and geom.dtype in (dt.float32, dt.float64)
        and geom.shape == batch._geom.shape
        and running._fn is None
        and RECORDING.recorder is None
        and not aten._watched()
    )


def _towards(running: Tensor, batch: Array, momentum: float) -> None:
    """Move a statistic in double, and round once, as torch's kernel of cpu does: no version is
    counted for it."""
    array = running._array
    array[...] = momentum * batch + (1 - momentum) * array.astype(np.float64)


def _plain(tensor: Tensor) -> Tensor:
    """The tensor outside autograd: itself where it has no history."""
    return tensor if tensor._fn is None else tensor.detach()


def normalized_by(
    input: Tensor,
    mean: Tensor | None,
    var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm and its statistics; in training the running ones move by `momentum`."""
    if not input.numel():
        # Nothing to normalize, whatever its rank; the statistics stay as they are.
        out = input if weight is None else input * weight[0]
        none = aten.empty((0,), dtype=input.dtype, device=input.device)
        return (out.clone() if bias is None else out + bias[0]), none, none
    channels = input.size(1)
    parts = {"running_mean": mean, "running_var": var, "weight": weight, "bias": bias}
    for name, values in parts.items():
        if values is not None and values._geom.numel != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {values.numel()}")
    fixed = (None, None) if training else (mean, var)
    if aten._watched():
        options = {"dtype": dt.uint8, "layout": getattr(input, "layout"), "device": input.device}  # noqa: B009
        aten._asked("empty.memory_format", ([0],), options)  # what cuDNN would reserve
        return aten._asked_recorded(
            "native_batch_norm.default",
            lambda *_: aten._batch_norm_functional(input, weight, bias, *fixed, training, eps),
            (input, weight, bias, mean, var, training, momentum, eps),
        )
    if training and mean is not None and var is not None and _moves(input, mean, var):
        unrepeatable()  # a body that were run once more would move them again
        results = aten._batch_norm_moving(input, weight, bias, mean, var, momentum, eps)
        mean._bump_version()
        var._bump_version()
        return results
    out, batch_mean, rstd = aten._batch_norm_functional(
        input, weight, bias, fixed[0], fixed[1], training, eps
    )
    if training and (mean is not None or var is not None):
        count = input.numel() // max(channels, 1)
        unbiased = count / max(count - 1, 1)
        aten._unseen(_move, mean, var, batch_mean, rstd, momentum, eps, unbiased)
    return out, batch_mean, rstd


def _moves(input: Tensor, mean: Tensor, var: Tensor) -> bool:
    """Whether CANN's operator moves the running statistics: of more than one value, beside which
    float32 ones lie on the device."""
    return (
        input.__class__ is mean.__class__ is var.__class__ is Tensor
        and input._geom.device.type == "npu"
        and input._geom.dtype is not dt.float64
        and input._geom.numel > input._geom.shape[1]
        and all(t._geom.dtype is dt.float32 and t._geom.device is input._geom.device
                and t._fn is None for t in (mean, var))
    )  # fmt: skip


_SHARED = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be"
    " updated in place, were not batched.\nIf you are using a module and do not need eval mode,"
    " please set `track_running_stats` to be False.If you are using a prebuilt module and do not"
    " need eval mode, please see the functorch website for resources on how to patch your module"
    " to work with vmap"
)


def _move(
    mean: Tensor | None, var: Tensor | None, batch_mean: Tensor, rstd: Tensor, momentum: float,
    eps: float, unbiased: float,
) -> None:  # fmt: skip
    """Move running statistics; the variance is the unbiased one, batches use the biased one."""
    if _beside(mean, batch_mean) and _beside(var, rstd):
        if mean is not None:
            _towards(mean, batch_mean._array.astype(np.float64), momentum)
        if var is not None:
            wide = rstd._array.astype(np.float64)
            _towards(var, unbiased / (wide * wide) - eps * unbiased, momentum)
        return
    stay = any(t is not None and not hasattr(t, "_level") for t in (mean, var))
    if hasattr(batch_mean, "_level") and stay:  # a batch of vmap
        raise RuntimeError(_SHARED)
    batch_mean, rstd = batch_mean.detach(), rstd.detach()
    if mean is not None:
        _moved(mean, batch_mean, momentum)
    if var is not None:
        _moved(var, (rstd.pow(-2) - eps) * unbiased, momentum)


@composite(
    "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
    "weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float "
    "eps=1e-05) -> Tensor",
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls((Arg((2, 3, 4)),), (Arg((2, 3, 4)), None, None, Arg((3,)), Arg((3,)))),
    tolerance="chained",
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of each sample: batch norm of `[1, N C, *]`."""
    if use_input_stats:
        _check_instance(input.size())
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = input.size(0), input.size(1)

    def repeated(tensor: Tensor | None) -> Any:
        return None if tensor is None else tensor.repeat(n)

    mean, var = repeated(running_mean), repeated(running_var)
    out, *_ = normalized_by(
        input.contiguous().reshape(1, n * c, *input.shape[2:]),
        mean,
        var,
        repeated(weight),
        repeated(bias),
        use_input_stats,
        momentum,
        eps,
    )
    if use_input_stats:
        # Each sample moved its own copy; the module keeps their mean.
        for running, moved in ((running_mean, mean), (running_var, var)):
            if running is not None:
                running.detach().copy_(moved.reshape(n, c).mean(0))
    return out.reshape(input.shape)


def _check_instance(size: Sequence[int]) -> None:
    values = 1
    for extent in size[2:]:
        values *= extent
    if values == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )


@composite(
    "local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float "
    "k=1.0) -> Tensor",
    samples=calls((Arg((2, 4, 3)), 3), (Arg((1, 4, 2, 2)), 2, 0.1)),
    tolerance="accumulated",
)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha · mean of x² over `size` neighbouring channels) ** beta."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {dim} "
            "dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = (input * input).unsqueeze(1)
    edges = (size // 2, (size - 1) // 2)
    if dim == 3:
        mean = avg_pool2d(pad(squares, (0, 0, *edges)), (size, 1), stride=1).squeeze(1)
    else:
        shape = squares.shape
        squares = squares.reshape(shape[0], 1, shape[2], shape[3], -1)
        mean = avg_pool3d(pad(squares, (0, 0, 0, 0, *edges)), (size, 1, 1), stride=1)
        mean = mean.squeeze(1).reshape(input.shape)
    return input / (mean * alpha + k).pow(beta)
