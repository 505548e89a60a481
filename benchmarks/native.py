"""Native cpu kernels beside numpy's, row by row: between how many elements each wins.

python benchmarks/native.py [--only TEXT] [--write | --beside-torch]

Every row of one shape and dtype is called on made-up input of 4 to 2^17 elements, one thread, with
and without native kernels, in rounds whose fastest tenths are compared. A row wins where the native
kernel takes at most 85 % of numpy's time: from a size on, or up to one.
`--write` puts what was found into mindtorch/_backends/cpu/kernel_selection.py; where numpy has no
vectors of 64 bytes, what the functions that it has for those alone gain into
narrow_kernel_selection.py.
`--beside-torch` compares the calls on 2^18 elements of float32 with torch's instead, with numpy's
kernels alone and with the native ones where they win, and ends with geometric means.
"""

import argparse
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch as torch
import mindtorch.ops  # before backends, which its rows import
from mindtorch import Tensor
from mindtorch._backends.cpu import native
from mindtorch._backends.cpu.kernel_selection import FASTER_FROM
from mindtorch._backends.cpu.narrow_kernel_selection import FASTER_WITHOUT_WIDE_VECTORS
from mindtorch.ops.rules import Pointwise
from mindtorch.ops.schema import ArgKind
from mindtorch.ops.spec import OPS

SIZES = (4, 1 << 6, 1 << 9, 1 << 11, 1 << 13, 1 << 17)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
GAIN = 0.85
EVEN = 1.1
FLOATS = ("float32", "float64")
AS_TORCH = re.compile(
    r"(sum|nansum|mean|exp|exp2|expm1|log|log1p|tanh|sinh|cosh|sigmoid|softplus|mish|silu|elu|logsumexp"
    r"|_softmax|_log_softmax|log_sigmoid|_softmax_backward_data|_log_softmax_backward_data"
    r"|tanh_backward|sigmoid_backward|elu_backward|softplus_backward)( along .*| of a view.*)?"
)
SIGNED = {("digamma", "float32")}  # the library is slow below zero
# numpy's functions by vectors of 64 bytes alone (loops_umath_fp.dispatch.c.src).
WIDE_ALONE = re.compile(
    r"(acos|acosh|asin|asinh|atan|atan2|atanh|cosh|exp2|expm1|log10|log1p|log2|logaddexp2?|pow|sinh"
    r"|tan|angle)( of a view)?"
)
BACKEND = Path(__file__).resolve().parent.parent / "mindtorch/_backends/cpu"
F = torch.nn.functional


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Values between 0.1 and 0.9, or whole numbers from 1 to 9."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return torch.from_numpy(rng.integers(0, 2, shape).astype(bool))
    if dtype.startswith(("int", "uint")):
        return torch.from_numpy(rng.integers(1, 10, shape)).to(getattr(torch, dtype))
    return torch.from_numpy(rng.uniform(0.1, 0.9, shape)).to(getattr(torch, dtype))


