"""Rows of torch's native forms of layers, and of gradients that are operators of their own."""

from __future__ import annotations

from ...words import *
from .norm import trailing
from .normalize import normalized_by
from .pool import unpooled


def _first_grows(name: str) -> Any:
    """torch's operator with statistics cut off from the graph: it gives them no gradient."""

    def oracle(torch: Any) -> Any:
        def run(*args: Any) -> Any:
            out, *statistics = getattr(torch, name)(*args)
            return out, *[s.detach() for s in statistics]

        return run

    return oracle


@composite(
    "native_layer_norm.detached(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias,"
    " float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    samples=calls((Arg((2, 3, 4)), (4,), Arg((4,)), Arg((4,)), 1e-5)),
    oracle=_first_grows("native_layer_norm"),
    tolerance="composite",
    surface="function",
)
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, ...]:
    """Layer norm with its statistics `[*, 1 …]`, through which no gradient flows."""
    shape = trailing(input.shape, normalized_shape)
    out, mean, rstd = aten.native_layer_norm(input, shape, weight, bias, eps)
    return out, mean.detach(), rstd.detach()


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    out, mean, rstd = normalized_by(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return out, mean.detach(), rstd.detach()


_BATCH = (Arg((3, 2, 4)), Arg((2,)), Arg((2,)))
_MOVED = (Arg((2,), grad=False), Arg((2,), low=0.5, grad=False))

composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool training, float momentum, float eps)"
    " -> (Tensor out, Tensor mean, Tensor rstd)",
    _batch_norm,
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls(
        (*_BATCH, *_MOVED, True, 0.1, 1e-5),
        (*_BATCH, *_MOVED, False, 0.1, 1e-5),
        (_BATCH[0], None, None, None, None, True, 0.1, 1e-3),
    ),
    oracle=_first_grows("native_batch_norm"),
    tolerance="chained",
    surface="function",
)
composite(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,"
    " Tensor running_var, bool training, float momentum, float eps)"
    " -> (Tensor out, Tensor mean, Tensor rstd)",
    _batch_norm,
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls((*_BATCH, *_MOVED, True, 0.1, 1e-5)),
    oracle=_first_grows("_native_batch_norm_legit"),
    tolerance="chained",
    surface="function",
)
composite(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training,"
    " float momentum, float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
    lambda input, weight, bias, training, momentum, eps: _batch_norm(
        input, weight, bias, None, None, training, momentum, eps
    ),
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls((*_BATCH, True, 0.1, 1e-5)),
    oracle=_first_grows("_native_batch_norm_legit"),
    tolerance="chained",
    surface="function",
)
composite(
    "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean,"
    " Tensor running_var, float momentum, float eps)"
    " -> (Tensor out, Tensor mean, Tensor rstd, Tensor reserve)",
    lambda input, weight, bias, mean, var, momentum, eps: (
        *_batch_norm(input, weight, bias, mean, var, True, momentum, eps),
        aten.empty((0,), dtype=dt.uint8, device=input.device),
    ),
    unsupported={"bool whole complex": "batch_norm"},
    samples=calls((*_BATCH, *_MOVED, 0.1, 1e-5)),
    oracle=lambda torch: _first_grows("_batch_norm_with_update")(torch.ops.aten),
    tolerance="chained",
)


def _window_grad(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    del kernel_size, stride, padding, dilation, ceil_mode  # the indices say it all
    return unpooled(grad_output, indices, tuple(self.shape), 2)


composite(
    "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size,"
    " int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    _window_grad,
    unsupported={"bool whole complex": "max_pool2d_backward"}, samples=calls(
        (Arg((1, 1, 2, 2)), Arg((1, 1, 4, 4), grad=False), (2, 2), (2, 2), (0, 0), (1, 1), False,
         Arg((1, 1, 2, 2), "int64", values=[[[[0, 3], [8, 15]]]]))
    ),
    fixed_shape=True,
    tolerance="exact",
    surface="function",
)  # fmt: skip

composite(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    lambda grad_output, mask, scale: grad_output * (mask * scale).to(grad_output.dtype),
    samples=calls((Arg((3, 4)), Arg((3, 4), "bool"), 2.0)),
    tolerance="rounded",
    surface="function",
)


@composite(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    unsupported={"bool whole complex": "softmax_lastdim_kernel_impl"},
    samples=calls(
        (Arg((3, 4)), 1), (Arg((2, 2), values=[[0.0, 1.0], [-float("inf")] * 2], grad=False), 1)
    ),
    tolerance="accumulated",
)
def safe_softmax(self: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    """softmax with zeros where every element of a row is -inf."""
    if not self.numel():
        return aten.softmax(self, dim, dtype=dtype)
    hidden = (self == float("-inf")).all(dim, keepdim=True)
    # Masked before, too: a row of -inf alone has no gradient but NaN.
    return aten.softmax(self.masked_fill(hidden, 0.0), dim, dtype=dtype).masked_fill(hidden, 0.0)
