"""Kernels of norm: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Ops, Out, close, near, sigmoid
from numpy_references import differences

RNG = np.random.default_rng(41)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def rms(x: np.ndarray, gamma: np.ndarray, beta: Any = 0, eps: float = 1e-5) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gamma.astype(np.float64) + beta


def layer(x: np.ndarray, gamma: Any = 1, beta: Any = 0, eps: float = 1e-5) -> np.ndarray:
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def int8(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), -128, 127)


@pytest.mark.parametrize("divide", [False, True])
def test_sums_are_normalised_and_quantised_twice(nops: Ops, divide: bool) -> None:
    a, b, gamma, beta = draw(3, 4, 16), draw(3, 4, 16), draw(16), draw(16)
    s1, s2 = (np.abs(draw(16)) + 0.5 for _ in range(2))
    s1, s2 = (s.astype(np.float32) * (0.05 if divide else 20) for s in (s1, s2))
    z1 = np.arange(16, dtype=np.int32)
    x = a.astype(np.float64) + b
    outs = Out(a.shape, "int8"), Out(a.shape, "int8"), Out(a.shape, "float16")
    y1, y2, kept, norm = nops.both(
        "aclnnAddRmsNormQuantV2",
        [a, b, gamma, s1, s2, z1, None, beta],
        [-1, 1e-5, divide, *outs],
        Out(a.shape, "float16"),
    )
    y = rms(x, gamma, beta.astype(np.float64))
    near(y1, int8((y / s1 if divide else y * s1) + z1))
    near(y2, int8(y / s2 if divide else y * s2))
    close(kept, x)
    close(norm, y, 2e-3)
    y1, _, _ = nops(
        "aclnnAddRmsNormQuant", a, b, gamma, s1, None, z1, None, -1, 1e-5, divide, *outs
    )
    y = rms(x, gamma)
    near(y1, int8((y / s1 if divide else y * s1) + z1))


def test_sums_are_normalised_and_scaled_by_token(nops: Ops) -> None:
    a, b, gamma, s1, s2 = draw(5, 16), draw(5, 16), draw(16), draw(16), draw(16)
    outs = Out(a.shape, "int8"), Out(a.shape, "int8"), Out(a.shape, "float16"), Out((5,)), Out((5,))
    y1, y2, _, f1, f2 = nops.both("aclnnAddRmsNormDynamicQuant", a, b, gamma, s1, s2, 1e-5, *outs)
    y = rms(a.astype(np.float64) + b, gamma)
    for q, f, s in ((y1, f1, s1), (y2, f2, s2)):
        wide = y * s.astype(np.float64)
        close(f, np.abs(wide).max(-1) / 127)
        near(q, np.rint(wide / f.astype(np.float64)[:, None]))
    y1, y2, _, f1, _ = nops(
        "aclnnAddRmsNormDynamicQuantV2", a, b, gamma, None, None, None, 1e-5, (True, False), *outs
    )
    near(y1, np.rint(y / f1.astype(np.float64)[:, None]))
    assert not y2.any()


def test_norms_are_quantised_or_cast(nops: Ops) -> None:
    x, gamma, beta = draw(4, 16), draw(16), draw(16)
    scale, offset = np.array([20.0], np.float16), np.array([3], np.int8)
    (y,) = nops.both("aclnnRmsNormQuant", x, gamma, beta, scale, offset, 1e-5, Out(x.shape, "int8"))
    near(y, int8(rms(x, gamma, beta.astype(np.float64)) * 20 + 3))
    q, f = nops.both(
        "aclnnRmsNormDynamicQuant", x, gamma, None, beta, 1e-5, 2, Out(x.shape, "int8"), Out((4,))
    )
    near(q, np.rint(rms(x, gamma, beta.astype(np.float64)) / f.astype(np.float64)[:, None]))
    a, b = draw(4, 16), draw(4, 16)
    y1, y2, rstd, kept = nops.both(
        "aclnnAddRmsNormCast",
        [a, b, gamma],
        1e-5,
        [Out(a.shape), Out(a.shape, "float16"), Out((4, 1)), Out(a.shape, "float16")],
    )
    wide = a.astype(np.float64) + b
    close(y1, rms(wide, gamma), 1e-5)
    close(y2, rms(wide, gamma), 2e-3)
    close(rstd, 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5))
    close(kept, wide)


def test_deep_norm_and_its_gradients(nops: Ops) -> None:
    x, g, gamma, beta, dy = (
        draw(*s, dtype="float32") for s in ((3, 8), (3, 8), (8,), (8,), (3, 8))
    )
    mean, rstd, y = nops.both(
        "aclnnDeepNorm", x, g, beta, gamma, 0.7, 1e-5, Out((3, 1)), Out((3, 1)), Out(x.shape)
    )
    close(y, layer(0.7 * x.astype(np.float64) + g, gamma, beta), 1e-4)
    grads = nops.both(
        "aclnnDeepNormGrad",
        [dy, x, g, gamma, mean, rstd],
        0.7,
        [Out(x.shape), Out(x.shape), Out((8,)), Out((8,))],
    )

    def value(x: np.ndarray, g: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> Any:
        return (layer(0.7 * x + g, gamma, beta) * dy).sum()

    for i, grad in enumerate(grads):
        close(grad, differences(value, [x.astype(float), g.astype(float), beta, gamma], i), 1e-3)


def test_added_layer_norm_and_its_gradients(nops: Ops) -> None:
    a, b, gamma, beta, bias, dy, more = (
        draw(*s, dtype="float32") for s in ((3, 8), (3, 8), (8,), (8,), (8,), (3, 8), (3, 8))
    )
    y, mean, rstd, x = nops.both(
        "aclnnAddLayerNorm",
        [a, b, gamma, beta, bias],
        [1e-5, True],
        [Out(a.shape), Out((3, 1)), Out((3, 1)), Out(a.shape)],
    )
    close(y, layer(a.astype(np.float64) + b + bias, gamma, beta), 1e-4)
    close(x, a.astype(np.float64) + b + bias)
    _, mean, rstd, _ = nops(
        "aclnnAddLayerNorm",
        [a, b, gamma, beta, None],
        [1e-5, False],
        [Out(a.shape), Out((3, 1)), Out((3, 1)), Out(a.shape)],
    )
    dx, dgamma, dbeta = nops.both(
        "aclnnAddLayerNormGrad",
        [dy, a, b, rstd, mean, gamma, more],
        [Out(a.shape), Out((8,)), Out((8,))],
    )

    def value(a: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> Any:
        return (layer(a + b, gamma, beta) * dy).sum()

    close(dx, differences(value, [a.astype(float), gamma, beta], 0) + more, 1e-3)
    close(dgamma, differences(value, [a.astype(float), gamma, beta], 1), 1e-3)
    close(dbeta, dy.sum(0))


def test_added_layer_norm_is_quantised(nops: Ops) -> None:
    a, b, gamma, beta = (draw(*s) for s in ((4, 8), (4, 8), (8,), (8,)))
    s = (np.abs(draw(8)) * 10 + 5).astype(np.float16)
    outs = Out(a.shape, "int8"), None, Out(a.shape, "float16"), Out(a.shape, "float16")
    y, _x, norm = nops.both(
        "aclnnAddLayerNormQuantV2",
        [a, b, gamma, beta, None, s, None, None, None],
        ["static", 1e-5, True, False, *outs, None, None],
    )
    wide = layer(a.astype(np.float64) + b, gamma.astype(float), beta.astype(float))
    near(y, int8(wide * s.astype(np.float64)))
    close(norm, wide, 2e-3)
    y, _, _, f = nops(
        "aclnnAddLayerNormQuantV2",
        [a, b, gamma, beta, None, None, None, None, None],
        ["dynamic", 1e-5, False, False, *outs],
        [Out((4,)), None],
    )
    near(y, np.rint(wide / f.astype(np.float64)[:, None]))


def test_adaptive_norms_take_conditions_per_batch(nops: Ops) -> None:
    x, scale, shift, w, bias, g = (
        draw(*s, dtype="float32") for s in ((2, 3, 8), (2, 1, 8), (2, 1, 8), (8,), (8,), (2, 3, 8))
    )

    def value(
        x: np.ndarray, scale: np.ndarray, shift: np.ndarray, w: np.ndarray, b: np.ndarray
    ) -> Any:
        return layer(x, w, b) * (1 + scale) + shift

    inputs = [x, scale, shift, w, bias]
    (y,) = nops.both("aclnnAdaLayerNorm", x, scale, shift, w, bias, 1e-5, Out(x.shape))
    close(y, value(*inputs), 1e-4)
    y, mean, rstd = nops(
        "aclnnAdaLayerNormV2",
        [x, scale, shift, w, bias],
        1e-5,
        [Out(x.shape), Out((2, 3, 1)), Out((2, 3, 1))],
    )
    close(mean, x.mean(-1, keepdims=True))
    grads = nops.both(
        "aclnnAdaLayerNormBackward",
        [g, x, (8,), rstd, mean, scale, shift, w, bias],
        *[Out(t.shape) for t in inputs],
    )
    for i, grad in enumerate(grads):
        close(
            grad,
            differences(lambda *a: (value(*a) * g).sum(), [t.astype(float) for t in inputs], i),
            1e-3,
        )
    half = [t.astype(np.float16) for t in inputs]
    q, f = nops(
        "aclnnAdaLayerNormQuant",
        [*half, None],
        [1e-5, "dynamic"],
        [Out(x.shape, "int8"), Out((2, 3)), None],
    )
    near(q, np.rint(value(*[t.astype(float) for t in half]) / f.astype(np.float64)[..., None]))


def test_modulation_and_its_gradients(nops: Ops) -> None:
    x, scale, shift, g = (draw(*s, dtype="float32") for s in ((2, 3, 8), (2, 8), (2, 8), (2, 3, 8)))
    (y,) = nops.both("aclnnModulate", x, scale, shift, Out(x.shape))
    close(y, x * (1 + scale[:, None]) + shift[:, None])
    dx, ds, dt = nops.both(
        "aclnnModulateBackward", g, x, scale, shift, Out(x.shape), Out((2, 8)), Out((2, 8))
    )
    close(dx, g * (1 + scale[:, None]))
    close(ds, (g * x).sum(1))
    close(dt, g.sum(1))


def test_group_norm_with_swish_and_its_gradients(nops: Ops) -> None:
    x, gamma, beta, dy = (draw(*s, dtype="float32") for s in ((2, 4, 3), (4,), (4,), (2, 4, 3)))

    def value(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> Any:
        v = layer(x.reshape(2, 2, 6)).reshape(2, 4, 3) * gamma[:, None] + beta[:, None]
        return v * sigmoid(1.3 * v)

    y, mean, rstd = nops.both(
        "aclnnGroupNormSwish",
        [x, gamma, beta],
        [2, None, 1e-5, True, 1.3],
        [Out(x.shape), Out((2, 2)), Out((2, 2))],
    )
    close(y, value(x, gamma, beta), 1e-4)
    grads = nops.both(
        "aclnnGroupNormSwishGrad",
        [dy, mean, rstd, x, gamma, beta],
        [2, None, 1.3, True, True],
        [Out(x.shape), Out((4,)), Out((4,))],
    )
    for i, grad in enumerate(grads):
        close(
            grad,
            differences(
                lambda *a: (value(*a) * dy).sum(), [t.astype(float) for t in (x, gamma, beta)], i
            ),
            1e-3,
        )
