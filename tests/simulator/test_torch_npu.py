"""torch_npu, unmodified, trains on the simulator to the losses of the CPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import install

from aclnn_bindings import simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_npu") is None,
    reason="torch-npu is not installed (pip install torch==2.13.0 torch-npu==2.13.0)",
)
SCRIPT = Path(__file__).with_name("train_mlp.py")


def train(device: str, **variables: str) -> list[float]:
    install()
    environment = {**os.environ, **variables, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), device],
        env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(word) for word in done.stdout.split()]


@pytest.mark.parametrize("product", ["Ascend910B2", "Ascend910_9392"])
def test_an_mlp_trains_to_the_losses_of_the_cpu(product: str) -> None:
    expected = train("cpu")
    found = train("npu", **simulated.environment(), ACLSIM_SOC=product)
    assert expected[-1] < expected[0]
    # float32 on both sides, sums in another order: a few units in the last place per step.
    assert found == pytest.approx(expected, rel=1e-5)
