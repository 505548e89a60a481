"""Functions of nn.functional that no layer test reaches: values,
gradients and error texts are torch's."""

from typing import Any

import numpy as np
import pytest
from nn_differential import array, compare_call, integers, rand, torch

import mindtorch
import mindtorch.nn.functional as F

TF: Any = torch.nn.functional
GRID = rand(2, 4, 5, 2, grad=False).clamp(-1.4, 1.4)

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("gelu", (rand(3, 4),), {"approximate": "tanh"}),
    ("glu", (rand(4, 3),), {"dim": 0}),
    ("softplus", (rand(3, 4),), {"beta": 2, "threshold": 1}),
    ("threshold", (rand(3, 4),), {"threshold": 0.1, "value": 7.0}),
    ("celu", (rand(3, 4),), {"alpha": 0.7}),
    ("prelu", (rand(2, 3, 4), rand(3, seed=2)), {}),
    ("normalize", (rand(3, 4),), {"p": 1.0, "dim": 0}),
    ("cosine_similarity", (rand(3, 4), rand(1, 4, seed=2)), {}),
    ("pairwise_distance", (rand(3, 4), rand(3, 4, seed=2)), {}),
    ("pdist", (rand(4, 3),), {}),
    ("one_hot", (integers(4, 2, 3),), {}),
    ("one_hot", (integers(4, 2, 3),), {"num_classes": 6}),
    ("max_pool1d", (rand(0, 3, 8),), {"kernel_size": 2}),
    ("max_pool2d", (rand(0, 2, 6, 5),), {"kernel_size": 2}),
    ("max_pool3d", (rand(0, 2, 4, 4, 4),), {"kernel_size": 2}),
    ("adaptive_max_pool1d", (rand(0, 3, 8),), {"output_size": 4}),
    ("adaptive_max_pool2d", (rand(0, 2, 6, 5),), {"output_size": 3}),
    ("group_norm", (rand(0, 4, 5),), {"num_groups": 2}),
    ("pad", (rand(2, 3, 4),), {"pad": (1, 2, 0, -1), "value": 1.5}),
    ("pad", (rand(2, 3, 4),), {"pad": (2, 1), "mode": "reflect"}),
    ("pad", (rand(2, 3, 4),), {"pad": (2, 1), "mode": "replicate"}),
    ("pad", (rand(2, 3, 4, 5),), {"pad": (2, 1, 1, 3), "mode": "circular"}),
    ("interpolate", (rand(1, 2, 5, 6),), {"scale_factor": 0.5}),
    ("interpolate", (rand(1, 2, 5, 6),), {"size": (3, 11), "mode": "nearest-exact"}),
    ("interpolate", (rand(1, 2, 5, 6),), {"size": 3, "mode": "area"}),
    ("interpolate", (rand(1, 2, 5, 6),), {"scale_factor": (1.5, 0.6), "mode": "bilinear"}),
    (
        "interpolate",
        (rand(1, 2, 5, 6),),
        {"scale_factor": 1.3, "mode": "bicubic", "recompute_scale_factor": True},
    ),
    ("grid_sample", (rand(2, 3, 6, 7), GRID), {"align_corners": False}),
    ("grid_sample", (rand(2, 3, 6, 7), GRID), {"align_corners": True, "mode": "nearest"}),
    ("grid_sample", (rand(2, 3, 6, 7), GRID), {"align_corners": False, "padding_mode": "border"}),
    (
        "grid_sample",
        (rand(2, 3, 6, 7), GRID),
        {"align_corners": False, "padding_mode": "reflection"},
    ),
    ("grid_sample", (rand(2, 3, 6, 7), GRID), {"align_corners": True, "mode": "bicubic"}),
    ("affine_grid", (rand(2, 2, 3),), {"size": (2, 3, 4, 5), "align_corners": False}),
    ("affine_grid", (rand(2, 3, 4),), {"size": (2, 1, 3, 4, 5), "align_corners": True}),
    ("conv2d", (rand(2, 3, 6, 6), rand(4, 3, 3, 3, seed=2)), {"padding": "valid"}),
    ("conv_transpose1d", (rand(3, 6), rand(3, 4, 3, seed=2)), {"stride": 2, "dilation": 2}),
    ("rms_norm", (rand(2, 5),), {"normalized_shape": (5,)}),
    ("softmax", (rand(2, 5),), {"dim": -1, "dtype": torch.float64}),
]


@pytest.mark.parametrize("i", range(len(CASES)), ids=[f"{i} {c[0]}" for i, c in enumerate(CASES)])
def test_function_is_torchs(i: int) -> None:
    name, args, kwargs = CASES[i]
    if "dtype" in kwargs:
        mine = lambda x: F.softmax(x, -1, dtype=mindtorch.float64)  # noqa: E731
        compare_call(mine, lambda x: TF.softmax(x, -1, dtype=torch.float64), args)
        return
    compare_call(getattr(F, name), getattr(TF, name), args, **kwargs)


ATTENTION: list[dict[str, Any]] = [
    {},
    {"is_causal": True},
    {"scale": 0.3},
    {"attn_mask": rand(4, 4, grad=False)},
    {"attn_mask": torch.ones(4, 4).tril().bool()},
    {"attn_mask": integers(2, 2, 1, 4, 4).bool()},
]


