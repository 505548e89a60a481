"""Grouped products, feed-forward layers of experts and what follows them, against numpy."""

import numpy as np
import pytest
from numpy_harness import Nibbles, Ops, Out, close, near, sigmoid
from numpy_references import silu
from quantized_operands import codes, cut, draw, inner, scale_of, words

from aclnn_bindings.runtime.status import AclError

NONE6 = (None,) * 6


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_lists_multiply_member_by_member(nops: Ops, dtype: str) -> None:
    xs = (draw(3, 8, dtype=dtype), draw(5, 16, dtype=dtype))
    ws = (draw(8, 4, dtype=dtype), draw(16, 6, dtype=dtype))
    biases = (draw(4, dtype=dtype), draw(6, dtype=dtype))
    outs = (Out((3, 4), dtype), Out((5, 6), dtype))
    args = xs, ws, biases, None, None, None, None, None, 0
    for op, more in (("aclnnGroupedMatmul", ()), ("aclnnGroupedMatmulV2", (-1,))):
        found = nops.both(op, *args, *more, outs)
        for y, x, w, b in zip(found, xs, ws, biases, strict=True):
            close(y, x.astype(np.float64) @ w + b, 2e-3)


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("act", [0, 1, 5])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("listed", [False, True])
def test_rows_are_split_among_experts(
    nops: Ops, kind: int, act: int, dtype: str, listed: bool
) -> None:
    x, w, bias = draw(7, 8, dtype=dtype), draw(3, 8, 4, dtype=dtype), draw(3, 4, dtype=dtype)
    ends = [2, 2, 6]
    groups = {0: ends, 1: [2, 0, 4], 2: [[0, 2], [1, 0], [2, 4]]}[kind]
    (y,) = nops.both(
        "aclnnGroupedMatmulV5",
        [
            (x,),
            tuple(w) if listed else (w,),
            tuple(bias) if listed else (bias,),
            *NONE6[:5],
            np.array(groups, np.int64),
            None,
            None,
            None,
        ],
        [3, 0, kind, act, None],
        [(Out((7, 4), dtype),), None, None],
    )
    expected = np.zeros((7, 4))
    for g, (a, b) in enumerate(((0, 2), (2, 2), (2, 6))):
        v = x[a:b].astype(np.float64) @ w[g] + bias[g]
        expected[a:b] = {0: v, 1: np.maximum(v, 0), 5: silu(v)}[act]
    close(y, expected, 2e-3)


def test_quantised_rows_scale_tokens_and_experts(nops: Ops) -> None:
    x, w, scale, tokens = (
        codes(6, 16),
        codes(2, 16, 8),
        scale_of(2, 8, dtype="bfloat16"),
        scale_of(6),
    )
    bias = np.arange(16, dtype=np.int32).reshape(2, 8)
    ends = np.array([4, 6], np.int64)
    (y,) = nops.both(
        "aclnnGroupedMatmulV4",
        [(x,), (w,), (bias,), (scale,), None, None, None, (tokens,), ends, None, None, None],
        [3, 0, 0, 0],
        [(Out((6, 8), "bfloat16"),), None, None],
    )
    expected = np.concatenate(
        [x[:4].astype(np.float64) @ w[0] + bias[0], x[4:].astype(np.float64) @ w[1] + bias[1]]
    )
    expected *= np.repeat(scale.astype(np.float64), [4, 2], 0) * tokens[:, None]
    close(y, expected)
    tiles = nops.put(inner(w, 32), format="FRACTAL_NZ")
    (y,) = nops(
        "aclnnGroupedMatmulWeightNz",
        [(x,), (tiles,), (bias,), (scale,), None, None, None, (tokens,), ends, None, None, None],
        [3, 0, 0, 0, None, 0],
        [(Out((6, 8), "bfloat16"),), None, None],
    )
    close(y, expected)


def test_integer_weights_of_experts_are_dequantised(nops: Ops) -> None:
    x, w = draw(5, 16), codes(2, 16, 8)
    scale, offset = scale_of(2, 8, dtype="float16"), draw(2, 8)
    ends = np.array([1, 5], np.int64)
    (y,) = nops.both(
        "aclnnGroupedMatmulV3",
        [(x,), (w,), None, None, None, (scale,), (offset,), ends],
        [3, 0],
        (Out((5, 8), "float16"),),
    )
    wide = (w + offset.astype(np.float64)[:, None]) * scale.astype(np.float64)[:, None]
    close(y, np.concatenate([x[:1].astype(float) @ wide[0], x[1:].astype(float) @ wide[1]]), 2e-3)


def test_sums_are_split_and_added(nops: Ops) -> None:
    x, w, ends = draw(4, 9), draw(9, 5), np.array([3, 9], np.int64)
    parts = [x[:, a:b].astype(np.float64) @ w[a:b] for a, b in ((0, 3), (3, 9))]
    (y,) = nops.both(
        "aclnnGroupedMatmulV3", (x,), (w,), *NONE6[:5], ends, 3, 2, (Out((2, 4, 5), "float16"),)
    )
    close(y, np.stack(parts), 2e-3)
    before = draw(2, 4, 5, dtype="float32")
    turned = np.ascontiguousarray(x.T)
    (y,) = nops.both(
        "aclnnGroupedMatmulAdd", turned, w, ends, Out((2, 4, 5), "float32", before), True, False, 2
    )
    close(y, before + np.stack(parts))
    sizes = np.array([3, 6], np.int64)
    (y,) = nops(
        "aclnnGroupedMatmulAddV2",
        [turned, w, sizes],
        [Out((2, 4, 5), "float32", before), True, False, 2, 1],
    )
    close(y, before + np.stack(parts))


@pytest.mark.parametrize("op", ["aclnnGroupedMatmulSwigluQuant", "aclnnGroupedMatmulSwigluQuantV2"])
def test_products_are_gated_and_quantised(nops: Ops, op: str) -> None:
    x, w, scale, tokens = codes(6, 16), codes(2, 16, 64), scale_of(2, 64) / 20, scale_of(6)
    ends = np.array([4, 6], np.int64)
    if op.endswith("V2"):
        y, factor = nops(
            op,
            [x, (w,), (scale,), None, None, tokens, None, ends],
            [0, 0, 0, 0, None],
            [Out((6, 32), "int8"), Out((6,))],
        )
    else:
        tiles = nops.put(inner(w, 32), format="FRACTAL_NZ")
        y, factor = nops(
            op, x, tiles, None, None, scale, tokens, ends, Out((6, 32), "int8"), Out((6,)), None
        )
    m = np.concatenate(
        [x[:4].astype(np.float64) @ (w[0] * scale[0]), x[4:].astype(np.float64) @ (w[1] * scale[1])]
    )
    m *= tokens[:, None]
    rows = silu(m[:, :32]) * m[:, 32:]
    close(factor, np.abs(rows).max(-1) / 127)
    near(y, np.rint(rows / factor.astype(np.float64)[:, None]))


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_digits_of_eight_bits_meet_weights_of_four(nops: Ops, kind: type) -> None:
    x, w = codes(6, 16), codes(2, 16, 64) % 16 - 8
    scale, tokens, assist = scale_of(2, 64) / 20, scale_of(6), draw(2, 64, dtype="float32")
    y, factor = nops(
        "aclnnGroupedMatmulSwigluQuantV2", x, (Nibbles(w),), (scale.view(np.uint32).astype(kind),),
        (assist,), None, tokens, None, np.array([4, 6], np.int64), 0, 0, 0, 0, None,
        Out((6, 32), "int8"), Out((6,)),
    )  # fmt: skip
    digits = x.astype(np.int64)
    high, low = np.floor_divide(digits, 16), (digits & 15) - 8
    own = [0, 0, 0, 0, 1, 1]
    m = np.stack(
        [(high[i] * 16 + low[i]) @ (w[g] * scale[g]) + assist[g] for i, g in enumerate(own)]
    )
    m *= tokens[:, None]
    rows = silu(m[:, :32]) * m[:, 32:]
    close(factor, np.abs(rows).max(-1) / 127)
    near(y, np.rint(rows / factor.astype(np.float64)[:, None]))


def eights(codes: np.ndarray) -> np.ndarray:
    """Eight elements of four bits to a word, along the last dim."""
    nibbles = (codes.astype(np.int64) & 15).reshape(*codes.shape[:-1], -1, 8)
    return (nibbles << (4 * np.arange(8))).sum(-1).astype(np.uint32).view(np.int32)


def test_four_bits_meet_four_bits_and_a_scale_per_group(nops: Ops) -> None:
    x, w = codes(6, 64) % 16 - 8, codes(2, 64, 64) % 16 - 8
    scale, tokens = scale_of(2, 64) / 20, scale_of(6)
    smooth = np.array([0.5, 2.0], np.float32)
    tiles = nops.put(eights(inner(w, 64)), format="FRACTAL_NZ")
    y, factor = nops(
        "aclnnGroupedMatmulSwigluQuantWeightNzV2", eights(x), (tiles,), (scale,), None, None,
        tokens, smooth, np.array([4, 6], np.int64), 0, 0, 0, 0, None, Out((6, 32), "int8"),
        Out((6,)),
    )  # fmt: skip
    own = [0, 0, 0, 0, 1, 1]
    m = np.stack([x[i].astype(float) @ (w[g] * scale[g]) for i, g in enumerate(own)])
    m *= tokens[:, None]
    rows = silu(m[:, :32]) * m[:, 32:] * smooth[own][:, None]
    close(factor, np.abs(rows).max(-1) / 127)
    near(y, np.rint(rows / factor.astype(np.float64)[:, None]))


