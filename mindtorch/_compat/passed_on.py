"""Owns what torch's functions of nn.functional do with their arguments before they call C.

Only calls with arguments of other classes than usual, and calls that failed, come here: the lines
raise what Python raises, or what torch's parser says of the call of C that they end in.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import CodeType
from typing import Any

from ..ops.sizes import _list_with_default, _pair, _single, _triple
from .argument_errors import explained
from .signatures import signatures_of

# `C.f` is a function of C, `M.f` a method of the tensor.
_DROP = "p < 0.0 or p > 1.0; C.{}(input, p, training)"
_POOL = (
    "C.max_pool{n}d{end}(input, kernel_size, [] if stride is None else stride, padding, dilation,"
    " ceil_mode)"
)
_POWERS = """
{sizes}
if isinstance(norm_type, (int, float)) and abs(norm_type) == float("inf"):
    C.max_pool{n}d(input, kernel_size, [] if stride is None else stride, 0, 1, ceil_mode)
M.pow(norm_type)
C.avg_pool{n}d(input, kernel_size, [] if stride is None else stride, 0, ceil_mode)
"""
_UNPOOL = """
kernel_size = {sizes}(kernel_size)
stride = {sizes}(stride) if stride is not None else kernel_size
padding = {sizes}(padding)
sizes = []
for d in range(len(kernel_size)):
    size = input.size()[d - len(kernel_size)]
    sizes.append((size - 1) * stride[d] + kernel_size[d] - 2 * padding[d])
if output_size is not None:
    len(output_size)
    sizes = output_size
C.max_unpool{m}d(input, indices, sizes{more})
"""
_SOFTMAX = """
if dim is None:
    input.dim()
    dim = 0
M.{0}(dim) if dtype is None else M.{0}(dim, dtype=dtype)
"""
_SIZES = {1: "_single", 2: "_pair", 3: "_triple"}
_SOURCES = {
    "adaptive_avg_pool1d": "C.adaptive_avg_pool1d(input, output_size)",
    "adaptive_max_pool1d": "C.adaptive_max_pool1d(input, output_size)",
    "affine_grid": "C.affine_grid_generator(theta, size, bool(align_corners) if align_corners is"
    " None or not len(size) else align_corners)",
    "alpha_dropout": _DROP.format("alpha_dropout"),
    "batch_norm": "training and eps <= 0.0\nC.batch_norm(input, weight, bias, running_mean,"
    " running_var, training, momentum, eps, True)",
    "cosine_embedding_loss": "C.cosine_embedding_loss(input1, input2, target, margin, 1)",
    "cross_entropy": "C.cross_entropy_loss(input, target, weight, 1, ignore_index,"
    " label_smoothing)",
    "ctc_loss": "C.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, 1,"
    " zero_infinity)",
    "dropout": _DROP.format("dropout"),
    "embedding": """
if padding_idx is None:
    padding_idx = -1
elif padding_idx > 0:
    padding_idx >= weight.size(0)
elif padding_idx < 0:
    padding_idx = weight.size(0) + padding_idx
if max_norm is not None:
    C.embedding_renorm_(weight, input, max_norm, norm_type)
C.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
""",
    "embedding_bag": """
if max_norm is not None:
    C.embedding_renorm_(weight, input, max_norm, norm_type)
C.embedding_bag(weight, input, input if offsets is None else offsets, scale_grad_by_freq, 0,
    sparse, per_sample_weights, include_last_offset, padding_idx)
""",
    "feature_alpha_dropout": _DROP.format("feature_alpha_dropout"),
    "fold": "C.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation),"
    " _pair(padding), _pair(stride))",
    "grid_sample": "C.grid_sampler(input, grid, 0, 0, bool(align_corners) if align_corners is None"
    " else align_corners)",
    "group_norm": "input.dim() < 2 or input.size(0) * input.size(1) // num_groups\n"
    "C.group_norm(input, num_groups, weight, bias, eps, True)",
    "hardtanh": "min_val > max_val; C.hardtanh(input, min_val, max_val)",
    "instance_norm": "C.instance_norm(input, weight, bias, running_mean, running_var,"
    " use_input_stats, momentum, eps, True)",
    "interpolate": """
