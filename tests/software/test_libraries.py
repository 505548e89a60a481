"""Libraries that nobody here wrote give on mindtorch what they give on torch.

Needs $MINDTORCH_SOFTWARE, a Python with torch and requirements.txt. Run with -m software.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = os.environ.get("MINDTORCH_SOFTWARE")

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(not PYTHON, reason="$MINDTORCH_SOFTWARE names no Python"),
]


# Largest difference in parts of the largest number, where it is not 1e-5: a chaotic loop of
# denoising steps multiplies the rounding of its first (torch with another number of threads differs
# by as much); sums over gradients of deep networks (torch with other vector instructions differs
# from itself by 2.4e-5 in ConvNeXt).
LOOSE = {"diffusers": 2e-3, "timm": 1e-4, "torchvision": 1e-4}
LIBRARIES = (
    "lightning", "accelerate", "peft", "safetensors", "datasets", "torchmetrics", "einops",
    "opt_einsum", "x_transformers", "diffusers", "trainer", "timm", "torchvision", "pipeline",
    "loaders", "e3nn", "tensordict", "gpytorch", "torch_geometric", "neuralop",
)  # fmt: skip


def told(library, device, path, *, standing_in):
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if standing_in:
        site = ROOT / "mindtorch" / "_compat" / "torch_shim" / "site"
        old = environ.get("PYTHONPATH", "").split(os.pathsep)
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), str(ROOT), *old)))
    done = subprocess.run(
        [PYTHON, str(HERE / "libraries.py"), library, device, str(path)],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def on_torch(tmp_path_factory):
    folder, kept = tmp_path_factory.mktemp("torch"), {}

    def results(library):
        if library not in kept:
            kept[library] = told(library, "cpu", folder / library, standing_in=False)
        return kept[library]

    return results


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_gives_what_it_gives_on_torch(library, device, on_torch, tmp_path):
    theirs = on_torch(library)
    ours = told(library, device, tmp_path / "mindtorch.json", standing_in=True)
    assert ours.keys() == theirs.keys()
    for stage, expected in theirs.items():
        a, b = np.array(ours[stage], float), np.array(expected, float)
        assert a.shape == b.shape, stage
        if a.size:
            bound = LOOSE.get(library, 1e-5) * max(np.abs(b).max(), 1e-3)
            assert np.abs(a - b).max() <= bound, stage
