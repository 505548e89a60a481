"""Kernels of matmul: results equal a reference, and what they refuse."""

import math

import numpy as np
import pytest
from numpy_harness import Nibbles, Ops, Out, close, e4m3, near
from numpy_references import pack
from products import on
from quantized_operands import RNG, codes, cut, draw, inner, scale_of, words


@pytest.mark.parametrize("turn", [False, True])
def test_products_of_int8_scale_columns(nops: Ops, turn: bool) -> None:
    a, b, scale = codes(2, 5, 40), codes(40, 7), scale_of(7)
    bias = RNG.integers(-999, 999, 7).astype(np.int32)
    acc = a.astype(np.float64) @ b + bias
    given = np.ascontiguousarray(b.T) if turn else b
    (out,) = nops.both(
        "aclnnQuantMatmulV3",
        [a, given, words(scale), None, bias],
        [False, turn],
        Out((2, 5, 7), "float16"),
    )
    close(out, acc * cut(scale))
    offset = np.full(7, 3, np.float32)
    (out,) = nops.both(
        "aclnnQuantMatmulV3",
        [a, given, words(scale / 20), offset, bias],
        [False, turn],
        Out((2, 5, 7), "int8"),
    )
    near(out, np.clip(np.rint(acc * cut(scale / np.float32(20)) + 3), -128, 127))
    (out,) = nops(
        "aclnnQuantMatmulV3", a, given, None, None, bias, False, turn, Out((2, 5, 7), "int32")
    )
    np.testing.assert_array_equal(out, acc)


def test_products_scale_tokens_and_add_float_bias(nops: Ops) -> None:
    a, b, scale, tokens = codes(5, 40), codes(40, 7), scale_of(7), scale_of(5)
    bias = draw(7, dtype="bfloat16")
    expected = (a.astype(np.float64) @ b) * scale * tokens[:, None] + bias.astype(np.float64)
    (out,) = nops.both(
        "aclnnQuantMatmulV4", a, b, scale, None, tokens, bias, False, False, Out((5, 7), "bfloat16")
    )
    close(out, expected)
    (out,) = nops.both(
        "aclnnQuantMatmulV5",
        [a, b, tokens, scale, None, None, None, None, bias],
        [False, False, 0],
        Out((5, 7), "bfloat16"),
    )
    close(out, expected)


def test_first_versions_take_one_factor_or_packed_words(nops: Ops) -> None:
    a, b, bias = codes(5, 40), codes(40, 7), RNG.integers(-99, 99, 7).astype(np.int32)
    acc = a.astype(np.float64) @ b + bias
    (out,) = nops.both("aclnnQuantMatmul", a, b, bias, 0.01, Out((5, 7), "float16"))
    close(out, acc * np.float32(0.01))
    scale = scale_of(7)
    (out,) = nops.both(
        "aclnnQuantMatmulV2",
        [a, np.ascontiguousarray(b.T), bias, words(scale)],
        [False, True],
        Out((5, 7), "float16"),
    )
    close(out, acc * cut(scale))


def test_int4_operands_come_packed(nops: Ops) -> None:
    a, b, scale = codes(4, 16, bits=4), codes(16, 8, bits=4), scale_of(8)
    expected = (a.astype(np.float64) @ b) * cut(scale)
    args = words(scale), None, None, None, False, False, Out((4, 8), "float16")
    (out,) = nops("aclnnQuantMatmulV4", Nibbles(a), Nibbles(b), *args)
    close(out, expected)
    (out,) = nops("aclnnQuantMatmulV4", pack(a), pack(b), *args)
    close(out, expected)


def test_int4_groups_have_scales_and_offsets(nops: Ops) -> None:
    a, b = codes(3, 32, bits=4), codes(32, 8, bits=4)
    scale, tokens, offset = scale_of(2, 8), scale_of(3, 1), draw(2, 8)
    shifted = b - np.repeat(offset.astype(np.float64), 16, 0)
    expected = (a.astype(np.float64) @ (shifted * np.repeat(scale, 16, 0))) * tokens
    (out,) = nops(
        "aclnnQuantMatmulV5",
        [pack(a), pack(b), tokens, scale, None, None, offset, None, None],
        [False, False, 16],
        Out((3, 8), "bfloat16"),
    )
    close(out, expected)


