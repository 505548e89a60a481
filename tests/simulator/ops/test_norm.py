"""Layer, RMS, batch, group and instance norm of the simulator, and their gradients."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
# Statistics of some hundred values in float32: rounding grows with the root of their number.
LOOSE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def gradients(function: Any, g: Any, *inputs: Any) -> list[Any]:
    """What double precision gives for the gradients, in the dtypes of the inputs."""
    wide = [x.double().requires_grad_() for x in inputs]
    found = torch.autograd.grad(function(*wide), wide, g.double())
    return [f.to(x.dtype) for f, x in zip(found, inputs, strict=True)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("over", [(7,), (5, 7), (300,)])
def test_layer_norm_and_its_gradients_equal_torch(sim: Any, dtype: Any, over: Any) -> None:
    x = randn(dtype, 3, 2, *over).add(2).to(dtype)
    w, b, g = (
        randn(dtype, *over, seed=1),
        randn(dtype, *over, seed=2),
        randn(dtype, *x.shape, seed=3),
    )
    dims = tuple(range(2, x.dim()))
    mean = x.double().mean(dims, keepdim=True)
    rstd = (x.double().var(dims, correction=0, keepdim=True) + 1e-5).rsqrt()
    out = F.layer_norm(x.double(), over, w.double(), b.double(), 1e-5).to(dtype)
    tol = LOOSE[dtype]
    sim.check(
        "aclnnLayerNorm",
        x,
        over,
        w,
        b,
        1e-5,
        Out(out, tolerance=tol),
        Out(mean.float(), tolerance=tol),
        Out(rstd.float(), tolerance=tol),
    )
    plain = F.layer_norm(x.double(), over, None, None, 1e-5).to(dtype)
    sim.check("aclnnLayerNorm", x, over, None, None, 1e-5, Out(plain, tolerance=tol), None, None)
    gx, gw, gb = gradients(lambda a, c, d: F.layer_norm(a, over, c, d, 1e-5), g, x, w, b)
    stats = mean.float(), rstd.float()
    sim.check(
        "aclnnLayerNormBackward",
        g,
        x,
        over,
        *stats,
        w,
        b,
        (True, True, True),
        Out(gx, tolerance=3 * tol),
        Out(gw, tolerance=tol),
        Out(gb, tolerance=tol),
    )
    sim.check(
        "aclnnLayerNormBackward",
        g,
        x,
        over,
        *stats,
        w,
        b,
        (False, True, False),
        None,
        Out(gw, tolerance=tol),
        None,
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_rms_norms_equal_their_definition(sim: Any, dtype: Any) -> None:
    x, other, w = randn(dtype, 4, 3, 9), randn(dtype, 4, 3, 9, seed=1), randn(dtype, 9, seed=2)
    tol = LOOSE[dtype]

    def rms(a: Any, c: Any) -> tuple[Any, Any]:
        rstd = (a.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return a * rstd * c, rstd

    y, rstd = rms(x.double(), w.double())
    sim.check(
        "aclnnRmsNorm",
        x,
        w,
        1e-6,
        Out(y.to(dtype), tolerance=tol),
        Out(rstd.float(), tolerance=tol),
    )
    total = x.double() + other.double()
    y, rstd_sum = rms(total, w.double())
    sim.check(
        "aclnnAddRmsNorm",
        x,
        other,
        w,
        1e-6,
        Out(y.to(dtype), tolerance=tol),
        Out(rstd_sum.float(), tolerance=tol),
        Out(total.to(dtype)),
    )
    sim.check(
        "aclnnInplaceAddRmsNorm",
        Out(y.to(dtype), x, tolerance=tol),
        Out(total.to(dtype), other),
        w,
        1e-6,
        Out(rstd_sum.float(), tolerance=tol),
    )
    shifted = rms(x.double(), w.double() + 1)[0].to(dtype)
    sim.check(
        "aclnnGemmaRmsNorm",
        x,
        w,
        1e-6,
        Out(shifted, tolerance=tol),
        Out(rstd.float(), tolerance=tol),
    )
    g = randn(dtype, 4, 3, 9, seed=3)
    gx, gw = gradients(lambda a, c: rms(a, c)[0], g, x, w)
    sim.check(
        "aclnnRmsNormGrad",
        g,
        x,
        rstd.squeeze(-1).float(),
        w,
        Out(gx, tolerance=3 * tol),
        Out(gw.float(), tolerance=tol),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (2, 4, 3, 5), (2, 3, 2, 3, 4)])
def test_batch_norm_and_its_gradients_equal_torch(sim: Any, dtype: Any, shape: Any) -> None:
    channels = shape[1]
    x, g = randn(dtype, *shape).add(1).to(dtype), randn(dtype, *shape, seed=4)
    w, b = randn(dtype, channels, seed=1), randn(dtype, channels, seed=2)
    old_mean, old_var = randn(torch.float32, channels, seed=3), torch.rand(channels) + 0.5
    over, tol = (0, *range(2, len(shape))), LOOSE[dtype]
    mean, var = x.double().mean(over), x.double().var(over, correction=0)
    rstd = (var + 1e-3).rsqrt()
    new_mean, new_var = old_mean.double(), old_var.double()
    expected = F.batch_norm(x.double(), new_mean, new_var, w.double(), b.double(), True, 0.1, 1e-3)
    sim.check(
        "aclnnBatchNorm",
        x,
        w,
        b,
        Out(new_mean.float(), old_mean, tol),
        Out(new_var.float(), old_var, tol),
        True,
        0.1,
        1e-3,
        Out(expected.to(dtype), tolerance=tol),
        Out(mean.float(), tolerance=tol),
        Out(rstd.float(), tolerance=tol),
    )
    frozen = F.batch_norm(
        x.double(), old_mean.double(), old_var.double(), w.double(), b.double(), False, 0.1, 1e-3
    )
    none = torch.zeros(0)
    sim.check(
        "aclnnBatchNorm",
        x,
        w,
        b,
        old_mean,
        old_var,
        False,
        0.1,
        1e-3,
        Out(frozen.to(dtype), tolerance=tol),
        Out(none),
        Out(none),
    )
    for training in (True, False):
        statistics = (None, None) if training else (old_mean.double(), old_var.double())
        gx, gw, gb = gradients(
            lambda a, c, d, s=statistics, t=training: F.batch_norm(a, *s, c, d, t, 0.1, 1e-3),
            g,
            x,
            w,
            b,
        )
        sim.check(
            "aclnnBatchNormBackward",
            g,
            x,
            w,
            old_mean,
            old_var,
            mean.float(),
            rstd.float(),
            training,
            1e-3,
            (True, True, True),
            Out(gx, tolerance=3 * tol),
            Out(gw, tolerance=tol),
            Out(gb, tolerance=tol),
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_and_its_gradients_equal_torch(sim: Any, dtype: Any, groups: int) -> None:
    x, g = randn(dtype, 2, 6, 3, 5).sub(1).to(dtype), randn(dtype, 2, 6, 3, 5, seed=3)
    w, b, tol = randn(dtype, 6, seed=1), randn(dtype, 6, seed=2), LOOSE[dtype]
    parts = x.double().reshape(2, groups, -1)
    mean = parts.mean(-1)
    rstd = (parts.var(-1, correction=0) + 1e-5).rsqrt()
    stats = mean.to(dtype), rstd.to(dtype)
    out = F.group_norm(x.double(), groups, w.double(), b.double(), 1e-5)
    sim.check(
        "aclnnGroupNorm",
        x,
        w,
        b,
        2,
        6,
        15,
        groups,
        1e-5,
        Out(out.to(dtype), tolerance=tol),
        *[Out(s, tolerance=tol) for s in stats],
    )
    sim.check(
        "aclnnGroupNormSilu",
        x,
        w,
        b,
        groups,
        1e-5,
        Out(F.silu(out).to(dtype), tolerance=tol),
        *[Out(s, tolerance=tol) for s in stats],
    )

    def fixed(a: Any, c: Any, d: Any) -> Any:
        return F.group_norm(a, groups, c, d, 1e-5)

    gx, gw, gb = gradients(fixed, g, x, w, b)
    # The statistics that come back are rounded to the dtype, which moves every gradient by as much.
    sim.check(
        "aclnnGroupNormBackward",
        g,
        x,
        *stats,
        w,
        2,
        6,
        15,
        groups,
        (True, True, True),
        *[Out(e, tolerance=5 * tol) for e in (gx, gw, gb)],
    )


def test_a_norm_over_dims_that_the_input_lacks_is_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x = torch.zeros(2, 3)
    with pytest.raises(AclError, match="normalizedShape") as caught:
        sim.run("aclnnLayerNorm", x, (4,), None, None, 1e-5, Out(x), None, None)
    assert caught.value.code == 161002
    with pytest.raises(AclError, match="group should divide C") as caught:
        sim.run(
            "aclnnGroupNorm",
            x,
            None,
            None,
            2,
            3,
            1,
            2,
            1e-5,
            Out(x),
            Out(torch.zeros(2, 2)),
            Out(torch.zeros(2, 2)),
        )
    assert caught.value.code == 161002
