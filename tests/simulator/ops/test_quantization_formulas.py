"""Kernels of quantization: results equal a reference, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from numpy_harness import Nibbles, Ops, Out, close, near, sigmoid
from numpy_references import silu

RNG = np.random.default_rng(41)


def draw(*shape: int, dtype: Any = "float16") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def int8(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), -128, 127)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("sizes", [False, True])
def test_gated_rows_are_quantised_by_group(nops: Ops, left: bool, sizes: bool) -> None:
    x, smooth = draw(5, 16, dtype="float32"), np.abs(draw(2, 8, dtype="float32")) + 0.1
    group = np.array([2, 3] if sizes else [2, 5], np.int32)
    a, b = x[:, :8].astype(float), x[:, 8:].astype(float)
    wide = (silu(a) * b if left else a * silu(b)) * smooth[[0, 0, 1, 1, 1]]
    y, f = nops.both(
        "aclnnSwiGluQuantV2",
        [x, smooth, None, group, left],
        ["dynamic", int(sizes), 2],
        [Out((5, 8), "int8"), Out((5,))],
    )
    close(f, 127 / np.abs(wide).max(-1))  # rows are multiplied by it
    near(y, np.rint(wide * f.astype(np.float64)[:, None]))
    if not sizes:
        offset = draw(2, 8, dtype="float32")
        (y, _) = nops(
            "aclnnSwiGluQuant",
            [x, smooth * 20, offset, group, left],
            "static",
            [Out((5, 8), "int8"), Out((5,))],
        )
        near(y, int8(wide * 20 + offset[[0, 0, 1, 1, 1]]))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_dequantised_rows_are_gated_and_quantised(nops: Ops, mode: str) -> None:
    x = RNG.integers(-500, 500, (5, 16)).astype(np.int32)
    w, tokens = np.abs(draw(2, 16, dtype="float32")) / 100, np.abs(draw(5, dtype="float32"))
    scale = np.abs(draw(2, 8, dtype="float32")) + 0.5
    group = np.array([2, 3], np.int64)
    rows = [0, 0, 1, 1, 1]
    wide = x * w[rows].astype(np.float64) * tokens[:, None]
    y = silu(wide[:, :8]) * wide[:, 8:]
    outs = Out((5, 8), "int8"), Out((5,))
    q, f = nops.both(
        "aclnnDequantSwigluQuant", x, w, tokens, None, scale, None, group, True, mode, *outs
    )
    if mode == "static":
        near(q, int8(y / scale[rows]))
    else:
        close(f, np.abs(y * scale[rows]).max(-1) / 127)
        near(q, np.rint(y * scale[rows] / f.astype(np.float64)[:, None]))
    half = draw(5, 16) * 3
    q, f = nops(
        "aclnnDequantSwigluQuantV2",
        [half, None, None, None, None, None, None],
        [True, "dynamic", 2, "rint", -1, 1, 2.0, 1.5, 0.5],
        *outs,
    )
    a, b = np.minimum(half[:, ::2].astype(float), 2), np.clip(half[:, 1::2].astype(float), -2, 2)
    near(q, np.rint(a * sigmoid(1.5 * a) * (b + 0.5) / f.astype(np.float64)[:, None]))


def half(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float16)


def test_int4_unpacks_the_low_half_first(nops: Ops) -> None:
    codes = np.array([[1, -1, 7, -8]])
    (y,) = nops(
        "aclnnAscendAntiQuant",
        [Nibbles(codes), np.array([2.0], np.float32), np.array([1.0], np.float32)],
        [1, False],
        Out((1, 4), "float16"),
    )
    np.testing.assert_array_equal(y, [[4, 0, 16, -14]])


@pytest.mark.parametrize("shape", [(4, 16), (2, 3, 8), (0, 8)])
@pytest.mark.parametrize("smooth", [False, True])
def test_dynamic_quant_scales_each_token(nops: Ops, shape: tuple[int, ...], smooth: bool) -> None:
    x, s = half(*shape), half(shape[-1]) if smooth else None
    y, scale = nops.both("aclnnDynamicQuant", x, s, Out(shape, "int8"), Out(shape[:-1]))
    wide = x.astype(np.float64) * (1 if s is None else s.astype(np.float64))
    top = np.abs(wide).max(-1, initial=0) / 127
    close(scale, top)
    near(y, np.rint(wide / top[..., None]))


def test_dynamic_quant_of_groups_and_asymmetric(nops: Ops) -> None:
    x, s = half(6, 16), np.abs(half(2, 16))
    ends = np.array([2, 6], np.int32)
    y, scale, offset = nops.both(
        "aclnnDynamicQuantV2", x, s, ends, 2, Out(x.shape, "int8"), Out((6,)), Out((6,))
    )
    wide = x.astype(np.float64) * s[[0, 0, 1, 1, 1, 1]].astype(np.float64)
    step = (wide.max(-1) - wide.min(-1)) / 255
    close(scale, step)
    close(offset, 127 - wide.max(-1) / step, 1e-4)
    near(y, np.rint(wide / step[:, None] + offset.astype(np.float64)[:, None]))


def test_dynamic_quant_packs_eight_int4(nops: Ops) -> None:
    x = half(3, 16)
    packed, scale = nops(
        "aclnnDynamicQuantV2", x, None, None, 3, Out((3, 2), "int32"), Out((3,)), None
    )
    nibbles = (packed.view(np.uint32)[..., None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    signed = nibbles.astype(np.int64).reshape(3, 16)
    near(np.where(signed > 7, signed - 16, signed), np.rint(x / scale[:, None]))


@pytest.mark.parametrize(
    "mode", [("round", np.rint), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)]
)
def test_ascend_quant_scales_rounds_and_saturates(nops: Ops, mode: tuple) -> None:
    x = (half(3, 5) * 60).astype(np.float32)
    s, o = np.full(5, 1.5, np.float32), np.full(5, 3.25, np.float32)
    (y,) = nops.both("aclnnAscendQuant", x, s, o, True, mode[0], 2, Out(x.shape, "int8"))
    np.testing.assert_array_equal(y, np.clip(mode[1](x * s * s + o), -128, 127))
    t = x[0, :3].copy()
    (y,) = nops.both("aclnnAscendQuantV3", x, t, None, False, mode[0], 2, -2, Out(x.shape, "int8"))
    np.testing.assert_array_equal(y, np.clip(mode[1](x * t[:, None]), -128, 127))


def test_quantize_divides_along_its_axis(nops: Ops) -> None:
    x = (half(3, 4, 5) * 9).astype(np.float32)
    s, z = np.array([0.5, 1, 2, 0.25], np.float32), np.array([1, -2, 0, 100], np.int32)
    (y,) = nops.both("aclnnQuantize", x, s, z, 2, 1, Out(x.shape, "int8"))
    expected = np.rint(x / s[None, :, None] + z[None, :, None])
    np.testing.assert_array_equal(y, np.clip(expected, -128, 127))
    (y,) = nops.both("aclnnQuantize", x, s[:1], z[:1], 4, 0, Out(x.shape, "uint8"))
    np.testing.assert_array_equal(y, np.clip(np.rint(x / 0.5 + 1), 0, 255))


def test_group_quant_and_dequant_bias(nops: Ops) -> None:
    x, s = half(5, 8).astype(np.float32), np.abs(half(2, 8)).astype(np.float32) * 20
    ends = np.array([2, 5], np.int64)
    offset = np.array([0.5], np.float32)
    (y,) = nops.both("aclnnGroupQuant", x, s, ends, offset, 2, Out(x.shape, "int8"))
    near(y, np.clip(np.rint(x * s[[0, 0, 1, 1, 1]] + 0.5), -128, 127))
    acc = RNG.integers(-900, 900, (4, 6)).astype(np.int32)
    w, a = np.abs(half(6)).astype(np.float32), np.abs(half(4)).astype(np.float32)
    for bias in (half(6), RNG.integers(-9, 9, 6).astype(np.int32), None):
        (out,) = nops.both("aclnnDequantBias", acc, w, a, bias, 1, Out(acc.shape, "float16"))
        early = bias if bias is not None and bias.dtype == np.int32 else 0
        late = bias if bias is not None and bias.dtype != np.int32 else 0
        close(out, (acc + early) * w.astype(np.float64) * a[:, None] + late)


def test_quant_parameters_keep_nineteen_bits_of_the_scale(nops: Ops) -> None:
    scale = np.abs(RNG.standard_normal(4)).astype(np.float32)
    offset = np.array([3.4, -300.0, 300.0, -1.0], np.float32)
    (out,) = nops("aclnnTransQuantParamV2", scale, offset, Out((4,), "uint64"))
    bits = (scale.view(np.uint32) & np.uint32(0xFFFFE000)).astype(np.uint64)
    cut = np.clip(np.rint(offset), -256, 255).astype(np.int64).astype(np.uint64) & np.uint64(0x1FF)
    np.testing.assert_array_equal(out, bits | np.uint64(1 << 46) | (cut << np.uint64(37)))


def test_fake_quantisation_clamps_and_marks(nops: Ops) -> None:
    x = half(3, 4).astype(np.float32) * 5
    s, z = np.array([0.5, 0.25, 1.0], np.float32), np.array([0, 3, -2], np.int32)
    q = np.rint(x / s[:, None]) + z[:, None]
    out, mask = nops.both(
        "aclnnFakeQuantPerChannelAffineCachemask",
        [x, s, z],
        [0, -8, 7],
        [Out(x.shape), Out(x.shape, "bool")],
    )
    close(out, (np.clip(q, -8, 7) - z[:, None]) * s[:, None])
    np.testing.assert_array_equal(mask, (q >= -8) & (q <= 7))
    out, mask = nops(
        "aclnnFakeQuantPerTensorAffineCachemask",
        [x, s[:1], z[:1]],
        [0.0, -8, 7],
        [Out(x.shape), Out(x.shape, "bool")],
    )
    np.testing.assert_array_equal(out, x)
    assert mask.all()