dims = input.dim() - 2
sizes, factors = (v if v is None or isinstance(v, (list, tuple)) else [v] * dims
                  for v in (size, scale_factor))
if sizes is size and size is not None and not all(_is_integer(n) for n in size):
    kinds = [type(n) for n in size]
    raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                    f"Tuple[int, int, int], but got size with types {kinds}")
if mode in _KERNELS:
    corners = False if align_corners is None else align_corners
    getattr(C, _KERNELS[mode])(input, sizes, corners, factors)
elif mode == "nearest":
    getattr(C, f"upsample_nearest{dims}d")(input, sizes, factors)
""",
    "kl_div": "C.kl_div(input, target, 1, log_target=log_target)",
    "log_softmax": _SOFTMAX.format("log_softmax"),
    "lp_pool1d": _POWERS.format(n=1, sizes="kernel_size"),
    "multi_margin_loss": "C.multi_margin_loss(input, target, p, margin, weight, 1)",
    "multilabel_margin_loss": "C.multilabel_margin_loss(input, target, 1)",
    "nll_loss": "C.nll_loss_nd(input, target, weight, 1, ignore_index)",
    "pad": "C.pad(input, pad, mode, value)",
    "poisson_nll_loss": "C.poisson_nll_loss(input, target, log_input, full, eps, 1)",
    "rrelu": "C.rrelu(input, lower, upper, training)",
    "softmax": _SOFTMAX.format("softmax"),
    "softmin": _SOFTMAX.format("softmax"),
    "triplet_margin_loss": "margin <= 0; C.triplet_margin_loss(anchor, positive, negative, margin,"
    " p, eps, swap, 1)",
    "unfold": "C.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))",
}
_KERNELS = {"linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d",
            "bicubic": "upsample_bicubic2d", "trilinear": "upsample_trilinear3d"}  # fmt: skip
for _n, _word in _SIZES.items():
    _SOURCES |= {
        f"dropout{_n}d": _DROP.format("feature_dropout"),
        f"max_pool{_n}d": f"if return_indices:\n    {_POOL.format(n=_n, end='_with_indices')}\n"
        f"{_POOL.format(n=_n, end='')}",
        f"max_unpool{_n}d": _UNPOOL.format(
            n=_n, m=max(_n, 2), sizes=_word, more=("", " + [1]", "", ", stride, padding")[_n]
        ),
    }
    if _n > 1:
        _default = "_list_with_default(output_size, input.size())"
        _SOURCES |= {
            f"adaptive_avg_pool{_n}d": f"C.adaptive_avg_pool{_n}d(input, {_default})",
            f"adaptive_max_pool{_n}d": f"C.adaptive_max_pool{_n}d(input, {_default})",
            f"lp_pool{_n}d": _POWERS.format(n=_n, sizes=f"{_word}(kernel_size)"),
        }
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
              "binary_cross_entropy_with_logits"):  # fmt: skip
    _SOURCES[_name] = "target.size() == input.size()"
NAMES = frozenset(_SOURCES)


class _Calls:
    """Calls of C by name that raise what torch's parser says of their arguments."""

    def __init__(self, mark: str):
        self._mark = mark

    def __getattr__(self, name: str) -> Any:
        full = f"_VF.{name}" if not self._mark and signatures_of(f"_VF.{name}") else name

        def call(*args: object, **kwargs: object) -> None:
            if error := explained(self._mark + full, args, kwargs):
                raise error

        return call


def _is_integer(value: Any) -> bool:
    whole = hasattr(value, "is_floating_point") and not value.is_floating_point()
    return whole or isinstance(value, int)


_SCOPE = {
    "C": _Calls(""), "M": _Calls("."), "_list_with_default": _list_with_default, "_pair": _pair,
    "_single": _single, "_triple": _triple, "_KERNELS": _KERNELS,
    "_is_integer": _is_integer,
}  # fmt: skip


@functools.cache
def _code(name: str) -> CodeType:
    return compile(_SOURCES[name], f"<mindtorch passing on {name}>", "exec")


def pass_on(name: str, values: Mapping[str, object]) -> None:
    """What torch's function by this name raises before C has its arguments, and C's parser."""
    if name in NAMES:
        exec(_code(name), {**_SCOPE, **values})
