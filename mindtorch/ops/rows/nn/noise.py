"""Rows of dropouts, drawn from the default generator as torch draws them."""

from __future__ import annotations

import math

from ...._compat.warn_once import warn
from ...._tensor.recording import unrepeatable
from ...spec import OPS
from ...words import *


def _check(p: float, name: str = "dropout") -> float:
    """The probability; TypeError for a tensor of dims, and that of one without is its number."""
    if isinstance(p, Tensor):
        if p.dim():
            raise TypeError(f"{name}(): argument 'p' (position 2) must be float, not Tensor")
        p = p.item()
    if p < 0.0 or not p <= 1.0:
        kind = RuntimeError if p != p else ValueError  # of NaN torch's kernel says so
        raise kind(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _noise(like: Tensor, p: float) -> Tensor:
    """`like` with 0 where something drops and the scale of the rest elsewhere."""
    if aten._watched():
        return aten._asked("div_.Scalar", (like.bernoulli_(1 - p), 1 - p), {})
    return like.bernoulli_(1 - p).div_(1 - p)


def _blank(input: Tensor) -> Tensor:
    """Memory like the input's."""
    if aten._watched():
        return aten._asked("empty_like", (input,), {})
    return aten.empty_like(input)


def _per_channel(input: Tensor) -> Tensor:
    """An element for each channel: [N, C, 1, …]."""
    shape = (*input.shape[:2], *([1] * (input.dim() - 2)))
    if aten._watched():
        return input.new_empty(shape)
    return aten.empty(shape, dtype=input.dtype, device=input.device)


@composite(
    "dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((3, 4)), 0.5, False), (Arg((3, 4)), 0.5, True), Sample((Arg((2,)), 1.5), error=True)
    ),
    tolerance="random",
)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the rest by 1
    / (1 - p); identity outside training."""
    p = _check(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    if aten._draws_bits(input):
        drop = OPS["_drop"].entry("inplace" if inplace else "aten")
        result: Tensor = drop(input, aten._draw_bits(input, input.numel(), p), p)
        return result
    if inplace:
        return input.mul_(_noise(_blank(input), p))
    return input * _noise(_blank(input), p)


def _channels(input: Tensor, p: float, inplace: bool) -> Tensor:
    """Drops whole channels: noise of shape [N, C, 1, …]."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = _noise(_per_channel(input), p)
    return input.mul_(noise) if inplace else input * noise


def _feature_dropout(
    input: Tensor, p: float, training: bool, inplace: bool, batched: int
) -> Tensor:
    p = _check(p, "feature_dropout")
    if not training or p == 0 or input.numel() == 0:
        return input
    if input.dim() == batched:
        return _channels(input, p, inplace)
    if inplace:
        _channels(input.unsqueeze(0), p, True)
        return input
    return _channels(input.unsqueeze(0), p, False).squeeze(0)


@composite(
    "dropout1d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor",
    samples=calls((Arg((2, 3, 4)), 0.5, True), Sample((Arg((2,)),), error=True)),
    tolerance="random",
)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of `[N, C, L]` or `[C, L]`."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            "spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _feature_dropout(input, p, training, inplace, 3)


def _channel_dropout(n: int, x: Arg, where: str) -> None:
    """The row of `dropout{n}d`."""

    def dropout(
        input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        p = _check(p, "feature_dropout")
        if input.dim() not in (n + 1, n + 2):
            unrepeatable()
            warn(
                f"dropout{n}d: Received a {input.dim()}-D input to dropout{n}d, which is deprecated"
                " and will result in an error in a future release. To retain the behavior and"
                " silence this warning, please use dropout instead. Note that"
                f" dropout{n}d exists to provide channel-wise dropout on inputs with {n} spatial"
                f" dimensions, a channel dimension, and an optional batch dimension (i.e. {n + 1}D"
                f" or {n + 2}D inputs).",
            )
        if n == 2 and input.dim() == 3:
            unrepeatable()
            warn(
                "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D"
                " dropout behavior is desired - input is interpreted as shape (N, C, L), where C is"
                " the channel dim. This behavior will change in a future release to interpret the"
                " input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D"
                " channel-wise dropout behavior, please switch to using dropout1d instead.",
            )
        # Planes without a batch are taken for a batch, as torch does; spaces are not.
        return _feature_dropout(input, p, training, inplace, 5 if n == 3 else input.dim())

    dropout.__name__ = dropout.__qualname__ = f"dropout{n}d"
    dropout.__doc__ = f"Zeroes whole channels of {where}."
    composite(
        f"dropout{n}d(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor",
        dropout,
        surface="nn",
        samples=calls((x, 0.5, True)),
        tolerance="random",
    )


_channel_dropout(2, Arg((2, 3, 4, 2)), "`[N, C, H, W]`")
_channel_dropout(3, Arg((2, 3, 4, 2, 2)), "`[N, C, D, H, W]`")


_ALPHA = -1.7580993408473766  # -scale · alpha of selu: what a dropped unit is set to


@composite(
    "alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) -> Tensor",
    surface="nn function",
    samples=calls(
        (Arg((3, 4)), 0.5, False), (Arg((3, 4)), 0.5, True), Sample((Arg((2,)), 1.5), error=True)
    ),
    tolerance="random",
)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance of selu's outputs."""
    return _alpha(input, aten.empty_like, _check(p, "alpha_dropout"), training, inplace)


@composite(
    "feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False) "
    "-> Tensor",
    surface="nn function",
    samples=calls((Arg((3, 4)), 0.5, False), (Arg((3, 4, 2)), 0.5, True)),
    tolerance="random",
)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    if training and input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha(input, _per_channel, _check(p, "feature_alpha_dropout"), training, inplace)


def _alpha(
    input: Tensor, like: Callable[[Tensor], Tensor], p: float, training: bool, inplace: bool
) -> Tensor:
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    keep = like(input).bernoulli_(1 - p)
    scale = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = (1 - p - keep) * (_ALPHA * scale)
    noise = keep * scale
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift
