"""What kernels and phase 1 once got wrong: refused what CANN takes, or computed something else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kernel_harness import Out, accepted, refused

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

HALVES = [torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_extrema_along_a_dim_write_indices_of_either_width(sim: Any, index: Any) -> None:
    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, -1.0]])
    for op, result in (("aclnnMinDim", x.min(1)), ("aclnnMaxDim", x.max(1))):
        accepted(sim, op, x, 1, False, Out(result.values), Out(result.indices.to(index)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_floats_take_integers(sim: Any, dtype: Any) -> None:
    x = torch.tensor([0, 1, 3]).to(dtype)
    accepted(sim, "aclnnSinc", x, Out(torch.sinc(x)))
    accepted(sim, "aclnnSigmoid", x, Out(torch.sigmoid(x)))
    for op, f in (("aclnnIsFinite", torch.isfinite), ("aclnnIsPosInf", torch.isposinf),
                  ("aclnnIsNegInf", torch.isneginf)):  # fmt: skip
        accepted(sim, op, x, Out(f(x)))


def test_linspace_and_arange_fill_integers_and_any_shape(sim: Any) -> None:
    for dtype in INTEGERS:
        accepted(sim, "aclnnLinspace", 0, 10, 5, Out(torch.linspace(0, 10, 5).to(dtype)))
        accepted(sim, "aclnnArange", 0, 6, 1, Out(torch.arange(6, dtype=dtype).view(2, 3)))


def test_complex_numbers_are_made_of_halves(sim: Any) -> None:
    re, im = torch.tensor([1.0, -2.0]).half(), torch.tensor([0.5, 3.0]).half()
    accepted(sim, "aclnnComplex", re, im, Out(torch.complex(re.float(), im.float())))


def test_sign_of_complex_numbers_lies_on_the_unit_circle(sim: Any) -> None:
    x = torch.tensor([3 + 4j, 0, -2j])
    accepted(sim, "aclnnSign", x, Out(torch.sgn(x)))


def test_channels_of_bfloat16_are_shuffled(sim: Any) -> None:
    x = torch.arange(24.0).view(1, 6, 4).bfloat16()
    accepted(sim, "aclnnChannelShuffle", x, 2, Out(torch.channel_shuffle(x[..., None], 2)[..., 0]))


@pytest.mark.parametrize("dtype", HALVES)
def test_foreach_takes_halves_with_numbers(sim: Any, dtype: Any) -> None:
    xs = (torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([3.0]).to(dtype))
    two = torch.tensor([2.0])
    for op, f in (("aclnnForeachAddScalar", lambda x: x + 2),
                  ("aclnnForeachMulScalar", lambda x: x * 2)):  # fmt: skip
        accepted(sim, op, xs, two, tuple(Out(f(x)) for x in xs))
    accepted(sim, "aclnnForeachAddListV2", xs, xs, 2.0, tuple(Out(x + 2 * x) for x in xs))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_are_rounded_to_the_tensor_before_they_are_compared(sim: Any, dtype: Any) -> None:
    x = torch.tensor([9.7, 9.0]).to(dtype)
    accepted(sim, "aclnnEqScalar", x, 9.7, Out(x == 9.7))
    accepted(sim, "aclnnGeScalar", x, 9.7, Out(x >= 9.7))
    accepted(sim, "aclnnAdds", x, 9.7, 1, Out(x + torch.tensor(9.7).to(dtype)))


def test_numbers_wrap_to_the_integer_type_of_the_tensor(sim: Any) -> None:
    x = torch.tensor([255, 7, 100], dtype=torch.uint8)
    for n in (-1, -3):
        accepted(sim, "aclnnDivMods", x, n, 1, Out(torch.div(x, n, rounding_mode="trunc")))
        accepted(sim, "aclnnDivMods", x, n, 2, Out(torch.div(x, n, rounding_mode="floor")))
        accepted(sim, "aclnnFloorDivides", x, n, Out(x // n))
        accepted(sim, "aclnnFmodScalar", x, n, Out(torch.fmod(x, n)))


def test_integers_refuse_fractions_in_place(sim: Any) -> None:
    x, y = torch.tensor([1, 2]), torch.tensor([0.5, 1.5])
    for op, args in {"aclnnInplaceAdd": (y, 1), "aclnnInplaceAdds": (0.5, 1),
                     "aclnnInplaceMul": (y,)}.items():  # fmt: skip
        refused(sim, "can't be cast to the desired output type", op, Out(x, given=x), *args)


def test_a_function_of_integers_alone_writes_integers_in_place(sim: Any) -> None:
    x = torch.tensor([-6, 0, 5], dtype=torch.int32)
    expected = torch.nn.functional.hardsigmoid(x.float()).to(torch.int32)
    accepted(sim, "aclnnInplaceHardsigmoid", Out(expected, given=x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_dims_without_an_index_are_marked_by_empty_tensors_of_any_dtype(
    sim: Any, dtype: Any
) -> None:
    x = torch.arange(12).view(3, 4).to(dtype)
    nothing, index = torch.empty(0, dtype=dtype), torch.tensor([2, 0, -1])
    accepted(sim, "aclnnIndex", x, (nothing, index), Out(x[:, index]))
    written = x.clone()
    written[:, index] = torch.ones(3, 3).to(dtype)
    accepted(sim, "aclnnIndexPutImpl", Out(written, given=x), (nothing, index),
             torch.ones(3, 3).to(dtype), False, False)  # fmt: skip


def test_true_and_false_as_indices_select_all_and_nothing(sim: Any) -> None:
    x = torch.arange(6.0).view(2, 3)
    both = (torch.tensor([0]), torch.empty(0, dtype=torch.int64))
    accepted(sim, "aclnnIndex", x[None, None], both, Out(x[True, False]))


def test_indices_into_nothing_fail_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, index = torch.zeros(0, 3), torch.tensor([0])
    calls = {
        "aclnnIndex": (x, (index,), Out(torch.zeros(1, 3))),
        "aclnnIndexPutImpl": (Out(x, given=x), (index,), torch.ones(1, 3), False, False),
    }
    for op, args in calls.items():
        with pytest.raises(AclError, match="out of bounds"):
            sim.run(op, *args)


def test_renorm_with_an_order_of_zero_counts(sim: Any) -> None:
    x = torch.tensor([[3.0, 0.0, 4.0], [1.0, 1.0, 1.0]])
    scale = torch.tensor([[1.0], [2 / (3 + 1e-7)]])
    accepted(sim, "aclnnRenorm", x, 0.0, 0, 2.0, Out(x * scale))
    accepted(sim, "aclnnEmbeddingRenorm", Out(x * scale, given=x), torch.tensor([0, 1]), 2.0, 0.0)


@pytest.mark.parametrize("right", [False, True])
def test_searching_puts_nan_behind_everything(sim: Any, right: bool) -> None:
    sorted_, x = torch.tensor([1.0, 2.0, 3.0, float("nan")]), torch.tensor([2.0, float("nan"), 9.0])
    expected = torch.searchsorted(sorted_, x, right=right)
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, right, None, Out(expected))


def test_searching_tells_large_integers_apart(sim: Any) -> None:
    sorted_ = torch.tensor([2**60, 2**60 + 1, 2**60 + 2])
    x = torch.tensor([2**60 + 1, 2**60 + 2])
    accepted(sim, "aclnnSearchSorted", sorted_, x, False, False, None, Out(torch.tensor([1, 2])))


def test_a_negative_threshold_does_not_shrink(sim: Any) -> None:
    x = torch.ones(2)
    refused(sim, "lambd should be 0 or more", "aclnnSoftshrink", x, -0.5, Out(x))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, float("inf")])
def test_distances_broadcast_leading_dims(sim: Any, p: float) -> None:
    g = torch.Generator().manual_seed(1)
    for a, b in (((2, 1, 3, 4), (5, 2, 4)), ((3, 4), (2, 5, 4)), ((2, 3, 4), (1, 2, 4))):
        x, y = torch.randn(*a, generator=g), torch.randn(*b, generator=g)
        accepted(sim, "aclnnCdist", x, y, p, 0, Out(torch.cdist(x, y, p=p), tolerance=1e-5))


def test_one_probability_serves_all_of_bernoulli(sim: Any) -> None:
    x = torch.zeros(3, 4)
    for p in (0.0, 1.0):
        accepted(sim, "aclnnBernoulliTensor", x, torch.tensor(p), 1, 0, Out(torch.full((3, 4), p)))


def test_nothing_is_totalled_where_nll_reduces_nothing(sim: Any) -> None:
    x, target = torch.randn(3, 4).log_softmax(1), torch.tensor([0, 2, 1])
    weight = torch.ones(4)
    loss = torch.nn.functional.nll_loss(x, target, reduction="none")
    accepted(sim, "aclnnNLLLoss", x, target, weight, 0, -100, Out(loss),
             Out(torch.zeros(1), given=torch.full((1,), 7.0)))  # fmt: skip


def test_gelu_is_the_tanh_form_and_v2_says_which(sim: Any) -> None:
    x = torch.linspace(-4, 4, 33)
    gelu = torch.nn.functional.gelu
    accepted(sim, "aclnnGelu", x, Out(gelu(x, approximate="tanh")))
    accepted(sim, "aclnnGeluV2", x, 0, Out(gelu(x), tolerance=1e-5))


def test_unique_values_and_their_counts_have_sizes_of_their_own(sim: Any) -> None:
    from kernel_harness import laid_out

    x = torch.tensor([3, 1, 3, 3, 1, 2])
    for op, flags, (values, inverse, counts) in (
        ("aclnnUnique2", (True, True, True),
         torch.unique(x, return_inverse=True, return_counts=True)),
        ("aclnnUniqueConsecutive", (True, True, 1000),
         torch.unique_consecutive(x, return_inverse=True, return_counts=True)),
    ):  # fmt: skip
        outs = [sim.put(laid_out(torch.zeros_like(x), "contiguous")) for _ in range(3)]
        sim.cann.ops[op](sim.put(x), *flags, *outs)
        sim.synchronize()
        n = len(values)
        found = [torch.from_numpy(o.numpy().copy()) for o in outs]
        assert found[0][:n].tolist() == values.tolist()
        assert found[1].tolist() == inverse.tolist()
        assert found[2][:n].tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aclnnTriu", (torch.ones(3, 3).bool(), 0, Out(torch.ones(3, 3)))),
        ("aclnnBatchNorm", (torch.ones(2, 3), torch.ones(1, 3), None, torch.ones(3), torch.ones(3),
                            False, 0.1, 1e-5, Out(torch.ones(2, 3)), None, None)),
        ("aclnnBinaryCrossEntropy", (torch.full((2, 3), 0.5), torch.ones(2, 3), torch.ones(4), 1,
                                     Out(torch.tensor(0.0)))),
        ("aclnnBinaryCrossEntropyBackward", (torch.ones(2, 3), torch.full((2, 3), 0.5),
                                             torch.ones(2, 3), torch.ones(4, 2, 3), 0,
                                             Out(torch.ones(2, 3)))),
        ("aclnnSearchSorteds", (torch.ones(3), 1.0, False, False, None,
                                Out(torch.empty(0, dtype=torch.int64)))),
        ("aclnnPrelu", (torch.ones(2, 3), torch.ones(2, 3), Out(torch.ones(2, 3)))),
        ("aclnnScatterAdd", (torch.ones(3), 0, torch.tensor([0, 1, 2]), torch.tensor(1.0),
                             Out(torch.ones(3)))),
    ],
)  # fmt: skip
def test_arguments_that_would_lead_outside_memory_are_refused(
    sim: Any, op: str, args: tuple[Any, ...]
) -> None:
    refused(sim, ".", op, *args)


def test_a_transposed_weight_in_half_precision_costs_no_more_than_a_plain_one(sim: Any) -> None:
    x, w = torch.randn(8, 768).half(), torch.randn(768, 768).half()
    expected = (x.float() @ w.float().t()).half()
    accepted(sim, "aclnnMatmul", x, w.t(), Out(expected, tolerance=4e-3), 1)
    out = sim.put(torch.zeros(8, 768).half())
    times = {}
    for name, weight in (("plain", w), ("transposed", w.t())):
        a, b = sim.put(x), sim.put(weight)
        best = 1.0
        for _ in range(5):
            start = time.perf_counter()
            sim.cann.ops.aclnnMatmul(a, b, out, 1)
            sim.synchronize()
            best = min(best, time.perf_counter() - start)
        times[name] = best
    assert times["transposed"] < 4 * times["plain"], times


def test_what_documents_call_optional_may_be_absent(sim: Any) -> None:
    x, g = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    mean, rstd = x.mean((0, 2)), (x.var((0, 2), correction=0) + 1e-5).rsqrt()
    masks = ((True, False, False), (False, True, True))
    expected = torch.ops.aten.native_batch_norm_backward(
        g, x, torch.ones(3), None, None, mean, rstd, True, 1e-5, [True] * 3
    )
    for mask in masks:
        outs = [Out(e, tolerance=1e-4) if m else None for e, m in zip(expected, mask, strict=True)]
        accepted(sim, "aclnnBatchNormBackward", g, x, torch.ones(3), None, None, mean, rstd, True,
                 1e-5, mask, *outs)  # fmt: skip
    param, state = torch.randn(4), torch.zeros(4)
    stepped = param.clone().requires_grad_()
    optimizer = torch.optim.AdamW([stepped], 0.1, (0.9, 0.99), 1e-8, 0.01, foreach=False)
    stepped.grad = torch.ones(4)
    optimizer.step()
    m, v = optimizer.state[stepped]["exp_avg"], optimizer.state[stepped]["exp_avg_sq"]
    accepted(sim, "aclnnApplyAdamWV2", Out(stepped.detach(), param, 1e-5), Out(m, state, 1e-5),
             Out(v, state, 1e-5), None, torch.ones(4), torch.tensor([0.0]), 0.1, 0.9, 0.99, 0.01,
             1e-8, False, False)  # fmt: skip


def test_a_slope_per_channel_may_have_the_shape_that_broadcasts(sim: Any) -> None:
    x, slope = torch.randn(2, 3, 4), torch.rand(3)
    expected = torch.nn.functional.prelu(x, slope)
    for shape in ((3,), (1, 3, 1)):
        accepted(sim, "aclnnPrelu", x, slope.view(shape), Out(expected, tolerance=1e-6))


def test_dropout_keeps_what_bernoulli_of_the_rest_draws(sim: Any) -> None:
    """So that a dropout in place, which clients make of Bernoulli, agrees for one seed."""
    x = torch.ones(8, 64)
    drawn = sim.run("aclnnInplaceBernoulli", Out(x, given=x), 0.7, 5, 3)[0][0]
    mask = torch.zeros(64, dtype=torch.uint8)
    kept = sim.run("aclnnDropout", x, 0.3, True, 5, 3, Out(x), Out(mask))[0][0]
    assert 0.5 < (drawn != 0).float().mean() < 0.9
    assert torch.equal(kept != 0, drawn != 0)


def test_an_absent_optional_tensor_is_an_empty_one_of_any_dtype(sim: Any) -> None:
    """op-plugin gives an empty half as the offset of the output that only int4 weights need."""
    x, w = torch.tensor([[1, -2, 3]], dtype=torch.int8), torch.ones(3, 2, dtype=torch.int8)
    nothing = torch.empty(0, dtype=torch.float16)
    accepted(sim, "aclnnQuantMatmulV5", x, w, torch.tensor([2.0]), torch.tensor([0.5, 1.0]), None,
             None, None, nothing, None, False, False, 0,
             Out(torch.tensor([[2.0, 4.0]]).half()), layouts=["contiguous"])  # fmt: skip


def test_products_of_groups_have_biases_of_their_own_widths(sim: Any) -> None:
    xs, ws = (torch.randn(2, 3), torch.randn(4, 5)), (torch.randn(3, 2), torch.randn(5, 7))
    bias = (torch.randn(2), torch.randn(7))
    xs, ws, bias = (tuple(t.half() for t in ts) for ts in (xs, ws, bias))
    outs = tuple(
        Out((x.float() @ w.float() + b.float()).half(), tolerance=4e-3)
        for x, w, b in zip(xs, ws, bias, strict=True)
    )
    accepted(sim, "aclnnGroupedMatmulV4", xs, ws, bias, *[None] * 9, 0, -1, 0, 0, outs, None, None,
             layouts=["contiguous"])  # fmt: skip


def test_the_gradient_of_a_grid_sums_many_channels_without_loss(sim: Any) -> None:
    x, grid = torch.rand(1, 512, 8, 8) * 100, torch.tensor([[[[0.3, -0.4]]]])
    g = torch.ones(1, 512, 1, 1)
    exact = torch.ops.aten.grid_sampler_2d_backward(
        g.double(), x.double(), grid.double(), 0, 0, False, [True, True]
    )
    seen = sim.run("aclnnGridSampler2DBackward", g, x, grid, 0, 0, False, (True, True),
                   Out(torch.zeros_like(x)), Out(torch.zeros_like(grid)))[1][0]  # fmt: skip
    # Slopes and weights are float32; their sum of 2,048 terms up to 400 is rounded once.
    terms = 2048 * 400 * 2.0**-24
    assert (seen - exact[1]).abs().max() < 4 * terms**0.5


def test_rows_of_bfloat16_are_gathered(sim: Any) -> None:
    x, at = torch.randn(5, 3).bfloat16(), torch.tensor([4, 0, 4])
    accepted(sim, "aclnnGatherV3", x, 0, at, 0, 0, Out(x[at]))


def test_the_state_of_a_generator_may_be_signed(sim: Any) -> None:
    """torch keeps seeds and offsets as int64."""
    zeros = torch.zeros(64)
    drawn = [
        sim.run("aclnnInplaceUniformTensor", Out(zeros, given=zeros), 0.0, 1.0, state, state, 0)
        for state in (torch.tensor([3]), torch.tensor([3], dtype=torch.uint64))
    ]
    assert torch.equal(drawn[0][0][0], drawn[1][0][0])
    assert drawn[0][0][0].std() > 0.2


def test_one_number_may_be_reduced_into_a_vector_of_one(sim: Any) -> None:
    """ggml sums its losses so."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    for dims in ((0, 1), ()):
        accepted(sim, "aclnnReduceSum", x, dims, False, torch.float32, Out(x.sum()[None]))
    accepted(sim, "aclnnReduceSum", x[0], (0,), False, torch.float32, Out(x[0].sum()[None]))
    refused(sim, "Shape of out should be", "aclnnReduceSum", x, (0,), False, torch.float32,
            Out(x.sum()[None]))  # fmt: skip