def test_int8_rows_on_int4_weights_enter_less_eight_and_an_offset_makes_up_for_it(
    nops: Ops,
) -> None:
    """As halves of a row do, 16 high + (low - 8): op-plugin's test of npu_quant_matmul, A8W4."""
    a, b = codes(3, 32), codes(32, 8, bits=4)
    scale, tokens = cut(scale_of(2, 8)), scale_of(3, 1)
    offset = draw(8).astype(np.float32)
    high, low = a.astype(np.int32) >> 4, (a.astype(np.int32) & 15) - 8
    groups = b.astype(np.float64) * np.repeat(scale, 16, 0)
    expected = (16 * (high @ groups) + low @ groups + offset) * tokens
    packed = words(scale.reshape(-1)).reshape(2, 8)
    (out,) = nops(
        "aclnnQuantMatmulV5", a, pack(b), tokens, packed, None, None, None, offset, None,
        False, False, 16, Out((3, 8), "bfloat16"),
    )  # fmt: skip
    close(out, expected)


def test_weights_in_the_inner_format(nops: Ops) -> None:
    a, b, scale = codes(5, 40), codes(40, 48), scale_of(48)
    tiles = nops.put(inner(b, 32), format="FRACTAL_NZ")
    (out,) = nops(
        "aclnnQuantMatmulWeightNz",
        [a, tiles, None, words(scale), None, None, None, None, None],
        [False, False, 0],
        Out((5, 48), "float16"),
    )
    close(out, (a.astype(np.float64) @ b) * cut(scale))
    x, w = draw(5, 20), draw(20, 24)
    tiles = nops.put(inner(w, 16), format="FRACTAL_NZ")
    (out,) = nops("aclnnMatmulWeightNz", x, tiles, Out((5, 24), "float16"), 0)
    close(out, x.astype(np.float64) @ w, 2e-3)
    self = draw(24)
    import aclnn_bindings  # noqa: F401

    (out,) = nops("aclnnAddmmWeightNz", self, x, tiles, 2.0, 0.5, Out((5, 24), "float16"), 0)
    close(out, 2 * self.astype(np.float64) + 0.5 * (x.astype(np.float64) @ w), 2e-3)
    cube, weights = draw(3, 5, 20), draw(3, 20, 24)
    tiles = nops.put(inner(weights, 16), format="FRACTAL_NZ")
    (out,) = nops("aclnnBatchMatMulWeightNz", cube, tiles, Out((3, 5, 24), "float16"), 0)
    close(out, cube.astype(np.float64) @ weights, 2e-3)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_weights_of_integers_are_dequantised(nops: Ops, groups: int, packed: bool) -> None:
    x, w = draw(3, 32), codes(32, 16, bits=4)
    scale, offset, bias = scale_of(groups, 16, dtype="float16"), draw(groups, 16), draw(16)
    each = 32 // groups
    wide = (w + np.repeat(offset.astype(np.float64), each, 0)) * np.repeat(
        scale.astype(float), each, 0
    )
    expected = x.astype(np.float64) @ wide + bias
    weight = pack(w) if packed else w
    (out,) = nops(
        "aclnnWeightQuantBatchMatmulV2",
        [x, weight, scale, offset, None, None, bias, 0 if groups == 1 else each],
        Out((3, 16), "float16"),
    )
    close(out, expected, 2e-3)
    quant, shift = scale_of(16) * 10, np.full(16, 2, np.float32)
    (out,) = nops(
        "aclnnWeightQuantBatchMatmulV3",
        [x, weight, scale, offset, words(quant), shift, bias, 0 if groups == 1 else each],
        0,
        Out((3, 16), "int8"),
    )
    near(out, np.clip(np.rint(expected * cut(quant) + 2), -128, 127))


def test_gemm_adds_what_it_scales(nops: Ops) -> None:
    a, b, add = (
        draw(6, 4, dtype="float32"),
        draw(5, 6, dtype="float32"),
        draw(4, 5, dtype="float32"),
    )
    (out,) = nops.both("aclnnGemm", a, b, add, 0.5, 2.0, 1, 1, Out((4, 5)), 0)
    close(out, 0.5 * (a.T.astype(np.float64) @ b.T) + 2 * add)