def test_products_return_to_their_tokens(nops: Ops) -> None:
    x, w, scale, tokens = codes(6, 16), codes(2, 16, 64), scale_of(2, 64) / 20, scale_of(6)
    sizes, index = np.array([2, 4], np.int64), np.array([0, 1, 2, 0, 1, 3], np.int64)
    logit, shared = draw(6, dtype="float32"), draw(2, 64, dtype="bfloat16")
    tiles = nops.put(inner(w, 32), format="FRACTAL_NZ")
    (y,) = nops(
        "aclnnGroupedMatmulFinalizeRoutingWeightNzV2",
        [x, tiles, scale, None, None, None, None, tokens, sizes, shared, logit, index],
        [0, 0.5, 1, False, False, 1, None],
        Out((4, 64)),
    )
    m = np.concatenate(
        [x[:2].astype(np.float64) @ (w[0] * scale[0]), x[2:].astype(np.float64) @ (w[1] * scale[1])]
    )
    expected = np.zeros((4, 64))
    expected[1:3] = 0.5 * shared.astype(np.float64)
    np.add.at(expected, index, m * tokens[:, None] * logit[:, None])
    close(y, expected)


@pytest.mark.parametrize("name", ["relu", "silu", "swiglu", "fastgelu"])
def test_feed_forward_layers_of_experts(nops: Ops, name: str) -> None:
    wide = 12 if name == "swiglu" else 6
    x, w1, w2 = draw(5, 8), draw(2, 8, wide), draw(2, 6, 4)
    b1, b2 = draw(2, wide), draw(2, 4)
    act = {
        "relu": lambda v: np.maximum(v, 0),
        "silu": silu,
        "fastgelu": lambda v: v * sigmoid(1.702 * v),
        "swiglu": lambda v: silu(v[:, :6]) * v[:, 6:],
    }[name]
    expected = np.concatenate(
        [
            act(x[a:b].astype(np.float64) @ w1[g] + b1[g]) @ w2[g] + b2[g]
            for g, (a, b) in enumerate(((0, 3), (3, 5)))
        ]
    )
    rest = (None,) * 8
    (y,) = nops.both("aclnnFFN", x, w1, w2, (3, 2), b1, b2, *rest, name, 0, Out((5, 4), "float16"))
    close(y, expected, 3e-3)
    (y,) = nops(
        "aclnnFFNV2", x, w1, w2, (3, 5), b1, b2, *rest, name, 0, True, Out((5, 4), "float16")
    )
    close(y, expected, 3e-3)


def test_quantised_feed_forward(nops: Ops) -> None:
    x, w1, w2 = codes(3, 16), codes(16, 8), codes(8, 4)
    b1, b2 = (np.arange(n, dtype=np.int32) for n in (8, 4))
    scale, offset = np.array([20.0], np.float32), np.array([3.0], np.float32)
    d1, d2 = scale_of(8) / 50, scale_of(4)
    (y,) = nops(
        "aclnnFFNV3",
        [x, w1, w2, None, b1, b2, scale, offset, words(d1), words(d2), None, None, None, None],
        ["relu", 0, False],
        Out((3, 4), "float16"),
    )
    first = np.maximum((x.astype(np.float64) @ w1 + b1) * cut(d1), 0)
    q = np.clip(np.rint(first * 20 + 3), -128, 127)
    close(y, (q @ w2 + b2) * cut(d2), 2e-2)


def test_low_rank_adapters_add_to_a_slice(nops: Ops) -> None:
    y, x = draw(4, 12), draw(4, 8)
    b, a = draw(3, 2, 5, 2), draw(3, 2, 2, 8)
    indices = np.array([2, 0, -1, 1], np.int32)
    expected = y.astype(np.float64)
    for t, i in enumerate(indices):
        if i >= 0:
            expected[t, 3:8] += 0.5 * (
                b[i, 1].astype(np.float64) @ (a[i, 1].astype(np.float64) @ x[t])
            )
    (out,) = nops.both("aclnnAddLora", y, x, b, indices, a, 1, 0.5, 3, 5, Out(y.shape, "float16"))
    close(out, expected, 2e-3)


@pytest.mark.parametrize(
    ("weight", "bias", "out", "message"),
    [
        ((1, 8, 4), None, (7, 4), "fewer members than there are groups"),
        ((2, 6, 4), None, (7, 4), "smaller than the width of x"),
        ((2, 8, 3), None, (7, 4), "smaller than the width of x"),
        ((2, 8, 4), (2, 3), (7, 4), "narrower than the output"),
    ],
)
def test_groups_that_do_not_fit_are_refused(
    nops: Ops,
    weight: tuple[int, ...],
    bias: tuple[int, ...] | None,
    out: tuple[int, ...],
    message: str,
) -> None:
    biases = None if bias is None else (draw(*bias),)
    args = (draw(7, 8),), (draw(*weight),), biases, *NONE6[:4], (2, 5), 0
    with pytest.raises(AclError, match=message):
        nops.both("aclnnGroupedMatmul", *args, (Out(out, "float16"),))
