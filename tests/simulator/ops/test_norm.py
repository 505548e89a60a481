"""Layer, RMS, batch, group and instance norm of the simulator, and their gradients."""

from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


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


EPS = 1e-3


def out(tensor: Any, tolerance: float = 1e-4) -> Out:
    return Out(tensor.detach().contiguous(), tolerance=tolerance)


def test_optional_outputs_of_norms_may_be_absent(sim: Any) -> None:
    a, b, gamma = noise(2, 8), noise(2, 8, seed=1), noise(8, seed=2)
    x = a + b
    y = x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * gamma
    accepted(sim, "aclnnAddRmsNorm", a, b, gamma, EPS, out(y), None, None)
