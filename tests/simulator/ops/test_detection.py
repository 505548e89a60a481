"""Kernels of detection: results equal a reference, and what they refuse."""

from typing import Any

import pytest
from kernel_harness import Out, refused
from torch_samples import noise

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")


BOXES = torch.tensor([[1.0, 2.0, 3.0, 10.0, 12.0], [0.0, 4.0, 1.0, 9.0, 6.0]])  # image, x0, y0, ...


def test_regions_refuse_boxes_without_an_image(sim: Any) -> None:
    x = noise(1, 1, 4, 4)
    refused(sim, "boxes should be", "aclnnRoiAlignV2", x, BOXES[:, 1:], 1, 1, 1.0, 0, True,
            Out(torch.zeros(2, 1, 1, 1)))  # fmt: skip
