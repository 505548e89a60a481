"""Kernels of pooling: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out
from torch_samples import randn, result_and_gradient

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

F = torch.nn.functional
# kernel, stride, padding, dilation, ceil mode
MAX_2D = [
    ((2, 2), (2, 2), (0, 0), (1, 1), False),
    ((3, 2), (2, 1), (1, 0), (1, 1), True),
    ((3, 3), (2, 2), (1, 1), (2, 1), False),
    ((3, 3), (), (1, 1), (1, 1), False),
]


@pytest.mark.parametrize("case", MAX_2D, ids=str)
def test_masks_of_max_pooling_lead_gradients_back(sim: Any, case: Any) -> None:
    kernel, stride, *rest = case
    x = randn(torch.float32, 2, 3, 9, 7)
    y, g, gx = result_and_gradient(lambda a: F.max_pool2d(a, kernel, stride or None, *rest), x)
    row = (-(-y.shape[2] * y.shape[3] // 16) + 1) * 32
    mask = torch.zeros(2, 3, kernel[0] * kernel[1], row, dtype=torch.int8)
    (got, _), (bits, _) = sim.run(
        "aclnnMaxPool2dWithMask", x, kernel, stride, *rest, Out(y), Out(mask)
    )
    assert torch.equal(got, y)
    sim.check("aclnnMaxPool2dWithMaskBackward", g, x, bits, kernel, stride, *rest, Out(gx))


def test_the_maximum_of_a_window_with_nan_is_nan(sim: Any) -> None:
    x = torch.tensor([[[1.0, float("nan"), 3.0, 4.0]]])
    y, at = F.max_pool2d(x, (1, 2), return_indices=True)
    sim.check(
        "aclnnMaxPool2dWithIndices", x, (1, 2), (1, 2), (0, 0), (1, 1), False, Out(y), Out(at)
    )


def test_windows_that_do_not_fit_are_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, y = torch.zeros(1, 4, 4), torch.zeros(1, 2, 2)
    for kernel, padding, words in (((2, 2), (2, 2), "half of the kernel"), ((5, 5), (0, 0), "fit")):
        with pytest.raises(AclError, match=words) as caught:
            sim.run("aclnnAvgPool2d", x, kernel, (2, 2), padding, False, True, 0, 0, Out(y))
        assert caught.value.code == 161002


def test_an_index_outside_of_its_plane_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    x, at = torch.zeros(1, 2, 2), torch.tensor([[[4]]], dtype=torch.int32)
    with pytest.raises(AclError) as caught:
        sim.run(
            "aclnnMaxPool2dWithIndicesBackward",
            torch.ones(1, 1, 1),
            x,
            at,
            (2, 2),
            (2, 2),
            (0, 0),
            (1, 1),
            False,
            Out(x),
        )
    assert caught.value.code == 507015


def test_unpooling_outside_the_plane_fails_on_the_stream(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    one = torch.ones(1, 1, 1)
    with pytest.raises(AclError, match="out of range for a plane of 4"):
        sim.run("aclnnMaxUnpool2d", one, torch.full((1, 1, 1), 4), (2, 2), Out(torch.ones(1, 2, 2)))
