"""Rows of fractional max pooling: windows at pseudo-random places, given by samples in [0, 1)."""

from __future__ import annotations

from math import prod

from ...sizes import _ntuple
from ...words import *


def _starts(u: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """Where the windows start, `[*, out]`, by Graham's sequence (arXiv 1412.6071): whole parts of
    alpha (i + u) less alpha u; the last window ends where the input does."""
    if out == 1:
        return aten.full((*u.shape, 1), size - kernel, dtype=dt.int64, device=u.device)
    alpha = (size - kernel) / (out - 1)
    steps = aten.arange(0, out - 1, dtype=u.dtype, device=u.device)
    u = u.unsqueeze(-1)
    first = ((steps + u) * alpha).to(dt.int64) - (u * alpha).to(dt.int64)
    last = aten.full((*u.shape[:-1], 1), size - kernel, dtype=dt.int64, device=u.device)
    return aten.cat((first, last), -1)


def _refuse(input: Tensor, kernel: tuple[int, ...], out: tuple[int, ...], n: int) -> None:
    name, space = f"fractional_max_pool{n}d", tuple(input.shape[-n:])
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}"
        )
    if any(window < 0 for window in kernel):  # torch reads memory before the input
        raise RuntimeError(f"{name}(): kernel_size {kernel} has a negative length")
    for what, target, window, size in zip("THW"[-n:], out, kernel, space, strict=True):
        # torch wants room for one window more in three dimensions.
        if target + window - 1 > size - (n == 3):
            long = {"T": "time", "H": "height", "W": "width"}[what]
            raise RuntimeError(
                f"{name}(): pool {long} {window} too large relative to input {long} {size}"
            )


def _pool(
    x: Tensor, samples: Tensor, kernel: tuple[int, ...], out: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Maxima `[N, C, *out]` of `[N, C, *]` and their places in the flat input."""
    n = len(kernel)
    space, flat = tuple(x.shape[-n:]), aten.zeros((), dtype=dt.int64, device=x.device)
    for d in range(n):
        # Samples of two dimensions count from the last one, samples of three from the first.
        u = samples[..., n - 1 - d if n == 2 else d]
        where = _starts(u, space[d], out[d], kernel[d]).unsqueeze(-1)
        where = where + aten.arange(0, kernel[d], device=x.device)
        shape = [*x.shape[:2], *[1] * (2 * n)]
        shape[2 + d], shape[2 + n + d] = out[d], kernel[d]
        flat = flat * space[d] + where.reshape(shape)
    lead = tuple(x.shape[:2])
    flat = flat.reshape((*lead, -1))
    seen = x.reshape((*lead, -1)).gather(2, flat).reshape((*lead, *out, -1))
    best = seen.detach().argmax(-1, keepdim=True)
    values = seen.gather(-1, best).squeeze(-1)
    return values, flat.reshape(seen.shape).gather(-1, best).squeeze(-1)


def _pool_grad(grad: Tensor, self_geom: Geometry, indices: Tensor) -> Tensor:
    """Each window's gradient to the place of its largest element."""
    lead = (*self_geom.shape[:2], -1)
    flat = (*self_geom.shape[:2], prod(self_geom.shape[2:]))
    zeros = aten.zeros(flat, dtype=grad.dtype, device=grad.device)
    spread = zeros.scatter_add(2, indices.reshape(lead), grad.reshape(lead))
    return spread.reshape(tuple(self_geom.shape))


op(
    "_fractional_max_pool(Tensor self, Tensor samples, int[] kernel, int[] size)"
    " -> (Tensor values, Tensor indices)",
    infer=lambda self, samples, kernel, size: (
        self.fresh((*self.shape[:2], *size)), self.fresh((*self.shape[:2], *size), dt.int64),
    ),
    lower=_pool,
    grad={"self": lambda grad_values, self_geom, indices: _pool_grad(
        grad_values, self_geom, indices
    )},
    unsampled="fractional_max_pool2d and 3d are held against torch",
    tolerance="exact",
)  # fmt: skip


def _fractional(
    n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    shape, batched = tuple(input.shape), input.dim() != n + 1
    if output_size is None:
        ratios = _ntuple(n)(output_ratio)
        if len(ratios) > n:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of Ints."
            )
        if len(ratios) < n:
            raise IndexError("tuple index out of range")
        output_size = [int(input.size(d - n) * r) for d, r in enumerate(ratios)]
    if samples is None:
        batch = input.size(0) if batched else 1
        samples = aten.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    kernel, out = _ntuple(n)(kernel_size), _ntuple(n)(output_size)
    _refuse(input, kernel, out, n)
    drawn = tuple(samples.shape)
    if len(drawn) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(drawn)}")
    batch, channels = shape[0] if batched else 1, shape[-n - 1]
    if drawn[0] < batch or drawn[1:] != (channels, n):
        for dim, fits, what in (
            (0, drawn[0] >= batch, "no less then input batch size."),
            (1, drawn[1] == channels, "equals to input channel size."),
            (2, False, f"equals to {n}; got {drawn[2]}."),
        ):
            if not fits:
                raise RuntimeError(f"Expect _random_samples.size({dim}) {what}")
    x = input if batched else input.unsqueeze(0)
    samples = samples if drawn[0] == batch else samples.narrow(0, 0, batch)
    values, places = aten._fractional_max_pool(x, samples, kernel, out)
    return (values, places) if batched else (values[0], places[0])


def _rows(n: int) -> None:
    name, shape = f"fractional_max_pool{n}d", (1, 2, *range(5, 5 + n))
    draws = Arg((1, 2, n), low=0.0, high=1.0, grad=False)
    schema = (
        f"(Tensor input, int[{n}] kernel_size, int[{n}]? output_size=None,"
        " float[]? output_ratio=None, bool return_indices=False, Tensor? _random_samples=None)"
    )

    def both(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    def pooled(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        result = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return result if return_indices else result[0]

    for end, body in (("", pooled), ("_with_indices", both)):
        composite(
            f"{name}{end}{schema} -> " + ("(Tensor out, Tensor indices)" if end else "Tensor"),
            body,
            unsupported={"bool whole complex": f"{name}_out_frame"},
            samples=calls(
                Sample((Arg(shape), 2, 3), {"_random_samples": draws}),
                Sample((Arg(shape), (2,) * n), {"output_ratio": (0.5,) * n,
                                                "_random_samples": draws}),
                Sample((Arg(shape), 3, 6), {"_random_samples": draws}, error=True),
            ),
            tolerance="exact",
            surface="nn",
        )  # fmt: skip


_rows(2)
_rows(3)