def matrix(n: int, dtype: str, seed: int = 0) -> Any:
    """Rows of at most 1,024 elements, `n` in all."""
    width = min(1024, 1 << (n.bit_length() // 2))  # 2 of 4
    return drawn((n // width, width), dtype, seed)


def picture(n: int, dtype: str) -> Any:
    """A batch of two with eight channels, `n` elements in all."""
    side = max(4, int((n / 16) ** 0.5))
    return drawn((2, 8, side, side), dtype)


def volume(n: int, dtype: str) -> Any:
    """A batch of two with four channels of three dimensions, `n` elements in all."""
    side = max(4, round((n / 8) ** (1 / 3)))
    return drawn((2, 4, side, side, side), dtype)


def indices(shape: tuple[int, ...], below: int) -> Any:
    """int64 positions below a size."""
    return torch.from_numpy(np.random.default_rng(1).integers(0, below, shape))


Case = Callable[[int, str], Callable[[], Any]]


def _of(call: Callable[[Any], Any], make: Callable[..., Any] = matrix) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = make(n, dtype)
        return lambda: call(a)

    return case


def _named(name: str) -> Callable[..., Any]:
    """A function of the library that is measured."""
    return lambda *args: attrgetter(name)(torch)(*args)


def _of_picture(call: Callable[[Any], Any]) -> Case:
    return _of(call, picture)


def _of_volume(call: Callable[[Any], Any]) -> Case:
    return _of(call, volume)


def _with_index(call: Callable[[Any, Any], Any]) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = matrix(n, dtype)
        at = indices(tuple(a.shape), a.shape[1])
        return lambda: call(a, at)

    return case


def _with_rows(call: Callable[[Any, Any], Any]) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = matrix(n, dtype)
        at = indices((a.shape[0],), a.shape[0])
        return lambda: call(a, at)

    return case


def _affine(call: Callable[[Any, Any], Any]) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = matrix(n, dtype)
        w = drawn((a.shape[1],), dtype)
        return lambda: call(a, w)

    return case


def _filtered(call: Callable[[Any, Any], Any], shape: tuple[int, ...]) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a, w = picture(n, dtype), drawn(shape, dtype)
        return lambda: call(a, w)

    return case


def _pulled_back(call: Callable[..., Any], *inputs: Any) -> Callable[[], Any]:
    """The gradients of a call by all its inputs, as a call."""
    leaves = [tensor.requires_grad_() for tensor in inputs]
    y = call(*leaves)
    g = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, leaves, g, retain_graph=True)


def _gradient(call: Callable[[Any], Any], make: Callable[..., Any] = matrix) -> Case:
    return lambda n, dtype: _pulled_back(call, make(n, dtype))


def _affine_gradient(call: Callable[[Any, Any], Any]) -> Case:
    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = matrix(n, dtype)
        return _pulled_back(call, a, drawn((a.shape[1],), dtype))

    return case


def _filtered_gradient(call: Callable[[Any, Any], Any], shape: tuple[int, ...]) -> Case:
    return lambda n, dtype: _pulled_back(call, picture(n, dtype), drawn(shape, dtype))


def _of_weight(channels: int, groups: int) -> Case:
    """The gradient of a convolution by its weight."""

    def case(n: int, dtype: str) -> Callable[[], Any]:
        a, w = picture(n, dtype), drawn((channels, 8 // groups, 3, 3), dtype)
        grad = drawn((2, channels, *a.shape[2:]), dtype)
        row = _row_of("_convolution_weight_grad")
        return lambda: row(grad, a, w, (1, 1), (1, 1), (1, 1), groups)

    return case


def _row_of(name: str) -> Callable[..., Any]:
    """The row, or torch's operator of its name."""
    if torch.Tensor is Tensor:
        return OPS[name].entry("aten")
    return getattr(torch.ops.aten, name)  # type: ignore[no-any-return]


def _of_edges() -> Case:
    """Values between sorted ones."""

    def case(n: int, dtype: str) -> Callable[[], Any]:
        a, edges = matrix(n, dtype), torch.linspace(0, 1, 512).to(getattr(torch, dtype))
        return lambda: torch.searchsorted(edges, a)

    return case


def _of_sequences(gradient: bool = False) -> Case:
    """Four sequences of eight classes, each with three labels."""

    def case(n: int, dtype: str) -> Callable[[], Any]:
        steps = max(8, n // 32)
        logs = drawn((steps, 4, 8), dtype).log_softmax(-1)
        args = logs, indices((4, 3), 7) + 1, (steps,) * 4, (3,) * 4
        loss, alpha = _row_of("_ctc_loss")(*args, 0, False)
        if gradient:
            return lambda: _row_of("_ctc_loss_backward")(loss, *args, loss, alpha, 0)
        return lambda: _row_of("_ctc_loss")(*args, 0, False)

    return case


def _sampled(rank: int, gradient: bool = False) -> Case:
    """A grid of as many places as the image has elements of one channel."""

    def case(n: int, dtype: str) -> Callable[[], Any]:
        image = picture(n, dtype) if rank == 2 else volume(n, dtype)
        grid = drawn((2, *image.shape[2:], rank), dtype)
        name = f"grid_sampler_{rank}d"
        if gradient:
            row = _row_of(f"{name}_backward")
            return lambda: row(image, image, grid, 0, 0, False, (True, True))
        return lambda: _row_of(name)(image, grid, 0, 0, False)

    return case


def _of_regular(call: Callable[[Any], Any]) -> Case:
    """Of a square matrix with a diagonal that outweighs the rest."""

    def case(n: int, dtype: str) -> Callable[[], Any]:
        a = matrix(n, dtype)
        side = min(a.shape)
        regular = a[:side, :side] + torch.eye(side, dtype=a.dtype) * side
        return lambda: call(regular)

    return case


CASES: dict[str, Case] = {
    "topk": _of(lambda a: a.topk(5)),
    "topk of one": _of(lambda a: a.topk(1)),
    "kthvalue": _of(lambda a: torch.kthvalue(a, 1)),
    "kthvalue of the middle": _of(lambda a: torch.kthvalue(a, (a.shape[1] + 1) // 2)),
    "median": _of(lambda a: a.median(-1)),
    "sort": _of(lambda a: a.sort(-1)),
    "argsort": _of(lambda a: a.argsort(-1)),
    "cumsum": _of(lambda a: a.cumsum(-1)),
    "cumprod": _of(lambda a: a.cumprod(-1)),
    "cummax": _of(lambda a: a.cummax(-1)),
    "cummin": _of(lambda a: a.cummin(-1)),
    "logcumsumexp": _of(lambda a: a.logcumsumexp(-1)),
    "sum": _of(lambda a: a.sum()),
    "sum of rows": _of(lambda a: a.sum(-1)),
    "sum of columns": _of(lambda a: a.sum(0)),
    "sum of a transpose": _of(lambda a: a.t().sum()),
    "sum of rows of a transpose": _of(lambda a: a.t().sum(-1)),
    "sum of columns of a transpose": _of(lambda a: a.t().sum(0)),
    "mean of rows of a transpose": _of(lambda a: a.t().mean(-1)),
    "mean of columns of a transpose": _of(lambda a: a.t().mean(0)),
    "mean": _of(lambda a: a.mean()),
    "mean of rows": _of(lambda a: a.mean(-1)),
    "mean of columns": _of(lambda a: a.mean(0)),
    "prod": _of(lambda a: a.prod()),
    "prod of rows": _of(lambda a: a.prod(-1)),
    "var": _of(lambda a: a.var(-1)),
    "var of all": _of(lambda a: a.var()),
    "var of columns": _of(lambda a: a.var(0)),
    "std": _of(lambda a: a.std(-1)),
    "std of columns": _of(lambda a: a.std(0)),
    "var_mean": _of(lambda a: torch.var_mean(a, -1)),
    "norm": _of(lambda a: a.norm()),
    "norm of rows": _of(lambda a: torch.linalg.vector_norm(a, dim=-1)),
    "amax": _of(lambda a: a.amax(-1)),
    "amin": _of(lambda a: a.amin(-1)),
    "amax of columns": _of(lambda a: a.amax(0)),
    "amax of all": _of(lambda a: a.amax()),
    "amin of all": _of(lambda a: a.amin()),
    "aminmax": _of(lambda a: a.aminmax()),
    "trace": _of(lambda a: a.trace()),
    "max": _of(lambda a: a.max()),
    "max of rows": _of(lambda a: a.max(-1)),
    "argmax": _of(lambda a: a.argmax(-1)),
    "all": _of(lambda a: a.all()),
    "any": _of(lambda a: a.any(-1)),
    "logsumexp": _of(lambda a: a.logsumexp(-1)),
    "softmax": _of(lambda a: a.softmax(-1)),
    "softmax of columns": _of(lambda a: a.softmax(0)),
    "log_softmax": _of(lambda a: a.log_softmax(-1)),
    "log_softmax of columns": _of(lambda a: a.log_softmax(0)),
    "softmax'": _gradient(lambda a: a.softmax(-1)),
    "softmax' of columns": _gradient(lambda a: a.softmax(0)),
    "log_softmax' of columns": _gradient(lambda a: a.log_softmax(0)),
    "log_softmax'": _gradient(lambda a: a.log_softmax(-1)),
    "gelu'": _gradient(_named("nn.functional.gelu")),
    "gelu tanh'": _gradient(lambda a: F.gelu(a, approximate="tanh")),
    "silu'": _gradient(_named("nn.functional.silu")),
    "relu'": _gradient(_named("nn.functional.relu")),
    "tanh'": _gradient(_named("tanh")),
    "sigmoid'": _gradient(_named("sigmoid")),
    "leaky_relu'": _gradient(_named("nn.functional.leaky_relu")),
    "elu'": _gradient(_named("nn.functional.elu")),
    "softplus'": _gradient(_named("nn.functional.softplus")),
    "hardswish'": _gradient(_named("nn.functional.hardswish")),
    "hardtanh'": _gradient(_named("nn.functional.hardtanh")),
    "hardshrink'": _gradient(_named("nn.functional.hardshrink")),
    "softshrink'": _gradient(_named("nn.functional.softshrink")),
    "mish'": _gradient(_named("nn.functional.mish")),
    "layer_norm": _affine(lambda a, w: F.layer_norm(a, (a.shape[1],), w, w)),
    "layer_norm'": _gradient(lambda a: F.layer_norm(a, (a.shape[1],))),
    "layer_norm' of all": _affine_gradient(lambda a, w: F.layer_norm(a, (a.shape[1],), w, w)),
    "layer_norm plain": _of(lambda a: F.layer_norm(a, (a.shape[1],))),
    "rms_norm": _affine(lambda a, w: F.rms_norm(a, (a.shape[1],), w)),
    "rms_norm'": _gradient(lambda a: F.rms_norm(a, (a.shape[1],))),
    "group_norm": _of_picture(lambda a: F.group_norm(a, 4)),
    "group_norm'": _gradient(lambda a: F.group_norm(a, 4, torch.ones(8, dtype=a.dtype)), picture),
    "batch_norm": _of_picture(lambda a: F.batch_norm(a, None, None, training=True)),
    "batch_norm'": _gradient(lambda a: F.batch_norm(a, None, None, training=True), picture),
    "gather": _with_index(lambda a, i: a.gather(1, i)),
    "scatter_add": _with_index(lambda a, i: a.scatter_add(1, i, a)),
    "scatter": _with_index(lambda a, i: a.scatter(1, i, a)),
    "index_add": _with_rows(lambda a, i: a.index_add(0, i, a)),
    "index_select": _with_rows(lambda a, i: a.index_select(0, i)),
    "index": _with_rows(lambda a, i: a[i]),
    "index_put": _with_rows(lambda a, i: a.index_put((i,), a)),
    "index_copy": _with_rows(lambda a, i: a.index_copy(0, i, a)),
    "embedding": _with_rows(lambda a, i: F.embedding(i, a)),
    "embedding'": _gradient(lambda a: F.embedding(indices((a.shape[0],), a.shape[0]), a)),
    "tril": _of(_named("tril")),
    "triu": _of(_named("triu")),
    "flip": _of(lambda a: a.flip(1)),
    "roll": _of(lambda a: a.roll(3, 1)),
    "repeat": _of(lambda a: a.repeat(2, 2)),
    "repeat_interleave": _of(lambda a: a.repeat_interleave(2, 1)),
    "cat": _of(lambda a: torch.cat([a, a], 1)),
    "stack": _of(lambda a: torch.stack([a, a])),
    "pad": _of(lambda a: F.pad(a, (1, 1))),
    "clone": _of(_named("clone")),
    "clone of columns": _of(lambda a: a.t().contiguous()),
    "to float32": _of(lambda a: a.to(torch.float32)),
    "to float64": _of(lambda a: a.to(torch.float64)),
    "to float16": _of(lambda a: a.to(torch.float16)),
    "to bfloat16": _of(lambda a: a.to(torch.bfloat16)),
    "to int64": _of(lambda a: a.to(torch.int64)),
    "masked_fill": _of(lambda a: a.masked_fill(a > 0.5, 0)),
    "dropout": _of(lambda a: F.dropout(a, 0.5)),
    "avg_pool2d": _of_picture(lambda a: F.avg_pool2d(a, 2)),
    "avg_pool2d'": _gradient(lambda a: F.avg_pool2d(a, 2), picture),
    "max_pool2d": _of_picture(lambda a: F.max_pool2d(a, 2)),
    "max_pool2d'": _gradient(lambda a: F.max_pool2d(a, 2), picture),
    "adaptive_avg_pool2d": _of_picture(lambda a: F.adaptive_avg_pool2d(a, 1)),
    "adaptive_avg_pool2d'": _gradient(lambda a: F.adaptive_avg_pool2d(a, 2), picture),
    "reflection_pad2d": _of_picture(lambda a: F.pad(a, (1, 1, 1, 1), mode="reflect")),
    "replication_pad2d": _of_picture(lambda a: F.pad(a, (1, 1, 1, 1), mode="replicate")),
    "interpolate": _of_picture(lambda a: F.interpolate(a, scale_factor=2)),
    "interpolate bilinear": _of_picture(
        lambda a: F.interpolate(a, scale_factor=2, mode="bilinear")
    ),
    "interpolate bilinear'": _gradient(
        lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), picture
    ),
    "interpolate bicubic": _of_picture(lambda a: F.interpolate(a, scale_factor=2, mode="bicubic")),
    "interpolate bicubic'": _gradient(
        lambda a: F.interpolate(a, scale_factor=2, mode="bicubic"), picture
    ),
    **{f"grid_sample {rank}d": _sampled(rank) for rank in (2, 3)},
    **{f"grid_sample {rank}d'": _sampled(rank, gradient=True) for rank in (2, 3)},
    "conv2d": _filtered(lambda a, w: F.conv2d(a, w, padding=1), (16, 8, 3, 3)),
    "conv2d by depth": _filtered(lambda a, w: F.conv2d(a, w, padding=1, groups=8), (8, 1, 3, 3)),
    "conv2d weight'": _of_weight(16, 1),
    "conv2d by depth weight'": _of_weight(8, 8),
    "conv_transpose2d": _filtered(lambda a, w: F.conv_transpose2d(a, w, stride=2), (8, 16, 3, 3)),
    "gather along others": _with_index(lambda a, i: a.gather(0, i % a.shape[0])),
    "scatter along others": _with_index(lambda a, i: a.scatter(0, i % a.shape[0], a)),
    "scatter of a number": _with_index(lambda a, i: a.scatter(1, i, 1)),
    "scatter_add along others": _with_index(lambda a, i: a.scatter_add(0, i % a.shape[0], a)),
    **{
        f"scatter_reduce {kind} along {where}": _with_index(
            lambda a, i, kind=kind, dim=dim: a.scatter_reduce(dim, i % a.shape[dim], a, kind)
        )
        for kind in ("sum", "amax")
        for dim, where in enumerate(("others", "the last"))
    },
    **{
        f"index_reduce {kind}": _with_rows(lambda a, i, kind=kind: a.index_reduce(0, i, a, kind))
        for kind in ("prod", "amax")
    },
    "index_select of columns": _with_index(lambda a, i: a.index_select(1, i[0])),
    "index_add of columns": _with_index(lambda a, i: a.index_add(1, i[0], a)),
    "index_fill": _with_rows(lambda a, i: a.index_fill(0, i, 1)),
    "index_fill of columns": _with_index(lambda a, i: a.index_fill(1, i[0], 1)),
    "take": _with_index(_named("take")),
    "bincount": _with_rows(lambda _, i: torch.bincount(i)),
    **{
        f"{name} of columns": _of(lambda a, name=name: getattr(a, name)(0))
        for name in (
            "cumsum",
            "cumprod",
            "cummax",
            "cummin",
            "logcumsumexp",
            "sort",
            "argsort",
            "amin",
            "max",
            "min",
            "argmax",
            "argmin",
            "all",
            "any",
            "logsumexp",
            "median",
            "nansum",
        )
    },
    "min": _of(lambda a: a.min()),
    "min of rows": _of(lambda a: a.min(-1)),
    "argmin": _of(lambda a: a.argmin(-1)),
    "median of all": _of(lambda a: a.median()),
    "std of all": _of(lambda a: a.std()),
    "std_mean": _of(lambda a: torch.std_mean(a, -1)),
    "std_mean of columns": _of(lambda a: torch.std_mean(a, 0)),
    "var_mean of columns": _of(lambda a: torch.var_mean(a, 0)),
    "norm of columns": _of(lambda a: torch.linalg.vector_norm(a, dim=0)),
    "stack along the last": _of(lambda a: torch.stack([a, a], -1)),
    "cat of columns": _of(lambda a: torch.cat([a, a], 0)),
    "div by floor": _of(lambda a: torch.div(a, a, rounding_mode="floor")),
    "div towards zero": _of(lambda a: torch.div(a, a, rounding_mode="trunc")),
    "round to a place": _of(lambda a: torch.round(a, decimals=1)),
    "cholesky": _of_regular(_named("linalg.cholesky")),
    "inv": _of_regular(_named("linalg.inv")),
    "qr": _of(lambda a: torch.linalg.qr(a)),
    "max_pool3d": _of_volume(lambda a: F.max_pool3d(a, 2)),
    "max_pool3d'": _gradient(lambda a: F.max_pool3d(a, 2), volume),
    "avg_pool3d": _of_volume(lambda a: F.avg_pool3d(a, 2)),
    "avg_pool3d'": _gradient(lambda a: F.avg_pool3d(a, 2), volume),
    "adaptive_avg_pool3d": _of_volume(lambda a: F.adaptive_avg_pool3d(a, 2)),
    "adaptive_avg_pool3d'": _gradient(lambda a: F.adaptive_avg_pool3d(a, 2), volume),
    "adaptive_max_pool3d": _of_volume(lambda a: F.adaptive_max_pool3d(a, 2)),
    "adaptive_max_pool3d'": _gradient(lambda a: F.adaptive_max_pool3d(a, 2), volume),
    "adaptive_avg_pool2d to 2": _of_picture(lambda a: F.adaptive_avg_pool2d(a, 2)),
    "adaptive_max_pool2d": _of_picture(lambda a: F.adaptive_max_pool2d(a, 2)),
    "adaptive_max_pool2d'": _gradient(lambda a: F.adaptive_max_pool2d(a, 2), picture),
    "interpolate linear": _of_picture(lambda a: F.interpolate(a[0], scale_factor=2, mode="linear")),
    "interpolate linear'": _gradient(
        lambda a: F.interpolate(a.flatten(2), scale_factor=2, mode="linear"), picture
    ),
    "interpolate trilinear": _of_volume(
        lambda a: F.interpolate(a, scale_factor=2, mode="trilinear")
    ),
    "interpolate trilinear'": _gradient(
        lambda a: F.interpolate(a, scale_factor=2, mode="trilinear"), volume
    ),
    "interpolate nearest 1d": _of_picture(lambda a: F.interpolate(a[0], scale_factor=2)),
    "interpolate nearest 3d": _of_volume(lambda a: F.interpolate(a, scale_factor=2)),
    "interpolate exactly": _of_picture(
        lambda a: F.interpolate(a, scale_factor=2, mode="nearest-exact")
    ),
    "conv2d'": _filtered_gradient(lambda a, w: F.conv2d(a, w, padding=1), (16, 8, 3, 3)),
    "conv_transpose2d'": _filtered_gradient(
        lambda a, w: F.conv_transpose2d(a, w, stride=2), (8, 16, 3, 3)
    ),
    "ctc_loss": _of_sequences(),
    "ctc_loss'": _of_sequences(gradient=True),
    "matmul": _of(lambda a: a @ a.t()),
    "addmm": _of(lambda a: F.linear(a, a, a[:, 0])),
    "bmm": _of(lambda a: a[None] @ a.t()[None]),
    "cdist": _of(lambda a: torch.cdist(a[:64], 1 - a[:64])),
    "mse_loss": _of(lambda a: F.mse_loss(a, a)),
    "l1_loss": _of(lambda a: F.l1_loss(a, a)),
    "smooth_l1_loss": _of(lambda a: F.smooth_l1_loss(a, a)),
    "bce": _of(lambda a: F.binary_cross_entropy(a, a)),
    "bce with logits": _of(lambda a: F.binary_cross_entropy_with_logits(a, a)),
    "kl_div": _of(lambda a: F.kl_div(a, a)),
    "nll_loss": _with_rows(lambda a, i: F.nll_loss(a, i % a.shape[1])),
    "slogdet": _of_regular(_named("linalg.slogdet")),
    "svd": _of_regular(_named("linalg.svd")),
    "threshold": _of(lambda a: F.threshold(a, 0.5, 0.0)),
    "masked_select": _of(lambda a: a.masked_select(a > 0.5)),
    "unfold": _of_picture(lambda a: F.unfold(a, 3)),
    "fold": _of_picture(lambda a: F.fold(a.flatten(2), a.shape[2:], 1)),
    "searchsorted": _of_edges(),
    "multinomial": _of(lambda a: torch.multinomial(a, 1)),
    "nonzero": _of(lambda a: torch.nonzero(a)),
    "addmv": _of(lambda a: torch.mv(a, a[0])),
    "glu": _of(_named("nn.functional.glu")),
    "clamp": _of(lambda a: a.clamp(0.2, 0.8)),
    "clamp from below": _of(lambda a: a.clamp(min=0.2)),
    "clamp from above": _of(lambda a: a.clamp(max=0.8)),
    "lerp": _of(lambda a: torch.lerp(a, a, 0.3)),
    "leaky_relu": _of(_named("nn.functional.leaky_relu")),
    "a + 2": _of(lambda a: a + 2),
    "a * 2": _of(lambda a: a * 2),
    "a > 2": _of(lambda a: a > 2),
}


def pointwise() -> dict[str, Case]:
    """A case for every pointwise row whose arguments but tensors have defaults."""
    found = {}
    for op in list(OPS.values()):
        rule = op.infer
        op.bind()
        if not op.kernels.aclnn or not isinstance(rule, Pointwise):
            continue
        tensors = (ArgKind.TENSOR, ArgKind.UNION)
        if any(a.kind not in tensors and not a.has_default for a in op.schema.args):
            continue
        if op.schema.args[-1].kind is ArgKind.OPTIONAL_TENSOR:
            continue
        found[f"{op.name} ({op.family})"] = _row(op)
    return found


def _row(op: Any) -> Case:
    count = sum(a.kind in (ArgKind.TENSOR, ArgKind.UNION) for a in op.schema.args)

    def case(n: int, dtype: str) -> Callable[[], Any]:
        tensors = [matrix(n, "bool" if i < op.infer.skip else dtype, i) for i in range(count)]
        if (op.name, dtype) in SIGNED:
            tensors = [t - 0.5 for t in tensors]
        call = op.entry("function")
        return lambda: call(*tensors)

    return case


def fastest(calls: list[Callable[[], Any]], budget: float = 0.006) -> list[float]:
    """Seconds of each call: the fastest tenth of rounds within `budget` seconds each."""
    times: list[list[float]] = [[] for _ in calls]
    start = time.perf_counter()
    while len(times[0]) < 5 or (
        time.perf_counter() - start < budget * len(calls) and len(times[0]) < 200
    ):
        for found, call in zip(times, calls, strict=True):
            before = time.perf_counter()
            call()
            found.append(time.perf_counter() - before)
    return [sorted(t)[len(t) // 10] for t in times]


def rows_of(call: Callable[[], Any]) -> set[str]:
    """The rows, as the table knows them, that a call gave native kernels to."""
    names: set[str] = set()
    given = native.variant

    def noting(op: Any, args: Any, first: Any) -> str:
        name = given(op, args, first)
        names.add(name)
        return name

    native.variant = noting
    try:
        call()
    finally:
        native.variant = given
    return names


def compare(case: Case, n: int, dtype: str) -> tuple[set[str], float] | None:
    """The rows and native's share of numpy's time; None where the call is refused."""
    try:
        call = case(n, dtype)
        with native.flags(enabled=False):
            call()
        with native.flags(enabled=True, everywhere=True):
            names = rows_of(call)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
        return None
    if not names:
        return None

    with native.flags(enabled=False):
        call()
        numpy_time = fastest([call])[0]
    with native.flags(enabled=True, everywhere=True):
        call()
        native_time = fastest([call])[0]
    with native.flags(enabled=False):
        call()
        numpy_time = min(numpy_time, fastest([call])[0])
    return names, native_time / numpy_time


Window = tuple[int, int]  # the least and the greatest size, 0 where there is none


def measured(case: Case, dtype: str) -> tuple[set[str], Window | None, list[float]]:
    """The rows of a case, the sizes at which it wins, and its share at each."""
    rows: set[str] = set()
    shares = []
    for n in SIZES:
        result = compare(case, n, dtype)
        if result is None:
            return set(), None, []
        rows |= result[0]
        shares.append(result[1])
    exact = dtype in FLOATS and all(AS_TORCH.fullmatch(row) for row in rows)
    return rows, window(shares, EVEN if exact else GAIN), shares


def window(shares: list[float], limit: float) -> Window | None:
    """The sizes from the first loss down to the smallest, or from the last loss on: those that
    gain more together."""
    lost = [i for i, share in enumerate(shares) if share > limit]
    if not lost:
        return SIZES[0], 0
    low, high = shares[: lost[0]], shares[lost[-1] + 1 :]
    if not low and not high:
        return None
    if math.prod(low) <= math.prod(high):
        return SIZES[0], SIZES[len(low) - 1]
    return SIZES[lost[-1] + 1], 0


def both(a: Window | None, b: Window | None) -> Window | None:
    """The sizes in two windows."""
    if a is None or b is None:
        return None
    most = min(a[1] or b[1], b[1] or a[1])
    least = max(a[0], b[0])
    return None if most and most < least else (least, most)


@contextmanager
def running_on(module: Any) -> Iterator[None]:
    """Within it the cases call this library."""
    before = torch, F
    globals().update(torch=module, F=module.nn.functional)
    try:
        yield
    finally:
        globals().update(torch=before[0], F=before[1])


def beside_torch(only: str, n: int = 1 << 18) -> None:
    """Print each case's time as multiples of torch's: numpy's kernels alone, and with native ones.

    The three take turns in rounds, and the fastest tenth of each counts.
    """
    import torch as theirs

    theirs.set_num_threads(1)
    ratios: list[tuple[float, float]] = []
    for name, case in CASES.items():
        if not re.search(only, name):
            continue
        try:
            with running_on(theirs):
                their_call = case(n, "float32")
                their_call()
            own_call = case(n, "float32")
            own_call()
        except (AttributeError, RuntimeError, TypeError) as error:
            print(f"{name:32} not run: {str(error).splitlines()[0][:60]}")
            continue
        times = [_turn(their_call, own_call, theirs) for _ in range(3)]
        torch_time, numpy_time, native_time = (min(column) for column in zip(*times, strict=True))
        ratios.append((numpy_time / torch_time, native_time / torch_time))
        print(f"{name:32} torch {torch_time * 1e6:9.1f} us   numpy {ratios[-1][0]:6.2f}x"
              f"   with native {ratios[-1][1]:6.2f}x", flush=True)  # fmt: skip
    for column, label in enumerate(("numpy alone", "with native kernels")):
        values = [r[column] for r in ratios]
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{label}: geometric mean {mean:.2f} of {len(values)} calls,"
              f" at most torch's time {sum(v <= 1 for v in values)},"
              f" at most twice {sum(v <= 2 for v in values)}")  # fmt: skip


def _turn(their_call: Callable[[], Any], own_call: Callable[[], Any], theirs: Any) -> list[float]:
    with running_on(theirs):
        times = fastest([their_call], 0.05)
    for enabled in (False, True):
        with native.flags(enabled=enabled):
            own_call()
            times += fastest([own_call], 0.05)
    return times


def main() -> None:
    """Measure and print; write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this (a pattern)")
    parser.add_argument("--write", action="store_true", help="put the table into the package")
    parser.add_argument("--beside-torch", action="store_true", help="multiples of torch's times")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.beside_torch:
        beside_torch(options.only)
        return
    best: dict[tuple[str, str], Window | None] = {}
    for name, case in {**CASES, **pointwise()}.items():
        if not re.search(options.only, name):
            continue
        for dtype in DTYPES:
            rows, sizes, shares = measured(case, dtype)
            for row in rows if len(rows) == 1 else ():
                best[row, dtype] = both(best.get((row, dtype), (0, 0)), sizes)
            if rows:
                told = " ".join(f"{share:5.2f}" for share in shares)
                print(f"{name:32} {dtype:9} {told}  {sizes or '-'}  {' '.join(sorted(rows))}")
    if options.write:
        apart = set() if native.wide_vectors() else {k for k in best if WIDE_ALONE.fullmatch(k[0])}
        floats = {key for key in apart if key[1] in FLOATS}
        for keys, before in (
            (best.keys() - apart, FASTER_FROM),
            (floats, FASTER_WITHOUT_WIDE_VECTORS),
        ):
            if keys:
                write({key: best[key] for key in keys}, before, bool(options.only))


def write(
    best: dict[tuple[str, str], Window | None], before: dict[str, dict[str, Window]], some: bool
) -> None:
    """Write a table's module anew; of `some`, what was not measured stays as it is."""
    if some:
        best = {
            (row, dtype): sizes
            for row, windows in before.items()
            for dtype, sizes in windows.items()
        } | best
    wide = before is FASTER_FROM
    path = BACKEND / f"{'' if wide else 'narrow_'}kernel_selection.py"
    path.write_text(text(best, wide), encoding="utf-8")


def text(best: dict[tuple[str, str], Window | None], wide: bool) -> str:
    """The table's module."""
    name = "FASTER_FROM" if wide else "FASTER_WITHOUT_WIDE_VECTORS"
    where = (
        ""
        if wide
        else "\n\nIt holds beside the other table where numpy has no vectors of 64 bytes."
    )
    rows: dict[str, dict[Window, str]] = {}
    for (row, dtype), sizes in sorted(best.items()):
        if sizes is not None:
            of_row = rows.setdefault(row, {})
            of_row[sizes] = f"{of_row.get(sizes, '')} {dtype}".strip()
    lines = [
        '"""Owns the rows whose native kernels win over numpy\'s, by dtype: the least and the',
        "greatest number of elements, 0 where there is none. Written by",
        f"`python benchmarks/native.py --write`.{where}",
        '"""',
        "",
        "_WINDOWS: dict[str, dict[tuple[int, int], str]] = {",
        *(f"    {row!r}: {sizes!r}," for row, sizes in rows.items()),
        "}",
        f"{name} = {{",
        "    row: {dtype: sizes for sizes, dtypes in windows.items() for dtype in dtypes.split()}",
        "    for row, windows in _WINDOWS.items()",
        "}",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
