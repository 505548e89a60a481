"""Which share of results equals torch's to the last bit: sums, norms, losses, functions.

python -m benchmarks.bits [--device npu] [--only TEXT] [--dtype float64] [--backward]

Each function runs on random input of several sizes and layouts, in torch and in mindtorch. A line
gives the share of calls that are equal as a whole, the share of equal elements, and the largest
difference in units in the last place. Calls with gradients count those of all operands.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import mindtorch

Body = Callable[..., Any]
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 256, 500, 1000, 2048, 5000)
SHAPES = (
    (2, 3),
    (4, 8),
    (5, 7),
    (16, 16),
    (3, 33),
    (32, 10),
    (10, 32),
    (64, 65),
    (7, 300),
    (300, 7),
)
CUBES = ((2, 3, 4), (4, 8, 8), (3, 5, 16), (2, 32, 17), (8, 4, 40))
IMAGES = ((2, 4, 5, 5), (4, 8, 7, 9), (2, 16, 8, 8), (1, 4, 3, 3))


def values(shape: tuple[int, ...], seed: int, low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if low == -math.inf:
        return rng.standard_normal(shape)
    return rng.uniform(low, high, shape)


ELEMENTARY: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        "exp tanh sigmoid erf erfc sin cos tan expm1 sinh cosh exp2 atan asinh".split(),  # noqa: SIM905
        (-6, 6),
    ),
    **dict.fromkeys(
        ("log", "log2", "log10", "log1p", "rsqrt", "sqrt", "lgamma", "digamma", "reciprocal"),
        (0.01, 10),
    ),
    **dict.fromkeys(["asin", "acos", "erfinv", "atanh"], (-0.99, 0.99)),
    "acosh": (1, 10),
    "logit": (0.01, 0.99),
}
ACTIVATIONS = ("gelu", "silu", "softplus", "elu", "selu", "celu", "mish", "logsigmoid")
WHOLE = ["sum", "mean", "var", "std", "norm", "prod", "logsumexp", "nansum"]


def pointwise() -> Iterator[tuple[str, Body, tuple[Any, ...], tuple[float, float]]]:
    shapes = [(n,) for n in LENGTHS]
    for name, bounds in ELEMENTARY.items():
        yield name, lambda t, x, name=name: getattr(t, name)(x), shapes, bounds
    for name in ACTIVATIONS:
        yield name, lambda t, x, name=name: getattr(t.nn.functional, name)(x), shapes, (-6, 6)
    yield "gelu tanh", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), shapes, (-6, 6)
    for power in (0.5, 2, 3, -0.5, 1.7, -2):
        yield f"pow {power}", lambda _, x, p=power: x**p, shapes, (0.01, 10)
    yield "pow of two", lambda _, x: x ** x.flip(0), shapes, (0.01, 4)
    yield "2 ** x", lambda _, x: 2**x, shapes, (-4, 4)
    yield "atan2", lambda t, x: t.atan2(x, x.flip(0)), shapes, (-4, 4)
    yield "logaddexp", lambda t, x: t.logaddexp(x, x.flip(0)), shapes, (-4, 4)
    yield "xlogy", lambda t, x: t.xlogy(x, x.flip(0)), shapes, (0.01, 4)
    yield "hypot", lambda t, x: t.hypot(x, x.flip(0)), shapes, (-4, 4)


def reductions() -> Iterator[tuple[str, Body, tuple[Any, ...], tuple[float, float]]]:
    normal = (-math.inf, 0)
    every = [(n,) for n in LENGTHS]
    for name in WHOLE:
        whole = (lambda _, x: x.logsumexp(0)) if name == "logsumexp" else None
        yield (
            name,
            whole or (lambda _, x, name=name: getattr(x, name)()),
            every,
            normal,
        )
        for dim in (0, 1):
            yield (
                f"{name} dim {dim}",
                lambda _, x, name=name, dim=dim: getattr(x, name)(dim=dim),
                SHAPES,
                normal,
            )
    for name in ("sum", "mean", "var", "norm"):
        for dim in ((0, 1), (0, 2), (1, 2), 1):
            yield (
                f"{name} dim {dim} of 3",
                lambda _, x, name=name, dim=dim: getattr(x, name)(dim=dim),
                CUBES,
                normal,
            )
        yield (
            f"{name} transposed",
            lambda _, x, name=name: getattr(x.t(), name)(dim=0),
            SHAPES,
            normal,
        )
        yield f"{name} strided", lambda _, x, name=name: getattr(x[:, ::2], name)(), SHAPES, normal
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        for dim in (0, 1):
            yield name, lambda _, x, name=name, dim=dim: getattr(x, name)(dim), SHAPES, normal
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1):
            yield (
                f"{name} dim {dim}",
                lambda _, x, name=name, dim=dim: getattr(x, name)(dim),
                SHAPES,
                normal,
            )
        yield f"{name} dim 1 of 3", lambda _, x, name=name: getattr(x, name)(1), CUBES, normal
    yield "broadcast add", lambda _, x: x + x[:1], SHAPES, normal
    yield "broadcast mul", lambda _, x: x * x[:, :1], SHAPES, normal


def weights_of(t: Any, x: Any, size: int) -> Any:
    return t.linspace(0.5, 1.5, size, dtype=x.dtype, device=x.device)


def layers() -> Iterator[tuple[str, Body, tuple[Any, ...], tuple[float, float]]]:
    normal = (-math.inf, 0)

    def layer_norm(t: Any, x: Any) -> Any:
        w = weights_of(t, x, x.shape[-1])
        return t.nn.functional.layer_norm(x, (x.shape[-1],), w, w)

    def batch_norm(t: Any, x: Any) -> Any:
        w = weights_of(t, x, x.shape[1])
        return t.nn.functional.batch_norm(x, None, None, w, w, training=True)

    def batch_norm_still(t: Any, x: Any) -> Any:
        w = weights_of(t, x, x.shape[1])
        return t.nn.functional.batch_norm(x, w, w, w, w)

    def group_norm(t: Any, x: Any) -> Any:
        w = weights_of(t, x, x.shape[1])
        return t.nn.functional.group_norm(x, 2, w, w)

    def rms_norm(t: Any, x: Any) -> Any:
        return t.nn.functional.rms_norm(x, (x.shape[-1],), weights_of(t, x, x.shape[-1]))

    yield "layer_norm", layer_norm, SHAPES, normal
    yield "rms_norm", rms_norm, SHAPES, normal
    yield "batch_norm", batch_norm, (*SHAPES, *IMAGES), normal
    yield "batch_norm still", batch_norm_still, (*SHAPES, *IMAGES), normal
    yield "group_norm", group_norm, IMAGES, normal
    yield "instance_norm", lambda t, x: t.nn.functional.instance_norm(x), IMAGES, normal
    yield "normalize", lambda t, x: t.nn.functional.normalize(x, dim=1), SHAPES, normal


def losses() -> Iterator[tuple[str, Body, tuple[Any, ...], tuple[float, float]]]:
    def labels(t: Any, x: Any) -> Any:
        return (t.arange(x.shape[0], device=x.device) * 7) % x.shape[1]

    def functional(t: Any) -> Any:
        return t.nn.functional

    normal = (-math.inf, 0)
    table: dict[str, Body] = {
        "cross_entropy": lambda t, x: functional(t).cross_entropy(x, labels(t, x)),
        "cross_entropy smooth": lambda t, x: functional(t).cross_entropy(
            x, labels(t, x), label_smoothing=0.1
        ),
        "cross_entropy soft": lambda t, x: functional(t).cross_entropy(x, x.flip(0).softmax(1)),
        "nll_loss": lambda t, x: functional(t).nll_loss(x, labels(t, x)),
        "mse_loss": lambda t, x: functional(t).mse_loss(x, x.flip(0)),
        "l1_loss": lambda t, x: functional(t).l1_loss(x, x.flip(0)),
        "smooth_l1_loss": lambda t, x: functional(t).smooth_l1_loss(x, x.flip(0)),
        "huber_loss": lambda t, x: functional(t).huber_loss(x, x.flip(0)),
        "bce logits": lambda t, x: functional(t).binary_cross_entropy_with_logits(
            x, x.flip(0).sigmoid()
        ),
        "bce": lambda t, x: functional(t).binary_cross_entropy(x.sigmoid(), x.flip(0).sigmoid()),
        "kl_div": lambda t, x: functional(t).kl_div(x, x.flip(0).softmax(1), reduction="batchmean"),
        "gaussian nll": lambda t, x: functional(t).gaussian_nll_loss(x, x.flip(0), x.abs() + 0.1),
        "poisson nll": lambda t, x: functional(t).poisson_nll_loss(x, x.flip(0).abs()),
        "cosine_similarity": lambda t, x: functional(t).cosine_similarity(x, x.flip(0)),
        "pairwise_distance": lambda t, x: functional(t).pairwise_distance(x, x.flip(0)),
        "soft_margin": lambda t, x: functional(t).soft_margin_loss(x, x.flip(0).sign()),
        "triplet": lambda t, x: functional(t).triplet_margin_loss(x, x.flip(0), x * 0.5),
        "hinge embedding": lambda t, x: functional(t).hinge_embedding_loss(x, x.flip(0).sign()),
        "cdist": lambda t, x: t.cdist(x, x.flip(0)),
    }
    for name, body in table.items():
        yield name, body, SHAPES, normal


def run(t: Any, body: Body, data: np.ndarray, dtype: str, device: str, backward: bool) -> list[Any]:
    x = t.from_numpy(data).to(getattr(t, dtype))
    if device != "cpu":
        x = x.to(device)
    if not backward:
        return [plain(body(t, x))]
    x.requires_grad_(True)
    y = body(t, x)
    g = t.from_numpy(values(tuple(y.shape), 5, -math.inf, 0)).to(y.dtype).to(y.device)
    y.backward(g)
    return [plain(x.grad)]


def plain(x: Any) -> np.ndarray:
    x = x.detach().cpu()
    narrow = str(x.dtype).endswith("float16")
    return np.asarray((x.float() if narrow else x).numpy())


def steps(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """Distances in units in the last place of the narrower dtypes' float32 form."""
    wide, sign = (np.int64, -(1 << 63)) if a.dtype == np.float64 else (np.int32, -(1 << 31))
    i, j = (np.where(v < 0, sign - v, v) for v in (a.view(wide), b.view(wide)))
    shift = {"bfloat16": 16, "float16": 13}.get(dtype, 0)
    return np.abs(i.astype(np.float64) - j.astype(np.float64)) / (1 << shift)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--backward", action="store_true")
    choice = parser.parse_args()
    total, equal = 0, 0
    for family in (pointwise, reductions, layers, losses):
        for name, body, shapes, bounds in family():
            if choice.only not in name:
                continue
            whole, same, count, worst, failed = 0, 0, 0, 0.0, ""
            for seed, shape in enumerate(shapes):
                data = values(shape, seed, *bounds)
                try:
                    theirs = run(torch, body, data, choice.dtype, "cpu", choice.backward)
                    ours = run(mindtorch, body, data, choice.dtype, choice.device, choice.backward)
                except Exception as error:
                    failed = str(error).splitlines()[0][:60] if str(error) else "?"
                    continue
                for a, b in zip(theirs, ours, strict=True):
                    match = (a == b) | (np.isnan(a) & np.isnan(b))
                    whole += bool(match.all())
                    same, count = same + int(match.sum()), count + match.size
                    finite = np.isfinite(a) & np.isfinite(b)
                    far = steps(a[finite], b[finite], choice.dtype)
                    worst = max(worst, float(far.max(initial=0)))
            total, equal = total + len(shapes), equal + whole
            share = same / max(count, 1)
            counts = f"calls {whole:3}/{len(shapes):3}  elements {share:8.4f}"
            print(f"{name:24} {counts}  ulp {worst:9.0f} {failed}")
    print(f"{equal} of {total} calls equal ({equal / max(total, 1):.3f})")


if __name__ == "__main__":
    main()