@pytest.mark.parametrize("kwargs", ATTENTION)
def test_scaled_dot_product_attention_is_torchs(kwargs: dict[str, Any]) -> None:
    args = (rand(2, 3, 4, 5), rand(2, 3, 4, 5, seed=2), rand(2, 3, 4, 6, seed=3))
    compare_call(F.scaled_dot_product_attention, TF.scaled_dot_product_attention, args, **kwargs)


def test_grouped_query_attention_repeats_heads() -> None:
    args = (rand(1, 4, 3, 5), rand(1, 2, 3, 5, seed=2), rand(1, 2, 3, 5, seed=3))
    compare_call(
        F.scaled_dot_product_attention, TF.scaled_dot_product_attention, args, enable_gqa=True
    )


def test_embedding_max_norm_renormalizes_the_rows_it_reads() -> None:
    weight = rand(5, 3, grad=False) * 3
    theirs = weight.clone()
    mine = mindtorch.from_numpy(weight.numpy().copy())
    index = integers(3, 4)
    expected = TF.embedding(index, theirs, max_norm=1.0)
    found = F.embedding(mindtorch.from_numpy(index.numpy()), mine, max_norm=1.0)
    np.testing.assert_allclose(array(found), array(expected), rtol=1e-5)
    np.testing.assert_allclose(array(mine), array(theirs), rtol=1e-5)


@pytest.mark.parametrize("name", ["dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_keeps_the_mean(name: str) -> None:
    mindtorch.manual_seed(0)
    x = mindtorch.ones(64, 64, 8) if name == "dropout1d" else mindtorch.randn(64, 64, 8)
    out = getattr(F, name)(x, 0.3, training=True)
    assert abs(float(out.mean()) - float(x.mean())) < 0.05
    assert not np.array_equal(array(out), array(x))


def test_dropout_zeroes_and_scales() -> None:
    mindtorch.manual_seed(0)
    x = mindtorch.ones(1000, requires_grad=True)
    out = F.dropout(x, 0.25)
    assert set(np.round(array(out), 5)) == {0.0, np.float32(1.33333)}
    out.sum().backward()
    np.testing.assert_array_equal(array(x.grad), array(out))


def test_dropout_outside_training_is_the_identity() -> None:
    x = mindtorch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x


def test_hard_gumbel_softmax_gives_one_hot_rows() -> None:
    out = F.gumbel_softmax(mindtorch.randn(5, 4), hard=True)
    np.testing.assert_allclose(array(out).sum(-1), np.ones(5), rtol=1e-6)
    np.testing.assert_allclose(array(out).max(-1), np.ones(5), rtol=1e-6)


def test_max_unpool_undoes_max_pool() -> None:
    x = rand(2, 3, 6, 6, grad=False)
    pooled, index = TF.max_pool2d(x, 2, return_indices=True)
    expected = TF.max_unpool2d(pooled, index, 2)
    mine, where = F.max_pool2d(mindtorch.from_numpy(x.numpy()), 2, return_indices=True)
    np.testing.assert_array_equal(array(where), array(index))
    np.testing.assert_array_equal(array(F.max_unpool2d(mine, where, 2)), array(expected))


REFUSED: list[Any] = [
    lambda t: t.nn.functional.dropout(t.ones(2), 1.5),
    lambda t: t.nn.functional.hardtanh(t.ones(2), 1.0, -1.0),
    lambda t: t.nn.functional.glu(t.ones(3)),
    lambda t: t.nn.functional.conv2d(t.ones(2, 2), t.ones(1, 1, 1, 1)),
    lambda t: t.nn.functional.pad(t.ones(2), (1, 2, 3)),
    lambda t: t.nn.functional.pad(t.ones(2), (1, 2, 3, 4)),
    lambda t: t.nn.functional.one_hot(t.tensor([1.0])),
    lambda t: t.nn.functional.one_hot(t.tensor([-1])),
    lambda t: t.nn.functional.one_hot(t.tensor([3]), 3),
    lambda t: t.nn.functional.layer_norm(t.ones(2, 3), (2,)),
    lambda t: t.nn.functional.group_norm(t.ones(2, 3), 2),
    lambda t: t.nn.functional.batch_norm(t.ones(1, 3), None, None, training=True),
    lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2)),
    lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2), size=3, scale_factor=2),
    lambda t: t.nn.functional.pixel_shuffle(t.ones(1, 3, 2, 2), 2),
    lambda t: t.nn.functional.prelu(t.ones(2, 3), t.ones(4)),
    lambda t: t.nn.functional.celu(t.ones(2), 0.0),
    lambda t: t.nn.Conv2d(3, 4, 3, groups=2),
    lambda t: t.nn.Conv2d(3, 4, 3, stride=2, padding="same"),
    lambda t: t.nn.GroupNorm(2, 3),
    lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3)),
    lambda t: t.nn.Embedding(3, 2, padding_idx=3),
    lambda t: t.nn.MultiheadAttention(5, 2),
    lambda t: t.nn.LSTM(3, 0),
    lambda t: t.nn.GRU(3, 4, proj_size=2),
    lambda t: t.nn.LSTM(3, 4)(t.ones(2, 2, 5)),
    lambda t: t.nn.ConvTranspose2d(1, 1, 3, 2)(t.ones(1, 1, 2, 2), output_size=(9, 9)),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusal_has_torchs_type_and_text(i: int) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - torch decides the class
        REFUSED[i](torch)
    with pytest.raises(type(expected.value)) as found:
        REFUSED[i](mindtorch)
    assert str(found.value) == str(expected.value)