@pytest.mark.parametrize("split", [1, 2])
def test_transposed_batches_come_out_by_rows(nops: Ops, split: int) -> None:
    x, w = draw(5, 2, 16), draw(2, 16, 8)
    expected = np.einsum("mbk,bkn->mbn", x.astype(np.float64), w)
    shape = (5, 2, 8) if split == 1 else (2, 5, 8)
    (out,) = nops.both(
        "aclnnTransposeBatchMatMul",
        [x, w, None, None, (1, 0, 2), (0, 1, 2), (1, 0, 2)],
        [0, split],
        Out(shape, "float16"),
    )
    if split == 2:
        expected = expected.reshape(5, 2, 8).transpose(1, 0, 2)
    close(out, expected, 2e-3)
    scale = scale_of(16) * 30
    (out,) = nops(
        "aclnnTransposeBatchMatMul",
        [x, w, None, words(scale), (1, 0, 2), (0, 1, 2), (1, 0, 2)],
        [0, 1],
        Out((5, 1, 16), "int8"),
    )
    flat = np.einsum("mbk,bkn->mbn", x.astype(np.float64), w).reshape(5, 1, 16)
    near(out, np.clip(np.rint(flat * cut(scale)), -128, 127))


def test_half_products_are_quantised(nops: Ops) -> None:
    x, w, scale, bias = draw(5, 16), draw(16, 8), scale_of(8) * 40, draw(8)
    (out,) = nops(
        "aclnnBatchMatmulQuant", x, w, words(scale), bias, False, False, Out((5, 8), "int8")
    )
    # The bias is of the product, before it is scaled.
    acc = x.astype(np.float64) @ w
    near(out, np.clip(np.rint((acc + bias) * cut(scale)), -128, 127))


@on("310P")
@pytest.mark.parametrize("turn", [False, True])
def test_rows_are_quantised_multiplied_and_restored(nops: Ops, turn: bool) -> None:
    x, w, scale, smooth = draw(4, 16), codes(16, 32), scale_of(32), np.abs(draw(16)) + 1
    given = np.ascontiguousarray(w.T) if turn else w
    wide = x.astype(np.float64) * smooth.astype(np.float64)
    top = np.abs(wide).max(-1, keepdims=True) / 127
    (y,) = nops.both(
        "aclnnQuantMatmulDequant",
        [x, given, scale, None, None, None, smooth],
        ["pertoken", turn],
        Out((4, 32), "float16"),
    )
    close(y, (np.rint(wide / top) @ w) * scale * top, 2e-2)
    weights, scales = codes(2, 16, 32), scale_of(2, 32)
    turned = np.ascontiguousarray(weights.transpose(0, 2, 1)) if turn else weights
    ends = np.array([1, 4], np.int64)
    (y,) = nops.both(
        "aclnnQuantGroupedMatmulDequant",
        [x, turned, scales, ends, None, None, None, None],
        ["pertoken", turn],
        Out((4, 32), "float16"),
    )
    top = np.abs(x.astype(np.float64)).max(-1, keepdims=True) / 127
    q = np.rint(x / top)
    parts = [q[:1] @ weights[0] * scales[0], q[1:] @ weights[1] * scales[1]]
    close(y, np.concatenate(parts) * top, 2e-2)


def activation(name: str, x: np.ndarray) -> np.ndarray:
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu_tanh":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) if name == "gelu_erf" else x


@pytest.mark.parametrize("name", ["relu", "gelu_tanh", "gelu_erf", ""])
def test_an_operation_follows_the_product(nops: Ops, name: str) -> None:
    a, b, rows, cols = codes(5, 40), codes(40, 7), scale_of(5), scale_of(7)
    given = (a, b, rows, cols / 99, None, None, None, None, None, None, name, 0)
    (out,) = nops.both("aclnnFusedQuantMatmul", *given, Out((5, 7), "float16"))
    close(out, activation(name, (a.astype(np.float64) @ b) * rows[:, None] * (cols / 99)))


@on("950")
def test_a_product_is_added_in_place(nops: Ops) -> None:
    a, b = draw(40, 5).astype(e4m3), draw(40, 7).astype(e4m3)
    rows, cols, y = scale_of(1), scale_of(7), draw(5, 7, dtype="float32")
    given = (a, b, rows, cols)
    (out,) = nops("aclnnQuantBatchMatmulInplaceAdd", *given, Out(y.shape, given=y), True, False, 0)
    close(out, y + (a.astype(np.float64).T @ b.astype(np.float64)) * rows * cols)
