"""Kernels of operators that only the Ascend950 profile has, run in a child with that profile."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

PROFILE = "Ascend950"
INSIDE = os.environ.get("ACLSIM_SOC", "").startswith(PROFILE)
inside = pytest.mark.skipif(not INSIDE, reason="runs in the child that has the 950 profile")


@pytest.mark.skipif(INSIDE, reason="this is the child")
def test_operators_of_the_950_profile_pass_in_a_child() -> None:
    environment = {**os.environ, "ACLSIM_SOC": PROFILE}
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", __file__]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout[-3000:]
    assert " passed" in child.stdout


@inside
def test_square_and_bucketize_equal_torch(sim: Any) -> None:
    x, edges = torch.randn(3, 5), torch.tensor([-1.0, 0.0, 1.0])
    sim.check("aclnnSquare", x, Out(x * x))
    for right in (False, True):
        expected = torch.bucketize(x, edges, right=right, out_int32=True)
        sim.check("aclnnBucketize", x, edges, True, right, Out(expected))


@inside
def test_dropout_v3_keeps_and_scales_what_its_mask_says(sim: Any) -> None:
    x, mask = torch.ones(1000), torch.zeros(128, dtype=torch.uint8)
    out, bits = (r[0] for r in sim.run("aclnnDropoutV3", x, None, 0.25, 1, 0, Out(x), Out(mask)))
    kept = torch.tensor([bool(bits[i // 8] >> (i % 8) & 1) for i in range(1000)])
    assert abs(float(kept.float().mean()) - 0.75) < 0.05
    assert torch.equal(out, kept / 0.75)
    sim.check("aclnnDropoutV3Grad", x, bits, 2.0, Out(kept * 2.0))


@inside
def test_gradient_of_repeats_sums_the_copies(sim: Any) -> None:
    repeats = torch.tensor([2, 0, 3])
    x = torch.randn(3, 5).requires_grad_()
    many = x.repeat_interleave(repeats, 0)
    g = torch.randn(many.shape)
    (expected,) = torch.autograd.grad(many, x, g)
    sim.check("aclnnRepeatInterleaveGrad", g, repeats, 0, Out(expected))
